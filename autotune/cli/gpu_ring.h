/* How GPUs of a kind reduce gradients on this machine: measured once, then kept by the store. */
#ifndef PLIM_AUTOTUNE_CLI_GPU_RING_H
#define PLIM_AUTOTUNE_CLI_GPU_RING_H

#include "autotune/base/stop.h"
#include "devices/open.h"
#include "kept.h"

/* Where the spec's GPUs talk and `uri` is one of several of its kind that CUDA shows: what they are known to
 * do, or what they do now, which takes some seconds, at most a quarter of those that the stop leaves. At
 * most as many take part as the spec has on one machine. GPUs on which others work are left alone.
 *
 * Nothing of it fails: `out` then says why it is modelled, and is zeroed where there is nothing to measure. */
void plim_gpu_ring_take(const struct plim_request *request, const struct plim_spec *spec,
                        const char *uri, const struct plim_stop *stop, const struct plim_log *log,
                        struct plim_ring *out);

#endif
