/* The CUDA driver: launches, attributes of kernels, tensor maps. */
#include "driver_context.h"
#include "devices/virtual/work/fat_binary.h"
#include <string.h>

/* --- launches --------------------------------------------------------------------------------- */

/* Rejects launches that a GPU would reject. */
static int launch(struct plim_kernel *kernel, const struct plim_launch_config *launch)
{
    int failed = plim_driver_enter();
    if (failed) return failed;
    const struct plim_machine_gpu *gpu = plim_self_gpu(plim_self_device());
    if (!kernel) return GPU_INVALID_HANDLE;
    if (!plim_launch_is_possible(launch) ||
        launch->shared_bytes > (size_t)gpu->shared_per_block_optin)
        return GPU_INVALID_VALUE;
    return plim_kernel_launch(kernel, launch);
}

/* `extra` is the alternative way to pass arguments, packed in a buffer; they are not read then. */
ANSWER int cuLaunchKernel(struct plim_kernel *kernel, unsigned grid_x, unsigned grid_y,
                          unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                          unsigned shared_bytes, void *stream, void **arguments, void **extra)
{
    (void)extra;
    return launch(kernel, &(struct plim_launch_config){{grid_x, grid_y, grid_z},
                                                       {block_x, block_y, block_z},
                                                       shared_bytes, stream, arguments});
}
PER_THREAD(cuLaunchKernel, _ptsz)

ANSWER int cuLaunchCooperativeKernel(struct plim_kernel *kernel, unsigned grid_x, unsigned grid_y,
                                     unsigned grid_z, unsigned block_x, unsigned block_y,
                                     unsigned block_z, unsigned shared_bytes, void *stream,
                                     void **arguments)
{
    return cuLaunchKernel(kernel, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes,
                          stream, arguments, NULL);
}
PER_THREAD(cuLaunchCooperativeKernel, _ptsz)

/* CUlaunchConfig; attributes (clusters and the like) follow. */
struct launch_config {
    struct gpu_dim3 grid, block;
    unsigned shared_bytes;
    void *stream;
    const struct launch_attribute {
        int id;
        unsigned padding;
        struct gpu_dim3 value;
        unsigned rest[13];
    } *attributes;
    unsigned count;
};

ANSWER int cuLaunchKernelEx(const struct launch_config *config, struct plim_kernel *kernel,
                            void **arguments, void **extra)
{
    (void)extra;
    return launch(kernel, &(struct plim_launch_config){config->grid, config->block,
                                                       config->shared_bytes, config->stream,
                                                       arguments});
}
PER_THREAD(cuLaunchKernelEx, _ptsz)

/* --- attributes of kernels -------------------------------------------------------------------- */

enum function_attribute { /* CUfunction_attribute */
    MAX_THREADS = 0, REGISTERS = 4, PTX_VERSION = 5, BINARY_VERSION = 6, MAX_DYNAMIC_SHARED = 8,
    CARVEOUT = 9, FUNCTION_ATTRIBUTES = 16,
};

/* The number of registers is unknown: reports 32, which allows 1024 threads. */
ANSWER int cuFuncGetAttribute(int *value, int attribute, struct plim_kernel *kernel)
{
    int failed = plim_driver_ready();
    if (failed) return failed;
    if (!kernel) return GPU_INVALID_HANDLE;
    int capability = plim_self_gpu(plim_self_device())->compute_capability;
    switch (attribute) {
    case MAX_THREADS: *value = 1024; break;
    case REGISTERS: *value = 32; break;
    case PTX_VERSION:
    case BINARY_VERSION: *value = plim_fat_binary_code(kernel->module, capability); break;
    case MAX_DYNAMIC_SHARED: *value = 49152; break;
    case CARVEOUT: *value = -1; break;
    default: *value = 0;
    }
    return attribute >= 0 && attribute < FUNCTION_ATTRIBUTES ? GPU_OK : GPU_INVALID_VALUE;
}

ANSWER int cuKernelGetAttribute(int *value, int attribute, struct plim_kernel *kernel, int device)
{
    (void)device;
    return cuFuncGetAttribute(value, attribute, kernel);
}

static int set_attribute(const struct plim_kernel *kernel, int attribute, int value, int device)
{
    const struct plim_machine_gpu *gpu = plim_self_gpu(device);
    int failed = plim_driver_ready();
    if (failed) return failed;
    if (!kernel) return GPU_INVALID_HANDLE;
    if (!gpu) return GPU_INVALID_DEVICE;
    if (attribute == MAX_DYNAMIC_SHARED && (value < 0 || value > gpu->shared_per_block_optin))
        return GPU_INVALID_VALUE;
    return GPU_OK;
}

ANSWER int cuFuncSetAttribute(struct plim_kernel *kernel, int attribute, int value)
{
    return set_attribute(kernel, attribute, value, plim_self_device());
}

ANSWER int cuKernelSetAttribute(int attribute, int value, struct plim_kernel *kernel, int device)
{
    return set_attribute(kernel, attribute, value, device);
}

