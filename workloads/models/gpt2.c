/* gpt2: learned positions, fused qkv in Conv1D layout, pre-norm blocks, dropout. */
#include "model.h"

static void build_layer(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    int64_t h = c->hidden_size;
    nn_norm_create(e, p, &l->norm[0], NORM_LAYER, h, true);
    nn_conv1d_create(e, p, &l->qkv, h, 3 * h);
    nn_conv1d_create(e, p, &l->o, h, h);
    nn_norm_create(e, p, &l->norm[1], NORM_LAYER, h, true);
    nn_conv1d_create(e, p, &l->fc1, h, c->intermediate_size);
    nn_conv1d_create(e, p, &l->fc2, c->intermediate_size, h);
}

static void build(struct engine *e, struct decoder *m)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    int64_t h = c->hidden_size;
    m->embedding = nn_parameter(e, p, INIT_WEIGHT, SHAPE(c->vocab_size, h));
    m->position_embedding = nn_parameter(e, p, INIT_WEIGHT, SHAPE(c->positions, h));
    decoder_build_layers(e, m, build_layer);
    nn_norm_create(e, p, &m->final_norm, NORM_LAYER, h, true);
    decoder_build_head(e, m, false);
}

static struct tensor *attention(struct engine *e, const struct block_call *b, struct tensor *x,
                                struct tensor **weights)
{
    const struct plim_model_config *c = b->m->config;
    int64_t h = c->hidden_size;
    struct tensor *part[3], *qkv[3];
    nn_begin(e);
    op_split(e, nn_linear(e, &b->layer->qkv, x), 2, 3, (int64_t[]){h, h, h}, part);
    qkv[1] = tensor_keep(decoder_heads(e, part[1], c->heads, c->head_dim));
    qkv[2] = tensor_keep(decoder_heads(e, part[2], c->heads, c->head_dim));
    qkv[0] = tensor_keep(decoder_heads(e, part[0], c->heads, c->head_dim));
    decoder_cache_update(e, b, qkv);
    struct attention_call call = decoder_attention(b);
    call.softmax_fp32 = false;
    call.upcasts = c->reorder_and_upcast_attn;
    struct tensor *y =
        nn_dropout(e, decoder_attend(e, b, &call, qkv, weights), c->dropout_residual);
    for (int i = 0; i < 3; i++) tensor_drop(e, qkv[i]);
    return nn_end(e, y);
}

struct tensor *gpt2_run_block(struct engine *e, const struct block_call *b, struct tensor *x,
                              struct tensor *(*attend)(struct engine *e, const struct block_call *b,
                                                       struct tensor *x, struct tensor **weights))
{
    struct tensor *weights;
    struct tensor *h = tensor_keep(nn_norm(e, &b->layer->norm[0], x));
    struct tensor *attended = tensor_keep(attend(e, b, h, &weights));
    tensor_set(e, &h, op_add(e, attended, x));
    struct tensor *residual = tensor_ref(h);
    tensor_set(e, &h, nn_norm(e, &b->layer->norm[1], h));
    struct tensor *fed = tensor_keep(decoder_mlp(e, b, h));
    tensor_set(e, &h, op_add(e, residual, fed));
    tensor_drop_all(e, attended, weights, residual, fed);
    return tensor_yield(h);
}

static struct tensor *block(struct engine *e, const struct block_call *b, struct tensor *x)
{
    return gpt2_run_block(e, b, x, attention);
}

static struct tensor *body(struct engine *e, struct decoder *m, struct tensor *ids)
{
    struct tensor *embeddings = decoder_embed(e, m, ids);
    struct tensor *positions = decoder_positions(e, m, tensor_size(ids, 1));
    struct tensor *position_embeddings =
        tensor_keep(nn_embedding(e, m->position_embedding, positions));
    struct tensor *x = tensor_keep(op_add(e, embeddings, position_embeddings));
    struct block_call call = {.mask = decoder_mask(e, m, embeddings, positions, 0),
                              .positions = positions};
    tensor_set(e, &x, nn_dropout(e, x, m->config->dropout_embedding));
    x = decoder_blocks(e, m, x, &call, NULL);
    tensor_set(e, &x, nn_norm(e, &m->final_norm, x));
    tensor_drop_all(e, embeddings, positions, position_embeddings, call.mask);
    return x;
}

const struct family plim_family_gpt2 = {.build = build, .block = block, .body = body};
