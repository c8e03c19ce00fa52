/* The training loop of the golden runs, on the engine. */
#include "replay.h"
#include "ddp.h"
#include "scaler.h"
#include "workloads/engine/autograd.h"
#include "workloads/models/model.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Seeds of what is random besides the parameters, which have the first numbers. */
enum { TOKEN_SEED = 1 << 30, DROPOUT_SEED };

struct plim_replayer;

/* One training run. */
struct run {
    struct engine *e;
    const struct plim_replayer *replayer;
    struct plim_train_setting setting;
    struct decoder model;
    struct ddp ddp;
    struct optimizer optimizer;
    struct tensor *ids;
    struct scaler scaler;
    const char *phase;
    enum plim_status st;    /* of building */
    struct plim_replay out; /* so far; class_bytes and verdict come at the end */
};

struct plim_replayer {
    struct plim_device *device;
    struct plim_allocator *allocator;
    struct engine *engine;
    plim_replay_stop *stop;
    const void *stop_user;
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
    free(r);
    *rp = NULL;
}

void plim_replayer_trace(struct plim_replayer *r, FILE *file)
{
    r->engine->memory.trace = file;
}

void plim_replayer_stop(struct plim_replayer *r, plim_replay_stop *stop, const void *user)
{
    r->stop = stop;
    r->stop_user = user;
}

/* --- one training run ------------------------------------------------------------------------- */

