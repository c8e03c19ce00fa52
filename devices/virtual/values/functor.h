/* The functor of an elementwise kernel, from its name: a function, or a function of two arguments
 * of which the functor holds one. */
#ifndef PLIM_DEVICES_VIRTUAL_VALUES_FUNCTOR_H
#define PLIM_DEVICES_VIRTUAL_VALUES_FUNCTOR_H

#include "function.h"

struct plim_functor {
    const struct plim_function_row *row; /* NULL: the function is not understood */
    int inputs;                          /* operands in memory, at most 3 */
    int stored; /* of two arguments, the one that the functor holds: 0 or 1; -1: none */
    enum plim_type result, arguments[3]; /* of the operands in memory */
    enum plim_type inner[3];             /* of the function's arguments */
};

/* False: even its types are not known. */
bool plim_functor_read(struct plim_name name, struct plim_functor *out);

/* Its size; 0: not known. */
size_t plim_functor_bytes(const struct plim_functor *functor);

/* Applies it to columns of the types in `arguments`. */
void plim_functor_apply(const struct plim_function_call *call, const struct plim_column *x,
                        struct plim_column *out, size_t count);

#endif
