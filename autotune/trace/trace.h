/* Reads the event file of a program on the virtual GPU (devices/virtual/record/stream.h) as a trace.
 *
 * The program can write to the files, so they may contain anything; they are read in bounded memory. */
#ifndef PLIM_AUTOTUNE_TRACE_TRACE_H
#define PLIM_AUTOTUNE_TRACE_TRACE_H

#include "workloads/recording/trace.h"

/* Reads the only file in `folder` in which memory was allocated, up to the last recognised training step, after which
 * the program may have been ending. `trace` is zeroed except for `point` and `gpu`; the caller finishes it in any case.
 * PLIM_UNSUPPORTED: no process of the program used a GPU, several did, or there were more events than can be recorded;
 * PLIM_IO. */
enum plim_status plim_trace_read(const char *folder, struct plim_trace *trace,
                                 struct plim_error *err) PLIM_MUST_CHECK;

/* Reads one file of a folder (a descriptor) into the trace, as far as it is written by now. *lost is the number of
 * events that were dropped. The trace of a file of another kind is empty. PLIM_NOMEM is the only error. */
enum plim_status plim_trace_read_file(int folder, const char *name, struct plim_trace *trace,
                                      uint64_t *lost) PLIM_MUST_CHECK;

#endif
