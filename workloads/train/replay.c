/* The training loop of the golden runs, on the engine. */
#include "replay.h"
#include "autotune/base/array.h"
#include "ddp.h"
#include "fsdp.h"
#include "retime.h"
#include "scaler.h"
#include "stretch.h"
#include "zero.h"
#include "workloads/engine/autograd.h"
#include "workloads/models/model.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Seeds of what is random besides the parameters, which have the first numbers. */
enum { TOKEN_SEED = 1 << 30, DROPOUT_SEED };

struct plim_replayer;

/* What asking the driver for memory came to. */
struct driver_use {
    int64_t retries; /* times that cached segments had to go back first */
    double seconds;
};

/* States of the allocator, one after the other. */
struct state_list {
    struct state {
        uint64_t fingerprint;
        struct driver_use use; /* so far */
    } *items;
    size_t count, capacity;
};

/* One training run. */
struct run {
    struct engine *e;
    const struct plim_replayer *replayer;
    struct plim_train_setting setting;
    struct decoder model;
    struct link link;
    struct ddp ddp;
    struct fsdp fsdp;
    struct zero zero;
    struct optimizer optimizer;
    struct batch batch;
    struct scaler scaler;
    const char *phase, *refusal; /* refusal: why it cannot be trained so; NULL: it can */
    struct state_list *states, *micro_states; /* the replayer's */
    struct tape *tape; /* the replayer's */
    /* What is on it: a micro-step that makes the gradients, one that adds to them, and what the
     * optimizer does from the second step on. */
    struct stretch first, further, update;
    bool records; /* may any of them be played, once it is known? */
    int64_t retries_left_out;                 /* of micro-steps that were not run */
    bool restless; /* a step's micro-steps need retries and do not come to repeat */
    enum plim_status st;      /* of building */
    struct plim_replay out; /* so far; class_bytes and verdict come at the end */
};

struct plim_replayer {
    struct plim_device *device;
    struct plim_allocator *allocator;
    struct engine *engine;
    plim_replay_stop *stop;
    const void *stop_user;
    struct plim_timeline *timeline; /* NULL: none is recorded */
    struct plim_links links;
    struct state_list states; /* at the ends of this run's steps, from the second on */
    struct state_list micro_states; /* at the ends of this step's micro-steps */
    struct tape tape;
    struct run run;
};

enum plim_status plim_replayer_create(struct plim_device *device,
                                      const struct plim_allocator_config *config,
                                      struct plim_replayer **out, struct plim_error *err)
{
    enum plim_status st = PLIM_OK;
    struct plim_allocator_config defaults = PLIM_ALLOCATOR_CONFIG_DEFAULT;
    struct plim_replayer *r = calloc(1, sizeof *r);
    *out = NULL;
    if (!r) return plim_fail(err, PLIM_NOMEM, "no memory for the engine");
    r->device = device;
    PLIM_TRY(plim_allocator_create(device, config ? config : &defaults, &r->allocator, err));
    PLIM_TRY(engine_create(device, r->allocator, &r->engine, err));
    *out = r;
    return PLIM_OK;
out:
    plim_replayer_destroy(&r);
    return st;
}

void plim_replayer_destroy(struct plim_replayer **rp)
{
    struct plim_replayer *r = *rp;
    if (!r) return;
    engine_destroy(&r->engine);
    plim_allocator_destroy(&r->allocator);
    PLIM_ARRAY_FINISH(&r->states);
    PLIM_ARRAY_FINISH(&r->micro_states);
    tape_finish(&r->tape);
    free(r);
    *rp = NULL;
}

void plim_replayer_trace(struct plim_replayer *r, FILE *file)
{
    r->engine->memory.trace = file;
}

void plim_replayer_timeline(struct plim_replayer *r, struct plim_timeline *timeline)
{
    r->timeline = timeline;
    r->engine->memory.timeline = NULL;
}

void plim_replayer_links(struct plim_replayer *r, const struct plim_links *links)
{
    r->links = *links;
}

/* Of a ring through all GPUs: where it leaves a machine, all that passes a GPU passes there. */
static double ring_bandwidth(const struct plim_links *links, int64_t world)
{
    if (world <= links->gpus_per_node) return links->gpu_bandwidth;
    return fmin(links->gpu_bandwidth, links->node_bandwidth);
}

