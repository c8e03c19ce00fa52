#include "remote.h"
#include "autotune/base/array.h"
#include "autotune/base/clock.h"
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static const double BUSY_NAP_SECONDS = 0.25; /* between two attempts to open a device that is in use */
static const double TIMING_SHARE = 0.25;  /* share of the remaining time for one setting */

/* The last result of a setting. */
struct past_run {
    struct plim_setting setting;
    enum plim_run_mode mode;
    bool fails_again; /* not run again */
    struct plim_replay replay;
};

struct plim_remote {
    struct plim_remote_config config;
    char *uri, *alloc_conf, *visible_gpu, *program, *spec_text; /* own copies of the config's strings */
    uint64_t spec_hash;
    struct plim_all_reduce all_reduce;
    int64_t budget_bytes;

    struct plim_dialogue dialogue;
    bool ready;    /* the device is open */
    bool was_open; /* the device was open in this or an earlier worker */
    bool warned_of_refusal;
    int workers;
    uint32_t last_id;
    struct plim_message_opened opened;

    struct plim_timing timing; /* of the last run */
    PLIM_ARRAY(struct past_run) past_runs;
};

static enum plim_status must_stop(const struct plim_remote *r, struct plim_error *err)
{
    return plim_stop_check(r->config.stop, err);
}

static void end_worker(struct plim_remote *r)
{
    plim_dialogue_end(&r->dialogue);
    r->ready = false;
}

/* --- opening ---------------------------------------------------------------------------------- */

static void await_memory(struct plim_remote *r)
{
    double end = plim_clock_seconds() + r->config.memory_back_seconds;
    if (!r->dialogue.a_worker_went || !r->config.memory_is_back) return;
    while (!r->config.memory_is_back(r->config.user)) {
        if (must_stop(r, NULL)) return;
        if (plim_clock_seconds() >= end) {
            if (r->config.memory_back_seconds > 0)
                plim_log(r->config.log, PLIM_LOG_WARNING,
                         "the GPU memory of the last worker process was not freed within %.3g s",
                         r->config.memory_back_seconds);
            r->config.memory_back_seconds = 0;
            break;
        }
        nanosleep(&(struct timespec){0, (long)(PLIM_DIALOGUE_SLICE_SECONDS * 1e9)}, NULL);
    }
    r->dialogue.a_worker_went = false;
}

static enum plim_status start_worker(struct plim_remote *r, struct plim_error *err)
{
    const struct plim_variable variables[] = {
        {"CUDA_VISIBLE_DEVICES", r->visible_gpu},
        {"CUDA_DEVICE_ORDER", r->visible_gpu ? "PCI_BUS_ID" : NULL},
        {"CUDA_MODULE_LOADING", "LAZY"}};
    enum plim_status st = plim_dialogue_start(&r->dialogue, r->program, variables,
                                              sizeof(variables) / sizeof(variables[0]), err);
    if (!st) r->workers++;
    return st;
}

/* Asks the worker to open the device. The reply is OPENED or FAILED. */
static enum plim_dialogue_outcome request_open(struct plim_remote *r, struct plim_message *out,
                                               struct plim_worker_death *death,
                                               struct plim_error *err)
{
    struct plim_message request = {.kind = PLIM_MESSAGE_OPEN,
                                   .open = {.uri = r->uri,
                                            .alloc_conf = r->alloc_conf,
                                            .spec = r->spec_text,
                                            .spec_hash = r->spec_hash,
                                            .all_reduce = r->all_reduce,
                                            .leak_bytes = r->config.leak_bytes,
                                            .load_bytes = r->config.load_bytes}};
    const struct plim_expectation expectation = {.phase = PLIM_PHASE_STARTING};
    enum plim_dialogue_outcome outcome = plim_dialogue_hello(&r->dialogue, death, err);
    if (outcome != PLIM_DIALOGUE_REPLIED) return outcome;
    return plim_dialogue_request(&r->dialogue, &request, PLIM_MESSAGE_OPENED, &expectation, out, death,
                                 err);
}

/* True for failures to open that may pass, as after the loss of a worker; false for a device that does not exist. */
static bool may_pass(enum plim_status st)
{
    return st == PLIM_OOM || st == PLIM_LOST;
}

static enum plim_status fail_device(const struct plim_remote *r,
                                    const struct plim_worker_death *death,
                                    struct plim_error *err)
{
    bool absent = death->verdict == PLIM_NODEVICE || death->verdict == PLIM_OOM ||
                  death->verdict == PLIM_BUSY;
    enum plim_status st = absent && !r->was_open ? PLIM_NODEVICE : PLIM_LOST;
    return plim_fail(err, st, "%s cannot be opened%s: %s", r->uri, r->was_open ? " any more" : "",
                     death->why);
}

