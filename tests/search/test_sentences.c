/* Sentences of a report for given facts, one fact at a time; no search is run. */
#include "autotune/answer/reasons.h"
#include "synthetic.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

/* An answer about a GPU of 1 GiB, of which nothing is known but what a test sets. */
static struct {
    struct plim_question question;
    struct plim_runner runner;
    struct plim_prober prober;
    struct plim_device_info device;
    struct plim_limit limit;
    struct plim_details_reader details;
    struct plim_decision decision;
    struct plim_result result;
} facts;

static void set_up(void)
{
    facts.question = synthetic_question();
    facts.runner = (struct plim_runner){.budget_bytes = INT64_C(1) << 30};
    facts.prober = (struct plim_prober){.runner = &facts.runner};
    facts.device = (struct plim_device_info){.name = "synthetic", .simulated = true};
    facts.limit = (struct plim_limit){.usable_bytes = INT64_C(1) << 30,
                                      .budget_bytes = INT64_C(1) << 30};
    facts.decision = (struct plim_decision){.question = &facts.question};
    facts.decision.rule.request = &facts.question.batch;
}

static void tear_down(void)
{
    plim_result_finish(&facts.result);
}

TestSuite(sentences, .init = set_up, .fini = tear_down);

static struct plim_answer answer(void)
{
    return (struct plim_answer){.name = "model",
                                .source = "",
                                .question = &facts.question,
                                .prober = &facts.prober,
                                .device = &facts.device,
                                .limit = &facts.limit,
                                .details = &facts.details};
}

/* Does the report of the decision say so? */
static bool says(const char *text)
{
    const struct plim_answer from = answer();
    plim_result_finish(&facts.result);
    facts.result = (struct plim_result){0};
    plim_reasons_decision(&from, &facts.decision, &facts.result);
    return synthetic_says(&facts.result, text);
}

static void nothing_fits(void)
{
    facts.decision.has_smallest = true;
    facts.decision.smallest = synthetic_setting(1);
    facts.decision.smallest_reserved_bytes = INT64_C(2) << 30;
    facts.decision.smallest_sample.verdict = PLIM_OOM;
}

/* A choice of micro-batch 1 that is proven, or is to be proven by the test. */
static struct plim_trial *chosen(void)
{
    facts.decision.found = facts.decision.choice.verified = true;
    facts.decision.choice.setting = synthetic_setting(1);
    facts.decision.choice.batch.micro_batch = facts.decision.choice.batch.accumulation = 1;
    facts.decision.choice.seq = 1024;
    return &facts.decision.choice.trial;
}

/* --- the setting that does not fit ------------------------------------------------------------ */

Test(sentences, the_values_of_the_smallest_setting_are_told_whichever_axis_is_first)
{
    static const char *const names[] = {"fp32"};
    static const int64_t first = 0;
    nothing_fits();
    cr_expect(says("(bf16-mixed, checkpointing none) needs 2.00 GiB"));
    facts.question.axes = (struct plim_axes){
        .count = 1, .seq = -1, .axis = {{"precision", "", names, 1, &first, false, false}}};
    facts.decision.smallest.value[0] = 0;
    cr_expect(says("Micro-batch 1 at sequence 1 (fp32) needs 2.00 GiB"));
}

Test(sentences, a_program_needs_so_much_with_its_batch_or_at_all)
{
    static const int64_t one[] = {1};
    nothing_fits();
    facts.details.is_program = true;
    cr_expect(says("With a batch of 1 the program needs 2.00 GiB if there is enough memory, more than the budget "
                   "of 1.00 GiB."));
    facts.question.batch.listed = one;
    facts.question.batch.listed_count = 1;
    cr_expect(says("Nothing fits. The program needs 2.00 GiB"));
}

Test(sentences, why_a_program_failed_is_told_whole_and_larger_batches_where_there_are_any)
{
    static const int64_t one[] = {1};
    struct plim_sample *first = &facts.decision.smallest_sample;
    char end[] = "of the folder";
    facts.details.is_program = true;
    first->verdict = PLIM_CRASHED;
    snprintf(first->trial.why, sizeof(first->trial.why), "%0200d %s", 0, end);
    cr_expect(says(end));
    cr_expect(says("Larger batches were not tried"));
    facts.question.batch.listed = one;
    facts.question.batch.listed_count = 1;
    cr_expect(not(says("Larger batches were not tried")), "with --observe there are none");
}

