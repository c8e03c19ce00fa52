#define _DEFAULT_SOURCE /* mkdtemp */
/* The binary with one allocation, or all from one on, failing (fail_allocation.c): either the
 * answer is the undisturbed one, or there is none and the program says why in one line and fails.
 */
#include "tests/cli/program.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SAMPLES = 31, EXIT_INTERNAL = 6 };

static char count_path[] = "/tmp/plimsoll-allocations-XXXXXX";
/* A link to fail_allocation.c: LD_PRELOAD takes no name with a blank in it. */
static char preloaded_path[sizeof(count_path) + 3];

static void set_up(void)
{
    int file = mkstemp(count_path);
    cr_assert(ge(int, file, 0));
    close(file);
    snprintf(preloaded_path, sizeof(preloaded_path), "%s.so", count_path);
    cr_assert(eq(int, symlink(PLIM_FAIL_ALLOCATION, preloaded_path), 0));
    setenv("PLIM_FAIL_COUNT", count_path, 1);
    unsetenv(
        "LD_LIBRARY_PATH"); /* meson's has the virtual GPU, which is no driver of this machine */
}

static void tear_down(void)
{
    unlink(preloaded_path);
    unlink(count_path);
}

TestSuite(host_memory, .init = set_up, .fini = tear_down);

