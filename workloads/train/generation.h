/* transformers' generate() (5.17, generation/utils.py), as GRPOTrainer calls it without vLLM
 * (use_vllm is not true; train.grpo.vllm none): tokens are sampled, one per row at a time, from the logits that the
 * model computes from the last token and the cached keys and values of all earlier ones.
 *
 * Every answer has the greatest length. The logits are divided by the temperature where it is not 1; there is no top_k
 * and no top_p.
 * Left out are tensors of at most one number per row that are freed before anything that stays is made: the
 * comparisons of _prepare_special_tokens(), and what _generate_single_turn() makes of the answers. */
#ifndef PLIM_TRAIN_GENERATION_H
#define PLIM_TRAIN_GENERATION_H

#include "workloads/models/model.h"

/* A forward that gives the logits of each row's last token, (B, 1, vocabulary), named */
typedef struct tensor *generation_forward(void *user, const struct batch *batch,
                                          struct decoder_cache *cache);

/* Answers `rows` prompts; nothing stays. Without gradients. */
void generation_run(struct engine *e, const struct decoder *model, int64_t rows,
                    generation_forward *forward, void *user);

#endif
