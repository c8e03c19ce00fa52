/* The state of a program's steps, and the verdict that follows: has its memory reached its final
 * level? */
#ifndef PLIM_DEVICES_VIRTUAL_STEPS_STEPS_VERDICT_H
#define PLIM_DEVICES_VIRTUAL_STEPS_STEPS_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

/* How the steps are recognised, weakest sign first. */
enum plim_steps_rule {
    PLIM_STEPS_BY_NOTHING,
    PLIM_STEPS_BY_PERIOD,    /* the launches repeat exactly, operands included */
    PLIM_STEPS_BY_GRADIENTS, /* clipping or unscaling */
    PLIM_STEPS_BY_LISTS,     /* lists of tensors are added */
    PLIM_STEPS_BY_WEIGHTS,   /* written addresses */
    PLIM_STEPS_BY_OPTIMIZER, /* kernels' names */
    PLIM_STEPS_BY_WORD,      /* the program's optimizers report them */
};
const char *
plim_steps_rule_name(enum plim_steps_rule rule); /* for a report: "optimizer kernels"; what is
                                                             * none of these: "nothing" */

struct plim_steps_state {
    enum plim_steps_rule rule;
    int64_t steps;   /* completed steps; with BY_PERIOD: periods */
    int64_t steady;  /* how many of the last ones in a row had no growing peak and no refused memory */
    int64_t alike;   /* how many of the last ones in a row were of a kind seen before */
    bool moves;      /* the last step's large blocks lay differently from those of every earlier step */
    int64_t launches; /* of the last step */
    double seconds;  /* median time from step to step, over the last 64; 0: not known */
    bool leaks;      /* memory keeps growing from step to step */
    double leak_bytes; /* if so: per step */
};

/* How many counted steps certainly contain `wanted` training steps: more where they may be micro-steps.
 * `accumulation`: micro-steps in a step, 0 where the caller does not know. */
int64_t plim_steps_needed(enum plim_steps_rule rule, int64_t wanted, int accumulation);

/* Has memory reached its final level? That takes `wanted` steady steps (at least 1; 5 is enough for a GAN
 * whose generator is trained every sixth time) where steps are clearly recognised, are of known kinds, and
 * place their blocks as an earlier step did; otherwise more; and never fewer than two updates of the weights. */
bool plim_steps_is_steady(const struct plim_steps_state *state, int wanted, int accumulation);

#endif
