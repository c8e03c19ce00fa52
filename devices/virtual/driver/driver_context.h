/* What the files of the driver share: whether it may be called, contexts, and answers that are the
 * runtime's.
 *
 * A GPU has one context, the primary one, and cuCtxCreate gives out the same. The context that is
 * current to a thread and the runtime's current GPU are one thing, as with the real ones: setting
 * either sets the other.
 */
#ifndef PLIM_DEVICES_VIRTUAL_DRIVER_DRIVER_CONTEXT_H
#define PLIM_DEVICES_VIRTUAL_DRIVER_DRIVER_CONTEXT_H

#include "devices/virtual/runtime/runtime.h"

/* cuInit was called. */
void plim_driver_begin(void);

/* For calls that need no context: GPU_NOT_INITIALIZED, GPU_NO_DEVICE. */
int plim_driver_ready(void);
/* For calls that do: also GPU_INVALID_CONTEXT when none is current to the thread. */
int plim_driver_enter(void);

/* The handle of a GPU's context, the same as long as the process lives; NULL: no such GPU. */
void *plim_driver_context(int device);

/* `result`, after the runtime's last error was made `before` again. */
int plim_driver_result(int before, int result);

/* The driver's function is the runtime's; only the runtime keeps the error that it returned. */
#define LIKE_RUNTIME_AFTER(check, function, runtime, parameters, arguments)                        \
    int runtime parameters;                                                                        \
    ANSWER int function parameters                                                                 \
    {                                                                                              \
        int before = plim_self_peek_error(), failed = check();                                     \
        return failed ? failed : plim_driver_result(before, runtime arguments);                    \
    }
#define LIKE_RUNTIME(function, runtime, parameters, arguments)                                     \
    LIKE_RUNTIME_AFTER(plim_driver_enter, function, runtime, parameters, arguments)
/* ...and needs no current context. */
#define LIKE_RUNTIME_ANYWHERE(function, runtime, parameters, arguments)                            \
    LIKE_RUNTIME_AFTER(plim_driver_ready, function, runtime, parameters, arguments)

#endif
