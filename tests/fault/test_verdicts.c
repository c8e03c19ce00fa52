/* Whatever a worker does, its setting gets the right verdict, in time, and nothing is left. */
#include "autotune/base/clock.h"
#include "autotune/run/worker/wire.h"
#include "bench.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct bench bench;
static struct plim_replay replay;

/* Runs 8 samples under a script; expects a verdict and so many workers. */
static void expect_verdict(const char *script, enum plim_status verdict, int workers)
{
    bench_init(&bench, script);
    bench_start(&bench);
    double start = plim_clock_seconds();
    enum plim_status st = bench_run(&bench, 8, &replay);
    cr_assert(eq(int, st, PLIM_OK), "%s: %s", script, bench.err.text);
    cr_expect(lt(dbl, plim_clock_seconds() - start, 5), "%s", script);
    cr_expect(eq(int, replay.verdict, verdict), "%s: %s", script, replay.why);
    cr_expect(eq(int, plim_remote_workers(bench.remote), workers), "%s", script);
    if (verdict == PLIM_OK) {
        cr_expect(eq(i64, replay.peak_reserved_bytes, 8 << 20), "%s", script);
        cr_expect(ieee_ulp_eq(dbl, replay.step[3].seconds, 8e-3, 4), "%s", script);
    } else {
        cr_expect(lt(sz, 10, strlen(replay.why)), "%s", script);
    }
    bench_finish(&bench);
}

static const struct {
    const char *name;
    enum plim_status verdict;
} deaths[] = {
    {"hang", PLIM_TIMEOUT},    {"stop", PLIM_TIMEOUT},  {"deaf", PLIM_TIMEOUT},
    {"kill", PLIM_CRASHED},    {"segv", PLIM_CRASHED},  {"exit", PLIM_CRASHED},
    {"garbage", PLIM_CRASHED}, {"cut", PLIM_CRASHED},   {"version", PLIM_CRASHED},
    {"flip", PLIM_CRASHED},    {"stale", PLIM_CRASHED}, {"wrong", PLIM_CRASHED},
};
enum { DEATHS = sizeof(deaths) / sizeof(deaths[0]) };

static const char *const run_positions[] = {"building", "step", "timing", "clearing", "result"};
static const char *const open_positions[] = {"start", "hello", "opening", "opened"};

static void script_of(char script[64], int death, const char *position, const char *then)
{
    snprintf(script, 64, "%s@%s %s", deaths[death].name, position, then);
}

Test(verdicts, a_death_while_running_costs_one_worker)
{
    for (int d = 0; d < DEATHS; d++)
        for (int p = 0; p < 5; p++) {
            char script[64];
            script_of(script, d, run_positions[p], "ok");
            expect_verdict(script, PLIM_OK, 2);
        }
}

Test(verdicts, a_death_while_opening_costs_one_worker)
{
    for (int d = 0; d < DEATHS; d++)
        for (int p = 0; p < 4; p++) {
            char script[64];
            script_of(script, d, open_positions[p], "ok");
            expect_verdict(script, PLIM_OK, 2);
        }
}

Test(verdicts, three_deaths_in_a_row_condemn_the_setting)
{
    for (int d = 0; d < DEATHS; d++) {
        char script[64];
        script_of(script, d, run_positions[d % 5], "");
        expect_verdict(script, deaths[d].verdict, PLIM_REMOTE_DEATHS);
    }
}

Test(verdicts, three_deaths_while_opening_are_the_end_of_the_device)
{
    for (int d = 0; d < DEATHS; d++) {
        char script[64];
        script_of(script, d, open_positions[d % 4], "");
        bench_init(&bench, script);
        bench_start(&bench);
        cr_expect(eq(int, bench_run(&bench, 8, &replay), PLIM_LOST), "%s", script);
        cr_expect(lt(sz, 10, strlen(bench.err.text)));
        cr_expect(eq(int, plim_remote_workers(bench.remote), PLIM_REMOTE_DEATHS), "%s", script);
        bench_finish(&bench);
    }
}

Test(verdicts, heartbeats_do_not_put_off_a_deadline)
{
    expect_verdict("flood@step", PLIM_CRASHED, PLIM_REMOTE_DEATHS);
    expect_verdict("ok@back", PLIM_CRASHED, PLIM_REMOTE_DEATHS);
}

Test(verdicts, a_slow_worker_that_goes_on_is_not_hung)
{
    expect_verdict("slow", PLIM_OK, 1); /* 1 s in all, 0.3 s for each phase */
}

static double a_tenth_of_a_second(void *user, const struct plim_setting *setting)
{
    (void)user;
    return (double)setting->micro_batch / 80;
}

