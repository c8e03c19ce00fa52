/* This process as a part of the virtual machine: the state that every CUDA call needs first.
 *
 * A process enters the machine at its first call that needs a GPU, not when it is loaded: shells and compilers that the
 * program starts never enter. After fork(), the child of a process that has entered cannot use CUDA, as with the real
 * driver: every call fails with GPU_NOT_INITIALIZED. A child forked earlier starts afresh.
 *
 * One lock guards all tables of this process (heap, streams, shadows); it is never held while the program's own code
 * runs. */
#ifndef PLIM_DEVICES_VIRTUAL_MACHINE_SELF_H
#define PLIM_DEVICES_VIRTUAL_MACHINE_SELF_H

#include "cuda_abi.h"
#include "machine.h"

/* Returns the machine, or NULL if there is none; then there is no GPU. */
struct plim_machine *plim_self_machine(void);

/* For the observer of real GPUs: makes this process see all GPUs of the machine, in its order, whatever
 * CUDA_VISIBLE_DEVICES says about the real ones. */
void plim_self_observe(void);

/* Formats a UUID as "GPU-...". */
void plim_self_uuid_text(const uint8_t *uuid, char out[64]);

/* Stores the number of visible GPUs (CUDA_VISIBLE_DEVICES). GPU_NO_DEVICE, GPU_NOT_INITIALIZED. */
int plim_self_count(int *count);

/* Returns the properties of a visible GPU, or NULL if there is no such GPU. */
const struct plim_machine_gpu *plim_self_gpu(int device);
/* Returns the index in the machine of a visible GPU. */
int plim_self_machine_index(int device);

/* The current GPU of the calling thread. */
int plim_self_device(void);
int plim_self_set_device(int device);

/* Enters the machine, and creates the context of the GPU if there is none yet; GPU_OUT_OF_MEMORY if it does not fit. */
int plim_self_use(int device);
int plim_self_use_current(void);
bool plim_self_has_context(int device);
/* True if the thread is bound to its GPU. Runtime calls that use the GPU bind it. */
bool plim_self_is_bound(void);
void plim_self_unbind(void);
/* cudaDeviceReset(): destroys the context and gives back its memory. */
void plim_self_drop_context(int device);

/* Returns this process's row; valid after a successful plim_self_use(). */
struct plim_machine_process *plim_self_process(void);

/* Allocate and free memory of a GPU for this process. A refusal is recorded in the row. */
bool plim_self_allocate(int device, int64_t bytes);
void plim_self_free(int device, int64_t bytes);

/* Counts an allocation (count 1) or a free (count -1) on a GPU, for statistics; called after the memory
 * was allocated or freed. */
void plim_self_count_allocation(int device, int64_t bytes, int count);

/* The thread launches something: an earlier refusal of memory was not met (out_of_memory.h). */
void plim_self_launches(void);
/* Same, for creating or running a cuDNN plan. */
void plim_self_plans(void);
/* The framework's request for memory of a GPU has failed. */
void plim_self_request_failed(int device, int64_t asked_bytes, int64_t free_bytes);

void plim_self_lock(void);
void plim_self_unlock(void);

/* Writes a line for the user, once, to stderr and to the machine's notes. */
void plim_self_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The runtime's last error of the calling thread. */
int plim_self_error(int error); /* stores `error` unless it is 0; returns it */
int plim_self_get_error(void);
int plim_self_peek_error(void);

/* Returns a number that was never returned before, for handles and identifiers. */
uint64_t plim_self_new_id(void);

#endif
