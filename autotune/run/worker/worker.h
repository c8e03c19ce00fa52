/* The worker process: opens a device and runs settings on it, as its parent requests (wire.h).
 *
 * All failures of a GPU happen in this process. Out of memory and operations that the GPU cannot run are reported, and
 * the worker continues; after reporting a lost device it ends. After every run all memory is freed, and memory that is
 * missing is counted (leaks.h). */
#ifndef PLIM_AUTOTUNE_RUN_WORKER_H
#define PLIM_AUTOTUNE_RUN_WORKER_H

/* The internal command `plimsoll --worker PARENT_PID`, with the socket at PLIM_WORKER_FD (process.h). Serves the parent
 * until it sends BYE. Returns the exit code: 0 after BYE, otherwise 1. */
int plim_worker_command(int argc, char **argv);

#endif
