/* Faults of a GPU, and how the cuda device reports them. */
#include "devices/cuda/cuda.h"
#include "support/open_device.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((int64_t)1 << 20)
#define GIB ((int64_t)1 << 30)

static struct plim_device *open_gpu(const char *fault)
{
    setenv("PLIM_DOUBLE_FAULT", fault, 1);
    return open_device(plim_cuda_open, ":0");
}

static enum plim_status fill(struct plim_device *d, uint64_t address, int64_t elements)
{
    struct plim_array out = {
        .data = address, .shape = {elements}, .stride = {1}, .ndim = 1, .dtype = PLIM_F32};
    struct plim_op op = {.kind = PLIM_OP_FILL, .n_out = 1, .alpha = 1, .out = {&out}};
    return plim_device_launch(d, &op);
}

/* --- memory ----------------------------------------------------------------------------------- */

Test(cuda_faults, an_allocation_fails_once)
{
    struct plim_device *d = open_gpu("oom@2");
    uint64_t a;
    device_segment(d, 2 * MIB);
    cr_expect(eq(int, plim_device_segment_get(d, 2 * MIB, &a), PLIM_OOM));
    device_segment(d, 2 * MIB);
    cr_expect(not(d->lost));
    plim_device_close(&d);
}

Test(cuda_faults, code_that_does_not_fit_is_out_of_memory)
{
    struct plim_device *d = open_gpu("oom-launch@1");
    uint64_t a = device_segment(d, 2 * MIB);
    cr_expect(eq(int, fill(d, a, 4), PLIM_OOM));
    cr_expect(eq(int, fill(d, a, 4), PLIM_OK));
    plim_device_close(&d);
}

Test(cuda_faults, a_full_gpu_has_no_room_for_code)
{
    setenv("PLIM_DOUBLE_MEMORY", "1GiB", 1);
    struct plim_device *d = open_gpu("");
    uint64_t a = device_segment(d, 766 * MIB), b = device_segment(d, 2 * MIB);
    cr_expect(eq(int, fill(d, a, 4), PLIM_OOM));
    plim_device_segment_return(d, b, 2 * MIB);
    cr_expect(eq(int, fill(d, a, 4), PLIM_OK));
    plim_device_close(&d);
}

Test(cuda_faults, a_strange_error_of_a_nearly_full_gpu_is_out_of_memory)
{
    setenv("PLIM_DOUBLE_MEMORY", "4GiB", 1);
    struct plim_device *d = open_gpu("disguised@1");
    uint64_t a;
    device_segment(d, 2 * GIB);
    cr_expect(not(plim_device_is_suspect(d)));
    cr_expect(eq(int, plim_device_segment_get(d, GIB, &a), PLIM_OOM));
    cr_expect(strstr(plim_device_message(d), "303") != NULL, "%s", plim_device_message(d));
    cr_expect(plim_device_is_suspect(d));
    plim_device_close(&d);
}

Test(cuda_faults, the_same_error_with_room_left_is_what_it_says)
{
    struct plim_device *d = open_gpu("");
    uint64_t a;
    setenv("PLIM_DOUBLE_RESULT", "cuMemAlloc=303", 1);
    cr_expect(eq(int, plim_device_segment_get(d, GIB, &a), PLIM_INTERNAL));
    cr_expect(not(plim_device_is_suspect(d)));
    cr_expect(not(d->lost));
    plim_device_close(&d);
}

Test(cuda_faults, a_leak_shows_in_the_memory_info)
{
    struct plim_device *d = open_gpu("leak@2");
    struct plim_cuda_memory_info numbers;
    uint64_t a = device_segment(d, 20 * MIB), b = device_segment(d, 40 * MIB);
    plim_device_segment_return(d, a, 20 * MIB);
    plim_device_segment_return(d, b, 40 * MIB);
    cr_assert(eq(int, plim_cuda_read_memory_info(d, &numbers), PLIM_OK));
    cr_expect(eq(i64, numbers.held_bytes, 0));
    cr_expect(eq(i64, numbers.free_bytes_at_open - numbers.free_bytes, 40 * MIB));
    plim_device_close(&d);
}

Test(cuda_faults, others_take_half_of_what_is_free)
{
    struct plim_device *d = open_gpu("steal@2");
    uint64_t a = device_segment(d, 2 * MIB);
    cr_assert(eq(int, fill(d, a, 4), PLIM_OK));
    int64_t before = plim_device_free_bytes(d);
    cr_assert(eq(int, fill(d, a, 4), PLIM_OK));
    cr_expect(eq(i64, plim_device_free_bytes(d), before - before / 2));
    cr_expect(eq(int, plim_device_segment_get(d, before - 4 * GIB, &a), PLIM_OOM));
    plim_device_close(&d);
}

