#include "autotune/base/text.h"
#include "outcome_internal.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

const char *plim_verdict_name(enum plim_status verdict)
{
    static const struct {
        enum plim_status status;
        const char *name;
    } names[] = {
        {PLIM_OK, "ok"},           {PLIM_OOM, "oom"},         {PLIM_UNSUPPORTED, "unsupported"},
        {PLIM_TIMEOUT, "timeout"}, {PLIM_CRASHED, "crashed"}, {PLIM_UNSTABLE, "unstable"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].status == verdict) return names[i].name;
    return "lost";
}

void plim_describe_failure(enum plim_status verdict, const struct plim_replay *replay, char *out,
                           size_t size)
{
    char asked[16];
    if (verdict != PLIM_OOM)
        snprintf(out, size, "%s", replay->why[0] ? replay->why : plim_status_text(verdict));
    else if (replay->oom_asked_bytes <= 0)
        snprintf(out, size, "%s", replay->why[0] ? replay->why : "out of memory");
    else
        snprintf(out, size, "out of memory: %s more for %s (%s)",
                 plim_format_bytes(replay->oom_asked_bytes, asked),
                 plim_memory_class_name(replay->oom_class), replay->oom_where);
}

/* --- of a decision ---------------------------------------------------------------------------- */

/* Micro-batches between the choice and the next allowed one. */
static void why_not_between(const struct plim_decision *d, struct plim_result *result)
{
    int64_t first = d->choice.batch.micro_batch + 1, last = d->after_choice.micro_batch - 1;
    int64_t target = plim_batch_target(&d->rule);
    char which[96];
    if (!d->after_choice.micro_batch || last < first || !target || d->rule.spec->micro_batch.count)
        return;
    if (first == last)
        snprintf(which, sizeof(which), "Micro-batch %" PRId64, first);
    else
        snprintf(which, sizeof(which), "No micro-batch from %" PRId64 " to %" PRId64, first, last);
    bool single = first == last, exact = d->rule.spec->effective_batch_tolerance <= 0;
    plim_result_reason(result, "%s %s the effective batch of %" PRId64 "%s.", which,
                       exact ? (single ? "does not divide" : "divides")
                             : (single ? "does not meet" : "meets"),
                       target, exact ? "" : " within the tolerance");
}

/* The next larger one fits too: then it is no better by the objective. */
static void why_not_better(const struct plim_decision *d, struct plim_result *result)
{
    const struct plim_beyond *next = &d->after_choice;
    double gain = next->tokens_per_second / d->choice.tokens_per_second - 1;
    int64_t bytes = next->replay.peak_reserved_bytes - d->choice.replay.peak_reserved_bytes;
    char more[16];
    plim_format_bytes(bytes > 0 ? bytes : 0, more);
    if (d->objective == PLIM_OBJECTIVE_LARGEST_BATCH)
        plim_result_reason(
            result, "Micro-batch %" PRId64 " fits by luck of the allocator: smaller ones do not.",
            next->micro_batch);
    else if (d->objective == PLIM_OBJECTIVE_LEAST_MEMORY)
        plim_result_reason(result, "Micro-batch %" PRId64 " fits too, but takes %s more.",
                           next->micro_batch, more);
    else if (gain > PLIM_TIE_SHARE)
        plim_result_reason(
            result, "Micro-batch %" PRId64 " fits by luck of the allocator: smaller ones do not.",
            next->micro_batch);
    else if (gain < -0.0005)
        plim_result_reason(result, "Micro-batch %" PRId64 " fits too, but is %.1f %% slower.",
                           next->micro_batch, -100 * gain);
    else
        plim_result_reason(result,
                           "Micro-batch %" PRId64
                           " fits too, but is only %.1f %% faster (noise is 1 %%) and takes "
                           "%s more.",
                           next->micro_batch, fabs(100 * gain), more);
}

static void why_not_next(const struct plim_decision *d, struct plim_result *result)
{
    const struct plim_beyond *next = &d->after_choice;
    char failure[160];
    if (!next->micro_batch) {
        if (plim_batch_target(&d->rule))
            plim_result_reason(result, "A larger micro-batch would change the effective batch.");
        return;
    }
    if (!next->tried) return;
    if (next->verdict == PLIM_OK) {
        why_not_better(d, result);
        return;
    }
    plim_describe_failure(next->verdict, &next->replay, failure, sizeof(failure));
    plim_result_reason(result, "Micro-batch %" PRId64 " does not %s: %s.", next->micro_batch,
                       next->verdict == PLIM_OOM ? "fit" : "run", failure);
}

