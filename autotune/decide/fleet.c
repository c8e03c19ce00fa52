#include "fleet.h"
#include "autotune/answer/replays.h"
#include "autotune/base/clock.h"
#include "autotune/run/plays.h"
#include "autotune/run/share.h"
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { MAX_THREADS = 16 };

/* The state of one device. */
struct part {
    struct plim_run_options options;
    struct plim_run_device device;
    size_t class; /* index of the first device of its class */
    struct plim_result result;
    struct plim_error error;
    enum plim_status status;
};

struct planner {
    const struct plim_fleet *fleet;
    struct part *parts;
    size_t count;
    struct plim_cache *caches;     /* by class */
    struct plim_run_share *shares; /* by class */
    struct plim_run_plays plays;   /* shared by all devices */
    struct plim_edge *hints;   /* of the first device */
    size_t hint_count;
    atomic_size_t next_class;
};

static struct plim_answer answer_for(const struct plim_run_device *device,
                                     const struct plim_prober *prober)
{
    const struct plim_spec_question *question = device->options->question;
    const struct plim_ring *ring = device->options->ring;
    return (struct plim_answer){.name = question->spec->name,
                                .source = question->spec->source,
                                .hash = question->spec->hash,
                                .lora = question->lora,
                                .quantization = question->quantization,
                                .use_reentrant = question->recording ? NULL : plim_spec_reentrant(question->spec),
                                .host_speed = question->spec->host_speed,
                                .defaults = question->defaults,
                                .doubts = question->doubts,
                                .doubt_count = question->doubt_count,
                                .question = &question->question,
                                .prober = prober,
                                .device = &device->info,
                                .limit = &device->limit,
                                .tdp_watts = device->gpu.tdp_watts,
                                .nccl = ring ? ring->measured.nccl : NULL,
                                .why_modelled = ring ? ring->why_not : NULL,
                                .peak_rate = question->recording ? NULL : device->peak_rate,
                                .details = question->recording ? &plim_details_recording
                                                               : &plim_details_replay};
}

enum plim_status plim_fleet_timeline(struct plim_run_device *device,
                                     const struct plim_setting *setting, bool fits,
                                     struct plim_result *result, struct plim_error *err)
{
    struct plim_timeline *timeline = calloc(1, sizeof(*timeline));
    int64_t micro_steps = setting->accumulation < PLIM_RUN_TIMELINE_MICRO_STEPS
                              ? setting->accumulation
                              : PLIM_RUN_TIMELINE_MICRO_STEPS;
    enum plim_status st = timeline ? PLIM_OK : PLIM_NOMEM;
    if (!st) st = plim_run_device_timeline(device, setting, fits, timeline, err);
    if (!st) st = plim_replays_timeline(timeline, micro_steps, result);
    free(timeline);
    return st == PLIM_NOMEM ? plim_no_memory(err) : st;
}

enum plim_status plim_fleet_inspect(struct plim_run_device *device,
                                    const struct plim_setting *setting, bool with_timeline,
                                    struct plim_result *result, struct plim_error *err)
{
    const struct plim_question *question = &device->options->question->question;
    struct plim_cache cache = {0};
    struct plim_prober prober = {
        .runner = &device->runner, .cache = &cache, .stop = device->options->stop};
    struct plim_inspection inspection = {0};
    const struct plim_answer answer = answer_for(device, &prober);
    enum plim_status st = plim_inspect(question, &prober, setting, &inspection, err);
    if (!st) st = plim_answer_inspection(&answer, &inspection, result, err);
    if (!st && with_timeline) st = plim_fleet_timeline(device, setting, inspection.fits, result, err);
    plim_inspection_finish(&inspection);
    plim_prober_finish(&prober);
    plim_cache_finish(&cache);
    return st;
}

/* Adds the timeline. It is only a supplement: if it cannot be made, the result has none; PLIM_NOMEM is the only
 * error. */
