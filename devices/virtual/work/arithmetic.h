/* The few kernels whose results are worked out, because programs cannot do without them.
 *
 * PyTorch sends pickled objects between ranks through the GPU: there it concatenates them, sums
 * up and compares their sizes, counts offsets, and asks for the results to know how much to
 * receive. With zeros for answers broadcast_object_list and all_gather_object could not work. So a
 * few of its kernels are done on shadows: a cat of one dimension, and of int64 a sum to one number,
 * a comparison and an addition.
 *
 * Their arguments have the layout of PyTorch 2.0 to 2.11 (aten/src/ATen/native/cuda: Shape.cu,
 * Reduce.cuh, CompareKernels.cu, CUDALoops.cuh; seen at launches of 2.8 and 2.11). Everything in
 * them that is known beforehand is checked first; where something differs nothing is written, and
 * the result is unknown as that of any kernel.
 */
#ifndef PLIM_DEVICES_VIRTUAL_WORK_ARITHMETIC_H
#define PLIM_DEVICES_VIRTUAL_WORK_ARITHMETIC_H

#include "devices/virtual/machine/cuda_abi.h"
#include <stdbool.h>

enum plim_arithmetic {
    PLIM_ARITHMETIC_NONE, /* nearly all kernels */
    PLIM_ARITHMETIC_CAT,
    PLIM_ARITHMETIC_SUM,
    PLIM_ARITHMETIC_COMPARE,
    PLIM_ARITHMETIC_ADD,        /* two tensors */
    PLIM_ARITHMETIC_ADD_NUMBER, /* a tensor and a number of the host's */
};

/* By a kernel's mangled name. To be asked once: it searches. */
enum plim_arithmetic plim_arithmetic_of(const char *name);

/* Does it, in the shadows; the output is then what it should be, or unknown. False: nothing was
 * done, and the kernel is one like all others. May wait for other ranks, where an operand is what
 * they bring. `arguments` NULL: not seen. */
bool plim_arithmetic_run(enum plim_arithmetic what, const char *name, const struct gpu_dim3 *grid,
                         void *const *arguments);

#endif
