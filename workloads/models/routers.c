/* Routers: they choose a token's experts, and their weights. */
#include "experts.h"
#include <math.h>

/* --- traits ----------------------------------------------------------------------------------- */

#define GRANITEMOE {.ranks_logits = true, .widens_logits = true, .weights_as_rows = true}
static const struct experts_traits all_traits[PLIM_FAMILY_COUNT] = {
    [PLIM_FAMILY_GPT_OSS] = {.ranks_logits = true, .tells_weights = true, .has_bias = true, .transposed = true,
                             .clamps_gate = true},
    [PLIM_FAMILY_MIXTRAL] = {.is_leaf = true, .normalized = true, .widens_logits = true},
    [PLIM_FAMILY_QWEN2_MOE] = {.is_leaf = true, .weights_are_low = true},
    [PLIM_FAMILY_QWEN3_MOE] = {.is_leaf = true, .weights_are_low = true, .experts_first = true},
    [PLIM_FAMILY_QWEN3_5_MOE_TEXT] = {.normalized = true, .weights_are_low = true},
    [PLIM_FAMILY_QWEN3_5_MOE] = {.normalized = true, .weights_are_low = true},
    [PLIM_FAMILY_QWEN3_VL_MOE] = {.normalized = true, .weights_are_low = true, .experts_first = true},
    [PLIM_FAMILY_QWEN3_NEXT] = {.weights_are_low = true},
    [PLIM_FAMILY_OLMOE] = {.weights_are_low = true},
    [PLIM_FAMILY_GLM4_MOE] = {.is_grouped = true, .experts_first = true},
    [PLIM_FAMILY_DEEPSEEK_V2] = {.is_grouped = true, .by_softmax = true, .experts_first = true},
    [PLIM_FAMILY_NEMOTRON_H] = {.is_grouped = true, .experts_first = true, .is_plain = true},
    [PLIM_FAMILY_DEEPSEEK_V3] = {.is_grouped = true, .experts_first = true},
    [PLIM_FAMILY_GLM4_MOE_LITE] = {.is_grouped = true, .experts_first = true},
    [PLIM_FAMILY_ERNIE4_5_MOE] = {.corrects_softmax = true, .shares_first = true},
    [PLIM_FAMILY_LFM2_MOE] = {.by_sigmoid = true, .experts_first = true},
    [PLIM_FAMILY_MINIMAX_M2] = {.by_wide_sigmoid = true},
    [PLIM_FAMILY_AFMOE] = {.has_linear = true},
    [PLIM_FAMILY_GRANITEMOE] = GRANITEMOE,
    [PLIM_FAMILY_GRANITEMOEHYBRID] = GRANITEMOE,
};

const struct experts_traits *experts_traits_of(const struct decoder *m)
{
    return &all_traits[m->config->family];
}

void router_build_correction(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct experts_traits *t = experts_traits_of(m);
    bool is_parameter = t->corrects_softmax || t->has_linear;
    bool is_own = t->by_wide_sigmoid || t->has_linear;
    if (t->is_plain) /* from_pretrained() keeps it in fp32; from_config() makes it in the default type */
        is_own = m->setting->made_on == PLIM_MADE_ON_GPU && !m->setting->quantization.type;
    enum plim_dtype dtype = is_own ? m->parameters.dtype : PLIM_F32;
    l->router_correction = nn_buffer(e, op_full(e, dtype, SHAPE(m->config->experts), 0));
    if (e->halted) return;
    l->router_correction->layer = m->parameters.layer;
    l->router_correction->is_parameter = is_parameter;
    if (is_parameter) m->parameters.elements += m->config->experts;
}

void router_build(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct experts_traits *t = experts_traits_of(m);
    struct parameters *p = &m->parameters;
    enum plim_dtype dtype = p->dtype;
    if (t->has_linear) {
        nn_linear_create(e, p, &l->router_proj, m->config->hidden_size, m->config->experts, false);
        l->router = l->router_proj.weight;
        return;
    }
    if (t->corrects_softmax) p->dtype = PLIM_F32;
    l->router = nn_parameter(e, p, INIT_WEIGHT, SHAPE(m->config->experts, m->config->hidden_size));
    p->dtype = dtype;
    if (t->has_bias) l->router_bias = nn_parameter(e, p, INIT_ZEROS, SHAPE(m->config->experts));
    bool is_corrected = (t->is_grouped && !t->by_softmax) || t->corrects_softmax || m->config->corrects_experts ||
                        t->by_wide_sigmoid;
    if (is_corrected) router_build_correction(e, m, l);
}

/* --- routing ---------------------------------------------------------------------------------- */

