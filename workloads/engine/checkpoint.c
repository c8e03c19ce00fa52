/* torch/utils/checkpoint.py: non-reentrant checkpointing with early stop, and the reentrant CheckpointFunction. */
#include "checkpoint.h"
#include "autograd.h"
#include "ops.h"
#include <string.h>

/* Enough holders for a linear-attention layer of 400,000 tokens, with ten holders per chunk. */
enum { FRAME_CONTEXT = 160, BLOCK_HOLDERS = 256, FRAME_BLOCKS = 256 };

struct checkpoint_holder {
    struct checkpoint_frame *frame;
    struct tensor *tensor; /* recomputed and not used yet */
    bool alive;            /* a node still refers to it */
};

struct checkpoint_frame {
    checkpoint_fn fn;
    struct tensor *input, *held[CHECKPOINT_HELD];
    struct checkpoint_mapping *mapping;
    int32_t refs;            /* number of live holders, plus one for the running region */
    int32_t count, refilled; /* number of saved tensors in forward; and so far in the recomputation */
    bool recomputed, autocast;
    struct plim_array beside;     /* reentrant: shape of the unused second result; no dimensions: none */
    struct tensor *beside_again; /* that of the recomputation */
    enum plim_dtype autocast_dtype;
    uint64_t seed; /* preserve_rng_state: dropout repeats its masks */
    _Alignas(16) unsigned char context[FRAME_CONTEXT];
    int32_t block_count;
    struct checkpoint_holder *blocks[FRAME_BLOCKS]; /* of BLOCK_HOLDERS each */
};

struct checkpoint_mapping *checkpoint_mapping_create(struct engine *e)
{
    struct checkpoint_mapping *m = e->halted ? NULL : pool_allocate(&e->mappings, sizeof *m);
    if (!m) {
        if (!e->halted) engine_fail(e, PLIM_NOMEM);
        return NULL;
    }
    *m = (struct checkpoint_mapping){.refs = 1};
    return m;
}

void checkpoint_mapping_drop(struct engine *e, struct checkpoint_mapping *m)
{
    if (!m || --m->refs > 0) return;
    for (int i = 0; i < CHECKPOINT_VALUES; i++) tensor_drop(e, m->values[i]);
    pool_free(&e->mappings, m);
}

static struct checkpoint_holder *holder_of(const struct checkpoint_frame *f, int32_t i)
{
    return &f->blocks[i / BLOCK_HOLDERS][i % BLOCK_HOLDERS];
}

static void frame_free(struct engine *e, void *frame)
{
    struct checkpoint_frame *f = frame;
    for (int i = 0; i < CHECKPOINT_HELD; i++) tensor_drop(e, f->held[i]);
    checkpoint_mapping_drop(e, f->mapping);
    while (f->block_count > 0) pool_free(&e->holders, f->blocks[--f->block_count]);
    pool_free(&e->frames, f);
}

static void frame_drop(struct engine *e, struct checkpoint_frame *f)
{
    if (--f->refs > 0) return;
    storage_saved(e, f->input->storage, -1);
    tensor_drop(e, f->input);
    frame_free(e, f);
}

/* --- hooks for saved tensors ------------------------------------------------------------------ */

/* Returns the frame's next holder; NULL: the engine has failed. */
static struct checkpoint_holder *new_holder(struct engine *e, struct checkpoint_frame *f)
{
    if (f->count == f->block_count * BLOCK_HOLDERS) {
        struct checkpoint_holder *block =
            f->block_count < FRAME_BLOCKS ? pool_allocate(&e->holders, BLOCK_HOLDERS * sizeof *block) : NULL;
        if (!block) {
            engine_fail(e, f->block_count < FRAME_BLOCKS ? PLIM_NOMEM : PLIM_INTERNAL);
            return NULL;
        }
        f->blocks[f->block_count++] = block;
    }
    return holder_of(f, f->count++);
}

static void *pack(struct engine *e, struct tensor *x)
{
    struct checkpoint_frame *f = e->frame;
    struct checkpoint_holder *h = new_holder(e, f);
    (void)x;
    if (!h) return NULL;
    h->frame = f;
    h->tensor = NULL;
    h->alive = true;
    f->refs++;
    return h;
}

