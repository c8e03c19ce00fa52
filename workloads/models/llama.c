/* llama and its relatives: rotary attention with grouped keys, a gated MLP, RMS norms. The families share this code and
 * differ by a table of traits. */
#include "llama_traits.h"
#include "workloads/engine/ops_liger.h"
#include <math.h>

static const struct llama_traits *traits_of(const struct decoder *m)
{
    return &plim_llama_traits[m->config->text ? m->config->text : m->config->family];
}

/* --- the modules ------------------------------------------------------------------------------ */

static enum norm_kind norm_of(const struct decoder *m)
{
    return traits_of(m)->norm;
}

static void build_attention(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct plim_model_config *c = m->config;
    const struct llama_traits *t = traits_of(m);
    struct parameters *p = &m->parameters;
    int64_t h = c->hidden_size, queries = c->heads * c->head_dim, keys = c->kv_heads * c->head_dim;
    if (t->fused) {
        nn_linear_create(e, p, &l->o, queries, h, false);
        nn_linear_create(e, p, &l->qkv, h, queries + 2 * keys, false);
        return;
    }
    bool bias = t->qkv_bias || c->attention_bias;
    size_t first = p->count;
    nn_linear_create(e, p, &l->q, h, t->gated ? 2 * queries : queries, bias);
    nn_linear_create(e, p, &l->k, h, keys, bias);
    nn_linear_create(e, p, &l->v, h, keys, bias);
    bool o_bias = !t->qkv_bias && !t->o_plain && c->attention_bias;
    nn_linear_create(e, p, &l->o, queries, h, o_bias || c->attention_out_bias);
    if (c->qk_layernorm && !t->parallel) {
        nn_norm_create(e, p, &l->q_norm, norm_of(m), c->head_dim, false);
        nn_norm_create(e, p, &l->k_norm, norm_of(m), c->head_dim, false);
    } else if (c->qk_layernorm) { /* cohere: each head has its own */
        nn_norm_create_of_heads(e, p, &l->q_norm, norm_of(m), c->heads, c->head_dim);
        nn_norm_create_of_heads(e, p, &l->k_norm, norm_of(m), c->kv_heads, c->head_dim);
    }
    if (t->sinks) {
        l->sinks = nn_parameter(e, p, INIT_ZEROS, SHAPE(c->heads));
        nn_move_last(p, first);
        if (!e->halted) l->sinks->odd_name = true;
    }
    if (t->head_norm == HEAD_NORM_NONE) return;
    bool whole = t->head_norm == HEAD_NORM_WHOLE;
    nn_norm_create(e, p, &l->q_norm, norm_of(m), whole ? queries : c->head_dim, false);
    nn_norm_create(e, p, &l->k_norm, norm_of(m), whole ? keys : c->head_dim, false);
    decoder_patch_norm(&l->q_norm, decoder_liger(m).head_norms);
    decoder_patch_norm(&l->k_norm, decoder_liger(m).head_norms);
    if (t->gates_apart) nn_linear_create(e, p, &l->attention_gate, h, queries, false);
}

static void build_mlp(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    int64_t h = c->hidden_size, f = c->intermediate_size;
    if (traits_of(m)->plain_mlp) {
        nn_linear_create(e, p, &l->fc1, h, f, c->mlp_bias);
        nn_linear_create(e, p, &l->fc2, f, h, c->mlp_bias);
        if (c->activation == PLIM_ACTIVATION_XIELU) xielu_build(e, m, l);
        return;
    }
    if (traits_of(m)->fused || traits_of(m)->fused_mlp) {
        nn_linear_create(e, p, &l->gate_up, h, 2 * f, false);
    } else {
        nn_linear_create(e, p, &l->gate, h, f, c->mlp_bias);
        nn_linear_create(e, p, &l->up, h, f, c->mlp_bias);
    }
    nn_linear_create(e, p, &l->down, f, h, c->mlp_bias);
}

