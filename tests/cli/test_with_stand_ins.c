#define _DEFAULT_SOURCE /* mkdtemp */
/* scripts/with-stand-ins: what its command finds, and what is found after it. */
#include "program.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* With a budget each setting is timed for a twentieth of it. */
#define ASKED(seq) "tiny-gpt2 --device cuda:0 --margin 0 --overhead 1000MiB --batch 1 --seq " seq
#define TUNED(seq) ASKED(seq) " --budget " PLIM_BUDGET
#define TUNE "\"" PLIM_BINARY "\" tune " TUNED("32")

/* Runs the script with these arguments; its stdout and stderr go to files, because who is left behind
 * would keep a pipe open. */
static int run(const char *arguments, char *output, size_t size)
{
    char command[2048];
    char *path = program_file("output", "");
    snprintf(command, sizeof(command), "'%s' --build '%s' %s >%s 2>&1", PLIM_WITH_STAND_INS,
             PLIM_BUILD_FOLDER, arguments, path);
    int status = system(command);
    FILE *file = fopen(path, "r");
    cr_assert(ne(ptr, file, NULL));
    output[fread(output, 1, size - 1, file)] = '\0';
    fclose(file);
    program_file_remove(path);
    return WEXITSTATUS(status);
}

static void expect(const char *arguments, int exit_code, const char *says)
{
    char output[4096];
    cr_expect(eq(int, run(arguments, output, sizeof(output)), exit_code), "%s: %s", arguments,
              output);
    cr_expect(strstr(output, says) != NULL, "'%s' is missing in: %s", says, output);
}

Test(with_stand_ins, the_exit_status_is_the_commands)
{
    expect("-- true", 0, "");
    expect("-- sh -c 'exit 3'", 3, "");
}

Test(with_stand_ins, options_become_the_environment)
{
    expect("--gpu T4 --memory 2GiB --others 1GiB --fault oom@1 --fault lost@2! -- "
           "sh -c 'echo $PLIM_DOUBLE_GPU $PLIM_DOUBLE_MEMORY $PLIM_DOUBLE_OTHERS "
           "$PLIM_DOUBLE_FAULT'",
           0, "T4 2GiB 1GiB oom@1,lost@2!\n");
}

Test(with_stand_ins, the_driver_is_the_stand_in)
{
    expect("-- '" PLIM_BINARY "' --version", 0, "\ndriver for CUDA ");
}

Test(with_stand_ins, the_shared_file_is_there_and_then_gone)
{
    char output[4096], *end;
    cr_expect(eq(int,
                 run("-- sh -c 'test -f $PLIM_DOUBLE_STATE && echo $PLIM_DOUBLE_STATE'", output,
                     sizeof(output)),
                 0));
    end = strchr(output, '\n');
    cr_assert(ne(ptr, end, NULL));
    *end = '\0';
    cr_expect(eq(ptr, fopen(output, "r"), NULL), "%s", output);
}

Test(with_stand_ins, who_is_left_on_a_gpu_is_named)
{
    expect("-- '" PLIM_LEAVE_ON_GPU "'", 70, " 1048576\n");
    expect("-- sh -c '\"" PLIM_LEAVE_ON_GPU "\"; exit 5'", 5, "still on a GPU");
}

Test(with_stand_ins, others_that_compute_are_told)
{
    static const char tune[] = "--memory 1GiB -- " TUNE " --no-store";
    char output[8192];
    cr_expect(eq(int, run(tune, output, sizeof(output)), 0));
    cr_expect(eq(ptr, strstr(output, "computes on this GPU"), NULL), "%s", output);
    setenv("PLIM_DOUBLE_NVML", "others-compute", 1);
    expect(tune, 0, "another process computes on this GPU");
    expect(tune, 0, "Its time is not certain to 1 %");
}

