/* The cuda device on the stand-in for the driver (tests/doubles), which LD_LIBRARY_PATH finds. */
#include "devices/cuda/cuda.h"
#include "support/open_device.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((int64_t)1 << 20)
#define GIB ((int64_t)1 << 30)
#define CONTEXT (256 * MIB) /* bytes of the stand-in's context */
#define MODULE (2 * MIB)    /* and the code of a kernel's image */

/* --- operations ------------------------------------------------------------------------------- */

static struct plim_array vector(uint64_t address, int64_t elements)
{
    return (struct plim_array){
        .data = address, .shape = {elements}, .stride = {1}, .ndim = 1, .dtype = PLIM_F32};
}

static enum plim_status fill(struct plim_device *d, uint64_t address, int64_t elements,
                             double value)
{
    struct plim_array out = vector(address, elements);
    struct plim_op op = {.kind = PLIM_OP_FILL, .n_out = 1, .alpha = value, .out = {&out}};
    return plim_device_launch(d, &op);
}

static float first_float(struct plim_device *d, uint64_t address)
{
    float value = -1;
    cr_assert(eq(int, plim_device_read(d, address, &value, sizeof(value)), PLIM_OK));
    return value;
}

/* --- opening ---------------------------------------------------------------------------------- */

static struct plim_device *open_gpu(const char *tail)
{
    return open_device(plim_cuda_open, tail);
}

static void expect_refused(const char *tail, enum plim_status status, const char *part_of_message)
{
    expect_device_refused(plim_cuda_open, tail, status, part_of_message);
}

Test(cuda_device, knows_the_gpu)
{
    setenv("PLIM_DOUBLE_GPU", "RTX-4090", 1);
    struct plim_device *d = open_gpu(":0");
    cr_expect(eq(str, d->info.name, "NVIDIA GeForce RTX 4090"));
    cr_expect(eq(str, d->info.uri, "cuda:0"));
    cr_expect(not(d->info.simulated));
    cr_expect(eq(int, d->info.compute_capability, 89));
    cr_expect(eq(int, d->info.multiprocessors, 128));
    cr_expect(eq(int, d->info.threads_per_multiprocessor, 1536));
    cr_expect(eq(i64, d->info.total_bytes - plim_device_free_bytes(d), CONTEXT));
    plim_device_close(&d);
}

Test(cuda_device, is_the_gpu_that_is_visible)
{
    setenv("PLIM_DOUBLE_GPU", "RTX-4090,T4", 1);
    struct plim_device *d = open_gpu(":1");
    cr_expect(eq(int, d->info.compute_capability, 75));
    plim_device_close(&d);
    setenv("CUDA_VISIBLE_DEVICES", "GPU-706c696d-736f-6c6c-2067-707520203100", 1);
    d = open_gpu("");
    cr_expect(eq(int, d->info.compute_capability, 75));
    plim_device_close(&d);
    expect_refused(":1", PLIM_NODEVICE, "CUDA shows 1");
}

Test(cuda_device, no_visible_gpu_is_no_device)
{
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    expect_refused(":0", PLIM_NODEVICE, "CUDA_VISIBLE_DEVICES");
}

Test(cuda_device, refuses_options_that_it_does_not_know)
{
    expect_refused(":", PLIM_INVALID, "expected the number of a GPU");
    expect_refused(":-1", PLIM_INVALID, "expected the number of a GPU");
    expect_refused(":0x", PLIM_INVALID, "no device option");
    expect_refused(":0,speed=2", PLIM_INVALID, "no device option");
    expect_refused(":0,memory=0", PLIM_INVALID, "memory=0");
    expect_refused(":0,memory=1TiB", PLIM_INVALID, "more than the GPU's");
}

Test(cuda_device, what_is_in_the_way_is_no_device_and_says_what_helps)
{
    static const struct {
        const char *result, *says;
    } ways[] = {{"cuInit=802", "nvidia-fabricmanager"},
                {"cuInit=803", "restart the machine"},
                {"cuInit=999", "cuInit"},
                {"cuDevicePrimaryCtxRetain=214", "memory has an error"},
                {"cuInit=34", "stub"}};
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        setenv("PLIM_DOUBLE_RESULT", ways[i].result, 1);
        expect_refused(":0", PLIM_NODEVICE, ways[i].says);
    }
}

Test(cuda_device, what_other_processes_are_in_the_way_of_may_pass)
{
    setenv("PLIM_DOUBLE_RESULT", "cuDevicePrimaryCtxRetain=46", 1);
    expect_refused(":0", PLIM_BUSY, "exclusive mode");
    setenv("PLIM_DOUBLE_RESULT", "cuInit=807", 1);
    expect_refused(":0", PLIM_BUSY, "MPS server recovers");
}

