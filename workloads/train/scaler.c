/* GradScaler and clip_grad_norm_, with the same temporaries as PyTorch's. */
#include "scaler.h"
#include "devices/needs/needs.h"
#include <math.h>

void scaler_create(struct scaler *s, bool enabled)
{
    *s = (struct scaler){.enabled = enabled};
}

static struct tensor *scalar(struct engine *e, double value)
{
    return tensor_keep(op_full(e, PLIM_F32, 0, NULL, value));
}

struct tensor *scaler_scale(struct engine *e, struct scaler *s, struct tensor *loss)
{
    if (!s->enabled) return loss;
    if (!s->scale) {
        enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_OPTIMIZER);
        s->scale = scalar(e, 65536);
        s->growth = scalar(e, 0);
        engine_set_class(e, before);
    }
    return op_mul(e, loss, s->scale);
}

/* Passes copies of found_inf and 1 / scale to the kernel that unscales all gradients, as PyTorch does for each
 * device. */
static void unscale(struct engine *e, struct scaler *s, struct optimizer *o, struct tensor *inverse,
                    struct tensor *zero)
{
    s->found_inf = tensor_keep(op_copy_like(e, zero, zero));
    struct tensor *factor = tensor_keep(op_copy_like(e, inverse, inverse));
    size_t n = optimizer_collect(o);
    struct plim_op op = {.kind = PLIM_OP_FOREACH,
                         .foreach = PLIM_FOREACH_UNSCALE,
                         .n_out = 1,
                         .n_in = 1,
                         .n_lists = 1,
                         .out = {&s->found_inf->a},
                         .in = {&factor->a},
                         .lists = {(const struct plim_array *const *)o->grads},
                         .list_length = n};
    if (!e->halted && n) engine_launch(e, &op);
    if (o->sharded) tensor_drop(e, tensor_keep(op_copy_like(e, zero, zero))); /* all-reduced */
    tensor_drop(e, factor);
}

void scaler_unscale(struct engine *e, struct scaler *s, struct optimizer *o)
{
    if (!s->enabled || e->halted) return;
    /* scale.double().reciprocal().float() */
    struct tensor *wide = tensor_keep(tensor_empty_bytes(e, 8));
    struct tensor *inverse = tensor_keep(tensor_empty_bytes(e, 8));
    tensor_drop(e, wide);
    struct tensor *narrow = tensor_keep(tensor_empty(e, PLIM_F32, 0, NULL));
    struct plim_op op = {.kind = PLIM_OP_UNARY,
                         .unary = PLIM_UNARY_RECIPROCAL,
                         .n_out = 1,
                         .n_in = 1,
                         .out = {&narrow->a},
                         .in = {&s->scale->a}};
    if (!e->halted) engine_launch(e, &op);
    tensor_drop(e, inverse);
    struct tensor *zero = scalar(e, 0);
    unscale(e, s, o, narrow, zero);
    tensor_drop(e, narrow);
    tensor_drop(e, zero);
    s->unscaled = true;
}

/* A fused optimizer receives the scaler's tensors: the check runs with a factor of 1, and the step unscales. */
static void fused_step(struct engine *e, struct scaler *s, struct optimizer *o)
{
    if (!s->unscaled) {
        struct tensor *one = scalar(e, 1), *zero = scalar(e, 0);
        unscale(e, s, o, one, zero);
        tensor_drop(e, one);
        tensor_drop(e, zero);
    }
    struct tensor *found = tensor_keep(op_add_scalar(e, s->found_inf, 0));
    struct tensor *scale = s->unscaled ? NULL : tensor_keep(op_mul_scalar(e, s->scale, 1));
    optimizer_step(e, o, found, scale);
    tensor_drop(e, scale);
    tensor_drop(e, found);
}

void scaler_step(struct engine *e, struct scaler *s, struct optimizer *o)
{
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    if (s->enabled && o->kind->takes_scaler) {
        fused_step(e, s, o);
    } else {
        if (s->enabled && !s->unscaled) scaler_unscale(e, s, o);
        bool overflowed = s->enabled && !e->halted && engine_item(e, s->found_inf) != 0;
        if (!overflowed) optimizer_step(e, o, NULL, NULL);
    }
    e->grad_enabled = grad;
}

void scaler_update(struct engine *e, struct scaler *s)
{
    if (!s->enabled || e->halted) return;
    struct plim_op op = {.kind = PLIM_OP_OPTIMIZER,
                         .foreach = PLIM_AMP_UPDATE_SCALE,
                         .n_out = 2,
                         .n_in = 1,
                         .out = {&s->scale->a, &s->growth->a},
                         .in = {&s->found_inf->a}};
    engine_launch(e, &op);
    tensor_drop(e, s->found_inf);
    s->found_inf = NULL;
    s->unscaled = false;
}

/* --- clip_grad_norm_ -------------------------------------------------------------------------- */

enum {
    FOREACH_CHUNK = 65536
}; /* elements of one block of a multi-tensor kernel (MultiTensorApply.cuh) */

static int64_t chunks_of(const struct tensor *x)
{
    return (tensor_elements(x) + FOREACH_CHUNK - 1) / FOREACH_CHUNK;
}

/* Returns the partial sums of _foreach_norm, one per chunk of a tensor; each tensor has as many as the largest one
 * needs. */
static struct tensor *partials_2_11(struct engine *e, size_t n, struct tensor *const *grads)
{
    int64_t largest = 0;
    for (size_t i = 0; i < n; i++)
        if (chunks_of(grads[i]) > largest) largest = chunks_of(grads[i]);
    return tensor_keep(op_full(e, PLIM_F32, SHAPE((int64_t)n * largest), 0));
}

