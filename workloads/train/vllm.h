/* What TRL (1.16, generation/vllm_generation.py) allocates on the training GPU to send the weights to vLLM, and to
 * receive completions from it (train.grpo.vllm).
 *
 * To a server the weights are sent packed (vllm/distributed/weight_transfer/packed_tensor.py): parameters of more than
 * a GiB in total are copied into one chunk; two chunks are in flight at a time, each in memory of its own stream. Since
 * vLLM's change 52951 the streams are kept, and with them two chunks of cached memory; before that, each sync took two
 * more.
 *
 * An engine in the same process copies each weight into its own in place (load_weights()). The memory of an engine that
 * is always awake (train.grpo.vllm_memory) is not part of a replay; an engine that sleeps while others compute takes
 * its memory from the device in each generation, and a setting that does not leave enough free runs out of memory
 * there. */
#ifndef PLIM_TRAIN_VLLM_H
#define PLIM_TRAIN_VLLM_H

#include "link.h"
#include "workloads/models/model.h"

/* Connects the trainer to vLLM, after the trained model was created: a server's communicator is tested, or an engine is
 * created, which frees cached memory; then the ranks wait for one another. Does nothing in other loops. */
void vllm_connect(struct engine *e, const struct plim_train_setting *setting, struct link *link);

/* Objects that ranks exchange, pickled and through the GPU: each rank its `rows` prompts, and rank 0 the server's
 * completions, with the id and log-probability of each token. Ids are assumed to be the longest of the vocabulary. An
 * engine in the same process completes its own rank's prompts. */
void vllm_exchange(struct engine *e, const struct decoder *m, int64_t rows);

/* vLLM's completions to `rows` prompts: N rows of prompts (P) and of completions (C), named. Completions have the
 * maximum length, minus the token that decoder_labels() leaves out; tokens are random, and vLLM gives all of them the
 * same probability. */
struct vllm_completions {
    struct tensor *prompts, *prompt_mask; /* (N, P) int64 */
    struct tensor *completions, *completion_mask; /* (N, C) int64 */
    struct tensor *log_probs;             /* (N, C) fp32; NULL: the trained model generated the completions */
};
struct vllm_completions vllm_complete(struct engine *e, const struct decoder *m, int64_t rows);

/* sync_weights(). Adapters are merged into the weights when the first chunk begins, and unmerged when the last
 * parameter is in a chunk; with `is_first` once more before that, for the names and shapes, which the client keeps. Of
 * several ranks only the first sends to a server; each loads its own engine. */
void vllm_sync(struct engine *e, const struct decoder *m, bool is_first);

#endif
