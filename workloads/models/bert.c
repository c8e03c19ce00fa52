/* bert, roberta, xlm-roberta, electra and distilbert: learned positions, norms after attention and MLP; a token attends
 * to the whole row. */
#include "model.h"

/* The traits of these families. */
static const struct traits {
    bool types;            /* token types are embedded too */
    bool head_first;       /* the head is built before the model */
    bool positions_last;   /* the position embedding is built after the norm */
    bool adds_past;        /* the past length, 0, is added to the positions */
    bool whole_modules;    /* attention includes its output projection, the MLP a dropout */
} all_traits[PLIM_FAMILY_COUNT] = {
    [PLIM_FAMILY_BERT] = {.types = true},
    [PLIM_FAMILY_ROBERTA] = {.types = true, .positions_last = true, .adds_past = true},
    [PLIM_FAMILY_XLM_ROBERTA] = {.types = true, .head_first = true, .positions_last = true, .adds_past = true},
    [PLIM_FAMILY_ELECTRA] = {.types = true},
    [PLIM_FAMILY_ALBERT] = {.types = true}, /* albert.c */
    [PLIM_FAMILY_DISTILBERT] = {.whole_modules = true},
};

static const struct traits *traits_of(const struct decoder *m)
{
    return &all_traits[m->config->family];
}

/* --- the modules ------------------------------------------------------------------------------ */

void bert_norm_create(struct engine *e, struct decoder *m, struct norm *n, int64_t width)
{
    nn_norm_create(e, &m->parameters, n, NORM_LAYER, width, true);
    n->epsilon = 1e-12;
}

/* Returns the width of the embeddings. */
static int64_t width_of(const struct decoder *m)
{
    return m->config->word_embed_proj_dim ? m->config->word_embed_proj_dim : m->config->hidden_size;
}

static void build_positions(struct engine *e, struct decoder *m)
{
    m->position_embedding = nn_parameter(e, &m->parameters, INIT_WEIGHT, SHAPE(m->config->positions, width_of(m)));
}

void bert_build_embeddings(struct engine *e, struct decoder *m)
{
    const struct plim_model_config *c = m->config;
    const struct traits *t = traits_of(m);
    struct parameters *p = &m->parameters;
    int64_t width = width_of(m);
    m->embedding = nn_parameter(e, p, INIT_WEIGHT, SHAPE(c->vocab_size, width));
    if (!t->positions_last) build_positions(e, m);
    if (t->types) m->type_embedding = nn_parameter(e, p, INIT_WEIGHT, SHAPE(c->type_vocab_size, width));
    bert_norm_create(e, m, &m->embedding_norm, width);
    m->position_ids = nn_buffer(e, op_arange(e, PLIM_I64, c->positions, 0, 1));
    if (t->types) m->type_ids = nn_buffer(e, op_full(e, PLIM_I64, SHAPE(c->positions, 1), 0));
    if (t->positions_last) build_positions(e, m);
}

void bert_build_layer(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    int64_t h = c->hidden_size;
    nn_linear_create(e, p, &l->q, h, h, true);
    nn_linear_create(e, p, &l->k, h, h, true);
    nn_linear_create(e, p, &l->v, h, h, true);
    nn_linear_create(e, p, &l->o, h, h, true);
    bert_norm_create(e, m, &l->norm[0], h);
    nn_linear_create(e, p, &l->fc1, h, c->intermediate_size, true);
    nn_linear_create(e, p, &l->fc2, c->intermediate_size, h, true);
    bert_norm_create(e, m, &l->norm[1], h);
}

/* Initialises the buffers and sinusoidal positions again, as _init_weights() does: sines and cosines are computed on
 * the host, and each fills every second column at once; position_ids are counted again. */
