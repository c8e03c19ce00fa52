/* Opens a device of any kind by its URI; only this file knows which kinds exist. */
#ifndef PLIM_DEVICES_OPEN_H
#define PLIM_DEVICES_OPEN_H

#include "all_reduce.h"
#include "device.h"

/* The kind of device that a URI names, by the text before its first ':' or ','. */
enum plim_device_scheme {
    PLIM_SCHEME_NONE, /* not one of our devices */
    PLIM_SCHEME_SIM,  /* "sim:NAME": simulated, computes nothing */
    PLIM_SCHEME_HOST, /* "host": computes on this machine's processor */
    PLIM_SCHEME_CUDA  /* "cuda", "cuda:N": a GPU */
};

/* Does not check the text after the scheme, nor whether this build has such devices. */
enum plim_device_scheme plim_uri_scheme(const char *uri);

/* Opens "sim:NAME", "host" or "cuda:N", each optionally followed by ",memory=24GiB"; for syntax and errors see sim.h,
 * host.h and cuda.h. PLIM_UNSUPPORTED: this build has no such devices, or no build has. */
enum plim_status plim_device_open(const char *uri, struct plim_device **out,
                                  struct plim_error *err) PLIM_MUST_CHECK;

/* Measures the all-reduce among the first `gpus` visible GPUs. Takes some seconds, and the memory that NCCL allocates
 * on each GPU stays in use until the process ends. It may hang: call it in a separate process. PLIM_NODEVICE: there is
 * no NCCL, or there are fewer GPUs; PLIM_UNSUPPORTED: NCCL fails, or this build has no CUDA; any other status: the
 * driver's error, in `err`. */
enum plim_status plim_all_reduce_measure(int gpus, struct plim_all_reduce *out,
                                         struct plim_error *err) PLIM_MUST_CHECK;

#endif