Test(cuda_device, a_gpu_too_full_for_a_context_is_out_of_memory)
{
    setenv("PLIM_DOUBLE_MEMORY", "8GiB", 1);
    setenv("PLIM_DOUBLE_OTHERS", "8000MiB", 1);
    expect_refused(":0", PLIM_OOM, "cuDevicePrimaryCtxRetain");
}

/* --- segments --------------------------------------------------------------------------------- */

Test(cuda_device, segments_take_memory_and_give_it_back)
{
    struct plim_device *d = open_gpu(":0");
    int64_t free_bytes = plim_device_free_bytes(d);
    uint64_t a = device_segment(d, 20 * MIB), b = device_segment(d, 2 * MIB),
             c = device_segment(d, 3 * MIB);
    cr_expect(ne(u64, a, b));
    cr_expect(eq(i64, plim_device_free_bytes(d), free_bytes - 26 * MIB));
    plim_device_segment_return(d, b, 2 * MIB);
    plim_device_segment_return(d, c, 3 * MIB);
    plim_device_segment_return(d, a, 20 * MIB);
    cr_expect(eq(i64, plim_device_free_bytes(d), free_bytes));
    cr_expect(eq(i64, d->segment_bytes, 0));
    plim_device_close(&d);
}

Test(cuda_device, out_of_memory_is_an_answer_and_the_device_goes_on)
{
    setenv("PLIM_DOUBLE_MEMORY", "1GiB", 1);
    struct plim_device *d = open_gpu(":0");
    uint64_t a = device_segment(d, 512 * MIB), b;
    cr_expect(eq(int, plim_device_segment_get(d, 512 * MIB, &b), PLIM_OOM));
    cr_expect(strstr(plim_device_message(d), "out of memory") != NULL);
    cr_expect(not(plim_device_is_suspect(d)));
    cr_expect(eq(int, fill(d, a, 8, 2), PLIM_OK));
    cr_expect(eq(flt, first_float(d, a), 2));
    plim_device_close(&d);
}

Test(cuda_device, a_smaller_gpu_can_be_emulated)
{
    struct plim_device *d = open_gpu(":0,memory=24GiB");
    uint64_t a;
    cr_expect(eq(i64, d->info.total_bytes, 24 * GIB));
    cr_expect(eq(str, d->info.uri, "cuda:0,memory=25769803776"));
    device_segment(d, 20 * GIB);
    cr_expect(eq(int, plim_device_segment_get(d, 4 * GIB + 1, &a), PLIM_OOM));
    cr_expect(eq(str, (char *)plim_device_message(d), (char *)"")); /* the driver was not called */
    device_segment(d, 4 * GIB);
    plim_device_close(&d);
}

Test(cuda_device, capacity_holds_for_segments_and_pages)
{
    struct plim_device *d = open_gpu(":0");
    uint64_t a, range;
    plim_device_limit(d, 40 * MIB);
    cr_assert(eq(int, plim_device_range_reserve(d, 64 * MIB, &range), PLIM_OK));
    device_segment(d, 20 * MIB);
    cr_expect(eq(int, plim_device_range_map(d, range, 22 * MIB, 2 * MIB), PLIM_OOM));
    cr_expect(eq(int, plim_device_range_map(d, range, 20 * MIB, 2 * MIB), PLIM_OK));
    cr_expect(eq(int, plim_device_segment_get(d, 1, &a), PLIM_OOM));
    plim_device_close(&d);
}

/* --- ranges ----------------------------------------------------------------------------------- */

static uint64_t range_of(struct plim_device *d, int64_t bytes)
{
    uint64_t address;
    cr_assert(eq(int, plim_device_range_reserve(d, bytes, &address), PLIM_OK));
    return address;
}

Test(cuda_device, mapped_pages_are_memory_side_by_side)
{
    struct plim_device *d = open_gpu(":0");
    int64_t free_bytes = plim_device_free_bytes(d);
    uint64_t range = range_of(d, GIB);
    cr_expect(eq(i64, plim_device_free_bytes(d), free_bytes));
    cr_expect(eq(int, plim_device_range_map(d, range, 2 * MIB, 2 * MIB), PLIM_OK));
    cr_expect(eq(int, plim_device_range_map(d, range + 2 * MIB, 4 * MIB, 2 * MIB), PLIM_OK));
    cr_expect(eq(i64, plim_device_free_bytes(d), free_bytes - 6 * MIB));
    cr_expect(eq(int, fill(d, range, 6 * MIB / 4, 3), PLIM_OK));
    cr_expect(eq(flt, first_float(d, range + 6 * MIB - 4), 3));
    plim_device_range_unmap(d, range, 6 * MIB);
    plim_device_range_release(d, range, GIB);
    cr_expect(eq(i64, plim_device_free_bytes(d), free_bytes - MODULE));
    cr_expect(not(plim_device_is_suspect(d)));
    plim_device_close(&d);
}

