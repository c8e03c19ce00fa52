/* Linear attention by the gated delta rule: Qwen3_5GatedDeltaNet of transformers' qwen3_5, and Qwen3NextGatedDeltaNet
 * of its qwen3_next, which has fused projections; with and without the packages flash-linear-attention and
 * causal-conv1d. */
#include "model.h"
#include "workloads/engine/ops_fla.h"

enum { Q, K, V };

/* True for qwen3_next: one projection computes queries, keys, values and gates, another one rates and steps. */
static bool is_joined(const struct decoder *m)
{
    return m->config->family == PLIM_FAMILY_QWEN3_NEXT;
}

void delta_net_build(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    int64_t h = c->hidden_size, heads = c->linear_value_heads,
            keys = c->linear_key_heads * c->linear_key_dim, values = heads * c->linear_value_dim,
            channels = 2 * keys + values;
    size_t first = p->count;
    l->conv = nn_parameter(e, p, INIT_WEIGHT, SHAPE(channels, 1, c->linear_kernel));
    if (is_joined(m)) {
        nn_linear_create(e, p, &l->in_qkv, h, channels + values, false);
        nn_linear_create(e, p, &l->in_b, h, 2 * heads, false);
    }
    l->dt_bias = nn_parameter(e, p, INIT_ZEROS, SHAPE(heads));
    nn_move_last(p, first);
    struct tensor *uniform =
        tensor_keep(tensor_empty(e, p->dtype, 1, &heads)); /* A_log is its logarithm */
    l->a_log = nn_parameter(e, p, INIT_ZEROS, SHAPE(heads)); /* initially a token halves the state */
    nn_move_last(p, first + 1);
    if (!e->halted) l->a_log->odd_name = true;
    nn_norm_create(e, p, &l->linear_norm, NORM_RMS_GATED, c->linear_value_dim, false);
    nn_linear_create(e, p, &l->linear_out, values, h, false);
    if (!is_joined(m)) {
        nn_linear_create(e, p, &l->in_qkv, h, channels, false);
        nn_linear_create(e, p, &l->in_z, h, values, false);
        nn_linear_create(e, p, &l->in_b, h, heads, false);
        nn_linear_create(e, p, &l->in_a, h, heads, false);
    }
    tensor_drop(e, uniform);
}

void delta_net_initialise(struct engine *e, const struct decoder *m)
{
    for (int64_t i = 0; i < m->config->layers; i++)
        if (m->layers[i].a_log)
            tensor_drop(e,
                        tensor_keep(tensor_empty_like(e, m->layers[i].a_log, m->parameters.dtype)));
}

/* causal_conv1d_fn of the package causal-conv1d, with silu */
static struct tensor *convolve_by_package(struct engine *e, struct tensor *weight, struct tensor *x,
                                          struct tensor *document)
{
    if (e->halted) return e->poison;
    struct tensor *squeezed = tensor_keep(op_view(e, weight, SHAPE(weight->a.shape[0], weight->a.shape[2])));
    struct tensor *y = op_causal_conv1d(e, x, squeezed, document);
    tensor_drop(e, squeezed);
    return y;
}

/* -exp(A_log) * softplus(a + dt_bias), in fp32; floating */
static struct tensor *decay_of(struct engine *e, const struct decoder_layer *l, struct tensor *a)
{
    struct tensor *rate = op_neg(e, op_exp(e, op_to(e, l->a_log, PLIM_F32)));
    struct tensor *step = op_softplus(e, op_add(e, op_to(e, a, PLIM_F32), l->dt_bias));
    return op_mul(e, rate, step);
}

/* Splits the convolved projection (B, channels, S), taken, into queries, keys and values (B, S, heads, D); named */
static void split(struct engine *e, const struct plim_model_config *c, struct tensor *mixed,
                  struct tensor *qkv[3])
{
    const int64_t heads[] = {c->linear_key_heads, c->linear_key_heads, c->linear_value_heads},
                  width[] = {c->linear_key_dim, c->linear_key_dim, c->linear_value_dim};
    const int64_t sizes[] = {heads[Q] * width[Q], heads[K] * width[K], heads[V] * width[V]};
    struct tensor *transposed = tensor_keep(op_transpose(e, mixed, 1, 2));
    tensor_drop(e, mixed);
    op_split(e, transposed, 2, 3, sizes, qkv);
    for (int i = Q; i <= V; i++) tensor_keep(qkv[i]);
    for (int i = Q; i <= V && !e->halted; i++)
        tensor_set(e, &qkv[i],
                   op_reshape(e, qkv[i],
                              SHAPE(transposed->a.shape[0], transposed->a.shape[1], heads[i], width[i])));
    tensor_drop(e, transposed);
}

/* Returns the number of chunks of all documents of a packed row; 0: the rows are the samples. */
static int64_t chunks_of(const struct decoder *m)
{
    if (!decoder_documents(m)) return 0;
    const struct documents d = decoder_split_documents(m, m->setting->micro_batch * m->setting->seq);
    return d.of_longest * chunks_of_tokens(d.longest) + chunks_of_tokens(d.rest) + d.single;
}

/* The projections of a layer's input, in Python's variables; named, or NULL */
struct projected {
    struct tensor *mixed;           /* queries, keys and values (B, channels, S) */
    struct tensor *z, *rate, *step; /* (B, S, value heads, D), and (B, S, value heads) twice */
    struct tensor *joined[2];       /* qwen3_next's projections */
    struct tensor *parts[3];        /* copies of their queries, keys and values, until `mixed` is split */
};