/* GptOssTopKRouter, GraniteMoeTopKRouter: the weights are the softmax of the k largest logits; x (N, H) and the
 * router's weight, lent. */
static struct routing rank(struct engine *e, const struct block_call *b, struct tensor *weight, struct tensor *x)
{
    struct routing r;
    struct tensor *top[2];
    r.logits = tensor_keep(nn_product(e, x, weight, b->layer->router_bias));
    if (experts_traits_of(b->m)->widens_logits) tensor_set(e, &r.logits, op_to(e, r.logits, PLIM_F32));
    op_top_k(e, r.logits, b->m->config->experts_per_token, top);
    struct tensor *largest = tensor_keep(top[0]);
    r.experts = tensor_keep(top[1]);
    r.weights = tensor_keep(op_softmax(e, largest, (enum plim_dtype)largest->a.dtype));
    if (experts_traits_of(b->m)->weights_as_rows && !e->halted)
        tensor_set(e, &r.weights, op_to(e, r.weights, (enum plim_dtype)x->a.dtype));
    tensor_drop(e, largest);
    return r;
}

/* The router of other families: the k largest probabilities; x and the weight likewise. */
static struct routing route(struct engine *e, const struct block_call *b, struct tensor *weight, struct tensor *x)
{
    const struct plim_model_config *c = b->m->config;
    const struct experts_traits *t = experts_traits_of(b->m);
    struct routing r;
    struct tensor *top[2];
    r.logits = tensor_keep(nn_product(e, x, weight, NULL));
    struct tensor *given = t->widens_logits ? op_to(e, r.logits, PLIM_F32) : r.logits;
    struct tensor *probabilities = tensor_keep(op_softmax(e, given, PLIM_F32));
    op_top_k(e, probabilities, c->experts_per_token, top);
    r.weights = tensor_keep(top[0]);
    r.experts = tensor_keep(top[1]);
    if (t->normalized || c->normalized_routing)
        tensor_set(e, &r.weights, op_div_(e, r.weights, op_sum_last(e, r.weights)));
    if (t->weights_are_low && !e->halted)
        tensor_set(e, &r.weights, op_to(e, r.weights, (enum plim_dtype)r.logits->a.dtype));
    tensor_drop(e, probabilities);
    return r;
}

/* Returns the score of each group of `groups` (N, groups, experts per group): the sum of its two largest scores, or its
 * largest probability, (N, groups), named. */
static struct tensor *worth(struct engine *e, struct tensor *groups, bool are_probabilities)
{
    struct tensor *top[2];
    if (are_probabilities) {
        struct tensor *largest = op_max_last(e, groups);
        return tensor_keep(e->halted ? largest : op_view(e, largest, SHAPE(largest->a.shape[0], largest->a.shape[1])));
    }
    op_top_k(e, groups, 2, top);
    tensor_drop(e, tensor_keep(top[1]));
    return tensor_keep(op_sum_dim(e, top[0], 2));
}

/* Masks the scores *choice (N, experts), named, of experts outside of the best groups: rebinds it to scores that are
 * minus infinity there, or 0 for probabilities. `held`: the tensors that Python's variables hold until the router
 * returns; named. */
static void hide_groups(struct engine *e, const struct plim_model_config *c, struct tensor **choice,
                        bool are_probabilities, struct tensor *held[4])
{
    int64_t groups = c->expert_groups, size = c->experts / groups;
    struct tensor *top[2];
    if (e->halted) return;
    int64_t rows = tensor_size(*choice, 0);
    struct tensor *scores = worth(e, op_view(e, *choice, SHAPE(rows, groups, size)), are_probabilities);
    op_top_k(e, scores, c->groups_per_token, top);
    struct tensor *best = tensor_keep(top[1]);
    tensor_drop(e, tensor_keep(top[0]));
    struct tensor *mask = tensor_keep(op_full_like(e, scores, 0));
    /* Python writes ones. Any numbers except 0 have the same effect, and sums of sigmoids and probabilities are not
     * 0. */
    int64_t shape[2] = {rows, c->groups_per_token}, stride[2] = {c->groups_per_token, 1};
    if (!e->halted) op_scatter_(e, mask, best, tensor_alias(e, scores, 2, shape, stride, 0));
    struct tensor *wide = op_expand(e, op_unsqueeze(e, mask, -1), SHAPE(rows, groups, size));
    struct tensor *of_experts = tensor_keep(op_reshape(e, wide, SHAPE(rows, c->experts)));
    struct tensor *hidden = op_unary(e, op_to(e, of_experts, PLIM_BOOL), PLIM_UNARY_NOT);
    tensor_set(e, choice, op_masked_fill(e, *choice, hidden, are_probabilities ? 0 : -INFINITY));
    held[0] = scores, held[1] = best, held[2] = mask, held[3] = of_experts;
}