/* Waits a moment for other processes to release the device. Returns false if none use it, or if that lasts too long.
 * *since is the time when it was first found in use; 0: it was not. */
static bool wait_for_others(struct plim_remote *r, const struct plim_worker_death *death,
                            double *since)
{
    double now = plim_clock_seconds();
    if (death->verdict != PLIM_BUSY) return false;
    if (!*since)
        plim_log(r->config.log, PLIM_LOG_INFO, "waiting at most %.3g s: %s", r->config.busy_seconds,
                 death->why);
    if (!*since) *since = now;
    if (now - *since >= r->config.busy_seconds) return false;
    nanosleep(&(struct timespec){0, (long)(BUSY_NAP_SECONDS * 1e9)}, NULL);
    return true;
}

static enum plim_status ensure_open(struct plim_remote *r, struct plim_error *err)
{
    struct plim_worker_death death = {0};
    double busy_since = 0;
    for (int deaths = 0; !r->ready && deaths < PLIM_REMOTE_DEATHS; deaths++) {
        struct plim_message reply;
        await_memory(r);
        enum plim_status st = must_stop(r, err);
        if (!st) st = start_worker(r, err);
        if (st) return st;
        enum plim_dialogue_outcome outcome = request_open(r, &reply, &death, err);
        if (outcome == PLIM_DIALOGUE_REPLIED && reply.kind == PLIM_MESSAGE_OPENED) {
            r->opened = reply.opened;
            r->ready = r->was_open = true;
            return PLIM_OK;
        }
        if (outcome == PLIM_DIALOGUE_REPLIED)
            plim_worker_die(&death, reply.failed.status, "%.150s", reply.failed.text);
        end_worker(r);
        if (outcome == PLIM_DIALOGUE_STOPPED) return must_stop(r, err);
        if (wait_for_others(r, &death, &busy_since)) {
            deaths = -1; /* use by other processes does not count as a death of the worker */
            continue;
        }
        if (outcome == PLIM_DIALOGUE_REPLIED && !may_pass(death.verdict))
            return r->was_open || death.verdict == PLIM_BUSY
                       ? fail_device(r, &death, err)
                       : plim_fail(err, death.verdict, "%s", reply.failed.text);
        plim_log(r->config.log, PLIM_LOG_WARNING, "%s was not opened: %s", r->uri, death.why);
    }
    return r->ready ? PLIM_OK : fail_device(r, &death, err);
}

/* --- running ---------------------------------------------------------------------------------- */

static double timing_seconds(const struct plim_remote *r)
{
    const struct plim_stop *stop = r->config.stop;
    double seconds = r->config.timing_seconds;
    if (!stop || stop->deadline_seconds <= 0) return seconds;
    double most = TIMING_SHARE * (stop->deadline_seconds - plim_clock_seconds());
    return most <= 0 ? 0 : most < seconds ? most : seconds;
}

/* Asks the worker to run a setting. The reply is RESULT or FAILED. */
static enum plim_dialogue_outcome
request_run(struct plim_remote *r, const struct plim_setting *setting, enum plim_run_mode mode,
            struct plim_message *out, struct plim_worker_death *death, struct plim_error *err)
{
    struct plim_message request = {
        .kind = PLIM_MESSAGE_RUN,
        .id = ++r->last_id,
        .run = {.setting = *setting,
                .capacity_bytes = mode == PLIM_RUN_LIMITED ? r->budget_bytes : 0,
                .timing_seconds = timing_seconds(r),
                .slow_seconds = r->config.slow ? r->config.slow(r->config.user, setting) : 0}};
    const struct plim_expectation expectation = {
        .phase = PLIM_PHASE_OPENING,
        .prediction = r->config.predict ? r->config.predict(r->config.user, setting) : 0,
        .timing_seconds = request.run.timing_seconds};
    return plim_dialogue_request(&r->dialogue, &request, PLIM_MESSAGE_RESULT, &expectation, out, death,
                                 err);
}

/* Returns false if the reply does not count and the worker must be ended. Ends a worker that is suspect. */
static bool accept(struct plim_remote *r, const struct plim_message *reply,
                   struct plim_worker_death *death)
{
    const struct plim_message_result *result = &reply->result;
    if (reply->kind == PLIM_MESSAGE_FAILED) {
        plim_worker_die(death, PLIM_CRASHED, "the worker failed: %.130s", reply->failed.text);
        return false;
    }
    if (result->replay.verdict == PLIM_LOST) {
        plim_worker_die(death, PLIM_LOST, "%.150s",
                        result->replay.why[0] ? result->replay.why : "the device was lost");
        return false;
    }
    if (result->suspect) {
        plim_log(r->config.log, PLIM_LOG_INFO,
                 "starting a new worker process: %lld bytes of GPU memory were not freed",
                 (long long)(result->free_before_bytes - result->free_after_bytes));
        end_worker(r);
    }
    return true;
}

