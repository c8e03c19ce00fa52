/* Whole processes: the real worker beside the replay in this process, and either end killed at any
 * moment. */
#include "autotune/base/clock.h"
#include "autotune/base/exit_status.h"
#include "autotune/run/spec_question.h"
#include "autotune/run/worker/process.h"
#include "autotune/search/space.h"
#include "bench.h"
#include "devices/sim/sim.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct bench bench;

static const int64_t BUDGET = INT64_C(3) << 30;

/* A setting of the bench's spec: sequence 128, every second one with checkpointing. */
static struct plim_setting setting_of(int64_t micro_batch)
{
    static struct plim_spec_question question;
    plim_spec_question_make(&bench.spec, PLIM_OBJECTIVE_THROUGHPUT, &question);
    const struct plim_axes *axes = &question.question.axes;
    struct plim_setting setting = plim_space_first(axes);
    setting.micro_batch = micro_batch;
    setting.accumulation = 2;
    setting.value[axes->seq] = 128;
    setting.value[plim_axes_find(axes, "precision")] = PLIM_PRECISION_BF16_MIXED;
    setting.value[plim_axes_find(axes, "checkpointing")] = micro_batch % 2;
    return setting;
}

/* A small model on a simulated GPU, in a real worker. */
static void init_real(struct bench *b)
{
    bench_init(b, "");
    cr_assert(eq(int, plim_spec_set(&b->spec, "model.n_layer", "1", &b->err), PLIM_OK));
    cr_assert(eq(int, plim_spec_resolve(&b->spec, &b->err), PLIM_OK), "%s", b->err.text);
    for (int i = 0; i < PLIM_PHASE_COUNT; i++) b->config.deadlines[i].seconds = 30;
    b->config.uri = "sim:RTX-3090";
    b->config.program = PLIM_BINARY;
}

static void start_real(struct bench *b)
{
    bench_start(b);
    plim_remote_set_budget(b->remote, BUDGET);
}

static void replay_here(const struct plim_spec *spec, const struct plim_setting *setting,
                        int64_t capacity, struct plim_replay *out)
{
    static struct plim_spec_question question;
    struct plim_train_setting training;
    struct plim_device *device;
    struct plim_replayer *replayer;
    struct plim_error err = PLIM_ERROR_INIT;
    plim_spec_question_make(spec, PLIM_OBJECTIVE_THROUGHPUT, &question);
    cr_assert(eq(int, plim_spec_question_setting(&question, setting, &training, &err), PLIM_OK));
    cr_assert(eq(int, plim_sim_open("RTX-3090", &device, &err), PLIM_OK));
    plim_device_limit(device, capacity);
    cr_assert(eq(int, plim_replayer_create(device, NULL, &replayer, &err), PLIM_OK));
    cr_assert(eq(int, plim_replay_run(replayer, &spec->model, &training, out, &err), PLIM_OK));
    plim_replayer_destroy(&replayer);
    plim_device_close(&device);
}

/* The worker's device computes the step that this process only repeats: the clock rounds. */
static bool same(const struct plim_replay *a, const struct plim_replay *b)
{
    bool steps = true;
    for (int i = 0; i < PLIM_REPLAY_STEPS; i++)
        steps &= a->step[i].peak_reserved_bytes == b->step[i].peak_reserved_bytes &&
                 a->step[i].peak_requested_bytes == b->step[i].peak_requested_bytes &&
                 fabs(a->step[i].seconds - b->step[i].seconds) <= 1e-9 * a->step[i].seconds;
    return steps && a->verdict == b->verdict && a->parameters == b->parameters &&
           a->oom_asked_bytes == b->oom_asked_bytes && !strcmp(a->oom_where, b->oom_where) &&
           a->peak_allocated_bytes == b->peak_allocated_bytes && a->retries == b->retries &&
           !memcmp(a->class_bytes, b->class_bytes, sizeof(a->class_bytes));
}

Test(worker, answers_what_a_replay_in_this_process_answers)
{
    int ooms = 0;
    init_real(&bench);
    start_real(&bench);
    for (int64_t b = 1; b <= 64; b += 9)
        for (int mode = 0; mode < 2; mode++) {
            struct plim_replay here, there;
            struct plim_setting setting = setting_of(b);
            enum plim_run_mode run_mode = mode ? PLIM_RUN_UNLIMITED : PLIM_RUN_LIMITED;
            replay_here(&bench.spec, &setting, mode ? INT64_C(1) << 60 : BUDGET, &here);
            cr_assert(
                eq(int, plim_remote_run(bench.remote, &setting, run_mode, &there, &bench.err),
                   PLIM_OK),
                "%s", bench.err.text);
            cr_expect(same(&here, &there), "micro-batch %d, mode %d: %s", (int)b, mode, there.why);
            ooms += there.verdict == PLIM_OOM;
        }
    cr_expect(lt(int, 1, ooms));
    cr_expect(eq(int, plim_remote_workers(bench.remote), 1)); /* no OOM cost one, none leaked */
    bench_finish(&bench);
}