void bert_initialise(struct engine *e, const struct decoder *m)
{
    const struct plim_model_config *c = m->config;
    if (c->sinusoidal_positions) {
        int64_t sines = (c->hidden_size + 1) / 2, width[2] = {sines, c->hidden_size - sines};
        struct tensor *table =
            tensor_keep(op_full(e, m->parameters.dtype, SHAPE(c->positions, c->hidden_size), 0));
        for (int i = 0; i < 2; i++)
            tensor_drop(e, tensor_keep(op_full(e, PLIM_F32, SHAPE(c->positions, width[i]), 0)));
        tensor_drop(e, table);
    }
    tensor_drop(e, tensor_keep(op_arange(e, PLIM_I64, c->positions, 0, 1)));
}

static void build(struct engine *e, struct decoder *m)
{
    bool head_first = traits_of(m)->head_first;
    int64_t h = m->config->hidden_size;
    if (head_first) head_build(e, m);
    bert_build_embeddings(e, m);
    if (width_of(m) != h) nn_linear_create(e, &m->parameters, &m->project_in, width_of(m), h, true);
    decoder_build_layers(e, m, bert_build_layer);
    head_build_pooler(e, m);
    bert_initialise(e, m);
    if (!head_first) head_build(e, m);
    head_tie(e, m);
}

/* --- the embeddings --------------------------------------------------------------------------- */

struct tensor *decoder_counted_positions(struct engine *e, const struct decoder *m, struct tensor *ids)
{
    double padding = m->config->has_padding_idx ? (double)m->config->pad_token_id : 0;
    struct tensor *mask = tensor_keep(
        op_to(e, op_compare_scalar(e, PLIM_BINARY_NE, ids, padding), PLIM_I32));
    struct tensor *count = op_to(e, op_cumsum_last(e, mask, PLIM_I64), PLIM_I32);
    if (traits_of(m)->adds_past) count = op_add_scalar(e, count, 0);
    struct tensor *position_ids = tensor_keep(op_mul(e, count, mask));
    struct tensor *y = tensor_keep(op_add_scalar(e, op_to(e, position_ids, PLIM_I64), padding));
    tensor_drop(e, mask);
    tensor_drop(e, position_ids);
    return y;
}

/* Returns the tokens' positions: (1, S), a view of a buffer, or (B, S); named */
static struct tensor *positions_of(struct engine *e, const struct decoder *m, struct tensor *ids)
{
    if (plim_family_info(m->config->family)->counts_positions) return decoder_counted_positions(e, m, ids);
    int64_t seq = tensor_size(ids, 1);
    return tensor_keep(op_view(e, op_slice(e, m->position_ids, 0, 0, seq), SHAPE(1, seq)));
}

/* Returns the token types, which are not in the batch: those of a buffer at these positions, expanded to (B, S);
 * named */
static struct tensor *types_of(struct engine *e, const struct decoder *m, struct tensor *ids,
                               struct tensor *positions)
{
    struct tensor *types = op_embedding(e, m->type_ids, positions);
    types = op_view(e, types, positions->a.ndim, positions->a.shape);
    return tensor_keep(op_expand(e, types, ids->a.ndim, ids->a.shape));
}

struct tensor *bert_embed(struct engine *e, struct decoder *m, struct tensor *ids)
{
    bool typed = traits_of(m)->types;
    nn_begin(e);
    struct tensor *positions = positions_of(e, m, ids), *types = NULL, *kinds = NULL;
    if (typed) types = types_of(e, m, ids, positions);
    struct tensor *tokens = decoder_embed(e, m, ids), *x = tensor_ref(tokens);
    if (typed) {
        kinds = tensor_keep(nn_embedding(e, m->type_embedding, types));
        tensor_set(e, &x, op_add(e, tokens, kinds));
    }
    struct tensor *position_embeddings = tensor_keep(nn_embedding(e, m->position_embedding, positions));
    tensor_set(e, &x, op_add(e, x, position_embeddings));
    tensor_set(e, &x, nn_norm(e, &m->embedding_norm, x));
    tensor_set(e, &x, nn_dropout(e, x, m->config->dropout_embedding));
    tensor_set(e, &x, nn_end(e, x));
    tensor_drop_all(e, positions, types, tokens, kinds, position_embeddings);
    return x;
}

/* --- the block -------------------------------------------------------------------------------- */