/* Pack hook of the recomputation: the new node keeps `x`, and the holder of the first run receives it, too. */
static void *pack_again(struct engine *e, struct tensor *x)
{
    struct checkpoint_frame *f = e->frame;
    struct checkpoint_holder *h = holder_of(f, f->refilled++);
    if (h->alive && x) {
        h->tensor = x->requires_grad ? tensor_keep(tensor_detach(e, x)) : tensor_ref(x); /* like checkpoint.py */
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

/* Recomputes the region from `x`, with gradients. Floating. */
static struct tensor *run_again(struct engine *e, struct checkpoint_frame *f, const struct saved_tensors_hooks *hooks,
                                struct tensor *x)
{
    bool grad_enabled = e->grad_enabled;
    uint64_t seed = e->seed;
    e->grad_enabled = true;
    e->seed = f->seed;
    if (f->autocast) autocast_enter(e, f->autocast_dtype);
    struct tensor *y = run(e, f, hooks, x);
    if (f->autocast) autocast_leave(e);
    e->seed = seed;
    e->grad_enabled = grad_enabled;
    return y;
}

static void recompute(struct engine *e, struct checkpoint_frame *f)
{
    tensor_drop(e, run_again(e, f, &second_run, f->input));
    if (e->halted == HALT_EARLY_STOP) e->halted = HALT_NONE;
    f->recomputed = true;
}

bool checkpoint_recomputing(const struct engine *e)
{
    return e->autograd.hooks == &second_run || e->reenters;
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

struct checkpoint_frame *checkpoint_retain(struct engine *e)
{
    bool is_first = e->frame && e->autograd.hooks == &first_run;
    if (is_first) e->frame->refs++;
    return is_first ? e->frame : NULL;
}

void checkpoint_release(struct engine *e, struct checkpoint_frame *f)
{
    if (f) frame_drop(e, f);
}

/* --- a region --------------------------------------------------------------------------------- */

/* --- creating and running a region ------------------------------- */
static struct checkpoint_frame *frame_make(struct engine *e, checkpoint_fn fn, const void *context, size_t size,
                                           struct tensor *const held[CHECKPOINT_HELD],
                                           struct checkpoint_mapping *mapping)
{
    struct checkpoint_frame *f = e->halted ? NULL : pool_allocate(&e->frames, sizeof *f);
    if (!f || size > sizeof f->context) {
        if (!e->halted) engine_fail(e, f ? PLIM_INTERNAL : PLIM_NOMEM);
        return NULL;
    }
    f->fn = fn;
    f->block_count = 0;
    f->beside = (struct plim_array){.ndim = 0};
    f->beside_again = NULL;
    f->autocast = e->autocast.on;
    f->autocast_dtype = e->autocast.dtype;
    f->seed = e->seed;
    memcpy(f->context, context, size);
    f->mapping = mapping;
    if (mapping) mapping->refs++;
    for (int i = 0; i < CHECKPOINT_HELD; i++) f->held[i] = held[i] ? tensor_ref(held[i]) : NULL;
    return f;
}

struct tensor *checkpoint_run(struct engine *e, checkpoint_fn fn, const void *context, size_t size,
                              struct tensor *const held[CHECKPOINT_HELD], struct checkpoint_mapping *mapping,
                              struct tensor *x)
{
    struct checkpoint_frame *f = frame_make(e, fn, context, size, held, mapping);
    if (!f) return op_halted(e, 1, &x);
    bool was = tensor_enter(x);
    f->input = tensor_ref(x);
    storage_saved(e, x->storage, +1);
    f->refs = 1;
    f->count = f->refilled = 0;
    f->recomputed = false;
    struct tensor *y = run(e, f, &first_run, x);
    frame_drop(e, f);
    tensor_leave(e, x, was);
    return y;
}

/* --- reentrant -------------------------------------------------------------------------------- */

void checkpoint_return_input(struct engine *e, struct tensor *x)
{
    if (!e->frame || e->autograd.hooks || e->halted) return;
    if (e->reenters) e->frame->beside_again = tensor_ref(x);
    else e->frame->beside = x->a;
}

/* Returns the zeros that autograd allocates for a missing gradient; NULL if there is none. */
static struct tensor *zeros_beside(struct engine *e, const struct checkpoint_frame *f)
{
    const struct plim_array *a = &f->beside;
    return a->ndim ? tensor_keep(op_full(e, (enum plim_dtype)a->dtype, a->ndim, a->shape, 0)) : NULL;
}

static void function_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    struct tensor *x = node_saved(e, n, 0);
    if (e->halted) return;
    struct checkpoint_frame *f = n->context;
    struct tensor *zeros = zeros_beside(e, f);
    struct tensor *input = tensor_keep(tensor_detach(e, x));
    input->is_view = false; /* for autograd it is not a view, so autocast caches its copy */
    e->grad_enabled = true;
    tensor_require_input_grad(e, input);
    e->grad_enabled = false;
    e->reenters = true;
    struct tensor *y = tensor_keep(run_again(e, f, NULL, input));
    e->reenters = false;
    struct tensor *beside = f->beside_again;
    if (zeros && beside && beside->grad_fn && !e->halted)
        beside->grad_fn->grad[beside->output_number] = tensor_ref(zeros);
    autograd_backward_within(e, y, grads[0]);
    if (input->grad) out[0] = tensor_ref(input->grad);
    tensor_drop_all(e, y, beside, zeros, input);
}
static const struct node_kind function_kind = {"CheckpointFunctionBackward", function_backward};

struct tensor *checkpoint_run_reentrant(struct engine *e, checkpoint_fn fn, const void *context, size_t size,
                                        struct tensor *const held[CHECKPOINT_HELD],
                                        struct checkpoint_mapping *mapping, struct tensor *x)
{
    struct checkpoint_frame *f = frame_make(e, fn, context, size, held, mapping);
    if (!f) return op_halted(e, 1, &x);
    bool grad_enabled = e->grad_enabled, was = tensor_enter(x);
    struct node *n = autograd_needed(e, 1, &x) ? node_create(e, &function_kind, 1, &x) : NULL;
    if (n) {
        n->context = f;
        n->drop_context = frame_free;
        node_save(e, n, 0, x);
    }
    e->grad_enabled = false;
    struct tensor *y = run(e, f, NULL, x);
    e->grad_enabled = grad_enabled;
    if (n && !e->halted) node_attach(n, y);
    else if (n) node_drop(e, n);
    else frame_free(e, f);
    tensor_leave(e, x, was);
    return y;
}
