/* whisper: an encoder of audio of a fixed length, which begins with two convolutions over time, and a decoder of
 * text. */
#include "seq2seq.h"

enum { TAPS = 3, SHRINKS = 2 }; /* kernel size of both convolutions; stride of the second */

/* --- the modules -------------------------------------------------------------------------------- */

static void build_convolution(struct engine *e, struct decoder *m, int64_t channels, struct convolution *c)
{
    struct parameters *p = &m->parameters;
    c->weight = nn_parameter(e, p, INIT_WEIGHT, SHAPE(m->config->hidden_size, channels, TAPS));
    c->bias = nn_parameter(e, p, INIT_ZEROS, SHAPE(m->config->hidden_size));
}

/* Allocates like sinusoids(), which initialises the encoder's positions; the values are not computed. */
static void initialise_positions(struct engine *e, const struct decoder *m)
{
    const struct plim_model_config *c = m->config;
    enum plim_dtype dtype = m->parameters.dtype;
    int64_t half[] = {c->source_positions, c->hidden_size / 2};
    struct tensor *inverse = tensor_keep(op_full(e, dtype, SHAPE(half[1]), 0));
    struct tensor *position_ids = tensor_keep(op_arange(e, PLIM_I64, half[0], 0, 1));
    struct tensor *times = tensor_keep(op_full(e, dtype, 2, half, 0));
    tensor_drop(e, position_ids);
    struct tensor *sin = tensor_keep(op_full(e, dtype, 2, half, 0)), *cos = tensor_keep(op_full(e, dtype, 2, half, 0));
    struct tensor *table = tensor_keep(op_full(e, dtype, SHAPE(half[0], c->hidden_size), 0));
    tensor_drop_all(e, sin, cos, times, inverse, table);
}

static void build(struct engine *e, struct decoder *m)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    build_convolution(e, m, c->mel_bins, &m->hearing[0]);
    build_convolution(e, m, c->hidden_size, &m->hearing[1]);
    m->source_positions = nn_parameter(e, p, INIT_WEIGHT, SHAPE(c->source_positions, c->hidden_size));
    seq2seq_build_layers(e, m, false, false);
    nn_norm_create(e, p, &m->encoder_norm, NORM_LAYER, c->hidden_size, true);
    initialise_positions(e, m);
    m->embedding = nn_parameter(e, p, INIT_WEIGHT, SHAPE(c->vocab_size, c->hidden_size));
    m->position_embedding = nn_parameter(e, p, INIT_WEIGHT, SHAPE(c->positions, c->hidden_size));
    seq2seq_build_layers(e, m, true, false);
    nn_norm_create(e, p, &m->final_norm, NORM_LAYER, c->hidden_size, true);
    decoder_build_head(e, m, false);
}

void whisper_freeze(struct engine *e, struct decoder *m)
{
    struct parameters *p = &m->parameters;
    size_t at = 0, own = 0;
    if (e->halted) return;
    while (p->list[at] != m->embedding) at++;
    while (p->list[own] != m->source_positions) own++;
    if (!m->setting->freeze_encoder) {
        for (; own > 0; own--) p->list[own] = p->list[own - 1]; /* frozen parameters come first */
        p->list[0] = m->source_positions;
    }
    nn_freeze(e, p, m->setting->freeze_encoder ? at : 1);
}

/* --- the forward -------------------------------------------------------------------------------- */

static const struct seq2seq_layer layer = {.norms_first = true, .scales_queries = true, .packs_heads = true,
                                           .clamps = true};

static struct tensor *block(struct engine *e, const struct block_call *b, struct tensor *x)
{
    return seq2seq_run_layer(e, b, &layer, x);
}

static struct tensor *convolve(struct engine *e, const struct convolution *c, struct tensor *x, int64_t step)
{
    return op_conv1d(e, x, c->weight, c->bias, step, TAPS / 2);
}

