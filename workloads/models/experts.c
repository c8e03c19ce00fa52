/* A mixture of experts instead of an MLP (mixtral, the qwens, olmoe, gpt_oss), with the implementation that
 * from_pretrained selects: grouped_mm (transformers' integrations/moe.py). Rows are sorted by expert, and each expert
 * multiplies its own. Every row is routed to the same number of experts, so no size depends on the routing; how rows
 * are distributed over the experts only affects the time, which is estimated for a balanced distribution. */
#include "experts.h"
#include <math.h>

/* --- the modules ------------------------------------------------------------------------------ */

/* Builds one linear of all experts. */
static void build_stack(struct engine *e, struct decoder *m, struct tensor **weight, struct tensor **bias,
                        int64_t out, int64_t in)
{
    int64_t experts = m->config->experts;
    bool transposed = experts_traits_of(m)->transposed;
    *weight =
        nn_parameter(e, &m->parameters, INIT_WEIGHT, SHAPE(experts, transposed ? in : out, transposed ? out : in));
    if (!experts_traits_of(m)->has_bias) return;
    *bias = nn_parameter(e, &m->parameters, INIT_WEIGHT, SHAPE(experts, out));
    if (!e->halted) (*bias)->odd_name = true;
}

void experts_build_stacks(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    int64_t h = m->config->hidden_size, f = m->config->expert_size;
    build_stack(e, m, &l->experts_gate_up, &l->experts_gate_up_bias,
                experts_traits_of(m)->is_plain ? f : 2 * f, h);
    build_stack(e, m, &l->experts_down, &l->experts_down_bias, h, f);
}

/* Builds the shared experts, as one MLP. */
static void build_shared(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    int64_t h = c->hidden_size, shared = c->shared_expert_size;
    if (!shared) return;
    if (experts_traits_of(m)->is_plain) {
        nn_linear_create(e, p, &l->fc1, h, shared, c->mlp_bias);
        nn_linear_create(e, p, &l->fc2, shared, h, c->mlp_bias);
        return;
    }
    nn_linear_create(e, p, &l->gate, h, shared, c->mlp_bias);
    nn_linear_create(e, p, &l->up, h, shared, c->mlp_bias);
    nn_linear_create(e, p, &l->down, shared, h, c->mlp_bias);
    if (!c->shared_experts) nn_linear_create(e, p, &l->shared_gate, h, 1, false);
}

void experts_build(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct experts_traits *t = experts_traits_of(m);
    if (!t->experts_first) router_build(e, m, l);
    if (t->has_linear) build_shared(e, m, l);
    experts_build_stacks(e, m, l);
    if (t->experts_first) router_build(e, m, l);
    if (t->has_linear) router_build_correction(e, m, l);
    else build_shared(e, m, l);
}

int64_t experts_idle_weights(const struct decoder *m)
{
    const struct plim_model_config *c = m->config;
    int64_t sparse = 0;
    for (int64_t i = 0; i < c->layers; i++) sparse += m->layers[i].experts_down != NULL;
    int64_t linears = experts_traits_of(m)->is_plain ? 2 : 3;
    return sparse * (c->experts - c->experts_per_token) * linears * c->hidden_size * c->expert_size;
}

/* --- the experts ------------------------------------------------------------------------------ */

/* The S = N k pairs of a row and an expert, sorted by expert; the fields are variables in Python. All named */
struct pairs {
    struct tensor *weights;        /* (S) */
    struct tensor *experts;        /* (S), sorted; `order`: their indices before sorting */
    struct tensor *order, *rows;   /* (S); (S, H) */
    struct tensor *counted;        /* (S), int32 */
    struct tensor *counts, *ends;  /* (experts), int32: the number of rows of each expert; where they end */
    /* (S, 1) bool: pairs whose expert is not on this GPU, which do not occur; NULL: transformers 5.24 looks for them
     * only if experts are distributed over several GPUs */
    struct tensor *remote;
};

