/* opt: learned positions computed from the attention mask, norms before or after attention and MLP, and embeddings with
 * a width of their own. */
#include "model.h"
#include <math.h>

enum { POSITION_OFFSET = 2 }; /* the table's first two rows were meant for padding */

/* nn.LayerNorm(h, elementwise_affine=...) */
static void norm_create(struct engine *e, struct decoder *m, struct norm *n)
{
    const struct plim_model_config *c = m->config;
    *n = (struct norm){.kind = NORM_LAYER};
    if (!c->layer_norm_elementwise_affine) return;
    nn_norm_create(e, &m->parameters, n, NORM_LAYER, c->hidden_size, true);
}

static void build_layer(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    int64_t h = c->hidden_size;
    nn_linear_create(e, p, &l->k, h, h, c->enable_bias);
    nn_linear_create(e, p, &l->v, h, h, c->enable_bias);
    nn_linear_create(e, p, &l->q, h, h, c->enable_bias);
    nn_linear_create(e, p, &l->o, h, h, c->enable_bias);
    norm_create(e, m, &l->norm[0]);
    nn_linear_create(e, p, &l->fc1, h, c->intermediate_size, c->enable_bias);
    nn_linear_create(e, p, &l->fc2, c->intermediate_size, h, c->enable_bias);
    norm_create(e, m, &l->norm[1]);
}

static bool has_projections(const struct plim_model_config *c)
{
    return c->word_embed_proj_dim != c->hidden_size;
}

static bool has_final_norm(const struct plim_model_config *c)
{
    return c->do_layer_norm_before && !c->remove_final_layer_norm;
}

static void build(struct engine *e, struct decoder *m)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    int64_t h = c->hidden_size, width = c->word_embed_proj_dim;
    m->embedding = nn_parameter(e, p, INIT_WEIGHT, SHAPE(c->vocab_size, width));
    m->position_embedding =
        nn_parameter(e, p, INIT_WEIGHT, SHAPE(c->positions + POSITION_OFFSET, h));
    if (has_projections(c)) {
        nn_linear_create(e, p, &m->project_out, h, width, false);
        nn_linear_create(e, p, &m->project_in, width, h, false);
    }
    if (has_final_norm(c)) norm_create(e, m, &m->final_norm);
    decoder_build_layers(e, m, build_layer);
    decoder_build_head(e, m, false);
}

/* --- the block -------------------------------------------------------------------------------- */

static struct tensor *attention(struct engine *e, const struct block_call *b, struct tensor *x,
                                struct tensor **weights)
{
    const struct plim_model_config *c = b->m->config;
    const struct decoder_layer *l = b->layer;
    struct tensor *qkv[3];
    nn_begin(e);
    struct tensor *scaled = op_mul_scalar(e, nn_linear(e, &l->q, x), 1 / sqrt((double)c->head_dim));
    qkv[0] = tensor_keep(decoder_heads(e, scaled, c->heads, c->head_dim));
    qkv[1] = tensor_keep(nn_linear(e, &l->k, x));
    qkv[2] = tensor_keep(nn_linear(e, &l->v, x));
    for (int i = 1; i < 3; i++)
        tensor_set(e, &qkv[i], decoder_heads(e, qkv[i], c->heads, c->head_dim));
    struct attention_call call = decoder_attention(b);
    call.scaling = 1; /* the queries are scaled */
    struct tensor *y = decoder_attend(e, b, &call, qkv, weights);
    for (int i = 0; i < 3; i++) tensor_drop(e, qkv[i]);
    return nn_end(e, y);
}

/* Rebinds *x to its norm, if `here`. `place`: the norm of attention or of the MLP. */
static void norm(struct engine *e, const struct block_call *b, int place, bool here,
                 struct tensor **x)
{
    if (here) tensor_set(e, x, nn_norm(e, &b->layer->norm[place], *x));
}

