#include "answer.h"
#include "failure.h"
#include "reasons.h"
#include <stdio.h>

static struct plim_result_setting setting_of(const struct plim_answer *a,
                                             const struct plim_setting *s)
{
    const struct plim_axes *axes = &a->question->axes;
    struct plim_result_setting out = {.accumulation = s->accumulation};
    if (!a->question->batch.is_unknown) out.micro_batch = s->micro_batch;
    for (size_t i = 0; i < axes->count; i++) {
        char room[PLIM_AXIS_TEXT];
        if ((int)i == axes->seq) out.seq = s->value[i];
        if ((int)i == axes->seq || axes->axis[i].is_hidden) continue;
        struct plim_result_value *value = &out.values[out.value_count++];
        snprintf(value->name, sizeof(value->name), "%s", axes->axis[i].name);
        snprintf(value->text, sizeof(value->text), "%s", plim_axes_text(axes, s, i, room));
        value->is_size = axes->axis[i].is_users;
    }
    return out;
}

static struct plim_result_peak peak_of(const struct plim_answer *a, const struct plim_trial *trial)
{
    return (struct plim_result_peak){
        .allocated_bytes = trial->details ? a->details->allocated_bytes(trial) : 0,
        .reserved_bytes = trial->reserved_bytes,
        .device_bytes = trial->reserved_bytes + a->limit->overhead_bytes};
}

static void fill_head(const struct plim_answer *a, struct plim_result *result)
{
    const struct plim_device_info *device = a->device;
    const struct plim_limit *limit = a->limit;
    result->is_program = a->details->is_program;
    snprintf(result->spec.name, sizeof(result->spec.name), "%s", a->name);
    snprintf(result->spec.source, sizeof(result->spec.source), "%s", a->source);
    result->spec.hash = a->hash;
    if (a->lora) snprintf(result->spec.lora, sizeof(result->spec.lora), "%s", a->lora);
    if (a->quantization)
        snprintf(result->spec.quantization, sizeof(result->spec.quantization), "%s",
                 a->quantization);
    if (a->use_reentrant)
        snprintf(result->spec.use_reentrant, sizeof(result->spec.use_reentrant), "%s", a->use_reentrant);
    result->spec.host_speed = a->host_speed;
    if (a->defaults)
        snprintf(result->spec.defaults, sizeof(result->spec.defaults), "%s", a->defaults);
    result->device = (struct plim_result_device){.simulated = device->simulated,
                                                 .total_bytes = device->total_bytes,
                                                 .compute_capability = device->compute_capability,
                                                 .multiprocessors = device->multiprocessors,
                                                 .tdp_watts = device->based_on ? 0 : a->tdp_watts};
    snprintf(result->device.name, sizeof(result->device.name), "%s", device->name);
    snprintf(result->device.uri, sizeof(result->device.uri), "%s", device->uri);
    snprintf(result->device.based_on, sizeof(result->device.based_on), "%s",
             device->based_on ? device->based_on : "");
    result->limit =
        (struct plim_result_limit){.usable_bytes = limit->usable_bytes,
                                   .overhead_bytes = limit->overhead_bytes,
                                   .vllm_bytes = limit->vllm_bytes,
                                   .margin_bytes = limit->margin_bytes,
                                   .budget_bytes = limit->budget_bytes,
                                   .overhead_measured_bytes = limit->overhead_measured_bytes,
                                   .overhead_source = limit->overhead_source};
    snprintf(result->limit.alloc_conf, sizeof(result->limit.alloc_conf), "%s", limit->alloc_conf);
}

/* Returns the peak FLOP/s of the device for a setting's precision; 0 if not known. */
static double peak_rate(const struct plim_answer *a, const struct plim_setting *setting)
{
    int axis = plim_axes_find(&a->question->axes, "precision");
    return a->peak_rate && axis >= 0 ? a->peak_rate[setting->value[axis]] : 0;
}