static struct tensor *find_remote(struct engine *e, struct pairs *p, int64_t bins)
{
    struct tensor *beyond = op_compare_scalar(e, PLIM_BINARY_GE, p->experts, (double)bins);
    struct tensor *remote = tensor_keep(op_unsqueeze(e, beyond, -1));
    if (!e->halted) op_clamp_(e, p->experts, 0, (double)(bins - 1));
    return remote;
}

static struct pairs sort_pairs(struct engine *e, const struct block_call *b, const struct routing *r,
                               struct tensor *x)
{
    const struct plim_model_config *c = b->m->config;
    struct pairs p = {0};
    struct tensor *sorted[2];
    int64_t pairs = tensor_elements(r->experts), bins = c->experts;
    struct tensor *weights = tensor_keep(op_reshape(e, r->weights, SHAPE(pairs)));
    op_sort(e, op_reshape(e, r->experts, SHAPE(pairs)), sorted);
    p.experts = tensor_keep(sorted[0]);
    p.order = tensor_keep(sorted[1]);
    p.rows = tensor_keep(op_rows(e, x, op_div_scalar(e, p.order, (double)c->experts_per_token)));
    p.weights = tensor_keep(op_rows(e, weights, p.order));
    p.counted = tensor_keep(op_to(e, p.experts, PLIM_I32));
    p.counts = tensor_keep(op_histogram(e, p.counted, bins));
    p.ends = tensor_keep(op_cumsum_last(e, p.counts, PLIM_I32));
    if (b->m->setting->transformers == PLIM_TRANSFORMERS_5_17) p.remote = find_remote(e, &p, bins);
    tensor_drop(e, weights);
    return p;
}

static void drop_pairs(struct engine *e, struct pairs *p)
{
    tensor_drop_all(e, p->experts, p->order, p->rows, p->weights, p->counted, p->counts, p->ends,
                    p->remote);
}

/* Applies each expert's linear to its rows x (S, in). weight: (experts, out, in), `transposed`: (experts, in, out);
 * bias: that of each row's expert, (S, out), or NULL. Floating */
static struct tensor *grouped_linear(struct engine *e, struct tensor *x, struct tensor *weight, bool transposed,
                                     struct tensor *bias, const struct pairs *p)
{
    if (e->halted) return op_halted(e, 1, &x);
    struct tensor *matrices = transposed ? weight : op_transpose(e, weight, -2, -1);
    struct tensor *input = op_to(e, x, (enum plim_dtype)weight->a.dtype);
    struct tensor *y = op_grouped_mm(e, input, matrices, p->ends);
    return bias ? op_plus_(e, y, bias) : y;
}

/* Returns activation(gate) * up for the first linear's result y (S, 2 F), lent; floating */
static struct tensor *gated(struct engine *e, const struct plim_model_config *c, struct tensor *y)
{
    struct tensor *part[2];
    op_split(e, y, -1, 2, (int64_t[]){c->expert_size, c->expert_size}, part);
    struct tensor *gate = tensor_keep(part[0]), *up = tensor_keep(part[1]);
    struct tensor *product = op_mul(e, decoder_activation(e, c->activation, gate), up);
    tensor_drop_all(e, gate, up);
    return product;
}

/* Returns (up + 1) * gate * sigmoid(1.702 gate) of the clamped gate and up, which alternate in y (S, 2 F), lent;
 * floating */
static struct tensor *gated_by_clamped(struct engine *e, struct tensor *y)
{
    static const double ALPHA = 1.702, LIMIT = 7;
    struct tensor *gate = tensor_keep(op_slice_steps(e, y, 0, 2));
    struct tensor *up = tensor_keep(op_slice_steps(e, y, 1, 2));
    tensor_set(e, &gate, op_clamp(e, gate, -INFINITY, LIMIT));
    tensor_set(e, &up, op_clamp(e, up, -LIMIT, LIMIT));
    struct tensor *share = op_sigmoid(e, op_mul_scalar(e, gate, ALPHA));
    struct tensor *glu = tensor_keep(op_mul(e, gate, share));
    struct tensor *product = op_mul(e, op_add_scalar(e, up, 1), glu);
    tensor_drop_all(e, gate, up, glu);
    return product;
}

