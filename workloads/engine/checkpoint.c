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
    struct checkpoint_frame *next, *previous; /* all frames of the engine */
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

static void frame_drop(struct engine *e, struct checkpoint_frame *f)
{
    if (--f->refs > 0) return;
    storage_saved(e, f->input->storage, -1);
    tensor_drop(e, f->input);
    for (int i = 0; i < CHECKPOINT_HELD; i++) tensor_drop(e, f->held[i]);
    if (f->next) f->next->previous = f->previous;
    if (f->previous)
        f->previous->next = f->next;
    else
        e->frames = f->next;
    f->next = e->spare_frames;
    e->spare_frames = f;
}

static struct checkpoint_frame *frame_take(struct engine *e)
{
    struct checkpoint_frame *f = e->spare_frames;
    if (f)
        e->spare_frames = f->next;
    else
        f = malloc(sizeof *f);
    if (!f) {
        engine_fail(e, PLIM_NOMEM);
        return NULL;
    }
    f->next = e->frames;
    f->previous = NULL;
    if (f->next) f->next->previous = f;
    e->frames = f;
    return f;
}

struct tensor *checkpoint_run(struct engine *e, checkpoint_fn fn, const void *context, size_t size,
                              struct tensor *const held[CHECKPOINT_HELD], struct tensor *x)
{
    bool was = tensor_enter(x);
    struct checkpoint_frame *f = e->halted ? NULL : frame_take(e);
    if (!f || size > sizeof f->context) {
        if (f) engine_fail(e, PLIM_INTERNAL);
        tensor_leave(e, x, was);
        return e->poison;
    }
    f->fn = fn;
    f->input = tensor_ref(x);
    storage_saved(e, x->storage, +1);
    f->refs = 1;
    f->count = f->refilled = 0;
    f->recomputed = false;
    f->autocast = e->autocast.on;
    f->autocast_dtype = e->autocast.dtype;
    f->seed = e->seed;
    memcpy(f->context, context, size);
    for (int i = 0; i < CHECKPOINT_HELD; i++) f->held[i] = held[i] ? tensor_ref(held[i]) : NULL;
    e->frame = f;
    struct tensor *y = fn(e, f->context, x);
    e->frame = NULL;
    frame_drop(e, f);
    tensor_leave(e, x, was);
    return y;
}

struct checkpoint_holder *checkpoint_pack(struct engine *e)
{
    struct checkpoint_frame *f = e->frame;
    if (f->count == FRAME_HOLDERS) {
        engine_fail(e, PLIM_INTERNAL);
        return NULL;
    }
    struct checkpoint_holder *h = &f->holders[f->count++];
    h->frame = f;
    h->tensor = NULL;
    h->alive = true;
    f->refs++;
    return h;
}

void checkpoint_repack(struct engine *e, struct tensor *x)
{
    struct checkpoint_frame *f = e->recompute;
    struct checkpoint_holder *h = &f->holders[f->refilled++];
    if (h->alive && x) {
        h->tensor = tensor_keep(tensor_detach(e, x));
        storage_saved(e, x->storage, +1);
    }
    if (f->refilled == f->count) engine_halt(e, HALT_EARLY_STOP);
}

static void recompute(struct engine *e, struct checkpoint_frame *f)
{
    bool grad_enabled = e->grad_enabled;
    uint64_t seed = e->seed;
    e->grad_enabled = true;
    e->seed = f->seed;
    e->recompute = f;
    if (f->autocast) autocast_enter(e, f->autocast_dtype);
    struct tensor *y = f->fn(e, f->context, f->input);
    tensor_drop(e, y);
    if (f->autocast) autocast_leave(e);
    e->recompute = NULL;
    e->seed = seed;
    e->grad_enabled = grad_enabled;
    if (e->halted == HALT_EARLY_STOP) e->halted = HALT_NONE;
    f->recomputed = true;
}

struct tensor *checkpoint_unpack(struct engine *e, struct checkpoint_holder *h)
{
    if (!h->frame->recomputed) recompute(e, h->frame);
    struct tensor *x = h->tensor;
    h->tensor = NULL;
    if (!x) return e->poison;
    storage_saved(e, x->storage, -1);
    return x;
}

void checkpoint_holder_drop(struct engine *e, struct checkpoint_holder *h)
{
    struct checkpoint_frame *f = h->frame;
    h->alive = false;
    if (h->tensor) {
        storage_saved(e, h->tensor->storage, -1);
        tensor_drop(e, h->tensor);
        h->tensor = NULL;
    }
    frame_drop(e, f);
}

void checkpoint_reset(struct engine *e)
{
    while (e->frames) {
        struct checkpoint_frame *f = e->frames;
        e->frames = f->next;
        f->next = e->spare_frames;
        e->spare_frames = f;
    }
}

void checkpoint_finish(struct engine *e)
{
    checkpoint_reset(e);
    while (e->spare_frames) {
        struct checkpoint_frame *next = e->spare_frames->next;
        free(e->spare_frames);
        e->spare_frames = next;
    }
}