/* The same in PyTorch 2.15, where each tensor has as many as it needs. Stores in *starts the index at which those of
 * each tensor begin, and the end. */
static struct tensor *partials_2_15(struct engine *e, size_t n, struct tensor *const *grads,
                                    struct tensor **starts)
{
    int64_t all = 0, filled = 0;
    for (size_t i = 0; i < n; i++) {
        all += chunks_of(grads[i]);
        filled += tensor_elements(grads[i]) > 0;
    }
    *starts = tensor_keep(tensor_empty(e, PLIM_I64, SHAPE(filled + 1)));
    return tensor_keep(op_full(e, PLIM_F32, SHAPE(all), 0));
}

/* _foreach_norm: partial sums, then one number per tensor; named. */
static void norms_of(struct engine *e, size_t n, struct tensor **grads, struct tensor **norms)
{
    struct tensor *starts = NULL;
    struct tensor *partial =
        e->torch_2_15 ? partials_2_15(e, n, grads, &starts) : partials_2_11(e, n, grads);
    for (size_t i = 0; i < n; i++)
        norms[i] = tensor_keep(tensor_empty(e, (enum plim_dtype)grads[i]->a.dtype, 0, NULL));
    struct plim_op op = {.kind = PLIM_OP_FOREACH,
                         .foreach = PLIM_FOREACH_NORM,
                         .n_lists = 2,
                         .n_scratch = 1,
                         .scratch = {&partial->a},
                         .lists = {(const struct plim_array *const *)norms,
                                   (const struct plim_array *const *)grads},
                         .list_length = n};
    if (!e->halted) engine_launch(e, &op);
    tensor_drop(e, partial);
    tensor_drop(e, starts);
}

/* torch.stack of scalars into `into`. */
static void stack(struct engine *e, size_t n, struct tensor *const *scalars, struct tensor *into)
{
    struct plim_op op = {.kind = PLIM_OP_CAT,
                         .n_out = 1,
                         .n_lists = 1,
                         .out = {&into->a},
                         .lists = {(const struct plim_array *const *)scalars},
                         .list_length = n};
    if (!e->halted) engine_launch(e, &op);
}

/* Multiplies every gradient by the scalar on the device. */
static void scale_all(struct engine *e, struct optimizer *o, struct tensor *factor)
{
    struct plim_op op = {.kind = PLIM_OP_FOREACH,
                         .foreach = PLIM_FOREACH_MUL,
                         .n_in = 1,
                         .n_lists = 1,
                         .alpha = 1,
                         .in = {&factor->a},
                         .lists = {(const struct plim_array *const *)o->grads},
                         .list_length = o->count};
    if (!e->halted) engine_launch(e, &op);
}

/* Returns the norms of DTensors, computed from those of this rank's shards: their squares are summed over the ranks. */
static struct tensor *norms_of_all_ranks(struct engine *e, struct tensor *norms)
{
    struct tensor *squares = tensor_keep(op_mul(e, norms, norms));
    struct tensor *sums = tensor_keep(op_copy_like(e, squares, squares)); /* all-reduced */
    struct tensor *roots = tensor_keep(op_pow_scalar(e, sums, 0.5));
    tensor_drop(e, squares);
    tensor_drop(e, sums);
    return roots;
}

/* Stores the norms of all gradients in o->scratch, with one kernel per type. Returns the type of their stack. */
static enum plim_dtype norms_by_type(struct engine *e, struct optimizer *o)
{
    size_t end;
    optimizer_group(o);
    uint8_t type = o->grads[0]->a.dtype;
    bool is_mixed = o->grads[o->count - 1]->a.dtype != type;
    for (size_t start = 0; start < o->count; start = end) {
        end = optimizer_group_end(o, start);
        norms_of(e, end - start, o->grads + start, o->scratch + start);
    }
    return is_mixed ? PLIM_F32 : (enum plim_dtype)type;
}

struct tensor *clip_grad_norm(struct engine *e, struct optimizer *o, double max_norm)
{
    struct tensor *total = NULL;
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    size_t n = e->halted ? 0 : optimizer_collect(o);
    if (n) {
        struct tensor **norms = o->scratch;
        enum plim_dtype dtype = norms_by_type(e, o);
        struct tensor *stacked = tensor_keep(tensor_empty(e, dtype, SHAPE((int64_t)n)));
        stack(e, n, norms, stacked);
        struct tensor *all = o->sharded ? norms_of_all_ranks(e, stacked) : tensor_ref(stacked);
        total = tensor_keep(op_reduce(e, all, 1, false, PLIM_BINARY_HYPOT, 1, dtype));
        tensor_drop(e, all);
        tensor_drop(e, stacked);
        for (size_t i = n; i-- > 0;) tensor_drop(e, norms[i]);
        /* max_norm / (total + 1e-6), at most 1 */
        struct tensor *sum = tensor_keep(op_add_scalar(e, total, 1e-6));
        struct tensor *inverse = tensor_keep(op_unary(e, sum, PLIM_UNARY_RECIPROCAL));
        struct tensor *factor = tensor_keep(op_mul_scalar(e, inverse, max_norm));
        tensor_drop(e, inverse);
        tensor_drop(e, sum);
        struct tensor *clamped = tensor_keep(op_clamp(e, factor, -INFINITY, 1));
        scale_all(e, o, clamped);
        tensor_drop(e, factor);
        tensor_drop(e, clamped);
    }
    e->grad_enabled = grad;
    return total;
}