/* True if the worker lacks a library that every setting needs. */
static bool is_useless(const struct plim_message *reply)
{
    return reply->kind == PLIM_MESSAGE_FAILED && reply->failed.status == PLIM_NODEVICE;
}

/* Gets a result for the setting, with at most PLIM_REMOTE_DEATHS workers. Fails only if the search has to end. */
static enum plim_status obtain(struct plim_remote *r, const struct plim_setting *setting,
                               enum plim_run_mode mode, struct plim_message_result *result,
                               struct plim_error *err)
{
    struct plim_worker_death death = {0};
    for (int deaths = 0; deaths < PLIM_REMOTE_DEATHS; deaths++) {
        struct plim_message reply;
        enum plim_status st = ensure_open(r, err);
        if (st) return st;
        enum plim_dialogue_outcome outcome = request_run(r, setting, mode, &reply, &death, err);
        if (outcome == PLIM_DIALOGUE_REPLIED && accept(r, &reply, &death)) {
            *result = reply.result;
            return PLIM_OK;
        }
        end_worker(r);
        if (outcome == PLIM_DIALOGUE_STOPPED) return must_stop(r, err);
        if (outcome == PLIM_DIALOGUE_REPLIED && is_useless(&reply))
            return plim_fail(err, PLIM_NODEVICE, "%s cannot be used: %s", r->uri,
                             reply.failed.text);
        plim_log(r->config.log, PLIM_LOG_WARNING, "a worker process was lost: %s", death.why);
    }
    *result = (struct plim_message_result){.replay = {.verdict = death.verdict}, .finite = true};
    snprintf(result->replay.why, sizeof(result->replay.why), "%.110s (%d workers in a row)",
             death.why, PLIM_REMOTE_DEATHS);
    return PLIM_OK;
}

/* --- verdicts --------------------------------------------------------------------------------- */

static struct past_run *find_past(struct plim_remote *r, const struct plim_setting *setting,
                                  enum plim_run_mode mode)
{
    for (size_t i = r->past_runs.count; i-- > 0;)
        if (r->past_runs.items[i].mode == mode &&
            plim_setting_equal(&r->past_runs.items[i].setting, setting))
            return &r->past_runs.items[i];
    return NULL;
}

/* If the GPU ran out of memory before the budget was used up, runs the setting again in a new worker, to exclude a leak
 * of the old one. */
static enum plim_status retry_refused(struct plim_remote *r, const struct plim_setting *setting,
                                      enum plim_run_mode mode,
                                      struct plim_message_result *result,
                                      struct plim_error *err)
{
    if (result->replay.verdict != PLIM_OOM || !result->refused) return PLIM_OK;
    plim_log(r->config.log, PLIM_LOG_INFO,
             "starting a new worker process: the GPU had less free memory than the budget");
    end_worker(r);
    enum plim_status st = obtain(r, setting, mode, result, err);
    if (!st && result->refused && !r->warned_of_refusal) {
        plim_log(r->config.log, PLIM_LOG_WARNING,
                 "the GPU has less free memory than the budget: other processes use it");
        r->warned_of_refusal = true;
    }
    return st;
}

static void mark_unstable(struct plim_replay *replay, enum plim_status before)
{
    enum plim_status now = replay->verdict;
    replay->verdict = PLIM_UNSTABLE;
    snprintf(replay->why, sizeof(replay->why), "two runs contradict each other: %s, then %s",
             plim_status_text(before), plim_status_text(now));
}

/* Repeats a noisy measurement and keeps the better one. */
static void repeat_noisy(struct plim_remote *r, const struct plim_setting *setting,
                         enum plim_run_mode mode, struct plim_message_result *result)
{
    struct plim_message_result again;
    if (result->replay.verdict != PLIM_OK || !result->timing.noisy) return;
    if (obtain(r, setting, mode, &again, NULL)) return; /* the search ends: keep the first */
    if (again.replay.verdict != PLIM_OK) {
        result->replay = again.replay;
        mark_unstable(&result->replay, PLIM_OK);
    } else if (!again.timing.noisy ||
               again.timing.half_width_seconds < result->timing.half_width_seconds) {
        *result = again;
    }
}

/* Marks a setting as unstable if its verdict differs from that of an earlier run. */
static void compare_with_past(struct plim_replay *replay, const struct past_run *past)
{
    if (past && past->replay.verdict != replay->verdict)
        mark_unstable(replay, past->replay.verdict);
}

static bool will_fail_again(enum plim_status verdict)
{
    return verdict != PLIM_OK && verdict != PLIM_OOM && verdict != PLIM_UNSUPPORTED;
}

