/* Non-reentrant checkpointing with early stop (torch/utils/checkpoint.py). */
#include "checkpoint.h"
#include <string.h>

enum { FRAME_CONTEXT = 128, FRAME_HOLDERS = 1024 };

struct checkpoint_holder {
    struct checkpoint_frame *frame;
    struct tensor *tensor; /* recomputed and not used yet */
    bool alive;            /* some node still counts on it */
};

struct checkpoint_frame {
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
    pool_give(&e->frames, f);
}

/* --- the hooks -------------------------------------------------------------------------------- */

static void *pack(struct engine *e, struct tensor *x)
{
    struct checkpoint_frame *f = e->frame;
    (void)x;
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

/* The region runs again: its own node keeps `x`, and the holder of the first run gets it too. */
static void *pack_again(struct engine *e, struct tensor *x)
{
    struct checkpoint_frame *f = e->frame;
    struct checkpoint_holder *h = &f->holders[f->refilled++];
    if (h->alive && x) {
        h->tensor = tensor_keep(tensor_detach(e, x));
        storage_saved(e, x->storage, +1);
    }
    if (f->refilled == f->count) engine_halt(e, HALT_EARLY_STOP);
    return NULL;
}
static const struct saved_tensors_hooks second_run = {.pack = pack_again};

static struct tensor *run(struct engine *e, struct checkpoint_frame *f,
                          const struct saved_tensors_hooks *hooks, struct tensor *x)
{
    e->frame = f;
    e->autograd.hooks = hooks;
    struct tensor *y = f->fn(e, f->context, x);
    e->autograd.hooks = NULL;
    e->frame = NULL;
    return y;
}

static void recompute(struct engine *e, struct checkpoint_frame *f)
{
    bool grad_enabled = e->grad_enabled;
    uint64_t seed = e->seed;
    e->grad_enabled = true;
    e->seed = f->seed;
    if (f->autocast) autocast_enter(e, f->autocast_dtype);
    tensor_drop(e, run(e, f, &second_run, f->input));
    if (f->autocast) autocast_leave(e);
    e->seed = seed;
    e->grad_enabled = grad_enabled;
    if (e->halted == HALT_EARLY_STOP) e->halted = HALT_NONE;
    f->recomputed = true;
}

bool checkpoint_recomputing(const struct engine *e)
{
    return e->autograd.hooks == &second_run;
}

static struct tensor *unpack(struct engine *e, void *handle)
{
    struct checkpoint_holder *h = handle;
    if (!h->frame->recomputed) recompute(e, h->frame);
    struct tensor *x = h->tensor;
    h->tensor = NULL;
    if (!x) return e->poison;
    storage_saved(e, x->storage, -1);
    return x;
}

static void drop(struct engine *e, void *handle)
{
    struct checkpoint_holder *h = handle;
    struct checkpoint_frame *f = h->frame;
    h->alive = false;
    if (h->tensor) {
        storage_saved(e, h->tensor->storage, -1);
        tensor_drop(e, h->tensor);
        h->tensor = NULL;
    }
    frame_drop(e, f);
}
static const struct saved_tensors_hooks first_run = {pack, unpack, drop};

/* --- a region --------------------------------------------------------------------------------- */

struct tensor *checkpoint_run(struct engine *e, checkpoint_fn fn, const void *context, size_t size,
                              struct tensor *const held[CHECKPOINT_HELD], struct tensor *x)
{
    bool was = tensor_enter(x);
    struct checkpoint_frame *f = e->halted ? NULL : pool_take(&e->frames, sizeof *f);
    if (!f || size > sizeof f->context) {
        if (!e->halted) engine_fail(e, f ? PLIM_INTERNAL : PLIM_NOMEM);
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
    struct tensor *y = run(e, f, &first_run, x);
    frame_drop(e, f);
    tensor_leave(e, x, was);
    return y;
}
