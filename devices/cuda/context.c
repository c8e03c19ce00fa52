#include "context.h"

/* --- opening ---------------------------------------------------------------------------------- */

/* Before the device is open, any other error means that it cannot be used. */
static enum plim_status refuse(struct plim_cuda_context *c, int ordinal, const char *call,
                               CUresult result, struct plim_error *err)
{
    enum plim_status st = plim_cuda_meaning_of(result)->status;
    plim_cuda_result_text(c->driver, call, result, c->message, sizeof(c->message));
    if (st != PLIM_OOM && st != PLIM_BUSY) st = PLIM_NODEVICE;
    return plim_fail(err, st, "cuda:%d: %s", ordinal, c->message);
}

#define OPEN(name, ...)                                                                            \
    do {                                                                                           \
        CUresult result = c->driver->name(__VA_ARGS__);                                            \
        if (result != CUDA_SUCCESS) return refuse(c, ordinal, #name, result, err);                 \
    } while (0)

static enum plim_status find_gpu(struct plim_cuda_context *c, int ordinal, struct plim_error *err)
{
    int count;
    OPEN(cuInit, 0);
    OPEN(cuDeviceGetCount, &count);
    if (ordinal >= count)
        return plim_fail(err, PLIM_NODEVICE,
                         "cuda:%d: no such GPU: CUDA shows %d (see nvidia-smi and "
                         "CUDA_VISIBLE_DEVICES; in MIG mode a GPU needs an instance)",
                         ordinal, count);
    OPEN(cuDeviceGet, &c->gpu, ordinal);
    return PLIM_OK;
}

static enum plim_status read_attributes(struct plim_cuda_context *c, int ordinal,
                                        struct plim_device_info *info, struct plim_error *err)
{
    int major, minor;
    OPEN(cuDeviceGetName, info->name, sizeof(info->name), c->gpu);
    OPEN(cuDeviceGetAttribute, &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, c->gpu);
    OPEN(cuDeviceGetAttribute, &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, c->gpu);
    OPEN(cuDeviceGetAttribute, &info->multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
         c->gpu);
    OPEN(cuDeviceGetAttribute, &info->threads_per_multiprocessor,
         CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, c->gpu);
    info->compute_capability = 10 * major + minor;
    return PLIM_OK;
}

enum plim_status plim_cuda_context_open(struct plim_cuda_context *c, int ordinal,
                                        struct plim_device_info *info, struct plim_error *err)
{
    enum plim_status st = plim_cuda_driver_load(&c->driver, err);
    if (st == PLIM_OK) st = find_gpu(c, ordinal, err);
    if (st == PLIM_OK) st = read_attributes(c, ordinal, info, err);
    if (st != PLIM_OK) return st;
    OPEN(cuDevicePrimaryCtxRetain, &c->handle, c->gpu);
    OPEN(cuCtxSetCurrent, c->handle);
    OPEN(cuStreamCreate, &c->stream, CU_STREAM_NON_BLOCKING);
    return PLIM_OK;
}

void plim_cuda_context_close(struct plim_cuda_context *c)
{
    if (c->stream) c->driver->cuStreamDestroy(c->stream);
    if (c->handle) {
        c->driver->cuCtxSetCurrent(NULL);
        c->driver->cuDevicePrimaryCtxRelease(c->gpu);
    }
}

/* --- results ---------------------------------------------------------------------------------- */

int64_t plim_cuda_context_free_bytes(const struct plim_cuda_context *c)
{
    size_t free_bytes = 0, total_bytes = 0;
    if (c->driver->cuMemGetInfo(&free_bytes, &total_bytes) != CUDA_SUCCESS) return 0;
    return (int64_t)free_bytes;
}

/* A sticky error is returned again by any call that waits for the GPU. */
static bool is_broken(const struct plim_cuda_context *c)
{
    return c->driver->cuCtxSynchronize() != CUDA_SUCCESS;
}

enum plim_status plim_cuda_check(struct plim_cuda_context *c, const char *call, CUresult result)
{
    return plim_cuda_check_allocation(c, call, result, 0);
}

enum plim_status plim_cuda_check_allocation(struct plim_cuda_context *c, const char *call,
                                            CUresult result, int64_t asked_bytes)
{
    if (result == CUDA_SUCCESS) return PLIM_OK;
    const struct plim_cuda_meaning *meaning = plim_cuda_meaning_of(result);
    plim_cuda_result_text(c->driver, call, result, c->message, sizeof(c->message));
    if (meaning->status == PLIM_OOM || meaning->status == PLIM_LOST) return meaning->status;
    /* the GPU existed when the device was opened */
    bool is_gone = meaning->status == PLIM_NODEVICE || meaning->status == PLIM_BUSY;
    if (is_gone || is_broken(c)) return PLIM_LOST;
    if (meaning->may_hide_oom &&
        plim_cuda_context_free_bytes(c) - asked_bytes < PLIM_CUDA_NEARLY_FULL_BYTES) {
        c->suspect = true;
        return PLIM_OOM;
    }
    return meaning->status;
}

void plim_cuda_check_release(struct plim_cuda_context *c, const char *call, CUresult result)
{
    enum plim_status st = plim_cuda_check(c, call, result);
    if (st == PLIM_LOST) c->lost = true;
    if (st != PLIM_OK) c->suspect = true;
}