Test(cuda_faults, the_limit_is_no_refusal_of_the_gpu)
{
    struct plim_device *d = open_gpu("oom@2,oom-launch@1");
    uint64_t a = device_segment(d, 2 * MIB), b;
    plim_device_limit(d, 4 * MIB);
    cr_expect(eq(int, plim_device_segment_get(d, 4 * MIB, &b), PLIM_OOM));
    cr_expect(not(plim_device_has_refused(d)));
    cr_expect(eq(int, plim_device_segment_get(d, 2 * MIB, &b), PLIM_OOM));
    cr_expect(plim_device_has_refused(d));
    cr_assert(eq(int, plim_device_reset(d), PLIM_OK));
    cr_expect(not(plim_device_has_refused(d)));
    a = device_segment(d, 2 * MIB);
    cr_expect(eq(int, fill(d, a, 4), PLIM_OOM));
    cr_expect(plim_device_has_refused(d));
    plim_device_close(&d);
}

Test(cuda_faults, memory_that_cannot_be_given_back_makes_the_device_suspect)
{
    struct plim_device *d = open_gpu("");
    uint64_t a = device_segment(d, 2 * MIB);
    setenv("PLIM_DOUBLE_RESULT", "cuMemFree=1", 1);
    plim_device_segment_return(d, a, 2 * MIB);
    cr_expect(plim_device_is_suspect(d));
    cr_expect(not(d->lost));
    plim_device_close(&d);
}

/* --- the end of a device ---------------------------------------------------------------------- */

static void expect_lost(struct plim_device *d, uint64_t a)
{
    double seconds;
    char byte;
    uint64_t b;
    cr_expect(d->lost);
    cr_expect(eq(int, plim_device_now(d, &seconds), PLIM_LOST));
    cr_expect(eq(int, plim_device_read(d, a, &byte, 1), PLIM_LOST));
    cr_expect(eq(int, plim_device_segment_get(d, MIB, &b), PLIM_LOST));
    cr_expect(eq(int, fill(d, a, 4), PLIM_LOST));
    cr_expect(eq(int, plim_device_reset(d), PLIM_LOST));
    plim_device_close(&d);
}

Test(cuda_faults, a_fault_of_a_kernel_appears_later_and_stays)
{
    struct plim_device *d = open_gpu("lost@2");
    double seconds;
    uint64_t a = device_segment(d, 2 * MIB);
    cr_expect(eq(int, fill(d, a, 4), PLIM_OK));
    cr_expect(eq(int, plim_device_now(d, &seconds), PLIM_OK));
    cr_expect(eq(int, fill(d, a, 4), PLIM_OK));
    cr_expect(eq(int, plim_device_now(d, &seconds), PLIM_LOST));
    cr_expect(strstr(plim_device_message(d), "700") != NULL);
    expect_lost(d, a);
}

Test(cuda_faults, a_segment_returned_after_a_fault_loses_the_device)
{
    struct plim_device *d = open_gpu("lost@1");
    uint64_t a = device_segment(d, 2 * MIB), b = device_segment(d, 2 * MIB);
    cr_expect(eq(int, fill(d, a, 4), PLIM_OK));
    plim_device_segment_return(d, b, 2 * MIB);
    expect_lost(d, a);
}

Test(cuda_faults, a_gpu_that_vanishes_is_lost)
{
    struct plim_device *d = open_gpu("vanish@40");
    uint64_t a = device_segment(d, 2 * MIB);
    double seconds;
    for (int i = 0; i < 40 && !d->lost; i++) {
        enum plim_status st = plim_device_now(d, &seconds);
        cr_expect(st == PLIM_OK || st == PLIM_LOST);
    }
    expect_lost(d, a);
}

/* Whatever call an error that tells nothing comes from, the context decides. */
Test(cuda_faults, an_unexpected_error_with_a_broken_context_is_the_end)
{
    struct plim_device *d = open_gpu("");
    uint64_t a = device_segment(d, 2 * MIB);
    setenv("PLIM_DOUBLE_RESULT", "cuLaunchKernel=400,cuCtxSynchronize=719", 1);
    cr_expect(eq(int, fill(d, a, 4), PLIM_LOST));
    expect_lost(d, a);
}

Test(cuda_faults, an_unexpected_error_with_a_good_context_is_not)
{
    struct plim_device *d = open_gpu("");
    uint64_t a = device_segment(d, 2 * MIB);
    setenv("PLIM_DOUBLE_RESULT", "cuLaunchKernel=701", 1);
    cr_expect(eq(int, fill(d, a, 4), PLIM_INTERNAL));
    cr_expect(strstr(plim_device_message(d), "not memory") != NULL);
    setenv("PLIM_DOUBLE_RESULT", "", 1);
    cr_expect(eq(int, fill(d, a, 4), PLIM_OK));
    plim_device_close(&d);
}

