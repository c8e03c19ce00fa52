/* The blocks of whisper, bart and their relatives: self-attention, a decoder's cross-attention, and an MLP, each with a
 * residual connection and a norm before it or after the sum. */
#include "seq2seq.h"
#include <math.h>

/* --- the modules -------------------------------------------------------------------------------- */

/* Builds attention's linears in the order of the constructor: keys, values, queries, output. */
static void build_attention(struct engine *e, struct decoder *m, struct linear *const linears[4], bool key_bias)
{
    int64_t h = m->config->hidden_size;
    for (int i = 0; i < 4; i++) nn_linear_create(e, &m->parameters, linears[i], h, h, i > 0 || key_bias);
}

static void build_norm(struct engine *e, struct decoder *m, struct norm *norm)
{
    nn_norm_create(e, &m->parameters, norm, NORM_LAYER, m->config->hidden_size, true);
}

static void build_layer(struct engine *e, struct decoder *m, struct decoder_layer *l, bool decodes, bool key_bias)
{
    const struct plim_model_config *c = m->config;
    int64_t h = c->hidden_size, width = decodes ? c->decoder_intermediate : c->intermediate_size;
    build_attention(e, m, (struct linear *const[]){&l->k, &l->v, &l->q, &l->o}, key_bias);
    build_norm(e, m, &l->norm[SELF]);
    if (decodes) {
        build_attention(e, m, (struct linear *const[]){&l->cross_k, &l->cross_v, &l->cross_q, &l->cross_o}, key_bias);
        build_norm(e, m, &l->norm[CROSS]);
    }
    nn_linear_create(e, &m->parameters, &l->fc1, h, width, true);
    nn_linear_create(e, &m->parameters, &l->fc2, width, h, true);
    build_norm(e, m, &l->norm[2]);
}

void seq2seq_build_layers(struct engine *e, struct decoder *m, bool decodes, bool key_bias)
{
    const struct plim_model_config *c = m->config;
    int64_t first = decodes ? c->encoder_layers : 0, end = decodes ? c->layers : c->encoder_layers;
    for (int64_t i = first; i < end; i++) {
        m->parameters.layer = (int32_t)(i + 1);
        build_layer(e, m, &m->layers[i], decodes, key_bias);
    }
    m->parameters.layer = 0;
}

/* --- the block ---------------------------------------------------------------------------------- */

/* Returns a linear's result times `scale` (0: unscaled) as heads (B, heads, S, D); floating. `packs`: copied, so that
 * each head is contiguous. */
static struct tensor *heads_of(struct engine *e, const struct linear *l, struct tensor *x, int64_t heads, double scale,
                               bool packs)
{
    struct tensor *y = nn_linear(e, l, x);
    if (scale > 0) y = op_mul_scalar(e, y, scale);
    int64_t width = e->halted ? 1 : tensor_size(y, 2) / heads;
    y = decoder_heads(e, y, heads, width);
    return packs ? op_contiguous(e, y) : y;
}

/* Attention of x to its own tokens or to the encoder's result; floating. *weights as in nn_attention(). */
static struct tensor *attend(struct engine *e, const struct block_call *b, const struct seq2seq_layer *how, int kind,
                             struct tensor *x, struct tensor **weights)
{
    const struct plim_model_config *c = b->m->config;
    const struct decoder_layer *l = b->layer;
    bool is_cross = kind == CROSS, decodes = l->cross_q.weight != NULL;
    int64_t heads = decodes ? c->decoder_heads : c->heads, layer = l - b->m->layers;
    double scaling = 1 / sqrt((double)(c->hidden_size / heads));
    struct tensor *states = is_cross ? b->encoded : x, *qkv[3];
    nn_begin(e);
    qkv[0] = tensor_keep(heads_of(e, is_cross ? &l->cross_q : &l->q, x, heads, how->scales_queries ? scaling : 0,
                                  how->packs_heads));
    qkv[1] = tensor_keep(heads_of(e, is_cross ? &l->cross_k : &l->k, states, heads, 0, how->packs_heads));
    qkv[2] = tensor_keep(heads_of(e, is_cross ? &l->cross_v : &l->v, states, heads, 0, how->packs_heads));
    if (decodes) decoder_cache_update_once(e, b->m, is_cross ? c->layers + layer : layer, qkv);
    struct attention_call call = decoder_attention(b);
    call.bidirectional = is_cross || !decodes;
    call.mask = is_cross ? b->encoded_mask : b->mask;
    call.scaling = how->scales_queries ? 1 : scaling;
    call.softmax_fp32 = false;
    call.softmax_stays = true;
    struct tensor *y = decoder_context(e, &call, qkv, weights);
    tensor_set(e, &y, nn_linear(e, is_cross ? &l->cross_o : &l->o, y));
    tensor_drop_all(e, qkv[0], qkv[1], qkv[2]);
    return nn_end(e, tensor_yield(y));
}

static void norm_here(struct engine *e, const struct norm *norm, bool here, struct tensor **x)
{
    if (here) tensor_set(e, x, nn_norm(e, norm, *x));
}

/* Adds attention's result to *h, with norm and dropout; rebinds it. *weights: a variable that holds the weights of the
 * previous attention. */
static void add_attention(struct engine *e, const struct block_call *b, const struct seq2seq_layer *how, int kind,
                          struct tensor **h, struct tensor **weights)
{
    struct tensor *residual = tensor_ref(*h), *result = NULL;
    norm_here(e, &b->layer->norm[kind], how->norms_first, h);
    tensor_set(e, h, attend(e, b, how, kind, *h, &result));
    tensor_drop(e, *weights);
    *weights = result;
    tensor_set(e, h, op_dropout(e, *h, b->m->config->dropout_residual));
    tensor_set(e, h, op_add(e, residual, *h));
    norm_here(e, &b->layer->norm[kind], !how->norms_first, h);
    tensor_drop(e, residual);
}

/* The same for the MLP. whisper's encoder clamps fp16 results. */
static void add_mlp(struct engine *e, const struct block_call *b, const struct seq2seq_layer *how, struct tensor **h)
{
    enum { FP16_MOST = 65504 - 1000 };
    const struct plim_model_config *c = b->m->config;
    const struct decoder_layer *l = b->layer;
    struct tensor *residual = tensor_ref(*h);
    norm_here(e, &l->norm[2], how->norms_first, h);
    tensor_set(e, h, decoder_activation(e, c->activation, nn_linear(e, &l->fc1, *h)));
    tensor_set(e, h, op_dropout(e, *h, c->dropout_mlp));
    tensor_set(e, h, nn_linear(e, &l->fc2, *h));
    tensor_set(e, h, op_dropout(e, *h, c->dropout_residual));
    tensor_set(e, h, op_add(e, residual, *h));
    norm_here(e, &l->norm[2], !how->norms_first, h);
    bool clamps = how->clamps && !l->cross_q.weight && !e->halted && (*h)->a.dtype == PLIM_F16;
    if (clamps) tensor_set(e, h, op_clamp(e, *h, -FP16_MOST, FP16_MOST));
    tensor_drop(e, residual);
}

struct tensor *seq2seq_run_layer(struct engine *e, const struct block_call *b, const struct seq2seq_layer *how,
                                 struct tensor *x)
{
    struct tensor *weights = NULL, *h = tensor_ref(x);
    add_attention(e, b, how, SELF, &h, &weights);
    if (b->layer->cross_q.weight) add_attention(e, b, how, CROSS, &h, &weights);
    add_mlp(e, b, how, &h);
    tensor_drop(e, weights);
    return tensor_yield(h);
}
