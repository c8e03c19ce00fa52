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

/* Not known for a program. */
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

/* Tells whether events at the end of an epoch, such as an evaluation, were seen. */
static void add_epochs(const struct plim_execution *execution, struct plim_result *result)
{
    bool was_ended = execution->end == PLIM_END_STEADY || execution->end == PLIM_END_STEPS ||
                     execution->end == PLIM_END_TIME;
    if (execution->short_epochs && execution->in_epoch && execution->end == PLIM_END_EXITED &&
        execution->epochs < PLIM_EXECUTION_REPETITIONS)
        plim_result_reason(
            result,
            "With --epoch-steps the program ended in epoch %" PRId64 " (a program that counts its steps runs fewer "
                                                                     "epochs then): the memory of later epochs, for "
                                                                     "example after an evaluation, was not seen; a "
                                                                     "trial with --for TIME instead sees more.",
            execution->epochs + 1);
    if (execution->epochs > 0) return;
    if (execution->in_epoch && was_ended)
        plim_result_reason(result, "That was within the first epoch: work at its end (a smaller last batch, an "
                                   "evaluation, saving) was not seen; --epoch-steps 5 covers it.");
    else if (!execution->in_epoch && execution->short_epochs)
        plim_result_reason(result, "--epoch-steps had no effect: no step was in a loop over a PyTorch data loader "
                                   "(2.5 or later).");
    else if (execution->end == PLIM_END_STEADY && execution->steps > 0)
        plim_result_reason(result, "Later steps were not seen: if some differ (longer rows, an evaluation, samples), "
                                   "--steps N runs that far.");
}

static void add_end(const struct plim_execution *execution, struct plim_result *result)
{
    static const char *const ends[] = {
        [PLIM_END_EXITED] = "the program ended",
        [PLIM_END_STEADY] = "its peak had stopped growing",
        [PLIM_END_REFUSED] = "a request was refused, and it went on",
        [PLIM_END_RESTLESS] = "its allocator freed cached memory in every step",
        [PLIM_END_STEPS] = "it had run the requested steps (--steps)",
        [PLIM_END_TIME] = "its time was up (--for)",
        [PLIM_END_LIMIT] = "it took too long (--timeout)",
        [PLIM_END_INPUT] = "it waited for input",
        [PLIM_END_STOPPED] = "it was interrupted",
    };
    char bytes[16], later[16], seen[96] = "no training steps were recognised";
    if (execution->steps)
        snprintf(seen, sizeof(seen), "%" PRId64 " training step%s recognised, by %s",
                 execution->steps, execution->steps == 1 ? " was" : "s were",
                 plim_steps_rule_name((enum plim_steps_rule)execution->rule));
    plim_result_reason(result, "The trial of the choice ended after %.1f s: %s; %s.",
                       execution->seconds, ends[execution->end], seen);
    if (execution->end == PLIM_END_EXITED && execution->seconds > PLIM_LONG_TRIAL_SECONDS)
        plim_result_reason(result, "It ran to the program's own end; with --steps N or --for TIME "
                                   "trials end earlier.");
    if (execution->waiting_optimizers > 0)
        plim_result_reason(result,
                           "%d of the program's optimizers had not stepped by then: the memory of those steps was "
                           "not seen.",
                           execution->waiting_optimizers);
    add_epochs(execution, result);
    if (execution->peak_contexts > 1)
        plim_result_reason(result,
                           "At the peak %d processes held GPU memory, each with its own context: all contexts but "
                           "one are counted with the program. Allocations shown are those of the largest process.",
                           execution->peak_contexts);
    if (execution->later_launch_bytes)
        plim_result_reason(result,
                           "It was tried as a first launch, which compiles kernels (torch.compile), and as a later "
                           "one, which finds them: %s and %s; the larger counts.",
                           plim_format_bytes(execution->first_launch_bytes, bytes),
                           plim_format_bytes(execution->later_launch_bytes, later));
    else if (execution->finds_compiled)
        plim_result_reason(result,
                           "It found kernels that an earlier trial had compiled (torch.compile); a "
                           "first launch, which compiles them itself, can take more memory.");
    else if (execution->makes_compiled)
        plim_result_reason(result,
                           "It compiled kernels itself (torch.compile); a later launch, which finds them, fragments "
                           "memory differently and can reserve more.");
    if (execution->leak_bytes > 0)
        plim_result_reason(result,
                           "After each step %s more are allocated: the program leaks, or its sizes vary and its "
                           "allocator keeps more and more for them.",
                           plim_format_bytes((int64_t)execution->leak_bytes, bytes));
}

/* Doubts the answer if the program trained at another size but not at this one: it may have skipped the batch or ended
 * early. */
