/* plimsoll env and plimsoll store: at the moment of launch, on pretended GPUs. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "program.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static char folder[] = "/tmp/plimsoll-env-XXXXXX";

static void set(const char *name, const char *value)
{
    cr_assert(zero(int, setenv(name, value, 1)));
}

static const char *below(const char *name)
{
    static char paths[4][128];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
    return path;
}

static void set_up(void)
{
    static const char *const unset[] = {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER",
                                        "LOCAL_RANK",           "SLURM_LOCALID",
                                        "SLURM_STEP_ID",        "PLIM_DOUBLE_NVML",
                                        "PLIM_DOUBLE_OTHERS",   "PLIM_DOUBLE_MEMORY",
                                        "PYTORCH_ALLOC_CONF",   "PYTORCH_CUDA_ALLOC_CONF"};
    cr_assert(mkdtemp(folder) != NULL);
    for (size_t i = 0; i < sizeof(unset) / sizeof(unset[0]); i++) unsetenv(unset[i]);
    set("PLIMSOLL_STORE", below("store"));
    set("XDG_RUNTIME_DIR", folder);
    set("LD_LIBRARY_PATH", PLIM_DOUBLES_FOLDER);
    set("PLIMSOLL_CUDA_PATH", below("cuda"));
    /* Libraries by name: env loads none. */
    cr_assert(zero(int, mkdir(below("cuda"), 0755)));
    fclose(fopen(below("cuda/libcublasLt.so.13"), "w"));
    fclose(fopen(below("cuda/libcudnn.so.9"), "w"));
    set("PLIM_DOUBLE_GPU", "A100-SXM4-80GB");
}

static void tear_down(void)
{
    char command[128];
    snprintf(command, sizeof(command), "chmod -R u+w %s; rm -rf %s", folder, folder);
    cr_expect(eq(int, system(command), 0));
}

TestSuite(env, .init = set_up, .fini = tear_down);
TestSuite(kept, .init = set_up, .fini = tear_down);

static struct program run(const char *arguments, int exit_code)
{
    struct program p = program_run(arguments);
    cr_assert(eq(int, p.exit_code, exit_code), "%s: %s", arguments, p.err);
    return p;
}

static bool has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

/* What an answer that was measured would leave. */
static void keep(const char *arguments)
{
    char command[1024];
    struct program p = run("--version", 0);
    p.out[strcspn(p.out, "\n")] = '\0';
    snprintf(command, sizeof(command), "'%s' '%s' %s", PLIM_KEEP_ANSWER, strchr(p.out, ' ') + 1,
             arguments);
    cr_assert(eq(int, system(command), 0), "%s", command);
    program_finish(&p);
}

#define ASK "env gpt2-124m --effective-batch 64 "

static void expect_env(const char *arguments, const char *out, const char *err)
{
    struct program p = run(arguments, 0);
    cr_expect(has(p.out, out), "'%s' is not in: %s", out, p.out);
    if (*err)
        cr_expect(has(p.err, err), "'%s' is not in: %s", err, p.err);
    else
        cr_expect(eq(str, p.err, (char *)""));
    program_finish(&p);
}

/* --- hits ------------------------------------------------------------------------------------- */

Test(env, a_measured_answer_is_found_without_a_word)
{
    keep("gpt2-124m 64 8");
    expect_env(ASK,
               "export PLIMSOLL_MICRO_BATCH=8\nexport PLIMSOLL_ACCUMULATION=8\n"
               "export PLIMSOLL_GLOBAL_BATCH=64\nexport PLIMSOLL_SEQ=1024\n"
               "export PLIMSOLL_PRECISION=bf16-mixed\nexport PLIMSOLL_CHECKPOINTING=none\n"
               "export PLIMSOLL_SOURCE=measured\nexport PLIMSOLL_STALE=0\n",
               "");
    expect_env(ASK "--device cuda:0", "SOURCE=measured", "");
    expect_env(ASK "--format args", "--micro-batch 8 --accumulation 8", "");
    expect_env(ASK "--format json", "\"PLIMSOLL_MICRO_BATCH\": 8", "");
    expect_env(ASK "--name micro_batch=MICRO_BATCH_SIZE", "\nexport MICRO_BATCH_SIZE=8\n", "");
}

