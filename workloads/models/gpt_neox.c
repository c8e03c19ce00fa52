/* gpt_neox (pythia): q, k, v fused head by head, attention that rotates a part of each head, and the MLP in parallel to
 * it or after it. */
#include "model.h"

static void build_layer(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    int64_t h = c->hidden_size;
    nn_norm_create(e, p, &l->norm[0], NORM_LAYER, h, true);
    nn_norm_create(e, p, &l->norm[1], NORM_LAYER, h, true);
    nn_linear_create(e, p, &l->qkv, h, 3 * h, c->attention_bias);
    nn_linear_create(e, p, &l->o, h, h, c->attention_bias);
    nn_linear_create(e, p, &l->fc1, h, c->intermediate_size, true);
    nn_linear_create(e, p, &l->fc2, c->intermediate_size, h, true);
}

static void build(struct engine *e, struct decoder *m)
{
    decoder_build_rotary(e, m, build_layer);
}

static struct tensor *attention(struct engine *e, const struct block_call *b, struct tensor *x,
                                struct tensor **weights)
{
    const struct plim_model_config *c = b->m->config;
    int64_t d = c->head_dim;
    struct tensor *part[3], *qkv[3];
    nn_begin(e);
    struct tensor *fused = nn_linear(e, &b->layer->qkv, x);
    fused = tensor_keep(decoder_heads(e, fused, c->heads, 3 * d));
    op_split(e, fused, 3, 3, (int64_t[]){d, d, d}, part);
    for (int i = 0; i < 3; i++) tensor_keep(part[i]);
    struct tensor *cos = tensor_keep(op_unsqueeze(e, b->cos, 1));
    struct tensor *sin = tensor_keep(op_unsqueeze(e, b->sin, 1));
    nn_rotate_then_join(e, part, cos, sin, qkv, NULL);
    qkv[2] = part[2];
    decoder_cache_update(e, b, qkv);
    struct attention_call call = decoder_attention(b);
    struct tensor *y = decoder_attend(e, b, &call, qkv, weights);
    tensor_drop_all(e, fused, cos, sin, part[0], part[1], qkv[0], qkv[1], qkv[2]);
    return nn_end(e, y);
}

static struct tensor *block(struct engine *e, const struct block_call *b, struct tensor *x)
{
    const struct plim_model_config *c = b->m->config;
    const struct norm *norm = b->layer->norm;
    struct tensor *weights;
    struct tensor *normed = tensor_keep(nn_norm(e, &norm[0], x));
    struct tensor *attended = tensor_keep(attention(e, b, normed, &weights));
    tensor_drop(e, normed);
    tensor_set(e, &attended, nn_dropout(e, attended, c->dropout_residual));
    if (!c->parallel_residual) tensor_set(e, &attended, op_add(e, attended, x));
    normed = tensor_keep(nn_norm(e, &norm[1], c->parallel_residual ? x : attended));
    struct tensor *fed = tensor_keep(decoder_mlp(e, b, normed));
    tensor_drop(e, normed);
    tensor_set(e, &fed, nn_dropout(e, fed, c->dropout_residual));
    struct tensor *y = op_add(e, fed, attended);
    if (c->parallel_residual) y = op_add(e, y, x);
    tensor_drop_all(e, attended, weights, fed);
    return y;
}

const struct family plim_family_gpt_neox = {
    .build = build, .block = block, .body = decoder_rotary_body};
