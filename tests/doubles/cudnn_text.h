/* A plan of the pretended cuDNN as text: its graph with all descriptors, each once, children first. Text
 * that was not written here makes no plan. */
#ifndef PLIM_TESTS_DOUBLES_CUDNN_TEXT_H
#define PLIM_TESTS_DOUBLES_CUDNN_TEXT_H

#include "cudnn_descriptor.h"
#include <stddef.h>

/* Of a finalized plan; the caller's to free, NULL: no memory. */
char *plan_write(const struct descriptor *plan);

/* Into a plan that is being finalized. False: not such a text. */
bool plan_read(const char *text, size_t bytes, struct descriptor *plan);

#endif
