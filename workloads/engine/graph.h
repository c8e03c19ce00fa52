/* The state of one training process: memory, autograd mode, autocast, pools.
 *
 * One graph stands for one Python process that trains on one device. It owns no device and no
 * allocator, only what it takes from them.
 */
#ifndef PLIM_ENGINE_GRAPH_H
#define PLIM_ENGINE_GRAPH_H

#include "devices/caching_allocator.h"
#include "tensor.h"
#include "workloads/train/replay.h"
#include <stdio.h>

enum halt {
    HALT_NONE,
    HALT_OOM,         /* no memory: nothing runs any more */
    HALT_UNSUPPORTED, /* an operation this card cannot run */
    HALT_FAILED,      /* the device failed, or host memory ran out */
    HALT_EARLY_STOP   /* a checkpointed region was recomputed far enough (checkpoint.h) */
};

enum thread { THREAD_MAIN, THREAD_AUTOGRAD, THREAD_COUNT };

struct checkpoint_frame;

/* Objects of one size, taken and given back one at a time, released all at once. */
struct pool {
    size_t size;
    void *free; /* list through the first word */
    struct pool_slab *slabs;
    int64_t live;
};

struct graph {
    struct plim_device *device;
    struct plim_allocator *allocator;

    enum halt halted;
    enum plim_status failure; /* of HALT_FAILED */
    struct tensor *poison;    /* what operations return while halted */
    struct storage poison_storage;
    const char *halting_op;  /* the operation whose launch halted it */
    int64_t oom_asked_bytes; /* of HALT_OOM; 0: for the code of halting_op */
    enum plim_memory_class oom_class;

    bool grad_enabled;
    enum thread thread; /* whose cuBLAS handle and workspace */
    bool autocast;
    enum plim_dtype autocast_dtype;
    int autocast_depth;
    struct tensor **cast_cache; /* parameters whose .cast is set */
    size_t cast_count, cast_capacity;

    enum plim_memory_class fresh_class; /* class of new storages: temporaries unless said */
    int64_t class_bytes[PLIM_MEMORY_CLASS_COUNT];
    int64_t class_bytes_at_peak[PLIM_MEMORY_CLASS_COUNT];
    int64_t peak_allocated;

    struct storage *blas_workspace[THREAD_COUNT], *blaslt_workspace[THREAD_COUNT];
    bool tf32;           /* torch.backends.cuda.matmul.allow_tf32 */
    uint64_t seed;       /* of the next random operation */
    bool causal_in_time; /* a mask is there that the clock takes for a plain causal one */

    uint64_t sequence;                  /* sequence number of the next node */
    struct checkpoint_frame *frame;     /* saving goes through it */
    struct checkpoint_frame *recompute; /* or recomputing for it */
    struct checkpoint_frame *frames, *spare_frames;

    struct pool tensors, storages, nodes;
    struct node **heap; /* ready queue of the backward pass */
    size_t heap_count, heap_capacity;
    uint32_t pass;     /* number of the backward pass */
    struct node *dead; /* nodes waiting for release: long chains must not recurse */
    bool burying;

    FILE *trace; /* every allocator event, or NULL */
    int64_t trace_next_id;
};

enum plim_status graph_create(struct plim_device *device, struct plim_allocator *allocator,
                              struct graph **out, struct plim_error *err) PLIM_MUST_CHECK;
void graph_destroy(struct graph **g);

/* As after creation: every tensor, storage and node is gone (their memory too). */
void graph_reset(struct graph *g);

/* Launches an operation; a failure halts the graph. */
void graph_launch(struct graph *g, const struct plim_op *op);
void graph_halt(struct graph *g, enum halt why);
/* Halts with HALT_FAILED for this reason, which the replay then returns; the first one counts. */
void graph_fail(struct graph *g, enum plim_status status);

/* x.item() of a scalar: the host waits for it. Zero on a simulated device, where nothing is
 * computed, and when halted. */
double graph_item(struct graph *g, const struct tensor *x);
/* Copies `bytes` from the host to the start of `x`, which is contiguous. */
void graph_write(struct graph *g, struct tensor *x, const void *from, size_t bytes);

/* The workspace of this thread's cuBLAS handle, taken at its first matmul and kept. */
struct storage *graph_blas_workspace(struct graph *g);
/* The same of cuBLASLt, which a matmul with a bias epilogue uses; the handle's own comes first. */
struct storage *graph_blaslt_workspace(struct graph *g);

/* Memory for `bytes`; NULL (and halted) when there is none. */
struct storage *storage_get(struct graph *g, int64_t bytes);
void storage_put(struct graph *g, struct storage *s);
void storage_saved(struct graph *g, struct storage *s, int change);

/* Bytes allocated now, as torch.cuda.memory_allocated(). */
static inline int64_t graph_allocated(const struct graph *g)
{
    return plim_allocator_statistics(g->allocator)->allocated;
}

/* Autocast: enter and leave a region; leaving the outermost drops the cast cache. */
void autocast_enter(struct graph *g, enum plim_dtype dtype);
void autocast_leave(struct graph *g);
/* `x` in autocast's type, where autocast is on and `x` is of another floating type: the cached copy
 * of a leaf parameter, a fresh one else; `x` itself otherwise. */
struct tensor *autocast_low(struct graph *g, struct tensor *x);
/* `x` in fp32 where autocast is on and `x` is of a lower type. */
struct tensor *autocast_fp32(struct graph *g, struct tensor *x);

void *pool_take(struct pool *p);
void pool_give(struct pool *p, void *object);
void pool_reset(struct pool *p); /* keeps the slabs */
void pool_finish(struct pool *p);

#endif