static void build_norms(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    for (int i = 0; i < NORM_PLACES; i++) {
        if (!(traits_of(m)->places >> i & 1)) continue;
        nn_norm_create(e, &m->parameters, &l->norm[i], norm_of(m), m->config->hidden_size, traits_of(m)->norm_bias);
        decoder_patch_norm(&l->norm[i], decoder_liger(m).norms);
    }
}

static void build_layer(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct plim_model_config *c = m->config;
    int64_t i = l - m->layers;
    bool is_other = c->layer_is_linear[i], norms_first = traits_of(m)->norms_first;
    bool is_sparse = plim_model_layer_has_experts(c, i);
    bool attends_last = traits_of(m)->attends_last, mamba = traits_of(m)->mamba;
    if (c->key_rank) latent_attention_build(e, m, l);
    else if (is_other && !mamba) (traits_of(m)->convolves ? short_conv_build : delta_net_build)(e, m, l);
    else if (!attends_last) build_attention(e, m, l);
    if (norms_first) build_norms(e, m, l);
    (is_sparse ? experts_build : build_mlp)(e, m, l);
    if (is_sparse && mamba) build_mlp(e, m, l);
    if (!norms_first) build_norms(e, m, l);
    if (attends_last) (is_other ? mamba_build : build_attention)(e, m, l);
}

static void build_last_norm(struct engine *e, struct decoder *m)
{
    nn_norm_create(e, &m->parameters, &m->final_norm, norm_of(m), m->config->hidden_size, traits_of(m)->norm_bias);
    decoder_patch_norm(&m->final_norm, decoder_liger(m).last_norm);
}

/* If each kind of layers has its own rotary embedding, it is built only for the kinds that exist. */
static void build_rotaries(struct engine *e, struct decoder *m)
{
    const struct plim_model_config *c = m->config;
    const struct llama_traits *t = traits_of(m);
    bool local = t->two_rotaries && decoder_has_layers(m, true);
    bool global = t->mamba ? c->position_use == PLIM_POSITIONS_ROPE : !t->two_rotaries || decoder_has_layers(m, false);
    if (global) decoder_create_rotary(e, m, c->rope, &m->rotary);
    if (local) decoder_create_rotary(e, m, PLIM_ROPE_DEFAULT, &m->rotary_local);
    if (t->norm_last) build_last_norm(e, m);
    (t->mamba ? mamba_initialise : delta_net_initialise)(e, m);
    if (local && global)
        nn_rotary_initialise_both(e, &m->rotary, &m->rotary_local);
    else if (local || global)
        nn_rotary_initialise(e, local ? &m->rotary_local : &m->rotary);
    m->rotary.fp32 = m->rotary_local.fp32 = t->rotates_in_fp32;
    m->rotary.pairs = t->pairs;
    m->rotary.half = t->rotates_halves;
    m->rotary.is_complex = t->turns_complex;
    m->rotary.of_grids = t->of_grids;
    for (int i = 0; i < 3; i++) m->rotary.sections[i] = c->mrope_section[i];
    m->rotary.by_sections = t->of_grids == GRIDS_ALONE;
}

static void build(struct engine *e, struct decoder *m)
{
    const struct plim_model_config *c = m->config;
    if (c->vision.layers) vision_build(e, m);
    m->embedding =
        nn_parameter(e, &m->parameters, INIT_WEIGHT, SHAPE(c->vocab_size, c->hidden_size));
    if (traits_of(m)->scales_embeddings)
        m->embedding_scale = nn_buffer(e, op_full(e, m->parameters.dtype, 0, NULL, sqrt((double)c->hidden_size)));
    decoder_build_layers(e, m, build_layer);
    if (!traits_of(m)->norm_last) build_last_norm(e, m);
    build_rotaries(e, m);
    decoder_build_head(e, m, traits_of(m)->head_bias && c->attention_bias);
}

/* --- attention -------------------------------------------------------------------------------- */

enum { Q, K, V }; /* (B, A, S, D) each, named */

/* qwen3_5: splits y, one projection's result, into queries (B, A, S, D), which are normed, and their gate (B, S, A *
 * D); both named */
