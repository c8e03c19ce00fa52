/* exec on a pretended training program (trainer.c) whose memory is known to the MiB: what is found,
 * what is said of programs that misbehave, and that nothing is left of them. */
#define _GNU_SOURCE /* asprintf */
#include "tests/cli/program.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRAINER " -- " PLIM_TRAINER " "
/* 1 GiB: with 64 MiB fixed and 32 a sample, 30 samples fit. */
#define GPU "exec --device sim:A100-SXM4-80GB,memory=1GiB --margin 0 --overhead 0 "

static struct program run_ok(const char *arguments, int exit_code)
{
    struct program p = program_run(arguments);
    cr_assert(eq(int, p.exit_code, exit_code), "%s\n%s\n%s", arguments, p.out, p.err);
    return p;
}

static void expect_largest(const char *arguments, int batch)
{
    struct program p = run_ok(arguments, 0);
    json_t *root = program_json(&p);
    cr_expect(eq(i64, json_int_at(root, "largest_fit.micro_batch"), batch), "%s\n%s", arguments,
              p.out);
    json_decref(root);
    program_finish(&p);
}

static bool has_reason(json_t *root, const char *text)
{
    json_t *list = json_at(root, "why");
    bool found = false;
    for (size_t i = 0; i < json_array_size(list); i++)
        found |= strstr(json_string_value(json_array_get(list, i)), text) != NULL;
    return found;
}

/* An environment variable identifies the processes that this test starts: tests run concurrently. */
static const char *mark(void)
{
    static char text[32];
    snprintf(text, sizeof(text), "PLIM_TEST=%d", (int)getpid());
    return text;
}

static bool has_mark(const char *pid)
{
    static char text[1 << 17];
    char path[300];
    snprintf(path, sizeof(path), "/proc/%s/environ", pid);
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
    if (file) fclose(file);
    text[length] = '\0';
    for (size_t at = 0; at < length; at += strlen(text + at) + 1)
        if (!strcmp(text + at, mark())) return true;
    return false;
}

static void set_mark(void)
{
    char value[16];
    snprintf(value, sizeof(value), "%d", (int)getpid());
    setenv("PLIM_TEST", value, 1);
}

TestSuite(exec, .init = set_mark);

/* Processes that live of what this test started. */
static int left_over(void)
{
    int count = 0;
    DIR *folder = opendir("/proc");
    for (struct dirent *entry; (entry = readdir(folder));)
        count += isdigit((unsigned char)entry->d_name[0]) && atoi(entry->d_name) != getpid() &&
                 has_mark(entry->d_name);
    closedir(folder);
    return count;
}

/* --- the search ------------------------------------------------------------------------------- */

Test(exec, finds_the_largest_batch)
{
    struct program p = run_ok(GPU "--batch 1:512 --json" TRAINER "{batch}", 0);
    json_t *root = program_json(&p);
    cr_expect(eq(i64, json_int_at(root, "choice.micro_batch"), 30));
    cr_expect(json_true_at(root, "program"));
    cr_expect(eq(i64, json_int_at(root, "choice.peak.reserved_bytes"), INT64_C(1024) << 20));
    cr_expect(eq(i64, json_int_at(root, "largest_fit.next.micro_batch"), 31));
    cr_expect(eq(str, (char *)json_text_at(root, "largest_fit.next.verdict"), "oom"));
    cr_expect(json_at(root, "choice.tokens_per_second") == NULL, "time is not known");
    cr_expect(json_at(root, "choice.optimizer") == NULL, "nor what the program trains with");
    json_decref(root);
    program_finish(&p);
}

Test(exec, the_limits_of_the_gpu_count)
{
    expect_largest("exec --device sim:A100-SXM4-80GB,memory=1GiB --overhead 128MiB --margin 64MiB "
                   "--batch 1:512 --json" TRAINER "{batch}", 24);
    expect_largest(GPU "--batch 1:20 --json" TRAINER "{batch}", 20);
    expect_largest(GPU "--batch 8,16,24,32 --json" TRAINER "{batch}", 24);
    expect_largest(GPU "--batch 1:512:x2 --json" TRAINER "{batch}", 16);
}

