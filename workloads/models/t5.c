/* t5 and mt5: an encoder and a decoder with a relative position bias, which a stack's first block has as a parameter,
 * and all of its blocks share. */
#include "seq2seq.h"
#include "workloads/engine/checkpoint.h"
#include <math.h>

/* SELF and CROSS (seq2seq.h) are also the indices of a stack's shared biases. */
enum stack { ENCODER, DECODER };

/* --- the modules ------------------------------------------------------------------------------ */

/* Builds attention's linears in the order of the constructor: queries, keys, values, output. */
static void build_attention(struct engine *e, struct decoder *m, struct linear *const linears[4])
{
    const struct plim_model_config *c = m->config;
    int64_t inner = c->heads * c->head_dim;
    for (int i = 0; i < 3; i++)
        nn_linear_create(e, &m->parameters, linears[i], c->hidden_size, inner, false);
    nn_linear_create(e, &m->parameters, linears[3], inner, c->hidden_size, false);
}

static void build_norm(struct engine *e, struct decoder *m, struct norm *norm)
{
    nn_norm_create(e, &m->parameters, norm, NORM_RMS_T5, m->config->hidden_size, false);
}

static void build_mlp(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    if (c->gated_mlp) {
        nn_linear_create(e, p, &l->gate, c->hidden_size, c->intermediate_size, false);
        nn_linear_create(e, p, &l->up, c->hidden_size, c->intermediate_size, false);
    } else {
        nn_linear_create(e, p, &l->fc1, c->hidden_size, c->intermediate_size, false);
    }
    nn_linear_create(e, p, &l->down, c->intermediate_size, c->hidden_size, false);
}

static void build_layer(struct engine *e, struct decoder *m, int64_t i, enum stack stack)
{
    struct decoder_layer *l = &m->layers[i];
    int64_t first = stack == ENCODER ? 0 : m->config->encoder_layers;
    m->parameters.layer = (int32_t)(i + 1);
    build_attention(e, m, (struct linear *const[]){&l->q, &l->k, &l->v, &l->o});
    if (i == first)
        l->relative_bias = nn_parameter(e, &m->parameters, INIT_WEIGHT,
                                        SHAPE(m->config->relative_buckets, m->config->heads));
    if (i == first && !e->halted) l->relative_bias->odd_name = true; /* a bias by its name: Trainer does not decay it */
    build_norm(e, m, &l->norm[0]);
    if (stack == DECODER) {
        build_attention(e, m, (struct linear *const[]){&l->cross_q, &l->cross_k, &l->cross_v, &l->cross_o});
        build_norm(e, m, &l->norm[1]);
    }
    build_mlp(e, m, l);
    build_norm(e, m, &l->norm[2]);
    m->parameters.layer = 0;
}

/* Builds a T5Stack. Returns its own embedding, which is replaced by the shared one at the end of the model's
 * constructor; named. */
static struct tensor *build_stack(struct engine *e, struct decoder *m, enum stack stack)
{
    const struct plim_model_config *c = m->config;
    struct tensor *own = tensor_keep(tensor_empty(e, m->parameters.dtype, SHAPE(c->vocab_size, c->hidden_size)));
    int64_t first = stack == ENCODER ? 0 : c->encoder_layers, end = stack == ENCODER ? c->encoder_layers : c->layers;
    for (int64_t i = first; i < end; i++) build_layer(e, m, i, stack);
    build_norm(e, m, stack == ENCODER ? &m->encoder_norm : &m->final_norm);
    return own;
}

static void build(struct engine *e, struct decoder *m)
{
    const struct plim_model_config *c = m->config;
    m->embedding = nn_parameter(e, &m->parameters, INIT_WEIGHT, SHAPE(c->vocab_size, c->hidden_size));
    struct tensor *own[2];
    for (int i = ENCODER; i <= DECODER; i++) own[i] = build_stack(e, m, (enum stack)i);
    decoder_build_head(e, m, false);
    tensor_drop_all(e, own[ENCODER], own[DECODER]);
}

