/* The per-element functions of PyTorch's elementwise kernels: a table indexed by name. */
#ifndef PLIM_DEVICES_VIRTUAL_VALUES_FUNCTION_H
#define PLIM_DEVICES_VIRTUAL_VALUES_FUNCTION_H

#include "column.h"
#include "name.h"

struct plim_functor; /* functor.h */

/* What a function receives besides its arguments. */
struct plim_function_call {
    const struct plim_functor *functor;
    const unsigned char *state; /* the bytes of the functor object */
    bool same;                  /* both arguments are the same memory */
};

/* Computes `count` elements. On entry `out->known` holds the state that follows from all arguments; the function
 * changes it where it knows better. */
typedef void plim_function(const struct plim_function_call *call, const struct plim_column *x,
                           struct plim_column *out, size_t count);

/* The type of the result. */
enum plim_function_result {
    PLIM_AS_FIRST,
    PLIM_AS_SECOND,
    PLIM_AS_TRUTH,
    PLIM_AS_BFLOAT16,
    PLIM_AS_HALF,
    PLIM_AS_NAMED, /* the second template argument of the function */
};

enum plim_function_trait {
    PLIM_KEEPS_TYPE = 1,     /* numbers stored in the functor have the type of the elements */
    PLIM_KEEPS_SIGN = 2,     /* the result is the argument, possibly converted */
    PLIM_IS_NOT_NEGATIVE = 4 /* the result is never negative */
};

struct plim_function_row {
    const char *name; /* prefix of the name, without its namespace */
    plim_function *function;
    int arguments;
    /* Layout of the functor object: `head_bytes` bytes (an operation, an address), followed by `numbers` numbers in the
     * type in which it computes. */
    size_t head_bytes, numbers;
    enum plim_function_result result;
    unsigned traits; /* bits of enum plim_function_trait */
};

/* Returns the row of a function, or NULL if it is not supported. `arguments` is the number of arguments; if it is not
 * positive, any number matches. */
const struct plim_function_row *plim_function_find(struct plim_name name, int arguments);

#endif