Test(worker, says_what_device_it_opened)
{
    const struct plim_message_opened *opened;
    init_real(&bench);
    start_real(&bench);
    cr_assert(eq(int, plim_remote_open(bench.remote, &opened, &bench.err), PLIM_OK));
    cr_expect(eq(str, (char *)opened->info.name, (char *)"RTX-3090"));
    cr_expect(opened->info.simulated);
    cr_expect(eq(int, opened->info.compute_capability, 86));
    cr_expect(eq(i64, opened->free_bytes, opened->info.total_bytes));
    bench_finish(&bench);
}

Test(worker, how_a_process_ended_is_said)
{
    char how[96];
    plim_exit_status_text(SIGSEGV, how, sizeof(how)); /* as waitpid() has it on Linux */
    cr_expect(eq(str, how, (char *)"ended by signal 11 (Segmentation fault)"));
    plim_exit_status_text(3 << 8, how, sizeof(how));
    cr_expect(eq(str, how, (char *)"ended with exit code 3"));
}

Test(worker, a_process_is_waited_for_as_long_as_is_said)
{
    struct plim_process process = {.pid = fork(), .fd = dup(1)};
    int status;
    if (!process.pid) {
        nanosleep(&(struct timespec){0, 300000000}, NULL);
        _exit(7);
    }
    double start = plim_clock_seconds();
    cr_expect(not(plim_process_wait(&process, 0, &status)));
    cr_expect(not(plim_process_wait(&process, 0.05, &status)));
    cr_expect(lt(dbl, plim_clock_seconds() - start, 0.25));
    cr_expect(lt(i64, 0, process.pid), "it is still to be waited for");
    cr_expect(plim_process_wait(&process, 5, &status));
    cr_expect(eq(int, WEXITSTATUS(status), 7));
    cr_expect(eq(int, (int)process.pid, 0));
    cr_expect(eq(int, process.fd, -1));
    cr_expect(plim_process_wait(&process, 5, &status), "it is gone already");
    cr_expect(eq(int, status, 0));
    cr_expect(lt(dbl, plim_clock_seconds() - start, 3));
}

Test(worker, a_process_is_killed_with_its_group_or_alone)
{
    for (int leads = 0; leads < 2; leads++) {
        struct plim_process process = {.pid = fork(), .fd = -1};
        int status;
        if (!process.pid)
            for (;;) pause();
        if (leads) setpgid(process.pid, process.pid);
        plim_process_kill(&process);
        cr_expect(plim_process_wait(&process, 5, &status));
        cr_expect(eq(int, status, SIGKILL), "leads %d", leads); /* as waitpid() has it on Linux */
    }
}

Test(worker, does_not_open_what_is_not_there)
{
    static const struct {
        const char *uri;
        enum plim_status status;
    } cases[] = {{"sim:RTX-9999", PLIM_NODEVICE}, {"tpu:0", PLIM_UNSUPPORTED}};
    for (int i = 0; i < 2; i++) {
        const struct plim_message_opened *opened;
        init_real(&bench);
        bench.config.uri = cases[i].uri;
        start_real(&bench);
        cr_expect(eq(int, plim_remote_open(bench.remote, &opened, &bench.err), cases[i].status));
        cr_expect(lt(sz, 10, strlen(bench.err.text)));
        bench_finish(&bench);
    }
}

/* A model that the host computes in a moment. */
static void init_host(struct bench *b)
{
    static const char *const keys[][2] = {{"model.n_layer", "1"},
                                          {"model.n_embd", "16"},
                                          {"model.n_head", "2"},
                                          {"model.vocab_size", "64"},
                                          {"data.seq", "8"}};
    init_real(b);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        cr_assert(eq(int, plim_spec_set(&b->spec, keys[i][0], keys[i][1], &b->err), PLIM_OK), "%s",
                  b->err.text);
    cr_assert(eq(int, plim_spec_resolve(&b->spec, &b->err), PLIM_OK), "%s", b->err.text);
    b->config.uri = "host,memory=1GiB";
    b->config.timing_seconds = 1;
}

static void run_on_host(struct bench *b, int64_t micro_batch, struct plim_replay *out)
{
    static struct plim_spec_question question;
    plim_spec_question_make(&b->spec, PLIM_OBJECTIVE_THROUGHPUT, &question);
    const struct plim_axes *axes = &question.question.axes;
    struct plim_setting setting = plim_space_first(axes);
    setting.micro_batch = micro_batch;
    setting.accumulation = 1;
    setting.value[plim_axes_find(axes, "precision")] = PLIM_PRECISION_FP32;
    cr_assert(
        eq(int, plim_remote_run(b->remote, &setting, PLIM_RUN_LIMITED, out, &b->err), PLIM_OK),
        "%s", b->err.text);
}

