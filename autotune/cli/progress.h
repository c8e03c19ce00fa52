/* Shows progress on stderr during a long search. On a terminal a line is updated in place, after half a second;
 * elsewhere (a log, a scheduler's output) a line is printed every five seconds. */
#ifndef PLIM_AUTOTUNE_CLI_PROGRESS_H
#define PLIM_AUTOTUNE_CLI_PROGRESS_H

#include "command.h"
#include <stdatomic.h>

struct plim_progress {
    FILE *file;            /* NULL: nothing is shown */
    bool is_live;          /* the line is updated in place */
    size_t devices;        /* total number */
    atomic_size_t runs, devices_done;
    atomic_flag drawing;   /* set while a thread draws; others then do not */
    double start_seconds, next_seconds;
    int length;            /* of the line on the screen; 0: none */
};

void plim_progress_init(struct plim_progress *progress, const struct plim_request *request,
                        const struct plim_io *io, size_t devices);

/* Callbacks after a run and after a device; `user` is the progress. May be called from any thread. */
void plim_progress_run(void *user);
void plim_progress_device(void *user);

/* Clears the line on the terminal. */
void plim_progress_finish(struct plim_progress *progress);

#endif