Test(exec, only_what_was_allowed_is_run)
{
    struct program p = run_ok(GPU "--batch 8,16,24,32 --json" TRAINER "{batch}", 0);
    json_t *root = program_json(&p), *samples = json_at(root, "samples");
    for (size_t i = 0; i < json_array_size(samples); i++) {
        json_int_t b = json_int_at(json_array_get(samples, i), "micro_batch");
        cr_expect(eq(int, b == 8 || b == 16 || b == 24 || b == 32, 1), "%lld", (long long)b);
    }
    json_decref(root);
    program_finish(&p);
    p = run_ok(GPU "--batch 12:512 --json" TRAINER "{batch}", 0);
    root = program_json(&p), samples = json_at(root, "samples");
    for (size_t i = 0; i < json_array_size(samples); i++)
        cr_expect(ge(i64, json_int_at(json_array_get(samples, i), "micro_batch"), 12));
    json_decref(root);
    program_finish(&p);
}

Test(exec, the_effective_batch_is_kept)
{
    struct program p = run_ok(GPU "--batch 1:512 --effective-batch 96 --json" TRAINER
                                   "{batch} micro={accumulation}", 0);
    json_t *root = program_json(&p);
    cr_expect(eq(i64, json_int_at(root, "choice.micro_batch"), 24));
    cr_expect(eq(i64, json_int_at(root, "choice.accumulation"), 4));
    cr_expect(json_null_at(root, "largest_fit"), "what may not be chosen is not tried");
    json_decref(root);
    program_finish(&p);
}

Test(exec, states_that_are_born_in_the_first_step_count)
{
    expect_largest(GPU "--batch 1:512 --json" TRAINER "{batch} states=320", 20);
}

Test(exec, axes_of_the_users_own)
{
    struct program p = run_ok(GPU "--batch 1:512 --axis sample=64,32 --json" TRAINER
                                   "{batch} sample={sample}", 0);
    json_t *root = program_json(&p);
    cr_expect(eq(i64, json_int_at(root, "choice.micro_batch"), 30));
    cr_expect(eq(str, (char *)json_text_at(root, "choice.sizes.sample"), "32"));
    json_decref(root);
    program_finish(&p);
}

/* 4 samples of 512 or 256 MiB do not fit in addition to the fixed part, 4 of 128 MiB do. */
Test(exec, a_waterfall_ends_at_the_first_step_that_fits)
{
    struct program p = run_ok(GPU "--batch 4 --axis sample=512,256,128 --axis fixed=64,32 "
                                  "--waterfall sample,fixed --json" TRAINER
                                  "{batch} sample={sample} fixed={fixed}", 0);
    json_t *root = program_json(&p);
    json_expect_text(root, "choice.sizes.sample", "128");
    json_expect_text(root, "choice.sizes.fixed", "64");
    json_expect_text(root, "points.0.sizes.sample", "512");
    json_expect_text(root, "points.1.verdict", "oom");
    json_expect_text(root, "points.3.verdict", "untried");
    cr_expect(eq(sz, json_array_size(json_at(root, "samples")), 3));
    json_decref(root);
    program_finish(&p);
}

Test(exec, a_profile_for_memory_takes_what_needs_least)
{
    struct program p = run_ok(GPU "--batch 4,8 --axis sample=64,32 --profile max-memory --json" TRAINER
                                  "{batch} sample={sample}", 0);
    json_t *root = program_json(&p);
    cr_expect(eq(i64, json_int_at(root, "choice.micro_batch"), 4));
    json_expect_text(root, "choice.sizes.sample", "32");
    json_expect_text(root, "profile", "max-memory");
    json_decref(root);
    program_finish(&p);
}

/* 64 MiB, and 32 a sample, in what each tier leaves of 1 GiB. */
Test(exec, every_tier_has_its_own_answer)
{
    static const int64_t batches[] = {23, 26, 28, 30};
    char path[48];
    struct program p = run_ok(
        "exec --quiet --device sim:1GiB --overhead 0 --tiers --batch 1:512 --json" TRAINER "{batch}",
        0);
    json_t *root = program_json(&p);
    for (size_t i = 0; i < 4; i++) {
        snprintf(path, sizeof(path), "results.%zu.choice.micro_batch", i);
        cr_expect(eq(i64, json_int_at(root, path), batches[i]), "%s", path);
    }
    json_expect_text(root, "results.0.tier", "safe");
    json_expect_text(root, "results.3.tier", "max");
    json_decref(root);
    program_finish(&p);
}

