/* The CUDA driver: initialisation, versions, errors, devices. */
#include "devices/virtual/machine/attribute.h"
#include "driver_context.h"
#include "devices/virtual/machine/version.h"
#include <stdio.h>
#include <string.h>

ANSWER int cuInit(unsigned flags)
{
    int count, failed = plim_self_count(&count);
    if (flags) return GPU_INVALID_VALUE;
    if (!failed) plim_driver_begin();
    return failed;
}

ANSWER int cuDriverGetVersion(int *version)
{
    if (!version) return GPU_INVALID_VALUE;
    *version = PLIM_VERSION_DRIVER;
    return GPU_OK;
}

/* --- errors ----------------------------------------------------------------------------------- */

/* Errors that only the runtime has are listed with the name of the unknown error. */
static bool is_driver_error(int error)
{
    return error == GPU_UNKNOWN ||
           strcmp(plim_error_driver_name(error), plim_error_driver_name(GPU_UNKNOWN)) != 0;
}

ANSWER int cuGetErrorName(int error, const char **out)
{
    *out = is_driver_error(error) ? plim_error_driver_name(error) : NULL;
    return *out ? GPU_OK : GPU_INVALID_VALUE;
}

ANSWER int cuGetErrorString(int error, const char **out)
{
    *out = is_driver_error(error) ? plim_error_text(error) : NULL;
    return *out ? GPU_OK : GPU_INVALID_VALUE;
}

/* --- driver logs (from CUDA 12.9; PyTorch registers from 2.12 on): always empty -------------------- */

ANSWER int cuLogsRegisterCallback(void *callback, void *user, void **handle)
{
    (void)user;
    if (!callback) return GPU_INVALID_VALUE;
    if (handle) *handle = callback;
    return GPU_OK;
}

ANSWER int cuLogsUnregisterCallback(void *handle)
{
    return handle ? GPU_OK : GPU_INVALID_VALUE;
}

ANSWER int cuLogsCurrent(unsigned *end, unsigned flags)
{
    if (!end || flags) return GPU_INVALID_VALUE;
    *end = 0;
    return GPU_OK;
}

ANSWER int cuLogsDumpToMemory(unsigned *from, char *buffer, size_t *size, unsigned flags)
{
    (void)from;
    if (!buffer || !size || flags) return GPU_INVALID_VALUE;
    if (*size) *buffer = '\0';
    *size = 0;
    return GPU_OK;
}

/* --- devices --------------------------------------------------------------------------------- */

ANSWER int cuDeviceGetCount(int *count)
{
    int failed = plim_driver_ready();
    return failed ? failed : plim_self_count(count);
}

/* Finds the properties of a GPU. Returns GPU_OK or an error. */
static int find(int device, const struct plim_machine_gpu **gpu)
{
    int failed = plim_driver_ready();
    if (failed) return failed;
    *gpu = plim_self_gpu(device);
    return *gpu ? GPU_OK : GPU_INVALID_DEVICE;
}

ANSWER int cuDeviceGet(int *device, int ordinal)
{
    const struct plim_machine_gpu *gpu;
    int failed = find(ordinal, &gpu);
    if (!failed) *device = ordinal;
    return failed;
}

ANSWER int cuDeviceGetName(char *out, int bytes, int device)
{
    const struct plim_machine_gpu *gpu;
    int failed = find(device, &gpu);
    if (!failed && bytes <= 0) failed = GPU_INVALID_VALUE;
    if (!failed) snprintf(out, (size_t)bytes, "%s", gpu->name);
    return failed;
}

ANSWER int cuDeviceGetUuid_v2(void *out, int device)
{
    const struct plim_machine_gpu *gpu;
    int failed = find(device, &gpu);
    if (!failed) memcpy(out, gpu->uuid, sizeof(gpu->uuid));
    return failed;
}
ALSO(cuDeviceGetUuid_v2, cuDeviceGetUuid)

ANSWER int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    const struct plim_machine_gpu *gpu;
    int failed = find(device, &gpu);
    if (!failed) *bytes = (size_t)gpu->total_bytes;
    return failed;
}

ANSWER int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    const struct plim_machine_gpu *gpu;
    int failed = find(device, &gpu);
    return failed ? failed : plim_attribute_read(device, attribute, value);
}

ANSWER int cuDeviceComputeCapability(int *major, int *minor, int device)
{
    const struct plim_machine_gpu *gpu;
    int failed = find(device, &gpu);
    if (failed) return failed;
    *major = gpu->compute_capability / 10;
    *minor = gpu->compute_capability % 10;
    return GPU_OK;
}

/* Multiprocessors cannot be partitioned between contexts. */
ANSWER int cuDeviceGetExecAffinitySupport(int *value, int type, int device)
{
    const struct plim_machine_gpu *gpu;
    int failed = find(device, &gpu);
    (void)type;
    if (!failed) *value = 0;
    return failed;
}

LIKE_RUNTIME_ANYWHERE(cuDeviceGetPCIBusId, cudaDeviceGetPCIBusId, (char *out, int size, int device),
                      (out, size, device))
LIKE_RUNTIME_ANYWHERE(cuDeviceGetByPCIBusId, cudaDeviceGetByPCIBusId,
                      (int *device, const char *bus_id), (device, bus_id))
LIKE_RUNTIME_ANYWHERE(cuDeviceCanAccessPeer, cudaDeviceCanAccessPeer,
                      (int *can, int device, int peer), (can, device, peer))
LIKE_RUNTIME_ANYWHERE(cuDeviceGetP2PAttribute, cudaDeviceGetP2PAttribute,
                      (int *value, int attribute, int device, int peer),
                      (value, attribute, device, peer))

LIKE_RUNTIME_ANYWHERE(cuProfilerStart, cudaProfilerStart, (void), ())
LIKE_RUNTIME_ANYWHERE(cuProfilerStop, cudaProfilerStop, (void), ())
