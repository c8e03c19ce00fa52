/* Shared by the files of the driver: initialisation checks, contexts, and functions that are the same as the runtime's.
 *
 * A GPU has one context, the primary one, which cuCtxCreate returns too. A thread's current context and the runtime's
 * current GPU are the same thing, as on a real GPU: setting either sets the other. */
#ifndef PLIM_DEVICES_VIRTUAL_DRIVER_DRIVER_CONTEXT_H
#define PLIM_DEVICES_VIRTUAL_DRIVER_DRIVER_CONTEXT_H

#include "devices/virtual/runtime/runtime.h"

/* Called by cuInit. */
void plim_driver_begin(void);

/* The check of functions that need no context: GPU_NOT_INITIALIZED, GPU_NO_DEVICE. */
int plim_driver_ready(void);
/* The check of functions that need one: also GPU_INVALID_CONTEXT if the thread has no current context. */
int plim_driver_enter(void);

/* Returns the handle of a GPU's context, which never changes in a process; NULL if there is no such GPU. */
void *plim_driver_context(int device);

/* Restores the runtime's last error to `before` and returns `result`. */
int plim_driver_result(int before, int result);

/* Defines a driver function by that of the runtime, except that only the runtime records a last error. */
#define LIKE_RUNTIME_AFTER(check, function, runtime, parameters, arguments)                        \
    int runtime parameters;                                                                        \
    ANSWER int function parameters                                                                 \
    {                                                                                              \
        int before = plim_self_peek_error(), failed = check();                                     \
        return failed ? failed : plim_driver_result(before, runtime arguments);                    \
    }
#define LIKE_RUNTIME(function, runtime, parameters, arguments)                                     \
    LIKE_RUNTIME_AFTER(plim_driver_enter, function, runtime, parameters, arguments)
/* Same for a function that needs no current context. */
#define LIKE_RUNTIME_ANYWHERE(function, runtime, parameters, arguments)                            \
    LIKE_RUNTIME_AFTER(plim_driver_ready, function, runtime, parameters, arguments)

#endif
