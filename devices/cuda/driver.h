/* The CUDA driver API (libcuda.so.1), found at run time.
 *
 * Nothing of CUDA is linked: the program starts on a machine without a GPU, and a test may put
 * another library in its place. <cuda.h> is needed for types; through its macros the table has the
 * versions of the functions that the headers of this build mean (cuMemAlloc: cuMemAlloc_v2).
 *
 * Looked for: libcuda.so.1 as the loader finds it, then /usr/lib/wsl/lib/libcuda.so.1.
 */
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
    int version;   /* as the driver says: 1000 * major + 10 * minor */
    char path[64]; /* the name by which it was found */
#define PLIM_CUDA_DRIVER_FIELD(name) __typeof__(&name) name;
    PLIM_CUDA_DRIVER_MAP(PLIM_CUDA_DRIVER_FIELD)
#undef PLIM_CUDA_DRIVER_FIELD
};

/* The driver of this process, loaded by the first call that finds one; it stays loaded. It is not
 * initialised (cuInit). PLIM_NODEVICE with one line that says what was looked for, where, and what
 * helps: no library, a function that it lacks, older than the headers of this build. */
enum plim_status plim_cuda_driver_load(const struct plim_cuda_driver **out,
                                       struct plim_error *err) PLIM_MUST_CHECK;

/* What a result of the driver means. */
struct plim_cuda_meaning {
    CUresult result;
    enum plim_status status;
    /* Seen in place of "out of memory" where code is loaded onto a GPU that is nearly full, or not
     * documented well enough to exclude it. */
    bool may_hide_oom;
    const char *help; /* for people, may be NULL */
};

/* Always answers: PLIM_INTERNAL for a result that <cuda.h> does not have. PLIM_NODEVICE: the
 * machine or its settings are in the way, PLIM_BUSY: other processes are, which may pass; of a device
 * that was open already, both mean that it is lost. PLIM_LOST:
 * sticky, the process has to end (cuda.h says so of these, or they are known to be). */
const struct plim_cuda_meaning *plim_cuda_meaning_of(CUresult result);

/* "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory" and the help, if there is any.
 * Returns `out`, always terminated. */
char *plim_cuda_result_text(const struct plim_cuda_driver *driver, const char *call,
                            CUresult result, char *out, size_t size);

#endif
