/* The virtual machine that a program sees under `exec`: its GPUs, the memory that each process holds, and what
 * happened.
 *
 * It is one block of shared memory that plimsoll creates and every process of the program maps, so that ranks share
 * GPUs, and so that plimsoll can read what the program did while it runs and after it was killed. Nothing is stored on
 * disk. The GPU memory of a process that died is freed when another process next requests memory, as with a real
 * driver.
 *
 * Errors are the CUDA driver's. plim_machine_* functions take the machine's lock, which survives the death of its
 * holder. */
#ifndef PLIM_DEVICES_VIRTUAL_MACHINE_MACHINE_H
#define PLIM_DEVICES_VIRTUAL_MACHINE_MACHINE_H

#include "question.h"
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct plim_gpu; /* devices/catalogue/catalogue.h */

/* The environment variable that tells the program's processes the path of the machine. */
#define PLIM_MACHINE_VARIABLE "PLIMSOLL_MACHINE"

enum { PLIM_MACHINE_GPUS = 16, PLIM_MACHINE_PROCESSES = 256, PLIM_MACHINE_NOTES = 64,
       PLIM_MACHINE_NOTE_BYTES = 160, PLIM_MACHINE_VERSION = 11 };

/* Properties and memory of a GPU. Sizes in bytes, clocks in kHz. */
struct plim_machine_gpu {
    char name[64];    /* as the driver reports it */
    uint8_t uuid[16];
    int32_t compute_capability; /* 10 * major + minor */
    int32_t multiprocessors, threads_per_multiprocessor, blocks_per_multiprocessor;
    int32_t shared_per_multiprocessor, shared_per_block_optin, l2_bytes;
    int32_t clock_khz, memory_clock_khz, memory_bus_bits;
    int32_t ascending;      /* memory is placed at ascending addresses (catalogue.h) */
    double half_flops, tf32_flops; /* of tensor cores, per second; 0: none or unknown */
    int64_t total_bytes;    /* as cudaMemGetInfo reports it */
    int64_t withheld_bytes; /* the part of it that is withheld from all processes: the margin */
    int64_t context_bytes;  /* taken by the framework in each process that uses the GPU */
    int64_t communicator_bytes; /* taken by NCCL per communicator of several ranks, once it is used */
    /* protected by the lock: */
    int64_t held_bytes, peak_bytes; /* by all processes, including contexts */
    int32_t peak_contexts;          /* number of contexts at the peak */
};

/* Refused requests for GPU memory: counts, and the last one. */
struct plim_machine_refusal {
    int64_t count;        /* all refusals */
    int64_t unmet;        /* final refusals (out_of_memory.h) */
    int64_t replanned;    /* unmet refusals that were followed by another cuDNN plan (out_of_memory.h) */
    int64_t limited;      /* unmet refusals by the framework's own limit, not by the GPU */
    int64_t asked_bytes, free_bytes; /* of the last refusal */
    int32_t gpu;
    int32_t pending;      /* threads whose last refusal may still be met */
};

/* Allocations by size: row i counts those of at least 2^i MiB and less than twice that; row 0 counts all below 2
 * MiB. */
enum { PLIM_MACHINE_SIZES = 20 };

struct plim_machine_size {
    int64_t count, bytes;
};

/* One process of the program. The row is kept when the process has died, as its numbers are the result. */
struct plim_machine_process {
    int32_t pid;    /* 0: free row */
    bool ended;     /* the process holds nothing any more */
    uint64_t born;  /* its start time, as process ids are reused */
    int64_t held_bytes[PLIM_MACHINE_GPUS], peak_bytes[PLIM_MACHINE_GPUS];
    uint32_t contexts; /* bit mask of the GPUs that it uses */
    struct plim_machine_refusal refusal;
    int64_t peak_all_bytes; /* of all GPUs together */
    /* Its allocations on each GPU: now, and when its memory on that GPU was at its peak. */
    struct plim_machine_size live[PLIM_MACHINE_GPUS][PLIM_MACHINE_SIZES],
        at_peak[PLIM_MACHINE_GPUS][PLIM_MACHINE_SIZES];
    /* Written only by the process itself, read by others: */
    volatile int64_t launches, allocations, frees;
    volatile int64_t steps;      /* training steps that were recognised (steps.h) */
    volatile int32_t rule;       /* enum plim_steps_rule: how they were recognised */
    volatile bool steady;        /* memory has reached its final level */
    volatile bool still;         /* same, but the allocator may still rearrange blocks (steps.h) */
    volatile bool in_epoch;      /* the last step was within a loop over a PyTorch data loader */
    volatile int64_t epochs;     /* number of earlier loops with training steps */
    volatile int32_t waiting_optimizers; /* PyTorch optimizers with parameters on a GPU that have not stepped yet */
    volatile double step_seconds; /* median host time of a step */
    volatile double leak_bytes;   /* growth of the held bytes per step; 0: none */
};

