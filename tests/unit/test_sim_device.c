#include "devices/host/host.h"
#include "devices/sim/sim.h"
#include "support/open_device.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#define MIB ((int64_t)1 << 20)
#define GIB ((int64_t)1 << 30)

static struct plim_device *open_sim(const char *tail)
{
    return open_device(plim_sim_open, tail);
}

static void expect_refused(const char *tail, enum plim_status status, const char *part_of_message)
{
    expect_device_refused(plim_sim_open, tail, status, part_of_message);
}

Test(sim_device, is_the_gpu_of_the_catalogue)
{
    struct plim_device *d = open_sim("a100-sxm4-80gb");
    cr_expect(eq(str, d->info.name, "A100-SXM4-80GB"));
    cr_expect(eq(str, d->info.uri, "sim:A100-SXM4-80GB"));
    cr_expect(d->info.simulated);
    cr_expect(eq(int, d->info.compute_capability, 80));
    cr_expect(eq(int, d->info.multiprocessors, 108));
    cr_expect(eq(int, d->info.threads_per_multiprocessor, 2048));
    cr_expect(eq(i64, d->info.total_bytes, 81051 * MIB));
    cr_expect(eq(i64, plim_device_free_bytes(d), 81051 * MIB));
    plim_device_close(&d);
}

Test(sim_device, every_gpu_opens_and_knows_its_threads)
{
    for (size_t i = 0; i < plim_catalogue_count(); i++) {
        struct plim_device *d = open_sim(plim_catalogue_at(i)->name);
        cr_expect(d->info.threads_per_multiprocessor >= 1024, "%s", d->info.name);
        cr_expect(eq(str, (char *)plim_sim_gpu(d)->name, d->info.name));
        plim_device_close(&d);
    }
}

Test(sim_device, memory_can_be_given)
{
    struct plim_device *d = open_sim("RTX-4090,memory=20GiB");
    cr_expect(eq(i64, d->info.total_bytes, 20 * GIB));
    cr_expect(eq(str, d->info.uri, "sim:RTX-4090,memory=20GiB"));
    plim_device_close(&d);
}

Test(sim_device, memory_can_be_more_than_any_gpu_has)
{
    uint64_t address;
    struct plim_device *d = open_sim("A100-SXM4-80GB,memory=64TiB");
    cr_expect(eq(i64, d->info.total_bytes, 65536 * GIB));
    cr_expect(eq(int, plim_device_segment_get(d, 65536 * GIB, &address), PLIM_OK));
    cr_expect(eq(int, plim_device_segment_get(d, 1, &address), PLIM_OOM));
    plim_device_close(&d);
}

Test(sim_device, the_uri_opens_the_same_device)
{
    static const char *const tails[] = {"T4", "T4,memory=12500000000", "24GiB",
                                        "512MiB,memory=1GiB"};
    for (size_t i = 0; i < 4; i++) {
        struct plim_device *a = open_sim(tails[i]), *b = open_sim(a->info.uri + 4);
        cr_expect(eq(str, a->info.uri, b->info.uri));
        cr_expect(eq(i64, a->info.total_bytes, b->info.total_bytes));
        plim_device_close(&a);
        plim_device_close(&b);
    }
}

Test(sim_device, a_size_is_a_plain_gpu_of_compute_capability_80)
{
    struct plim_device *d = open_sim("24GiB");
    cr_expect(eq(str, d->info.uri, "sim:24GiB"));
    cr_expect(eq(i64, d->info.total_bytes, 24 * GIB));
    cr_expect(eq(int, d->info.compute_capability, 80));
    plim_device_close(&d);
}

Test(sim_device, a_number_alone_is_a_gpu_not_a_size)
{
    struct plim_device *d = open_sim("4090");
    cr_expect(eq(str, d->info.name, "RTX-4090"));
    plim_device_close(&d);
}

