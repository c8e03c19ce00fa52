/* From runs of a program at several sizes to one stream (recording.h). Of each run there is a trace (trace.h), which is
 * cut where the fewest blocks are held. */
#ifndef PLIM_WORKLOADS_RECORDING_JOIN_H
#define PLIM_WORKLOADS_RECORDING_JOIN_H

#include "trace.h"

/* Joins traces of one program, in the order of their points (batch, then seq). Sizes that are smaller
 * and have another sequence of events are left out (`out->from`); where all are of one batch, none may
 * be. PLIM_DIFFERS: too few sizes have the sequence of the largest one. PLIM_UNSTABLE: the program does not repeat,
 * or memory goes on growing. The zeroed `out` is to be finished
 * in any case. */
enum plim_status plim_trace_join(const struct plim_trace *traces, size_t count,
                                 struct plim_recorded_stream *out,
                                 struct plim_error *err) PLIM_MUST_CHECK;

/* Finds the loops of a stream that was joined of steps of PLIM_TRACE_MICRO_STEPS micro-steps. The
 * traces are of points at which it holds, with other numbers of micro-steps: the first with one more.
 * What the stream then says has to be what each of them did, event by event. PLIM_DIFFERS: it is not. */
enum { PLIM_TRACE_MICRO_STEPS = PLIM_RECORDED_OUTSIDE + 1 };
enum plim_status plim_trace_loops(struct plim_recorded_stream *stream,
                                  const struct plim_trace *traces, const int64_t *accumulations,
                                  size_t count, struct plim_error *err) PLIM_MUST_CHECK;

#endif
