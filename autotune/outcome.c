#include "outcome_internal.h"
#include <stdio.h>

static struct plim_result_setting setting_of(const struct plim_setting *s)
{
    return (struct plim_result_setting){.micro_batch = s->micro_batch,
                                        .seq = s->seq,
                                        .accumulation = s->accumulation,
                                        .precision = plim_precision_names[s->precision],
                                        .optimizer = plim_optimizer_names[s->optimizer],
                                        .checkpointing = plim_checkpointing_names[s->checkpointing],
                                        .attention = plim_attention_names[s->attention],
                                        .sharding = plim_sharding_names[s->sharding]};
}

static struct plim_result_peak peak_of(const struct plim_card *card, int64_t allocated,
                                       int64_t reserved)
{
    return (struct plim_result_peak){.allocated_bytes = allocated, .reserved_bytes = reserved,
                                     .device_bytes = reserved + card->limit.overhead_bytes};
}

static struct plim_result_peak replay_peak(const struct plim_card *card,
                                           const struct plim_replay *replay)
{
    return peak_of(card, replay->peak_allocated_bytes, replay->peak_reserved_bytes);
}

static void fill_head(const struct plim_card *card, const struct plim_spec *spec,
                      struct plim_result *result)
{
    snprintf(result->spec.name, sizeof(result->spec.name), "%s", spec->name);
    snprintf(result->spec.source, sizeof(result->spec.source), "%s", spec->source);
    result->spec.hash = spec->hash;
    result->device = card->device;
    result->limit = card->limit;
}

static void fill_parameters(const struct plim_replay *replay, struct plim_result *result)
{
    result->spec.parameters = replay->parameters;
    result->spec.trainable_parameters = replay->trainable_parameters;
}

static void fill_breakdown(const struct plim_card *card, const struct plim_replay *replay,
                           struct plim_result_breakdown *out)
{
    const int64_t *bytes = replay->class_bytes;
    *out = (struct plim_result_breakdown){
        .present = true,
        .parameters_bytes = bytes[PLIM_MEMORY_PARAMETERS],
        .gradients_bytes = bytes[PLIM_MEMORY_GRADIENTS],
        .optimizer_bytes = bytes[PLIM_MEMORY_OPTIMIZER],
        .activations_bytes = bytes[PLIM_MEMORY_ACTIVATIONS] + bytes[PLIM_MEMORY_LOGITS],
        .temporaries_bytes = bytes[PLIM_MEMORY_TEMPORARIES],
        .workspace_bytes = bytes[PLIM_MEMORY_WORKSPACE],
        .cached_bytes = replay->peak_reserved_bytes - replay->peak_allocated_bytes,
        .overhead_bytes = card->limit.overhead_bytes};
}

static void fill_rates(const struct plim_card *card, const struct plim_replay *replay,
                       double step_seconds, struct plim_result_choice *out)
{
    double peak = card->peak_rate[0];
    for (size_t i = 0; i < PLIM_PRECISION_COUNT; i++)
        if (out->setting.precision == plim_precision_names[i]) peak = card->peak_rate[i];
    if (step_seconds <= 0) return;
    out->step_seconds = step_seconds;
    out->samples_per_second = (double)out->effective_batch / step_seconds;
    out->tokens_per_second = out->samples_per_second * (double)out->setting.seq;
    if (peak > 0)
        out->mfu =
            replay->model_flops_per_token * out->tokens_per_second / (double)out->world / peak;
}

static void fill_choice(const struct plim_card *card, const struct plim_spec *spec,
                        const struct plim_batch_rule *rule, const struct plim_candidate *candidate,
                        struct plim_result_choice *out)
{
    out->present = true;
    out->setting = setting_of(&candidate->setting);
    out->world = spec->world;
    out->effective_batch = candidate->batch.effective;
    out->effective_batch_target = plim_batch_target(rule);
    out->phase_count = spec->schedule_count;
    for (size_t i = 0; i < spec->schedule_count; i++) {
        int64_t accumulation = candidate->batch.phase_accumulation[i];
        out->phases[i] = (struct plim_result_phase){
            .epoch = spec->schedule[i].epoch, .accumulation = accumulation,
            .effective_batch = candidate->batch.micro_batch * accumulation * spec->world};
    }
    out->peak = replay_peak(card, &candidate->replay);
    out->verified = candidate->verified;
    fill_rates(card, &candidate->replay, candidate->step_seconds, out);
}

static void fill_next(const struct plim_beyond *beyond, struct plim_result_next *out)
{
    out->micro_batch = beyond->micro_batch;
    out->verdict = beyond->tried ? plim_verdict_name(beyond->verdict) : "untried";
    if (beyond->tried && beyond->verdict != PLIM_OK)
        plim_describe_failure(beyond->verdict, &beyond->replay, out->why, sizeof(out->why));
}

