/* nemotron_h: each layer is a norm and one module, whose result is added: a Mamba-2 layer, attention without positions,
 * an MLP, or experts. */
#include "model.h"

enum { Q, K, V };

const struct module plim_nemotron_h_block[] = {BLOCK("norm", norm[0], NORM),
                                               MAMBA("mixer"),
                                               BLOCK("mixer.q_proj", q, LINEAR),
                                               BLOCK("mixer.k_proj", k, LINEAR),
                                               BLOCK("mixer.v_proj", v, LINEAR),
                                               BLOCK("mixer.o_proj", o, LINEAR),
                                               BLOCK("mixer.experts.up_proj", experts_gate_up, PARAMETER),
                                               BLOCK("mixer.experts.down_proj", experts_down, PARAMETER),
                                               BLOCK("mixer.gate", router, WEIGHT),
                                               BLOCK("mixer.gate.e_score_correction_bias", router_correction,
                                                     PARAMETER),
                                               BLOCK("mixer.shared_experts.up_proj", fc1, LINEAR),
                                               BLOCK("mixer.shared_experts.down_proj", fc2, LINEAR),
                                               {0}};
const struct module plim_nemotron_h_model[] = {MODEL("model.embeddings", embedding, WEIGHT),
                                               BLOCKS("model.layers"),
                                               MODEL("model.norm_f", final_norm, NORM),
                                               MODEL("lm_head", head, HEAD),
                                               {0}};

/* --- the modules ------------------------------------------------------------------------------ */

static enum plim_layer_kind kind_of(const struct decoder *m, const struct decoder_layer *l)
{
    return (enum plim_layer_kind)m->config->layer_pattern[l - m->layers];
}

static void build_attention(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    int64_t h = c->hidden_size, queries = c->heads * c->head_dim, keys = c->kv_heads * c->head_dim;
    nn_linear_create(e, p, &l->q, h, queries, false);
    nn_linear_create(e, p, &l->k, h, keys, false);
    nn_linear_create(e, p, &l->v, h, keys, false);
    nn_linear_create(e, p, &l->o, queries, h, false);
}

static void build_mlp(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct plim_model_config *c = m->config;
    nn_linear_create(e, &m->parameters, &l->fc1, c->hidden_size, c->intermediate_size, c->mlp_bias);
    nn_linear_create(e, &m->parameters, &l->fc2, c->intermediate_size, c->hidden_size, c->mlp_bias);
}

static void build_layer(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    enum plim_layer_kind kind = kind_of(m, l);
    nn_norm_create(e, &m->parameters, &l->norm[0], NORM_RMS, m->config->hidden_size, false);
    (kind == PLIM_LAYER_MAMBA     ? mamba_build
     : kind == PLIM_LAYER_MLP     ? build_mlp
     : kind == PLIM_LAYER_EXPERTS ? experts_build
                                  : build_attention)(e, m, l);
}

static void build(struct engine *e, struct decoder *m)
{
    const struct plim_model_config *c = m->config;
    m->embedding = nn_parameter(e, &m->parameters, INIT_WEIGHT, SHAPE(c->vocab_size, c->hidden_size));
    decoder_build_layers(e, m, build_layer);
    nn_norm_create(e, &m->parameters, &m->final_norm, NORM_RMS, c->hidden_size, false);
    mamba_initialise(e, m);
    decoder_build_head(e, m, false);
}

/* --- the block -------------------------------------------------------------------------------- */

static struct tensor *attention(struct engine *e, const struct block_call *b, struct tensor *x, struct tensor **weights)
{
    const struct plim_model_config *c = b->m->config;
    const struct linear *const projections[3] = {&b->layer->q, &b->layer->k, &b->layer->v};
    struct tensor *qkv[3];
    nn_begin(e);
    for (int i = Q; i <= V; i++)
        qkv[i] = tensor_keep(decoder_heads(e, nn_linear(e, projections[i], x), i == Q ? c->heads : c->kv_heads,
                                           c->head_dim));
    decoder_cache_update(e, b, qkv);
    struct attention_call call = decoder_attention(b);
    struct tensor *y = decoder_attend(e, b, &call, qkv, weights);
    for (int i = Q; i <= V; i++) tensor_drop(e, qkv[i]);
    return nn_end(e, y);
}

static struct tensor *block(struct engine *e, const struct block_call *b, struct tensor *x)
{
    const struct decoder_layer *l = b->layer;
    enum plim_layer_kind kind = kind_of(b->m, l);
    if (e->halted) return e->poison;
    struct tensor *weights = NULL, *input = tensor_hold(op_to(e, x, (enum plim_dtype)l->norm[0].weight->a.dtype));
    struct tensor *h = tensor_keep(nn_norm(e, &l->norm[0], input));
    tensor_drop(e, input);
    tensor_set(e, &h, kind == PLIM_LAYER_MAMBA     ? mamba(e, b, h)
                      : kind == PLIM_LAYER_MLP     ? decoder_mlp(e, b, h)
                      : kind == PLIM_LAYER_EXPERTS ? experts_block(e, b, h, NULL)
                                                   : attention(e, b, h, &weights));
    tensor_set(e, &h, op_add(e, x, h));
    tensor_drop(e, weights);
    return tensor_yield(h);
}

const struct family plim_family_nemotron_h = {.build = build, .block = block, .body = decoder_rotary_body};
