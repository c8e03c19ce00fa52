/* record, and recordings as specs, with the trainer of the tests of exec. */
#include "autotune/base/sha256.h"
#include "program.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MIB = 1 << 20 };

#define SMALL " --device sim:A100-SXM4-80GB,memory=1GiB --margin 0 --overhead 0 --json"

static struct program record(const char *path, const char *options, const char *command)
{
    char line[2048];
    snprintf(line, sizeof(line), "record %s -o %s -- %s %s", options, path, PLIM_TRAINER, command);
    return program_run(line);
}

static struct program ask(const char *verb, const char *path, const char *options)
{
    char line[1024];
    snprintf(line, sizeof(line), "%s %s%s", verb, path, options);
    return program_run(line);
}

static char *new_path(void)
{
    char *path = program_file("job.plim", "");
    unlink(path);
    return path;
}

static json_int_t peak_in_trial(const char *command)
{
    char line[1024];
    snprintf(line, sizeof(line), "exec --observe --no-store" SMALL " -- %s %s", PLIM_TRAINER, command);
    struct program p = program_run(line);
    json_t *root = program_json(&p);
    json_int_t peak = json_int_at(root, "choice.peak.reserved_bytes");
    json_decref(root);
    program_finish(&p);
    return peak;
}

Test(record, a_size_that_was_not_recorded_takes_what_a_trial_takes)
{
    char *path = new_path();
    struct program p = record(path, "", "{batch} cache=0 states=100 steps=30");
    cr_assert(eq(int, p.exit_code, 0), "%s", p.err);
    cr_expect(strstr(p.out, "allocator: direct") != NULL, "%s", p.out);
    program_finish(&p);
    p = ask("explain", path, " --batch 7" SMALL);
    cr_assert(eq(int, p.exit_code, 0), "%s", p.err);
    json_t *root = program_json(&p);
    json_int_t peak = json_int_at(root, "peak.reserved_bytes");
    cr_expect(eq(i64, peak, (64 + 100 + 7 * 32) * MIB));
    cr_expect(eq(i64, peak, peak_in_trial("7 cache=0 states=100 steps=30")));
    cr_expect(strstr(p.out, "what later steps do differently") != NULL, "%s", p.out);
    json_decref(root);
    program_finish(&p);
    program_file_remove(path);
}

Test(record, plan_finds_the_batch_that_exec_finds)
{
    char *path = new_path();
    struct program p = record(path, "", "{batch} cache=0 steps=30");
    cr_assert(eq(int, p.exit_code, 0), "%s", p.err);
    program_finish(&p);
    p = ask("plan", path, SMALL);
    json_t *planned = program_json(&p);
    program_finish(&p);
    p = program_run("exec --no-store" SMALL " -- " PLIM_TRAINER " {batch} cache=0 steps=30");
    json_t *tried = program_json(&p);
    program_finish(&p);
    cr_expect(eq(i64, json_int_at(planned, "choice.micro_batch"), 30));
    cr_expect(eq(i64, json_int_at(tried, "choice.micro_batch"), 30));
    json_decref(planned);
    json_decref(tried);
    program_file_remove(path);
}

/* Batch 1 is too little for BatchNorm. */
Test(record, a_size_at_which_the_program_does_not_run_is_left_out)
{
    char *path = new_path();
    struct program p = record(path, "", "{batch} cache=0 steps=30 least=2");
    cr_assert(eq(int, p.exit_code, 0), "%s", p.err);
    cr_expect(strstr(p.err, "recording at batch 1") && strstr(p.err, "exit code 4"), "%s", p.err);
    cr_expect(strstr(p.err, "this size is left out") != NULL, "%s", p.err);
    cr_expect(strstr(p.err, "batch 4: ") != NULL, "a line a run: %s", p.err);
    cr_expect(strstr(p.out, "from batch 2") != NULL, "%s", p.out);
    program_finish(&p);
    p = ask("explain", path, " --batch 7" SMALL);
    json_t *root = program_json(&p);
    cr_expect(eq(i64, json_int_at(root, "peak.reserved_bytes"), (64 + 7 * 32) * MIB));
    json_decref(root);
    program_finish(&p);
    program_file_remove(path);
    path = new_path(); /* two sizes are too few */
    p = record(path, "--batch 1,2,3,4", "{batch} cache=0 steps=30 least=3");
    cr_expect(eq(int, p.exit_code, 2), "%s", p.err);
    cr_expect(strstr(p.err, "recording at batch 2") != NULL, "%s", p.err);
    cr_expect(access(path, F_OK) != 0);
    program_finish(&p);
    program_file_remove(path);
}