static struct tensor *block(struct engine *e, const struct block_call *b, struct tensor *x)
{
    const struct plim_model_config *c = b->m->config;
    bool before = c->do_layer_norm_before;
    struct tensor *weights, *residual = tensor_ref(x), *h = tensor_ref(x);
    norm(e, b, 0, before, &h);
    tensor_set(e, &h, attention(e, b, h, &weights));
    tensor_set(e, &h, op_dropout(e, h, c->dropout_residual));
    tensor_set(e, &h, op_add(e, residual, h));
    norm(e, b, 0, !before, &h);
    tensor_set(e, &h, op_reshape(e, h, SHAPE(tensor_elements(x) / c->hidden_size, c->hidden_size)));
    tensor_set(e, &residual, h);
    norm(e, b, 1, before, &h);
    /* The MLP is not a module of its own: each step frees the previous one's result. */
    tensor_set(e, &h, nn_linear(e, &b->layer->fc1, h));
    tensor_set(e, &h, decoder_activation(e, c->activation, h));
    tensor_set(e, &h, nn_linear(e, &b->layer->fc2, h));
    tensor_set(e, &h, op_dropout(e, h, c->dropout_residual));
    tensor_set(e, &h, op_view(e, op_add(e, residual, h), x->a.ndim, x->a.shape));
    norm(e, b, 1, !before, &h);
    tensor_drop(e, residual);
    tensor_drop(e, weights);
    return tensor_yield(h);
}

/* --- the forward ------------------------------------------------------------------------------ */

/* (cumsum(mask) * mask - 1).long(): returns a token's position in its row; named. */
static struct tensor *positions_of(struct engine *e, struct tensor *mask)
{
    struct tensor *count = tensor_keep(op_cumsum_last(e, mask, (enum plim_dtype)mask->a.dtype));
    struct tensor *place = op_add_scalar(e, op_mul(e, count, mask), -1);
    tensor_set(e, &count, op_to(e, place, PLIM_I64));
    return count;
}

/* OPTLearnedPositionalEmbedding */
static struct tensor *learned_positions(struct engine *e, const void *module, struct tensor *position_ids)
{
    struct tensor *const *weight = module;
    return op_embedding(e, *weight, op_add_scalar(e, position_ids, POSITION_OFFSET));
}

/* layerdrop, which skips random blocks, is assumed to skip none, so that memory is the maximum. */
static struct tensor *body(struct engine *e, struct decoder *m, struct tensor *ids)
{
    struct tensor *embeddings = decoder_embed(e, m, ids);
    struct tensor *given = m->attention_mask;
    struct tensor *mask =
        given ? tensor_ref(given) : tensor_keep(op_full(e, PLIM_F32, ids->a.ndim, ids->a.shape, 1));
    struct block_call call = {.positions = m->positions ? tensor_ref(m->positions) : positions_of(e, mask)};
    /* transformers 5.24 creates a mask of ones only for the positions. */
    bool is_5_17 = m->setting->transformers == PLIM_TRANSFORMERS_5_17;
    call.mask = decoder_padding_mask(e, m, embeddings, given || is_5_17 ? mask : NULL);
    struct tensor *weight = m->position_embedding;
    struct tensor *position_embeddings = tensor_keep(nn_run(e, (struct tensor *const[]){weight, NULL}, NN_EMBEDDING,
                                                            learned_positions, &weight, call.positions));
    if (m->project_in.weight) tensor_set(e, &embeddings, nn_linear(e, &m->project_in, embeddings));
    struct tensor *x = tensor_keep(op_add(e, embeddings, position_embeddings));
    x = decoder_blocks(e, m, x, &call, NULL);
    if (has_final_norm(m->config)) tensor_set(e, &x, nn_norm(e, &m->final_norm, x));
    if (m->project_out.weight) tensor_set(e, &x, nn_linear(e, &m->project_out, x));
    tensor_drop_all(e, embeddings, mask, call.positions, call.mask, position_embeddings);
    return x;
}

const struct family plim_family_opt = {.build = build, .block = block, .body = body};