/* Only the program is to fail, not the test. */
static struct program run_with(const char *command, long fail_at)
{
    char number[24];
    snprintf(number, sizeof(number), "%ld", fail_at);
    setenv("PLIM_FAIL_AT", number, 1);
    setenv("LD_PRELOAD", preloaded_path, 1);
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

/* "": there is no such file, which is removed. */
static char *take_page(const char *path)
{
    char *text = calloc(1, 1 << 20);
    FILE *file = fopen(path, "r");
    cr_assert(text != NULL);
    if (file) text[fread(text, 1, (1 << 20) - 1, file)] = '\0';
    if (file) fclose(file);
    unlink(path);
    return text;
}

/* Charts are made near the end. A result whose step cannot be replayed is drawn without it, with a note. */
Test(host_memory, a_page_is_whole_or_there_is_none)
{
    char *result = program_file("result.json", ""), page[512], command[2048];
    snprintf(page, sizeof(page), "%s.html", result);
    snprintf(command, sizeof(command), "plan gpt2-124m --device sim:T4 --seq 512 --quiet --out %s", result);
    struct program p = program_run(command);
    program_finish(&p);
    snprintf(command, sizeof(command), "report %s -o %s", result, page);
    p = run_with(command, 0);
    long count = allocations();
    char *whole = take_page(page);
    cr_assert(strstr(whole, "<svg") != NULL);
    program_finish(&p);
    for (long i = 0; i < 4 * SAMPLES; i++) {
        p = run_with(command, count - 5 * i);
        char *text = take_page(page);
        bool is_none = !*text, is_said = strstr(p.err, "is not drawn") != NULL;
        cr_expect(is_none || is_said || !strcmp(text, whole), "allocation %ld of %ld, exit %d: %s",
                  count - 5 * i, count, p.exit_code, p.err);
        program_finish(&p);
        free(text);
    }
    free(whole);
    program_file_remove(result);
}

/* --- the store -------------------------------------------------------------------------------- */

static char store[] = "/tmp/plimsoll-memory-store-XXXXXX";

static void open_store(void)
{
    cr_assert(mkdtemp(store) != NULL);
    setenv("PLIMSOLL_STORE", store, 1);
    struct program p = program_run("plan gpt2-124m --device sim:RTX-3090 --effective-batch 64 --quiet");
    cr_assert(eq(int, p.exit_code, 0), "%s", p.err);
    program_finish(&p);
}

static void remove_store(void)
{
    char command[64];
    snprintf(command, sizeof(command), "rm -rf %s", store);
    cr_expect(eq(int, system(command), 0));
}

/* env fails open: without an answer nothing is set, and the reason is one line. */
static void expect_answer_or_nothing(const char *command, long fail_at, const struct program *whole)
{
    struct program p = run_with(command, fail_at);
    const char *end = strchr(p.err, '\n');
    bool same = p.exit_code == whole->exit_code && !strcmp(p.out, whole->out);
    bool nothing = p.exit_code == 0 && !*p.out && end && !end[1];
    cr_expect(same || nothing, "%s, allocation %ld: exit %d\n%s\n%s", command, fail_at, p.exit_code,
              p.out, p.err);
    program_finish(&p);
}

Test(host_memory, env_sets_all_or_nothing)
{
    static const char *const commands[] = {
        "env gpt2-124m --device sim:RTX-3090 --effective-batch 64 --on-miss nothing",
        "env gpt2-124m --device sim:T4 --device sim:RTX-3090 --effective-batch 64 --no-store",
        "env gpt2-124m --device sim:RTX-3090 --effective-batch 64 --on-miss nothing --format json"};
    open_store();
    for (int on = 0; on < 2; on++) {
        if (on) setenv("PLIM_FAIL_ON", "1", 1);
        for (size_t c = 0; c < sizeof(commands) / sizeof(commands[0]); c++) {
            struct program whole = run_with(commands[c], 0);
            cr_assert(lt(sz, 50, strlen(whole.out)), "%s", whole.err);
            long count = allocations();
            for (long i = 0; i < SAMPLES; i++) {
                expect_answer_or_nothing(commands[c], 1 + i * count / SAMPLES, &whole);
                expect_answer_or_nothing(commands[c], count - 7 * i, &whole);
            }
            program_finish(&whole);
        }
    }
    unsetenv("PLIM_FAIL_ON");
    remove_store();
}

Test(host_memory, the_store_is_listed_wholly_or_not_at_all)
{
    char show[64];
    open_store();
    struct program list = program_run("store list --json");
    json_t *root = program_json(&list);
    snprintf(show, sizeof(show), "store show %.12s --json", json_text_at(root, "answers.0.key"));
    json_decref(root);
    program_finish(&list);
    sweep_both("store list --json");
    sweep_both(show);
    remove_store();
}

/* An answer is kept whole or not at all, and given in any case. */
Test(host_memory, what_is_kept_is_whole)
{
    static const char plan[] = "plan gpt2-124m --device sim:T4 --effective-batch 64 --quiet",
                      env[] = "env gpt2-124m --device sim:T4 --effective-batch 64 --on-miss nothing";
    open_store();
    struct program whole = run_with(plan, 0), kept = program_run(env);
    long count = allocations();
    cr_assert(lt(sz, 50, strlen(kept.out)), "%s", kept.err);
    for (long i = 0; i < 2 * SAMPLES; i++) {
        remove_store();
        cr_assert(ge(int, mkdir(store, 0700), 0));
        expect_whole_or_none(plan, count - 11 * i, &whole);
        struct program p = program_run(env);
        bool same = !strcmp(p.out, kept.out), none = !*p.out && strstr(p.err, "no simulated answer");
        cr_expect(same || none, "allocation %ld: %s%s", count - 11 * i, p.out, p.err);
        program_finish(&p);
    }
    program_finish(&whole);
    program_finish(&kept);
    remove_store();
}

/* Of the machine's own GPUs it may say that they cannot be looked for; the catalogue is whole. */
static void expect_catalogue_or_none(const char *command, long fail_at, const char *from,
                                     const struct program *whole)
{
    struct program p = run_with(command, fail_at);
    const char *its = strstr(p.out, from), *wanted = strstr(whole->out, from);
    bool same = p.exit_code == whole->exit_code && its && wanted && !strcmp(its, wanted);
    const char *end = strchr(p.err, '\n');
    bool none = p.exit_code == EXIT_INTERNAL && !*p.out && end && !end[1];
    cr_expect(same || none, "%s, allocation %ld: exit %d\n%s\n%s", command, fail_at, p.exit_code,
              p.out, p.err);
    program_finish(&p);
}

static void sweep_devices(const char *command, const char *from)
{
    struct program whole = run_with(command, 0);
    long count = allocations();
    for (long i = 0; i < SAMPLES; i++) {
        expect_catalogue_or_none(command, 1 + i * count / SAMPLES, from, &whole);
        expect_catalogue_or_none(command, count - 7 * i, from, &whole);
    }
    program_finish(&whole);
}

Test(host_memory, devices_shows_the_catalogue_wholly_or_not_at_all)
{
    sweep_devices("devices", "Simulated");
    sweep_devices("devices --json", "\"devices\":");
    setenv("PLIM_FAIL_ON", "1", 1);
    sweep_devices("devices", "Simulated");
    sweep_devices("devices --json", "\"devices\":");
    unsetenv("PLIM_FAIL_ON");
}

/* Only plimsoll is to fail, not the program. */
#define EXEC                                                                                       \
    "exec --device sim:A100-SXM4-80GB,memory=1GiB --margin 0 --overhead 0 --batch 30,31 --json "   \
    "--quiet --env PLIM_FAIL_AT=0 --env PLIM_FAIL_COUNT=/dev/null -- " PLIM_TRAINER " {batch}"

static void expect_30_or_none(long fail_at)
{
    struct program p = run_with(EXEC, fail_at);
    const char *end = strchr(p.err, '\n');
    bool none = p.exit_code == EXIT_INTERNAL && !*p.out && end && !end[1];
    json_t *root = none ? NULL : json_loads(p.out, 0, NULL);
    bool found = root && p.exit_code == 0 && json_int_at(root, "choice.micro_batch") == 30;
    cr_expect(found || none, "allocation %ld: exit %d\n%s\n%s", fail_at, p.exit_code, p.out, p.err);
    json_decref(root);
    program_finish(&p);
}

Test(host_memory, exec_answers_or_says_why_not)
{
    struct program whole = run_with(EXEC, 0);
    long count = allocations();
    cr_assert(eq(int, whole.exit_code, 0), "%s", whole.err);
    program_finish(&whole);
    for (long i = 0; i < SAMPLES; i++) {
        if (i % 2) setenv("PLIM_FAIL_ON", "1", 1);
        else unsetenv("PLIM_FAIL_ON");
        expect_30_or_none(1 + i * count / SAMPLES);
        expect_30_or_none(count - 5 * i);
    }
    unsetenv("PLIM_FAIL_ON");
}