void plim_replayer_stop(struct plim_replayer *r, plim_replay_stop *stop, const void *user)
{
    r->stop = stop;
    r->stop_user = user;
}

/* --- one training run ------------------------------------------------------------------------- */

static bool is_sharded(const struct run *r)
{
    return r->setting.sharding >= PLIM_SHARDING_DDP;
}

/* Where an OOM will be said to have happened: the phase stays once memory ran out. */
static void enter(struct run *r, const char *phase)
{
    if (r->e->halted) return;
    r->phase = phase;
    if (r->e->memory.timeline) r->e->memory.timeline->phase = phase;
}

/* Reading it is no operation of the training loop. */
static double loss_of(struct engine *e, const struct tensor *loss)
{
    float value;
    if (e->halted || e->device->info.simulated) return NAN;
    enum plim_status st = plim_device_read(e->device, loss->a.data, &value, sizeof value);
    if (st == PLIM_OK) return value;
    engine_fail(e, st);
    return NAN;
}

static void look_for_stop(struct run *r)
{
    const struct plim_replayer *replayer = r->replayer;
    if (replayer->stop && replayer->stop(replayer->stop_user)) engine_fail(r->e, PLIM_CANCELLED);
}

/* `recorded`: where the tape is told when forward is done; NULL: it is not recorded. */
static void run_micro_step(struct run *r, struct plim_replay_step *s, bool last,
                           struct stretch *recorded)
{
    struct engine *e = r->e;
    look_for_stop(r);
    if (e->halted) return;
    enum plim_precision p = r->setting.precision;
    bool mixed = (p == PLIM_PRECISION_BF16_MIXED || p == PLIM_PRECISION_FP16_MIXED) &&
                 !r->fsdp.model;
    enter(r, "forward");
    bool reduces = last || r->setting.reduction == PLIM_REDUCTION_EACH;
    ddp_before_forward(e, &r->ddp, reduces);
    fsdp_before_forward(e, &r->fsdp, reduces);
    zero_before_forward(e, &r->zero);
    if (mixed) autocast_enter(e, p == PLIM_PRECISION_FP16_MIXED ? PLIM_F16 : PLIM_BF16);
    struct tensor *loss = decoder_loss(e, &r->model, &r->batch);
    if (mixed) autocast_leave(e);
    fsdp_after_forward(e, &r->fsdp, loss);
    s->after_forward_bytes = engine_allocated(e);
    if (recorded) stretch_middle(e, recorded);
    enter(r, "backward");
    struct tensor *scaled = r->zero.model ? zero_scale(e, &r->zero, loss, last)
                                          : tensor_hold(scaler_scale(e, &r->scaler, loss));
    if (!e->halted) autograd_backward(e, scaled);
    ddp_after_backward(e, &r->ddp);
    zero_after_backward(e, &r->zero);
    tensor_drop(e, scaled);
    if (last) s->loss = loss_of(e, loss);
    tensor_drop(e, loss);
}

static void play_micro_step(struct run *r, struct plim_replay_step *s,
                            const struct stretch *recorded)
{
    struct engine *e = r->e;
    look_for_stop(r);
    enter(r, "forward");
    stretch_play_first_half(e, r->tape, recorded);
    s->after_forward_bytes = engine_allocated(e);
    enter(r, "backward");
    stretch_play_second_half(e, r->tape, recorded);
}

/* Where GPUs reduce gradients, one that is not the last. What is born in the first of all (workspaces)
 * stays out of the recording. */
static void micro_step(struct run *r, struct plim_replay_step *s, bool is_first, bool is_last)
{
    struct stretch *stretch = is_first ? &r->first : &r->further;
    bool settled = !is_first || r->out.steps_done > 0;
    if (stretch->known) {
        play_micro_step(r, s, stretch);
    } else if (r->records && settled && !r->tape->broken) {
        stretch_begin(r->e, r->tape, stretch);
        run_micro_step(r, s, is_last, stretch);
        stretch_end(r->e, stretch);
        /* A first one is played only when it is known that all it leaves is given back. */
        stretch->known = !is_first && !r->tape->broken && !r->tape->kept;
    } else {
        run_micro_step(r, s, is_last, NULL);
    }
}

