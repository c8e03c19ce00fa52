/* The virtual machine that a program sees under `exec`: its GPUs, which process holds which memory, and
 * what happened.
 *
 * It is one block of memory that plimsoll creates and every process of the program maps, so that ranks
 * share GPUs, and so that plimsoll can read what the program did while it runs and after it was
 * killed. Nothing of it is on disk. The GPU memory of a process that died is given back when another
 * process next requests memory, as with a real driver.
 *
 * Errors are the CUDA driver's; plim_machine_* calls take the machine's lock, which survives the
 * death of its holder.
 */
#ifndef PLIM_DEVICES_VIRTUAL_MACHINE_MACHINE_H
#define PLIM_DEVICES_VIRTUAL_MACHINE_MACHINE_H

#include "question.h"
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct plim_gpu; /* devices/catalogue/catalogue.h */

/* The environment variable in which the program's processes find the machine: a path. */
#define PLIM_MACHINE_VARIABLE "PLIMSOLL_MACHINE"

enum { PLIM_MACHINE_GPUS = 16, PLIM_MACHINE_PROCESSES = 256, PLIM_MACHINE_NOTES = 64,
       PLIM_MACHINE_NOTE_BYTES = 160, PLIM_MACHINE_VERSION = 11 };

/* The properties and the memory of a GPU. Sizes in bytes, clocks in kHz. */
struct plim_machine_gpu {
    char name[64];    /* as the driver calls it */
    uint8_t uuid[16];
    int32_t compute_capability; /* 10 * major + minor */
    int32_t multiprocessors, threads_per_multiprocessor, blocks_per_multiprocessor;
    int32_t shared_per_multiprocessor, shared_per_block_optin, l2_bytes;
    int32_t clock_khz, memory_clock_khz, memory_bus_bits;
    int32_t ascending;      /* placement of its memory (catalogue.h) */
    double half_flops, tf32_flops; /* of tensor cores, per second; 0: none, or not known */
    int64_t total_bytes;    /* as cudaMemGetInfo reports it */
    int64_t withheld_bytes; /* the part of it that no process gets: the margin */
    int64_t context_bytes;  /* what the framework takes in each process that uses the GPU */
    int64_t communicator_bytes; /* what NCCL takes for each communicator of several ranks once it is used */
    /* below: under the lock */
    int64_t held_bytes, peak_bytes; /* by all processes, contexts included */
    int32_t peak_contexts;          /* the number of contexts at the peak */
};

/* Refused requests for memory: counts, and the last one. */
struct plim_machine_refusal {
    int64_t count;        /* refusals; 0: none */
    int64_t unmet;        /* refusals that were final (out_of_memory.h) */
    int64_t replanned;    /* unmet refusals after which a cuDNN plan came next (out_of_memory.h) */
    int64_t limited;      /* unmet refusals by the framework's own limit, which the GPU never saw */
    int64_t asked_bytes, free_bytes; /* of the last refusal */
    int32_t gpu;
    int32_t pending;      /* threads whose last refusal may still be met */
};

/* Allocations by size: row i counts those of at least 2^i MiB and less than twice that;
 * row 0 counts all below 2 MiB. */
enum { PLIM_MACHINE_SIZES = 20 };

struct plim_machine_size {
    int64_t count, bytes;
};

/* One process of the program. The row stays when the process has died: its numbers are the result. */
struct plim_machine_process {
    int32_t pid;    /* 0: a free row */
    bool ended;     /* it no longer holds anything */
    uint64_t born;  /* its start time, because pids are reused */
    int64_t held_bytes[PLIM_MACHINE_GPUS], peak_bytes[PLIM_MACHINE_GPUS];
    uint32_t contexts; /* a bit for each GPU that it uses */
    struct plim_machine_refusal refusal;
    int64_t peak_all_bytes; /* of all GPUs together */
    /* Its allocations on each GPU: now, and at its peak on that GPU. */
    struct plim_machine_size live[PLIM_MACHINE_GPUS][PLIM_MACHINE_SIZES],
        at_peak[PLIM_MACHINE_GPUS][PLIM_MACHINE_SIZES];
    /* Written by the process alone, read by any other: */
    volatile int64_t launches, allocations, frees;
    volatile int64_t steps;      /* training steps, as far as they are recognised (steps.h) */
    volatile int32_t rule;       /* how they are recognised: enum plim_steps_rule */
    volatile bool steady;        /* its memory has reached its final level */
    volatile bool still;         /* the same, except that its allocator may still rearrange blocks (steps.h) */
    volatile bool in_epoch;      /* its last step was within a loop over a PyTorch data loader, */
    volatile int64_t epochs;     /* after this many other loops with training steps */
    volatile int32_t waiting_optimizers; /* PyTorch optimizers with parameters on a GPU that have not stepped yet */
    volatile double step_seconds; /* host time of a step, the median */
    volatile double leak_bytes;   /* by how much the held bytes grow with each step; 0: no growth */
};

