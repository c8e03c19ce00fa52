/* Gives the runs of one program at several sizes the same sequence of events.
 *
 * A workspace (of cuDNN's convolutions) is allocated and immediately freed at some sizes, and not allocated at others,
 * where another algorithm needs none. Such a pair of events is added to the runs that lack it, with 0 bytes, which
 * means that nothing is allocated. The same is done if another block is allocated and freed in between: PyTorch's sums
 * allocate a buffer and semaphores (aten/src/ATen/native/cuda/Reduce.cuh) if several thread blocks share a sum. */
#ifndef PLIM_WORKLOADS_RECORDING_ALIGN_H
#define PLIM_WORKLOADS_RECORDING_ALIGN_H

#include "trace.h"

/* The allocations and frees of a trace, and the events at which it starts to repeat. */
struct plim_traced_memory {
    const struct plim_trace *trace;
    PLIM_ARRAY(struct plim_traced) events;
    size_t start, period;
    bool agrees; /* has the same events as the run of the largest size */
};

/* If a block is freed before anything else is allocated, moves its free before the adjacent frees, so that a
 * short-lived block is a pair of adjacent events. The order of adjacent frees does not matter
 * (plim_trace_sort_frees()). */
void plim_traced_pair(struct plim_traced *events, size_t count);

/* Adds to each run the pairs that it lacks if it equals the last run in everything else. Fails only with PLIM_NOMEM. */
enum plim_status plim_traced_align(struct plim_traced_memory *runs, size_t count) PLIM_MUST_CHECK;

/* Sets launches and work of a stream that was joined from these runs, whose step is the events [from, to). The launches
 * are those of the last run; their numbers are fitted to all runs with the same launches, or launches in the same
 * order. */
enum plim_status plim_traced_join_costs(const struct plim_traced_memory *const *runs, size_t count,
                                        size_t from, size_t to, struct plim_recorded_stream *out,
                                        struct plim_error *err) PLIM_MUST_CHECK;

#endif
