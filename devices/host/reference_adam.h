/* Adam's arithmetic, for the references of optimizers that store its moments in different ways. */
#ifndef PLIM_DEVICES_HOST_REFERENCE_ADAM_H
#define PLIM_DEVICES_HOST_REFERENCE_ADAM_H

#include "devices/op.h"
#include <math.h>

/* Adam's parameters in one step, with its bias corrections. */
struct adam_step {
    const struct plim_adam *adam;
    double correction1, correction2; /* 1 - beta1^t, sqrt(1 - beta2^t) */
};

static inline struct adam_step adam_step_at(const struct plim_adam *adam, double step)
{
    return (struct adam_step){.adam = adam,
                              .correction1 = 1 - pow(adam->beta1, step),
                              .correction2 = sqrt(1 - pow(adam->beta2, step))};
}

static inline void adam_moments(const struct adam_step *s, double g, double *m, double *v)
{
    *m = s->adam->beta1 * *m + (1 - s->adam->beta1) * g;
    *v = s->adam->beta2 * *v + (1 - s->adam->beta2) * g * g;
}

/* rate m^ / (sqrt(v^) + epsilon) */
static inline double adam_change(const struct adam_step *s, double m, double v)
{
    double root = sqrt(v) / s->correction2;
    return s->adam->rate * (m / s->correction1) / (root + s->adam->epsilon);
}

static inline double adam_decay(const struct adam_step *s)
{
    return 1 - s->adam->rate * s->adam->weight_decay;
}

#endif
