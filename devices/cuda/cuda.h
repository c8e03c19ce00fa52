/* The `cuda` device: an NVIDIA GPU, on the driver API.
 *
 * One process, one GPU, one context, one stream. Segments come from cuMemAlloc, ranges from the driver's
 * virtual memory management; never from managed memory, which hides that a job does not fit. It launches
 * our kernels (kernels.h), cuBLASLt and cuDNN. Time is measured with events.
 *
 * CUDA does not survive a fork, and a broken context cannot be repaired: open this device in a
 * process of its own.
 */
#ifndef PLIM_DEVICES_CUDA_H
#define PLIM_DEVICES_CUDA_H

#include "devices/device.h"

/* Opens what stands behind "cuda" in a URI:
 *   "" or ":0"         the first GPU that CUDA shows (CUDA_VISIBLE_DEVICES decides)
 *   ":1,memory=24GiB"  the second one, as if it had 24 GiB; more than it has is PLIM_INVALID
 * PLIM_NODEVICE: no driver, no such GPU, or one that cannot be used now; `err` says what helps.
 * PLIM_BUSY: other processes are in the way (exclusive mode, an MPS server that is recovering), which may
 * pass. PLIM_OOM: the GPU is too full for a context. */
enum plim_status plim_cuda_open(const char *uri_tail, struct plim_device **out,
                                struct plim_error *err) PLIM_MUST_CHECK;

/* The state of the GPU's memory. Free is what the driver reports, whoever uses the rest. Where
 * free_bytes + held_bytes is less than free_bytes_at_open, the difference was taken by modules,
 * libraries or another process, or was not given back. */
struct plim_cuda_memory_info {
    int64_t total_bytes;        /* as the driver says, also where memory= makes it less */
    int64_t free_bytes_at_open; /* after the context was made, before anything else */
    int64_t free_bytes;
    int64_t held_bytes; /* segments (whole 2 MiB) and mapped pages */
};
enum plim_status plim_cuda_read_memory_info(struct plim_device *device,
                                            struct plim_cuda_memory_info *out) PLIM_MUST_CHECK;

/* The bytes that this process uses besides its segments and pages: context, modules, libraries.
 * `others_bytes`: what other processes hold on the GPU, which CUDA cannot tell (NVML can). */
int64_t plim_cuda_overhead_bytes(const struct plim_cuda_memory_info *numbers, int64_t others_bytes);

/* Runs one of the launches that kernels.h plans for an operation, to test our kernel where the device
 * itself would use a library. */
struct plim_cuda_launch;
enum plim_status plim_cuda_launch(struct plim_device *device,
                                  const struct plim_cuda_launch *launch) PLIM_MUST_CHECK;

/* For --version: the driver and the libraries found on this machine, or why one is missing, one line
 * each. Neither initialises CUDA nor opens a GPU. Returns `out`, always terminated. */
char *plim_cuda_versions_text(char *out, size_t size);

#endif
