/* The families' mixtures of experts: their traits, and their routers (routers.c). */
#ifndef PLIM_MODELS_EXPERTS_H
#define PLIM_MODELS_EXPERTS_H

#include "model.h"

struct experts_traits {
    bool experts_first;     /* the experts come before the router in the order of modules */
    bool normalized;        /* the weights of a row's experts always sum to 1; otherwise if normalized_routing is set */
    bool widens_logits;     /* the logits are cast to fp32 before the softmax */
    bool weights_are_low;   /* the weights of a row's experts are cast to the logits' type */
    bool is_leaf;           /* the block is a leaf module for DeepSpeed, which lists leaf modules by name */
    bool ranks_logits;      /* the largest logits are selected first, and the softmax is applied to them alone */
    bool is_grouped;        /* experts are selected from the best groups (route_in_groups()) */
    bool by_softmax;        /* with is_grouped: by softmax probabilities without a correction; from all experts if there
                             * are no groups (route_by_softmax()) */
    bool weights_as_rows;   /* the weights of a row's experts are cast to the rows' type */
    bool corrects_softmax;  /* experts are selected by probabilities plus a frozen parameter, which is fp32 like the
                             * router (route_corrected()) */
    bool by_sigmoid;        /* experts are selected by sigmoids in the logits' type, plus a buffer if corrects_experts
                             * is set (route_by_sigmoid()) */
    bool by_wide_sigmoid;   /* experts are selected by sigmoids in fp32 plus a buffer in the model's type
                             * (route_by_wide_sigmoid()) */
    bool has_linear;        /* the router is a linear layer; experts are selected by its sigmoids in fp32 plus a frozen
                             * parameter of the block (route_by_linear()); the shared experts come between it and the
                             * experts */
    bool shares_first;      /* the shared expert is computed before the router, without a gate */
    bool tells_weights;     /* the module also returns the weights of each row's experts, which the block holds until
                             * its end */
    bool has_bias;          /* the router and each linear of the experts have biases */
    bool is_plain;          /* each expert is a plain MLP, and so is the shared one (fc1, fc2): experts_gate_up is
                             * (experts, F, H), without a gate */
    bool transposed;        /* the experts' weights are (experts, in, out) */
    bool clamps_gate;       /* gate and up alternate in the first linear's output, and are clamped
                             * (GptOssExperts._apply_gate) */
};

/* Returns the traits of the model's family. */
const struct experts_traits *experts_traits_of(const struct decoder *m);

/* The router's result for N rows, in the order of the variables in Python. All named. */
struct routing {
    struct tensor *logits;            /* (N, experts) */
    struct tensor *weights, *experts; /* (N, k): the weights of each row's experts, and their indices */
};

/* Builds the parameters of a layer's router and, unless it has_linear, its correction. */
void router_build(struct engine *e, struct decoder *m, struct decoder_layer *l);
/* Builds the correction that is added to the router's scores: a buffer or a frozen parameter. Call it only for a router
 * that has_linear; router_build() does so for others. */
void router_build_correction(struct engine *e, struct decoder *m, struct decoder_layer *l);
/* Returns the routing of rows x (N, H) by the router's `weight`, both lent. */
struct routing router_choose(struct engine *e, const struct block_call *b, struct tensor *weight, struct tensor *x);

#endif
