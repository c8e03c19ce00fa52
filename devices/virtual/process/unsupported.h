/* Calls without a handwritten implementation: either not supported, or computations that only count as a launch.
 *
 * The files in names/ list every entry point of NVIDIA's libraries. make_answers.py turns them into weak definitions
 * that call these functions; a handwritten definition replaces them when the library is linked. So no call reaches a
 * library that would look for a real GPU, and an unsupported function is reported by name instead of seeming to
 * work. */
#ifndef PLIM_DEVICES_VIRTUAL_PROCESS_UNSUPPORTED_H
#define PLIM_DEVICES_VIRTUAL_PROCESS_UNSUPPORTED_H

#include "devices/virtual/machine/self.h"

enum plim_nvidia_library {
    PLIM_CUDART, PLIM_CUDA, PLIM_CUBLAS, PLIM_CUBLASLT, PLIM_CUDNN, PLIM_NCCL, PLIM_NVML,
    PLIM_CUFFT, PLIM_CUSPARSE, PLIM_CUSOLVER,
};

/* Notes, once per name, that `name` is not supported. Returns the library's own code for "not supported", which for the
 * runtime also becomes its last error. `name` may contain more than a name, for example "cudnnBackendFinalize of a
 * resample operation". */
int plim_unsupported(enum plim_nvidia_library library, const char *name);

/* For functions that only read and write device memory: a launch on the handle's stream. Returns 0 or the library's
 * code for a failed execution. `handle` starts with struct plim_handle (below); NULL gives the library's code for an
 * invalid handle. */
int plim_compute(enum plim_nvidia_library library, const char *name, const void *handle);

/* The start of every handle created for cuBLAS, cuBLASLt, cuDNN, cuSPARSE or cuSOLVER. */
struct plim_handle {
    void *stream;
    int device; /* the current GPU when it was created */
};

#endif
