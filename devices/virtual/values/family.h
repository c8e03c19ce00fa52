/* Families of kernels whose results are computed: the launch templates of PyTorch and CUB, recognised by name and by
 * the layout of their arguments. Such a kernel is computed on the known values (memory/shadow.h): an element of the
 * result is known where all its inputs are; everything else the kernel writes becomes unknown.
 *
 * The layouts are those of PyTorch 2.0 to 2.15 and of CUB in CUDA 11.8 to 13; the file of each family names its source.
 * Every field whose value can be predicted is checked; if one differs, the kernel is treated as unsupported. */
#ifndef PLIM_DEVICES_VIRTUAL_VALUES_FAMILY_H
#define PLIM_DEVICES_VIRTUAL_VALUES_FAMILY_H

#include "devices/cost.h"
#include "devices/reduce_launch.h"
#include "devices/virtual/machine/cuda_abi.h"
#include <stdbool.h>

struct plim_plan; /* what the name of a kernel determines about its launches */

/* Returns the plan of a kernel, allocated with malloc and owned by the caller, or NULL if the kernel belongs to no
 * family. `mangled` is the registered name, `text` the demangled one (NULL if it is not a C++ name). Call it once per
 * kernel. */
struct plim_plan *plim_family_plan(const char *mangled, const char *text);

/* Computes the results of a launch. Returns false, having done nothing, if the launch is not supported. May wait for
 * other ranks if an operand comes from them. */
bool plim_family_run(const struct plim_plan *plan, const char *kernel, const struct gpu_dim3 *grid,
                     void *const *arguments);

/* Stores the cost of a launch in `out`. Returns false if the sizes of the operands cannot be read from the
 * arguments. */
bool plim_family_cost(const struct plim_plan *plan, const struct gpu_dim3 *grid,
                      void *const *arguments, struct plim_cost *out);

/* Returns the bytes that an elementwise kernel moves for operands whose consecutive elements are not adjacent in memory
 * (a transposed tensor), counting one memory sector per element. Returns 0 for any other kernel. */
int64_t plim_family_jumps(const struct plim_plan *plan, const struct gpu_dim3 *grid, void *const *arguments);

/* Stores the configuration of a launch of reduce_kernel in `out`, and in `shares` whether several blocks share an
 * output. Returns false if the kernel is not a reduction, or one of an unsupported kind. */
bool plim_family_reduce(const struct plim_plan *plan, const struct gpu_dim3 *grid,
                        void *const *arguments, struct plim_reduce_launch *out, bool *shares);

/* Returns how many bytes of the first argument may hold addresses, where the kernel alone does not determine it; 0 if
 * unknown. */
size_t plim_family_bytes(const struct plim_plan *plan, const struct gpu_dim3 *grid, void *const *arguments);

#endif
