#include "failure.h"
#include "reasons.h"
#include "autotune/base/text.h"
#include "autotune/exec/execution.h"
#include "devices/allocator/allocator.h"
#include "reasons_parts.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* --- of a decision ---------------------------------------------------------------------------- */

/* Tells why the micro-batches between the choice and the next allowed one cannot be chosen. */
static void why_not_between(const struct plim_decision *d, struct plim_result *result)
{
    int64_t first = d->choice.batch.micro_batch + 1, last = d->after_choice.micro_batch - 1;
    int64_t target = plim_batch_target(&d->rule);
    char which[96];
    if (!d->after_choice.micro_batch || last < first || !target || d->rule.request->listed_count)
        return;
    if (first == last)
        snprintf(which, sizeof(which), "Micro-batch %" PRId64, first);
    else
        snprintf(which, sizeof(which), "No micro-batch from %" PRId64 " to %" PRId64, first, last);
    bool single = first == last, exact = d->rule.request->effective_batch_tolerance <= 0;
    plim_result_reason(result, "%s %s the effective batch of %" PRId64 "%s.", which,
                       exact ? (single ? "does not divide" : "divides")
                             : (single ? "does not meet" : "meets"),
                       target, exact ? "" : " within the tolerance");
}

/* The next larger micro-batch fits too: tells that it is not better by the objective, or lies beyond the edge. */
static void why_not_better(const struct plim_decision *d, struct plim_result *result)
{
    const struct plim_beyond *next = &d->after_choice;
    const struct plim_objective_row *objective = &plim_objectives[d->question->objective];
    double gain = next->tokens_per_second / d->choice.tokens_per_second - 1;
    int64_t bytes = next->trial.reserved_bytes - d->choice.trial.reserved_bytes;
    struct plim_candidate larger = d->choice;
    char more[16];
    larger.trial = next->trial;
    larger.batch.micro_batch = next->micro_batch;
    plim_format_bytes(bytes > 0 ? bytes : 0, more);
    double share = objective->tie_share; /* the largest gain that is not worth more memory */
    bool better = objective->by_time ? gain > share : objective->worth(&larger) > objective->worth(&d->choice);
    if (better)
        plim_result_reason(
            result,
            "Micro-batch %" PRId64 " happens to fit, but smaller ones do not: not to be relied on.",
            next->micro_batch);
    else if (!objective->by_time)
        plim_result_reason(result, "Micro-batch %" PRId64 " fits too, but takes %s more.",
                           next->micro_batch, more);
    else if (gain < -0.0005)
        plim_result_reason(result, "Micro-batch %" PRId64 " fits too, but is %.1f %% slower.",
                           next->micro_batch, -100 * gain);
    else
        plim_result_reason(result,
                           "Micro-batch %" PRId64
                           " fits too, but is only %.1f %% faster (%s) and takes "
                           "%s more.",
                           next->micro_batch, fabs(100 * gain),
                           share > PLIM_TIE_SHARE ? "differences below 10 % are ignored here" : "noise is 1 %", more);
}

static void why_not_next(const struct plim_answer *a, const struct plim_decision *d,
                         struct plim_result *result)
{
    const struct plim_beyond *next = &d->after_choice;
    char failure[256];
    if (!next->micro_batch) {
        const struct plim_batch_request *asked = d->rule.request;
        if (plim_batch_target(&d->rule)) {
            if (!plim_batch_next(&d->rule, d->choice.batch.micro_batch)) /* otherwise the search ran out of time */
                plim_result_reason(result, "A larger micro-batch would change the effective batch.");
        } else if (asked->last > asked->first && d->choice.batch.micro_batch == asked->last)
            plim_result_reason(result, "Micro-batch %" PRId64 " is the end of the range; larger ones may fit too.",
                               asked->last);
        return;
    }
    if (!next->tried) return;
    if (next->verdict == PLIM_OK) {
        why_not_better(d, result);
        return;
    }
    plim_describe_failure(a, next->verdict, &next->trial, failure, sizeof(failure));
    plim_result_reason(result, "Micro-batch %" PRId64 " does not %s: %s.", next->micro_batch,
                       next->verdict == PLIM_OOM ? "fit" : "run", failure);
}

static void why_largest(const struct plim_answer *a, const struct plim_decision *d,
                        struct plim_result *result)
{
    char failure[256];
    const struct plim_beyond *next = &d->after_largest;
    if (!d->has_largest ||
        (d->found && d->largest.batch.micro_batch == d->choice.batch.micro_batch))
        return;
    if (next->tried && next->verdict != PLIM_OK) {
        plim_describe_failure(a, next->verdict, &next->trial, failure, sizeof(failure));
        plim_result_reason(
            result, "The largest micro-batch that fits is %" PRId64 "; %" PRId64 " does not: %s.",
            d->largest.batch.micro_batch, next->micro_batch, failure);
    } else {
        plim_result_reason(result, "The largest micro-batch that fits is %" PRId64 ".",
                           d->largest.batch.micro_batch);
    }
}

