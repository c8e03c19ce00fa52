#include "launches.h"
#include "fat_binary.h"
#include "devices/virtual/memory/heap.h"
#include "devices/virtual/memory/shadow.h"
#include "devices/virtual/steps/token.h"
#include "devices/virtual/steps/watch.h"
#include <string.h>

/* Where a launch is known to write: what its arguments of pointer type hold. */
static size_t find_writes(const struct plim_kernel *kernel, void **arguments, uintptr_t written[32])
{
    size_t count = 0;
    for (int i = 0; arguments && kernel && i < kernel->signature.parameters && i < 32; i++) {
        if (!(kernel->signature.written >> i & 1)) continue;
        memcpy(&written[count], arguments[i], sizeof(written[count]));
        count += plim_heap_is_device(written[count]);
    }
    return count;
}

int plim_kernel_launch(struct plim_kernel *kernel, const struct plim_launch_config *launch)
{
    uintptr_t written[32];
    struct plim_stream *stream = plim_stream_of(launch->stream);
    int failed = plim_self_use_current();
    if (failed) return failed;
    if (kernel && !kernel->signature.is_read) kernel->signature = plim_signature_of(kernel->name);
    int capability = plim_self_gpu(plim_self_device())->compute_capability;
    if (kernel && !plim_fat_binary_code(kernel->module, capability)) {
        plim_self_note("%.100s has no code for compute capability %d.%d", kernel->name,
                       capability / 10, capability % 10);
        return GPU_NO_BINARY;
    }
    plim_self_goes_on();
    if (plim_capture_take(stream, PLIM_NODE_KERNEL)) {
        plim_capture_note(stream, plim_kernel_class(kernel), false);
        return GPU_OK;
    }
    size_t count = find_writes(kernel, launch->arguments, written);
    bool is_done = kernel && plim_arithmetic_run(kernel->signature.arithmetic, kernel->name,
                                                 &launch->grid, launch->arguments);
    plim_self_process()->launches++;
    plim_shadow_launched(written, is_done ? 0 : count);
    plim_watch_kernel(plim_kernel_token(kernel), plim_kernel_class(kernel), &launch->grid,
                      &launch->block, written, count);
    return GPU_OK;
}

int plim_library_launch(const struct plim_work *work)
{
    struct plim_stream *stream = plim_stream_of(work->stream);
    int failed = plim_self_use_current();
    if (failed) return failed;
    plim_self_goes_on();
    if (plim_capture_take(stream, PLIM_NODE_KERNEL)) {
        plim_capture_note(stream, PLIM_STEPS_WORK, true);
        return GPU_OK;
    }
    plim_self_process()->launches++;
    const uintptr_t *operands = (const uintptr_t *)work->operands;
    plim_shadow_launched(operands + work->read, work->written);
    plim_watch_library(work->what, work->form, work->sizes, operands, work->read, work->written);
    return GPU_OK;
}

int plim_graph_launch(const struct plim_graph *graph, void *stream)
{
    int failed = plim_self_use_current();
    if (failed) return failed;
    plim_self_goes_on();
    if (plim_capture_take_graph(plim_stream_of(stream), graph)) return GPU_OK;
    struct plim_graph_sum sum = plim_graph_sum(graph);
    plim_self_process()->launches += (int64_t)sum.kernels;
    plim_shadow_launched(NULL, 0);
    uint64_t token = plim_token_more((uint64_t)(uintptr_t)graph, plim_graph_nodes(graph, NULL));
    plim_watch_graph(token, sum.steps_class, sum.calls);
    return GPU_OK;
}

int plim_occupancy(int device, int block_threads, size_t shared_bytes)
{
    const struct plim_machine_gpu *gpu = plim_self_gpu(device);
    if (!gpu || block_threads <= 0 || block_threads > 1024) return 0;
    int warps = (block_threads + 31) / 32;
    int blocks = gpu->threads_per_multiprocessor / (warps * 32);
    if (blocks > gpu->blocks_per_multiprocessor) blocks = gpu->blocks_per_multiprocessor;
    if (shared_bytes > 0) {
        int by_shared = gpu->shared_per_multiprocessor / (int)(shared_bytes + 1024);
        if (blocks > by_shared) blocks = by_shared;
    }
    return blocks;
}
