/* train.loop: the training loop. */
#ifndef PLIM_WORKLOADS_SPEC_LOOP_H
#define PLIM_WORKLOADS_SPEC_LOOP_H

#include <stdbool.h>
#include <stdint.h>

/* The loop around the forward and the backward pass: one as in PyTorch's tutorials, or that of transformers' Trainer
 * (workloads/train/trainer_loop.h), of ms-swift's Seq2SeqTrainer (swift_sft.h), which is a Trainer, of TRL's
 * SFTTrainer, DPOTrainer, KTOTrainer, GRPOTrainer, RewardTrainer, ORPOTrainer or CPOTrainer, of axolotl's
 * AxolotlDPOTrainer, which is an earlier DPOTrainer of TRL, of ms-swift's DPOTrainer, KTOTrainer, ORPOTrainer,
 * CPOTrainer or RewardTrainer, or of LLaMA-Factory's CustomDPOTrainer, PairwiseTrainer or CustomKTOTrainer, which
 * are Trainers with losses of their own. A sample is a pair of rows for DPO, ORPO, CPO and rewards, an answer for
 * GRPO (grpo.h). */
enum plim_loop {
    PLIM_LOOP_PLAIN, PLIM_LOOP_TRAINER, PLIM_LOOP_SWIFT_SFT, PLIM_LOOP_TRL_SFT, PLIM_LOOP_TRL_DPO, PLIM_LOOP_TRL_KTO,
    PLIM_LOOP_TRL_GRPO, PLIM_LOOP_TRL_REWARD, PLIM_LOOP_AXOLOTL_DPO, PLIM_LOOP_TRL_ORPO, PLIM_LOOP_TRL_CPO,
    PLIM_LOOP_SWIFT_DPO, PLIM_LOOP_SWIFT_KTO, PLIM_LOOP_SWIFT_ORPO, PLIM_LOOP_SWIFT_CPO, PLIM_LOOP_SWIFT_RM,
    PLIM_LOOP_LLAMAFACTORY_DPO, PLIM_LOOP_LLAMAFACTORY_RM, PLIM_LOOP_LLAMAFACTORY_KTO, PLIM_LOOP_COUNT
};
extern const char *const plim_loop_names[PLIM_LOOP_COUNT];
static inline bool plim_loop_is_trainers(enum plim_loop loop)
{
    return loop != PLIM_LOOP_PLAIN;
}
static inline bool plim_loop_is_trl(enum plim_loop loop)
{
    return loop >= PLIM_LOOP_TRL_SFT && loop <= PLIM_LOOP_TRL_CPO;
}
/* TRL's ORPOTrainer or CPOTrainer */
static inline bool plim_loop_is_trl_orpo(enum plim_loop loop)
{
    return loop == PLIM_LOOP_TRL_ORPO || loop == PLIM_LOOP_TRL_CPO;
}
/* ms-swift's `swift rlhf` */
static inline bool plim_loop_is_swift_rlhf(enum plim_loop loop)
{
    return loop >= PLIM_LOOP_SWIFT_DPO && loop <= PLIM_LOOP_SWIFT_RM;
}
static inline bool plim_loop_is_swift(enum plim_loop loop)
{
    return loop == PLIM_LOOP_SWIFT_SFT || plim_loop_is_swift_rlhf(loop);
}
/* LLaMA-Factory's stages other than sft and pt, which use Trainer's loop */
static inline bool plim_loop_is_llamafactory(enum plim_loop loop)
{
    return loop >= PLIM_LOOP_LLAMAFACTORY_DPO;
}
/* Does the loop compute all logits? */
static inline bool plim_loop_computes_logits(enum plim_loop loop)
{
    return loop >= PLIM_LOOP_AXOLOTL_DPO;
}
/* Does the loop run the forwards of a micro-step in passes of its own (workloads/train/passes.h)? */
static inline bool plim_loop_has_passes(enum plim_loop loop)
{
    return plim_loop_computes_logits(loop) || loop == PLIM_LOOP_TRL_KTO;
}
/* Is compute_loss() not Trainer's own? (That of ms-swift ends as Trainer's does.) */
static inline bool plim_loop_has_own_loss(enum plim_loop loop)
{
    return loop >= PLIM_LOOP_TRL_SFT;
}
/* Is the model a classification with one label, a reward? (LLaMA-Factory puts another head on the model.) */
static inline bool plim_loop_is_reward(enum plim_loop loop)
{
    return loop == PLIM_LOOP_TRL_REWARD || loop == PLIM_LOOP_SWIFT_RM;
}
/* Do other rows come with a batch, for an estimate of the KL divergence? */
static inline bool plim_loop_has_kl(enum plim_loop loop)
{
    return loop == PLIM_LOOP_TRL_KTO || loop == PLIM_LOOP_SWIFT_KTO || loop == PLIM_LOOP_LLAMAFACTORY_KTO;
}
/* The number of rows of a sample */
static inline int64_t plim_loop_rows(enum plim_loop loop)
{
    bool is_of_trls = loop == PLIM_LOOP_TRL_DPO || loop == PLIM_LOOP_TRL_REWARD || loop == PLIM_LOOP_AXOLOTL_DPO;
    bool is_of_llamafactorys = loop == PLIM_LOOP_LLAMAFACTORY_DPO || loop == PLIM_LOOP_LLAMAFACTORY_RM;
    bool is_of_swifts = plim_loop_is_swift_rlhf(loop) && loop != PLIM_LOOP_SWIFT_KTO;
    return is_of_trls || plim_loop_is_trl_orpo(loop) || is_of_llamafactorys || is_of_swifts ? 2 : 1;
}
/* The smallest micro-batch; 0: any. TRL's KTOTrainer refuses one row, whose KL divergence would be its reward. */
static inline int64_t plim_loop_first_batch(enum plim_loop loop)
{
    return loop == PLIM_LOOP_TRL_KTO ? 2 : 0;
}
/* disable_dropout of DPOConfig, KTOConfig, RewardConfig, ORPOConfig and CPOConfig, and of CustomDPOTrainer and
 * CustomKTOTrainer */