static void fill_rates(const struct plim_answer *a, const struct plim_setting *setting,
                       const struct plim_trial *trial, double step_seconds,
                       struct plim_result_choice *out)
{
    double peak = peak_rate(a, setting);
    if (step_seconds <= 0) return;
    out->step_seconds = step_seconds;
    out->host_bound = trial->host_bound;
    out->samples_per_second = (double)out->effective_batch / step_seconds;
    if (a->question->axes.seq >= 0)
        out->tokens_per_second =
            out->samples_per_second * (double)plim_axes_tokens(&a->question->axes, setting);
    if (peak > 0 && a->details->flops_per_token)
        out->mfu =
            a->details->flops_per_token(trial) * out->tokens_per_second / (double)out->world / peak;
}

static void fill_choice(const struct plim_answer *a, const struct plim_batch_rule *rule,
                        const struct plim_candidate *candidate, struct plim_result_choice *out)
{
    const struct plim_batch_request *request = rule->request;
    out->present = true;
    out->setting = setting_of(a, &candidate->setting);
    out->world = request->world;
    out->effective_batch = candidate->batch.effective;
    out->effective_batch_target = plim_batch_target(rule);
    out->phase_count = request->phase_count;
    for (size_t i = 0; i < request->phase_count; i++) {
        int64_t accumulation = candidate->batch.phase_accumulation[i];
        out->phases[i] = (struct plim_result_phase){
            .epoch = request->phases[i].epoch,
            .accumulation = accumulation,
            .effective_batch = candidate->batch.micro_batch * accumulation * request->world};
    }
    out->peak = peak_of(a, &candidate->trial);
    out->verified = candidate->verified && !a->details->predicts;
    out->repeats_after_steps = candidate->trial.repeats_after;
    fill_rates(a, &candidate->setting, &candidate->trial, candidate->step_seconds, out);
}

/* --- points ----------------------------------------------------------------------------------- */

/* Sets the reason why a point has no best setting: the failure of its smallest micro-batch, or why it was skipped. */
static void fill_failure(const struct plim_answer *a, const struct plim_decision *d, size_t index,
                         struct plim_result_point *out)
{
    const struct plim_edge *edge = &d->edges.items[index];
    struct plim_batch batch;
    plim_batch_allowed(&d->rule, plim_batch_next(&d->rule, 0), &batch);
    struct plim_setting smallest =
        plim_space_setting(&d->space.points.items[index], &batch, a->prober->runner);
    const struct plim_sample *sample = plim_probe_known(a->prober, &smallest);
    const struct plim_cache_entry *need = plim_cache_find(a->prober->cache, &smallest);
    bool fell_short = index < d->searched; /* false for levels of a waterfall after the answer */
    bool fails = sample && sample->verdict != PLIM_OK;
    bool by_time = plim_objectives[d->question->objective].by_time;
    bool searched = edge->searched || (fell_short && !d->ended && !by_time);
    char rate[32];
    out->verdict = fails ? plim_verdict_name(sample->verdict) : searched ? "oom" : "untried";
    if (fails)
        plim_describe_failure(a, sample->verdict, &sample->trial, out->why, sizeof(out->why));
    if (fails && need && need->trial.reserved_bytes > a->limit->budget_bytes)
        out->short_bytes = need->trial.reserved_bytes - a->limit->budget_bytes;
    if (fails || searched) return;
    out->rate_limit = edge->rate_limit;
    snprintf(rate, sizeof(rate), "%.4g", edge->rate_limit);
    if (!fell_short && d->found)
        snprintf(out->why, sizeof(out->why), "an earlier step of the waterfall fits");
    else if (edge->rate_limit > 0 && d->found)
        snprintf(out->why, sizeof(out->why), "it cannot be faster than %s %s", rate,
                 plim_result_rate_unit(&out->best.setting));
    else
        snprintf(out->why, sizeof(out->why), "the search ended before it");
}

