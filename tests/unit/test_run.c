/* A device for runs: what of it may be used, and what is known of how fast it is. */
#include "autotune/run/ahead.h"
#include "autotune/run/run_device_internal.h"
#include "autotune/run/plays.h"
#include "autotune/run/share.h"
#include "autotune/search/space.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int64_t MIB = INT64_C(1) << 20, GIB = INT64_C(1) << 30;

static void expect_limit(struct plim_limit limit, int64_t overhead, const char *source,
                         int64_t margin)
{
    cr_expect(eq(i64, limit.overhead_bytes, overhead));
    cr_expect(eq(str, (char *)limit.overhead_source, (char *)source));
    cr_expect(eq(i64, limit.margin_bytes, margin));
    cr_expect(eq(i64, limit.budget_bytes, limit.usable_bytes - overhead - margin));
}

Test(allowance, of_estimate_and_measured_overhead_the_larger_counts)
{
    const struct plim_allowance allowance = {.margin_bytes = 5 * MIB, .margin_share = 0.5};
    struct plim_limit more = plim_allowance_limit(&allowance, GIB, 100 * MIB, 101 * MIB),
                      less = plim_allowance_limit(&allowance, GIB, 100 * MIB, 99 * MIB),
                      same = plim_allowance_limit(&allowance, GIB, 100 * MIB, 100 * MIB);
    expect_limit(more, 101 * MIB, "measured", 5 * MIB);
    cr_expect(eq(i64, more.overhead_measured_bytes, 101 * MIB));
    cr_expect(eq(i64, more.usable_bytes, GIB));
    expect_limit(less, 100 * MIB, "estimate", 5 * MIB);
    cr_expect(eq(i64, less.overhead_measured_bytes, 99 * MIB));
    expect_limit(same, 100 * MIB, "estimate", 5 * MIB);
}

Test(allowance, what_is_given_comes_first)
{
    struct plim_allowance allowance = {.overhead_given = true,
                                       .overhead_bytes = 3 * MIB,
                                       .margin_share = 0.25,
                                       .margin_bytes = -1,
                                       .alloc_conf = "max_split_size_mb:32"};
    struct plim_limit limit = plim_allowance_limit(&allowance, GIB, 100 * MIB, 200 * MIB);
    expect_limit(limit, 3 * MIB, "given", GIB / 4);
    cr_expect(eq(str, limit.alloc_conf, (char *)"max_split_size_mb:32"));
    allowance.margin_bytes = 0;
    expect_limit(plim_allowance_limit(&allowance, GIB, 100 * MIB, 200 * MIB), 3 * MIB, "given", 0);
}

Test(allowance, the_estimate_goes_by_the_compute_capability)
{
    static const struct {
        int capability;
        int64_t mib;
    } estimates[] = {{70, 512}, {79, 512}, {80, 610}, {86, 554}, {89, 554}, {90, 768}, {120, 768}};
    for (size_t i = 0; i < sizeof(estimates) / sizeof(estimates[0]); i++) {
        int64_t bytes = plim_overhead_estimate(estimates[i].capability);
        cr_expect(eq(i64, bytes, estimates[i].mib * MIB), "%d", estimates[i].capability);
        cr_expect(eq(i64, plim_context_estimate(estimates[i].capability), bytes - 128 * MIB));
    }
}

struct opened {
    struct plim_allowance allowance;
    struct plim_spec spec;
    struct plim_spec_question question;
    struct plim_run_options options;
    struct plim_run_device device;
};

static void open_device(struct opened *o, const char *uri)
{
    struct plim_error err = PLIM_ERROR_INIT;
    o->allowance = PLIM_ALLOWANCE_DEFAULT;
    cr_assert(eq(int, plim_spec_load("tiny-gpt2", &o->spec, &err), PLIM_OK), "%s", err.text);
    plim_spec_question_make(&o->spec, PLIM_OBJECTIVE_THROUGHPUT, &o->question);
    o->options =
        (struct plim_run_options){.uri = uri, .allowance = &o->allowance, .question = &o->question};
    cr_assert(eq(int, plim_run_device_open(&o->device, &o->options, &err), PLIM_OK), "%s",
              err.text);
}

