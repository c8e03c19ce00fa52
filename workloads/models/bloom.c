/* bloom: alibi, a bias on the attention scores, instead of positions; q, k, v fused head by head; an activation of its
 * own. */
#include "model.h"
#include "workloads/engine/checkpoint.h"
#include <math.h>

static void build_layer(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    struct parameters *p = &m->parameters;
    int64_t h = m->config->hidden_size;
    nn_norm_create(e, p, &l->norm[0], NORM_LAYER, h, true);
    nn_linear_create(e, p, &l->qkv, h, 3 * h, true);
    nn_linear_create(e, p, &l->o, h, h, true);
    nn_norm_create(e, p, &l->norm[1], NORM_LAYER, h, true);
    nn_linear_create(e, p, &l->fc1, h, 4 * h, true);
    nn_linear_create(e, p, &l->fc2, 4 * h, h, true);
}

static void build(struct engine *e, struct decoder *m)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    m->embedding = nn_parameter(e, p, INIT_WEIGHT, SHAPE(c->vocab_size, c->hidden_size));
    nn_norm_create(e, p, &m->embedding_norm, NORM_LAYER, c->hidden_size, true);
    decoder_build_layers(e, m, build_layer);
    nn_norm_create(e, p, &m->final_norm, NORM_LAYER, c->hidden_size, true);
    decoder_build_head(e, m, false);
}

/* --- BloomGelu: a formula of small kernels, forward and backward ------------------------------ */

/* tanh(0.79788456 * x * (1 + 0.044715 * x * x)) */
static struct tensor *gelu_tanh(struct engine *e, struct tensor *x)
{
    struct tensor *scaled = op_mul_scalar(e, x, 0.79788456);
    struct tensor *square = op_mul(e, op_mul_scalar(e, x, 0.044715), x);
    return op_tanh(e, op_mul(e, scaled, op_add_scalar(e, square, 1)));
}

/* ff * grad, where t = tanh(...), u = 0.79788456 + 0.1070322243 * x * x and
 * ff = 0.5 * x * ((1 - t * t) * u) + 0.5 * (1 + t) */
static void gelu_backward(struct engine *e, struct node *n, struct tensor **grads,
                          struct tensor **out)
{
    struct tensor *x = node_saved(e, n, 0);
    struct tensor *t = tensor_keep(gelu_tanh(e, x));
    struct tensor *half = op_mul_scalar(e, x, 0.5);
    struct tensor *slope = op_rsub_scalar(e, op_mul(e, t, t), 1);
    struct tensor *square = op_mul(e, op_mul_scalar(e, x, 0.1070322243), x);
    struct tensor *inner = op_add_scalar(e, square, 0.79788456);
    struct tensor *left = op_mul(e, half, op_mul(e, slope, inner));
    struct tensor *right = op_mul_scalar(e, op_add_scalar(e, t, 1), 0.5);
    struct tensor *ff = tensor_keep(op_add(e, left, right));
    out[0] = tensor_keep(op_mul(e, ff, grads[0]));
    tensor_drop(e, ff);
    tensor_drop(e, t);
}
static const struct node_kind gelu_kind = {"GeLUFunctionBackward", gelu_backward};

/* x * 0.5 * (1.0 + tanh(...)); an autograd function in Python, which saves its input at the end */
static struct tensor *gelu(struct engine *e, struct tensor *x)
{
    if (e->halted) return op_halted(e, 1, &x);
    struct node *n = op_node(e, &gelu_kind, 1, &x);
    bool was = tensor_enter(x), grad = e->grad_enabled;
    e->grad_enabled = false;
    struct tensor *half = op_mul_scalar(e, x, 0.5);
    struct tensor *y = op_mul(e, half, op_add_scalar(e, gelu_tanh(e, x), 1));
    e->grad_enabled = grad;
    if (n) node_save(e, n, 0, x);
    y = op_done(e, n, y, 0, NULL);
    tensor_leave(e, x, was);
    return y;
}

/* --- the block -------------------------------------------------------------------------------- */

/* Rebinds *x to residual + dropout(*x). */
static void dropout_add(struct engine *e, const struct block_call *b, struct tensor **x,
                        struct tensor *residual)
{
    struct tensor *dropped = tensor_hold(op_dropout(e, *x, b->m->config->dropout_residual));
    struct tensor *y = op_add(e, residual, dropped);
    tensor_drop(e, dropped);
    tensor_set(e, x, y);
}

/* Splits the fused projection into q, v (B * A, S, D) and k, transposed, (B * A, D, S); named. Copies, unless the batch
 * is one row. */