/* --- the bias on positions ---------------------------------------------------------------------- */

/* Returns the bucket of each distance (q, k) int64, lent, if it is not near: the first half of `buckets` is for one
 * distance each, the ranges of the others grow logarithmically; named. *is_near, named: true for distances in the first
 * half. */
static struct tensor *far_bucket(struct engine *e, const struct decoder *m, struct tensor *distance, int64_t buckets,
                                 struct tensor **is_near)
{
    int64_t exact = buckets / 2;
    *is_near = tensor_keep(op_compare_scalar(e, PLIM_BINARY_LT, distance, (double)exact));
    struct tensor *x = op_div_scalar(e, op_to(e, distance, PLIM_F32), (double)exact);
    x = op_unary(e, x, PLIM_UNARY_LOG);
    x = op_div_scalar(e, x, log((double)m->config->relative_distance / (double)exact));
    x = op_to(e, op_mul_scalar(e, x, (double)(buckets - exact)), PLIM_I64);
    struct tensor *far = tensor_keep(op_add_scalar(e, x, (double)exact));
    tensor_set(e, &far, op_minimum(e, far, op_full_like(e, far, (double)(buckets - 1))));
    return far;
}

/* _relative_position_bucket() of relative positions (q, k) int64, lent; named. sees_all: bidirectional. */
static struct tensor *buckets_of(struct engine *e, const struct decoder *m, struct tensor *position, bool sees_all)
{
    int64_t buckets = sees_all ? m->config->relative_buckets / 2 : m->config->relative_buckets;
    struct tensor *ahead = NULL, *distance, *is_near;
    if (sees_all) {
        struct tensor *is_ahead = op_compare_scalar(e, PLIM_BINARY_GT, position, 0);
        ahead = op_mul_scalar(e, op_to(e, is_ahead, PLIM_I64), (double)buckets);
        ahead = tensor_keep(op_add_scalar(e, ahead, 0));
        distance = tensor_keep(op_unary(e, position, PLIM_UNARY_ABS));
    } else {
        distance = tensor_keep(op_neg(e, op_minimum(e, position, op_full_like(e, position, 0))));
    }
    struct tensor *far = far_bucket(e, m, distance, buckets, &is_near);
    struct tensor *bucket = tensor_keep(op_where(e, is_near, distance, far, PLIM_I64, 0, 0));
    if (ahead) op_add_(e, ahead, bucket);
    else ahead = tensor_keep(op_add_scalar(e, bucket, 0));
    tensor_drop_all(e, bucket, is_near, far, distance);
    return ahead;
}

/* compute_bias(): (1, A, q, k), a view; named. */
static struct tensor *compute_bias(struct engine *e, const struct block_call *b, int64_t queries, int64_t keys,
                                   bool sees_all)
{
    struct tensor *row = op_unsqueeze(e, op_arange(e, PLIM_I64, queries, 0, 1), 1);
    row = tensor_keep(op_add_scalar(e, row, 0));
    struct tensor *column = tensor_keep(op_unsqueeze(e, op_arange(e, PLIM_I64, keys, 0, 1), 0));
    struct tensor *position = tensor_keep(op_sub(e, column, row));
    struct tensor *bucket = buckets_of(e, b->m, position, sees_all);
    struct tensor *values = nn_embedding(e, b->layer->relative_bias, bucket);
    values = tensor_keep(op_unsqueeze(e, op_permute(e, values, 3, (int[]){2, 0, 1}), 0));
    tensor_drop_all(e, row, column, position, bucket);
    return values;
}

/* Returns the bias of cross-attention: zeros (1, A, q, k), which require a gradient if blocks are checkpointed;
 * named. */
