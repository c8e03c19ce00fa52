/* The CUDA driver: contexts. */
#include "driver_context.h"
#include "devices/virtual/memory/heap.h"
#include "devices/virtual/memory/pool.h"
#include "devices/virtual/machine/version.h"

enum { DEPTH = 64, API_VERSION = 3020 };

static struct gpu {
    int retained, created; /* counts of cuDevicePrimaryCtxRetain and cuCtxCreate */
    bool is_ours;          /* the context was created by the driver, not by the runtime */
    unsigned flags;
} gpus[PLIM_MACHINE_GPUS];

/* What the thread bound through the driver. The runtime binds threads too (self.h). */
enum binding { UNBOUND, BOUND, EMPTY };

static _Thread_local struct {
    enum binding binding;
    int depth;
    struct { enum binding binding; int device; } below[DEPTH];
} thread;

static bool initialised;

void plim_driver_begin(void) { initialised = true; }

/* The first runtime call initialises the driver too; PyTorch relies on it after cudaGetDeviceCount. If a runtime is
 * loaded, it is assumed to have been called. */
int plim_driver_ready(void)
{
    int count;
    if (!initialised) initialised = plim_version_has_runtime();
    return initialised ? plim_self_count(&count) : GPU_NOT_INITIALIZED;
}

void *plim_driver_context(int device) { return plim_self_gpu(device) ? &gpus[device] : NULL; }

/* Returns the GPU of a context, or -1 if it is not a context. */
static int context_device(const void *context)
{
    const struct gpu *gpu = context;
    for (int i = 0; i < PLIM_MACHINE_GPUS; i++)
        if (gpu == &gpus[i] && plim_self_gpu(i)) return i;
    return -1;
}

int plim_driver_result(int before, int result)
{
    plim_self_get_error();
    plim_self_error(before);
    return result;
}

/* Returns the GPU whose context is current to the thread, or -1. */
static int current(void)
{
    int device = plim_self_device();
    bool is_current = thread.binding == BOUND || plim_self_is_bound();
    return is_current && plim_self_has_context(device) ? device : -1;
}

int plim_driver_enter(void)
{
    int failed = plim_driver_ready();
    if (failed) return failed;
    return current() < 0 ? GPU_INVALID_CONTEXT : GPU_OK;
}

static int make(int device)
{
    if (!plim_self_gpu(device)) return GPU_INVALID_DEVICE;
    bool is_ours = !plim_self_has_context(device);
    int failed = plim_self_use(device);
    if (!failed && is_ours) gpus[device].is_ours = true;
    return failed;
}

static int bind(void *context)
{
    int device = context_device(context);
    if (context && device < 0) return GPU_INVALID_CONTEXT;
    if (context && !plim_self_has_context(device)) return GPU_INVALID_CONTEXT;
    thread.binding = context ? BOUND : EMPTY;
    if (!context) plim_self_unbind();
    return context ? plim_self_set_device(device) : GPU_OK;
}

static void drop(int device)
{
    plim_heap_drop(device);
    plim_pool_drop(device);
    plim_self_drop_context(device);
    gpus[device] = (struct gpu){.flags = gpus[device].flags};
}

/* Destroys the context after its last user has released it, unless a runtime is loaded, which may still use it. */
static void destroy_unused(int device)
{
    const struct gpu *gpu = &gpus[device];
    if (gpu->retained || gpu->created || !gpu->is_ours) return;
    if (!plim_version_library("libcudart.so")) drop(device);
}

/* --- the primary context ---------------------------------------------------------------------- */

ANSWER int cuDevicePrimaryCtxRetain(void **out, int device)
{
    int failed = plim_driver_ready();
    if (!failed) failed = make(device);
    if (failed) return failed;
    gpus[device].retained++;
    *out = plim_driver_context(device);
    return GPU_OK;
}

