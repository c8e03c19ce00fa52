/* The scan of Mamba-2's state-space duality (arXiv:2405.21060) in chunks, with the steps of the Python code that
 * transformers runs without the package mamba_ssm (mamba2_chunk_scan,
 * transformers/models/granitemoehybrid/modeling_granitemoehybrid.py).
 *
 * Its contractions are products that are written out and then summed: the largest has (B, n, L, L, H, N) numbers in
 * fp32, for n chunks of L tokens. */
#include "nn.h"
#include <float.h>
#include <math.h>

/* The variables of a call; named. n chunks of L tokens; P elements of a head, N of a state. */
struct scan {
    struct tensor *x, *rate, *b, *c; /* (B, n, L, H, P), (B, H, n, L), (B, n, L, H, N) twice */
    struct tensor *step, *residual;  /* (B, S, H), (B, n L, H, P) */
    struct tensor *cumulated, *decay, *products, *weights; /* (B, H, n, L), (B, H, n, L, L), (B, n, L, L, H) twice */
    struct tensor *within;           /* (B, n, L, H, P) */
    struct tensor *state_decay, *decayed, *states, *initial, *chunk_decay, *fresh;
    struct tensor *out_decay, *seen, *across;
};

/* mask of the lower triangle up to a diagonal, (n, n); floating */
static struct tensor *lower(struct engine *e, int64_t n, int diagonal)
{
    return op_tril(e, op_full(e, PLIM_BOOL, SHAPE(n, n), 1), diagonal);
}

/* segment_sum(): sums of x (.., n) from j + 1 to i if j <= i, otherwise minus infinity: (.., n, n); floating. A
 * floating x is freed as soon as it is not needed. */
static struct tensor *segment_sums(struct engine *e, struct tensor *x)
{
    if (e->halted) return op_halted(e, 1, &x);
    int64_t shape[PLIM_MAX_DIMS], n = tensor_size(x, -1);
    int ndim = x->a.ndim;
    for (int i = 0; i < ndim; i++) shape[i] = x->a.shape[i];
    shape[ndim] = n;
    struct tensor *wide = tensor_keep(op_expand(e, op_unsqueeze(e, x, -1), ndim + 1, shape));
    struct tensor *mask = tensor_keep(lower(e, n, -1));
    tensor_set(e, &wide, op_masked_fill(e, wide, op_unary(e, mask, PLIM_UNARY_NOT), 0));
    struct tensor *sums = tensor_keep(op_cumsum(e, wide, -2, PLIM_F32));
    tensor_set(e, &mask, lower(e, n, 0));
    tensor_set(e, &sums, op_masked_fill(e, sums, op_unary(e, mask, PLIM_UNARY_NOT), -INFINITY));
    tensor_drop_all(e, wide, mask);
    return tensor_yield(sums);
}

/* reshape_into_chunks(): (B, S, ..) -> (B, n, L, ..), with `behind` zeros behind each row; floating */
static struct tensor *chunked(struct engine *e, struct tensor *x, int64_t chunk, int64_t behind)
{
    struct tensor *padded = op_pad(e, x, 1, behind);
    if (e->halted) return e->poison;
    int64_t shape[PLIM_MAX_DIMS] = {padded->a.shape[0], padded->a.shape[1] / chunk, chunk};
    for (int i = 2; i < padded->a.ndim; i++) shape[i + 1] = padded->a.shape[i];
    return op_reshape(e, padded, padded->a.ndim + 1, shape);
}

/* x of (B, H, n, L) as (B, n, L, H, 1); floating */
static struct tensor *behind_tokens(struct engine *e, struct tensor *x)
{
    return op_unsqueeze(e, op_permute(e, x, 4, (const int[]){0, 2, 3, 1}), -1);
}

/* Makes steps positive, weighs the inputs by them, and cuts everything into chunks. */
static void prepare(struct engine *e, const struct mamba2_scan *given, struct scan *s, int64_t behind)
{
    int64_t each = tensor_size(given->x, 2) / tensor_size(given->b, 2);
    s->step = tensor_keep(op_add(e, given->step, op_to(e, given->step_bias, (enum plim_dtype)given->step->a.dtype)));
    tensor_set(e, &s->step, op_softplus(e, s->step));
    tensor_set(e, &s->step, op_clamp(e, s->step, given->step_min, FLT_MAX)); /* transformers compares with infinity */
    s->x = tensor_hold(op_to(e, given->x, PLIM_F32));
    s->b = tensor_keep(op_repeat_each(e, op_to(e, given->b, PLIM_F32), 2, each));
    s->c = tensor_keep(op_repeat_each(e, op_to(e, given->c, PLIM_F32), 2, each));
    struct tensor *padded = op_pad(e, s->x, 1, behind);
    s->residual = tensor_keep(op_mul(e, op_unsqueeze(e, given->skip, -1), padded));
    tensor_set(e, &s->x, op_mul(e, s->x, op_to(e, op_unsqueeze(e, s->step, -1), PLIM_F32)));
    s->rate = tensor_keep(op_mul(e, op_to(e, given->a, PLIM_F32), op_to(e, s->step, PLIM_F32)));
    struct tensor **of[] = {&s->x, &s->rate, &s->b, &s->c}, *cut[4];
    for (int i = 0; i < 4; i++) cut[i] = tensor_keep(chunked(e, *of[i], given->chunk, behind));
    for (int i = 0; i < 4; i++) {
        tensor_drop(e, *of[i]);
        *of[i] = cut[i];
    }
    tensor_set(e, &s->rate, op_permute(e, s->rate, 4, (const int[]){0, 3, 1, 2}));
}

