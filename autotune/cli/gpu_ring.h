/* The speed of an all-reduce among GPUs of one kind on this machine: measured once, then kept by the store. */
#ifndef PLIM_AUTOTUNE_CLI_GPU_RING_H
#define PLIM_AUTOTUNE_CLI_GPU_RING_H

#include "autotune/base/stop.h"
#include "devices/open.h"
#include "kept.h"

/* If the spec's GPUs communicate and CUDA shows several GPUs of the kind of `uri`: takes the kept measurement, or
 * measures now, which takes some seconds, at most a quarter of the time that `stop` leaves. At most as many GPUs take
 * part as the spec has on one machine. GPUs that other processes use are not used.
 *
 * This never fails: `out` then has the reason why the all-reduce is modelled. It is zeroed if there is nothing to
 * measure. */
void plim_gpu_ring_measure(const struct plim_request *request, const struct plim_spec *spec,
                           const char *uri, const struct plim_stop *stop, const struct plim_log *log,
                           struct plim_ring *out);

#endif