/* Dense peaks of NVIDIA's A100 data sheet. */
Test(run_device, the_peak_rate_is_that_of_the_precision)
{
    static struct opened o;
    open_device(&o, "sim:A100-SXM4-80GB");
    static const double peaks[PLIM_PRECISION_COUNT] = {
        [PLIM_PRECISION_FP32] = 19.5e12, [PLIM_PRECISION_TF32] = 156e12,
        [PLIM_PRECISION_BF16] = 312e12,  [PLIM_PRECISION_BF16_MIXED] = 312e12,
        [PLIM_PRECISION_FP16] = 312e12,  [PLIM_PRECISION_FP16_MIXED] = 312e12};
    for (int i = 0; i < PLIM_PRECISION_COUNT; i++)
        cr_expect(epsilon_eq(dbl, o.device.peak_rate[i], peaks[i], 0.01 * peaks[i]), "%s",
                  plim_precision_names[i]);
    plim_run_device_close(&o.device);
}

Test(run_device, a_simulated_one_is_all_ours)
{
    static struct opened o;
    open_device(&o, "sim:A100-SXM4-80GB,memory=24GiB");
    cr_expect(eq(i64, o.device.limit.usable_bytes, 24 * GIB));
    expect_limit(o.device.limit, 610 * MIB, "estimate", 24 * GIB / 20);
    cr_expect(eq(i64, o.device.limit.overhead_measured_bytes, 0));
    cr_expect(eq(i64, o.device.runner.budget_bytes, o.device.limit.budget_bytes));
    cr_expect(not(o.device.runner.limit_acts_early));
    cr_expect(o.device.info.simulated && !o.device.planner.run);
    plim_run_device_close(&o.device);
    plim_run_device_close(NULL);
}

Test(run_device, what_is_the_same_but_for_its_memory_is_of_one_class)
{
    static struct opened a, b, c;
    open_device(&a, "sim:A100-SXM4-80GB");
    open_device(&b, "sim:A100-SXM4-40GB");
    open_device(&c, "sim:RTX-4090");
    cr_expect(plim_run_device_same_class(&a.device, &b.device));
    cr_expect(not(plim_run_device_same_class(&a.device, &c.device)));
    struct plim_run_device other = a.device;
    other.info.multiprocessors++;
    cr_expect(not(plim_run_device_same_class(&a.device, &other)));
    other = a.device;
    other.info.compute_capability++;
    cr_expect(not(plim_run_device_same_class(&a.device, &other)));
    other = a.device;
    other.info.threads_per_multiprocessor++;
    cr_expect(not(plim_run_device_same_class(&a.device, &other)));
    other = a.device;
    other.info.simulated = false;
    cr_expect(not(plim_run_device_same_class(&a.device, &other)));
    cr_expect(not(plim_run_device_same_class(&other, &a.device)));
    plim_run_device_close(&a.device);
    plim_run_device_close(&b.device);
    plim_run_device_close(&c.device);
}

