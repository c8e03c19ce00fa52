/* ChunkGatedDeltaRuleFunction (fla/ops/gated_delta_rule/chunk.py of flash-linear-attention 0.6.0) and CausalConv1dFn
 * (causal_conv1d/causal_conv1d_interface.py of causal-conv1d 1.7.0), with the same allocations. */
#include "devices/catalogue/architecture.h"
#include "ops.h"
#include "ops_fla.h"
#include <math.h>

enum { STATE_COLUMNS = 32 }; /* columns of a state per thread block */
static const double LOG2_E = 1.4426950408889634;

static struct tensor *empty_like(struct engine *e, const struct tensor *x, enum plim_dtype dtype)
{
    return tensor_keep(tensor_empty(e, dtype, x->a.ndim, x->a.shape));
}

/* --- the gated delta rule --------------------------------------------------------------------- */

enum { Q, K, V, DECAY, BETA }; /* edges */
/* Saved tensors; beta is saved twice, as given and in the form that the kernels use. */
enum {
    SAVED_Q, SAVED_Q_RSTD, SAVED_K, SAVED_K_RSTD, SAVED_V, SAVED_DECAY, SAVED_BETA, SAVED_BETA_TAKEN, SAVED_INVERSE,
    SAVED_ENDS, SAVED_INDICES
};

/* The tensors of a call: queries and keys of unit length, the cumulative decay of each chunk, to base 2, and each
 * chunk's inverse of the triangular system, (B, S, heads, 64); the ends of documents, and the documents' chunks
 * (chunk_indices.h), or NULL. */
struct rule {
    struct tensor *q, *k, *v, *decay, *beta, *inverse, *ends, *indices;
};

struct sizes {
    int64_t batch, seq, heads, key, value;
    int64_t chunks, documents; /* per row */
};

static struct sizes sizes_of(const struct rule *r)
{
    const int64_t *k = r->k->a.shape;
    return (struct sizes){.batch = k[0],
                          .seq = k[1],
                          .heads = k[2],
                          .key = k[3],
                          .value = r->v->a.shape[3],
                          .chunks = r->indices ? r->indices->a.shape[0] : chunks_of_tokens(k[1]),
                          .documents = r->ends ? r->ends->a.shape[0] - 1 : 1};
}

/* The FLOP of a kernel's products, and its number of thread blocks (struct plim_op). */
struct products {
    double flops;
    int64_t blocks;
};

static double scale_of(const struct rule *r)
{
    return 1 / sqrt((double)r->k->a.shape[3]);
}

/* Launches `kind` for the rule; `arrays` has its operands, and room after them for the documents' ends. */
static void launch(struct engine *e, const struct rule *r, enum plim_op_kind kind, struct products products,
                   int n_out, int n_in, struct tensor **arrays)
{
    struct plim_op op = {.kind = kind, .flops = products.flops, .blocks = products.blocks, .alpha = scale_of(r)};
    arrays[n_out + n_in] = r->ends;
    op_launch(e, op, n_out, n_in + (r->ends != NULL), arrays);
}

/* Products of a kernel that processes all chunks in parallel: their numbers per key, per value of a head and per pair
 * of both, times 2 * 64. */
static struct products by_chunks(const struct sizes *s, double keys, double values, double states)
{
    double k = (double)s->key, v = (double)s->value;
    int64_t blocks = s->batch * s->heads * s->chunks;
    double each = CHUNK_TOKENS * (keys * k + values * v) + states * k * v;
    return (struct products){2.0 * CHUNK_TOKENS * (double)blocks * each, blocks};
}

/* Products of a kernel that goes from chunk to chunk of a document. */
static struct products along_documents(const struct sizes *s, double states)
{
    struct products products = by_chunks(s, 0, 0, states);
    products.blocks = s->batch * s->documents * s->heads * ((s->value + STATE_COLUMNS - 1) / STATE_COLUMNS);
    return products;
}

