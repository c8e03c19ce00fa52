/* The report on a user's program, from made-up executions of it. */
#include "autotune/answer/executions.h"
#include "autotune/exec/execution.h"
#include "devices/virtual/steps/steps_verdict.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>

static const int64_t MIB = INT64_C(1) << 20;

/* The first is the choice's. */
static struct plim_execution executions[3];
static struct plim_prober prober;
static struct plim_result result;
static struct plim_decision decision;

static void begin(void)
{
    executions[0] = executions[1] = executions[2] = (struct plim_execution){.end = PLIM_END_EXITED};
    result = (struct plim_result){0};
    decision = (struct plim_decision){.found = true};
    decision.choice.trial.details = &executions[0];
    prober = (struct plim_prober){0};
}

static void tell(bool simulated, bool uses_batch)
{
    const struct plim_device_info device = {.simulated = simulated};
    const struct plim_answer from = {
        .prober = &prober, .device = &device, .details = &plim_details_execution};
    for (size_t i = 0; i < 4; i++) { /* the last one was not run */
        struct plim_sample sample = {.trial = {.details = i < 3 ? &executions[i] : NULL}};
        cr_assert(eq(int, PLIM_ARRAY_PUSH(&prober.samples, sample), PLIM_OK));
    }
    plim_reasons_program(&from, &decision, uses_batch, &result);
    plim_prober_finish(&prober);
}

/* These sentences and no others, up to where one is NULL. */
static void expect(const char *a, const char *b, const char *c)
{
    const char *const texts[] = {a, b, c, NULL};
    size_t i = 0;
    for (; texts[i]; i++) cr_expect(eq(str, result.reasons[i], (char *)texts[i]));
    cr_expect(eq(sz, result.reason_count, i));
}

#define NO_TIME                                                                                    \
    "A virtual GPU keeps no time and knows only values that the host put there, and what small "   \
    "kernels make of them: speed is not known."

#define ITS_OWN_END                                                                                \
    "It ran to the program's own end; with --steps N or --for TIME trials end earlier."

Test(executions, how_the_trial_ended)
{
    static const struct {
        enum plim_execution_end end;
        const char *says;
    } ends[] = {{PLIM_END_EXITED, "the program ended"},
                {PLIM_END_STEADY, "its peak had stopped growing"},
                {PLIM_END_STEPS, "it had run the requested steps (--steps)"},
                {PLIM_END_TIME, "its time was up (--for)"},
                {PLIM_END_LIMIT, "it took too long (--timeout)"},
                {PLIM_END_INPUT, "it waited for input"},
                {PLIM_END_STOPPED, "it was interrupted"}};
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        char text[256];
        begin();
        executions[0].end = ends[i].end;
        executions[0].seconds = 12.34;
        decision.choice.step_seconds = 1;
        tell(false, true);
        snprintf(
            text, sizeof(text),
            "The trial of the choice ended after 12.3 s: %s; no training steps were recognised.",
            ends[i].says);
        expect(text, ends[i].end == PLIM_END_EXITED ? ITS_OWN_END : NULL, NULL);
    }
    begin();
    executions[0].end = PLIM_END_EXITED;
    executions[0].seconds = 1.5; /* too short to be reported */
    decision.choice.step_seconds = 1;
    tell(false, true);
    expect("The trial of the choice ended after 1.5 s: the program ended; no training steps were "
           "recognised.", NULL, NULL);
}

/* Within its first epoch or after one, with short epochs or whole ones; in a loop of the program's own nothing tells
 * what comes later. */