/* Its runs: the same setting needs the same with and without a limit, and fails below what it needs. */
Test(run_device, a_run_has_the_numbers_of_its_replay)
{
    static struct opened o;
    struct plim_trial limited, unlimited;
    open_device(&o, "sim:A100-SXM4-80GB");
    const struct plim_runner *runner = &o.device.runner;
    struct plim_setting setting = plim_space_first(&o.question.question.axes);
    setting.micro_batch = 2;
    setting.accumulation = 1;
    cr_assert(
        eq(int, runner->run(runner->user, &setting, PLIM_RUN_LIMITED, &limited, NULL), PLIM_OK));
    const struct plim_replay replay = *(const struct plim_replay *)limited.details;
    cr_expect(eq(int, limited.verdict, PLIM_OK));
    cr_expect(eq(i64, limited.reserved_bytes, replay.peak_reserved_bytes));
    cr_expect(eq(int, limited.steps_done, PLIM_REPLAY_STEPS));
    cr_expect(eq(dbl, limited.seconds, replay.step[PLIM_REPLAY_STEPS - 1].seconds));
    int64_t requested = 0;
    for (int i = 0; i < PLIM_REPLAY_STEPS; i++)
        if (replay.step[i].peak_requested_bytes > requested)
            requested = replay.step[i].peak_requested_bytes;
    cr_expect(eq(i64, limited.requested_bytes, requested));
    cr_expect(lt(i64, replay.step[0].peak_requested_bytes - 1, requested));
    cr_assert(eq(int, runner->run(runner->user, &setting, PLIM_RUN_UNLIMITED, &unlimited, NULL),
                 PLIM_OK));
    cr_expect(eq(i64, unlimited.reserved_bytes, limited.reserved_bytes));
    plim_run_device_close(&o.device);

    o.allowance.overhead_given = true;
    o.allowance.overhead_bytes = 80 * GIB - limited.requested_bytes / 2;
    o.allowance.margin_bytes = 0;
    cr_assert(eq(int, plim_run_device_open(&o.device, &o.options, NULL), PLIM_OK));
    cr_assert(
        eq(int, runner->run(runner->user, &setting, PLIM_RUN_LIMITED, &limited, NULL), PLIM_OK));
    cr_expect(eq(int, limited.verdict, PLIM_OOM));
    cr_assert(eq(int, runner->run(runner->user, &setting, PLIM_RUN_UNLIMITED, &unlimited, NULL),
                 PLIM_OK));
    cr_expect(eq(int, unlimited.verdict, PLIM_OK));
    plim_run_device_close(&o.device);
}

/* Of several GPUs a step takes what one takes, and what the gradients take between them. */
Test(run_device, a_measured_step_is_no_faster_than_pytorch_launches_it)
{
    static struct plim_replay replay;
    double *seconds = &replay.step[PLIM_REPLAY_STEPS - 1].seconds;
    *seconds = 2e-3;
    plim_run_charge_host(&replay, 1e-3);
    cr_expect(eq(dbl, *seconds, 2e-3));
    cr_expect(not(replay.host_bound));
    plim_run_charge_host(&replay, 3e-3);
    cr_expect(eq(dbl, *seconds, 3e-3));
    cr_expect(replay.host_bound);
}

Test(run_device, communication_comes_on_top_of_a_step)
{
    struct plim_trial alone, together;
    struct plim_replay replay = {.steps_done = 2, .step = {{.seconds = 5}, {.seconds = 3}}};
    plim_run_trial(&replay, &alone);
    cr_expect(eq(dbl, alone.seconds, 3));
    replay.communication_seconds = 0.5;
    plim_run_trial(&replay, &together);
    cr_expect(eq(dbl, together.communication_seconds, 0.5));
    cr_expect(eq(dbl, together.seconds, 3.5));
    cr_expect(eq(int, together.link_gpus, 0));
    replay.link_bytes_per_second = 2e11;
    replay.link_latency_seconds = 2e-5;
    replay.link_gpus = 8;
    plim_run_trial(&replay, &together);
    cr_expect(eq(dbl, together.link_bytes_per_second, 2e11));
    cr_expect(eq(dbl, together.link_latency_seconds, 2e-5));
    cr_expect(eq(int, together.link_gpus, 8));
}

static long size_of(const char *path)
{
    FILE *file = fopen(path, "r");
    cr_assert(file != NULL);
    cr_assert(eq(int, fseek(file, 0, SEEK_END), 0));
    long size = ftell(file);
    fclose(file);
    return size;
}

Test(run_device, a_trace_has_one_run_and_no_more)
{
    static struct opened o;
    char path[] = "/tmp/plimsoll-trace-XXXXXX";
    struct plim_trial trial;
    struct plim_error err = PLIM_ERROR_INIT;
    open_device(&o, "sim:A100-SXM4-80GB");
    struct plim_setting setting = plim_space_first(&o.question.question.axes);
    setting.micro_batch = setting.accumulation = 1;
    close(mkstemp(path));
    cr_assert(eq(int, plim_run_device_trace(&o.device, &setting, path, &err), PLIM_OK), "%s",
              err.text);
    long size = size_of(path);
    cr_expect(lt(long, 1000, size));
    cr_assert(
        eq(int, o.device.runner.run(o.device.runner.user, &setting, PLIM_RUN_LIMITED, &trial, NULL),
           PLIM_OK));
    cr_assert(eq(int, plim_run_device_trace(&o.device, &setting, path, &err), PLIM_OK));
    cr_expect(eq(long, size_of(path), size));
    unlink(path);
    cr_expect(eq(int, plim_run_device_trace(&o.device, &setting, "/dev/full", &err), PLIM_IO));
    cr_expect(eq(str, err.text, (char *)"/dev/full: cannot be written: No space left on device"));
    err = (struct plim_error)PLIM_ERROR_INIT;
    cr_expect(eq(int, plim_run_device_trace(&o.device, &setting, "/no/folder", &err), PLIM_IO));
    cr_expect(
        eq(str, err.text, (char *)"/no/folder: cannot be written: No such file or directory"));
    plim_run_device_close(&o.device);
}

