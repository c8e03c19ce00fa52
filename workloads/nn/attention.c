/* The attention functions of transformers: sdpa_attention_forward, eager_attention_forward and
 * flash_attention_forward. */
#include "nn.h"

/* repeat_kv: repeats each key head for each of its query heads; x itself if there is only one. */
static struct tensor *repeat_kv(struct engine *e, struct tensor *x, int64_t groups)
{
    if (groups == 1 || e->halted) return x;
    int64_t b = x->a.shape[0], heads = x->a.shape[1], s = x->a.shape[2], d = x->a.shape[3];
    struct tensor *wide =
        tensor_keep(op_expand(e, op_unsqueeze(e, x, 2), SHAPE(b, heads, groups, s, d)));
    struct tensor *y = op_reshape(e, wide, SHAPE(b, heads * groups, s, d));
    tensor_drop(e, wide);
    return y;
}

/* create_position_bias_mask(): the bias, with the lowest number of the keys' type for masked tokens; named. */
static struct tensor *bias_mask(struct engine *e, const struct attention_call *c, struct tensor *q, struct tensor *k)
{
    struct tensor *mask = c->mask;
    if (!mask && (c->bidirectional || tensor_size(q, 2) == 1)) return tensor_ref(c->bias);
    enum plim_dtype dtype = (enum plim_dtype)c->bias->a.dtype;
    double low = nn_lowest((enum plim_dtype)k->a.dtype);
    int64_t rows = tensor_size(q, 2), columns = tensor_size(k, 2);
    if (mask) {
        tensor_ref(mask);
    } else {
        struct tensor *row = op_unsqueeze(e, op_arange(e, PLIM_I64, rows, 0, 1), 1);
        struct tensor *column = op_unsqueeze(e, op_arange(e, PLIM_I64, columns, 0, 1), 0);
        struct tensor *causal = op_compare(e, PLIM_BINARY_GE, row, column);
        mask = tensor_keep(op_view(e, causal, SHAPE(1, 1, rows, columns)));
    }
    struct tensor *y = tensor_keep(op_where(e, mask, c->bias, NULL, dtype, 0, low));
    tensor_drop(e, mask);
    return y;
}

static struct tensor *sdpa(struct engine *e, const struct attention_call *c, struct tensor *q,
                           struct tensor *k, struct tensor *v)
{
    enum { MOST_WIDTH = 256 }; /* use_gqa_in_sdpa: only without a mask, if a fused kernel supports the size */
    bool gqa = c->groups > 1 && !c->mask && !e->halted && tensor_size(k, 3) <= MOST_WIDTH;
    struct tensor *keys = gqa ? tensor_ref(k) : tensor_hold(repeat_kv(e, k, c->groups));
    struct tensor *values = gqa ? tensor_ref(v) : tensor_hold(repeat_kv(e, v, c->groups));
    struct tensor *biased = c->bias && !e->halted ? bias_mask(e, c, q, k) : NULL;
    struct attention_params p = {.mask = biased ? biased : c->mask,
                                 .dropout = e->evaluates ? 0 : c->dropout,
                                 .scale = c->scaling,
                                 .causal = !biased && !c->bidirectional && !c->mask && !e->halted &&
                                           tensor_size(q, 2) > 1};
    struct tensor *out = tensor_keep(op_sdpa(e, q, keys, values, &p));
    tensor_set(e, &out, op_contiguous(e, op_transpose(e, out, 1, 2)));
    tensor_drop(e, biased);
    tensor_drop(e, keys);
    tensor_drop(e, values);
    return tensor_yield(out);
}

/* x (B, A, S, D) -> (B * A, S, D) or its transpose, copied; named. */
static struct tensor *rows_of_heads(struct engine *e, struct tensor *x, bool transposed)
{
    if (e->halted) return e->poison;
    int64_t heads = x->a.shape[0] * x->a.shape[1], s = x->a.shape[2], d = x->a.shape[3];
    if (transposed) return tensor_hold(op_reshape(e, op_transpose(e, x, 2, 3), SHAPE(heads, d, s)));
    return tensor_hold(op_reshape(e, x, SHAPE(heads, s, d)));
}

