#define _DEFAULT_SOURCE /* mkdtemp */
/* The all-reduce among several pretended GPUs: measured, in the report and in its seconds, kept; and what
 * comes where it cannot be. `explain` runs one setting on the GPU. */
#include "autotune/base/clock.h"
#include "program.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define GPU "A100-SXM4-80GB"
#define TWO "--gpu " GPU "," GPU " --memory 400MiB"
#define ASKED                                                                                      \
    "'" PLIM_SMALLEST "' --batch 1 --checkpointing none --margin 0 --overhead 278MiB --json "
#define TEXT_(number) #number
#define TEXT(number) TEXT_(number)
#define BUDGET TEXT(PLIM_RING_SECONDS) "s"
#define EXPLAIN "explain " ASKED "--device cuda:0 "

struct ran {
    int exit_code;
    char errors[8192];
    json_t *report;
};

static char *read_file(const char *path)
{
    char *text = calloc(1, 1 << 20);
    FILE *file = fopen(path, "r");
    cr_assert(file && text, "%s", path);
    text[fread(text, 1, (1 << 20) - 1, file)] = '\0';
    fclose(file);
    return text;
}

/* plimsoll with these arguments on such GPUs (options of with-stand-ins). Nothing is left behind. */
static struct ran run(const char *gpus, const char *arguments)
{
    struct ran r;
    char command[2048];
    char *out = program_file("out", ""), *err = program_file("err", "");
    cr_assert(not(prctl(PR_SET_CHILD_SUBREAPER, 1)));
    snprintf(command, sizeof(command), "'%s' --build '%s' %s -- '%s' %s >%s 2>%s", PLIM_WITH_STAND_INS,
             PLIM_BUILD_FOLDER, gpus, PLIM_BINARY, arguments, out, err);
    int status = system(command);
    r.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    cr_expect(program_none_is_left(), "a process is left");
    char *report = read_file(out), *errors = read_file(err);
    snprintf(r.errors, sizeof(r.errors), "%s", errors);
    r.report = json_loads(report, 0, NULL);
    cr_assert(r.report != NULL, "%s: %s%s", arguments, report, errors);
    free(report);
    free(errors);
    program_file_remove(out);
    program_file_remove(err);
    return r;
}

static void no_store(void)
{
    setenv("PLIMSOLL_STORE", "off", 1);
}

static char store[] = "/tmp/plimsoll-ring-XXXXXX";

static void make_store(void)
{
    cr_assert(ne(ptr, mkdtemp(store), NULL));
    setenv("PLIMSOLL_STORE", store, 1);
}

static void remove_store(void)
{
    char command[64];
    snprintf(command, sizeof(command), "rm -rf %s", store);
    cr_expect(eq(int, system(command), 0));
}

static bool says(const json_t *report, const char *part)
{
    size_t i;
    json_t *reason;
    json_array_foreach(json_object_get(report, "why"), i, reason)
    {
        if (strstr(json_string_value(reason), part)) return true;
    }
    return false;
}

static double number(const struct ran *r, const char *path)
{
    json_t *node = json_at(r->report, path);
    return node ? json_number_value(node) : 0;
}

/* Modelled, and no measurement was tried: there is no message about it. */
static void expect_untried(const char *gpus, const char *arguments)
{
    struct ran r = run(gpus, arguments);
    cr_expect(eq(int, r.exit_code, 0), "%s", r.errors);
    cr_expect(not(json_true_at(r.report, "all_reduce.measured")), "%s", arguments);
    cr_expect(json_at(r.report, "all_reduce.why_not") == NULL, "%s", arguments);
    cr_expect(strstr(r.errors, "all-reduce") == NULL, "%s", r.errors);
    json_decref(r.report);
}

/* One GPU has not what the others own: its twin answers, with what is free on it. */
Test(gpu_ring, sharded_jobs_are_left_to_the_twin, .init = make_store, .fini = remove_store)
{
    static const char *const shardings[] = {"zero1", "zero3", "fsdp"};
    char arguments[1024];
    for (size_t i = 0; i < sizeof shardings / sizeof *shardings; i++)
        for (int again = 0; again < 2; again++) {
            snprintf(arguments, sizeof arguments,
                     "tune " ASKED "--device cuda:0 --world 2 --sharding %s", shardings[i]);
            struct ran r = run("--gpu " GPU " --memory 3GiB --others 100MiB", arguments);
            cr_expect(eq(int, r.exit_code, 0), "%s", r.errors);
            cr_expect(strstr(r.errors, "one GPU does not have the other ranks' shards") != NULL, "%s", r.errors);
            cr_expect(json_true_at(r.report, "device.simulated"));
            json_expect_text(r.report, "choice.sharding", shardings[i]);
            int64_t left = json_int_at(r.report, "limit.usable_bytes");
            cr_expect(eq(i64, left, ((int64_t)3 << 30) - (100 << 20)), "%lld", (long long)left);
            json_decref(r.report);
        }
    struct ran ddp = run(TWO, EXPLAIN "--world 2 --sharding ddp,zero1");
    cr_expect(not(json_true_at(ddp.report, "device.simulated")), "one of them runs here");
    json_decref(ddp.report);
}

