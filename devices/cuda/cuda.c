#include "devices/cuda/cuda.h"

#include "autotune/base/text.h"
#include "devices/grouped.h"
#include "devices/uri.h"
#include "libraries.h"
#include "memory.h"
#include "kernel_modules.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct plim_cuda {
    struct plim_device device; /* must be first: the start of every device */
    struct plim_cuda_context context;
    struct plim_cuda_memory memory;
    struct plim_cuda_modules modules;
    struct plim_cuda_libraries libraries;
    CUevent marks[2]; /* marks[last] was recorded when time was last requested */
    int last;
    double seconds; /* between open and marks[last] */
};

static struct plim_cuda *cuda_of(struct plim_device *device)
{
    return (struct plim_cuda *)device;
}

/* --- work ------------------------------------------------------------------------------------- */

static enum plim_status read_back(struct plim_cuda *cuda, const struct plim_op *op)
{
    unsigned char part[256];
    int64_t left = plim_array_bytes(op->in[0]);
    enum plim_status st = PLIM_OK;
    for (uint64_t from = op->in[0]->data; left > 0 && !st; from += sizeof(part), left -= (int64_t)sizeof(part))
        st = cuda->device.ops->read(&cuda->device, from, part,
                                    left < (int64_t)sizeof(part) ? (size_t)left : sizeof(part));
    return st;
}

/* cuBLASLt needs sizes that are multiples of four; bitsandbytes multiplies other sizes in fp32. */
static enum plim_status multiply_bytes(struct plim_cuda *cuda, const struct plim_op *op)
{
    enum { UNIT = 4 };
    const struct plim_array *b = op->in[1];
    bool in_units = b->ndim == 2 && b->shape[0] % UNIT == 0 && b->shape[1] % UNIT == 0;
    return in_units ? plim_cuda_matmul(&cuda->libraries, op) : plim_cuda_modules_run(&cuda->modules, op);
}

/* Multiplies group by group: the host reads the ends of the groups. */
static enum plim_status multiply_groups(struct plim_cuda *cuda, const struct plim_op *op)
{
    enum { MOST_GROUPS = 1024 };
    int32_t ends[MOST_GROUPS];
    enum plim_status st = plim_grouped_check(op);
    int64_t groups = st ? 0 : plim_grouped_count(op);
    const struct plim_array *at = op->in[2];
    cuda->device.groups_one_by_one |= op->n_scratch > 0;
    if (groups > MOST_GROUPS || at->dtype != PLIM_I32 || at->ndim != 1 || at->stride[0] != 1) return PLIM_UNSUPPORTED;
    if (!st) st = cuda->device.ops->read(&cuda->device, at->data, ends, (size_t)groups * sizeof(ends[0]));
    for (int64_t g = 0, from = 0, to; g < groups && !st; g++, from = to) {
        struct plim_array parts[PLIM_GROUP_PARTS];
        to = ends[g];
        if (to < from || to > plim_grouped_rows(op)) return PLIM_INVALID;
        const struct plim_op product = plim_grouped_product(op, g, from, to, parts);
        st = plim_cuda_matmul(&cuda->libraries, &product);
    }
    return st;
}

static enum plim_status launch_op(struct plim_cuda *cuda, const struct plim_op *op)
{
    cuda->device.delta_on_fp32 |= plim_op_is_delta(op->kind);
    switch (op->kind) {
    case PLIM_OP_MATMUL:
        return plim_cuda_matmul(&cuda->libraries, op);
    case PLIM_OP_MATMUL_INT8:
        return multiply_bytes(cuda, op);
    case PLIM_OP_MATMUL_GROUPED:
        return multiply_groups(cuda, op);
    case PLIM_OP_ATTENTION:
    case PLIM_OP_ATTENTION_BACKWARD:
        return plim_cuda_attention(&cuda->libraries, op, &cuda->device.sdpa_engines);
    case PLIM_OP_READ_BACK:
        return read_back(cuda, op);
    default:
        return plim_cuda_modules_run(&cuda->modules, op);
    }
}

static enum plim_status launch(struct plim_device *device, const struct plim_op *op)
{
    struct plim_cuda *cuda = cuda_of(device);
    enum plim_status st = launch_op(cuda, op);
    if (st == PLIM_OOM) cuda->context.refused = true;
    return st;
}

enum plim_status plim_cuda_launch(struct plim_device *device, const struct plim_cuda_launch *launch)
{
    return plim_cuda_modules_launch(&cuda_of(device)->modules, launch);
}

/* --- memory ----------------------------------------------------------------------------------- */

