/* Families of kernels that are understood: the launch templates of PyTorch and of CUB, by their
 * names and the layout of their arguments. A kernel of a family is computed on the known values
 * (memory/shadow.h): where all inputs of an element are known, so is the result; the rest of what
 * it writes is unknown.
 *
 * Layouts are those of PyTorch 2.0 to 2.15, and of CUB in CUDA 11.8 to 13; each family's file names
 * its source. Everything in them that is known beforehand is checked, and if something differs the
 * kernel is treated as not understood.
 */
#ifndef PLIM_DEVICES_VIRTUAL_VALUES_FAMILY_H
#define PLIM_DEVICES_VIRTUAL_VALUES_FAMILY_H

#include "devices/cost.h"
#include "devices/reduce_launch.h"
#include "devices/virtual/machine/cuda_abi.h"
#include <stdbool.h>

struct plim_plan; /* what a kernel's name says of a launch */

/* `mangled`: the name as registered; `text`: as C++ writes it (NULL: not a C++ name). NULL: the kernel belongs to no
 * family. The result is malloc'd and the caller's; call it once for each kernel. */
struct plim_plan *plim_family_plan(const char *mangled, const char *text);

/* Computes a launch. False: nothing was done. May wait for other ranks where an operand comes from them.
 */
bool plim_family_run(const struct plim_plan *plan, const char *kernel, const struct gpu_dim3 *grid,
                     void *const *arguments);

/* Its cost; false: its arguments do not tell the sizes of its operands. */
bool plim_family_cost(const struct plim_plan *plan, const struct gpu_dim3 *grid,
                      void *const *arguments, struct plim_cost *out);

/* The bytes that an element-wise kernel moves for operands whose neighbouring elements are not adjacent (a transposed
 * tensor): one memory sector for each element. 0 for any other kernel. */
int64_t plim_family_jumps(const struct plim_plan *plan, const struct gpu_dim3 *grid, void *const *arguments);

/* The configuration of a launch of reduce_kernel, and whether several blocks share an output; false: it is
 * not a reduction, or of a kind that is not understood. */
bool plim_family_reduce(const struct plim_plan *plan, const struct gpu_dim3 *grid,
                        void *const *arguments, struct plim_reduce_launch *out, bool *shares);

/* How many bytes of its first argument may contain addresses, where only the launch tells; 0: not known. */
size_t plim_family_bytes(const struct plim_plan *plan, const struct gpu_dim3 *grid, void *const *arguments);

#endif
