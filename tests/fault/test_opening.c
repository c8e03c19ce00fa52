/* A worker opens its device: what it may see, what is tried again, and what ends the search. */
#include "autotune/base/clock.h"
#include "autotune/run/worker/wire.h"
#include "bench.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct bench bench;
static struct plim_replay replay;

static enum plim_status open_with(const char *script, int workers)
{
    const struct plim_message_opened *opened;
    bench_init(&bench, script);
    bench_start(&bench);
    enum plim_status st = plim_remote_open(bench.remote, &opened, &bench.err);
    cr_expect(eq(int, plim_remote_workers(bench.remote), workers), "%s", script);
    bench_finish(&bench);
    return st;
}

Test(opening, a_device_that_is_not_there_is_not_asked_for_twice)
{
    cr_expect(eq(int, open_with("nodevice", 1), PLIM_NODEVICE));
    cr_expect(eq(str, bench.err.text, (char *)"no such GPU"));
}

Test(opening, a_device_that_is_full_is_tried_again)
{
    cr_expect(eq(int, open_with("unlucky ok", 2), PLIM_OK));
    cr_expect(eq(int, open_with("unlucky", PLIM_REMOTE_DEATHS), PLIM_NODEVICE));
}

Test(opening, a_device_that_others_have_is_waited_for)
{
    cr_expect(eq(int, open_with("busy ok", 2), PLIM_OK));
    cr_expect(eq(int, open_with("busy busy busy busy ok", 5), PLIM_OK)); /* more than may die */
}

Test(opening, a_device_that_others_keep_is_absent)
{
    const struct plim_message_opened *opened;
    for (int was_open = 0; was_open < 2; was_open++) {
        bench_init(&bench, was_open ? "leak busy" : "busy");
        bench.config.busy_seconds = 0.3;
        bench_start(&bench);
        if (was_open) cr_assert(eq(int, bench_run(&bench, 8, &replay), PLIM_OK));
        double start = plim_clock_seconds();
        enum plim_status st = plim_remote_open(bench.remote, &opened, &bench.err);
        cr_expect(eq(int, st, was_open ? PLIM_LOST : PLIM_NODEVICE), "%s", bench.err.text);
        cr_expect(ge(dbl, plim_clock_seconds() - start, 0.3));
        bench_finish(&bench);
    }
}

Test(opening, why_a_device_is_tried_again_is_said)
{
    const struct plim_message_opened *opened;
    struct bench_ear ear = {PLIM_LOG_WARNING, "fake was not opened: no such GPU", 0};
    const struct plim_log log = {PLIM_LOG_INFO, bench_listen, &ear};
    bench_init(&bench, "unlucky ok");
    bench.config.log = &log;
    bench_start(&bench);
    cr_assert(eq(int, plim_remote_open(bench.remote, &opened, &bench.err), PLIM_OK));
    cr_expect(eq(int, ear.times, 1));
    bench_finish(&bench);
}

Test(opening, another_build_is_refused)
{
    cr_expect(eq(int, open_with("build", PLIM_REMOTE_DEATHS), PLIM_LOST));
}

Test(opening, a_device_that_went_away_ends_the_search)
{
    static const char *const scripts[] = {"leak nodevice", "leak unlucky", "leak hang@opened"};
    for (int i = 0; i < 3; i++) {
        bench_init(&bench, scripts[i]);
        bench_start(&bench);
        cr_assert(eq(int, bench_run(&bench, 8, &replay), PLIM_OK));
        cr_expect(eq(int, bench_run(&bench, 9, &replay), PLIM_LOST), "%s", scripts[i]);
        cr_expect(strstr(bench.err.text, "any more") != NULL, "%s", bench.err.text);
        bench_finish(&bench);
    }
}

Test(opening, an_executable_that_is_not_there_is_an_error)
{
    bench_init(&bench, "ok");
    bench.config.program = "/nowhere/plimsoll";
    bench_start(&bench);
    cr_expect(eq(int, bench_run(&bench, 8, &replay), PLIM_IO));
    bench_finish(&bench);
}

