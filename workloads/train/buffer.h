/* Kernels that pack tensors into a buffer and unpack them: each is modelled as a copy of as many elements, for
 * its time only. For devices that compute nothing. */
#ifndef PLIM_TRAIN_BUFFER_H
#define PLIM_TRAIN_BUFFER_H

#include "workloads/engine/engine.h"

/* Copies `elements` of type `from` to (or from) `buffer`. */
void buffer_copy(struct engine *e, int64_t elements, const struct tensor *buffer,
                 enum plim_dtype from);

#endif
