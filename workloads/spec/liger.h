/* liger-kernel's kernels (0.8.5): a spec's choice, and the kernels that exist for a family. */
#ifndef PLIM_WORKLOADS_SPEC_LIGER_H
#define PLIM_WORKLOADS_SPEC_LIGER_H

#include <stdbool.h>
#include <stdint.h>

/* transformers' use_liger_kernel */
enum plim_liger { PLIM_LIGER_FALSE, PLIM_LIGER_TRUE, PLIM_LIGER_COUNT };
extern const char *const plim_liger_names[PLIM_LIGER_COUNT];

/* Whether a kernel that Liger has for a family is used. */
enum plim_liger_kernel { PLIM_LIGER_KERNEL_TAKEN, PLIM_LIGER_KERNEL_LEFT, PLIM_LIGER_KERNEL_COUNT };
extern const char *const plim_liger_kernel_names[PLIM_LIGER_KERNEL_COUNT];

enum plim_liger_loss {
    PLIM_LIGER_LOSS_NONE,
    PLIM_LIGER_LOSS_FUSED,     /* fused_linear_cross_entropy: head and loss, in chunks of rows */
    PLIM_LIGER_LOSS_OF_LOGITS, /* cross_entropy, whose gradient overwrites the logits */
};

/* The requested loss. */
enum plim_liger_choice {
    PLIM_LIGER_CHOICE_AUTO, /* Liger's own choice for the family */
    PLIM_LIGER_CHOICE_FUSED,
    PLIM_LIGER_CHOICE_OF_LOGITS,
    PLIM_LIGER_CHOICE_NONE,
    PLIM_LIGER_CHOICE_COUNT
};
extern const char *const plim_liger_choice_names[PLIM_LIGER_CHOICE_COUNT];

/* The arguments of apply_liger_kernel_to_*(), from Trainer's liger_kernel_config. */
struct plim_liger_kernels {
    enum plim_liger_kernel rope, rms_norm, glu; /* glu: swiglu or geglu */
    enum plim_liger_choice loss;
};

/* A Liger norm: the gradient of its input overwrites that of its output, or is separate. */
enum plim_liger_norm {
    PLIM_LIGER_NORM_NONE,
    PLIM_LIGER_NORM_IN_PLACE,
    PLIM_LIGER_NORM_APART,
    PLIM_LIGER_NORM_LAYER /* LigerLayerNorm instead of torch's */
};

enum plim_liger_mlp {
    PLIM_LIGER_MLP_NONE,
    PLIM_LIGER_MLP_SWIGLU,
    PLIM_LIGER_MLP_GEGLU,
    PLIM_LIGER_MLP_RELU2,  /* LigerReLUSquared, and */
    PLIM_LIGER_MLP_EXPERTS /* LigerExperts, which are not known here */
};

/* The parts of a family that Liger replaces: what apply_liger_kernel_to_*() of its transformers/monkey_patch.py does
 * with an existing model and its default kernels. All zero: Liger does not know the family, and changes
 * nothing. */
struct plim_liger_patches {
    enum plim_liger_norm norms, last_norm, head_norms; /* of blocks, after them, of queries and keys */
    enum plim_liger_norm tower_norms;                  /* of a vision tower's blocks */
    bool rope;
    enum plim_liger_mlp mlp;
    enum plim_liger_loss loss;
    bool has_own_loss;   /* mistral: its cross_entropy is patched under a name that its model does not use */
    int64_t loss_budget; /* chunk_mem_const: the logits of a chunk have this many times the elements of x; 0: once */
};

/* The patches of a family that remain with the requested kernels. */
struct plim_liger_patches plim_liger_selected(const struct plim_liger_patches *all,
                                              const struct plim_liger_kernels *asked);

#endif
