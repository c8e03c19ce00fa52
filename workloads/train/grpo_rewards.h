/* The advantages that GRPOTrainer computes from the rewards of a generation (trainer/grpo_trainer.py of TRL 1.16,
 * sum_then_normalize and scale_rewards: group). There is one reward function, on the host, with one number per row. The
 * tensors are small, but allocated and freed in PyTorch's order, because that determines where lasting ones are
 * placed. */
#ifndef PLIM_TRAIN_GRPO_REWARDS_H
#define PLIM_TRAIN_GRPO_REWARDS_H

#include "workloads/engine/ops.h"

/* Python variables of _generate_and_score_completions(), named, for the rows of all ranks. */
struct grpo_rewards {
    struct tensor *given, *unscorable, *sums, *means, *deviations, *is_zero, *all_advantages;
};

/* Returns the advantages, named, of this rank's `own` rows among those of `world` ranks, in groups of `group`: a view
 * of the advantages of all ranks; NULL if the engine is halted. The caller drops *out with grpo_rewards_drop(). */
struct tensor *grpo_rewards_compare(struct engine *e, int64_t own, int64_t world, int64_t group,
                                    struct grpo_rewards *out);
void grpo_rewards_drop(struct engine *e, struct grpo_rewards *rewards);

#endif
