/* Memory that a GPU refused, and what the program made of it: a fact from which the verdict "out of
 * memory" follows, without a look at what the program says.
 *
 * A refusal is met when the same thread gets as much at its next attempt, as when a caching allocator
 * gives back what it kept and asks again; or nearly as much, since the allocator of JAX and TensorFlow
 * asks for more than it needs, and a tenth less each time that is refused. It is unmet when as much is
 * refused again, or when the thread goes on with something else.
 */
#ifndef PLIM_DEVICES_VIRTUAL_MACHINE_OUT_OF_MEMORY_H
#define PLIM_DEVICES_VIRTUAL_MACHINE_OUT_OF_MEMORY_H

#include "machine.h"

/* Of the calling thread; `refusal` is that of the process's row. */
void plim_out_of_memory_refused(struct plim_machine_refusal *refusal, int gpu, int64_t asked_bytes,
                                int64_t free_bytes);
void plim_out_of_memory_got(struct plim_machine_refusal *refusal, int64_t bytes);
/* It launches something: to be called often, it costs nothing. */
void plim_out_of_memory_goes_on(struct plim_machine_refusal *refusal);
/* The same, and what it does is to make or run a plan of cuDNN's: where a convolution's workspace is refused PyTorch
 * takes another algorithm, with less (aten/src/ATen/native/cudnn/Conv_v8.cpp catches the exception of each plan). */
void plim_out_of_memory_plans(struct plim_machine_refusal *refusal);
/* The framework gives a request up. Where the GPU has not just refused one, it was the framework's own limit
 * (torch.cuda.set_per_process_memory_fraction()). */
void plim_out_of_memory_given_up(struct plim_machine_refusal *refusal, int gpu, int64_t asked_bytes,
                                 int64_t free_bytes);

#endif
