/* The `cuda` device: an NVIDIA GPU, on the driver API.
 *
 * One process, one GPU, one context, one stream. Segments are allocated by cuMemAlloc, ranges by the driver's virtual
 * memory management; never as managed memory, which would hide that a job does not fit. It launches our kernels
 * (kernels.h), cuBLASLt and cuDNN. Time is measured with events.
 *
 * CUDA does not survive a fork, and a broken context cannot be repaired: open this device in a separate process. */
#ifndef PLIM_DEVICES_CUDA_H
#define PLIM_DEVICES_CUDA_H

#include "devices/device.h"

/* Opens the device named by the text after "cuda" in a URI:
 *   "" or ":0"         the first visible GPU (see CUDA_VISIBLE_DEVICES)
 *   ":1,memory=24GiB"  the second one, as if it had 24 GiB; PLIM_INVALID if it has less
 * PLIM_NODEVICE: no driver, no such GPU, or one that cannot be used now; `err` tells what helps. PLIM_BUSY: other
 * processes prevent it (exclusive mode, an MPS server that is recovering), which may be temporary. PLIM_OOM: the GPU is
 * too full for a context. */
enum plim_status plim_cuda_open(const char *uri_tail, struct plim_device **out,
                                struct plim_error *err) PLIM_MUST_CHECK;

/* The state of the GPU's memory. Free memory is what the driver reports, whoever uses the rest. If free_bytes +
 * held_bytes is less than free_bytes_at_open, the difference is used by modules, libraries or another process, or was
 * not returned. */
struct plim_cuda_memory_info {
    int64_t total_bytes;        /* as reported by the driver, even if memory= is less */
    int64_t free_bytes_at_open; /* after creating the context, before anything else */
    int64_t free_bytes;
    int64_t held_bytes; /* segments (whole 2 MiB) and mapped pages */
};
enum plim_status plim_cuda_read_memory_info(struct plim_device *device,
                                            struct plim_cuda_memory_info *out) PLIM_MUST_CHECK;

/* Returns the bytes that this process uses in addition to its segments and pages: context, modules, libraries.
 * `others_bytes`: memory of other processes on the GPU, which CUDA does not report (NVML does). */
int64_t plim_cuda_overhead_bytes(const struct plim_cuda_memory_info *numbers, int64_t others_bytes);

/* Runs one of the launches that kernels.h plans for an operation, to test our kernel where the device itself would use
 * a library. */
struct plim_cuda_launch;
enum plim_status plim_cuda_launch(struct plim_device *device,
                                  const struct plim_cuda_launch *launch) PLIM_MUST_CHECK;

/* For --version: the driver and the libraries found on this machine, or why one is missing, one line each. Neither
 * initialises CUDA nor opens a GPU. Returns `out`, always terminated. */
char *plim_cuda_versions_text(char *out, size_t size);

#endif