static enum plim_status fill_samples(const struct plim_card *card, const struct plim_prober *prober,
                                     struct plim_result *result, struct plim_error *err)
{
    for (size_t i = 0; i < prober->samples.count; i++) {
        const struct plim_sample *from = &prober->samples.items[i];
        struct plim_result_sample to = {.setting = setting_of(&from->setting),
                                        .simulated = card->device.simulated,
                                        .verdict = plim_verdict_name(from->verdict)};
        const struct plim_memo_entry *need = plim_memo_find(prober->memo, &from->setting);
        if (from->replay.verdict == PLIM_OK) to.peak = replay_peak(card, &from->replay);
        else if (need) to.peak = replay_peak(card, &need->replay);
        if (from->timed) to.seconds = from->replay.step[PLIM_REPLAY_STEPS - 1].seconds;
        to.repeats = from->timing.repeats;
        to.noisy = from->timing.noisy;
        if (PLIM_ARRAY_PUSH(&result->samples, to) != PLIM_OK)
            return plim_fail(err, PLIM_NOMEM, "out of host memory");
    }
    return PLIM_OK;
}

static enum plim_status fill_advice(const struct plim_card *card,
                                    const struct plim_advices *advices, struct plim_result *result,
                                    struct plim_error *err)
{
    for (size_t i = 0; i < advices->list.count; i++) {
        const struct plim_advice *from = &advices->list.items[i];
        struct plim_result_advice to = {.fits = from->fits};
        snprintf(to.change, sizeof(to.change), "%s", from->change);
        to.peak = peak_of(card, from->peak_allocated_bytes, from->peak_reserved_bytes);
        if (PLIM_ARRAY_PUSH(&result->advice, to) != PLIM_OK)
            return plim_fail(err, PLIM_NOMEM, "out of host memory");
    }
    return PLIM_OK;
}

/* Any replay that ran knows the parameters. */
static void parameters_from_samples(const struct plim_prober *prober, struct plim_result *result)
{
    for (size_t i = 0; i < prober->samples.count && !result->spec.parameters; i++)
        fill_parameters(&prober->samples.items[i].replay, result);
}

enum plim_status plim_outcome_decision(const struct plim_card *card, const struct plim_spec *spec,
                                       const struct plim_prober *prober,
                                       const struct plim_decision *decision,
                                       struct plim_result *result, struct plim_error *err)
{
    result->kind = PLIM_RESULT_DECISION;
    fill_head(card, spec, result);
    if (decision->found) {
        fill_choice(card, spec, &decision->rule, &decision->choice, &result->choice);
        fill_breakdown(card, &decision->choice.replay, &result->breakdown);
    }
    if (decision->was_planned)
        result->prediction =
            (struct plim_result_prediction){.step_seconds = decision->planned_seconds,
                                            .reserved_bytes = decision->planned_reserved_bytes,
                                            .largest_micro_batch = decision->planned_edge};
    if (decision->has_largest) {
        fill_choice(card, spec, &decision->rule, &decision->largest, &result->largest_fit);
        fill_next(&decision->after_largest, &result->next);
    }
    parameters_from_samples(prober, result);
    if (!decision->found && decision->has_smallest)
        result->short_bytes = decision->smallest_reserved_bytes - card->limit.budget_bytes;
    if (result->short_bytes < 0) result->short_bytes = 0;
    result->ended = decision->failed ? PLIM_LOST : decision->ended;
    result->interrupted = result->ended != PLIM_OK;
    plim_reasons_decision(card, spec, decision, result);
    enum plim_status st = fill_samples(card, prober, result, err);
    return st ? st : fill_advice(card, &decision->advices, result, err);
}

enum plim_status plim_outcome_explanation(const struct plim_card *card,
                                          const struct plim_spec *spec,
                                          const struct plim_explanation *explanation,
                                          struct plim_result *result, struct plim_error *err)
{
    const struct plim_replay *replay = &explanation->replay;
    struct plim_result_choice *setting = &result->choice;
    result->kind = PLIM_RESULT_EXPLANATION;
    fill_head(card, spec, result);
    fill_parameters(replay, result);
    setting->present = true;
    setting->verified = true;
    setting->setting = setting_of(&explanation->setting);
    setting->world = spec->world;
    setting->effective_batch =
        explanation->setting.micro_batch * explanation->setting.accumulation * spec->world;
    setting->effective_batch_target = spec->effective_batch;
    setting->peak = replay_peak(card, replay);
    fill_rates(card, replay, replay->step[PLIM_REPLAY_STEPS - 1].seconds, setting);
    fill_breakdown(card, replay, &result->breakdown);
    result->fits = explanation->fits;
    if (!result->fits && replay->peak_reserved_bytes > card->limit.budget_bytes)
        result->short_bytes = replay->peak_reserved_bytes - card->limit.budget_bytes;
    result->step_count = (size_t)replay->steps_done;
    for (size_t i = 0; i < result->step_count; i++) {
        const struct plim_replay_step *step = &replay->step[i];
        result->steps[i] =
            (struct plim_result_step){.after_forward_bytes = step->after_forward_bytes,
                                      .peak_allocated_bytes = step->peak_allocated_bytes,
                                      .peak_reserved_bytes = step->peak_reserved_bytes,
                                      .end_allocated_bytes = step->end_allocated_bytes};
    }
    plim_reasons_explanation(card, explanation, result);
    return fill_advice(card, &explanation->advices, result, err);
}
