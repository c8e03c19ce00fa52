/* The all-reduce of emulated GPUs, timed in a worker, and everything that prevents its timing. */
#include "autotune/run/worker/all_reduce.h"
#include "autotune/base/clock.h"
#include "bench.h"
#include "tests/cli/program.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define GPU "A100-SXM4-80GB"

static char state_path[] = "/tmp/plimsoll-reduce-XXXXXX";

static void use_stand_ins(void)
{
    int fd = mkstemp(state_path);
    cr_assert(ge(int, fd, 0));
    close(fd);
    setenv("PLIM_DOUBLE_STATE", state_path, 1);
    setenv("PLIM_DOUBLE_GPU", GPU "," GPU "," GPU "," GPU, 1);
    setenv("PLIMSOLL_CUDA_PATH", PLIM_DOUBLES_FOLDER, 1);
    setenv("LD_LIBRARY_PATH", PLIM_DOUBLES_FOLDER, 1);
    unsetenv("PLIM_DOUBLE_FAULT");
}

static void remove_state(void)
{
    unlink(state_path);
}

TestSuite(all_reduce, .init = use_stand_ins, .fini = remove_state);

/* Measures; whatever the result, no process or file is left. */
static enum plim_status take(const struct plim_all_reduce_request *request,
                             struct plim_all_reduce *out, struct plim_error *err)
{
    enum plim_status st = plim_worker_all_reduce(request, out, err);
    cr_expect(eq(int, bench_children(), 0));
    cr_expect(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
    return st;
}

static struct plim_all_reduce_request request_of(const char *gpus, int count)
{
    return (struct plim_all_reduce_request){.visible_gpus = gpus,
                                            .gpus = count,
                                            .program = PLIM_BINARY,
                                            .seconds = 20 * PLIM_SLOWER,
                                            .reap_seconds = 20};
}

static void measure(const char *gpus, int count, double bandwidth, double latency)
{
    const struct plim_all_reduce_request request = request_of(gpus, count);
    struct plim_all_reduce out;
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert(eq(int, take(&request, &out, &err), PLIM_OK), "%s", err.text);
    cr_expect(eq(int, out.gpus, count));
    cr_expect(eq(str, out.nccl, "2.28.9"));
    cr_expect(epsilon_eq(dbl, out.bytes_per_second, bandwidth, 0.1 * bandwidth));
    cr_expect(epsilon_eq(dbl, out.latency_seconds, latency, 0.25 * latency));
}

Test(all_reduce, its_bandwidth_and_latency_are_measured)
{
    setenv("PLIM_DOUBLE_NCCL", "5,1", 1);
    measure("0,1", 2, 5e9, 1e-3);
}

Test(all_reduce, bus_bandwidth_does_not_depend_on_how_many_there_are)
{
    setenv("PLIM_DOUBLE_NCCL", "8,2", 1);
    measure("3,1,0,2", 4, 8e9, 2e-3);
}

static void fail(const struct plim_all_reduce_request *request, enum plim_status want,
                 const char *text)
{
    struct plim_all_reduce out;
    struct plim_error err = PLIM_ERROR_INIT;
    cr_expect(eq(int, take(request, &out, &err), want), "%s", err.text);
    cr_expect(strstr(err.text, text) != NULL, "%s", err.text);
    cr_expect(eq(int, out.gpus, 0));
}

static void fail_by(const char *fault, enum plim_status want, const char *text)
{
    const struct plim_all_reduce_request request = request_of("0,1", 2);
    setenv("PLIM_DOUBLE_FAULT", fault, 1);
    fail(&request, want, text);
}

Test(all_reduce, an_error_of_nccl_is_told)
{
    fail_by("nccl@1", PLIM_UNSUPPORTED, "ncclCommInitAll: unhandled system error (2)");
}

Test(all_reduce, so_is_one_of_a_later_call)
{
    fail_by("nccl@8", PLIM_UNSUPPORTED, "ncclAllReduce: unhandled system error (2)");
}

Test(all_reduce, a_gpu_without_memory_is_told)
{
    fail_by("oom@2", PLIM_OOM, "GPU 1 of 2: cuMemAlloc");
}

Test(all_reduce, a_gpu_that_is_lost_is_told)
{
    fail_by("vanish@40", PLIM_LOST, "GPU");
}

Test(all_reduce, what_hangs_is_killed_at_the_deadline)
{
    struct plim_all_reduce_request request = request_of("0,1", 2);
    double start = plim_clock_seconds();
    request.seconds = 0.5 * PLIM_SLOWER;
    setenv("PLIM_DOUBLE_FAULT", "nccl-hang@5", 1);
    fail(&request, PLIM_TIMEOUT, "timing the all-reduce took longer than");
    cr_expect(lt(dbl, plim_clock_seconds() - start, 10));
}

/* Its worker is killed, and not waited for long either. */
Test(all_reduce, a_search_that_has_to_end_does_not_wait_for_it)
{
    const struct plim_stop stop = {.deadline_seconds = plim_clock_seconds() + 0.3};
    struct plim_all_reduce_request request = request_of("0,1", 2);
    struct plim_all_reduce out;
    double start = plim_clock_seconds();
    request.stop = &stop;
    setenv("PLIM_DOUBLE_FAULT", "nccl-hang@1", 1);
    cr_expect(eq(int, plim_worker_all_reduce(&request, &out, NULL), PLIM_TIMEOUT));
    cr_expect(lt(dbl, plim_clock_seconds() - start, 10));
    cr_expect(program_none_is_left());
}

Test(all_reduce, an_nccl_that_is_too_old_is_told)
{
    const struct plim_all_reduce_request request = request_of("0,1", 2);
    setenv("PLIM_DOUBLE_NCCL_VERSION", "2804", 1);
    fail(&request, PLIM_NODEVICE, "expected 2.10.0 or newer");
}

Test(all_reduce, fewer_gpus_than_asked_for_are_told)
{
    const struct plim_all_reduce_request request = request_of("2,1", 3);
    fail(&request, PLIM_NODEVICE, "CUDA shows 2");
}