/* A batch that is four times the largest is run beside those that are recorded; not where batches are named. */
Test(record, what_only_larger_batches_take_makes_a_recording_uncertain)
{
    static const struct {
        const char *options, *command;
        bool is_uncertain;
    } cases[] = {{"", "{batch} cache=0 steps=30 large=9", true},
                 {"", "{batch} cache=0 steps=30 large=17", false},
                 {"--batch 1,2,3", "{batch} cache=0 steps=30 large=9", false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *path = program_file("further.plim", "");
        struct program p = record(path, cases[i].options, cases[i].command);
        cr_assert(eq(int, p.exit_code, 0), "%s", p.err);
        bool is_said =
            strstr(p.err, "uncertain: at batch 16 the program reserves 640 MiB instead of the 576 ") !=
            NULL;
        cr_expect(eq(int, is_said, cases[i].is_uncertain), "case %d: %s", (int)i, p.err);
        program_finish(&p);
        p = ask("explain", path, " --batch 7" SMALL);
        json_t *root = program_json(&p);
        cr_expect(eq(int, strstr(p.out, "The answer is uncertain") != NULL, cases[i].is_uncertain), "case %d: %s",
                  (int)i, p.out);
        cr_expect(eq(int, json_true_at(root, "uncertain"), cases[i].is_uncertain), "case %d: %s", (int)i, p.out);
        json_decref(root);
        program_finish(&p);
        program_file_remove(path);
    }
}

/* A program that rounds its batch shows that at none of those that are named, but at one between, which is run too. */
Test(record, a_batch_between_those_that_were_named_shows_what_rounds)
{
    static const struct {
        const char *options, *command;
        bool is_uncertain;
    } cases[] = {{"--batch 4,8,12", "{batch} cache=0 steps=30 rounds=4", true},
                 {"--batch 4,8,12", "{batch} cache=0 steps=30", false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *path = new_path();
        struct program p = record(path, cases[i].options, cases[i].command);
        cr_assert(eq(int, p.exit_code, 0), "%s", p.err);
        bool is_said = strstr(p.err, "uncertain: at batch 11 the program reserves 448 MiB instead of the 416 that "
                                     "batches 4 to 12 suggest: it may round its batch") != NULL;
        cr_expect(eq(int, is_said, cases[i].is_uncertain), "%s", p.err);
        program_finish(&p);
        program_file_remove(path);
    }
}

/* Where a larger batch is gone through in chunks, larger ones are no help, and it is said what is. */
Test(record, a_larger_batch_that_is_gone_through_in_chunks_is_advised_each_batch)
{
    char *path = new_path();
    struct program p = record(path, "", "{batch} cache=0 steps=30 alone=8 large=16");
    cr_expect(eq(int, p.exit_code, 0), "%s", p.err);
    cr_expect(strstr(p.err, "--batch 16,24,32 records what it does there, or --each-batch") != NULL, "%s", p.err);
    program_finish(&p);
    p = record(path, "--batch 16,24,32", "{batch} cache=0 steps=30 alone=8 large=16");
    cr_expect(eq(int, p.exit_code, 2), "%s", p.err);
    cr_expect(strstr(p.err, "follows the batch (6 at batch 16, 8 at 24, 10 at 32)") != NULL, "%s", p.err);
    program_finish(&p);
    program_file_remove(path);
}

/* A program that rounds its batch up to a power of two shows that only between them. */
Test(record, of_powers_of_two_alone_it_is_said)
{
    static const char *const batches[] = {"--batch 2,4,8", "--batch 2,4,6"};
    for (int i = 0; i < 2; i++) {
        char *path = new_path();
        struct program p = record(path, batches[i], "{batch} cache=0 steps=30");
        cr_assert(eq(int, p.exit_code, 0), "%s", p.err);
        program_finish(&p);
        p = ask("explain", path, " --batch 3" SMALL);
        cr_expect(eq(int, strstr(p.out, "only batches that are powers of two") != NULL, i == 0), "%s", p.out);
        program_finish(&p);
        program_file_remove(path);
    }
}

/* Samples one after the other: each batch is another sequence, and says nothing of the others. */
Test(record, each_batch_is_recorded_alone_where_that_is_asked_for)
{
    static const char command[] = "{batch} cache=0 steps=30 alone=1 micro={accumulation}";
    char *path = new_path(), line[128];
    struct program p = record(path, "--batch 1,2,5", command);
    cr_expect(eq(int, p.exit_code, 2), "%s", p.err);
    cr_expect(strstr(p.err, "with --each-batch the batches that are to be used") != NULL, "%s", p.err);
    program_finish(&p);
    p = record(path, "--each-batch --batch 1,2,5", command);
    cr_assert(eq(int, p.exit_code, 0), "%s", p.err);
    cr_expect(strstr(p.out, "several micro-steps, of batch 5") != NULL, "%s", p.out);
    program_finish(&p);
    for (int batch = 1; batch <= 6; batch++) {
        bool is_known = batch == 1 || batch == 2 || batch == 5;
        snprintf(line, sizeof(line), " --batch %d --accumulation 3" SMALL, batch);
        p = ask("explain", path, line);
        cr_expect(eq(int, p.exit_code, is_known ? 0 : 2), "%s", p.err);
        if (!is_known) cr_expect(strstr(p.err, "alone were recorded: 1, 2, 5; exec") != NULL, "%s", p.err);
        json_t *root = is_known ? program_json(&p) : NULL;
        if (is_known) cr_expect(eq(i64, json_int_at(root, "peak.reserved_bytes"), (64 + batch * 32) * MIB));
        if (is_known) cr_expect(strstr(p.out, "it holds at the recorded batches alone") != NULL, "%s", p.out);
        json_decref(root);
        program_finish(&p);
    }
    static const struct {
        const char *options;
        int64_t batch, accumulation;
    } asked[] = {
        {" --effective-batch 10 --objective largest-batch" SMALL, 5, 2},
        {" --effective-batch 4 --objective largest-batch" SMALL, 2, 2},
        {" --objective largest-batch" SMALL, 5, 1},
        {" --objective largest-batch --margin 0 --overhead 0 --json --device sim:A100-SXM4-80GB,memory=200MiB", 2, 1}};
    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
        p = ask("tune", path, asked[i].options);
        json_t *root = program_json(&p);
        cr_expect(eq(i64, json_int_at(root, "choice.micro_batch"), asked[i].batch), "%zu: %s", i, p.out);
        cr_expect(eq(i64, json_int_at(root, "choice.accumulation"), asked[i].accumulation), "%zu", i);
        json_decref(root);
        program_finish(&p);
    }
    program_file_remove(path);
}

/* Values of axes that were recorded one by one, in as many files: together as if at once, but for what is in none. */
Test(record, parts_become_one_file)
{
    static const char command[] = "{batch} cache=0 steps=30 sample={kind} states={held}";
    char *parts[3] = {new_path(), new_path(), new_path()}, *all = new_path(), line[512];
    static const char *const values[3] = {"--axis kind=32 --axis held=100", "--axis kind=48 --axis held=100",
                                          "--axis kind=48 --axis held=10"};
    for (int i = 0; i < 3; i++) {
        snprintf(line, sizeof(line), "--batch 1,2,3 %s", values[i]);
        struct program p = record(parts[i], line, command);
        cr_assert(eq(int, p.exit_code, 0), "%s", p.err);
        program_finish(&p);
    }
    snprintf(line, sizeof(line), "record -o %s --merge %s --merge %s --merge %s", all, parts[0], parts[1], parts[2]);
    struct program p = program_run(line);
    cr_assert(eq(int, p.exit_code, 0), "%s", p.err);
    cr_expect(strstr(p.out, "3 streams") != NULL, "%s", p.out);
    program_finish(&p);
    p = ask("explain", all, " --batch 5 --axis kind=48 --axis held=10" SMALL);
    json_t *root = program_json(&p);
    cr_expect(eq(i64, json_int_at(root, "peak.reserved_bytes"), (64 + 10 + 5 * 48) * MIB));
    json_decref(root);
    program_finish(&p);
    p = ask("explain", all, " --batch 5 --axis kind=32 --axis held=10" SMALL);
    cr_expect(eq(int, p.exit_code, 2), "%s", p.out);
    cr_expect(strstr(p.err, "but these are: 32 100; 48 100; 48 10") != NULL, "%s", p.err);
    program_finish(&p);
    /* The first of three levels is none of the recorded ones. */
    p = ask("tune", all, " --axis kind=32,48 --axis held=10,100 --waterfall kind,held --batch 5" SMALL);
    root = program_json(&p);
    cr_expect(eq(int, p.exit_code, 0), "%s", p.err);
    cr_expect(eq(i64, json_int_at(root, "choice.peak.reserved_bytes"), (64 + 10 + 5 * 48) * MIB), "%s", p.out);
    cr_expect(strstr(p.out, "of 4 combinations of its axes 3 are recorded") != NULL, "%s", p.out);
    json_decref(root);
    program_finish(&p);
    snprintf(line, sizeof(line), "record -o %s --merge %s --merge %s", parts[0], all, parts[1]);
    p = program_run(line);
    cr_expect(eq(int, p.exit_code, 2), "%s", p.err);
    cr_expect(strstr(p.err, "a combination of values twice") != NULL, "%s", p.err);
    program_finish(&p);
    static const char *const with[] = {"--axis kind=32", "--batch 4", "-- true"};
    for (int i = 0; i < 3; i++) {
        snprintf(line, sizeof(line), "record -o %s --merge %s %s", all, parts[1], with[i]);
        p = program_run(line);
        cr_expect(eq(int, p.exit_code, 2), "%s", p.err);
        cr_expect(strstr(p.err, "expected no command and no sizes") != NULL, "%s", p.err);
        program_finish(&p);
    }
    for (int i = 0; i < 3; i++) program_file_remove(parts[i]);
    program_file_remove(all);
}

Test(record, each_value_of_an_axis_has_a_stream)
{
    char *path = new_path();
    struct program p =
        record(path, "--axis kind=32,48 --batch 1,2,3", "{batch} cache=0 steps=30 sample={kind}");
    cr_assert(eq(int, p.exit_code, 0), "%s", p.err);
    program_finish(&p);
    p = ask("explain", path, " --batch 5 --axis kind=48" SMALL);
    json_t *root = program_json(&p);
    cr_expect(eq(i64, json_int_at(root, "peak.reserved_bytes"), (64 + 5 * 48) * MIB));
    json_expect_text(root, "setting.sizes.kind", "48");
    json_decref(root);
    program_finish(&p);
    p = ask("plan", path, " --axis kind=48 --prove" SMALL);
    root = program_json(&p);
    cr_expect(eq(i64, json_int_at(root, "choice.micro_batch"), 20), "%s", p.err);
    cr_expect(json_true_at(root, "choice.verified"));
    json_decref(root);
    program_finish(&p);
    p = ask("explain", path, " --batch 5 --axis kind=64" SMALL);
    cr_expect(eq(int, p.exit_code, 2));
    cr_expect(strstr(p.err, "no kind 64") != NULL, "%s", p.err);
    program_finish(&p);
    program_file_remove(path);
}

/* 64 MiB stay; 32 a sample; gradients of 16 are once more in each micro-step but the first. */
Test(record, a_step_of_any_number_of_micro_steps_takes_what_a_trial_takes)
{
    static const char command[] = "{batch} cache=0 steps=30 grads=16 micro={accumulation}";
    char *path = new_path();
    struct program p = record(path, "--batch 1,2,3", command);
    cr_assert(eq(int, p.exit_code, 0), "%s", p.err);
    program_finish(&p);
    for (int accumulation = 1; accumulation < 10; accumulation++) {
        char options[256];
        snprintf(options, sizeof(options), " --batch 7 --accumulation %d" SMALL, accumulation);
        p = ask("explain", path, options);
        json_t *root = program_json(&p);
        json_int_t gradients = accumulation > 1 ? 32 : 16;
        cr_expect(eq(i64, json_int_at(root, "peak.reserved_bytes"),
                     (64 + 7 * 32 + gradients) * MIB), "%d: %s", accumulation, p.err);
        json_decref(root);
        program_finish(&p);
    }
    cr_expect(eq(i64, peak_in_trial("7 cache=0 steps=9 grads=16 micro=6"), (64 + 7 * 32 + 32) * MIB));
    program_file_remove(path);
}

/* 1 GiB is room for 28 with two micro-steps; 24 divides 96, 32 would not fit. */
Test(record, an_effective_batch_is_kept_by_accumulation)
{
    char *path = new_path();
    struct program p =
        record(path, "--batch 1,2,3", "{batch} cache=0 steps=30 grads=16 micro={accumulation}");
    cr_assert(eq(int, p.exit_code, 0), "%s", p.err);
    program_finish(&p);
    p = ask("plan", path, " --effective-batch 96" SMALL);
    json_t *root = program_json(&p);
    cr_expect(eq(i64, json_int_at(root, "choice.micro_batch"), 24), "%s", p.err);
    cr_expect(eq(i64, json_int_at(root, "choice.accumulation"), 4));
    cr_expect(eq(i64, json_int_at(root, "choice.effective_batch"), 96));
    json_decref(root);
    program_finish(&p);
    program_file_remove(path);
}

static void write_number(const char *path, int number)
{
    FILE *file = fopen(path, "w");
    cr_assert(file != NULL);
    fprintf(file, "%d", number);
    fclose(file);
}

static bool is_verified(const char *path, const char *options, const char *says)
{
    struct program p = ask("plan", path, options);
    json_t *root = program_json(&p);
    bool verified = json_true_at(root, "choice.verified");
    cr_expect(eq(i64, json_int_at(root, "choice.micro_batch"), 30), "%s", p.err);
    cr_expect(strstr(p.out, says) != NULL, "%s", p.out);
    json_decref(root);
    program_finish(&p);
    return verified;
}

Test(record, only_trials_verify_an_answer)
{
    char *path = new_path(), *size = program_file("size", "32");
    char command[512];
    snprintf(command, sizeof(command), "{batch} cache=0 steps=30 sample=@%s", size);
    struct program p = record(path, "", command);
    cr_assert(eq(int, p.exit_code, 0), "%s", p.err);
    program_finish(&p);
    cr_expect(not(is_verified(path, SMALL, "")));
    cr_expect(is_verified(path, " --prove" SMALL, "micro-batch 30 fits, 31 does not"));
    cr_expect(is_verified(path, " --prove" SMALL,
                          " training steps were recognised")); /* as many as it does until it is ended */
    cr_expect(is_verified(path, " --prove --epoch-steps 5" SMALL, "--epoch-steps had no effect"));
    /* The program is another one since. */
    write_number(size, 40);
    cr_expect(not(is_verified(path, " --prove" SMALL, "micro-batch 30 does not fit")));
    write_number(size, 31);
    cr_expect(is_verified(path, " --prove" SMALL, "31457280 bytes less than"));
    write_number(size, 30);
    cr_expect(not(is_verified(path, " --prove" SMALL, "micro-batch 31 fits too")));
    program_file_remove(size);
    program_file_remove(path);
}

/* Proven is what the program does today. */
Test(record, a_script_that_was_changed_since_is_told_by_the_proof)
{
    char *path = new_path(), *config = program_file("job.yaml", "a: 1\n"), command[512];
    snprintf(command, sizeof(command), "{batch} cache=0 steps=30 config=%s", config);
    struct program p = record(path, "", command);
    cr_assert(eq(int, p.exit_code, 0), "%s", p.err);
    program_finish(&p);
    p = ask("plan", path, " --prove" SMALL);
    cr_expect(strstr(p.out, "not the file that was recorded") == NULL, "%s%s", p.out, p.err);
    program_finish(&p);
    FILE *file = fopen(config, "w");
    cr_assert(file != NULL && fputs("a: 2\n", file) >= 0 && !fclose(file));
    p = ask("plan", path, " --prove" SMALL);
    cr_expect(strstr(p.out, "job.yaml is not the file that was recorded") != NULL, "%s%s", p.out, p.err);
    program_finish(&p);
    program_file_remove(config);
    program_file_remove(path);
}

/* What goes wrong, the exit code, and what is said of it. */
Test(record, a_program_that_cannot_be_recorded_is_named_and_nothing_written)
{
    static const struct {
        const char *options, *command, *says;
        int exit_code;
    } cases[] = {
        {"", "{batch} fails=3", "exit code 3", 2},
        {"", "{batch} signal=11", "signal 11", 2},
        {"--batch 1,2,3 --axis code=0,3", "{batch} fails={code}", "with code 3: recording at batch 1", 2},
        {"", "{batch} cpu=1", "did not use a GPU", 2},
        {"", "{batch} grows=1 steps=9 cache=0", "never repeats", 2},
        {"", "{batch} leak=2 steps=20 cache=0", "goes on growing", 2},
        {"--batch 1,2", "{batch}", "at least 3", 2},
        {"--batch 1:9", "{batch}", "a list", 2},
        {"", "8", "{batch}", 2},
        {"", "8 steps=30 seen={batch}", "does not seem to use {batch}", 2},
        {"--device cuda:0", "{batch}", "simulated", 2},
        {"--batch 1,2,3", "{batch} cache=0 steps=30 fixed=6{accumulation}", "{accumulation}", 2},
        {"--batch 1,2,400000", "{batch} cache=0 steps=30", "out of memory", 2},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *path = new_path();
        struct program p = record(path, cases[i].options, cases[i].command);
        cr_expect(eq(int, p.exit_code, cases[i].exit_code), "%zu: %s", i, p.err);
        cr_expect(strstr(p.err, cases[i].says) != NULL, "%zu: %s", i, p.err);
        cr_expect(access(path, F_OK) != 0, "%zu", i);
        program_finish(&p);
        program_file_remove(path);
    }
}

/* A few bytes of each step are those of a log, and hinder nothing. */
Test(record, what_a_program_keeps_for_its_log_is_left_out)
{
    char *path = new_path();
    struct program p = record(path, "", "{batch} keeps=512 steps=20 cache=0");
    cr_assert(eq(int, p.exit_code, 0), "%s", p.err);
    cr_expect(strstr(p.err, "each step keeps 512 bytes more on the GPU, which the recording leaves out") != NULL, "%s",
              p.err);
    program_finish(&p);
    p = ask("explain", path, " --batch 3" SMALL);
    json_t *root = program_json(&p);
    cr_expect(eq(i64, json_int_at(root, "peak.reserved_bytes"), peak_in_trial("3 steps=20 cache=0")));
    json_decref(root);
    program_finish(&p);
    program_file_remove(path);
}

Test(record, one_run_shows_that_a_program_never_repeats)
{
    char *path = new_path();
    struct program p = record(path, "", "{batch} grows=1 steps=9 cache=0");
    cr_expect(eq(int, p.exit_code, 2), "%s", p.err);
    cr_expect(strstr(p.err, "batch 1: ") && !strstr(p.err, "batch 2: "), "%s", p.err);
    cr_expect(strstr(p.err, "exec runs such a program") != NULL, "%s", p.err);
    program_finish(&p);
    program_file_remove(path);
}

Test(record, an_interrupt_leaves_no_file)
{
    char line[1024], *path = new_path();
    snprintf(line, sizeof(line), "record -o %s -- %s {batch} sleep=200 forever=1 grows=1", path,
             PLIM_TRAINER);
    signal(SIGINT, SIG_DFL);
    struct program p = program_run_and_signal(line, SIGINT, 500);
    cr_expect(eq(int, p.exit_code, 5), "%s", p.err);
    cr_expect(access(path, F_OK) != 0);
    program_finish(&p);
    program_file_remove(path);
}

Test(record, what_a_recording_does_not_know_is_refused_by_name)
{
    static const char *const cases[][2] = {{" --batch 4 --precision bf16", "--precision"},
                                           {" --batch 4 --seq 128", "--seq"},
                                           {" --batch 4 --gpus-per-node 2", "--gpus-per-node"},
                                           {" --batch 4 --device host", "simulated"},
                                           {" --batch 4 --accumulation 2", "--accumulation"},
                                           {" --batch 4 --effective-batch 8", "{accumulation}"},
                                           {" --batch 4 --host-speed fast", "train.host_speed"}};
    char *path = new_path();
    struct program p = record(path, "", "{batch} cache=0 steps=30");
    cr_assert(eq(int, p.exit_code, 0), "%s", p.err);
    program_finish(&p);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        p = ask("explain", path, cases[i][0]);
        cr_expect(ne(int, p.exit_code, 0), "%zu", i);
        cr_expect(strstr(p.err, cases[i][1]) != NULL, "%zu: %s", i, p.err);
        program_finish(&p);
    }
    program_file_remove(path);
}

