/* What the program does, told to the recogniser of its steps (steps.h) and from there to plimsoll, in
 * the machine's row of this process; and to its recording, where one is made (record/stream.h).
 */
#ifndef PLIM_DEVICES_VIRTUAL_STEPS_WATCH_H
#define PLIM_DEVICES_VIRTUAL_STEPS_WATCH_H

#include "devices/cost.h"
#include "devices/reduce_launch.h"
#include "devices/virtual/machine/cuda_abi.h"
#include "steps_class.h"

/* A kernel that was launched and not captured: what its name says (`token` is the same for the same
 * kernel), and device addresses that it is known to have written to. */
void plim_watch_kernel(uint64_t token, enum plim_steps_class class, const struct gpu_dim3 *grid,
                       const struct gpu_dim3 *block, const uintptr_t *written, size_t count);

/* The kernel that is told next works in place (steps.h). */
void plim_watch_in_place(uintptr_t at);

/* A library's launch. `form`: of the function `what`, a hash of transposes and epilogue, a plan;
 * `sizes`: a hash of its sizes. `operands`: first those that it reads, then those that it writes. */
void plim_watch_library(const char *what, uint64_t form, uint64_t sizes, const uintptr_t *operands,
                        size_t read, size_t written);

/* A launch of a graph. Where nothing is known of it: PLAIN, and 0 calls of libraries. */
void plim_watch_graph(uint64_t token, enum plim_steps_class class, size_t library_calls);

void plim_watch_copy(uintptr_t to);

/* The framework's allocator hands out a block of the GPU's memory, or takes one back (negative bytes), for the stream
 * that is given; its segments on this GPU then have so many bytes. */
void plim_watch_block(uintptr_t at, int64_t bytes, int64_t reserved_bytes, int gpu, int cuda_stream);

/* What the launch that was told last costs; for recordings alone. */
void plim_watch_cost(const struct plim_cost *cost);

/* The kernel that is told of next is PyTorch's reduce_kernel (plim_stream_reduce()); for recordings alone. */
void plim_watch_reduce(const struct plim_reduce_launch *launch, bool shares, int cuda_stream);

/* Called by the module that exec puts in the way of PyTorch (autotune/exec/plimsoll_steps.py), under these
 * very names. An optimizer of the program has stepped: in a loop over a data loader, and after `epochs` other
 * loops that were trained from? How many other optimizers have not stepped yet? Which is it (steps.h)? And after how
 * many steps is such a loop to end; 0: by itself. */
void plimsoll_optimizer_stepped(int in_epoch, int epochs, int waiting_optimizers, uint64_t optimizer);
int plimsoll_epoch_steps(void);
/* The program has made an optimizer. */
void plimsoll_optimizer_made(void);
/* PyTorch's allocator gives a request for memory of a GPU up, after all that it tries: an exception follows. */
void plimsoll_out_of_memory(int device, int64_t asked_bytes, int64_t free_bytes);
/* PyTorch's allocator gave back what it had kept (empty_cache()). */
void plimsoll_cache_emptied(void);

/* Memory of a GPU was taken, or given back, by an allocation of so many bytes. `at`: its address, or what else
 * it is known by. `cuda_stream`: that it is for (record/torch_stream.h). */
void plim_watch_allocation(int device, uint64_t at, int64_t bytes, int cuda_stream);
void plim_watch_free(int device, uint64_t at, int64_t bytes);

#endif
