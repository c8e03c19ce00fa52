/* What the files of the stand-in for libcuda.so.1 share.
 *
 * Device memory is host memory, so that a device address can be read by any stand-in; a GPU's
 * capacity is counted (gpu_state.h). A launch runs the kernel's own source (emulator.h), at once,
 * so a stream is always in order. Errors come as they do from the driver: a fault of a kernel
 * appears in the calls after its launch and stays.
 *
 *   PLIM_DOUBLE_CONTEXT  bytes that a context takes; plain: 256 MiB
 *   PLIM_DOUBLE_DRIVER   what cuDriverGetVersion says; plain: the headers' version
 *   PLIM_DOUBLE_RESULT   CALL=NUMBER, with commas: what these functions return ("cuInit=802")
 *
 * A clock counts what was launched, so that a step always takes the same time, whatever else runs on the
 * machine (gpu_launch_seconds()). The libraries say what theirs take (gpu_time_passes()).
 */
#ifndef PLIM_TESTS_DOUBLES_LIBCUDA_H
#define PLIM_TESTS_DOUBLES_LIBCUDA_H

#include "gpu_state.h"

/* What <cuda.h> declares is what the library exports. */
#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

/* The context that is current in this thread: one a GPU, there are no others. */
struct CUctx_st {
    int gpu;       /* of gpu_state.h */
    int references; /* of the primary context */
    CUresult error; /* sticky */
    bool hangs;     /* a kernel that does not end is in the stream */
};
extern __thread struct CUctx_st *double_current;

/* The beginning of every function: faults, and what was wrong before. */
enum double_needs { NEEDS_NOTHING, NEEDS_INIT, NEEDS_CONTEXT };
CUresult double_enter(const char *function, enum double_needs needs);
#define ENTER(needs)                                                                               \
    do {                                                                                           \
        CUresult entered_ = double_enter(__func__, needs);                                         \
        if (entered_ != CUDA_SUCCESS) return entered_;                                             \
    } while (0)

/* The host waits for the stream: for ever, or for an error. */
CUresult double_wait(void);

/* Whether all of it is device memory that can be used. */
bool double_is_memory(CUdeviceptr address, size_t bytes);

/* What this process may still take of a GPU: what is free, and of that, as a client of MPS, no more than
 * its limit (CUDA_MPS_PINNED_DEVICE_MEM_LIMIT) leaves. */
int64_t double_free_bytes(int gpu);

/* Moves the clock on. Exported: other stand-ins call it by its name. */
__attribute__((visibility("default"))) void double_time_passes(double seconds);

/* Everything that the context of a GPU still has. */
void double_forget_memory(int gpu);

#endif
