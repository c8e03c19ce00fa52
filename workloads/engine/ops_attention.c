/* scaled_dot_product_attention: the mask, the choice of the kernel, its memory, its backward. */
#include "autotune/base/round.h"
#include "devices/needs/needs_attention.h"
#include "ops.h"
#include <math.h>
#include <string.h>

enum { Q, K, V, MASK };
enum { SAVED_Q, SAVED_K, SAVED_V, SAVED_MASK, SAVED_OUT, SAVED_LSE, SAVED_SEED, SAVED_OFFSET };

/* convert_boolean_attn_mask: 0 where attention is allowed, minus infinity elsewhere. */
static struct tensor *additive_mask(struct engine *e, struct tensor *mask, enum plim_dtype dtype)
{
    if (!mask || mask->a.dtype != PLIM_BOOL) return mask;
    return tensor_keep(op_where(e, mask, NULL, NULL, dtype, 0, -INFINITY));
}

/* --- the kernels ------------------------------------------------------------------------------ */

/* q, k, v and their gradients have shape (b, heads, s, d); true if they are in (b, s, heads, d) order in memory. */
static bool heads_inside(const struct tensor *x)
{
    return x->a.shape[1] == 1 || x->a.shape[2] == 1 || x->a.stride[1] < x->a.stride[2];
}

static struct plim_attention_shape describe(struct tensor *const qkv[3], const struct tensor *mask, bool causal,
                                            bool dropout)
{
    const struct tensor *q = qkv[Q], *k = qkv[K];
    return (struct plim_attention_shape){.batch = q->a.shape[0],
                                         .heads = q->a.shape[1],
                                         .kv_heads = k->a.shape[1],
                                         .q_length = q->a.shape[2],
                                         .k_length = k->a.shape[2],
                                         .head_size = q->a.shape[3],
                                         .value_size = qkv[V]->a.shape[3],
                                         .dtype = (enum plim_dtype)q->a.dtype,
                                         .has_mask = mask != NULL,
                                         .mask_batch = mask ? mask->a.shape[0] : 0,
                                         .mask_heads = mask ? mask->a.shape[1] : 0,
                                         .causal = causal,
                                         .dropout = dropout,
                                         .contiguous_heads = heads_inside(q)};
}

/* The memory blocks of one call, by role. */
struct blocks {
    struct tensor *out, *lse, *rng[2], *grad[4];
    int rngs;
    struct tensor *temporary[PLIM_SDPA_MAX_NEEDS];
    struct plim_attention_need need[PLIM_SDPA_MAX_NEEDS];
    int count;
};

/* Returns a tensor of the shape of `like`, except for the head size `size`, in (b, s, heads, d) order or in the order
 * of `like`. */
static struct tensor *result_like(struct engine *e, enum plim_sdpa kernel, struct tensor *like, int64_t size)
{
    const int64_t n[4] = {like->a.shape[0], like->a.shape[1], like->a.shape[2], size};
    int64_t stride[4] = {n[1] * n[2] * n[3], n[3], n[1] * n[3], 1};
    if (kernel != PLIM_SDPA_EFFICIENT) op_result_strides(1, &like, 4, n, stride);
    return tensor_empty_strided(e, (enum plim_dtype)like->a.dtype, 4, n, stride);
}

/* Passes the live temporaries to the launch, and also the workspace of this thread's cuBLAS, which is unused meanwhile:
 * a kernel here may need a few bytes that PyTorch's does not. `lent` describes the workspace and has to live as long as
 * `op`. */
static void hand_over(struct engine *e, struct plim_op *op, const struct blocks *b,
                      struct plim_array *lent)
{
    const struct storage *workspace = e->blas_workspace[e->stream][e->thread];
    for (int i = 0; i < b->count && op->n_scratch < PLIM_OP_MAX_SCRATCH - 1; i++)
        if (b->temporary[i]) op->scratch[op->n_scratch++] = &b->temporary[i]->a;
    if (!workspace) return;
    *lent = (struct plim_array){.data = workspace->address,
                                .shape = {workspace->bytes},
                                .stride = {1},
                                .ndim = 1,
                                .dtype = PLIM_U8};
    op->scratch[op->n_scratch++] = lent;
}

