/* plimsoll store, and answers that are stored without a message; on emulated GPUs. */
#include "launch.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

TestSuite(kept, .init = launch_set_up, .fini = launch_tear_down);

static void expect_count(const char *arguments, size_t count)
{
    struct program p = launch_run(arguments, 0);
    json_t *root = program_json(&p);
    cr_expect(eq(sz, json_array_size(json_at(root, "answers")), count), "%s", p.out);
    json_decref(root);
    program_finish(&p);
}

Test(kept, every_answer_is_kept_and_one_file_a_key)
{
    static const char plan[] = "plan gpt2-124m --device sim:T4,sim:RTX-4090 --quiet";
    struct program p = launch_run(plan, 0);
    program_finish(&p);
    expect_count("store list --json", 2);
    p = launch_run(plan, 0);
    program_finish(&p);
    expect_count("store list --json", 2);
    p = launch_run("plan gpt2-124m --device sim:A10 --quiet --no-store", 0);
    program_finish(&p);
    expect_count("store list --json", 2);
    p = launch_run("plan llama-3-8b --device sim:T4 --quiet", 1); /* nothing fits */
    program_finish(&p);
    expect_count("store list --json", 2);
}

Test(kept, a_program_that_was_not_asked_before_says_what_differs)
{
    struct program p = launch_run("exec " EXEC "--quiet " TRAINER, 0);
    program_finish(&p);
    p = launch_run("exec " EXEC "--explain-miss " TRAINER " more=1", 0);
    cr_expect(launch_has(p.err, "program (the key): kept for no such line, here more=1"), "%s",
              p.err);
    program_finish(&p);
}

/* The one that differs in a line comes before those that are another model. */
Test(kept, the_nearest_answer_is_explained)
{
    static const char *const plans[] = {
        "plan tiny-gpt2 --device sim:T4 --effective-batch 32 --quiet",
        "plan gpt2-124m --device sim:T4 --effective-batch 64 --quiet",
        "plan qwen2.5-0.5b --device sim:T4 --seq 512 --quiet"};
    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
        struct program p = launch_run(plans[i], 0);
        program_finish(&p);
    }
    struct program p =
        launch_run("env gpt2-124m --device sim:T4 --effective-batch 32 --on-miss nothing "
                   "--explain-miss",
                   0);
    cr_expect(launch_has(p.err, "kept for effective_batch: 64, here effective_batch: 32"), "%s",
              p.err);
    cr_expect(not(launch_has(p.err, "family")), "%s", p.err);
    program_finish(&p);
}

/* Answers of one key and GPU that hold for different libraries or versions. */
Test(kept, answers_of_one_key_are_told_apart)
{
    launch_keep("gpt2-124m 64 8");
    unlink(launch_path("cuda/" PLIM_CUBLASLT));
    fclose(fopen(launch_path("cuda/" PLIM_CUBLASLT ".9"), "w"));
    cr_assert(zero(int, symlink(PLIM_CUBLASLT ".9", launch_path("cuda/" PLIM_CUBLASLT))));
    launch_keep("gpt2-124m 64 4");
    struct program list = launch_run("store list", 0);
    const char *apart = strstr(list.out, "  (libraries ");
    cr_assert(ne(ptr, (void *)apart, NULL), "%s", list.out);
    cr_expect(eq(ptr, strstr(apart + 1, "  (libraries "), NULL), "%s", list.out); /* the newest */
    program_finish(&list);
}

/* One warning, however many answers there are. */
Test(kept, a_store_that_cannot_be_written_is_told_once)
{
    launch_set("PLIMSOLL_STORE", "/dev/null/store");
    struct program p = launch_run("plan gpt2-124m --device sim:T4,sim:A10,sim:L4", 0);
    const char *first = strstr(p.err, "the answer is not kept");
    cr_assert(first != NULL, "%s", p.err);
    cr_expect(strstr(first + 1, "the answer is not kept") == NULL, "%s", p.err);
    program_finish(&p);
}

#ifdef PLIM_STALE_FILES
/* A file server that has just replaced the file says ESTALE once; one that has lost it, again and
 * again. */
Test(kept, a_stale_handle_is_opened_again)
{
    launch_keep("gpt2-124m 64 8");
    launch_set("LD_PRELOAD", PLIM_STALE_FILES);
    launch_set("PLIM_STALE", "1");
    launch_expect_env(ASK, "SOURCE=measured", "");
    launch_set("PLIM_STALE", "100");
    launch_expect_env(ASK, "SOURCE=simulated", "cannot be read: Stale file handle");
    unsetenv("LD_PRELOAD");
}
#endif

/* A file of the store that cannot be read, as a link, is left out with a warning, never silently. */
Test(kept, what_cannot_be_read_is_told)
{
    char command[512];
    struct program p = launch_run("plan gpt2-124m --device sim:T4 --quiet", 0);
    program_finish(&p);
    snprintf(command, sizeof(command), "find %s -name '*.yaml' -exec ln -sf /dev/null {} \\;",
             getenv("PLIMSOLL_STORE"));
    cr_assert(eq(int, system(command), 0));
    struct program list = launch_run("store list", 0);
    cr_expect(launch_has(list.err, "cannot be read: it is a link"), "%s", list.err);
    program_finish(&list);
}

Test(kept, what_was_not_proven_is_not_kept)
{
    struct program p =
        program_run("exec --device sim:T4 --batch 1:4 --quiet -- " PLIM_TRAINER " {batch} cpu=1");
    cr_expect(lt(int, 0, p.exit_code));
    program_finish(&p);
    expect_count("store list --json", 0);
}

