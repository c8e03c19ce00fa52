/* falcon: one projection for queries, keys and values, with one key head for all queries (falcon-7b) or one for each
 * group of them (falcon-40b), rotary attention with a mask that is always created, and the MLP in parallel to attention
 * or after it. */
#include "model.h"
#include "workloads/engine/checkpoint.h"
#include <math.h>

enum { Q, K, V };
enum { BEFORE_ATTENTION, BEHIND_ATTENTION, OF_ATTENTION, OF_MLP }; /* indices of norms */

/* Builds a FalconLinear, which replace_with_bnb_linear() does not quantise, because it does not know the class. */
static void build_linear(struct engine *e, struct decoder *m, struct linear *l, int64_t in,
                         int64_t out)
{
    nn_linear_create(e, &m->parameters, l, in, out, m->config->mlp_bias);
    m->parameters.linear_elements -= in * out;
    l->in_steps = true;
}

static void build_layer(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    int64_t h = c->hidden_size;
    bool has_two = c->parallel_residual && c->norms_in_parallel == 2;
    build_linear(e, m, &l->qkv, h, (c->heads + 2 * c->kv_heads) * c->head_dim);
    build_linear(e, m, &l->o, h, h);
    build_linear(e, m, &l->fc1, h, c->intermediate_size);
    build_linear(e, m, &l->fc2, c->intermediate_size, h);
    if (!c->parallel_residual)
        nn_norm_create(e, p, &l->norm[BEHIND_ATTENTION], NORM_LAYER, h, true);
    nn_norm_create(e, p, &l->norm[has_two ? OF_ATTENTION : BEFORE_ATTENTION], NORM_LAYER, h, true);
    if (has_two) nn_norm_create(e, p, &l->norm[OF_MLP], NORM_LAYER, h, true);
}

static void build(struct engine *e, struct decoder *m)
{
    decoder_build_rotary(e, m, build_layer);
}

/* _split_heads() with groups, whose keys and values are broadcast to all of their queries; (B, S, A, D) each, named */
static void split_groups(struct engine *e, const struct plim_model_config *c, struct tensor *fused,
                         struct tensor *qkv[3])
{
    int64_t batch = fused->a.shape[0], seq = fused->a.shape[1], groups = c->heads / c->kv_heads,
            d = c->head_dim;
    struct tensor *all =
                      tensor_keep(op_view(e, fused, SHAPE(batch, seq, c->kv_heads, groups + 2, d))),
                  *part[3];
    part[Q] = tensor_keep(op_slice(e, all, 3, 0, groups));
    for (int i = K; i <= V; i++) part[i] = tensor_keep(op_index_at(e, all, 3, groups + i - K));
    for (int i = K; i <= V; i++)
        tensor_set(e, &part[i], op_expand(e, part[i], SHAPE(batch, seq, c->kv_heads, groups, d)));
    for (int i = Q; i <= V; i++)
        qkv[i] = tensor_keep(op_reshape(e, part[i], SHAPE(batch, seq, c->heads, d)));
    tensor_drop_all(e, all, part[Q], part[K], part[V]);
}

/* The same without groups: one key head for all queries, or one for each */
static void split_heads(struct engine *e, const struct plim_model_config *c, struct tensor *fused,
                        struct tensor *qkv[3])
{
    int64_t batch = fused->a.shape[0], seq = fused->a.shape[1], d = c->head_dim;
    if (c->multi_query) {
        struct tensor *all = tensor_keep(op_view(e, fused, SHAPE(batch, seq, c->heads + 2, d)));
        qkv[Q] = tensor_keep(op_slice(e, all, 2, 0, c->heads));
        for (int i = K; i <= V; i++) qkv[i] = tensor_keep(op_index_at(e, all, 2, c->heads + i - K));
        tensor_drop(e, all);
        return;
    }
    struct tensor *all = tensor_keep(op_view(e, fused, SHAPE(batch, seq, c->heads, 3, d)));
    for (int i = Q; i <= V; i++) qkv[i] = tensor_keep(op_select(e, all, 3, i));
    tensor_drop(e, all);
}

/* Rebinds queries and keys to the rotated ones. */
static void rotate(struct engine *e, const struct block_call *b, struct tensor *qkv[3])
{
    struct tensor *cos = tensor_keep(op_unsqueeze(e, b->cos, 1)),
                  *sin = tensor_keep(op_unsqueeze(e, b->sin, 1));
    struct tensor *rotated[2];
    for (int i = Q; i <= K; i++) rotated[i] = tensor_keep(nn_rotate(e, qkv[i], cos, sin));
    for (int i = Q; i <= K; i++) {
        tensor_drop(e, qkv[i]);
        qkv[i] = rotated[i];
    }
    tensor_drop_all(e, cos, sin);
}

/* Returns the weights (B, A, S, S) of eager attention, in `dtype`; named */
static struct tensor *weigh(struct engine *e, const struct block_call *b,
                            struct tensor *const qkv[3], enum plim_dtype dtype)
{
    double scale = 1 / sqrt((double)b->m->config->head_dim);
    struct tensor *w = tensor_keep(op_matmul(e, qkv[Q], op_transpose(e, qkv[K], 2, 3)));
    tensor_set(e, &w, op_mul_scalar_(e, w, scale));
    tensor_set(e, &w, op_softmax(e, op_add(e, w, b->mask), dtype));
    return w;
}

