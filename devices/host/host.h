/* The host device: operations are computed in plain C (reference.h), in the memory of this machine.
 *
 * Memory is an arena with a limit: segments take whole pages of 2 MiB like cudaMalloc, reserved ranges only what is
 * mapped. New memory is filled with 0xff bytes, NaN in every floating-point type, so that reads of uninitialised memory
 * become visible. Unmapped and returned memory is returned to the operating system.
 *
 * For needs.h it looks like an A100 (compute capability 8.0, 108 multiprocessors of 2048 threads), so the engine
 * allocates the same as for that GPU. Time is the wall clock. */
#ifndef PLIM_DEVICES_HOST_HOST_H
#define PLIM_DEVICES_HOST_HOST_H

#include "devices/device.h"

/* Opens the device named by the text after "host" in a URI: "" for 4 GiB, or ",memory=2GiB". */
enum plim_status plim_host_open(const char *uri_tail, struct plim_device **out,
                                struct plim_error *err) PLIM_MUST_CHECK;

#endif