Test(gpu_ring, what_is_measured_is_in_the_report, .init = no_store)
{
    setenv("PLIM_DOUBLE_NCCL", "2,8", 1);
    struct ran measured = run(TWO, EXPLAIN "--world 2");
    cr_expect(eq(int, measured.exit_code, 0), "%s", measured.errors);
    cr_expect(json_true_at(measured.report, "all_reduce.measured"));
    cr_expect(eq(i64, json_int_at(measured.report, "all_reduce.gpus"), 2));
    json_expect_text(measured.report, "all_reduce.nccl", "2.28.9");
    cr_expect(epsilon_eq(dbl, number(&measured, "all_reduce.bytes_per_second"), 2e9, 2e8));
    cr_expect(epsilon_eq(dbl, number(&measured, "all_reduce.latency_seconds"), 8e-3, 1e-3));
    cr_expect(says(measured.report, "all-reduce measured: "));
    cr_expect(says(measured.report, " GB/s over 2 GPUs, latency "));
    /* The bucket of 70 KiB adds 36 us to its latency. */
    cr_expect(epsilon_eq(dbl, number(&measured, "all_reduce.waits_seconds"), 8e-3, 1e-3));
    /* What measured is gone when the GPU's memory is looked at. */
    cr_expect(eq(i64, json_int_at(measured.report, "limit.usable_bytes"), 400 << 20));
    json_decref(measured.report);
}

/* The GPU's simulated twin determines what does not fit. */
Test(gpu_ring, the_twin_goes_by_it_too, .init = no_store)
{
    setenv("PLIM_DOUBLE_NCCL", "2,8", 1);
    struct ran r = run(TWO, EXPLAIN "--world 2 --overhead 399MiB");
    cr_expect(eq(int, r.exit_code, 1), "%s", r.errors);
    cr_expect(json_true_at(r.report, "all_reduce.measured"));
    cr_expect(epsilon_eq(dbl, number(&r, "all_reduce.waits_seconds"), 8e-3, 1e-3));
    json_decref(r.report);
}

Test(gpu_ring, as_many_take_part_as_the_job_has_on_a_machine, .init = no_store)
{
    static const struct {
        const char *options;
        int gpus;
    } cases[] = {{"--world 2", 2}, {"--world 8", 3}, {"--world 8 --gpus-per-node 8", 3}};
    setenv("PLIM_DOUBLE_NCCL", "20,0.2", 1);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char arguments[512];
        snprintf(arguments, sizeof(arguments), EXPLAIN "%s", cases[i].options);
        struct ran r = run("--gpu " GPU "," GPU "," GPU " --memory 400MiB", arguments);
        cr_expect(eq(i64, json_int_at(r.report, "all_reduce.gpus"), cases[i].gpus), "%s", r.errors);
        json_decref(r.report);
    }
}

Test(gpu_ring, where_no_others_are_nothing_is_tried, .init = no_store)
{
    expect_untried("--memory 400MiB", EXPLAIN "--world 2");
    expect_untried(TWO, EXPLAIN "--world 1");
    expect_untried(TWO, EXPLAIN "--world 2 --sharding none");
    expect_untried("--gpu " GPU ",A100-SXM4-40GB --memory 400MiB", EXPLAIN "--world 2");
}

Test(gpu_ring, a_gpu_that_is_hidden_takes_no_part, .init = no_store)
{
    setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    expect_untried(TWO, EXPLAIN "--world 2");
}

Test(gpu_ring, an_error_leaves_the_model_and_is_told, .init = no_store)
{
    struct ran r = run(TWO " --fault nccl@3", EXPLAIN "--world 2");
    cr_expect(eq(int, r.exit_code, 0), "%s", r.errors);
    cr_expect(json_false_at(r.report, "all_reduce.measured"));
    cr_expect(json_at(r.report, "all_reduce.gpus") == NULL);
    cr_expect(epsilon_eq(dbl, number(&r, "all_reduce.bytes_per_second"), 240e9, 1));
    json_expect_text(r.report, "all_reduce.why_not", "ncclAllReduce: unhandled system error (2)");
    cr_expect(says(r.report, "all-reduce modelled: 240 GB/s"));
    cr_expect(says(r.report, "modelled, not measured: ncclAllReduce: unhandled system error (2)."));
    cr_expect(strstr(r.errors, "the all-reduce is modelled, not measured") != NULL, "%s", r.errors);
    json_decref(r.report);
}

Test(gpu_ring, without_nccl_it_is_modelled, .init = no_store)
{
    setenv("PLIM_DOUBLE_NCCL_VERSION", "2604", 1);
    struct ran r = run(TWO, EXPLAIN "--world 2");
    cr_expect(eq(int, r.exit_code, 0), "%s", r.errors);
    cr_expect(says(r.report, "expected 2.10.0 or newer."), "%s", r.errors);
    json_decref(r.report);
}

