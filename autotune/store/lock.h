/* A lock by which only one process on this node measures on a GPU, while others wait for the answer.
 *
 * A flock on a file on the node's own disk, named after what is measured (a GPU's UUID), in
 * $XDG_RUNTIME_DIR/plimsoll, or /run/plimsoll for root, or /tmp/plimsoll-UID: a folder to which only the
 * caller has access. It is released when its holder and the programs that it started on the
 * GPU have ended, for whatever reason. A shared file system is never locked.
 */
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

/* Waits for the lock, at most `seconds`. `waited`: another process held it meanwhile, so that its
 * answer may be available now. PLIM_TIMEOUT: it is still held; PLIM_CANCELLED: told to stop;
 * PLIM_IO: there is no folder that can be trusted. */
enum plim_status plim_store_lock_take(struct plim_store_lock *lock, const char *what,
                                      double seconds, const struct plim_stop *stop,
                                      const struct plim_log *log, bool *waited,
                                      struct plim_error *err) PLIM_MUST_CHECK;
void plim_store_lock_release(struct plim_store_lock *lock); /* not held is fine */

#endif