Test(kept, an_answer_is_shown_forgotten_and_handed_on)
{
    char arguments[256], key[40];
    struct program p = launch_run("plan gpt2-124m --device sim:T4 --quiet", 0);
    struct program list = launch_run("store list --json", 0);
    json_t *root = program_json(&list);
    snprintf(key, sizeof(key), "%s", json_text_at(root, "answers.0.key"));
    json_decref(root);
    program_finish(&list);
    snprintf(arguments, sizeof(arguments), "store show %.10s", key);
    struct program shown = launch_run(arguments, 0);
    cr_expect(eq(int, strncmp(shown.out, p.out, 60), 0), "%.60s", shown.out);
    cr_expect(launch_has(shown.out, "processors: 40 multiprocessors"), "%s", shown.out);
    program_finish(&shown);
    snprintf(arguments, sizeof(arguments), "store export %s %.8s", launch_path("bundle"), key);
    shown = launch_run(arguments, 0);
    program_finish(&shown);
    snprintf(arguments, sizeof(arguments), "store rm %.8s", key);
    shown = launch_run(arguments, 0);
    program_finish(&shown);
    expect_count("store list --json", 0);
    shown = launch_run(arguments, 2);
    program_finish(&shown);
    snprintf(arguments, sizeof(arguments), "store import %s", launch_path("bundle"));
    shown = launch_run(arguments, 0);
    program_finish(&shown);
    expect_count("store list --json", 1);
    program_finish(&p);
    /* Out and in again nothing changes. */
    snprintf(arguments, sizeof(arguments), "store export %s", launch_path("again"));
    shown = launch_run(arguments, 0);
    program_finish(&shown);
    snprintf(arguments, sizeof(arguments), "diff -r %s %s", launch_path("bundle"),
             launch_path("again"));
    cr_expect(eq(int, system(arguments), 0));
}

Test(kept, gc_takes_what_is_no_answer_any_more)
{
    char path[256];
    struct program p = launch_run("plan gpt2-124m --device sim:T4 --quiet", 0);
    program_finish(&p);
    launch_keep("gpt2-124m 64 8");
    snprintf(path, sizeof(path), "%s/0123456789abcdef0123456789abcdef.yaml",
             launch_path("store/measured"));
    fclose(fopen(path, "w"));
    gethostname(path + 128, 32);
    char left[256];
    snprintf(left, sizeof(left), "%s/.plimsoll-%s-999999999-x", launch_path("store/measured"),
             path + 128);
    fclose(fopen(left, "w"));
    p = launch_run("store gc", 0);
    cr_expect(launch_has(p.err, "2 files removed"), "%s", p.err);
    program_finish(&p);
    expect_count("store list --json", 2);
    p = launch_run("store gc --older-than 1h", 0);
    program_finish(&p);
    expect_count("store list --json", 2);
    sleep(2);
    p = launch_run("store gc --older-than 1s", 0);
    program_finish(&p);
    expect_count("store list --json", 0);
}

Test(kept, mistakes_are_said)
{
    struct program p = launch_run("store shrink", 2);
    cr_expect(launch_has(p.err, "expected list, show, rm, export, import or gc"), "%s", p.err);
    program_finish(&p);
    p = launch_run("store rm", 2);
    program_finish(&p);
    p = launch_run("store import /nowhere", 2);
    program_finish(&p);
}

/* --- many at once ----------------------------------------------------------------------------- */

enum { PROCESSES = 12 };

/* Trials write a line each; the same command, at once. */
static void start(pid_t *pids, int count)
{
    char command[1024];
    snprintf(
        command, sizeof(command),
        "exec '%s' exec --device sim:T4,memory=2GiB --margin 0 --overhead 0 --batch 1:64 --quiet "
        "--env 'TRIALS=%s' -- sh -c 'echo trial >> $TRIALS; exec \"$0\" \"$@\"' '%s' "
        "{batch} sleep=20 > /dev/null",
        PLIM_BINARY, launch_path("trials"), PLIM_TRAINER_PATH);
    char *const argv[] = {(char *)"sh", (char *)"-c", command, NULL};
    for (int i = 0; i < count; i++)
        cr_assert(zero(int, posix_spawn(&pids[i], "/bin/sh", NULL, NULL, argv, environ)));
}

static int lines_of(const char *path)
{
    int lines = 0;
    FILE *file = fopen(path, "r");
    for (int c; file && (c = getc(file)) != EOF;) lines += c == '\n';
    if (file) fclose(file);
    return lines;
}

static void expect_all_well(pid_t *pids, int count)
{
    for (int i = 0; i < count; i++) {
        int status;
        waitpid(pids[i], &status, 0);
        cr_expect(eq(int, status, 0));
    }
}

Test(kept, of_many_with_one_question_one_asks)
{
    pid_t pids[PROCESSES];
    start(pids, 1);
    expect_all_well(pids, 1);
    int alone = lines_of(launch_path("trials"));
    cr_assert(lt(int, 2, alone));
    char command[160];
    snprintf(command, sizeof(command), "rm -rf %s %s", launch_path("store"), launch_path("trials"));
    cr_assert(zero(int, system(command)));
    start(pids, PROCESSES);
    expect_all_well(pids, PROCESSES);
    cr_expect(eq(int, lines_of(launch_path("trials")), alone));
}

Test(kept, where_the_one_that_asks_is_killed_another_asks)
{
    pid_t pids[PROCESSES];
    start(pids, 1);
    for (int i = 0; i < 3000 && lines_of(launch_path("trials")) < 2; i++)
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    start(pids + 1, PROCESSES - 1);
    kill(pids[0], SIGKILL);
    waitpid(pids[0], NULL, 0);
    expect_all_well(pids + 1, PROCESSES - 1);
    expect_count("store list --json", 1);
}