/* Returns the scores of _upcast_and_reordered_attn, (B, A, S, S), named; memory for them is allocated twice. */
static struct tensor *upcast_scores(struct engine *e, const struct attention_call *c, struct tensor *q,
                                    struct tensor *k, struct tensor *rows[2])
{
    if (e->halted) return e->poison;
    int64_t b = q->a.shape[0], heads = q->a.shape[1], s = q->a.shape[2];
    bool autocast = e->autocast.on;
    struct tensor *scores = tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(b * heads, s, s)));
    e->autocast.on = false;
    rows[0] = rows_of_heads(e, q, false);
    rows[1] = rows_of_heads(e, k, true);
    struct tensor *left = tensor_hold(op_to(e, rows[0], PLIM_F32)), *right = tensor_hold(op_to(e, rows[1], PLIM_F32));
    tensor_set(e, &scores, op_baddbmm(e, scores, left, right, 0, c->scaling));
    tensor_drop_all(e, left, right);
    tensor_set(e, &scores, op_reshape(e, scores, SHAPE(b, heads, s, s)));
    e->autocast.on = autocast;
    return scores;
}

/* _upcast_and_reordered_attn of gpt2. */
static struct tensor *upcast(struct engine *e, const struct attention_call *c, struct tensor *q,
                             struct tensor *k, struct tensor *v, struct tensor **weights)
{
    struct tensor *rows[2] = {NULL, NULL}, *w = upcast_scores(e, c, q, k, rows);
    if (c->mask) tensor_set(e, &w, op_add(e, w, c->mask));
    tensor_set(e, &w, op_softmax(e, w, PLIM_F32));
    tensor_set(e, &w, op_to(e, w, (enum plim_dtype)v->a.dtype));
    tensor_set(e, &w, op_dropout(e, w, c->dropout));
    struct tensor *out = tensor_keep(op_transpose(e, op_matmul(e, w, v), 1, 2));
    tensor_drop_all(e, rows[0], rows[1]);
    tensor_set(e, &out, op_contiguous(e, out));
    *weights = w;
    return tensor_yield(out);
}

/* Rebinds the scores *w (B, A, S, S) to the weights: their softmax in the family's type. */
static void weigh(struct engine *e, const struct attention_call *c, struct tensor **w, struct tensor *q,
                  struct tensor *v)
{
    enum plim_dtype dtype = (enum plim_dtype)(c->softmax_fp32 ? q : v)->a.dtype;
    enum plim_dtype inside =
        c->softmax_fp32 || e->autocast.on ? PLIM_F32 : (enum plim_dtype)(*w)->a.dtype;
    if (c->softmax_fp32) {
        tensor_set(e, w, op_to(e, op_softmax(e, *w, inside), dtype));
    } else {
        tensor_set(e, w, op_softmax(e, *w, inside));
        if (!c->softmax_stays) tensor_set(e, w, op_to(e, *w, dtype));
    }
    tensor_set(e, w, op_dropout(e, *w, c->dropout));
}

/* Python variables of eager attention with sinks, which live until its end. */
struct sink_variables {
    struct tensor *sinks, *combined, *probabilities, *scores;
};

/* The same with an additional score in each row, its head's sink, in the common type of both. */
static void weigh_with_sinks(struct engine *e, const struct attention_call *c, struct tensor **w, struct tensor *v,
                             struct sink_variables *s)
{
    if (e->halted) return;
    const int64_t *n = (*w)->a.shape;
    struct tensor *column = op_reshape(e, c->sinks, SHAPE(1, n[1], 1, 1));
    s->sinks = tensor_keep(op_expand(e, column, SHAPE(n[0], n[1], n[2], 1)));
    struct tensor *both[2] = {*w, s->sinks};
    s->combined = tensor_keep(op_cat(e, 2, both, -1));
    tensor_set(e, &s->combined, op_sub(e, s->combined, op_max_last(e, s->combined)));
    if (e->halted) return;
    s->probabilities = tensor_keep(op_softmax(e, s->combined, (enum plim_dtype)s->combined->a.dtype));
    s->scores = tensor_keep(op_slice(e, s->probabilities, -1, 0, n[3]));
    tensor_set(e, w, op_to(e, op_dropout(e, s->scores, c->dropout), (enum plim_dtype)v->a.dtype));
}

static struct tensor *eager(struct engine *e, const struct attention_call *c, struct tensor *q,
                            struct tensor *k, struct tensor *v, struct tensor **weights)
{
    struct tensor *keys = tensor_hold(repeat_kv(e, k, c->groups));
    struct tensor *values = tensor_hold(repeat_kv(e, v, c->groups));
    struct sink_variables s = {0};
    struct tensor *w =
        tensor_keep(op_mul_scalar(e, op_matmul(e, q, op_transpose(e, keys, 2, 3)), c->scaling));
    if (c->softcap > 0) nn_softcap(e, &w, c->softcap);
    if (c->bias) tensor_set(e, &w, op_add(e, w, c->bias));
    if (c->mask) tensor_set(e, &w, op_add(e, w, c->mask));
    if (c->sinks)
        weigh_with_sinks(e, c, &w, v, &s);
    else
        weigh(e, c, &w, q, v);
    struct tensor *out = tensor_keep(op_matmul(e, w, values));
    tensor_set(e, &out, op_contiguous(e, op_transpose(e, out, 1, 2)));
    tensor_drop_all(e, keys, values, s.sinks, s.combined, s.probabilities, s.scores);
    *weights = w;
    return tensor_yield(out);
}