static void release_before(struct engine *e, struct blocks *b, int index)
{
    for (int order = 0; order < b->count; order++)
        for (int i = 0; i < b->count; i++)
            if (b->temporary[i] && b->need[i].before == index && b->need[i].release == order) {
                tensor_drop(e, b->temporary[i]);
                b->temporary[i] = NULL;
            }
}

/* Returns the mask's gradient of every head and row: a view of rows that are padded to whole units; named. */
static struct tensor *mask_gradient(struct engine *e, const struct tensor *q, const struct tensor *k)
{
    const int64_t *n = q->a.shape, columns = k->a.shape[2];
    int64_t row = plim_round_up(columns, PLIM_DMASK_UNIT);
    struct tensor *whole = tensor_keep(tensor_empty(e, (enum plim_dtype)q->a.dtype, SHAPE(n[0], n[1], n[2], row)));
    struct tensor *y = tensor_hold(op_slice(e, whole, 3, 0, columns));
    tensor_drop(e, whole);
    return y;
}

static void take(struct engine *e, struct blocks *b, int i, enum plim_sdpa kernel,
                 struct tensor *const *qkv)
{
    const struct plim_attention_need *need = &b->need[i];
    release_before(e, b, i);
    switch (need->role) {
    case PLIM_NEED_OUT:
        b->out = result_like(e, kernel, qkv[Q], tensor_size(qkv[V], 3));
        break;
    case PLIM_NEED_DQ:
        b->grad[Q] = tensor_keep(result_like(e, kernel, qkv[Q], tensor_size(qkv[Q], 3)));
        break;
    case PLIM_NEED_DK:
        b->grad[K] = tensor_keep(result_like(e, kernel, qkv[K], tensor_size(qkv[K], 3)));
        break;
    case PLIM_NEED_DV:
        b->grad[V] = tensor_keep(result_like(e, kernel, qkv[V], tensor_size(qkv[V], 3)));
        break;
    case PLIM_NEED_DMASK:
        b->grad[MASK] = mask_gradient(e, qkv[Q], qkv[K]);
        break;
    case PLIM_NEED_LSE:
        b->lse = tensor_keep(tensor_empty_bytes(e, need->bytes));
        break;
    case PLIM_NEED_MASK:
        break; /* allocated before the call, see pad_mask() */
    case PLIM_NEED_RNG:
        b->rng[b->rngs++] = tensor_keep(tensor_empty_bytes(e, need->bytes));
        break;
    case PLIM_NEED_TEMPORARY:
        b->temporary[i] = tensor_keep(tensor_empty_bytes(e, need->bytes));
        break;
    }
}

/* F.pad of the last dimension, in (b, s, heads, d) order, as in the package flash-attn; x itself if no padding is
 * needed. */
static struct tensor *pad_heads(struct engine *e, struct tensor *x, int64_t size)
{
    if (e->halted || x->a.shape[3] == size) return x;
    struct tensor *wide = op_pad(e, op_transpose(e, x, 1, 2), -1, size - x->a.shape[3]);
    return op_transpose(e, wide, 1, 2);
}

/* --- backward --------------------------------------------------------------------------------- */

static void launch_backward(struct engine *e, struct node *n, const struct blocks *b,
                            struct tensor *dy, struct tensor *const *qkv)
{
    struct tensor *y = node_saved(e, n, SAVED_OUT), *lse = node_saved(e, n, SAVED_LSE);
    struct tensor *mask = node_saved(e, n, SAVED_MASK);
    struct tensor *ends = n->ints[7] ? node_saved(e, n, SAVED_OFFSET) : NULL;
    if (e->halted) return;
    struct plim_op op = {
        .kind = PLIM_OP_ATTENTION_BACKWARD,
        .n_out = (uint8_t)(b->grad[MASK] ? 4 : 3),
        .n_in = (uint8_t)(ends ? 8 : mask ? 7 : 6),
        .sdpa = (uint8_t)n->ints[0],
        .causal = n->ints[2],
        .window = n->ints[6],
        .softcap = n->softcap,
        .alpha = n->number,
        .beta = n->scale,
        .seed = (uint64_t)n->ints[5],
        .out = {&b->grad[Q]->a, &b->grad[K]->a, &b->grad[V]->a, b->grad[MASK] ? &b->grad[MASK]->a : NULL},
        .in = {&dy->a, &qkv[Q]->a, &qkv[K]->a, &qkv[V]->a, &y->a, &lse->a, mask ? &mask->a : NULL,
               ends ? &ends->a : NULL}};
    struct plim_array lent;
    hand_over(e, &op, b, &lent);
    engine_launch(e, &op);
}

