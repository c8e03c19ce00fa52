/* The binary with one allocation, or all from one on, failing (fail_allocation.c): either the
 * answer is the undisturbed one, or there is none and the program says why in one line and fails.
 */
#include "tests/cli/program.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SAMPLES = 31, EXIT_INTERNAL = 6 };

static char count_path[] = "/tmp/plimsoll-allocations-XXXXXX";

static void set_up(void)
{
    int file = mkstemp(count_path);
    cr_assert(ge(int, file, 0));
    close(file);
    setenv("PLIM_FAIL_COUNT", count_path, 1);
}

static void tear_down(void)
{
    unlink(count_path);
}

TestSuite(host_memory, .init = set_up, .fini = tear_down);

/* Only the program is to fail, not the test. */
static struct program run_with(const char *command, long fail_at)
{
    char number[24];
    snprintf(number, sizeof(number), "%ld", fail_at);
    setenv("PLIM_FAIL_AT", number, 1);
    setenv("LD_PRELOAD", PLIM_FAIL_ALLOCATION, 1);
    struct program p = program_run(command);
    unsetenv("LD_PRELOAD");
    return p;
}

static long allocations(void)
{
    long count = 0;
    FILE *file = fopen(count_path, "r");
    cr_assert(file != NULL);
    cr_assert(eq(int, fscanf(file, "%ld", &count), 1));
    fclose(file);
    return count;
}

static void expect_whole_or_none(const char *command, long fail_at, const struct program *whole)
{
    struct program p = run_with(command, fail_at);
    bool same = p.exit_code == whole->exit_code && !strcmp(p.out, whole->out);
    const char *end = strchr(p.err, '\n');
    bool none = p.exit_code == EXIT_INTERNAL && !*p.out && end && !end[1];
    cr_expect(same || none, "%s, allocation %ld: exit %d\n%s\n%s", command, fail_at, p.exit_code,
              p.out, p.err);
    program_finish(&p);
}

/* Spread over the whole run, and densely at its end, where the report is made. */
static void sweep(const char *command)
{
    struct program whole = run_with(command, 0);
    long count = allocations();
    cr_assert(ge(long, count, 7 * SAMPLES), "%s", command);
    for (long i = 0; i < SAMPLES; i++) {
        expect_whole_or_none(command, 1 + i * count / SAMPLES, &whole);
        expect_whole_or_none(command, count - 7 * i, &whole);
    }
    program_finish(&whole);
}

static void sweep_both(const char *command)
{
    sweep(command);
    setenv("PLIM_FAIL_ON", "1", 1);
    sweep(command);
    unsetenv("PLIM_FAIL_ON");
}

Test(host_memory, plan_answers_wholly_or_not_at_all)
{
    sweep_both("plan llama-3-8b --device sim:80GiB --quiet");
    sweep_both("plan gpt2-124m --device sim:RTX-3090 --device sim:T4 --seq 512 --quiet");
}

Test(host_memory, explain_answers_wholly_or_not_at_all)
{
    sweep_both("explain gpt2-124m --batch 8 --seq 1024 --device sim:RTX-3090 --quiet");
    sweep_both("explain gpt2-124m --batch 8 --seq 1024 --device sim:8GiB --json --quiet "
               "--alloc-conf expandable_segments:True --checkpointing full");
}

Test(host_memory, import_answers_wholly_or_not_at_all)
{
    sweep_both("import gpt2-124m");
}