/* _is_packed_sequence: computes whether the positions restart within the row, only for a single row. The result
 * outlives the attention as a Python variable; named, NULL: not computed. */
static struct tensor *ask_whether_packed(struct engine *e, struct tensor *positions, int64_t rows)
{
    if (!positions || e->halted) return NULL;
    unsigned all = (1u << positions->a.ndim) - 1;
    struct tensor *count = op_arange(e, PLIM_I64, tensor_size(positions, 1), 0, 1);
    struct tensor *least = op_reduce(e, positions, all, false, PLIM_BINARY_MIN, 1, PLIM_I64);
    struct tensor *rising = tensor_keep(op_add(e, count, least));
    struct tensor *packed = NULL;
    if (rows == 1) {
        struct tensor *off = op_unary(e, op_sub(e, rising, positions), PLIM_UNARY_ABS);
        struct tensor *sum = op_reduce(e, off, 3, false, PLIM_BINARY_ADD, 1, PLIM_I64);
        packed = tensor_keep(op_to(e, sum, PLIM_BOOL));
    }
    tensor_drop(e, rising);
    return packed;
}

/* _get_unpad_data: returns the indices of the unpadded tokens, all but one (the maximum), and stores the ends of the
 * rows without padding in *ends; named. */
static struct tensor *look_for_tokens(struct engine *e, struct tensor *mask, struct tensor **ends)
{
    int64_t rows = mask->a.shape[0], tokens = tensor_elements(mask);
    struct tensor *lengths = tensor_keep(op_reduce(e, mask, 2, false, PLIM_BINARY_ADD, 1, PLIM_I32));
    struct tensor *indices = tensor_keep(op_nonzero(e, op_view(e, mask, 1, &tokens), tokens - 1));
    struct tensor *longest = tensor_keep(op_reduce(e, lengths, 1, false, PLIM_BINARY_MAX, 1, PLIM_I32));
    engine_item(e, longest);
    tensor_drop(e, longest);
    struct tensor *sums = tensor_keep(op_cumsum_last(e, lengths, PLIM_I32));
    *ends = tensor_keep(op_full(e, PLIM_I32, SHAPE(rows + 1), 0));
    struct tensor *later = tensor_hold(op_slice(e, *ends, 0, 1, rows));
    op_copy_(e, later, sums);
    tensor_drop_all(e, later, sums, lengths);
    return indices;
}

/* _upad_input, the package's call for rows of different lengths, and its pad_input: x (B, A, S, D) -> (B, S, A, D). */
static struct tensor *unpadded(struct engine *e, struct tensor *mask, struct tensor *const qkv[3],
                               struct attention_params *p)
{
    enum { Q, K, V };
    static const int order[] = {K, V, Q};
    const int64_t *n = qkv[Q]->a.shape, all_tokens = n[0] * n[2];
    struct tensor *ends, *indices = look_for_tokens(e, mask, &ends), *rows[3], *x[3];
    for (int i = 0; i < 3; i++) {
        int of = order[i];
        struct tensor *flat = op_transpose(e, qkv[of], 1, 2);
        flat = op_reshape(e, flat, SHAPE(all_tokens, qkv[of]->a.shape[1], n[3]));
        rows[of] = tensor_keep(op_different_rows(e, flat, indices));
    }
    for (int i = Q; i <= V; i++) x[i] = op_transpose(e, op_unsqueeze(e, rows[i], 0), 1, 2);
    p->ends = ends;
    struct tensor *y = op_transpose(e, op_sdpa(e, x[Q], x[K], x[V], p), 1, 2);
    struct tensor *out = tensor_keep(op_view(e, y, SHAPE(tensor_size(indices, 0), n[1], n[3])));
    struct tensor *all = tensor_keep(op_put_rows(e, out, indices, all_tokens));
    tensor_drop_all(e, rows[Q], rows[K], rows[V], out, indices, ends);
    tensor_set(e, &all, op_view(e, all, SHAPE(n[0], n[2], n[1], n[3])));
    return tensor_yield(all);
}

/* prepare_fa_kwargs_from_position_ids: finds the documents of a row, which start where positions equal that at the
 * row's start. Returns their boundaries, (documents + 1) int32, named, and stores the length of the longest, a scalar
 * that Python holds as long, in *longest. */
