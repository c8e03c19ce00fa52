/* A trace: the events of one run of a program, in order, which end with repetitions of its steady step. Traces at
 * several sizes are joined into a recording (join.h). */
#ifndef PLIM_WORKLOADS_RECORDING_TRACE_H
#define PLIM_WORKLOADS_RECORDING_TRACE_H

#include "devices/cost.h"
#include "recording.h"

enum plim_traced_kind {
    PLIM_TRACED_ALLOCATION,
    PLIM_TRACED_FREE,
    PLIM_TRACED_EMPTY_CACHE, /* the allocator frees its cache */
    PLIM_TRACED_LAUNCH
};

struct plim_traced {
    enum plim_traced_kind kind;
    /* Bytes; of a free: the N-th last allocation, from 1; of a launch: its token; otherwise 0. */
    int64_t value;
    size_t costs;    /* number of launches with a cost before it */
    int cuda_stream; /* of an allocation: its CUDA stream */
    /* Of an allocation (also of 0 bytes): the kind of a reduction's scratch, and the index of the reduction. */
    enum plim_recorded_scratch scratch;
    uint32_t reduction;
};

/* Returns the change in the number of held blocks: 1, 0 or -1. */
static inline int plim_traced_change(const struct plim_traced *event)
{
    return event->kind == PLIM_TRACED_ALLOCATION ? 1 : event->kind == PLIM_TRACED_FREE ? -1 : 0;
}

/* Returns the index of the allocation that a free refers to, after `allocated` allocations. SIZE_MAX: not a free, or of
 * no allocation in the trace. */
static inline size_t plim_traced_freed(const struct plim_traced *event, size_t allocated)
{
    bool is_one = event->kind == PLIM_TRACED_FREE && event->value > 0 && (size_t)event->value <= allocated;
    return is_one ? allocated - (size_t)event->value : SIZE_MAX;
}

/* The interval from one recognised training step to the next. */
struct plim_traced_step {
    double host_seconds; /* CPU time of the host */
    double work_seconds; /* the part in which the program did something other than launching */
    size_t costs;        /* number of launches with a cost before its end */
    size_t events;       /* number of events before its end */
    int64_t reserved_bytes; /* in a trace of blocks: the largest size of the segments so far; otherwise 0 */
};

struct plim_trace {
    struct plim_recorded_point point;
    const struct plim_device_info *gpu; /* on which it was recorded; NULL: reductions are not recognised */
    PLIM_ARRAY(struct plim_traced) events;
    PLIM_ARRAY(struct plim_cost) costs; /* of launches, in order */
    PLIM_ARRAY(struct plim_reduce_launch) reductions;
    size_t steps; /* number of training steps that were recognised */
    PLIM_ARRAY(struct plim_traced_step) timed; /* one per step */
};

void plim_trace_finish(struct plim_trace *trace); /* NULL and zeroed are allowed */

enum { PLIM_TRACE_STARTING_STEPS = 2 }; /* steps in which things are done for the first time */

/* Computes plim_recorded_stream.host_work for the stream that is joined from these traces: the least-squares line
 * through the smallest value among the steps of each trace. Steps have `micro_steps` micro-steps. `host_speed`: of the
 * machine; 0: unknown. */
void plim_trace_host_work(const struct plim_trace *traces, size_t count, int64_t micro_steps,
                          double host_speed, int64_t host_work[2]);

enum { PLIM_TRACE_REPEATS = 3 }; /* number of times that a step has to occur at least */

/* Sorts adjacent frees: their order, which depends on a program's hash tables, changes from run to run, and does not
 * matter to an allocator. */
void plim_trace_sort_frees(struct plim_traced *events, size_t count);

/* Returns the position at `count` events, moved so that it does not split a sequence of adjacent frees. */
size_t plim_trace_cut(const struct plim_trace *trace, size_t count);

/* Finds the steady step of a trace, whose frees are sorted: from the event `start` on it repeats every `period` events,
 * until the end. PLIM_UNSTABLE: it does not. */
enum plim_status plim_trace_steady(const struct plim_trace *trace, size_t *start, size_t *period,
                                   struct plim_error *err) PLIM_MUST_CHECK;

/* Drops the events after the steps that repeat, if the last steps differ (the program evaluated just before it was
 * ended). Stores how many in `left_out`; 0 if they hold no more bytes (it wrote a log). PLIM_UNSTABLE, as from
 * plim_trace_steady(): nothing before them repeats either. */
enum plim_status plim_trace_drop_end(struct plim_trace *trace, size_t *left_out,
                                     struct plim_error *err) PLIM_MUST_CHECK;

/* Drops allocations that each repeating step makes and never frees (a loss that is kept for a log), up to 64 KiB per
 * step, so that memory does not keep growing. Stores their bytes per step in `bytes`; 0: nothing is dropped. Fails only
 * with PLIM_NOMEM. */
enum plim_status plim_trace_drop_retained(struct plim_trace *trace, int64_t *bytes,
                                          struct plim_error *err) PLIM_MUST_CHECK;

#endif
