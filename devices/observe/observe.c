#define _GNU_SOURCE /* dladdr */
/* The observer: passes calls to a real GPU's driver, and records its answers.
 *
 * It is preloaded by `plimsoll exec --device cuda:N`. All programs find the driver's functions by dlsym(): CUDA's
 * runtime, linked statically or not, cuBLAS, Triton. Therefore dlsym() is replaced here
 * (devices/virtual/process/dlsym.h). For the functions below, and for cuGetProcAddress(), which finds the rest, it
 * returns ours, which call the driver's. Programs that are linked with libcuda get ours from the dynamic linker.
 *
 * The records are stored in the machine that plimsoll shares (machine/machine.h there): device memory that was
 * allocated and freed, in pages of 2 MiB as the driver counts, memory that the driver refused, and the launches from
 * which steps are recognised. If a GPU of that machine is smaller than the real one, the real one becomes smaller:
 * allocations that do not fit there are refused here. */
#include "table.h"
#include "devices/virtual/machine/out_of_memory.h"
#include "devices/virtual/machine/self.h"
#include "devices/virtual/process/dlsym.h"
#include "devices/virtual/steps/watch.h"
#include "devices/virtual/work/kernel.h"
#include "autotune/base/array.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { PAGE_BYTES = 2 << 20, SMALL_BYTES = 1 << 20, ALIGNMENT = 512, PER_THREAD_STREAMS = 2 };

typedef uint64_t address;
typedef int result;

/* --- the driver's functions that are observed: name, older name, parameters ----------------------- */

/* Those that work in a stream exist twice, the second for per-thread default streams. */
#define WATCHED(X)                                                                                 \
    X(cuMemAlloc_v2, (address * out, size_t bytes))                                                \
    X(cuMemAllocPitch_v2,                                                                          \
      (address * out, size_t * pitch, size_t width, size_t height, unsigned element))              \
    X(cuMemFree_v2, (address at))                                                                  \
    X(cuMemCreate,                                                                                 \
      (uint64_t * out, size_t bytes, const void *properties, unsigned long long flags))            \
    X(cuMemRelease, (uint64_t handle))                                                             \
    X(cuModuleGetFunction, (void **out, void *module, const char *name))                           \
    X(cuLibraryGetKernel, (void **out, void *library, const char *name))                           \
    X(cuKernelGetFunction, (void **out, void *kernel))                                             \
    X(cuMemAllocAsync, (address * out, size_t bytes, void *stream))                                \
    X(cuMemAllocAsync_ptsz, (address * out, size_t bytes, void *stream))                           \
    X(cuMemAllocFromPoolAsync, (address * out, size_t bytes, void *pool, void *stream))            \
    X(cuMemAllocFromPoolAsync_ptsz, (address * out, size_t bytes, void *pool, void *stream))       \
    X(cuMemFreeAsync, (address at, void *stream))                                                  \
    X(cuMemFreeAsync_ptsz, (address at, void *stream))                                             \
    X(cuLaunchKernel, LAUNCH)                                                                      \
    X(cuLaunchKernel_ptsz, LAUNCH)                                                                 \
    X(cuLaunchCooperativeKernel, COOPERATIVE)                                                      \
    X(cuLaunchCooperativeKernel_ptsz, COOPERATIVE)                                                 \
    X(cuLaunchKernelEx,                                                                            \
      (const struct config *config, void *function, void **arguments, void **extra))               \
    X(cuLaunchKernelEx_ptsz,                                                                       \
      (const struct config *config, void *function, void **arguments, void **extra))               \
    X(cuStreamBeginCapture_v2, (void *stream, int mode))                                           \
    X(cuStreamBeginCapture_v2_ptsz, (void *stream, int mode))                                      \
    X(cuStreamBeginCaptureToGraph, CAPTURE_TO_GRAPH)                                               \
    X(cuStreamBeginCaptureToGraph_ptsz, CAPTURE_TO_GRAPH)                                          \
    X(cuGraphLaunch, (void *graph, void *stream))                                                  \
    X(cuGraphLaunch_ptsz, (void *graph, void *stream))                                             \
    X(cuGetProcAddress, (const char *name, void **out, int version, uint64_t flags))               \
    X(cuGetProcAddress_v2, (const char *name, void **out, int version, uint64_t flags, int *found))

#define LAUNCH                                                                                     \
    (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,          \
     unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream, void **arguments,    \
     void **extra)
