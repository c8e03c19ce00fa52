/* The training loop of the golden runs, on the engine. */
#include "replay.h"
#include "scaler.h"
#include "workloads/models/model.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Seeds of what is random besides the parameters, which have the first numbers. */
enum { TOKEN_SEED = 1 << 30, DROPOUT_SEED };

/* One training run. */
struct run {
    struct graph *g;
    struct plim_setting setting;
    struct decoder model;
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
    struct graph *graph;
    struct run run;
};

const char *plim_memory_class_name(enum plim_memory_class memory_class)
{
    static const char *const names[] = {
#define NAME(name, text) [PLIM_MEMORY_##name] = text,
        PLIM_MEMORY_CLASS_MAP(NAME)
#undef NAME
    };
    return names[memory_class];
}

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
    PLIM_TRY(graph_create(device, r->allocator, &r->graph, err));
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
    graph_destroy(&r->graph);
    plim_allocator_destroy(&r->allocator);
    free(r);
    *rp = NULL;
}

void plim_replayer_trace(struct plim_replayer *r, FILE *file)
{
    r->graph->trace = file;
}

/* --- one training run ------------------------------------------------------------------------- */

/* Where an OOM will be said to have happened: the phase stays once memory ran out. */
static void enter(struct run *r, const char *phase)
{
    if (!r->g->halted) r->phase = phase;
}

/* Reading it is no operation of the training loop. */
static double loss_of(struct graph *g, const struct tensor *loss)
{
    float value;
    if (g->halted || g->device->info.simulated) return NAN;
    enum plim_status st = plim_device_read(g->device, loss->a.data, &value, sizeof value);
    if (st == PLIM_OK) return value;
    graph_fail(g, st);
    return NAN;
}

static void micro_step(struct run *r, struct plim_replay_step *s, bool last)
{
    struct graph *g = r->g;
    enum plim_precision p = r->setting.precision;
    bool mixed = p == PLIM_PRECISION_BF16_MIXED || p == PLIM_PRECISION_FP16_MIXED;
    enter(r, "forward");
    if (mixed) autocast_enter(g, p == PLIM_PRECISION_FP16_MIXED ? PLIM_F16 : PLIM_BF16);
    struct tensor *loss = decoder_loss(g, &r->model, r->ids);
    if (mixed) autocast_leave(g);
    s->after_forward_bytes = graph_allocated(g);
    enter(r, "backward");
    struct tensor *scaled = tensor_hold(scaler_scale(g, &r->scaler, loss));
    if (!g->halted) autograd_backward(g, scaled);
    tensor_drop(g, scaled);
    if (last) s->loss = loss_of(g, loss);
    tensor_drop(g, loss);
}

static void optimizer_phase(struct run *r)
{
    struct graph *g = r->g;
    enter(r, "optimizer");
    if (r->setting.clip > 0) {
        scaler_unscale(g, &r->scaler, &r->optimizer);
        clip_grad_norm(g, &r->optimizer, r->setting.clip);
    }
    scaler_step(g, &r->scaler, &r->optimizer);
    scaler_update(g, &r->scaler);
    optimizer_zero_grad(g, &r->optimizer);
}

static void one_step(struct run *r, struct plim_allocator *allocator, struct plim_replay_step *s)
{
    double start = 0, end = 0;
    plim_allocator_reset_peaks(allocator);
    enum plim_status st = plim_device_now(r->g->device, &start);
    if (st != PLIM_OK) graph_fail(r->g, st);
    int64_t count = r->setting.accumulation;
    for (int64_t i = 0; i < count && !r->g->halted; i++) micro_step(r, s, i + 1 == count);
    optimizer_phase(r);
    st = plim_device_now(r->g->device, &end);
    if (st != PLIM_OK) graph_fail(r->g, st);
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
    struct graph *g = r->g;
    enter(r, "building the model");
    g->tf32 = r->setting.precision == PLIM_PRECISION_TF32;
    g->causal_in_time = r->setting.packing == PLIM_PACKING_AUTO;
    g->fresh_class = PLIM_MEMORY_TEMPORARIES;
    PLIM_TRY(decoder_create(g, model, &r->setting, &r->model));
    PLIM_TRY(optimizer_create(&r->optimizer, r->setting.optimizer, &r->model.parameters));
    scaler_create(&r->scaler, r->setting.precision == PLIM_PRECISION_FP16_MIXED);
    r->ids = tensor_keep(tensor_empty(g, PLIM_I64, SHAPE(r->setting.micro_batch, r->setting.seq)));
    op_random_(g, r->ids, (double)model->vocab_size, TOKEN_SEED);
    g->seed = DROPOUT_SEED;
out:
    return st;
}