/* l2norm_fwd(): returns x / |x|, and stores 1 / |x| of each head in *rstd; both named. */
static struct tensor *unit_length(struct engine *e, struct tensor *x, struct tensor **rstd)
{
    struct tensor *y = empty_like(e, x, (enum plim_dtype)x->a.dtype);
    *rstd = tensor_keep(tensor_empty(e, PLIM_F32, x->a.ndim - 1, x->a.shape));
    op_launch(e, (struct plim_op){.kind = PLIM_OP_L2_NORM, .alpha = 1e-6}, 2, 1, (struct tensor *[]){y, *rstd, x});
    return y;
}

/* l2norm_bwd(): rebinds the gradient of y to that of x */
static void unit_length_backward(struct engine *e, struct tensor *y, struct tensor *rstd, struct tensor **grad)
{
    struct tensor *dx = empty_like(e, y, (enum plim_dtype)y->a.dtype);
    op_launch(e, (struct plim_op){.kind = PLIM_OP_L2_NORM_BACKWARD}, 1, 3, (struct tensor *[]){dx, y, rstd, *grad});
    tensor_set(e, grad, dx);
    tensor_drop(e, dx);
}

/* chunk_local_cumsum(), to base 2; for a gradient backwards from each chunk's end; named. */
static struct tensor *add_up(struct engine *e, const struct rule *r, struct tensor *x, bool backwards)
{
    struct tensor *y = empty_like(e, x, PLIM_F32);
    struct plim_op op = {.kind = PLIM_OP_CHUNK_SUMS, .alpha = backwards ? 1 : LOG2_E, .beta = backwards ? -1 : 1};
    op_launch(e, op, 1, r->ends ? 2 : 1, (struct tensor *[]){y, x, r->ends});
    return y;
}

/* recompute_w_u_fwd(): solves the systems for keys and for values; both named. */
static void solve(struct engine *e, const struct rule *r, const struct sizes *s, struct tensor **w, struct tensor **u)
{
    *w = empty_like(e, r->k, (enum plim_dtype)r->k->a.dtype);
    *u = empty_like(e, r->v, (enum plim_dtype)r->v->a.dtype);
    launch(e, r, PLIM_OP_DELTA_SOLVE, by_chunks(s, 1, 1, 0), 2, 5,
           (struct tensor *[]){*w, *u, r->k, r->v, r->beta, r->inverse, r->decay, NULL});
}

/* chunk_gated_delta_rule_fwd_h(): computes the state before each chunk, and what each chunk adds to it; both named. */
static void run_states(struct engine *e, const struct rule *r, const struct sizes *s, struct tensor *w,
                       struct tensor *u, struct tensor **states, struct tensor **fresh)
{
    tensor_drop(e, r->ends ? chunk_offsets(e, r->ends) : NULL);
    *states = tensor_keep(tensor_empty(e, (enum plim_dtype)r->k->a.dtype,
                                       SHAPE(s->batch, s->chunks, s->heads, s->key, s->value)));
    *fresh = empty_like(e, u, (enum plim_dtype)u->a.dtype);
    launch(e, r, PLIM_OP_DELTA_STATES, along_documents(s, 2), 2, 4,
           (struct tensor *[]){*states, *fresh, r->k, w, u, r->decay, NULL});
}