static void split_gated(struct engine *e, const struct block_call *b, struct tensor *y, struct tensor **queries,
                        struct tensor **gate)
{
    const struct plim_model_config *c = b->m->config;
    *queries = *gate = e->poison;
    if (e->halted) return;
    int64_t batch = y->a.shape[0], seq = y->a.shape[1], width = c->head_dim;
    struct tensor *parts[2];
    struct tensor *both = op_view(e, y, SHAPE(batch, seq, c->heads, 2 * width));
    op_split(e, both, -1, 2, (int64_t[]){width, width}, parts);
    struct tensor *unnormed = tensor_keep(parts[0]);
    *gate = tensor_keep(parts[1]);
    tensor_set(e, gate, op_reshape(e, *gate, SHAPE(batch, seq, c->heads * width)));
    struct tensor *heads = op_view(e, unnormed, SHAPE(batch, seq, c->heads, width));
    *queries = tensor_keep(op_transpose(e, nn_norm(e, &b->layer->q_norm, heads), 1, 2));
    tensor_drop(e, unnormed);
}

/* Returns a projection's result viewed as heads, with the norm `n` before the transpose if not NULL (qwen3); named */
static struct tensor *as_heads(struct engine *e, const struct plim_model_config *c, const struct norm *n,
                               struct tensor *y, int64_t heads)
{
    if (!n || e->halted) return tensor_keep(decoder_heads(e, y, heads, c->head_dim));
    struct tensor *split = op_view(e, y, SHAPE(y->a.shape[0], y->a.shape[1], heads, c->head_dim));
    return tensor_keep(op_transpose(e, nn_norm(e, n, split), 1, 2));
}

/* Runs all three projections before their results are viewed as heads, like qwen2_vl's forward() and those that axolotl
 * rewrites (monkeypatch/lora_kernels.py). y: named */
static void project_first(struct engine *e, const struct block_call *b, struct tensor *x, struct tensor *y[3])
{
    const struct decoder_layer *l = b->layer;
    const struct linear *const projections[] = {&l->q, &l->k, &l->v};
    bool fuses = b->m->setting->lora.qkv_kernel && l->q.lora && l->k.lora && l->v.lora && !e->adapters_off;
    if (fuses)
        nn_lora_qkv(e, projections, x, y);
    else
        for (int i = Q; i <= V; i++) y[i] = tensor_keep(nn_linear(e, projections[i], x));
}

/* Rebinds queries and keys to their norms. */
static void norm_heads(struct engine *e, const struct decoder_layer *l, struct tensor *qkv[3])
{
    tensor_set(e, &qkv[Q], nn_norm(e, &l->q_norm, qkv[Q]));
    tensor_set(e, &qkv[K], nn_norm(e, &l->k_norm, qkv[K]));
}

static void project_each(struct engine *e, const struct block_call *b, struct tensor *x,
                         struct tensor *qkv[3], struct tensor **gate)
{
    const struct plim_model_config *c = b->m->config;
    const struct decoder_layer *l = b->layer;
    const struct plim_lora *lora = &b->m->setting->lora;
    enum head_norm head_norm = traits_of(b->m)->head_norm;
    bool split = head_norm == HEAD_NORM_SPLIT;
    bool first = lora->qkv_kernel || lora->o_kernel || traits_of(b->m)->projects_first;
    struct tensor *y[3] = {NULL, NULL, NULL};
    if (first) project_first(e, b, x, y);
    struct tensor *queries = first ? y[Q] : nn_linear(e, &l->q, x);
    if (traits_of(b->m)->gated)
        split_gated(e, b, queries, &qkv[Q], gate);
    else
        qkv[Q] = as_heads(e, c, split ? &l->q_norm : NULL, queries, c->heads);
    tensor_drop(e, y[Q]);
    qkv[K] = as_heads(e, c, split ? &l->k_norm : NULL, first ? y[K] : nn_linear(e, &l->k, x), c->kv_heads);
    tensor_drop(e, y[K]);
    qkv[V] = as_heads(e, c, NULL, first ? y[V] : nn_linear(e, &l->v, x), c->kv_heads);
    tensor_drop(e, y[V]);
    if (head_norm == HEAD_NORM_TRANSPOSED) norm_heads(e, l, qkv);
}

