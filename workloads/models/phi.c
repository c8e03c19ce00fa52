/* phi: attention that rotates a part of each head, and in parallel an MLP, both of the same norm. */
#include "model.h"

static void build_layer(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    int64_t h = c->hidden_size, norm_size = h / c->heads;
    nn_linear_create(e, p, &l->q, h, c->heads * c->head_dim, true);
    nn_linear_create(e, p, &l->k, h, c->kv_heads * c->head_dim, true);
    nn_linear_create(e, p, &l->v, h, c->kv_heads * c->head_dim, true);
    nn_linear_create(e, p, &l->o, c->heads * c->head_dim, h, true);
    if (c->qk_layernorm) {
        nn_norm_create(e, p, &l->q_norm, NORM_LAYER, norm_size, true);
        nn_norm_create(e, p, &l->k_norm, NORM_LAYER, norm_size, true);
    }
    nn_linear_create(e, p, &l->fc1, h, c->intermediate_size, true);
    nn_linear_create(e, p, &l->fc2, c->intermediate_size, h, true);
    nn_norm_create(e, p, &l->norm[0], NORM_LAYER, h, true);
}

static void build(struct engine *e, struct decoder *m)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    m->embedding = nn_parameter(e, p, INIT_WEIGHT, SHAPE(c->vocab_size, c->hidden_size));
    decoder_build_layers(e, m, build_layer);
    decoder_create_rotary(e, m, c->rope, &m->rotary);
    nn_norm_create(e, p, &m->final_norm, NORM_LAYER, c->hidden_size, true);
    nn_rotary_initialise(e, &m->rotary);
    decoder_build_head(e, m, true);
}

static struct tensor *attention(struct engine *e, const struct block_call *b, struct tensor *x,
                                struct tensor **weights)
{
    const struct plim_model_config *c = b->m->config;
    const struct decoder_layer *l = b->layer;
    struct tensor *qkv[3];
    nn_begin(e);
    qkv[0] = tensor_keep(decoder_heads(e, nn_linear(e, &l->q, x), c->heads, c->head_dim));
    qkv[1] = tensor_keep(decoder_heads(e, nn_linear(e, &l->k, x), c->kv_heads, c->head_dim));
    qkv[2] = tensor_keep(decoder_heads(e, nn_linear(e, &l->v, x), c->kv_heads, c->head_dim));
    if (c->qk_layernorm) {
        tensor_set(e, &qkv[0], nn_norm(e, &l->q_norm, qkv[0]));
        tensor_set(e, &qkv[1], nn_norm(e, &l->k_norm, qkv[1]));
    }
    return nn_end(e, decoder_attend_rotated(e, b, qkv, weights));
}

static struct tensor *block(struct engine *e, const struct block_call *b, struct tensor *x)
{
    double p = b->m->config->dropout_residual;
    struct tensor *weights;
    struct tensor *h = tensor_keep(nn_norm(e, &b->layer->norm[0], x));
    struct tensor *attended = tensor_keep(attention(e, b, h, &weights));
    tensor_set(e, &attended, nn_dropout(e, attended, p));
    struct tensor *fed = tensor_hold(nn_dropout(e, decoder_mlp(e, b, h), p));
    tensor_set(e, &h, op_add(e, op_add(e, attended, fed), x));
    tensor_drop_all(e, attended, weights, fed);
    return tensor_yield(h);
}

const struct family plim_family_phi = {.build = build, .block = block, .body = decoder_rotary_body};
