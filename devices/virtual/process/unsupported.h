/* What happens to a call that is not answered by hand: it is not supported, or it only computes and is
 * a launch.
 *
 * The files in names list every entry point of NVIDIA's libraries; make_answers.py turns them into
 * weak definitions that come here, and a definition by hand takes their place when the library is
 * linked. So no call reaches a library that would look for a real GPU, and what the virtual GPU
 * cannot do says its own name instead of seeming to work.
 */
#ifndef PLIM_DEVICES_VIRTUAL_PROCESS_UNSUPPORTED_H
#define PLIM_DEVICES_VIRTUAL_PROCESS_UNSUPPORTED_H

#include "devices/virtual/machine/self.h"

enum plim_nvidia_library {
    PLIM_CUDART, PLIM_CUDA, PLIM_CUBLAS, PLIM_CUBLASLT, PLIM_CUDNN, PLIM_NCCL, PLIM_NVML,
    PLIM_CUFFT, PLIM_CUSPARSE, PLIM_CUSOLVER,
};

/* Notes, once for each name, that `name` is not supported, and returns the library's own code for
 * "not supported". The runtime's is also its last error. `name` may say more than a name, as
 * "cudnnBackendFinalize of a resample operation". */
int plim_unsupported(enum plim_nvidia_library library, const char *name);

/* For what only reads and writes device memory: a launch on the handle's stream. Returns 0 or the
 * library's code for a failed execution. `handle` is one of ours and begins with its stream, see
 * below; NULL gives the library's code for a handle that is none. */
int plim_compute(enum plim_nvidia_library library, const char *name, const void *handle);

/* Every handle that this library makes for cuBLAS, cuBLASLt, cuDNN, cuSPARSE or cuSOLVER begins so. */
struct plim_handle {
    void *stream;
    int device; /* the current GPU when it was made */
};

#endif