ANSWER int cuDevicePrimaryCtxRelease_v2(int device)
{
    int failed = plim_driver_ready();
    if (failed) return failed;
    if (!plim_self_gpu(device)) return GPU_INVALID_DEVICE;
    if (!gpus[device].retained) return GPU_INVALID_CONTEXT;
    gpus[device].retained--;
    destroy_unused(device);
    return GPU_OK;
}
ALSO(cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRelease)

ANSWER int cuDevicePrimaryCtxReset_v2(int device)
{
    int failed = plim_driver_ready();
    if (failed) return failed;
    if (!plim_self_gpu(device)) return GPU_INVALID_DEVICE;
    if (plim_self_has_context(device)) drop(device);
    return GPU_OK;
}
ALSO(cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxReset)

ANSWER int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    int failed = plim_driver_ready();
    if (failed) return failed;
    if (!plim_self_gpu(device)) return GPU_INVALID_DEVICE;
    *flags = gpus[device].flags;
    *active = plim_self_has_context(device);
    return GPU_OK;
}

ANSWER int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags)
{
    int failed = plim_driver_ready();
    if (failed) return failed;
    if (!plim_self_gpu(device)) return GPU_INVALID_DEVICE;
    gpus[device].flags = flags;
    return GPU_OK;
}
ALSO(cuDevicePrimaryCtxSetFlags_v2, cuDevicePrimaryCtxSetFlags)

/* --- the current context of a thread ---------------------------------------------------------- */

ANSWER int cuCtxGetCurrent(void **out)
{
    int failed = plim_driver_ready();
    *out = failed ? NULL : plim_driver_context(current());
    return failed;
}

ANSWER int cuCtxSetCurrent(void *context)
{
    int failed = plim_driver_ready();
    return failed ? failed : bind(context);
}

ANSWER int cuCtxPushCurrent_v2(void *context)
{
    int failed = plim_driver_ready(), device = plim_self_device();
    enum binding before = thread.binding;
    if (!failed && (!context || thread.depth == DEPTH)) failed = GPU_INVALID_VALUE;
    if (!failed) failed = bind(context);
    if (failed) return failed;
    thread.below[thread.depth].binding = before;
    thread.below[thread.depth++].device = device;
    return GPU_OK;
}
ALSO(cuCtxPushCurrent_v2, cuCtxPushCurrent)

ANSWER int cuCtxPopCurrent_v2(void **out)
{
    int failed = plim_driver_enter();
    if (failed) return failed;
    if (out) *out = plim_driver_context(current());
    thread.binding = EMPTY;
    if (!thread.depth) return GPU_OK;
    thread.binding = thread.below[--thread.depth].binding;
    return plim_self_set_device(thread.below[thread.depth].device);
}
ALSO(cuCtxPopCurrent_v2, cuCtxPopCurrent)

ANSWER int cuCtxCreate_v2(void **out, unsigned flags, int device)
{
    int failed = plim_driver_ready();
    if (!failed) failed = make(device);
    if (!failed) failed = cuCtxPushCurrent_v2(plim_driver_context(device));
    if (failed) return failed;
    gpus[device].created++;
    gpus[device].flags = flags;
    *out = plim_driver_context(device);
    return GPU_OK;
}
ALSO(cuCtxCreate_v2, cuCtxCreate)

/* A context with a share of the multiprocessors gets all of them here. */
ANSWER int cuCtxCreate_v3(void **out, void *affinity, int count, unsigned flags, int device)
{
    (void)affinity;
    (void)count;
    return cuCtxCreate_v2(out, flags, device);
}

ANSWER int cuCtxCreate_v4(void **out, void *parameters, unsigned flags, int device)
{
    (void)parameters;
    return cuCtxCreate_v2(out, flags, device);
}

ANSWER int cuCtxDestroy_v2(void *context)
{
    int failed = plim_driver_ready(), device = context_device(context);
    if (failed) return failed;
    if (device < 0 || !gpus[device].created) return GPU_INVALID_CONTEXT;
    if (current() == device) failed = cuCtxPopCurrent_v2(NULL);
    gpus[device].created--;
    destroy_unused(device);
    return failed;
}
ALSO(cuCtxDestroy_v2, cuCtxDestroy)

