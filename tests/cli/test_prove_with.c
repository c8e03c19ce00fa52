/* --prove-with: what is planned for a spec, run by the trainer of the tests of exec. The plan of GPT-2 at
 * 24 GiB says 16 samples of an effective batch of 64; the trainer takes what it is told to. */
#include "program.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

enum { MIB = 1 << 20 };

#define PLAN                                                                                       \
    "plan gpt2-124m --json --overhead 0 --seq 1024 --precision bf16-mixed --effective-batch 64 "     \
    "--device sim:24GiB"
#define PLAIN " --margin 0 --checkpointing none"
#define TRAINER "'" PLIM_TRAINER "'~{batch}~cache=0~micro={accumulation}~steps=30"

static struct program prove(const char *more)
{
    char line[1024];
    snprintf(line, sizeof(line), PLAN PLAIN " --prove-with " TRAINER "%s", more);
    return program_run(line);
}

static bool says(json_t *root, const char *text)
{
    size_t i;
    const json_t *reason;
    json_array_foreach(json_at(root, "why"), i, reason)
        if (strstr(json_string_value(reason), text)) return true;
    return false;
}

static void expect_choice(const char *more, json_int_t batch, json_int_t reserved_bytes)
{
    struct program p = prove(more);
    cr_assert(eq(int, p.exit_code, 0), "%s", p.err);
    json_t *root = program_json(&p);
    cr_expect(eq(i64, json_int_at(root, "choice.micro_batch"), batch));
    cr_expect(eq(i64, json_int_at(root, "choice.accumulation"), 64 / batch));
    cr_expect(eq(i64, json_int_at(root, "choice.peak.reserved_bytes"), reserved_bytes));
    cr_expect(json_true_at(root, "choice.verified"));
    cr_expect(says(root, "Proven with the program itself"), "%s", p.out);
    cr_expect(eq(int, says(root, "--epoch-steps had no effect"), strstr(more, "--epoch-steps") != NULL), "%s", p.out);
    json_decref(root);
    program_finish(&p);
}

Test(prove_with, what_the_program_takes_is_told)
{
    expect_choice("~sample=1000", 16, (64 + 16 * 1000) * (json_int_t)MIB);
    expect_choice("~sample=1000 --epoch-steps 5", 16, (64 + 16 * 1000) * (json_int_t)MIB);
}

Test(prove_with, a_program_that_takes_more_than_was_planned_gets_less)
{
    expect_choice("~sample=2000", 8, (64 + 8 * 2000) * (json_int_t)MIB);
}

Test(prove_with, a_program_that_takes_less_gets_more)
{
    expect_choice("~sample=600", 32, (64 + 32 * 600) * (json_int_t)MIB);
}

Test(prove_with, a_value_that_is_varied_reaches_the_command)
{
    struct program p = program_run(PLAN " --margin 0 --prove-with " TRAINER
                                        "~sample=$(test~{checkpointing}~=~full~&&~echo~300~||~echo~900)");
    cr_assert(eq(int, p.exit_code, 0), "%s", p.err);
    json_t *root = program_json(&p);
    json_int_t batch = json_int_at(root, "choice.micro_batch"),
               sample = strcmp(json_text_at(root, "choice.checkpointing"), "full") ? 900 : 300;
    cr_expect(eq(i64, json_int_at(root, "choice.peak.reserved_bytes"), (64 + batch * sample) * MIB));
    json_decref(root);
    program_finish(&p);
}

static void expect_refusal(const char *line, const char *text)
{
    struct program p = program_run(line);
    cr_expect(eq(int, p.exit_code, 2), "%s", p.err);
    cr_expect(strstr(p.err, text) != NULL, "%s", p.err);
    program_finish(&p);
}

Test(prove_with, a_command_that_cannot_be_told_is_refused)
{
    expect_refusal(PLAN PLAIN " --prove-with true", "no {batch}");
    expect_refusal(PLAN PLAIN " --prove-with true~{batch}", "no {accumulation}");
    expect_refusal(PLAN " --prove-with true~{batch}~{accumulation}", "or one value (--checkpointing none)");
    expect_refusal(PLAN ",sim:A100-SXM4-40GB --prove-with true~{batch}~{accumulation}",
                   "expected one --device");
    expect_refusal(PLAN " --tiers --prove-with true~{batch}~{accumulation}", "no --tiers");
    expect_refusal(PLAN PLAIN " --world 32 --prove-with true~{batch}", "up to 16 simulated ones");
}

Test(prove_with, how_a_program_is_run_is_no_question_where_none_is_run)
{
    static const char *const options[] = {"--repetitions 3", "--epoch-steps 3", "--timeout 5m", "--logs /tmp"};
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        char command[1024];
        snprintf(command, sizeof(command), PLAN PLAIN " %s", options[i]);
        expect_refusal(command, "expected --prove or --prove-with");
    }
}

Test(prove_with, a_program_that_never_fits_says_what_it_needs)
{
    struct program p = prove("~sample=30000");
    json_t *root = program_json(&p);
    cr_expect(eq(int, p.exit_code, 1), "%s", p.err);
    cr_expect(json_null_at(root, "choice"));
    cr_expect(eq(i64, json_int_at(root, "short_bytes"), (64 + 30000 - 24 * 1024) * (json_int_t)MIB));
    cr_expect(json_at(root, "advice.0") == NULL);
    json_decref(root);
    program_finish(&p);
}

Test(prove_with, a_program_that_does_not_run_is_no_answer)
{
    struct program p = prove("~fails=3");
    cr_expect(eq(int, p.exit_code, 2), "%s", p.err);
    cr_expect(strstr(p.err, "--prove-with does not run") != NULL, "%s", p.err);
    program_finish(&p);
}