static enum plim_status draw_decision(struct part *part, const struct plim_decision *decision)
{
    struct plim_error none = PLIM_ERROR_INIT;
    if (!decision->found && !decision->has_smallest) return PLIM_OK;
    const struct plim_setting *setting =
        decision->found ? &decision->choice.setting : &decision->smallest;
    enum plim_status st =
        plim_fleet_timeline(&part->device, setting, decision->found, &part->result, &none);
    if (st != PLIM_NOMEM) return PLIM_OK;
    part->error = none;
    return st;
}

/* --- one device ------------------------------------------------------------------------------- */

/* Makes the plan, which the GPU or the program then validates. */
static enum plim_status plan_ahead(struct planner *p, struct part *part,
                                   const struct plim_runner *runner, struct plim_decision *decision)
{
    struct plim_cache cache = {0};
    struct plim_prober prober = {.runner = runner, .cache = &cache, .stop = p->fleet->stop};
    enum plim_status st =
        plim_decide(&p->fleet->question->question, NULL, &prober, decision, &part->error);
    plim_prober_finish(&prober);
    plim_cache_finish(&cache);
    return st;
}

/* Makes the decision for a device: searches directly on a simulated GPU; validates a plan on a real GPU or with a
 * program. */
static enum plim_status decide(struct planner *p, struct part *part, struct plim_prover *prover,
                               bool give_hints)
{
    struct plim_decision plan = {0}, decision = {0};
    const struct plim_runner *planner = prover ? plim_prover_planner(prover) : &part->device.planner,
                             *runner = prover ? plim_prover_runner(prover) : &part->device.runner;
    bool proves = planner->run != NULL;
    struct plim_prober prober = {.runner = runner,
                               .cache = &p->caches[part->class],
                               .stop = p->fleet->stop,
                               .on_run = p->fleet->on_run,
                               .on_run_user = p->fleet->user};
    const struct plim_known known = {
        .hints = p->hints,
        .hint_count = p->hint_count,
        .plan = proves ? &plan : NULL,
        .compares = !proves && p->count == 1};
    const struct plim_answer answer = answer_for(&part->device, &prober);
    enum plim_status st = proves ? plan_ahead(p, part, planner, &plan) : PLIM_OK;
    if (!st)
        st = plim_decide(&p->fleet->question->question, &known, &prober, &decision, &part->error);
    if (!st) st = plim_answer_decision(&answer, &decision, &part->result, &part->error);
    if (!st && prover)
        plim_prover_add_reasons(prover, decision.found ? &decision.choice.setting : NULL, p->fleet->log,
                                &part->result);
    if (!st && p->fleet->with_timeline) st = draw_decision(part, &decision);
    if (!st && give_hints) {
        p->hints = decision.edges.items;
        p->hint_count = decision.edges.count;
        decision.edges.items = NULL;
    }
    plim_decision_finish(&decision);
    plim_decision_finish(&plan);
    plim_prober_finish(&prober);
    return st;
}

static enum plim_status decide_with_program(struct planner *p, struct part *part)
{
    struct plim_prover *prover;
    enum plim_status st = plim_prover_create(p->fleet->proving, &part->device, p->fleet->stop, &prover,
                                             &part->error);
    if (!st) st = decide(p, part, prover, false);
    plim_prover_destroy(&prover);
    return st;
}

static void run_part(struct planner *p, size_t index)
{
    struct part *part = &p->parts[index];
    double start = plim_clock_seconds();
    /* Hints are indexed by point, so all devices must have the same points. */
    bool same_space = !plim_objectives[p->fleet->question->question.objective].wants_longest;
    bool gives_hints = index == 0 && same_space && p->count > 1;
    part->status =
        p->fleet->proving ? decide_with_program(p, part) : decide(p, part, NULL, gives_hints);
    part->result.seconds = plim_clock_seconds() - start;
    plim_run_device_close(&part->device);
    part->device = (struct plim_run_device){0};
    if (p->fleet->on_device) p->fleet->on_device(p->fleet->user);
}

/* --- many devices ----------------------------------------------------------------------------- */

/* A thread: takes whole classes, in order, so that no caches are shared between threads. The first device was searched
 * before. */
