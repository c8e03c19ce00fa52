/* Kernels that pack tensors into a buffer or unpack them. Each is modelled as a copy of the same number of elements,
 * only for the time it takes; for devices that compute nothing. */
#ifndef PLIM_TRAIN_BUFFER_H
#define PLIM_TRAIN_BUFFER_H

#include "workloads/engine/engine.h"

/* Copies `elements` of type `from` to (or from) `buffer`. */
void buffer_copy(struct engine *e, int64_t elements, const struct tensor *buffer,
                 enum plim_dtype from);

#endif
