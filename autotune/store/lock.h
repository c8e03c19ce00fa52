/* A lock that lets only one process of this node measure on a GPU, while others wait for its answer.
 *
 * It is a flock() on a local file named after the GPU's UUID, in $XDG_RUNTIME_DIR/plimsoll, /run/plimsoll for root, or
 * /tmp/plimsoll-UID: a folder that only the user may write. It is released when its holder and the programs that the
 * holder started on the GPU have ended, for whatever reason. */
#ifndef PLIM_AUTOTUNE_STORE_LOCK_H
#define PLIM_AUTOTUNE_STORE_LOCK_H

#include "autotune/base/log.h"
#include "autotune/base/stop.h"
#include <stdbool.h>

struct plim_store_lock {
    int fd; /* -1: not held */
};

#define PLIM_STORE_LOCK_INIT                                                                       \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

/* Waits for the lock on `what`, at most `seconds`. *waited is set if another process held it, whose answer may be
 * available now. PLIM_TIMEOUT: it is still held; PLIM_CANCELLED: `stop` is set; PLIM_IO: there is no trusted folder. */
enum plim_status plim_store_lock_acquire(struct plim_store_lock *lock, const char *what,
                                         double seconds, const struct plim_stop *stop,
                                         const struct plim_log *log, bool *waited,
                                         struct plim_error *err) PLIM_MUST_CHECK;
void plim_store_lock_release(struct plim_store_lock *lock); /* does nothing if not held */

#endif