/* Every phase of this worker takes 0.1 s: more than the fixed part of a deadline. */
Test(verdicts, a_deadline_grows_with_what_a_step_is_expected_to_take)
{
    for (int predicted = 0; predicted < 2; predicted++) {
        bench_init(&bench, "slow");
        for (int i = PLIM_PHASE_BUILDING; i < PLIM_PHASE_COUNT; i++)
            bench.config.deadlines[i] = (struct plim_deadline){.seconds = 0.03, .factor = 20};
        if (predicted) bench.config.predict = a_tenth_of_a_second;
        bench_start(&bench);
        cr_assert(eq(int, bench_run(&bench, 8, &replay), PLIM_OK));
        cr_expect(eq(int, replay.verdict, predicted ? PLIM_OK : PLIM_TIMEOUT), "%s", replay.why);
        bench_finish(&bench);
    }
}

Test(verdicts, an_answer_is_the_workers)
{
    expect_verdict("ok", PLIM_OK, 1);
    bench_init(&bench, "ok");
    bench_start(&bench);
    for (int64_t b = 60; b < 70; b++) {
        cr_assert(eq(int, bench_run(&bench, b, &replay), PLIM_OK));
        cr_expect(eq(int, replay.verdict, b <= 64 ? PLIM_OK : PLIM_OOM));
        cr_expect(eq(i64, replay.peak_reserved_bytes, b << 20));
    }
    cr_expect(eq(int, plim_remote_workers(bench.remote), 1));
    bench_finish(&bench);
}

Test(verdicts, a_lost_device_costs_one_worker)
{
    expect_verdict("lost ok", PLIM_OK, 2);
    expect_verdict("lost", PLIM_LOST, PLIM_REMOTE_DEATHS);
}

Test(verdicts, a_loss_that_is_no_number_is_unstable)
{
    expect_verdict("nan", PLIM_UNSTABLE, 1);
}

Test(verdicts, deaths_are_counted_for_one_setting_only)
{
    bench_init(&bench, "kill@step kill@result ok");
    bench_start(&bench);
    for (int64_t b = 1; b < 4; b++) {
        cr_assert(eq(int, bench_run(&bench, b, &replay), PLIM_OK));
        cr_expect(eq(int, replay.verdict, PLIM_OK));
    }
    cr_expect(eq(int, plim_remote_workers(bench.remote), 3));
    bench_finish(&bench);
}

Test(verdicts, a_condemned_setting_is_not_run_again)
{
    bench_init(&bench, "kill@step kill@step kill@step ok");
    bench_start(&bench);
    for (int i = 0; i < 3; i++) {
        cr_assert(eq(int, bench_run(&bench, 8, &replay), PLIM_OK));
        cr_expect(eq(int, replay.verdict, PLIM_CRASHED));
    }
    cr_assert(eq(int, bench_run(&bench, 9, &replay), PLIM_OK)); /* the search continues */
    cr_expect(eq(int, replay.verdict, PLIM_OK));
    cr_expect(eq(int, plim_remote_workers(bench.remote), 4));
    bench_finish(&bench);
}

Test(verdicts, a_leak_replaces_the_worker_and_keeps_its_answer)
{
    bench_init(&bench, "leak ok");
    bench_start(&bench);
    cr_assert(eq(int, bench_run(&bench, 8, &replay), PLIM_OK));
    cr_expect(eq(int, replay.verdict, PLIM_OK));
    cr_assert(eq(int, bench_run(&bench, 9, &replay), PLIM_OK));
    cr_assert(eq(int, bench_run(&bench, 10, &replay), PLIM_OK));
    cr_expect(eq(int, plim_remote_workers(bench.remote), 2));
    bench_finish(&bench);
}

/* The GPU was full below the budget: the worker's own leak, or others. */
Test(verdicts, a_refusal_of_the_gpu_is_asked_about_in_a_new_worker)
{
    expect_verdict("refused ok", PLIM_OK, 2);
    for (int refused = 0; refused < 2; refused++) {
        bench_init(&bench, refused ? "refused" : "oom ok");
        bench_start(&bench);
        cr_assert(eq(int, bench_run(&bench, 8, &replay), PLIM_OK));
        cr_expect(eq(int, replay.verdict, PLIM_OOM));
        cr_expect(eq(int, plim_remote_workers(bench.remote), 1 + refused));
        bench_finish(&bench);
    }
}