/* Glm4MoeTopkRouter, DeepseekV3TopkRouter: chooses by sigmoids, in fp32 except under autocast. */
static struct routing route_in_groups(struct engine *e, const struct block_call *b, struct tensor *weight,
                                      struct tensor *x)
{
    const struct plim_model_config *c = b->m->config;
    struct routing r;
    struct tensor *top[2], *held[4] = {NULL}, *denominator = NULL, *wide = tensor_hold(op_to(e, weight, PLIM_F32));
    r.logits = tensor_keep(nn_product(e, op_to(e, x, PLIM_F32), wide, NULL));
    tensor_drop(e, wide);
    struct tensor *scores = tensor_keep(op_sigmoid(e, r.logits));
    struct tensor *choice = tensor_keep(op_add(e, scores, b->layer->router_correction));
    hide_groups(e, c, &choice, false, held);
    op_top_k(e, choice, c->experts_per_token, top);
    r.experts = tensor_keep(top[1]);
    tensor_drop(e, tensor_keep(top[0]));
    r.weights = tensor_keep(op_gather_last(e, scores, r.experts));
    if (c->normalized_routing && !e->halted) {
        enum plim_dtype dtype = e->autocast.on ? PLIM_F32 : (enum plim_dtype)r.weights->a.dtype;
        denominator = tensor_keep(op_add_scalar(e, op_sum_last_as(e, r.weights, dtype), 1e-20));
        tensor_set(e, &r.weights, op_div_(e, r.weights, denominator));
    }
    tensor_set(e, &r.weights, op_mul_scalar(e, r.weights, c->routed_scaling));
    tensor_drop_all(e, scores, choice, denominator, held[0], held[1], held[2], held[3]);
    return r;
}

/* Ernie4_5_MoeTopKRouter: chooses by probabilities in fp32, even under autocast; the weights are normalised to a sum of
 * 1. */
static struct routing route_corrected(struct engine *e, const struct block_call *b, struct tensor *weight,
                                      struct tensor *x)
{
    const double least = 1e-12;
    bool autocast = e->autocast.on;
    struct routing r;
    struct tensor *top[2], *wide = tensor_hold(op_to(e, weight, PLIM_F32));
    e->autocast.on = false;
    r.logits = tensor_keep(nn_product(e, op_to(e, x, PLIM_F32), wide, NULL));
    tensor_drop(e, wide);
    r.weights = tensor_keep(op_softmax(e, r.logits, PLIM_F32));
    struct tensor *choice = tensor_keep(op_add(e, r.weights, b->layer->router_correction));
    op_top_k(e, choice, b->m->config->experts_per_token, top);
    tensor_drop(e, choice);
    struct tensor *largest = tensor_keep(top[0]);
    r.experts = tensor_keep(top[1]);
    tensor_set(e, &r.weights, op_gather_last(e, r.weights, r.experts));
    tensor_set(e, &r.weights, op_div(e, r.weights, op_clamp(e, op_sum_last(e, r.weights), least, INFINITY)));
    e->autocast.on = autocast;
    if (!e->halted) tensor_set(e, &r.weights, op_to(e, r.weights, (enum plim_dtype)x->a.dtype));
    tensor_drop(e, largest);
    return r;
}

/* Lfm2MoeTopKRouter: chooses by sigmoids of the logits, to which a buffer may be added only for the choice. */
static struct routing route_by_sigmoid(struct engine *e, const struct block_call *b, struct tensor *weight,
                                       struct tensor *x)
{
    const struct plim_model_config *c = b->m->config;
    struct tensor *top[2], *choice = NULL, *largest = NULL;
    struct routing r;
    r.logits = tensor_keep(nn_product(e, x, weight, NULL));
    struct tensor *scores = tensor_keep(op_sigmoid(e, r.logits));
    if (c->corrects_experts) choice = tensor_keep(op_add(e, scores, b->layer->router_correction));
    op_top_k(e, choice ? choice : scores, c->experts_per_token, top);
    r.weights = tensor_keep(top[0]);
    r.experts = tensor_keep(top[1]);
    if (choice) {
        largest = tensor_ref(r.weights);
        tensor_set(e, &r.weights, op_gather_last(e, scores, r.experts));
    }
    tensor_drop(e, scores);
    if (c->normalized_routing && !e->halted) {
        enum plim_dtype dtype = e->autocast.on ? PLIM_F32 : (enum plim_dtype)r.weights->a.dtype;
        struct tensor *sum = op_add_scalar(e, op_sum_last_as(e, r.weights, dtype), 1e-6);
        tensor_set(e, &r.weights, op_div(e, r.weights, sum));
    }
    tensor_set(e, &r.weights, op_mul_scalar(e, r.weights, c->routed_scaling));
    tensor_drop_all(e, choice, largest);
    return r;
}