struct attention_call bert_attention(const struct block_call *b)
{
    struct attention_call call = decoder_attention(b);
    call.bidirectional = true;
    call.softmax_fp32 = false;
    call.softmax_stays = true;
    return call;
}

struct tensor *bert_output(struct engine *e, const struct block_call *b, const struct linear *l, const struct norm *n,
                           struct tensor *x, struct tensor *residual)
{
    nn_begin(e);
    struct tensor *h = tensor_keep(nn_linear(e, l, x));
    tensor_set(e, &h, nn_dropout(e, h, b->m->config->dropout_residual));
    struct tensor *y = op_add(e, h, residual);
    if (n) y = nn_norm(e, n, y);
    tensor_drop(e, h);
    return nn_end(e, y);
}

/* Returns norm(x + attention(x)); named */
static struct tensor *attend(struct engine *e, const struct block_call *b, struct tensor *x,
                             struct tensor **weights)
{
    const struct plim_model_config *c = b->m->config;
    const struct decoder_layer *l = b->layer;
    bool projects = traits_of(b->m)->whole_modules;
    struct tensor *qkv[3];
    if (!projects) nn_begin(e); /* the module of self-attention and its output */
    nn_begin(e);
    decoder_project_heads(e, b, x, c->heads, c->head_dim, qkv);
    struct attention_call call = bert_attention(b);
    struct tensor *y = projects ? tensor_keep(decoder_attend(e, b, &call, qkv, weights))
                                : decoder_context(e, &call, qkv, weights);
    for (int i = 0; i < 3; i++) tensor_drop(e, qkv[i]);
    tensor_set(e, &y, nn_end(e, y));
    tensor_set(e, &y, projects ? nn_norm(e, &l->norm[0], op_add(e, y, x))
                               : nn_end(e, bert_output(e, b, &l->o, &l->norm[0], y, x)));
    return y;
}

struct tensor *bert_feed(struct engine *e, const struct block_call *b, const struct norm *n, struct tensor *x,
                         struct tensor *residual)
{
    const struct decoder_layer *l = b->layer;
    nn_begin(e);
    struct tensor *h = tensor_keep(nn_linear(e, &l->fc1, x));
    tensor_set(e, &h, decoder_activation(e, b->m->config->activation, h));
    tensor_set(e, &h, nn_end(e, h));
    struct tensor *y = bert_output(e, b, &l->fc2, n, h, residual);
    tensor_drop(e, h);
    return y;
}

/* Returns norm(x + mlp(x)); the MLP's parts are modules of the block, or the MLP is one module; floating */
static struct tensor *feed(struct engine *e, const struct block_call *b, struct tensor *x)
{
    if (!traits_of(b->m)->whole_modules) return bert_feed(e, b, &b->layer->norm[1], x, x);
    struct tensor *h = tensor_keep(decoder_mlp(e, b, x));
    struct tensor *y = nn_norm(e, &b->layer->norm[1], op_add(e, h, x));
    tensor_drop(e, h);
    return y;
}

static struct tensor *block(struct engine *e, const struct block_call *b, struct tensor *x)
{
    struct tensor *weights, *attended = attend(e, b, x, &weights);
    struct tensor *y = feed(e, b, attended);
    tensor_drop(e, attended);
    tensor_drop(e, weights);
    return y;
}

static struct tensor *body(struct engine *e, struct decoder *m, struct tensor *ids)
{
    struct tensor *embeddings = bert_embed(e, m, ids);
    if (m->project_in.weight) tensor_set(e, &embeddings, nn_linear(e, &m->project_in, embeddings));
    struct block_call call = {.mask = decoder_open_mask(e, m, embeddings, 0)};
    nn_begin(e);
    struct tensor *x = decoder_blocks(e, m, tensor_ref(embeddings), &call, NULL);
    tensor_set(e, &x, nn_end(e, x));
    head_pool(e, m, x);
    tensor_drop(e, call.mask);
    tensor_drop(e, embeddings);
    return x;
}

const struct family plim_family_bert = {.build = build, .block = block, .body = body};
