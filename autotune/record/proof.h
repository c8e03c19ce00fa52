/* Which allocator a program uses: found by comparing a run with the program's own allocator with the
 * recording. */
#ifndef PLIM_AUTOTUNE_RECORD_PROOF_H
#define PLIM_AUTOTUNE_RECORD_PROOF_H

#include "workloads/recording/trace.h"

/* `recorded`: the run without a caching allocator at the same point; `own`: the one with it. Sets
 * `allocator` and `proof` of the recording. `device` is a URI. */
enum plim_status plim_record_prove(const struct plim_trace *recorded, const struct plim_trace *own,
                                   const struct plim_recorded_stream *stream, const char *device,
                                   struct plim_recording *recording,
                                   struct plim_error *err) PLIM_MUST_CHECK;

/* The most that PyTorch's allocator reserves when the stream is played to it at a point. 0: the device is too small. */
enum plim_status plim_record_peak(const struct plim_recorded_stream *stream,
                                  struct plim_recorded_point point, const char *device,
                                  int64_t *bytes, struct plim_error *err) PLIM_MUST_CHECK;

#endif