Test(sentences, a_larger_batch_changes_the_effective_one_where_none_divides_it)
{
    struct plim_error err;
    chosen();
    facts.question.batch.effective_batch = 240;
    facts.question.batch.world = 1;
    cr_assert(eq(int, plim_batch_rule_init(&facts.decision.rule, &facts.question.batch, &err), PLIM_OK));
    facts.decision.choice.batch.micro_batch = 30;
    cr_expect(not(says("would change the effective batch")), "the search ended before 40");
    facts.decision.choice.batch.micro_batch = 240;
    cr_expect(says("A larger micro-batch would change the effective batch."));
}

/* --- bf16 on GPUs that have none -------------------------------------------------------------- */

Test(sentences, bf16_is_emulated_below_8_0_and_only_there)
{
    static const struct {
        int capability, precision;
        bool told;
    } cases[] = {{75, SYNTHETIC_MIXED, true},  {75, SYNTHETIC_BF16, true},
                 {75, SYNTHETIC_FP32, false},  {79, SYNTHETIC_BF16, true},
                 {80, SYNTHETIC_BF16, false}, {0, SYNTHETIC_BF16, false}};
    chosen();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        facts.device.compute_capability = cases[i].capability;
        facts.decision.choice.setting.value[SYNTHETIC_PRECISION] = cases[i].precision;
        cr_expect(eq(int, says("This GPU has no bf16"), cases[i].told), "case %zu", i);
    }
    facts.device.compute_capability = 61;
    cr_expect(says("(compute capability 6.1;"));
}

Test(sentences, bf16_is_told_of_the_choice_else_of_the_smallest)
{
    facts.device.compute_capability = 75;
    nothing_fits();
    cr_expect(says("This GPU has no bf16"));
    chosen();
    facts.decision.choice.setting.value[SYNTHETIC_PRECISION] = SYNTHETIC_FP32;
    cr_expect(not(says("This GPU has no bf16")));
}

Test(sentences, bf16_is_found_on_the_first_axis_too)
{
    static const char *const names[] = {"bf16"};
    static const int64_t first = 0;
    chosen();
    facts.question.axes = (struct plim_axes){
        .count = 1, .seq = -1, .axis = {{"precision", "", names, 1, &first, false, false}}};
    facts.decision.choice.setting.value[0] = 0;
    facts.device.compute_capability = 75;
    cr_expect(says("This GPU has no bf16"));
}

/* --- that it fits for ever -------------------------------------------------------------------- */

Test(sentences, how_it_is_known_to_repeat_is_told_where_it_was_a_question)
{
    struct plim_trial *trial = chosen();
    trial->repeats_after = 4;
    trial->steps_done = 5;
    cr_expect(not(says("Everything repeats")), "four steps are expected");
    cr_expect(not(says("did not repeat")));
    trial->repeats_after = 5;
    cr_expect(says("Everything repeats after 5 replayed steps, so all later steps fit, too."));
    trial->repeats_after = 2;
    trial->retries = 1;
    cr_expect(says("Everything repeats after 2 replayed steps"));
    cr_expect(says("retries, 1 time."));
    trial->retries = 2;
    cr_expect(says("retries, 2 times."));
}

Test(sentences, what_did_not_repeat_is_told_unless_it_is_a_program)
{
    struct plim_trial *trial = chosen();
    trial->retries = 1;
    trial->steps_done = 4;
    cr_expect(not(says("did not repeat")), "no more were tried than decide");
    trial->steps_done = 5;
    cr_expect(says("5 steps were replayed, and did not repeat."));
    cr_expect(not(says("Everything repeats")));
    facts.details.is_program = true;
    cr_expect(not(says("did not repeat")));
}

Test(sentences, what_was_not_proven_is_told)
{
    chosen();
    facts.decision.choice.verified = false;
    facts.decision.choice.batch.accumulation = 6;
    cr_expect(says("It was not proven that all later steps fit."));
    facts.runner.probed_micro_steps = 4;
    cr_expect(says("Run with 4 of the 6 micro-steps of a step."));
    facts.decision.choice.batch.accumulation = 4;
    cr_expect(says("It was not proven that all later steps fit."));
}

/* --- what the plan had said ------------------------------------------------------------------- */

static void planned(void)
{
    struct plim_trial *trial = chosen();
    trial->reserved_bytes = INT64_C(3) << 29;
    facts.decision.choice.step_seconds = 1.1;
    facts.decision.was_planned = true;
    facts.decision.planned_seconds = 1;
    facts.decision.planned_reserved_bytes = INT64_C(1) << 30;
}

