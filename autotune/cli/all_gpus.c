#include "all_gpus.h"
#include "autotune/store/store_question.h"
#include "devices/nvml/visible.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* --- kinds ------------------------------------------------------------------------------------ */

/* True if two GPUs are of one kind. A GPU of which NVML does not report enough is a separate kind. */
static bool is_same_kind(const struct plim_target *a, const struct plim_target *b)
{
    struct plim_store_gpu x, y;
    return plim_store_gpu_of_target(a, false, &x) && plim_store_gpu_of_target(b, false, &y) &&
           plim_store_gpu_equal(&x, &y);
}

static void add(struct plim_all_gpus *gpus, const struct plim_target *target)
{
    for (size_t i = 0; i < gpus->count; i++) {
        struct plim_gpu_kind *kind = &gpus->kinds[i];
        if (!is_same_kind(&kind->target, target)) continue;
        kind->gpus++;
        if (target->held_bytes < kind->target.held_bytes) kind->target = *target;
        return;
    }
    gpus->kinds[gpus->count++] = (struct plim_gpu_kind){.target = *target, .gpus = 1};
}

/* Adds the GPUs of `shown` that can be used. */
static enum plim_status sort_out(const struct plim_target *shown, size_t count, const char *rest,
                                 const struct plim_log *log, struct plim_all_gpus *out,
                                 struct plim_error *err)
{
    struct plim_error first = PLIM_ERROR_INIT;
    for (size_t i = 0; i < count; i++) {
        struct plim_error inner = PLIM_ERROR_INIT;
        struct plim_target target;
        char uri[sizeof(shown->uuid) + 64];
        snprintf(uri, sizeof(uri), "cuda:%s%.40s", shown[i].uuid, rest);
        if (plim_target_resolve(uri, &target, &inner) == PLIM_OK) {
            add(out, &target);
            continue;
        }
        if (!first.status) first = inner;
        plim_log(log, PLIM_LOG_WARNING, "cuda:all leaves out %s: %s", shown[i].uuid, inner.text);
    }
    return out->count ? PLIM_OK : plim_fail(err, first.status, "%s", first.text);
}

static void log_gpu(const struct plim_gpu_kind *kind, const struct plim_log *log)
{
    char alike[48] = "";
    if (kind->gpus > 1) snprintf(alike, sizeof(alike), " for all %d of its kind", kind->gpus);
    plim_log(log, PLIM_LOG_INFO, "using %s (%s)%s", kind->target.name, kind->target.uri, alike);
}

enum plim_status plim_all_gpus_find(const char *uri, const struct plim_log *log,
                                    struct plim_all_gpus *out, struct plim_error *err)
{
    const struct plim_target_place place = plim_target_local();
    struct plim_target *shown = calloc(PLIM_VISIBLE_MAX, sizeof(*shown));
    size_t count = 0;
    *out = (struct plim_all_gpus){.kinds = calloc(PLIM_VISIBLE_MAX, sizeof(*out->kinds))};
    enum plim_status st = shown && out->kinds ? PLIM_OK : plim_no_memory(err);
    if (!st) st = plim_target_list(&place, shown, PLIM_VISIBLE_MAX, &count, err);
    if (!st) st = sort_out(shown, count, uri + strcspn(uri, ","), log, out, err);
    for (size_t i = 0; i < out->count && !st; i++) log_gpu(&out->kinds[i], log);
    free(shown);
    return st;
}

void plim_all_gpus_finish(struct plim_all_gpus *gpus)
{
    free(gpus->kinds);
    *gpus = (struct plim_all_gpus){0};
}

/* --- deciding --------------------------------------------------------------------------------- */

/* The state of one kind and its thread. */
struct part {
    struct plim_decide decide; /* with separate stop, allowance and store; the question is shared */
    const struct plim_gpu_kind *kind;
    struct plim_report report;
    struct plim_error error;
    enum plim_status status;
    pthread_t thread;
    bool has_thread;
};

static void *work(void *user)
{
    struct part *part = user;
    const char *uri = part->kind->target.uri;
    part->status = plim_decide_report(&part->decide, &uri, 1, &part->report, &part->error);
    return NULL;
}

static enum plim_status collect(struct part *part, struct plim_report *report,
                                struct plim_error *err)
{
    report->version = part->decide.io->version;
    for (size_t i = 0; i < part->report.results.count; i++)
        part->report.results.items[i].device.gpus = part->kind->gpus;
    return plim_report_append(report, &part->report, err);
}

static enum plim_status collect_all(struct part *parts, size_t count, struct plim_report *report,
                                    struct plim_error *err)
{
    struct plim_error first = PLIM_ERROR_INIT;
    size_t without = 0;
    for (size_t i = 0; i < count; i++) {
        enum plim_status st = parts[i].status ? PLIM_OK : collect(&parts[i], report, err);
        if (st) return st;
        if (!parts[i].status) continue;
        if (!without++) first = parts[i].error;
        if (count > 1)
            plim_log(parts[i].decide.log, PLIM_LOG_WARNING, "%s (%s): %s",
                     parts[i].kind->target.name, parts[i].kind->target.uri, parts[i].error.text);
    }
    if (!without) return PLIM_OK;
    if (count == 1) return plim_fail(err, first.status, "%s", first.text);
    return plim_fail(err, first.status, "no answer for %zu of %zu kinds of GPU", without, count);
}

enum plim_status plim_all_gpus_decide(const struct plim_decide *decide,
                                      const struct plim_all_gpus *gpus, struct plim_report *report,
                                      struct plim_error *err)
{
    struct part *parts = calloc(gpus->count, sizeof(*parts));
    if (!parts) return plim_no_memory(err);
    for (size_t i = 0; i < gpus->count; i++) {
        parts[i] = (struct part){.decide = *decide, .kind = &gpus->kinds[i]};
        parts[i].decide.is_silent = gpus->count > 1; /* progress lines of several threads would overwrite each other */
        parts[i].has_thread = i + 1 < gpus->count &&
                              !pthread_create(&parts[i].thread, NULL, work, &parts[i]);
    }
    /* This thread works too, also for threads that could not be started. */
    for (size_t i = 0; i < gpus->count; i++)
        if (!parts[i].has_thread) work(&parts[i]);
    for (size_t i = 0; i < gpus->count; i++)
        if (parts[i].has_thread) pthread_join(parts[i].thread, NULL);
    enum plim_status st = collect_all(parts, gpus->count, report, err);
    for (size_t i = 0; i < gpus->count; i++) plim_report_finish(&parts[i].report);
    free(parts);
    return st;
}