/* chunk_gated_delta_rule_fwd(): stores the decay and the inverse in `r`, and returns the result, named. */
static struct tensor *run_rule(struct engine *e, struct rule *r, struct tensor *decay)
{
    if (e->halted) return e->poison;
    const struct sizes s = sizes_of(r);
    r->decay = add_up(e, r, decay, false);
    r->inverse = tensor_keep(
        op_full(e, (enum plim_dtype)r->k->a.dtype, SHAPE(s.batch, s.seq, s.heads, CHUNK_TOKENS), 0));
    /* 10 of 16 blocks of the products of keys, and the inverse computed from them */
    launch(e, r, PLIM_OP_DELTA_INVERSE, by_chunks(&s, 0.625, 0, 0), 1, 3,
           (struct tensor *[]){r->inverse, r->k, r->decay, r->beta, NULL});
    struct tensor *w, *u, *states, *fresh;
    solve(e, r, &s, &w, &u);
    run_states(e, r, &s, w, u, &states, &fresh);
    struct tensor *y = empty_like(e, fresh, (enum plim_dtype)fresh->a.dtype);
    launch(e, r, PLIM_OP_DELTA_OUTPUT, by_chunks(&s, 1, 1, 1), 1, 5,
           (struct tensor *[]){y, r->q, r->k, fresh, states, r->decay, NULL});
    tensor_drop_all(e, w, u, states, fresh);
    return y;
}

/* The gradients of a call, in their order. Those of keys and of the decay have two parts, the second through the
 * triangular systems; `solution` is the gradient of the systems' solution for keys. Named. */
struct rule_gradients {
    struct tensor *q, *k, *v, *decay, *beta;
    struct tensor *system_k, *system_decay, *solution;
};

/* chunk_bwd_dv_local() and chunk_gated_delta_rule_bwd_dhu(): computes the gradients of the states and of new values;
 * named. */
static void states_backward(struct engine *e, const struct rule *r, const struct sizes *s, struct tensor *w,
                            struct tensor *states, struct tensor *dy, struct tensor **dstates, struct tensor **dfresh)
{
    struct tensor *local = empty_like(e, dy, (enum plim_dtype)dy->a.dtype);
    launch(e, r, PLIM_OP_DELTA_OUTPUT_BACKWARD_FRESH, by_chunks(s, 1, 1, 0), 1, 4,
           (struct tensor *[]){local, r->q, r->k, r->decay, dy, NULL});
    tensor_drop(e, r->ends ? chunk_offsets(e, r->ends) : NULL);
    *dstates = empty_like(e, states, (enum plim_dtype)states->a.dtype);
    *dfresh = empty_like(e, local, (enum plim_dtype)local->a.dtype);
    launch(e, r, PLIM_OP_DELTA_STATES_BACKWARD, along_documents(s, 3), 2, 6,
           (struct tensor *[]){*dstates, *dfresh, r->q, r->k, w, r->decay, dy, local, NULL});
    tensor_drop(e, local);
}

/* Returns the number of parts in which chunk_bwd_dqkwg() sums the gradient of the decay: one for as many elements of a
 * key as fit into a thread block. On Hopper TileLang's kernel is used, because Triton before 3.7.1 is wrong there. */
static int64_t decay_parts(const struct engine *e, const struct tensor *q)
{
    int generation = e->device->info.compute_capability, kib = plim_architecture_of(generation)->shared_block_kib;
    bool is_wide = q->a.dtype == PLIM_F32, by_tilelang = generation / 10 == 9;
    int64_t room = by_tilelang ? 64 : kib >= 227 || (kib >= 163 && !is_wide) ? 128 : kib >= 99 ? 64 : 32;
    return (q->a.shape[3] + room - 1) / room;
}

/* chunk_bwd_dqkwg() */
static void products_backward(struct engine *e, const struct rule *r, const struct sizes *s,
                              struct tensor *const *given, struct rule_gradients *d)
{
    enum { W, STATES, FRESH, DY, DSTATES, DFRESH };
    bool by_tilelang = e->device->info.compute_capability / 10 == 9;
    enum plim_dtype dtype = (enum plim_dtype)r->q->a.dtype;
    struct tensor *decay;
    d->q = empty_like(e, r->q, dtype);
    d->k = empty_like(e, r->k, dtype);
    if (by_tilelang) d->solution = empty_like(e, given[W], dtype);
    const int64_t parts[] = {decay_parts(e, r->q), s->batch, s->seq, s->heads};
    decay = tensor_keep(by_tilelang ? op_full(e, PLIM_F32, 4, parts, 0) : tensor_empty(e, PLIM_F32, 4, parts));
    if (!by_tilelang) d->solution = empty_like(e, given[W], dtype);
    launch(e, r, PLIM_OP_DELTA_OUTPUT_BACKWARD, by_chunks(s, 2, 1, 3), 4, 8,
           (struct tensor *[]){d->q, d->k, d->solution, decay, r->q, r->k, r->decay, given[FRESH], given[STATES],
                               given[DY], given[DSTATES], given[DFRESH], NULL});
    d->decay = tensor_keep(op_sum_dim(e, decay, 0));
    tensor_drop(e, decay);
}

