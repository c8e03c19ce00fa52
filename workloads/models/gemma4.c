/* gemma4's text: heads of full-attention layers have another size than those of sliding layers; the last layers may use
 * the keys and values of the last earlier layer of their kind; each layer may have its own embedding of the tokens, and
 * experts beside its MLP. */
#include "model.h"
#include <math.h>

enum { BEFORE_ATTENTION, BEHIND_ATTENTION, BEFORE_MLP, BEHIND_MLP, NORM_PLACES };
enum { OF_MLP, OF_EXPERTS, TO_EXPERTS, EXPERT_NORMS };

static bool is_sliding(const struct decoder *m, const struct decoder_layer *l)
{
    return m->config->layer_is_sliding[l - m->layers];
}

static int64_t head_dim(const struct decoder *m, const struct decoder_layer *l)
{
    return is_sliding(m, l) ? m->config->head_dim : m->config->global_head_dim;
}

static int64_t kv_heads(const struct decoder *m, const struct decoder_layer *l)
{
    return is_sliding(m, l) ? m->config->kv_heads : m->config->global_kv_heads;
}

/* True if the layer uses the keys and values of another layer. */
static bool shares_states(const struct decoder *m, const struct decoder_layer *l)
{
    return l - m->layers >= m->config->layers - m->config->shared_kv_layers;
}

/* True if the layer is the last of its kind with keys and values of its own, which later layers may use. */
static bool stores_states(const struct decoder *m, const struct decoder_layer *l)
{
    const struct decoder_layer *end = m->layers + m->config->layers - m->config->shared_kv_layers;
    if (shares_states(m, l)) return false;
    for (const struct decoder_layer *next = l + 1; next < end; next++)
        if (is_sliding(m, next) == is_sliding(m, l)) return false;
    return true;
}

/* --- the modules ------------------------------------------------------------------------------ */

static void build_norm(struct engine *e, struct decoder *m, struct norm *n, int64_t size)
{
    nn_norm_create(e, &m->parameters, n, NORM_RMS_GEMMA4, size, false);
}

static void build_attention(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    int64_t h = c->hidden_size, width = head_dim(m, l), keys = kv_heads(m, l) * width;
    nn_linear_create(e, p, &l->q, h, c->heads * width, c->attention_bias);
    build_norm(e, m, &l->q_norm, width);
    if (!shares_states(m, l)) {
        build_norm(e, m, &l->k_norm, width);
        nn_linear_create(e, p, &l->k, h, keys, c->attention_bias);
        if (is_sliding(m, l) || !c->keys_are_values) nn_linear_create(e, p, &l->v, h, keys, c->attention_bias);
    }
    nn_linear_create(e, p, &l->o, c->heads * width, h, c->attention_bias);
}

/* The scales are parameters of the router module itself, so they precede those of its linear. */
static void build_router(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    size_t first = p->count;
    nn_linear_create(e, p, &l->router_proj, c->hidden_size, c->experts, false);
    l->router_scale = nn_parameter(e, p, INIT_ONES, SHAPE(c->hidden_size));
    nn_move_last(p, first);
    l->expert_scale = nn_parameter(e, p, INIT_ONES, SHAPE(c->experts));
    nn_move_last(p, first + 1);
    if (e->halted) return;
    l->router_scale->odd_name = l->expert_scale->odd_name = true;
}

static void build_layer(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    int64_t h = c->hidden_size, wide = c->double_wide && shares_states(m, l) ? 2 : 1, f = wide * c->intermediate_size;
    build_attention(e, m, l);
    nn_linear_create(e, p, &l->gate, h, f, false);
    nn_linear_create(e, p, &l->up, h, f, false);
    nn_linear_create(e, p, &l->down, f, h, false);
    for (int i = 0; i < NORM_PLACES; i++) build_norm(e, m, &l->norm[i], h);
    l->scalar = nn_buffer(e, op_full(e, p->dtype, SHAPE(1), 1));
    if (!e->halted) l->scalar->layer = p->layer;
    if (c->per_layer_size) {
        nn_linear_create(e, p, &l->per_layer_gate, h, c->per_layer_size, false);
        nn_linear_create(e, p, &l->per_layer_out, c->per_layer_size, h, false);
        build_norm(e, m, &l->per_layer_norm, h);
    }
    if (!c->experts) return;
    build_router(e, m, l);
    experts_build_stacks(e, m, l);
    for (int i = 0; i < EXPERT_NORMS; i++) build_norm(e, m, &l->expert_norm[i], h);
}