static struct tensor *no_bias(struct engine *e, const struct block_call *b, const struct tensor *q, int64_t keys)
{
    const struct plim_train_setting *s = b->m->setting;
    if (e->halted) return e->poison;
    struct tensor *zeros = tensor_keep(op_full(e, (enum plim_dtype)q->a.dtype,
                                               SHAPE(1, q->a.shape[1], q->a.shape[2], keys), 0));
    bool checkpoints = s->checkpointing == PLIM_CHECKPOINTING_FULL && !e->evaluates && !e->checkpointing_off;
    if (checkpoints) tensor_require_input_grad(e, zeros);
    return zeros;
}

/* --- the block ---------------------------------------------------------------------------------- */

/* T5Attention of x to its own tokens or to the encoder's result; floating. *bias: the stack's, created if NULL;
 * *weights as in nn_attention(). */
static struct tensor *attend(struct engine *e, const struct block_call *b, int kind, struct tensor *x,
                             struct tensor **bias, struct tensor **weights)
{
    const struct plim_model_config *c = b->m->config;
    const struct decoder_layer *l = b->layer;
    bool is_cross = kind == CROSS, decodes = l->cross_q.weight != NULL;
    const struct linear *linears[4] = {&l->q, &l->k, &l->v, &l->o};
    const struct linear *others[4] = {&l->cross_q, &l->cross_k, &l->cross_v, &l->cross_o};
    const struct linear *const *of = is_cross ? others : linears;
    struct tensor *states = is_cross ? b->encoded : x, *qkv[3];
    nn_begin(e);
    for (int i = 0; i < 3; i++)
        qkv[i] = tensor_keep(decoder_heads(e, nn_linear(e, of[i], i ? states : x), c->heads, c->head_dim));
    int64_t layer = l - b->m->layers;
    if (decodes) decoder_cache_update_once(e, b->m, is_cross ? c->layers + layer : layer, qkv);
    int64_t queries = e->halted ? 0 : tensor_size(qkv[0], 2), keys = e->halted ? 0 : tensor_size(qkv[1], 2);
    if (!*bias && is_cross) *bias = no_bias(e, b, qkv[0], keys);
    else if (!*bias) *bias = compute_bias(e, b, queries, keys, !decodes);
    struct attention_call call = decoder_attention(b);
    call.bidirectional = is_cross || !decodes;
    call.mask = is_cross ? b->encoded_mask : b->mask;
    call.bias = *bias;
    call.scaling = 1;
    call.softmax_fp32 = false;
    call.softmax_stays = true;
    struct tensor *y = decoder_context(e, &call, qkv, weights);
    tensor_set(e, &y, nn_linear(e, of[3], y));
    tensor_drop_all(e, qkv[0], qkv[1], qkv[2]);
    return nn_end(e, tensor_yield(y));
}

/* T5LayerSelfAttention and T5LayerCrossAttention: x (lent) + attention of its norm; named. */
static struct tensor *attention_layer(struct engine *e, const struct block_call *b, int kind, struct tensor *x,
                                      struct tensor **bias, struct tensor **weights)
{
    struct tensor *result = NULL;
    nn_begin(e);
    struct tensor *normed = tensor_keep(nn_norm(e, &b->layer->norm[kind], x));
    struct tensor *y = tensor_keep(attend(e, b, kind, normed, bias, &result));
    tensor_set(e, &y, op_add(e, x, nn_dropout(e, y, b->m->config->dropout_residual)));
    tensor_drop_all(e, normed, *weights); /* a single variable holds the weights of both attentions */
    *weights = result;
    tensor_set(e, &y, nn_end(e, y));
    return y;
}

