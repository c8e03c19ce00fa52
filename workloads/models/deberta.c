/* deberta-v2: bert's blocks, whose attention scores also depend on the tokens' distance: products of queries and
 * distance embeddings (c2p), and of keys and distance embeddings (p2c). All blocks share the embeddings. */
#include "model.h"
#include <math.h>

/* --- the modules ------------------------------------------------------------------------------ */

static void norm_create(struct engine *e, struct decoder *m, struct norm *n)
{
    nn_norm_create(e, &m->parameters, n, NORM_LAYER, m->config->hidden_size, true);
    n->epsilon = 1e-7;
}

static void build_embeddings(struct engine *e, struct decoder *m)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    m->embedding = nn_parameter(e, p, INIT_WEIGHT, SHAPE(c->vocab_size, c->hidden_size));
    if (c->absolute_positions)
        m->position_embedding = nn_parameter(e, p, INIT_WEIGHT, SHAPE(c->positions, c->hidden_size));
    if (c->type_vocab_size)
        m->type_embedding = nn_parameter(e, p, INIT_WEIGHT, SHAPE(c->type_vocab_size, c->hidden_size));
    norm_create(e, m, &m->embedding_norm);
    m->position_ids = nn_buffer(e, op_arange(e, PLIM_I64, c->positions, 0, 1));
}

static bool scores_c2p(const struct plim_model_config *c)
{
    return c->position_scores == PLIM_SCORES_C2P || c->position_scores == PLIM_SCORES_BOTH;
}

static bool scores_p2c(const struct plim_model_config *c)
{
    return c->position_scores == PLIM_SCORES_P2C || c->position_scores == PLIM_SCORES_BOTH;
}

static void build_layer(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    int64_t h = c->hidden_size;
    bool has_own = c->relative_attention && !c->shares_projections;
    nn_linear_create(e, p, &l->q, h, h, true);
    nn_linear_create(e, p, &l->k, h, h, true);
    nn_linear_create(e, p, &l->v, h, h, true);
    if (has_own && scores_c2p(c)) nn_linear_create(e, p, &l->distance_k, h, h, true);
    if (has_own && scores_p2c(c)) nn_linear_create(e, p, &l->distance_q, h, h, true);
    nn_linear_create(e, p, &l->o, h, h, true);
    norm_create(e, m, &l->norm[0]);
    nn_linear_create(e, p, &l->fc1, h, c->intermediate_size, true);
    nn_linear_create(e, p, &l->fc2, c->intermediate_size, h, true);
    norm_create(e, m, &l->norm[1]);
}

static void build(struct engine *e, struct decoder *m)
{
    const struct plim_model_config *c = m->config;
    build_embeddings(e, m);
    decoder_build_layers(e, m, build_layer);
    if (c->relative_attention)
        m->distance_embedding = nn_parameter(e, &m->parameters, INIT_WEIGHT,
                                             SHAPE(2 * plim_model_distances(c), c->hidden_size));
    if (c->distance_norm == PLIM_DISTANCE_NORMED) norm_create(e, m, &m->distance_norm);
    tensor_drop(e, tensor_keep(op_arange(e, PLIM_I64, c->positions, 0, 1))); /* _init_weights() of the embeddings */
    head_build(e, m);
    head_tie(e, m);
}

/* --- the embeddings --------------------------------------------------------------------------- */

/* warn_if_padding_and_no_attention_mask(): the host looks for padding in each row's first and last token. */
static void look_for_padding(struct engine *e, const struct decoder *m, struct tensor *ids)
{
    if (m->attention_mask || !m->config->has_padding_idx || e->halted) return;
    struct tensor *columns = tensor_keep(op_full(e, PLIM_I64, SHAPE(2), 0));
    struct tensor *seen = tensor_keep(op_full(e, PLIM_I64, SHAPE(ids->a.shape[0], 2), 0));
    tensor_drop(e, columns);
    struct tensor *is = op_compare_scalar(e, PLIM_BINARY_EQ, seen, (double)m->config->pad_token_id);
    struct tensor *any = tensor_keep(op_reduce(e, is, 3, false, PLIM_BINARY_OR, 1, PLIM_BOOL));
    tensor_drop_all(e, seen, any);
}

