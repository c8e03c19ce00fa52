/* Reports what the program does to the recogniser of its steps (steps.h), and through the machine's row of
 * this process to plimsoll; also to its recording, where one is made (record/stream.h).
 */
#ifndef PLIM_DEVICES_VIRTUAL_STEPS_WATCH_H
#define PLIM_DEVICES_VIRTUAL_STEPS_WATCH_H

#include "devices/cost.h"
#include "devices/reduce_launch.h"
#include "devices/virtual/machine/cuda_abi.h"
#include "steps_class.h"

/* A kernel was launched (not captured): its token (the same for the same kernel) and class come from its
 * name; `written`: device addresses that it is known to have written to. */
void plim_watch_kernel(uint64_t token, enum plim_steps_class class, const struct gpu_dim3 *grid,
                       const struct gpu_dim3 *block, const uintptr_t *written, size_t count);

/* The kernel that is reported next works in place (steps.h). */
void plim_watch_in_place(uintptr_t at);

/* A library's launch. `form`: how the function `what` is used, a hash of transposes and epilogue, or a plan;
 * `sizes`: a hash of its sizes. `operands`: first those that it reads, then those that it writes. */
void plim_watch_library(const char *what, uint64_t form, uint64_t sizes, const uintptr_t *operands,
                        size_t read, size_t written);

/* A launch of a graph. Where nothing is known about it: PLAIN, and 0 library calls. */
void plim_watch_graph(uint64_t token, enum plim_steps_class class, size_t library_calls);

void plim_watch_copy(uintptr_t to);

/* The framework's allocator hands out a block of the GPU's memory, or takes one back (negative bytes), for the given
 * stream; `reserved_bytes`: the size of its segments on this GPU afterwards. */
void plim_watch_block(uintptr_t at, int64_t bytes, int64_t reserved_bytes, int gpu, int cuda_stream);

/* The cost of the launch that was reported last; only for recordings. */
void plim_watch_cost(const struct plim_cost *cost);

/* The kernel that is reported next is PyTorch's reduce_kernel (plim_stream_reduce()); only for recordings. */
void plim_watch_reduce(const struct plim_reduce_launch *launch, bool shares, int cuda_stream);

/* Called under these exact names by the module that exec adds to the program (autotune/exec/plimsoll_steps.py).
 * An optimizer of the program has stepped. in_epoch: within a loop over a data loader; epochs: how many earlier loops
 * had training steps; waiting_optimizers: how many other optimizers have not stepped yet; optimizer: see steps.h.
 * The second function returns after how many steps such a loop is to end; 0: it runs to its end. */
void plimsoll_optimizer_stepped(int in_epoch, int epochs, int waiting_optimizers, uint64_t optimizer);
int plimsoll_epoch_steps(void);
/* The program has created an optimizer. */
void plimsoll_optimizer_made(void);
/* PyTorch's allocator gives up a request for GPU memory after all retries: an exception follows. */
void plimsoll_out_of_memory(int device, int64_t asked_bytes, int64_t free_bytes);
/* PyTorch's allocator released its cached memory (empty_cache()). */
void plimsoll_cache_emptied(void);

/* An allocation of `bytes` was made on a GPU, or freed. `at`: its address, or another value that identifies it.
 * `cuda_stream`: the stream it is for (record/torch_stream.h). */
void plim_watch_allocation(int device, uint64_t at, int64_t bytes, int cuda_stream);
void plim_watch_free(int device, uint64_t at, int64_t bytes);

#endif