static enum plim_status segment_get(struct plim_device *device, int64_t bytes, uint64_t *address)
{
    return plim_cuda_segment_get(&cuda_of(device)->memory, bytes, address);
}

static enum plim_status range_reserve(struct plim_device *device, int64_t bytes, uint64_t *address)
{
    return plim_cuda_range_reserve(&cuda_of(device)->memory, bytes, address);
}

static enum plim_status range_map(struct plim_device *device, uint64_t address, int64_t bytes,
                                  int64_t page_bytes)
{
    return plim_cuda_range_map(&cuda_of(device)->memory, address, bytes, page_bytes);
}

/* Freeing memory returns no status: a loss is read from the context. */
static void record_loss(struct plim_device *device)
{
    if (cuda_of(device)->context.lost) device->lost = true;
}

static void segment_return(struct plim_device *device, uint64_t address, int64_t bytes)
{
    (void)bytes;
    plim_cuda_segment_return(&cuda_of(device)->memory, address);
    record_loss(device);
}

static void range_release(struct plim_device *device, uint64_t address, int64_t bytes)
{
    (void)bytes;
    plim_cuda_range_release(&cuda_of(device)->memory, address);
    record_loss(device);
}

static void range_unmap(struct plim_device *device, uint64_t address, int64_t bytes)
{
    plim_cuda_range_unmap(&cuda_of(device)->memory, address, bytes);
    record_loss(device);
}

/* Never allows more than the memory of a smaller GPU that the device represents. */
static void limit(struct plim_device *device, int64_t bytes)
{
    int64_t total_bytes = device->info.total_bytes;
    cuda_of(device)->memory.capacity_bytes = bytes < total_bytes ? bytes : total_bytes;
}

static int64_t free_bytes(struct plim_device *device)
{
    return plim_cuda_context_free_bytes(&cuda_of(device)->context);
}

/* --- copies and time -------------------------------------------------------------------------- */

static enum plim_status read_bytes(struct plim_device *device, uint64_t address, void *to,
                                   size_t bytes)
{
    struct plim_cuda_context *c = &cuda_of(device)->context;
    enum plim_status st = PLIM_CUDA_CALL(c, cuMemcpyDtoHAsync, to, address, bytes, c->stream);
    return st ? st : PLIM_CUDA_CALL(c, cuStreamSynchronize, c->stream);
}

static enum plim_status write_bytes(struct plim_device *device, uint64_t address, const void *from,
                                    size_t bytes)
{
    struct plim_cuda_context *c = &cuda_of(device)->context;
    enum plim_status st = PLIM_CUDA_CALL(c, cuMemcpyHtoDAsync, address, from, bytes, c->stream);
    return st ? st : PLIM_CUDA_CALL(c, cuStreamSynchronize, c->stream);
}

/* An elapsed time is a float of milliseconds: only short ones are exact, so they are summed. */
static enum plim_status now(struct plim_device *device, double *seconds)
{
    struct plim_cuda *cuda = cuda_of(device);
    struct plim_cuda_context *c = &cuda->context;
    CUevent before = cuda->marks[cuda->last], mark = cuda->marks[!cuda->last];
    float milliseconds = 0;
    enum plim_status st;
    PLIM_TRY(PLIM_CUDA_CALL(c, cuEventRecord, mark, c->stream));
    PLIM_TRY(PLIM_CUDA_CALL(c, cuEventSynchronize, mark));
    PLIM_TRY(PLIM_CUDA_CALL(c, cuEventElapsedTime, &milliseconds, before, mark));
    cuda->last = !cuda->last;
    cuda->seconds += milliseconds / 1e3;
    *seconds = cuda->seconds;
out:
    return st;
}

static enum plim_status start_time(struct plim_cuda *cuda)
{
    cuda->seconds = 0;
    return PLIM_CUDA_CALL(&cuda->context, cuEventRecord, cuda->marks[cuda->last],
                          cuda->context.stream);
}

/* --- reset and close -------------------------------------------------------------------------- */

static enum plim_status reset(struct plim_device *device)
{
    struct plim_cuda *cuda = cuda_of(device);
    struct plim_cuda_context *c = &cuda->context;
    enum plim_status st = PLIM_CUDA_CALL(c, cuStreamSynchronize, c->stream);
    c->refused = false;
    if (st == PLIM_OK) plim_cuda_memory_clear(&cuda->memory);
    if (c->lost) return PLIM_LOST;
    return st == PLIM_OK ? start_time(cuda) : st;
}