static struct tensor *build_scale(struct engine *e, struct decoder *m, int64_t width)
{
    return nn_buffer(e, op_full(e, m->parameters.dtype, 0, NULL, sqrt((double)width)));
}

static void build_rotaries(struct engine *e, struct decoder *m)
{
    const struct plim_model_config *c = m->config;
    bool slides = decoder_has_layers(m, true);
    decoder_create_rotary_of(e, m, c->rope, c->global_head_dim, &m->rotary);
    if (slides) decoder_create_rotary_of(e, m, PLIM_ROPE_DEFAULT, c->head_dim, &m->rotary_local);
}

static void build_per_layer(struct engine *e, struct decoder *m)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    int64_t all = c->layers * c->per_layer_size;
    if (!all) return;
    m->per_layer_embedding = nn_parameter(e, p, INIT_WEIGHT, SHAPE(c->per_layer_vocab, all));
    m->per_layer_scale = build_scale(e, m, c->per_layer_size);
    nn_linear_create(e, p, &m->per_layer_projection, c->hidden_size, all, false);
    build_norm(e, m, &m->per_layer_norm, c->per_layer_size);
}

static void build(struct engine *e, struct decoder *m)
{
    const struct plim_model_config *c = m->config;
    if (c->vision.layers) vision_build(e, m);
    m->embedding = nn_parameter(e, &m->parameters, INIT_WEIGHT, SHAPE(c->vocab_size, c->hidden_size));
    m->embedding_scale = build_scale(e, m, c->hidden_size);
    decoder_build_layers(e, m, build_layer);
    build_norm(e, m, &m->final_norm, c->hidden_size);
    build_rotaries(e, m);
    build_per_layer(e, m);
    if (m->rotary_local.dim)
        nn_rotary_initialise_both(e, &m->rotary, &m->rotary_local);
    else
        nn_rotary_initialise(e, &m->rotary);
    vision_build_behind(e, m);
    decoder_build_head(e, m, false);
}

/* --- attention -------------------------------------------------------------------------------- */

enum { Q, K, V }; /* (B, S, A, D), then (B, A, S, D), named */

/* Rebinds *x to the rotated *x. */
static void rotate(struct engine *e, const struct block_call *b, struct tensor **x)
{
    struct tensor *cos = tensor_keep(op_unsqueeze(e, b->cos, 2)), *sin = tensor_keep(op_unsqueeze(e, b->sin, 2));
    tensor_set(e, x, nn_rotate(e, *x, cos, sin));
    tensor_drop_all(e, cos, sin);
}

static struct tensor *project(struct engine *e, const struct linear *l, struct tensor *x, int64_t width)
{
    struct tensor *y = nn_linear(e, l, x);
    if (e->halted) return op_halted(e, 1, &y);
    return op_view(e, y, SHAPE(tensor_size(x, 0), tensor_size(x, 1), l->out / width, width));
}

/* Computes the layer's own keys and values. */
static void project_states(struct engine *e, const struct block_call *b, struct tensor *x, struct tensor *qkv[3])
{
    static const struct norm v_norm = {.kind = NORM_RMS_GEMMA4};
    const struct decoder_layer *l = b->layer;
    int64_t width = head_dim(b->m, l);
    qkv[K] = tensor_keep(project(e, &l->k, x, width));
    qkv[V] = l->v.weight ? tensor_keep(project(e, &l->v, x, width)) : tensor_ref(qkv[K]);
    tensor_set(e, &qkv[K], nn_norm(e, &l->k_norm, qkv[K]));
    rotate(e, b, &qkv[K]);
    tensor_set(e, &qkv[K], op_transpose(e, qkv[K], 1, 2));
    tensor_set(e, &qkv[V], nn_norm(e, &v_norm, qkv[V]));
    tensor_set(e, &qkv[V], op_transpose(e, qkv[V], 1, 2));
}

