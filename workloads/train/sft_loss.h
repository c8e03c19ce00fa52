/* compute_loss() of TRL's SFTTrainer (1.16) behind the model: the loss of what its fused head returned, over the labels
 * that count in a step, and what it measures of each micro-step: entropy, accuracy, and in training the tokens. */
#ifndef PLIM_TRAIN_SFT_LOSS_H
#define PLIM_TRAIN_SFT_LOSS_H

#include "workloads/models/model.h"

/* What Python's variables hold of compute_loss() */
struct sft_held {
    struct fused_output out;
    struct tensor *tokens;   /* losses of tokens */
    struct tensor *number;   /* of labels that count */
    struct tensor *weighted; /* what balances experts, by its share */
    struct tensor *labels, *entropy, *correct, *aux_loss; /* of all ranks */
};

/* Takes what is in `out`. `items`: the labels that count, of all ranks; NULL: of an evaluation, and of a model that
 * takes no such number. `smoothed`: the loss of smoothed labels, taken, in place of that of the scores; NULL: there is
 * none. Named; NULL where the engine is halted. */
struct tensor *sft_loss(struct engine *e, struct fused_output out, const struct batch *batch, struct tensor *items,
                        const struct decoder *m, struct tensor *smoothed, struct sft_held *held);
void sft_held_drop(struct engine *e, struct sft_held *held);

#endif
