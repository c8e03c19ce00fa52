/* Learning rates that are tensors on the GPU, as torchao's optimizers have them after accelerate has prepared them, and
 * the tensors that transformers' Trainer and its schedule (LambdaLR, PyTorch 2.11) create from those of its two groups.
 * Zeroed: the rates are Python numbers. */
#ifndef PLIM_TRAIN_RATES_H
#define PLIM_TRAIN_RATES_H

#include "workloads/nn/nn.h"

enum { RATE_GROUPS = 2 };

struct rates {
    bool exist;
    struct tensor *last[RATE_GROUPS]; /* the schedule's get_last_lr(), which each step creates anew */
};

/* accelerate.prepare(optimizer), then creates the schedule, which performs its first step. */
void rates_create(struct engine *e, struct rates *rates);
/* lr_scheduler.step() after an optimizer's step; does nothing if the rates are numbers. */
void rates_step(struct engine *e, struct rates *rates);

#endif