/* Returns the mapping's keys and values for layers of this kind. */
static struct tensor **shared_states(const struct block_call *b)
{
    return &b->states->values[is_sliding(b->m, b->layer) ? 2 : 0];
}

static struct tensor *attention(struct engine *e, const struct block_call *b, struct tensor *x,
                                struct tensor **weights)
{
    const struct decoder_layer *l = b->layer;
    struct tensor *qkv[3];
    *weights = NULL;
    if (e->halted) return op_halted(e, 1, &x);
    struct tensor **shared = shared_states(b);
    nn_begin(e);
    qkv[Q] = tensor_keep(project(e, &l->q, x, head_dim(b->m, l)));
    tensor_set(e, &qkv[Q], nn_norm(e, &l->q_norm, qkv[Q]));
    rotate(e, b, &qkv[Q]);
    tensor_set(e, &qkv[Q], op_transpose(e, qkv[Q], 1, 2));
    if (shares_states(b->m, l)) {
        for (int i = K; i <= V; i++) qkv[i] = tensor_ref(e->halted ? e->poison : shared[i - K]);
    } else {
        project_states(e, b, x, qkv);
    }
    for (int i = K; i <= V && stores_states(b->m, l) && !e->halted; i++) {
        tensor_drop(e, shared[i - K]);
        shared[i - K] = tensor_ref(qkv[i]);
    }
    struct attention_call call = decoder_attention(b);
    call.groups = b->m->config->heads / kv_heads(b->m, l);
    call.scaling = 1;
    struct tensor *y = decoder_attend(e, b, &call, qkv, weights);
    tensor_drop_all(e, qkv[Q], qkv[K], qkv[V]);
    return nn_end(e, y);
}

/* --- experts ---------------------------------------------------------------------------------- */

/* Runs the router on rows (N, H), lent: stores the weights and the indices of each row's experts, (N, k) each, and
 * rebinds *probabilities, which Python holds. All named. */
static void route(struct engine *e, const struct block_call *b, struct tensor *rows, struct tensor **weights,
                  struct tensor **experts, struct tensor **probabilities)
{
    static const struct norm norm = {.kind = NORM_RMS_GEMMA4};
    const struct decoder_layer *l = b->layer;
    int64_t k = b->m->config->experts_per_token, n = e->halted ? 1 : tensor_size(rows, 0);
    struct tensor *top[2];
    nn_begin(e);
    struct tensor *x = tensor_keep(nn_norm(e, &norm, rows));
    tensor_set(e, &x, op_mul_scalar(e, op_mul(e, x, l->router_scale), 1 / sqrt((double)b->m->config->hidden_size)));
    struct tensor *scores = tensor_keep(nn_linear(e, &l->router_proj, x));
    tensor_set(e, probabilities, op_softmax(e, scores, PLIM_F32));
    op_top_k(e, *probabilities, k, top);
    *weights = tensor_keep(top[0]);
    *experts = tensor_keep(top[1]);
    tensor_set(e, weights, op_div_(e, *weights, op_sum_last(e, *weights)));
    struct tensor *scales = op_rows(e, l->expert_scale, op_view(e, *experts, SHAPE(n * k)));
    tensor_set(e, weights, op_mul(e, *weights, op_view(e, scales, SHAPE(n, k))));
    *weights = tensor_keep(nn_end(e, tensor_yield(*weights)));
    tensor_drop_all(e, x, scores);
}

