/* What happens when a program launches a kernel, when a library does work, when a graph is launched:
 * nothing but that it is noted. All results are CUDA error codes.
 */
#ifndef PLIM_DEVICES_VIRTUAL_WORK_LAUNCHES_H
#define PLIM_DEVICES_VIRTUAL_WORK_LAUNCHES_H

#include "kernel.h"
#include "stream.h"

struct plim_launch_config {
    struct gpu_dim3 grid, block;
    size_t shared_bytes;
    void *stream;
    void **arguments; /* NULL: not seen */
};

/* Do grid and block keep to the limits that all GPUs share (CUDA C++ Programming Guide, technical specifications per
 * compute capability)? Shared memory is another matter. */
bool plim_launch_is_possible(const struct plim_launch_config *launch);

/* GPU_NO_BINARY: the GPU cannot run it. NULL: a kernel that is not known. */
int plim_kernel_launch(struct plim_kernel *kernel, const struct plim_launch_config *launch);

/* Work that a library does: a launch of its own. What tells one from another is the function, its
 * form (a hash of transposes and epilogue, a plan), a hash of its sizes, and its operands: first
 * those that it reads, then those that it writes; where that is not told apart, all as read. */
struct plim_work {
    void *stream;
    const char *what;
    uint64_t form, sizes;
    const void *const *operands;
    size_t read, written;
    const struct plim_cost *cost; /* NULL: that of moving the operands' blocks */
};
int plim_library_launch(const struct plim_work *work);

/* A captured graph is launched: all that is in it happens. */
int plim_graph_launch(const struct plim_graph *graph, void *stream);

/* Resident blocks of a kernel on one multiprocessor. Registers are not known and not counted. */
int plim_occupancy(int device, int block_threads, size_t shared_bytes);

#endif