/* Returns the second linear's input for the first one's result y, lent; floating */
static struct tensor *activated(struct engine *e, const struct decoder *m, struct tensor *y)
{
    const struct experts_traits *t = experts_traits_of(m);
    return t->is_plain      ? decoder_activation(e, m->config->activation, y)
           : t->clamps_gate ? gated_by_clamped(e, y)
                            : gated(e, m->config, y);
}

/* Rebinds *rows, named or NULL, to the bias of each row's expert. bias: (experts, out); NULL: does nothing */
static void select_bias(struct engine *e, struct tensor **rows, struct tensor *bias, const struct pairs *p)
{
    if (bias) tensor_set(e, rows, op_rows(e, bias, p->experts));
}

enum { GATE_UP, DOWN }; /* indices of wrappers */

/* Returns down(activation(gate) * up) of the sorted rows; named. gate_up: the first linear's weight. *bias, a variable
 * in Python, is dropped by the caller. */
static struct tensor *expert_mlp(struct engine *e, const struct block_call *b, const struct pairs *p,
                                 struct tensor *gate_up, struct lora_wrapper *wrappers, struct tensor **bias)
{
    const struct experts_traits *t = experts_traits_of(b->m);
    const struct decoder_layer *l = b->layer;
    struct tensor *y = tensor_keep(grouped_linear(e, p->rows, gate_up, t->transposed, *bias, p));
    if (p->remote) tensor_set(e, &y, op_masked_fill(e, y, p->remote, 0));
    tensor_set(e, &y, activated(e, b->m, y));
    struct tensor *down = nn_wrapped(e, &wrappers[DOWN], l->experts_down);
    select_bias(e, bias, l->experts_down_bias, p);
    tensor_set(e, &y, grouped_linear(e, y, down, t->transposed, *bias, p));
    if (p->remote) tensor_set(e, &y, op_masked_fill(e, y, p->remote, 0));
    return y;
}

/* Returns the rows of y (S, H), lent, in their order before sorting; floating. *inverse: the permutation, named */
static struct tensor *unsorted(struct engine *e, const struct pairs *p, struct tensor *y,
                               struct tensor **inverse)
{
    int64_t pairs = tensor_elements(p->order);
    *inverse = tensor_keep(tensor_empty(e, PLIM_I64, SHAPE(pairs)));
    op_scatter_(e, *inverse, p->order, op_arange(e, PLIM_I64, pairs, 0, 1));
    return op_rows(e, y, *inverse);
}

/* Ends the inner wrapper (gate_up's, if both exist), then the outer one, with which the adapted values are dropped. */
static void unwrap(struct engine *e, struct lora_wrapper *wrappers)
{
    for (int i = GATE_UP; i <= DOWN; i++) {
        bool is_outer = i == DOWN || !wrappers[DOWN].adapter;
        for (int k = GATE_UP; k <= DOWN && is_outer; k++) nn_drop_value(e, &wrappers[k]);
        nn_unwrap(e, &wrappers[i]);
    }
}

/* _batched_linear(): returns W x for S rows x (S, in), each with its own matrix, (S, out, in), or (S, in, out) if
 * `transposed`, and its own bias, (S, out) or NULL; all lent; floating */
static struct tensor *batched_linear(struct engine *e, struct tensor *x, struct tensor *weights, bool transposed,
                                     struct tensor *bias)
{
    if (e->halted) return e->poison;
    struct tensor *column = op_unsqueeze(e, x, transposed ? 1 : 2);
    struct tensor *y = transposed ? op_bmm(e, column, weights) : op_bmm(e, weights, column);
    if (e->halted) return y;
    y = op_view(e, y, SHAPE(tensor_size(x, 0), tensor_size(y, transposed ? 2 : 1)));
    return bias ? op_plus_(e, y, bias) : y;
}

/* batched_mm_experts_forward, which generate() uses after the prompt (_optimize_model_for_decode): each pair of a row
 * and an expert has its own copy of the expert's weights. */