Test(env, another_question_is_another_answer)
{
    keep("gpt2-124m 64 8");
    expect_env("env gpt2-124m --effective-batch 32", "SOURCE=simulated", "no measured answer");
    expect_env(ASK "--margin 2GiB", "SOURCE=simulated", "no measured answer");
    expect_env(ASK "--objective least-memory", "SOURCE=simulated", "no measured answer");
    expect_env(ASK "--set train.clip=1.0", "SOURCE=simulated", "no measured answer");
    expect_env(ASK "--alloc-conf expandable_segments:True", "SOURCE=simulated",
               "no measured answer");
    expect_env(ASK "--device cuda:0,memory=8GiB", "SOURCE=simulated", "no measured answer");
    expect_env(ASK "--seq 1024", "SOURCE=measured", ""); /* it is what is taken anyway */
    set("PLIM_DOUBLE_MEMORY", "70GiB");
    expect_env(ASK, "SOURCE=simulated", "no measured answer");
}

/* Ranks start one after the other: what the first one holds does not change the others' answer. */
Test(env, what_others_hold_now_does_not_count)
{
    keep("gpt2-124m 64 8");
    set("PLIM_DOUBLE_OTHERS", "30GiB");
    expect_env(ASK, "SOURCE=measured", "");
}

Test(env, what_is_fast_makes_it_stale_and_what_fits_a_miss)
{
    keep("gpt2-124m 64 8");
    set("PLIM_DOUBLE_NVML", "driver=999.1");
    expect_env(ASK, "MICRO_BATCH=8\n", "driver (what is fast) was 580.65.06 and is 999.1");
    expect_env(ASK, "PLIMSOLL_STALE=1\n", "a stale answer");
    unlink(below("cuda/libcublasLt.so.13"));
    fclose(fopen(below("cuda/libcublasLt.so.13.9"), "w"));
    cr_assert(zero(int, symlink("libcublasLt.so.13.9", below("cuda/libcublasLt.so.13"))));
    expect_env(ASK, "SOURCE=simulated", "libraries (what fits) was");
    /* A fact that this plimsoll does not know is not known to match. */
    unsetenv("PLIM_DOUBLE_NVML");
    keep("gpt2-124m 64 4 fits");
    expect_env(ASK "--explain-miss", "SOURCE=simulated", "libraries (what fits): kept for");
}

Test(env, a_kept_plan_says_that_it_is_simulated)
{
    struct program p = run("plan gpt2-124m --effective-batch 64 --device sim:A100-SXM4-80GB", 0);
    program_finish(&p);
    expect_env(ASK "--on-miss nothing", "SOURCE=simulated", "simulated, not measured");
}

/* --- misses ----------------------------------------------------------------------------------- */

Test(env, it_fails_open)
{
    static const char *const arguments[] = {ASK "--on-miss nothing",
                                            "env no-such-model",
                                            "env",
                                            "env gpt2-124m --no-such-option",
                                            ASK "--format csv",
                                            ASK "--name micro_batch=1X",
                                            ASK "--device cuda:7",
                                            ASK "--device GPU-0",
                                            "env gpt2-124m --batch 100000",
                                            ASK "--on-miss guess"};
    for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++) {
        char strict[256];
        struct program p = run(arguments[i], 0);
        cr_expect(eq(str, p.out, (char *)""), "%s", arguments[i]);
        cr_expect(has(p.err, "nothing is set: "), "%s: %s", arguments[i], p.err);
        program_finish(&p);
        snprintf(strict, sizeof(strict), "%s --strict", arguments[i]);
        p = program_run(strict);
        cr_expect(gt(int, p.exit_code, 0), "%s", strict);
        cr_expect(eq(str, p.out, (char *)""), "%s", strict);
        cr_expect(ne(str, p.err, (char *)""), "%s", strict);
        program_finish(&p);
    }
}

