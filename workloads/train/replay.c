/* The training loop of the golden runs, on the engine. */
#include "replay.h"
#include "scaler.h"
#include "workloads/models/model.h"
#include <stdlib.h>
#include <string.h>

/* Seeds of what is random besides the parameters, which have the first numbers. */
enum { TOKEN_SEED = 1 << 30, DROPOUT_SEED };

struct plim_replayer {
    struct plim_device *device;
    struct plim_allocator *allocator;
    struct graph *graph;
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

struct run {
    struct graph *g;
    const struct plim_setting *setting;
    struct decoder model;
    struct optimizer optimizer;
    struct tensor *ids;
    struct scaler scaler;
    const char *phase;
    bool started; /* the model is built, the first step began */
};

/* Where an OOM will be said to have happened: the phase stays once memory ran out. */
static void enter(struct run *r, const char *phase)
{
    if (!r->g->halted) r->phase = phase;
}

static void micro_step(struct run *r, struct plim_replay_step *s)
{
    struct graph *g = r->g;
    enum plim_precision p = r->setting->precision;
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
    tensor_drop(g, loss);
}

static void optimizer_phase(struct run *r)
{
    struct graph *g = r->g;
    enter(r, "optimizer");
    if (r->setting->clip > 0) {
        scaler_unscale(g, &r->scaler, &r->optimizer);
        clip_grad_norm(g, &r->optimizer, r->setting->clip);
    }
    scaler_step(g, &r->scaler, &r->optimizer);
    scaler_update(g, &r->scaler);
    optimizer_zero_grad(g, &r->optimizer);
}

static void one_step(struct run *r, struct plim_allocator *allocator, struct plim_replay_step *s)
{
    double start = 0, end = 0;
    plim_allocator_reset_peaks(allocator);
    if (plim_device_now(r->g->device, &start) != PLIM_OK) graph_halt(r->g, HALT_FAILED);
    for (int64_t i = 0; i < r->setting->accumulation && !r->g->halted; i++) micro_step(r, s);
    optimizer_phase(r);
    if (plim_device_now(r->g->device, &end) != PLIM_OK) graph_halt(r->g, HALT_FAILED);
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
    g->tf32 = r->setting->precision == PLIM_PRECISION_TF32;
    g->causal_in_time = r->setting->packing == PLIM_PACKING_AUTO;
    g->fresh_class = PLIM_MEMORY_TEMPORARIES;
    PLIM_TRY(decoder_create(g, model, r->setting, &r->model));
    PLIM_TRY(optimizer_create(&r->optimizer, r->setting->optimizer, &r->model.parameters));
    scaler_create(&r->scaler, r->setting->precision == PLIM_PRECISION_FP16_MIXED);
    r->ids =
        tensor_keep(tensor_empty(g, PLIM_I64, SHAPE(r->setting->micro_batch, r->setting->seq)));
    op_random_(g, r->ids, (double)model->vocab_size, TOKEN_SEED);
    g->seed = DROPOUT_SEED;
out:
    return st;
}

static void note_oom(const struct run *r, struct plim_replay *out, int step)
{
    const struct graph *g = r->g;
    out->oom_asked_bytes = g->oom_asked_bytes;
    out->oom_class = g->oom_class;
    snprintf(out->oom_where, sizeof out->oom_where, step ? "%s, step %d" : "%s", r->phase, step);
    snprintf(out->why, sizeof out->why, "out of memory: %lld bytes asked for in %s",
             (long long)g->oom_asked_bytes, out->oom_where);
}

enum plim_status plim_replay_run(struct plim_replayer *replayer,
                                 const struct plim_model_config *model,
                                 const struct plim_setting *setting, struct plim_replay *out,
                                 struct plim_error *err)
{
    struct graph *g = replayer->graph;
    struct run run = {.g = g, .setting = setting};
    memset(out, 0, sizeof *out);
    graph_reset(g);
    enum plim_status st = plim_device_reset(replayer->device);
    if (st == PLIM_OK) st = build(&run, model);
    int step = 0;
    while (st == PLIM_OK && !g->halted && step < PLIM_REPLAY_STEPS) {
        run.started = true;
        one_step(&run, replayer->allocator, &out->step[step]);
        if (!g->halted) step++;
        struct plim_replay_step *s = &out->step[g->halted ? step : step - 1];
        if (s->peak_allocated_bytes > out->peak_allocated_bytes)
            out->peak_allocated_bytes = s->peak_allocated_bytes;
        if (s->peak_reserved_bytes > out->peak_reserved_bytes)
            out->peak_reserved_bytes = s->peak_reserved_bytes;
    }
    out->steps_done = step;
    out->parameters = run.model.parameters.elements;
    out->trainable_parameters = run.model.parameters.trainable_elements;
    if (run.model.family && !g->halted)
        out->model_flops_per_token = decoder_flops_per_token(&run.model);
    memcpy(out->class_bytes, g->class_bytes_at_peak, sizeof out->class_bytes);
    out->retries = plim_allocator_statistics(replayer->allocator)->retries;
    if (g->halted == HALT_OOM) {
        out->verdict = PLIM_OOM;
        note_oom(&run, out, run.started ? step + 1 : 0);
    } else if (g->halted == HALT_UNSUPPORTED) {
        out->verdict = PLIM_UNSUPPORTED;
        snprintf(out->why, sizeof out->why, "%s cannot run on this device", g->unsupported);
    } else if (g->halted) {
        st = g->failure;
    }
    decoder_finish(&run.model);
    optimizer_finish(&run.optimizer);
    return st == PLIM_OK
               ? PLIM_OK
               : plim_fail(err, st, "replay failed while %s", run.phase ? run.phase : "starting");
}