static void fill_point(const struct plim_answer *a, const struct plim_decision *d, size_t index,
                       struct plim_result_point *out)
{
    const struct plim_edge *edge = &d->edges.items[index];
    bool searched = edge->searched || !plim_objectives[d->question->objective].by_time;
    int best = searched
                   ? plim_choose_of_point(&d->candidates, d->question->objective, index) : -1;
    out->chosen = d->found && d->choice.point == index;
    out->verdict = "ok";
    if (out->chosen) {
        fill_choice(a, &d->rule, &d->choice, &out->best);
    } else if (best >= 0) {
        fill_choice(a, &d->rule, &d->candidates.list.items[best], &out->best);
    } else {
        out->best.setting = setting_of(a, &d->space.points.items[index]);
        fill_failure(a, d, index, out);
    }
}

static enum plim_status fill_points(const struct plim_answer *a, const struct plim_decision *d,
                                    struct plim_result *result, struct plim_error *err)
{
    for (size_t i = 0; i < d->space.points.count; i++) {
        struct plim_result_point point = {.verdict = "untried"};
        fill_point(a, d, i, &point);
        if (PLIM_ARRAY_PUSH(&result->points, point) != PLIM_OK) return plim_no_memory(err);
    }
    return PLIM_OK;
}

/* --- results ---------------------------------------------------------------------------------- */

static void fill_next(const struct plim_answer *a, const struct plim_beyond *beyond,
                      struct plim_result_next *out)
{
    out->micro_batch = beyond->micro_batch;
    out->verdict = beyond->tried ? plim_verdict_name(beyond->verdict) : "untried";
    if (beyond->tried && beyond->verdict != PLIM_OK)
        plim_describe_failure(a, beyond->verdict, &beyond->trial, out->why, sizeof(out->why));
}

static enum plim_status fill_samples(const struct plim_answer *a, struct plim_result *result,
                                     struct plim_error *err)
{
    for (size_t i = 0; i < a->prober->samples.count; i++) {
        const struct plim_sample *from = &a->prober->samples.items[i];
        struct plim_result_sample to = {.setting = setting_of(a, &from->setting),
                                        .simulated = a->device->simulated,
                                        .verdict = plim_verdict_name(from->verdict)};
        const struct plim_cache_entry *need = plim_cache_find(a->prober->cache, &from->setting);
        if (from->trial.verdict == PLIM_OK)
            to.peak = peak_of(a, &from->trial);
        else if (need)
            to.peak = peak_of(a, &need->trial);
        if (from->timed) to.seconds = from->trial.seconds;
        if (a->details->describe_sample && from->trial.details)
            a->details->describe_sample(&from->trial, &to);
        if (PLIM_ARRAY_PUSH(&result->samples, to) != PLIM_OK) return plim_no_memory(err);
    }
    return PLIM_OK;
}

static enum plim_status fill_advice(const struct plim_answer *a, const struct plim_advices *advices,
                                    struct plim_result *result, struct plim_error *err)
{
    for (size_t i = 0; i < advices->list.count; i++) {
        const struct plim_advice *from = &advices->list.items[i];
        struct plim_result_advice to = {.fits = from->fits, .peak = peak_of(a, &from->trial)};
        snprintf(to.change, sizeof(to.change), "%s", from->change);
        if (PLIM_ARRAY_PUSH(&result->advice, to) != PLIM_OK) return plim_no_memory(err);
    }
    return PLIM_OK;
}

/* Sets the size of the model from any trial that ran. */
static void fill_model(const struct plim_answer *a, struct plim_result *result)
{
    if (!a->details->describe_model) return;
    for (size_t i = 0; i < a->prober->samples.count && !result->spec.parameters; i++)
        if (a->prober->samples.items[i].trial.details)
            a->details->describe_model(&a->prober->samples.items[i].trial, result);
}

static void fill_details(const struct plim_answer *a, const struct plim_trial *trial,
                        struct plim_result *result)
{
    if (!trial->details) return;
    if (a->details->describe_memory) a->details->describe_memory(trial, result);
    if (a->details->describe_time) a->details->describe_time(trial, result);
}

