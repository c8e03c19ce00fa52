/* What TRL (1.16, generation/vllm_generation.py) does on the training's GPU to bring the weights to a vLLM server. vLLM
 * packs them (vllm/distributed/weight_transfer/packed_tensor.py): parameters that are more than a GiB together are
 * copied into one chunk, of which two are on their way at a time, each in memory of a stream of its own. Since its
 * change 52951 the streams stay, and with them two chunks of cached memory; before it, each time took two more. */
#ifndef PLIM_TRAIN_VLLM_SERVER_H
#define PLIM_TRAIN_VLLM_SERVER_H

#include "link.h"
#include "workloads/models/model.h"

/* The trainer meets the server, behind the model that is trained: vLLM's communicator is tried out, and the ranks wait
 * for one another. Nothing in other loops. */
void vllm_server_meet(struct engine *e, const struct plim_train_setting *setting, struct link *link);

/* What ranks send one another, pickled and through the GPU: each its `rows` prompts, and the first one what the server
 * answered, of each token its number and its log-probability. Numbers are taken to be the longest of a vocabulary. */
void vllm_server_exchange(struct engine *e, const struct decoder *m, int64_t rows);

/* What the server answers `rows` prompts with: N rows of prompts (P) and of answers (C), named. Answers are as long as
 * they may be, but for the token that decoder_labels() leaves out; each token is one of the vocabulary by chance, and
 * as likely to the server as any other. */
struct vllm_answers {
    struct tensor *prompts, *prompt_mask; /* (N, P) int64 */
    struct tensor *answers, *answer_mask; /* (N, C) int64 */
    struct tensor *log_probs;             /* (N, C) fp32 */
};
struct vllm_answers vllm_server_answer(struct engine *e, const struct decoder *m, int64_t rows);

/* sync_weights(). Adapters are merged into the weights when the first chunk begins, and taken out of them when the last
 * parameter is in a chunk; where `is_first`, once more before that, for the names and shapes, which the client keeps.
 * Of several ranks the first sends. */
void vllm_server_send(struct engine *e, const struct decoder *m, bool is_first);

#endif
