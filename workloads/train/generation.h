/* transformers' generate() (5.17, generation/utils.py), as GRPOTrainer calls it without vLLM (use_vllm is not true;
 * train.grpo.vllm none): tokens are sampled, one per row at a time, from the logits that the model computes from the
 * last token and the cached keys and values of all earlier ones.
 *
 * Every completion has the maximum length. The logits are divided by the temperature unless it is 1; there is no top_k
 * and no top_p. Tensors of at most one number per row that are freed before anything lasting is allocated are not
 * modelled: the comparisons of _prepare_special_tokens(), and what _generate_single_turn() computes from the
 * completions. */
#ifndef PLIM_TRAIN_GENERATION_H
#define PLIM_TRAIN_GENERATION_H

#include "workloads/models/model.h"

/* A forward that returns the logits of each row's last token, (B, 1, vocabulary), named. */
typedef struct tensor *generation_forward(void *user, const struct batch *batch,
                                          struct decoder_cache *cache);

/* Generates completions to `rows` prompts without gradients; frees everything it allocates. */
void generation_run(struct engine *e, const struct decoder *model, int64_t rows,
                    generation_forward *forward, void *user);

#endif