struct plim_machine {
    uint32_t version;
    int32_t gpu_count;
    int32_t repetitions, accumulation; /* for the verdict `steady`: steps required (0: no verdict); micro-steps per step
                                        * (0: unknown) */
    int32_t epoch_steps; /* loops with training steps end after this many steps, and `steady` requires as many loops as
                          * steps; 0: loops run to their end */
    pthread_mutex_t lock;
    struct plim_machine_gpu gpus[PLIM_MACHINE_GPUS];
    struct plim_machine_process processes[PLIM_MACHINE_PROCESSES];
    /* Notes for the user, for example about functions that are not implemented. No duplicates. */
    uint32_t note_count;
    char notes[PLIM_MACHINE_NOTES][PLIM_MACHINE_NOTE_BYTES];
    struct plim_machine_questions questions;
    int32_t given_count;
    struct plim_machine_given given[PLIM_MACHINE_GIVEN];
};

/* --- called by plimsoll ----------------------------------------------------------------------- */

/* Fills in the properties of a GPU model of the catalogue; `index` distinguishes GPUs of one model. */
void plim_machine_gpu_fill(struct plim_machine_gpu *gpu, const struct plim_gpu *model, int index);

/* Creates a machine with these GPUs. Writes the value for PLIM_MACHINE_VARIABLE to `path`, a buffer of at least 64
 * bytes; it is valid while this process lives. Returns NULL if out of memory. */
struct plim_machine *plim_machine_create(const struct plim_machine_gpu *gpus, int count,
                                         int *fd, char *path);
void plim_machine_destroy(struct plim_machine *machine, int fd); /* NULL is allowed */

/* The program may write anything into the machine at any time. plimsoll therefore reads it only through these
 * functions, which return a copy with numbers in range (counts and bytes from 0 to 2^50; finite) and terminated
 * strings. The program cannot change the size of the machine. A free row is all zero. `rule` is not checked. */
void plim_machine_read_process(const struct plim_machine *machine, int row,
                               struct plim_machine_process *out);
/* Returns the most that all processes together held on a GPU, less the context of one of them. `contexts` receives the
 * number of contexts at that time. */
int64_t plim_machine_read_peak(const struct plim_machine *machine, int gpu, int *contexts);
/* Copies the first notes, at most `most`; returns how many. */
uint32_t plim_machine_read_notes(const struct plim_machine *machine,
                                 char (*out)[PLIM_MACHINE_NOTE_BYTES], uint32_t most);

/* --- called by the program -------------------------------------------------------------------- */

/* The machine's lock; only for the files that implement the machine. */
void plim_machine_lock(struct plim_machine *machine);
void plim_machine_unlock(struct plim_machine *machine);

/* Maps the machine at this path. Returns NULL if there is none. */
struct plim_machine *plim_machine_attach(const char *path);

/* Returns the row of the calling process, created at the first call; NULL if there are too many processes. */
struct plim_machine_process *plim_machine_enter(struct plim_machine *machine);
/* The process ends: frees everything it holds. */
void plim_machine_leave(struct plim_machine *machine, struct plim_machine_process *process);

/* Allocates memory of a GPU. Returns false if there is not enough, even after freeing that of dead processes. */
bool plim_machine_allocate(struct plim_machine *machine, struct plim_machine_process *process, int gpu,
                           int64_t bytes);
void plim_machine_free(struct plim_machine *machine, struct plim_machine_process *process, int gpu,
                       int64_t bytes);
int64_t plim_machine_free_bytes(struct plim_machine *machine, int gpu);

/* Counts an allocation (count 1) or a free (count -1), after its memory was allocated. */
void plim_machine_count(struct plim_machine *machine, struct plim_machine_process *process, int gpu,
                        int64_t bytes, int count);

/* Adds a note if there is room. Returns false if it is not new or there is no room. */
bool plim_machine_note(struct plim_machine *machine, const char *text);

#endif