Test(run_device, what_is_no_device_is_told_from_a_gpu_without_its_scheme)
{
    static struct opened o;
    struct plim_error err = PLIM_ERROR_INIT;
    o.allowance = PLIM_ALLOWANCE_DEFAULT;
    o.options = (struct plim_run_options){.uri = "a100-sxm4-80gb", .allowance = &o.allowance};
    cr_expect(eq(int, plim_run_device_open(&o.device, &o.options, &err), PLIM_NODEVICE));
    cr_expect(strstr(err.text, "did you mean sim:A100-SXM4-80GB?") != NULL, "%s", err.text);
    err = (struct plim_error)PLIM_ERROR_INIT;
    o.options.uri = "nothing";
    cr_expect(eq(int, plim_run_device_open(&o.device, &o.options, &err), PLIM_NODEVICE));
    cr_expect(strstr(err.text, "nothing: no such device, expected cuda:N") != NULL, "%s", err.text);
}

/* --- GPUs of a class -------------------------------------------------------------------------- */

static void open_to_share(struct opened *o, const char *uri, struct plim_run_share *share)
{
    open_device(o, uri);
    o->options.share = share;
}

static struct plim_replay run_setting(struct opened *o, const struct plim_setting *setting,
                                      enum plim_run_mode mode)
{
    struct plim_trial trial;
    struct plim_error err = PLIM_ERROR_INIT;
    const struct plim_runner *runner = &o->device.runner;
    cr_assert(eq(int, runner->run(runner->user, setting, mode, &trial, &err), PLIM_OK), "%s",
              err.text);
    return o->device.last;
}

static void expect_same_replay(const struct plim_replay *a, const struct plim_replay *b)
{
    cr_expect(eq(int, (int)a->verdict, (int)b->verdict));
    cr_expect(eq(i64, a->peak_reserved_bytes, b->peak_reserved_bytes));
    cr_expect(a->host_bound == b->host_bound);
    cr_expect(eq(dbl, a->launching_seconds, b->launching_seconds));
    for (int i = 0; i < PLIM_REPLAY_STEPS; i++)
        cr_expect(eq(dbl, a->step[i].seconds, b->step[i].seconds), "step %d", i + 1);
}

static const struct {
    int64_t micro_batch, accumulation;
} shared_settings[] = {{1, 1}, {2, 1}, {2, 7}, {64, 3}};

/* Runs every setting on one GPU, takes it from there on another, and runs it there. */
static void share_between(const char *first, const char *second, double host_speed)
{
    struct plim_run_share share = {0};
    static struct opened one, other, alone;
    open_to_share(&one, first, &share);
    open_to_share(&other, second, &share);
    open_device(&alone, second);
    bool is_seen = false; /* that the two GPUs take other times */
    one.spec.host_speed = other.spec.host_speed = alone.spec.host_speed = host_speed;
    for (size_t i = 0; i < sizeof(shared_settings) / sizeof(shared_settings[0]); i++) {
        struct plim_setting setting = plim_space_first(&one.question.question.axes);
        setting.micro_batch = shared_settings[i].micro_batch;
        setting.accumulation = shared_settings[i].accumulation;
        struct plim_replay here = run_setting(&one, &setting, PLIM_RUN_UNLIMITED),
                           there = run_setting(&other, &setting, PLIM_RUN_LIMITED),
                           own = run_setting(&alone, &setting, PLIM_RUN_LIMITED);
        cr_expect(eq(sz, share.runs.count, i + 1));
        is_seen |= here.step[1].seconds != there.step[1].seconds;
        expect_same_replay(&there, &own);
    }
    cr_expect(is_seen);
    plim_run_device_close(&one.device);
    plim_run_device_close(&other.device);
    plim_run_device_close(&alone.device);
    plim_run_share_finish(&share);
}