ANSWER int cuFuncSetCacheConfig(struct plim_kernel *kernel)
{
    return kernel ? GPU_OK : GPU_INVALID_HANDLE;
}
ALSO(cuFuncSetCacheConfig, cuKernelSetCacheConfig)
ALSO(cuFuncSetCacheConfig, cuFuncSetSharedMemConfig)

/* --- occupancy -------------------------------------------------------------------------------- */

ANSWER int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, struct plim_kernel *kernel,
                                                       int threads, size_t shared_bytes)
{
    int failed = plim_driver_enter();
    if (!failed && !kernel) failed = GPU_INVALID_HANDLE;
    if (!failed && threads <= 0) failed = GPU_INVALID_VALUE;
    if (!failed) *blocks = plim_occupancy(plim_self_device(), threads, shared_bytes);
    return failed;
}
ALSO(cuOccupancyMaxActiveBlocksPerMultiprocessor,
     cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)

/* Finds the block size with the most threads per multiprocessor; if several are equal, the largest. */
ANSWER int cuOccupancyMaxPotentialBlockSize(int *grid, int *block, struct plim_kernel *kernel,
                                            size_t (*shared_of)(int), size_t shared_bytes,
                                            int limit)
{
    int failed = plim_driver_enter(), best = 0, device = plim_self_device();
    if (!failed && !kernel) failed = GPU_INVALID_HANDLE;
    if (failed) return failed;
    if (limit <= 0 || limit > 1024) limit = 1024;
    *grid = *block = 0;
    for (int threads = limit - limit % 32; threads > 0; threads -= 32) {
        int blocks = plim_occupancy(device, threads, shared_of ? shared_of(threads) : shared_bytes);
        if (blocks * threads <= best) continue;
        best = blocks * threads;
        *block = threads;
        *grid = blocks * plim_self_gpu(device)->multiprocessors;
    }
    return best ? GPU_OK : GPU_INVALID_VALUE;
}
ALSO(cuOccupancyMaxPotentialBlockSize, cuOccupancyMaxPotentialBlockSizeWithFlags)

LIKE_RUNTIME(cuOccupancyAvailableDynamicSMemPerBlock, cudaOccupancyAvailableDynamicSMemPerBlock,
             (size_t *bytes, const void *kernel, int blocks, int threads),
             (bytes, kernel, blocks, threads))

enum { CLUSTER_DIMENSION = 4, PORTABLE_CLUSTER = 8, CLUSTERS_SINCE = 90 };

static unsigned cluster_of(const struct launch_config *config)
{
    for (unsigned i = 0; i < config->count; i++)
        if (config->attributes[i].id == CLUSTER_DIMENSION)
            return config->attributes[i].value.x * config->attributes[i].value.y *
                   config->attributes[i].value.z;
    return 1;
}

/* Assumes that a cluster's blocks fit on any multiprocessors. On a GPU they must be neighbours, so there may be a few
 * clusters fewer. */
ANSWER int cuOccupancyMaxActiveClusters(int *clusters, struct plim_kernel *kernel,
                                        const struct launch_config *config)
{
    int blocks, failed = plim_driver_enter();
    if (failed) return failed;
    const struct plim_machine_gpu *gpu = plim_self_gpu(plim_self_device());
    unsigned cluster = cluster_of(config);
    if (gpu->compute_capability < CLUSTERS_SINCE) return GPU_NOT_SUPPORTED;
    if (!cluster) return GPU_INVALID_VALUE;
    failed = cuOccupancyMaxActiveBlocksPerMultiprocessor(
        &blocks, kernel, (int)(config->block.x * config->block.y * config->block.z),
        config->shared_bytes);
    if (!failed) *clusters = (int)((unsigned)(blocks * gpu->multiprocessors) / cluster);
    return failed;
}

ANSWER int cuOccupancyMaxPotentialClusterSize(int *size, struct plim_kernel *kernel,
                                              const struct launch_config *config)
{
    int failed = plim_driver_enter();
    (void)kernel;
    (void)config;
    if (failed) return failed;
    if (plim_self_gpu(plim_self_device())->compute_capability < CLUSTERS_SINCE)
        return GPU_NOT_SUPPORTED;
    *size = PORTABLE_CLUSTER;
    return GPU_OK;
}

/* --- tensor maps ------------------------------------------------------------------------------ */

enum { TENSOR_MAP_BYTES = 128 };

/* Only kernels read a tensor map. */
ANSWER int cuTensorMapEncodeTiled(void *map)
{
    if (!map || (uintptr_t)map % 64) return GPU_INVALID_VALUE;
    memset(map, 0, TENSOR_MAP_BYTES);
    return GPU_OK;
}
ALSO(cuTensorMapEncodeTiled, cuTensorMapEncodeIm2col)
ALSO(cuTensorMapEncodeTiled, cuTensorMapEncodeIm2colWide)
ALSO(cuTensorMapEncodeTiled, cuTensorMapReplaceAddress)
