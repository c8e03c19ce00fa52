/* Kernels that pack tensors into a buffer, and unpack them: a copy of as many elements, of which only
 * the time counts. For devices that compute nothing. */
#ifndef PLIM_TRAIN_BUFFER_H
#define PLIM_TRAIN_BUFFER_H

#include "workloads/engine/engine.h"

/* Copies `elements` of type `from` to (or from) `buffer`. */
void buffer_copy(struct engine *e, int64_t elements, const struct tensor *buffer,
                 enum plim_dtype from);

#endif
