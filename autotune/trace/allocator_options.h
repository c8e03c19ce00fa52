/* The options of PyTorch's allocator that a program has in its environment. */
#ifndef PLIM_AUTOTUNE_TRACE_ALLOCATOR_OPTIONS_H
#define PLIM_AUTOTUNE_TRACE_ALLOCATOR_OPTIONS_H

/* PyTorch 2.9 gave the variable a second name; where both are set the first counts (tried). `entries` end with NULL, as
 * environ does; `variable`: its name. NULL: there are none. */
const char *plim_allocator_options(char *const *entries, const char **variable);

#endif