Test(exec, several_trials_at_once_say_the_same)
{
    expect_largest(GPU "--batch 1:512 --jobs 3 --json" TRAINER "{batch} sleep=5", 30);
}

Test(exec, ranks_share_what_they_have)
{
    /* Each rank has a GPU of its own; the fullest decides. */
    expect_largest(GPU "--gpus 2 --batch 1:512 --json" TRAINER "{batch} ranks=2", 30);
    struct program p = program_run(GPU "--batch 1:512 --json" TRAINER "{batch} ranks=2");
    cr_expect(ne(int, p.exit_code, 0), "there is no second GPU");
    program_finish(&p);
}

Test(exec, nothing_fits)
{
    struct program p = run_ok(GPU "--batch 1:512 --json" TRAINER "{batch} fixed=1000", 1);
    json_t *root = program_json(&p);
    cr_expect(eq(int, json_is_null(json_at(root, "choice")), 1));
    cr_expect(has_reason(root, "if there is enough memory"), "%s", p.out);
    json_decref(root);
    program_finish(&p);
}

Test(exec, without_a_batch_it_fits_or_not)
{
    struct program p = run_ok(GPU TRAINER "4", 0);
    cr_expect(strstr(p.out, "fits") != NULL, "%s", p.out);
    program_finish(&p);
    p = run_ok(GPU TRAINER "40", 1);
    program_finish(&p);
}

/* --- when a trial is over ----------------------------------------------------------------------- */

Test(exec, a_program_without_end_is_ended)
{
    expect_largest(GPU "--batch 1:64 --json" TRAINER "{batch} forever=1 sleep=1", 30);
    cr_expect(eq(int, left_over(), 0));
}

/* A program of the shell: ~ is a blank. */
#define IN_SHELL(text) " -- sh -c " text
#define A_TRAINER "'" PLIM_TRAINER "'~4~forever=1~sleep=1"

static void expect_peak(const char *arguments, int64_t mib)
{
    struct program p = run_ok(arguments, 0);
    json_t *root = program_json(&p);
    cr_expect(eq(i64, json_int_at(root, "choice.peak.reserved_bytes"), mib << 20), "%s\n%s", arguments, p.out);
    json_decref(root);
    program_finish(&p);
}

/* The first is at rest long before the second, which works on something else for half a second, asks for memory. */
Test(exec, a_second_process_on_its_way_to_the_gpu_is_waited_for, .timeout = 60)
{
    expect_peak(GPU "--json" IN_SHELL(A_TRAINER "&~i=0;~while~[~$i~-lt~400000~];~do~i=$((i+1));~done;~exec~" A_TRAINER
                                                "~fixed=300"),
                64 + 300 + 2 * 4 * 32);
}

/* One that only waits is not, and one that has no end is for some seconds. */
Test(exec, what_never_comes_to_the_gpu_is_not_waited_for, .timeout = 60)
{
    expect_peak(GPU "--json" IN_SHELL(A_TRAINER "&~sleep~1000"), 64 + 4 * 32);
    expect_peak(GPU "--json" IN_SHELL(A_TRAINER "&~while~:;~do~:;~done"), 64 + 4 * 32);
    cr_expect(eq(int, left_over(), 0));
}

/* A search that runs complete programs takes long: there is a warning after the first trial. */
Test(exec, a_program_whose_steps_do_not_repeat_in_time_is_told_how_to_end_earlier)
{
    struct program p = run_ok(GPU "--batch 1,2 --no-store --json --repetitions 1000" TRAINER
                                  "{batch} steps=25 sleep=100", 0);
    json_t *root = program_json(&p);
    cr_expect(has_reason(root, "ran to the program's own end; with --steps N or --for TIME"));
    cr_expect(strstr(p.err, "the first trial ran to the program's own end, 3 s; a search takes up to "
                            "2 such trials, about 1 min") != NULL, "%s", p.err);
    json_decref(root);
    program_finish(&p);
}