static struct tensor *look_for_documents(struct engine *e, struct tensor *positions, int64_t documents,
                                         struct tensor **longest)
{
    int64_t tokens = tensor_elements(positions);
    struct tensor *row = tensor_keep(op_view(e, positions, 1, &tokens));
    struct tensor *least = op_reduce(e, row, 1, false, PLIM_BINARY_MIN, 1, PLIM_I64);
    struct tensor *begins = tensor_keep(op_compare(e, PLIM_BINARY_EQ, row, least));
    struct tensor *indices = tensor_keep(op_nonzero(e, begins, documents));
    tensor_drop(e, begins);
    struct tensor *parts[2] = {tensor_keep(op_to(e, indices, PLIM_I32)),
                               tensor_keep(op_full(e, PLIM_I32, SHAPE(1), (double)tokens))};
    struct tensor *ends = tensor_keep(op_cat(e, 2, parts, 0));
    tensor_drop_all(e, parts[0], parts[1]);
    struct tensor *behind = tensor_keep(op_slice(e, ends, 0, 1, documents));
    struct tensor *lengths = op_sub(e, behind, op_slice(e, ends, 0, 0, documents));
    *longest = tensor_keep(op_reduce(e, lengths, 1, false, PLIM_BINARY_MAX, 1, PLIM_I32));
    tensor_drop_all(e, behind, indices, row);
    return ends;
}

/* The package's call for the documents of one row: q, k, v (1, A, T, D) -> (1, T, A, D). */
static struct tensor *one_row(struct engine *e, const struct attention_call *c, struct tensor *const qkv[3],
                              struct attention_params *p)
{
    struct tensor *rows[3], *x[3], *longest = NULL;
    for (int i = 0; i < 3; i++) {
        struct tensor *row = op_transpose(e, qkv[i], 1, 2);
        rows[i] = tensor_keep(c->ends ? row : op_contiguous(e, row)); /* _prepare_from_posids */
    }
    p->ends = c->ends ? tensor_ref(c->ends) : look_for_documents(e, c->positions, c->documents, &longest);
    for (int i = 0; i < 3; i++) x[i] = op_transpose(e, rows[i], 1, 2);
    struct tensor *y = tensor_keep(op_transpose(e, op_sdpa(e, x[0], x[1], x[2], p), 1, 2));
    tensor_drop_all(e, rows[0], rows[1], rows[2], p->ends, longest);
    return tensor_yield(y);
}

static struct tensor *flash2(struct engine *e, const struct attention_call *c, struct tensor *q,
                             struct tensor *k, struct tensor *v)
{
    struct tensor *given[3] = {q, k, v}, *qkv[3];
    enum plim_dtype low = e->autocast.on ? e->autocast.dtype : c->low;
    bool casts = q->a.dtype == PLIM_F32; /* fa_peft_integration_check */
    for (int i = 0; i < 3; i++)
        qkv[i] = casts ? tensor_hold(op_to(e, given[i], low)) : tensor_ref(given[i]);
    struct tensor *packed = ask_whether_packed(e, c->positions, q->a.shape[0]);
    struct attention_params p = {.dropout = e->evaluates ? 0 : c->dropout,
                                 .scale = c->scaling,
                                 .causal = !c->bidirectional,
                                 .flash2 = true,
                                 .softcap = c->softcap,
                                 .window = c->window < k->a.shape[2] ? c->window : 0};
    if (packed && !c->mask && !c->ends) engine_item(e, packed);
    bool tells = c->ends || c->documents > 1; /* a single document is treated like a plain row */
    struct tensor *out = e->halted ? e->poison
                         : c->mask ? unpadded(e, c->mask, qkv, &p)
                         : tells   ? one_row(e, c, qkv, &p)
                                   : op_transpose(e, op_sdpa(e, qkv[0], qkv[1], qkv[2], &p), 1, 2);
    tensor_drop_all(e, packed, qkv[0], qkv[1], qkv[2]);
    return out;
}

struct tensor *nn_attention(struct engine *e, const struct attention_call *c, struct tensor *q,
                            struct tensor *k, struct tensor *v, struct tensor **weights)
{
    *weights = NULL;
    if (e->halted) return e->poison;
    switch (c->function) {
    case ATTENTION_EAGER: return (c->upcasts ? upcast : eager)(e, c, q, k, v, weights);
    case ATTENTION_FLASH2: return flash2(e, c, q, k, v);
    case ATTENTION_SDPA: break;
    }
    return sdpa(e, c, q, k, v);
}