/* Rebinds three projections (taken) to their views as heads; named */
static void split_heads(struct engine *e, const struct plim_model_config *c, struct tensor *qkv[3])
{
    for (int i = Q; i <= V; i++)
        qkv[i] =
            tensor_keep(decoder_heads(e, qkv[i], i == Q ? c->heads : c->kv_heads, c->head_dim));
}

/* olmo2: one norm over all heads; olmo, olmoe: values are clipped to clip_qkv; then the results are viewed as heads */
static void project_whole(struct engine *e, const struct block_call *b, struct tensor *x,
                          struct tensor *qkv[3])
{
    const struct plim_model_config *c = b->m->config;
    const struct decoder_layer *l = b->layer;
    const struct linear *const projections[] = {&l->q, &l->k, &l->v};
    const struct norm *const norms[] = {&l->q_norm, &l->k_norm, NULL};
    bool is_normed = traits_of(b->m)->head_norm == HEAD_NORM_WHOLE;
    for (int i = Q; i <= V; i++) {
        struct tensor *y = nn_linear(e, projections[i], x);
        qkv[i] = tensor_keep(is_normed && norms[i] ? nn_norm(e, norms[i], y) : y);
    }
    for (int i = Q; i <= V && c->clip_qkv > 0; i++) tensor_set(e, &qkv[i], op_clip_(e, qkv[i], c->clip_qkv));
    for (int i = Q; i <= V; i++)
        tensor_set(e, &qkv[i], decoder_heads(e, qkv[i], i == Q ? c->heads : c->kv_heads, c->head_dim));
}

/* cohere, glm4_moe, afmoe: norms after all projections, and before heads and positions are transposed */
static void project_then_norm(struct engine *e, const struct block_call *b, struct tensor *x,
                              struct tensor *qkv[3], struct tensor **gate)
{
    const struct plim_model_config *c = b->m->config;
    const struct decoder_layer *l = b->layer;
    const struct linear *projections[] = {&l->q, &l->k, &l->v};
    if (e->halted) {
        qkv[Q] = qkv[K] = qkv[V] = e->poison;
        return;
    }
    int64_t batch = x->a.shape[0], seq = x->a.shape[1];
    for (int i = Q; i <= V; i++)
        qkv[i] = tensor_keep(op_view(e, nn_linear(e, projections[i], x),
                                     SHAPE(batch, seq, i == Q ? c->heads : c->kv_heads, c->head_dim)));
    if (traits_of(b->m)->gates_apart) *gate = tensor_keep(nn_linear(e, &l->attention_gate, x));
    norm_heads(e, l, qkv);
    for (int i = Q; i <= V; i++) tensor_set(e, &qkv[i], op_transpose(e, qkv[i], 1, 2));
}

/* phi3: queries, keys and values are parts of one projection. Returns its result, a variable in Python; named */
static struct tensor *project_fused(struct engine *e, const struct block_call *b, struct tensor *x,
                                    struct tensor *qkv[3])
{
    const struct plim_model_config *c = b->m->config;
    int64_t queries = c->heads * c->head_dim, keys = c->kv_heads * c->head_dim;
    struct tensor *all = tensor_keep(nn_linear(e, &b->layer->qkv, x));
    qkv[Q] = op_slice(e, all, 2, 0, queries);
    qkv[K] = op_slice(e, all, 2, queries, keys);
    qkv[V] = op_slice(e, all, 2, queries + keys, keys);
    split_heads(e, c, qkv);
    return all;
}

/* Liger: rotates queries and keys in place, and rebinds them to other tensors on the same memory. */
static void rotate_in_place(struct engine *e, const struct block_call *b, struct tensor *qkv[3])
{
    struct tensor *const angles[2] = {b->cos, b->sin};
    struct tensor *rotated[2];
    int64_t width = e->halted ? 0 : tensor_size(b->cos, -1);
    op_liger_rope(e, qkv, angles, b->m->rotary.half ? width : width / 2, rotated);
    for (int i = Q; i <= K; i++) {
        tensor_drop(e, qkv[i]);
        qkv[i] = rotated[i];
    }
}

