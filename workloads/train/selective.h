/* TRL's selective_log_softmax() (trainer/utils.py) before 1.16, of logits in fp32. */
#ifndef PLIM_TRAIN_SELECTIVE_H
#define PLIM_TRAIN_SELECTIVE_H

#include "workloads/engine/ops.h"

/* Returns the logarithms of the probabilities of the labels (rows, n) by logits (rows, n, V) fp32, both lent: (rows, n,
 * 1), named; its last dimension is not squeezed yet. */
struct tensor *selective_log_probs(struct engine *e, struct tensor *logits, struct tensor *labels);

#endif