static void run_update(struct run *r)
{
    struct engine *e = r->e;
    enter(r, "optimizer");
    if (r->zero.model) {
        zero_step(e, &r->zero, &r->optimizer);
        return;
    }
    if (r->setting.clip > 0) {
        scaler_unscale(e, &r->scaler, &r->optimizer);
        clip_grad_norm(e, &r->optimizer, r->setting.clip);
    }
    scaler_step(e, &r->scaler, &r->optimizer);
    scaler_update(e, &r->scaler);
    optimizer_zero_grad(e, &r->optimizer);
}

/* The optimizer's part of a step. */
static void update(struct run *r)
{
    struct engine *e = r->e;
    bool first_is_recorded = r->first.end > r->first.begin;
    if (r->update.known) {
        enter(r, "optimizer");
        stretch_play_first_half(e, r->tape, &r->update);
        stretch_play_second_half(e, r->tape, &r->update);
    } else if (first_is_recorded && !r->tape->broken) {
        stretch_begin(e, r->tape, &r->update);
        run_update(r);
        stretch_end(e, &r->update);
        r->first.known = r->update.known = !r->tape->broken && !r->tape->kept;
        r->tape->broken = !r->first.known; /* nothing more comes on it */
    } else {
        run_update(r);
    }
}

static int64_t retries_of(const struct run *r)
{
    return plim_allocator_statistics(r->e->allocator)->retries + r->retries_left_out;
}

static struct driver_use driver_use_of(const struct run *r)
{
    struct plim_device_load load;
    plim_device_load(r->e->device, &load);
    return (struct driver_use){retries_of(r), load.driver_seconds};
}

/* What it came to between two moments comes `times` times more, and is not run. */
static void repeat_driver_use(struct run *r, struct driver_use from, struct driver_use to,
                              int64_t times)
{
    r->retries_left_out += (to.retries - from.retries) * times;
    plim_device_spend(r->e->device, (to.seconds - from.seconds) * (double)times);
}

/* How many entries ago the allocator was in the state in which it is now; 0: it never was. */
static size_t since_this_state(struct run *r, struct state_list *states)
{
    size_t since = 0;
    struct state now = {plim_allocator_fingerprint(r->e->allocator), driver_use_of(r)};
    for (size_t i = states->count; i-- > 0 && !since && now.fingerprint;)
        if (states->items[i].fingerprint == now.fingerprint) since = states->count - i;
    if (PLIM_ARRAY_PUSH(states, now) != PLIM_OK) engine_fail(r->e, PLIM_NOMEM);
    return since;
}

/* How many micro-steps from now on come again and again; 0: that is not known. */
static int64_t period_of_micro_steps(struct run *r)
{
    int64_t period = (int64_t)since_this_state(r, r->micro_states);
    if (period || r->micro_states->count < PLIM_REPLAY_PROOF_MICRO_STEPS) return period;
    r->restless = retries_of(r) > 0;
    if (r->restless) { /* memory did not run out, but nothing says that it never does */
        r->e->oom_asked_bytes = 0;
        engine_halt(r->e, HALT_OOM);
    }
    return 1;
}

/* The micro-steps since the state was as it is now come `times` times more. */
static void repeat_recorded(struct run *r, int64_t period, int64_t times)
{
    const struct state *now = &r->micro_states->items[r->micro_states->count - 1];
    plim_device_repeat(r->e->device, &r->further.round, period * times);
    repeat_driver_use(r, now[-period].use, now->use, times);
}

/* Runs a round of them that comes `times` times in all. */
static void run_round(struct run *r, struct plim_replay_step *s, int64_t period, int64_t times)
{
    struct engine *e = r->e;
    struct plim_device_round round;
    struct driver_use before = driver_use_of(r);
    double waited = r->link.waited;
    plim_device_begin_round(e->device);
    for (int64_t i = 0; i < period; i++) micro_step(r, s, false, false);
    plim_device_end_round(e->device, &round);
    if (e->halted) return;
    plim_device_repeat(e->device, &round, times - 1);
    repeat_driver_use(r, before, driver_use_of(r), times - 1);
    r->link.waited += (r->link.waited - waited) * (double)(times - 1);
}