Test(exec, after_the_time_that_was_given)
{
    struct program p = run_ok(GPU "--for 200ms --repetitions 1000000 --json" TRAINER
                                   "4 forever=1 sleep=10", 0);
    json_t *root = program_json(&p);
    cr_expect(has_reason(root, "--for"), "%s", p.out);
    json_decref(root);
    program_finish(&p);
}

Test(exec, a_trial_that_takes_too_long_has_failed)
{
    struct program p = program_run(GPU "--timeout 300ms --repetitions 1000000" TRAINER
                                        "4 forever=1 sleep=10");
    cr_expect(ne(int, p.exit_code, 0));
    cr_expect(strstr(p.out, "--timeout") && !strstr(p.out, "--for TIME"), "%s\n%s", p.out, p.err);
    program_finish(&p);
    p = program_run(GPU "--timeout 300ms" TRAINER "4 sleep=1000");
    cr_expect(strstr(p.out, "no training steps were recognised") && strstr(p.out, "--for TIME"), "%s", p.out);
    program_finish(&p);
    cr_expect(eq(int, left_over(), 0));
}

/* --- programs that misbehave -------------------------------------------------------------------- */

static void expect_failure(const char *arguments, const char *said)
{
    struct program p = program_run(arguments);
    cr_expect(ne(int, p.exit_code, 0), "%s\n%s", arguments, p.out);
    cr_expect(eq(int, strstr(p.out, said) || strstr(p.err, said), 1), "'%s' is not in\n%s\n%s", said, p.out, p.err);
    program_finish(&p);
    cr_expect(eq(int, left_over(), 0), "%s", arguments);
}

Test(exec, it_fails_always)
{
    expect_failure(GPU "--batch 1:512" TRAINER "{batch} fails=3", "no such file: data.bin");
    expect_failure(GPU "--batch 1:512" TRAINER "{batch} fails=3", "exit code 3");
    expect_failure(GPU "--quiet --json --batch 1:512" TRAINER "{batch} fails=3", "no such file: data.bin");
    expect_failure(GPU "--batch 1:512" TRAINER "{batch} signal=11", "signal 11");
    expect_failure(GPU "--batch 1:512 -- /no/such/program {batch}", "cannot be started");
    expect_failure(GPU "--batch 1:512" TRAINER "{batch} cpu=1", "did not use a GPU");
    expect_failure(GPU "--batch 1:512" TRAINER "{batch} unknown=1", "cudaImportExternalMemory");
}

Test(exec, it_ignores_its_batch)
{
    expect_failure(GPU "--batch 1:100000" TRAINER "{batch} ignores=1", "does not seem to use {batch}");
}

Test(exec, it_wants_a_person)
{
    expect_failure(GPU TRAINER "4 input=1", "waits for input");
    expect_failure(GPU TRAINER "4 tty=1", "/dev/tty");
}

/* Each step takes a little more than what is cached: the cache is given back in every fourth step
 * or so, at a peak that stays what it was. In step 762 it finds no memory any more, which nobody waits for. */
Test(exec, memory_got_by_giving_back_the_cache_is_not_steady)
{
    struct program p = run_ok(GPU "--batch 1 --repetitions 5 --json" TRAINER
                              "{batch} sample=200 grows=1 steps=1000 sleep=1", 1);
    json_t *root = program_json(&p);
    cr_expect(eq(str, (char *)json_text_at(root, "samples.0.verdict"), "oom"));
    cr_expect(has_reason(root, "out of memory again and again: after 2"), "%s", p.out);
    json_decref(root);
    program_finish(&p);
    p = run_ok(GPU "--batch 1 --repetitions 5 --steps 400 --json" TRAINER
                   "{batch} sample=200 grows=1 steps=1000 sleep=1", 0);
    root = program_json(&p);
    cr_expect(eq(str, (char *)json_text_at(root, "samples.0.verdict"), "ok"), "%s", p.out);
    json_decref(root);
    program_finish(&p);
}

