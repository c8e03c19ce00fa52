/* The families of operations, one file each: reference_FAMILY.c. When reference.c calls one, the
 * number of operands is that of op.h and their types and dimensions are valid; the family checks
 * the shapes. An input in [brackets] may be missing: see plim_reference_input(). */
#ifndef PLIM_DEVICES_HOST_REFERENCE_INTERNAL_H
#define PLIM_DEVICES_HOST_REFERENCE_INTERNAL_H

#include "element.h"
#include "reference.h"

typedef enum plim_status plim_reference_function(const struct plim_op *op);

/* Each computes the operation of its name. */
#define PLIM_REFERENCE_FUNCTION(kind, name, outs, ins, lists)                                      \
    plim_reference_function plim_reference_##name;
PLIM_OP_MAP(PLIM_REFERENCE_FUNCTION)
#undef PLIM_REFERENCE_FUNCTION

/* Torchao's kinds of OPTIMIZER whose moments are quantised. */
plim_reference_function plim_reference_torchao;

/* Returns input i, or NULL if it is missing. */
const struct plim_array *plim_reference_input(const struct plim_op *op, int i);

/* Allocates `count` doubles (at least one); the caller frees them. */
double *plim_reference_numbers(int64_t count);

#endif
