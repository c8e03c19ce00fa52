/* The emulated GPUs of the stand-ins. */
#include "doubles/gpu_state.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define GIB ((int64_t)1 << 30)

static char path[] = "/tmp/plimsoll-test.XXXXXX";

static void share(void)
{
    int file = mkstemp(path);
    cr_assert(file >= 0);
    close(file);
    setenv("PLIM_DOUBLE_STATE", path, 1);
}

static void unshare(void)
{
    unlink(path);
}

/* Another process, which reports through a pipe that its work is done, and then keeps running. */
static pid_t start(void (*work)(void))
{
    int ends[2];
    char byte = 0;
    cr_assert(eq(int, pipe(ends), 0));
    pid_t child = fork();
    if (child == 0) {
        work();
        if (write(ends[1], &byte, 1) != 1) _exit(1);
        for (;;) pause();
    }
    close(ends[1]);
    cr_assert(eq(int, (int)read(ends[0], &byte, 1), 1));
    close(ends[0]);
    return child;
}

static void take_ten(void)
{
    if (!gpu_take(0, 10 * GIB)) _exit(1);
}

static void die_of_three(void)
{
    for (int i = 0; i < 3; i++)
        if (gpu_fault(GPU_FAULT_LOST)) return;
    _exit(1);
}

Test(gpu_state, gpus_come_from_the_catalogue)
{
    setenv("PLIM_DOUBLE_GPU", "T4,RTX-4090", 1);
    setenv("PLIM_DOUBLE_MEMORY", "2GiB", 1);
    uint8_t a[16], b[16];
    cr_expect(eq(int, gpu_count(), 2));
    cr_expect(eq(int, gpu_model(0)->compute_capability, 75));
    cr_expect(eq(int, gpu_model(1)->compute_capability, 89));
    cr_expect(eq(i64, gpu_total_bytes(1), 2 * GIB));
    gpu_uuid(0, a);
    gpu_uuid(1, b);
    cr_expect(ne(int, memcmp(a, b, 16), 0));
}

Test(gpu_state, memory_is_counted_for_each_gpu)
{
    setenv("PLIM_DOUBLE_GPU", "T4,RTX-4090", 1);
    setenv("PLIM_DOUBLE_MEMORY", "8GiB", 1);
    setenv("PLIM_DOUBLE_OTHERS", "1GiB", 1);
    cr_expect(gpu_take(1, 7 * GIB));
    cr_expect(not(gpu_take(1, 1)));
    cr_expect(eq(i64, gpu_free_bytes(0), 7 * GIB));
    gpu_give_back(1, 2 * GIB);
    cr_expect(eq(i64, gpu_free_bytes(1), 2 * GIB));
}

Test(gpu_state, what_others_hold_is_seen, .init = share, .fini = unshare)
{
    pid_t child = start(take_ten);
    struct gpu_process seen[4];
    cr_assert(eq(sz, gpu_processes(0, seen, 4), 1));
    cr_expect(eq(int, seen[0].pid, child));
    cr_expect(eq(i64, seen[0].held_bytes, 10 * GIB));
    cr_expect(eq(i64, gpu_free_bytes(0), gpu_total_bytes(0) - 10 * GIB));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

/* Also before it was waited for. */
Test(gpu_state, the_dead_give_back_at_the_second_look, .init = share, .fini = unshare)
{
    pid_t child = start(take_ten);
    siginfo_t info;
    kill(child, SIGKILL);
    waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
    cr_expect(eq(i64, gpu_free_bytes(0), gpu_total_bytes(0) - 10 * GIB));
    cr_expect(eq(i64, gpu_free_bytes(0), gpu_total_bytes(0)));
    waitpid(child, NULL, 0);
}

Test(gpu_state, strangers_take_what_is_free_at_most)
{
    setenv("PLIM_DOUBLE_MEMORY", "4GiB", 1);
    cr_assert(gpu_take(0, GIB));
    gpu_steal(0, 100 * GIB);
    cr_expect(eq(i64, gpu_free_bytes(0), 0));
    gpu_give_back(0, GIB);
    cr_expect(eq(i64, gpu_free_bytes(0), GIB));
}

Test(gpu_state, a_fault_strikes_at_its_event_and_lasts_if_it_is_of_that_kind)
{
    setenv("PLIM_DOUBLE_FAULT", "oom@2,oom@4,slow@2", 1);
    static const bool ooms[] = {false, true, false, true, false};
    static const bool slow[] = {false, true, true, true, true};
    for (size_t i = 0; i < 5; i++) {
        cr_expect(eq(int, gpu_fault(GPU_FAULT_OOM), ooms[i]), "%zu", i);
        cr_expect(eq(int, gpu_fault(GPU_FAULT_SLOW), slow[i]), "%zu", i);
        cr_expect(not(gpu_fault(GPU_FAULT_KILL)));
    }
}

Test(gpu_state, a_fault_with_an_exclamation_mark_strikes_one_process, .init = share,
     .fini = unshare)
{
    setenv("PLIM_DOUBLE_FAULT", "lost@3!", 1);
    pid_t child = start(die_of_three);
    for (int i = 0; i < 5; i++) cr_expect(not(gpu_fault(GPU_FAULT_LOST)));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

Test(gpu_state, a_gpu_that_vanished_is_gone_for_all, .init = share, .fini = unshare)
{
    setenv("PLIM_DOUBLE_FAULT", "vanish@1", 1);
    cr_expect(not(gpu_gone()));
    cr_expect(gpu_fault(GPU_FAULT_VANISH));
    cr_expect(gpu_gone());
}

Test(gpu_state, a_leak_stays_with_its_process)
{
    setenv("PLIM_DOUBLE_FAULT", "leak@2", 1);
    cr_assert(gpu_take(0, 3 * GIB));
    gpu_give_back(0, GIB);
    gpu_give_back(0, GIB);
    gpu_give_back(0, GIB);
    cr_expect(eq(i64, gpu_free_bytes(0), gpu_total_bytes(0) - 2 * GIB));
}

Test(gpu_state, mistakes_in_the_environment_end_the_process, .signal = SIGABRT)
{
    setenv("PLIM_DOUBLE_FAULT", "oom", 1);
    gpu_fault(GPU_FAULT_OOM);
}