/* Where an OOM will be said to have happened: the phase stays once memory ran out. */
static void enter(struct run *r, const char *phase)
{
    if (!r->e->halted) r->phase = phase;
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

/* Device time, where it is needed to say what backward took; else 0. */
static double seconds_now(struct run *r)
{
    double seconds = 0;
    if (!r->ddp.model || r->e->halted) return 0;
    enum plim_status st = plim_device_now(r->e->device, &seconds);
    if (st != PLIM_OK) engine_fail(r->e, st);
    return seconds;
}

static void micro_step(struct run *r, struct plim_replay_step *s, bool last)
{
    struct engine *e = r->e;
    const struct plim_replayer *replayer = r->replayer;
    if (replayer->stop && replayer->stop(replayer->stop_user)) engine_fail(e, PLIM_CANCELLED);
    if (e->halted) return;
    enum plim_precision p = r->setting.precision;
    bool mixed = p == PLIM_PRECISION_BF16_MIXED || p == PLIM_PRECISION_FP16_MIXED;
    enter(r, "forward");
    ddp_before_forward(e, &r->ddp, last || r->setting.reduction == PLIM_REDUCTION_EACH);
    if (mixed) autocast_enter(e, p == PLIM_PRECISION_FP16_MIXED ? PLIM_F16 : PLIM_BF16);
    struct tensor *loss = decoder_loss(e, &r->model, r->ids);
    if (mixed) autocast_leave(e);
    s->after_forward_bytes = engine_allocated(e);
    enter(r, "backward");
    double start = seconds_now(r);
    struct tensor *scaled = tensor_hold(scaler_scale(e, &r->scaler, loss));
    if (!e->halted) autograd_backward(e, scaled);
    ddp_after_backward(e, &r->ddp);
    r->out.backward_seconds = seconds_now(r) - start;
    tensor_drop(e, scaled);
    if (last) s->loss = loss_of(e, loss);
    tensor_drop(e, loss);
}

static void optimizer_phase(struct run *r)
{
    struct engine *e = r->e;
    enter(r, "optimizer");
    if (r->setting.clip > 0) {
        scaler_unscale(e, &r->scaler, &r->optimizer);
        clip_grad_norm(e, &r->optimizer, r->setting.clip);
    }
    scaler_step(e, &r->scaler, &r->optimizer);
    scaler_update(e, &r->scaler);
    optimizer_zero_grad(e, &r->optimizer);
}

static void one_step(struct run *r, struct plim_allocator *allocator, struct plim_replay_step *s)
{
    double start = 0, end = 0;
    plim_allocator_reset_peaks(allocator);
    enum plim_status st = plim_device_now(r->e->device, &start);
    if (st != PLIM_OK) engine_fail(r->e, st);
    int64_t count = r->setting.accumulation;
    for (int64_t i = 0; i < count && !r->e->halted; i++) micro_step(r, s, i + 1 == count);
    optimizer_phase(r);
    st = plim_device_now(r->e->device, &end);
    if (st != PLIM_OK) engine_fail(r->e, st);
    const struct plim_allocator_stats *stats = plim_allocator_statistics(allocator);
    s->peak_allocated_bytes = stats->allocated_peak;
    s->peak_reserved_bytes = stats->reserved_peak;
    s->peak_requested_bytes = stats->requested_peak;
    s->end_allocated_bytes = stats->allocated;
    s->end_reserved_bytes = stats->reserved;
    s->seconds = end - start;
}

static enum plim_status build(struct run *r, const struct plim_model_config *model)
{
    enum plim_status st = PLIM_OK;
    struct engine *e = r->e;
    enter(r, "building the model");
    e->tf32 = r->setting.precision == PLIM_PRECISION_TF32;
    engine_set_class(e, PLIM_MEMORY_TEMPORARIES);
    PLIM_TRY(decoder_create(e, model, &r->setting, &r->model));
    if (r->setting.sharding == PLIM_SHARDING_DDP)
        PLIM_TRY(ddp_create(e, &r->model, r->setting.world, &r->ddp));
    PLIM_TRY(optimizer_create(&r->optimizer, r->setting.optimizer, &r->model.parameters));
    scaler_create(&r->scaler, r->setting.precision == PLIM_PRECISION_FP16_MIXED);
    r->ids = tensor_keep(tensor_empty(e, PLIM_I64, SHAPE(r->setting.micro_batch, r->setting.seq)));
    op_random_(e, r->ids, (double)model->vocab_size, TOKEN_SEED);
    e->seed = DROPOUT_SEED;
out:
    return st;
}

static void note_oom(const struct run *r, struct plim_replay *out)
{
    const struct engine *e = r->e;
    bool built = r->ids != NULL;
    out->oom_asked_bytes = e->oom_asked_bytes;
    out->oom_class = e->oom_class;
    if (built)
        snprintf(out->oom_where, sizeof out->oom_where, "%s, step %d", r->phase,
                 out->steps_done + 1);
    else
        snprintf(out->oom_where, sizeof out->oom_where, "%s", r->phase);
    if (e->oom_asked_bytes)
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
    *r = (struct run){.e = replayer->engine, .replayer = replayer, .setting = *setting};
    engine_reset(r->e);
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
    bool kept = out->steps_done < PLIM_REPLAY_STEPS;
    if (kept) out->step[out->steps_done] = *step;
    if (r->e->halted) return false;
    out->steps_done += kept;
    return true;
}

enum plim_status plim_replay_end(struct plim_replayer *replayer, struct plim_replay *out,
                                 struct plim_error *err)
{
    struct run *r = &replayer->run;
    struct engine *e = r->e;
    *out = r->out;
    out->parameters = r->model.parameters.elements;
    out->trainable_parameters = r->model.parameters.trainable_elements;
    if (r->ddp.model && !e->halted) {
        bool each = r->setting.reduction == PLIM_REDUCTION_EACH;
        out->reductions = each ? (int)r->setting.accumulation : 1;
        out->reduction_bytes = ddp_reduction_bytes(&r->ddp, &out->last_bucket_bytes);
    }
    if (r->model.family && !e->halted)
        out->model_flops_per_token = decoder_flops_per_token(&r->model);
    memcpy(out->class_bytes, e->memory.class_bytes_at_peak, sizeof out->class_bytes);
    out->retries = plim_allocator_statistics(replayer->allocator)->retries;
    if (e->halted == HALT_OOM) {
        out->verdict = PLIM_OOM;
        note_oom(r, out);
    } else if (e->halted == HALT_UNSUPPORTED) {
        out->verdict = PLIM_UNSUPPORTED;
        snprintf(out->why, sizeof out->why, "%s cannot run on this device", e->halting_op);
    } else if (e->halted) {
        r->st = e->failure;
    }
    ddp_finish(&r->ddp);
    decoder_finish(&r->model);
    optimizer_finish(&r->optimizer);
    if (r->st == PLIM_CANCELLED) return r->st;
    return r->st == PLIM_OK
               ? PLIM_OK
               : plim_fail(err, r->st, "the replay failed (%s): %s",
                           r->phase ? r->phase : "starting", plim_status_text(r->st));
}

enum plim_status plim_replay_run(struct plim_replayer *replayer,
                                 const struct plim_model_config *model,
                                 const struct plim_train_setting *setting, struct plim_replay *out,
                                 struct plim_error *err)
{
    struct plim_replay_step step;
    plim_replay_begin(replayer, model, setting);
    for (int i = 0; i < PLIM_REPLAY_STEPS && plim_replay_next(replayer, &step); i++) {
    }
    return plim_replay_end(replayer, out, err);
}

double plim_replay_communication_seconds(const struct plim_replay *r, double bandwidth)
{
    if (!(bandwidth > 0)) return 0;
    double last = r->last_bucket_bytes / bandwidth,
           others = (r->reduction_bytes - r->last_bucket_bytes) / bandwidth;
    return r->reductions * (last + fmax(0, others - r->backward_seconds));
}
