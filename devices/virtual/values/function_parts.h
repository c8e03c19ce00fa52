/* Helpers for implementing per-element functions (function.h). */
#ifndef PLIM_DEVICES_VIRTUAL_VALUES_FUNCTION_PARTS_H
#define PLIM_DEVICES_VIRTUAL_VALUES_FUNCTION_PARTS_H

#include "functor.h"

#define EACH for (size_t k = 0; k < count; k++)
#define UNUSED_CALL (void)call

/* Reads a number of the given type from the functor, after its first `at` bytes (rounded up to the type's
 * alignment). */
static inline struct plim_number plim_function_number(const struct plim_function_call *call, size_t at,
                                                      enum plim_type type)
{
    return plim_number_load(call->state + plim_align(at, plim_type_bytes(type)), type);
}

/* Defined in function_choice.c. */
plim_function plim_function_where, plim_function_masked_fill, plim_function_masked_scatter, plim_function_flatten,
    plim_function_lerp, plim_function_lerp_by;
enum { PLIM_FLATTEN_BYTES = 96 }; /* size of plim_function_flatten's functor */

#endif
