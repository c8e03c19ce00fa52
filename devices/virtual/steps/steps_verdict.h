/* What is known of a program's steps, and what follows from it: has its memory reached what it will
 * stay at? */
#ifndef PLIM_DEVICES_VIRTUAL_STEPS_STEPS_VERDICT_H
#define PLIM_DEVICES_VIRTUAL_STEPS_STEPS_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

/* By what the steps are recognised, weakest first. */
enum plim_steps_rule {
    PLIM_STEPS_BY_NOTHING,
    PLIM_STEPS_BY_PERIOD,    /* the launches repeat exactly, operands included */
    PLIM_STEPS_BY_GRADIENTS, /* clipping or unscaling */
    PLIM_STEPS_BY_LISTS,     /* lists of tensors are added */
    PLIM_STEPS_BY_WEIGHTS,   /* written addresses */
    PLIM_STEPS_BY_OPTIMIZER, /* kernels' names */
    PLIM_STEPS_BY_WORD,      /* the program's optimizers say so themselves */
};
const char *
plim_steps_rule_name(enum plim_steps_rule rule); /* for a report: "optimizer kernels"; what is
                                                             * none of these: "nothing" */

struct plim_steps_state {
    enum plim_steps_rule rule;
    int64_t steps;   /* completed; periods under BY_PERIOD */
    int64_t steady;  /* of these, the last ones: the peak did not grow, no memory was refused */
    int64_t alike;   /* of these, the last ones of a kind seen before */
    bool moves;      /* the last step's large blocks lay as in no step before */
    int64_t launches; /* of the last step */
    double seconds;  /* median from step to step, of the last 64; 0: not known */
    bool leaks;      /* memory goes on growing from step to step */
    double leak_bytes; /* if so: per step */
};

/* How many of the counted steps are `wanted` training steps for certain: more where they may be micro-steps.
 * `accumulation`: micro-steps in a step where the caller knows that, 0 where not. */
int64_t plim_steps_needed(enum plim_steps_rule rule, int64_t wanted, int accumulation);

/* Has memory reached what it stays at? That takes `wanted` steady steps (at least 1; 5 sees a GAN's
 * generator that is trained every sixth time) where steps are plainly seen, of kinds that came
 * before, and use memory as one before, more otherwise, and never fewer than two updates of the weights. */
bool plim_steps_is_steady(const struct plim_steps_state *state, int wanted, int accumulation);

#endif
