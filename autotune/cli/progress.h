/* What is shown on stderr while a search takes its time: on a terminal a line that changes, after
 * half a second; elsewhere (a log, a scheduler's output) a line every few seconds, after some.
 */
#ifndef PLIM_AUTOTUNE_CLI_PROGRESS_H
#define PLIM_AUTOTUNE_CLI_PROGRESS_H

#include "command.h"
#include <stdatomic.h>

struct plim_progress {
    FILE *file;            /* NULL: nothing is shown */
    bool is_live;          /* a line that changes */
    size_t devices;        /* in all */
    atomic_size_t runs, devices_done;
    atomic_flag drawing;   /* threads that come while another one draws go on */
    double start_seconds, next_seconds;
    int length;            /* of the live line that stands there; 0: none */
};

void plim_progress_init(struct plim_progress *progress, const struct plim_request *request,
                        const struct plim_io *io, size_t devices);

/* Callbacks; `user` is the progress. Any thread. */
void plim_progress_run(void *user);
void plim_progress_device(void *user);

/* Clears the line that changes. */
void plim_progress_finish(struct plim_progress *progress);

#endif