/* Runs micro-steps until it is known what the rest does, which then is not run. Where GPUs reduce
 * gradients the last one is none of these. */
static void micro_steps(struct run *r, struct plim_replay_step *s)
{
    struct engine *e = r->e;
    bool may_repeat =
        plim_device_can_repeat(e->device) && !e->memory.trace && !e->memory.timeline;
    bool last_differs = is_sharded(r);
    int64_t left = r->setting.accumulation - last_differs;
    r->micro_states->count = 0;
    for (bool is_first = true; left > 0 && !e->halted; is_first = false) {
        micro_step(r, s, is_first, left == 1 && !last_differs);
        left--;
        if (!may_repeat || left < 2 || e->halted) continue;
        int64_t period = period_of_micro_steps(r), times = period ? left / period : 0;
        if (!times) continue;
        may_repeat = false;
        left -= times * period;
        if (r->further.known) repeat_recorded(r, period, times);
        else run_round(r, s, period, times);
    }
    if (last_differs && !e->halted) run_micro_step(r, s, true, NULL);
}

static void begin_timeline(struct run *r, double start)
{
    struct plim_timeline *timeline = r->replayer->timeline;
    if (!timeline || r->out.steps_done > 1) return;
    plim_timeline_begin(timeline, start);
    r->e->memory.timeline = timeline;
}

static void one_step(struct run *r, struct plim_allocator *allocator, struct plim_replay_step *s)
{
    double start = 0, end = 0, waited = r->link.waited;
    struct plim_device_load before, after;
    plim_allocator_reset_peaks(allocator);
    plim_device_load(r->e->device, &before);
    enum plim_status st = plim_device_now(r->e->device, &start);
    if (st != PLIM_OK) engine_fail(r->e, st);
    begin_timeline(r, start);
    micro_steps(r, s);
    update(r);
    storage_note_moment(r->e); /* its end */
    r->e->memory.timeline = NULL;
    st = plim_device_now(r->e->device, &end);
    if (st != PLIM_OK) engine_fail(r->e, st);
    const struct plim_allocator_stats *stats = plim_allocator_statistics(allocator);
    s->peak_allocated_bytes = stats->allocated_peak;
    s->peak_reserved_bytes = stats->reserved_peak;
    s->peak_requested_bytes = stats->requested_peak;
    s->end_allocated_bytes = stats->allocated;
    s->end_reserved_bytes = stats->reserved;
    s->seconds = end - start;
    plim_device_load(r->e->device, &after);
    plim_replay_note_load(&r->out, &before, &after);
    r->out.communication_seconds = r->link.waited - waited;
}

static enum plim_status build(struct run *r, const struct plim_model_config *model)
{
    enum plim_status st = PLIM_OK;
    struct engine *e = r->e;
    enter(r, "building the model");
    e->tf32 = r->setting.precision == PLIM_PRECISION_TF32;
    engine_set_class(e, PLIM_MEMORY_TEMPORARIES);
    const struct parameters *trained = &r->model.parameters;
    bool is_ddp = r->setting.sharding == PLIM_SHARDING_DDP;
    bool is_fsdp = r->setting.sharding == PLIM_SHARDING_FSDP;
    bool is_zero = plim_sharding_is_zero(r->setting.sharding);
    if (is_ddp) r->refusal = ddp_refuses(&r->setting);
    if (is_fsdp) r->refusal = fsdp_refuses(&e->device->info, model, &r->setting);
    if (is_zero) r->refusal = zero_refuses(&e->device->info, model, &r->setting);
    if (is_zero) r->setting.precision = zero_precision(r->setting.precision);
    if (!r->refusal) r->refusal = decoder_refuses(&e->device->info, model, &r->setting);
    if (r->refusal) {
        engine_halt(e, HALT_UNSUPPORTED);
        return PLIM_OK;
    }
    PLIM_TRY(decoder_create(e, model, &r->setting, &r->model));
    if (is_ddp) PLIM_TRY(ddp_create(e, &r->model, r->setting.world, &r->link, &r->ddp));
    if (is_zero) {
        PLIM_TRY(zero_create(e, &r->model, &r->link, &r->zero));
        trained = &r->zero.sharded;
    }
    if (is_fsdp) {
        PLIM_TRY(fsdp_create(e, &r->model, &r->link, &r->fsdp));
        trained = &r->fsdp.sharded;
    }
    const struct plim_allocator_stats *stats = plim_allocator_statistics(e->allocator);
    r->out.peak_allocated_bytes = r->out.loading_allocated_bytes = stats->allocated_peak;
    r->out.peak_reserved_bytes = r->out.loading_reserved_bytes = stats->reserved_peak;
    PLIM_TRY(optimizer_create(&r->optimizer, r->setting.optimizer, trained));
    r->optimizer.sharded = r->fsdp.model != NULL;
    scaler_create(&r->scaler, !is_zero && r->setting.precision == PLIM_PRECISION_FP16_MIXED);
    r->batch = decoder_batch(e, &r->model, TOKEN_SEED);
    e->seed = DROPOUT_SEED;
out:
    return st;
}

