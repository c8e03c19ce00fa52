/* Kernels' tests (support/kernel_case.h) on a device, in real device memory. Every operation is
 *
 *   planned for the small GPU of the test and launched, twice: the same bits (cuda devices, where
 *   one of our kernels computes it);
 *   launched as the engine does it: for the GPU itself, by libraries where they do it.
 */
#ifndef PLIM_TESTS_GPU_KERNEL_CASE_DEVICE_H
#define PLIM_TESTS_GPU_KERNEL_CASE_DEVICE_H

#include "support/kernel_case.h"

/* The device of all tests from now on, which stays the caller's. `is_cuda`: it launches plans. */
void kernel_case_use(struct plim_device *device, bool is_cuda);
const struct plim_device_info *kernel_case_gpu(void);

/* Gives the device's memory back. */
void kernel_case_leave(void);

/* Operations that were compared so far. */
long kernel_case_count(void);

/* What computed the attention of the last check: bits of enum plim_sdpa_engine. */
unsigned kernel_case_sdpa_engines(void);

#endif
