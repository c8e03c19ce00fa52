/* The worker process: opens a device and runs settings on it, as its parent asks (wire.h).
 *
 * Everything that can go wrong with a GPU goes wrong here. An OOM, or an operation that the GPU
 * cannot run, is an answer, and the worker goes on; a lost device is the last answer of a worker.
 * After every run all memory is given back and what is missing is counted.
 */
#ifndef PLIM_AUTOTUNE_RUN_WORKER_H
#define PLIM_AUTOTUNE_RUN_WORKER_H

/* `plimsoll --worker PARENT_PID`, the socket at PLIM_WORKER_FD (process.h). Not for people: it is
 * in no help. Serves the parent at the other end of the socket until it says BYE or is gone. Returns
 * the exit code: 0, or 1 when the parent sent something else than requests or the device was lost. */
int plim_worker_command(int argc, char **argv);

#endif