/* Returns the position embeddings (1, S, H), or zeros in the tokens' shape; named */
static struct tensor *embed_positions(struct engine *e, const struct decoder *m, struct tensor *tokens)
{
    if (e->halted) return e->poison;
    if (!m->position_embedding) return tensor_keep(op_full_like(e, tokens, 0));
    int64_t seq = tensor_size(tokens, 1);
    struct tensor *position_ids = op_view(e, op_slice(e, m->position_ids, 0, 0, seq), SHAPE(1, seq));
    return tensor_keep(nn_embedding(e, m->position_embedding, position_ids));
}

/* DebertaV2Embeddings of ids (B, S), whose mask and types have the same shape; named */
static struct tensor *embed(struct engine *e, struct decoder *m, struct tensor *ids, struct tensor *mask,
                            struct tensor *types)
{
    nn_begin(e);
    struct tensor *tokens = decoder_embed(e, m, ids), *x = tensor_ref(tokens), *kinds = NULL;
    struct tensor *positions = embed_positions(e, m, tokens);
    if (m->position_embedding) tensor_set(e, &x, op_add(e, x, positions));
    if (m->type_embedding) {
        kinds = tensor_keep(nn_embedding(e, m->type_embedding, types));
        tensor_set(e, &x, op_add(e, x, kinds));
    }
    tensor_set(e, &x, nn_norm(e, &m->embedding_norm, x));
    struct tensor *seen = op_unsqueeze(e, mask, 2);
    seen = tensor_hold(e->halted ? seen : op_to(e, seen, (enum plim_dtype)x->a.dtype));
    tensor_set(e, &x, op_mul(e, x, seen));
    tensor_set(e, &x, nn_dropout(e, x, m->config->dropout_embedding));
    tensor_set(e, &x, nn_end(e, x));
    tensor_drop_all(e, tokens, positions, kinds, seen);
    return x;
}

/* --- distances of tokens ------------------------------------------------------------------------ */

/* Returns the divisor of the logarithms of distances: the logarithm of the largest one. */
static double log_farthest(const struct decoder *m, int64_t half)
{
    return (float)log((float)((double)(plim_model_farthest(m->config) - 1) / (double)half));
}

/* Rounds x up to whole numbers, in place. */
static void round_up_(struct engine *e, struct tensor *x)
{
    op_unary_(e, PLIM_UNARY_NEG, x);
    op_unary_(e, PLIM_UNARY_FLOOR, x);
    op_unary_(e, PLIM_UNARY_NEG, x);
}

/* make_log_bucket_position() as TorchScript interprets it: returns the buckets of distances (q, k) int64, lent, as
 * whole numbers in fp32; named. Distances up to half the number of buckets are unchanged, larger ones are mapped by
 * their logarithm. */
