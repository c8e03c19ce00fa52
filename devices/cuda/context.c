#include "cuda_internal.h"

/* Before the device is open every error but "out of memory" means that it cannot be used. */
static enum plim_status refuse(struct plim_cuda *cuda, int ordinal, const char *call,
                               CUresult result, struct plim_error *err)
{
    enum plim_status st = plim_cuda_meaning_of(result)->status;
    plim_cuda_result_text(cuda->driver, call, result, cuda->message, sizeof(cuda->message));
    return plim_fail(err, st == PLIM_OOM ? PLIM_OOM : PLIM_NODEVICE, "cuda:%d: %s", ordinal,
                     cuda->message);
}

#define OPEN(name, ...)                                                                            \
    do {                                                                                           \
        CUresult result = cuda->driver->name(__VA_ARGS__);                                         \
        if (result != CUDA_SUCCESS) return refuse(cuda, ordinal, #name, result, err);              \
    } while (0)

static enum plim_status find_gpu(struct plim_cuda *cuda, int ordinal, struct plim_error *err)
{
    int count;
    OPEN(cuInit, 0);
    OPEN(cuDeviceGetCount, &count);
    if (ordinal >= count)
        return plim_fail(err, PLIM_NODEVICE,
                         "cuda:%d: no such GPU: CUDA shows %d (see nvidia-smi and "
                         "CUDA_VISIBLE_DEVICES; in MIG mode a GPU needs an instance)",
                         ordinal, count);
    OPEN(cuDeviceGet, &cuda->gpu, ordinal);
    return PLIM_OK;
}

static enum plim_status read_attributes(struct plim_cuda *cuda, int ordinal, struct plim_error *err)
{
    struct plim_device_info *info = &cuda->device.info;
    int major, minor;
    OPEN(cuDeviceGetName, info->name, sizeof(info->name), cuda->gpu);
    OPEN(cuDeviceGetAttribute, &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, cuda->gpu);
    OPEN(cuDeviceGetAttribute, &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, cuda->gpu);
    OPEN(cuDeviceGetAttribute, &info->multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
         cuda->gpu);
    OPEN(cuDeviceGetAttribute, &info->threads_per_multiprocessor,
         CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, cuda->gpu);
    info->compute_capability = 10 * major + minor;
    return PLIM_OK;
}

enum plim_status plim_cuda_context_open(struct plim_cuda *cuda, int ordinal, struct plim_error *err)
{
    enum plim_status st = find_gpu(cuda, ordinal, err);
    if (st == PLIM_OK) st = read_attributes(cuda, ordinal, err);
    if (st != PLIM_OK) return st;
    OPEN(cuDevicePrimaryCtxRetain, &cuda->context, cuda->gpu);
    OPEN(cuCtxSetCurrent, cuda->context);
    OPEN(cuStreamCreate, &cuda->stream, CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < 2; i++) OPEN(cuEventCreate, &cuda->marks[i], CU_EVENT_DEFAULT);
    OPEN(cuEventRecord, cuda->marks[0], cuda->stream);
    return PLIM_OK;
}

void plim_cuda_context_close(struct plim_cuda *cuda)
{
    const struct plim_cuda_driver *driver = cuda->driver;
    for (int i = 0; i < 2; i++)
        if (cuda->marks[i]) driver->cuEventDestroy(cuda->marks[i]);
    if (cuda->stream) driver->cuStreamDestroy(cuda->stream);
    if (cuda->context) {
        driver->cuCtxSetCurrent(NULL);
        driver->cuDevicePrimaryCtxRelease(cuda->gpu);
    }
}