/* WhisperEncoder: features (B, bins, 2 * positions) -> (B, positions, H), named. */
static struct tensor *encode(struct engine *e, struct decoder *m, struct tensor *features)
{
    const struct plim_model_config *c = m->config;
    struct tensor *wide = tensor_keep(convolve(e, &m->hearing[0], features, 1));
    if (decoder_requires_input_grads(m)) tensor_require_input_grad(e, wide);
    struct tensor *heard = tensor_keep(op_gelu(e, wide, false));
    tensor_drop(e, wide);
    tensor_set(e, &heard, op_gelu(e, convolve(e, &m->hearing[1], heard, SHRINKS), false));
    tensor_set(e, &heard, op_permute(e, heard, 3, (int[]){0, 2, 1}));
    struct tensor *position_ids = tensor_keep(op_arange(e, PLIM_I64, c->source_positions, 0, 1));
    struct tensor *x = tensor_keep(op_add(e, heard, nn_embedding(e, m->source_positions, position_ids)));
    tensor_set(e, &x, op_dropout(e, x, c->dropout_embedding));
    x = decoder_blocks_between(e, m, x, &(struct block_call){0}, 0, c->encoder_layers);
    tensor_set(e, &x, nn_norm(e, &m->encoder_norm, x));
    tensor_drop_all(e, heard, position_ids);
    return x;
}

/* Returns the positions of tokens (B, S): arange(S), copied for each row; named. */
static struct tensor *positions_of(struct engine *e, struct tensor *ids)
{
    int64_t shape[] = {tensor_size(ids, 0), tensor_size(ids, 1)};
    struct tensor *row = tensor_keep(op_add_scalar(e, op_arange(e, PLIM_I64, shape[1], 0, 1), 0));
    struct tensor *all = tensor_keep(op_expand(e, op_unsqueeze(e, row, 0), 2, shape));
    struct tensor *position_ids = tensor_keep(tensor_empty(e, PLIM_I64, 2, shape));
    if (!e->halted) op_copy_(e, position_ids, all);
    tensor_drop_all(e, all, row);
    return position_ids;
}

/* weight[position_ids]; named. */
static struct tensor *embed_positions(struct engine *e, struct tensor *weight, struct tensor *position_ids)
{
    if (e->halted) return e->poison;
    int64_t rows = tensor_elements(position_ids);
    struct tensor *flat = tensor_hold(op_view(e, position_ids, 1, &rows));
    struct tensor *x = op_rows(e, weight, flat);
    const int64_t *shape = position_ids->a.shape;
    if (!e->halted) x = op_view(e, x, SHAPE(shape[0], shape[1], tensor_size(weight, 1)));
    tensor_drop(e, flat);
    return tensor_keep(x);
}

/* WhisperDecoder of tokens and the encoder's result; named. */
static struct tensor *decode(struct engine *e, struct decoder *m, struct tensor *ids, struct tensor *encoded)
{
    const struct plim_model_config *c = m->config;
    struct tensor *embeddings = decoder_embed(e, m, ids);
    struct tensor *position_ids = positions_of(e, ids);
    struct tensor *positions = embed_positions(e, m->position_embedding, position_ids);
    struct tensor *x = tensor_keep(op_add(e, embeddings, positions));
    tensor_set(e, &x, op_dropout(e, x, c->dropout_embedding));
    struct block_call call = {.encoded = encoded};
    call.mask = decoder_mask(e, m, embeddings, m->cache ? NULL : position_ids, 0);
    x = decoder_blocks_between(e, m, x, &call, c->encoder_layers, c->layers);
    tensor_set(e, &x, nn_norm(e, &m->final_norm, x));
    tensor_drop_all(e, embeddings, position_ids, positions, call.mask);
    return x;
}

static struct tensor *run(struct engine *e, struct decoder *m, struct tensor *inputs, struct tensor *encoded)
{
    if (e->halted) return e->poison;
    return encoded ? decode(e, m, inputs, encoded) : encode(e, m, inputs);
}

static struct tensor *body(struct engine *e, struct decoder *m, struct tensor *features)
{
    return seq2seq_body(e, m, &(const struct seq2seq){.shifts_first = true, .run = run}, features);
}

const struct family plim_family_whisper = {.build = build, .body = body, .block = block};
