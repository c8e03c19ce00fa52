/* Conditions on which a search ends early: a signal, or the user's time limit. */
#ifndef PLIM_BASE_STOP_H
#define PLIM_BASE_STOP_H

#include "status.h"
#include <signal.h>

/* Never stops when zeroed. */
struct plim_stop {
    const volatile sig_atomic_t
        *signalled; /* not 0 once a signal has arrived; NULL: signals are not watched */
    double deadline_seconds;                /* by plim_clock_seconds(); 0: none */
};

/* Returns PLIM_OK to continue, or PLIM_CANCELLED or PLIM_TIMEOUT (with a message) to end. `stop` NULL: never stops. */
enum plim_status plim_stop_check(const struct plim_stop *stop,
                                 struct plim_error *err) PLIM_MUST_CHECK;

#endif