Test(verdicts, of_others_on_the_gpu_it_is_warned_once)
{
    static const struct bench_ear expected[] = {
        {PLIM_LOG_WARNING, "other processes use it", 1},
        {PLIM_LOG_INFO, "a new worker process: the GPU had less free memory", 2}};
    for (size_t e = 0; e < 2; e++) {
        struct bench_ear ear = {expected[e].level, expected[e].text, 0};
        const struct plim_log log = {PLIM_LOG_INFO, bench_listen, &ear};
        bench_init(&bench, "refused refused refused refused");
        bench.config.log = &log;
        bench_start(&bench);
        for (int i = 0; i < 2; i++) cr_assert(eq(int, bench_run(&bench, 8 + i, &replay), PLIM_OK));
        cr_expect(eq(int, ear.times, expected[e].times), "%s", ear.text);
        bench_finish(&bench);
    }
}

Test(verdicts, a_library_that_every_setting_needs_ends_the_search)
{
    bench_init(&bench, "lacking");
    bench_start(&bench);
    cr_expect(eq(int, bench_run(&bench, 8, &replay), PLIM_NODEVICE));
    cr_expect(strstr(bench.err.text, "a library is not there") != NULL, "%s", bench.err.text);
    cr_expect(eq(int, plim_remote_workers(bench.remote), 1));
    bench_finish(&bench);
}

Test(verdicts, a_worker_that_fails_of_itself_gives_way_to_another)
{
    expect_verdict("failing ok", PLIM_OK, 2);
    expect_verdict("failing", PLIM_CRASHED, PLIM_REMOTE_DEATHS);
}

Test(verdicts, contradicting_runs_are_unstable)
{
    bench_init(&bench, "leak oom"); /* the second worker finds what the first did not */
    bench_start(&bench);
    cr_assert(eq(int, bench_run(&bench, 8, &replay), PLIM_OK));
    cr_expect(eq(int, replay.verdict, PLIM_OK));
    for (int i = 0; i < 2; i++) {
        cr_assert(eq(int, bench_run(&bench, 8, &replay), PLIM_OK));
        cr_expect(eq(int, replay.verdict, PLIM_UNSTABLE));
    }
    bench_finish(&bench);
}

/* The half width of what counts, of the first run 0.1. */
static void expect_noise(const char *script, bool noisy, double half_width_seconds)
{
    bench_init(&bench, script);
    bench_start(&bench);
    cr_assert(eq(int, bench_run(&bench, 8, &replay), PLIM_OK));
    const struct plim_timing *timing = plim_remote_timing(bench.remote);
    cr_expect(eq(int, timing->noisy, noisy), "%s", script);
    cr_expect(eq(int, timing->repeats, 7), "%s", script);
    cr_expect(ieee_ulp_eq(dbl, timing->half_width_seconds, half_width_seconds, 4), "%s", script);
    bench_finish(&bench);
}

Test(verdicts, a_noisy_time_is_taken_again)
{
    expect_noise("ok", false, 0.1); /* once is enough */
    expect_noise("noisy", false, 0.05);
    expect_noise("quieter", false, 0.2); /* no noise counts for more than a narrow interval */
    expect_noise("still-noisy", true, 0.05);
    expect_noise("noisier", true, 0.1); /* then the first was the better one */
}

/* Returns the seconds that a worker has for timing if this many are requested. */
static double given_seconds(double asked, const struct plim_stop *stop)
{
    bench_init(&bench, "ok");
    bench.config.timing_seconds = asked;
    bench.config.stop = stop;
    bench_start(&bench);
    cr_assert(eq(int, bench_run(&bench, 8, &replay), PLIM_OK), "%s", bench.err.text);
    double given = plim_remote_timing(bench.remote)->median_seconds;
    bench_finish(&bench);
    return given;
}

Test(verdicts, one_setting_is_timed_for_a_quarter_of_the_time_that_is_left)
{
    struct plim_stop never = {0}, late = {.deadline_seconds = plim_clock_seconds() + 1000},
                     soon = {.deadline_seconds = plim_clock_seconds() + 40};
    cr_expect(ieee_ulp_eq(dbl, given_seconds(20, NULL), 20, 4));
    cr_expect(ieee_ulp_eq(dbl, given_seconds(20, &never), 20, 4));
    cr_expect(ieee_ulp_eq(dbl, given_seconds(20, &late), 20, 4));
    double given = given_seconds(20, &soon);
    cr_expect(given > 5 && given <= 10, "%g", given);
}

Test(verdicts, a_noisy_run_that_fails_when_repeated_is_unstable)
{
    expect_verdict("fickle", PLIM_UNSTABLE, 1);
}