Test(opening, a_worker_sees_its_gpu_and_inherits_nothing)
{
    const struct plim_message_opened *opened;
    bench_init(&bench, "ok");
    bench.config.visible_gpu = "GPU-1234";
    int stray = dup(1); /* would be inherited */
    bench_start(&bench);
    cr_assert(eq(int, plim_remote_open(bench.remote, &opened, &bench.err), PLIM_OK));
    cr_expect(eq(str, (char *)opened->info.name, (char *)"GPU-1234"));
    cr_expect(eq(str, (char *)opened->info.uri, (char *)"PCI_BUS_ID LAZY"));
    cr_expect(eq(int, opened->info.multiprocessors, 5)); /* three streams, its socket, the memo */
    cr_expect(opened->info.simulated); /* leads its process group and leaves no core */
    bench_finish(&bench);
    close(stray);
}

/* The GPU that the worker sees for these values of our environment and of the configuration. */
static void expect_gpu(const char *ours, const char *configured, const char *seen)
{
    const struct plim_message_opened *opened;
    bench_init(&bench, "ok");
    bench.config.visible_gpu = configured;
    setenv("CUDA_VISIBLE_DEVICES", ours, 1);
    bench_start(&bench);
    cr_assert(eq(int, plim_remote_open(bench.remote, &opened, &bench.err), PLIM_OK));
    cr_expect(eq(str, (char *)opened->info.name, (char *)seen));
    bench_finish(&bench);
    unsetenv("CUDA_VISIBLE_DEVICES");
}

Test(opening, what_is_configured_replaces_what_is_inherited)
{
    setenv("CUDA_VISIBLE_DEVICES_OF_MINE", "5", 1); /* another variable */
    expect_gpu("7", "GPU-1234", "GPU-1234");
    expect_gpu("7", NULL, "7");
    unsetenv("CUDA_VISIBLE_DEVICES_OF_MINE");
}

Test(opening, what_no_message_has_room_for_is_refused)
{
    static char longest[PLIM_WIRE_MAX_BYTES];
    char *spec;
    bench_init(&bench, "ok");
    cr_assert(eq(int, plim_spec_write(&bench.spec, &spec, &bench.err), PLIM_OK));
    size_t room = PLIM_WIRE_MAX_BYTES / 2 - strlen(spec) - strlen(bench.config.uri);
    free(spec);
    memset(longest, 'x', room);
    bench.config.alloc_conf = longest;
    bench_start(&bench);
    const struct plim_message_opened *opened;
    cr_expect(eq(int, plim_remote_open(bench.remote, &opened, &bench.err), PLIM_OK));
    plim_remote_destroy(&bench.remote);
    longest[room] = 'x';
    cr_expect(eq(int, plim_remote_create(&bench.config, &bench.remote, &bench.err), PLIM_INVALID));
    cr_expect(eq(str, bench.err.text, (char *)"the spec is too large for a worker process"));
    cr_expect(eq(ptr, bench.remote, NULL));
    bench_finish(&bench);
}

/* --- memory that comes back late -------------------------------------------------------------- */

struct memory {
    int asked, back_after;
};

static bool memory_is_back(void *user)
{
    struct memory *memory = user;
    return ++memory->asked > memory->back_after;
}

static int asked_until(const char *script, int back_after, int warned, double *seconds)
{
    struct memory memory = {.back_after = back_after};
    struct bench_ear ear = {PLIM_LOG_WARNING, "was not freed within 0.5 s", 0};
    const struct plim_log log = {PLIM_LOG_INFO, bench_listen, &ear};
    bench_init(&bench, script);
    bench.config.log = &log;
    bench.config.memory_is_back = memory_is_back;
    bench.config.user = &memory;
    bench.config.memory_back_seconds = 0.5;
    bench_start(&bench);
    double start = plim_clock_seconds();
    cr_assert(eq(int, bench_run(&bench, 8, &replay), PLIM_OK));
    cr_expect(eq(int, replay.verdict, PLIM_OK));
    *seconds = plim_clock_seconds() - start;
    bench_finish(&bench);
    cr_expect(eq(int, ear.times, warned), "%s", script);
    return memory.asked;
}

Test(opening, a_new_worker_waits_for_the_memory_of_the_old)
{
    double seconds;
    cr_expect(
        eq(int, asked_until("ok", 3, 0, &seconds), 0)); /* the first has nothing to wait for */
    cr_expect(eq(int, asked_until("kill@step ok", 3, 0, &seconds), 4));
    cr_expect(lt(int, 4, asked_until("kill@step ok", 1000000, 1, &seconds)));
    cr_expect(lt(dbl, seconds, 2));
}
