#include "kept.h"
#include "autotune/run/run_device.h"
#include "autotune/store/lock.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double WAIT_SECONDS = 600;

void plim_kept_init(struct plim_kept *kept, const struct plim_request *request, const char *version,
                    const struct plim_log *log)
{
    const struct plim_request_store *asked = &request->store;
    const char *variable = getenv("PLIMSOLL_STORE");
    *kept = (struct plim_kept){.off = asked->off || (variable && !strcmp(variable, "off")),
                               .fresh = asked->fresh,
                               .explains = asked->explain_miss,
                               .wait_seconds =
                                   asked->wait_seconds > 0 ? asked->wait_seconds : WAIT_SECONDS,
                               .version = version,
                               .waterfall = request->waterfall,
                               .log = log};
    if (!kept->off) plim_store_init(&kept->store, asked->site, asked->root_owned, log);
}

struct plim_store_asked plim_kept_asked(const struct plim_kept *kept, const char *objective,
                                        const struct plim_allowance *allowance)
{
    return (struct plim_store_asked){.version = kept->version,
                                     .objective = objective,
                                     .waterfall = kept->waterfall,
                                     .allowance = allowance};
}

struct plim_store_gpu plim_kept_gpu_of_result(const struct plim_result *result)
{
    const struct plim_result_device *device = &result->device;
    struct plim_store_gpu gpu = {.simulated = true,
                                 .compute_capability = device->compute_capability,
                                 .usable_bytes = result->limit.usable_bytes,
                                 .total_bytes = device->total_bytes};
    snprintf(gpu.name, sizeof(gpu.name), "%s", device->name);
    snprintf(gpu.processors, sizeof(gpu.processors), "%d multiprocessors", device->multiprocessors);
    return gpu;
}

enum plim_status plim_kept_gpu_of_uri(const char *uri, const struct plim_allowance *allowance,
                                      struct plim_store_gpu *gpu, struct plim_error *err)
{
    struct plim_run_device device;
    const struct plim_run_options options = {.uri = uri, .allowance = allowance};
    struct plim_result result = {0};
    enum plim_status st = plim_run_device_open(&device, &options, err);
    if (st) return st;
    snprintf(result.device.name, sizeof(result.device.name), "%s", device.info.name);
    result.device.compute_capability = device.info.compute_capability;
    result.device.multiprocessors = device.info.multiprocessors;
    result.device.total_bytes = device.info.total_bytes;
    result.limit.usable_bytes = device.limit.usable_bytes;
    *gpu = plim_kept_gpu_of_result(&result);
    plim_run_device_close(&device);
    return PLIM_OK;
}

void plim_kept_store(struct plim_kept *kept, const struct plim_store_question *question,
                     const struct plim_report *report)
{
    struct plim_error err = PLIM_ERROR_INIT;
    const struct plim_result *result = &report->results.items[0];
    bool proven = result->choice.present && result->choice.verified && !result->unsupported;
    if (kept->off || !proven) return;
    if (plim_store_write(&kept->store, question, report, &err) == PLIM_OK) return;
    plim_log(kept->log, PLIM_LOG_WARNING, "the answer is not kept: %s", err.text);
    kept->off = true;
}

/* Looks up the answer. If *hit is set, the report has it. */
static enum plim_status look_up_answer(const struct plim_kept *kept,
                                       const struct plim_store_question *question, bool *hit,
                                       struct plim_report *report, struct plim_error *err)
{
    struct plim_store_found found;
    *hit = false;
    if (kept->fresh) return PLIM_OK;
    enum plim_status st = plim_store_find(&kept->store, question, &found, err);
    if (!st && found.state == PLIM_STORE_HIT) {
        *hit = true;
        plim_log(kept->log, PLIM_LOG_INFO,
                 "the answer of %s on %s, from the store (--fresh asks again)", found.made,
                 found.host);
        if (PLIM_ARRAY_PUSH(&report->results, found.result) != PLIM_OK)
            st = plim_no_memory(err);
        else
            found.result = (struct plim_result){0}; /* owned by the report now */
    }
    plim_store_found_finish(&found);
    return st;
}

/* Takes the lock; continues without it, with a warning, if there is no folder for it. */
static enum plim_status acquire_lock(const struct plim_kept *kept, const struct plim_kept_ask *ask,
                                     struct plim_store_lock *lock, bool *waited,
                                     struct plim_error *err)
{
    struct plim_error problem = PLIM_ERROR_INIT;
    const struct plim_stop signals = {.signalled = ask->stop->signalled}; /* --wait bounds it */
    enum plim_status st = plim_store_lock_acquire(lock, ask->place, kept->wait_seconds, &signals,
                                                  kept->log, waited, &problem);
    if (st == PLIM_IO)
        plim_log(kept->log, PLIM_LOG_WARNING, "%s", problem.text);
    else if (st)
        return plim_fail(err, st, "%s", problem.text);
    return PLIM_OK;
}

enum plim_status plim_kept_answer(struct plim_kept *kept, const struct plim_kept_ask *ask,
                                  struct plim_report *report, struct plim_error *err)
{
    struct plim_store_lock lock = PLIM_STORE_LOCK_INIT;
    struct plim_store_question alone = {0}, now = {0};
    bool hit = false, waited = false;
    enum plim_status st = PLIM_OK;
    PLIM_TRY(ask->fill_question(ask->user, false, &alone, err));
    PLIM_TRY(look_up_answer(kept, &alone, &hit, report, err));
    if (hit) goto out;
    PLIM_TRY(acquire_lock(kept, ask, &lock, &waited, err));
    /* The process that held the lock may have had the same question. */
    if (waited) PLIM_TRY(look_up_answer(kept, &alone, &hit, report, err));
    if (hit) goto out;
    PLIM_TRY(ask->fill_question(ask->user, true, &now, err));
    if (!plim_facts_equal(&alone.key, &now.key)) PLIM_TRY(look_up_answer(kept, &now, &hit, report, err));
    if (hit) goto out;
    if (kept->explains && !kept->fresh)
        PLIM_TRY(plim_store_explain_miss(&kept->store, &now, kept->log, err));
    PLIM_TRY(ask->make(ask->user, report, err));
    plim_kept_store(kept, &now, report);
out:
    plim_store_lock_release(&lock);
    plim_store_question_finish(&alone);
    plim_store_question_finish(&now);
    return st;
}