/* Rebinds queries and keys to the rotated ones. */
static void rotate(struct engine *e, const struct block_call *b, struct tensor *qkv[3])
{
    const struct llama_traits *t = traits_of(b->m);
    struct tensor *cos = tensor_keep(op_unsqueeze(e, b->cos, 1)),
                  *sin = tensor_keep(op_unsqueeze(e, b->sin, 1));
    struct tensor *rotated[2], *cast[2], *wide[2] = {NULL, NULL}, *parts[2] = {NULL, NULL};
    for (int i = Q; i <= K && t->pairs; i++) wide[i] = tensor_hold(op_to(e, qkv[i], PLIM_F32));
    if (t->some_pairs || t->wide_pairs) {
        int64_t half = e->halted ? 1 : tensor_size(cos, -1) / 2;
        tensor_set(e, &cos, op_repeat_each(e, op_slice(e, cos, -1, 0, half), -1, 2));
        tensor_set(e, &sin, op_repeat_each(e, op_slice(e, sin, -1, 0, half), -1, 2));
    }
    if (t->some_pairs)
        nn_rotate_pairs_then_join(e, qkv, cos, sin, rotated);
    else if (t->gated || t->turns_part)
        nn_rotate_then_join(e, qkv, cos, sin, rotated, NULL);
    else if (t->turns_first)
        nn_rotate_then_join(e, qkv, cos, sin, rotated, parts);
    else if (t->fused)
        nn_rotate_parts(e, qkv, cos, sin, rotated);
    else
        for (int i = Q; i <= K; i++)
            rotated[i] = tensor_keep(t->pairs            ? nn_rotate_pairs(e, wide[i], cos, sin)
                                     : t->wide_pairs     ? nn_rotate_pairs_wide(e, qkv[i], cos, sin)
                                     : t->rotates_halves ? nn_rotate_halves(e, qkv[i], cos, sin)
                                                        : nn_rotate(e, qkv[i], cos, sin));
    for (int i = Q; i <= K; i++) {
        bool is_wide = t->rotates_in_fp32 || t->pairs;
        cast[i] = tensor_hold(is_wide ? op_to(e, rotated[i], (enum plim_dtype)qkv[i]->a.dtype) : rotated[i]);
    }
    tensor_drop_all(e, cos, sin, rotated[Q], rotated[K], qkv[Q], qkv[K], wide[Q], wide[K], parts[Q], parts[K]);
    qkv[Q] = cast[Q];
    qkv[K] = cast[K];
}

/* get_llama_4_attn_scale() (modeling_ministral3.py:119): rebinds the queries to themselves times 1 + beta log(1 +
 * floor(position / original positions)). Another beta only changes values. */
static void scale_queries(struct engine *e, const struct block_call *b, struct tensor **queries)
{
    const double beta = 0.1;
    if (e->halted) return;
    struct tensor *lengths = op_true_div_scalar(e, b->positions, (double)b->m->config->rope_original_positions);
    struct tensor *steps = op_unary(e, lengths, PLIM_UNARY_FLOOR);
    struct tensor *log = op_unary(e, op_add_scalar(e, steps, 1), PLIM_UNARY_LOG);
    int64_t rows = tensor_size(b->positions, 0), tokens = tensor_size(b->positions, 1);
    struct tensor *scale = op_view(e, op_add_scalar(e, op_mul_scalar(e, log, beta), 1), SHAPE(rows, 1, tokens, 1));
    tensor_set(e, queries, op_mul(e, *queries, op_to(e, scale, (enum plim_dtype)(*queries)->a.dtype)));
}

static struct tensor *attend_gated(struct engine *e, const struct block_call *b, const struct attention_call *call,
                                   struct tensor *const qkv[3], struct tensor *gate, struct tensor **weights)
{
    struct tensor *y = decoder_context(e, call, qkv, weights);
    tensor_set(e, &y, op_mul(e, y, op_sigmoid(e, gate)));
    tensor_set(e, &y, decoder_project_out(e, b, y));
    return tensor_yield(y);
}