/* prepare_wy_repr_bwd() */
static void solve_backward(struct engine *e, const struct rule *r, const struct sizes *s, struct tensor *du,
                           struct rule_gradients *d)
{
    d->system_k = empty_like(e, r->k, (enum plim_dtype)r->k->a.dtype);
    d->v = empty_like(e, r->v, (enum plim_dtype)r->v->a.dtype);
    d->system_decay = empty_like(e, r->decay, PLIM_F32);
    d->beta = empty_like(e, r->beta, (enum plim_dtype)r->beta->a.dtype);
    launch(e, r, PLIM_OP_DELTA_SOLVE_BACKWARD, by_chunks(s, 5, 2, 0), 4, 7,
           (struct tensor *[]){d->system_k, d->v, d->beta, d->system_decay, r->k, r->v, r->beta, r->decay, r->inverse,
                               d->solution, du, NULL});
}

/* chunk_gated_delta_rule_bwd(): recomputes what forward has not kept. */
static void differentiate_rule(struct engine *e, const struct rule *r, struct tensor *dy, struct rule_gradients *d)
{
    const struct sizes s = sizes_of(r);
    struct tensor *w, *u, *states, *fresh, *dstates, *dfresh;
    solve(e, r, &s, &w, &u);
    run_states(e, r, &s, w, u, &states, &fresh);
    states_backward(e, r, &s, w, states, dy, &dstates, &dfresh);
    products_backward(e, r, &s, (struct tensor *[]){w, states, fresh, dy, dstates, dfresh}, d);
    solve_backward(e, r, &s, dfresh, d);
    tensor_drop(e, dfresh);
    op_add_(e, d->k, d->system_k);
    op_add_(e, d->decay, d->system_decay);
    struct tensor *decay = add_up(e, r, d->decay, true);
    tensor_drop(e, d->decay);
    d->decay = decay;
    tensor_drop_all(e, w, u, states, fresh, dstates, d->solution, d->system_k, d->system_decay);
}

static void rule_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    const struct rule r = {.q = node_saved(e, n, SAVED_Q),
                           .k = node_saved(e, n, SAVED_K),
                           .v = node_saved(e, n, SAVED_V),
                           .decay = node_saved(e, n, SAVED_DECAY),
                           .beta = node_saved(e, n, SAVED_BETA),
                           .inverse = node_saved(e, n, SAVED_INVERSE),
                           .ends = node_saved(e, n, SAVED_ENDS),
                           .indices = node_saved(e, n, SAVED_INDICES)};
    struct tensor *q_rstd = node_saved(e, n, SAVED_Q_RSTD), *k_rstd = node_saved(e, n, SAVED_K_RSTD);
    struct rule_gradients d = {0};
    if (e->halted) return;
    struct tensor *dy = tensor_hold(op_contiguous(e, grads[0]));
    differentiate_rule(e, &r, dy, &d);
    unit_length_backward(e, r.q, q_rstd, &d.q);
    unit_length_backward(e, r.k, k_rstd, &d.k);
    tensor_drop(e, dy);
    struct tensor *made[] = {d.q, d.k, d.v, d.decay, d.beta};
    for (int i = Q; i <= BETA; i++) {
        if (node_wants(n, i))
            out[i] = made[i];
        else
            tensor_drop(e, made[i]);
    }
}
static const struct node_kind rule_kind = {"ChunkGatedDeltaRuleFunctionBackward", rule_backward};

