/* stablelm: attention that rotates a part of each head, LayerNorms, and a gated MLP, either parallel to attention, of
 * the same norm, or after it. */
#include "model.h"

static void build_layer(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    int64_t h = c->hidden_size, f = c->intermediate_size, keys = c->kv_heads * c->head_dim;
    nn_linear_create(e, p, &l->q, h, h, c->attention_bias);
    nn_linear_create(e, p, &l->k, h, keys, c->attention_bias);
    nn_linear_create(e, p, &l->v, h, keys, c->attention_bias);
    nn_linear_create(e, p, &l->o, h, h, false);
    nn_linear_create(e, p, &l->gate, h, f, false);
    nn_linear_create(e, p, &l->up, h, f, false);
    nn_linear_create(e, p, &l->down, f, h, false);
    nn_norm_create(e, p, &l->norm[0], NORM_LAYER, h, true);
    if (!c->parallel_residual) nn_norm_create(e, p, &l->norm[1], NORM_LAYER, h, true);
}

static void build(struct engine *e, struct decoder *m)
{
    decoder_build_rotary(e, m, build_layer);
}

static struct tensor *attention(struct engine *e, const struct block_call *b, struct tensor *x,
                                struct tensor **weights)
{
    const struct plim_model_config *c = b->m->config;
    const struct decoder_layer *l = b->layer;
    const struct linear *projections[] = {&l->q, &l->k, &l->v};
    struct tensor *qkv[3];
    nn_begin(e);
    for (int i = 0; i < 3; i++) qkv[i] = tensor_keep(nn_linear(e, projections[i], x));
    for (int i = 0; i < 3; i++)
        tensor_set(e, &qkv[i], decoder_heads(e, qkv[i], i ? c->kv_heads : c->heads, c->head_dim));
    return nn_end(e, decoder_attend_rotated(e, b, qkv, weights));
}

static struct tensor *mlp(struct engine *e, const struct block_call *b, struct tensor *x)
{
    nn_begin(e);
    return nn_end(e, decoder_layer_mlp(e, b, x));
}

static struct tensor *block(struct engine *e, const struct block_call *b, struct tensor *x)
{
    const struct plim_model_config *c = b->m->config;
    const struct norm *norms = b->layer->norm;
    struct tensor *weights, *residual = tensor_ref(x);
    struct tensor *normed = tensor_keep(nn_norm(e, &norms[0], x));
    struct tensor *attended = tensor_keep(attention(e, b, normed, &weights));
    if (!c->parallel_residual) tensor_set(e, &residual, op_add(e, residual, attended));
    struct tensor *input =
        c->parallel_residual ? tensor_ref(normed) : tensor_keep(nn_norm(e, &norms[1], residual));
    struct tensor *fed = tensor_keep(mlp(e, b, input));
    tensor_drop(e, input);
    tensor_set(e, &fed, nn_dropout(e, fed, c->dropout_residual));
    struct tensor *y = op_add(e, c->parallel_residual ? op_add(e, residual, attended) : residual, fed);
    tensor_drop_all(e, residual, normed, attended, weights, fed);
    return y;
}

const struct family plim_family_stablelm = {.build = build, .block = block, .body = decoder_rotary_body};
