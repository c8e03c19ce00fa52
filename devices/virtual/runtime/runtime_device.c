/* The CUDA runtime: devices, errors, versions. */
#include "devices/virtual/machine/attribute.h"
#include "devices/virtual/memory/heap.h"
#include "devices/virtual/memory/pool.h"
#include "runtime.h"
#include "devices/virtual/work/transfer.h"
#include "devices/virtual/machine/version.h"
#include <stdio.h>
#include <string.h>

/* --- errors ----------------------------------------------------------------------------------- */

static const struct {
    int error;
    const char *runtime, *driver, *text;
} errors[] = {
    {GPU_OK, "cudaSuccess", "CUDA_SUCCESS", "no error"},
    {GPU_INVALID_VALUE, "cudaErrorInvalidValue", "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {GPU_OUT_OF_MEMORY, "cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {GPU_NOT_INITIALIZED, "cudaErrorInitializationError", "CUDA_ERROR_NOT_INITIALIZED",
     "initialization error"},
    {GPU_INVALID_CONFIGURATION, "cudaErrorInvalidConfiguration", "CUDA_ERROR_UNKNOWN",
     "invalid configuration argument"},
    {GPU_INVALID_SYMBOL, "cudaErrorInvalidSymbol", "CUDA_ERROR_UNKNOWN", "invalid device symbol"},
    {GPU_INVALID_DEVICE_FUNCTION, "cudaErrorInvalidDeviceFunction", "CUDA_ERROR_UNKNOWN",
     "invalid device function"},
    {GPU_NO_DEVICE, "cudaErrorNoDevice", "CUDA_ERROR_NO_DEVICE",
     "no CUDA-capable device is detected"},
    {GPU_INVALID_DEVICE, "cudaErrorInvalidDevice", "CUDA_ERROR_INVALID_DEVICE",
     "invalid device ordinal"},
    {GPU_INVALID_CONTEXT, "cudaErrorDeviceUninitialized", "CUDA_ERROR_INVALID_CONTEXT",
     "invalid device context"},
    {GPU_NO_BINARY, "cudaErrorNoKernelImageForDevice", "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {GPU_FILE_NOT_FOUND, "cudaErrorFileNotFound", "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
    {GPU_INVALID_HANDLE, "cudaErrorInvalidResourceHandle", "CUDA_ERROR_INVALID_HANDLE",
     "invalid resource handle"},
    {GPU_NOT_FOUND, "cudaErrorSymbolNotFound", "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {GPU_NOT_READY, "cudaErrorNotReady", "CUDA_ERROR_NOT_READY", "device not ready"},
    {GPU_PEER_ACCESS_ALREADY_ENABLED, "cudaErrorPeerAccessAlreadyEnabled",
     "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"},
    {GPU_PEER_ACCESS_NOT_ENABLED, "cudaErrorPeerAccessNotEnabled",
     "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access has not been enabled"},
    {GPU_HOST_MEMORY_ALREADY_REGISTERED, "cudaErrorHostMemoryAlreadyRegistered",
     "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "memory is already registered"},
    {GPU_HOST_MEMORY_NOT_REGISTERED, "cudaErrorHostMemoryNotRegistered",
     "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "memory was not registered"},
    {GPU_NOT_SUPPORTED, "cudaErrorNotSupported", "CUDA_ERROR_NOT_SUPPORTED",
     "operation not supported"},
    {GPU_CAPTURE_UNSUPPORTED, "cudaErrorStreamCaptureUnsupported",
     "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
    {GPU_CAPTURE_INVALIDATED, "cudaErrorStreamCaptureInvalidated",
     "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "the capture failed because of an earlier error"},
    {GPU_CAPTURE_MERGE, "cudaErrorStreamCaptureMerge", "CUDA_ERROR_STREAM_CAPTURE_MERGE",
     "two captures would be joined"},
    {GPU_CAPTURE_UNMATCHED, "cudaErrorStreamCaptureUnmatched",
     "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "capture was not begun in this stream"},
    {GPU_CAPTURE_UNJOINED, "cudaErrorStreamCaptureUnjoined", "CUDA_ERROR_STREAM_CAPTURE_UNJOINED",
     "a stream of the capture was not joined to it"},
    {GPU_CAPTURE_ISOLATION, "cudaErrorStreamCaptureIsolation",
     "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "the capture depends on work outside of it"},
    {GPU_CAPTURE_IMPLICIT, "cudaErrorStreamCaptureImplicit", "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
     "the capture would depend on the legacy stream"},
    {GPU_CAPTURED_EVENT, "cudaErrorCapturedEvent", "CUDA_ERROR_CAPTURED_EVENT",
     "the event was last recorded in a capture"},
    {GPU_CAPTURE_WRONG_THREAD, "cudaErrorStreamCaptureWrongThread",
     "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "the capture was begun by another thread"},
    {GPU_UNKNOWN, "cudaErrorUnknown", "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static size_t find_error(int error)
{
    size_t count = sizeof(errors) / sizeof(errors[0]), i = 0;
    while (i < count && errors[i].error != error) i++;
    return i < count ? i : count - 1;
}

const char *plim_error_text(int error) { return errors[find_error(error)].text; }
const char *plim_error_driver_name(int error) { return errors[find_error(error)].driver; }

ANSWER const char *cudaGetErrorString(int error) { return plim_error_text(error); }
ANSWER const char *cudaGetErrorName(int error) { return errors[find_error(error)].runtime; }
ANSWER int cudaGetLastError(void) { return plim_self_get_error(); }
ANSWER int cudaPeekAtLastError(void) { return plim_self_peek_error(); }

/* --- versions --------------------------------------------------------------------------------- */

ANSWER int cudaDriverGetVersion(int *version)
{
    *version = PLIM_VERSION_DRIVER;
    return GPU_OK;
}

ANSWER int cudaRuntimeGetVersion(int *version)
{
    *version = plim_version_runtime();
    return GPU_OK;
}

/* From the profiling library CUPTI, which JAX asks for its version. Nothing is profiled; other functions are CUPTI's
 * own. */
ANSWER int cuptiGetVersion(uint32_t *version)
{
    enum { SINCE_13 = 130000, OF_11_8 = 18 };
    *version = plim_version_runtime() >= 13000 ? SINCE_13 : OF_11_8;
    return GPU_OK;
}

/* --- devices --------------------------------------------------------------------------------- */

ANSWER int cudaGetDeviceCount(int *count) { return plim_self_error(plim_self_count(count)); }

ANSWER int cudaGetDevice(int *device)
{
    *device = plim_self_device();
    return GPU_OK;
}

/* From CUDA 12 on this also creates the context. */
ANSWER int cudaSetDevice(int device)
{
    int failed = plim_self_set_device(device);
    if (!failed && plim_version_runtime() >= 12000) failed = plim_self_use_current();
    return plim_self_error(failed);
}

ANSWER int cudaInitDevice(int device, unsigned device_flags, unsigned flags)
{
    (void)device_flags;
    (void)flags;
    return plim_self_error(plim_self_use(device));
}

ANSWER int cudaSetValidDevices(int *devices, int count)
{
    return plim_self_error(count > 0 ? plim_self_set_device(devices[0]) : GPU_OK);
}

ANSWER int cudaChooseDevice(int *device, const void *properties)
{
    int count;
    (void)properties;
    *device = 0;
    return plim_self_error(plim_self_count(&count));
}

ANSWER int cudaGetDeviceProperties(void *out, int device)
{
    int major = plim_version_runtime() / 1000;
    /* Programs built with CUDA 12 call the function below; there, the plain name still has the structure of CUDA 11. */
    return plim_self_error(plim_attribute_properties(device, major == 12 ? 11 : major, out));
}

ANSWER int cudaGetDeviceProperties_v2(void *out, int device)
{
    return plim_self_error(plim_attribute_properties(device, 12, out));
}

ANSWER int cudaDeviceGetAttribute(int *value, int attribute, int device)
{
    return plim_self_error(plim_attribute_read(device, attribute, value));
}

ANSWER int cudaDeviceGetPCIBusId(char *out, int size, int device)
{
    char text[16];
    if (!plim_self_gpu(device)) return plim_self_error(GPU_INVALID_DEVICE);
    plim_attribute_bus_id(device, text, sizeof(text));
    if (size <= (int)strlen(text)) return plim_self_error(GPU_INVALID_VALUE);
    strcpy(out, text);
    return GPU_OK;
}

ANSWER int cudaDeviceGetByPCIBusId(int *device, const char *bus_id)
{
    *device = plim_attribute_device_at(bus_id);
    return plim_self_error(*device < 0 ? GPU_INVALID_DEVICE : GPU_OK);
}

ANSWER int cudaDeviceReset(void)
{
    int device = plim_self_device();
    if (!plim_self_has_context(device)) return GPU_OK;
    plim_heap_drop(device);
    plim_pool_drop(device);
    plim_self_drop_context(device);
    return GPU_OK;
}

ANSWER int cudaDeviceSynchronize(void)
{
    int failed = plim_self_use_current();
    if (!failed) failed = plim_transfer_wait();
    if (!failed) plim_pool_release_unused(plim_self_device());
    return plim_self_error(failed);
}

ANSWER int cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return GPU_OK;
}

/* --- settings that are stored without effect --------------------------------------------------- */

enum { LIMITS = 16 };
static size_t limits[LIMITS] = {1024, 1 << 20, 8 << 20, 2, 2048, 64};
static unsigned device_flags[PLIM_MACHINE_GPUS];

ANSWER int cudaDeviceGetLimit(size_t *value, int limit)
{
    if (limit < 0 || limit >= LIMITS) return plim_self_error(GPU_INVALID_VALUE);
    *value = limits[limit];
    return GPU_OK;
}

ANSWER int cudaDeviceSetLimit(int limit, size_t value)
{
    if (limit < 0 || limit >= LIMITS) return plim_self_error(GPU_INVALID_VALUE);
    limits[limit] = value;
    return GPU_OK;
}

ANSWER int cudaSetDeviceFlags(unsigned flags)
{
    device_flags[plim_self_device()] = flags;
    return GPU_OK;
}

ANSWER int cudaGetDeviceFlags(unsigned *flags)
{
    *flags = device_flags[plim_self_device()];
    return GPU_OK;
}

ANSWER int cudaDeviceSetCacheConfig(int config)
{
    (void)config;
    return GPU_OK;
}

ANSWER int cudaDeviceGetCacheConfig(int *config)
{
    *config = 0;
    return GPU_OK;
}

ANSWER int cudaDeviceSetSharedMemConfig(int config)
{
    (void)config;
    return GPU_OK;
}

ANSWER int cudaDeviceGetSharedMemConfig(int *config)
{
    *config = 1;
    return GPU_OK;
}

ANSWER int cudaCtxResetPersistingL2Cache(void) { return GPU_OK; }
ANSWER int cudaProfilerStart(void) { return GPU_OK; }
ANSWER int cudaProfilerStop(void) { return GPU_OK; }

/* --- peer access ------------------------------------------------------------------------------ */

static uint32_t peers[PLIM_MACHINE_GPUS]; /* bit mask of the GPUs whose memory this one may access */

ANSWER int cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    if (!plim_self_gpu(device) || !plim_self_gpu(peer)) return plim_self_error(GPU_INVALID_DEVICE);
    *can = device != peer;
    return GPU_OK;
}

ANSWER int cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    uint32_t *of = &peers[plim_self_device()], bit = 1u << peer;
    (void)flags;
    if (!plim_self_gpu(peer)) return plim_self_error(GPU_INVALID_DEVICE);
    if (*of & bit) return plim_self_error(GPU_PEER_ACCESS_ALREADY_ENABLED);
    *of |= bit;
    return GPU_OK;
}

ANSWER int cudaDeviceDisablePeerAccess(int peer)
{
    uint32_t *of = &peers[plim_self_device()], bit = 1u << peer;
    if (!plim_self_gpu(peer)) return plim_self_error(GPU_INVALID_DEVICE);
    if (!(*of & bit)) return plim_self_error(GPU_PEER_ACCESS_NOT_ENABLED);
    *of &= ~bit;
    return GPU_OK;
}

/* cudaDeviceP2PAttr: 1 performance rank, 2 access, 3 native atomics, 4 arrays */
ANSWER int cudaDeviceGetP2PAttribute(int *value, int attribute, int device, int peer)
{
    if (!plim_self_gpu(device) || !plim_self_gpu(peer)) return plim_self_error(GPU_INVALID_DEVICE);
    *value = attribute == 2 && device != peer;
    return GPU_OK;
}