Test(exec, it_catches_the_refusal_and_goes_on)
{
    struct program p = run_ok(GPU "--batch 1:512 --json" TRAINER "{batch} catches=1", 0);
    json_t *root = program_json(&p);
    cr_expect(eq(i64, json_int_at(root, "choice.micro_batch"), 30));
    cr_expect(has_reason(root, "goes on with less"), "%s", p.out);
    json_decref(root);
    program_finish(&p);
}

/* What decides has happened, and nothing that comes later changes it: on the GPU where it got less this one would go on
 * for minutes, as its memory grows. */
Test(exec, one_that_went_on_with_less_is_not_waited_for, .timeout = 30)
{
    struct program p = run_ok(
        GPU "--batch 40 --timeout 1000s --json -- sh -c "
            "T=$(nvidia-smi~--query-gpu=memory.total~--format=csv,noheader,nounits);"
            "test~$T~-gt~2000~||~F=forever=1;exec~'" PLIM_TRAINER "'~{batch}~catches=1~leak=1~sleep=100~$F", 1);
    json_t *root = program_json(&p);
    cr_expect(has_reason(root, "the program went on with less"), "%s", p.out);
    json_decref(root);
    program_finish(&p);
}

Test(exec, it_leaks)
{
    struct program p = run_ok(GPU "--json" TRAINER "4 leak=2 steps=40", 0);
    json_t *root = program_json(&p);
    cr_expect(has_reason(root, "leaks"), "%s", p.out);
    json_decref(root);
    program_finish(&p);
}

Test(exec, it_leaves_children)
{
    expect_largest(GPU "--batch 1:64 --json" TRAINER "{batch} fork=1", 30);
    cr_expect(eq(int, left_over(), 0));
    expect_largest(GPU "--batch 1:64 --json" TRAINER "{batch} fork=2", 30);
    cr_expect(eq(int, left_over(), 0));
}

/* Any answer will do, as long as plimsoll lives to give it. */
Test(exec, it_spoils_the_machine)
{
    static const char *const ways[] = {"hostile=1", "hostile=5", "hostile=9", "hostile=12"};
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        char arguments[256];
        snprintf(arguments, sizeof(arguments), GPU "--repetitions 1000000 --json" TRAINER "4 %s", ways[i]);
        struct program p = program_run(arguments);
        cr_expect(eq(int, p.exit_code >= 0 && p.exit_code <= 3, 1), "%s: %d\n%s", ways[i], p.exit_code, p.err);
        json_t *root = program_json(&p);
        cr_expect(eq(int, !strcmp(json_text_at(root, "samples.0.verdict"), "crashed"), 0), "%s", ways[i]);
        json_decref(root);
        program_finish(&p);
    }
}

Test(exec, long_search_paths_reach_the_program)
{
    enum { LONG = 20000, PRELOAD = 4000 };
    char *path = malloc(LONG + 1), *preload = malloc(PRELOAD + 1);
    memset(path, 'p', LONG);
    memset(preload, ' ', PRELOAD); /* an empty list, as long as it may be */
    path[LONG] = preload[PRELOAD] = '\0';
    setenv("LD_LIBRARY_PATH", path, 1);
    setenv("LD_PRELOAD", preload, 1);
    struct program p = run_ok(
        GPU "-- sh -c test~${#LD_LIBRARY_PATH}~-gt~20000~&&~test~${#LD_PRELOAD}~-gt~4000~&&~exec~'" PLIM_TRAINER "'~4",
        0);
    unsetenv("LD_LIBRARY_PATH");
    unsetenv("LD_PRELOAD");
    program_finish(&p);
    free(path);
    free(preload);
}

Test(exec, search_paths_of_the_program_stay_behind_ours)
{
    struct program p = run_ok(GPU "--no-store --env LD_LIBRARY_PATH=/theirs --env PYTHONPATH=/theirs -- sh -c "
                                  "case~$LD_LIBRARY_PATH:$PYTHONPATH~in~/*:/theirs:/*:/theirs)~exec~'" PLIM_TRAINER
                                  "'~4;;esac", 0);
    program_finish(&p);
}

