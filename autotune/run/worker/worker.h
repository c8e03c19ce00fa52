/* The worker process: opens a device and runs settings on it, as its parent requests (wire.h).
 *
 * All failures of a GPU happen here. Out of memory, or an operation that the GPU
 * cannot run, is a reply, and the worker continues; a lost device is a worker's last reply.
 * After every run all memory is given back, and what is missing is counted.
 */
#ifndef PLIM_AUTOTUNE_RUN_WORKER_H
#define PLIM_AUTOTUNE_RUN_WORKER_H

/* `plimsoll --worker PARENT_PID`, with the socket at PLIM_WORKER_FD (process.h). Internal: it is not
 * in the help. Serves the parent at the other end of the socket until it sends BYE or is gone. Returns
 * the exit code: 0, or 1 when the parent sent something other than requests or the device was lost. */
int plim_worker_command(int argc, char **argv);

#endif