static struct tensor *buckets_by_steps(struct engine *e, const struct decoder *m, struct tensor *distance)
{
    int64_t half = m->config->position_buckets / 2;
    struct tensor *sign = tensor_keep(op_clamp(e, distance, -1, 1));
    struct tensor *below = op_compare_scalar(e, PLIM_BINARY_LT, distance, (double)half);
    struct tensor *above = op_compare_scalar(e, PLIM_BINARY_GT, distance, (double)-half);
    struct tensor *is_near = tensor_keep(op_compare(e, PLIM_BINARY_AND, below, above));
    struct tensor *least = tensor_keep(op_full(e, PLIM_I64, 0, NULL, (double)(half - 1)));
    struct tensor *size = tensor_keep(op_unary(e, distance, PLIM_UNARY_ABS));
    tensor_set(e, &size, op_where(e, is_near, least, size, PLIM_I64, 0, 0));
    tensor_drop_all(e, is_near, least);
    struct tensor *x = op_unary(e, op_true_div_scalar(e, size, (double)half), PLIM_UNARY_LOG);
    x = op_mul_scalar(e, op_div_scalar(e, x, log_farthest(m, half)), (double)(half - 1));
    x = tensor_keep(op_neg(e, x)); /* ceil(), with the next two operations */
    if (!e->halted) op_unary_(e, PLIM_UNARY_FLOOR, x);
    if (!e->halted) op_unary_(e, PLIM_UNARY_NEG, x);
    tensor_set(e, &x, op_add_scalar(e, x, (double)half));
    is_near = tensor_keep(op_compare_scalar(e, PLIM_BINARY_LE, size, (double)half));
    tensor_drop(e, size);
    struct tensor *near = tensor_keep(op_to(e, distance, PLIM_F32));
    tensor_set(e, &x, op_mul(e, x, sign));
    tensor_drop(e, sign);
    tensor_set(e, &x, op_where(e, is_near, near, x, PLIM_F32, 0, 0));
    tensor_drop_all(e, is_near, near);
    return x;
}

/* The same once TorchScript has compiled it: fused operations allocate memory only for their results. */
static struct tensor *buckets_fused(struct engine *e, const struct decoder *m, struct tensor *distance)
{
    int64_t half = m->config->position_buckets / 2;
    struct tensor *sign = tensor_keep(op_clamp(e, distance, -1, 1));
    struct tensor *least = tensor_keep(op_full(e, PLIM_I64, 0, NULL, (double)(half - 1)));
    struct tensor *x = tensor_keep(tensor_empty_like(e, distance, PLIM_F32));
    struct tensor *size = tensor_keep(tensor_empty_like(e, distance, PLIM_I64));
    op_copy_(e, size, distance);
    if (!e->halted) op_unary_(e, PLIM_UNARY_ABS, size);
    if (!e->halted) op_binary_(e, PLIM_BINARY_MAX, size, least);
    op_copy_(e, x, size);
    if (!e->halted) op_binary_scalar_(e, PLIM_BINARY_DIV, x, (double)half);
    if (!e->halted) op_unary_(e, PLIM_UNARY_LOG, x);
    tensor_drop(e, least);
    tensor_set(e, &x, op_div_scalar(e, x, log_farthest(m, half)));
    struct tensor *y = tensor_keep(tensor_empty_like(e, distance, PLIM_F32));
    op_copy_(e, y, x);
    if (!e->halted) {
        op_binary_scalar_(e, PLIM_BINARY_MUL, y, (double)(half - 1));
        round_up_(e, y);
        op_binary_scalar_(e, PLIM_BINARY_ADD, y, (double)half);
        op_binary_(e, PLIM_BINARY_MUL, y, sign);
        op_binary_scalar_(e, PLIM_BINARY_SUB, size, (double)half); /* 1 if the distance is large, otherwise 0 */
        op_clamp_(e, size, 0, 1);
        op_binary_(e, PLIM_BINARY_MUL, y, size);
        op_binary_(e, PLIM_BINARY_MUL, size, distance);
        op_copy_(e, sign, distance);
        op_binary_(e, PLIM_BINARY_SUB, sign, size);
        op_binary_(e, PLIM_BINARY_ADD, y, sign);
    }
    tensor_drop_all(e, x, size, sign);
    return y;
}

/* build_relative_position(): returns the distances (1, S, S) int64 for ids (B, S); named */
static struct tensor *distances_of(struct engine *e, struct decoder *m, struct tensor *ids)
{
    if (e->halted) return e->poison;
    int64_t seq = tensor_size(ids, 1);
    struct tensor *queries = tensor_keep(op_arange(e, PLIM_I64, seq, 0, 1));
    struct tensor *keys = tensor_keep(op_arange(e, PLIM_I64, seq, 0, 1));
    struct tensor *row = op_unsqueeze(e, queries, 1), *column = op_unsqueeze(e, keys, 0);
    struct tensor *distance = tensor_keep(op_sub(e, row, column));
    if (m->config->position_buckets > 0) {
        struct tensor *buckets = (m->has_scripts ? buckets_fused : buckets_by_steps)(e, m, distance);
        m->has_scripts = true;
        tensor_drop(e, distance);
        distance = buckets;
        tensor_set(e, &distance, op_to(e, distance, PLIM_I64));
    }
    tensor_drop_all(e, queries, keys);
    tensor_set(e, &distance, op_unsqueeze(e, distance, 0));
    return distance;
}

