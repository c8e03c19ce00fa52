/* transformers' LabelSmoother (trainer_pt_utils.py), which Trainer calls with the model's outputs if
 * label_smoothing_factor is not 0: (1 - epsilon) times the labels' negative log-probabilities plus epsilon times those
 * of all classes, each averaged over the labels of a step that count. A causal model's labels are shifted, and its
 * logits copied without their last row, except under FSDP2, and except in Trainer for a model of images and text. */
#ifndef PLIM_TRAIN_LABEL_SMOOTHER_H
#define PLIM_TRAIN_LABEL_SMOOTHER_H

#include "workloads/models/model.h"

/* Returns the loss, named, of logits (.., classes), NULL if the engine is halted, and labels (..); both are lent. */
struct tensor *label_smoother_loss(struct engine *e, const struct decoder *m, struct tensor *logits,
                                   struct tensor *labels);

#endif
