/* What a result of the driver means for an open device. Every other file here may call this one. */
#include "cuda_internal.h"

int64_t plim_cuda_driver_free_bytes(const struct plim_cuda *cuda)
{
    size_t free_bytes = 0, total_bytes = 0;
    if (cuda->driver->cuMemGetInfo(&free_bytes, &total_bytes) != CUDA_SUCCESS) return 0;
    return (int64_t)free_bytes;
}

/* Sticky errors come again from any call that waits for the GPU. */
static bool is_broken(const struct plim_cuda *cuda)
{
    return cuda->driver->cuCtxSynchronize() != CUDA_SUCCESS;
}

enum plim_status plim_cuda_settle(struct plim_cuda *cuda, const char *call, CUresult result)
{
    return plim_cuda_settle_allocation(cuda, call, result, 0);
}

enum plim_status plim_cuda_settle_allocation(struct plim_cuda *cuda, const char *call,
                                             CUresult result, int64_t asked_bytes)
{
    if (result == CUDA_SUCCESS) return PLIM_OK;
    const struct plim_cuda_meaning *meaning = plim_cuda_meaning_of(result);
    plim_cuda_result_text(cuda->driver, call, result, cuda->message, sizeof(cuda->message));
    if (meaning->status == PLIM_OOM || meaning->status == PLIM_LOST) return meaning->status;
    /* It was there when it was opened. */
    if (meaning->status == PLIM_NODEVICE || is_broken(cuda)) return PLIM_LOST;
    if (meaning->may_hide_oom &&
        plim_cuda_driver_free_bytes(cuda) - asked_bytes < PLIM_CUDA_NEARLY_FULL_BYTES) {
        cuda->suspect = true;
        return PLIM_OOM;
    }
    return meaning->status;
}

void plim_cuda_settle_quietly(struct plim_cuda *cuda, const char *call, CUresult result)
{
    enum plim_status st = plim_cuda_settle(cuda, call, result);
    if (st == PLIM_LOST) cuda->device.lost = true;
    if (st != PLIM_OK) cuda->suspect = true;
}
