#include "devices/cuda/cuda.h"

#include "autotune/base/text.h"
#include "cuda_internal.h"
#include "devices/uri.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static struct plim_cuda *cuda_of(struct plim_device *device)
{
    return (struct plim_cuda *)device;
}

/* --- work ------------------------------------------------------------------------------------- */

static enum plim_status read_back(struct plim_cuda *cuda, const struct plim_op *op)
{
    unsigned char bytes[256];
    int64_t size = plim_array_bytes(op->in[0]);
    if (size > (int64_t)sizeof(bytes)) return PLIM_INVALID;
    return cuda->device.ops->read(&cuda->device, op->in[0]->data, bytes, (size_t)size);
}

/* What is not made of our kernels. */
static const struct {
    enum plim_op_kind kind;
    enum plim_status (*launch)(struct plim_cuda *cuda, const struct plim_op *op);
} others[] = {
    {PLIM_OP_MATMUL, plim_cuda_matmul},
    {PLIM_OP_ATTENTION, plim_cuda_attention},
    {PLIM_OP_ATTENTION_BACKWARD, plim_cuda_attention},
    {PLIM_OP_READ_BACK, read_back},
};

static enum plim_status launch(struct plim_device *device, const struct plim_op *op)
{
    struct plim_cuda *cuda = cuda_of(device);
    enum plim_status (*of_kind)(struct plim_cuda *, const struct plim_op *) =
        plim_cuda_launch_kernels;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (others[i].kind == op->kind) of_kind = others[i].launch;
    enum plim_status st = of_kind(cuda, op);
    if (st == PLIM_OOM) cuda->refused = true;
    return st;
}

/* --- copies and time -------------------------------------------------------------------------- */

static enum plim_status read_bytes(struct plim_device *device, uint64_t address, void *to,
                                   size_t bytes)
{
    struct plim_cuda *cuda = cuda_of(device);
    enum plim_status st = PLIM_CUDA_CALL(cuda, cuMemcpyDtoHAsync, to, address, bytes, cuda->stream);
    return st ? st : PLIM_CUDA_CALL(cuda, cuStreamSynchronize, cuda->stream);
}

static enum plim_status write_bytes(struct plim_device *device, uint64_t address, const void *from,
                                    size_t bytes)
{
    struct plim_cuda *cuda = cuda_of(device);
    enum plim_status st =
        PLIM_CUDA_CALL(cuda, cuMemcpyHtoDAsync, address, from, bytes, cuda->stream);
    return st ? st : PLIM_CUDA_CALL(cuda, cuStreamSynchronize, cuda->stream);
}

/* An elapsed time is a float of milliseconds: only short ones are exact, so they are summed. */
static enum plim_status now(struct plim_device *device, double *seconds)
{
    struct plim_cuda *cuda = cuda_of(device);
    CUevent before = cuda->marks[cuda->last], mark = cuda->marks[!cuda->last];
    float milliseconds = 0;
    enum plim_status st;
    PLIM_TRY(PLIM_CUDA_CALL(cuda, cuEventRecord, mark, cuda->stream));
    PLIM_TRY(PLIM_CUDA_CALL(cuda, cuEventSynchronize, mark));
    PLIM_TRY(PLIM_CUDA_CALL(cuda, cuEventElapsedTime, &milliseconds, before, mark));
    cuda->last = !cuda->last;
    cuda->seconds += milliseconds / 1e3;
    *seconds = cuda->seconds;
out:
    return st;
}

static enum plim_status start_time(struct plim_cuda *cuda)
{
    cuda->seconds = 0;
    return PLIM_CUDA_CALL(cuda, cuEventRecord, cuda->marks[cuda->last], cuda->stream);
}

/* --- all of it -------------------------------------------------------------------------------- */

static enum plim_status reset(struct plim_device *device)
{
    struct plim_cuda *cuda = cuda_of(device);
    enum plim_status st = PLIM_CUDA_CALL(cuda, cuStreamSynchronize, cuda->stream);
    cuda->refused = false;
    if (st == PLIM_OK) plim_cuda_memory_clear(cuda);
    if (cuda->device.lost) return PLIM_LOST;
    return st == PLIM_OK ? start_time(cuda) : st;
}

static void close_cuda(struct plim_device *device)
{
    struct plim_cuda *cuda = cuda_of(device);
    if (cuda->context) {
        plim_cuda_libraries_close(cuda);
        plim_cuda_memory_close(cuda);
        plim_cuda_modules_close(cuda);
        plim_cuda_context_close(cuda);
    }
    free(cuda);
}

/* Never more than a smaller GPU that this one stands for. */
static void limit(struct plim_device *device, int64_t bytes)
{
    int64_t total_bytes = device->info.total_bytes;
    cuda_of(device)->memory.capacity_bytes = bytes < total_bytes ? bytes : total_bytes;
}

static const char *message(const struct plim_device *device)
{
    return ((const struct plim_cuda *)device)->message;
}