static void note_oom(const struct run *r, struct plim_replay *out)
{
    const struct engine *e = r->e;
    bool built = r->batch.inputs != NULL;
    out->oom_asked_bytes = e->oom_asked_bytes;
    out->oom_class = e->oom_class;
    if (built)
        snprintf(out->oom_where, sizeof out->oom_where, "%s, step %d", r->phase,
                 out->steps_done + 1);
    else
        snprintf(out->oom_where, sizeof out->oom_where, "%s", r->phase);
    if (r->restless)
        snprintf(out->why, sizeof out->why,
                 "out of memory sooner or later: it needs cached memory back, and %d micro-steps "
                 "did not come to repeat",
                 PLIM_REPLAY_PROOF_MICRO_STEPS);
    else if (e->oom_asked_bytes)
        snprintf(out->why, sizeof out->why, "out of memory: %lld bytes asked for in %s",
                 (long long)e->oom_asked_bytes, out->oom_where);
    else
        snprintf(out->why, sizeof out->why, "out of memory: the code of %s found no room in %s",
                 e->halting_op, out->oom_where);
}

void plim_replay_begin(struct plim_replayer *replayer, const struct plim_model_config *model,
                       const struct plim_train_setting *setting)
{
    struct run *r = &replayer->run;
    *r = (struct run){.e = replayer->engine,
                      .replayer = replayer,
                      .setting = *setting,
                      .link = {.e = replayer->engine,
                               .bytes_per_second =
                                   ring_bandwidth(&replayer->links, setting->world),
                               .world = setting->world},
                      .states = &replayer->states,
                      .micro_states = &replayer->micro_states,
                      .tape = &replayer->tape};
    replayer->states.count = 0;
    tape_rewind(&replayer->tape);
    engine_reset(r->e);
    r->records = plim_device_can_repeat(replayer->device) && !is_sharded(r) &&
                 !r->e->memory.trace && !replayer->timeline;
    r->st = plim_device_reset(replayer->device);
    if (r->st == PLIM_OK) r->st = build(r, model);
}

bool plim_replay_next(struct plim_replayer *replayer, struct plim_replay_step *step)
{
    struct run *r = &replayer->run;
    struct plim_replay *out = &r->out;
    *step = (struct plim_replay_step){.loss = NAN};
    if (r->st != PLIM_OK || r->e->halted) return false;
    one_step(r, replayer->allocator, step);
    if (step->peak_allocated_bytes > out->peak_allocated_bytes)
        out->peak_allocated_bytes = step->peak_allocated_bytes;
    if (step->peak_reserved_bytes > out->peak_reserved_bytes)
        out->peak_reserved_bytes = step->peak_reserved_bytes;
    if (out->steps_done < PLIM_REPLAY_STEPS) out->step[out->steps_done] = *step;
    if (r->e->halted) return false;
    out->steps_done++;
    bool compares = plim_device_can_repeat(replayer->device) && out->steps_done > 1;
    if (compares && !out->repeats_after && since_this_state(r, r->states))
        out->repeats_after = out->steps_done;
    return !r->e->halted;
}

