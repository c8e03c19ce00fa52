/* The pretended GPUs that all stand-ins and all processes of a test share.
 *
 * What a GPU holds is counted per process in a small file that all processes map, so that memory held
 * by others, leaks and several processes on one GPU are real. A process that dies gives its memory
 * back as with the real driver: a little later, here at the second look after its death.
 *
 *   PLIM_DOUBLE_GPU     GPUs by their name in the catalogue, with commas; plain: A100-SXM4-80GB
 *   PLIM_DOUBLE_MEMORY   total of each GPU ("2GiB"); plain: the catalogue's
 *   PLIM_DOUBLE_OTHERS   bytes of each GPU that strangers hold from the start; plain: 0
 *   PLIM_DOUBLE_STATE    the file; it may be empty at first. Without it every library of every
 *                        process has GPUs of its own
 *   PLIM_DOUBLE_FAULT    KIND@N, with commas: what goes wrong at the Nth event (from 1) of a process
 *
 * KIND@N! happens in one process only, in the first that comes to its Nth event, so that a fresh
 * process does not fail as well (needs PLIM_DOUBLE_STATE to be seen by others). A mistake in these
 * variables ends the process with a line on stderr.
 *
 * Thread safety: one thread at a time in each library; libraries and processes lock each other out.
 */
#ifndef PLIM_TESTS_DOUBLES_GPU_STATE_H
#define PLIM_TESTS_DOUBLES_GPU_STATE_H

#include "devices/catalogue/catalogue.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GPU_MAX = 4, GPU_MAX_PROCESSES = 64 };

/* kind, name, whether it lasts from its Nth event on. The comment: the event that counts. */
#define GPU_FAULT_MAP(X)                                                                          \
    X(OOM, "oom", false)               /* an allocation: it fails */                               \
    X(OOM_LAUNCH, "oom-launch", false) /* a launch: its code does not fit */                       \
    X(DISGUISED, "disguised", false) /* an allocation that would leave under 1 GiB: it fails     \
                                          with an error that does not say so */ \
    X(LOST, "lost", true)            /* a launch: an illegal address */                            \
    X(HANG, "hang", false)           /* a launch: it never ends */                                 \
    X(KILL, "kill", false)           /* a launch: SIGKILL */                                       \
    X(BUSY, "busy", false)           /* a context: others have the GPU */                          \
    X(VANISH, "vanish", true)        /* a call: the GPU is gone */                                \
    X(OOM_LIB, "oom-lib", false)     /* a call of cuBLASLt, of cuDNN: an allocation in it fails */ \
    X(DISGUISED_LIB, "disguised-lib", false) /* the same: it fails and does not say why */         \
    X(NCCL, "nccl", false)           /* a call of NCCL: it fails */                                \
    X(NCCL_HANG, "nccl-hang", false) /* a call of NCCL: it never returns */                        \
    X(CHOICE, "choice", false)       /* an algorithm or a plan is asked for: there is none */      \
    X(LEAK, "leak", true)            /* something is freed: free memory does not grow */           \
    X(STEAL, "steal", false)         /* a launch: strangers take half of the free memory */        \
    X(NAN, "nan", false)             /* a copy to the host: NaNs */                                \
    X(SLOW, "slow", true)            /* a launch: five times slower */

enum gpu_fault {
#define GPU_FAULT_ENUM(name, text, lasts) GPU_FAULT_##name,
    GPU_FAULT_MAP(GPU_FAULT_ENUM)
#undef GPU_FAULT_ENUM
        GPU_FAULT_COUNT
};

/* What one process holds of one GPU. */
struct gpu_process {
    int pid; /* GPU_STRANGERS: not a process of this test, and it stays */
    int64_t held_bytes;
};

enum { GPU_STRANGERS = -1 };

int gpu_count(void);

/* `gpu` counts from 0. The numbers live as long as the process. */
const struct plim_gpu *gpu_model(int gpu);
int64_t gpu_total_bytes(int gpu);
void gpu_uuid(int gpu, uint8_t uuid[16]);

int64_t gpu_free_bytes(int gpu);

/* Takes memory of a GPU for this process; false: it does not fit. */
bool gpu_take(int gpu, int64_t bytes);
/* Gives it back. Under the fault `leak` the process goes on holding it. */
void gpu_give_back(int gpu, int64_t bytes);
/* Strangers take it, as far as it is free. */
void gpu_steal(int gpu, int64_t bytes);

/* Who holds something of a GPU; the dead are listed until they are noticed. Returns how many there
 * are, of which the first `size` are written. */
size_t gpu_processes(int gpu, struct gpu_process *out, size_t size);

/* Counts an event of this process and says whether the fault strikes at it. */
bool gpu_fault(enum gpu_fault kind);

/* How often that event came in the process where it came most often: the positions where the fault
 * can strike. */
uint32_t gpu_most_events(enum gpu_fault kind);
/* And how often in all processes together. */
uint32_t gpu_all_events(enum gpu_fault kind);
const char *gpu_fault_name(enum gpu_fault kind);

/* What a launch takes on the pretended GPU's clock: a little, and a little for each of its threads, or
 * multiplications. */
static inline double gpu_launch_seconds(double work)
{
    return 1e-3 + 1e-7 * work;
}

/* What the stand-in driver of this process exports by that name; NULL: nothing, or there is none. */
void *gpu_driver_symbol(const char *name);

/* Moves the clock of this process's stand-in driver on (libcuda.h), if there is one. */
void gpu_time_passes(double seconds);

/* The GPUs are gone, for all processes (`vanish` without "!"): NVML knows as well. */
bool gpu_gone(void);

#endif