/* Pages are what the allocator unmaps one by one. */
static void expect_unmapped_page_by_page(struct plim_device *d, int64_t page)
{
    int64_t free_bytes = plim_device_free_bytes(d);
    uint64_t range = range_of(d, 10 * page);
    cr_assert(eq(int, plim_device_range_map(d, range, 5 * page, page), PLIM_OK));
    cr_assert(eq(int, fill(d, range + (uint64_t)(2 * page), 4, 7), PLIM_OK));
    plim_device_range_unmap(d, range, 2 * page);
    plim_device_range_unmap(d, range + (uint64_t)(3 * page), page);
    cr_expect(eq(i64, plim_device_free_bytes(d), free_bytes - 2 * page - MODULE));
    cr_expect(eq(flt, first_float(d, range + (uint64_t)(2 * page)), 7));
    cr_expect(eq(int, plim_device_range_map(d, range, 2 * page, page), PLIM_OK));
    plim_device_range_unmap(d, range, 3 * page);
    plim_device_range_unmap(d, range + (uint64_t)(4 * page), page);
    plim_device_range_release(d, range, 10 * page);
    cr_expect(eq(i64, plim_device_free_bytes(d), free_bytes - MODULE));
    cr_expect(not(plim_device_is_suspect(d)), "%s", plim_device_message(d));
}

Test(cuda_device, what_was_mapped_at_once_is_unmapped_page_by_page)
{
    static const int64_t pages[] = {2, 20, 64};
    for (size_t i = 0; i < 3; i++) {
        struct plim_device *d = open_gpu(":0");
        expect_unmapped_page_by_page(d, pages[i] * MIB);
        plim_device_close(&d);
    }
}

Test(cuda_device, a_map_that_does_not_fit_takes_nothing)
{
    setenv("PLIM_DOUBLE_MEMORY", "1GiB", 1);
    struct plim_device *d = open_gpu(":0");
    int64_t free_bytes = plim_device_free_bytes(d);
    uint64_t range = range_of(d, 2 * GIB);
    cr_expect(eq(int, plim_device_range_map(d, range, 900 * MIB, 2 * MIB), PLIM_OOM));
    cr_expect(eq(i64, plim_device_free_bytes(d), free_bytes));
    cr_expect(eq(int, plim_device_range_map(d, range, 700 * MIB, 2 * MIB), PLIM_OK));
    plim_device_close(&d);
}

Test(cuda_device, reset_gives_everything_back)
{
    struct plim_device *d = open_gpu(":0");
    int64_t free_bytes = plim_device_free_bytes(d);
    double seconds = -1;
    uint64_t range = range_of(d, GIB), a = device_segment(d, 40 * MIB);
    device_segment(d, 2 * MIB);
    cr_assert(eq(int, plim_device_range_map(d, range + 2 * MIB, 8 * MIB, 2 * MIB), PLIM_OK));
    cr_assert(eq(int, fill(d, a, 1000, 1), PLIM_OK));
    cr_expect(eq(int, plim_device_reset(d), PLIM_OK));
    cr_expect(eq(i64, plim_device_free_bytes(d), free_bytes - MODULE));
    cr_expect(eq(int, plim_device_now(d, &seconds), PLIM_OK));
    cr_expect(lt(dbl, seconds, 0.05));
    plim_device_close(&d);
}

Test(cuda_device, closing_leaves_nothing_on_the_gpu)
{
    struct plim_device *d = open_gpu(":0");
    int64_t free_bytes = plim_device_free_bytes(d);
    uint64_t range = range_of(d, GIB);
    cr_assert(eq(int, fill(d, device_segment(d, 40 * MIB), 1000, 1), PLIM_OK));
    cr_assert(eq(int, plim_device_range_map(d, range, 8 * MIB, 2 * MIB), PLIM_OK));
    plim_device_close(&d);
    d = open_gpu(":0");
    cr_expect(eq(i64, plim_device_free_bytes(d), free_bytes));
    plim_device_close(&d);
}

Test(cuda_device, memory_info_tells_what_else_is_taken)
{
    struct plim_cuda_memory_info numbers;
    setenv("PLIM_DOUBLE_OTHERS", "1GiB", 1);
    struct plim_device *d = open_gpu(":0,memory=24GiB");
    device_segment(d, 19 * MIB);
    cr_assert(eq(int, plim_cuda_read_memory_info(d, &numbers), PLIM_OK));
    cr_expect(lt(i64, 70 * GIB, numbers.total_bytes));
    cr_expect(eq(i64, numbers.held_bytes, 20 * MIB));
    cr_expect(eq(i64, numbers.free_bytes, numbers.free_bytes_at_open - 20 * MIB));
    cr_expect(eq(i64, plim_cuda_overhead_bytes(&numbers, GIB), CONTEXT));
    plim_device_close(&d);
}

