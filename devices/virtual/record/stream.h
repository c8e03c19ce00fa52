/* What a program did on the virtual GPU, event by event: the raw material of a recording (workloads/recording).
 *
 * A process whose environment names a folder (PLIM_STREAM_VARIABLE) writes one file there, named by its process id: a
 * header followed by one struct plim_stream_event per event, in order. Under PYTORCH_NO_CUDA_MEMORY_CACHING=1 the
 * storage of each tensor is one allocation of exactly its size; otherwise allocations are the segments of PyTorch's
 * caching allocator.
 *
 * If the environment names a folder for blocks (PLIM_STREAM_BLOCKS_VARIABLE) instead, the file has the blocks that
 * PyTorch's caching allocator hands out, and the steps; exec's trials are judged by them (autotune/trace/forecast.h).
 *
 * The file is memory-mapped, so it is complete up to the point where a process is killed. Disk space is reserved as the
 * file grows; if the disk is full, or PLIM_STREAM_MOST events are written, further events are only counted in `lost`.
 *
 * Units: bytes; microseconds of CPU time, which is affected neither by other programs on the machine nor by waiting for
 * other threads. The file is read on the machine that wrote it and has its byte order. */
#ifndef PLIM_DEVICES_VIRTUAL_RECORD_STREAM_H
#define PLIM_DEVICES_VIRTUAL_RECORD_STREAM_H

#include "devices/cost.h"
#include "devices/reduce_launch.h"

/* The environment variables that name the folder; the first takes precedence. */
#define PLIM_STREAM_VARIABLE "PLIMSOLL_RECORDING"
#define PLIM_STREAM_BLOCKS_VARIABLE "PLIMSOLL_BLOCKS"

enum {
    PLIM_STREAM_VERSION = 5,
    PLIM_STREAM_HEAD_BYTES = 4096,
    PLIM_STREAM_MOST = 1 << 23,
    PLIM_STREAM_MOST_BLOCKS = 1 << 21,
};

enum plim_stream_kind {
    PLIM_STREAM_ALLOCATION,  /* what: its address; bytes: size requested */
    PLIM_STREAM_FREE,        /* what: the same address */
    PLIM_STREAM_KERNEL,      /* what: token of the kernel; bytes: 0 */
    PLIM_STREAM_LIBRARY,     /* what: token of the function and its form; bytes: 0 */
    PLIM_STREAM_GRAPH,       /* a launch of a CUDA graph; bytes: 0 */
    PLIM_STREAM_COPY,        /* a copy to device memory; what: 0 */
    /* A training step was recognised, which ended shortly before. bytes: in a file of blocks, the largest total size so
     * far of the segments of PyTorch's allocator; otherwise 0. */
    PLIM_STREAM_STEP,
    PLIM_STREAM_COST,        /* the cost of a launch; what: plim_stream_head_of(); bytes: its first number */
    PLIM_STREAM_NUMBER,      /* bytes: the next number of the last cost; missing ones are 0 */
    PLIM_STREAM_REDUCE,      /* the next kernel is PyTorch's reduce_kernel: plim_stream_reduce_of() */
    PLIM_STREAM_EMPTY_CACHE, /* PyTorch's allocator released its cached memory */
};

struct plim_stream_event {
    uint16_t kind;
    uint16_t cuda_stream; /* of an allocation or a reduction: PyTorch's stream it is for (torch_stream.h) */
    uint32_t microseconds; /* CPU time of the thread since its previous event; 0 for events that describe a launch */
    uint64_t what;
    int64_t bytes;
};

struct plim_stream_head {
    char magic[8]; /* "plimstrm" */
    uint32_t version, event_bytes;
    _Atomic uint64_t count, lost; /* events in the file; events that were dropped */
};

/* Writes one event; does nothing if no folder is set. The caller holds a lock. */
void plim_stream_write(enum plim_stream_kind kind, uint64_t what, int64_t bytes);
void plim_stream_allocation(uint64_t at, int64_t bytes, int cuda_stream);
void plim_stream_step(void);

/* PyTorch's allocator hands out a block, or takes one back (bytes not positive). `reserved_bytes`: total size of its
 * segments afterwards. The caller holds a lock. */
void plim_stream_block(uint64_t at, int64_t bytes, int64_t reserved_bytes, int gpu, int cuda_stream);

/* True if everything except blocks is being written; true if only blocks and steps are. */
bool plim_stream_is_on(void);
bool plim_stream_has_blocks(void);

/* Work of the virtual GPU between the two calls, in this thread, does not count as the program's time: a real GPU would
 * do it, or nobody would (computing values). */
void plim_stream_pause(void);
void plim_stream_resume(void);

/* Writes the cost of this thread's last launch. The caller holds a lock. */
void plim_stream_cost(const struct plim_cost *cost);

/* Writes the configuration of the launch of reduce_kernel that follows. `shares`: the last two allocations are the
 * partial results and semaphores of blocks that share an output. The caller holds a lock. */
void plim_stream_reduce(const struct plim_reduce_launch *launch, bool shares, int cuda_stream);

/* Decodes an event of plim_stream_reduce(). */
static inline struct plim_reduce_launch plim_stream_reduce_of(const struct plim_stream_event *event,
                                                              bool *shares)
{
    *shares = event->what >> 17 & 1;
    return (struct plim_reduce_launch){.outputs = event->bytes >> 32, .inputs = event->bytes & INT32_MAX,
                                       .partial_bytes = event->what & 255, .vector = event->what >> 8 & 255,
                                       .threads_share = event->what >> 16 & 1};
}

/* Encode a cost without its numbers as one number, and decode it; false if it is not valid. */
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
