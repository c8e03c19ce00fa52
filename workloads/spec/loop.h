/* train.loop: who runs the steps. */
#ifndef PLIM_WORKLOADS_SPEC_LOOP_H
#define PLIM_WORKLOADS_SPEC_LOOP_H

#include <stdbool.h>
#include <stdint.h>

/* Around the forward and the backward pass: a loop as in PyTorch's tutorials, or transformers' Trainer's
 * (workloads/train/trainer_loop.h); or that of TRL's SFTTrainer, DPOTrainer, GRPOTrainer or RewardTrainer, which are
 * Trainers with losses of their own. A sample of DPO and of rewards is a pair of rows, of GRPO (grpo.h) an answer. */
enum plim_loop {
    PLIM_LOOP_PLAIN, PLIM_LOOP_TRAINER, PLIM_LOOP_TRL_SFT, PLIM_LOOP_TRL_DPO, PLIM_LOOP_TRL_GRPO,
    PLIM_LOOP_TRL_REWARD, PLIM_LOOP_COUNT
};
extern const char *const plim_loop_names[PLIM_LOOP_COUNT];
static inline bool plim_loop_is_trainers(enum plim_loop loop)
{
    return loop != PLIM_LOOP_PLAIN;
}
static inline bool plim_loop_is_trl(enum plim_loop loop)
{
    return loop >= PLIM_LOOP_TRL_SFT;
}
/* Of a sample */
static inline int64_t plim_loop_rows(enum plim_loop loop)
{
    return loop == PLIM_LOOP_TRL_DPO || loop == PLIM_LOOP_TRL_REWARD ? 2 : 1;
}
/* disable_dropout of DPOConfig and RewardConfig */
static inline bool plim_loop_disables_dropout(enum plim_loop loop)
{
    return loop == PLIM_LOOP_TRL_DPO || loop == PLIM_LOOP_TRL_REWARD;
}
/* Does TRL put its fused head on the model? */
static inline bool plim_loop_has_fused_head(enum plim_loop loop)
{
    return plim_loop_is_trl(loop) && loop != PLIM_LOOP_TRL_REWARD;
}

#endif