struct plim_machine {
    uint32_t version;
    int32_t gpu_count;
    int32_t repetitions, accumulation; /* for the verdict `steady`: how many steps it needs (0: no verdict),
                                        * and the micro-steps of a step (0: not known) */
    int32_t epoch_steps; /* loops with training steps end after this many steps, and `steady` needs as many
                          * loops as steps; 0: loops run to their end */
    pthread_mutex_t lock;
    struct plim_machine_gpu gpus[PLIM_MACHINE_GPUS];
    struct plim_machine_process processes[PLIM_MACHINE_PROCESSES];
    /* Notes for the user: functions that are not implemented, and so on. Each once. */
    uint32_t note_count;
    char notes[PLIM_MACHINE_NOTES][PLIM_MACHINE_NOTE_BYTES];
    struct plim_machine_questions questions;
    int32_t given_count;
    struct plim_machine_given given[PLIM_MACHINE_GIVEN];
};

/* --- plimsoll's side -------------------------------------------------------------------------- */

/* Fills in the properties of a GPU of the catalogue, the `index`-th of its kind. */
void plim_machine_gpu_fill(struct plim_machine_gpu *gpu, const struct plim_gpu *model, int index);

/* Creates a machine with these GPUs. `path`, of at least 64 bytes, receives the value for PLIM_MACHINE_VARIABLE,
 * valid while this process lives. NULL: no memory for it. */
struct plim_machine *plim_machine_create(const struct plim_machine_gpu *gpus, int count,
                                         int *fd, char *path);
void plim_machine_destroy(struct plim_machine *machine, int fd); /* NULL is fine */

/* The program may write anything into the machine at any time. plimsoll reads it through these functions,
 * which give a copy with numbers in range (0 to 1 PiB, counts and bytes alike; finite) and terminated
 * texts. The program cannot change the machine's size. A free row is all zero. `rule` is unchecked. */
void plim_machine_read_process(const struct plim_machine *machine, int row,
                               struct plim_machine_process *out);
/* The most that all processes together held on a GPU, less the context of one of them; `contexts`: how many contexts
 * there were then. */
int64_t plim_machine_read_peak(const struct plim_machine *machine, int gpu, int *contexts);
/* Copies the first notes, at most `most`; returns how many were copied. */
uint32_t plim_machine_read_notes(const struct plim_machine *machine,
                                 char (*out)[PLIM_MACHINE_NOTE_BYTES], uint32_t most);

/* --- the program's side ----------------------------------------------------------------------- */

/* The machine's lock, for the files that implement it. */
void plim_machine_lock(struct plim_machine *machine);
void plim_machine_unlock(struct plim_machine *machine);

/* NULL: there is none at this path. */
struct plim_machine *plim_machine_attach(const char *path);

/* The row of the calling process, created at the first call. NULL: too many processes. */
struct plim_machine_process *plim_machine_enter(struct plim_machine *machine);
/* The process ends: it gives everything back. */
void plim_machine_leave(struct plim_machine *machine, struct plim_machine_process *process);

/* Takes memory of a GPU; false: it does not have that much. Before refusing, memory of dead processes is
 * given back. */
bool plim_machine_take(struct plim_machine *machine, struct plim_machine_process *process, int gpu,
                       int64_t bytes);
void plim_machine_give(struct plim_machine *machine, struct plim_machine_process *process, int gpu,
                       int64_t bytes);
int64_t plim_machine_free_bytes(struct plim_machine *machine, int gpu);

/* An allocation was made or given back (count -1), after its memory was taken. */
void plim_machine_count(struct plim_machine *machine, struct plim_machine_process *process, int gpu,
                        int64_t bytes, int count);

/* Adds a note while there is room; false: it was there already. */
bool plim_machine_note(struct plim_machine *machine, const char *text);

#endif
