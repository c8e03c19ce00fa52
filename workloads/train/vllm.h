/* What TRL (1.16, generation/vllm_generation.py) does on the training's GPU to bring the weights to vLLM, and to have
 * answers from it (train.grpo.vllm).
 *
 * To a server they are sent packed (vllm/distributed/weight_transfer/packed_tensor.py): parameters that are more than
 * a GiB together are copied into one chunk, of which two are on their way at a time, each in memory of its own stream.
 * Since vLLM's change 52951 the streams stay, and with them two chunks of cached memory; before it, each time took two
 * more.
 *
 * An engine in the same process copies each weight into its own in place (load_weights()). What one that is always
 * awake holds (train.grpo.vllm_memory) is no part of a replay; one that sleeps while others compute takes it from the
 * device in each generation, and a setting that does not leave as much free runs out of memory there. */
#ifndef PLIM_TRAIN_VLLM_H
#define PLIM_TRAIN_VLLM_H

#include "link.h"
#include "workloads/models/model.h"

/* The trainer meets vLLM, behind the model that is trained: a server's communicator is tried out, or an engine is made,
 * which gives back what is cached; and the ranks wait for one another. Nothing in other loops. */
void vllm_meet(struct engine *e, const struct plim_train_setting *setting, struct link *link);

/* What ranks send one another, pickled and through the GPU: each its `rows` prompts, and the first one what the server
 * answered, of each token its number and its log-probability. Numbers are taken to be the longest of a vocabulary.
 * An engine in the same process answers its own rank's prompts. */
void vllm_exchange(struct engine *e, const struct decoder *m, int64_t rows);

/* What vLLM answers `rows` prompts with: N rows of prompts (P) and of answers (C), named. Answers are as long as
 * they may be, but for the token that decoder_labels() leaves out; each token is one of the vocabulary by chance, and
 * as likely to vLLM as any other. */
struct vllm_answers {
    struct tensor *prompts, *prompt_mask; /* (N, P) int64 */
    struct tensor *answers, *answer_mask; /* (N, C) int64 */
    struct tensor *log_probs;             /* (N, C) fp32; NULL: the model that is trained answered itself */
};
struct vllm_answers vllm_answer(struct engine *e, const struct decoder *m, int64_t rows);

/* sync_weights(). Adapters are merged into the weights when the first chunk begins, and taken out of them when the last
 * parameter is in a chunk; where `is_first`, once more before that, for the names and shapes, which the client keeps.
 * Of several ranks the first sends; each loads its own engine. */
void vllm_sync(struct engine *e, const struct decoder *m, bool is_first);

#endif
