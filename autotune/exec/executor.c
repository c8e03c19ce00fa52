#include "executor.h"
#include "autotune/base/text.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* A program whose peak is equal to the byte at this many batches, the largest at least IGNORED_SPREAD times the
 * smallest, is assumed to ignore {batch}. */
enum { IGNORED_TRIALS = 3, IGNORED_SPREAD = 64 };

enum { EXPECTED_AT_MOST = 8 };

/* Memory of the GPUs without a limit: more than any GPU has. */
static const int64_t AMPLE_BYTES = (int64_t)1 << 40;

struct job {
    struct plim_executor *executor;
    struct plim_setting setting;
    enum plim_run_mode mode;
    int64_t number;
    pthread_t thread;
    bool done, joined, confirmed;
    struct plim_execution execution;
    enum plim_status status; /* of the call, not the verdict */
    struct plim_error error;
};

struct plim_executor {
    struct plim_execution_options options[2]; /* indexed by enum plim_run_mode */
    struct plim_machine_gpu unlimited[PLIM_MACHINE_GPUS];
    atomic_bool given_up; /* cancels running trials */
    int jobs;
    int64_t trials; /* number of trials started */
    bool confirms;  /* try each setting as first and as later launch, since one fitted in only one of the two */
    int64_t budget_bytes;
    struct plim_setting expected[EXPECTED_AT_MOST]; /* to start along with the next run */
    size_t expected_count;
    PLIM_ARRAY(struct job *) list;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

enum plim_status plim_executor_create(const struct plim_execution_options *options, int jobs,
                                      struct plim_executor **out, struct plim_error *err)
{
    struct plim_executor *x = calloc(1, sizeof(*x));
    if (!x) return plim_no_memory(err);
    x->jobs = jobs;
    x->budget_bytes = options->gpus[0].total_bytes - options->gpus[0].withheld_bytes -
                      options->gpus[0].context_bytes;
    for (int i = 0; i < options->gpu_count; i++) {
        x->unlimited[i] = options->gpus[i];
        x->unlimited[i].total_bytes = AMPLE_BYTES;
        x->unlimited[i].withheld_bytes = 0;
    }
    x->options[PLIM_RUN_LIMITED] = x->options[PLIM_RUN_UNLIMITED] = *options;
    x->options[PLIM_RUN_UNLIMITED].gpus = x->unlimited;
    for (int i = 0; i < 2; i++) x->options[i].given_up = &x->given_up;
    pthread_mutex_init(&x->lock, NULL);
    pthread_cond_init(&x->changed, NULL);
    *out = x;
    return PLIM_OK;
}

/* --- jobs ------------------------------------------------------------------------------------- */

static void *work(void *user)
{
    struct job *job = user;
    struct plim_executor *x = job->executor;
    job->status = plim_execution_run(&x->options[job->mode], &job->setting, job->number,
                                     &job->execution, &job->error);
    pthread_mutex_lock(&x->lock);
    job->done = true;
    pthread_cond_broadcast(&x->changed);
    pthread_mutex_unlock(&x->lock);
    return NULL;
}

static struct job *find(const struct plim_executor *x, const struct plim_setting *setting,
                        enum plim_run_mode mode)
{
    for (size_t i = 0; i < x->list.count; i++) {
        struct job *job = x->list.items[i];
        if (job->mode == mode && plim_setting_equal(&job->setting, setting)) return job;
    }
    return NULL;
}

static struct job *start(struct plim_executor *x, const struct plim_setting *setting,
                         enum plim_run_mode mode)
{
    struct job *job = calloc(1, sizeof(*job));
    if (!job) return NULL;
    *job = (struct job){
        .executor = x, .setting = *setting, .mode = mode, .number = ++x->trials};
    if (PLIM_ARRAY_PUSH(&x->list, job) != PLIM_OK) {
        free(job);
        return NULL;
    }
    if (!pthread_create(&job->thread, NULL, work, job)) return job;
    x->list.count--;
    free(job);
    return NULL;
}

static void wait_for(struct plim_executor *x, struct job *job)
{
    pthread_mutex_lock(&x->lock);
    while (!job->done) pthread_cond_wait(&x->changed, &x->lock);
    pthread_mutex_unlock(&x->lock);
    if (!job->joined) pthread_join(job->thread, NULL);
    job->joined = true;
}

static bool is_done(struct plim_executor *x, const struct job *job)
{
    pthread_mutex_lock(&x->lock);
    bool done = job->done;
    pthread_mutex_unlock(&x->lock);
    return done;
}

static int running(struct plim_executor *x)
{
    int count = 0;
    for (size_t i = 0; i < x->list.count; i++) count += !is_done(x, x->list.items[i]);
    return count;
}

void plim_executor_destroy(struct plim_executor **place)
{
    struct plim_executor *x = *place;
    if (!x) return;
    atomic_store(&x->given_up, true);
    for (size_t i = 0; i < x->list.count; i++) {
        wait_for(x, x->list.items[i]);
        free(x->list.items[i]);
    }
    PLIM_ARRAY_FINISH(&x->list);
    pthread_cond_destroy(&x->changed);
    pthread_mutex_destroy(&x->lock);
    free(x);
    *place = NULL;
}

/* --- announced settings ------------------------------------------------------------------------ */

static void expect(void *user, const struct plim_setting *settings, size_t count)
{
    struct plim_executor *x = user;
    x->expected_count = count < EXPECTED_AT_MOST ? count : EXPECTED_AT_MOST;
    memcpy(x->expected, settings, x->expected_count * sizeof(*settings));
}

/* Starts announced settings, while fewer than `jobs` trials run. */
static void start_expected(struct plim_executor *x)
{
    for (size_t i = 0; i < x->expected_count && running(x) < x->jobs; i++) {
        if (find(x, &x->expected[i], PLIM_RUN_LIMITED)) continue;
        if (!start(x, &x->expected[i], PLIM_RUN_LIMITED)) break;
    }
    x->expected_count = 0;
}

/* --- programs that compile --------------------------------------------------------------------- */

/* Tries the job's setting again. Returns false if the search is stopped or the program cannot be started. */
static bool launch(struct plim_executor *x, const struct job *job, bool is_first, struct plim_execution *out)
{
    struct plim_execution_options options = x->options[PLIM_RUN_LIMITED];
    struct plim_error ignored;
    options.compiles_alone = is_first;
    if (plim_stop_check(options.stop, &ignored)) return false;
    return plim_execution_run(&options, &job->setting, ++x->trials, out, &ignored) == PLIM_OK &&
           out->verdict != PLIM_CANCELLED;
}

static void confirm(struct plim_executor *x, struct job *job)
{
    struct plim_execution *tried = &job->execution, again;
    if (job->confirmed || tried->verdict != PLIM_OK || !(tried->finds_compiled || tried->makes_compiled)) return;
    job->confirmed = true;
    /* A trial that found cached results may have compiled others: it is neither a first nor a later launch. */
    int64_t peaks[2] = {tried->makes_compiled ? tried->peak_bytes : 0, 0};
    for (int later = 0; later < 2 && tried->verdict == PLIM_OK; later++) {
        if (peaks[later]) continue;
        if (!launch(x, job, !later, &again)) return;
        peaks[later] = again.peak_bytes;
        if (again.verdict != PLIM_OK || again.peak_bytes > tried->peak_bytes) *tried = again;
    }
    tried->first_launch_bytes = peaks[0];
    tried->later_launch_bytes = peaks[1];
    x->confirms |= tried->verdict != PLIM_OK;
}

const struct plim_execution *plim_executor_confirm(struct plim_executor *x, const struct plim_setting *setting)
{
    struct job *job = find(x, setting, PLIM_RUN_LIMITED);
    if (job) confirm(x, job);
    return job ? &job->execution : NULL;
}

/* --- the runner ------------------------------------------------------------------------------- */

static void fill(const struct plim_execution *execution, bool timed, struct plim_trial *out)
{
    bool gave_back = execution->verdict == PLIM_OK && !execution->went_on;
    *out = (struct plim_trial){.verdict = execution->verdict,
                               .reserved_bytes = execution->peak_bytes,
                               .retries = gave_back ? execution->refusals : 0,
                               /* Host time, meaningless for a virtual GPU. */
                               .seconds = timed ? execution->step_seconds : 0,
                               .steps_done = (int)execution->steps,
                               .details = execution};
    snprintf(out->why, sizeof(out->why), "%s", execution->why);
}

static enum plim_status check_batch_is_used(struct plim_executor *x, const struct job *job,
                                            struct plim_error *err)
{
    int64_t low = job->setting.micro_batch, high = low, same = 0;
    char bytes[16];
    for (size_t i = 0; i < x->list.count; i++) {
        const struct job *other = x->list.items[i];
        if (!is_done(x, other) || other->status || other->execution.verdict != PLIM_OK ||
            !plim_setting_same_point(&other->setting, &job->setting))
            continue;
        if (other->execution.peak_bytes != job->execution.peak_bytes) return PLIM_OK;
        int64_t b = other->setting.micro_batch;
        low = b < low ? b : low;
        high = b > high ? b : high;
        same++;
    }
    if (same < IGNORED_TRIALS || high / low < IGNORED_SPREAD) return PLIM_OK;
    return plim_fail(err, PLIM_INVALID,
                     "the program needs the same %s with batch %" PRId64 " and with batch %" PRId64
                     ": it does not seem to use {batch}",
                     plim_format_bytes(job->execution.peak_bytes, bytes), low, high);
}

static enum plim_status ask(struct plim_executor *x, const struct plim_setting *setting,
                            enum plim_run_mode mode, struct job **out, struct plim_error *err)
{
    struct job *job = find(x, setting, mode);
    bool is_new = !job;
    if (is_new) job = start(x, setting, mode);
    if (!job) return plim_fail(err, PLIM_NOMEM, "a trial cannot be started");
    if (mode == PLIM_RUN_LIMITED) start_expected(x);
    wait_for(x, job);
    *out = job;
    if (job->status && err) *err = job->error;
    if (job->status) return job->status;
    if (x->confirms && mode == PLIM_RUN_LIMITED) confirm(x, job);
    if (job->execution.verdict == PLIM_CANCELLED) {
        enum plim_status st = plim_stop_check(x->options[mode].stop, err);
        return st ? st : PLIM_CANCELLED;
    }
    return is_new ? check_batch_is_used(x, job, err) : PLIM_OK;
}

static enum plim_status run(void *user, const struct plim_setting *setting, enum plim_run_mode mode,
                            struct plim_trial *out, struct plim_error *err)
{
    struct plim_executor *x = user;
    struct job *job;
    bool real = x->options[mode].visible != NULL; /* a real GPU has no mode without a limit */
    enum plim_status st = ask(x, setting, PLIM_RUN_LIMITED, &job, err);
    bool needs_more =
        !st && mode == PLIM_RUN_UNLIMITED && job->execution.verdict == PLIM_OOM && !job->execution.limited && !real;
    if (needs_more) st = ask(x, setting, PLIM_RUN_UNLIMITED, &job, err);
    if (!st) fill(&job->execution, real, out);
    /* A program may take less on a larger GPU; but the setting did not fit. */
    int64_t too_much = x->budget_bytes + 1;
    if (!st && needs_more && out->reserved_bytes < too_much) out->reserved_bytes = too_much;
    return st;
}

const struct plim_execution *plim_executor_first(struct plim_executor *x)
{
    const struct job *job = x->list.count ? x->list.items[0] : NULL;
    bool fitted = job && is_done(x, job) && !job->status && job->execution.verdict == PLIM_OK;
    return fitted ? &job->execution : NULL;
}

struct plim_runner plim_executor_runner(struct plim_executor *x)
{
    return (struct plim_runner){.run = run,
                                .expect = expect,
                                .user = x,
                                .details_bytes = sizeof(struct plim_execution),
                                .budget_bytes = x->budget_bytes,
                                .probed_micro_steps = PLIM_PROBED_MICRO_STEPS,
                                .costly = true};
}
