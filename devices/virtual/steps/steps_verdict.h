/* The state of a program's training steps, and the verdict whether its memory has reached its final level. */
#ifndef PLIM_DEVICES_VIRTUAL_STEPS_STEPS_VERDICT_H
#define PLIM_DEVICES_VIRTUAL_STEPS_STEPS_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

/* How steps are recognised, weakest sign first. */
enum plim_steps_rule {
    PLIM_STEPS_BY_NOTHING,
    PLIM_STEPS_BY_PERIOD,    /* launches repeat exactly */
    PLIM_STEPS_BY_GRADIENTS, /* clipping or unscaling of gradients */
    PLIM_STEPS_BY_LISTS,     /* lists of tensors are added */
    PLIM_STEPS_BY_WEIGHTS,   /* writes to addresses of weights */
    PLIM_STEPS_BY_OPTIMIZER, /* names of optimizer kernels */
    PLIM_STEPS_BY_REPORT,    /* reports by the program's optimizers */
};
const char *
plim_steps_rule_name(enum plim_steps_rule rule); /* for reports: "optimizer kernels"; "nothing" for an invalid rule */

struct plim_steps_state {
    enum plim_steps_rule rule;
    int64_t steps;   /* completed steps; with BY_PERIOD, periods */
    int64_t steady;  /* length of the last run of steps without a growing peak or refused memory */
    int64_t alike;   /* length of the last run of steps of kinds seen before */
    bool moves;      /* the large blocks of the last step lay differently from those of every earlier step */
    int64_t launches; /* of the last step */
    double seconds;  /* median time from step to step over the last 64; 0: unknown */
    bool leaks;      /* memory keeps growing from step to step */
    double leak_bytes; /* if so, per step */
};

/* Returns how many counted steps certainly contain `wanted` training steps: more if they may be micro-steps.
 * `accumulation`: micro-steps per step, 0 if unknown. */
int64_t plim_steps_needed(enum plim_steps_rule rule, int64_t wanted, int accumulation);

/* True if memory has reached its final level. That takes `wanted` steady steps (at least 1; 5 are enough for a GAN
 * whose generator is trained every sixth time) if steps are clearly recognised, are of known kinds, and place their
 * blocks as an earlier step did; otherwise more; and never fewer than two updates of the weights. */
bool plim_steps_is_steady(const struct plim_steps_state *state, int wanted, int accumulation);

#endif