/* 30 MiB that stay, and for a moment 64 at batch 2, 48 at batch 4. It holds from batch 2 on. */
static const char of_two_batches[] =
    "plimsoll_recording: 1\nname: \"t\"\ncommand: [\"t\", \"{batch}\"]\nmade_by: \"plimsoll\"\n"
    "compute_capability: 80\nallocator: pytorch\nproof: \"\"\nbatch: [2, 4]\nseq: []\naxes: {}\nstreams:\n"
    "- from_batch: 2\n  from_seq: 1\n  sizes:\n  - \"31457280\"\n  - \"table 2,1=67108864 4,1=50331648\"\n"
    "  before: [\"a0\"]\n  step: [\"a1 f1\"]\n";

Test(record, what_is_known_at_recorded_batches_alone_is_told_at_the_others)
{
    static const struct {
        const char *batch;
        bool is_known;
    } cases[] = {{"2", true}, {"3", false}, {"4", true}, {"5", false}};
    char text[1024], sum[PLIM_SHA256_TEXT];
    plim_sha256_text(of_two_batches, strlen(of_two_batches), sum);
    snprintf(text, sizeof(text), "%schecksum: %s\n", of_two_batches, sum);
    char *path = program_file("two.plim", text);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char options[128];
        snprintf(options, sizeof(options), SMALL " --batch %s", cases[i].batch);
        struct program p = ask("explain", path, options);
        cr_expect(eq(int, p.exit_code, 0), "%s", p.err);
        const char *guess = strstr(p.out, "Blocks that follow no formula"), *bytes = strstr(p.out, "of up to 64.0 MiB");
        cr_expect(eq(int, !guess || !bytes, cases[i].is_known), "batch %s: %s", cases[i].batch, p.out);
        program_finish(&p);
    }
    struct program p = ask("plan", path, SMALL " --batch 1,4");
    cr_expect(eq(int, p.exit_code, 2), "%s", p.err);
    cr_expect(strstr(p.err, "--batch 1: the recording holds from batch 2 on") != NULL, "%s", p.err);
    program_finish(&p);
    p = ask("tune", path, " --device sim:A100-SXM4-80GB,memory=64MiB --margin 0 --overhead 0");
    cr_expect(eq(int, p.exit_code, 1), "%s", p.err);
    cr_expect(strstr(p.out, "Micro-batch 2 needs 94.0 MiB") != NULL, "%s", p.out);
    cr_expect(strstr(p.out, "The recording begins at micro-batch 2") != NULL, "%s", p.out);
    program_finish(&p);
    program_file_remove(path);
}

Test(record, a_file_that_is_no_recording_is_refused_in_one_line)
{
    static const char *const texts[] = {"",        "hello",    "plimsoll_recording: 10\n", "{",
                                        "\177ELF", "\x1f\x8b", "\x1f\x8b\x08 and more"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char *path = program_file("bad.plim", texts[i]);
        struct program p = ask("plan", path, "");
        cr_expect(eq(int, p.exit_code, 2), "%zu", i);
        cr_expect(strchr(p.err, '\n') && !strchr(p.err, '\n')[1], "%zu: %s", i, p.err);
        program_finish(&p);
        program_file_remove(path);
    }
}
