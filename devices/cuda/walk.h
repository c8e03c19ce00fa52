/* Describes the operands of an operation as a walk (kernels/args_elementwise.h): broadcast, with as few dimensions as
 * their strides allow. */
#ifndef PLIM_DEVICES_CUDA_WALK_H
#define PLIM_DEVICES_CUDA_WALK_H

#include "autotune/base/status.h"
#include "kernels/args_elementwise.h"

enum plim_walk_flags {
    PLIM_WALK_ORDERED = 1,   /* row-major order of operand 0's shape; otherwise the order of its strides */
    PLIM_WALK_KEEP_INNER = 2 /* the last dimension is not merged with others */
};

/* Broadcasts operands 1.. to operand 0's shape. PLIM_INVALID if that is not possible. */
enum plim_status plim_walk_init(struct plim_walk *w, const struct plim_array *const *operands,
                                int count, unsigned flags) PLIM_MUST_CHECK;

/* True if PLIM_WALK_VECTOR neighbours in every operand are contiguous and aligned, or a single repeated element. */
bool plim_walk_is_vector(const struct plim_walk *w);

/* True if `count` neighbours of this type at `address` can be accessed at once. */
bool plim_address_is_aligned(uint64_t address, int element_bytes, int count);

int plim_walk_element_bytes(const struct plim_walk *w, int operand);

#endif
