#include "synthetic.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double scale(const struct plim_setting *s)
{
    double share = (double)s->value[SYNTHETIC_SEQ] / 1024;
    if (s->value[SYNTHETIC_CHECKPOINTING] == SYNTHETIC_FULL) share /= 4;
    if (s->value[SYNTHETIC_PRECISION] == SYNTHETIC_BF16) share /= 2;
    return share;
}

static int64_t requested_bytes(const struct synthetic *s, const struct plim_setting *setting)
{
    int64_t gpus = s->world ? setting->value[s->world] : 1;
    int64_t bytes = s->fixed_bytes / gpus + (int64_t)((double)s->per_sample_bytes * scale(setting) *
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
    double slower = setting->value[SYNTHETIC_CHECKPOINTING] == SYNTHETIC_FULL ? s->full_slower : 1;
    double micro_step =
        s->tile_seconds * (double)tiles * (double)setting->value[SYNTHETIC_SEQ] / 1024 * slower;
    return s->step_seconds + micro_step * (double)setting->accumulation;
}

/* What a proof adds to a trial that went well so far. */
static void prove(struct synthetic *s, bool late, struct plim_trial *out)
{
    s->proof_runs++;
    out->steps_done = late ? 256 : 7;
    if (!late) out->repeats_after = 7;
    if (late && s->late == SYNTHETIC_FAILS_LATE) {
        out->verdict = PLIM_OOM;
        out->steps_done = 17;
    }
}

static enum plim_status run(void *user, const struct plim_setting *setting, enum plim_run_mode mode,
                            struct plim_trial *out, struct plim_error *err)
{
    struct synthetic *s = user;
    if (s->lose_after && s->limited_runs + s->unlimited_runs >= s->lose_after)
        return plim_fail(err, PLIM_LOST, "the GPU fell off the bus");
    int64_t requested = requested_bytes(s, setting),
            reserved = (int64_t)((double)requested * (1 + s->slack));
    *out = (struct plim_trial){.details = &s->details};
    if (mode == PLIM_RUN_UNLIMITED)
        s->unlimited_runs++;
    else
        s->limited_runs++;
    if (synthetic_faults(s, setting) && !(s->fault_limited_only && mode == PLIM_RUN_UNLIMITED)) {
        s->fault_runs++;
        out->verdict = s->fault;
        snprintf(out->why, sizeof(out->why), "the worker fell asleep");
        return PLIM_OK;
    }
    if (mode != PLIM_RUN_UNLIMITED && reserved > s->runner.budget_bytes) {
        if (!synthetic_fits(s, setting)) {
            out->verdict = PLIM_OOM;
            return PLIM_OK;
        }
        reserved = s->runner.budget_bytes;
        out->retries = 1;
    }
    s->details.allocated_bytes = requested - requested / 16;
    out->requested_bytes = requested;
    out->reserved_bytes = reserved;
    out->steps_done = 4;
    out->seconds = synthetic_seconds(s, setting);
    bool late = setting->micro_batch >= s->late_from && setting->micro_batch <= s->late_to;
    if (late && mode != PLIM_RUN_UNLIMITED) out->retries = s->late_retries;
    if (mode == PLIM_RUN_PROOF) prove(s, late, out);
    return PLIM_OK;
}

void synthetic_init(struct synthetic *s, int64_t budget_bytes)
{
    *s = (struct synthetic){.runner = {.run = run,
                                       .user = s,
                                       .details_bytes = sizeof(s->details),
                                       .budget_bytes = budget_bytes},
                            .fixed_bytes = INT64_C(1) << 30,
                            .per_sample_bytes = INT64_C(100) << 20,
                            .gradient_bytes = INT64_C(256) << 20,
                            .slack = 0.15,
                            .squeeze = 0.03,
                            .step_seconds = 0.01,
                            .tile_seconds = 0.02,
                            .tile = 1,
                            .full_slower = 1.3};
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

void synthetic_axis(struct plim_question *question, int axis, size_t count, const int64_t *values)
{
    question->axes.axis[axis].count = count;
    question->axes.axis[axis].values = values;
}

struct plim_question synthetic_question(void)
{
    static const char *const precisions[] = {"fp32", "bf16-mixed", "bf16"};
    static const char *const checkpointings[] = {"none", "full"};
    static const int64_t seq = 1024, precision = SYNTHETIC_MIXED, checkpointing = SYNTHETIC_NONE;
    return (struct plim_question){
        .axes = {.count = SYNTHETIC_AXES,
                 .seq = SYNTHETIC_SEQ,
                 .axis = {[SYNTHETIC_SEQ] = {"seq", "tokens", NULL, 1, &seq, false, false},
                          [SYNTHETIC_PRECISION] = {"precision", "", precisions, 1, &precision,
                                                   false, false},
                          [SYNTHETIC_CHECKPOINTING] = {"checkpointing", "", checkpointings, 1,
                                                       &checkpointing, false, false}}},
        .batch = {.world = 1},
        .seq_most = 131072,
        .can_advise = true,
        .change_count = 2,
        .changes = {{SYNTHETIC_CHECKPOINTING, 1 << SYNTHETIC_NONE, SYNTHETIC_FULL, true,
                     "checkpointing full"},
                    {SYNTHETIC_PRECISION, 1 << SYNTHETIC_FP32 | 1 << SYNTHETIC_MIXED,
                     SYNTHETIC_BF16, true, "precision bf16"}}};
}

struct plim_setting synthetic_setting(int64_t micro_batch)
{
    const struct plim_question question = synthetic_question();
    struct plim_setting setting = plim_space_first(&question.axes);
    setting.micro_batch = micro_batch;
    setting.accumulation = 1;
    return setting;
}

void synthetic_tune(struct synthetic_run *r, struct synthetic *s, struct plim_question *question,
                    enum plim_objective objective)
{
    *r = (struct synthetic_run){.err = PLIM_ERROR_INIT};
    r->prober = (struct plim_prober){.runner = &s->runner, .cache = &r->cache};
    question->objective = objective;
    r->status = plim_decide(question, NULL, &r->prober, &r->decision, &r->err);
}

void synthetic_finish(struct synthetic_run *r)
{
    plim_decision_finish(&r->decision);
    plim_prober_finish(&r->prober);
    plim_cache_finish(&r->cache);
}

static int64_t allocated_bytes(const struct plim_trial *trial)
{
    return ((const struct synthetic_details *)trial->details)->allocated_bytes;
}

static double flops_per_token(const struct plim_trial *trial)
{
    return ((const struct synthetic_details *)trial->details)->flops_per_token;
}

static void describe_sample(const struct plim_trial *trial, struct plim_result_sample *sample)
{
    sample->noisy = ((const struct synthetic_details *)trial->details)->noisy;
}

static const struct plim_details_reader reader = {.allocated_bytes = allocated_bytes,
                                                  .flops_per_token = flops_per_token,
                                                  .describe_sample = describe_sample};
static const struct plim_device_info device = {.name = "synthetic", .simulated = true};

static struct plim_limit limit_of(const struct synthetic_run *r)
{
    int64_t budget = r->prober.runner->budget_bytes, overhead = INT64_C(1) << 30;
    return (struct plim_limit){
        .usable_bytes = budget + overhead, .overhead_bytes = overhead, .budget_bytes = budget};
}

static struct plim_answer answer_of(const struct synthetic_run *r, const struct plim_limit *limit)
{
    static const double peak_rate[] = {2e15, 1e15, 2e15}; /* mixed precision is the second */
    return (struct plim_answer){.name = "model",
                                .source = "",
                                .question = r->decision.question,
                                .prober = &r->prober,
                                .device = &device,
                                .limit = limit,
                                .peak_rate = peak_rate,
                                .details = &reader};
}

void synthetic_answer(const struct synthetic_run *r, struct plim_result *result)
{
    const struct plim_limit limit = limit_of(r);
    const struct plim_answer from = answer_of(r, &limit);
    if (plim_answer_decision(&from, &r->decision, result, NULL)) abort();
}

void synthetic_explain(const struct synthetic_run *r, const struct plim_inspection *inspection,
                       struct plim_result *result)
{
    const struct plim_limit limit = limit_of(r);
    const struct plim_answer from = answer_of(r, &limit);
    if (plim_answer_inspection(&from, inspection, result, NULL)) abort();
}

bool synthetic_says(const struct plim_result *result, const char *text)
{
    for (size_t i = 0; i < result->reason_count; i++)
        if (strstr(result->reasons[i], text)) return true;
    return false;
}

struct plim_edge synthetic_edge(struct synthetic *s, const struct plim_question *question,
                                struct plim_cache *cache, const struct plim_edge *known)
{
    struct plim_cache own = {0};
    struct plim_prober prober = {.runner = &s->runner, .cache = cache ? cache : &own};
    struct plim_decision decision = {0};
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_search search;
    enum plim_status st = plim_search_init(&search, question, &prober, &decision, &err);
    search.known = (struct plim_known){.hints = known, .hint_count = known ? 1 : 0};
    if (!st) st = plim_search_points(&search, NULL, 0, NULL);
    if (!st) st = plim_edge_find(&search, 0, PLIM_EDGE_OF_ALL);
    struct plim_edge edge = st ? (struct plim_edge){.fits = -1} : decision.edges.items[0];
    plim_decision_finish(&decision);
    plim_prober_finish(&prober);
    plim_cache_finish(&own);
    return edge;
}