Test(executions, what_comes_after_an_epoch_was_seen_or_not)
{
    static const char not_seen[] =
        "That was within the first epoch: work at its end (a smaller last batch, an evaluation, saving) was not "
        "seen; --epoch-steps 5 covers it.";
    static const char nothing[] = "--epoch-steps had no effect: no step was in a loop over a PyTorch data loader "
                                  "(2.5 or later).";
    static const char few[] =
        "With --epoch-steps the program ended in epoch %d (a program that counts its steps runs fewer epochs then): "
        "the memory of later epochs, for example after an evaluation, was not seen; a trial with --for TIME instead "
        "sees more.";
    static const char later[] =
        "Later steps were not seen: if some differ (longer rows, an evaluation, samples), --steps N runs that far.";
    char first[300], third[300];
    snprintf(first, sizeof(first), few, 1);
    snprintf(third, sizeof(third), few, 3);
    const struct {
        enum plim_execution_end end;
        bool in_epoch, is_short;
        int64_t epochs;
        const char *says;
    } rows[] = {
        {PLIM_END_STEADY, true, false, 0, not_seen}, {PLIM_END_STEPS, true, false, 0, not_seen},
        {PLIM_END_TIME, true, true, 0, not_seen},    {PLIM_END_STEADY, true, false, 1, NULL},
        {PLIM_END_STEADY, true, true, 2, NULL},      {PLIM_END_STEADY, false, false, 0, NULL},
        {PLIM_END_EXITED, true, true, 0, first},     {PLIM_END_EXITED, false, true, 0, nothing},
        {PLIM_END_EXITED, true, true, 2, third},     {PLIM_END_EXITED, true, true, 5, NULL},
        {PLIM_END_STEADY, false, true, 0, nothing},  {PLIM_END_EXITED, false, false, 0, NULL},
        {PLIM_END_STEADY, false, false, 0, later}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin();
        executions[0].end = rows[i].end;
        executions[0].in_epoch = rows[i].in_epoch;
        executions[0].short_epochs = rows[i].is_short;
        executions[0].epochs = rows[i].epochs;
        executions[0].steps = rows[i].says == later ? 7 : 0;
        decision.choice.step_seconds = 1;
        tell(false, true);
        cr_expect(eq(sz, result.reason_count, rows[i].says ? 2 : 1), "row %d", (int)i);
        if (rows[i].says) cr_expect(eq(str, result.reasons[1], (char *)rows[i].says));
    }
}

Test(executions, optimizers_that_had_not_stepped_are_told)
{
    begin();
    executions[0].end = PLIM_END_STEADY;
    executions[0].waiting_optimizers = 2;
    decision.choice.step_seconds = 1;
    tell(false, true);
    expect("The trial of the choice ended after 0.0 s: its peak had stopped growing; no training "
           "steps were recognised.",
           "2 of the program's optimizers had not stepped by then: the memory of those steps was not seen.", NULL);
}

Test(executions, compiled_kernels_that_a_trial_found_are_told)
{
    begin();
    executions[0].end = PLIM_END_STEADY;
    executions[0].finds_compiled = true;
    decision.choice.step_seconds = 1;
    tell(false, true);
    expect("The trial of the choice ended after 0.0 s: its peak had stopped growing; no training "
           "steps were recognised.",
           "It found kernels that an earlier trial had compiled (torch.compile); a first launch, which "
           "compiles them itself, can take more memory.", NULL);
    begin();
    executions[0].makes_compiled = true;
    decision.choice.step_seconds = 1;
    tell(false, true);
    expect("The trial of the choice ended after 0.0 s: the program ended; no training steps were recognised.",
           "It compiled kernels itself (torch.compile); a later launch, which finds them, fragments memory "
           "differently and can reserve more.", NULL);
}

Test(executions, steps_and_leaks_are_told)
{
    begin();
    executions[0].steps = 7;
    executions[0].rule = PLIM_STEPS_BY_OPTIMIZER;
    executions[0].leak_bytes = 3.0 * (double)MIB;
    tell(true, true);
    expect("The trial of the choice ended after 0.0 s: the program ended; 7 training steps were "
           "recognised, by optimizer kernels.",
           "After each step 3.00 MiB more are allocated: the program leaks, or its sizes vary and its allocator "
           "keeps more and more for them.",
           NO_TIME);
}

Test(executions, without_an_answer_there_is_no_trial_of_it)
{
    begin();
    decision.found = false;
    tell(true, true);
    expect(NO_TIME, NULL, NULL);
    begin();
    decision.choice.trial.details = NULL;
    tell(false, true);
    expect("No step was timed, so the largest batch was chosen.", NULL, NULL);
    begin();
    decision.found = false;
    tell(false, true);
    expect(NULL, NULL, NULL);
}

