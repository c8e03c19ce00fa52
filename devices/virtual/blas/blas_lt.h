/* cuBLASLt's descriptors: of a matrix's layout, of a product, of what is wanted of a heuristic.
 *
 * What a program sets is kept by the attribute's number and given back; nothing else depends on it
 * but the layouts' types. A descriptor is behind a pointer; it may also lie in the program's own
 * memory, of 64 bytes or more, that cublasLt...Init_internal() is given.
 */
#ifndef PLIM_DEVICES_VIRTUAL_BLAS_BLAS_LT_H
#define PLIM_DEVICES_VIRTUAL_BLAS_BLAS_LT_H

#include <stdbool.h>
#include <stdint.h>

struct lt_descriptor;

/* The numbers make a stale or foreign pointer known. */
enum lt_kind {
    LT_LAYOUT = 0x706c6d01,
    LT_MATMUL,
    LT_PREFERENCE,
    LT_TRANSFORM,
    LT_EMULATION,
};

/* NULL is none. */
bool plim_lt_is(const struct lt_descriptor *descriptor, enum lt_kind kind);

/* The cudaDataType of a layout. A blas_status: BLAS_INVALID_VALUE if it is no layout. */
/* An attribute of at most 8 bytes as a number; 0: not set, or there is no descriptor. */
uint64_t plim_lt_number(const struct lt_descriptor *descriptor, int id);

int plim_lt_layout_type(const struct lt_descriptor *layout, int *type);

#endif