Test(verdicts, a_worker_that_cannot_be_killed_is_left_behind)
{
    struct bench_ear ear = {PLIM_LOG_WARNING, "does not end", 0};
    const struct plim_log log = {PLIM_LOG_INFO, bench_listen, &ear};
    bench_init(&bench, "stuck@step ok");
    bench.config.reap_seconds = 0.2;
    bench.config.log = &log;
    bench_start(&bench);
    double start = plim_clock_seconds();
    cr_assert(eq(int, bench_run(&bench, 8, &replay), PLIM_OK));
    cr_expect(lt(dbl, plim_clock_seconds() - start, 1.2));
    cr_expect(eq(int, replay.verdict, PLIM_OK));
    cr_expect(eq(int, ear.times, 1));
    cr_expect(eq(int, bench_children(), 2)); /* the old one is still there */
    nanosleep(&(struct timespec){2, 0}, NULL);
    bench_finish(&bench);
}

/* --- what is seen while steps are timed ------------------------------------------------------- */

static void count_call(void *user)
{
    ++*(int *)user;
}

/* Three workers get stuck for 0.3 s each, before they say that this phase begins. */
static int calls_while_stuck(const char *script)
{
    int calls = 0;
    bench_init(&bench, script);
    bench.config.while_timing = count_call;
    bench.config.user = &calls;
    bench_start(&bench);
    cr_assert(eq(int, bench_run(&bench, 8, &replay), PLIM_OK));
    cr_expect(eq(int, replay.verdict, PLIM_TIMEOUT));
    bench_finish(&bench);
    return calls;
}

Test(timing, the_gpu_is_watched_while_steps_are_timed_and_only_then)
{
    int calls = calls_while_stuck("stop@clearing stop@clearing stop@clearing");
    cr_expect(ge(int, calls, 3)); /* on a busy machine fewer than nine */
    cr_expect(le(int, calls, 12));
    cr_expect(eq(int, calls_while_stuck("stop@timing stop@timing stop@timing"), 0));
}

/* --- the end of the search -------------------------------------------------------------------- */

static volatile sig_atomic_t signalled;

static void *signal_later(void *user)
{
    (void)user;
    nanosleep(&(struct timespec){0, 150000000}, NULL);
    signalled = SIGINT;
    return NULL;
}

Test(stopping, a_signal_ends_a_worker_wherever_it_is)
{
    static const char *const scripts[] = {"hang@start",  "hang@hello",  "hang@opened", "deaf@step",
                                          "stop@timing", "hang@result", "slow"};
    for (int i = 0; i < 7; i++) {
        pthread_t thread;
        struct plim_stop stop = {.signalled = &signalled};
        signalled = 0;
        bench_init(&bench, scripts[i]);
        for (int p = 0; p < PLIM_PHASE_COUNT; p++) bench.config.deadlines[p].seconds = 60;
        bench.config.stop = &stop;
        bench_start(&bench);
        cr_assert(not(pthread_create(&thread, NULL, signal_later, NULL)));
        double start = plim_clock_seconds();
        cr_expect(eq(int, bench_run(&bench, 8, &replay), PLIM_CANCELLED), "%s", scripts[i]);
        cr_expect(lt(dbl, plim_clock_seconds() - start, 1), "%s", scripts[i]);
        pthread_join(thread, NULL);
        bench_finish(&bench);
    }
}

Test(stopping, the_time_of_the_search_is_kept_whatever_a_worker_does)
{
    static const char *const scripts[] = {"hang@start", "deaf@step", "flood@timing",
                                          "slow",       "kill@step", "hang@opened"};
    for (int i = 0; i < 6; i++) {
        struct plim_stop stop = {0};
        enum plim_status st = PLIM_OK;
        bench_init(&bench, scripts[i]);
        for (int p = 0; p < PLIM_PHASE_COUNT; p++) bench.config.deadlines[p].seconds = 60;
        bench.config.stop = &stop;
        bench_start(&bench);
        double start = plim_clock_seconds();
        stop.deadline_seconds = start + 0.3;
        for (int64_t b = 1; b < 10000 && !st; b++) st = bench_run(&bench, b, &replay);
        cr_expect(eq(int, st, PLIM_TIMEOUT), "%s", scripts[i]);
        cr_expect(lt(dbl, plim_clock_seconds() - start, 1.2), "%s", scripts[i]);
        bench_finish(&bench);
    }
}

Test(stopping, a_worker_that_ignores_the_goodbye_is_ended)
{
    bench_init(&bench, "deaf@bye");
    bench_start(&bench);
    cr_assert(eq(int, bench_run(&bench, 8, &replay), PLIM_OK));
    double start = plim_clock_seconds();
    bench_finish(&bench);
    cr_expect(lt(dbl, plim_clock_seconds() - start, 4));
}
