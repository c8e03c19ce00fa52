/* TRL's GRPOTrainer (1.16, trainer/grpo_trainer.py) whose answers vLLM generates, on other GPUs or in the same process,
 * or the model that is trained. Every few optimizer steps (train.grpo.updates times train.grpo.iterations) it
 *
 *     brings      the weights to vLLM, adapters merged into them (vllm.h), or generates the answers itself
 *                 (generation.h)
 *     scores      the answers, a micro-batch at a time and without gradients: by the model, for the difference to what
 *                 they were to vLLM or before it was trained further, and by a reference, where there is one
 *     rewards     them (grpo_rewards.h) and keeps all in one order by chance, of which each micro-step takes a part
 *                 (_prepare_inputs())
 *
 * Rewards are numbers that a function makes on the host. What is measured in one number, or in one a row, and given up
 * before anything else is made is not in it. */
#ifndef PLIM_TRAIN_GRPO_H
#define PLIM_TRAIN_GRPO_H

#include "generation.h"

/* What is kept of a generation, named: N rows, of which a micro-step takes B */
struct samples {
    struct tensor *prompts, *prompt_mask; /* (N, P) int64 */
    struct tensor *answers, *answer_mask; /* (N, C) int64 */
    struct tensor *advantages;            /* (N) */
    struct tensor *items;                 /* tokens of all answers of all ranks, int64 */
    struct tensor *before;    /* (N, C): what the model made of them then; NULL: it did not */
    struct tensor *ratios;    /* (N, C) or (N, 1): the model's and vLLM's; NULL: not wanted */
    struct tensor *sampled;   /* (N, C): what vLLM made of them; NULL: it did not generate them */
    struct tensor *reference; /* (N, C), NULL: there is none */
};

/* Zeroed: another loop. */
struct grpo {
    const struct decoder *model;
    struct samples samples;
    int64_t steps; /* optimizer steps since they were generated */
};

void grpo_create(const struct decoder *model, struct grpo *grpo);

/* What a model, or where `by_reference` the reference, makes of a batch, without gradients */
typedef struct fused_output grpo_score(void *user, const struct batch *batch, bool by_reference);
/* Where an optimizer step begins: generates samples where that is due. `next`: of a model that generates them itself */
void grpo_begin_step(struct engine *e, struct grpo *grpo, grpo_score *score, generation_forward *next, void *user);

/* A micro-step's tokens, mask and labels, named; all NULL where the engine is halted */
struct batch grpo_batch(struct engine *e, const struct grpo *grpo);
/* Its loss, named, NULL where the engine halted; takes what the model's head returned, and the batch. */
struct tensor *grpo_loss(struct engine *e, const struct grpo *grpo, struct fused_output *out,
                         struct batch *batch);

/* For the proof that steps repeat */
uint64_t grpo_fingerprint(const struct grpo *grpo, uint64_t fingerprint);

#endif
