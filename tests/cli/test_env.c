/* plimsoll env and plimsoll store: at the moment of launch, on pretended GPUs. */
#include "launch.h"
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

TestSuite(env, .init = launch_set_up, .fini = launch_tear_down);

/* --- hits ------------------------------------------------------------------------------------- */

Test(env, a_measured_answer_is_found_without_a_word)
{
    launch_keep("gpt2-124m 64 8");
    launch_expect_env(ASK,
                      "export PLIMSOLL_MICRO_BATCH=8\nexport PLIMSOLL_ACCUMULATION=8\n"
                      "export PLIMSOLL_GLOBAL_BATCH=64\nexport PLIMSOLL_SEQ=1024\n"
                      "export PLIMSOLL_PRECISION=bf16-mixed\nexport PLIMSOLL_CHECKPOINTING=none\n"
                      "export PLIMSOLL_SOURCE=measured\nexport PLIMSOLL_STALE=0\n",
                      "");
    launch_expect_env(ASK "--device cuda:0", "SOURCE=measured", "");
    launch_expect_env(ASK "--format args", "--micro-batch 8 --accumulation 8", "");
    launch_expect_env(ASK "--format json", "\"PLIMSOLL_MICRO_BATCH\": 8", "");
    launch_expect_env(ASK "--name micro_batch=MICRO_BATCH_SIZE", "\nexport MICRO_BATCH_SIZE=8\n",
                      "");
}

Test(env, another_question_is_another_answer)
{
    launch_keep("gpt2-124m 64 8");
    launch_expect_env("env gpt2-124m --effective-batch 32", "SOURCE=simulated",
                      "no measured answer");
    launch_expect_env(ASK "--margin 2GiB", "SOURCE=simulated", "no measured answer");
    launch_expect_env(ASK "--objective least-memory", "SOURCE=simulated", "no measured answer");
    launch_expect_env(ASK "--set train.clip=1.0", "SOURCE=simulated", "no measured answer");
    launch_expect_env(ASK "--alloc-conf expandable_segments:True", "SOURCE=simulated",
                      "no measured answer");
    launch_expect_env(ASK "--device cuda:0,memory=8GiB", "SOURCE=simulated", "no measured answer");
    launch_expect_env(ASK "--seq 1024", "SOURCE=measured", ""); /* it is what is taken anyway */
    launch_set("PLIM_DOUBLE_MEMORY", "70GiB");
    launch_expect_env(ASK, "SOURCE=simulated", "no measured answer");
}

/* Ranks start one after the other: what the first one holds does not change the others' answer. */
Test(env, what_others_hold_now_does_not_count)
{
    launch_keep("gpt2-124m 64 8");
    launch_set("PLIM_DOUBLE_OTHERS", "30GiB");
    launch_expect_env(ASK, "SOURCE=measured", "");
}