Test(executions, a_refusal_that_was_survived_is_told_once)
{
    for (int uses_batch = 0; uses_batch < 2; uses_batch++) {
        begin();
        decision.found = false;
        executions[1].went_on = executions[2].went_on = true;
        tell(true, uses_batch);
        expect(uses_batch ? "The program goes on with less memory when a request fails; such a "
                            "trial counts as out of memory."
                          : "The program goes on with less memory when a request fails; it counts as one that fits "
                            "here, where a search over {batch} counts such a trial as out of memory.",
               NO_TIME, NULL);
    }
}

static void ask(int use, const char *place, int64_t count)
{
    struct plim_machine_questions *asked = &executions[0].questions;
    struct plim_machine_question *row = &asked->rows[asked->count++];
    *row = (struct plim_machine_question){.kernel = "reduce_kernel", .use = use, .count = count, .bytes = 1};
    snprintf(row->place, sizeof(row->place), "%s", place);
}

Test(executions, a_value_that_decides_makes_the_answer_uncertain)
{
    begin();
    decision.found = false;
    ask(PLIM_QUESTION_SHOWN, "train.py:7", 4);
    ask(PLIM_QUESTION_DECIDES, "train.py:9", 1);
    executions[0].questions.assumed = PLIM_ASSUMPTION_FINITE | PLIM_ASSUMPTION_CHECKS;
    tell(true, true);
    cr_expect(plim_result_is_uncertain(&result));
    cr_expect(eq(sz, result.question_count, 2));
    cr_expect(eq(str, result.reasons[1],
                 "The answer is uncertain: train.py:9 depends on an unknown value (of reduce_kernel), assumed to be "
                 "0; --assume train.py:9=VALUE gives it."));
    cr_expect(eq(str, result.reasons[2],
                 "The program read 5 values that only a real GPU knows; they were answered as 0 (1 "
                 "it decides by, 4 only shown)."));
    cr_expect(eq(str, result.reasons[3],
                 "Assumed: learned numbers are finite; checks that would raise an exception hold."));
}

