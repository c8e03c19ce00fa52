/* The virtual machine that a program sees under `exec`: its GPUs, who holds what of them, and what
 * happened there.
 *
 * It is one block of memory that plimsoll makes and every process of the program maps, so that ranks
 * share GPUs, and so that plimsoll reads what the program did while it runs and after it was
 * killed. Nothing of it is on a disk. A process that dies gives its memory back when another process next
 * looks for memory, as with a real driver.
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

/* What a program can ask of a GPU. Bytes; clocks in kHz. */
struct plim_machine_gpu {
    char name[64];    /* as the driver calls it */
    uint8_t uuid[16];
    int32_t compute_capability; /* 10 * major + minor */
    int32_t multiprocessors, threads_per_multiprocessor, blocks_per_multiprocessor;
    int32_t shared_per_multiprocessor, shared_per_block_optin, l2_bytes;
    int32_t clock_khz, memory_clock_khz, memory_bus_bits;
    int32_t ascending;      /* where its memory lies (catalogue.h) */
    double half_flops, tf32_flops; /* of tensor cores, per second; 0: none, or not known */
    int64_t total_bytes;    /* as cudaMemGetInfo reports it */
    int64_t withheld_bytes; /* of these, what no process gets: the margin */
    int64_t context_bytes;  /* what the framework takes in each process that uses the GPU */
    int64_t communicator_bytes; /* what NCCL takes for each communicator of several ranks that is used */
    /* below: under the lock */
    int64_t held_bytes, peak_bytes; /* by all processes, contexts included */
    int32_t peak_contexts;          /* so many of these at the peak */
};

/* The last request for memory that the GPU did not have. */
struct plim_machine_refusal {
    int64_t count;        /* so many; 0: none */
    int64_t unmet;        /* of these, asked again at once and refused again */
    int64_t replanned;    /* of the unmet, those after which cuDNN came next (out_of_memory.h) */
    int64_t limited;      /* of the unmet, those that the GPU never saw: of the framework's own limit */
    int64_t asked_bytes, free_bytes;
    int32_t gpu;
    int32_t pending;      /* threads whose last refusal may still be met */
};

/* Allocations of one order of size: those of row i have at least 2^i MiB, and less than twice that;
 * the first row has all below 2 MiB. */
enum { PLIM_MACHINE_SIZES = 20 };

struct plim_machine_size {
    int64_t count, bytes;
};

/* One process of the program. It stays when the process has died: its numbers are the answer. */
struct plim_machine_process {
    int32_t pid;    /* 0: a free row */
    bool ended;     /* it holds nothing any more */
    uint64_t born;  /* its start time, because pids come again */
    int64_t held_bytes[PLIM_MACHINE_GPUS], peak_bytes[PLIM_MACHINE_GPUS];
    uint32_t contexts; /* a bit for each GPU that it uses */
    struct plim_machine_refusal refusal;
    int64_t peak_all_bytes; /* of all GPUs together */
    /* Its allocations on each GPU: now, and when it held the most of that. */
    struct plim_machine_size live[PLIM_MACHINE_GPUS][PLIM_MACHINE_SIZES],
        at_peak[PLIM_MACHINE_GPUS][PLIM_MACHINE_SIZES];
    /* Written by the process alone, read by any other: */
    volatile int64_t launches, allocations, frees;
    volatile int64_t steps;      /* training steps, as far as they are recognised (steps.h) */
    volatile int32_t rule;       /* by what: enum plim_steps_rule */
    volatile bool steady;        /* its memory has reached what it will stay at */
    volatile bool still;         /* the same, but that its allocator may still lay blocks out anew (steps.h) */
    volatile bool in_epoch;      /* its last step was within a loop over a data loader of PyTorch's, */
    volatile int64_t epochs;     /* and came after so many others that were trained from */
    volatile int32_t waiting_optimizers; /* PyTorch's, with parameters on a GPU of which no step is known */
    volatile double step_seconds; /* host time of one, the median */
    volatile double leak_bytes;   /* how much more is held after each one; 0: no more */
};

