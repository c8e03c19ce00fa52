/* The CUDA driver API (libcuda.so.1), loaded at run time.
 *
 * No CUDA library is linked: the program starts on a machine without a GPU, and a test may substitute another library.
 * <cuda.h> is needed for types; its macros give the table the versioned functions of the headers of this build
 * (cuMemAlloc: cuMemAlloc_v2).
 *
 * Tries libcuda.so.1 in the loader's search path, then /usr/lib/wsl/lib/libcuda.so.1. */
#ifndef PLIM_DEVICES_CUDA_DRIVER_H
#define PLIM_DEVICES_CUDA_DRIVER_H

#include "autotune/base/status.h"
#include "toolkit.h"
#include <stdbool.h>
#include <stddef.h>

#define PLIM_CUDA_DRIVER_MAP(X)                                                                    \
    X(cuDriverGetVersion)                                                                          \
    X(cuInit)                                                                                      \
    X(cuGetErrorName)                                                                              \
    X(cuGetErrorString)                                                                            \
    X(cuDeviceGet)                                                                                 \
    X(cuDeviceGetCount)                                                                            \
    X(cuDeviceGetName)                                                                             \
    X(cuDeviceGetUuid)                                                                             \
    X(cuDeviceGetAttribute)                                                                        \
    X(cuDevicePrimaryCtxRetain)                                                                    \
    X(cuDevicePrimaryCtxRelease)                                                                   \
    X(cuCtxSetCurrent)                                                                             \
    X(cuCtxSynchronize)                                                                            \
    X(cuMemGetInfo)                                                                                \
    X(cuMemAlloc)                                                                                  \
    X(cuMemFree)                                                                                   \
    X(cuMemGetAllocationGranularity)                                                               \
    X(cuMemAddressReserve)                                                                         \
    X(cuMemAddressFree)                                                                            \
    X(cuMemCreate)                                                                                 \
    X(cuMemRelease)                                                                                \
    X(cuMemMap)                                                                                    \
    X(cuMemUnmap)                                                                                  \
    X(cuMemSetAccess)                                                                              \
    X(cuMemcpyHtoDAsync)                                                                           \
    X(cuMemcpyDtoHAsync)                                                                           \
    X(cuStreamCreate)                                                                              \
    X(cuStreamDestroy)                                                                             \
    X(cuStreamSynchronize)                                                                         \
    X(cuEventCreate)                                                                               \
    X(cuEventDestroy)                                                                              \
    X(cuEventRecord)                                                                               \
    X(cuEventSynchronize)                                                                          \
    X(cuEventElapsedTime)                                                                          \
    X(cuModuleLoadData)                                                                            \
    X(cuModuleUnload)                                                                              \
    X(cuModuleGetFunction)                                                                         \
    X(cuFuncSetAttribute)                                                                          \
    X(cuLaunchKernel)

struct plim_cuda_driver {
    int version;   /* as reported by the driver: 1000 * major + 10 * minor */
    char path[64]; /* the name by which it was found */
#define PLIM_CUDA_DRIVER_FIELD(name) __typeof__(&name) name;
    PLIM_CUDA_DRIVER_MAP(PLIM_CUDA_DRIVER_FIELD)
#undef PLIM_CUDA_DRIVER_FIELD
};

/* Returns the driver of this process, loaded by the first call that finds one; it stays loaded. It is not initialised
 * (cuInit). PLIM_NODEVICE: no library, one that lacks a function, or one older than the headers of this build; `err`
 * tells in one line what was looked for, where, and what helps. */
enum plim_status plim_cuda_driver_load(const struct plim_cuda_driver **out,
                                       struct plim_error *err) PLIM_MUST_CHECK;

/* The meaning of a result of the driver. */
struct plim_cuda_meaning {
    CUresult result;
    enum plim_status status;
    /* Returned instead of "out of memory" when code is loaded onto a nearly full GPU, or not documented well enough to
     * exclude that. */
    bool may_hide_oom;
    const char *help; /* advice for users; may be NULL */
};

/* Never returns NULL: PLIM_INTERNAL for a result that <cuda.h> does not have. PLIM_NODEVICE: the machine or its
 * settings prevent it; PLIM_BUSY: other processes do, which may be temporary; for a device that was already open both
 * mean that it is lost. PLIM_LOST: sticky, the process has to end (according to cuda.h, or from experience). */
const struct plim_cuda_meaning *plim_cuda_meaning_of(CUresult result);

/* Formats "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory" and the help, if there is any. Returns `out`,
 * always terminated. */
char *plim_cuda_result_text(const struct plim_cuda_driver *driver, const char *call,
                            CUresult result, char *out, size_t size);

#endif
