/* Launches of kernels by a program, of work by a library, and of graphs: they are only recorded, nothing
 * runs. All results are CUDA error codes.
 */
#ifndef PLIM_DEVICES_VIRTUAL_WORK_LAUNCHES_H
#define PLIM_DEVICES_VIRTUAL_WORK_LAUNCHES_H

#include "kernel.h"
#include "stream.h"

struct plim_launch_config {
    struct gpu_dim3 grid, block;
    size_t shared_bytes;
    void *stream;
    void **arguments; /* NULL: not known */
};

/* Are grid and block within the limits that all GPUs share (CUDA C++ Programming Guide, technical specifications per
 * compute capability)? Shared memory is not checked. */
bool plim_launch_is_possible(const struct plim_launch_config *launch);

/* GPU_NO_BINARY: the GPU cannot run it. `kernel` NULL: not known. */
int plim_kernel_launch(struct plim_kernel *kernel, const struct plim_launch_config *launch);

/* Work of a library: a launch of its own. Launches are distinguished by the function, its
 * form (a hash of transposes and epilogue, or a plan), a hash of its sizes, and its operands: first
 * those that it reads, then those that it writes; all count as read where that is not known. */
struct plim_work {
    void *stream;
    const char *what;
    uint64_t form, sizes;
    const void *const *operands;
    size_t read, written;
    const struct plim_cost *cost; /* NULL: the cost of moving the operands' blocks */
};
int plim_library_launch(const struct plim_work *work);

/* A captured graph is launched: everything in it happens. */
int plim_graph_launch(const struct plim_graph *graph, void *stream);

/* Resident blocks of a kernel on one multiprocessor. Registers are not known and not counted. */
int plim_occupancy(int device, int block_threads, size_t shared_bytes);

#endif
