/* Who makes blocks of a program's segments: found out by holding a run with the program's own
 * allocator beside the recording. */
#ifndef PLIM_AUTOTUNE_RECORD_PROOF_H
#define PLIM_AUTOTUNE_RECORD_PROOF_H

#include "workloads/recording/trace.h"

/* `recorded`: the run without a caching allocator at the same point; `own`: the one with it. Sets
 * `allocator` and `proof` of the recording. `device` is a URI. */
enum plim_status plim_record_prove(const struct plim_trace *recorded, const struct plim_trace *own,
                                   const struct plim_recorded_stream *stream, const char *device,
                                   struct plim_recording *recording,
                                   struct plim_error *err) PLIM_MUST_CHECK;

/* What PyTorch's allocator reserves at most when it is played the stream at a point. 0: the device is too small. */
enum plim_status plim_record_peak(const struct plim_recorded_stream *stream,
                                  struct plim_recorded_point point, const char *device,
                                  int64_t *bytes, struct plim_error *err) PLIM_MUST_CHECK;

#endif