struct tensor *op_fla_gated_delta_rule(struct engine *e, struct tensor *const qkv[3], struct tensor *decay,
                                       struct tensor *beta, const struct fla_documents *documents)
{
    struct tensor *given[] = {qkv[Q], qkv[K], qkv[V], decay, beta}, *dense[5], *q_rstd, *k_rstd;
    if (e->halted) return e->poison;
    struct node *n = op_node(e, &rule_kind, 5, given);
    bool grad = e->grad_enabled;
    e->grad_enabled = false; /* an autograd.Function runs without gradients */
    for (int i = Q; i <= BETA; i++) dense[i] = tensor_hold(op_contiguous(e, given[i])); /* input_guard */
    struct rule r = {.v = dense[V], .beta = dense[BETA], .ends = documents->ends};
    r.q = unit_length(e, dense[Q], &q_rstd);
    r.k = unit_length(e, dense[K], &k_rstd);
    r.indices = r.ends ? chunk_indices(e, r.ends, documents->chunks) : NULL;
    struct tensor *y = run_rule(e, &r, dense[DECAY]);
    e->grad_enabled = grad;
    struct tensor *const saved[] = {r.q,    q_rstd, r.k,       k_rstd, r.v,      r.decay,
                                    r.beta, r.beta, r.inverse, r.ends, r.indices};
    for (int i = SAVED_Q; n && i <= (r.ends ? SAVED_INDICES : SAVED_INVERSE); i++) node_save(e, n, i, saved[i]);
    tensor_drop_all(e, r.q, q_rstd, r.k, k_rstd, r.decay, r.inverse, r.indices);
    tensor_drop_list(e, dense, 5);
    return op_done(e, n, tensor_yield(y), 0, NULL);
}

/* --- the convolution -------------------------------------------------------------------------- */

enum { INPUT, WEIGHT, DOCUMENT };

/* causal_conv1d_bwd_function(): the weight's gradient is accumulated in fp32, whatever its type. */
static void conv1d_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    struct tensor *x = node_saved(e, n, INPUT), *weight = node_saved(e, n, WEIGHT),
                  *document = node_saved(e, n, DOCUMENT);
    if (e->halted) return;
    struct tensor *dx = tensor_keep(tensor_empty_like(e, x, (enum plim_dtype)x->a.dtype)),
                  *dweight = tensor_keep(op_full(e, PLIM_F32, 2, weight->a.shape, 0));
    struct plim_op op = {.kind = PLIM_OP_CAUSAL_CONV_BACKWARD};
    op_launch(e, op, 2, document ? 4 : 3, (struct tensor *[]){dx, dweight, grads[0], x, weight, document});
    tensor_set(e, &dweight, op_to(e, dweight, (enum plim_dtype)weight->a.dtype));
    struct tensor *made[] = {dx, dweight};
    for (int i = INPUT; i <= WEIGHT; i++) {
        if (node_wants(n, i))
            out[i] = made[i];
        else
            tensor_drop(e, made[i]);
    }
}
static const struct node_kind conv1d_kind = {"CausalConv1dFnBackward", conv1d_backward};

struct tensor *op_causal_conv1d(struct engine *e, struct tensor *x, struct tensor *weight, struct tensor *document)
{
    struct tensor *given[] = {x, weight};
    if (e->halted) return e->poison;
    struct node *n = op_node(e, &conv1d_kind, 2, given);
    struct tensor *y = tensor_empty_like(e, x, (enum plim_dtype)x->a.dtype);
    op_launch(e, (struct plim_op){.kind = PLIM_OP_CAUSAL_CONV}, 1, document ? 3 : 2,
              (struct tensor *[]){y, x, weight, document});
    if (n) {
        node_save(e, n, INPUT, x);
        node_save(e, n, WEIGHT, weight);
        if (document) node_save(e, n, DOCUMENT, document);
    }
    return op_done(e, n, y, 0, NULL);
}
