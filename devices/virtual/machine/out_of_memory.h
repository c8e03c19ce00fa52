/* Tracks memory that a GPU refused and how the program reacted. The verdict "out of memory" follows from this alone,
 * without reading the program's output.
 *
 * A refusal is met if the same thread gets as much at its next attempt, for example after a caching allocator released
 * its cache; or nearly as much, since the allocator of JAX and TensorFlow requests more than it needs, and a tenth less
 * after each refusal. It is unmet if as much is refused again, or if the thread continues with something else. */
#ifndef PLIM_DEVICES_VIRTUAL_MACHINE_OUT_OF_MEMORY_H
#define PLIM_DEVICES_VIRTUAL_MACHINE_OUT_OF_MEMORY_H

#include "machine.h"

/* These concern the calling thread; `refusal` is the one in the process's row. */
void plim_out_of_memory_refused(struct plim_machine_refusal *refusal, int gpu, int64_t asked_bytes,
                                int64_t free_bytes);
void plim_out_of_memory_met(struct plim_machine_refusal *refusal, int64_t bytes);
/* The thread launches something. Cheap enough to call at every launch. */
void plim_out_of_memory_launches(struct plim_machine_refusal *refusal);
/* Same, if the thread creates or runs a cuDNN plan: when the workspace of a convolution is refused, PyTorch tries
 * another algorithm with a smaller one (aten/src/ATen/native/cudnn/Conv_v8.cpp catches the exception of each plan). */
void plim_out_of_memory_plans(struct plim_machine_refusal *refusal);
/* The framework's request has failed. If the GPU did not just refuse one, the framework's own limit was reached
 * (torch.cuda.set_per_process_memory_fraction()). */
void plim_out_of_memory_failed(struct plim_machine_refusal *refusal, int gpu, int64_t asked_bytes,
                               int64_t free_bytes);

#endif
