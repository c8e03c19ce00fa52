/* The kernels of layers of linear attention. transformers uses packages for them if installed, each independently. */
#ifndef PLIM_WORKLOADS_SPEC_LINEAR_ATTENTION_H
#define PLIM_WORKLOADS_SPEC_LINEAR_ATTENTION_H

#include <stdbool.h>

/* The gated delta rule: transformers' own code, or flash-linear-attention's */
enum plim_delta_rule { PLIM_DELTA_RULE_TORCH, PLIM_DELTA_RULE_FLA, PLIM_DELTA_RULE_COUNT };
extern const char *const plim_delta_rule_names[PLIM_DELTA_RULE_COUNT];

struct plim_linear_attention {
    enum plim_delta_rule rule;
    bool causal_conv1d; /* the convolution of that package is used */
};

/* The limits of the packages: width of a head of keys; channels and taps of a convolution. */
enum {
    PLIM_FLA_KEY_DIM_MAX = 256,
    PLIM_CONV1D_CHANNELS_UNIT = 8,
    PLIM_CONV1D_TOKENS_MIN = 2,
    PLIM_CONV1D_TOKENS_MAX = 4
};

#endif
