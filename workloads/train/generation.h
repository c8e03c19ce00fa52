/* transformers' generate() (5.17, generation/utils.py), as GRPOTrainer asks for it where vLLM does not answer
 * (use_vllm is not true; train.grpo.vllm none): tokens are drawn by chance, one of each row at a time, from what the
 * model makes of the last one and of the keys and values that it has kept of all before.
 *
 * Every answer is as long as it may be. The logits are divided by a temperature where it is not 1; there is no top_k
 * and no top_p.
 * What is given up before anything that stays is made, and has a number a row or fewer, is not in it: how
 * _prepare_special_tokens() compares its tokens, and what _generate_single_turn() makes of the answers. */
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