/* --- the block -------------------------------------------------------------------------------- */

/* transpose_for_scores(): (B, S, H) -> (B A, S, D), contiguous */
static struct tensor *heads_of(struct engine *e, const struct block_call *b, struct tensor *x)
{
    const struct plim_model_config *c = b->m->config;
    if (e->halted) return op_halted(e, 1, &x);
    int64_t rows = x->a.shape[0] * c->heads, seq = x->a.shape[1];
    return op_view(e, op_contiguous(e, decoder_heads(e, x, c->heads, c->head_dim)), SHAPE(rows, seq, c->head_dim));
}

/* Returns the divisor of the scores, which are the sum of one, two or three terms. */
static double scale_of(const struct plim_model_config *c)
{
    return sqrt((double)(c->head_dim * (1 + scores_c2p(c) + scores_p2c(c))));
}

/* Returns the projection of the distance embeddings (1, 2 distances, H), lent, repeated for each row of the batch;
 * named */
static struct tensor *project_distances(struct engine *e, const struct block_call *b, const struct linear *l,
                                        struct tensor *distances, int64_t rows)
{
    return tensor_keep(op_repeat(e, heads_of(e, b, nn_linear(e, l, distances)), rows));
}

/* Returns distances + span, or if `negated` span - distances, clamped to the existing embeddings; named */
static struct tensor *index_of(struct engine *e, const struct block_call *b, bool negated)
{
    double span = (double)plim_model_distances(b->m->config);
    struct tensor *distances = negated ? op_neg(e, b->positions) : b->positions;
    return tensor_keep(op_clamp(e, op_add_scalar(e, distances, span), 0, 2 * span - 1));
}

/* Returns the scores (B A, S, S) of each token of x (B A, S, D) with the embeddings of its distances to the other
 * tokens; floating. distances (B A, 2 distances, D): all embeddings. Both lent. *index: the indices of the embeddings,
 * named */
static struct tensor *scores_by_distance(struct engine *e, const struct block_call *b, struct tensor *x,
                                         struct tensor *distances, bool negated, struct tensor **index)
{
    struct tensor *all = NULL;
    if (!negated) all = tensor_keep(op_bmm(e, x, op_transpose(e, distances, 1, 2)));
    *index = index_of(e, b, negated);
    if (negated) all = tensor_keep(op_bmm(e, x, op_transpose(e, distances, 1, 2)));
    if (e->halted) return e->poison;
    int64_t rows = x->a.shape[0], seq = x->a.shape[1];
    struct tensor *y = op_gather_any(e, all, op_expand(e, *index, SHAPE(rows, seq, seq)));
    tensor_drop(e, all);
    return y;
}

/* The variables of disentangled_attention_bias(), which live until its end */
enum { QUERIES_OF, KEYS_OF, C2P_INDEX, C2P, P2C_INDEX, P2C, VARIABLES };

/* Projects the distance embeddings, as far as they are used. */
static void project(struct engine *e, const struct block_call *b, struct tensor *distances, int64_t rows,
                    struct tensor *held[VARIABLES])
{
    const struct plim_model_config *c = b->m->config;
    const struct decoder_layer *l = b->layer;
    if (c->shares_projections) {
        held[QUERIES_OF] = project_distances(e, b, &l->q, distances, rows);
        held[KEYS_OF] = project_distances(e, b, &l->k, distances, rows);
        return;
    }
    if (scores_c2p(c)) held[KEYS_OF] = project_distances(e, b, &l->distance_k, distances, rows);
    if (scores_p2c(c)) held[QUERIES_OF] = project_distances(e, b, &l->distance_q, distances, rows);
}