static void why_largest(const struct plim_decision *d, struct plim_result *result)
{
    char failure[160];
    const struct plim_beyond *next = &d->after_largest;
    if (!d->has_largest ||
        (d->found && d->largest.batch.micro_batch == d->choice.batch.micro_batch))
        return;
    if (next->tried && next->verdict != PLIM_OK) {
        plim_describe_failure(next->verdict, &next->replay, failure, sizeof(failure));
        plim_result_reason(
            result, "The largest micro-batch that fits is %" PRId64 "; %" PRId64 " does not: %s.",
            d->largest.batch.micro_batch, next->micro_batch, failure);
    } else {
        plim_result_reason(result, "The largest micro-batch that fits is %" PRId64 ".",
                           d->largest.batch.micro_batch);
    }
}

static void tell_deviation(const struct plim_decision *d, struct plim_result *result)
{
    int64_t target = plim_batch_target(&d->rule), effective = d->choice.batch.effective;
    if (target && effective != target)
        plim_result_reason(result,
                           "The effective batch is %" PRId64 " instead of %" PRId64
                           " (%+.2f %%), within the tolerance.",
                           effective, target,
                           100.0 * (double)(effective - target) / (double)target);
}

static void tell_limits_of_choice(const struct plim_spec *spec, const struct plim_decision *d,
                                  struct plim_result *result)
{
    if (d->choice.replay.retries)
        plim_result_reason(
            result,
            "It only fits because the allocator returns cached memory and asks again (%" PRId64
            " times).",
            d->choice.replay.retries);
    if (!d->choice.verified)
        plim_result_reason(result, "Replayed with %d of the %" PRId64 " micro-steps of a step.",
                           PLIM_PROBED_STEPS, d->choice.batch.accumulation);
    if (spec->world > 1)
        plim_result_reason(
            result, "Rates are %" PRId64 " times those of one GPU; communication is not counted.",
            spec->world);
}

static void tell_end(const struct plim_sample *sample, const char *failure,
                     struct plim_result *result)
{
    plim_result_reason(result, sample->verdict == PLIM_OOM ? "It ends %s." : "It fails: %s.",
                       failure);
}

static void why_nothing_fits(const struct plim_card *card, const struct plim_decision *d,
                             struct plim_result *result)
{
    char needs[16], budget[16], failure[160];
    const struct plim_setting *s = &d->smallest;
    if (card->limit.budget_bytes <= 0) {
        plim_result_reason(result, "Overhead and margin leave nothing of %s.",
                           plim_format_bytes(card->limit.usable_bytes, budget));
    } else if (d->has_smallest) {
        plim_format_bytes(d->smallest_reserved_bytes, needs);
        plim_format_bytes(card->limit.budget_bytes, budget);
        if (d->rule.spec->variants && d->rule.spec->micro_batch.count == 1)
            plim_result_reason(result, "Nothing fits. The program needs %s; there is %s.", needs,
                               budget);
        else if (d->rule.spec->variants)
            plim_result_reason(
                result, "Nothing fits. With a batch of %" PRId64 " the program needs %s; there is %s.",
                s->micro_batch, needs, budget);
        else
            plim_result_reason(result,
                               "Nothing fits. Micro-batch %" PRId64 " at sequence %" PRId64
                               " (%s, %s, checkpointing %s) "
                               "needs %s; there is %s.",
                               s->micro_batch, s->seq, plim_precision_names[s->precision],
                               plim_optimizer_names[s->optimizer],
                               plim_checkpointing_names[s->checkpointing], needs, budget);
        plim_describe_failure(d->smallest_sample.verdict, &d->smallest_sample.replay, failure,
                              sizeof(failure));
        if (d->smallest_sample.verdict != PLIM_OK) tell_end(&d->smallest_sample, failure, result);
    } else if (!d->ended && d->smallest_sample.verdict != PLIM_OK) {
        plim_describe_failure(d->smallest_sample.verdict, &d->smallest_sample.replay, failure,
                              sizeof(failure));
        plim_result_reason(result, "Nothing can run with these settings: %s.", failure);
    } else if (!d->ended) {
        plim_result_reason(result, "Nothing can run with these settings.");
    }
}

