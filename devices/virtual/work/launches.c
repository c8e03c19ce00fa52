#include "launches.h"
#include "devices/virtual/memory/block.h"
#include "devices/virtual/record/stream.h"
#include "devices/virtual/record/torch_stream.h"
#include "devices/virtual/steps/token.h"
#include "devices/virtual/steps/watch.h"
#include "event_time.h"
#include "fat_binary.h"
#include "kernel_cost.h"
#include "writes.h"
#include <stdlib.h>

/* Reads the kernel's name at its first launch only, as names are long. */
static void read_name(struct plim_kernel *kernel)
{
    char *text = plim_signature_text(kernel->name);
    kernel->plan = plim_family_plan(kernel->name, text);
    if (!kernel->signature.is_read) kernel->signature = plim_signature_of(kernel->name);
    kernel->is_planned = true;
    free(text);
}

/* Computes the results if the kernel is supported; otherwise marks what it may have written as unknown. */
static void settle(const struct plim_kernel *kernel, const struct plim_launch_config *launch)
{
    uintptr_t written[PLIM_WRITES];
    if (!launch->arguments) return;
    plim_stream_pause();
    if (!plim_family_run(kernel->plan, kernel->name, &launch->grid, launch->arguments))
        plim_writes_spoil(written,
                          plim_writes_find(kernel, &launch->grid, launch->arguments, written),
                          kernel->name);
    plim_stream_resume();
}

static void note_writes(struct plim_stream *stream, const struct plim_kernel *kernel,
                        const struct plim_launch_config *launch)
{
    uintptr_t written[PLIM_WRITES];
    if (kernel)
        plim_capture_writes(stream, written, plim_writes_find(kernel, &launch->grid, launch->arguments, written));
}

bool plim_launch_is_possible(const struct plim_launch_config *launch)
{
    enum { THREADS = 1024, BLOCK_Z = 64, GRID_Y = 65535, GRID_Z = 65535 };
    struct gpu_dim3 grid = launch->grid, block = launch->block;
    uint64_t threads = (uint64_t)block.x * block.y * block.z;
    return threads && threads <= THREADS && block.z <= BLOCK_Z && grid.x && grid.x <= INT32_MAX &&
           grid.y && grid.y <= GRID_Y && grid.z && grid.z <= GRID_Z;
}

int plim_kernel_launch(struct plim_kernel *kernel, const struct plim_launch_config *launch)
{
    uintptr_t written[32];
    struct plim_stream *stream = plim_stream_of(launch->stream);
    int failed = plim_self_use_current();
    if (failed) return failed;
    if (kernel && !kernel->is_planned) read_name(kernel);
    int capability = plim_self_gpu(plim_self_device())->compute_capability;
    if (kernel && !plim_fat_binary_code(kernel->module, capability)) {
        plim_self_note("%.100s has no code for compute capability %d.%d", kernel->name,
                       capability / 10, capability % 10);
        return GPU_NO_BINARY;
    }
    plim_self_launches();
    if (plim_capture_add(stream, PLIM_NODE_KERNEL)) {
        plim_capture_record_class(stream, plim_kernel_class(kernel), false);
        note_writes(stream, kernel, launch);
        struct plim_cost captured;
        if (plim_stream_is_on() && plim_kernel_cost(kernel, launch, &captured)) plim_capture_cost(stream, &captured);
        return GPU_OK;
    }
    size_t count = kernel ? plim_writes_plain(kernel, launch->arguments, written) : 0;
    uintptr_t in_place = kernel ? plim_writes_in_place(kernel, launch->arguments) : 0;
    if (kernel) settle(kernel, launch);
    plim_self_process()->launches++;
    if (kernel)
        plim_event_lose(plim_event_lost_by_jumping(
            plim_family_jumps(kernel->plan, &launch->grid, launch->arguments)));
    if (in_place) plim_watch_in_place(in_place);
    struct plim_reduce_launch reduce;
    bool shares;
    if (kernel && plim_stream_is_on() &&
        plim_family_reduce(kernel->plan, &launch->grid, launch->arguments, &reduce, &shares))
        plim_watch_reduce(&reduce, shares, plim_torch_stream(plim_self_device()));
    plim_watch_kernel(plim_kernel_token(kernel), plim_kernel_class(kernel), &launch->grid,
                      &launch->block, written, count);
    struct plim_cost cost;
    if (plim_stream_is_on() && plim_kernel_cost(kernel, launch, &cost)) plim_watch_cost(&cost);
    return GPU_OK;
}