static struct tensor *batched_forward(struct engine *e, const struct block_call *b, struct tensor *x,
                                      const struct routing *r, struct lora_wrapper *wrappers)
{
    const struct plim_model_config *c = b->m->config;
    const struct decoder_layer *l = b->layer;
    const struct experts_traits *t = experts_traits_of(b->m);
    int64_t count = x->a.shape[0], k = c->experts_per_token, pairs = count * k;
    struct tensor *rows = tensor_keep(op_repeat_each(e, x, 0, k)), *bias = NULL;
    struct tensor *flat = tensor_keep(op_reshape(e, r->experts, SHAPE(pairs)));
    struct pairs p = {.weights = tensor_keep(op_reshape(e, r->weights, SHAPE(pairs))),
                      .experts = tensor_keep(op_clone(e, flat))}; /* clamp() */
    tensor_drop(e, flat);
    struct tensor *weights = tensor_keep(op_rows(e, nn_wrapped(e, &wrappers[GATE_UP], l->experts_gate_up), p.experts));
    select_bias(e, &bias, l->experts_gate_up_bias, &p);
    struct tensor *y = tensor_keep(batched_linear(e, rows, weights, t->transposed, bias));
    tensor_set(e, &y, activated(e, b->m, y));
    tensor_set(e, &weights, op_rows(e, nn_wrapped(e, &wrappers[DOWN], l->experts_down), p.experts));
    select_bias(e, &bias, l->experts_down_bias, &p);
    tensor_set(e, &y, batched_linear(e, y, weights, t->transposed, bias));
    struct tensor *weighted = tensor_keep(op_mul(e, y, op_unsqueeze(e, p.weights, -1)));
    struct tensor *sum = tensor_keep(op_sum_dim(e, op_view(e, weighted, SHAPE(count, k, c->hidden_size)), 1));
    struct tensor *out = tensor_hold(op_to(e, sum, e->halted ? PLIM_F32 : (enum plim_dtype)x->a.dtype));
    tensor_drop_all(e, rows, bias, weights, y, weighted, sum);
    drop_pairs(e, &p);
    return tensor_yield(out);
}

/* grouped_mm_experts_forward: x (N, H) lent -> (N, H) floating */
static struct tensor *experts_forward(struct engine *e, const struct block_call *b,
                                      struct tensor *x, const struct routing *r)
{
    const struct plim_model_config *c = b->m->config;
    struct lora_wrapper wrappers[2];
    if (e->halted) return e->poison;
    for (int i = DOWN; i >= GATE_UP; i--) nn_wrap(e, &wrappers[i], b->layer->experts_lora[i]);
    if (e->halted) return e->poison;
    if (b->m->cache && b->m->cache->tokens) {
        struct tensor *batched = tensor_keep(batched_forward(e, b, x, r, wrappers));
        unwrap(e, wrappers);
        return tensor_yield(batched);
    }
    struct pairs p = sort_pairs(e, b, r, x);
    struct tensor *bias = NULL, *inverse, *gate_up = nn_wrapped(e, &wrappers[GATE_UP], b->layer->experts_gate_up);
    select_bias(e, &bias, b->layer->experts_gate_up_bias, &p);
    if (p.remote) tensor_set(e, &p.rows, op_masked_fill_(e, p.rows, p.remote, 0));
    struct tensor *out = expert_mlp(e, b, &p, gate_up, wrappers, &bias);
    struct tensor *weighted = tensor_keep(op_mul(e, out, op_unsqueeze(e, p.weights, -1)));
    tensor_set(e, &weighted, unsorted(e, &p, weighted, &inverse));
    struct tensor *each = op_view(e, weighted, SHAPE(x->a.shape[0], c->experts_per_token, c->hidden_size));
    struct tensor *sum = tensor_keep(op_sum_dim(e, each, 1));
    struct tensor *y = tensor_hold(op_to(e, sum, (enum plim_dtype)x->a.dtype));
    drop_pairs(e, &p);
    tensor_drop_all(e, bias, out, weighted, inverse, sum);
    unwrap(e, wrappers);
    return tensor_yield(y);
}

/* --- the module ------------------------------------------------------------------------------- */