static void add_deviation(const struct plim_decision *d, struct plim_result *result)
{
    int64_t target = plim_batch_target(&d->rule), effective = d->choice.batch.effective;
    if (target && effective != target)
        plim_result_reason(result,
                           "The effective batch is %" PRId64 " instead of %" PRId64
                           " (%+.2f %%), within the tolerance.",
                           effective, target,
                           100.0 * (double)(effective - target) / (double)target);
}

static void add_retries(const struct plim_trial *trial, struct plim_result *result)
{
    if (trial->retries)
        plim_result_reason(result,
                           "It fits only because the allocator frees cached memory and retries, %" PRId64 " time%s.",
                           trial->retries, trial->retries == 1 ? "" : "s");
}

/* Tells how it was proven that any number of steps fits, if it took more than four steps or there were retries. */
static void add_repeats(const struct plim_answer *a, const struct plim_trial *trial,
                        struct plim_result *result)
{
    enum { EXPECTED_STEPS = 4 };
    bool is_news = trial->retries || trial->repeats_after > EXPECTED_STEPS;
    if (trial->repeats_after && is_news)
        plim_result_reason(result,
                           "Everything repeats after %d replayed steps, so all later steps fit, too.",
                           trial->repeats_after);
    else if (trial->small_blocks_move)
        plim_result_reason(result,
                           "%d steps were replayed: blocks of more than 1 MiB repeat, and smaller ones, whose places "
                           "change, needed no more memory.",
                           trial->steps_done);
    else if (!trial->repeats_after && trial->steps_done > EXPECTED_STEPS && !a->details->is_program)
        plim_result_reason(result, "%d steps were replayed, and did not repeat.",
                           trial->steps_done);
}

/* Tells if a micro-batch of this point does not fit although a larger one does. */
static void add_hole(const struct plim_answer *a, const struct plim_setting *point,
                     struct plim_result *result)
{
    int64_t fits = 0, hole = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < a->prober->samples.count; i++) {
            const struct plim_sample *sample = &a->prober->samples.items[i];
            int64_t b = sample->setting.micro_batch;
            if (!plim_setting_same_point(&sample->setting, point)) continue;
            if (!pass && sample->verdict == PLIM_OK && b > fits) fits = b;
            if (pass && sample->verdict == PLIM_OOM && b < fits && b > hole) hole = b;
        }
    if (hole)
        plim_result_reason(result,
                           "Memory is fragmented here: micro-batch %" PRId64 " does not fit, %" PRId64
                           " does.%s",
                           hole, fits,
                           a->prober->runner->costly
                               ? ""
                               : " So the next two sizes after each that fails were tried.");
}

/* Tells if the size of a block of the recording is a guess, and another size could add or remove a segment of more than
 * 1 % of the peak. */
static void add_guess(const struct plim_answer *a, const struct plim_trial *trial,
                      struct plim_result *result)
{
    const struct plim_allocator_config usual = PLIM_ALLOCATOR_CONFIG_DEFAULT;
    int64_t guessed = a->details->guessed_bytes ? a->details->guessed_bytes(trial) : 0;
    int64_t segment_bytes = plim_allocator_segment_bytes(&usual, guessed);
    char bytes[16], segment[16];
    if (!guessed || segment_bytes <= trial->reserved_bytes / 100) return;
    plim_result_reason(result,
                       "Blocks that follow no formula (library workspaces, rounded sizes), of up to %s each, are "
                       "known only at the recorded batches, and change the peak by a segment of %s or more: record "
                       "batches near this one to be sure.",
                       plim_format_bytes(guessed, bytes), plim_format_bytes(segment_bytes, segment));
}

static void add_recording(const struct plim_answer *a, const char *proof, struct plim_result *result)
{
    if (a->details->predicts)
        plim_result_reason(result,
                           "Predicted from a recording of one step: %s. It does not contain what later steps do "
                           "differently (longer rows, an evaluation, samples).",
                           proof);
}