/* What a chunk's tokens see of the chunk itself. */
static void within_chunks(struct engine *e, struct scan *s)
{
    s->cumulated = tensor_keep(op_cumsum(e, s->rate, -1, PLIM_F32));
    s->decay = tensor_keep(op_exp(e, segment_sums(e, s->rate)));
    struct tensor *products = op_mul(e, op_unsqueeze(e, s->c, 3), op_unsqueeze(e, s->b, 2));
    s->products = tensor_keep(op_sum_dim(e, products, 5));
    struct tensor *decay = op_permute(e, s->decay, 5, (const int[]){0, 2, 3, 4, 1});
    products = op_mul(e, op_unsqueeze(e, s->products, -1), op_unsqueeze(e, decay, -1));
    s->weights = tensor_keep(op_sum_dim(e, products, 5));
    products = op_mul(e, op_unsqueeze(e, s->weights, -1), op_unsqueeze(e, s->x, 2));
    s->within = tensor_keep(op_sum_dim(e, products, 3));
}

/* The states at the start of each chunk, (B, n, H, P, N), a view of those that follow from all chunks. */
static void over_chunks(struct engine *e, struct scan *s)
{
    if (e->halted) return;
    int64_t chunk = tensor_size(s->cumulated, -1), count = tensor_size(s->cumulated, 2);
    struct tensor *rest = op_sub(e, op_slice(e, s->cumulated, -1, chunk - 1, 1), s->cumulated);
    s->state_decay = tensor_keep(op_exp(e, rest));
    s->decayed = tensor_keep(op_mul(e, s->b, behind_tokens(e, s->state_decay)));
    struct tensor *outer = op_mul(e, op_unsqueeze(e, s->decayed, -2), op_unsqueeze(e, s->x, -1));
    s->states = tensor_keep(op_sum_dim(e, outer, 2));
    struct tensor *first = tensor_hold(op_slice(e, s->states, 1, 0, 1)); /* may be the states themselves */
    s->initial = tensor_keep(op_full_like(e, first, 0));
    tensor_drop(e, first);
    tensor_set(e, &s->states, op_cat(e, 2, (struct tensor *[]){s->initial, s->states}, 1));
    struct tensor *ends = op_pad_start(e, op_select(e, s->cumulated, -1, chunk - 1), -1, 1);
    s->chunk_decay = tensor_keep(op_transpose(e, op_exp(e, segment_sums(e, ends)), 1, 3));
    struct tensor *decay = op_unsqueeze(e, op_unsqueeze(e, s->chunk_decay, -1), -1);
    s->fresh = tensor_keep(op_sum_dim(e, op_mul(e, decay, op_unsqueeze(e, s->states, 2)), 1));
    tensor_set(e, &s->states, op_slice(e, s->fresh, 1, 0, count));
}

/* What a chunk's tokens see of earlier chunks. */
static void across_chunks(struct engine *e, struct scan *s)
{
    s->out_decay = tensor_keep(op_exp(e, s->cumulated));
    s->seen = tensor_keep(op_mul(e, op_unsqueeze(e, s->c, -2), op_unsqueeze(e, s->states, 2)));
    s->across = tensor_keep(op_mul(e, op_sum_dim(e, s->seen, 5), behind_tokens(e, s->out_decay)));
}

struct tensor *nn_mamba2_scan(struct engine *e, const struct mamba2_scan *given)
{
    struct scan s = {0};
    if (e->halted) return e->poison;
    const int64_t *n = given->x->a.shape;
    int64_t behind = (given->chunk - n[1] % given->chunk) % given->chunk;
    prepare(e, given, &s, behind);
    within_chunks(e, &s);
    over_chunks(e, &s);
    across_chunks(e, &s);
    struct tensor *y = tensor_keep(op_add(e, s.within, s.across));
    tensor_set(e, &y, op_reshape(e, y, SHAPE(n[0], n[1] + behind, n[2], n[3])));
    tensor_set(e, &y, op_add(e, y, s.residual));
    if (behind) tensor_set(e, &y, op_slice(e, y, 1, 0, n[1]));
    tensor_drop_all(e, s.x, s.rate, s.b, s.c, s.step, s.residual, s.cumulated, s.decay, s.products, s.weights,
                    s.within, s.state_decay, s.decayed, s.states, s.initial, s.chunk_decay, s.fresh, s.out_decay,
                    s.seen, s.across);
    return tensor_yield(y);
}
