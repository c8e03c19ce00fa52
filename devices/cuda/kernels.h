/* Our CUDA kernels, as launches: of which kernels an operation consists, and with what arguments.
 *
 * Planning is arithmetic on shapes and addresses: it needs neither CUDA nor a GPU. Every kernel has one struct as
 * parameter, passed by value and declared in kernels/args_*.h; launches carry it as bytes. Kernels allocate nothing,
 * use only the operation's operands and scratch, and give the same bits for the same launch. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_H
#define PLIM_DEVICES_CUDA_KERNELS_H

#include "devices/device.h"

struct plim_cuda_launch {
    const char *kernel; /* the name for cuModuleGetFunction */
    uint32_t grid[3], block[3];
    uint32_t shared_bytes; /* dynamic; at most 48 KiB below compute capability 8.0, otherwise 99 KiB */
    const void *args;      /* valid only during the call of emit */
    size_t args_bytes;
};

typedef enum plim_status (*plim_cuda_emit)(void *user, const struct plim_cuda_launch *launch);

/* Emits the launches of an operation, in order; each reads what those before it wrote. An operation on empty arrays has
 * none. PLIM_UNSUPPORTED: none of our kernels computes it (a matmul, an element type that makes no sense). A status of
 * `emit` other than PLIM_OK ends it and is returned. */
enum plim_status plim_cuda_plan(const struct plim_device_info *info, const struct plim_op *op,
                                plim_cuda_emit emit, void *user) PLIM_MUST_CHECK;

/* True if our kernels compute this ATTENTION or ATTENTION_BACKWARD on the GPU's tensor cores; otherwise they use fp32
 * units. */
bool plim_cuda_attention_has_tensor_cores(const struct plim_device_info *info,
                                          const struct plim_op *op);

#endif