static enum plim_status store_run(struct plim_remote *r, const struct plim_setting *setting,
                                  enum plim_run_mode mode, const struct plim_replay *replay,
                                  struct plim_error *err)
{
    struct past_run *old = find_past(r, setting, mode);
    struct past_run past = {.setting = *setting,
                            .mode = mode,
                            .fails_again = will_fail_again(replay->verdict),
                            .replay = *replay};
    if (old)
        *old = past;
    else if (PLIM_ARRAY_PUSH(&r->past_runs, past) != PLIM_OK)
        return plim_no_memory(err);
    return PLIM_OK;
}

enum plim_status plim_remote_run(struct plim_remote *r, const struct plim_setting *setting,
                                 enum plim_run_mode mode, struct plim_replay *out,
                                 struct plim_error *err)
{
    const struct past_run *past = find_past(r, setting, mode);
    struct plim_message_result result;
    r->timing = (struct plim_timing){0};
    if (past && past->fails_again) {
        *out = past->replay;
        return PLIM_OK;
    }
    enum plim_status st = obtain(r, setting, mode, &result, err);
    if (!st) st = retry_refused(r, setting, mode, &result, err);
    if (st) return st;
    if (!result.finite) {
        result.replay.verdict = PLIM_UNSTABLE;
        snprintf(result.replay.why, sizeof(result.replay.why), "a loss is not a finite number");
    } else if (!will_fail_again(result.replay.verdict)) {
        repeat_noisy(r, setting, mode, &result);
        compare_with_past(&result.replay, past);
    }
    *out = result.replay;
    if (out->verdict == PLIM_OK) r->timing = result.timing;
    return store_run(r, setting, mode, out, err);
}

/* --- the interface ---------------------------------------------------------------------------- */

enum plim_status plim_remote_create(const struct plim_remote_config *config,
                                    struct plim_remote **out, struct plim_error *err)
{
    enum plim_status st = PLIM_OK;
    struct plim_remote *r = calloc(1, sizeof(*r));
    *out = NULL;
    if (!r) return plim_no_memory(err);
    r->config = *config;
    r->config.spec = NULL;
    r->config.all_reduce = NULL;
    if (config->all_reduce) r->all_reduce = *config->all_reduce;
    r->dialogue = (struct plim_dialogue)PLIM_DIALOGUE_INIT;
    r->dialogue.memo_fd = plim_process_create_memo();
    r->dialogue.stop = config->stop;
    r->dialogue.log = config->log;
    r->dialogue.deadlines = r->config.deadlines;
    r->dialogue.reap_seconds = config->reap_seconds;
    r->dialogue.while_timing = config->while_timing;
    r->dialogue.user = config->user;
    r->spec_hash = config->spec->hash;
    r->uri = strdup(config->uri);
    r->alloc_conf = strdup(config->alloc_conf ? config->alloc_conf : "");
    r->program = strdup(config->program ? config->program : "/proc/self/exe");
    if (config->visible_gpu) r->visible_gpu = strdup(config->visible_gpu);
    if (!r->uri || !r->alloc_conf || !r->program || (config->visible_gpu && !r->visible_gpu))
        st = plim_no_memory(err);
    if (!st) st = plim_spec_write(config->spec, &r->spec_text, err);
    if (!st &&
        strlen(r->spec_text) + strlen(r->uri) + strlen(r->alloc_conf) > PLIM_WIRE_MAX_BYTES / 2)
        st = plim_fail(err, PLIM_INVALID, "the spec is too large for a worker process");
    if (st) plim_remote_destroy(&r);
    *out = r;
    return st;
}

void plim_remote_destroy(struct plim_remote **remote)
{
    struct plim_remote *r = *remote;
    if (!r) return;
    if (r->ready && !must_stop(r, NULL)) plim_dialogue_shut_down(&r->dialogue);
    plim_dialogue_finish(&r->dialogue);
    if (r->dialogue.memo_fd >= 0) close(r->dialogue.memo_fd);
    free(r->uri);
    free(r->alloc_conf);
    free(r->visible_gpu);
    free(r->program);
    free(r->spec_text);
    PLIM_ARRAY_FINISH(&r->past_runs);
    free(r);
    *remote = NULL;
}

enum plim_status plim_remote_open(struct plim_remote *r, const struct plim_message_opened **out,
                                  struct plim_error *err)
{
    *out = &r->opened;
    return ensure_open(r, err);
}

void plim_remote_set_budget(struct plim_remote *r, int64_t budget_bytes)
{
    r->budget_bytes = budget_bytes > 0 ? budget_bytes : 1; /* 0 means no limit in a RUN message */
}

void plim_remote_set_timing(struct plim_remote *r, double seconds)
{
    r->config.timing_seconds = seconds;
}

const struct plim_timing *plim_remote_timing(const struct plim_remote *r)
{
    return &r->timing;
}

int plim_remote_workers(const struct plim_remote *r)
{
    return r->workers;
}
