#include "driver.h"

#include <stdio.h>

#define TOO_FULL "the GPU has no memory left"
#define RESTART "the process that did this has to end"
#define WRONG_BUILD                                                                                \
    "this plimsoll has no code for this GPU: build it with -Dgpu_archs=native on this machine"
#define MPS "the MPS server is in the way: see nvidia-cuda-mps-control"

/* In the order of <cuda.h>, which documents them; "sticky" is its "process must be terminated and relaunched". Sticky
 * in practice but not according to the header: 214, 220, 709, 916, 999. */
static const struct plim_cuda_meaning meanings[] = {
    {CUDA_SUCCESS, PLIM_OK, false, NULL},
    {CUDA_ERROR_INVALID_VALUE, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_OUT_OF_MEMORY, PLIM_OOM, false, TOO_FULL},
    {CUDA_ERROR_NOT_INITIALIZED, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_DEINITIALIZED, PLIM_LOST, false, "the driver is shutting down"},
    {CUDA_ERROR_PROFILER_DISABLED, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_PROFILER_NOT_INITIALIZED, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_PROFILER_ALREADY_STARTED, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_PROFILER_ALREADY_STOPPED, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_STUB_LIBRARY, PLIM_NODEVICE, false,
     "this is the toolkit's stub, not a driver: take lib64/stubs out of LD_LIBRARY_PATH"},
    {(CUresult)PLIM_CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, PLIM_NODEVICE, false, "install a newer driver"},
    {CUDA_ERROR_DEVICE_UNAVAILABLE, PLIM_BUSY, false,
     "another process has the GPU in exclusive mode (MPS or `nvidia-smi -c 0` would share it), or it "
     "is being reset"},
    {CUDA_ERROR_NO_DEVICE, PLIM_NODEVICE, false,
     "no GPU is visible: see nvidia-smi and CUDA_VISIBLE_DEVICES; in MIG mode a GPU needs an "
     "instance (nvidia-smi mig -lgi)"},
    {CUDA_ERROR_INVALID_DEVICE, PLIM_NODEVICE, false, "no such GPU"},
    {CUDA_ERROR_DEVICE_NOT_LICENSED, PLIM_NODEVICE, false, "the virtual GPU has no licence"},
    {CUDA_ERROR_INVALID_IMAGE, PLIM_UNSUPPORTED, false, WRONG_BUILD},
    {CUDA_ERROR_INVALID_CONTEXT, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_CONTEXT_ALREADY_CURRENT, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_MAP_FAILED, PLIM_INTERNAL, true, NULL},
    {CUDA_ERROR_UNMAP_FAILED, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_ARRAY_IS_MAPPED, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_ALREADY_MAPPED, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, PLIM_UNSUPPORTED, false, WRONG_BUILD},
    {CUDA_ERROR_ALREADY_ACQUIRED, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_NOT_MAPPED, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_NOT_MAPPED_AS_ARRAY, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_NOT_MAPPED_AS_POINTER, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_ECC_UNCORRECTABLE, PLIM_LOST, false,
     "the GPU's memory has an error (dmesg: Xid 48): it may need a reset"},
    {CUDA_ERROR_UNSUPPORTED_LIMIT, PLIM_UNSUPPORTED, false, NULL},
    {CUDA_ERROR_CONTEXT_ALREADY_IN_USE, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, PLIM_UNSUPPORTED, false, NULL},
    {CUDA_ERROR_INVALID_PTX, PLIM_UNSUPPORTED, false, WRONG_BUILD},
    {CUDA_ERROR_INVALID_GRAPHICS_CONTEXT, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_NVLINK_UNCORRECTABLE, PLIM_LOST, false, "an NVLink has failed (dmesg: Xid 74)"},
    {CUDA_ERROR_JIT_COMPILER_NOT_FOUND, PLIM_UNSUPPORTED, false, WRONG_BUILD},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, PLIM_UNSUPPORTED, false, WRONG_BUILD},
    {CUDA_ERROR_JIT_COMPILATION_DISABLED, PLIM_UNSUPPORTED, false, WRONG_BUILD},
    {CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, PLIM_UNSUPPORTED, false, NULL},
    {CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC, PLIM_UNSUPPORTED, false, NULL},
    {(CUresult)PLIM_CUDA_ERROR_CONTAINED, PLIM_LOST, false, RESTART},
    {CUDA_ERROR_INVALID_SOURCE, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_FILE_NOT_FOUND, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, PLIM_INTERNAL, true, NULL},
    {CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, PLIM_INTERNAL, true, NULL},
    {CUDA_ERROR_OPERATING_SYSTEM, PLIM_INTERNAL, true, NULL},
    {CUDA_ERROR_INVALID_HANDLE, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_ILLEGAL_STATE, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_LOSSY_QUERY, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_NOT_FOUND, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_NOT_READY, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_ILLEGAL_ADDRESS, PLIM_LOST, false, RESTART},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, PLIM_INTERNAL, false,
     "not memory: too many registers or threads, or too much shared memory asked for"},
    {CUDA_ERROR_LAUNCH_TIMEOUT, PLIM_LOST, false, RESTART},
    {CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, PLIM_LOST, false, RESTART},
    {CUDA_ERROR_ASSERT, PLIM_LOST, false, RESTART},
    {CUDA_ERROR_TOO_MANY_PEERS, PLIM_UNSUPPORTED, false, NULL},
    {CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_HARDWARE_STACK_ERROR, PLIM_LOST, false, RESTART},
    {CUDA_ERROR_ILLEGAL_INSTRUCTION, PLIM_LOST, false, RESTART},
    {CUDA_ERROR_MISALIGNED_ADDRESS, PLIM_LOST, false, RESTART},
    {CUDA_ERROR_INVALID_ADDRESS_SPACE, PLIM_LOST, false, RESTART},
    {CUDA_ERROR_INVALID_PC, PLIM_LOST, false, RESTART},
    {CUDA_ERROR_LAUNCH_FAILED, PLIM_LOST, false, RESTART},
    {CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, PLIM_INTERNAL, false, NULL},
    {(CUresult)PLIM_CUDA_ERROR_TENSOR_MEMORY_LEAK, PLIM_LOST, false, RESTART},
    {CUDA_ERROR_NOT_PERMITTED, PLIM_UNSUPPORTED, false, NULL},
    {CUDA_ERROR_NOT_SUPPORTED, PLIM_UNSUPPORTED, false, NULL},
    {CUDA_ERROR_SYSTEM_NOT_READY, PLIM_NODEVICE, false,
     "the machine is not ready: is nvidia-fabricmanager running?"},
    {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, PLIM_NODEVICE, false,
     "library and kernel module of the driver differ: restart the machine after an update"},
    {CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, PLIM_NODEVICE, false,
     "forward compatibility (cuda-compat) is for data-centre GPUs: update the driver instead"},
    {CUDA_ERROR_MPS_CONNECTION_FAILED, PLIM_NODEVICE, false, MPS},
    {CUDA_ERROR_MPS_RPC_FAILURE, PLIM_NODEVICE, false, MPS},
    {CUDA_ERROR_MPS_SERVER_NOT_READY, PLIM_BUSY, false,
     "the MPS server recovers from the fatal error of a client, or starts"},
    {CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, PLIM_BUSY, false, MPS},
    {CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED, PLIM_BUSY, false, MPS},
    {CUDA_ERROR_MPS_CLIENT_TERMINATED, PLIM_LOST, false, RESTART},
    {CUDA_ERROR_CDP_NOT_SUPPORTED, PLIM_UNSUPPORTED, false, NULL},
    {CUDA_ERROR_CDP_VERSION_MISMATCH, PLIM_UNSUPPORTED, false, NULL},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_STREAM_CAPTURE_MERGE, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_STREAM_CAPTURE_UNJOINED, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_STREAM_CAPTURE_ISOLATION, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_CAPTURED_EVENT, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_TIMEOUT, PLIM_TIMEOUT, false, NULL},
    {CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_EXTERNAL_DEVICE, PLIM_LOST, false, RESTART},
    {CUDA_ERROR_INVALID_CLUSTER_SIZE, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_FUNCTION_NOT_LOADED, PLIM_INTERNAL, true, NULL},
    {CUDA_ERROR_INVALID_RESOURCE_TYPE, PLIM_INTERNAL, false, NULL},
    {CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, PLIM_INTERNAL, false, NULL},
    {(CUresult)PLIM_CUDA_ERROR_KEY_ROTATION, PLIM_LOST, false, RESTART},
    {CUDA_ERROR_UNKNOWN, PLIM_LOST, false, RESTART},
};

const struct plim_cuda_meaning *plim_cuda_meaning_of(CUresult result)
{
    static const struct plim_cuda_meaning unknown = {CUDA_ERROR_UNKNOWN, PLIM_INTERNAL, true, NULL};
    for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
        if (meanings[i].result == result) return &meanings[i];
    return &unknown;
}

char *plim_cuda_result_text(const struct plim_cuda_driver *driver, const char *call,
                            CUresult result, char *out, size_t size)
{
    const struct plim_cuda_meaning *meaning = plim_cuda_meaning_of(result);
    const char *name = NULL, *text = NULL;
    driver->cuGetErrorName(result, &name);
    driver->cuGetErrorString(result, &text);
    snprintf(out, size, "%s: %s (%d): %s%s%s", call, name ? name : "CUDA error", (int)result,
             text ? text : "not known", meaning->help ? "; " : "",
             meaning->help ? meaning->help : "");
    return out;
}