static void close_cuda(struct plim_device *device)
{
    struct plim_cuda *cuda = cuda_of(device);
    plim_cuda_libraries_close(&cuda->libraries);
    plim_cuda_memory_close(&cuda->memory);
    plim_cuda_modules_close(&cuda->modules);
    for (int i = 0; i < 2; i++)
        if (cuda->marks[i]) cuda->context.driver->cuEventDestroy(cuda->marks[i]);
    plim_cuda_context_close(&cuda->context);
    free(cuda);
}

static const char *message(const struct plim_device *device)
{
    return ((const struct plim_cuda *)device)->context.message;
}

static bool is_suspect(const struct plim_device *device)
{
    return ((const struct plim_cuda *)device)->context.suspect;
}

static bool has_refused(const struct plim_device *device)
{
    return ((const struct plim_cuda *)device)->context.refused;
}

static void remember(struct plim_device *device, int fd)
{
    plim_cuda_libraries_remember(&cuda_of(device)->libraries, fd);
}

static const struct plim_device_ops cuda_ops = {
    .close = close_cuda,
    .segment_get = segment_get,
    .segment_return = segment_return,
    .range_reserve = range_reserve,
    .range_release = range_release,
    .range_map = range_map,
    .range_unmap = range_unmap,
    .limit = limit,
    .free_bytes = free_bytes,
    .launch = launch,
    .now = now,
    .read = read_bytes,
    .write = write_bytes,
    .reset = reset,
    .message = message,
    .is_suspect = is_suspect,
    .has_refused = has_refused,
    .remember = remember,
};

/* --- opening ---------------------------------------------------------------------------------- */

struct options {
    int ordinal;
    int64_t memory_bytes; /* 0: not specified */
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
    enum plim_status st = PLIM_CUDA_CALL(&cuda->context, cuMemGetInfo, &free_bytes, &total_bytes);
    if (st != PLIM_OK)
        return plim_fail(err, st, "cuda:%d: %s", options->ordinal, cuda->context.message);
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

static enum plim_status make_marks(struct plim_cuda *cuda)
{
    enum plim_status st = PLIM_OK;
    for (int i = 0; i < 2 && st == PLIM_OK; i++)
        st = PLIM_CUDA_CALL(&cuda->context, cuEventCreate, &cuda->marks[i], CU_EVENT_DEFAULT);
    return st ? st : start_time(cuda);
}

/* Creates the parts of the device on an open context, whose errors are `cuda`'s messages. */
static enum plim_status make_parts(struct plim_cuda *cuda, const struct options *options,
                                   struct plim_error *err)
{
    struct plim_device *device = &cuda->device;
    cuda->modules = (struct plim_cuda_modules){.context = &cuda->context, .info = &device->info};
    plim_cuda_libraries_init(&cuda->libraries, &cuda->context, &cuda->modules);
    enum plim_status st = make_marks(cuda);
    if (st != PLIM_OK && st != PLIM_OOM) st = PLIM_NODEVICE;
    if (st == PLIM_OK)
        st = plim_cuda_memory_open(&cuda->memory, &cuda->context, device->info.total_bytes);
    if (st != PLIM_OK) plim_fail(err, st, "cuda:%d: %s", options->ordinal, cuda->context.message);
    return st;
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
    PLIM_TRY(plim_cuda_context_open(&cuda->context, options.ordinal, &cuda->device.info, err));
    PLIM_TRY(describe(cuda, &options, err));
    PLIM_TRY(make_parts(cuda, &options, err));
out:
    if (st == PLIM_OK)
        *out = &cuda->device;
    else
        close_cuda(&cuda->device);
    return st;
}

/* --- memory and single launches --------------------------------------------------------------- */

enum plim_status plim_cuda_read_memory_info(struct plim_device *device,
                                            struct plim_cuda_memory_info *out)
{
    struct plim_cuda *cuda = cuda_of(device);
    size_t free_bytes = 0, total_bytes = 0;
    enum plim_status st = PLIM_CUDA_CALL(&cuda->context, cuMemGetInfo, &free_bytes, &total_bytes);
    *out = (struct plim_cuda_memory_info){.total_bytes = (int64_t)total_bytes,
                                          .free_bytes_at_open = cuda->memory.free_bytes_at_open,
                                          .free_bytes = (int64_t)free_bytes,
                                          .held_bytes = cuda->memory.held_bytes};
    return st;
}

int64_t plim_cuda_overhead_bytes(const struct plim_cuda_memory_info *numbers, int64_t others_bytes)
{
    return numbers->total_bytes - numbers->free_bytes - numbers->held_bytes - others_bytes;
}