/* Tensors that a block with experts holds until its end */
struct experts_held {
    struct tensor *of_mlp, *of_experts, *rows, *weights, *experts;
};

/* Rebinds *h, the MLP's result for a norm of `residual`, to the sum of its norm and of the experts' normed result for
 * another norm of `residual`. *besides, `_` in Python, is rebound to the probabilities. */
static void add_experts(struct engine *e, const struct block_call *b, struct tensor *residual, struct tensor **h,
                        struct experts_held *held, struct tensor **besides)
{
    const struct norm *norms = b->layer->expert_norm;
    if (e->halted) return;
    int64_t width = tensor_size(residual, -1), rows = tensor_elements(residual) / width;
    held->of_mlp = tensor_keep(nn_norm(e, &norms[OF_MLP], *h));
    held->rows = tensor_keep(op_view(e, residual, SHAPE(rows, width)));
    route(e, b, held->rows, &held->weights, &held->experts, besides);
    held->of_experts = tensor_keep(nn_norm(e, &norms[TO_EXPERTS], held->rows));
    tensor_set(e, &held->of_experts, experts_multiply(e, b, held->of_experts, held->weights, held->experts));
    if (!e->halted)
        tensor_set(e, &held->of_experts, op_view(e, held->of_experts, residual->a.ndim, residual->a.shape));
    tensor_set(e, &held->of_experts, nn_norm(e, &norms[OF_EXPERTS], held->of_experts));
    tensor_set(e, h, op_add(e, held->of_mlp, held->of_experts));
}

/* --- the block -------------------------------------------------------------------------------- */

static struct tensor *mlp(struct engine *e, const struct block_call *b, struct tensor *x)
{
    nn_begin(e);
    return nn_end(e, decoder_layer_mlp(e, b, x));
}

/* Rebinds *h to the sum with the layer's own embeddings of the tokens, gated by *h. */
static void add_per_layer(struct engine *e, const struct block_call *b, struct tensor **residual, struct tensor **h)
{
    const struct decoder_layer *l = b->layer;
    tensor_set(e, residual, *h);
    tensor_set(e, h, nn_linear(e, &l->per_layer_gate, *h));
    tensor_set(e, h, decoder_activation(e, b->m->config->activation, *h));
    tensor_set(e, h, op_mul(e, *h, e->halted ? e->poison : b->per_layer));
    tensor_set(e, h, nn_linear(e, &l->per_layer_out, *h));
    tensor_set(e, h, nn_norm(e, &l->per_layer_norm, *h));
    tensor_set(e, h, op_add(e, *residual, *h));
}

static struct tensor *block(struct engine *e, const struct block_call *b, struct tensor *x)
{
    const struct decoder_layer *l = b->layer;
    struct experts_held held = {0};
    struct tensor *weights, *residual = tensor_ref(x), *h = tensor_keep(nn_norm(e, &l->norm[BEFORE_ATTENTION], x));
    tensor_set(e, &h, attention(e, b, h, &weights));
    tensor_set(e, &h, nn_norm(e, &l->norm[BEHIND_ATTENTION], h));
    tensor_set(e, &h, op_add(e, residual, h));
    tensor_set(e, &residual, h);
    tensor_set(e, &h, nn_norm(e, &l->norm[BEFORE_MLP], h));
    tensor_set(e, &h, mlp(e, b, h));
    if (l->experts_down) add_experts(e, b, residual, &h, &held, &weights);
    tensor_set(e, &h, nn_norm(e, &l->norm[BEHIND_MLP], h));
    tensor_set(e, &h, op_add(e, residual, h));
    if (l->per_layer_gate.weight) add_per_layer(e, b, &residual, &h);
    tensor_set(e, &h, op_mul_(e, h, l->scalar));
    tensor_drop_all(e, residual, weights, held.of_mlp, held.of_experts, held.rows, held.weights, held.experts);
    return tensor_yield(h);
}

const struct family plim_family_gemma4 = {.build = build, .block = block, .body = decoder_rotary_body};