static void split_heads(struct engine *e, const struct plim_model_config *c, struct tensor *fused,
                        struct tensor *qkv[3])
{
    int64_t batch = fused->a.shape[0], seq = fused->a.shape[1];
    struct tensor *split = op_view(e, fused, SHAPE(batch, seq, c->heads, 3, c->head_dim));
    tensor_keep(split);
    for (int i = 0; i < 3; i++)
        qkv[i] = tensor_keep(op_transpose(e, op_select(e, split, 3, i), 1, 2));
    tensor_drop(e, split);
    for (int i = 0; i < 3; i++) {
        struct tensor *x = op_reshape(e, qkv[i], SHAPE(batch * c->heads, seq, c->head_dim));
        tensor_set(e, &qkv[i], i == 1 ? op_transpose(e, x, 1, 2) : x);
    }
}

/* (B * A, S, D) -> (B, S, A * D), a copy */
static struct tensor *merge_heads(struct engine *e, const struct plim_model_config *c,
                                  struct tensor *x)
{
    int64_t batch = x->a.shape[0] / c->heads, seq = x->a.shape[1];
    struct tensor *y = op_view(e, x, SHAPE(batch, c->heads, seq, c->head_dim));
    y = op_permute(e, y, 4, (int[]){0, 2, 1, 3});
    return op_reshape(e, y, SHAPE(batch, seq, c->hidden_size));
}

/* The attention weights (B, A, S, S), and the variables from which they are computed; all named. */
struct weights {
    struct tensor *scores, *masked, *result;
};

static struct weights weigh(struct engine *e, const struct block_call *b,
                            struct tensor *const qkv[3])
{
    const struct plim_model_config *c = b->m->config;
    int64_t batch = qkv[0]->a.shape[0] / c->heads, seq = qkv[0]->a.shape[1];
    double scale = 1 / sqrt((double)c->head_dim);
    struct weights w;
    w.scores = tensor_keep(op_baddbmm(e, b->alibi, qkv[0], qkv[1], 1, scale));
    w.masked = tensor_keep(op_view(e, w.scores, SHAPE(batch, c->heads, seq, seq)));
    tensor_set(e, &w.masked, op_add(e, w.masked, b->mask));
    struct tensor *soft = op_softmax(e, w.masked, PLIM_F32);
    w.result = tensor_hold(op_to(e, soft, (enum plim_dtype)qkv[0]->a.dtype));
    tensor_set(e, &w.result, nn_dropout(e, w.result, c->dropout_attention));
    return w;
}

/* Returns residual + attention(x), floating. *weights, named, outlives the call; the caller drops it. */
static struct tensor *attention(struct engine *e, const struct block_call *b, struct tensor *x,
                                struct tensor *residual, struct tensor **weights)
{
    const struct plim_model_config *c = b->m->config;
    int64_t seq = x->a.shape[1];
    struct tensor *qkv[3];
    nn_begin(e);
    struct tensor *fused = tensor_keep(nn_linear(e, &b->layer->qkv, x));
    split_heads(e, c, fused, qkv);
    struct weights w = weigh(e, b, qkv);
    *weights = w.result;
    struct tensor *flat = op_view(e, w.result, SHAPE(qkv[0]->a.shape[0], seq, seq));
    tensor_keep(flat);
    struct tensor *context = tensor_keep(op_bmm(e, flat, qkv[2]));
    tensor_set(e, &context, merge_heads(e, c, context));
    struct tensor *y = tensor_keep(nn_linear(e, &b->layer->o, context));
    dropout_add(e, b, &y, residual);
    tensor_drop_all(e, fused, qkv[0], qkv[1], qkv[2], w.scores, w.masked, flat, context);
    return nn_end(e, tensor_yield(y));
}

static struct tensor *mlp(struct engine *e, const struct block_call *b, struct tensor *x,
                          struct tensor *residual)
{
    nn_begin(e);
    struct tensor *h = nn_linear(e, &b->layer->fc1, x);
    nn_begin(e);
    h = tensor_keep(nn_end(e, gelu(e, h)));
    struct tensor *y = tensor_keep(nn_linear(e, &b->layer->fc2, h));
    dropout_add(e, b, &y, residual);
    tensor_drop(e, h);
    return nn_end(e, tensor_yield(y));
}

static struct tensor *block(struct engine *e, const struct block_call *b, struct tensor *x)
{
    bool behind = b->m->config->apply_residual_connection_post_layernorm;
    struct tensor *weights;
    struct tensor *normed = tensor_keep(nn_norm(e, &b->layer->norm[0], x));
    struct tensor *attended = attention(e, b, normed, behind ? normed : x, &weights);
    tensor_keep(attended);
    tensor_set(e, &normed, nn_norm(e, &b->layer->norm[1], attended));
    struct tensor *y = mlp(e, b, normed, behind ? normed : attended);
    tensor_drop(e, normed);
    tensor_drop(e, attended);
    checkpoint_return_input(e, weights);
    if (!checkpoint_recomputing(e)) tensor_set(e, b->outputs, weights);
    tensor_drop(e, weights);
    return y;
}

/* --- the forward ------------------------------------------------------------------------------ */

/* The variables of build_alibi_tensor */
struct slopes {
    struct tensor *base, *powers, *extra_base, *extra_powers, *all;
};

