/* compute_loss() of TRL's SFTTrainer (1.16) after the forward: the loss of the fused head's output, over the labels
 * that count in a step, and the metrics of each micro-step: entropy, accuracy, and in training the tokens. */
#ifndef PLIM_TRAIN_SFT_LOSS_H
#define PLIM_TRAIN_SFT_LOSS_H

#include "workloads/models/model.h"

/* Tensors that the Python variables of compute_loss() hold */
struct sft_held {
    struct fused_output out;
    struct tensor *tokens;   /* losses of tokens */
    struct tensor *number;   /* of labels that count */
    struct tensor *weighted; /* the load-balancing loss of experts times its coefficient */
    struct tensor *labels, *entropy, *correct, *aux_loss; /* of all ranks */
};

/* Takes the tensors of `out`. `items`: the labels that count, over all ranks; NULL in an evaluation, and for a model
 * that takes no such number. `smoothed`: the loss of smoothed labels, taken, which replaces that of the scores; NULL:
 * there is none. Named; NULL where the engine is halted. */
struct tensor *sft_loss(struct engine *e, struct fused_output out, const struct batch *batch, struct tensor *items,
                        const struct decoder *m, struct tensor *smoothed, struct sft_held *held);
void sft_held_drop(struct engine *e, struct sft_held *held);

#endif