static void add_limits_of_choice(const struct plim_answer *a, const struct plim_decision *d,
                                 struct plim_result *result)
{
    const struct plim_candidate *choice = &d->choice;
    int64_t probed = plim_runner_probed(a->prober->runner, choice->batch.accumulation);
    add_retries(&choice->trial, result);
    if (choice->verified) add_repeats(a, &choice->trial, result);
    else if (probed < choice->batch.accumulation)
        plim_result_reason(result,
                           "Run with %" PRId64 " of the %" PRId64 " micro-steps of a step.", probed,
                           choice->batch.accumulation);
    else
        plim_result_reason(result, "It was not proven that all later steps fit.");
    add_recording(a, "--prove runs the program", result);
    add_guess(a, &choice->trial, result);
    if (a->details->predicts)
        plim_result_reason(result, choice->step_seconds > 0
                                       ? "Its seconds are simulated: the recorded launches, by the clock of the "
                                         "simulated GPU."
                                       : "The recording has no launches, so nothing is chosen by time.");
    add_hole(a, &choice->setting, result);
    plim_reasons_world(a, &choice->setting, &choice->trial, result);
}

static void add_sequence(const struct plim_answer *a, const struct plim_decision *d,
                         struct plim_result *result)
{
    const struct plim_question *q = a->question;
    if (!q->seq_by_default || !d->found || plim_objectives[q->objective].wants_longest) return;
    plim_result_reason(result, "No sequence length was given: %" PRId64 " is %s.", d->choice.seq,
                       d->choice.seq == q->seq_most ? "the model's" : "the default");
}

/* Tells which level of the waterfall has the answer. */
static void add_waterfall(const struct plim_answer *a, const struct plim_decision *d,
                          struct plim_result *result)
{
    size_t level = 0, levels = d->space.level_ends.count;
    if (!a->question->axes.waterfall_count || !d->found) return;
    while (d->choice.point >= d->space.level_ends.items[level]) level++;
    if (level)
        plim_result_reason(result,
                           "Of the %zu steps of the waterfall the first %zu did not fit: the answer "
                           "is the first that does.",
                           levels, level);
    else
        plim_result_reason(result, "It fits without giving anything up: the first of the "
                                   "waterfall's %zu steps.", levels);
}

/* On a real GPU: tells the error of the plan. */
static void add_prediction(const struct plim_decision *d, struct plim_result *result)
{
    char planned[16], measured[16];
    if (!d->was_planned || d->planned_seconds <= 0 || d->choice.step_seconds <= 0) return;
    if (d->choice.trial.seconds_are_modelled) return; /* the plan's model again */
    double off = 100 * (d->choice.step_seconds / d->planned_seconds - 1);
    int64_t bytes = d->choice.trial.reserved_bytes;
    plim_format_bytes(d->planned_reserved_bytes, planned);
    plim_format_bytes(bytes, measured);
    if (bytes == d->planned_reserved_bytes)
        plim_result_reason(result,
                           "Predicted: %.3g s a step (measured: %+.0f %%) and %s reserved (measured: "
                           "the same).",
                           d->planned_seconds, off, planned);
    else
        plim_result_reason(result,
                           "Predicted: %.3g s a step (measured: %+.0f %%) and %s reserved (measured: "
                           "%s).",
                           d->planned_seconds, off, planned, measured);
    if (d->has_largest && d->planned_edge && d->planned_edge != d->largest.batch.micro_batch)
        plim_result_reason(
            result, "The largest micro-batch was predicted to be %" PRId64 "; measured: %" PRId64 ".",
            d->planned_edge, d->largest.batch.micro_batch);
}

static void add_overhead(const struct plim_limit *limit, struct plim_result *result)
{
    char bytes[16];
    int64_t own_bytes = limit->overhead_bytes - limit->vllm_bytes; /* of the framework */
    if (limit->vllm_bytes)
        plim_result_reason(result,
                           "%s are set aside for vLLM, the most that it reserves (train.grpo.vllm_memory) except for "
                           "its CUDA graphs.",
                           plim_format_bytes(limit->vllm_bytes, bytes));
    if (limit->vllm_awake_bytes)
        plim_result_reason(result,
                           "While it generates, vLLM holds %s in addition to the training's memory at that time, and "
                           "both count in the peak (train.grpo.vllm_memory); its CUDA graphs, which stay, do not "
                           "count.",
                           plim_format_bytes(limit->vllm_awake_bytes, bytes));
    if (limit->overhead_measured_bytes)
        plim_result_reason(result, "plimsoll's own process took %s besides its tensors.",
                           plim_format_bytes(limit->overhead_measured_bytes, bytes));
    if (limit->overhead_measured_bytes > own_bytes)
        plim_result_reason(
            result, "%s of that were not counted beforehand and come out of the margin.",
            plim_format_bytes(limit->overhead_measured_bytes - own_bytes, bytes));
    if (limit->communicator_bytes)
        plim_result_reason(result,
                           "%s of what the framework needs are an assumption for NCCL's "
                           "communicator%s.",
                           plim_format_bytes(limit->communicator_bytes, bytes),
                           limit->communicator_bytes > PLIM_COMMUNICATOR_BYTES ? "s" : "");
    if (!limit->overhead_source || strcmp(limit->overhead_source, "estimate") != 0) return;
    if (own_bytes > 0)
        plim_result_reason(result,
                           "%s for the framework itself is an estimate for this kind of GPU "
                           "(--overhead sets it).",
                           plim_format_bytes(own_bytes, bytes));
    else
        plim_result_reason(result, "The framework's own memory on this device is unknown and not counted (--overhead "
                                   "sets it).");
}