static struct projected project(struct engine *e, const struct block_call *b, struct tensor *x)
{
    const struct plim_model_config *c = b->m->config;
    const struct decoder_layer *l = b->layer;
    struct projected p = {0};
    p.mixed = tensor_keep(nn_linear(e, &l->in_qkv, x));
    tensor_set(e, &p.mixed, op_transpose(e, p.mixed, 1, 2));
    p.z = tensor_keep(nn_linear(e, &l->in_z, x));
    if (!e->halted)
        tensor_set(e, &p.z, op_reshape(e, p.z, SHAPE(x->a.shape[0], x->a.shape[1], c->linear_value_heads,
                                                     c->linear_value_dim)));
    p.rate = tensor_keep(nn_linear(e, &l->in_b, x));
    p.step = tensor_keep(nn_linear(e, &l->in_a, x));
    return p;
}

/* The same for qwen3_next: fix_query_key_value_ordering(), then queries, keys and values are concatenated. */
static struct projected project_joined(struct engine *e, const struct block_call *b, struct tensor *x)
{
    const struct plim_model_config *c = b->m->config;
    struct projected p = {0};
    p.joined[0] = tensor_keep(nn_linear(e, &b->layer->in_qkv, x));
    p.joined[1] = tensor_keep(nn_linear(e, &b->layer->in_b, x));
    p.mixed = p.z = p.rate = p.step = e->poison;
    if (e->halted) return p;
    int64_t batch = x->a.shape[0], seq = x->a.shape[1], keys = c->linear_key_heads, width = c->linear_key_dim,
            heads = c->linear_value_heads, groups = heads / keys, values = groups * c->linear_value_dim;
    struct tensor *part[4], *pair[2];
    struct tensor *grouped = op_view(e, p.joined[0], SHAPE(batch, seq, keys, 2 * width + 2 * values));
    op_split(e, grouped, 3, 4, (int64_t[]){width, width, values, values}, part);
    op_split(e, op_view(e, p.joined[1], SHAPE(batch, seq, keys, 2 * groups)), 3, 2, (int64_t[]){groups, groups}, pair);
    for (int i = 0; i < 4; i++) tensor_keep(part[i]);
    for (int i = 0; i < 2; i++) tensor_keep(pair[i]);
    for (int i = V; i < 4; i++)
        tensor_set(e, &part[i], op_reshape(e, part[i], SHAPE(batch, seq, heads, c->linear_value_dim)));
    for (int i = 0; i < 2; i++) tensor_set(e, &pair[i], op_reshape(e, pair[i], SHAPE(batch, seq, heads)));
    for (int i = Q; i <= V; i++) {
        p.parts[i] = tensor_keep(op_reshape(e, part[i], SHAPE(batch, seq, i == V ? keys * values : keys * width)));
        tensor_drop(e, part[i]);
    }
    p.mixed = tensor_keep(op_cat(e, 3, p.parts, -1));
    tensor_set(e, &p.mixed, op_transpose(e, p.mixed, 1, 2));
    p.z = part[V + 1];
    p.rate = pair[0];
    p.step = pair[1];
    return p;
}

static struct tensor *forward(struct engine *e, const void *module, struct tensor *x)
{
    const struct block_call *b = module;
    const struct plim_model_config *c = b->m->config;
    const struct plim_linear_attention *packages = &b->m->setting->linear_attention;
    const struct decoder_layer *l = b->layer;
    struct tensor *qkv[3], *hidden = tensor_ref(x);
    if (e->halted) return e->poison;
    int64_t batch = x->a.shape[0], seq = x->a.shape[1],
            groups = c->linear_value_heads / c->linear_key_heads;
    decoder_hide_padding(e, b->mask, &hidden);
    struct projected p = (is_joined(b->m) ? project_joined : project)(e, b, hidden);
    nn_access_weight(e, l->dt_bias, NN_OWN, l->conv);
    tensor_set(e, &p.mixed, packages->causal_conv1d ? convolve_by_package(e, l->conv, p.mixed, b->document)
                                                    : nn_causal_conv1d(e, l->conv, NULL, p.mixed, true));
    split(e, c, p.mixed, qkv);
    tensor_drop_all(e, p.parts[Q], p.parts[K], p.parts[V]);
    struct tensor *beta = tensor_keep(op_sigmoid(e, p.rate)),
                  *decay = tensor_keep(decay_of(e, l, p.step));
    for (int i = Q; i <= K && groups > 1; i++)
        tensor_set(e, &qkv[i], op_repeat_each(e, qkv[i], 2, groups));
    const struct fla_documents documents = {b->ends, chunks_of(b->m)};
    struct tensor *y = tensor_keep(packages->rule == PLIM_DELTA_RULE_FLA
                                       ? op_fla_gated_delta_rule(e, qkv, decay, beta, &documents)
                                       : nn_gated_delta_rule(e, qkv, decay, beta));
    tensor_set(e, &y,
               op_reshape(e, y, SHAPE(batch * seq * c->linear_value_heads, c->linear_value_dim)));
    tensor_set(e, &p.z,
               op_reshape(e, p.z, SHAPE(batch * seq * c->linear_value_heads, c->linear_value_dim)));
    tensor_set(e, &y, nn_norm_gated(e, &l->linear_norm, y, p.z));
    tensor_set(e, &y,
               op_reshape(e, y, SHAPE(batch, seq, c->linear_value_heads * c->linear_value_dim)));
    tensor_set(e, &y, nn_linear(e, &l->linear_out, y));
    tensor_drop_all(e, hidden, p.z, p.rate, p.step, p.joined[0], p.joined[1], qkv[Q], qkv[K], qkv[V], beta, decay);
    return tensor_yield(y);
}

struct tensor *delta_net(struct engine *e, const struct block_call *b, struct tensor *x)
{
    return nn_run(e, (struct tensor *const[]){b->layer->dt_bias, b->layer->a_log, NULL}, NN_OWN,
                  forward, b, x);
}