/* disentangled_attention_bias(): returns the distance scores (B A, S, S) of queries and keys (B A, S, D), lent; named.
 * NULL: there are none. */
static struct tensor *distance_scores(struct engine *e, const struct block_call *b, struct tensor *const qk[2],
                                      struct tensor *distances)
{
    const struct plim_model_config *c = b->m->config;
    struct tensor *held[VARIABLES] = {NULL}, *score = NULL;
    if (e->halted) return e->poison;
    struct tensor *row = tensor_keep(op_unsqueeze(e, distances, 0));
    project(e, b, row, qk[0]->a.shape[0] / c->heads, held);
    if (scores_c2p(c)) {
        held[C2P] = tensor_keep(scores_by_distance(e, b, qk[0], held[KEYS_OF], false, &held[C2P_INDEX]));
        score = tensor_keep(op_add_scalar(e, op_div_scalar(e, held[C2P], scale_of(c)), 0));
    }
    if (scores_p2c(c)) {
        struct tensor *y = scores_by_distance(e, b, qk[1], held[QUERIES_OF], true, &held[P2C_INDEX]);
        held[P2C] = tensor_keep(op_transpose(e, y, 1, 2));
        struct tensor *scaled = op_div_scalar(e, held[P2C], scale_of(c));
        if (score) tensor_set(e, &score, op_plus_(e, score, scaled));
        else score = tensor_keep(op_add_scalar(e, scaled, 0));
    }
    for (int i = 0; i < VARIABLES; i++) tensor_drop(e, held[i]);
    tensor_drop(e, row);
    return score;
}

/* Returns the scores (B, A, S, S) of queries and keys, the lowest value where masked; named. *distances and besides,
 * named or NULL, live as long as the scores. */
static struct tensor *scores_of(struct engine *e, const struct block_call *b, struct tensor *const qk[2],
                                struct tensor **distances, struct tensor *besides[2])
{
    const struct plim_model_config *c = b->m->config;
    if (e->halted) return e->poison;
    int64_t rows = qk[0]->a.shape[0], seq = qk[0]->a.shape[1];
    struct tensor *keys = op_div_scalar(e, op_transpose(e, qk[1], 1, 2), scale_of(c));
    struct tensor *scores = tensor_keep(op_bmm(e, qk[0], keys));
    if (b->distances) {
        *distances = tensor_hold(nn_dropout(e, b->distances, c->dropout_residual));
        besides[0] = distance_scores(e, b, qk, *distances);
        tensor_set(e, &scores, op_add(e, scores, besides[0]));
    }
    if (!e->halted) tensor_set(e, &scores, op_view(e, scores, SHAPE(rows / c->heads, c->heads, seq, seq)));
    besides[1] = tensor_keep(op_to(e, b->mask, PLIM_BOOL));
    struct tensor *is_hidden = op_unary(e, besides[1], PLIM_UNARY_NOT);
    double lowest = e->halted ? 0 : nn_lowest((enum plim_dtype)qk[0]->a.dtype);
    tensor_set(e, &scores, op_masked_fill(e, scores, is_hidden, lowest));
    return scores;
}

