#include "devices/host/host.h"
#include "support/open_device.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#define MIB ((int64_t)1 << 20)
#define GIB ((int64_t)1 << 30)

static struct plim_device *open_host(const char *tail)
{
    return open_device(plim_host_open, tail);
}

static bool is_unwritten(uint64_t address, int64_t bytes)
{
    const unsigned char *at = (const unsigned char *)(uintptr_t)address;
    for (int64_t i = 0; i < bytes; i++)
        if (at[i] != 0xff) return false;
    return true;
}

Test(host_device, answers_like_an_a100_with_4_gib)
{
    struct plim_device *d = open_host("");
    cr_expect(eq(str, d->info.name, "host"));
    cr_expect(eq(str, d->info.uri, "host"));
    cr_expect(not(d->info.simulated));
    cr_expect(eq(int, d->info.compute_capability, 80));
    cr_expect(eq(int, d->info.multiprocessors, 108));
    cr_expect(eq(int, d->info.threads_per_multiprocessor, 2048));
    cr_expect(eq(i64, d->info.total_bytes, 4 * GIB));
    cr_expect(eq(i64, plim_device_free_bytes(d), 4 * GIB));
    plim_device_close(&d);
}

Test(host_device, takes_another_size_and_says_so)
{
    struct plim_device *d = open_host(",memory=1536MiB");
    cr_expect(eq(i64, d->info.total_bytes, 1536 * MIB));
    cr_expect(eq(str, d->info.uri, "host,memory=1536MiB"));
    plim_device_close(&d);
}

Test(host_device, refuses_other_options)
{
    static const char *const tails[] = {":0", ",memory=", ",memory=0", ",speed=2", "x"};
    for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
        expect_device_refused(plim_host_open, tails[i], PLIM_INVALID, "");
    }
}

Test(host_device, a_segment_takes_whole_2_mib_pages)
{
    struct plim_device *d = open_host(",memory=100MiB");
    uint64_t address = device_segment(d, 1);
    cr_expect(eq(u64, address % (2 << 20), 0));
    cr_expect(eq(i64, plim_device_free_bytes(d), 98 * MIB));
    plim_device_segment_return(d, address, 1);
    cr_expect(eq(i64, plim_device_free_bytes(d), 100 * MIB));
    plim_device_close(&d);
}

Test(host_device, memory_ends_where_the_total_ends)
{
    uint64_t address;
    struct plim_device *d = open_host(",memory=20MiB");
    device_segment(d, 12 * MIB);
    cr_expect(eq(int, plim_device_segment_get(d, 10 * MIB, &address), PLIM_OOM));
    cr_expect(eq(int, plim_device_segment_get(d, INT64_MAX, &address), PLIM_OOM));
    cr_expect(eq(i64, plim_device_free_bytes(d), 8 * MIB));
    device_segment(d, 8 * MIB);
    cr_expect(eq(i64, plim_device_free_bytes(d), 0));
    cr_expect(eq(int, plim_device_segment_get(d, 1, &address), PLIM_OOM));
    plim_device_close(&d);
}

Test(host_device, new_memory_is_nan_to_its_end_also_when_used_before)
{
    struct plim_device *d = open_host(",memory=20MiB");
    for (int i = 0; i < 3; i++) {
        uint64_t address = device_segment(d, 3 * MIB);
        cr_expect(is_unwritten(address, 3 * MIB));
        cr_expect(isnan(*(const float *)(uintptr_t)address));
        memset((void *)(uintptr_t)address, 0, 3 * MIB);
        plim_device_segment_return(d, address, 3 * MIB);
    }
    plim_device_close(&d);
}

Test(host_device, many_segments_come_and_go)
{
    uint64_t address[40];
    struct plim_device *d = open_host(",memory=80MiB");
    for (int i = 0; i < 40; i++) {
        address[i] = device_segment(d, 2 * MIB);
        memset((void *)(uintptr_t)address[i], i, 2 * MIB);
    }
    for (int i = 0; i < 40; i += 2) plim_device_segment_return(d, address[i], 2 * MIB);
    for (int i = 1; i < 40; i += 2) {
        unsigned char last;
        uint64_t end = address[i] + (uint64_t)(2 * MIB) - 1;
        cr_assert(eq(int, plim_device_read(d, end, &last, 1), PLIM_OK));
        cr_expect(eq(int, last, i));
    }
    cr_expect(eq(i64, plim_device_free_bytes(d), 40 * MIB));
    plim_device_close(&d);
}

Test(host_device, a_reserved_range_takes_memory_only_where_it_is_mapped)
{
    uint64_t range;
    struct plim_device *d = open_host(",memory=20MiB");
    cr_assert(eq(int, plim_device_range_reserve(d, 64 * GIB, &range), PLIM_OK));
    cr_expect(eq(u64, range % (2 << 20), 0));
    cr_expect(eq(i64, plim_device_free_bytes(d), 20 * MIB));
    uint64_t middle = range + (uint64_t)(32 * GIB);
    for (int i = 0; i < 2; i++) { /* the second time it is new again */
        cr_assert(eq(int, plim_device_range_map(d, middle, 4 * MIB, 2 * MIB), PLIM_OK));
        cr_expect(eq(i64, plim_device_free_bytes(d), 16 * MIB));
        cr_expect(is_unwritten(middle, 4 * MIB));
        memset((void *)(uintptr_t)middle, 1, 4 * MIB);
        plim_device_range_unmap(d, middle, 4 * MIB);
        cr_expect(eq(i64, plim_device_free_bytes(d), 20 * MIB));
    }
    cr_expect(eq(int, plim_device_range_map(d, range, 22 * MIB, 2 * MIB), PLIM_OOM));
    plim_device_range_release(d, range, 64 * GIB);
    plim_device_close(&d);
}

