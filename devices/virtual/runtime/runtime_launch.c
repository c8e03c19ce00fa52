/* The CUDA runtime: registration and launches of kernels. */
#include "runtime.h"
#include "devices/virtual/process/driver_names.h"
#include "devices/virtual/machine/version.h"
#include "devices/virtual/memory/symbol.h"
#include "devices/virtual/work/fat_binary.h"
#include "devices/virtual/memory/readable.h"
#include <stdlib.h>
#include <string.h>

/* --- registration by the constructors that nvcc generates --------------------------------------- */

ANSWER void **__cudaRegisterFatBinary(const void *wrapper)
{
    return (void **)plim_fat_binary_read(wrapper, PLIM_UNKNOWN_BYTES);
}

ANSWER void __cudaRegisterFatBinaryEnd(void **module) { (void)module; }
ANSWER void __cudaUnregisterFatBinary(void **module) { (void)module; }

ANSWER void __cudaRegisterFunction(void **module, const void *host, char *name,
                                   const char *full_name)
{
    (void)full_name;
    plim_kernel_register(host, name, (struct plim_fat_binary *)module);
}

ANSWER void __cudaRegisterVar(void **module, const void *host, char *address, const char *name,
                              int external, size_t bytes)
{
    (void)module;
    (void)address;
    (void)name;
    (void)external;
    plim_symbol_register(host, bytes);
}

/* The program accesses the variable through *host, from __cudaInitModule() on. Its initial value is part of the
 * module's code, which is not read. */
ANSWER void __cudaRegisterManagedVar(void **module, void **host, char *address, const char *name,
                                     int external, size_t bytes)
{
    (void)module;
    (void)address;
    (void)name;
    (void)external;
    if (!*host) *host = calloc(1, bytes);
    plim_symbol_register(host, bytes);
}

ANSWER char __cudaInitModule(void **module)
{
    (void)module;
    plim_self_note("managed variables begin as 0, whatever the program says");
    return 1;
}

/* --- <<<grid, block, shared, stream>>> ---------------------------------------------------------- */

enum { CALLS = 64 };
static _Thread_local struct plim_launch_config calls[CALLS];
static _Thread_local int call_count;

ANSWER unsigned __cudaPushCallConfiguration(struct gpu_dim3 grid, struct gpu_dim3 block,
                                            size_t shared_bytes, void *stream)
{
    if (call_count == CALLS) return 1;
    calls[call_count++] = (struct plim_launch_config){
        .grid = grid, .block = block, .shared_bytes = shared_bytes, .stream = stream};
    return 0;
}

ANSWER int __cudaPopCallConfiguration(struct gpu_dim3 *grid, struct gpu_dim3 *block,
                                      size_t *shared_bytes, void **stream)
{
    if (!call_count) return GPU_INVALID_CONFIGURATION;
    const struct plim_launch_config *call = &calls[--call_count];
    *grid = call->grid;
    *block = call->block;
    *shared_bytes = call->shared_bytes;
    *stream = call->stream;
    return GPU_OK;
}

/* --- launches --------------------------------------------------------------------------------- */

/* Returns the largest shared memory of a block for kernels that opt in. */
static size_t most_shared_bytes(void)
{
    const struct plim_machine_gpu *gpu = plim_self_gpu(plim_self_device());
    return gpu ? (size_t)gpu->shared_per_block_optin : SIZE_MAX;
}

/* Checks a launch as CUDA does, so that launches a GPU would refuse fail here too. */
static int launch(struct plim_kernel *kernel, const struct plim_launch_config *launch)
{
    if (!kernel) return plim_self_error(GPU_INVALID_DEVICE_FUNCTION);
    if (!plim_launch_is_possible(launch)) return plim_self_error(GPU_INVALID_CONFIGURATION);
    if (launch->shared_bytes > most_shared_bytes()) return plim_self_error(GPU_INVALID_VALUE);
    return plim_self_error(plim_kernel_launch(kernel, launch));
}

ANSWER int cudaLaunchKernel(const void *function, struct gpu_dim3 grid, struct gpu_dim3 block,
                            void **arguments, size_t shared_bytes, void *stream)
{
    return launch(plim_kernel_find(function),
                  &(struct plim_launch_config){grid, block, shared_bytes, stream, arguments});
}
PER_THREAD(cudaLaunchKernel, _ptsz)

ANSWER int cudaLaunchCooperativeKernel(const void *function, struct gpu_dim3 grid,
                                       struct gpu_dim3 block, void **arguments, size_t shared_bytes,
                                       void *stream)
{
    return cudaLaunchKernel(function, grid, block, arguments, shared_bytes, stream);
}
PER_THREAD(cudaLaunchCooperativeKernel, _ptsz)

/* cudaLaunchConfig_t starts like this; attributes (clusters and the like) follow. */
struct launch_config {
    struct gpu_dim3 grid, block;
    size_t shared_bytes;
    void *stream;
};

