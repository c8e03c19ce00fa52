/* Lists of tensors, packed into launches (kernels/args_foreach.h). */
#ifndef PLIM_DEVICES_CUDA_PLAN_LISTS_H
#define PLIM_DEVICES_CUDA_PLAN_LISTS_H

#include "kernels/args_foreach.h"
#include "planner.h"

/* list[i][j] is the j-th array of list i. In the first `alike` lists, array j has as many elements as array j of list
 * 0, in the same order; arrays of the other lists are scalars. */
struct plim_tensor_lists {
    const struct plim_array *const *list[PLIM_FOREACH_MAX_LISTS];
    int count, alike;
    size_t length;
};

/* One launch: tensors [first, next) of the lists. */
struct plim_list_launch {
    size_t first, next;
    int64_t chunks; /* blocks */
};

/* Describes the launch that starts at `launch->next`, with as many tensors as fit and have the types of the first.
 * PLIM_INVALID: arrays do not match. PLIM_UNSUPPORTED: types that are not floating-point, arrays with gaps or in
 * different orders. */
enum plim_status plim_lists_pack(const struct plim_tensor_lists *lists,
                                 struct plim_list_launch *launch,
                                 struct plim_cuda_tensor_lists *to) PLIM_MUST_CHECK;

#endif
