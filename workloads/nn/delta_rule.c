/* The gated delta rule (arXiv:2412.06464) in chunks, with the steps of the Python code that transformers runs without
 * special kernels (torch_chunk_gated_delta_rule, transformers/models/qwen3_5/modeling_qwen3_5.py). */
#include "nn.h"
#include <math.h>

enum { Q, K, V };
enum { CHUNK = 64 };

/* x.transpose(1, 2).to(torch.float32, memory_format=torch.contiguous_format), which copies only to change the type;
 * named. */
static struct tensor *in_fp32(struct engine *e, struct tensor *x)
{
    struct tensor *transposed = tensor_keep(op_transpose(e, x, 1, 2));
    struct tensor *y = tensor_hold(op_to_contiguous(e, transposed, PLIM_F32));
    tensor_drop(e, transposed);
    return y;
}

/* x * rsqrt((x * x).sum(-1) + 1e-6) */
static struct tensor *unit_length(struct engine *e, struct tensor *x)
{
    struct tensor *squares = op_sum_last(e, op_mul(e, x, x));
    struct tensor *inverse = tensor_keep(op_rsqrt(e, op_add_scalar(e, squares, 1e-6)));
    struct tensor *y = op_mul(e, x, inverse);
    tensor_drop(e, inverse);
    return y;
}

/* The variables of a call; named. */
struct rule {
    struct tensor *qkv[3], *beta,
        *decay; /* (B, heads, S, D) and (B, heads, S), later in chunks: (B, heads, n, 64, D) */
    struct tensor *k_beta, *v_beta;
    struct tensor *mask, *cumulated,
        *pairwise;                          /* (64, 64), (B, heads, n, 64), (B, heads, n, 64, 64) */
    struct tensor *system, *inside;         /* (B, heads, n, 64, 64) */
    struct tensor *decayed, *values, *keys; /* (B, heads, n, 64, D or E) */
    struct tensor *chunk_decay, *fresh,
        *seen; /* (B, heads, n, 1, 1); of the last chunk (B, heads, 64, E) */
};

/* Pads with zeros to whole chunks. */
static void pad(struct engine *e, struct rule *r, int64_t count)
{
    struct tensor *padded[3];
    for (int i = Q; i <= V; i++) padded[i] = tensor_keep(op_pad(e, r->qkv[i], 2, count));
    for (int i = Q; i <= V; i++) {
        tensor_drop(e, r->qkv[i]);
        r->qkv[i] = padded[i];
    }
    struct tensor *beta = tensor_keep(op_pad(e, r->beta, 2, count)),
                  *decay = tensor_keep(op_pad(e, r->decay, 2, count));
    tensor_drop_all(e, r->beta, r->decay);
    r->beta = beta;
    r->decay = decay;
}

/* (B, heads, S, ..) -> (B, heads, n, 64, ..); floating */
static struct tensor *chunked(struct engine *e, struct tensor *x)
{
    if (e->halted) return e->poison;
    int64_t shape[5] = {x->a.shape[0], x->a.shape[1], x->a.shape[2] / CHUNK, CHUNK,
                        x->a.shape[x->a.ndim - 1]};
    return op_reshape(e, x, x->a.ndim + 1, shape);
}

static void cut_in_chunks(struct engine *e, struct rule *r)
{
    struct tensor **of[] = {&r->qkv[Q], &r->qkv[K], &r->k_beta, &r->v_beta}, *cut[4];
    for (int i = 0; i < 4; i++) cut[i] = tensor_keep(chunked(e, *of[i]));
    for (int i = 0; i < 4; i++) {
        tensor_drop(e, *of[i]);
        *of[i] = cut[i];
    }
    tensor_set(e, &r->decay, chunked(e, r->decay));
}

/* exp(cumulated_i - cumulated_j) if j <= i, otherwise 0. */
static void decay_pairs(struct engine *e, struct rule *r)
{
    struct tensor *rows = op_unsqueeze(e, r->cumulated, 4),
                  *columns = op_unsqueeze(e, r->cumulated, 3);
    r->pairwise = tensor_keep(op_sub(e, rows, columns));
    tensor_set(e, &r->pairwise, op_masked_fill(e, r->pairwise, r->mask, -INFINITY));
    tensor_set(e, &r->pairwise, op_exp(e, r->pairwise));
}

/* Multiplies each row of x by a number of `rows`, (B, heads, n, 64). */
static struct tensor *scaled(struct engine *e, struct tensor *x, struct tensor *rows)
{
    return op_mul(e, x, op_unsqueeze(e, rows, -1));
}