Test(worker, times_a_device_that_computes)
{
    struct plim_replay replay;
    init_host(&bench);
    bench_start(&bench);
    run_on_host(&bench, 1, &replay);
    const struct plim_timing *timing = plim_remote_timing(bench.remote);
    cr_expect(eq(int, replay.verdict, PLIM_OK), "%s", replay.why);
    cr_expect(ge(int, timing->repeats, 6));
    cr_expect(eq(dbl, replay.step[PLIM_REPLAY_STEPS - 1].seconds, timing->median_seconds));
    cr_expect(lt(dbl, 0, timing->median_seconds));
    cr_expect(lt(dbl, 1, replay.step[0].loss)); /* log 64 is 4.2 */
    cr_expect(lt(dbl, replay.step[0].loss, 8));
    plim_remote_set_timing(bench.remote, 0);
    run_on_host(&bench, 2, &replay);
    cr_expect(eq(int, plim_remote_timing(bench.remote)->repeats, 1)); /* the step itself */
    bench_finish(&bench);
}

/* Steps that are timed have theirs too, of which there are many more than steps that are kept. */
Test(worker, times_steps_with_evaluations_between_them)
{
    struct plim_replay replay;
    init_host(&bench);
    cr_assert(eq(int, plim_spec_set(&bench.spec, "train.loop", "trainer", &bench.err), PLIM_OK));
    cr_assert(eq(int, plim_spec_set(&bench.spec, "train.evaluation.batch", "1", &bench.err), PLIM_OK));
    cr_assert(eq(int, plim_spec_set(&bench.spec, "train.evaluation.every", "1", &bench.err), PLIM_OK));
    cr_assert(eq(int, plim_spec_resolve(&bench.spec, &bench.err), PLIM_OK), "%s", bench.err.text);
    bench_start(&bench);
    run_on_host(&bench, 1, &replay);
    cr_expect(eq(int, replay.verdict, PLIM_OK), "%s", replay.why);
    cr_expect(ge(int, plim_remote_timing(bench.remote)->repeats, 6));
    cr_expect(eq(int, replay.evaluations, PLIM_REPLAY_STEPS));
    bench_finish(&bench);
}

static double any_step(void *user, const struct plim_setting *setting)
{
    (void)user, (void)setting;
    return 1e-9;
}

/* What is too slow to be chosen has the time of the steps that decide. */
Test(worker, does_not_repeat_what_is_too_slow_to_be_chosen)
{
    struct plim_replay replay;
    init_host(&bench);
    bench.config.slow = any_step;
    bench_start(&bench);
    run_on_host(&bench, 2, &replay);
    const struct plim_timing *timing = plim_remote_timing(bench.remote);
    cr_expect(eq(int, replay.verdict, PLIM_OK), "%s", replay.why);
    cr_expect(eq(int, timing->repeats, PLIM_REPLAY_STEPS - 1));
    cr_expect(eq(dbl, replay.step[PLIM_REPLAY_STEPS - 1].seconds, timing->median_seconds));
    bench_finish(&bench);
}

Test(worker, goes_on_after_an_oom_with_all_memory_back)
{
    struct plim_replay replay;
    init_host(&bench);
    bench.config.timing_seconds = 0;
    bench.config.load_bytes = bench.config.leak_bytes; /* the host loads nothing */
    bench_start(&bench);
    for (int round = 0; round < 3; round++) {
        run_on_host(&bench, 2 + round, &replay);
        cr_expect(eq(int, replay.verdict, PLIM_OK), "%s", replay.why);
        run_on_host(&bench, 50000 + round, &replay);
        cr_expect(eq(int, replay.verdict, PLIM_OOM), "%s", replay.why);
    }
    cr_expect(eq(int, plim_remote_workers(bench.remote), 1));
    bench_finish(&bench);
}

/* --- ends that come at any moment ------------------------------------------------------------- */

static int rounds(void)
{
    const char *text = getenv("PLIM_FAULT_ROUNDS");
    return text ? atoi(text) : 50;
}

static void nap(int microseconds)
{
    nanosleep(&(struct timespec){0, 1000L * microseconds}, NULL);
}

static void search_for_ever(void)
{
    struct plim_replay replay;
    start_real(&bench);
    for (int64_t b = 1;; b++) {
        struct plim_setting setting = setting_of(b % 50 + 1);
        if (plim_remote_run(bench.remote, &setting, PLIM_RUN_LIMITED, &replay, NULL))
            _exit(1);
        if (b % 5 == 0) plim_remote_destroy(&bench.remote);
        if (b % 5 == 0) start_real(&bench);
    }
}

