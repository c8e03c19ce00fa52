/* compute_loss() of TRL's SFTTrainer (1.16) after the forward: the loss of the fused head's output, over the labels of
 * a step that count, and the metrics of each micro-step: entropy, accuracy, and in training the number of tokens. */
#ifndef PLIM_TRAIN_SFT_LOSS_H
#define PLIM_TRAIN_SFT_LOSS_H

#include "workloads/models/model.h"

/* Tensors held by Python variables of compute_loss(). */
struct sft_held {
    struct fused_output out;
    struct tensor *tokens;   /* the tokens' losses */
    struct tensor *number;   /* number of labels that count */
    struct tensor *weighted; /* the load-balancing loss of experts times its coefficient */
    struct tensor *labels, *entropy, *correct, *aux_loss; /* of all ranks */
};

/* Takes the tensors of `out`. `items`: number of labels that count, over all ranks; NULL in an evaluation, and for a
 * model that takes no such number. `smoothed`: the loss of smoothed labels, taken, used instead of that of the scores;
 * NULL: not smoothed. Returns the loss, named; NULL if the engine is halted. The caller drops *held. */
struct tensor *sft_loss(struct engine *e, struct fused_output out, const struct batch *batch, struct tensor *items,
                        const struct decoder *m, struct tensor *smoothed, struct sft_held *held);
void sft_held_drop(struct engine *e, struct sft_held *held);

#endif
