/* The functions that PyTorch's elementwise kernels compute for each element: a table by their
 * names. */
#ifndef PLIM_DEVICES_VIRTUAL_VALUES_FUNCTION_H
#define PLIM_DEVICES_VIRTUAL_VALUES_FUNCTION_H

#include "column.h"
#include "name.h"

struct plim_functor; /* functor.h */

/* The context of a function call besides its arguments. */
struct plim_function_call {
    const struct plim_functor *functor;
    const unsigned char *state; /* the bytes of the functor */
    bool same;                  /* both arguments are the same memory */
};

/* `out` already has the states of values that depend on all arguments; a function that knows more changes them.
 */
typedef void plim_function(const struct plim_function_call *call, const struct plim_column *x,
                           struct plim_column *out, size_t count);

/* The type of the result: that of the first argument, of the second, ... */
enum plim_function_result {
    PLIM_AS_FIRST,
    PLIM_AS_SECOND,
    PLIM_AS_TRUTH,
    PLIM_AS_BFLOAT16,
    PLIM_AS_HALF,
    PLIM_AS_NAMED, /* the function's second template argument */
};

enum plim_function_trait {
    PLIM_KEEPS_TYPE = 1,     /* the numbers it holds have the elements' own type */
    PLIM_KEEPS_SIGN = 2,     /* the result is the argument, perhaps in another type */
    PLIM_IS_NOT_NEGATIVE = 4 /* the result is never negative */
};

struct plim_function_row {
    const char *name; /* the beginning of its name, without namespace */
    plim_function *function;
    int arguments;
    /* The contents of the functor: some bytes (an operation, an address), then numbers in the type in which it
     * computes. */
    size_t head_bytes, numbers;
    enum plim_function_result result;
    unsigned traits; /* bits of enum plim_function_trait */
};

/* `arguments` 0: any number. NULL: the function is not understood. */
const struct plim_function_row *plim_function_find(struct plim_name name, int arguments);

#endif