/* Returns the module's result (B, S, H), floating; *weights as in nn_attention() */
static struct tensor *attention(struct engine *e, const struct block_call *b, struct tensor *x,
                                struct tensor **weights)
{
    const struct llama_traits *t = traits_of(b->m);
    struct tensor *qkv[3], *gate = NULL, *all = NULL;
    *weights = NULL;
    if (b->m->config->layer_is_linear[b->layer - b->m->layers])
        return (t->convolves ? short_conv : t->mamba ? mamba : delta_net)(e, b, x);
    if (b->m->config->key_rank) return latent_attention(e, b, x, weights);
    nn_begin(e);
    if (t->fused)
        all = project_fused(e, b, x, qkv);
    else if (t->head_norm == HEAD_NORM_WHOLE || b->m->config->clip_qkv > 0)
        project_whole(e, b, x, qkv);
    else if (b->m->config->qk_layernorm || t->gates_apart)
        project_then_norm(e, b, x, qkv, &gate);
    else
        project_each(e, b, x, qkv, &gate);
    if (!b->m->config->layer_is_nope[b->layer - b->m->layers])
        (decoder_liger(b->m).rope ? rotate_in_place : rotate)(e, b, qkv);
    if (t->head_norm == HEAD_NORM_TURNED) norm_heads(e, b->layer, qkv);
    if (b->m->config->scales_queries) scale_queries(e, b, &qkv[Q]);
    decoder_cache_update(e, b, qkv);
    struct attention_call call = decoder_attention(b);
    if (b->m->config->scales_queries) { /* Ministral3Attention does not pass position_ids on */
        call.positions = NULL;
        call.documents = 0;
    }
    if (t->softcaps_attention) call.softcap = b->m->config->attn_logit_softcapping;
    call.sinks = b->layer->sinks;
    struct tensor *y = gate ? attend_gated(e, b, &call, qkv, gate, weights) : decoder_attend(e, b, &call, qkv, weights);
    if (t->drops_inside) y = op_dropout(e, y, b->m->config->dropout_residual);
    for (int i = Q; i <= V; i++) tensor_drop(e, qkv[i]);
    tensor_drop_all(e, gate, all);
    return nn_end(e, y);
}

/* --- the block -------------------------------------------------------------------------------- */

static struct tensor *plain(struct engine *e, const struct block_call *b, struct tensor *x)
{
    struct tensor *h = tensor_keep(nn_linear(e, &b->layer->fc1, x));
    bool has_own = b->m->config->activation == PLIM_ACTIVATION_XIELU;
    tensor_set(e, &h, has_own ? xielu(e, b->layer, h) : decoder_activation(e, b->m->config->activation, h));
    tensor_set(e, &h, nn_linear(e, &b->layer->fc2, h));
    if (traits_of(b->m)->drops_inside) tensor_set(e, &h, op_dropout(e, h, b->m->config->dropout_residual));
    return tensor_yield(h);
}

static struct tensor *dense(struct engine *e, const struct block_call *b, struct tensor *x)
{
    const struct decoder_layer *l = b->layer;
    enum plim_activation f = b->m->config->activation;
    enum plim_liger_mlp liger = decoder_liger(b->m).mlp;
    enum plim_unary gates = liger == PLIM_LIGER_MLP_GEGLU ? PLIM_UNARY_GELU_TANH : PLIM_UNARY_SILU;
    bool is_joined = traits_of(b->m)->fused || traits_of(b->m)->fused_mlp;
    if (liger && !is_joined) {
        struct tensor *gate_part = nn_linear(e, &l->gate, x);
        return nn_linear(e, &l->down, op_liger_gated(e, gates, gate_part, nn_linear(e, &l->up, x)));
    }
    if (traits_of(b->m)->plain_mlp) return plain(e, b, x);
    if (!is_joined) {
        struct tensor *fed = decoder_layer_mlp(e, b, x);
        return traits_of(b->m)->drops_inside ? op_dropout(e, fed, b->m->config->dropout_residual) : fed;
    }
    struct tensor *part[2];
    int64_t width = b->m->config->intermediate_size;
    op_split(e, nn_linear(e, &l->gate_up, x), 2, 2, (int64_t[]){width, width}, part);
    struct tensor *gate = tensor_keep(part[0]), *up = tensor_keep(part[1]);
    struct tensor *gated = liger                            ? op_liger_gated(e, gates, gate, up)
                           : traits_of(b->m)->gates_first ? op_mul(e, decoder_activation(e, f, gate), up)
                                                          : op_mul(e, up, decoder_activation(e, f, gate));
    tensor_set(e, &up, gated);
    struct tensor *y = nn_linear(e, &l->down, up);
    tensor_drop(e, gate);
    tensor_drop(e, up);
    return y;
}

