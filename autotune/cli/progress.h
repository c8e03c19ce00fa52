/* A live line on stderr while a search takes its time. Only on a terminal, and only after half
 * a second. */
#ifndef PLIM_AUTOTUNE_CLI_PROGRESS_H
#define PLIM_AUTOTUNE_CLI_PROGRESS_H

#include "command.h"
#include <stdatomic.h>

struct plim_progress {
    FILE *file;            /* NULL: nothing is shown */
    size_t devices;        /* in all */
    atomic_size_t runs, devices_done;
    atomic_flag drawing;   /* threads that come while another one draws go on */
    double start_seconds, next_seconds;
    bool drawn;
};

void plim_progress_init(struct plim_progress *progress, const struct plim_request *request,
                        const struct plim_io *io, size_t devices);

/* Callbacks; `user` is the progress. Any thread. */
void plim_progress_run(void *user);
void plim_progress_device(void *user);

/* Clears the line. */
void plim_progress_finish(struct plim_progress *progress);

#endif