Test(sim_device, bad_uris_are_refused)
{
    expect_refused("RTX-4190", PLIM_NODEVICE, "RTX-4090");
    expect_refused("", PLIM_NODEVICE, "no GPU");
    expect_refused("T4,speed=9", PLIM_INVALID, "memory=24GiB");
    expect_refused("T4,memory=", PLIM_INVALID, "not a size");
    expect_refused("T4,memory=lots", PLIM_INVALID, "lots");
    expect_refused("T4,memory=-1GiB", PLIM_INVALID, "-1GiB");
    expect_refused("T4,memory=0", PLIM_INVALID, "memory=0");
    expect_refused("T4,memory=1GiB,memory=2GiB", PLIM_INVALID, "given twice");
    expect_refused("T4,placement=high", PLIM_INVALID, "driver or ascending");
    expect_refused("0GiB", PLIM_NODEVICE, "no GPU");
}

Test(sim_device, a_segment_takes_whole_2_mib_pages)
{
    uint64_t address;
    struct plim_device *d = open_sim("1GiB");
    cr_expect(eq(int, plim_device_segment_get(d, 1, &address), PLIM_OK));
    cr_expect(eq(i64, plim_device_free_bytes(d), GIB - 2 * MIB));
    plim_device_segment_return(d, address, 1);
    cr_expect(eq(i64, plim_device_free_bytes(d), GIB));
    plim_device_close(&d);
}

Test(sim_device, memory_ends_where_the_total_ends)
{
    uint64_t address;
    struct plim_device *d = open_sim("100MiB");
    cr_expect(eq(int, plim_device_segment_get(d, 60 * MIB, &address), PLIM_OK));
    cr_expect(eq(int, plim_device_segment_get(d, 42 * MIB, &address), PLIM_OOM));
    cr_expect(eq(int, plim_device_segment_get(d, INT64_MAX, &address), PLIM_OOM));
    cr_expect(eq(i64, plim_device_free_bytes(d), 40 * MIB));
    cr_expect(eq(int, plim_device_segment_get(d, 40 * MIB, &address), PLIM_OK));
    cr_expect(eq(i64, plim_device_free_bytes(d), 0));
    plim_device_close(&d);
}

Test(sim_device, addresses_do_not_overlap)
{
    static const char *const devices[] = {"24GiB", "24GiB,placement=ascending"};
    enum { MOST = 32 };
    for (size_t i = 0; i < 2; i++) {
        uint64_t at[MOST], end[MOST];
        size_t count = 0;
        struct plim_device *d = open_sim(devices[i]);
        for (int64_t bytes = 1; bytes < GIB; bytes *= 3, count++) {
            cr_assert(eq(int, plim_device_segment_get(d, bytes, &at[count]), PLIM_OK));
            end[count] = at[count] + (uint64_t)bytes;
        }
        cr_assert(eq(int, plim_device_range_reserve(d, 64 * GIB, &at[count]), PLIM_OK));
        end[count] = at[count] + (uint64_t)(64 * GIB);
        count++;
        cr_assert(eq(int, plim_device_segment_get(d, MIB, &at[count]), PLIM_OK));
        end[count] = at[count] + (uint64_t)MIB;
        count++;
        for (size_t a = 0; a < count; a++)
            for (size_t b = 0; b < a; b++) {
                cr_expect(at[a] >= end[b] || at[b] >= end[a], "%s: %zu and %zu", devices[i], a, b);
                if (i) cr_expect(ge(u64, at[a], end[b]), "above all before it");
            }
        plim_device_close(&d);
    }
}

Test(sim_device, a_reserved_range_takes_memory_only_where_it_is_mapped)
{
    uint64_t address;
    struct plim_device *d = open_sim("100MiB");
    cr_expect(eq(int, plim_device_range_reserve(d, GIB, &address), PLIM_OK));
    cr_expect(eq(i64, plim_device_free_bytes(d), 100 * MIB));
    cr_expect(eq(int, plim_device_range_map(d, address, 20 * MIB, 2 * MIB), PLIM_OK));
    cr_expect(eq(int, plim_device_range_map(d, address + 20 * MIB, 82 * MIB, 2 * MIB), PLIM_OOM));
    cr_expect(eq(i64, plim_device_free_bytes(d), 80 * MIB));
    plim_device_range_unmap(d, address, 20 * MIB);
    cr_expect(eq(i64, plim_device_free_bytes(d), 100 * MIB));
    plim_device_range_release(d, address, GIB);
    plim_device_close(&d);
}

