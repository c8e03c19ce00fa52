/* bart: an encoder and a decoder with learned positions, whose blocks have their norms after the residual additions;
 * and mbart, whose blocks have them before attention and MLP, with another norm after each stack. */
#include "seq2seq.h"
#include <math.h>

enum { POSITION_OFFSET = 2 }; /* the first two rows of the position tables are reserved for padding */

/* --- the modules -------------------------------------------------------------------------------- */

static bool is_mbart(const struct decoder *m)
{
    return m->config->family == PLIM_FAMILY_MBART;
}

/* Builds BartEncoder or BartDecoder. Returns its own embedding, named, which is dropped once the model is built,
 * because the shared one replaces it. The norm of the embeddings is built after the blocks. */
static struct tensor *build_stack(struct engine *e, struct decoder *m, bool decodes)
{
    const struct plim_model_config *c = m->config;
    struct tensor *own = tensor_keep(tensor_empty(e, m->parameters.dtype, SHAPE(c->vocab_size, c->hidden_size)));
    struct tensor **positions = decodes ? &m->position_embedding : &m->source_positions;
    *positions = nn_parameter(e, &m->parameters, INIT_WEIGHT, SHAPE(c->positions + POSITION_OFFSET, c->hidden_size));
    seq2seq_build_layers(e, m, decodes, true);
    struct norm *last = decodes ? &m->final_norm : &m->encoder_norm;
    nn_norm_create(e, &m->parameters, &m->embedding_norms[decodes], NORM_LAYER, c->hidden_size, true);
    if (is_mbart(m)) nn_norm_create(e, &m->parameters, last, NORM_LAYER, c->hidden_size, true);
    return own;
}

static void build(struct engine *e, struct decoder *m)
{
    const struct plim_model_config *c = m->config;
    m->embedding_factor = c->scales_embeddings ? sqrt((double)c->hidden_size) : 1;
    m->embedding = nn_parameter(e, &m->parameters, INIT_WEIGHT, SHAPE(c->vocab_size, c->hidden_size));
    struct tensor *own[2];
    for (int i = 0; i < 2; i++) own[i] = build_stack(e, m, i > 0);
    m->logits_bias = nn_buffer(e, op_full(e, m->parameters.dtype, SHAPE(1, c->vocab_size), 0));
    decoder_build_head(e, m, false);
    tensor_drop_all(e, own[0], own[1]);
}

/* --- the forward -------------------------------------------------------------------------------- */

static struct tensor *block(struct engine *e, const struct block_call *b, struct tensor *x)
{
    static const struct seq2seq_layer bart = {0}, mbart = {.norms_first = true, .clamps = true};
    return seq2seq_run_layer(e, b, is_mbart(b->m) ? &mbart : &bart, x);
}

static struct tensor *embed_positions(struct engine *e, const void *module, struct tensor *position_ids)
{
    struct tensor *const *weight = module;
    return op_embedding(e, *weight, op_add_scalar(e, position_ids, POSITION_OFFSET));
}

/* BartLearnedPositionalEmbedding: returns the embeddings of the positions `position_ids`; named */
static struct tensor *positions_at(struct engine *e, struct tensor *weight, struct tensor *position_ids)
{
    struct tensor *const weights[] = {weight, NULL};
    return tensor_keep(nn_run(e, weights, NN_EMBEDDING, embed_positions, &weight, position_ids));
}

/* Returns dropout(norm(embeddings + positions)), both lent; named */
static struct tensor *begin(struct engine *e, struct decoder *m, bool decodes, struct tensor *embeddings,
                            struct tensor *positions)
{
    struct tensor *x = tensor_keep(op_add(e, embeddings, positions));
    tensor_set(e, &x, nn_norm(e, &m->embedding_norms[decodes], x));
    tensor_set(e, &x, op_dropout(e, x, m->config->dropout_embedding));
    return x;
}

static struct tensor *encode(struct engine *e, struct decoder *m, struct tensor *ids)
{
    struct tensor *embeddings = decoder_embed(e, m, ids);
    int64_t rows = tensor_size(ids, 0), length = tensor_size(ids, 1);
    struct tensor *row = op_unsqueeze(e, op_arange(e, PLIM_I64, length, 0, 1), 0);
    struct tensor *position_ids = tensor_keep(op_expand(e, row, SHAPE(rows, length)));
    struct tensor *positions = positions_at(e, m->source_positions, position_ids);
    tensor_drop(e, position_ids);
    struct tensor *x = begin(e, m, false, embeddings, positions);
    struct block_call call = {.mask = decoder_open_mask(e, m, embeddings, 0)};
    x = decoder_blocks_between(e, m, x, &call, 0, m->config->encoder_layers);
    if (is_mbart(m)) tensor_set(e, &x, nn_norm(e, &m->encoder_norm, x));
    tensor_drop_all(e, embeddings, positions, call.mask);
    return x;
}

static struct tensor *decode(struct engine *e, struct decoder *m, struct tensor *ids, struct tensor *encoded)
{
    const struct plim_model_config *c = m->config;
    struct tensor *embeddings = decoder_embed(e, m, ids);
    struct tensor *position_ids = tensor_keep(op_add_scalar(e, op_arange(e, PLIM_I64, tensor_size(ids, 1), 0, 1), 0));
    struct block_call call = {.encoded = encoded};
    struct tensor *ones = tensor_keep(op_full(e, PLIM_F32, ids->a.ndim, ids->a.shape, 1));
    call.mask = decoder_full_mask(e, m, embeddings, ones);
    if (!is_mbart(m)) { /* bart rebinds this variable to the mask */
        tensor_drop(e, ones);
        ones = NULL;
    }
    call.encoded_mask = decoder_cross_mask(e, m, embeddings, encoded);
    struct tensor *row = tensor_keep(op_unsqueeze(e, position_ids, 0));
    struct tensor *positions = positions_at(e, m->position_embedding, row);
    tensor_drop(e, row);
    if (is_mbart(m)) { /* mbart rebinds this variable to the embeddings */
        tensor_drop(e, position_ids);
        position_ids = NULL;
    }
    struct tensor *x = begin(e, m, true, embeddings, positions);
    x = decoder_blocks_between(e, m, x, &call, c->encoder_layers, c->layers);
    if (is_mbart(m)) tensor_set(e, &x, nn_norm(e, &m->final_norm, x));
    tensor_drop_all(e, embeddings, ones, position_ids, positions, call.mask, call.encoded_mask);
    return x;
}

static struct tensor *run(struct engine *e, struct decoder *m, struct tensor *inputs, struct tensor *encoded)
{
    if (e->halted) return e->poison;
    return encoded ? decode(e, m, inputs, encoded) : encode(e, m, inputs);
}

static struct tensor *body(struct engine *e, struct decoder *m, struct tensor *ids)
{
    return seq2seq_body(e, m, &(const struct seq2seq){.shifts_first = true, .wraps = is_mbart(m), .keeps_nothing = true,
                                                           .run = run}, ids);
}

const struct family plim_family_bart = {.build = build, .body = body, .block = block};
