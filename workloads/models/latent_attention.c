/* Multi-head latent attention: DeepseekV3Attention of transformers' deepseek_v3 (modeling_deepseek_v3.py), and
 * deepseek_v2's, which rotates pairs of adjacent elements as complex numbers. Keys and values are projected from a
 * small latent; the rotated part of the keys is computed beside it and shared by all heads. */
#include "model.h"
#include <math.h>

static int64_t query_dim(const struct plim_model_config *c)
{
    return c->plain_dim + c->head_dim;
}

void latent_attention_build(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    int64_t h = c->hidden_size, queries = c->heads * query_dim(c);
    if (c->query_rank) {
        nn_linear_create(e, p, &l->q_a, h, c->query_rank, c->attention_bias);
        nn_norm_create(e, p, &l->q_a_norm, NORM_RMS, c->query_rank, false);
        nn_linear_create(e, p, &l->q_b, c->query_rank, queries, false);
    } else {
        nn_linear_create(e, p, &l->q, h, queries, false);
    }
    nn_linear_create(e, p, &l->kv_a, h, c->key_rank + c->head_dim, c->attention_bias);
    nn_norm_create(e, p, &l->kv_a_norm, NORM_RMS, c->key_rank, false);
    nn_linear_create(e, p, &l->kv_b, c->key_rank, c->heads * (c->plain_dim + c->value_dim), false);
    nn_linear_create(e, p, &l->o, c->heads * c->value_dim, h, c->attention_bias);
}

enum { Q, K, V };
enum { NOPE, ROPE }; /* parts of queries and keys; of the latent: the part that is projected to keys and values, and
                        * the keys' rotated part */

/* Splits the last dimension of x into two parts, named. */
static void cut(struct engine *e, struct tensor *x, int64_t first, int64_t second, struct tensor *part[2])
{
    op_split(e, x, -1, 2, (int64_t[]){first, second}, part);
    for (int i = 0; i < 2; i++) tensor_keep(part[i]);
}

/* Rebinds the parts of queries and keys to the rotated ones. */
static void rotate(struct engine *e, const struct block_call *b, struct tensor **queries, struct tensor **keys)
{
    bool by_pairs = b->m->config->rope_pairs, is_complex = b->m->rotary.is_complex;
    struct tensor **x[2] = {queries, keys}, *rotated[2], *angles[2] = {b->cos, b->sin};
    if (e->halted) return;
    if (is_complex) nn_rotate_complex(e, (struct tensor *[]){*queries, *keys}, b->cos, rotated);
    for (int i = 0; i < 2 && !is_complex; i++) {
        int64_t width = tensor_size(angles[i], -1);
        struct tensor *part = by_pairs ? op_slice(e, angles[i], -1, 0, width / 2) : angles[i];
        angles[i] = tensor_keep(op_unsqueeze(e, part, 1));
    }
    for (int i = 0; i < 2 && !is_complex; i++)
        rotated[i] = tensor_keep((by_pairs ? nn_rotate_apart : nn_rotate)(e, *x[i], angles[0], angles[1]));
    for (int i = 0; i < 2; i++) {
        tensor_drop_all(e, *x[i], is_complex ? NULL : angles[i]);
        *x[i] = rotated[i];
    }
}

/* DeepseekV3Attention.expand_kv(): computes keys and values (B, A, S, ..) from the latent (B, 1, S, rank) and the
 * rotated part (B, 1, S, ..); all named */
static void expand(struct engine *e, const struct block_call *b, struct tensor *const latent[2], struct tensor *qkv[3])
{
    const struct plim_model_config *c = b->m->config;
    struct tensor *part[2];
    qkv[K] = qkv[V] = e->poison;
    if (e->halted) return;
    int64_t batch = tensor_size(latent[NOPE], 0), seq = tensor_size(latent[NOPE], 2), heads = c->heads;
    struct tensor *both = op_view(e, nn_linear(e, &b->layer->kv_b, latent[NOPE]),
                                  SHAPE(batch, seq, heads, c->plain_dim + c->value_dim));
    both = tensor_keep(op_transpose(e, both, 1, 2));
    cut(e, both, c->plain_dim, c->value_dim, part);
    struct tensor *rotated = tensor_keep(op_expand(e, latent[ROPE], SHAPE(batch, heads, seq, c->head_dim)));
    enum plim_dtype dtype = e->halted ? PLIM_F32 : (enum plim_dtype)both->a.dtype;
    struct tensor *keys = tensor_keep(tensor_empty(e, dtype, SHAPE(batch, heads, seq, query_dim(c))));
    tensor_set(e, &keys, op_set_slice_(e, keys, 3, 0, part[NOPE]));
    tensor_set(e, &keys, op_set_slice_(e, keys, 3, c->plain_dim, rotated));
    tensor_drop_all(e, both, part[NOPE], rotated);
    qkv[K] = keys;
    qkv[V] = part[1];
}

/* Returns the queries (B, A, S, D); named */
static struct tensor *project_queries(struct engine *e, const struct block_call *b, struct tensor *x)
{
    const struct plim_model_config *c = b->m->config;
    const struct decoder_layer *l = b->layer;
    struct tensor *y = l->q_a.weight
                           ? nn_linear(e, &l->q_b, nn_norm(e, &l->q_a_norm, nn_linear(e, &l->q_a, x)))
                           : nn_linear(e, &l->q, x);
    return tensor_keep(decoder_heads(e, y, c->heads, query_dim(c)));
}

/* Splits the latent into its two parts, viewed as one head each, the first one normed; both named */
static void view_latent(struct engine *e, const struct block_call *b, struct tensor *compressed,
                        struct tensor *latent[2])
{
    const struct plim_model_config *c = b->m->config;
    cut(e, compressed, c->key_rank, c->head_dim, latent);
    tensor_set(e, &latent[NOPE], nn_norm(e, &b->layer->kv_a_norm, latent[NOPE]));
    if (e->halted) return;
    int64_t batch = tensor_size(compressed, 0), seq = tensor_size(compressed, 1);
    tensor_set(e, &latent[NOPE], op_view(e, latent[NOPE], SHAPE(batch, 1, seq, c->key_rank)));
    tensor_set(e, &latent[ROPE], op_view(e, latent[ROPE], SHAPE(batch, 1, seq, c->head_dim)));
}

struct tensor *latent_attention(struct engine *e, const struct block_call *b, struct tensor *x,
                                struct tensor **weights)
{
    const struct plim_model_config *c = b->m->config;
    struct tensor *query[2], *latent[2], *qkv[3];
    nn_begin(e);
    struct tensor *queries = project_queries(e, b, x);
    cut(e, queries, c->plain_dim, c->head_dim, query);
    struct tensor *compressed = tensor_keep(nn_linear(e, &b->layer->kv_a, x));
    view_latent(e, b, compressed, latent);
    rotate(e, b, &query[ROPE], &latent[ROPE]);
    qkv[Q] = tensor_keep(op_cat(e, 2, query, -1));
    expand(e, b, latent, qkv);
    struct attention_call call = decoder_attention(b);
    call.scaling = 1 / sqrt((double)query_dim(c)); /* yarn's mscale only changes values */
    struct tensor *y = decoder_attend(e, b, &call, qkv, weights);
    for (int i = Q; i <= V; i++) tensor_drop(e, qkv[i]);
    tensor_drop_all(e, queries, query[NOPE], query[ROPE], compressed, latent[NOPE], latent[ROPE]);
    return nn_end(e, y);
}
