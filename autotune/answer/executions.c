#include "executions.h"
#include "autotune/base/text.h"
#include "autotune/exec/execution.h"
#include "devices/virtual/steps/steps_verdict.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NOTES = 8 };

static const struct plim_execution *execution_of(const struct plim_trial *trial)
{
    return trial->details;
}

/* What of its memory is in tensors is not known. */
static int64_t allocated_bytes(const struct plim_trial *trial)
{
    (void)trial;
    return 0;
}

static void describe_memory(const struct plim_trial *trial, struct plim_result *result)
{
    const struct plim_machine_size *sizes = execution_of(trial)->sizes;
    for (int i = 0; i < PLIM_MACHINE_SIZES; i++) {
        if (!sizes[i].count) continue;
        result->segments[result->segment_count++] =
            (struct plim_result_segments){.from_bytes = i ? (int64_t)1 << 20 << i : 0,
                                          .count = sizes[i].count,
                                          .bytes = sizes[i].bytes};
    }
}

const struct plim_details_reader plim_details_execution = {.is_program = true,
                                                           .allocated_bytes = allocated_bytes,
                                                           .describe_memory = describe_memory};

/* --- reasons ---------------------------------------------------------------------------------- */

static void tell_end(const struct plim_execution *execution, struct plim_result *result)
{
    static const char *const ends[] = {
        [PLIM_END_EXITED] = "the program ended",
        [PLIM_END_STEADY] = "its peak had stopped growing",
        [PLIM_END_STEPS] = "it had done the steps asked for (--steps)",
        [PLIM_END_TIME] = "its time was up (--for)",
        [PLIM_END_LIMIT] = "it took too long (--timeout)",
        [PLIM_END_INPUT] = "it waited for input",
        [PLIM_END_STOPPED] = "it was interrupted",
    };
    char bytes[16], seen[96] = "no training steps were recognised";
    if (execution->steps)
        snprintf(seen, sizeof(seen), "%" PRId64 " training steps were recognised, by %s",
                 execution->steps, plim_steps_rule_name((enum plim_steps_rule)execution->rule));
    plim_result_reason(result, "The trial of the choice ended after %.1f s: %s; %s.",
                       execution->seconds, ends[execution->end], seen);
    if (execution->leak_bytes > 0)
        plim_result_reason(result, "The program leaks: it holds %s more after each step.",
                           plim_format_bytes((int64_t)execution->leak_bytes, bytes));
}

static void tell_refusals(const struct plim_asker *asker, bool uses_batch,
                          struct plim_result *result)
{
    for (size_t i = 0; i < asker->samples.count; i++) {
        const struct plim_execution *execution = execution_of(&asker->samples.items[i].trial);
        if (!execution || !execution->went_on) continue;
        plim_result_reason(result, "The program goes on with less memory when a request fails%s.",
                           uses_batch ? "; such a trial counts as out of memory" : "");
        return;
    }
}

/* Each note once. */
static void tell_notes(const struct plim_asker *asker, struct plim_result *result)
{
    const char *told[NOTES];
    size_t count = 0;
    for (size_t i = 0; i < asker->samples.count; i++) {
        const struct plim_execution *execution = execution_of(&asker->samples.items[i].trial);
        for (uint32_t n = 0; execution && n < execution->note_count; n++) {
            size_t k = 0;
            while (k < count && strcmp(told[k], execution->notes[n])) k++;
            if (k < count || count == NOTES) continue;
            told[count++] = execution->notes[n];
            plim_result_reason(result, "Virtual GPU: %s.", execution->notes[n]);
        }
    }
}

void plim_reasons_program(const struct plim_answer *answer, const struct plim_decision *decision,
                          bool uses_batch, struct plim_result *result)
{
    const struct plim_trial *choice = &decision->choice.trial;
    bool simulated = answer->device->simulated;
    if (decision->found && choice->details) tell_end(execution_of(choice), result);
    tell_refusals(answer->asker, uses_batch, result);
    if (simulated)
        plim_result_reason(
            result, "A virtual GPU computes nothing and keeps no time: speed, and what depends "
                    "on computed values (routing, sampling), is not known.");
    tell_notes(answer->asker, result);
    if (!simulated && decision->found && decision->choice.step_seconds <= 0)
        plim_result_reason(result, "No step was timed, so the largest batch was chosen.");
}