/* Returns attention of q, k, v (B, A, S, D), lent: (B, S, A * D), named. *weights as in nn_attention() */
static struct tensor *context(struct engine *e, const struct block_call *b,
                              struct tensor *const qkv[3], enum plim_dtype dtype,
                              struct tensor **weights)
{
    const struct plim_model_config *c = b->m->config;
    struct attention_call call = decoder_attention(b);
    struct attention_params p = {.mask = b->mask, .scale = call.scaling, .broadcasts = true};
    if (call.function == ATTENTION_FLASH2) return decoder_context(e, &call, qkv, weights);
    int64_t batch = qkv[Q]->a.shape[0], seq = qkv[Q]->a.shape[2];
    if (call.function == ATTENTION_EAGER) *weights = weigh(e, b, qkv, dtype);
    struct tensor *y = tensor_keep(*weights ? op_matmul(e, *weights, qkv[V])
                                            : op_sdpa(e, qkv[Q], qkv[K], qkv[V], &p));
    tensor_set(e, &y, op_permute(e, y, 4, (int[]){0, 2, 1, 3}));
    tensor_set(e, &y, op_reshape(e, y, SHAPE(batch, seq, c->hidden_size)));
    return y;
}

static struct tensor *attention(struct engine *e, const struct block_call *b, struct tensor *x,
                                struct tensor **weights)
{
    const struct plim_model_config *c = b->m->config;
    struct tensor *qkv[3];
    *weights = NULL;
    nn_begin(e);
    struct tensor *fused = tensor_keep(nn_linear(e, &b->layer->qkv, x));
    qkv[Q] = qkv[K] = qkv[V] = e->poison;
    if (!e->halted) (c->new_architecture ? split_groups : split_heads)(e, c, fused, qkv);
    for (int i = Q; i <= V; i++) tensor_set(e, &qkv[i], op_transpose(e, qkv[i], 1, 2));
    rotate(e, b, qkv);
    struct tensor *y =
        e->halted ? e->poison : context(e, b, qkv, (enum plim_dtype)x->a.dtype, weights);
    tensor_set(e, &y, nn_linear(e, &b->layer->o, y));
    tensor_drop_all(e, fused, qkv[Q], qkv[K], qkv[V]);
    return nn_end(e, tensor_yield(y));
}

/* dropout_add(): residual (lent) + dropout(x), x lent; floating */
static struct tensor *dropout_add(struct engine *e, struct tensor *x, struct tensor *residual,
                                  double p)
{
    struct tensor *dropped = tensor_hold(op_dropout(e, x, p));
    struct tensor *y = op_add(e, residual, dropped);
    tensor_drop(e, dropped);
    return y;
}

/* For an MLP after attention: rebinds *residual to the sum with attention's result, and returns the MLP's input,
 * named. */
static struct tensor *pass_attention(struct engine *e, const struct block_call *b,
                                     struct tensor *attended, struct tensor **residual)
{
    tensor_set(e, residual, dropout_add(e, attended, *residual, b->m->config->dropout_attention));
    return tensor_keep(nn_norm(e, &b->layer->norm[BEHIND_ATTENTION], *residual));
}

static struct tensor *block(struct engine *e, const struct block_call *b, struct tensor *x)
{
    const struct plim_model_config *c = b->m->config;
    const struct norm *norm = b->layer->norm;
    bool has_two = norm[OF_MLP].weight, is_parallel = c->parallel_residual;
    struct tensor *weights, *residual = tensor_ref(x);
    struct tensor *normed =
        tensor_keep(nn_norm(e, &norm[has_two ? OF_ATTENTION : BEFORE_ATTENTION], x));
    struct tensor *fed = has_two ? tensor_keep(nn_norm(e, &norm[OF_MLP], x)) : tensor_ref(normed);
    struct tensor *attended = tensor_keep(attention(e, b, normed, &weights));
    if (!is_parallel) {
        tensor_drop(e, fed);
        fed = pass_attention(e, b, attended, &residual);
    }
    struct tensor *y = tensor_keep(decoder_mlp(e, b, fed));
    if (is_parallel) tensor_set(e, &y, op_plus_(e, y, attended));
    tensor_set(e, &y, dropout_add(e, y, residual, c->dropout_residual));
    tensor_drop_all(e, normed, fed, attended, residual);
    if (weights) {
        checkpoint_return_input(e, weights);
        if (!checkpoint_recomputing(e)) tensor_set(e, b->outputs, weights);
        tensor_drop(e, weights);
    }
    return tensor_yield(y);
}

static struct tensor *body(struct engine *e, struct decoder *m, struct tensor *ids)
{
    struct tensor *weights = NULL, *embeddings = decoder_embed(e, m, ids);
    struct block_call call = {.outputs = &weights,
                              .positions = decoder_positions(e, m, tensor_size(ids, 1))};
    call.mask = decoder_padding_mask(e, m, embeddings, m->attention_mask);
    nn_begin(e); /* the rotary embedding; no nn_end(), as its results need no gradient */
    nn_rotary(e, &m->rotary, call.positions, (enum plim_dtype)embeddings->a.dtype, &call.cos,
              &call.sin);
    struct tensor *x = decoder_blocks(e, m, tensor_ref(embeddings), &call, NULL);
    tensor_set(e, &x, nn_norm(e, &m->final_norm, x));
    tensor_drop_all(e, embeddings, call.positions, call.mask, call.cos, call.sin, weights);
    return x;
}

const struct family plim_family_falcon = {.build = build, .block = block, .body = body};
