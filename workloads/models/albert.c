/* albert: bert's embeddings, and few layers, each of which runs several times in succession. */
#include "model.h"

static void build_layer(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    int64_t h = c->hidden_size;
    bert_norm_create(e, m, &l->norm[1], h);
    nn_linear_create(e, p, &l->q, h, h, true);
    nn_linear_create(e, p, &l->k, h, h, true);
    nn_linear_create(e, p, &l->v, h, h, true);
    nn_linear_create(e, p, &l->o, h, h, true);
    bert_norm_create(e, m, &l->norm[0], h);
    nn_linear_create(e, p, &l->fc1, h, c->intermediate_size, true);
    nn_linear_create(e, p, &l->fc2, c->intermediate_size, h, true);
}

static void build(struct engine *e, struct decoder *m)
{
    const struct plim_model_config *c = m->config;
    bert_build_embeddings(e, m);
    nn_linear_create(e, &m->parameters, &m->project_in, c->word_embed_proj_dim, c->hidden_size, true);
    decoder_build_layers(e, m, build_layer);
    head_build_pooler(e, m);
    bert_initialise(e, m);
    head_build(e, m);
    head_tie(e, m);
}

/* AlbertAttention: returns norm(x + dropout(attention(x))), x lent; named */
static struct tensor *attend(struct engine *e, const struct block_call *b, struct tensor *x, struct tensor **weights)
{
    const struct plim_model_config *c = b->m->config;
    const struct decoder_layer *l = b->layer;
    struct tensor *qkv[3];
    nn_begin(e);
    decoder_project_heads(e, b, x, c->heads, c->head_dim, qkv);
    struct attention_call call = bert_attention(b);
    struct tensor *y = tensor_keep(decoder_attend(e, b, &call, qkv, weights));
    tensor_set(e, &y, nn_dropout(e, y, c->dropout_residual));
    tensor_set(e, &y, nn_norm(e, &l->norm[0], op_add(e, x, y)));
    tensor_drop_all(e, qkv[0], qkv[1], qkv[2]);
    tensor_set(e, &y, nn_end(e, y));
    return y;
}

static struct tensor *block(struct engine *e, const struct block_call *b, struct tensor *x)
{
    struct tensor *weights, *attended = attend(e, b, x, &weights);
    struct tensor *h = tensor_keep(decoder_mlp(e, b, attended));
    struct tensor *y = nn_norm(e, &b->layer->norm[1], op_add(e, h, attended));
    tensor_drop_all(e, h, attended, weights);
    return y;
}

/* Returns the layer of the n-th pass. The passes are divided evenly among the layers, in order; if that leaves a
 * remainder, some layers have one pass fewer. */
static int64_t layer_of(const struct plim_model_config *c, int64_t n)
{
    return (int64_t)((double)n / ((double)c->passes / (double)c->layers));
}

static struct tensor *body(struct engine *e, struct decoder *m, struct tensor *ids)
{
    struct tensor *embeddings = bert_embed(e, m, ids);
    struct block_call call = {.mask = decoder_open_mask(e, m, embeddings, 0)};
    nn_begin(e);
    struct tensor *x = tensor_keep(nn_linear(e, &m->project_in, embeddings));
    for (int64_t n = 0; n < m->config->passes; n++) {
        int64_t layer = layer_of(m->config, n);
        nn_begin(e); /* AlbertLayerGroup */
        x = decoder_blocks_between(e, m, x, &call, layer, layer + 1);
        tensor_set(e, &x, nn_end(e, x));
    }
    tensor_set(e, &x, nn_end(e, x));
    head_pool(e, m, x);
    tensor_drop_all(e, call.mask, embeddings);
    return x;
}

const struct family plim_family_albert = {.build = build, .block = block, .body = body};