struct experts_call {
    const struct block_call *block;
    struct tensor **besides;
    struct routing routing;
};

/* Returns x (B, S, H), lent, as rows (N, H); floating */
static struct tensor *rows_of(struct engine *e, struct tensor *x)
{
    int64_t width = tensor_size(x, -1);
    return op_view(e, x, SHAPE(tensor_elements(x) / width, width));
}

/* Runs the router on rows (N, H): returns their experts' weights, floating, and stores the whole routing in the call. A
 * router with groups or a linear receives the block's input instead and has a view of its own, whose gradient is
 * accumulated separately. */
static struct tensor *run_router(struct engine *e, const void *module, struct tensor *given)
{
    struct experts_call *call = *(struct experts_call *const *)module;
    const struct block_call *b = call->block;
    struct lora_wrapper wrapper;
    nn_wrap(e, &wrapper, b->layer->router_lora);
    struct tensor *weight = nn_wrapped(e, &wrapper, b->layer->router);
    bool is_apart = experts_traits_of(b->m)->is_grouped || experts_traits_of(b->m)->has_linear;
    struct tensor *rows = is_apart ? tensor_keep(rows_of(e, given)) : tensor_ref(given);
    call->routing = router_choose(e, b, weight, rows);
    nn_drop_value(e, &wrapper);
    nn_unwrap(e, &wrapper);
    tensor_drop(e, rows);
    return tensor_yield(call->routing.weights);
}

static struct tensor *run_experts(struct engine *e, const void *module, struct tensor *rows)
{
    const struct experts_call *call = *(struct experts_call *const *)module;
    return experts_forward(e, call->block, rows, &call->routing);
}

/* Runs the experts as a module on rows (N, H), lent; floating */
static struct tensor *run_stacks(struct engine *e, struct experts_call *call, struct tensor *rows)
{
    const struct decoder_layer *l = call->block->layer;
    struct tensor *experts[] = {l->experts_gate_up, l->experts_down, l->experts_gate_up_bias, l->experts_down_bias,
                                NULL};
    return nn_run(e, experts, NN_LINEAR, run_experts, &call, rows);
}

struct tensor *experts_multiply(struct engine *e, const struct block_call *b, struct tensor *rows,
                                struct tensor *weights, struct tensor *experts)
{
    struct experts_call call = {.block = b, .routing = {.weights = weights, .experts = experts}};
    if (e->halted) return op_halted(e, 1, &rows);
    return run_stacks(e, &call, rows);
}

/* Runs the router as a module on rows (N, H), or on x (B, S, H), lent. */
static void choose(struct engine *e, struct experts_call *call, struct tensor *given)
{
    const struct block_call *b = call->block;
    const struct decoder_layer *l = b->layer;
    struct tensor *router[] = {l->router, l->router_bias, NULL};
    struct tensor *weights = tensor_keep(nn_run(e, router, NN_LINEAR, run_router, &call, given));
    call->routing.weights = weights;
    if (b->m->returns_router_logits && !e->halted)
        b->m->router_logits[b->layer - b->m->layers] = tensor_ref(call->routing.logits);
}

/* Returns the experts' result for rows (N, H), lent, as the router selects them; or for x (B, S, H), if the router has
 * groups; floating */
static struct tensor *routed(struct engine *e, struct experts_call *call, struct tensor *given)
{
    const struct block_call *b = call->block;
    choose(e, call, given);
    bool is_apart = experts_traits_of(b->m)->is_grouped && !e->halted;
    struct tensor *rows = is_apart ? tensor_keep(rows_of(e, given)) : tensor_ref(given);
    struct tensor *y = run_stacks(e, call, rows);
    tensor_drop(e, rows);
    return y;
}