static void fill_all_reduce(const struct plim_answer *a, const struct plim_trial *trial,
                            struct plim_result *result)
{
    struct plim_result_all_reduce *out = &result->all_reduce;
    if (trial->link_bytes_per_second <= 0) return;
    *out = (struct plim_result_all_reduce){.bytes_per_second = trial->link_bytes_per_second,
                                           .latency_seconds = trial->link_latency_seconds,
                                           .waits_seconds = trial->communication_seconds,
                                           .gpus = trial->link_gpus};
    if (out->gpus && a->nccl) snprintf(out->nccl, sizeof(out->nccl), "%s", a->nccl);
    if (!out->gpus && a->why_modelled)
        snprintf(out->why_not, sizeof(out->why_not), "%s", a->why_modelled);
}

enum plim_status plim_answer_decision(const struct plim_answer *a,
                                      const struct plim_decision *decision,
                                      struct plim_result *result, struct plim_error *err)
{
    result->kind = PLIM_RESULT_DECISION;
    result->objective = plim_objectives[a->question->objective].name;
    result->unsupported = !decision->found && !decision->has_smallest && a->limit->budget_bytes > 0 &&
                          decision->smallest_sample.verdict == PLIM_UNSUPPORTED;
    fill_head(a, result);
    if (decision->found) {
        fill_choice(a, &decision->rule, &decision->choice, &result->choice);
        fill_details(a, &decision->choice.trial, result);
        fill_all_reduce(a, &decision->choice.trial, result);
    }
    if (decision->was_planned)
        result->prediction =
            (struct plim_result_prediction){.step_seconds = decision->planned_seconds,
                                            .reserved_bytes = decision->planned_reserved_bytes,
                                            .largest_micro_batch = decision->planned_edge};
    if (decision->has_largest) {
        fill_choice(a, &decision->rule, &decision->largest, &result->largest_fit);
        fill_next(a, &decision->after_largest, &result->next);
    }
    fill_model(a, result);
    if (!decision->found && decision->has_smallest)
        result->short_bytes = decision->smallest_reserved_bytes - a->limit->budget_bytes;
    if (result->short_bytes < 0) result->short_bytes = 0;
    result->ended = decision->failed ? PLIM_LOST : decision->ended;
    result->interrupted = result->ended != PLIM_OK;
    plim_reasons_decision(a, decision, result);
    enum plim_status st = fill_points(a, decision, result, err);
    if (!st) st = fill_samples(a, result, err);
    return st ? st : fill_advice(a, &decision->advices, result, err);
}

enum plim_status plim_answer_inspection(const struct plim_answer *a,
                                        const struct plim_inspection *inspection,
                                        struct plim_result *result, struct plim_error *err)
{
    const struct plim_batch_request *request = &a->question->batch;
    const struct plim_setting *setting = &inspection->setting;
    const struct plim_trial *trial = &inspection->trial;
    struct plim_result_choice *choice = &result->choice;
    result->kind = PLIM_RESULT_EXPLANATION;
    fill_head(a, result);
    if (a->details->describe_model) a->details->describe_model(trial, result);
    choice->present = true;
    choice->verified = !a->details->predicts;
    choice->repeats_after_steps = trial->repeats_after;
    choice->setting = setting_of(a, setting);
    choice->world = request->world;
    choice->effective_batch = setting->micro_batch * setting->accumulation * request->world;
    choice->effective_batch_target = request->effective_batch;
    choice->peak = peak_of(a, trial);
    fill_rates(a, setting, trial, trial->seconds, choice);
    fill_details(a, trial, result);
    fill_all_reduce(a, trial, result);
    result->fits = inspection->fits;
    if (!result->fits && trial->reserved_bytes > a->limit->budget_bytes)
        result->short_bytes = trial->reserved_bytes - a->limit->budget_bytes;
    if (a->details->describe_steps) a->details->describe_steps(trial, result);
    plim_reasons_inspection(a, inspection, result);
    return fill_advice(a, &inspection->advices, result, err);
}