static void attention_backward(struct engine *e, struct node *n, struct tensor **grads,
                               struct tensor **out)
{
    struct tensor *qkv[3];
    for (int i = Q; i <= V; i++) qkv[i] = node_saved(e, n, SAVED_Q + i);
    if (e->halted) return;
    enum plim_sdpa kernel = (enum plim_sdpa)n->ints[0];
    struct plim_attention_shape shape = describe(qkv, NULL, n->ints[2], n->number > 0);
    shape.has_mask = n->ints[1];
    shape.rows = n->ints[7];
    shape.mask_batch = n->ints[3];
    shape.mask_heads = n->ints[4];
    shape.mask_trains = n->edge_count > MASK && node_wants(n, MASK);
    shape.training = true;
    shape.grad_heads_first = !heads_inside(grads[0]);
    struct blocks b = {0};
    struct tensor *dy = tensor_ref(grads[0]);
    b.count = plim_attention_backward_needs(&e->device->info, kernel, &shape, b.need);
    for (int i = 0; i < b.count; i++) {
        take(e, &b, i, kernel, qkv);
        if (b.need[i].role == PLIM_NEED_DV) tensor_set(e, &dy, pad_heads(e, dy, shape.value_size));
    }
    launch_backward(e, n, &b, dy, qkv);
    release_before(e, &b, b.count);
    int64_t padding = shape.value_size - grads[0]->a.shape[3];
    for (int i = Q; i <= V; i++) {
        tensor_set(e, &b.grad[i], op_slice(e, b.grad[i], -1, 0, qkv[i]->a.shape[3] - padding));
        if (node_wants(n, i))
            out[i] = b.grad[i];
        else
            tensor_drop(e, b.grad[i]);
    }
    if (b.grad[MASK]) out[MASK] = b.grad[MASK];
    tensor_drop(e, dy);
}
static const struct node_kind attention_kind = {"ScaledDotProductAttentionBackward0",
                                                attention_backward};

/* --- forward ---------------------------------------------------------------------------------- */

static void save_inputs(struct engine *e, struct node *n, struct tensor *const *qkv,
                        const struct plim_attention_shape *shape, const struct attention_params *p,
                        enum plim_sdpa kernel, uint64_t seed)
{
    n->ints[0] = kernel;
    n->ints[1] = shape->has_mask;
    n->ints[2] = p->causal;
    n->ints[3] = shape->mask_batch;
    n->ints[4] = shape->mask_heads;
    n->ints[5] = (int64_t)seed;
    n->ints[6] = p->window;
    n->ints[7] = shape->rows;
    n->number = p->dropout;
    n->scale = p->scale;
    n->softcap = p->softcap;
    for (int i = Q; i <= V; i++) node_save(e, n, SAVED_Q + i, qkv[i]);
}

static void save_results(struct engine *e, struct node *n, const struct blocks *b, struct tensor *ends)
{
    node_save_output(e, n, SAVED_OUT, b->out);
    node_save_output(e, n, SAVED_LSE, b->lse);
    for (int i = 0; i < 2;
         i++) { /* random state: on the device for some kernels, otherwise on the host */
        if (i < b->rngs)
            node_save_output(e, n, SAVED_SEED + i, b->rng[i]);
        else
            node_save(e, n, SAVED_SEED + i, i ? ends : NULL);
    }
}

/* pad_bias: rows of unaligned length are copied into longer ones; the copy replaces the mask. */
static void pad_mask(struct engine *e, const struct blocks *b, struct tensor **mask)
{
    if (!b->count || b->need[0].role != PLIM_NEED_MASK) return;
    struct tensor *block = tensor_keep(tensor_empty_bytes(e, b->need[0].bytes));
    const int64_t *n = (*mask)->a.shape;
    int64_t row = b->need[0].bytes / (n[0] * n[1] * n[2] * plim_dtype_size((*mask)->a.dtype));
    int64_t stride[4] = {n[1] * n[2] * row, n[2] * row, row, 1};
    struct tensor *wide = tensor_keep(tensor_alias(e, block, 4, n, stride, 0));
    if (!e->halted) {
        wide->a.dtype = (*mask)->a.dtype;
        op_copy_(e, wide, *mask);
    }
    tensor_drop(e, block);
    tensor_drop(e, *mask);
    *mask = wide;
}

