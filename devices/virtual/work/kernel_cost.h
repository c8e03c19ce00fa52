/* The cost of a kernel of the program (devices/cost.h), from its name and arguments.
 *
 * If the arguments contain the sizes of the operands (values/family.h), these are used. Otherwise the sizes are those
 * of the blocks that contain its pointers, which is exact where each tensor is an allocation of its own, as in a
 * recording. Attention kernels are recognised by their parameters, and kernels that access only part of a block
 * (gathers, losses) by a table. For other kernels plimsoll's module in the program can report what they move
 * (below). */
#ifndef PLIM_DEVICES_VIRTUAL_WORK_KERNEL_COST_H
#define PLIM_DEVICES_VIRTUAL_WORK_KERNEL_COST_H

#include "launches.h"

/* Stores the cost of a launch in `out`. Returns false if the kernel counts as part of another launch. */
bool plim_kernel_cost(const struct plim_kernel *kernel, const struct plim_launch_config *launch,
                      struct plim_cost *out);

/* Called under these exact names by plimsoll's module in the program (autotune/exec/plimsoll_triton.py). Launches of
 * kernel `name` by this thread read and write `bytes` bytes (0: unknown), until the next call; a call with a NULL name
 * ends it. */
void plimsoll_kernel_moves(const char *name, int64_t bytes);
/* Returns whether a recording is being made, so that the call above is of use. */
int plimsoll_is_recording(void);

#endif
