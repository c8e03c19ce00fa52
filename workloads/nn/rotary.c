/* Rotary position embeddings, in the steps of their Python code. */
#include "nn.h"

void nn_rotary_create(struct graph *g, struct rotary *r, const struct plim_model_config *c,
                      enum plim_rope rope)
{
    *r = (struct rotary){.rope = rope,
                         .positions = c->positions,
                         .original_positions = c->rope_original_positions,
                         .dim = (int64_t)((double)c->head_dim * c->partial_rotary_factor)};
    r->inv_freq = tensor_keep(nn_rope_frequencies(g, r));
    r->original_inv_freq = tensor_keep(op_clone(g, r->inv_freq));
    tensor_classify(g, r->inv_freq, PLIM_MEMORY_PARAMETERS);
    tensor_classify(g, r->original_inv_freq, PLIM_MEMORY_PARAMETERS);
}

void nn_rotary_initialise(struct graph *g, const struct rotary *r)
{
    tensor_drop(g, tensor_keep(nn_rope_frequencies(g, r)));
}

void nn_rotary_initialise_both(struct graph *g, const struct rotary *a, const struct rotary *b)
{
    struct tensor *first =
        tensor_keep(nn_rope_frequencies(g, a)); /* lives until the variable is bound again */
    struct tensor *second = tensor_keep(nn_rope_frequencies(g, b));
    tensor_drop(g, first);
    tensor_drop(g, second);
}

void nn_rotary(struct graph *g, struct rotary *r, struct tensor *positions, enum plim_dtype dtype,
               struct tensor **cos, struct tensor **sin)
{
    bool grad = g->grad_enabled, autocast = g->autocast;
    if (r->fp32) dtype = PLIM_F32;
    g->grad_enabled = g->autocast = false;
    nn_rope_update(g, r, positions);
    int64_t seq = tensor_size(positions, -1), half = (r->dim + 1) / 2;
    struct tensor *frequencies = tensor_keep(op_view(g, r->inv_freq, SHAPE(1, half, 1)));
    struct tensor *where = tensor_keep(op_to(g, op_view(g, positions, SHAPE(1, 1, seq)), PLIM_F32));
    struct tensor *freqs = tensor_keep(op_transpose(g, op_matmul(g, frequencies, where), 1, 2));
    struct tensor *pair[2] = {freqs, freqs};
    struct tensor *emb = tensor_keep(op_cat(g, 2, pair, -1));
    struct tensor *c = tensor_keep(op_mul_scalar(g, op_unary(g, emb, PLIM_UNARY_COS), 1));
    struct tensor *s = tensor_keep(op_mul_scalar(g, op_unary(g, emb, PLIM_UNARY_SIN), 1));
    *cos = tensor_hold(op_to(g, c, dtype));
    *sin = tensor_hold(op_to(g, s, dtype));
    tensor_drop(g, frequencies);
    tensor_drop(g, where);
    tensor_drop(g, freqs);
    tensor_drop(g, emb);
    tensor_drop(g, c);
    tensor_drop(g, s);
    g->autocast = autocast;
    g->grad_enabled = grad;
}

/* cat((-x2, x1)) of the two halves of the last dimension */
static struct tensor *rotate_half(struct graph *g, struct tensor *x)
{
    int64_t dim = tensor_size(x, -1), half = dim / 2;
    struct tensor *x1 = tensor_keep(op_slice(g, x, -1, 0, half));
    struct tensor *x2 = tensor_keep(op_slice(g, x, -1, half, dim - half));
    struct tensor *parts[2] = {op_neg(g, x2), x1};
    struct tensor *y = op_cat(g, 2, parts, -1);
    tensor_drop(g, x1);
    tensor_drop(g, x2);
    return y;
}

struct tensor *nn_rotate(struct graph *g, struct tensor *x, struct tensor *cos, struct tensor *sin)
{
    if (g->halted) return op_halted(g, 1, &x);
    bool was = tensor_enter(x);
    struct tensor *straight = op_mul(g, x, cos);
    struct tensor *turned = op_mul(g, rotate_half(g, x), sin);
    struct tensor *y = op_add(g, straight, turned);
    tensor_leave(g, x, was);
    return y;
}

/* x[..., :dim] and x[..., dim:], named */
static void cut(struct graph *g, struct tensor *x, int64_t dim, struct tensor **turns,
                struct tensor **stays)
{
    int64_t rest = tensor_size(x, -1) - dim;
    *turns = tensor_keep(rest ? op_slice(g, x, -1, 0, dim) : op_alias(g, x));
    *stays = tensor_keep(op_slice(g, x, -1, dim, rest));
}

void nn_rotate_parts(struct graph *g, struct tensor *const x[2], struct tensor *cos,
                     struct tensor *sin, struct tensor *y[2])
{
    y[0] = y[1] = g->poison;
    if (g->halted) return;
    struct tensor *turns[2], *stays[2];
    for (int i = 0; i < 2; i++) cut(g, x[i], tensor_size(cos, -1), &turns[i], &stays[i]);
    for (int i = 0; i < 2; i++) {
        struct tensor *parts[2] = {nn_rotate(g, turns[i], cos, sin), stays[i]};
        y[i] = tensor_keep(op_cat(g, 2, parts, -1));
    }
    for (int i = 0; i < 2; i++) {
        tensor_drop(g, turns[i]);
        tensor_drop(g, stays[i]);
    }
}

void nn_rotate_then_join(struct graph *g, struct tensor *const x[2], struct tensor *cos,
                         struct tensor *sin, struct tensor *y[2], struct tensor *turned[2])
{
    struct tensor *turns[2], *stays[2], *own[2];
    bool keep = turned != NULL;
    if (!keep) turned = own;
    for (int i = 0; i < 2; i++) y[i] = turned[i] = g->poison;
    if (g->halted) return;
    for (int i = 0; i < 2; i++) cut(g, x[i], tensor_size(cos, -1), &turns[i], &stays[i]);
    for (int i = 0; i < 2; i++) turned[i] = tensor_keep(nn_rotate(g, turns[i], cos, sin));
    for (int i = 0; i < 2; i++) {
        struct tensor *parts[2] = {turned[i], stays[i]};
        y[i] = tensor_keep(op_cat(g, 2, parts, -1));
        if (!keep) tensor_drop(g, turned[i]);
    }
    for (int i = 0; i < 2; i++) {
        tensor_drop(g, turns[i]);
        tensor_drop(g, stays[i]);
    }
}
