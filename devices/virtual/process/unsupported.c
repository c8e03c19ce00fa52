#include "unsupported.h"
#include "devices/virtual/machine/version.h"
#include "devices/virtual/work/launches.h"
#include <string.h>

static const struct {
    const char *name;
    int not_supported, no_handle, not_executed;
} libraries[] = {
    [PLIM_CUDART] = {"cudart", GPU_NOT_SUPPORTED, GPU_INVALID_HANDLE, GPU_UNKNOWN},
    [PLIM_CUDA] = {"cuda", GPU_NOT_SUPPORTED, GPU_INVALID_HANDLE, GPU_UNKNOWN},
    [PLIM_CUBLAS] = {"cuBLAS", 15, 1, 13},
    [PLIM_CUBLASLT] = {"cuBLASLt", 15, 1, 13},
    [PLIM_CUDNN] = {"cuDNN", 3000, 1001, 5000},
    [PLIM_NCCL] = {"NCCL", 3, 4, 1},
    [PLIM_NVML] = {"NVML", 3, 2, 999},
    [PLIM_CUFFT] = {"cuFFT", 16, 1, 6},
    [PLIM_CUSPARSE] = {"cuSPARSE", 10, 1, 6},
    [PLIM_CUSOLVER] = {"cuSOLVER", 9, 1, 6},
};

/* cuDNN 9 renumbered its status codes. */
enum { CUDNN8_NOT_SUPPORTED = 9, CUDNN8_NOT_INITIALIZED = 1, CUDNN8_EXECUTION_FAILED = 8 };

int plim_unsupported(enum plim_nvidia_library library, const char *name)
{
    plim_self_note("the virtual GPU does not answer %.100s (%s)", name, libraries[library].name);
    if (library == PLIM_CUDART) return plim_self_error(GPU_NOT_SUPPORTED);
    if (library == PLIM_CUDNN && plim_version_is_cudnn8()) return CUDNN8_NOT_SUPPORTED;
    return libraries[library].not_supported;
}

int plim_compute(enum plim_nvidia_library library, const char *name, const void *handle)
{
    const struct plim_handle *of = handle;
    bool is_old = library == PLIM_CUDNN && plim_version_is_cudnn8();
    if (!of) return is_old ? CUDNN8_NOT_INITIALIZED : libraries[library].no_handle;
    if (!plim_library_launch(&(struct plim_work){.stream = of->stream, .what = name})) return 0;
    return is_old ? CUDNN8_EXECUTION_FAILED : libraries[library].not_executed;
}
