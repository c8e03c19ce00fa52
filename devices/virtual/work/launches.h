/* Launches of kernels by a program, of work by a library, and of graphs. They are only recorded; nothing runs. All int
 * results of launches are CUDA error codes. */
#ifndef PLIM_DEVICES_VIRTUAL_WORK_LAUNCHES_H
#define PLIM_DEVICES_VIRTUAL_WORK_LAUNCHES_H

#include "kernel.h"
#include "stream.h"

struct plim_launch_config {
    struct gpu_dim3 grid, block;
    size_t shared_bytes;
    void *stream;
    void **arguments; /* NULL: unknown */
};

/* True if grid and block are within the limits that all GPUs share (CUDA C++ Programming Guide, technical
 * specifications per compute capability). Shared memory is not checked. */
bool plim_launch_is_possible(const struct plim_launch_config *launch);

/* GPU_NO_BINARY if the GPU has no code for it. `kernel` NULL: unknown. */
int plim_kernel_launch(struct plim_kernel *kernel, const struct plim_launch_config *launch);

/* Work of a library, a launch of its own. Launches are distinguished by the function, its form (a hash of transposes
 * and epilogue, or a plan), a hash of its sizes, and its operands: `read` that it reads, followed by `written` that it
 * writes; if it is not known which are written, all count as read. */
struct plim_work {
    void *stream;
    const char *what;
    uint64_t form, sizes;
    const void *const *operands;
    size_t read, written;
    const struct plim_cost *cost; /* NULL: the cost of moving the blocks of the operands */
};
int plim_library_launch(const struct plim_work *work);

/* Launches a graph: everything captured in it happens. */
int plim_graph_launch(const struct plim_graph *graph, void *stream);

/* Returns the number of blocks of a kernel that are resident on one multiprocessor. Registers are not known and not
 * counted. */
int plim_occupancy(int device, int block_threads, size_t shared_bytes);

#endif