/* *besides: the attention weights, which gpt_oss rebinds to the router's weights */
static struct tensor *mlp(struct engine *e, const struct block_call *b, struct tensor *x, struct tensor **besides)
{
    if (b->layer->router) return experts_block(e, b, x, besides);
    nn_begin(e);
    return nn_end(e, dense(e, b, x));
}

/* Rebinds *x to its norm, if the family has one in this place. */
static void norm(struct engine *e, const struct block_call *b, int place, struct tensor **x)
{
    if (traits_of(b->m)->places >> place & 1) tensor_set(e, x, nn_norm(e, &b->layer->norm[place], *x));
}

/* Returns residual + x, with x times residual_multiplier if the family has one; floating */
static struct tensor *join(struct engine *e, const struct block_call *b, struct tensor *residual, struct tensor *x)
{
    double multiplier = b->m->config->residual_multiplier;
    return op_add(e, residual, multiplier > 0 ? op_mul_scalar(e, x, multiplier) : x);
}

/* x + attention(norm(x)) + mlp(norm(x)) */
static struct tensor *parallel_block(struct engine *e, const struct block_call *b, struct tensor *x)
{
    struct tensor *weights, *h = tensor_ref(x);
    norm(e, b, BEFORE_ATTENTION, &h);
    struct tensor *attended = tensor_keep(attention(e, b, h, &weights));
    struct tensor *fed = tensor_keep(mlp(e, b, h, &weights));
    struct tensor *y = op_add(e, op_add(e, x, attended), fed);
    tensor_drop_all(e, h, attended, fed, weights);
    return y;
}

/* granitemoehybrid: the experts' result, named, which is a variable of the block, plus the MLP's of the same x. */
static struct tensor *mlp_beside_experts(struct engine *e, const struct block_call *b, struct tensor *x,
                                         struct tensor **experts)
{
    *experts = tensor_keep(experts_block(e, b, x, NULL));
    nn_begin(e);
    return op_add(e, *experts, nn_end(e, dense(e, b, x)));
}

static struct tensor *block(struct engine *e, const struct block_call *b, struct tensor *x)
{
    if (traits_of(b->m)->parallel) return parallel_block(e, b, x);
    bool is_beside = traits_of(b->m)->mamba && b->layer->router;
    double p = traits_of(b->m)->drops_inside ? 0 : b->m->config->dropout_residual; /* phi3's is a module */
    struct tensor *(*dropout)(struct engine *, struct tensor *, double) =
        traits_of(b->m)->fused ? nn_dropout : op_dropout;
    struct tensor *weights, *experts = NULL, *residual = tensor_ref(x), *h = tensor_ref(x);
    norm(e, b, BEFORE_ATTENTION, &h);
    tensor_set(e, &h, attention(e, b, h, &weights));
    norm(e, b, BEHIND_ATTENTION, &h);
    tensor_set(e, &h, join(e, b, residual, dropout(e, h, p)));
    tensor_set(e, &residual, h);
    norm(e, b, BEFORE_MLP, &h);
    tensor_set(e, &h, is_beside ? mlp_beside_experts(e, b, h, &experts) : mlp(e, b, h, &weights));
    norm(e, b, BEHIND_MLP, &h);
    tensor_set(e, &h, join(e, b, residual, dropout(e, h, p)));
    tensor_drop_all(e, residual, weights, experts);
    return tensor_yield(h);
}

const struct family plim_family_llama = {
    .build = build, .block = block, .body = decoder_rotary_body};