/* What reads the file afterwards must not take an older answer for this one. */
Test(env, a_file_of_an_older_answer_does_not_stay)
{
    char arguments[256], text[64];
    snprintf(arguments, sizeof(arguments), ASK "--device sim:T4 --out %s", below("answer.env"));
    expect_env(arguments, "MICRO_BATCH=", "");
    FILE *file = fopen(below("answer.env"), "r");
    cr_assert(ne(ptr, fgets(text, sizeof(text), file), NULL));
    fclose(file);
    cr_expect(eq(int, strncmp(text, "export PLIMSOLL_MICRO_BATCH=", 28), 0), "%s", text);
    snprintf(arguments, sizeof(arguments), ASK "--device sim:none --out %s", below("answer.env"));
    expect_env(arguments, "", "nothing is set: ");
    file = fopen(below("answer.env"), "r");
    cr_expect(eq(ptr, fgets(text, sizeof(text), file), NULL));
    fclose(file);
}

Test(env, without_a_gpu_nothing_is_set)
{
    set("PLIM_DOUBLE_NVML", "no-gpus");
    expect_env(ASK, "", "nothing is set: ");
    set("PLIM_DOUBLE_NVML", "");
    set("CUDA_VISIBLE_DEVICES", "");
    expect_env(ASK, "", "nothing is set: ");
    set("PLIM_DOUBLE_NVML", "error=999");
    expect_env(ASK, "", "nothing is set: ");
}

Test(env, the_store_is_not_asked_where_it_is_refused)
{
    keep("gpt2-124m 64 8");
    expect_env(ASK "--no-store", "SOURCE=simulated", "the store is not asked");
    set("PLIMSOLL_STORE", "off");
    expect_env(ASK, "SOURCE=simulated", "the store is not asked");
}

/* --- several GPUs ----------------------------------------------------------------------------- */

Test(env, one_answer_for_all_gpus_and_each_its_own)
{
    set("PLIM_DOUBLE_GPU", "T4");
    keep("gpt2-124m 64 2");
    set("PLIM_DOUBLE_GPU", "A100-SXM4-80GB");
    keep("gpt2-124m 64 8");
    set("PLIM_DOUBLE_GPU", "A100-SXM4-80GB,T4");
    expect_env(ASK, "MICRO_BATCH=2\nexport PLIMSOLL_ACCUMULATION=32\n", "as Tesla T4 can");
    for (int rank = 0; rank < 2; rank++) {
        set("LOCAL_RANK", rank ? "1" : "0");
        expect_env(ASK, "MICRO_BATCH=2\n", "as Tesla T4 can");
        expect_env(ASK "--per-rank", rank ? "MICRO_BATCH=2\n" : "MICRO_BATCH=8\n", "");
    }
    set("CUDA_VISIBLE_DEVICES", "0");
    expect_env(ASK, "MICRO_BATCH=8\n", "");
    set("CUDA_VISIBLE_DEVICES", "1");
    expect_env(ASK, "MICRO_BATCH=2\n", "");
}

Test(env, equal_gpus_are_one)
{
    set("PLIM_DOUBLE_GPU", "T4,T4,T4");
    keep("gpt2-124m 64 2");
    expect_env(ASK, "MICRO_BATCH=2\n", "");
}

Test(env, an_instance_is_not_its_gpu)
{
    keep("gpt2-124m 64 8");
    set("PLIM_DOUBLE_NVML", "mig");
    expect_env(ASK, "SOURCE=simulated", "no measured answer");
    keep("gpt2-124m 64 4");
    expect_env(ASK, "MICRO_BATCH=4\n", "");
    set("PLIM_DOUBLE_NVML", "");
    expect_env(ASK, "MICRO_BATCH=8\n", "");
}

/* --- Slurm ------------------------------------------------------------------------------------ */

