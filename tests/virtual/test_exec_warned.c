/* Warnings of exec about answers that a real job may not reproduce. */
#include "tests/cli/program.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GPU "exec --device sim:A100-SXM4-80GB,memory=1GiB --margin 0 --overhead 0 --json "
#define TRAINER " -- " PLIM_TRAINER " {batch} "

/* The job has more GPUs than the one that is tried: a warning says what is left out. */
Test(exec_warned, the_gpus_of_the_job_count_for_its_batch)
{
    static const struct {
        const char *options;
        int64_t accumulation;
        const char *told; /* NULL: nothing */
    } cases[] = {{"--world 4", 4, "The program ran on 1 of the job's 4 GPUs"},
                 {"--gpus 4", 4, "The program used 1 of the 4 GPUs that it sees"},
                 {"", 16, NULL}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char line[512];
        snprintf(line, sizeof(line),
                 GPU "--batch 2 --effective-batch 32 %s" TRAINER, cases[i].options);
        struct program p = program_run(line);
        cr_expect(eq(int, p.exit_code, 0), "%s", p.err);
        json_t *root = program_json(&p);
        cr_expect(eq(i64, json_int_at(root, "choice.accumulation"), cases[i].accumulation), "%s", cases[i].options);
        bool is_told = cases[i].told ? strstr(p.out, cases[i].told) != NULL : !strstr(p.out, "The program ");
        cr_expect(is_told, "%s: %s", cases[i].options, p.out);
        json_decref(root);
        program_finish(&p);
    }
}

Test(exec_warned, a_program_that_fails_without_a_word_has_no_last_lines)
{
    struct program p = program_run(GPU "-- false");
    cr_expect(strstr(p.err, "exit code 1; it wrote nothing\n") != NULL, "%s", p.err);
    program_finish(&p);
    p = program_run(GPU TRAINER "fails=3");
    cr_expect(strstr(p.err, "; its last lines:\nplimsoll: warning: | trainer: no such file") != NULL, "%s", p.err);
    program_finish(&p);
}

Test(exec_warned, an_assumed_value_that_is_never_read_changes_nothing)
{
    struct program p = program_run(GPU "--batch 2 --assume a.py:3=1 --assume b.py:7=true" TRAINER);
    cr_expect(eq(int, p.exit_code, 0), "%s", p.err);
    cr_expect(strstr(p.out, "--assume had no effect at a.py:3, b.py:7: ") != NULL, "%s", p.out);
    program_finish(&p);
}

/* A program skips what it does not like, or ends before it trains. */
Test(exec_warned, a_choice_that_does_not_train_is_uncertain)
{
    static const struct {
        const char *command, *told; /* NULL: nothing */
    } cases[] = {
        {GPU "--batch 1:16" TRAINER "skips=8 steps=40", "no training step was seen in the trial of the choice, but "},
        {GPU "--batch 1:16" TRAINER "skips=1 steps=40", NULL},
        {GPU "--batch 1:16" TRAINER "steps=40", NULL}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct program p = program_run(cases[i].command);
        cr_expect(eq(int, p.exit_code, 0), "%s", p.err);
        json_t *root = program_json(&p);
        cr_expect(eq(int, json_is_true(json_at(root, "uncertain")), cases[i].told != NULL), "%s", p.out);
        if (cases[i].told) cr_expect(strstr(p.out, cases[i].told) != NULL, "%s", p.out);
        json_decref(root);
        program_finish(&p);
    }
}

/* --observe and a search evaluate it by other rules, with a note. */
Test(exec_warned, a_run_that_got_less_fits_where_a_search_says_that_it_does_not)
{
    struct program p = program_run(GPU "--observe -- " PLIM_TRAINER " 64 catches=1");
    cr_expect(eq(int, p.exit_code, 0), "%s", p.err);
    cr_expect(strstr(p.out, "a search over {batch} counts such a trial as out of memory") != NULL, "%s", p.out);
    program_finish(&p);
    p = program_run(GPU "--batch 64" TRAINER "catches=1");
    cr_expect(eq(int, p.exit_code, 1), "%s", p.err);
    program_finish(&p);
}

Test(exec_warned, the_folder_of_logs_is_made_with_those_above_it)
{
    char folder[] = "/tmp/plimsoll-logs-XXXXXX", above[40], logs[48], log[64], line[512];
    cr_assert(mkdtemp(folder) != NULL);
    snprintf(above, sizeof(above), "%s/a", folder);
    snprintf(logs, sizeof(logs), "%s/b", above);
    snprintf(log, sizeof(log), "%s/trial-1.log", logs);
    snprintf(line, sizeof(line), GPU "--batch 2 --logs %s" TRAINER, logs);
    struct program p = program_run(line);
    cr_expect(eq(int, p.exit_code, 0), "%s", p.err);
    cr_expect(eq(int, access(log, F_OK), 0), "%s", log);
    program_finish(&p);
    snprintf(line, sizeof(line), GPU "--batch 2 --logs %s" TRAINER, log);
    p = program_run(line);
    cr_expect(eq(int, p.exit_code, 2), "%s", p.err);
    cr_expect(strstr(p.err, "/trial-1.log: it cannot be made: this is not a folder") != NULL, "%s", p.err);
    program_finish(&p);
    cr_expect(eq(int, unlink(log) || rmdir(logs) || rmdir(above) || rmdir(folder), 0));
}