/* AfmoeSparseMoeBlock of x (B, S, H), lent; floating */
static struct tensor *forward_between(struct engine *e, struct experts_call *call, struct tensor *x)
{
    const struct block_call *b = call->block;
    struct tensor *rows = tensor_keep(rows_of(e, x));
    choose(e, call, x);
    nn_begin(e);
    struct tensor *shared = nn_end(e, decoder_gated_mlp(e, b->m->config->activation, b->layer, rows));
    shared = tensor_keep(e->halted ? shared : op_view(e, shared, x->a.ndim, x->a.shape));
    struct tensor *y = run_stacks(e, call, rows);
    y = tensor_keep(e->halted ? y : op_view(e, y, x->a.ndim, x->a.shape));
    struct tensor *sum = tensor_keep(op_add(e, shared, y));
    const struct routing *r = &call->routing;
    tensor_drop_all(e, rows, shared, y, r->logits, r->weights, r->experts);
    return tensor_yield(sum);
}

/* The shared expert of x (B, S, H), lent; floating */
static struct tensor *share(struct engine *e, const struct block_call *b, struct tensor *x)
{
    if (experts_traits_of(b->m)->is_plain) return decoder_mlp(e, b, x);
    nn_begin(e);
    return nn_end(e, decoder_gated_mlp(e, b->m->config->activation, b->layer, x));
}

static struct tensor *forward(struct engine *e, const void *module, struct tensor *x)
{
    struct experts_call *call = *(struct experts_call *const *)module;
    const struct block_call *b = call->block;
    if (experts_traits_of(b->m)->has_linear) return forward_between(e, call, x);
    const struct decoder_layer *l = b->layer;
    enum plim_activation f = b->m->config->activation;
    bool shares_first = experts_traits_of(b->m)->shares_first && l->gate.weight;
    bool shares = l->shared_gate.weight || shares_first,
         shares_last = (b->m->config->shared_experts || l->fc1.weight) && !shares_first;
    struct tensor *rows = experts_traits_of(b->m)->is_grouped ? tensor_ref(x) : tensor_keep(rows_of(e, x));
    if (shares_first) nn_begin(e);
    struct tensor *shared = shares ? decoder_gated_mlp(e, f, l, rows) : NULL;
    if (shares) tensor_keep(shares_first ? nn_end(e, shared) : shared);
    struct tensor *y = tensor_hold(routed(e, call, rows));
    if (shares_first) tensor_set(e, &y, op_add(e, y, shared));
    if (l->shared_gate.weight) {
        struct tensor *share = op_sigmoid(e, nn_linear(e, &l->shared_gate, rows));
        tensor_set(e, &shared, op_mul(e, share, shared));
        tensor_set(e, &y, op_add(e, y, shared));
    }
    if (!e->halted) tensor_set(e, &y, op_view(e, y, x->a.ndim, x->a.shape));
    if (shares_first && !e->halted) tensor_set(e, &y, op_to(e, y, (enum plim_dtype)x->a.dtype));
    if (shares_last) {
        shared = tensor_keep(share(e, b, x));
        tensor_set(e, &y, op_add(e, y, shared));
    }
    const struct routing *r = &call->routing;
    if (experts_traits_of(b->m)->tells_weights && !e->halted) tensor_set(e, call->besides, r->weights);
    tensor_drop_all(e, rows, shared, r->logits, r->weights, r->experts);
    return tensor_yield(y);
}

struct tensor *experts_block(struct engine *e, const struct block_call *b, struct tensor *x,
                             struct tensor **besides)
{
    struct experts_call call = {.block = b, .besides = besides}, *module = &call;
    const struct decoder_layer *l = b->layer;
    const struct linear *shared[] = {&l->gate, &l->up, &l->down, &l->shared_gate};
    struct tensor *weights[EXPERTS_WEIGHTS + 1] = {l->router, l->experts_gate_up, l->experts_down};
    size_t count = 3;
    if (e->halted) return op_halted(e, 1, &x);
    if (!experts_traits_of(b->m)->is_leaf) {
        nn_begin(e);
        return nn_end(e, forward(e, &module, x));
    }
    for (int i = 0; i < 4 && shared[i]->weight; i++) weights[count++] = shared[i]->weight;
    for (int i = 0; i < 4; i++) {
        const struct lora_adapter *adapter = shared[i]->lora;
        if (adapter) weights[count++] = adapter->a, weights[count++] = adapter->b;
    }
    return nn_run(e, weights, NN_LEAF, forward, &module, x);
}
