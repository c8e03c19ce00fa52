/* mpnet: bert's blocks without token types, with a bias on the scores by the distance of tokens, which all blocks
 * share. */
#include "model.h"
#include <math.h>
#include <stdlib.h>

/* --- the modules ------------------------------------------------------------------------------ */

static void build(struct engine *e, struct decoder *m)
{
    const struct plim_model_config *c = m->config;
    bert_build_embeddings(e, m);
    decoder_build_layers(e, m, bert_build_layer);
    m->distance_embedding = nn_parameter(e, &m->parameters, INIT_WEIGHT, SHAPE(c->relative_buckets, c->heads));
    if (!e->halted) m->distance_embedding->odd_name = true; /* a bias by its name: Trainer does not decay it */
    bert_initialise(e, m);
    head_build(e, m);
    head_tie(e, m);
}

/* --- the bias on positions ---------------------------------------------------------------------- */

/* relative_position_bucket() of `behind`, a key's position minus the query's. The number of buckets does not depend on
 * the configuration. */
static int64_t bucket_of(int64_t behind)
{
    enum { BUCKETS = 32, SIDE = BUCKETS / 2, EXACT = SIDE / 2, FARTHEST = 128 };
    int64_t distance = behind < 0 ? -behind : behind, side = behind > 0 ? SIDE : 0;
    if (distance < EXACT) return side + distance;
    float grown = logf((float)distance / EXACT) / (float)log((double)FARTHEST / EXACT) * (SIDE - EXACT);
    int64_t far = EXACT + (int64_t)grown;
    return side + (far < SIDE - 1 ? far : SIDE - 1);
}

/* Returns the buckets (S, S) int64, computed on the host; named. */
static struct tensor *buckets_of(struct engine *e, int64_t seq)
{
    struct tensor *x = tensor_keep(tensor_empty(e, PLIM_I64, SHAPE(seq, seq)));
    if (e->halted || e->device->info.simulated) return x;
    size_t count = (size_t)(seq * seq);
    int64_t *values = malloc(count * sizeof(*values));
    for (int64_t i = 0; i < seq * seq && values; i++) values[i] = bucket_of(i % seq - i / seq);
    if (values) engine_write(e, x, values, count * sizeof(*values));
    else engine_fail(e, PLIM_NOMEM);
    free(values);
    return x;
}

/* compute_position_bias(): (B, A, S, S), copied for each row; named. */
static struct tensor *position_bias(struct engine *e, const struct decoder *m, struct tensor *x)
{
    if (e->halted) return e->poison;
    int64_t batch = x->a.shape[0], seq = x->a.shape[1], heads = m->config->heads;
    struct tensor *buckets = buckets_of(e, seq);
    struct tensor *values = tensor_keep(nn_embedding(e, m->distance_embedding, buckets));
    tensor_set(e, &values, op_unsqueeze(e, op_transpose(e, op_transpose(e, values, 1, 2), 0, 1), 0));
    tensor_set(e, &values, op_contiguous(e, op_expand(e, values, SHAPE(batch, heads, seq, seq))));
    tensor_drop(e, buckets);
    return values;
}

/* --- the block -------------------------------------------------------------------------------- */

/* MPNetSelfAttention of x (B, S, H), lent; named. */
static struct tensor *attend(struct engine *e, const struct block_call *b, struct tensor *x)
{
    const struct plim_model_config *c = b->m->config;
    const struct decoder_layer *l = b->layer;
    struct tensor *qkv[3];
    nn_begin(e);
    decoder_project_heads(e, b, x, c->heads, c->head_dim, qkv);
    struct tensor *scores = tensor_keep(op_matmul(e, qkv[0], op_transpose(e, qkv[1], 2, 3)));
    tensor_set(e, &scores, op_div_scalar(e, scores, sqrt((double)c->head_dim)));
    tensor_set(e, &scores, op_plus_(e, scores, b->distances));
    if (b->mask) tensor_set(e, &scores, op_add(e, scores, b->mask));
    enum plim_dtype inside = e->halted || e->autocast.on ? PLIM_F32 : (enum plim_dtype)scores->a.dtype;
    struct tensor *weights = tensor_keep(op_softmax(e, scores, inside));
    tensor_set(e, &weights, nn_dropout(e, weights, c->dropout_attention));
    struct tensor *y = tensor_keep(op_matmul(e, weights, qkv[2]));
    tensor_set(e, &y, op_contiguous(e, op_transpose(e, y, 1, 2)));
    if (!e->halted) tensor_set(e, &y, op_view(e, y, SHAPE(x->a.shape[0], x->a.shape[1], c->heads * c->head_dim)));
    struct tensor *out = tensor_keep(nn_linear(e, &l->o, y));
    tensor_drop_all(e, qkv[0], qkv[1], qkv[2], scores, weights, y);
    tensor_set(e, &out, nn_end(e, out));
    return out;
}

static struct tensor *block(struct engine *e, const struct block_call *b, struct tensor *x)
{
    nn_begin(e); /* MPNetAttention */
    struct tensor *y = attend(e, b, x);
    struct tensor *sum = op_add(e, nn_dropout(e, y, b->m->config->dropout_residual), x);
    struct tensor *attended = tensor_keep(nn_end(e, nn_norm(e, &b->layer->norm[0], sum)));
    tensor_drop(e, y);
    y = bert_feed(e, b, &b->layer->norm[1], attended, attended);
    tensor_drop(e, attended);
    return y;
}

static struct tensor *body(struct engine *e, struct decoder *m, struct tensor *ids)
{
    struct tensor *embeddings = bert_embed(e, m, ids);
    struct block_call call = {.mask = decoder_open_mask(e, m, embeddings, 0)};
    nn_begin(e);
    call.distances = position_bias(e, m, embeddings);
    struct tensor *x = decoder_blocks(e, m, tensor_ref(embeddings), &call, NULL);
    tensor_set(e, &x, nn_end(e, x));
    tensor_drop_all(e, call.mask, call.distances, embeddings);
    return x;
}

const struct family plim_family_mpnet = {.build = build, .block = block, .body = body};
