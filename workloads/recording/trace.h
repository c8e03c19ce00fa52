/* What one run of a program did, in its order, and its steady step: where the end of the trace repeats. Of such traces
 * at several sizes a recording is joined (join.h). */
#ifndef PLIM_WORKLOADS_RECORDING_TRACE_H
#define PLIM_WORKLOADS_RECORDING_TRACE_H

#include "devices/cost.h"
#include "recording.h"

enum plim_traced_kind {
    PLIM_TRACED_ALLOCATION,
    PLIM_TRACED_FREE,
    PLIM_TRACED_EMPTY_CACHE, /* the allocator gives back what it keeps */
    PLIM_TRACED_LAUNCH
};

struct plim_traced {
    enum plim_traced_kind kind;
    /* Bytes; freeing: of the last allocations the N-th, from 1; of a launch what tells it from
     * others; else 0. */
    int64_t value;
    size_t costs;    /* how many launches with a cost came before it */
    int cuda_stream; /* of an allocation: that it is for */
    /* Of an allocation, of 0 bytes too: what a reduction asks for here, and which of the trace's. */
    enum plim_recorded_scratch scratch;
    uint32_t reduction;
};

/* How many blocks more are held behind it: 1, 0 or -1. */
static inline int plim_traced_change(const struct plim_traced *event)
{
    return event->kind == PLIM_TRACED_ALLOCATION ? 1 : event->kind == PLIM_TRACED_FREE ? -1 : 0;
}

/* Which allocation of the trace a free gives back, from 0 on; `allocated` came before it. SIZE_MAX: it is no free, or
 * of none of them. */
static inline size_t plim_traced_freed(const struct plim_traced *event, size_t allocated)
{
    bool is_one = event->kind == PLIM_TRACED_FREE && event->value > 0 && (size_t)event->value <= allocated;
    return is_one ? allocated - (size_t)event->value : SIZE_MAX;
}

/* From one training step that was recognised to the next. */
struct plim_traced_step {
    double host_seconds; /* the host's, in them */
    double work_seconds; /* of these, in which the program did something else than launching */
    size_t costs;        /* how many launches with a cost came before its end */
    size_t events;       /* the same of events */
    int64_t reserved_bytes; /* of a trace of blocks: the most that their segments had by then; else 0 */
};

struct plim_trace {
    struct plim_recorded_point point;
    const struct plim_device_info *gpu; /* it was recorded on; NULL: reductions are not looked at */
    PLIM_ARRAY(struct plim_traced) events;
    PLIM_ARRAY(struct plim_cost) costs; /* of launches, in their order */
    PLIM_ARRAY(struct plim_reduce_launch) reductions;
    size_t steps; /* training steps that were recognised */
    PLIM_ARRAY(struct plim_traced_step) timed; /* as many */
};

void plim_trace_finish(struct plim_trace *trace); /* NULL and zeroed are fine */

enum { PLIM_TRACE_STARTING_STEPS = 2 }; /* in which things are done for the first time */

/* plim_recorded_stream.host_work of the stream that these traces are joined to: the line of least squares through what
 * the steps of each have at least. A step of them has so many micro-steps. `host_speed`: of the machine; 0: not
 * known. */
void plim_trace_host_work(const struct plim_trace *traces, size_t count, int64_t micro_steps,
                          double host_speed, int64_t host_work[2]);

enum { PLIM_TRACE_REPEATS = 3 }; /* how often a step has to have come at least */

/* Puts frees in a row, which nothing happens between, into one order: that in which a program's tables
 * of hashes give blocks back changes from run to run, and changes nothing for an allocator. */
void plim_trace_sort_frees(struct plim_traced *events, size_t count);

/* The first `count` events, but not into a row of frees, which is put into order as a whole. */
size_t plim_trace_cut(const struct plim_trace *trace, size_t count);

/* The steady step of a trace, whose frees are sorted: from the event `start` on it repeats every `period` events, to
 * the end. PLIM_UNSTABLE: it does not. */
enum plim_status plim_trace_steady(const struct plim_trace *trace, size_t *start, size_t *period,
                                   struct plim_error *err) PLIM_MUST_CHECK;

/* Leaves out what comes behind the steps that repeat, where the last ones do otherwise (the program evaluated just
 * before it was ended): `left_out` of them, 0 where these hold no more bytes (it wrote a log). PLIM_UNSTABLE, as
 * plim_trace_steady(): nothing before them repeats either. */
enum plim_status plim_trace_settle(struct plim_trace *trace, size_t *left_out,
                                   struct plim_error *err) PLIM_MUST_CHECK;

/* Leaves out what each of the steps that repeat takes and never gives back (a loss that is kept for a log), up to
 * 64 KiB of a step, so that memory does not go on growing. `bytes`: of a step; 0: nothing is left out. PLIM_NOMEM is
 * the only failure. */
enum plim_status plim_trace_leave_out_kept(struct plim_trace *trace, int64_t *bytes,
                                           struct plim_error *err) PLIM_MUST_CHECK;

#endif
