/* gpt_bigcode (santacoder, starcoder): gpt2 with linears, and with one key and value head for all queries
 * (multi_query). */
#include "model.h"

enum { Q, K, V };

static void build_layer(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    int64_t h = c->hidden_size;
    nn_norm_create(e, p, &l->norm[0], NORM_LAYER, h, true);
    nn_linear_create(e, p, &l->qkv, h, h + 2 * c->kv_heads * c->head_dim, true);
    nn_linear_create(e, p, &l->o, h, h, true);
    nn_norm_create(e, p, &l->norm[1], NORM_LAYER, h, true);
    nn_linear_create(e, p, &l->fc1, h, c->intermediate_size, true);
    nn_linear_create(e, p, &l->fc2, c->intermediate_size, h, true);
}

/* torch.tril(torch.ones(..)); floating */
static struct tensor *lower(struct engine *e, int64_t positions)
{
    return op_tril(e, op_full(e, PLIM_BOOL, SHAPE(positions, positions), 1), 0);
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
    m->causal_bias = nn_buffer(e, lower(e, c->positions));
    tensor_drop(e, tensor_keep(lower(
                       e, c->positions))); /* _init_weights() copies a new one */
    decoder_build_head(e, m, false);
}

/* Splits y, the fused projection's result, floating, into queries (B, A, S, D), and keys and values (B, 1, S, D);
 * named */
static void split_one_key(struct engine *e, const struct plim_model_config *c, struct tensor *y,
                          struct tensor *qkv[3])
{
    struct tensor *part[3];
    int64_t batch = y->a.shape[0], seq = y->a.shape[1], d = c->head_dim;
    op_split(e, op_unsqueeze(e, y, 1), 3, 3, (int64_t[]){c->hidden_size, d, d}, part);
    for (int i = Q; i <= V; i++) qkv[i] = tensor_keep(part[i]);
    tensor_set(e, &qkv[Q],
               op_transpose(e, op_view(e, qkv[Q], SHAPE(batch, seq, c->heads, d)), 1, 2));
}

static void split_heads(struct engine *e, const struct plim_model_config *c, struct tensor *y,
                        struct tensor *qkv[3])
{
    struct tensor *part[3];
    int64_t d = c->head_dim;
    op_split(e, decoder_heads(e, y, c->heads, 3 * d), 3, 3, (int64_t[]){d, d, d}, part);
    for (int i = Q; i <= V; i++) qkv[i] = tensor_keep(part[i]);
}

static struct tensor *attention(struct engine *e, const struct block_call *b, struct tensor *x,
                                struct tensor **weights)
{
    const struct plim_model_config *c = b->m->config;
    struct tensor *qkv[3] = {e->poison, e->poison, e->poison};
    nn_begin(e);
    struct tensor *y = nn_linear(e, &b->layer->qkv, x);
    if (!e->halted) (c->multi_query ? split_one_key : split_heads)(e, c, y, qkv);
    struct attention_call call = decoder_attention(b);
    if (!c->scale_attn_weights) call.scaling = 1;
    if (!b->ends) call.documents = 0; /* blocks receive no positions */
    y = nn_dropout(e, decoder_attend(e, b, &call, qkv, weights), c->dropout_residual);
    for (int i = Q; i <= V; i++) tensor_drop(e, qkv[i]);
    return nn_end(e, y);
}

static struct tensor *block(struct engine *e, const struct block_call *b, struct tensor *x)
{
    return gpt2_run_block(e, b, x, attention);
}

static struct tensor *body(struct engine *e, struct decoder *m, struct tensor *ids)
{
    struct tensor *embeddings = decoder_embed(e, m, ids);
    struct tensor *positions = decoder_positions(e, m, tensor_size(ids, 1));
    struct block_call call = {.mask = decoder_mask(e, m, embeddings, positions, 0)};
    struct tensor *position_embeddings = tensor_keep(nn_embedding(e, m->position_embedding, positions));
    struct tensor *x = tensor_keep(op_add(e, embeddings, position_embeddings));
    tensor_set(e, &x, nn_dropout(e, x, m->config->dropout_embedding));
    x = decoder_blocks(e, m, x, &call, NULL);
    tensor_set(e, &x, nn_norm(e, &m->final_norm, x));
    tensor_drop_all(e, embeddings, positions, position_embeddings, call.mask);
    return x;
}

const struct family plim_family_gpt_bigcode = {.build = build, .block = block, .body = body};