enum plim_status plim_replay_end(struct plim_replayer *replayer, struct plim_replay *out,
                                 struct plim_error *err)
{
    struct run *r = &replayer->run;
    struct engine *e = r->e;
    *out = r->out;
    out->parameters = r->model.parameters.elements;
    out->trainable_parameters = r->model.parameters.trainable_elements;
    out->managed_bytes = r->optimizer.managed_bytes;
    out->sdpa_engines = replayer->device->sdpa_engines;
    if (r->st == PLIM_OK && r->model.family && !e->halted)
        out->model_flops_per_token = decoder_flops_per_token(&r->model);
    memcpy(out->class_bytes, e->memory.class_bytes_at_peak, sizeof out->class_bytes);
    out->retries = retries_of(r);
    if (e->halted == HALT_OOM) {
        out->verdict = PLIM_OOM;
        note_oom(r, out);
    } else if (e->halted == HALT_UNSUPPORTED) {
        out->verdict = PLIM_UNSUPPORTED;
        if (r->refusal) snprintf(out->why, sizeof out->why, "%s", r->refusal);
        else snprintf(out->why, sizeof out->why, "%s cannot run on this device", e->halting_op);
    } else if (e->halted) {
        r->st = e->failure;
    }
    ddp_finish(&r->ddp);
    fsdp_finish(&r->fsdp);
    zero_finish(&r->zero);
    decoder_finish(&r->model);
    optimizer_finish(&r->optimizer);
    if (r->st == PLIM_CANCELLED) return r->st;
    return r->st == PLIM_OK
               ? PLIM_OK
               : plim_fail(err, r->st, "the replay failed (%s): %s",
                           r->phase ? r->phase : "starting", plim_status_text(r->st));
}

/* The step after one that ended as it began: the same, but for the queue before the device. */
static void repeat_last_step(struct plim_replayer *replayer, const struct plim_device_round *round,
                             struct driver_use before)
{
    struct run *r = &replayer->run;
    struct plim_replay_step *step = &r->out.step[r->out.steps_done];
    double start = 0, end = 0;
    enum plim_status st = plim_device_now(replayer->device, &start);
    plim_device_repeat(replayer->device, round, 1);
    repeat_driver_use(r, before, driver_use_of(r), 1);
    if (st == PLIM_OK) st = plim_device_now(replayer->device, &end);
    if (st != PLIM_OK) engine_fail(r->e, st);
    *step = step[-1];
    step->seconds = end - start;
    r->out.steps_done++;
}

/* The steps whose numbers are kept. Nearly always the third ends as it began, and says what the
 * fourth does. */
static bool first_steps(struct plim_replayer *replayer)
{
    struct run *r = &replayer->run;
    struct plim_replay_step step;
    struct plim_device_round round;
    for (int i = 1; i < PLIM_REPLAY_STEPS - 1; i++)
        if (!plim_replay_next(replayer, &step)) return false;
    if (!plim_device_can_repeat(replayer->device) || r->e->memory.trace)
        return plim_replay_next(replayer, &step) && plim_replay_next(replayer, &step);
    struct driver_use before = driver_use_of(r);
    plim_device_begin_round(replayer->device);
    bool goes_on = plim_replay_next(replayer, &step);
    plim_device_end_round(replayer->device, &round);
    if (!goes_on || !r->out.repeats_after) return goes_on && plim_replay_next(replayer, &step);
    repeat_last_step(replayer, &round, before);
    return !r->e->halted;
}

enum plim_status plim_replay_run(struct plim_replayer *replayer,
                                 const struct plim_model_config *model,
                                 const struct plim_train_setting *setting, struct plim_replay *out,
                                 struct plim_error *err)
{
    plim_replay_begin(replayer, model, setting);
    first_steps(replayer);
    return plim_replay_end(replayer, out, err);
}

enum plim_status plim_replay_prove(struct plim_replayer *replayer,
                                   const struct plim_model_config *model,
                                   const struct plim_train_setting *setting,
                                   struct plim_replay *out, struct plim_error *err)
{
    struct plim_replay_step step;
    const struct plim_replay *so_far = &replayer->run.out;
    plim_replay_begin(replayer, model, setting);
    bool goes_on = first_steps(replayer);
    while (goes_on && !so_far->repeats_after && so_far->steps_done < PLIM_REPLAY_PROOF_STEPS)
        goes_on = plim_replay_next(replayer, &step);
    return plim_replay_end(replayer, out, err);
}