/* A quarter of the budget is its time; the rest goes on as without it. */
Test(gpu_ring, what_hangs_is_killed_and_the_search_goes_on, .init = no_store)
{
    double start = plim_clock_seconds();
    struct ran r = run(TWO " --fault nccl-hang@3",
                       "tune " ASKED "--device cuda:0 --world 2 --budget " BUDGET);
    cr_expect(lt(dbl, plim_clock_seconds() - start, PLIM_RING_SECONDS + 20));
    cr_expect(r.exit_code == 0 || r.exit_code == 5, "%d: %s", r.exit_code, r.errors);
    json_expect_text(r.report, "device.uri", "cuda:GPU-706c696d-736f-6c6c-2067-707520203000");
    cr_assert(says(r.report, "modelled, not measured: the worker hung: timing the all-reduce took "
                             "longer than "), "%s", r.errors);
    cr_expect(json_false_at(r.report, "all_reduce.measured"));
    json_decref(r.report);
}

Test(gpu_ring, others_who_work_on_a_gpu_are_left_alone, .init = no_store)
{
    struct ran r = run("--gpu " GPU "," GPU " --memory 4GiB --others 2GiB", EXPLAIN "--world 2");
    cr_expect(eq(int, r.exit_code, 0), "%s", r.errors);
    json_expect_text(r.report, "all_reduce.why_not", "others work on 2 of the 2 GPUs of this kind");
    cr_expect(strstr(r.errors, "measuring the all-reduce") == NULL, "%s", r.errors);
    json_decref(r.report);
}

/* The second finds what the first measured, another set of variables of NCCL's does not. */
Test(gpu_ring, what_was_measured_is_kept, .init = make_store, .fini = remove_store)
{
    static const struct {
        const char *nccl, *options, *variable;
        bool measures;
        double bandwidth;
    } runs[] = {{"5,1", "", "0", true, 5e9},
                {"10,0.5", "", "0", false, 5e9},
                {"10,0.5", "--seq 8", "0", false, 5e9},
                {"10,0.5", "", "1", true, 10e9},
                {"10,0.5", "--fresh", "0", true, 10e9},
                {"5,1", "", "0", false, 10e9}};
    char arguments[512];
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        setenv("PLIM_DOUBLE_NCCL", runs[i].nccl, 1);
        setenv("NCCL_P2P_DISABLE", runs[i].variable, 1);
        snprintf(arguments, sizeof(arguments), EXPLAIN "--world 2 %s", runs[i].options);
        struct ran r = run(TWO, arguments);
        bool measured = strstr(r.errors, "measuring the all-reduce") != NULL;
        cr_expect(eq(int, measured, runs[i].measures), "run %zu: %s", i, r.errors);
        cr_expect(json_true_at(r.report, "all_reduce.measured"), "run %zu", i);
        cr_expect(epsilon_eq(dbl, number(&r, "all_reduce.bytes_per_second"), runs[i].bandwidth,
                             0.15 * runs[i].bandwidth), "run %zu", i);
        json_decref(r.report);
    }
}

/* However long the step itself takes on a busy machine, it is not 100 s. */
Test(gpu_ring, what_is_known_of_it_counts_in_the_seconds_of_a_measured_step, .init = make_store, .fini = remove_store)
{
    char command[512];
    setenv("PLIM_DOUBLE_NCCL", "20,0.2", 1);
    struct ran r = run(TWO, EXPLAIN "--world 2");
    cr_expect(lt(dbl, number(&r, "setting.step_seconds"), 100));
    json_decref(r.report);
    snprintf(command, sizeof(command), "sed -i 's/^2 \\([^ ]*\\) [^ ]*/2 \\1 100/' %s/all-reduce/*", store);
    cr_assert(eq(int, system(command), 0));
    r = run(TWO, EXPLAIN "--world 2 --seq 8");
    cr_expect(epsilon_eq(dbl, number(&r, "all_reduce.waits_seconds"), 100, 0.1));
    cr_expect(lt(dbl, 100, number(&r, "setting.step_seconds")));
    json_decref(r.report);
}

/* Of three GPUs two are of a kind: the ring is theirs. */
Test(gpu_ring, each_kind_has_a_ring_of_its_own, .init = no_store)
{
    struct ran r = run("--gpu T4,RTX-2080-Ti,T4 --memory 2GiB",
                       "tune '" PLIM_SMALLEST "' --device cuda:all --batch 1 --checkpointing none "
                       "--margin 0 --overhead 2000MiB --world 2 --json --budget " BUDGET);
    cr_expect(r.exit_code == 0 || r.exit_code == 5, "%d: %s", r.exit_code, r.errors);
    size_t i, rings = 0;
    json_t *result;
    json_array_foreach(json_object_get(r.report, "results"), i, result)
    {
        bool is_t4 = strstr(json_text_at(result, "device.name"), "T4") != NULL;
        if (json_at(result, "choice.micro_batch") == NULL) continue; /* time ran out */
        cr_expect(eq(int, json_true_at(result, "all_reduce.measured"), is_t4), "%s", r.errors);
        rings++;
    }
    cr_expect(lt(sz, 0, rings), "%s", r.errors);
    json_decref(r.report);
}
