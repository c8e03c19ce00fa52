/* Runs of one program at several sizes, with the same sequence of events.
 *
 * A workspace (of cuDNN's convolutions) is taken and given back at once, at some sizes and at others not
 * at all: another algorithm needs none. Such a pair of events is put into the runs that lack it, with 0
 * bytes: nothing is allocated there. The same where another block is held meanwhile: PyTorch's sums take
 * a buffer and semaphores (aten/src/ATen/native/cuda/Reduce.cuh) when several thread blocks share one.
 */
#ifndef PLIM_WORKLOADS_RECORDING_ALIGN_H
#define PLIM_WORKLOADS_RECORDING_ALIGN_H

#include "trace.h"

/* The allocations and frees of a trace, and where they begin to repeat. */
struct plim_traced_memory {
    const struct plim_trace *trace;
    PLIM_ARRAY(struct plim_traced) events;
    size_t start, period;
    bool agrees; /* with the largest size */
};

/* Puts the free of a block that nothing was allocated behind in front of the frees beside it. Frees in a row
 * are in any order (plim_trace_sort_frees()), and so what is taken for a moment is a pair. */
void plim_traced_pair(struct plim_traced *events, size_t count);

/* Adds the pairs that each run lacks, as far as it does as the last one in all else. PLIM_NOMEM is the
 * only failure. */
enum plim_status plim_traced_align(struct plim_traced_memory *runs, size_t count) PLIM_MUST_CHECK;

/* Fills launches and work of a stream that was joined of these runs, whose step are the events [from, to).
 * The launches are those of the last run; their numbers come from all runs that launch alike there, or in the
 * same order. */
enum plim_status plim_traced_join_costs(const struct plim_traced_memory *const *runs, size_t count,
                                        size_t from, size_t to, struct plim_recorded_stream *out,
                                        struct plim_error *err) PLIM_MUST_CHECK;

#endif
