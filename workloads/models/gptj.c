/* gptj: attention and MLP in parallel on one norm; the first part of each head is rotated, in pairs of adjacent
 * elements, by sines and cosines from a table that each block has. Scores are computed in fp32. */
#include "model.h"
#include <math.h>

/* --- the modules ------------------------------------------------------------------------------ */

/* cos and sin of the positions, and the variables from which they are computed */
struct rotary_rows {
    struct tensor *table, *indices, *both, *sin, *cos;
};

static void build_layer(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    int64_t h = c->hidden_size;
    nn_norm_create(e, p, &l->norm[0], NORM_LAYER, h, true);
    nn_linear_create(e, p, &l->k, h, h, false);
    nn_linear_create(e, p, &l->v, h, h, false);
    nn_linear_create(e, p, &l->q, h, h, false);
    nn_linear_create(e, p, &l->o, h, h, false);
    l->sinusoids = nn_buffer(e, nn_sinusoids(e, c->positions, c->rotary_dim));
    nn_linear_create(e, p, &l->fc1, h, c->intermediate_size, true);
    nn_linear_create(e, p, &l->fc2, c->intermediate_size, h, true);
}

static void build(struct engine *e, struct decoder *m)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    m->embedding = nn_parameter(e, p, INIT_WEIGHT, SHAPE(c->vocab_size, c->hidden_size));
    decoder_build_layers(e, m, build_layer);
    nn_norm_create(e, p, &m->final_norm, NORM_LAYER, c->hidden_size, true);
    for (int64_t i = 0; i < c->layers; i++) /* _init_weights() of each block's table */
        tensor_drop(e, tensor_keep(nn_sinusoids(e, c->positions, c->rotary_dim)));
    decoder_build_head(e, m, true);
}

/* --- the block -------------------------------------------------------------------------------- */

/* Returns the sines and cosines (1, S, D / 2) of the positions (1, S), in `dtype`; D: rotary_dim. All variables
 * named */
static struct rotary_rows rotary_of(struct engine *e, const struct block_call *b, enum plim_dtype dtype)
{
    struct rotary_rows t = {0};
    if (e->halted) return t;
    int64_t width = b->m->config->rotary_dim, seq = tensor_size(b->positions, 1);
    t.table = tensor_keep(op_repeat(e, op_unsqueeze(e, b->layer->sinusoids, 0), 1));
    struct tensor *wide = op_expand(e, op_unsqueeze(e, b->positions, -1), SHAPE(1, seq, width));
    t.indices = tensor_keep(op_clone(e, wide));
    struct tensor *rows = op_view(e, t.table, SHAPE(b->m->config->positions, width));
    struct tensor *taken = op_gather_rows(e, rows, op_view(e, b->positions, SHAPE(seq)));
    t.both = tensor_hold(op_to(e, op_unsqueeze(e, taken, 0), dtype));
    t.sin = tensor_keep(op_slice(e, t.both, -1, 0, width / 2));
    t.cos = tensor_keep(op_slice(e, t.both, -1, width / 2, width / 2));
    return t;
}

static void drop_rotary(struct engine *e, const struct rotary_rows *t)
{
    tensor_drop_all(e, t->table, t->indices, t->both, t->sin, t->cos);
}

/* repeat_interleave(2) of x (1, S, D / 2), lent, for all heads: (1, S, 1, D); named */
static struct tensor *repeat_for_pairs(struct engine *e, struct tensor *x)
{
    return tensor_keep(op_repeat_each(e, op_unsqueeze(e, x, 2), -1, 2));
}

/* Rebinds queries and keys (B, S, A, D) to the rotated ones. rotated, passed: their rotated and their other parts,
 * named, which the caller drops */
static void rotate_both(struct engine *e, const struct block_call *b, const struct rotary_rows *t, struct tensor *qk[2],
                        struct tensor *rotated[2], struct tensor *passed[2])
{
    int64_t width = b->m->config->rotary_dim, size = b->m->config->head_dim;
    if (e->halted) return;
    for (int i = 1; i >= 0; i--) { /* keys first */
        rotated[i] = tensor_hold(op_slice(e, qk[i], -1, 0, width)); /* itself if the whole head is rotated */
        passed[i] = tensor_keep(op_slice(e, qk[i], -1, width, size - width));
    }
    for (int i = 1; i >= 0; i--) {
        struct tensor *sin = repeat_for_pairs(e, t->sin), *cos = repeat_for_pairs(e, t->cos);
        tensor_set(e, &rotated[i], nn_rotate_pairs(e, rotated[i], cos, sin));
        tensor_drop_all(e, sin, cos);
    }
    for (int i = 1; i >= 0; i--) tensor_set(e, &qk[i], op_cat(e, 2, (struct tensor *[]){rotated[i], passed[i]}, -1));
}