/* Which of them measures is not known; the GPU is asked once. */
Test(with_stand_ins, of_many_tuners_one_measures)
{
    char output[4096], store[] = "/tmp/plimsoll-tuners-XXXXXX", command[128];
    cr_assert(ne(ptr, mkdtemp(store), NULL));
    setenv("PLIMSOLL_STORE", store, 1);
    expect("--memory 1GiB -- sh -c 'cd $PLIMSOLL_STORE; for i in 1 2 3 4; do " TUNE
           " --json > $i.json 2> $i.err & done; wait; cat *.err; cmp 1.json 2.json && cmp 1.json 3.json "
           "&& cmp 1.json 4.json && ls measured | wc -l'", 0, "\n1\n");
    cr_expect(eq(int, run("--memory 1GiB -- sh -c 'cat $PLIMSOLL_STORE/*.err'", output,
                          sizeof(output)), 0));
    int taken = 0;
    for (const char *at = output; (at = strstr(at, "from the store")); at++) taken++;
    cr_expect(eq(int, taken, 3), "%s", output);
    expect("--memory 1GiB -- '" PLIM_BINARY "' env " ASKED("32"), 0, "PLIMSOLL_SOURCE=measured\n");
    expect("--memory 1GiB -- '" PLIM_BINARY "' env " ASKED("16"), 0, "PLIMSOLL_SOURCE=simulated\n");
    expect("--memory 1GiB -- '" PLIM_BINARY "' env " TUNED("16") " --on-miss tune", 0,
           "PLIMSOLL_SOURCE=measured\n");
    snprintf(command, sizeof(command), "rm -rf %s", store);
    cr_expect(eq(int, system(command), 0));
}

/* Two of the three GPUs are of a kind. Time may run out where the processor is slow. */
#define TUNE_ALL                                                                                   \
    "--gpu T4,RTX-2080-Ti,T4 --memory 2GiB %s -- '" PLIM_BINARY "' tune '" PLIM_SMALLEST           \
    "' --device cuda:all --batch 1 --checkpointing none --margin 0 --overhead 2000MiB --budget %ds " \
    "--no-store %s"

static int tune_all(int seconds, const char *stand_ins, const char *options, char output[65536])
{
    char arguments[1024];
    snprintf(arguments, sizeof(arguments), TUNE_ALL, stand_ins, seconds, options);
    return run(arguments, output, 65536);
}

Test(with_stand_ins, of_each_kind_of_gpu_one_is_tuned)
{
    char output[65536], *table;
    int exit_code, seconds = 3; /* more, as busy as the machine is now */
    do exit_code = tune_all(seconds, "", "", output);
    while (exit_code == 5 && strstr(output, "no answer") && (seconds *= 2) < 30);
    cr_expect(exit_code == 0 || exit_code == 5, "exit %d: %s", exit_code, output);
    cr_assert(ne(ptr, (table = strstr(output, "batch x acc")), NULL), "%s", output);
    cr_expect(ne(ptr, strstr(table, "\n2 x Tesla T4 "), NULL), "%s", output);
    cr_expect(ne(ptr, strstr(table, "\nNVIDIA GeForce RTX 2080 Ti "), NULL), "%s", output);
    cr_expect(ne(ptr, strstr(output, "GPU-706c696d-736f-6c6c-2067-707520203000) for all 2 of its kind\n"),
                 NULL), "%s", output);
    cr_expect(eq(ptr, strstr(output, "GPU-706c696d-736f-6c6c-2067-707520203200"), NULL), "%s", output);
}

/* A report has what there is; the exit code says that it is not all. */
Test(with_stand_ins, a_kind_without_an_answer_is_told)
{
    char output[65536];
    cr_expect(eq(int, tune_all(3, "--fault vanish@1!", "--json", output), 3), "%s", output);
    cr_expect(ne(ptr, strstr(output, "no answer for 1 of 2 kinds of GPU\n"), NULL), "%s", output);
    cr_expect(ne(ptr, strstr(output, "\"choice\""), NULL), "%s", output);
    cr_expect(eq(int, tune_all(3, "--fault vanish@1", "--json", output), 3), "%s", output);
    cr_expect(ne(ptr, strstr(output, "no answer for 2 of 2 kinds of GPU\n"), NULL), "%s", output);
    cr_expect(eq(int, tune_all(3, "", "--device cuda:0", output), 2), "%s", output);
}

Test(with_stand_ins, mistakes_are_told)
{
    expect("--speed 2 -- true", 2, "--speed: no such option");
    expect("--gpu", 2, "--gpu: expected a value");
    expect("--gpu T4", 2, "no command was given");
}