/* --- work ------------------------------------------------------------------------------------- */

Test(cuda_device, copies_there_and_back)
{
    struct plim_device *d = open_gpu(":0");
    uint64_t a = device_segment(d, 2 * MIB);
    char sent[] = "as it was", got[sizeof(sent)] = "";
    cr_expect(eq(int, plim_device_write(d, a + 100, sent, sizeof(sent)), PLIM_OK));
    cr_expect(eq(int, plim_device_read(d, a + 100, got, sizeof(got)), PLIM_OK));
    cr_expect(eq(str, got, sent));
    plim_device_close(&d);
}

Test(cuda_device, runs_our_kernels)
{
    struct plim_device *d = open_gpu(":0");
    uint64_t address = device_segment(d, 2 * MIB);
    struct plim_array a = vector(address, 5), b = vector(address + MIB, 5);
    struct plim_op add = {.kind = PLIM_OP_BINARY,
                          .n_out = 1,
                          .n_in = 2,
                          .binary = PLIM_BINARY_ADD,
                          .alpha = 2,
                          .out = {&a},
                          .in = {&a, &b}};
    cr_expect(eq(int, fill(d, a.data, 5, 1.5), PLIM_OK));
    cr_expect(eq(int, fill(d, b.data, 5, 10), PLIM_OK));
    cr_expect(eq(int, plim_device_launch(d, &add), PLIM_OK));
    cr_expect(eq(flt, first_float(d, a.data + 16), 21.5));
    plim_device_close(&d);
}

/* A transposition is in another image than filling. */
Test(cuda_device, finds_kernels_in_whichever_image_has_them)
{
    struct plim_device *d = open_gpu(":0");
    int64_t free_bytes = plim_device_free_bytes(d) - 2 * MIB;
    uint64_t address = device_segment(d, 2 * MIB);
    struct plim_array from = {
        .data = address, .shape = {64, 96}, .stride = {1, 64}, .ndim = 2, .dtype = PLIM_F32};
    struct plim_array to = {
        .data = address + MIB, .shape = {64, 96}, .stride = {96, 1}, .ndim = 2, .dtype = PLIM_F32};
    struct plim_op copy = {
        .kind = PLIM_OP_COPY, .n_out = 1, .n_in = 1, .out = {&to}, .in = {&from}};
    cr_expect(eq(int, fill(d, address, 64 * 96, 4), PLIM_OK));
    cr_expect(eq(i64, plim_device_free_bytes(d), free_bytes - MODULE));
    cr_expect(eq(int, plim_device_launch(d, &copy), PLIM_OK), "%s", plim_device_message(d));
    cr_expect(eq(i64, plim_device_free_bytes(d), free_bytes - 2 * MODULE));
    cr_expect(eq(flt, first_float(d, to.data + 4 * (64 * 96 - 1)), 4));
    plim_device_close(&d);
}

Test(cuda_device, a_copy_outside_of_its_memory_is_our_mistake_and_not_the_end)
{
    struct plim_device *d = open_gpu(":0");
    char byte;
    uint64_t a = device_segment(d, 2 * MIB);
    cr_expect(eq(int, plim_device_read(d, a + 2 * MIB, &byte, 1), PLIM_INTERNAL));
    cr_expect(eq(int, plim_device_read(d, a, &byte, 1), PLIM_OK));
    plim_device_close(&d);
}

Test(cuda_device, time_is_counted_from_open_on)
{
    struct plim_device *d = open_gpu(":0");
    double before, after;
    uint64_t a = device_segment(d, 8 * MIB);
    cr_expect(eq(int, plim_device_now(d, &before), PLIM_OK));
    cr_expect(eq(int, fill(d, a, 2 * MIB, 1), PLIM_OK));
    cr_expect(eq(int, plim_device_now(d, &after), PLIM_OK));
    cr_expect(le(dbl, 0, before));
    cr_expect(lt(dbl, before, after));
    plim_device_close(&d);
}

Test(cuda_device, reading_back_waits_for_the_value)
{
    struct plim_device *d = open_gpu(":0");
    struct plim_array a = vector(device_segment(d, 2 * MIB), 1);
    struct plim_op op = {.kind = PLIM_OP_READ_BACK, .n_in = 1, .in = {&a}};
    cr_expect(eq(int, plim_device_launch(d, &op), PLIM_OK));
    a.shape[0] = 129; /* as many experts read how many rows they have */
    cr_expect(eq(int, plim_device_launch(d, &op), PLIM_OK));
    plim_device_close(&d);
}