/* DisentangledSelfAttention of x (B, S, H), lent; named */
static struct tensor *attend(struct engine *e, const struct block_call *b, struct tensor *x)
{
    const struct plim_model_config *c = b->m->config;
    const struct decoder_layer *l = b->layer;
    const struct linear *projections[3] = {&l->q, &l->k, &l->v};
    struct tensor *qkv[3], *besides[2] = {NULL, NULL}, *distances = NULL;
    nn_begin(e);
    for (int i = 0; i < 3; i++) qkv[i] = tensor_keep(heads_of(e, b, nn_linear(e, projections[i], x)));
    struct tensor *scores = scores_of(e, b, qkv, &distances, besides);
    if (e->halted) return nn_end(e, e->poison);
    int64_t rows = qkv[0]->a.shape[0], seq = qkv[0]->a.shape[1], batch = rows / c->heads;
    enum plim_dtype inside = e->autocast.on ? PLIM_F32 : (enum plim_dtype)scores->a.dtype;
    struct tensor *weights = tensor_keep(op_softmax(e, scores, inside));
    tensor_set(e, &weights, nn_dropout(e, weights, c->dropout_attention));
    struct tensor *y = tensor_keep(op_bmm(e, op_view(e, weights, SHAPE(rows, seq, seq)), qkv[2]));
    if (!e->halted) tensor_set(e, &y, op_view(e, y, SHAPE(batch, c->heads, seq, c->head_dim)));
    tensor_set(e, &y, op_contiguous(e, op_transpose(e, y, 1, 2)));
    if (!e->halted) tensor_set(e, &y, op_view(e, y, SHAPE(batch, seq, c->heads * c->head_dim)));
    tensor_drop_all(e, qkv[0], qkv[1], qkv[2], scores, weights, besides[0], besides[1], distances);
    tensor_set(e, &y, nn_end(e, y));
    return y;
}

static struct tensor *block(struct engine *e, const struct block_call *b, struct tensor *x)
{
    const struct decoder_layer *l = b->layer;
    nn_begin(e); /* DebertaV2Attention */
    struct tensor *y = attend(e, b, x);
    struct tensor *attended = tensor_keep(nn_end(e, bert_output(e, b, &l->o, &l->norm[0], y, x)));
    tensor_drop(e, y);
    y = bert_feed(e, b, &l->norm[1], attended, attended);
    tensor_drop(e, attended);
    return y;
}

/* --- the forward ------------------------------------------------------------------------------ */

/* get_attention_mask(): returns the mask (B, 1, S, S) of pairs of tokens for a mask (B, S), lent; named */
static struct tensor *pairs_of(struct engine *e, struct tensor *mask)
{
    if (e->halted) return e->poison;
    int64_t rows = mask->a.shape[0], seq = mask->a.shape[1];
    struct tensor *queries = op_view(e, mask, SHAPE(rows, 1, seq, 1)), *keys = op_view(e, mask, SHAPE(rows, 1, 1, seq));
    return tensor_keep(op_mul(e, keys, queries));
}

/* get_rel_embedding(): returns the distance embeddings, normed if they have a norm; named. NULL: none */
static struct tensor *distance_embeddings(struct engine *e, const struct decoder *m)
{
    if (!m->distance_embedding) return NULL;
    if (!m->distance_norm.weight) return tensor_ref(m->distance_embedding);
    return tensor_keep(nn_norm(e, &m->distance_norm, m->distance_embedding));
}

static struct tensor *body(struct engine *e, struct decoder *m, struct tensor *ids)
{
    if (e->halted) return tensor_keep(e->poison);
    look_for_padding(e, m, ids);
    struct tensor *mask = m->attention_mask ? tensor_ref(m->attention_mask)
                                            : tensor_keep(op_full(e, PLIM_F32, 2, ids->a.shape, 1));
    struct tensor *types = tensor_keep(op_full(e, PLIM_I64, 2, ids->a.shape, 0));
    struct tensor *embeddings = embed(e, m, ids, mask, types);
    nn_begin(e);
    struct block_call call = {.mask = pairs_of(e, mask)};
    if (m->distance_embedding) call.positions = distances_of(e, m, ids);
    call.distances = distance_embeddings(e, m);
    struct tensor *x = decoder_blocks(e, m, tensor_ref(embeddings), &call, NULL);
    tensor_set(e, &x, nn_end(e, x));
    for (int64_t i = 0; i < m->config->layers; i++) { /* output_hidden_states is always true */
        tensor_drop(e, m->hidden_states[i]);
        m->hidden_states[i] = NULL;
    }
    tensor_drop_all(e, mask, types, embeddings, call.mask, call.positions, call.distances);
    return x;
}

const struct family plim_family_deberta_v2 = {.build = build, .block = block, .body = body};