#define COOPERATIVE                                                                                \
    (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,          \
     unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream, void **arguments)

#define CAPTURE_TO_GRAPH                                                                           \
    (void *stream, void *graph, const void *after, const void *edges, size_t count, int mode)

/* The start of CUlaunchConfig. */
struct config {
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
    void *stream;
};

#define DECLARE(name, parameters) ANSWER result name parameters;
WATCHED(DECLARE)
#undef DECLARE

/* The driver's own functions, as far as they have been looked up. */
static struct {
#define REAL(name, parameters) result(*name) parameters;
    WATCHED(REAL)
#undef REAL
    result (*cuCtxGetDevice)(int *);
    result (*cuStreamIsCapturing)(void *, int *);
} real;

static void *driver; /* its handle */

static void find_real(void *place, const char *name)
{
    void *found;
    memcpy(&found, place, sizeof(found));
    if (found) return;
    if (!driver) driver = dlopen("libcuda.so.1", RTLD_LAZY);
    plim_dlsym_prepare();
    found = driver ? plim_dlsym_real(driver, name) : NULL;
    memcpy(place, &found, sizeof(found));
}

#define CALL(name, arguments) (find_real(&real.name, #name), real.name ? real.name arguments : GPU_NOT_FOUND)

/* --- the current GPU -------------------------------------------------------------------------- */

/* Returns the GPU of the current context, entered; -1 if nothing can be recorded. */
static int gpu(void)
{
    int device;
    if (CALL(cuCtxGetDevice, (&device)) || plim_self_use(device)) return -1;
    return device;
}

/* --- memory ----------------------------------------------------------------------------------- */

static int64_t cost_of(size_t bytes)
{
    size_t unit = bytes < SMALL_BYTES ? ALIGNMENT : PAGE_BYTES;
    return (int64_t)((bytes + unit - 1) / unit * unit);
}

/* Called before the driver. Returns false if the request exceeds the smaller GPU. */
static bool may_take(int device, size_t bytes)
{
    return device < 0 || plim_self_allocate(device, cost_of(bytes));
}

static result took(int device, uint64_t key, size_t bytes, result failed)
{
    if (device < 0) return failed;
    struct plim_machine_process *process = plim_self_process();
    if (!failed) {
        plim_table_insert(key, device, cost_of(bytes));
        plim_watch_allocation(device, key, (int64_t)bytes, 0);
        return failed;
    }
    plim_self_free(device, cost_of(bytes));
    if (failed == GPU_OUT_OF_MEMORY)
        plim_out_of_memory_refused(&process->refusal, plim_self_machine_index(device),
                                   cost_of(bytes), 0);
    return failed;
}

static result gave(uint64_t key, result failed)
{
    int device;
    int64_t cost;
    if (failed || !plim_table_remove(key, &device, &cost)) return failed;
    plim_self_free(device, cost);
    plim_watch_free(device, key, cost);
    return failed;
}

/* One allocation: `ask` is the driver's call, `key` the address or handle of its result. */
#define TAKE(bytes, ask, key)                                                                      \
    do {                                                                                           \
        int device_ = gpu();                                                                      \
        if (!may_take(device_, bytes)) return GPU_OUT_OF_MEMORY;                                   \
        result failed_ = ask;                                                                      \
        return took(device_, failed_ ? 0 : (uint64_t)(key), bytes, failed_);                       \
    } while (0)

ANSWER result cuMemAlloc_v2(address *out, size_t bytes)
{
    TAKE(bytes, CALL(cuMemAlloc_v2, (out, bytes)), *out);
}