/* _attn(): attention of q, k, v (B, A, S, D), lent -> (B, A, S, D), named. *weights as in nn_attention() */
static struct tensor *weigh(struct engine *e, const struct block_call *b, struct tensor *const qkv[3],
                            struct tensor **weights)
{
    const struct plim_model_config *c = b->m->config;
    *weights = e->poison;
    if (e->halted) return e->poison;
    struct tensor *q = tensor_hold(op_to(e, qkv[0], PLIM_F32)), *k = tensor_hold(op_to(e, qkv[1], PLIM_F32));
    struct tensor *w = tensor_keep(op_matmul(e, q, op_transpose(e, k, 2, 3)));
    tensor_set(e, &w, op_div_scalar(e, w, sqrt((double)c->head_dim)));
    if (b->mask) tensor_set(e, &w, op_add(e, w, b->mask));
    enum plim_dtype inside = e->halted || e->autocast.on ? PLIM_F32 : (enum plim_dtype)w->a.dtype;
    tensor_set(e, &w, op_softmax(e, w, inside));
    if (!e->halted) tensor_set(e, &w, op_to(e, w, (enum plim_dtype)qkv[2]->a.dtype));
    tensor_set(e, &w, nn_dropout(e, w, c->dropout_attention));
    struct tensor *y = tensor_keep(op_matmul(e, w, qkv[2]));
    tensor_drop_all(e, q, k);
    *weights = w;
    return y;
}

/* GPTJAttention of x (B, S, H), lent; named */
static struct tensor *attend(struct engine *e, const struct block_call *b, struct tensor *x, struct tensor **weights)
{
    enum { Q, K, V };
    const struct plim_model_config *c = b->m->config;
    const struct decoder_layer *l = b->layer;
    struct tensor *qkv[3], *rotated[2] = {NULL}, *passed[2] = {NULL};
    *weights = e->poison;
    nn_begin(e);
    qkv[Q] = tensor_keep(nn_linear(e, &l->q, x));
    qkv[K] = tensor_keep(nn_linear(e, &l->k, x));
    qkv[V] = tensor_keep(nn_linear(e, &l->v, x));
    if (e->halted) return nn_end(e, e->poison);
    int64_t batch = x->a.shape[0], seq = x->a.shape[1];
    for (int i = Q; i <= V; i++) tensor_set(e, &qkv[i], op_view(e, qkv[i], SHAPE(batch, seq, c->heads, c->head_dim)));
    tensor_set(e, &qkv[V], op_transpose(e, qkv[V], 1, 2));
    struct rotary_rows t = rotary_of(e, b, (enum plim_dtype)qkv[K]->a.dtype);
    rotate_both(e, b, &t, qkv, rotated, passed);
    for (int i = K; i >= Q; i--) tensor_set(e, &qkv[i], op_transpose(e, qkv[i], 1, 2));
    struct tensor *y = weigh(e, b, qkv, weights);
    tensor_set(e, &y, op_contiguous(e, op_transpose(e, y, 1, 2)));
    if (!e->halted) tensor_set(e, &y, op_view(e, y, SHAPE(batch, seq, c->hidden_size)));
    tensor_set(e, &y, nn_linear(e, &l->o, y));
    tensor_set(e, &y, nn_dropout(e, y, c->dropout_residual));
    drop_rotary(e, &t);
    tensor_drop_all(e, qkv[Q], qkv[K], qkv[V], rotated[0], rotated[1], passed[0], passed[1]);
    tensor_set(e, &y, nn_end(e, y));
    return y;
}

static struct tensor *block(struct engine *e, const struct block_call *b, struct tensor *x)
{
    struct tensor *weights, *h = tensor_keep(nn_norm(e, &b->layer->norm[0], x));
    struct tensor *attended = attend(e, b, h, &weights), *fed = tensor_keep(decoder_mlp(e, b, h));
    tensor_set(e, &h, op_add(e, op_add(e, attended, fed), x));
    tensor_drop_all(e, attended, fed);
    checkpoint_return_input(e, weights);
    if (!checkpoint_recomputing(e)) tensor_set(e, b->outputs, weights);
    tensor_drop(e, weights);
    return tensor_yield(h);
}

static struct tensor *body(struct engine *e, struct decoder *m, struct tensor *ids)
{
    struct tensor *weights = NULL, *embeddings = decoder_embed(e, m, ids);
    struct tensor *positions = decoder_positions(e, m, tensor_size(ids, 1));
    struct block_call call = {.mask = decoder_mask(e, m, embeddings, positions, 0),
                              .positions = positions, .outputs = &weights};
    struct tensor *x = tensor_hold(nn_dropout(e, embeddings, m->config->dropout_embedding));
    x = decoder_blocks(e, m, x, &call, NULL);
    tensor_set(e, &x, nn_norm(e, &m->final_norm, x));
    tensor_drop_all(e, embeddings, positions, call.mask, weights);
    return x;
}

const struct family plim_family_gptj = {.build = build, .block = block, .body = body};
