/* An engine on the host, and gradients of its operations against differences of what they compute. One at a time;
 * failures are Criterion's. */
#ifndef PLIM_TESTS_SUPPORT_SLOPES_H
#define PLIM_TESTS_SUPPORT_SLOPES_H

#include "workloads/engine/engine.h"

struct engine *slopes_open(void);
void slopes_close(void);

/* fp32, which needs a gradient, of random numbers in [-1, 1); named */
struct tensor *variable(int ndim, const int64_t *shape, uint64_t seed);
/* The same that needs none */
struct tensor *constant(int ndim, const int64_t *shape, uint64_t seed);

/* Takes both, of which the second may be NULL or need no gradient, in the places of the x that f reads; f's result
 * floats. */
typedef struct tensor *function(struct tensor *const x[2]);
void expect_slopes(function *f, struct tensor *const x[2]);

#endif