static void add_untrained(const struct plim_answer *answer, const struct plim_decision *decision,
                          struct plim_result *result)
{
    const struct plim_prober *prober = answer->prober;
    const struct plim_sample *trained = NULL;
    for (size_t i = 0; i < prober->samples.count; i++) {
        const struct plim_sample *sample = &prober->samples.items[i];
        const struct plim_execution *execution = execution_of(&sample->trial);
        if (sample->verdict == PLIM_OK && execution && execution->steps > 0) trained = sample;
    }
    if (!trained || execution_of(&decision->choice.trial)->steps) return;
    result->is_doubtful = true;
    plim_result_reason(result,
                       "The answer is uncertain: no training step was seen in the trial of the choice, but %" PRId64
                       " in that of micro-batch %" PRId64 ": see whether the program trains at this size.",
                       execution_of(&trained->trial)->steps, trained->setting.micro_batch);
}

/* Tells if the program used fewer GPUs than it sees: its batch is counted with all of them. */
static void add_gpus(const struct plim_answer *answer, const struct plim_execution *execution,
                     struct plim_result *result)
{
    if (execution->gpus_used && execution->gpus_used < answer->gpus)
        plim_result_reason(result,
                           "The program used %d of the %" PRId64 " GPUs that it sees (--gpus), and its batch is "
                           "counted with %" PRId64 ": torchrun starts one process a GPU.",
                           execution->gpus_used, answer->gpus, answer->question->batch.world);
}

static void add_refusals(const struct plim_prober *prober, bool uses_batch,
                         struct plim_result *result)
{
    for (size_t i = 0; i < prober->samples.count; i++) {
        const struct plim_execution *execution = execution_of(&prober->samples.items[i].trial);
        if (!execution || !execution->went_on) continue;
        const char *counts = uses_batch ? "; such a trial counts as out of memory"
                                        : "; it counts as one that fits here, where a search over "
                                          "{batch} counts such a trial as out of memory";
        if (execution->replanned)
            plim_result_reason(result,
                               "If a convolution's workspace is refused, PyTorch uses another algorithm, which needs "
                               "less memory and may be slower%s.",
                               counts);
        else
            plim_result_reason(result, "The program goes on with less memory when a request fails%s.", counts);
        return;
    }
}

/* Tells each note once. */
static void add_notes(const struct plim_prober *prober, struct plim_result *result)
{
    const char *written[NOTES];
    size_t count = 0;
    for (size_t i = 0; i < prober->samples.count; i++) {
        const struct plim_execution *execution = execution_of(&prober->samples.items[i].trial);
        for (uint32_t n = 0; execution && n < execution->note_count; n++) {
            size_t k = 0;
            while (k < count && strcmp(written[k], execution->notes[n])) k++;
            if (k < count || count == NOTES) continue;
            written[count++] = execution->notes[n];
            plim_result_reason(result, "Virtual GPU: %s.", execution->notes[n]);
        }
    }
}

/* --- values ----------------------------------------------------------------------------------- */

static const char *const uses[] = {[PLIM_QUESTION_SHOWN] = "shown",
                                   [PLIM_QUESTION_KEPT] = "kept",
                                   [PLIM_QUESTION_CHECKED] = "checked",
                                   [PLIM_QUESTION_GIVEN] = "given",
                                   [PLIM_QUESTION_DECIDES] = "decides"};

static void write_assumptions(uint32_t assumed, char *out, size_t size)
{
    static const struct {
        uint32_t bit;
        const char *says;
    } assumptions[] = {
        {PLIM_ASSUMPTION_FINITE, "learned numbers are finite"},
        {PLIM_ASSUMPTION_SPREAD, "the largest of learned numbers are spread evenly, as routing is"},
        {PLIM_ASSUMPTION_SEED, "random numbers are those of some seed"},
        {PLIM_ASSUMPTION_ALL, "masks of learned numbers select all that they may"},
        {PLIM_ASSUMPTION_LONGEST, "generated text has its maximum length"},
        {PLIM_ASSUMPTION_CHECKS, "checks that would raise an exception hold"},
        {PLIM_ASSUMPTION_BELOW, "values counted by bincount are less than its minlength"},
    };
    size_t used = 0;
    for (size_t i = 0; i < sizeof(assumptions) / sizeof(assumptions[0]) && used < size; i++)
        if (assumed & assumptions[i].bit)
            used += (size_t)snprintf(out + used, size - used, "%s%s", used ? "; " : "",
                                     assumptions[i].says);
}

static void fill_questions(const struct plim_machine_questions *asked, struct plim_result *result)
{
    for (uint32_t i = 0; i < asked->count && i < PLIM_RESULT_QUESTIONS; i++) {
        const struct plim_machine_question *from = &asked->rows[i];
        struct plim_result_question *to = &result->questions[result->question_count++];
        snprintf(to->place, sizeof(to->place), "%s", from->place);
        snprintf(to->kernel, sizeof(to->kernel), "%s", from->kernel);
        to->use = uses[from->use];
        to->count = from->count;
        to->bytes = from->bytes;
        to->answer = from->answer;
        to->turned = from->turned;
    }
    write_assumptions(asked->assumed, result->assumptions, sizeof(result->assumptions));
}

