/* Non-reentrant checkpointing with early stop (torch/utils/checkpoint.py). */
#include "checkpoint.h"
#include "autograd.h"
#include <stdlib.h>
#include <string.h>

enum { FRAME_CONTEXT = 128, FRAME_HOLDERS = 1024 };

struct checkpoint_holder {
    struct checkpoint_frame *frame;
    struct tensor *tensor; /* recomputed and not used yet */
    bool alive;            /* some node still counts on it */
};

struct checkpoint_frame {
    struct checkpoint_frame *next, *previous; /* all frames of the graph */
    checkpoint_fn fn;
    struct tensor *input, *held[CHECKPOINT_HELD];
    int32_t refs;            /* live holders, and the run itself */
    int32_t count, refilled; /* saved in forward; saved so far in the recomputation */
    bool recomputed, autocast;
    enum plim_dtype autocast_dtype;
    uint64_t seed; /* preserve_rng_state: what was dropped is dropped again */
    _Alignas(16) unsigned char context[FRAME_CONTEXT];
    struct checkpoint_holder holders[FRAME_HOLDERS];
};

static void frame_drop(struct graph *g, struct checkpoint_frame *f)
{
    if (--f->refs > 0) return;
    storage_saved(g, f->input->storage, -1);
    tensor_drop(g, f->input);
    for (int i = 0; i < CHECKPOINT_HELD; i++) tensor_drop(g, f->held[i]);
    if (f->next) f->next->previous = f->previous;
    if (f->previous)
        f->previous->next = f->next;
    else
        g->frames = f->next;
    f->next = g->spare_frames;
    g->spare_frames = f;
}

static struct checkpoint_frame *frame_take(struct graph *g)
{
    struct checkpoint_frame *f = g->spare_frames;
    if (f)
        g->spare_frames = f->next;
    else
        f = malloc(sizeof *f);
    if (!f) {
        graph_fail(g, PLIM_NOMEM);
        return NULL;
    }
    f->next = g->frames;
    f->previous = NULL;
    if (f->next) f->next->previous = f;
    g->frames = f;
    return f;
}

struct tensor *checkpoint_run(struct graph *g, checkpoint_fn fn, const void *context, size_t size,
                              struct tensor *const held[CHECKPOINT_HELD], struct tensor *x)
{
    bool was = tensor_enter(x);
    struct checkpoint_frame *f = g->halted ? NULL : frame_take(g);
    if (!f || size > sizeof f->context) {
        if (f) graph_fail(g, PLIM_INTERNAL);
        tensor_leave(g, x, was);
        return g->poison;
    }
    f->fn = fn;
    f->input = tensor_ref(x);
    storage_saved(g, x->storage, +1);
    f->refs = 1;
    f->count = f->refilled = 0;
    f->recomputed = false;
    f->autocast = g->autocast;
    f->autocast_dtype = g->autocast_dtype;
    f->seed = g->seed;
    memcpy(f->context, context, size);
    for (int i = 0; i < CHECKPOINT_HELD; i++) f->held[i] = held[i] ? tensor_ref(held[i]) : NULL;
    g->frame = f;
    struct tensor *y = fn(g, f->context, x);
    g->frame = NULL;
    frame_drop(g, f);
    tensor_leave(g, x, was);
    return y;
}

struct checkpoint_holder *checkpoint_pack(struct graph *g)
{
    struct checkpoint_frame *f = g->frame;
    if (f->count == FRAME_HOLDERS) {
        graph_fail(g, PLIM_INTERNAL);
        return NULL;
    }
    struct checkpoint_holder *h = &f->holders[f->count++];
    h->frame = f;
    h->tensor = NULL;
    h->alive = true;
    f->refs++;
    return h;
}

void checkpoint_repack(struct graph *g, struct tensor *x)
{
    struct checkpoint_frame *f = g->recompute;
    struct checkpoint_holder *h = &f->holders[f->refilled++];
    if (h->alive && x) {
        h->tensor = tensor_keep(tensor_detach(g, x));
        storage_saved(g, x->storage, +1);
    }
    if (f->refilled == f->count) graph_halt(g, HALT_EARLY_STOP);
}

static void recompute(struct graph *g, struct checkpoint_frame *f)
{
    bool grad_enabled = g->grad_enabled;
    uint64_t seed = g->seed;
    g->grad_enabled = true;
    g->seed = f->seed;
    g->recompute = f;
    if (f->autocast) autocast_enter(g, f->autocast_dtype);
    struct tensor *y = f->fn(g, f->context, f->input);
    tensor_drop(g, y);
    if (f->autocast) autocast_leave(g);
    g->recompute = NULL;
    g->seed = seed;
    g->grad_enabled = grad_enabled;
    if (g->halted == HALT_EARLY_STOP) g->halted = HALT_NONE;
    f->recomputed = true;
}

struct tensor *checkpoint_unpack(struct graph *g, struct checkpoint_holder *h)
{
    if (!h->frame->recomputed) recompute(g, h->frame);
    struct tensor *x = h->tensor;
    h->tensor = NULL;
    if (!x) return g->poison;
    storage_saved(g, x->storage, -1);
    return x;
}

void checkpoint_holder_drop(struct graph *g, struct checkpoint_holder *h)
{
    struct checkpoint_frame *f = h->frame;
    h->alive = false;
    if (h->tensor) {
        storage_saved(g, h->tensor->storage, -1);
        tensor_drop(g, h->tensor);
        h->tensor = NULL;
    }
    frame_drop(g, f);
}

void checkpoint_reset(struct graph *g)
{
    while (g->frames) {
        struct checkpoint_frame *f = g->frames;
        g->frames = f->next;
        f->next = g->spare_frames;
        g->spare_frames = f;
    }
}

void checkpoint_finish(struct graph *g)
{
    checkpoint_reset(g);
    while (g->spare_frames) {
        struct checkpoint_frame *next = g->spare_frames->next;
        free(g->spare_frames);
        g->spare_frames = next;
    }
}
