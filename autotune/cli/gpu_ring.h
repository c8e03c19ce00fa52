/* The speed of an all-reduce among GPUs of one kind on this machine: measured once, then kept by the store. */
#ifndef PLIM_AUTOTUNE_CLI_GPU_RING_H
#define PLIM_AUTOTUNE_CLI_GPU_RING_H

#include "autotune/base/stop.h"
#include "devices/open.h"
#include "kept.h"

/* Where the spec's GPUs communicate and `uri` is one of several of its kind that CUDA shows: takes the kept
 * measurement, or measures now, which takes some seconds, at most a quarter of the time that `stop` leaves. At
 * most as many GPUs take part as the spec has on one machine. GPUs that other processes use are left alone.
 *
 * It never fails: `out` then says why the all-reduce is modelled, and is zeroed where there is nothing to measure. */
void plim_gpu_ring_take(const struct plim_request *request, const struct plim_spec *spec,
                        const char *uri, const struct plim_stop *stop, const struct plim_log *log,
                        struct plim_ring *out);

#endif