Test(run_share, a_run_is_that_of_another_gpu_of_its_class_but_for_its_time)
{
    share_between("sim:H100-SXM5-80GB", "sim:H200-SXM-141GB", 0);
    share_between("sim:A100-SXM4-80GB", "sim:A100-PCIE-40GB", 0.5);
    share_between("sim:RTX-6000-Ada", "sim:L40S", 3);
}

/* A host that is known is in no doubt. */
Test(run_device, a_faster_host_launches_in_less_time)
{
    static const double speeds[] = {0, 1, 64};
    struct plim_replay replays[3];
    static struct opened opened[3];
    for (int i = 0; i < 3; i++) {
        open_device(&opened[i], "sim:H100-SXM5-80GB");
        opened[i].spec.host_speed = speeds[i];
        struct plim_setting setting = plim_space_first(&opened[i].question.question.axes);
        setting.micro_batch = 2;
        setting.accumulation = 1;
        replays[i] = run_setting(&opened[i], &setting, PLIM_RUN_LIMITED);
        plim_run_device_close(&opened[i].device);
    }
    cr_expect(eq(dbl, replays[0].launching_seconds, replays[1].launching_seconds));
    cr_expect(ieee_ulp_eq(dbl, replays[1].launching_seconds, 64 * replays[2].launching_seconds, 1 << 20));
    cr_expect(lt(dbl, replays[2].step[3].seconds, replays[1].step[3].seconds));
    cr_expect(replays[0].host_bound && replays[1].host_bound && !replays[2].host_bound);
    cr_expect(lt(dbl, replays[1].launching_seconds, replays[1].step[3].seconds * 1.01));
}

/* A GPU with less memory than was reserved has to show what happens there. */
Test(run_share, what_may_not_fit_is_run)
{
    struct plim_run_share share = {0};
    static struct opened large, small;
    open_to_share(&large, "sim:A100-SXM4-80GB", &share);
    open_to_share(&small, "sim:A100-SXM4-80GB,memory=1GiB", &share);
    struct plim_setting setting = plim_space_first(&large.question.question.axes);
    setting.micro_batch = 256;
    setting.accumulation = 1;
    struct plim_replay fits = run_setting(&large, &setting, PLIM_RUN_LIMITED),
                       fails = run_setting(&small, &setting, PLIM_RUN_LIMITED);
    cr_expect(eq(int, (int)fits.verdict, PLIM_OK));
    cr_expect(lt(i64, small.device.limit.budget_bytes, fits.peak_reserved_bytes));
    cr_expect(eq(int, (int)fails.verdict, PLIM_OOM));
    cr_expect(eq(sz, share.runs.count, 1u));
    plim_run_device_close(&large.device);
    plim_run_device_close(&small.device);
    plim_run_share_finish(&share);
}

/* --- concurrent runs -------------------------------------------------------------------------- */

static bool run_on(void *user, const struct plim_setting *setting, struct plim_replay *out)
{
    return plim_run_simulate(user, setting, PLIM_RUN_UNLIMITED, out, NULL) == PLIM_OK;
}