Test(env, the_task_prolog_speaks_on_stdout_alone)
{
    keep("gpt2-124m 64 8");
    struct program p = run(ASK "--task-prolog", 0);
    cr_expect(eq(str, p.out, (char *)"")); /* outside of a step */
    program_finish(&p);
    set("SLURM_STEP_ID", "0");
    expect_env(ASK "--task-prolog", "export PLIMSOLL_MICRO_BATCH=8\n", "");
    expect_env(ASK "--task-prolog --on-miss nothing --seq 512",
               "print plimsoll: nothing is set: ", "");
    expect_env("env no-such-model --task-prolog", "print plimsoll: nothing is set: ", "");
    expect_env("env gpt2-124m --bad --task-prolog", "print plimsoll: nothing is set: ", "");
    p = run("env no-such-model --task-prolog --strict", 2);
    cr_expect(has(p.out, "print plimsoll: "), "%s", p.out);
    cr_expect(eq(str, p.err, (char *)""));
    program_finish(&p);
}

Test(env, time_that_is_over_sets_nothing)
{
    struct program p =
        run("env llama-3-8b --device sim:B200 --seq 512:8192:512 --precision fp32,bf16,fp16 "
            "--optimizer adamw,sgd,adafactor --budget 1ms",
            0);
    bool none = *p.out == 0, best_so_far = has(p.out, "STALE=1");
    cr_expect(none || best_so_far, "%s", p.out);
    program_finish(&p);
}

Test(env, root_believes_only_what_is_roots)
{
    if (geteuid() != 0) cr_skip_test("only root owns root's files");
    keep("gpt2-124m 64 8");
    char arguments[256];
    chmod(folder, 0755);
    snprintf(arguments, sizeof(arguments), ASK "--root-owned --site-store %s", below("store"));
    expect_env(arguments, "SOURCE=measured", "");
    chmod(below("store"), 0777);
    expect_env(arguments, "", "nothing is set: ");
    snprintf(arguments, sizeof(arguments), ASK "--root-owned --site-store %s", below("none"));
    expect_env(arguments, "",
               "nothing is set: "); /* the user's store is not asked, and nothing planned */
    FILE *spec = fopen(below("spec.yaml"), "w");
    fputs("model: gpt2-124m\n", spec);
    fclose(spec);
    chmod(below("spec.yaml"), 0666);
    snprintf(arguments, sizeof(arguments), "env %s --root-owned", below("spec.yaml"));
    expect_env(arguments, "", "others than root may write it");
}

/* --- reports and programs ---------------------------------------------------------------------- */

Test(env, a_report_in_the_place_of_a_spec_has_its_own_answer)
{
    char arguments[256];
    snprintf(arguments, sizeof(arguments),
             "plan gpt2-124m --effective-batch 64 --device sim:T4 --quiet --out %s",
             below("r.yaml"));
    struct program p = run(arguments, 0);
    program_finish(&p);
    set("PLIM_DOUBLE_NVML", "no-gpus");
    snprintf(arguments, sizeof(arguments), "env %s", below("r.yaml"));
    expect_env(arguments, "SOURCE=simulated", "");
    expect_env(arguments, "GLOBAL_BATCH=64\n", "");
}

#define TRAINER "-- " PLIM_TRAINER " {batch} states=0"
#define EXEC                                                                                       \
    "--device sim:T4,memory=2GiB --margin 0 --overhead 0 --batch 1:64 --effective-batch 64 "

Test(env, a_programs_answer_is_found_by_its_command)
{
    struct program p = run("exec " EXEC "--quiet " TRAINER, 0);
    program_finish(&p);
    expect_env("env " EXEC "--on-miss nothing " TRAINER, "MICRO_BATCH=32\n", "");
    expect_env("env " EXEC "--on-miss nothing " TRAINER " more=1", "", "nothing is set: ");
    expect_env("env " EXEC TRAINER " more=1", "MICRO_BATCH=32\n", ""); /* tried */
    expect_env("env " EXEC "--on-miss nothing " TRAINER " more=1", "MICRO_BATCH=32\n", "");
}

