/* CUDA's Multi-Process Service (MPS): whether programs in this environment use their GPUs through it.
 *
 * A CUDA program that finds a control daemon in CUDA_MPS_PIPE_DIRECTORY becomes a client of its server, otherwise it
 * opens the GPU itself (nvidia-cuda-mps-control(1)). For a client this changes:
 *   - in compute mode EXCLUSIVE_PROCESS the server is the one process, and its clients share the GPU
 *   - environment variables of the client limit it: CUDA_MPS_ACTIVE_THREAD_PERCENTAGE its multiprocessors,
 *     CUDA_MPS_PINNED_DEVICE_MEM_LIMIT its memory (cuMemGetInfo then reports what is left of the limit as free; context
 *     and libraries count). The daemon may limit its clients further, which is shown only by a client's own
 *     cuMemGetInfo
 *   - a fatal error of one client ends all of them */
#ifndef PLIM_DEVICES_NVML_MPS_H
#define PLIM_DEVICES_NVML_MPS_H

#include <stdbool.h>

/* The environment variables; NULL if not set. */
struct plim_mps_variables {
    const char *pipe_directory, *active_thread_percentage, *memory_limit;
};

struct plim_mps_variables plim_mps_variables_here(void);

struct plim_mps {
    bool active;
    char limits[192]; /* of this client, "NAME=VALUE, NAME=VALUE"; "": none */
};

/* Looks for the daemon's socket without connecting. A socket left by a killed daemon counts as a daemon, although CUDA
 * then opens the GPU itself. `root` is prepended to the folder: "" except in tests. */
void plim_mps_read(const char *root, const struct plim_mps_variables *variables,
                   struct plim_mps *out);

#endif
