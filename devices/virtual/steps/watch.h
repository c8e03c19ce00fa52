/* Reports events of the program to the recogniser of its steps (steps.h), the results to plimsoll through this
 * process's row of the machine, and all of it to the recording if one is made (record/stream.h). */
#ifndef PLIM_DEVICES_VIRTUAL_STEPS_WATCH_H
#define PLIM_DEVICES_VIRTUAL_STEPS_WATCH_H

#include "devices/cost.h"
#include "devices/reduce_launch.h"
#include "devices/virtual/machine/cuda_abi.h"
#include "steps_class.h"

/* A kernel was launched (not captured). The token, which identifies the kernel, and the class come from its name;
 * `written`: device addresses that it is known to have written. */
void plim_watch_kernel(uint64_t token, enum plim_steps_class class, const struct gpu_dim3 *grid,
                       const struct gpu_dim3 *block, const uintptr_t *written, size_t count);

/* The kernel reported next works in place (steps.h). */
void plim_watch_in_place(uintptr_t at);

/* A library launch. `form`: hash of how the function `what` is used (transposes and epilogue, or a plan); `sizes`: hash
 * of its sizes. `operands`: `read` addresses that it reads, followed by `written` addresses that it writes. */
void plim_watch_library(const char *what, uint64_t form, uint64_t sizes, const uintptr_t *operands,
                        size_t read, size_t written);

/* A launch of a CUDA graph; PLAIN with 0 library calls if nothing is known about it. */
void plim_watch_graph(uint64_t token, enum plim_steps_class class, size_t library_calls);

void plim_watch_copy(uintptr_t to);

/* The framework's allocator hands out a block of GPU memory, or takes one back (negative bytes), for the given stream.
 * `reserved_bytes`: the total size of its segments on this GPU afterwards. */
void plim_watch_block(uintptr_t at, int64_t bytes, int64_t reserved_bytes, int gpu, int cuda_stream);

/* The cost of the last reported launch; used only by recordings. */
void plim_watch_cost(const struct plim_cost *cost);

/* The kernel reported next is PyTorch's reduce_kernel (plim_stream_reduce()); used only by recordings. */
void plim_watch_reduce(const struct plim_reduce_launch *launch, bool shares, int cuda_stream);

/* Called under these exact names by the module that exec adds to the program (autotune/exec/plimsoll_steps.py).
 * plimsoll_optimizer_stepped(): an optimizer has stepped. in_epoch: within a loop over a data loader; epochs: number of
 * earlier loops with training steps; waiting_optimizers: number of other optimizers that have not stepped yet;
 * optimizer: see steps.h. plimsoll_epoch_steps() returns after how many steps such a loop is to end; 0: it runs to its
 * end. */
void plimsoll_optimizer_stepped(int in_epoch, int epochs, int waiting_optimizers, uint64_t optimizer);
int plimsoll_epoch_steps(void);
/* The program has created an optimizer. */
void plimsoll_optimizer_made(void);
/* PyTorch's allocator gives up a request for GPU memory after all retries; an exception follows. */
void plimsoll_out_of_memory(int device, int64_t asked_bytes, int64_t free_bytes);
/* PyTorch's allocator released its cached memory (empty_cache()). */
void plimsoll_cache_emptied(void);

/* An allocation of `bytes` bytes was made on a GPU, or freed. `at`: its address, or another value that identifies it.
 * `cuda_stream`: the stream it is for (record/torch_stream.h). */
void plim_watch_allocation(int device, uint64_t at, int64_t bytes, int cuda_stream);
void plim_watch_free(int device, uint64_t at, int64_t bytes);

#endif