Test(sim_device, capacity_is_a_budget_below_the_total)
{
    uint64_t address;
    struct plim_device *d = open_sim("24GiB");
    plim_device_limit(d, 10 * MIB);
    cr_expect(eq(i64, d->info.total_bytes, 24 * GIB));
    cr_expect(eq(i64, plim_device_free_bytes(d), 10 * MIB));
    cr_expect(eq(int, plim_device_segment_get(d, 12 * MIB, &address), PLIM_OOM));
    plim_device_limit(d, 12 * MIB);
    cr_expect(eq(int, plim_device_segment_get(d, 12 * MIB, &address), PLIM_OK));
    plim_device_limit(d, -1); /* nothing is left after overhead and margin */
    cr_expect(eq(i64, plim_device_free_bytes(d), 0));
    cr_expect(eq(int, plim_device_segment_get(d, 1, &address), PLIM_OOM));
    plim_device_close(&d);
}

/* A copy of `elements` fp32 numbers. */
static void launch_copy(struct plim_device *d, int64_t elements)
{
    struct plim_array x = {.shape = {elements}, .stride = {1}, .ndim = 1, .dtype = PLIM_F32};
    struct plim_op op = {.kind = PLIM_OP_COPY, .n_out = 1, .n_in = 1, .out = {&x}, .in = {&x}};
    cr_assert(eq(int, plim_device_launch(d, &op), PLIM_OK));
}

static double now(struct plim_device *d)
{
    double seconds;
    cr_assert(eq(int, plim_device_now(d, &seconds), PLIM_OK));
    return seconds;
}

Test(sim_device, reset_starts_as_after_open)
{
    uint64_t first, again;
    struct plim_device *d = open_sim("24GiB");
    cr_expect(eq(int, plim_device_segment_get(d, 10 * MIB, &first), PLIM_OK));
    launch_copy(d, 1000);
    cr_expect(lt(dbl, 0, now(d)));
    cr_expect(eq(int, plim_device_reset(d), PLIM_OK));
    cr_expect(eq(dbl, now(d), 0));
    cr_expect(eq(i64, plim_device_free_bytes(d), 24 * GIB));
    cr_expect(eq(int, plim_device_segment_get(d, 10 * MIB, &again), PLIM_OK));
    cr_expect(eq(u64, first, again));
    plim_device_close(&d);
}

/* cudaMalloc keeps the host, cudaFree waits for the device as well. */
Test(sim_device, the_driver_takes_its_time_for_memory)
{
    enum { LARGE = 100000000 };
    uint64_t address;
    struct plim_device_load load;
    struct plim_device *alone = open_sim("A100-SXM4-80GB"), *d = open_sim("A100-SXM4-80GB");
    launch_copy(alone, LARGE);
    launch_copy(alone, 1);
    launch_copy(d, LARGE);
    cr_assert(eq(int, plim_device_segment_get(d, MIB, &address), PLIM_OK));
    launch_copy(d, 1);
    cr_expect(eq(dbl, now(d), now(alone))); /* during a large operation */
    plim_device_segment_return(d, address, MIB);
    double idle = now(d);
    launch_copy(d, 1);
    cr_expect(lt(dbl, PLIM_DRIVER_MEMORY_SECONDS, now(d) - idle));
    plim_device_load(d, &load);
    cr_expect(epsilon_eq(dbl, load.driver_seconds, 2 * PLIM_DRIVER_MEMORY_SECONDS, 1e-12));
    plim_device_close(&alone);
    plim_device_close(&d);
}

Test(sim_device, memory_that_a_round_took_is_there_when_it_is_repeated)
{
    uint64_t address;
    struct plim_device_round round;
    struct plim_device *d = open_sim("A100-SXM4-80GB");
    plim_device_begin_round(d);
    cr_assert(eq(int, plim_device_segment_get(d, MIB, &address), PLIM_OK));
    launch_copy(d, 1);
    plim_device_end_round(d, &round);
    double once = now(d);
    plim_device_repeat(d, &round, 1);
    cr_expect(lt(dbl, PLIM_DRIVER_MEMORY_SECONDS, once));
    cr_expect(lt(dbl, now(d) - once, PLIM_DRIVER_MEMORY_SECONDS));
    double before = now(d);
    plim_device_spend(d, 1);
    launch_copy(d, 1);
    cr_expect(lt(dbl, 1, now(d) - before));
    plim_device_close(&d);
}

