/* What a kernel of somebody else's program costs (devices/cost.h), from its name and arguments.
 *
 * Where the operands' sizes are in the arguments (values/family.h), these count. Else they are the blocks
 * that its pointers lie in: exact where each tensor is an allocation of its own, as it is in a
 * recording. Attention kernels are known by their parameters, and kernels that touch little of a block
 * (gathers, losses) by a table. Of others plimsoll's module in the program says what they move (below).
 */
#ifndef PLIM_DEVICES_VIRTUAL_WORK_KERNEL_COST_H
#define PLIM_DEVICES_VIRTUAL_WORK_KERNEL_COST_H

#include "launches.h"

/* False: it counts as a part of another launch. */
bool plim_kernel_cost(const struct plim_kernel *kernel, const struct plim_launch_config *launch,
                      struct plim_cost *out);

/* Called by plimsoll's module in the program (autotune/exec/plimsoll_triton.py), under these very names. Launches of
 * the kernel `name` by this thread read and write so many bytes, until told of another, or of NULL (0: not known). */
void plimsoll_kernel_moves(const char *name, int64_t bytes);
/* Is anybody interested? */
int plimsoll_is_recording(void);

#endif
