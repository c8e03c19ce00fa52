/* The descriptors of cuBLASLt: matrix layouts, products, and preferences for the heuristic.
 *
 * Attributes that a program sets are stored by number and can be read back; only the types of layouts affect anything
 * else. A descriptor is accessed through a pointer; it may lie in the program's own memory of 64 bytes or more, which
 * is passed to cublasLt...Init_internal(). */
#ifndef PLIM_DEVICES_VIRTUAL_BLAS_BLAS_LT_H
#define PLIM_DEVICES_VIRTUAL_BLAS_BLAS_LT_H

#include <stdbool.h>
#include <stdint.h>

struct lt_descriptor;

/* The values serve to recognise stale and foreign pointers. */
enum lt_kind {
    LT_LAYOUT = 0x706c6d01,
    LT_MATMUL,
    LT_PREFERENCE,
    LT_TRANSFORM,
    LT_EMULATION,
};

/* True if this is a descriptor of that kind; false for NULL. */
bool plim_lt_is(const struct lt_descriptor *descriptor, enum lt_kind kind);

/* Returns an attribute of at most 8 bytes as a number; 0 if it is not set or there is no descriptor. */
uint64_t plim_lt_number(const struct lt_descriptor *descriptor, int id);

/* Stores the cudaDataType of a layout. Returns a blas_status: BLAS_INVALID_VALUE if it is not a layout. */
int plim_lt_layout_type(const struct lt_descriptor *layout, int *type);

#endif