/* Whoever makes a run, it is the same; each is made once, and others are not known. */
Test(ahead, runs_are_those_that_are_made_one_after_the_other)
{
    enum { COUNT = 6 };
    static struct opened o, beside;
    struct plim_setting settings[COUNT];
    struct plim_replay replay;
    open_device(&o, "sim:A100-SXM4-40GB");
    open_device(&beside, "sim:A100-SXM4-40GB");
    for (int i = 0; i < COUNT; i++) {
        settings[i] = plim_space_first(&o.question.question.axes);
        settings[i].micro_batch = i + 1;
        settings[i].accumulation = 1;
    }
    for (int round = 0; round < 20; round++) {
        struct plim_ahead *ahead = plim_ahead_start(run_on, &beside.device, settings, COUNT);
        cr_assert(ne(ptr, ahead, NULL));
        for (int i = 0; i < COUNT; i++) {
            struct plim_trial trial;
            bool is_there = plim_ahead_result(ahead, &settings[i], &replay);
            cr_assert(eq(int, o.device.runner.run(&o.device, &settings[i], PLIM_RUN_UNLIMITED, &trial,
                                                  NULL), PLIM_OK));
            if (is_there) cr_expect(eq(i64, replay.peak_reserved_bytes, trial.reserved_bytes));
            if (is_there)
                cr_expect(replay.step[PLIM_REPLAY_STEPS - 1].seconds == trial.seconds);
        }
        cr_expect(not(plim_ahead_result(ahead, &(struct plim_setting){.micro_batch = 9}, &replay)));
        plim_ahead_finish(&ahead);
        cr_expect(eq(ptr, ahead, NULL));
    }
    plim_run_device_close(&beside.device);
    plim_run_device_close(&o.device);
}

/* A failed timeline of a step reports its reason, like a failed run of a setting. */
Test(run_device, a_timeline_that_is_stopped_says_why)
{
    static struct opened o;
    static struct plim_timeline timeline;
    struct plim_error err = PLIM_ERROR_INIT;
    const struct plim_stop over = {.deadline_seconds = 1e-9};
    open_device(&o, "sim:A100-SXM4-40GB");
    o.options.stop = &over;
    struct plim_setting setting = plim_space_first(&o.question.question.axes);
    setting.micro_batch = setting.accumulation = 1;
    cr_expect(eq(int, plim_run_device_timeline(&o.device, &setting, true, &timeline, &err),
                 PLIM_TIMEOUT));
    cr_expect(ne(int, err.text[0], 0));
    plim_run_device_close(&o.device);
}

/* --- plays of a recording --------------------------------------------------------------------- */

static void keep_play(struct plim_run_plays *plays, int64_t micro_batch, uint64_t sizes, struct plim_replay replay)
{
    const struct plim_setting setting = {.micro_batch = micro_batch, .accumulation = 1};
    cr_assert(eq(int, plim_run_plays_store(plays, &setting, sizes, &replay), PLIM_OK));
}

static bool finds_play(struct plim_run_plays *plays, int64_t micro_batch, uint64_t sizes, int64_t budget_bytes)
{
    const struct plim_setting setting = {.micro_batch = micro_batch, .accumulation = 1};
    struct plim_replay found = {0};
    bool is_found = plim_run_plays_find(plays, &setting, sizes, budget_bytes, &found);
    if (is_found) cr_expect(eq(i64, found.peak_reserved_bytes, 3 * GIB));
    return is_found;
}

Test(run_plays, a_play_is_that_of_a_gpu_with_its_sizes_and_as_much_memory)
{
    struct plim_run_plays plays;
    plim_run_plays_init(&plays);
    keep_play(&plays, 2, 7, (struct plim_replay){.peak_reserved_bytes = 3 * GIB});
    cr_expect(finds_play(&plays, 2, 7, 3 * GIB));
    cr_expect(not(finds_play(&plays, 2, 7, 3 * GIB - 1)));
    cr_expect(not(finds_play(&plays, 2, 8, 3 * GIB)));
    cr_expect(not(finds_play(&plays, 1, 7, 3 * GIB)));
    plim_run_plays_finish(&plays);
}

Test(run_plays, what_came_near_a_limit_is_not_kept)
{
    struct plim_run_plays plays;
    plim_run_plays_init(&plays);
    keep_play(&plays, 2, 7, (struct plim_replay){.peak_reserved_bytes = 3 * GIB, .retries = 1});
    keep_play(&plays, 3, 7, (struct plim_replay){.peak_reserved_bytes = 3 * GIB, .verdict = PLIM_OOM});
    cr_expect(not(finds_play(&plays, 2, 7, 3 * GIB)));
    cr_expect(not(finds_play(&plays, 3, 7, 3 * GIB)));
    plim_run_plays_finish(&plays);
}