Test(env, a_changed_script_is_another_program)
{
    char arguments[512];
    FILE *script = fopen(below("train.sh"), "w");
    fputs("exec \"$@\" fixed=64\n", script);
    fclose(script);
    snprintf(arguments, sizeof(arguments), "%s" EXEC "--quiet -- sh %s " PLIM_TRAINER " {batch}",
             "exec ", below("train.sh"));
    struct program p = run(arguments, 0);
    program_finish(&p);
    snprintf(arguments, sizeof(arguments),
             "env " EXEC "--on-miss nothing -- sh %s " PLIM_TRAINER " {batch}", below("train.sh"));
    expect_env(arguments, "MICRO_BATCH=32\n", "");
    script = fopen(below("train.sh"), "a");
    fputs("# changed\n", script);
    fclose(script);
    expect_env(arguments, "", "nothing is set: ");
}

/* --- what is kept ----------------------------------------------------------------------------- */

static void expect_count(const char *arguments, size_t count)
{
    struct program p = run(arguments, 0);
    json_t *root = program_json(&p);
    cr_expect(eq(sz, json_array_size(json_at(root, "answers")), count), "%s", p.out);
    json_decref(root);
    program_finish(&p);
}

Test(kept, every_answer_is_kept_and_one_file_a_key)
{
    static const char plan[] = "plan gpt2-124m --device sim:T4,sim:RTX-4090 --quiet";
    struct program p = run(plan, 0);
    program_finish(&p);
    expect_count("store list --json", 2);
    p = run(plan, 0);
    program_finish(&p);
    expect_count("store list --json", 2);
    p = run("plan gpt2-124m --device sim:A10 --quiet --no-store", 0);
    program_finish(&p);
    expect_count("store list --json", 2);
    p = run("plan llama-3-8b --device sim:T4 --quiet", 1); /* nothing fits */
    program_finish(&p);
    expect_count("store list --json", 2);
}

Test(kept, a_program_that_was_not_asked_before_says_what_differs)
{
    struct program p = run("exec " EXEC "--quiet " TRAINER, 0);
    program_finish(&p);
    p = run("exec " EXEC "--explain-miss " TRAINER " more=1", 0);
    cr_expect(has(p.err, "program (the key): kept for more=1, here") ||
                  has(p.err, "program (the key): kept for not known, here more=1"),
              "%s", p.err);
    program_finish(&p);
}

/* One warning, however many answers there are. */
Test(kept, a_store_that_cannot_be_written_is_told_once)
{
    set("PLIMSOLL_STORE", "/dev/null/store");
    struct program p = run("plan gpt2-124m --device sim:T4,sim:A10,sim:L4", 0);
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
    keep("gpt2-124m 64 8");
    set("LD_PRELOAD", PLIM_STALE_FILES);
    set("PLIM_STALE", "1");
    expect_env(ASK, "SOURCE=measured", "");
    set("PLIM_STALE", "100");
    expect_env(ASK, "SOURCE=simulated", "cannot be read: Stale file handle");
    unsetenv("LD_PRELOAD");
}
#endif

/* A file of the store that cannot be read, as a link, is left out with a warning, never silently. */
Test(kept, what_cannot_be_read_is_told)
{
    char command[512];
    struct program p = run("plan gpt2-124m --device sim:T4 --quiet", 0);
    program_finish(&p);
    snprintf(command, sizeof(command), "find %s -name '*.yaml' -exec ln -sf /dev/null {} \\;",
             getenv("PLIMSOLL_STORE"));
    cr_assert(eq(int, system(command), 0));
    struct program list = run("store list", 0);
    cr_expect(has(list.err, "cannot be read: it is a link"), "%s", list.err);
    program_finish(&list);
}

Test(kept, what_was_not_proven_is_not_kept)
{
    struct program p = program_run("exec --device sim:T4 --batch 1:4 --quiet -- " PLIM_TRAINER
                                   " {batch} cpu=1");
    cr_expect(gt(int, p.exit_code, 0));
    program_finish(&p);
    expect_count("store list --json", 0);
}