/* --- properties of contexts ------------------------------------------------------------------- */

/* NULL is the current context. Returns -1 if there is none or it is not a context. */
static int device_of(const void *context)
{
    return context ? context_device(context) : current();
}

ANSWER int cuCtxGetDevice_v2(int *device, void *context)
{
    int failed = plim_driver_ready(), found = device_of(context);
    if (failed) return failed;
    if (found < 0) return GPU_INVALID_CONTEXT;
    *device = found;
    return GPU_OK;
}

ANSWER int cuCtxGetDevice(int *device) { return cuCtxGetDevice_v2(device, NULL); }

ANSWER int cuCtxGetId(void *context, unsigned long long *id)
{
    int failed = plim_driver_ready(), device = device_of(context);
    if (failed) return failed;
    if (device < 0) return GPU_INVALID_CONTEXT;
    *id = (unsigned long long)device + 1;
    return GPU_OK;
}

ANSWER int cuCtxGetApiVersion(void *context, unsigned *version)
{
    int failed = plim_driver_ready();
    if (failed) return failed;
    if (device_of(context) < 0) return GPU_INVALID_CONTEXT;
    *version = API_VERSION;
    return GPU_OK;
}

ANSWER int cuCtxGetFlags(unsigned *flags)
{
    int failed = plim_driver_enter();
    if (!failed) *flags = gpus[current()].flags;
    return failed;
}

ANSWER int cuCtxSetFlags(unsigned flags)
{
    int failed = plim_driver_enter();
    if (!failed) gpus[current()].flags = flags;
    return failed;
}

LIKE_RUNTIME(cuCtxSynchronize, cudaDeviceSynchronize, (void), ())

ANSWER int cuCtxSynchronize_v2(void *context)
{
    int failed = cuCtxPushCurrent_v2(context ? context : plim_driver_context(current()));
    if (failed) return GPU_INVALID_CONTEXT;
    failed = cuCtxSynchronize();
    cuCtxPopCurrent_v2(NULL);
    return failed;
}

LIKE_RUNTIME(cuCtxGetLimit, cudaDeviceGetLimit, (size_t *value, int limit), (value, limit))
LIKE_RUNTIME(cuCtxSetLimit, cudaDeviceSetLimit, (int limit, size_t value), (limit, value))
LIKE_RUNTIME(cuCtxGetCacheConfig, cudaDeviceGetCacheConfig, (int *config), (config))
LIKE_RUNTIME(cuCtxSetCacheConfig, cudaDeviceSetCacheConfig, (int config), (config))
LIKE_RUNTIME(cuCtxGetSharedMemConfig, cudaDeviceGetSharedMemConfig, (int *config), (config))
LIKE_RUNTIME(cuCtxSetSharedMemConfig, cudaDeviceSetSharedMemConfig, (int config), (config))
LIKE_RUNTIME(cuCtxResetPersistingL2Cache, cudaCtxResetPersistingL2Cache, (void), ())
LIKE_RUNTIME(cuCtxGetStreamPriorityRange, cudaDeviceGetStreamPriorityRange,
             (int *least, int *greatest), (least, greatest))

/* --- peer access ------------------------------------------------------------------------------ */

int cudaDeviceEnablePeerAccess(int peer, unsigned flags);
int cudaDeviceDisablePeerAccess(int peer);

ANSWER int cuCtxEnablePeerAccess(void *peer, unsigned flags)
{
    int failed = plim_driver_enter(), before = plim_self_peek_error();
    if (failed) return failed;
    if (context_device(peer) < 0) return GPU_INVALID_CONTEXT;
    return plim_driver_result(before, cudaDeviceEnablePeerAccess(context_device(peer), flags));
}

ANSWER int cuCtxDisablePeerAccess(void *peer)
{
    int failed = plim_driver_enter(), before = plim_self_peek_error();
    if (failed) return failed;
    if (context_device(peer) < 0) return GPU_INVALID_CONTEXT;
    return plim_driver_result(before,
                              cudaDeviceDisablePeerAccess(context_device(peer)));
}
