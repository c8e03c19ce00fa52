/* Merges recordings of one program, which cover different values of the axes, recorded at different times or on
 * different machines. */
#ifndef PLIM_WORKLOADS_RECORDING_MERGE_H
#define PLIM_WORKLOADS_RECORDING_MERGE_H

#include "recording.h"

/* Moves the streams of `from` into `into`; finish both afterwards. `into` keeps its proof and host speed. PLIM_INVALID,
 * with nothing changed: they differ in program, command, compute capability, kind of allocator, batches or lengths; a
 * combination of values is in both; or the axes have too many combinations. PLIM_NOMEM: `into` can only be finished. */
enum plim_status plim_recording_merge(struct plim_recording *into, struct plim_recording *from,
                                      struct plim_error *err) PLIM_MUST_CHECK;

#endif
