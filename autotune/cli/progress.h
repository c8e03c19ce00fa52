/* Progress on stderr during a long search: on a terminal a line that is updated, after
 * half a second; elsewhere (a log, a scheduler's output) a line every few seconds, after a few seconds.
 */
#ifndef PLIM_AUTOTUNE_CLI_PROGRESS_H
#define PLIM_AUTOTUNE_CLI_PROGRESS_H

#include "command.h"
#include <stdatomic.h>

struct plim_progress {
    FILE *file;            /* NULL: nothing is shown */
    bool is_live;          /* the line is updated in place */
    size_t devices;        /* in total */
    atomic_size_t runs, devices_done;
    atomic_flag drawing;   /* a thread that finds another one drawing does not draw */
    double start_seconds, next_seconds;
    int length;            /* of the live line on the screen; 0: none */
};

void plim_progress_init(struct plim_progress *progress, const struct plim_request *request,
                        const struct plim_io *io, size_t devices);

/* Callbacks; `user` is the progress. Any thread. */
void plim_progress_run(void *user);
void plim_progress_device(void *user);

/* Clears the live line. */
void plim_progress_finish(struct plim_progress *progress);

#endif