/* MiniMaxM2TopKRouter: chooses by sigmoids in fp32, to which a buffer is added only for the choice; the weights are
 * normalised to a sum of 1. */
static struct routing route_by_wide_sigmoid(struct engine *e, const struct block_call *b, struct tensor *weight,
                                            struct tensor *x)
{
    struct tensor *top[2];
    struct routing r;
    enum plim_dtype dtype = e->halted ? PLIM_F32 : (enum plim_dtype)weight->a.dtype;
    struct tensor *rows = tensor_keep(e->halted ? x : op_view(e, x, x->a.ndim, x->a.shape)); /* reshape() */
    r.logits = tensor_keep(nn_product(e, op_to(e, rows, dtype), weight, NULL));
    struct tensor *scores = tensor_keep(op_sigmoid(e, op_to(e, r.logits, PLIM_F32)));
    struct tensor *choice = tensor_keep(op_add(e, scores, b->layer->router_correction));
    op_top_k(e, choice, b->m->config->experts_per_token, top);
    struct tensor *largest = tensor_keep(top[0]);
    r.experts = tensor_keep(top[1]);
    r.weights = tensor_keep(op_gather_last(e, scores, r.experts));
    tensor_set(e, &r.weights, op_div_(e, r.weights, op_sum_last(e, r.weights)));
    tensor_drop_all(e, rows, scores, choice, largest);
    return r;
}

/* AfmoeTokenChoiceRouter: chooses by sigmoids in fp32 of a linear's result, to which a parameter is added only for the
 * choice. */
static struct routing route_by_linear(struct engine *e, const struct block_call *b, struct tensor *weight,
                                      struct tensor *x)
{
    (void)weight;
    const struct plim_model_config *c = b->m->config;
    struct tensor *top[2];
    struct routing r;
    r.logits = tensor_hold(op_to(e, nn_linear(e, &b->layer->router_proj, x), PLIM_F32));
    struct tensor *scores = tensor_keep(op_sigmoid(e, r.logits));
    struct tensor *choice = tensor_keep(op_add(e, scores, b->layer->router_correction));
    op_top_k(e, choice, c->experts_per_token, top);
    tensor_drop(e, choice);
    struct tensor *largest = tensor_keep(top[0]);
    r.experts = tensor_keep(top[1]);
    r.weights = tensor_keep(op_gather_last(e, scores, r.experts));
    struct tensor *sum = tensor_keep(op_add_scalar(e, op_sum_last(e, r.weights), 1e-20));
    tensor_set(e, &r.weights, op_div(e, r.weights, sum));
    tensor_set(e, &r.weights, op_mul_scalar(e, r.weights, c->routed_scaling));
    tensor_drop_all(e, scores, largest, sum);
    return r;
}

/* DeepseekV2TopkRouter: chooses by probabilities, in fp32 except under autocast. */
static struct routing route_by_softmax(struct engine *e, const struct block_call *b, struct tensor *weight,
                                       struct tensor *x)
{
    const struct plim_model_config *c = b->m->config;
    struct routing r;
    struct tensor *top[2], *held[4] = {NULL}, *wide = tensor_hold(op_to(e, weight, PLIM_F32));
    r.logits = tensor_keep(nn_product(e, op_to(e, x, PLIM_F32), wide, NULL));
    tensor_drop(e, wide);
    struct tensor *scores = tensor_keep(op_softmax(e, r.logits, PLIM_F32));
    if (c->expert_groups) hide_groups(e, c, &scores, true, held);
    op_top_k(e, scores, c->experts_per_token, top);
    r.weights = tensor_keep(top[0]);
    r.experts = tensor_keep(top[1]);
    tensor_set(e, &r.weights, op_mul_scalar(e, r.weights, c->routed_scaling));
    tensor_drop_all(e, scores, held[0], held[1], held[2], held[3]);
    return r;
}

struct routing router_choose(struct engine *e, const struct block_call *b, struct tensor *weight, struct tensor *x)
{
    const struct experts_traits *t = experts_traits_of(b->m);
    return (t->ranks_logits       ? rank
            : t->corrects_softmax ? route_corrected
            : t->by_sigmoid       ? route_by_sigmoid
            : t->by_wide_sigmoid  ? route_by_wide_sigmoid
            : t->has_linear       ? route_by_linear
            : t->by_softmax       ? route_by_softmax
            : t->is_grouped       ? route_in_groups
                                  : route)(e, b, weight, x);
}
