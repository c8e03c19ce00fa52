/* cuFFT, cuSPARSE and cuSOLVER: plans, handles and descriptors are kept, what computes is a launch, and what it writes
 * is unknown. How much memory they work in only they know, on a GPU: what they are asked for is estimated, and that is
 * said. All other functions of theirs are names in names/.
 */
#ifndef PLIM_DEVICES_VIRTUAL_MATH_LIBRARY_H
#define PLIM_DEVICES_VIRTUAL_MATH_LIBRARY_H

#include "devices/virtual/process/unsupported.h"
#include "devices/virtual/work/launches.h"

/* A zeroed handle with the current GPU in it, as every handle begins. GPU_OK, or a CUDA error. */
int plim_math_handle(size_t bytes, void **out);

/* A launch of `what` that reads all but the last of `count` operands and writes the last `written`. A CUDA error. */
int plim_math_launch(void *stream, const char *what, const void *const *operands, size_t count, size_t written);

#endif