static bool is_suspect(const struct plim_device *device)
{
    return ((const struct plim_cuda *)device)->suspect;
}

static bool has_refused(const struct plim_device *device)
{
    return ((const struct plim_cuda *)device)->refused;
}

static const struct plim_device_ops cuda_ops = {
    .close = close_cuda,
    .segment_get = plim_cuda_segment_get,
    .segment_return = plim_cuda_segment_return,
    .range_reserve = plim_cuda_range_reserve,
    .range_release = plim_cuda_range_release,
    .range_map = plim_cuda_range_map,
    .range_unmap = plim_cuda_range_unmap,
    .limit = limit,
    .free_bytes = plim_cuda_free_bytes,
    .launch = launch,
    .now = now,
    .read = read_bytes,
    .write = write_bytes,
    .reset = reset,
    .message = message,
    .is_suspect = is_suspect,
    .has_refused = has_refused,
};

/* --- opening ---------------------------------------------------------------------------------- */

struct options {
    int ordinal;
    int64_t memory_bytes; /* 0: not given */
};

/* "", ":1", ":1,memory=24GiB", ",memory=24GiB" */
static enum plim_status read_options(const char *text, struct options *out, struct plim_error *err)
{
    char *end = (char *)text;
    *out = (struct options){0};
    if (*text == ':') {
        errno = 0;
        long ordinal = strtol(text + 1, &end, 10);
        if (end == text + 1 || text[1] == '-' || text[1] == '+' || errno || ordinal > 1023)
            return plim_fail(err, PLIM_INVALID, "cuda%s: expected the number of a GPU, cuda:0",
                             text);
        out->ordinal = (int)ordinal;
    }
    return plim_uri_read_memory(end, &out->memory_bytes, err);
}

static enum plim_status describe(struct plim_cuda *cuda, const struct options *options,
                                 struct plim_error *err)
{
    struct plim_device_info *info = &cuda->device.info;
    size_t free_bytes, total_bytes;
    char memory[16];
    enum plim_status st = PLIM_CUDA_CALL(cuda, cuMemGetInfo, &free_bytes, &total_bytes);
    if (st != PLIM_OK) return plim_fail(err, st, "cuda:%d: %s", options->ordinal, cuda->message);
    info->total_bytes = (int64_t)total_bytes;
    snprintf(info->uri, sizeof(info->uri), "cuda:%d", options->ordinal);
    if (!options->memory_bytes) return PLIM_OK;
    if (options->memory_bytes > info->total_bytes)
        return plim_fail(err, PLIM_INVALID, "cuda:%d: memory=%lld is more than the GPU's %s",
                         options->ordinal, (long long)options->memory_bytes,
                         plim_format_bytes(info->total_bytes, memory));
    info->total_bytes = options->memory_bytes;
    snprintf(info->uri, sizeof(info->uri), "cuda:%d,memory=%lld", options->ordinal,
             (long long)options->memory_bytes);
    return PLIM_OK;
}

enum plim_status plim_cuda_open(const char *uri_tail, struct plim_device **out,
                                struct plim_error *err)
{
    struct options options;
    *out = NULL;
    enum plim_status st = read_options(uri_tail, &options, err);
    if (st != PLIM_OK) return st;
    struct plim_cuda *cuda = calloc(1, sizeof(*cuda));
    if (!cuda) return plim_fail(err, PLIM_NOMEM, "no memory for a device");
    cuda->device.ops = &cuda_ops;
    PLIM_TRY(plim_cuda_driver_load(&cuda->driver, err));
    PLIM_TRY(plim_cuda_context_open(cuda, options.ordinal, err));
    PLIM_TRY(describe(cuda, &options, err));
    st = plim_cuda_memory_open(cuda, options.memory_bytes);
    if (st != PLIM_OK) plim_fail(err, st, "cuda:%d: %s", options.ordinal, cuda->message);
out:
    if (st == PLIM_OK)
        *out = &cuda->device;
    else
        close_cuda(&cuda->device);
    return st;
}

/* --- what is known of it ---------------------------------------------------------------------- */

enum plim_status plim_cuda_read_figures(struct plim_device *device, struct plim_cuda_figures *out)
{
    struct plim_cuda *cuda = cuda_of(device);
    size_t free_bytes = 0, total_bytes = 0;
    enum plim_status st = PLIM_CUDA_CALL(cuda, cuMemGetInfo, &free_bytes, &total_bytes);
    *out = (struct plim_cuda_figures){.total_bytes = (int64_t)total_bytes,
                                      .free_bytes_at_open = cuda->memory.free_bytes_at_open,
                                      .free_bytes = (int64_t)free_bytes,
                                      .held_bytes = cuda->memory.held_bytes};
    return st;
}

int64_t plim_cuda_overhead_bytes(const struct plim_cuda_figures *figures, int64_t others_bytes)
{
    return figures->total_bytes - figures->free_bytes - figures->held_bytes - others_bytes;
}
