/* Reads the event file of a program on the virtual GPU (devices/virtual/record/stream.h) as a trace.
 *
 * The program can write to the files: they may contain anything, and are read in bounded memory.
 */
#ifndef PLIM_AUTOTUNE_TRACE_TRACE_H
#define PLIM_AUTOTUNE_TRACE_TRACE_H

#include "workloads/recording/trace.h"

/* Reads the one file in `folder` in which memory was allocated, up to the last training step that was
 * recognised: after it the program may be ending. The caller sets `trace->point`; finish the zeroed trace
 * in any case. PLIM_UNSUPPORTED: no process of the program used a GPU, several did, or
 * one did more than can be recorded; PLIM_IO. */
enum plim_status plim_trace_read(const char *folder, struct plim_trace *trace,
                                 struct plim_error *err) PLIM_MUST_CHECK;

/* Reads one file of a folder (its descriptor) into the zeroed trace, as far as it is written by now; `lost`: events
 * that are not in it. A file of another kind has no events. PLIM_NOMEM. */
enum plim_status plim_trace_read_file(int folder, const char *name, struct plim_trace *trace,
                                      uint64_t *lost) PLIM_MUST_CHECK;

#endif