/* Orphans become ours (PR_SET_CHILD_SUBREAPER), so waitpid() knows about every one of them. */
static int orphans_after(int milliseconds)
{
    for (int i = 0; i < milliseconds; i++) {
        pid_t pid;
        while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) continue;
        if (pid < 0 && errno == ECHILD) return 0;
        nap(1000);
    }
    return bench_children();
}

Test(processes, a_parent_killed_at_any_moment_leaves_no_worker)
{
    init_real(&bench);
    srand(11);
    cr_assert(not(prctl(PR_SET_CHILD_SUBREAPER, 1)));
    for (int i = 0; i < rounds(); i++) {
        pid_t parent = fork();
        cr_assert(ge(int, parent, 0));
        if (!parent) search_for_ever();
        nap(rand() % 40000);
        kill(parent, SIGKILL);
        cr_assert(eq(int, orphans_after(5000), 0), "round %d", i);
    }
    unlink(bench.count_path);
}

static atomic_bool enough;

static pid_t only_child(long parent)
{
    char path[64];
    long pid = 0;
    snprintf(path, sizeof(path), "/proc/self/task/%ld/children", parent);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%ld", &pid) != 1) pid = 0;
    if (file) fclose(file);
    return (pid_t)pid;
}

/* Within `*user` microseconds each. */
static void *kill_workers(void *user)
{
    unsigned state = 17;
    while (!enough) {
        state = state * 1664525u + 1013904223u;
        nap((int)(state >> 8) % *(const int *)user);
        pid_t pid = only_child((long)getpid());
        if (pid > 0) kill(pid, SIGKILL);
    }
    return NULL;
}

/* Four times as long as it takes to start a worker and have an answer. */
static int life_of_a_worker(void)
{
    struct plim_replay replay;
    struct plim_setting setting = setting_of(1);
    double start = plim_clock_seconds();
    cr_assert(eq(int,
                 plim_remote_run(bench.remote, &setting, PLIM_RUN_LIMITED, &replay, NULL),
                 PLIM_OK));
    double seconds = plim_clock_seconds() - start;
    return (int)(4e6 * (seconds < 0.1 ? seconds : 0.1)) + 1000;
}

/* A worker that waits for ever does not notice that by itself. */
Test(processes, a_parent_killed_at_any_moment_leaves_no_hanging_worker)
{
    static const char *const scripts[] = {"hang@start", "deaf@opening", "deaf@step", "hang@result"};
    cr_assert(not(prctl(PR_SET_CHILD_SUBREAPER, 1)));
    srand(12);
    for (int i = 0; i < rounds(); i++) {
        bench_init(&bench, scripts[i % 4]);
        for (int p = 0; p < PLIM_PHASE_COUNT; p++) bench.config.deadlines[p].seconds = 60;
        pid_t parent = fork();
        cr_assert(ge(int, parent, 0));
        if (!parent) {
            struct plim_replay replay;
            bench_start(&bench);
            (void)bench_run(&bench, 1, &replay);
            _exit(0);
        }
        nap(rand() % 30000);
        kill(parent, SIGKILL);
        cr_assert(eq(int, orphans_after(5000), 0), "round %d", i);
        unlink(bench.count_path);
    }
}

Test(processes, a_worker_killed_at_any_moment_gives_no_wrong_answer)
{
    pthread_t thread;
    int life, answers = 0;
    static struct plim_replay truth[51];
    init_real(&bench);
    for (int64_t b = 1; b <= 50; b++) {
        struct plim_setting setting = setting_of(b);
        replay_here(&bench.spec, &setting, BUDGET, &truth[b]);
    }
    start_real(&bench);
    life = life_of_a_worker();
    cr_assert(not(pthread_create(&thread, NULL, kill_workers, &life)));
    for (int64_t i = 1; plim_remote_workers(bench.remote) <= rounds() && i < 100000; i++) {
        struct plim_replay replay;
        struct plim_setting setting = setting_of(i % 50 + 1);
        enum plim_status st =
            plim_remote_run(bench.remote, &setting, PLIM_RUN_LIMITED, &replay, NULL);
        if (st == PLIM_LOST) continue; /* three workers in a row were killed while they opened */
        cr_assert(eq(int, st, PLIM_OK));
        cr_assert(replay.verdict == PLIM_CRASHED || same(&replay, &truth[i % 50 + 1]),
                  "micro-batch %d", (int)(i % 50 + 1));
        answers += replay.verdict != PLIM_CRASHED;
    }
    enough = true;
    pthread_join(thread, NULL);
    cr_expect(lt(int, 5, answers));
    bench_finish(&bench);
}