/* The operating system reports it without a signal. */
static bool has_memory(uint64_t address)
{
    int ends[2];
    cr_assert(eq(int, pipe(ends), 0));
    bool readable = write(ends[1], (const void *)(uintptr_t)address, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return readable;
}

Test(host_device, what_is_unmapped_or_returned_has_no_memory)
{
    uint64_t range;
    struct plim_device *d = open_host(",memory=20MiB");
    cr_assert(eq(int, plim_device_range_reserve(d, 8 * MIB, &range), PLIM_OK));
    cr_assert(eq(int, plim_device_range_map(d, range, 4 * MIB, 2 * MIB), PLIM_OK));
    cr_expect(has_memory(range + (4 << 20) - 1));
    cr_expect(not(has_memory(range + (4 << 20))));
    plim_device_range_unmap(d, range, 2 * MIB);
    cr_expect(not(has_memory(range)));
    cr_expect(has_memory(range + (2 << 20)));
    uint64_t address = device_segment(d, 2 * MIB);
    plim_device_segment_return(d, address, 2 * MIB);
    cr_expect(not(has_memory(address)));
    plim_device_close(&d);
}

Test(host_device, maps_inside_ranges_only)
{
    uint64_t range;
    struct plim_device *d = open_host(",memory=20MiB");
    cr_assert(eq(int, plim_device_range_reserve(d, 4 * MIB, &range), PLIM_OK));
    cr_expect(eq(int, plim_device_range_map(d, range + (2 << 20), 4 * MIB, 2 * MIB), PLIM_INVALID));
    cr_expect(eq(int, plim_device_range_map(d, range - (2 << 20), 2 * MIB, 2 * MIB), PLIM_INVALID));
    cr_expect(eq(i64, plim_device_free_bytes(d), 20 * MIB));
    plim_device_close(&d);
}

Test(host_device, what_is_written_is_read)
{
    char buffer[6] = "";
    struct plim_device *d = open_host(",memory=20MiB");
    uint64_t address = device_segment(d, 2 * MIB);
    cr_expect(eq(int, plim_device_write(d, address + 7, "plimsoll", 6), PLIM_OK));
    cr_expect(eq(int, plim_device_read(d, address + 8, buffer, 5), PLIM_OK));
    cr_expect(eq(str, buffer, "limso"));
    cr_expect(
        eq(int, plim_device_read(d, address + 2 * (uint64_t)MIB - 1, buffer, 2), PLIM_INVALID));
    cr_expect(eq(int, plim_device_write(d, 0, buffer, 1), PLIM_INVALID));
    plim_device_close(&d);
}

Test(host_device, computes_what_is_launched)
{
    struct plim_device *d = open_host(",memory=20MiB");
    struct plim_array x = {.data = device_segment(d, 2 * MIB),
                           .shape = {8},
                           .stride = {1},
                           .ndim = 1,
                           .dtype = PLIM_F32};
    struct plim_op fill = {.kind = PLIM_OP_FILL, .alpha = 2.5, .n_out = 1, .out = {&x}},
                   wrong = {.kind = PLIM_OP_FILL};
    float y[8];
    cr_assert(eq(int, plim_device_launch(d, &fill), PLIM_OK));
    cr_assert(eq(int, plim_device_read(d, x.data, y, sizeof(y)), PLIM_OK));
    for (int i = 0; i < 8; i++) cr_expect(eq(flt, y[i], 2.5f));
    cr_expect(is_unwritten(x.data + sizeof(y), 64));
    cr_expect(eq(int, plim_device_launch(d, &wrong), PLIM_INVALID));
    cr_expect(not(d->lost));
    plim_device_close(&d);
}

Test(host_device, time_passes)
{
    double before, after;
    struct plim_device *d = open_host("");
    cr_assert(eq(int, plim_device_now(d, &before), PLIM_OK));
    do cr_assert(eq(int, plim_device_now(d, &after), PLIM_OK));
    while (after == before);
    cr_expect(before >= 0 && after > before && after < 60);
    plim_device_close(&d);
}

Test(host_device, reset_gives_everything_back)
{
    uint64_t range, address;
    struct plim_device *d = open_host(",memory=20MiB");
    address = device_segment(d, 12 * MIB);
    cr_assert(eq(int, plim_device_range_reserve(d, 4 * MIB, &range), PLIM_OK));
    cr_assert(eq(int, plim_device_range_map(d, range, 4 * MIB, 2 * MIB), PLIM_OK));
    cr_assert(eq(int, plim_device_reset(d), PLIM_OK));
    cr_expect(eq(i64, plim_device_free_bytes(d), 20 * MIB));
    char byte;
    cr_expect(eq(int, plim_device_read(d, address, &byte, 1), PLIM_INVALID));
    cr_expect(eq(int, plim_device_range_map(d, range, 2 * MIB, 2 * MIB), PLIM_INVALID));
    device_segment(d, 20 * MIB);
    plim_device_close(&d);
}
