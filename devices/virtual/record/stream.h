/* What a program did on the virtual GPU, event by event: the raw material of a recording
 * (workloads/recording).
 *
 * A process whose environment names a folder (PLIM_STREAM_VARIABLE) writes one file there, named by
 * its process id: a head, then one struct plim_stream_event for each thing that it did, in its order.
 * Run under PYTORCH_NO_CUDA_MEMORY_CACHING=1, each tensor's storage is one allocation of exactly its
 * bytes; run without, allocations are the segments of PyTorch's caching allocator.
 *
 * Where it names one for blocks (PLIM_STREAM_BLOCKS_VARIABLE) instead, the file has the blocks that PyTorch's caching
 * allocator hands out of its segments, and the steps: what a trial of exec is judged by (autotune/exec/forecast.h).
 *
 * The file is mapped, so that all that happened is there when the process is killed. It is grown with
 * room on the disk behind it; where the disk is full, or PLIM_STREAM_MOST events are written, the rest
 * is counted in `lost` and left out.
 *
 * Units: bytes; microseconds of the processor, which what else runs on the machine does not change, nor
 * that a thread waits for another. The file is read on the machine that wrote it: its
 * numbers are in the order of its processor.
 */
#ifndef PLIM_DEVICES_VIRTUAL_RECORD_STREAM_H
#define PLIM_DEVICES_VIRTUAL_RECORD_STREAM_H

#include "devices/cost.h"
#include "devices/reduce_launch.h"

/* The environment variables with the folder, of which the first goes before. */
#define PLIM_STREAM_VARIABLE "PLIMSOLL_RECORDING"
#define PLIM_STREAM_BLOCKS_VARIABLE "PLIMSOLL_BLOCKS"

enum {
    PLIM_STREAM_VERSION = 5,
    PLIM_STREAM_HEAD_BYTES = 4096,
    PLIM_STREAM_MOST = 1 << 23,
    PLIM_STREAM_MOST_BLOCKS = 1 << 21,
};

enum plim_stream_kind {
    PLIM_STREAM_ALLOCATION,  /* what: its address; bytes: as asked for */
    PLIM_STREAM_FREE,        /* what: the same address */
    PLIM_STREAM_KERNEL,      /* what: the same for the same kernel; bytes: 0 */
    PLIM_STREAM_LIBRARY,     /* what: the same for the same function and form; bytes: 0 */
    PLIM_STREAM_GRAPH,       /* a launch of a CUDA graph; bytes: 0 */
    PLIM_STREAM_COPY,        /* to device memory; what: 0 */
    /* A training step was recognised: it ended somewhat before. bytes: of a file of blocks, the most so far that the
     * segments of PyTorch's allocator had; else 0. */
    PLIM_STREAM_STEP,
    PLIM_STREAM_COST,        /* of a launch; what: the head of a cost; bytes: its first number */
    PLIM_STREAM_NUMBER,      /* bytes: the next number of the last cost; those that lack are 0 */
    PLIM_STREAM_REDUCE,      /* the kernel that follows is PyTorch's reduce_kernel: plim_stream_reduce_of() */
    PLIM_STREAM_EMPTY_CACHE, /* the program's allocator gave back what it had kept */
};

struct plim_stream_event {
    uint16_t kind;
    uint16_t cuda_stream; /* of an allocation, or a reduction: that it is for, as PyTorch has it (torch_stream.h) */
    uint32_t microseconds; /* of its thread since the thread's event before; 0 of what a launch tells more */
    uint64_t what;
    int64_t bytes;
};

struct plim_stream_head {
    char magic[8]; /* "plimstrm" */
    uint32_t version, event_bytes;
    _Atomic uint64_t count, lost; /* of events: those in the file, those that are not */
};

/* Writes one event down; nothing where there is no folder. The caller has a lock. */
void plim_stream_write(enum plim_stream_kind kind, uint64_t what, int64_t bytes);
void plim_stream_allocation(uint64_t at, int64_t bytes, int cuda_stream);
void plim_stream_step(void);

/* PyTorch's allocator hands out a block, or takes one back (0 bytes); what its segments then have. The caller has a
 * lock. */
void plim_stream_block(uint64_t at, int64_t bytes, int64_t reserved_bytes, int gpu, int cuda_stream);

/* Is everything written but blocks? Or blocks alone? */
bool plim_stream_is_on(void);
bool plim_stream_has_blocks(void);

/* What the virtual GPU does between the two, in this thread, is no time of the program's: a GPU does it, or no GPU does
 * (values that are worked out). */
void plim_stream_pause(void);
void plim_stream_resume(void);

/* Writes down what a launch by this thread costs. The caller has a lock. */
void plim_stream_cost(const struct plim_cost *cost);

/* Writes down how a launch of reduce_kernel that comes next is configured; `shares`: its last two allocations are the
 * partial results and the semaphores of blocks that share an output. The caller has a lock. */
void plim_stream_reduce(const struct plim_reduce_launch *launch, bool shares, int cuda_stream);

/* The same, read back. */
static inline struct plim_reduce_launch plim_stream_reduce_of(const struct plim_stream_event *event,
                                                              bool *shares)
{
    *shares = event->what >> 17 & 1;
    return (struct plim_reduce_launch){.outputs = event->bytes >> 32, .inputs = event->bytes & INT32_MAX,
                                       .partial_bytes = event->what & 255, .vector = event->what >> 8 & 255,
                                       .threads_share = event->what >> 16 & 1};
}

/* A cost without its numbers, as one number, and back; false: it is none. */
static inline uint64_t plim_stream_head_of(const struct plim_cost *cost)
{
    return (uint64_t)(cost->kind | cost->type << 8 | cost->causal << 16 | cost->in_autograd << 17 |
                      cost->in_graph << 18);
}

static inline bool plim_stream_cost_of(uint64_t head, struct plim_cost *out)
{
    *out = (struct plim_cost){.kind = head & 255, .type = head >> 8 & 255,
                              .causal = head >> 16 & 1, .in_autograd = head >> 17 & 1,
                              .in_graph = head >> 18 & 1};
    return head >> 19 == 0 && out->kind < PLIM_COST_KINDS && out->type < PLIM_COST_TYPES;
}

#endif