static void *work(void *user)
{
    struct planner *p = user;
    for (size_t class; (class = atomic_fetch_add(&p->next_class, 1)) < p->count;) {
        for (size_t i = class; i < p->count; i++)
            if (p->parts[i].class == class && i > 0) run_part(p, i);
        plim_cache_finish(&p->caches[class]);
        plim_run_share_finish(&p->shares[class]);
    }
    return NULL;
}

static void run_others(struct planner *p)
{
    pthread_t threads[MAX_THREADS];
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    size_t wanted = processors < 1             ? 1
                    : processors > MAX_THREADS ? MAX_THREADS
                                               : (size_t)processors,
           started = 0;
    if (wanted > p->count - 1) wanted = p->count - 1;
    /* This thread works too; if others cannot be started, fewer threads do the work. */
    while (started + 1 < wanted && !pthread_create(&threads[started], NULL, work, p)) started++;
    work(p);
    for (size_t i = 0; i < started; i++) pthread_join(threads[i], NULL);
}

/* Puts a device into the class of an earlier one, with which it shares runs. */
static void join(struct planner *p, size_t index, size_t other)
{
    size_t class = p->parts[other].class;
    p->parts[index].class = class;
    p->parts[index].options.share = p->parts[class].options.share = &p->shares[class];
}

static enum plim_status open_devices(struct planner *p, const char *const *uris,
                                     struct plim_error *err)
{
    for (size_t i = 0; i < p->count; i++) {
        struct part *part = &p->parts[i];
        part->options = (struct plim_run_options){.uri = uris[i],
                                                  .allowance = p->fleet->allowance,
                                                  .question = p->fleet->question,
                                                  .stop = p->fleet->stop,
                                                  .log = p->fleet->log,
                                                  .runs_program = p->fleet->proving != NULL,
                                                  .runs_ahead = p->count == 1,
                                                  .ring = p->fleet->ring,
                                                  .plays = p->count > 1 ? &p->plays : NULL,
                                                  .timing_seconds = p->fleet->timing_seconds};
        enum plim_status st = plim_run_device_open(&part->device, &part->options, err);
        if (st) return st;
        part->class = i;
        for (size_t j = 0; j < i && part->class == i; j++)
            if (plim_run_device_same_class(&part->device, &p->parts[j].device)) join(p, i, j);
    }
    return PLIM_OK;
}

static enum plim_status collect(struct planner *p, struct plim_report *report,
                                struct plim_error *err)
{
    for (size_t i = 0; i < p->count; i++) {
        struct part *part = &p->parts[i];
        if (part->status) {
            if (err) *err = part->error;
            return part->status;
        }
        if (PLIM_ARRAY_PUSH(&report->results, part->result) != PLIM_OK) return plim_no_memory(err);
        part->result = (struct plim_result){0}; /* owned by the report now */
    }
    return PLIM_OK;
}

enum plim_status plim_fleet_tune(const struct plim_fleet *fleet, const char *const *uris,
                                 size_t count, struct plim_report *report, struct plim_error *err)
{
    struct planner p = {.fleet = fleet, .count = count};
    enum plim_status st = PLIM_OK;
    plim_run_plays_init(&p.plays);
    p.parts = calloc(count, sizeof(*p.parts));
    p.caches = calloc(count, sizeof(*p.caches));
    p.shares = calloc(count, sizeof(*p.shares));
    if (!p.parts || !p.caches || !p.shares) st = plim_no_memory(err);
    if (!st) st = open_devices(&p, uris, err);
    if (!st && count) run_part(&p, 0);
    if (!st && count > 1 && !p.parts[0].status) run_others(&p);
    if (!st) st = collect(&p, report, err);
    for (size_t i = 0; p.parts && i < count; i++) {
        plim_run_device_close(&p.parts[i].device);
        plim_result_finish(&p.parts[i].result);
    }
    for (size_t i = 0; p.caches && i < count; i++) plim_cache_finish(&p.caches[i]);
    for (size_t i = 0; p.shares && i < count; i++) plim_run_share_finish(&p.shares[i]);
    plim_run_plays_finish(&p.plays);
    free(p.parts);
    free(p.caches);
    free(p.shares);
    free(p.hints);
    return st;
}