struct plim_machine {
    uint32_t version;
    int32_t gpu_count;
    int32_t repetitions, accumulation; /* for the verdict `steady`: how many steps have to show it,
                                        * and the micro-steps of one; 0: no verdict, not known */
    int32_t epoch_steps; /* loops that are trained from end after so many steps, and `steady` has to show
                          * for as many of them as steps; 0: whole ones */
    pthread_mutex_t lock;
    struct plim_machine_gpu gpus[PLIM_MACHINE_GPUS];
    struct plim_machine_process processes[PLIM_MACHINE_PROCESSES];
    /* What a person has to know: functions that are not implemented, and so on. Each once. */
    uint32_t note_count;
    char notes[PLIM_MACHINE_NOTES][PLIM_MACHINE_NOTE_BYTES];
    struct plim_machine_questions questions;
    int32_t given_count;
    struct plim_machine_given given[PLIM_MACHINE_GIVEN];
};

/* --- plimsoll's side -------------------------------------------------------------------------- */

/* Fills the numbers of a GPU of the catalogue, `index` of its kind. */
void plim_machine_gpu_fill(struct plim_machine_gpu *gpu, const struct plim_gpu *model, int index);

/* Makes a machine with these GPUs. `path`, of at least 64 bytes, is for PLIM_MACHINE_VARIABLE and
 * good while this process lives. NULL: no memory for it. */
struct plim_machine *plim_machine_create(const struct plim_machine_gpu *gpus, int count,
                                         int *fd, char *path);
void plim_machine_destroy(struct plim_machine *machine, int fd); /* NULL is fine */

/* The program may write anything into the machine, at any time. plimsoll reads it through these: a
 * copy whose numbers are in range (0 to 1 PiB, counts and bytes alike; finite), whose texts end. Its
 * size cannot be changed. A free row is all zero. `rule` is as the program left it. */
void plim_machine_read_process(const struct plim_machine *machine, int row,
                               struct plim_machine_process *out);
/* What all processes together held of a GPU, at most, beside the context of one of them; `contexts`: how many had one
 * then. */
int64_t plim_machine_read_peak(const struct plim_machine *machine, int gpu, int *contexts);
/* At most `most`, from the first; returns how many there are. */
uint32_t plim_machine_read_notes(const struct plim_machine *machine,
                                 char (*out)[PLIM_MACHINE_NOTE_BYTES], uint32_t most);

/* --- the program's side ----------------------------------------------------------------------- */

/* The machine's lock, for its own parts. */
void plim_machine_lock(struct plim_machine *machine);
void plim_machine_unlock(struct plim_machine *machine);

/* NULL: there is none at this path. */
struct plim_machine *plim_machine_attach(const char *path);

/* The row of the calling process, a new one the first time. NULL: too many processes. */
struct plim_machine_process *plim_machine_enter(struct plim_machine *machine);
/* The process ends: it gives everything back. */
void plim_machine_leave(struct plim_machine *machine, struct plim_machine_process *process);

/* Takes memory of a GPU; false: it does not have that much. What dead processes held is looked for
 * before it is refused. */
bool plim_machine_take(struct plim_machine *machine, struct plim_machine_process *process, int gpu,
                       int64_t bytes);
void plim_machine_give(struct plim_machine *machine, struct plim_machine_process *process, int gpu,
                       int64_t bytes);
int64_t plim_machine_free_bytes(struct plim_machine *machine, int gpu);

/* An allocation was made or given back (count -1), after its memory was taken. */
void plim_machine_count(struct plim_machine *machine, struct plim_machine_process *process, int gpu,
                        int64_t bytes, int count);

/* Writes a line down while there is room; false: it was there already. */
bool plim_machine_note(struct plim_machine *machine, const char *text);

#endif
