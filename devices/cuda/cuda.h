/* The `cuda` device: a GPU of NVIDIA's, on the driver API.
 *
 * One process, one GPU, one context, one stream. Segments are cuMemAlloc, ranges are the driver's
 * virtual memory; never managed memory, which hides that it does not fit. What is launched are our
 * kernels (kernels.h), cuBLASLt and cuDNN. Time is measured with events.
 *
 * CUDA does not survive a fork, a broken context does not survive at all: open this device in a
 * process of its own.
 */
#ifndef PLIM_DEVICES_CUDA_H
#define PLIM_DEVICES_CUDA_H

#include "devices/device.h"

/* Opens what stands behind "cuda" in a URI:
 *   "" or ":0"         the first GPU that CUDA shows (CUDA_VISIBLE_DEVICES decides)
 *   ":1,memory=24GiB"  the second one, as if it had 24 GiB; more than it has is PLIM_INVALID
 * PLIM_NODEVICE: no driver, no such GPU, or one that cannot be used now; `err` says what helps.
 * PLIM_BUSY: other processes are in the way (exclusive mode, an MPS server that recovers), which may
 * pass. PLIM_OOM: the GPU is too full for a context. */
enum plim_status plim_cuda_open(const char *uri_tail, struct plim_device **out,
                                struct plim_error *err) PLIM_MUST_CHECK;

/* What is known of the GPU's memory. Free is what the driver says, whoever takes the rest. Where
 * free_bytes + held_bytes is less than free_bytes_at_open, modules or libraries have taken the
 * rest, or another process, or it was not given back. */
struct plim_cuda_memory_info {
    int64_t total_bytes;        /* as the driver says, also where memory= makes it less */
    int64_t free_bytes_at_open; /* after the context was made, before anything else */
    int64_t free_bytes;
    int64_t held_bytes; /* segments (whole 2 MiB) and mapped pages */
};
enum plim_status plim_cuda_read_memory_info(struct plim_device *device,
                                            struct plim_cuda_memory_info *out) PLIM_MUST_CHECK;

/* What this process takes beside its segments and pages, in bytes: context, modules, libraries.
 * `others_bytes`: what other processes hold of the GPU, which CUDA does not know (NVML does). */
int64_t plim_cuda_overhead_bytes(const struct plim_cuda_memory_info *numbers, int64_t others_bytes);

/* One of the launches that kernels.h plans for an operation, as it is: a test of our kernel where the
 * device itself would take a library's. */
struct plim_cuda_launch;
enum plim_status plim_cuda_launch(struct plim_device *device,
                                  const struct plim_cuda_launch *launch) PLIM_MUST_CHECK;

/* For --version: the driver and the libraries that are found here, or why there are none, a line
 * each. Neither initialises CUDA nor opens a GPU. Returns `out`, always terminated. */
char *plim_cuda_versions_text(char *out, size_t size);

#endif
