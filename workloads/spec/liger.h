/* liger-kernel's kernels (0.8.5): what a spec asks for, and what there is for a family. */
#ifndef PLIM_WORKLOADS_SPEC_LIGER_H
#define PLIM_WORKLOADS_SPEC_LIGER_H

#include <stdbool.h>
#include <stdint.h>

/* transformers' use_liger_kernel */
enum plim_liger { PLIM_LIGER_FALSE, PLIM_LIGER_TRUE, PLIM_LIGER_COUNT };
extern const char *const plim_liger_names[PLIM_LIGER_COUNT];

/* Of the kernels that Liger has for a family: taken, or left out. */
enum plim_liger_kernel { PLIM_LIGER_KERNEL_TAKEN, PLIM_LIGER_KERNEL_LEFT, PLIM_LIGER_KERNEL_COUNT };
extern const char *const plim_liger_kernel_names[PLIM_LIGER_KERNEL_COUNT];

enum plim_liger_loss {
    PLIM_LIGER_LOSS_NONE,
    PLIM_LIGER_LOSS_FUSED,     /* fused_linear_cross_entropy: head and loss, some rows at a time */
    PLIM_LIGER_LOSS_OF_LOGITS, /* cross_entropy, whose gradient takes the place of the logits */
};

/* The loss that is asked for. */
enum plim_liger_choice {
    PLIM_LIGER_CHOICE_AUTO, /* Liger's own choice for the family */
    PLIM_LIGER_CHOICE_FUSED,
    PLIM_LIGER_CHOICE_OF_LOGITS,
    PLIM_LIGER_CHOICE_NONE,
    PLIM_LIGER_CHOICE_COUNT
};
extern const char *const plim_liger_choice_names[PLIM_LIGER_CHOICE_COUNT];

/* The arguments of apply_liger_kernel_to_*(), which Trainer's liger_kernel_config has. */
struct plim_liger_kernels {
    enum plim_liger_kernel rope, rms_norm, glu; /* glu: swiglu or geglu */
    enum plim_liger_choice loss;
};

/* A norm of Liger's: the gradient of its input takes the place of its output's, or has its own. */
enum plim_liger_norm {
    PLIM_LIGER_NORM_NONE,
    PLIM_LIGER_NORM_IN_PLACE,
    PLIM_LIGER_NORM_APART,
    PLIM_LIGER_NORM_LAYER /* LigerLayerNorm in the place of torch's */
};

enum plim_liger_mlp {
    PLIM_LIGER_MLP_NONE,
    PLIM_LIGER_MLP_SWIGLU,
    PLIM_LIGER_MLP_GEGLU,
    PLIM_LIGER_MLP_RELU2,  /* LigerReLUSquared, and */
    PLIM_LIGER_MLP_EXPERTS /* LigerExperts, which are not known here */
};

/* What Liger puts in the place of a family's own, as apply_liger_kernel_to_*() of its transformers/monkey_patch.py does
 * with a model that is there and the kernels of its choice; nothing: Liger does not know the family, and changes
 * nothing. */
struct plim_liger_patches {
    enum plim_liger_norm norms, last_norm, head_norms; /* of blocks, behind them, of queries and keys */
    enum plim_liger_norm tower_norms;                  /* of a vision tower's blocks */
    bool rope;
    enum plim_liger_mlp mlp;
    enum plim_liger_loss loss;
    bool has_own_loss;   /* mistral: its cross_entropy goes to a name that its model does not use */
    int64_t loss_budget; /* chunk_mem_const: the logits at once are as many numbers as x has, so many times; 0: once */
};

/* What is left of a family's patches with the kernels that are asked for. */
struct plim_liger_patches plim_liger_taken(const struct plim_liger_patches *all,
                                           const struct plim_liger_kernels *asked);

#endif