/* Whatever is called so elsewhere on the machine. */
Test(exec, nvidia_smi_tells_of_the_virtual_gpu)
{
    static const char *const asked[][2] = {
        {"", "NVIDIA-SMI*580*NVIDIA*A100*/*MiB*"},
        {"-L", "GPU~0:*A100*UUID:*GPU-*"},
        {"--query-gpu=name,memory.total,fan.speed~--format=csv,noheader", "NVIDIA*A100*,*1024~MiB,*N/A?"},
        {"--query-gpu~memory.total~--format~csv,nounits~-i~0", "memory.total?1024"},
        {"-i~7", "No~devices*"}};
    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
        char arguments[512], pattern[128];
        size_t used = 0;
        for (const char *c = asked[i][1]; *c; c++) pattern[used++] = *c == '~' ? '?' : *c;
        pattern[used] = '\0';
        snprintf(arguments, sizeof(arguments),
                 GPU "--no-store -- sh -c case~$(nvidia-smi~%s)~in~%s)~exec~'" PLIM_TRAINER "'~4;;esac;exit~9",
                 asked[i][0], pattern);
        struct program p = program_run(arguments);
        cr_expect(eq(int, p.exit_code, 0), "%s: %s", asked[i][0], p.err);
        program_finish(&p);
    }
}

/* Is the choice tried as a launch that compiles, and as one that finds what was compiled? */
static void expect_compiled(const char *command, bool is_both)
{
    char arguments[512];
    snprintf(arguments, sizeof(arguments),
             GPU "--batch 1,2 --no-store --json -- sh -c %s~&&~exec~'" PLIM_TRAINER "'~{batch}", command);
    struct program p = run_ok(arguments, 0);
    json_t *root = program_json(&p);
    cr_expect(eq(int, has_reason(root, "It was tried as a first launch"), is_both), "%s", command);
    json_decref(root);
    program_finish(&p);
}

/* A search has its own cache of compiled kernels, and what a trial finds or leaves there counts. */
Test(exec, compiled_kernels_are_kept_for_the_search)
{
    unsetenv("TORCHINDUCTOR_CACHE_DIR");
    unsetenv("TRITON_CACHE_DIR");
    expect_compiled("mkdir~-p~$TORCHINDUCTOR_CACHE_DIR", false);
    expect_compiled("mkdir~-p~$TORCHINDUCTOR_CACHE_DIR~&&~touch~$TORCHINDUCTOR_CACHE_DIR/kernel", true);
    expect_compiled("test~{batch}~=~1~||~touch~$TORCHINDUCTOR_CACHE_DIR/kernel~||~true", false); /* of another search */
    expect_compiled(
        "test~{batch}~=~1~||~mkdir~-p~$TORCHINDUCTOR_CACHE_DIR~&&~touch~$TORCHINDUCTOR_CACHE_DIR/kernel~||~true", true);
    expect_compiled("mkdir~-p~$TRITON_CACHE_DIR~&&~touch~$TRITON_CACHE_DIR/kernel.cubin",
                    false); /* takes no memory to make */
    expect_compiled("mkdir~-p~$TRITON_CACHE_DIR~&&~touch~$TRITON_CACHE_DIR/kernel.autotune.json", true);
    setenv("TRITON_CACHE_DIR", "/nowhere", 1);
    expect_compiled("test~$TRITON_CACHE_DIR~=~/nowhere", false); /* the user's own stays */
}

/* Of 960 MiB a sample takes 32: what fits has to fit as a first launch and as a later one. `kernel`: what a launch
 * compiles, for all batches or for one. */