static inline bool plim_loop_disables_dropout(enum plim_loop loop)
{
    bool is_of_trls = loop == PLIM_LOOP_TRL_DPO || loop == PLIM_LOOP_TRL_REWARD || loop == PLIM_LOOP_AXOLOTL_DPO;
    return is_of_trls || plim_loop_is_trl_orpo(loop) || plim_loop_is_swift_rlhf(loop) ||
           loop == PLIM_LOOP_LLAMAFACTORY_DPO || plim_loop_has_kl(loop);
}
/* Are logits computed only for the tokens after a prompt? */
static inline bool plim_loop_skips_prompts(enum plim_loop loop)
{
    return loop == PLIM_LOOP_SWIFT_SFT || loop == PLIM_LOOP_SWIFT_DPO || loop == PLIM_LOOP_SWIFT_KTO;
}
/* Does TRL put its fused head on the model? */
static inline bool plim_loop_has_fused_head(enum plim_loop loop)
{
    return plim_loop_is_trl(loop) && loop < PLIM_LOOP_TRL_REWARD;
}

/* train.preference_loss: pref_loss of LLaMA-Factory. Its hinge and kto_pair are computed as sigmoid, because TRL's
 * dpo_loss() is not told otherwise. ipo, orpo and simpo use means over tokens; the last two have no reference model. */
enum plim_preference_loss {
    PLIM_PREFERENCE_SIGMOID, PLIM_PREFERENCE_IPO, PLIM_PREFERENCE_ORPO, PLIM_PREFERENCE_SIMPO, PLIM_PREFERENCE_COUNT
};
extern const char *const plim_preference_loss_names[PLIM_PREFERENCE_COUNT];
static inline bool plim_preference_has_reference(enum plim_preference_loss loss)
{
    return loss < PLIM_PREFERENCE_ORPO;
}
/* Preferences that are compared with those of a reference model. GRPO may have one as well (grpo.reference). */
static inline bool plim_loop_has_reference(enum plim_loop loop, enum plim_preference_loss loss)
{
    if (loop == PLIM_LOOP_LLAMAFACTORY_DPO) return plim_preference_has_reference(loss);
    return loop == PLIM_LOOP_TRL_DPO || loop == PLIM_LOOP_AXOLOTL_DPO || loop == PLIM_LOOP_SWIFT_DPO ||
           plim_loop_has_kl(loop);
}

#endif
