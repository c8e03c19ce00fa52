#include "spec_decision.h"
#include "autotune/decide/fleet.h"
#include "devices/open.h"
#include "gpu_ring.h"
#include "progress.h"

/* Time for the repeats of one setting on a real GPU: enough for a median within 1 % of steps of 0.1 s after 1 s of
 * warm-up. */
static const double TIMING_SECONDS = 3, TIMING_SHARE = 0.05; /* at most this share of the time budget */

static double timing_seconds(const struct plim_request *request)
{
    double share = TIMING_SHARE * request->budget_seconds;
    return share > 0 && share < TIMING_SECONDS ? share : TIMING_SECONDS;
}

enum plim_status plim_decide_init(struct plim_decide *d, const struct plim_request *request,
                                  const struct plim_io *io, const struct plim_log *log,
                                  struct plim_error *err)
{
    *d = (struct plim_decide){.request = request, .io = io, .log = log};
    d->stop = plim_common_stop(request, io);
    enum plim_status st = plim_asked_question_read(request, log, &d->stop, &d->asked, err);
    if (st) return st;
    d->allowance = plim_common_allowance(request, log);
    plim_kept_init(&d->kept, request, io->version, log);
    d->kept.fresh |= plim_common_draws(request); /* kept answers have no timeline */
    d->kept.off |= request->tiers; /* a kept report has one answer */
    d->kept.off |= request->prove_with != NULL; /* another command's answer may differ */
    d->kept.off |= d->asked.question.recording != NULL; /* planning takes milliseconds */
    return PLIM_OK;
}

void plim_decide_finish(struct plim_decide *d)
{
    if (d) plim_asked_question_finish(&d->asked);
}

void plim_decide_store_question(const struct plim_decide *d, const struct plim_store_gpu *gpu,
                                struct plim_store_question *question)
{
    const char *objective = plim_objectives[d->request->objective].name;
    const struct plim_store_asked asked = plim_kept_asked(&d->kept, objective, &d->allowance);
    plim_store_question_spec(&d->asked.spec, &asked, question);
    plim_store_question_gpu(gpu, question);
}

/* --- searching -------------------------------------------------------------------------------- */

/* The devices of one search. */
struct search {
    struct plim_decide *decide;
    const char *const *uris;
    size_t count;
    struct plim_ring ring; /* the all-reduce among GPUs of a single device's kind */
};

/* Adds a result for each device, with the margin of this round. */
static enum plim_status search_round(struct search *s, size_t round, struct plim_report *report,
                                     struct plim_error *err)
{
    struct plim_decide *d = s->decide;
    struct plim_progress progress;
    struct plim_fleet fleet = {.question = &d->asked.question,
                               .allowance = &d->allowance,
                               .stop = &d->stop,
                               .log = d->log,
                               .proving = d->proving,
                               .ring = &s->ring,
                               .with_timeline = plim_common_draws(d->request),
                               .timing_seconds = timing_seconds(d->request),
                               .on_run = plim_progress_run,
                               .on_device = plim_progress_device,
                               .user = &progress};
    size_t before = report->results.count;
    plim_common_round_allowance(d->request, round, &d->allowance);
    plim_progress_init(&progress, d->request, d->io, s->count);
    if (d->is_silent) progress.file = NULL;
    enum plim_status st = plim_fleet_tune(&fleet, s->uris, s->count, report, err);
    plim_progress_finish(&progress);
    for (size_t i = before; i < report->results.count && !st; i++) {
        plim_common_record_question(d->request, round, &report->results.items[i]);
        st = plim_common_add_options(d->request, &report->results.items[i], err);
    }
    return st;
}

static enum plim_status search(void *user, struct plim_report *report, struct plim_error *err)
{
    struct search *s = user;
    const struct plim_request *request = s->decide->request;
    enum plim_status st = PLIM_OK;
    s->decide->stop = plim_common_stop(request, s->decide->io); /* waiting for other processes does not count */
    report->version = s->decide->io->version;
    report->is_table |= request->tiers;
    if (s->count == 1 && !s->decide->asked.question.recording)
        plim_gpu_ring_measure(request, &s->decide->asked.spec, s->uris[0], &s->decide->stop,
                              s->decide->log, &s->ring);
    for (size_t i = 0; i < plim_common_rounds(request) && !st; i++)
        st = search_round(s, i, report, err);
    return st;
}

/* --- kept answers ----------------------------------------------------------------------------- */

/* Keeps a simulated result, as a report of its own that does not own it. */
static void store_simulated(struct plim_decide *d, const struct plim_report *report,
                            const struct plim_result *result)
{
    struct plim_store_question question = {0};
    struct plim_report one = {.version = report->version};
    struct plim_store_gpu gpu = plim_kept_gpu_of_result(result);
    if (d->kept.off || !result->choice.present) return;
    plim_decide_store_question(d, &gpu, &question);
    if (PLIM_ARRAY_PUSH(&one.results, *result) == PLIM_OK)
        plim_kept_store(&d->kept, &question, &one);
    PLIM_ARRAY_FINISH(&one.results);
    plim_store_question_finish(&question);
}

/* Fills in the store's question. The GPU is resolved each time, since the memory that others hold changes. */
static enum plim_status fill_question(void *user, bool counts_others,
                                      struct plim_store_question *question, struct plim_error *err)
{
    const struct search *s = user;
    struct plim_target target;
    struct plim_store_gpu gpu;
    enum plim_status st = plim_target_resolve(s->uris[0], &target, err);
    if (st) return st;
    plim_store_gpu_of_target(&target, counts_others, &gpu);
    plim_decide_store_question(s->decide, &gpu, question);
    return PLIM_OK;
}

/* True if the store may have the answer: the device is a single real GPU that can be identified and is measured. */
static bool is_known(const struct search *s, struct plim_target *target)
{
    struct plim_store_gpu gpu;
    return !s->decide->kept.off && s->count == 1 && !plim_run_is_sharded(&s->decide->asked.spec) &&
           plim_uri_scheme(s->uris[0]) == PLIM_SCHEME_CUDA &&
           plim_target_resolve(s->uris[0], target, NULL) == PLIM_OK &&
           plim_store_gpu_of_target(target, false, &gpu);
}

enum plim_status plim_decide_report(struct plim_decide *d, const char *const *uris, size_t count,
                                    struct plim_report *report, struct plim_error *err)
{
    struct search s = {.decide = d, .uris = uris, .count = count};
    struct plim_target target;
    if (is_known(&s, &target)) {
        const struct plim_kept_ask ask = {.place = target.uuid,
                                          .fill_question = fill_question,
                                          .make = search,
                                          .user = &s,
                                          .stop = &d->stop};
        return plim_kept_answer(&d->kept, &ask, report, err);
    }
    enum plim_status st = search(&s, report, err);
    for (size_t i = 0; i < report->results.count && !st; i++)
        if (report->results.items[i].device.simulated)
            store_simulated(d, report, &report->results.items[i]);
    return st;
}