Test(cuda_faults, no_code_for_the_gpu_is_not_supported)
{
    struct plim_device *d = open_gpu("");
    setenv("PLIM_DOUBLE_RESULT", "cuModuleLoadData=209", 1);
    cr_expect(eq(int, fill(d, device_segment(d, 2 * MIB), 4), PLIM_UNSUPPORTED));
    plim_device_close(&d);
}

Test(cuda_faults, a_process_can_die_in_a_launch, .signal = SIGKILL)
{
    struct plim_device *d = open_gpu("kill@2");
    uint64_t a = device_segment(d, 2 * MIB);
    cr_assert(eq(int, fill(d, a, 4), PLIM_OK));
    cr_expect(ne(int, fill(d, a, 4), PLIM_OK));
}

Test(cuda_faults, who_waits_for_a_kernel_that_hangs_waits_for_ever, .signal = SIGALRM)
{
    struct plim_device *d = open_gpu("hang@1");
    double seconds;
    uint64_t a = device_segment(d, 2 * MIB);
    cr_assert(eq(int, fill(d, a, 4), PLIM_OK));
    alarm(1);
    cr_expect(ne(int, plim_device_now(d, &seconds), PLIM_OK));
}

/* --- results ---------------------------------------------------------------------------------- */

Test(cuda_faults, a_loss_can_be_no_number)
{
    struct plim_device *d = open_gpu("nan@2");
    uint64_t a = device_segment(d, 2 * MIB);
    float first = 0, second = 0, third = 0;
    cr_assert(eq(int, fill(d, a, 4), PLIM_OK));
    cr_expect(eq(int, plim_device_read(d, a, &first, 4), PLIM_OK));
    cr_expect(eq(int, plim_device_read(d, a, &second, 4), PLIM_OK));
    cr_expect(eq(int, plim_device_read(d, a, &third, 4), PLIM_OK));
    cr_expect(eq(flt, first, 1));
    cr_expect(isnan(second));
    cr_expect(eq(flt, third, 1));
    plim_device_close(&d);
}

static double seconds_of_a_fill(struct plim_device *d, uint64_t a)
{
    double before, after;
    cr_assert(eq(int, plim_device_now(d, &before), PLIM_OK));
    cr_assert(eq(int, fill(d, a, 2 * MIB), PLIM_OK));
    cr_assert(eq(int, plim_device_now(d, &after), PLIM_OK));
    return after - before;
}

Test(cuda_faults, a_gpu_can_become_slow)
{
    struct plim_device *d = open_gpu("slow@3");
    uint64_t a = device_segment(d, 8 * MIB);
    seconds_of_a_fill(d, a);
    double fast = seconds_of_a_fill(d, a), slow = seconds_of_a_fill(d, a);
    cr_expect(lt(dbl, 2 * fast, slow));
    plim_device_close(&d);
}

/* --- several processes ------------------------------------------------------------------------ */

static void share_gpus(char path[])
{
    int file = mkstemp(path);
    cr_assert(file >= 0);
    close(file);
    setenv("PLIM_DOUBLE_STATE", path, 1);
}

/* A process that takes 10 GiB, launches and waits. It asserts nothing: Criterion would wait for the
 * process that it started itself. Returns how it ended, as waitpid() does. */
static int status_of_another_process(const char *fault)
{
    struct plim_device *d;
    double seconds;
    uint64_t a;
    int status;
    setenv("PLIM_DOUBLE_FAULT", fault, 1);
    pid_t child = fork();
    if (child == 0) {
        if (plim_cuda_open(":0", &d, NULL)) _exit(101);
        if (plim_device_segment_get(d, 10 * GIB, &a)) _exit(102);
        if (fill(d, a, 4)) _exit(103);
        _exit((int)plim_device_now(d, &seconds));
    }
    cr_assert(eq(int, waitpid(child, &status, 0), child));
    return status;
}

Test(cuda_faults, a_killed_process_gives_its_memory_back)
{
    char path[] = "/tmp/plimsoll-test.XXXXXX";
    share_gpus(path);
    int status = status_of_another_process("kill@1");
    cr_expect(eq(int, WIFSIGNALED(status) ? WTERMSIG(status) : 0, SIGKILL));
    struct plim_device *d = open_gpu("");
    cr_expect(eq(i64, plim_device_free_bytes(d), d->info.total_bytes - 256 * MIB));
    plim_device_close(&d);
    unlink(path);
}

Test(cuda_faults, a_fault_for_one_process_spares_the_next)
{
    char path[] = "/tmp/plimsoll-test.XXXXXX";
    share_gpus(path);
    int first = status_of_another_process("lost@1!"), second = status_of_another_process("lost@1!");
    cr_expect(eq(int, WIFEXITED(first) ? WEXITSTATUS(first) : -1, PLIM_LOST));
    cr_expect(eq(int, WIFEXITED(second) ? WEXITSTATUS(second) : -1, PLIM_OK));
    unlink(path);
}