/* T5DenseActDense and T5DenseGatedActDense of x, lent; floating. */
static struct tensor *dense(struct engine *e, const struct block_call *b, struct tensor *x)
{
    const struct plim_model_config *c = b->m->config;
    const struct decoder_layer *l = b->layer;
    struct tensor *h, *gate = NULL, *up = NULL;
    nn_begin(e);
    if (c->gated_mlp) {
        gate = tensor_keep(decoder_activation(e, c->activation, nn_linear(e, &l->gate, x)));
        up = tensor_keep(nn_linear(e, &l->up, x));
        h = tensor_keep(op_mul(e, gate, up));
    } else {
        h = tensor_keep(nn_linear(e, &l->fc1, x));
        tensor_set(e, &h, decoder_activation(e, c->activation, h));
    }
    tensor_set(e, &h, nn_dropout(e, h, c->dropout_mlp));
    if (!e->halted) tensor_set(e, &h, op_to(e, h, (enum plim_dtype)l->down.weight->a.dtype));
    tensor_set(e, &h, nn_linear(e, &l->down, h));
    tensor_drop_all(e, gate, up);
    return nn_end(e, tensor_yield(h));
}

/* T5LayerFF of x, lent; floating. */
static struct tensor *feed(struct engine *e, const struct block_call *b, struct tensor *x)
{
    nn_begin(e);
    struct tensor *h = tensor_keep(nn_norm(e, &b->layer->norm[2], x));
    tensor_set(e, &h, dense(e, b, h));
    struct tensor *y = op_add(e, x, nn_dropout(e, h, b->m->config->dropout_residual));
    tensor_drop(e, h);
    return nn_end(e, y);
}

static struct tensor *block(struct engine *e, const struct block_call *b, struct tensor *x)
{
    struct tensor *biases[2], *weights = NULL;
    for (int i = SELF; i <= CROSS; i++) biases[i] = b->biases[i] ? tensor_ref(b->biases[i]) : NULL;
    struct tensor *h = attention_layer(e, b, SELF, x, &biases[SELF], &weights);
    if (b->layer->cross_q.weight) {
        struct tensor *attended = attention_layer(e, b, CROSS, h, &biases[CROSS], &weights);
        tensor_drop(e, h);
        h = attended;
    }
    struct tensor *y = feed(e, b, h);
    bool is_first = !b->biases[SELF] && !checkpoint_recomputing(e);
    for (int i = SELF; i <= CROSS; i++) {
        if (is_first) b->shared[i] = biases[i];
        else tensor_drop(e, biases[i]);
    }
    tensor_drop_all(e, h, weights);
    return y;
}

/* --- the forward -------------------------------------------------------------------------------- */

/* T5Stack; named. `encoded`: for the decoder's, the encoder's result; otherwise NULL. */
static struct tensor *run_stack(struct engine *e, struct decoder *m, struct tensor *ids, struct tensor *encoded)
{
    const struct plim_model_config *c = m->config;
    bool decodes = encoded != NULL;
    struct tensor *shared[2] = {NULL, NULL};
    nn_begin(e);
    struct tensor *embeddings = decoder_embed(e, m, ids);
    struct block_call call = {.encoded = encoded, .shared = shared};
    call.mask = decodes ? decoder_padding_mask(e, m, embeddings, NULL) : decoder_open_mask(e, m, embeddings, 0);
    if (decodes) call.encoded_mask = decoder_cross_mask(e, m, embeddings, encoded);
    struct tensor *x = tensor_hold(nn_dropout(e, embeddings, c->dropout_embedding));
    int64_t first = decodes ? c->encoder_layers : 0, end = decodes ? c->layers : c->encoder_layers;
    x = decoder_blocks_between(e, m, x, &call, first, end);
    tensor_set(e, &x, nn_norm(e, decodes ? &m->final_norm : &m->encoder_norm, x));
    tensor_set(e, &x, nn_dropout(e, x, c->dropout_embedding));
    tensor_drop_all(e, shared[SELF], shared[CROSS], call.mask, call.encoded_mask, embeddings);
    tensor_set(e, &x, nn_end(e, x));
    return x;
}

static const struct seq2seq t5 = {.own_config = true, .run = run_stack};

static struct tensor *body(struct engine *e, struct decoder *m, struct tensor *ids)
{
    return seq2seq_body(e, m, &t5, ids);
}

const struct family plim_family_t5 = {.build = build, .body = body, .block = block};
