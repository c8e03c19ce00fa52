/* The functor of an elementwise kernel, read from its name: a function, or a function of two arguments one of which is
 * stored in the functor. */
#ifndef PLIM_DEVICES_VIRTUAL_VALUES_FUNCTOR_H
#define PLIM_DEVICES_VIRTUAL_VALUES_FUNCTOR_H

#include "function.h"

struct plim_functor {
    const struct plim_function_row *row; /* NULL: the function is not supported */
    int inputs;                          /* operands in memory, at most 3 */
    int stored; /* index of the argument stored in the functor, 0 or 1; -1 if none is */
    enum plim_type result, arguments[3]; /* types of the operands in memory */
    enum plim_type inner[3];             /* types of the function's arguments */
};

/* Reads a functor from its name. Returns false if not even its types are known; `out->row` is NULL if only the function
 * is not. */
bool plim_functor_read(struct plim_name name, struct plim_functor *out);

/* Returns the size of the functor object in bytes, or 0 if unknown. */
size_t plim_functor_bytes(const struct plim_functor *functor);

/* Applies the functor to columns whose types are `functor->arguments`. */
void plim_functor_apply(const struct plim_function_call *call, const struct plim_column *x,
                        struct plim_column *out, size_t count);

#endif
