/* The options of PyTorch's allocator in a program's environment. */
#ifndef PLIM_AUTOTUNE_TRACE_ALLOCATOR_OPTIONS_H
#define PLIM_AUTOTUNE_TRACE_ALLOCATOR_OPTIONS_H

/* PyTorch 2.9 gave the variable a second name; where both are set the first counts (tried). `entries` ends with NULL,
 * like environ; `variable` receives the variable's name. NULL: there are no options. */
const char *plim_allocator_options(char *const *entries, const char **variable);

#endif