/* Warns of bf16 on GPUs below compute capability 8.0, which have none; PyTorch emulates it there. */
static void add_bf16(const struct plim_answer *a, const struct plim_setting *setting,
                     struct plim_result *result)
{
    const struct plim_axes *axes = &a->question->axes;
    int axis = plim_axes_find(axes, "precision"), capability = a->device->compute_capability;
    char room[PLIM_AXIS_TEXT];
    if (axis < 0 || !capability || capability >= 80 ||
        strncmp(plim_axes_text(axes, setting, (size_t)axis, room), "bf16", 4) != 0)
        return;
    plim_result_reason(
        result,
        "This GPU has no bf16 (compute capability %d.%d; it came with 8.0): PyTorch "
        "emulates it, slowly. --precision fp16-mixed --weights fp32 uses what it has.",
        capability / 10, capability % 10);
}

/* Tells why a recording is uncertain, such as decisions by values that only a real GPU knows. */
static void add_doubts(const struct plim_answer *a, struct plim_result *result)
{
    for (size_t i = 0; i < a->doubt_count && i < PLIM_DECISIONS_SHOWN; i++)
        plim_result_reason(result, "The answer is uncertain: %s.", a->doubts[i]);
    result->is_doubtful |= a->doubt_count > 0;
}

/* Warns if the rate exceeds the GPU's peak for the spec's precision, which is impossible. */
static void add_rate(struct plim_result *result)
{
    if (result->choice.mfu > 1)
        plim_result_reason(result, "It is faster than this GPU can be with the spec's precision and sizes (MFU above "
                                   "100 %%): the program probably ran with others (--precision).");
}

void plim_reasons_decision(const struct plim_answer *a, const struct plim_decision *d,
                           struct plim_result *result)
{
    if (d->ended)
        plim_result_reason(result, "The search was ended early (%s)%s.",
                           d->ended_why[0] ? d->ended_why : plim_status_text(d->ended),
                           d->found ? ": this is the best so far" : "");
    add_waterfall(a, d, result);
    if (d->found) {
        why_not_between(d, result);
        why_not_next(a, d, result);
        why_largest(a, d, result);
        add_deviation(d, result);
        add_rate(result);
        add_limits_of_choice(a, d, result);
        add_prediction(d, result);
    } else {
        plim_reasons_none(a, d, result);
        why_largest(a, d, result);
    }
    if (d->found || d->has_smallest)
        add_bf16(a, d->found ? &d->choice.setting : &d->smallest, result);
    add_sequence(a, d, result);
    add_doubts(a, result);
    add_overhead(a->limit, result);
}

/* --- of an inspected setting ------------------------------------------------------------------ */

void plim_reasons_inspection(const struct plim_answer *a, const struct plim_inspection *e,
                             struct plim_result *result)
{
    char needs[16], budget[16], failure[256];
    const struct plim_sample *tried = &e->under_budget;
    int64_t room = a->limit->budget_bytes > 0 ? a->limit->budget_bytes : 0;
    plim_format_bytes(e->trial.reserved_bytes, needs);
    plim_format_bytes(room, budget);
    if (e->fits) {
        plim_result_reason(result, "It fits: %s reserved at the peak, of a budget of %s.", needs,
                           budget);
        add_retries(&e->trial, result);
        add_repeats(a, &e->trial, result);
    } else {
        plim_result_reason(result,
                           "It does not fit: it needs %s if there is enough memory, more than the budget of %s.",
                           needs, budget);
        plim_describe_failure(a, tried->verdict, &tried->trial, failure, sizeof(failure));
        if (tried->verdict != PLIM_OK) plim_reasons_end(tried, failure, result);
    }
    add_recording(a, "exec runs the program", result);
    add_guess(a, &e->trial, result);
    plim_reasons_world(a, &e->setting, &e->trial, result);
    add_bf16(a, &e->setting, result);
    add_doubts(a, result);
    add_overhead(a->limit, result);
}
