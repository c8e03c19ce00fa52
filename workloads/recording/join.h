/* Joins runs of a program at several sizes into one stream (recording.h). Each run has a trace (trace.h); the step is
 * cut where the fewest blocks are held. */
#ifndef PLIM_WORKLOADS_RECORDING_JOIN_H
#define PLIM_WORKLOADS_RECORDING_JOIN_H

#include "trace.h"

/* Joins traces of one program, in the order of their points (batch, then seq). Smaller sizes with another sequence of
 * events are left out (`out->from`); if all have the same batch, none may be. PLIM_DIFFERS: too few sizes have the
 * sequence of the largest one. PLIM_UNSTABLE: the program does not repeat, or memory keeps growing. Finish the zeroed
 * `out` in any case. */
enum plim_status plim_trace_join(const struct plim_trace *traces, size_t count,
                                 struct plim_recorded_stream *out,
                                 struct plim_error *err) PLIM_MUST_CHECK;

/* Finds the loops of a stream that was joined from steps of PLIM_TRACE_MICRO_STEPS micro-steps. The traces have other
 * numbers of micro-steps, the first one more, at points for which the stream holds. The stream must then reproduce each
 * of them, event by event; otherwise fails with PLIM_DIFFERS. */
enum { PLIM_TRACE_MICRO_STEPS = PLIM_RECORDED_OUTSIDE + 1 };
enum plim_status plim_trace_loops(struct plim_recorded_stream *stream,
                                  const struct plim_trace *traces, const int64_t *accumulations,
                                  size_t count, struct plim_error *err) PLIM_MUST_CHECK;

#endif