Test(kept, an_answer_is_shown_forgotten_and_handed_on)
{
    char arguments[256], key[40];
    struct program p = run("plan gpt2-124m --device sim:T4 --quiet", 0);
    struct program list = run("store list --json", 0);
    json_t *root = program_json(&list);
    snprintf(key, sizeof(key), "%s", json_text_at(root, "answers.0.key"));
    json_decref(root);
    program_finish(&list);
    snprintf(arguments, sizeof(arguments), "store show %.10s", key);
    struct program shown = run(arguments, 0);
    cr_expect(eq(int, strncmp(shown.out, p.out, 60), 0), "%.60s", shown.out);
    cr_expect(has(shown.out, "processors: 40 multiprocessors"), "%s", shown.out);
    program_finish(&shown);
    snprintf(arguments, sizeof(arguments), "store export %s %.8s", below("bundle"), key);
    shown = run(arguments, 0);
    program_finish(&shown);
    snprintf(arguments, sizeof(arguments), "store rm %.8s", key);
    shown = run(arguments, 0);
    program_finish(&shown);
    expect_count("store list --json", 0);
    shown = run(arguments, 2);
    program_finish(&shown);
    snprintf(arguments, sizeof(arguments), "store import %s", below("bundle"));
    shown = run(arguments, 0);
    program_finish(&shown);
    expect_count("store list --json", 1);
    program_finish(&p);
    /* Out and in again nothing changes. */
    snprintf(arguments, sizeof(arguments), "store export %s", below("again"));
    shown = run(arguments, 0);
    program_finish(&shown);
    snprintf(arguments, sizeof(arguments), "diff -r %s %s", below("bundle"), below("again"));
    cr_expect(eq(int, system(arguments), 0));
}

Test(kept, gc_takes_what_is_no_answer_any_more)
{
    char path[256];
    struct program p = run("plan gpt2-124m --device sim:T4 --quiet", 0);
    program_finish(&p);
    keep("gpt2-124m 64 8");
    snprintf(path, sizeof(path), "%s/0123456789abcdef0123456789abcdef.yaml",
             below("store/measured"));
    fclose(fopen(path, "w"));
    gethostname(path + 128, 32);
    char left[256];
    snprintf(left, sizeof(left), "%s/.plimsoll-%s-999999999-x", below("store/measured"),
             path + 128);
    fclose(fopen(left, "w"));
    p = run("store gc", 0);
    cr_expect(has(p.err, "2 files removed"), "%s", p.err);
    program_finish(&p);
    expect_count("store list --json", 2);
    p = run("store gc --older-than 1h", 0);
    program_finish(&p);
    expect_count("store list --json", 2);
    sleep(2);
    p = run("store gc --older-than 1s", 0);
    program_finish(&p);
    expect_count("store list --json", 0);
}

Test(kept, mistakes_are_said)
{
    struct program p = run("store shrink", 2);
    cr_expect(has(p.err, "expected list, show, rm, export, import or gc"), "%s", p.err);
    program_finish(&p);
    p = run("store rm", 2);
    program_finish(&p);
    p = run("store import /nowhere", 2);
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
        PLIM_BINARY, below("trials"), PLIM_TRAINER_PATH);
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
    int alone = lines_of(below("trials"));
    cr_assert(gt(int, alone, 2));
    char command[160];
    snprintf(command, sizeof(command), "rm -rf %s %s", below("store"), below("trials"));
    cr_assert(zero(int, system(command)));
    start(pids, PROCESSES);
    expect_all_well(pids, PROCESSES);
    cr_expect(eq(int, lines_of(below("trials")), alone));
}

Test(kept, where_the_one_that_asks_is_killed_another_asks)
{
    pid_t pids[PROCESSES];
    start(pids, 1);
    for (int i = 0; i < 3000 && lines_of(below("trials")) < 2; i++) usleep(10000);
    start(pids + 1, PROCESSES - 1);
    kill(pids[0], SIGKILL);
    waitpid(pids[0], NULL, 0);
    expect_all_well(pids + 1, PROCESSES - 1);
    expect_count("store list --json", 1);
}
