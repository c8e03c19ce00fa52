#include "synthetic.h"
#include <stdio.h>

static double scale(const struct plim_setting *s)
{
    double share = (double)s->seq / 1024;
    if (s->checkpointing == PLIM_CHECKPOINTING_FULL) share /= 4;
    if (s->precision == PLIM_PRECISION_BF16) share /= 2;
    return share;
}

static int64_t requested_bytes(const struct synthetic *s, const struct plim_setting *setting)
{
    int64_t bytes = s->fixed_bytes + (int64_t)((double)s->per_sample_bytes * scale(setting) *
                                               (double)setting->micro_batch);
    if (setting->accumulation > 1) bytes += s->gradient_bytes;
    if (s->bump_every && setting->micro_batch % s->bump_every == 0) bytes += s->bump_bytes;
    return bytes;
}

static int64_t needed_bytes(const struct synthetic *s, const struct plim_setting *setting)
{
    return (int64_t)((double)requested_bytes(s, setting) * (1 + s->squeeze));
}

bool synthetic_fits(const struct synthetic *s, const struct plim_setting *setting)
{
    return needed_bytes(s, setting) <= s->runner.budget_bytes;
}

bool synthetic_faults(const struct synthetic *s, const struct plim_setting *setting)
{
    return setting->micro_batch >= s->fault_from && setting->micro_batch <= s->fault_to;
}

double synthetic_seconds(const struct synthetic *s, const struct plim_setting *setting)
{
    int64_t tiles = (setting->micro_batch + s->tile - 1) / s->tile;
    double slower = setting->checkpointing == PLIM_CHECKPOINTING_FULL ? 1.3 : 1;
    double micro_step = s->tile_seconds * (double)tiles * (double)setting->seq / 1024 * slower;
    return s->step_seconds + micro_step * (double)setting->accumulation;
}

static void fill_peaks(struct plim_replay *out, int64_t requested, int64_t reserved)
{
    for (int i = 0; i < PLIM_REPLAY_STEPS; i++) {
        out->step[i].peak_requested_bytes = out->step[i].peak_allocated_bytes = requested;
        out->step[i].peak_reserved_bytes = reserved;
    }
    out->steps_done = PLIM_REPLAY_STEPS;
    out->peak_allocated_bytes = requested;
    out->peak_reserved_bytes = reserved;
}

static enum plim_status run(void *user, const struct plim_setting *setting, enum plim_run_mode mode,
                            struct plim_replay *out, struct plim_error *err)
{
    struct synthetic *s = user;
    if (s->lose_after && s->limited_runs + s->unlimited_runs >= s->lose_after)
        return plim_fail(err, PLIM_LOST, "the card fell off the bus");
    int64_t requested = requested_bytes(s, setting),
            reserved = (int64_t)((double)requested * (1 + s->slack));
    *out = (struct plim_replay){
        .parameters = 1000, .trainable_parameters = 1000, .model_flops_per_token = 6000};
    if (mode == PLIM_RUN_UNLIMITED) s->unlimited_runs++;
    else s->limited_runs++;
    if (synthetic_faults(s, setting) && !(s->fault_limited_only && mode == PLIM_RUN_UNLIMITED)) {
        s->fault_runs++;
        out->verdict = s->fault;
        snprintf(out->why, sizeof(out->why), "the worker fell asleep");
        return PLIM_OK;
    }
    if (mode == PLIM_RUN_LIMITED && reserved > s->runner.budget_bytes) {
        if (!synthetic_fits(s, setting)) {
            out->verdict = PLIM_OOM;
            out->oom_asked_bytes = s->per_sample_bytes;
            out->oom_class = PLIM_MEMORY_ACTIVATIONS;
            return PLIM_OK;
        }
        reserved = s->runner.budget_bytes;
        out->retries = 1;
    }
    fill_peaks(out, requested, reserved);
    for (int i = 0; i < PLIM_REPLAY_STEPS; i++)
        out->step[i].seconds = synthetic_seconds(s, setting);
    return PLIM_OK;
}

void synthetic_init(struct synthetic *s, int64_t budget_bytes)
{
    *s = (struct synthetic){.runner = {.run = run, .user = s, .budget_bytes = budget_bytes},
                            .fixed_bytes = INT64_C(1) << 30,
                            .per_sample_bytes = INT64_C(100) << 20,
                            .gradient_bytes = INT64_C(256) << 20,
                            .slack = 0.15,
                            .squeeze = 0.03,
                            .step_seconds = 0.01,
                            .tile_seconds = 0.02,
                            .tile = 1};
}

uint64_t synthetic_random(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

int64_t synthetic_between(uint64_t *state, int64_t low, int64_t high)
{
    return low + (int64_t)(synthetic_random(state) % (uint64_t)(high - low + 1));
}

void synthetic_randomize(struct synthetic *s, uint64_t *state)
{
    synthetic_init(s, synthetic_between(state, 2000, 80000) << 20);
    s->fixed_bytes = synthetic_between(state, 10, 4000) << 20;
    s->per_sample_bytes = synthetic_between(state, 5, 3000) << 20;
    s->gradient_bytes = s->fixed_bytes / 4;
    s->slack = (double)synthetic_between(state, 5, 34) / 100;
    s->squeeze = s->slack * (double)synthetic_between(state, 0, 90) / 100;
    s->step_seconds = (double)synthetic_between(state, 0, 1000) / 1000;
    s->tile_seconds = (double)synthetic_between(state, 1, 100) / 1000;
    s->tile = synthetic_between(state, 1, 2);
}

struct plim_spec synthetic_spec(void)
{
    struct plim_spec spec = {.world = 1, .seq = {1, {1024}}};
    spec.model.positions = 4096;
    spec.precision = (struct plim_enum_axis){1, {PLIM_PRECISION_BF16_MIXED}};
    spec.optimizer = (struct plim_enum_axis){1, {PLIM_OPTIMIZER_ADAMW}};
    spec.checkpointing = (struct plim_enum_axis){1, {PLIM_CHECKPOINTING_NONE}};
    spec.attention = (struct plim_enum_axis){1, {PLIM_ATTENTION_SDPA}};
    return spec;
}

void synthetic_tune(struct synthetic_run *r, struct synthetic *s, const struct plim_spec *spec,
                    enum plim_objective objective)
{
    *r = (struct synthetic_run){.err = PLIM_ERROR_INIT};
    r->prober = (struct plim_prober){.runner = &s->runner, .memo = &r->memo};
    struct plim_tuning tuning = {.spec = spec, .objective = objective, .prober = &r->prober};
    r->status = plim_tune(&tuning, &r->decision, &r->err);
}

void synthetic_finish(struct synthetic_run *r)
{
    plim_decision_finish(&r->decision);
    plim_prober_finish(&r->prober);
    plim_memo_finish(&r->memo);
}
