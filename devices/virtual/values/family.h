/* Families of kernels that are understood: the launch templates of PyTorch and of CUB, by their
 * names and the layout of their arguments. A kernel of a family is done on what is known
 * (memory/shadow.h): what it makes of known values is known, element by element, the rest of what
 * it writes is unknown.
 *
 * Layouts are those of PyTorch 2.0 to 2.15, of CUB as in CUDA 11.8 to 13; each family's file names
 * its source. All in them that is known beforehand is checked, and where something differs the
 * kernel is one like all others.
 */
#ifndef PLIM_DEVICES_VIRTUAL_VALUES_FAMILY_H
#define PLIM_DEVICES_VIRTUAL_VALUES_FAMILY_H

#include "devices/cost.h"
#include "devices/reduce_launch.h"
#include "devices/virtual/machine/cuda_abi.h"
#include <stdbool.h>

struct plim_plan; /* what a kernel's name says of a launch */

/* `mangled` as it is registered, `text` as C++ writes it (NULL: it is no C++ name). NULL: of no
 * family. malloc'd, the caller's; to be asked once a kernel. */
struct plim_plan *plim_family_plan(const char *mangled, const char *text);

/* Does it. False: nothing was done. May wait for other ranks, where an operand is what they bring.
 */
bool plim_family_run(const struct plim_plan *plan, const char *kernel, const struct gpu_dim3 *grid,
                     void *const *arguments);

/* What it costs; false: the sizes of its operands are not known from its arguments. */
bool plim_family_cost(const struct plim_plan *plan, const struct gpu_dim3 *grid,
                      void *const *arguments, struct plim_cost *out);

/* Bytes that an element-wise kernel moves of operands whose neighbouring elements lie apart (of a transposed tensor): a
 * sector of memory for each. 0 for any other kernel. */
int64_t plim_family_jumps(const struct plim_plan *plan, const struct gpu_dim3 *grid, void *const *arguments);

/* Of a launch of reduce_kernel how it is configured, and whether several blocks share an output; false: it is
 * none, or of a kind that is not understood. */
bool plim_family_reduce(const struct plim_plan *plan, const struct gpu_dim3 *grid,
                        void *const *arguments, struct plim_reduce_launch *out, bool *shares);

/* How far addresses stand in its first argument, where only the launch tells; 0: that is not known. */
size_t plim_family_bytes(const struct plim_plan *plan, const struct gpu_dim3 *grid, void *const *arguments);

#endif
