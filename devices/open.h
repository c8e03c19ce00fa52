/* Opening a device by its URI, whatever kind it is; the only place that knows the kinds there are. */
#ifndef PLIM_DEVICES_OPEN_H
#define PLIM_DEVICES_OPEN_H

#include "all_reduce.h"
#include "device.h"

/* The kind of device that a URI names, by what stands before its first ':' or ','. */
enum plim_device_scheme {
    PLIM_SCHEME_NONE, /* no device of ours */
    PLIM_SCHEME_SIM,  /* "sim:NAME": simulated, computes nothing */
    PLIM_SCHEME_HOST, /* "host": computes on this machine's processor */
    PLIM_SCHEME_CUDA  /* "cuda", "cuda:N": a GPU */
};

/* Says nothing of what follows the scheme, nor whether this build has such devices. */
enum plim_device_scheme plim_uri_scheme(const char *uri);

/* Opens "sim:NAME", "host" or "cuda:N", each with ",memory=24GiB" behind it or without; what may
 * stand there and which errors follow is said in sim.h, host.h and cuda.h. PLIM_UNSUPPORTED: this
 * build has no such devices, or no build has. */
enum plim_status plim_device_open(const char *uri, struct plim_device **out,
                                  struct plim_error *err) PLIM_MUST_CHECK;

/* Measures among the first `gpus` that CUDA shows: some seconds, and what NCCL takes of each of them
 * stays taken until the process ends. It may never return: do it in a process of its own.
 * PLIM_NODEVICE: there is no NCCL, or fewer GPUs; PLIM_UNSUPPORTED: NCCL fails, or this build has no CUDA; any
 * other: what the driver said, in `err`. */
enum plim_status plim_all_reduce_measure(int gpus, struct plim_all_reduce *out,
                                         struct plim_error *err) PLIM_MUST_CHECK;

#endif