Test(sim_device, small_operations_wait_for_the_host)
{
    struct plim_device *small = open_sim("T4"), *big = open_sim("H100-SXM5-80GB");
    for (int i = 0; i < 1000; i++) launch_copy(small, 16), launch_copy(big, 16);
    /* a faster GPU does not help: the host launches one every ten microseconds or more */
    cr_expect(lt(dbl, 1000 * 10e-6, now(small)));
    cr_expect(epsilon_eq(dbl, now(small), now(big), 0.01 * now(big)));
    plim_device_close(&small);
    plim_device_close(&big);
}

Test(sim_device, the_host_runs_ahead_of_large_operations)
{
    struct plim_device *d = open_sim("A100-SXM4-80GB");
    launch_copy(d, GIB / 4);
    double first = now(d);
    for (int i = 0; i < 10; i++) launch_copy(d, 16);
    /* launched while the large one ran: nothing but their kernels follows it */
    cr_expect(lt(dbl, now(d) - first, 10 * 5e-6));
    plim_device_close(&d);
}

Test(sim_device, reading_back_makes_the_host_wait)
{
    struct plim_array loss = {.ndim = 0, .dtype = PLIM_F32};
    struct plim_op read = {.kind = PLIM_OP_READ_BACK, .n_in = 1, .in = {&loss}};
    struct plim_device *d = open_sim("A100-SXM4-80GB");
    launch_copy(d, GIB / 4);
    cr_assert(eq(int, plim_device_launch(d, &read), PLIM_OK));
    double before = now(d);
    launch_copy(d, 16);
    cr_expect(lt(dbl, 10e-6, now(d) - before)); /* it had to be launched first */
    plim_device_close(&d);
}

/* Small and large copies, and sometimes a read: with `sizes` of zero the host waits there. */
static void launch_all(struct plim_device *d, const int64_t *sizes, size_t count)
{
    struct plim_op wait = {.kind = PLIM_OP_READ_BACK};
    for (size_t i = 0; i < count; i++) {
        if (sizes[i]) launch_copy(d, sizes[i]);
        else cr_assert(eq(int, plim_device_launch(d, &wait), PLIM_OK));
    }
}

/* Whatever the queue looks like when a round begins, whoever is slower in it, and whether the host
 * waits in it. */
static void end_and_repeat(struct plim_device *device, int64_t times)
{
    struct plim_device_round round;
    plim_device_end_round(device, &round);
    plim_device_repeat(device, &round, times);
}

Test(sim_device, a_repeated_round_takes_as_long_as_one_that_is_launched_again)
{
    static const int64_t queues[] = {1, 3000000, 300000000, 9000000000};
    static const int64_t rounds[][4] = {{1, 1, 1, 1},
                                        {100000000, 1, 1, 1},
                                        {1, 1, 1, 100000000},
                                        {1, 20000000, 0, 1},
                                        {1, 0, 4000000, 1},
                                        {3000000, 1, 1, 9000000}};
    for (size_t q = 0; q < 4; q++)
        for (size_t i = 0; i < sizeof(rounds) / sizeof(rounds[0]); i++)
            for (int times = 0; times < 40; times += 1 + times / 3) {
                struct plim_device *one = open_sim("A100-SXM4-80GB");
                struct plim_device *all = open_sim("A100-SXM4-80GB");
                launch_all(one, &queues[q], 1);
                launch_all(all, &queues[q], 1);
                plim_device_begin_round(one);
                for (int n = 0; n <= times; n++) launch_all(n ? all : one, rounds[i], 4);
                launch_all(all, rounds[i], 4);
                end_and_repeat(one, times);
                cr_expect(epsilon_eq(dbl, now(one) / now(all), 1, 1e-12), "%d of %zu", times, i);
                launch_all(one, rounds[0], 4); /* the host is where it would be, too */
                launch_all(all, rounds[0], 4);
                cr_expect(epsilon_eq(dbl, now(one) / now(all), 1, 1e-12), "%d of %zu", times, i);
                plim_device_close(&one);
                plim_device_close(&all);
            }
}

