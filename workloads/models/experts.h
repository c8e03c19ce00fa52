/* What sets the mixtures of experts of the families apart, and their routers (routers.c). */
#ifndef PLIM_MODELS_EXPERTS_H
#define PLIM_MODELS_EXPERTS_H

#include "model.h"

struct experts_traits {
    bool experts_first;     /* in the order of modules, before the router */
    bool normalized;        /* whatever the configuration says */
    bool widens_logits;     /* in front of the softmax, which others do inside */
    bool weights_are_low;   /* the weights of experts are cast to the type of the logits */
    bool is_leaf;           /* to DeepSpeed, whose leaf modules have names */
    bool ranks_logits;      /* the largest logits are chosen first, and their softmax weighs them */
    bool is_grouped;        /* experts are chosen among those of the best groups (route_in_groups()) */
    bool by_softmax;        /* the same, or of all, by probabilities that nothing corrects (route_by_softmax()) */
    bool weights_as_rows;   /* these weights are cast to the type of the rows */
    bool corrects_softmax;  /* experts are chosen by probabilities that a frozen parameter corrects; that and the
                             * router are fp32 (route_corrected()) */
    bool by_sigmoid;        /* by sigmoids in the type of the logits, to which a buffer may be added
                             * (route_by_sigmoid()) */
    bool by_wide_sigmoid;   /* by sigmoids in fp32, to which a buffer in the model's type is added
                             * (route_by_wide_sigmoid()) */
    bool has_linear;        /* the router is a linear layer, to whose sigmoids in fp32 a frozen parameter of the block
                             * is added (route_by_linear()); the shared experts stand between it and the others */
    bool shares_first;      /* the expert that sees every token is computed in front of the router, without a gate */
    bool tells_weights;     /* and the block holds them to its end */
    bool has_bias;          /* the router and each linear of the experts */
    bool turned;            /* the experts' weights are (experts, in, out) */
    bool clamps_gate;       /* gate and up alternate, and are clamped (GptOssExperts._apply_gate) */
};

/* Of the model's family */
const struct experts_traits *experts_traits_of(const struct decoder *m);

/* What the router says of N rows, in the order in which Python holds it. All named. */
struct routing {
    struct tensor *logits;            /* (N, experts) */
    struct tensor *weights, *experts; /* (N, k): of a row's experts, and which they are */
};

/* The parameters of a layer's router, and its buffer. */
void router_build(struct engine *e, struct decoder *m, struct decoder_layer *l);
/* What is added to its scores, where that is not built with it (has_linear) */
void router_build_correction(struct engine *e, struct decoder *m, struct decoder_layer *l);
/* Of rows x (N, H), by the router's weight, both lent */
struct routing router_choose(struct engine *e, const struct block_call *b, struct tensor *weight, struct tensor *x);

#endif
