#include "doubles/emulator.h"
#include "unit/emulator_probe.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <signal.h>
#include <stdlib.h>

enum { VALUES = 4096 };

static void run3(const char *name, const uint32_t grid[3], const uint32_t block[3],
                 uint32_t shared_bytes, int64_t *out, int64_t n, int64_t parameter)
{
    const struct emulated_kernel *kernel = emulated_kernel_find(name);
    cr_assert(ne(ptr, (void *)kernel, NULL));
    struct probe_args args = {out, n, parameter};
    cr_assert(eq(sz, kernel->args_bytes, sizeof args));
    emulated_kernel_run(kernel, grid, block, shared_bytes, &args);
}

static void run(const char *name, uint32_t threads, uint32_t shared_bytes, int64_t *out, int64_t n,
                int64_t parameter)
{
    run3(name, (uint32_t[3]){1, 1, 1}, (uint32_t[3]){threads, 1, 1}, shared_bytes, out, n,
         parameter);
}

static const char *const orders[] = {"forward", "backward", "shuffled"};

Test(emulator, knows_kernels_by_name)
{
    cr_expect(eq(ptr, (void *)emulated_kernel_find("no_such_kernel"), NULL));
    cr_expect(eq(str, (char *)emulated_kernel_find("probe_race")->name, "probe_race"));
    cr_expect(eq(u32, emulated_kernel_find("probe_mistake")->max_threads, 256));
}

Test(emulator, runs_every_thread_of_a_three_dimensional_launch_once)
{
    static int64_t out[VALUES];
    run3("probe_place", (uint32_t[3]){3, 5, 2}, (uint32_t[3]){4, 3, 7}, 0, out, 3 * 5 * 2 * 84,
         1000);
    for (int i = 0; i < VALUES; i++) cr_expect(eq(i64, out[i], i < 3 * 5 * 2 * 84 ? i + 1000 : 0));
}

Test(emulator, barriers_hold_in_every_order)
{
    for (int order = 0; order < 3; order++) {
        setenv("PLIM_EMULATOR_ORDER", orders[order], 1);
        int64_t out[1000];
        for (int i = 0; i < 1000; i++) out[i] = i;
        run("probe_reverse", 1000, sizeof out, out, 0, 7);
        for (int i = 0; i < 1000; i++) cr_assert(eq(i64, out[i], 999 - i));
    }
}

Test(emulator, a_missing_barrier_shows_as_a_difference_between_orders)
{
    int64_t out[3][64];
    for (int order = 0; order < 3; order++) {
        setenv("PLIM_EMULATOR_ORDER", orders[order], 1);
        for (int i = 0; i < 64; i++) out[order][i] = i;
        run("probe_race", 64, 0, out[order], 0, 0);
    }
    cr_expect(memcmp(out[0], out[1], sizeof out[0]) != 0);
    cr_expect(memcmp(out[0], out[2], sizeof out[0]) != 0);
}

static int64_t expected_exchange(int kind, int thread)
{
    int lane = thread % 32;
    switch (kind) {
    case 0:
        return 5;
    case 1:
        return lane < 3 ? lane : lane - 3;
    case 2:
        return lane > 28 ? lane : lane + 3;
    case 3:
        return lane ^ 6;
    case 4:
        return 0x49249249;
    case 5:
        return lane % 8 > 5 ? lane : lane + 2;
    case 6:
        return lane < 16 ? lane ^ 1 : 31;
    case 7:
        return 1;
    case 8:
        return 96 / 4;
    case 9:
        return 1;
    default:
        return 95 * 96 / 2;
    }
}

Test(emulator, lanes_exchange_values)
{
    for (int order = 0; order < 3; order++) {
        setenv("PLIM_EMULATOR_ORDER", orders[order], 1);
        for (int kind = 0; kind <= 10; kind++) {
            int64_t out[96];
            run("probe_exchange", 96, 0, out, 0, kind);
            for (int i = 0; i < 96; i++)
                cr_assert(eq(i64, out[i], expected_exchange(kind, i)), "kind %d, thread %d", kind,
                          i);
        }
    }
}

Test(emulator, atomics_return_what_was_there)
{
    int64_t out[3] = {0};
    run("probe_atomics", 1000, 0, out, 0, 0);
    cr_expect(eq(i64, out[0], 999 * 1000 / 2));
    cr_expect(eq(u32, (uint32_t)out[1], 1000));
    cr_expect(eq(u32, (uint32_t)(out[1] >> 32), 1));
    cr_expect(eq(i32, (int32_t)out[2], 999));
}

Test(emulator, aborts_at_a_divergent_barrier, .signal = SIGABRT)
{
    run("probe_mistake", 64, 0, (int64_t[1]){0}, 0, 0);
}

Test(emulator, aborts_when_a_lane_misses_an_exchange, .signal = SIGABRT)
{
    run("probe_mistake", 64, 0, (int64_t[1]){0}, 0, 1);
}

Test(emulator, aborts_at_a_shuffle_from_a_lane_outside_of_the_mask, .signal = SIGABRT)
{
    run("probe_mistake", 64, 0, (int64_t[1]){0}, 0, 2);
}

Test(emulator, aborts_at_a_mask_without_its_own_lane, .signal = SIGABRT)
{
    run("probe_mistake", 64, 0, (int64_t[1]){0}, 0, 3);
}

Test(emulator, aborts_at_a_write_beyond_dynamic_shared_memory, .signal = SIGABRT)
{
    run("probe_mistake", 64, 100, (int64_t[1]){0}, 103, 4);
}

Test(emulator, aborts_when_lanes_meet_in_different_exchanges, .signal = SIGABRT)
{
    run("probe_mistake", 32, 0, (int64_t[1]){0}, 0, 5);
}

Test(emulator, aborts_at_a_block_beyond_the_launch_bounds, .signal = SIGABRT)
{
    run("probe_mistake", 257, 0, (int64_t[1]){0}, 0, 6);
}

Test(emulator, aborts_at_more_shared_memory_than_every_gpu_has, .signal = SIGABRT)
{
    run("probe_mistake", 32, EMULATED_SHARED_LIMIT + 1, (int64_t[1]){0}, 0, 6);
}