/* A client of MPS has other memory and fewer multiprocessors than the GPU. */
Test(env, through_mps_it_is_another_question_and_its_limits_too)
{
    launch_keep("gpt2-124m 64 8");
    launch_set("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "50");
    launch_set("CUDA_MPS_PIPE_DIRECTORY", launch_path("."));
    launch_expect_env(ASK, "SOURCE=measured", ""); /* no daemon, no limit */
    cr_assert(zero(int, mkfifo(launch_path("control"), 0600)));
    launch_expect_env(ASK, "SOURCE=simulated", "no measured answer");
    launch_keep("gpt2-124m 64 8");
    launch_expect_env(ASK, "SOURCE=measured", "");
    launch_set("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "25");
    launch_expect_env(ASK, "SOURCE=simulated", "no measured answer");
}

Test(env, what_is_fast_makes_it_stale_and_what_fits_a_miss)
{
    launch_keep("gpt2-124m 64 8");
    launch_set("PLIM_DOUBLE_NVML", "driver=999.1");
    launch_expect_env(ASK, "MICRO_BATCH=8\n", "driver (what is fast) was 580.65.06 and is 999.1");
    launch_expect_env(ASK, "PLIMSOLL_STALE=1\n", "a stale answer");
    unlink(launch_path("cuda/" PLIM_CUBLASLT));
    fclose(fopen(launch_path("cuda/" PLIM_CUBLASLT ".9"), "w"));
    cr_assert(zero(int, symlink(PLIM_CUBLASLT ".9", launch_path("cuda/" PLIM_CUBLASLT))));
    launch_expect_env(ASK, "SOURCE=simulated", "libraries (what fits) was");
    /* A fact that this plimsoll does not know is not known to match. */
    unsetenv("PLIM_DOUBLE_NVML");
    launch_keep("gpt2-124m 64 4 fits");
    launch_expect_env(ASK "--explain-miss", "SOURCE=simulated", "libraries (what fits): kept for");
}

Test(env, a_kept_plan_says_that_it_is_simulated)
{
    struct program p =
        launch_run("plan gpt2-124m --effective-batch 64 --device sim:A100-SXM4-80GB", 0);
    program_finish(&p);
    launch_expect_env(ASK "--on-miss nothing", "SOURCE=simulated", "simulated, not measured");
}

/* --- misses ----------------------------------------------------------------------------------- */

Test(env, it_fails_open)
{
    static const char *const arguments[] = {
        ASK "--on-miss nothing",          "env no-such-model",   "env",
        "env gpt2-124m --no-such-option", ASK "--format csv",    ASK "--name micro_batch=1X",
        ASK "--device sim:A100-80GB",     ASK "--device cuda:7", ASK "--device GPU-0",
        "env gpt2-124m --batch 100000",   ASK "--on-miss guess"};
    for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++) {
        char strict[256];
        struct program p = launch_run(arguments[i], 0);
        cr_expect(eq(str, p.out, (char *)""), "%s", arguments[i]);
        cr_expect(launch_has(p.err, "nothing is set: "), "%s: %s", arguments[i], p.err);
        program_finish(&p);
        snprintf(strict, sizeof(strict), "%s --strict", arguments[i]);
        p = program_run(strict);
        cr_expect(lt(int, 0, p.exit_code), "%s", strict);
        cr_expect(eq(str, p.out, (char *)""), "%s", strict);
        cr_expect(ne(str, p.err, (char *)""), "%s", strict);
        program_finish(&p);
    }
}

/* What reads the file afterwards must not take an older answer for this one. */
Test(env, a_file_of_an_older_answer_does_not_stay)
{
    char arguments[256], text[64];
    snprintf(arguments, sizeof(arguments), ASK "--device sim:T4 --out %s",
             launch_path("answer.env"));
    launch_expect_env(arguments, "MICRO_BATCH=", "");
    FILE *file = fopen(launch_path("answer.env"), "r");
    cr_assert(ne(ptr, fgets(text, sizeof(text), file), NULL));
    fclose(file);
    cr_expect(eq(int, strncmp(text, "export PLIMSOLL_MICRO_BATCH=", 28), 0), "%s", text);
    snprintf(arguments, sizeof(arguments), ASK "--device sim:none --out %s",
             launch_path("answer.env"));
    launch_expect_env(arguments, "", "nothing is set: ");
    file = fopen(launch_path("answer.env"), "r");
    cr_expect(eq(ptr, fgets(text, sizeof(text), file), NULL));
    fclose(file);
}

Test(env, without_a_gpu_nothing_is_set)
{
    launch_set("PLIM_DOUBLE_NVML", "no-gpus");
    launch_expect_env(ASK, "", "nothing is set: ");
    launch_set("PLIM_DOUBLE_NVML", "");
    launch_set("CUDA_VISIBLE_DEVICES", "");
    launch_expect_env(ASK, "", "nothing is set: ");
    launch_set("PLIM_DOUBLE_NVML", "error=999");
    launch_expect_env(ASK, "", "nothing is set: ");
}

Test(env, the_store_is_not_asked_where_it_is_refused)
{
    launch_keep("gpt2-124m 64 8");
    launch_expect_env(ASK "--no-store", "SOURCE=simulated", "the store is not asked");
    launch_set("PLIMSOLL_STORE", "off");
    launch_expect_env(ASK, "SOURCE=simulated", "the store is not asked");
}

/* --- several GPUs ----------------------------------------------------------------------------- */

Test(env, one_answer_for_all_gpus_and_each_its_own)
{
    launch_set("PLIM_DOUBLE_GPU", "T4");
    launch_keep("gpt2-124m 64 2");
    launch_set("PLIM_DOUBLE_GPU", "A100-SXM4-80GB");
    launch_keep("gpt2-124m 64 8");
    launch_set("PLIM_DOUBLE_GPU", "A100-SXM4-80GB,T4");
    launch_expect_env(ASK, "MICRO_BATCH=2\nexport PLIMSOLL_ACCUMULATION=32\n", "as Tesla T4 can");
    for (int rank = 0; rank < 2; rank++) {
        launch_set("LOCAL_RANK", rank ? "1" : "0");
        launch_expect_env(ASK, "MICRO_BATCH=2\n", "as Tesla T4 can");
        launch_expect_env(ASK "--per-rank", rank ? "MICRO_BATCH=2\n" : "MICRO_BATCH=8\n", "");
    }
    launch_set("CUDA_VISIBLE_DEVICES", "0");
    launch_expect_env(ASK, "MICRO_BATCH=8\n", "");
    launch_set("CUDA_VISIBLE_DEVICES", "1");
    launch_expect_env(ASK, "MICRO_BATCH=2\n", "");
}

Test(env, equal_gpus_are_one)
{
    launch_set("PLIM_DOUBLE_GPU", "T4,T4,T4");
    launch_keep("gpt2-124m 64 2");
    launch_expect_env(ASK, "MICRO_BATCH=2\n", "");
}

Test(env, an_instance_is_not_its_gpu)
{
    launch_keep("gpt2-124m 64 8");
    launch_set("PLIM_DOUBLE_NVML", "mig");
    launch_expect_env(ASK, "SOURCE=simulated", "no measured answer");
    launch_keep("gpt2-124m 64 4");
    launch_expect_env(ASK, "MICRO_BATCH=4\n", "");
    launch_set("PLIM_DOUBLE_NVML", "");
    launch_expect_env(ASK, "MICRO_BATCH=8\n", "");
}

/* --- Slurm ------------------------------------------------------------------------------------ */

Test(env, the_task_prolog_speaks_on_stdout_alone)
{
    launch_keep("gpt2-124m 64 8");
    struct program p = launch_run(ASK "--task-prolog", 0);
    cr_expect(eq(str, p.out, (char *)"")); /* outside of a step */
    program_finish(&p);
    launch_set("SLURM_STEP_ID", "0");
    launch_expect_env(ASK "--task-prolog", "export PLIMSOLL_MICRO_BATCH=8\n", "");
    launch_expect_env(ASK "--task-prolog --on-miss nothing --seq 512",
                      "print plimsoll: nothing is set: ", "");
    launch_expect_env("env no-such-model --task-prolog", "print plimsoll: nothing is set: ", "");
    launch_expect_env("env gpt2-124m --bad --task-prolog", "print plimsoll: nothing is set: ", "");
    p = launch_run("env no-such-model --task-prolog --strict", 2);
    cr_expect(launch_has(p.out, "print plimsoll: "), "%s", p.out);
    cr_expect(eq(str, p.err, (char *)""));
    program_finish(&p);
}

Test(env, time_that_is_over_sets_nothing)
{
    struct program p =
        launch_run("env llama-3-8b --device sim:B200 --seq 512:8192:512 --precision fp32,bf16,fp16 "
                   "--optimizer adamw,sgd,adafactor --budget 1ms",
                   0);
    bool none = *p.out == 0, best_so_far = launch_has(p.out, "STALE=1");
    cr_expect(none || best_so_far, "%s", p.out);
    program_finish(&p);
}

Test(env, root_believes_only_what_is_roots)
{
    if (geteuid() != 0) cr_skip_test("only root owns root's files");
    launch_keep("gpt2-124m 64 8");
    char arguments[256];
    chmod(launch_path("."), 0755);
    snprintf(arguments, sizeof(arguments), ASK "--root-owned --site-store %s",
             launch_path("store"));
    launch_expect_env(arguments, "SOURCE=measured", "");
    chmod(launch_path("store"), 0777);
    launch_expect_env(arguments, "", "nothing is set: ");
    snprintf(arguments, sizeof(arguments), ASK "--root-owned --site-store %s", launch_path("none"));
    launch_expect_env(arguments, "",
                      "nothing is set: "); /* the user's store is not read, and nothing is planned */
    FILE *spec = fopen(launch_path("spec.yaml"), "w");
    fputs("model: gpt2-124m\n", spec);
    fclose(spec);
    chmod(launch_path("spec.yaml"), 0666);
    snprintf(arguments, sizeof(arguments), "env %s --root-owned", launch_path("spec.yaml"));
    launch_expect_env(arguments, "", "anyone but root may write it");
}

/* --- reports and programs ---------------------------------------------------------------------- */

Test(env, a_report_in_the_place_of_a_spec_has_its_own_answer)
{
    char arguments[256];
    snprintf(arguments, sizeof(arguments),
             "plan gpt2-124m --effective-batch 64 --device sim:T4 --quiet --out %s",
             launch_path("r.yaml"));
    struct program p = launch_run(arguments, 0);
    program_finish(&p);
    launch_set("PLIM_DOUBLE_NVML", "no-gpus");
    snprintf(arguments, sizeof(arguments), "env %s", launch_path("r.yaml"));
    launch_expect_env(arguments, "SOURCE=simulated", "");
    launch_expect_env(arguments, "GLOBAL_BATCH=64\n", "");
}

Test(env, of_several_answers_none_is_handed_over)
{
    char arguments[256];
    snprintf(arguments, sizeof(arguments), "plan gpt2-124m --device sim:T4 --device sim:L4 --quiet --out %s",
             launch_path("fleet.json"));
    struct program p = launch_run(arguments, 0);
    program_finish(&p);
    snprintf(arguments, sizeof(arguments), "env %s", launch_path("fleet.json"));
    launch_expect_env(arguments, "", "has several answers, and env hands over one");
}

Test(env, a_programs_answer_is_found_by_its_command)
{
    struct program p = launch_run("exec " EXEC "--quiet " TRAINER, 0);
    program_finish(&p);
    launch_expect_env("env " EXEC "--on-miss nothing " TRAINER, "MICRO_BATCH=32\n", "");
    launch_expect_env("env " EXEC "--on-miss nothing " TRAINER " more=1", "", "nothing is set: ");
    launch_expect_env("env " EXEC TRAINER " more=1", "MICRO_BATCH=32\n", ""); /* tried */
    launch_expect_env("env " EXEC "--on-miss nothing " TRAINER " more=1", "MICRO_BATCH=32\n", "");
}

Test(env, a_changed_script_is_another_program)
{
    char arguments[512];
    FILE *script = fopen(launch_path("train.sh"), "w");
    fputs("exec \"$@\" fixed=64\n", script);
    fclose(script);
    snprintf(arguments, sizeof(arguments), "%s" EXEC "--quiet -- sh %s " PLIM_TRAINER " {batch}",
             "exec ", launch_path("train.sh"));
    struct program p = launch_run(arguments, 0);
    program_finish(&p);
    snprintf(arguments, sizeof(arguments),
             "env " EXEC "--on-miss nothing -- sh %s " PLIM_TRAINER " {batch}",
             launch_path("train.sh"));
    launch_expect_env(arguments, "MICRO_BATCH=32\n", "");
    script = fopen(launch_path("train.sh"), "a");
    fputs("# changed\n", script);
    fclose(script);
    launch_expect_env(arguments, "", "nothing is set: ");
}
