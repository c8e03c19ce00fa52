#include "libcuda.h"

#include "autotune/base/text.h"
#include "emulator.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONTEXT_BYTES (INT64_C(256) << 20)
#define MODULE_BYTES (INT64_C(2) << 20)
#define FATBIN_MAGIC 0xBA55ED50u

static struct {
    bool initialised;
    int visible[GPU_MAX], visible_count; /* CUDA's ordinal -> GPU */
    struct CUctx_st contexts[GPU_MAX];
    double seconds; /* the clock */
    bool slow;
} self;

__thread struct CUctx_st *double_current;

/* --- every call ------------------------------------------------------------------------------- */

/* PLIM_DOUBLE_RESULT */
static CUresult wanted_result(const char *function)
{
    const char *at = getenv("PLIM_DOUBLE_RESULT");
    size_t length = strcspn(function, "_"); /* without _v2 */
    while (at && *at) {
        if (!strncmp(at, function, length) && at[length] == '=')
            return (CUresult)atoi(at + length + 1);
        at = strchr(at, ',');
        if (at) at++;
    }
    return CUDA_SUCCESS;
}

CUresult double_enter(const char *function, enum double_needs needs)
{
    CUresult result = wanted_result(function);
    if (result != CUDA_SUCCESS) return result;
    if (needs == NEEDS_NOTHING) return CUDA_SUCCESS;
    if (gpu_fault(GPU_FAULT_VANISH) || gpu_gone())
        return double_current ? CUDA_ERROR_UNKNOWN : CUDA_ERROR_INVALID_DEVICE;
    if (!self.initialised) return CUDA_ERROR_NOT_INITIALIZED;
    if (needs != NEEDS_CONTEXT) return CUDA_SUCCESS;
    return double_current ? double_current->error : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult double_wait(void)
{
    while (double_current->hangs) pause();
    return double_current->error;
}

/* --- the driver ------------------------------------------------------------------------------- */

static int64_t number_from(const char *variable, int64_t plain)
{
    const char *text = getenv(variable);
    int64_t bytes = plain;
    if (text && plim_parse_bytes(text, &bytes, NULL) != PLIM_OK) bytes = plain;
    return bytes;
}

CUresult cuDriverGetVersion(int *version)
{
    ENTER(NEEDS_NOTHING);
    *version = (int)number_from("PLIM_DOUBLE_DRIVER", CUDA_VERSION);
    return CUDA_SUCCESS;
}

/* "GPU-706c696d-736f-6c6c-2067-707520203000" */
static void uuid_text(int gpu, char out[48])
{
    uint8_t uuid[16];
    char *at = out + sprintf(out, "GPU");
    gpu_uuid(gpu, uuid);
    for (int i = 0; i < 16; i++)
        at += sprintf(at, i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
                      uuid[i]);
}

/* One entry of CUDA_VISIBLE_DEVICES: an ordinal, or the beginning of a UUID; -1: neither. */
static int visible_gpu(const char *entry, size_t length)
{
    char text[48], *end;
    for (int gpu = 0; gpu < gpu_count(); gpu++) {
        uuid_text(gpu, text);
        if (length > 4 && !strncmp(entry, text, length)) return gpu;
    }
    long ordinal = strtol(entry, &end, 10);
    return end == entry + length && ordinal >= 0 && ordinal < gpu_count() ? (int)ordinal : -1;
}

static void find_visible(void)
{
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    self.visible_count = 0;
    if (!list)
        while (self.visible_count < gpu_count()) {
            self.visible[self.visible_count] = self.visible_count;
            self.visible_count++;
        }
    while (list && *list && self.visible_count < GPU_MAX) {
        size_t length = strcspn(list, ",");
        int gpu = visible_gpu(list, length);
        if (gpu < 0) break; /* the first that is wrong ends the list */
        self.visible[self.visible_count++] = gpu;
        list += length + (list[length] == ',');
    }
}

CUresult cuInit(unsigned flags)
{
    (void)flags;
    CUresult result = double_enter(__func__, NEEDS_INIT);
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_INITIALIZED) return result;
    find_visible();
    if (!self.visible_count) return CUDA_ERROR_NO_DEVICE;
    for (int i = 0; i < GPU_MAX; i++) self.contexts[i].gpu = i;
    self.initialised = true;
    return CUDA_SUCCESS;
}

