/* The cost of a kernel of a foreign program (devices/cost.h), from its name and arguments.
 *
 * Where the arguments contain the operands' sizes (values/family.h), these are used. Else the sizes are those of the
 * blocks that contain its pointers: exact where each tensor is an allocation of its own, as in a
 * recording. Attention kernels are recognised by their parameters, and kernels that touch little of a block
 * (gathers, losses) by a table. For others plimsoll's module in the program reports what they move (below).
 */
#ifndef PLIM_DEVICES_VIRTUAL_WORK_KERNEL_COST_H
#define PLIM_DEVICES_VIRTUAL_WORK_KERNEL_COST_H

#include "launches.h"

/* False: the kernel counts as a part of another launch. */
bool plim_kernel_cost(const struct plim_kernel *kernel, const struct plim_launch_config *launch,
                      struct plim_cost *out);

/* Called under these exact names by plimsoll's module in the program (autotune/exec/plimsoll_triton.py). Launches of
 * the kernel `name` by this thread read and write `bytes` (0: not known), until the next call, also one with NULL. */
void plimsoll_kernel_moves(const char *name, int64_t bytes);
/* Is a recording being made, so that the call above is of use? */
int plimsoll_is_recording(void);

#endif
