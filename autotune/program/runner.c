#include "runner.h"
#include "autotune/base/text.h"
#include "autotune/memo.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* A program whose peak is the same to the byte at three batches, the largest so many times the
 * smallest, does not use its batch. */
enum { IGNORED_TRIALS = 3, IGNORED_SPREAD = 64 };

/* Cards with memory without end, for what a setting would need. */
static const int64_t UNLIMITED_BYTES = (int64_t)1 << 40;

struct job {
    struct plim_program_runner *runner;
    struct plim_setting setting;
    enum plim_run_mode mode;
    int64_t number;
    pthread_t thread;
    bool done, joined;
    struct plim_trial trial;
    enum plim_status status; /* of the call, not the verdict */
    struct plim_error error;
};

struct plim_program_runner {
    struct plim_trial_order orders[2]; /* by mode */
    struct plim_machine_card unlimited[PLIM_MACHINE_CARDS];
    atomic_bool given_up; /* nobody waits for what still runs */
    int jobs;
    int64_t budget_bytes;
    PLIM_ARRAY(struct job *) list;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

enum plim_status plim_program_runner_create(const struct plim_trial_order *order, int jobs,
                                            struct plim_program_runner **out,
                                            struct plim_error *err)
{
    struct plim_program_runner *runner = calloc(1, sizeof(*runner));
    if (!runner) return plim_fail(err, PLIM_NOMEM, "out of host memory");
    runner->jobs = jobs;
    runner->budget_bytes = order->cards[0].total_bytes - order->cards[0].withheld_bytes -
                           order->cards[0].context_bytes;
    for (int i = 0; i < order->card_count; i++) {
        runner->unlimited[i] = order->cards[i];
        runner->unlimited[i].total_bytes = UNLIMITED_BYTES;
        runner->unlimited[i].withheld_bytes = 0;
    }
    runner->orders[PLIM_RUN_LIMITED] = runner->orders[PLIM_RUN_UNLIMITED] = *order;
    runner->orders[PLIM_RUN_UNLIMITED].cards = runner->unlimited;
    for (int i = 0; i < 2; i++) runner->orders[i].given_up = &runner->given_up;
    pthread_mutex_init(&runner->lock, NULL);
    pthread_cond_init(&runner->changed, NULL);
    *out = runner;
    return PLIM_OK;
}

/* --- jobs ------------------------------------------------------------------------------------- */

static void *work(void *user)
{
    struct job *job = user;
    struct plim_program_runner *runner = job->runner;
    job->status = plim_trial_run(&runner->orders[job->mode], &job->setting, job->number, &job->trial,
                                 &job->error);
    pthread_mutex_lock(&runner->lock);
    job->done = true;
    pthread_cond_broadcast(&runner->changed);
    pthread_mutex_unlock(&runner->lock);
    return NULL;
}

static struct job *find(const struct plim_program_runner *runner,
                        const struct plim_setting *setting, enum plim_run_mode mode)
{
    for (size_t i = 0; i < runner->list.count; i++) {
        struct job *job = runner->list.items[i];
        if (job->mode == mode && plim_setting_equal(&job->setting, setting)) return job;
    }
    return NULL;
}

static struct job *start(struct plim_program_runner *runner, const struct plim_setting *setting,
                         enum plim_run_mode mode)
{
    struct job *job = calloc(1, sizeof(*job));
    if (!job) return NULL;
    *job = (struct job){.runner = runner, .setting = *setting, .mode = mode,
                        .number = (int64_t)runner->list.count + 1};
    if (PLIM_ARRAY_PUSH(&runner->list, job) != PLIM_OK) {
        free(job);
        return NULL;
    }
    if (!pthread_create(&job->thread, NULL, work, job)) return job;
    runner->list.count--;
    free(job);
    return NULL;
}

static void wait_for(struct plim_program_runner *runner, struct job *job)
{
    pthread_mutex_lock(&runner->lock);
    while (!job->done) pthread_cond_wait(&runner->changed, &runner->lock);
    pthread_mutex_unlock(&runner->lock);
    if (!job->joined) pthread_join(job->thread, NULL);
    job->joined = true;
}

static bool is_done(struct plim_program_runner *runner, const struct job *job)
{
    pthread_mutex_lock(&runner->lock);
    bool done = job->done;
    pthread_mutex_unlock(&runner->lock);
    return done;
}

static int running(struct plim_program_runner *runner)
{
    int count = 0;
    for (size_t i = 0; i < runner->list.count; i++) count += !is_done(runner, runner->list.items[i]);
    return count;
}

void plim_program_runner_destroy(struct plim_program_runner **place)
{
    struct plim_program_runner *runner = *place;
    if (!runner) return;
    atomic_store(&runner->given_up, true);
    for (size_t i = 0; i < runner->list.count; i++) {
        wait_for(runner, runner->list.items[i]);
        free(runner->list.items[i]);
    }
    PLIM_ARRAY_FINISH(&runner->list);
    pthread_cond_destroy(&runner->changed);
    pthread_mutex_destroy(&runner->lock);
    free(runner);
    *place = NULL;
}

/* --- what may be asked for next ---------------------------------------------------------------- */

static bool is_same_point(const struct plim_setting *a, const struct plim_setting *b)
{
    struct plim_setting x = *a, y = *b;
    x.micro_batch = y.micro_batch = x.accumulation = y.accumulation = 0;
    return plim_setting_equal(&x, &y);
}

/* The bracket that is known of a point: 0 and INT64_MAX where nothing is. */
static void bracket(struct plim_program_runner *runner, const struct plim_setting *point,
                    int64_t *fits, int64_t *fails)
{
    *fits = 0;
    *fails = INT64_MAX;
    for (size_t i = 0; i < runner->list.count; i++) {
        const struct job *job = runner->list.items[i];
        int64_t b = job->setting.micro_batch;
        if (job->mode != PLIM_RUN_LIMITED || !is_done(runner, job) || job->status ||
            !is_same_point(&job->setting, point))
            continue;
        if (job->trial.verdict == PLIM_OK && b > *fits) *fits = b;
        if (job->trial.verdict != PLIM_OK && b < *fails) *fails = b;
    }
}

static void start_likely(struct plim_program_runner *runner, const struct plim_setting *asked)
{
    int64_t fits, fails, b = asked->micro_batch;
    bracket(runner, asked, &fits, &fails);
    if (fails == INT64_MAX || b <= fits || b >= fails) return;
    const int64_t likely[] = {(fits + b) / 2, (b + fails) / 2, b + 1, b - 1};
    for (size_t i = 0; i < 4 && running(runner) < runner->jobs; i++) {
        struct plim_setting setting = *asked;
        setting.micro_batch = likely[i];
        if (likely[i] <= fits || likely[i] >= fails || find(runner, &setting, PLIM_RUN_LIMITED))
            continue;
        if (!start(runner, &setting, PLIM_RUN_LIMITED)) return;
    }
}

/* --- answers ---------------------------------------------------------------------------------- */

static void fill(const struct plim_trial *trial, bool timed, struct plim_replay *out)
{
    *out = (struct plim_replay){.verdict = trial->verdict,
                                .peak_reserved_bytes = trial->peak_bytes,
                                .retries =
                                    trial->verdict == PLIM_OK && !trial->went_on ? trial->refusals : 0};
    /* Host time from step to step; of a virtual card it says nothing. */
    if (timed) out->step[PLIM_REPLAY_STEPS - 1].seconds = trial->step_seconds;
    snprintf(out->why, sizeof(out->why), "%s", trial->why);
}

static enum plim_status check_batch_is_used(struct plim_program_runner *runner,
                                            const struct job *job, struct plim_error *err)
{
    int64_t low = job->setting.micro_batch, high = low, same = 0;
    char bytes[16];
    for (size_t i = 0; i < runner->list.count; i++) {
        const struct job *other = runner->list.items[i];
        if (!is_done(runner, other) || other->status || other->trial.verdict != PLIM_OK ||
            !is_same_point(&other->setting, &job->setting))
            continue;
        if (other->trial.peak_bytes != job->trial.peak_bytes) return PLIM_OK;
        int64_t b = other->setting.micro_batch;
        low = b < low ? b : low;
        high = b > high ? b : high;
        same++;
    }
    if (same < IGNORED_TRIALS || high / low < IGNORED_SPREAD) return PLIM_OK;
    return plim_fail(err, PLIM_INVALID,
                     "the program takes %s at batch %" PRId64 " and at batch %" PRId64
                     " alike: it does not seem to use {batch}",
                     plim_format_bytes(job->trial.peak_bytes, bytes), low, high);
}

static enum plim_status ask(struct plim_program_runner *runner, const struct plim_setting *setting,
                            enum plim_run_mode mode, struct job **out, struct plim_error *err)
{
    struct job *job = find(runner, setting, mode);
    bool is_new = !job;
    if (is_new) job = start(runner, setting, mode);
    if (!job) return plim_fail(err, PLIM_NOMEM, "a trial cannot be started");
    if (mode == PLIM_RUN_LIMITED) start_likely(runner, setting);
    wait_for(runner, job);
    *out = job;
    if (job->status && err) *err = job->error;
    if (job->status) return job->status;
    if (job->trial.verdict == PLIM_CANCELLED) {
        enum plim_status st = plim_stop_check(runner->orders[mode].stop, err);
        return st ? st : PLIM_CANCELLED;
    }
    return is_new ? check_batch_is_used(runner, job, err) : PLIM_OK;
}

enum plim_status plim_program_runner_run(void *user, const struct plim_setting *setting,
                                         enum plim_run_mode mode, struct plim_replay *out,
                                         struct plim_error *err)
{
    struct plim_program_runner *runner = user;
    struct job *job;
    enum plim_status st = ask(runner, setting, PLIM_RUN_LIMITED, &job, err);
    bool needs_more = !st && mode == PLIM_RUN_UNLIMITED && job->trial.verdict == PLIM_OOM &&
                      !runner->orders[mode].visible; /* a real card cannot be larger than it is */
    if (needs_more) st = ask(runner, setting, PLIM_RUN_UNLIMITED, &job, err);
    if (!st) fill(&job->trial, runner->orders[mode].visible != NULL, out);
    /* A program may take less when it sees more: what did not fit did not fit. */
    int64_t too_much = runner->budget_bytes + 1;
    if (!st && needs_more && out->peak_reserved_bytes < too_much)
        out->peak_reserved_bytes = too_much;
    return st;
}

const struct plim_trial *plim_program_runner_trial(const struct plim_program_runner *runner,
                                                   const struct plim_setting *setting)
{
    const struct job *job = find(runner, setting, PLIM_RUN_LIMITED);
    return job && job->joined ? &job->trial : NULL;
}

size_t plim_program_runner_count(const struct plim_program_runner *runner)
{
    return runner->list.count;
}

const struct plim_trial *plim_program_runner_at(const struct plim_program_runner *runner, size_t i)
{
    return runner->list.items[i]->joined ? &runner->list.items[i]->trial : NULL;
}