/* preprocess_mask() of a mask that needs a gradient, with differentiable operations. Rebinds *mask, which is named. */
static void spread_mask(struct engine *e, struct tensor **mask, const struct plim_attention_shape *s)
{
    int64_t padding = plim_mask_padding(s->k_length);
    if (padding) {
        struct tensor *wide = tensor_keep(op_pad(e, *mask, -1, padding));
        tensor_set(e, mask, op_slice(e, wide, -1, 0, s->k_length));
        tensor_drop(e, wide);
    }
    tensor_set(e, mask, op_expand(e, *mask, SHAPE(s->batch, s->heads, s->q_length, s->k_length)));
}

/* Runs a fused kernel. `given`: the tensors that gradients are computed for; `qkv`: the same, or their padded copies,
 * on which the kernel runs. `*mask_variable` is the caller's variable (a tensor or NULL); it may be rebound. */
static struct tensor *fused(struct engine *e, enum plim_sdpa kernel, struct tensor *const *given,
                            struct tensor *const *qkv, struct tensor **mask_variable,
                            const struct attention_params *p, struct plim_attention_shape shape)
{
    struct blocks b = {0};
    shape.training = autograd_needed(e, 3, given);
    b.count = plim_attention_forward_needs(&e->device->info, kernel, &shape, b.need);
    pad_mask(e, &b, mask_variable);
    struct tensor *mask = *mask_variable;
    struct tensor *operands[] = {given[Q], given[K], given[V], mask};
    struct node *n = e->halted ? NULL : op_node(e, &attention_kind, shape.mask_trains ? 4 : 3, operands);
    uint64_t seed = p->dropout > 0 ? e->seed++ : 0;
    if (n) save_inputs(e, n, qkv, &shape, p, kernel, seed);
    if (n && mask) node_save(e, n, SAVED_MASK, mask);
    for (int i = 0; i < b.count && !e->halted; i++) take(e, &b, i, kernel, qkv);
    if (!e->halted) {
        struct plim_op op = {
            .kind = PLIM_OP_ATTENTION,
            .n_out = (uint8_t)(b.lse ? 2 : 1),
            .n_in = (uint8_t)(p->ends ? 5 : mask ? 4 : 3),
            .sdpa = (uint8_t)kernel,
            .causal = p->causal,
            .window = p->window,
            .softcap = p->softcap,
            .alpha = p->dropout,
            .beta = p->scale,
            .seed = seed,
            .out = {&b.out->a, b.lse ? &b.lse->a : NULL},
            .in = {&qkv[Q]->a, &qkv[K]->a, &qkv[V]->a, mask ? &mask->a : NULL, p->ends ? &p->ends->a : NULL}};
        struct plim_array lent;
        hand_over(e, &op, &b, &lent);
        engine_launch(e, &op);
        release_before(e, &b, b.count);
        if (n) save_results(e, n, &b, p->ends);
    }
    for (int i = 0; i < b.rngs; i++) tensor_drop(e, b.rng[i]);
    tensor_drop(e, b.lse);
    if (!b.out || e->halted) return op_done(e, n, b.out ? b.out : e->poison, 0, NULL);
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    struct tensor *y = op_slice(e, b.out, -1, 0, given[V]->a.shape[3]);
    e->grad_enabled = grad;
    return op_done(e, n, y, 0, NULL);
}