/* Returns the heads' slopes in .all (A): base^(1, 2, ..), and further ones with another base if the number of heads is
 * not a power of two. */
static struct slopes make_slopes(struct engine *e, int64_t heads)
{
    int64_t power = 1;
    while (2 * power <= heads) power *= 2;
    struct slopes s = {0};
    s.base = tensor_keep(op_full(e, PLIM_F32, 0, NULL, exp2(-8.0 / (double)power)));
    s.powers = tensor_keep(op_arange(e, PLIM_I32, power, 1, 1));
    s.all = tensor_keep(op_pow(e, s.base, s.powers));
    if (power == heads) return s;
    s.extra_base = tensor_keep(op_full(e, PLIM_F32, 0, NULL, exp2(-4.0 / (double)power)));
    s.extra_powers = tensor_keep(op_arange(e, PLIM_I32, heads - power, 1, 2));
    struct tensor *parts[2] = {s.all, op_pow(e, s.extra_base, s.extra_powers)};
    tensor_set(e, &s.all, op_cat(e, 2, parts, 0));
    return s;
}

/* Drops all variables except the slopes. */
static void drop_powers(struct engine *e, const struct slopes *s)
{
    tensor_drop_all(e, s->base, s->powers, s->extra_base, s->extra_powers);
}

/* Returns the head's slope times the token's position, (B * A, 1, S) in `dtype`; named. */
static struct tensor *build_alibi(struct engine *e, int64_t heads, struct tensor *mask,
                                  enum plim_dtype dtype)
{
    int64_t batch = mask->a.shape[0], seq = mask->a.shape[1];
    enum plim_dtype type = (enum plim_dtype)mask->a.dtype;
    struct slopes s = make_slopes(e, heads);
    struct tensor *positions = op_mul(e, op_add_scalar(e, op_cumsum_last(e, mask, type), -1), mask);
    tensor_keep(positions = op_unsqueeze(e, positions, 1));
    struct tensor *alibi = tensor_keep(op_mul(e, op_unsqueeze(e, s.all, -1), positions));
    struct tensor *rows = op_reshape(e, alibi, SHAPE(batch * heads, 1, seq));
    struct tensor *y = tensor_hold(op_to(e, rows, dtype));
    drop_powers(e, &s);
    tensor_drop_all(e, s.all, positions, alibi);
    return y;
}

/* The same without a mask, from transformers 5.24 on: the batch shares one row of positions. *slopes, a variable of the
 * forward, lives until its end; named. */
static struct tensor *build_alibi_5_24(struct engine *e, int64_t heads, int64_t batch, int64_t seq,
                                       enum plim_dtype dtype, struct tensor **slopes)
{
    struct slopes s = make_slopes(e, heads);
    drop_powers(e, &s);
    struct tensor *column = op_unsqueeze(e, op_unsqueeze(e, s.all, -1), -1);
    struct tensor *alibi = tensor_keep(op_mul(e, column, op_arange(e, PLIM_I64, seq, 0, 1)));
    struct tensor *all = op_expand(e, op_unsqueeze(e, alibi, 0), SHAPE(batch, heads, 1, seq));
    struct tensor *rows =
        tensor_keep(op_reshape(e, op_clone(e, all), SHAPE(batch * heads, 1, seq)));
    struct tensor *y = tensor_hold(op_to(e, rows, dtype));
    tensor_drop(e, rows);
    tensor_drop(e, alibi);
    *slopes = s.all;
    return y;
}

static struct tensor *body(struct engine *e, struct decoder *m, struct tensor *ids)
{
    struct tensor *weights = NULL;
    struct tensor *embeddings = decoder_embed(e, m, ids);
    struct tensor *x = tensor_keep(nn_norm(e, &m->embedding_norm, embeddings));
    struct block_call call = {.outputs = &weights};
    enum plim_dtype dtype = (enum plim_dtype)x->a.dtype;
    struct tensor *mask = NULL, *slopes = NULL;
    int64_t batch = ids->a.shape[0], seq = ids->a.shape[1];
    if (m->attention_mask) {
        mask = tensor_ref(m->attention_mask);
        call.alibi = build_alibi(e, m->config->heads, mask, dtype);
    } else if (m->setting->transformers == PLIM_TRANSFORMERS_5_17) {
        mask = tensor_keep(op_full(e, PLIM_F32, ids->a.ndim, ids->a.shape, 1));
        call.alibi = build_alibi(e, m->config->heads, mask, dtype);
    } else {
        call.alibi = build_alibi_5_24(e, m->config->heads, batch, seq, dtype, &slopes);
    }
    call.mask = decoder_padding_mask(e, m, embeddings, mask);
    x = decoder_blocks(e, m, x, &call, NULL);
    tensor_set(e, &x, nn_norm(e, &m->final_norm, x));
    tensor_drop_all(e, embeddings, mask, slopes, call.alibi, call.mask, weights);
    return x;
}

const struct family plim_family_bloom = {.build = build, .block = block, .body = body};
