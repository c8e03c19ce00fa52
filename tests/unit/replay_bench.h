/* A replayer on a simulated GPU with more memory than anything needs. */
#ifndef PLIM_TESTS_REPLAY_BENCH_H
#define PLIM_TESTS_REPLAY_BENCH_H

#include "devices/sim/sim.h"
#include "workloads/spec/spec.h"
#include "workloads/train/replay.h"
#include <criterion/criterion.h>
#include <string.h>

struct bench {
    struct plim_spec spec;
    struct plim_device *device;
    struct plim_replayer *replayer;
};

static inline void open_bench(struct bench *b, const char *model)
{
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert_eq(plim_spec_load(model, &b->spec, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_sim_open("A100-SXM4-80GB,memory=64TiB", &b->device, &err), PLIM_OK, "%s",
                 err.text);
    cr_assert_eq(plim_replayer_create(b->device, NULL, &b->replayer, &err), PLIM_OK, "%s",
                 err.text);
}

static inline void close_bench(struct bench *b)
{
    plim_replayer_destroy(&b->replayer);
    plim_device_close(&b->device);
}

static inline void run(struct bench *b, const struct plim_train_setting *setting, struct plim_replay *out)
{
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert_eq(plim_replay_run(b->replayer, &b->spec.model, setting, out, &err), PLIM_OK, "%s",
                 err.text);
}

/* The requested bytes are the same, whatever was cached and split before. */
static inline bool same_requests(const struct plim_replay *a, const struct plim_replay *b)
{
    for (int i = 0; i < PLIM_REPLAY_STEPS; i++)
        if (a->step[i].peak_requested_bytes != b->step[i].peak_requested_bytes) return false;
    return true;
}

static const struct plim_train_setting by_trainer = {.micro_batch = 2,
                                                     .seq = 128,
                                                     .accumulation = 3,
                                                     .precision = PLIM_PRECISION_BF16_MIXED,
                                                     .made_on = PLIM_MADE_ON_HOST,
                                                     .loop = PLIM_LOOP_TRAINER};

static inline void expect_refused(struct bench *b, struct plim_train_setting setting, const char *why)
{
    static struct plim_replay out;
    run(b, &setting, &out);
    cr_expect_eq(out.verdict, PLIM_UNSUPPORTED);
    cr_expect(strstr(out.why, why) != NULL, "%s", out.why);
}

/* However little memory there is, the verdict is OK or OOM with its place, and the next run is sound. */
static inline void run_out_anywhere(const struct plim_train_setting *setting)
{
    static struct bench bench;
    static struct plim_replay first, again, limited;
    enum { CAPACITIES = 60 };
    open_bench(&bench, "gpt2-124m");
    run(&bench, setting, &first);
    int ooms = 0;
    for (int i = 1; i <= CAPACITIES; i++) {
        plim_device_limit(bench.device, first.peak_reserved_bytes / CAPACITIES * i);
        run(&bench, setting, &limited);
        if (limited.verdict == PLIM_OOM) {
            ooms++;
            cr_expect_gt(limited.oom_asked_bytes, 0);
            cr_expect_gt(strlen(limited.oom_where), 0);
        } else {
            cr_expect_eq(limited.verdict, PLIM_OK);
            cr_expect(same_requests(&first, &limited));
        }
        plim_device_limit(bench.device, (int64_t)1 << 46);
        run(&bench, setting, &again);
        cr_expect_eq(memcmp(&first, &again, sizeof first), 0);
    }
    cr_expect_gt(ooms, CAPACITIES / 2);
    cr_expect_eq(limited.verdict, PLIM_OK);
    close_bench(&bench);
}

#endif