ANSWER result cuMemAllocPitch_v2(address *out, size_t *pitch, size_t width, size_t height,
                                 unsigned element)
{
    size_t bytes = (width + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT * height;
    TAKE(bytes, CALL(cuMemAllocPitch_v2, (out, pitch, width, height, element)), *out);
}

ANSWER result cuMemCreate(uint64_t *out, size_t bytes, const void *properties,
                          unsigned long long flags)
{
    TAKE(bytes, CALL(cuMemCreate, (out, bytes, properties, flags)), *out);
}

ANSWER result cuMemFree_v2(address at) { return gave(at, CALL(cuMemFree_v2, (at))); }
ANSWER result cuMemRelease(uint64_t handle) { return gave(handle, CALL(cuMemRelease, (handle))); }

#define STREAM_MEMORY(suffix)                                                                      \
    ANSWER result cuMemAllocAsync##suffix(address *out, size_t bytes, void *stream)                \
    {                                                                                              \
        TAKE(bytes, CALL(cuMemAllocAsync##suffix, (out, bytes, stream)), *out);                    \
    }                                                                                              \
    ANSWER result cuMemAllocFromPoolAsync##suffix(address *out, size_t bytes, void *pool,          \
                                                  void *stream)                                    \
    {                                                                                              \
        TAKE(bytes, CALL(cuMemAllocFromPoolAsync##suffix, (out, bytes, pool, stream)), *out);      \
    }                                                                                              \
    ANSWER result cuMemFreeAsync##suffix(address at, void *stream)                                 \
    {                                                                                              \
        return gave(at, CALL(cuMemFreeAsync##suffix, (at, stream)));                               \
    }

STREAM_MEMORY()
STREAM_MEMORY(_ptsz)

/* --- kernels and their names ---------------------------------------------------------------------- */

static void name_kernel(const void *handle, const char *name)
{
    char *copy = strdup(name); /* never freed, like kernels */
    if (copy) plim_kernel_register(handle, copy, NULL);
}

ANSWER result cuModuleGetFunction(void **out, void *module, const char *name)
{
    result failed = CALL(cuModuleGetFunction, (out, module, name));
    if (!failed) name_kernel(*out, name);
    return failed;
}

ANSWER result cuLibraryGetKernel(void **out, void *library, const char *name)
{
    result failed = CALL(cuLibraryGetKernel, (out, library, name));
    if (!failed) name_kernel(*out, name);
    return failed;
}

ANSWER result cuKernelGetFunction(void **out, void *handle)
{
    result failed = CALL(cuKernelGetFunction, (out, handle));
    const struct plim_kernel *kernel = failed ? NULL : plim_kernel_find(handle);
    if (kernel) name_kernel(*out, kernel->name);
    return failed;
}

/* --- launches --------------------------------------------------------------------------------- */

static bool may_capture; /* a capture has been started at some time */

/* In a capture nothing runs. */
static bool is_captured(void *stream)
{
    int status = 0;
    return may_capture && !CALL(cuStreamIsCapturing, (stream, &status)) && status;
}

/* Programs launch often, so this does as little as possible; see tests/bench/bench_observe.c. */
static bool runs(void *stream, result failed)
{
    return !failed && (plim_self_process() || gpu() >= 0) && !is_captured(stream);
}

struct shape {
    struct gpu_dim3 grid, block;
    void *stream;
};

static result launched(void *function, const struct shape *shape, result failed)
{
    if (!runs(shape->stream, failed)) return failed;
    struct plim_machine_process *process = plim_self_process();
    struct plim_kernel *kernel = plim_kernel_find(function);
    plim_out_of_memory_launches(&process->refusal);
    process->launches++;
    plim_watch_kernel(plim_kernel_token(kernel), plim_kernel_class(kernel), &shape->grid,
                      &shape->block, NULL, 0);
    return failed;
}

#define SHAPE                                                                                      \
    (&(struct shape){                                                                              \
        .grid = {grid_x, grid_y, grid_z}, .block = {block_x, block_y, block_z}, .stream = stream})

#define LAUNCHES(suffix)                                                                           \
    ANSWER result cuLaunchKernel##suffix LAUNCH                                                    \
    {                                                                                              \
        return launched(function, SHAPE,                                                           \
                        CALL(cuLaunchKernel##suffix,                                               \
                             (function, grid_x, grid_y, grid_z, block_x, block_y, block_z,         \
                              shared_bytes, stream, arguments, extra)));                           \
    }                                                                                              \
    ANSWER result cuLaunchCooperativeKernel##suffix COOPERATIVE                                    \
    {                                                                                              \
        return launched(function, SHAPE,                                                           \
                        CALL(cuLaunchCooperativeKernel##suffix,                                    \
                             (function, grid_x, grid_y, grid_z, block_x, block_y, block_z,         \
                              shared_bytes, stream, arguments)));                                  \
    }                                                                                              \
    ANSWER result cuLaunchKernelEx##suffix(const struct config *config, void *function,            \
                                           void **arguments, void **extra)                         \
    {                                                                                              \
        const struct shape shape = {                                                               \
            .grid = {config->grid_x, config->grid_y, config->grid_z},                              \
            .block = {config->block_x, config->block_y, config->block_z},                          \
            .stream = config->stream};                                                             \
        return launched(function, &shape,                                                          \
                        CALL(cuLaunchKernelEx##suffix, (config, function, arguments, extra)));     \
    }                                                                                              \
    ANSWER result cuGraphLaunch##suffix(void *graph, void *stream)                                 \
    {                                                                                              \
        result failed = CALL(cuGraphLaunch##suffix, (graph, stream));                              \
        if (!runs(stream, failed)) return failed;                                                  \
        plim_out_of_memory_launches(&plim_self_process()->refusal);                                 \
        plim_self_process()->launches++;                                                           \
        plim_watch_graph((uint64_t)(uintptr_t)graph, PLIM_STEPS_PLAIN, 0);                         \
        return failed;                                                                             \
    }

LAUNCHES()
LAUNCHES(_ptsz)

#define CAPTURES(suffix)                                                                           \
    ANSWER result cuStreamBeginCapture_v2##suffix(void *stream, int mode)                          \
    {                                                                                              \
        may_capture = true;                                                                        \
        return CALL(cuStreamBeginCapture_v2##suffix, (stream, mode));                              \
    }                                                                                              \
    ANSWER result cuStreamBeginCaptureToGraph##suffix CAPTURE_TO_GRAPH                             \
    {                                                                                              \
        may_capture = true;                                                                        \
        return CALL(cuStreamBeginCaptureToGraph##suffix,                                           \
                    (stream, graph, after, edges, count, mode));                                   \
    }

CAPTURES()
CAPTURES(_ptsz)

/* --- how programs find the driver's functions ------------------------------------------------------- */

static const struct watched {
    const char *name;
    void *ours, *place; /* place: where the driver's own is stored */
} watched[] = {
#define ROW(name, parameters) {#name, (void *)name, &real.name},
    WATCHED(ROW)
#undef ROW
};

static const struct watched *find(const char *name)
{
    for (size_t i = 0; i < sizeof(watched) / sizeof(watched[0]); i++)
        if (!strcmp(watched[i].name, name)) return &watched[i];
    return NULL;
}

static void *ours_for(const struct watched *of, void *theirs)
{
    memcpy(of->place, &theirs, sizeof(theirs));
    return of->ours;
}

void *plim_dlsym_choose(void *handle, const char *name, const void *caller)
{
    Dl_info info;
    (void)caller;
    plim_dlsym_prepare();
    if (handle == RTLD_DEFAULT || handle == RTLD_NEXT || !name || strncmp(name, "cu", 2)) return NULL;
    const struct watched *of = find(name);
    void *theirs = of ? plim_dlsym_real(handle, name) : NULL;
    if (!theirs || theirs == of->ours) return NULL;
    const char *file = dladdr(theirs, &info) && info.dli_fname ? info.dli_fname : "";
    const char *slash = strrchr(file, '/');
    if (strncmp(slash ? slash + 1 : file, "libcuda.so", 10)) return NULL;
    driver = driver ? driver : handle;
    return ours_for(of, theirs);
}

/* A plain name refers to the second version of functions that have one. */
static void replace(const char *name, void **out, uint64_t flags)
{
    char full[64];
    static const char *const suffixes[] = {"", "_v2"};
    for (size_t i = 0; *out && i < 2; i++) {
        snprintf(full, sizeof(full), "%s%s%s", name, suffixes[i],
                 flags & PER_THREAD_STREAMS ? "_ptsz" : "");
        const struct watched *of = find(full);
        if (!of && flags & PER_THREAD_STREAMS) {
            snprintf(full, sizeof(full), "%s%s", name, suffixes[i]);
            of = find(full);
        }
        if (!of) continue;
        *out = ours_for(of, *out);
        return;
    }
}

ANSWER result cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags,
                                  int *found)
{
    result failed = CALL(cuGetProcAddress_v2, (name, out, version, flags, found));
    if (!failed) replace(name, out, flags);
    return failed;
}

ANSWER result cuGetProcAddress(const char *name, void **out, int version, uint64_t flags)
{
    result failed = CALL(cuGetProcAddress, (name, out, version, flags));
    if (!failed) replace(name, out, flags);
    return failed;
}

__attribute__((constructor)) static void begin(void) { plim_self_observe(); }