static void note_oom(const struct run *r, struct plim_replay *out)
{
    const struct graph *g = r->g;
    bool built = r->ids != NULL;
    out->oom_asked_bytes = g->oom_asked_bytes;
    out->oom_class = g->oom_class;
    if (built)
        snprintf(out->oom_where, sizeof out->oom_where, "%s, step %d", r->phase,
                 out->steps_done + 1);
    else
        snprintf(out->oom_where, sizeof out->oom_where, "%s", r->phase);
    if (g->oom_asked_bytes)
        snprintf(out->why, sizeof out->why, "out of memory: %lld bytes asked for in %s",
                 (long long)g->oom_asked_bytes, out->oom_where);
    else
        snprintf(out->why, sizeof out->why, "out of memory: the code of %s found no room in %s",
                 g->halting_op, out->oom_where);
}

void plim_replay_begin(struct plim_replayer *replayer, const struct plim_model_config *model,
                       const struct plim_setting *setting)
{
    struct run *r = &replayer->run;
    *r = (struct run){.g = replayer->graph, .setting = *setting};
    graph_reset(r->g);
    r->st = plim_device_reset(replayer->device);
    if (r->st == PLIM_OK) r->st = build(r, model);
}

bool plim_replay_next(struct plim_replayer *replayer, struct plim_replay_step *step)
{
    struct run *r = &replayer->run;
    struct plim_replay *out = &r->out;
    *step = (struct plim_replay_step){.loss = NAN};
    if (r->st != PLIM_OK || r->g->halted) return false;
    one_step(r, replayer->allocator, step);
    if (step->peak_allocated_bytes > out->peak_allocated_bytes)
        out->peak_allocated_bytes = step->peak_allocated_bytes;
    if (step->peak_reserved_bytes > out->peak_reserved_bytes)
        out->peak_reserved_bytes = step->peak_reserved_bytes;
    bool kept = out->steps_done < PLIM_REPLAY_STEPS;
    if (kept) out->step[out->steps_done] = *step;
    if (r->g->halted) return false;
    out->steps_done += kept;
    return true;
}

enum plim_status plim_replay_end(struct plim_replayer *replayer, struct plim_replay *out,
                                 struct plim_error *err)
{
    struct run *r = &replayer->run;
    struct graph *g = r->g;
    *out = r->out;
    out->parameters = r->model.parameters.elements;
    out->trainable_parameters = r->model.parameters.trainable_elements;
    if (r->model.family && !g->halted)
        out->model_flops_per_token = decoder_flops_per_token(&r->model);
    memcpy(out->class_bytes, g->class_bytes_at_peak, sizeof out->class_bytes);
    out->retries = plim_allocator_statistics(replayer->allocator)->retries;
    if (g->halted == HALT_OOM) {
        out->verdict = PLIM_OOM;
        note_oom(r, out);
    } else if (g->halted == HALT_UNSUPPORTED) {
        out->verdict = PLIM_UNSUPPORTED;
        snprintf(out->why, sizeof out->why, "%s cannot run on this device", g->halting_op);
    } else if (g->halted) {
        r->st = g->failure;
    }
    decoder_finish(&r->model);
    optimizer_finish(&r->optimizer);
    return r->st == PLIM_OK
               ? PLIM_OK
               : plim_fail(err, r->st, "the replay failed (%s): %s",
                           r->phase ? r->phase : "starting", plim_status_text(r->st));
}

enum plim_status plim_replay_run(struct plim_replayer *replayer,
                                 const struct plim_model_config *model,
                                 const struct plim_setting *setting, struct plim_replay *out,
                                 struct plim_error *err)
{
    struct plim_replay_step step;
    plim_replay_begin(replayer, model, setting);
    for (int i = 0; i < PLIM_REPLAY_STEPS && plim_replay_next(replayer, &step); i++) {
    }
    return plim_replay_end(replayer, out, err);
}
