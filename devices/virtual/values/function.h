/* What PyTorch's elementwise kernels compute of each element: a table by the names of the
 * functions. */
#ifndef PLIM_DEVICES_VIRTUAL_VALUES_FUNCTION_H
#define PLIM_DEVICES_VIRTUAL_VALUES_FUNCTION_H

#include "column.h"
#include "name.h"

struct plim_functor; /* functor.h */

/* What a function is given besides its arguments. */
struct plim_function_call {
    const struct plim_functor *functor;
    const unsigned char *state; /* what the functor has in it */
    bool same;                  /* both arguments are the same memory */
};

/* `out` comes with the states of what rests on all arguments; a function that knows more says so.
 */
typedef void plim_function(const struct plim_function_call *call, const struct plim_column *x,
                           struct plim_column *out, size_t count);

/* The type of the result: the first argument's, the second's, ... */
enum plim_function_result {
    PLIM_AS_FIRST,
    PLIM_AS_SECOND,
    PLIM_AS_TRUTH,
    PLIM_AS_BFLOAT16,
    PLIM_AS_HALF,
    PLIM_AS_NAMED, /* the function's second template argument */
};

enum plim_function_trait {
    PLIM_KEEPS_TYPE = 1,     /* its numbers are of the elements' own type */
    PLIM_KEEPS_SIGN = 2,     /* the result is what was given, in another type at most */
    PLIM_IS_NOT_NEGATIVE = 4 /* the result is not below zero, whatever was given */
};

struct plim_function_row {
    const char *name; /* how it begins, without its namespace */
    plim_function *function;
    int arguments;
    /* What is in it: some bytes (an operation, an address), and numbers in the type in which it
     * computes. */
    size_t head_bytes, numbers;
    enum plim_function_result result;
    unsigned traits; /* bits of enum plim_function_trait */
};

/* `arguments` 0: so many as it has. NULL: it is not worked out. */
const struct plim_function_row *plim_function_find(struct plim_name name, int arguments);

#endif