/* Computes what depends on each chunk alone. */
static void within_chunks(struct engine *e, struct rule *r)
{
    struct tensor *ones = tensor_keep(op_full(e, PLIM_BOOL, SHAPE(CHUNK, CHUNK), 1));
    r->mask = tensor_keep(op_triu(e, ones, 1));
    tensor_drop(e, ones);
    r->cumulated = tensor_keep(op_cumsum_last(e, r->decay, PLIM_F32));
    decay_pairs(e, r);
    struct tensor *products = op_matmul(e, r->k_beta, op_transpose(e, r->qkv[K], -1, -2));
    r->system = tensor_keep(op_mul(e, products, r->pairwise));
    products = op_matmul(e, r->qkv[Q], op_transpose(e, r->qkv[K], -1, -2));
    r->inside = tensor_keep(op_mul(e, products, r->pairwise));
    r->decayed = tensor_keep(scaled(e, r->k_beta, op_exp(e, r->cumulated)));
    r->values = tensor_keep(op_solve_triangular(e, r->system, r->v_beta, false));
    r->keys = tensor_keep(op_solve_triangular(e, r->system, r->decayed, false));
}

/* Goes from chunk to chunk with the state (B, heads, D, E), by which each chunk sees the earlier ones. Returns (B,
 * heads, n, 64, E), named. */
static struct tensor *over_chunks(struct engine *e, struct rule *r)
{
    if (e->halted) return e->poison;
    const struct plim_array *k = &r->qkv[K]->a;
    int64_t chunks = k->shape[2];
    struct tensor *state = tensor_keep(op_full(
        e, PLIM_F32, SHAPE(k->shape[0], k->shape[1], k->shape[4], tensor_size(r->values, 4)), 0));
    struct tensor *all = tensor_keep(op_full_like(e, r->values, 0)), *last;
    tensor_set(e, &r->qkv[Q], scaled(e, r->qkv[Q], op_exp(e, r->cumulated)));
    last = op_slice(e, r->cumulated, -1, CHUNK - 1, 1);
    tensor_set(e, &r->qkv[K], scaled(e, r->qkv[K], op_exp(e, op_sub(e, last, r->cumulated))));
    last = op_exp(e, op_select(e, r->cumulated, -1, CHUNK - 1));
    r->chunk_decay = tensor_keep(op_unsqueeze(e, op_unsqueeze(e, last, -1), -1));
    for (int64_t i = 0; i < chunks && !e->halted; i++) {
        struct tensor *value = op_select(e, r->values, 2, i);
        tensor_set(e, &r->fresh,
                   op_sub(e, value, op_matmul(e, op_select(e, r->keys, 2, i), state)));
        tensor_set(e, &r->seen, op_matmul(e, op_select(e, r->qkv[Q], 2, i), state));
        struct tensor *own = op_matmul(e, op_select(e, r->inside, 2, i), r->fresh);
        tensor_set(e, &all, op_set_part_(e, all, 2, i, op_add(e, r->seen, own)));
        struct tensor *kept = op_mul(e, state, op_select(e, r->chunk_decay, 2, i));
        struct tensor *transposed = op_transpose(e, op_select(e, r->qkv[K], 2, i), -1, -2);
        tensor_set(e, &state, op_add(e, kept, op_matmul(e, transposed, r->fresh)));
    }
    tensor_drop(e, state);
    return all;
}

struct tensor *nn_gated_delta_rule(struct engine *e, struct tensor *const qkv[3],
                                   struct tensor *decay, struct tensor *beta)
{
    struct rule r = {.qkv = {NULL}};
    if (e->halted) return e->poison;
    enum plim_dtype dtype = (enum plim_dtype)qkv[Q]->a.dtype;
    int64_t batch = qkv[Q]->a.shape[0], seq = qkv[Q]->a.shape[1], heads = qkv[V]->a.shape[2],
            width = qkv[V]->a.shape[3];
    for (int i = Q; i <= V; i++) r.qkv[i] = in_fp32(e, qkv[i]);
    r.beta = in_fp32(e, beta);
    r.decay = in_fp32(e, decay);
    tensor_set(e, &r.qkv[Q], unit_length(e, r.qkv[Q]));
    tensor_set(e, &r.qkv[K], unit_length(e, r.qkv[K]));
    tensor_set(e, &r.qkv[Q], op_mul_scalar(e, r.qkv[Q], 1 / sqrt((double)qkv[Q]->a.shape[3])));
    int64_t behind = (CHUNK - seq % CHUNK) % CHUNK;
    pad(e, &r, behind);
    r.v_beta = tensor_keep(scaled(e, r.qkv[V], r.beta));
    r.k_beta = tensor_keep(scaled(e, r.qkv[K], r.beta));
    cut_in_chunks(e, &r);
    within_chunks(e, &r);
    struct tensor *y = over_chunks(e, &r);
    tensor_set(e, &y, op_reshape(e, y, SHAPE(batch, heads, seq + behind, width)));
    tensor_set(e, &y, op_slice(e, y, 2, 0, seq));
    tensor_set(e, &y, op_transpose(e, y, 1, 2));
    tensor_set(e, &y, op_to_contiguous(e, y, dtype));
    tensor_drop_all(e, r.qkv[Q], r.qkv[K], r.qkv[V], r.beta, r.decay, r.k_beta, r.v_beta, r.mask,
                    r.cumulated, r.pairwise, r.system, r.inside, r.decayed, r.values, r.keys,
                    r.chunk_decay, r.fresh, r.seen);
    return tensor_yield(y);
}