static void expect_launches(const char *kernel, int first_mib, int later_mib, int batch)
{
    char arguments[600];
    snprintf(arguments, sizeof(arguments),
             GPU "--batch 1:512 --no-store --json -- sh -c D=$TORCHINDUCTOR_CACHE_DIR;F=%d;"
                 "test~-e~$D/%s~||~{~mkdir~-p~$D;touch~$D/%s;F=%d;};exec~'" PLIM_TRAINER "'~{batch}~fixed=$F",
             later_mib, kernel, kernel, first_mib);
    struct program p = run_ok(arguments, 0);
    json_t *root = program_json(&p);
    int64_t most = first_mib > later_mib ? first_mib : later_mib;
    cr_expect(eq(i64, json_int_at(root, "choice.micro_batch"), batch), "%s", kernel);
    cr_expect(eq(i64, json_int_at(root, "choice.peak.reserved_bytes"), (most + 32 * batch) << 20), "%s", kernel);
    cr_expect(has_reason(root, "It was tried as a first launch, which compiles kernels"), "%s", kernel);
    json_decref(root);
    program_finish(&p);
}

Test(exec, what_compiles_has_to_fit_as_a_first_launch_and_as_a_later_one)
{
    unsetenv("TORCHINDUCTOR_CACHE_DIR");
    expect_launches("kernel", 64, 256, 24);
    expect_launches("kernel", 256, 64, 24);
    expect_launches("kernel{batch}", 64, 256, 24);
    expect_launches("kernel{batch}", 256, 64, 24);
}

Test(exec, ended_by_the_user)
{
    signal(SIGINT, SIG_DFL);
    struct program p = program_run_and_signal(GPU "--batch 1:64 --repetitions 1000000" TRAINER
                                                  "{batch} forever=1 sleep=10 fork=2",
                                              SIGINT, 700);
    cr_expect(eq(int, p.exit_code, 5), "%s\n%s", p.out, p.err);
    program_finish(&p);
    cr_expect(eq(int, left_over(), 0));
}

/* --- the command line ---------------------------------------------------------------------------- */

Test(exec, a_dry_run_prints_the_command)
{
    struct program p = run_ok("exec --batch 1:512 --axis lr=0.1,0.2 --dry-run -- train --b={batch} {lr} a~b", 0);
    cr_expect(eq(str, p.out, "train --b=1 0.1 'a b'\ntrain --b=1 0.2 'a b'\n"));
    program_finish(&p);
    p = run_ok("exec --dry-run -- train a\x1b[31m'\nb", 0);
    cr_expect(eq(str, p.out, "train $'a\\x1b[31m\\'\\x0ab'\n"));
    program_finish(&p);
}

Test(exec, what_is_missing_is_said)
{
    static const struct {
        const char *arguments, *said;
    } wrong[] = {
        {"exec --batch 1:4", "expected it after --"},
        {"exec --batch 1:4 -- true", "no {batch}"},
        {"exec -- true {seq}", "--seq, which says"},
        {"exec --seq 4 -- true", "no {seq}"},
        {"exec -- true {precision}", "--precision, which says"},
        {"exec --batch 8:4 -- true {batch}", "expected a list"},
        {"exec --batch x -- true {batch}", "whole number"},
        {"exec --axis batch=1 -- true {batch}", "taken"},
        {"exec --axis a=1 -- true", "no {a}"},
        {"exec --jobs 0 -- true", "from 1"},
        {"exec --for soon -- true", "a time"},
        {"exec --file a -- true", "TEMPLATE=PATH"},
        {"exec --file /no/such=b --batch 2 -- true {batch}", "/no/such"},
        {"exec --device cuda:0 -- true", "sim:NAME"},
        {"exec --device sim:NoSuchCard -- true", "NoSuchCard"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct program p = program_run(wrong[i].arguments);
        cr_expect(lt(int, 1, p.exit_code), "%s", wrong[i].arguments);
        cr_expect(strstr(p.err, wrong[i].said) != NULL, "%s: %s", wrong[i].arguments, p.err);
        program_finish(&p);
    }
}

Test(exec, files_and_variables_are_filled_in)
{
    char *template = program_file("a.txt", "{\"json\": {}} batch {batch}\n");
    char *arguments;
    int length = asprintf(&arguments,
                          GPU "--batch 1:512 --file %s={dir}/b.txt --env SIZE={batch} --json "
                               "-- sh -c test~$SIZE~=~{batch}~&&~exec~'" PLIM_TRAINER
                               "'~@{dir}/b.txt",
                          template);
    cr_assert(lt(int, 0, length));
    expect_largest(arguments, 30);
    free(arguments);
    program_file_remove(template);
}