static void tell_sequence(const struct plim_spec *spec, const struct plim_decision *d,
                          struct plim_result *result)
{
    if (!spec->seq.count && d->found && d->objective != PLIM_OBJECTIVE_LONGEST_SEQUENCE)
        plim_result_reason(
            result, "No sequence length was given: %" PRId64 " is %s.", d->choice.setting.seq,
            d->choice.setting.seq == spec->model.positions ? "the model's" : "the default");
}

/* On a real card: how far the plan was off. */
static void tell_prediction(const struct plim_decision *d, struct plim_result *result)
{
    char planned[16], measured[16];
    if (!d->was_planned || d->planned_seconds <= 0 || d->choice.step_seconds <= 0) return;
    double off = 100 * (d->choice.step_seconds / d->planned_seconds - 1);
    int64_t bytes = d->choice.replay.peak_reserved_bytes;
    plim_format_bytes(d->planned_reserved_bytes, planned);
    plim_format_bytes(bytes, measured);
    if (bytes == d->planned_reserved_bytes)
        plim_result_reason(result,
                           "Planned were %.3g s a step, it took %+.0f %%; and %s reserved, which "
                           "it took exactly.",
                           d->planned_seconds, off, planned);
    else
        plim_result_reason(result,
                           "Planned were %.3g s a step, it took %+.0f %%; and %s reserved, it took "
                           "%s.",
                           d->planned_seconds, off, planned, measured);
    if (d->has_largest && d->planned_edge && d->planned_edge != d->largest.batch.micro_batch)
        plim_result_reason(
            result, "The largest micro-batch was planned to be %" PRId64 ", and is %" PRId64 ".",
            d->planned_edge, d->largest.batch.micro_batch);
}

static void tell_overhead(const struct plim_card *card, struct plim_result *result)
{
    char bytes[16];
    if (card->limit.overhead_measured_bytes)
        plim_result_reason(result, "plimsoll's own process took %s beside its tensors.",
                           plim_format_bytes(card->limit.overhead_measured_bytes, bytes));
    if (card->limit.overhead_source && !strcmp(card->limit.overhead_source, "estimate"))
        plim_result_reason(
            result,
            "The framework's own %s are an estimate for this kind of card (--overhead sets it).",
            plim_format_bytes(card->limit.overhead_bytes, bytes));
}

void plim_reasons_decision(const struct plim_card *card, const struct plim_spec *spec,
                           const struct plim_decision *d, struct plim_result *result)
{
    if (d->ended)
        plim_result_reason(result, "The search was ended early (%s): this is the best so far.",
                           d->ended_why[0] ? d->ended_why : plim_status_text(d->ended));
    if (d->found) {
        why_not_between(d, result);
        why_not_next(d, result);
        why_largest(d, result);
        tell_deviation(d, result);
        tell_limits_of_choice(spec, d, result);
    } else {
        why_nothing_fits(card, d, result);
        why_largest(d, result);
    }
    if (d->found) tell_prediction(d, result);
    tell_sequence(spec, d, result);
    tell_overhead(card, result);
}

/* --- of an explanation ------------------------------------------------------------------------ */

void plim_reasons_explanation(const struct plim_card *card, const struct plim_explanation *e,
                              struct plim_result *result)
{
    char needs[16], budget[16], failure[160];
    const struct plim_replay *replay = &e->replay;
    plim_format_bytes(replay->peak_reserved_bytes, needs);
    plim_format_bytes(card->limit.budget_bytes > 0 ? card->limit.budget_bytes : 0, budget);
    if (e->fits) {
        plim_result_reason(result, "It fits: %s reserved at the peak, of %s.", needs, budget);
        if (replay->retries)
            plim_result_reason(
                result,
                "It only fits because the allocator returns cached memory and asks again (%" PRId64
                " times).",
                replay->retries);
    } else {
        plim_result_reason(result,
                           "It does not fit: without a limit %s would be reserved; there is %s.",
                           needs, budget);
        if (e->under_budget.verdict != PLIM_OK) {
            plim_describe_failure(e->under_budget.verdict, &e->under_budget.replay, failure,
                                  sizeof(failure));
            tell_end(&e->under_budget, failure, result);
        }
    }
    tell_overhead(card, result);
}