static const struct {
    CUresult result;
    const char *name, *text;
} errors[] = {
#define ERROR_ROW(name, text)                                                                      \
    {                                                                                              \
        name, #name, text                                                                          \
    }
    ERROR_ROW(CUDA_SUCCESS, "no error"),
    ERROR_ROW(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    ERROR_ROW(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    ERROR_ROW(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    ERROR_ROW(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    ERROR_ROW(CUDA_ERROR_DEVICE_UNAVAILABLE, "all CUDA-capable devices are busy or unavailable"),
    ERROR_ROW(CUDA_ERROR_MPS_SERVER_NOT_READY, "the MPS server is not ready to accept new clients"),
    ERROR_ROW(CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, "shared object initialization failed"),
    ERROR_ROW(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    ERROR_ROW(CUDA_ERROR_UNKNOWN, "unknown error"),
};

CUresult cuGetErrorName(CUresult result, const char **name)
{
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        if (errors[i].result == result) return *name = errors[i].name, CUDA_SUCCESS;
    *name = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult result, const char **text)
{
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        if (errors[i].result == result) return *text = errors[i].text, CUDA_SUCCESS;
    *text = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

/* --- GPUs ------------------------------------------------------------------------------------ */

CUresult cuDeviceGetCount(int *count)
{
    ENTER(NEEDS_INIT);
    *count = self.visible_count;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    ENTER(NEEDS_INIT);
    if (ordinal < 0 || ordinal >= self.visible_count) return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
    ENTER(NEEDS_INIT);
    const struct plim_gpu *gpu = gpu_model(self.visible[device]);
    snprintf(name, (size_t)size, "%s", gpu->match[0] ? gpu->match : gpu->name);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    ENTER(NEEDS_INIT);
    gpu_uuid(self.visible[device], (uint8_t *)uuid->bytes);
    return CUDA_SUCCESS;
}

/* CUDA C++ Programming Guide, table of technical specifications. */
static int threads_per_multiprocessor(int compute_capability)
{
    if (compute_capability == 75) return 1024;
    return compute_capability == 86 || compute_capability == 89 || compute_capability == 120 ? 1536
                                                                                             : 2048;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    ENTER(NEEDS_INIT);
    const struct plim_gpu *gpu = gpu_model(self.visible[device]);
    switch ((int)attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = gpu->compute_capability / 10;
        break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = gpu->compute_capability % 10;
        break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = gpu->multiprocessors;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
        *value = threads_per_multiprocessor(gpu->compute_capability);
        break;
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
        *value = 1;
        break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
        *value = 32;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

/* --- who may have the GPU ---------------------------------------------------------------------- */

/* Of a control daemon only its socket is pretended: CUDA_MPS_PIPE_DIRECTORY/control. */
static bool is_mps_client(void)
{
    char path[256];
    struct stat info;
    const char *folder = getenv("CUDA_MPS_PIPE_DIRECTORY");
    snprintf(path, sizeof(path), "%s/control", folder ? folder : "/tmp/nvidia-mps");
    return !stat(path, &info);
}

/* "0=2G": of the first GPU that the client sees, which is the only one of a worker. */
static int64_t client_limit(void)
{
    char text[32];
    const char *limit = getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
    int64_t bytes = INT64_MAX;
    if (!limit || strncmp(limit, "0=", 2) || !is_mps_client()) return bytes;
    snprintf(text, sizeof(text), "%siB", limit + 2);
    return plim_parse_bytes(text, &bytes, NULL) == PLIM_OK ? bytes : INT64_MAX;
}

/* What processes hold of a GPU: this one (`mine`), or the others. */
static int64_t held_bytes(int gpu, bool mine)
{
    struct gpu_process list[GPU_MAX_PROCESSES];
    size_t count = gpu_processes(gpu, list, GPU_MAX_PROCESSES);
    int64_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        if ((list[i].pid == getpid()) == mine) bytes += list[i].held_bytes;
    return bytes;
}

int64_t double_free_bytes(int gpu)
{
    int64_t unused = gpu_free_bytes(gpu), limit = client_limit();
    if (limit == INT64_MAX) return unused;
    int64_t left = limit - held_bytes(gpu, true);
    return left < unused ? left > 0 ? left : 0 : unused;
}

/* PLIM_DOUBLE_NVML=exclusive is compute mode EXCLUSIVE_PROCESS. */
static CUresult claim(int gpu)
{
    const char *mode = getenv("PLIM_DOUBLE_NVML");
    bool exclusive = mode && strstr(mode, "exclusive");
    if (gpu_fault(GPU_FAULT_BUSY))
        return is_mps_client() ? CUDA_ERROR_MPS_SERVER_NOT_READY : CUDA_ERROR_DEVICE_UNAVAILABLE;
    if (exclusive && !is_mps_client() && held_bytes(gpu, false))
        return CUDA_ERROR_DEVICE_UNAVAILABLE;
    int64_t bytes = number_from("PLIM_DOUBLE_CONTEXT", CONTEXT_BYTES);
    return bytes <= double_free_bytes(gpu) && gpu_take(gpu, bytes) ? CUDA_SUCCESS
                                                                  : CUDA_ERROR_OUT_OF_MEMORY;
}

/* --- contexts --------------------------------------------------------------------------------- */

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    ENTER(NEEDS_INIT);
    struct CUctx_st *c = &self.contexts[self.visible[device]];
    CUresult result = c->references ? CUDA_SUCCESS : claim(c->gpu);
    if (result != CUDA_SUCCESS) return result;
    c->references++;
    *context = c;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    ENTER(NEEDS_INIT);
    struct CUctx_st *c = &self.contexts[self.visible[device]];
    if (!c->references) return CUDA_ERROR_INVALID_CONTEXT;
    if (--c->references) return CUDA_SUCCESS;
    double_forget_memory(c->gpu);
    gpu_give_back(c->gpu, number_from("PLIM_DOUBLE_CONTEXT", CONTEXT_BYTES));
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    ENTER(NEEDS_INIT);
    double_current = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    ENTER(NEEDS_CONTEXT);
    *device = double_current->gpu;
    return CUDA_SUCCESS;
}

/* There are no captures here. */
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    (void)stream;
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
    ENTER(NEEDS_CONTEXT);
    return double_wait();
}

/* --- streams, copies -------------------------------------------------------------------------- */

struct CUstream_st {
    int gpu;
};

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    (void)flags;
    ENTER(NEEDS_CONTEXT);
    *stream = malloc(sizeof(**stream));
    if (!*stream) return CUDA_ERROR_OUT_OF_MEMORY;
    (*stream)->gpu = double_current->gpu;
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream stream)
{
    free(stream);
    ENTER(NEEDS_CONTEXT);
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    (void)stream;
    ENTER(NEEDS_CONTEXT);
    return double_wait();
}

/* A kernel that hangs holds up what comes after it. */
static CUresult copy(CUdeviceptr device, void *to, const void *from, size_t bytes)
{
    if (!double_is_memory(device, bytes)) return CUDA_ERROR_INVALID_VALUE;
    if (!double_current->hangs) memcpy(to, from, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    (void)stream;
    ENTER(NEEDS_CONTEXT);
    return copy(to, (void *)(uintptr_t)to, from, bytes);
}

CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)stream;
    ENTER(NEEDS_CONTEXT);
    CUresult result = copy(from, to, (const void *)(uintptr_t)from, bytes);
    /* All ones is a NaN in every floating-point type. */
    if (gpu_fault(GPU_FAULT_NAN) && result == CUDA_SUCCESS) memset(to, 0xff, bytes);
    return result;
}

/* --- time ------------------------------------------------------------------------------------- */

struct CUevent_st {
    bool recorded;
    double seconds;
};

void double_time_passes(double seconds)
{
    self.seconds += seconds * (self.slow ? 5 : 1);
}

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    (void)flags;
    ENTER(NEEDS_CONTEXT);
    *event = calloc(1, sizeof(**event));
    return *event ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuEventDestroy(CUevent event)
{
    free(event);
    ENTER(NEEDS_CONTEXT);
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    (void)stream;
    ENTER(NEEDS_CONTEXT);
    event->seconds = self.seconds;
    event->recorded = true;
    return CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent event)
{
    (void)event;
    ENTER(NEEDS_CONTEXT);
    return double_wait();
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    ENTER(NEEDS_CONTEXT);
    if (!start->recorded || !end->recorded) return CUDA_ERROR_INVALID_HANDLE;
    *milliseconds = (float)(1e3 * (end->seconds - start->seconds));
    return CUDA_SUCCESS;
}

/* --- modules and launches --------------------------------------------------------------------- */

struct CUfunc_st {
    struct CUfunc_st *next;
    struct CUmod_st *module;
    const struct emulated_kernel *kernel;
    unsigned shared_bytes; /* that it may be launched with */
};

enum { PLAIN_SHARED_BYTES = 48 << 10, ALLOWED_SHARED_BYTES = 99 << 10 };

struct CUmod_st {
    const unsigned char *image;
    size_t bytes;
    int gpu;
    bool on_gpu; /* its code is loaded by its first launch */
    struct CUfunc_st *functions;
};

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    struct {
        uint32_t magic;
        uint16_t version, header_bytes;
        uint64_t bytes;
    } head;
    ENTER(NEEDS_CONTEXT);
    memcpy(&head, image, sizeof(head));
    if (head.magic != FATBIN_MAGIC) return CUDA_ERROR_INVALID_IMAGE;
    *module = calloc(1, sizeof(**module));
    if (!*module) return CUDA_ERROR_OUT_OF_MEMORY;
    (*module)->image = image;
    (*module)->bytes = head.header_bytes + head.bytes;
    (*module)->gpu = double_current->gpu;
    return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module)
{
    CUresult result = double_enter(__func__, NEEDS_CONTEXT);
    if (result == CUDA_SUCCESS && module->on_gpu) gpu_give_back(module->gpu, MODULE_BYTES);
    for (struct CUfunc_st *f = module->functions, *next; f; f = next) {
        next = f->next;
        free(f);
    }
    free(module);
    return result;
}

static bool contains(const unsigned char *text, size_t bytes, const char *word)
{
    size_t length = strlen(word) + 1; /* including the NUL, so that a prefix does not match */
    for (size_t i = 0; i + length <= bytes; i++)
        if (text[i] == (unsigned char)word[0] && !memcmp(text + i, word, length)) return true;
    return false;
}

/* A small image is not compressed and shows its sections; of one that is, all is believed. */
static bool may_have(const struct CUmod_st *module, const char *name)
{
    char section[128];
    snprintf(section, sizeof(section), ".text.%s", name);
    bool readable = contains(module->image, module->bytes, ".shstrtab");
    return !readable || contains(module->image, module->bytes, section);
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    ENTER(NEEDS_CONTEXT);
    const struct emulated_kernel *kernel = emulated_kernel_find(name);
    if (!kernel || !may_have(module, name)) return CUDA_ERROR_NOT_FOUND;
    *function = malloc(sizeof(**function));
    if (!*function) return CUDA_ERROR_OUT_OF_MEMORY;
    **function = (struct CUfunc_st){module->functions, module, kernel, PLAIN_SHARED_BYTES};
    module->functions = *function;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    ENTER(NEEDS_CONTEXT);
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
        value > ALLOWED_SHARED_BYTES)
        return CUDA_ERROR_INVALID_VALUE;
    function->shared_bytes = (unsigned)value;
    return CUDA_SUCCESS;
}

/* What goes wrong at a launch, before it is made. */
static CUresult launch_faults(void)
{
    int gpu = double_current->gpu;
    if (gpu_fault(GPU_FAULT_KILL)) raise(SIGKILL);
    if (gpu_fault(GPU_FAULT_STEAL)) gpu_steal(gpu, gpu_free_bytes(gpu) / 2);
    if (gpu_fault(GPU_FAULT_HANG)) double_current->hangs = true;
    self.slow = gpu_fault(GPU_FAULT_SLOW);
    if (gpu_fault(GPU_FAULT_OOM_LAUNCH)) return CUDA_ERROR_OUT_OF_MEMORY;
    if (gpu_fault(GPU_FAULT_LOST)) double_current->error = CUDA_ERROR_ILLEGAL_ADDRESS;
    return CUDA_SUCCESS;
}

static CUresult load(struct CUmod_st *module)
{
    if (!module->on_gpu) module->on_gpu = gpu_take(module->gpu, MODULE_BYTES);
    return module->on_gpu ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                        CUstream stream, void **parameters, void **extra)
{
    const uint32_t grid[3] = {grid_x, grid_y, grid_z}, block[3] = {block_x, block_y, block_z};
    (void)stream;
    ENTER(NEEDS_CONTEXT);
    if (extra || !grid_x || !grid_y || !grid_z || !block_x || !block_y || !block_z ||
        shared_bytes > function->shared_bytes)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = launch_faults();
    if (result == CUDA_SUCCESS) result = load(function->module);
    if (result != CUDA_SUCCESS || double_current->hangs || double_current->error) return result;
    emulated_kernel_run(function->kernel, grid, block, shared_bytes, parameters[0]);
    double blocks = (double)grid_x * grid_y * grid_z, threads = (double)block_x * block_y * block_z;
    double_time_passes(gpu_launch_seconds(blocks * threads));
    return CUDA_SUCCESS;
}
