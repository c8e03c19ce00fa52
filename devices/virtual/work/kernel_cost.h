/* What a kernel of somebody else's program costs (devices/cost.h), from its name and arguments.
 *
 * Where the operands' sizes are in the arguments (values/family.h), these count. Else they are the blocks
 * that its pointers lie in: exact where each tensor is an allocation of its own, as it is in a
 * recording. Attention kernels are known by their parameters, and kernels that touch little of a block
 * (gathers, losses) by a table.
 */
#ifndef PLIM_DEVICES_VIRTUAL_WORK_KERNEL_COST_H
#define PLIM_DEVICES_VIRTUAL_WORK_KERNEL_COST_H

#include "launches.h"

/* False: it counts as a part of another launch. */
bool plim_kernel_cost(const struct plim_kernel *kernel, const struct plim_launch_config *launch,
                      struct plim_cost *out);

#endif
