#include "liger.h"

const char *const plim_liger_names[PLIM_LIGER_COUNT] = {"false", "true"};
const char *const plim_liger_kernel_names[PLIM_LIGER_KERNEL_COUNT] = {"true", "false"};
const char *const plim_liger_choice_names[PLIM_LIGER_CHOICE_COUNT] = {"auto", "fused_linear_cross_entropy",
                                                                      "cross_entropy", "none"};

static enum plim_liger_loss loss_of(const struct plim_liger_patches *all, enum plim_liger_choice asked)
{
    switch (asked) {
    case PLIM_LIGER_CHOICE_AUTO: return all->loss;
    case PLIM_LIGER_CHOICE_FUSED: return PLIM_LIGER_LOSS_FUSED;
    case PLIM_LIGER_CHOICE_OF_LOGITS: return all->has_own_loss ? PLIM_LIGER_LOSS_NONE : PLIM_LIGER_LOSS_OF_LOGITS;
    default: return PLIM_LIGER_LOSS_NONE;
    }
}

struct plim_liger_patches plim_liger_selected(const struct plim_liger_patches *all,
                                              const struct plim_liger_kernels *asked)
{
    struct plim_liger_patches taken = *all;
    if (all->loss == PLIM_LIGER_LOSS_NONE) return taken;
    if (asked->rms_norm == PLIM_LIGER_KERNEL_LEFT)
        taken.norms = taken.last_norm = taken.head_norms = PLIM_LIGER_NORM_NONE;
    if (asked->rms_norm == PLIM_LIGER_KERNEL_LEFT && taken.tower_norms != PLIM_LIGER_NORM_LAYER)
        taken.tower_norms = PLIM_LIGER_NORM_NONE;
    if (asked->rope == PLIM_LIGER_KERNEL_LEFT) taken.rope = false;
    if (asked->glu == PLIM_LIGER_KERNEL_LEFT) taken.mlp = PLIM_LIGER_MLP_NONE;
    taken.loss = loss_of(all, asked->loss);
    return taken;
}