Test(sentences, the_plan_is_held_against_what_was_measured)
{
    planned();
    cr_expect(says("Predicted: 1 s a step (measured: +10 %) and 1.00 GiB reserved (measured: 1.50 "
                   "GiB)."));
    facts.decision.planned_reserved_bytes = facts.decision.choice.trial.reserved_bytes;
    cr_expect(says("and 1.50 GiB reserved (measured: the same)."));
    facts.decision.choice.trial.seconds_are_modelled = true;
    cr_expect(not(says("Predicted")), "by the plan's own model");
}

Test(sentences, an_edge_that_was_predicted_is_told_where_it_was_another)
{
    planned();
    facts.decision.has_largest = true;
    facts.decision.largest.batch.micro_batch = 7;
    facts.decision.planned_edge = 7;
    cr_expect(not(says("was predicted to be")));
    facts.decision.planned_edge = 8;
    cr_expect(says("The largest micro-batch was predicted to be 8; measured: 7."));
    facts.decision.planned_edge = 0;
    cr_expect(not(says("was predicted to be")));
    facts.decision.planned_edge = 8;
    facts.decision.has_largest = false;
    cr_expect(not(says("was predicted to be")));
}

Test(sentences, the_end_of_a_range_is_no_edge)
{
    chosen();
    cr_expect(not(says("is the end of the range")));
    facts.question.batch.last = 1; /* a single one that was requested */
    facts.question.batch.first = 1;
    cr_expect(not(says("is the end of the range")));
    facts.question.batch.first = 8;
    facts.question.batch.last = 16;
    facts.decision.choice.batch.micro_batch = 16;
    cr_expect(says("Micro-batch 16 is the end of the range; larger ones may fit too."));
    facts.decision.choice.batch.micro_batch = 15;
    cr_expect(not(says("is the end of the range")));
}

/* --- what is taken besides the tensors -------------------------------------------------------- */

Test(sentences, the_overhead_says_where_it_is_from)
{
    nothing_fits();
    facts.limit.overhead_bytes = INT64_C(1) << 29;
    facts.limit.overhead_source = "given";
    cr_expect(not(says("--overhead")));
    facts.limit.overhead_source = "estimate";
    cr_expect(says("512 MiB for the framework itself is an estimate for this kind of GPU"));
    facts.limit.overhead_bytes = 0;
    cr_expect(says("is unknown and not counted (--overhead sets it)."));
    facts.limit.overhead_measured_bytes = INT64_C(1) << 28;
    facts.limit.communicator_bytes = INT64_C(1) << 27;
    cr_expect(says("plimsoll's own process took 256 MiB besides its tensors."));
    cr_expect(says("128 MiB of what the framework needs are an assumption for NCCL"));
    facts.limit.overhead_bytes = INT64_C(1) << 28;
    cr_expect(not(says("were not counted")));
    facts.limit.overhead_bytes--;
    cr_expect(says("1 B of that were not counted beforehand"));
}

/* What vLLM is given is no part of what was measured, nor of the estimate. */
Test(sentences, what_vllm_holds_is_told_beside_the_overhead)
{
    nothing_fits();
    facts.limit.overhead_source = "estimate";
    facts.limit.vllm_bytes = INT64_C(1) << 30;
    facts.limit.overhead_bytes = facts.limit.vllm_bytes + (INT64_C(1) << 29);
    facts.limit.overhead_measured_bytes = INT64_C(3) << 28;
    cr_expect(says("1.00 GiB are set aside for vLLM"));
    cr_expect(says("512 MiB for the framework itself is an estimate"));
    cr_expect(says("256 MiB of that were not counted beforehand"));
    cr_expect(not(says("While it generates")));
    facts.limit.vllm_bytes = 0;
    facts.limit.vllm_awake_bytes = INT64_C(1) << 30;
    cr_expect(says("While it generates, vLLM holds 1.00 GiB"));
}

Test(sentences, an_early_end_says_why_and_whether_there_is_an_answer)
{
    facts.decision.ended = PLIM_LOST;
    strcpy(facts.decision.ended_why, "the GPU fell off the bus");
    cr_expect(says("The search was ended early (the GPU fell off the bus)."));
    facts.decision.ended_why[0] = '\0';
    cr_expect(not(says("bus")));
    chosen();
    cr_expect(says("): this is the best so far."));
}