Test(sim_device, a_round_may_hold_rounds)
{
    static const int64_t inner[] = {1, 30000000, 1}, outer[] = {1, 1, 40000000, 0};
    struct plim_device *one = open_sim("A100-SXM4-80GB"), *all = open_sim("A100-SXM4-80GB");
    plim_device_begin_round(one);
    launch_all(one, outer, 4);
    plim_device_begin_round(one);
    launch_all(one, inner, 3);
    end_and_repeat(one, 6);
    launch_all(one, outer, 1);
    end_and_repeat(one, 4);
    for (int i = 0; i < 5; i++) {
        launch_all(all, outer, 4);
        for (int k = 0; k < 7; k++) launch_all(all, inner, 3);
        launch_all(all, outer, 1);
    }
    cr_expect(epsilon_eq(dbl, now(one) / now(all), 1, 1e-12));
    plim_device_close(&one);
    plim_device_close(&all);
}

Test(sim_device, a_round_is_repeated_after_others_as_well)
{
    static const int64_t slow[] = {1, 30000000, 1}, quick[] = {1, 1, 1, 0};
    struct plim_device *one = open_sim("A100-SXM4-80GB"), *all = open_sim("A100-SXM4-80GB");
    struct plim_device_round first, outer;
    plim_device_begin_round(one);
    launch_all(one, slow, 3);
    plim_device_end_round(one, &first);
    plim_device_begin_round(one);
    launch_all(one, quick, 4);
    plim_device_repeat(one, &first, 2);
    plim_device_end_round(one, &outer);
    plim_device_repeat(one, &outer, 1);
    launch_all(all, slow, 3);
    for (int i = 0; i < 2; i++) {
        launch_all(all, quick, 4);
        for (int k = 0; k < 2; k++) launch_all(all, slow, 3);
    }
    struct plim_device_load of_one, of_all;
    plim_device_load(one, &of_one);
    plim_device_load(all, &of_all);
    cr_expect(epsilon_eq(dbl, of_one.launching_seconds / of_all.launching_seconds, 1, 1e-12));
    for (int i = 0; i < PLIM_DEVICE_TASKS; i++)
        cr_expect(epsilon_eq(dbl, of_one.running_seconds[i], of_all.running_seconds[i], 1e-12), "task %d", i);
    cr_expect(lt(dbl, 0, of_one.running_seconds[PLIM_DEVICE_OTHER]));
    cr_expect(epsilon_eq(dbl, now(one) / now(all), 1, 1e-12));
    plim_device_close(&one);
    plim_device_close(&all);
}

Test(sim_device, only_a_device_that_computes_nothing_repeats)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_device *host, *sim = open_sim("A100-SXM4-80GB");
    cr_assert(eq(int, plim_host_open("", &host, &err), PLIM_OK), "%s", err.text);
    cr_expect(plim_device_can_repeat(sim));
    cr_expect(not(plim_device_can_repeat(host)));
    plim_device_begin_round(host);
    end_and_repeat(host, 3);
    plim_device_close(&host);
    plim_device_close(&sim);
}

Test(sim_device, what_is_read_is_zeros)
{
    char buffer[8];
    memset(buffer, 1, sizeof(buffer));
    struct plim_device *d = open_sim("T4");
    cr_expect(eq(int, d->ops->read(d, 0, buffer, sizeof(buffer)), PLIM_OK));
    for (size_t i = 0; i < sizeof(buffer); i++) cr_expect(eq(int, buffer[i], 0));
    plim_device_close(&d);
}

Test(sim_device, a_gpu_of_ones_own_making)
{
    struct plim_device *d;
    struct plim_gpu gpu = {.name = "mine", .compute_capability = 86, .total_bytes = GIB};
    cr_assert(eq(int, plim_sim_open_gpu(&gpu, 0, &d, NULL), PLIM_OK));
    memset(&gpu, 0, sizeof(gpu)); /* it was copied */
    cr_expect(eq(str, (char *)plim_sim_gpu(d)->name, "mine"));
    cr_expect(eq(i64, d->info.total_bytes, GIB));
    plim_device_close(&d);
    gpu.total_bytes = GIB;
    cr_expect(eq(int, plim_sim_open_gpu(&gpu, -1, &d, NULL), PLIM_INVALID));
}