/* Appends the number of values that were read for a use to `text`. */
static void add_count(const struct plim_result *result, enum plim_question_use use,
                      const char *says, char *text, size_t size)
{
    int64_t count = 0;
    size_t used = strlen(text);
    for (size_t i = 0; i < result->question_count; i++)
        if (result->questions[i].use == uses[use]) count += result->questions[i].count;
    if (count)
        snprintf(text + used, size - used, "%s%" PRId64 " %s", used ? ", " : "", count, says);
}

static void add_questions(const struct plim_execution *execution, struct plim_result *result)
{
    const struct plim_machine_questions *asked = &execution->questions;
    int64_t count = asked->unlisted, selected = 0, given = 0;
    bool matters = false, divides = false;
    char parts[160] = "";
    for (uint32_t i = 0; i < asked->count; i++) {
        count += asked->rows[i].count;
        selected += asked->rows[i].answer > 0 && !asked->rows[i].divides;
        divides |= asked->rows[i].divides;
        if (asked->rows[i].use == PLIM_QUESTION_GIVEN) given += asked->rows[i].count;
        matters |= asked->rows[i].use != PLIM_QUESTION_SHOWN && asked->rows[i].use != PLIM_QUESTION_GIVEN;
    }
    add_count(result, PLIM_QUESTION_DECIDES, "it decides by", parts, sizeof(parts));
    add_count(result, PLIM_QUESTION_GIVEN, "given by --assume", parts, sizeof(parts));
    add_count(result, PLIM_QUESTION_CHECKED, "only checked", parts, sizeof(parts));
    add_count(result, PLIM_QUESTION_KEPT, "kept", parts, sizeof(parts));
    add_count(result, PLIM_QUESTION_SHOWN, "only shown", parts, sizeof(parts));
    if (count)
        plim_result_reason(result,
                           "The program read %" PRId64 " %s answered as %s%s%s%s (%s)%s.", count,
                           count == 1 ? "value that only a real GPU knows; it was"
                                      : "values that only a real GPU knows; they were",
                           given == count ? "--assume says" : "0",
                           divides ? ", or as 1 where 0 would end it (a division, a logarithm)" : "",
                           selected && given < count ? ", or as all where a mask selects" : "",
                           given && given < count ? ", or as --assume says" : "",
                           parts[0] ? parts : "not listed",
                           matters && execution->verdict == PLIM_CRASHED ? ", which may be why it failed" : "");
    if (result->assumptions[0]) plim_result_reason(result, "Assumed: %s.", result->assumptions);
    if (execution->unread[0])
        plim_result_reason(
            result, "--assume had no effect at %s: no value was read there that only a real GPU knows.",
            execution->unread);
}

static void add_decisions(const struct plim_machine_questions *asked, struct plim_result *result)
{
    int shown = 0;
    char text[PLIM_DECISION_TEXT];
    for (uint32_t i = 0; i < asked->count && shown < PLIM_DECISIONS_SHOWN; i++) {
        if (asked->rows[i].use != PLIM_QUESTION_DECIDES) continue;
        shown++;
        plim_execution_describe_decision(&asked->rows[i], text, sizeof(text));
        plim_result_reason(result, "The answer is uncertain: %s.", text);
    }
}

static void add_values_of(const struct plim_execution *execution, struct plim_result *result)
{
    fill_questions(&execution->questions, result);
    add_decisions(&execution->questions, result);
    add_questions(execution, result);
}

/* Tells the values that the trial of the choice read; without a choice, those of the first trial. */
static void add_values(const struct plim_answer *answer, const struct plim_decision *decision,
                       struct plim_result *result)
{
    const struct plim_execution *execution =
        decision->found ? execution_of(&decision->choice.trial) : NULL;
    for (size_t i = 0; i < answer->prober->samples.count && !execution; i++)
        execution = execution_of(&answer->prober->samples.items[i].trial);
    if (execution) add_values_of(execution, result);
}

void plim_reasons_execution(const struct plim_execution *execution, struct plim_result *result)
{
    add_end(execution, result);
    if (result->device.simulated) add_values_of(execution, result);
}

void plim_reasons_program(const struct plim_answer *answer, const struct plim_decision *decision,
                          bool uses_batch, struct plim_result *result)
{
    const struct plim_trial *choice = &decision->choice.trial;
    bool simulated = answer->device->simulated;
    if (decision->found && choice->details) {
        add_end(execution_of(choice), result);
        add_untrained(answer, decision, result);
        add_gpus(answer, execution_of(choice), result);
    }
    add_refusals(answer->prober, uses_batch, result);
    if (simulated)
        plim_result_reason(
            result, "A virtual GPU keeps no time and knows only values that the host put there, and "
                    "what small kernels make of them: speed is not known.");
    if (simulated) add_values(answer, decision, result);
    add_notes(answer->prober, result);
    if (!simulated && decision->found && decision->choice.step_seconds <= 0)
        plim_result_reason(result, "No step was timed, so the largest batch was chosen.");
}
