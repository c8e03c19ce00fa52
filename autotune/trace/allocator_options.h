/* The options of PyTorch's allocator in a program's environment. */
#ifndef PLIM_AUTOTUNE_TRACE_ALLOCATOR_OPTIONS_H
#define PLIM_AUTOTUNE_TRACE_ALLOCATOR_OPTIONS_H

/* Returns the options, or NULL if there are none. PyTorch 2.9 gave the variable a second name; if both are set, the
 * first counts (tried). `entries` is an environment that ends with NULL; *variable is the name of the variable. */
const char *plim_allocator_options(char *const *entries, const char **variable);

#endif