static struct plim_cost cost_of_moving(const uintptr_t *operands, size_t count)
{
    struct plim_cost cost = {.kind = PLIM_COST_MOVE};
    for (size_t i = 0; i < count; i++)
        cost.number[0] += (int64_t)plim_block_find(operands[i]).bytes;
    return cost;
}

int plim_library_launch(const struct plim_work *work)
{
    struct plim_stream *stream = plim_stream_of(work->stream);
    int failed = plim_self_use_current();
    if (failed) return failed;
    plim_self_launches();
    const uintptr_t *operands = (const uintptr_t *)work->operands;
    struct plim_cost cost = {.kind = PLIM_COST_MOVE};
    if (work->cost) cost = *work->cost;
    else if (plim_stream_is_on()) cost = cost_of_moving(operands, work->read + work->written);
    if (plim_capture_add(stream, PLIM_NODE_KERNEL)) {
        plim_capture_record_class(stream, PLIM_STEPS_WORK, true);
        if (work->written) plim_capture_writes(stream, operands + work->read, work->written);
        plim_capture_cost(stream, &cost);
        return GPU_OK;
    }
    plim_self_process()->launches++;
    plim_event_lose(plim_event_lost_nanoseconds(work->cost));
    if (work->written) plim_writes_spoil(operands + work->read, work->written, work->what);
    plim_watch_library(work->what, work->form, work->sizes, operands, work->read, work->written);
    if (plim_stream_is_on()) plim_watch_cost(&cost);
    return GPU_OK;
}

static void spoil_writes(const struct plim_graph *graph)
{
    size_t count;
    struct plim_node **nodes;
    const uintptr_t *written = plim_graph_writes(graph, &count);
    plim_writes_spoil(written, count, "a CUDA graph");
    count = plim_graph_nodes(graph, &nodes);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < nodes[i]->child_count; k++) spoil_writes(nodes[i]->children[k]);
}

/* Reports the costs of a graph's launches. The host launches them all at once; `begun` is the number reported so
 * far. */
static size_t watch_costs(const struct plim_graph *graph, size_t begun)
{
    size_t count;
    struct plim_node **nodes;
    const struct plim_cost *costs = plim_graph_costs(graph, &count);
    for (size_t i = 0; i < count; i++) {
        struct plim_cost cost = costs[i];
        cost.in_graph = begun++ > 0;
        plim_watch_cost(&cost);
    }
    count = plim_graph_nodes(graph, &nodes);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < nodes[i]->child_count; k++) begun = watch_costs(nodes[i]->children[k], begun);
    return begun;
}

int plim_graph_launch(const struct plim_graph *graph, void *stream)
{
    int failed = plim_self_use_current();
    if (failed) return failed;
    plim_self_launches();
    if (plim_capture_add_graph(plim_stream_of(stream), graph)) return GPU_OK;
    struct plim_graph_sum sum = plim_graph_sum(graph);
    plim_self_process()->launches += (int64_t)sum.kernels;
    spoil_writes(graph);
    uint64_t token = plim_token_more((uint64_t)(uintptr_t)graph, plim_graph_nodes(graph, NULL));
    plim_watch_graph(token, sum.steps_class, sum.calls);
    if (plim_stream_is_on()) watch_costs(graph, 0);
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