ANSWER int cudaLaunchKernelExC(const struct launch_config *config, const void *function,
                               void **arguments)
{
    return cudaLaunchKernel(function, config->grid, config->block, arguments, config->shared_bytes,
                            config->stream);
}
PER_THREAD(cudaLaunchKernelExC, _ptsz)

/* From CUDA 12.x on nvcc's code looks up a kernel's handle once and launches by the handle. */
ANSWER int __cudaGetKernel(void **out, const void *function)
{
    *out = plim_kernel_find(function);
    return plim_self_error(*out ? GPU_OK : GPU_INVALID_DEVICE_FUNCTION);
}

ANSWER int __cudaLaunchKernel(void *kernel, struct gpu_dim3 grid, struct gpu_dim3 block,
                              void **arguments, size_t shared_bytes, void *stream)
{
    return launch(kernel, &(struct plim_launch_config){grid, block, shared_bytes, stream, arguments});
}
PER_THREAD(__cudaLaunchKernel, _ptsz)

ANSWER int cudaGetKernel(void **out, const void *function) { return __cudaGetKernel(out, function); }
ANSWER int cudaGetFuncBySymbol(void **out, const void *function)
{
    return __cudaGetKernel(out, function);
}

ANSWER int cudaFuncGetName(const char **out, const void *function)
{
    struct plim_kernel *kernel = plim_kernel_find(function);
    if (!kernel) return plim_self_error(GPU_INVALID_DEVICE_FUNCTION);
    *out = kernel->name;
    return GPU_OK;
}

/* --- attributes of kernels ---------------------------------------------------------------------- */

/* The part of cudaFuncAttributes that all versions have; the fields added by CUDA 12 (clusters) stay 0. */
struct function_attributes {
    size_t shared_bytes, constant_bytes, local_bytes;
    int threads_per_block, registers, ptx_version, binary_version, cache_mode_ca,
        dynamic_shared_bytes, carveout;
};

/* The number of registers is unknown: reports 32, which allows 1024 threads. */
ANSWER int cudaFuncGetAttributes(void *out, const void *function)
{
    struct plim_kernel *kernel = plim_kernel_find(function);
    int device = plim_self_device(), failed = plim_self_use(device);
    if (failed) return plim_self_error(failed);
    if (!kernel) return plim_self_error(GPU_INVALID_DEVICE_FUNCTION);
    int code = plim_fat_binary_code(kernel->module, plim_self_gpu(device)->compute_capability);
    if (!code) return plim_self_error(GPU_NO_BINARY);
    struct function_attributes result = {.threads_per_block = 1024, .registers = 32,
                                         .ptx_version = code, .binary_version = code,
                                         .dynamic_shared_bytes = 49152, .carveout = -1};
    memcpy(out, &result, sizeof(result));
    return GPU_OK;
}

enum { MAX_DYNAMIC_SHARED = 8 }; /* cudaFuncAttribute */

ANSWER int cudaFuncSetAttribute(const void *function, int attribute, int value)
{
    (void)function;
    bool fits = attribute != MAX_DYNAMIC_SHARED || (value >= 0 && (size_t)value <= most_shared_bytes());
    return plim_self_error(fits ? GPU_OK : GPU_INVALID_VALUE);
}

ANSWER int cudaFuncSetCacheConfig(const void *function, int config)
{
    (void)function;
    (void)config;
    return GPU_OK;
}

ANSWER int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function,
                                                         int threads, size_t shared_bytes)
{
    (void)function;
    *blocks = plim_occupancy(plim_self_device(), threads, shared_bytes);
    return GPU_OK;
}

ANSWER int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function,
                                                                  int threads, size_t shared_bytes,
                                                                  unsigned flags)
{
    (void)flags;
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared_bytes);
}

ANSWER int cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *function, int blocks,
                                                     int threads)
{
    (void)function;
    (void)threads;
    const struct plim_machine_gpu *gpu = plim_self_gpu(plim_self_device());
    if (!gpu || blocks <= 0) return plim_self_error(GPU_INVALID_VALUE);
    *bytes = (size_t)(gpu->shared_per_multiprocessor / blocks - 1024);
    return GPU_OK;
}

/* --- driver entry points ------------------------------------------------------------------------ */

enum { QUERY_SUCCESS = 0, QUERY_NOT_FOUND = 1 }; /* cudaDriverEntryPointQueryResult */

ANSWER int cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version,
                                            unsigned long long flags, int *result)
{
    (void)flags;
    *function = plim_driver_function(name, (int)version);
    if (result) *result = *function ? QUERY_SUCCESS : QUERY_NOT_FOUND;
    return plim_self_error(*function || result ? GPU_OK : GPU_NOT_FOUND);
}
PER_THREAD(cudaGetDriverEntryPointByVersion, _ptsz)

/* Before CUDA 12 there is no fourth argument. */
ANSWER int cudaGetDriverEntryPoint(const char *name, void **function, unsigned long long flags,
                                   int *result)
{
    int version = plim_version_runtime();
    return cudaGetDriverEntryPointByVersion(name, function, (unsigned)version, flags,
                                            version < 12000 ? NULL : result);
}
PER_THREAD(cudaGetDriverEntryPoint, _ptsz)
