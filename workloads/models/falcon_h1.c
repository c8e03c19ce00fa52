/* falcon_h1: in each block attention and a Mamba-2 layer run on the same norm, and their results are added. Multipliers
 * of all parts, which only change values, are 1 here; only those of embeddings and logits have keys. */
#include "model.h"

enum { Q, K, V };

const struct module plim_falcon_h1_block[] = {BLOCK("feed_forward.gate_proj", gate, LINEAR),
                                              BLOCK("feed_forward.up_proj", up, LINEAR),
                                              BLOCK("feed_forward.down_proj", down, LINEAR),
                                              MAMBA("mamba"),
                                              BLOCK("self_attn.q_proj", q, LINEAR),
                                              BLOCK("self_attn.k_proj", k, LINEAR),
                                              BLOCK("self_attn.v_proj", v, LINEAR),
                                              BLOCK("self_attn.o_proj", o, LINEAR),
                                              BLOCK("input_layernorm", norm[0], NORM),
                                              BLOCK("pre_ff_layernorm", norm[1], NORM),
                                              {0}};

/* --- the modules ------------------------------------------------------------------------------ */

static void build_layer(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    int64_t h = c->hidden_size, f = c->intermediate_size, queries = c->heads * c->head_dim,
            keys = c->kv_heads * c->head_dim;
    nn_linear_create(e, p, &l->gate, h, f, c->mlp_bias);
    nn_linear_create(e, p, &l->up, h, f, c->mlp_bias);
    nn_linear_create(e, p, &l->down, f, h, c->mlp_bias);
    mamba_build(e, m, l);
    nn_linear_create(e, p, &l->q, h, queries, c->attention_bias);
    nn_linear_create(e, p, &l->k, h, keys, c->attention_bias);
    nn_linear_create(e, p, &l->v, h, keys, c->attention_bias);
    nn_linear_create(e, p, &l->o, queries, h, c->attention_bias);
    for (int i = 0; i < 2; i++) nn_norm_create(e, p, &l->norm[i], NORM_RMS, h, false);
}

/* compute_mup_vector(), named */
static struct tensor *factors(struct engine *e, const struct decoder *m)
{
    return tensor_keep(op_full(e, m->parameters.dtype, SHAPE(1, 1, m->layers[0].in_qkv.out), 1));
}

static void build(struct engine *e, struct decoder *m)
{
    const struct plim_model_config *c = m->config;
    m->embedding = nn_parameter(e, &m->parameters, INIT_WEIGHT, SHAPE(c->vocab_size, c->hidden_size));
    decoder_build_layers(e, m, build_layer);
    nn_norm_create(e, &m->parameters, &m->final_norm, NORM_RMS, c->hidden_size, false);
    decoder_create_rotary(e, m, c->rope, &m->rotary);
    struct tensor *all = factors(e, m);
    for (int64_t i = 0; i < c->layers; i++) {
        m->layers[i].mup = nn_buffer(e, op_detached_clone(e, all));
        if (!e->halted) m->layers[i].mup->layer = (int32_t)i + 1;
    }
    mamba_initialise(e, m);
    nn_rotary_initialise(e, &m->rotary);
    tensor_drop(e, factors(e, m));
    tensor_drop(e, all);
    decoder_build_head(e, m, false);
}

/* --- the block -------------------------------------------------------------------------------- */

static struct tensor *times_one(struct engine *e, struct tensor *x)
{
    return op_mul_scalar(e, x, 1);
}

/* FalconH1Attention: keys are multiplied before they are rotated. */
static struct tensor *attention(struct engine *e, const struct block_call *b, struct tensor *x,
                                struct tensor **weights)
{
    const struct plim_model_config *c = b->m->config;
    const struct decoder_layer *l = b->layer;
    struct tensor *qkv[3], *rotated[2];
    nn_begin(e);
    qkv[Q] = tensor_keep(decoder_heads(e, nn_linear(e, &l->q, x), c->heads, c->head_dim));
    qkv[K] = tensor_keep(times_one(e, decoder_heads(e, nn_linear(e, &l->k, x), c->kv_heads, c->head_dim)));
    qkv[V] = tensor_keep(decoder_heads(e, nn_linear(e, &l->v, x), c->kv_heads, c->head_dim));
    struct tensor *cos = tensor_keep(op_unsqueeze(e, b->cos, 1)), *sin = tensor_keep(op_unsqueeze(e, b->sin, 1));
    for (int i = Q; i <= K; i++) rotated[i] = tensor_keep(nn_rotate(e, qkv[i], cos, sin));
    tensor_drop_all(e, cos, sin, qkv[Q], qkv[K]);
    for (int i = Q; i <= K; i++) qkv[i] = rotated[i];
    decoder_cache_update(e, b, qkv);
    struct attention_call call = decoder_attention(b);
    struct tensor *y = decoder_attend(e, b, &call, qkv, weights);
    for (int i = Q; i <= V; i++) tensor_drop(e, qkv[i]);
    return nn_end(e, y);
}

/* FalconH1MLP: down(up(x) * activation(gate(x))) */
static struct tensor *mlp(struct engine *e, const struct block_call *b, struct tensor *x)
{
    const struct decoder_layer *l = b->layer;
    nn_begin(e);
    struct tensor *up = tensor_keep(nn_linear(e, &l->up, x));
    struct tensor *gate = decoder_activation(e, b->m->config->activation, times_one(e, nn_linear(e, &l->gate, x)));
    struct tensor *y = tensor_keep(op_mul(e, up, gate));
    tensor_drop(e, up); /* a temporary of this expression */
    tensor_set(e, &y, times_one(e, nn_linear(e, &l->down, y)));
    return nn_end(e, tensor_yield(y));
}

static struct tensor *block(struct engine *e, const struct block_call *b, struct tensor *x)
{
    const struct decoder_layer *l = b->layer;
    struct tensor *weights = NULL, *residual = tensor_ref(x), *h = tensor_keep(nn_norm(e, &l->norm[0], x));
    struct tensor *scanned = tensor_keep(mamba(e, b, h));
    tensor_set(e, &scanned, times_one(e, scanned));
    struct tensor *input = tensor_keep(times_one(e, h));
    struct tensor *attended = tensor_keep(attention(e, b, input, &weights));
    tensor_drop(e, input);
    tensor_set(e, &attended, times_one(e, attended));
    tensor_set(e, &h, op_add(e, scanned, attended));
    tensor_set(e, &h, op_add(e, residual, h));
    tensor_set(e, &residual, h);
    tensor_set(e, &h, nn_norm(e, &l->norm[1], h));
    tensor_set(e, &h, mlp(e, b, h));
    tensor_set(e, &h, op_add(e, residual, h));
    tensor_drop_all(e, residual, scanned, attended, weights);
    return tensor_yield(h);
}

const struct family plim_family_falcon_h1 = {.build = build, .block = block, .body = decoder_rotary_body};