/* FlashAttnFunc of the package flash-attn, which pads without recording it for autograd. */
static struct tensor *flash2(struct engine *e, struct tensor *const *qkv,
                             const struct attention_params *p, struct plim_attention_shape shape)
{
    struct tensor *padded[3], *no_mask = NULL;
    bool grad = e->grad_enabled;
    shape.head_size = shape.value_size = plim_sdpa_head_size(PLIM_SDPA_FLASH2, shape.head_size);
    e->grad_enabled = false;
    for (int i = Q; i <= V; i++)
        padded[i] = qkv[i]->a.shape[3] == shape.head_size
                        ? tensor_ref(qkv[i])
                        : tensor_keep(pad_heads(e, qkv[i], shape.head_size));
    e->grad_enabled = grad;
    struct tensor *y = e->halted ? e->poison
                                 : fused(e, PLIM_SDPA_FLASH2, qkv, padded, &no_mask, p, shape);
    for (int i = Q; i <= V; i++) tensor_drop(e, padded[i]);
    return y;
}

/* PyTorch's flash kernel needs head sizes that are multiples of 8: q, k, v are padded and the result is sliced. */
static struct tensor *fused_padded(struct engine *e, enum plim_sdpa kernel, struct tensor **qkv,
                                   struct tensor **mask, const struct attention_params *p,
                                   struct plim_attention_shape shape)
{
    int64_t size = shape.head_size, wide = plim_sdpa_head_size(kernel, size);
    if (wide == size) return fused(e, kernel, qkv, qkv, mask, p, shape);
    struct tensor *padded[3];
    for (int i = Q; i <= V; i++) padded[i] = tensor_keep(op_pad(e, qkv[i], -1, wide - size));
    shape.head_size = shape.value_size = wide;
    shape.contiguous_heads = false;
    struct tensor *y = e->halted ? e->poison : fused(e, kernel, padded, padded, mask, p, shape);
    y = op_slice(e, y, -1, 0, size);
    for (int i = Q; i <= V; i++) tensor_drop(e, padded[i]);
    return y;
}

struct tensor *op_sdpa(struct engine *e, struct tensor *q, struct tensor *k, struct tensor *v,
                       const struct attention_params *params)
{
    struct tensor *given[3] = {q, k, v}, *qkv[3];
    if (e->halted) return op_halted(e, 3, given);
    bool given_floats[3], cast_floats[3], autocast = e->autocast.on;
    bool is_number = params->mask && params->mask->a.dtype != PLIM_BOOL;
    struct tensor *given_mask = is_number ? tensor_hold(autocast_low(e, params->mask)) : params->mask;
    for (int i = V; i >= Q; i--) {
        given_floats[i] = tensor_enter(given[i]);
        qkv[i] = autocast_low(e, given[i]);
        cast_floats[i] = tensor_enter(qkv[i]);
    }
    e->autocast.on = false; /* operations inside the call are not cast again */
    struct tensor *y = e->poison;
    if (!e->halted) {
        struct plim_attention_shape shape =
            describe(qkv, given_mask, params->causal, params->dropout > 0);
        shape.training = autograd_needed(e, 3, qkv);
        shape.torch_2_15 = e->torch_2_15;
        if (params->ends) shape.rows = tensor_elements(params->ends) - 1;
        bool is_composed = params->broadcasts && shape.heads != shape.kv_heads;
        shape.mask_trains = given_mask && autograd_needed(e, 1, &given_mask);
        bool is_spread = given_mask && given_mask->a.stride[3] != 1; /* check_last_dim_stride_equals_1_dense() */
        enum plim_sdpa kernel = is_composed || is_spread ? PLIM_SDPA_MATH : plim_sdpa_select(&e->device->info, &shape);
        struct tensor *mask = additive_mask(e, given_mask, shape.dtype);
        if (mask && mask == given_mask) tensor_ref(mask);
        if (shape.mask_trains && kernel == PLIM_SDPA_EFFICIENT) spread_mask(e, &mask, &shape);
        if (params->flash2)
            y = flash2(e, qkv, params, shape);
        else if (kernel == PLIM_SDPA_MATH)
            y = attention_math(e, qkv[Q], qkv[K], qkv[V], mask, params);
        else
            y = fused_padded(e, kernel, qkv, &mask, params, shape);
        tensor_drop(e, mask);
    }
    for (int i = Q; i <= V; i++) {
        tensor_leave(e, qkv[i], cast_floats[i]);
        tensor_leave(e, given[i], given_floats[i]);
    }
    if (is_number) tensor_drop(e, given_mask);
    e->autocast.on = autocast;
    return y;
}
