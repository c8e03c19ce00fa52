/* Why nothing fits. */
#include "reasons_parts.h"
#include "autotune/base/text.h"
#include "failure.h"
#include <inttypes.h>
#include <stdio.h>

void plim_reasons_end(const struct plim_sample *sample, const char *failure,
                      struct plim_result *result)
{
    plim_result_reason(result, sample->verdict == PLIM_OOM ? "It runs %s." : "It fails: %s.",
                       failure);
}

/* Joins the values that matter most for memory: "bf16-mixed, adamw, checkpointing full". */
static void describe_values(const struct plim_axes *axes, const struct plim_setting *setting,
                            char *out, size_t size)
{
    static const struct {
        const char *name, *before;
    } shown[] = {{"precision", ""}, {"optimizer", ", "}, {"checkpointing", ", checkpointing "}};
    size_t used = 0;
    *out = '\0';
    for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]) && used < size; i++) {
        char room[PLIM_AXIS_TEXT];
        int axis = plim_axes_find(axes, shown[i].name);
        if (axis < 0) continue;
        used += (size_t)snprintf(out + used, size - used, "%s%s", shown[i].before,
                                 plim_axes_text(axes, setting, (size_t)axis, room));
    }
}

/* Joins the values along the axes of a recording, which may have any names: " at seq 512, negatives 24". */
static void describe_recorded(const struct plim_axes *axes, const struct plim_setting *setting,
                              char *out, size_t size)
{
    size_t used = 0;
    *out = '\0';
    for (size_t i = 0; i < axes->count && used < size; i++) {
        char room[PLIM_AXIS_TEXT];
        used += (size_t)snprintf(out + used, size - used, "%s%s %s", i ? ", " : " at ",
                                 axes->axis[i].name, plim_axes_text(axes, setting, i, room));
    }
}

/* For a recording, whose smallest batch need not be the program's smallest. */
static void add_recorded_need(const struct plim_answer *a, const struct plim_setting *s,
                              const char *needs, const char *budget, struct plim_result *result)
{
    char values[160];
    describe_recorded(&a->question->axes, s, values, sizeof(values));
    plim_result_reason(result,
                       "Nothing fits. Micro-batch %" PRId64 "%s needs %s if there is enough memory, more than the "
                                                            "budget of %s.",
                       s->micro_batch, values, needs, budget);
    if (s->micro_batch > 1)
        plim_result_reason(result, "The recording begins at micro-batch %" PRId64
                                   ": smaller ones may fit, and exec tries them.", s->micro_batch);
}

static void add_need(const struct plim_answer *a, const struct plim_decision *d,
                     struct plim_result *result)
{
    const struct plim_setting *s = &d->smallest;
    const struct plim_axes *axes = &a->question->axes;
    char needs[16], budget[16], values[96];
    plim_format_bytes(d->smallest_reserved_bytes, needs);
    plim_format_bytes(a->limit->budget_bytes, budget);
    describe_values(axes, s, values, sizeof(values));
    if (a->details->predicts) {
        add_recorded_need(a, s, needs, budget, result);
        return;
    }
    if (a->details->is_program && d->rule.request->listed_count == 1)
        plim_result_reason(result,
                           "Nothing fits. The program needs %s if there is enough memory, more than the budget of "
                           "%s.",
                           needs, budget);
    else if (a->details->is_program)
        plim_result_reason(result,
                           "Nothing fits. With a batch of %" PRId64
                           " the program needs %s if there is enough memory, more than the budget of %s.",
                           s->micro_batch, needs, budget);
    else
        plim_result_reason(result,
                           "Nothing fits. Micro-batch %" PRId64 " at sequence %" PRId64
                           " (%s) needs %s if there is enough memory, more than the budget of %s.",
                           s->micro_batch, plim_axes_seq(axes, s), values, needs, budget);
}

void plim_reasons_none(const struct plim_answer *a, const struct plim_decision *d,
                       struct plim_result *result)
{
    char usable[16], failure[256];
    const struct plim_sample *smallest = &d->smallest_sample;
    plim_describe_failure(a, smallest->verdict, &smallest->trial, failure, sizeof(failure));
    if (a->limit->budget_bytes <= 0) {
        plim_result_reason(result, "Overhead and margin together take all of the %s.",
                           plim_format_bytes(a->limit->usable_bytes, usable));
    } else if (d->has_smallest) {
        add_need(a, d, result);
        if (smallest->verdict != PLIM_OK) plim_reasons_end(smallest, failure, result);
    } else if (!d->ended && smallest->verdict != PLIM_OK) {
        plim_result_reason(result, "Nothing can %s with these settings: %s.",
                           result->unsupported && !a->details->is_program ? "be planned" : "run", failure);
        if (a->details->is_program && d->rule.request->listed_count != 1)
            plim_result_reason(result, "Larger batches were not tried: if one runs, start with it (--batch "
                                       "LOW:HIGH).");
    } else if (!d->ended) {
        plim_result_reason(result, "Nothing can run with these settings.");
    }
}