/* Only zeros: a list of tokens is empty, and its maximum an exception. */
Test(executions, a_failure_may_come_of_what_was_answered)
{
    static const struct {
        int use;
        bool matters;
    } cases[] = {{PLIM_QUESTION_KEPT, true}, {PLIM_QUESTION_SHOWN, false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        begin();
        decision.found = false;
        ask(cases[i].use, "train.py:7", 4);
        executions[0].verdict = PLIM_CRASHED;
        tell(true, true);
        bool said = false;
        for (size_t k = 0; k < result.reason_count; k++)
            said |= strstr(result.reasons[k], "answered as 0 (4 ") && strstr(result.reasons[k], "why it failed");
        cr_expect(eq(int, said, cases[i].matters));
    }
}

Test(executions, what_a_mask_selects_is_told_by_its_number)
{
    begin();
    decision.found = false;
    ask(PLIM_QUESTION_DECIDES, "boxes.py:3", 2);
    executions[0].questions.rows[0].answer = 8663;
    executions[0].questions.rows[0].bytes = 8;
    executions[0].questions.assumed = PLIM_ASSUMPTION_ALL;
    tell(true, true);
    cr_expect(plim_result_is_uncertain(&result));
    cr_expect(eq(i64, result.questions[0].answer, 8663));
    cr_expect(eq(str, result.reasons[1],
                 "The answer is uncertain: boxes.py:3 depends on an unknown value (of reduce_kernel), assumed to be "
                 "8663, the most that its mask selects; --assume boxes.py:3=VALUE gives it."));
    cr_expect(eq(str, result.reasons[2],
                 "The program read 2 values that only a real GPU knows; they were answered as 0, or as "
                 "all where a mask selects (2 it decides by)."));
    cr_expect(eq(str, result.reasons[3], "Assumed: masks of learned numbers select all that they may."));
}

Test(executions, whether_a_mask_selects_any_is_told_as_true)
{
    static const struct {
        int64_t turned;
        const char *taken;
    } cases[] = {{0, "assumed to be true, as its mask may select;"},
                 {3, "assumed to be all that its mask may select, and 3 times none, to leave a loop;"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        begin();
        decision.found = false;
        ask(PLIM_QUESTION_DECIDES, "rays.py:3", 2);
        executions[0].questions.rows[0].answer = 1;
        executions[0].questions.rows[0].turned = cases[i].turned;
        tell(true, true);
        cr_expect(strstr(result.reasons[1], cases[i].taken) != NULL, "%s", result.reasons[1]);
    }
}

Test(executions, a_loop_that_was_left_is_told)
{
    begin();
    decision.found = false;
    ask(PLIM_QUESTION_DECIDES, "ode.py:7", 2);
    executions[0].questions.rows[0].turned = 14;
    tell(true, true);
    cr_expect(eq(i64, result.questions[0].turned, 14));
    cr_expect(
        eq(str, result.reasons[1],
           "The answer is uncertain: ode.py:7 depends on an unknown value (of reduce_kernel), assumed to be 0, and "
           "14 times otherwise, to leave a loop of 1000 reads; --assume ode.py:7=VALUE gives it."));
}

Test(executions, what_is_only_shown_leaves_the_answer_certain)
{
    begin();
    decision.found = false;
    ask(PLIM_QUESTION_KEPT, "train.py:7", 1);
    tell(true, true);
    cr_expect(not(plim_result_is_uncertain(&result)));
    expect(NO_TIME,
           "The program read 1 value that only a real GPU knows; it was answered as 0 (1 kept).",
           NULL);
}

Test(executions, what_the_user_says_of_values_is_not_told_as_0)
{
    for (int shown = 0; shown < 2; shown++) {
        begin();
        decision.found = false;
        ask(PLIM_QUESTION_GIVEN, "train.py:7", 3);
        if (shown) ask(PLIM_QUESTION_SHOWN, "train.py:9", 1);
        tell(true, true);
        expect(NO_TIME,
               shown ? "The program read 4 values that only a real GPU knows; they were answered as 0, or as --assume "
                       "says (3 given by --assume, 1 only shown)."
                     : "The program read 3 values that only a real GPU knows; they were answered as --assume says (3 "
                       "given by --assume).",
               NULL);
    }
}

/* Eight at most. */
Test(executions, each_note_is_told_once)
{
    begin();
    decision.found = false;
    for (int i = 0; i < 3; i++) {
        executions[i].note_count = i ? 5 : 2;
        for (int n = 0; n < 5; n++)
            snprintf(executions[i].notes[n], sizeof(executions[i].notes[n]), "note %d",
                     i == 2 ? 4 + n : n);
    }
    tell(true, true);
    cr_assert(eq(sz, result.reason_count, 9));
    for (int i = 0; i < 8; i++) {
        char text[64];
        snprintf(text, sizeof(text), "Virtual GPU: note %d.", i);
        cr_expect(eq(str, result.reasons[1 + i], text));
    }
}

Test(executions, allocations_are_listed_by_their_order_of_size)
{
    begin();
    executions[0].sizes[0] = (struct plim_machine_size){.count = 3, .bytes = 5 * MIB};
    executions[0].sizes[2] = (struct plim_machine_size){.count = 1, .bytes = 6 * MIB};
    plim_details_execution.describe_memory(&decision.choice.trial, &result);
    cr_assert(eq(sz, result.segment_count, 2));
    cr_expect(eq(i64, result.segments[0].from_bytes, 0));
    cr_expect(eq(i64, result.segments[0].count, 3));
    cr_expect(eq(i64, result.segments[0].bytes, 5 * MIB));
    cr_expect(eq(i64, result.segments[1].from_bytes, 4 * MIB));
    cr_expect(eq(i64, result.segments[1].count, 1));
    cr_expect(eq(i64, result.segments[1].bytes, 6 * MIB));
    cr_expect(eq(i64, plim_details_execution.allocated_bytes(&decision.choice.trial), 0));
}
