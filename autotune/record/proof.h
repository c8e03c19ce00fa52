/* Finds out which allocator a program uses, by comparing a run with the program's own allocator with the recording. */
#ifndef PLIM_AUTOTUNE_RECORD_PROOF_H
#define PLIM_AUTOTUNE_RECORD_PROOF_H

#include "workloads/recording/trace.h"

/* Sets `allocator` and `proof` of the recording. `recorded` is the run without a caching allocator, `own` the run with
 * it at the same point; `device` is a URI. */
enum plim_status plim_record_prove(const struct plim_trace *recorded, const struct plim_trace *own,
                                   const struct plim_recorded_stream *stream, const char *device,
                                   struct plim_recording *recording,
                                   struct plim_error *err) PLIM_MUST_CHECK;

/* Finds the most bytes that PyTorch's allocator reserves when the stream is played to it at a point; 0 if the device is
 * too small. */
enum plim_status plim_record_peak(const struct plim_recorded_stream *stream,
                                  struct plim_recorded_point point, const char *device,
                                  int64_t *bytes, struct plim_error *err) PLIM_MUST_CHECK;

#endif
