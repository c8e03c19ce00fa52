/* transformers' LabelSmoother (trainer_pt_utils.py), which Trainer calls with the model's outputs where
 * label_smoothing_factor is not 0: (1 - epsilon) times the labels' negative log-probabilities plus epsilon times those
 * of all classes, each over the labels that count in a step. A causal model's labels are shifted, and its logits copied
 * without their last row, except under FSDP2, and except in Trainer for a model of images and text. */
#ifndef PLIM_TRAIN_LABEL_SMOOTHER_H
#define PLIM_TRAIN_LABEL_SMOOTHER_H

#include "workloads/models/model.h"

/* The loss of logits (.., classes), NULL where the engine is halted, and labels (..), both lent; named. */
struct tensor *label_smoother_loss(struct engine *e, const struct decoder *m, struct tensor *logits,
                                   struct tensor *labels);

#endif
