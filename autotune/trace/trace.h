/* What a program wrote down on the virtual GPU (devices/virtual/record/stream.h), read as a trace.
 *
 * The files are the program's: they may be anything, and are read in bounded memory.
 */
#ifndef PLIM_AUTOTUNE_TRACE_TRACE_H
#define PLIM_AUTOTUNE_TRACE_TRACE_H

#include "workloads/recording/trace.h"

/* Reads the one file of `folder` in which memory was allocated, up to the last training step that was
 * recognised: behind it the program may be ending. `trace->point` is the caller's; the zeroed trace is
 * to be finished in any case. PLIM_UNSUPPORTED: no process of the program used a GPU, several did, or
 * one did more than is recorded; PLIM_IO. */
enum plim_status plim_trace_read(const char *folder, struct plim_trace *trace,
                                 struct plim_error *err) PLIM_MUST_CHECK;

/* Reads one file of a folder (its descriptor) into the zeroed trace, as far as it is written by now; `lost`: events
 * that are not in it. One that is no such file has no events. PLIM_NOMEM. */
enum plim_status plim_trace_read_file(int folder, const char *name, struct plim_trace *trace,
                                      uint64_t *lost) PLIM_MUST_CHECK;

#endif
