/* libnvidia-ml.so.1 for tests: reports the emulated GPUs of gpu_state.h.
 *
 *   PLIM_DOUBLE_NVML   what else is so, with commas:
 *     error=N          nvmlInit fails with this number
 *     no-gpus         the driver has no GPU
 *     bad@GPU=N       the handle of the GPU with this index is refused with this number
 *     wrong-memory     memory is reported 1000 times too small
 *     old              only version 1 of the memory's layout, and no temperature structure
 *     no-mig           queries of MIG are not supported, as on GPUs without it
 *     mig, mig-empty   GPU 0 is in MIG mode, with two instances or none
 *     no-memory        a whole GPU does not tell of its memory, as to users without privileges
 *     exclusive, prohibited   the compute mode of all GPUs; libcuda keeps to the first
 *     driver=TEXT, cuda=N     the driver's version and the newest CUDA it runs (13000)
 *     name=TEXT        the name of all GPUs
 *     throttle@N       from the Nth sample of the clock on (from 1): hardware thermal slowdown
 *     hide-processes   the memory that a process holds is not reported
 *     crowd=N          N processes on every GPU, of which all but the real ones hold nothing
 *     others-compute   a process that is none of the test's computes on every GPU
 *
 * After the fault `vanish` of the GPU state every GPU is lost. A name that none of these has ends
 * the process with a line on stderr.
 */
#include "gpu_state.h"
#include "devices/nvml/nvml_abi.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

enum { INSTANCES = 2, DEFAULT_MODE = 0, PROHIBITED = 2, EXCLUSIVE_PROCESS = 3 };

/* A handle points at one of these. */
struct nvml_device {
    int gpu, instance; /* -1: the whole GPU */
};

static struct nvml_device gpus[GPU_MAX], instances[INSTANCES];
static _Atomic unsigned samples;

/* --- the environment -------------------------------------------------------------------------- */

static const char *const words[] = {
    "error=", "no-gpus", "bad@",      "no-memory",      "wrong-memory", "old",
    "no-mig", "mig",     "mig-empty", "exclusive",      "prohibited",   "driver=",
    "cuda=",  "name=",   "throttle@", "hide-processes", "crowd=",       "others-compute"};

static bool has_word(const char *text, size_t length, const char *word)
{
    size_t size = strlen(word);
    bool takes_value = word[size - 1] == '=' || word[size - 1] == '@';
    return takes_value ? length > size && !strncmp(text, word, size)
                       : length == size && !strncmp(text, word, size);
}

/* Returns the value of a word, or "" for a word without a value; NULL if it is not given. */
static const char *given(const char *word)
{
    const char *text = getenv("PLIM_DOUBLE_NVML");
    for (; text && *text; text += strcspn(text, ","), text += *text == ',')
        if (has_word(text, strcspn(text, ","), word)) return text + strlen(word);
    return NULL;
}

static void check_words(void)
{
    const char *text = getenv("PLIM_DOUBLE_NVML");
    for (; text && *text; text += strcspn(text, ","), text += *text == ',') {
        size_t i = 0, count = sizeof(words) / sizeof(words[0]);
        while (i < count && !has_word(text, strcspn(text, ","), words[i])) i++;
        if (i < count) continue;
        fprintf(stderr, "stand-in: PLIM_DOUBLE_NVML=%s: not understood\n", text);
        abort();
    }
}

static int number(const char *word, int otherwise)
{
    const char *text = given(word);
    return text ? atoi(text) : otherwise;
}

static void copy_text(const char *value, const char *otherwise, char *out, unsigned size)
{
    size_t length = value ? strcspn(value, ",") : strlen(otherwise);
    snprintf(out, size, "%.*s", (int)length, value ? value : otherwise);
}

static int state_of(const struct nvml_device *device)
{
    const char *bad = given("bad@");
    if (gpu_gone()) return NVML_GPU_IS_LOST;
    return bad && atoi(bad) == device->gpu ? atoi(bad + strcspn(bad, "=") + 1) : NVML_SUCCESS;
}

/* --- the driver ------------------------------------------------------------------------------- */

EXPORTED int nvmlInit_v2(void)
{
    check_words();
    for (int i = 0; i < GPU_MAX; i++) gpus[i] = (struct nvml_device){i, -1};
    for (int i = 0; i < INSTANCES; i++) instances[i] = (struct nvml_device){0, i};
    return number("error=", NVML_SUCCESS);
}

EXPORTED int nvmlShutdown(void)
{
    return NVML_SUCCESS;
}

EXPORTED int nvmlSystemGetDriverVersion(char *out, unsigned size)
{
    copy_text(given("driver="), "580.65.06", out, size);
    return NVML_SUCCESS;
}

EXPORTED int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    *version = number("cuda=", 13000);
    return NVML_SUCCESS;
}

EXPORTED int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = given("no-gpus") ? 0 : (unsigned)gpu_count();
    return NVML_SUCCESS;
}

EXPORTED int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct nvml_device **out)
{
    if (index >= (unsigned)gpu_count()) return NVML_NOT_FOUND;
    *out = &gpus[index];
    return state_of(*out);
}

/* --- identity --------------------------------------------------------------------------------- */

EXPORTED int nvmlDeviceGetName(struct nvml_device *device, char *out, unsigned size)
{
    copy_text(given("name="), gpu_model(device->gpu)->match, out, size);
    return state_of(device);
}

EXPORTED int nvmlDeviceGetUUID(struct nvml_device *device, char *out, unsigned size)
{
    uint8_t b[16];
    gpu_uuid(device->gpu, b);
    b[0] = (uint8_t)(b[0] + device->instance + 1);
    snprintf(out, size, "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             device->instance < 0 ? "GPU" : "MIG", b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7],
             b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
    return state_of(device);
}

EXPORTED int nvmlDeviceGetPciInfo_v3(struct nvml_device *device, struct nvml_pci *out)
{
    *out = (struct nvml_pci){.bus = (unsigned)device->gpu + 1};
    snprintf(out->bus_id, sizeof(out->bus_id), "00000000:%02X:00.0", out->bus);
    return state_of(device);
}

EXPORTED int nvmlDeviceGetCudaComputeCapability(struct nvml_device *device, int *major, int *minor)
{
    *major = gpu_model(device->gpu)->compute_capability / 10;
    *minor = gpu_model(device->gpu)->compute_capability % 10;
    return state_of(device);
}

EXPORTED int nvmlDeviceGetNumGpuCores(struct nvml_device *device, unsigned *cores)
{
    *cores = (unsigned)gpu_model(device->gpu)->multiprocessors * 64;
    return state_of(device);
}

/* --- memory ----------------------------------------------------------------------------------- */

/* A GPU is sold in whole GiB; what CUDA does not show of it is reserved. */
static struct nvml_memory_v2 memory_of(const struct nvml_device *device)
{
    const uint64_t gib = UINT64_C(1) << 30;
    uint64_t visible = (uint64_t)gpu_total_bytes(device->gpu);
    uint64_t unused = (uint64_t)gpu_free_bytes(device->gpu);
    uint64_t parts = device->instance < 0 ? 1 : INSTANCES, scale = given("wrong-memory") ? 1000 : 1;
    uint64_t total = (visible + gib - 1) / gib * gib;
    parts *= scale;
    return (struct nvml_memory_v2){.total = total / parts,
                                   .reserved = (total - visible) / parts,
                                   .free = unused / parts,
                                   .used = (visible - unused) / parts};
}

EXPORTED int nvmlDeviceGetMemoryInfo_v2(struct nvml_device *device, struct nvml_memory_v2 *out)
{
    if (given("old")) return NVML_FUNCTION_NOT_FOUND;
    if (given("no-memory") && device->instance < 0) return NVML_NO_PERMISSION;
    if (out->version != (40u | 2u << 24)) return 25;
    *out = memory_of(device);
    return state_of(device);
}

EXPORTED int nvmlDeviceGetMemoryInfo(struct nvml_device *device, struct nvml_memory_v1 *out)
{
    struct nvml_memory_v2 memory = memory_of(device);
    if (given("no-memory") && device->instance < 0) return NVML_NO_PERMISSION;
    *out = (struct nvml_memory_v1){memory.total, memory.free, memory.total - memory.free};
    return state_of(device);
}

EXPORTED int nvmlDeviceGetComputeRunningProcesses_v3(struct nvml_device *device, unsigned *count,
                                                     struct nvml_process *out)
{
    struct gpu_process list[GPU_MAX_PROCESSES];
    unsigned room = *count, crowd = (unsigned)number("crowd=", 0);
    unsigned real = (unsigned)gpu_processes(device->gpu, list, GPU_MAX_PROCESSES);
    *count = real > crowd ? real : crowd;
    if (*count > room) return NVML_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < *count; i++) {
        out[i] = (struct nvml_process){.pid = 100000 + i};
        if (i < real && list[i].pid != GPU_STRANGERS) out[i].pid = (unsigned)list[i].pid;
        if (i < real) out[i].used_bytes = (uint64_t)list[i].held_bytes;
        if (given("hide-processes")) out[i].used_bytes = NVML_NOT_KNOWN;
    }
    return state_of(device);
}

/* One process is ours; what a display takes is in the list, too. */
EXPORTED int nvmlDeviceGetProcessUtilization(struct nvml_device *device,
                                             struct nvml_utilization *out, unsigned *count,
                                             unsigned long long since)
{
    const struct nvml_utilization all[] = {
        {.pid = 100000, .microseconds = since + 1, .multiprocessors = 60},
        {.pid = 100001, .microseconds = since + 1, .multiprocessors = 4},
        {.pid = 100002, .microseconds = since + 1, .multiprocessors = 40}};
    unsigned found = given("others-compute") ? 3 : 2, room = *count;
    if (device->instance >= 0) return NVML_NOT_SUPPORTED;
    *count = found;
    if (found > room) return NVML_INSUFFICIENT_SIZE;
    memcpy(out, all, found * sizeof(*out));
    return state_of(device);
}

/* --- MIG and modes ---------------------------------------------------------------------------- */

static bool in_mig_mode(const struct nvml_device *device)
{
    return device->gpu == 0 && (given("mig") || given("mig-empty"));
}

EXPORTED int nvmlDeviceGetMigMode(struct nvml_device *device, unsigned *current, unsigned *pending)
{
    if (given("no-mig")) return NVML_NOT_SUPPORTED;
    *current = *pending = in_mig_mode(device);
    return state_of(device);
}

EXPORTED int nvmlDeviceGetMaxMigDeviceCount(struct nvml_device *device, unsigned *count)
{
    *count = in_mig_mode(device) ? 7 : 0;
    return state_of(device);
}

/* The slots between are empty. */
EXPORTED int nvmlDeviceGetMigDeviceHandleByIndex(struct nvml_device *device, unsigned index,
                                                 struct nvml_device **out)
{
    if (!given("mig") || device->gpu || index % 2 || index / 2 >= INSTANCES) return NVML_NOT_FOUND;
    *out = &instances[index / 2];
    return state_of(device);
}

EXPORTED int nvmlDeviceGetAttributes_v2(struct nvml_device *device, struct nvml_attributes *out)
{
    if (device->instance < 0) return NVML_NOT_SUPPORTED;
    *out = (struct nvml_attributes){
        .multiprocessors = (unsigned)gpu_model(device->gpu)->multiprocessors / INSTANCES,
        .gpu_slices = 3,
        .compute_slices = 3,
        .memory_mib = memory_of(device).total >> 20};
    return state_of(device);
}

EXPORTED int nvmlDeviceGetComputeMode(struct nvml_device *device, int *mode)
{
    *mode = given("exclusive")    ? EXCLUSIVE_PROCESS
            : given("prohibited") ? PROHIBITED
                                  : DEFAULT_MODE;
    return state_of(device);
}

EXPORTED int nvmlDeviceGetDisplayActive(struct nvml_device *device, int *active)
{
    *active = 0;
    return state_of(device);
}

EXPORTED int nvmlDeviceGetPersistenceMode(struct nvml_device *device, int *on)
{
    *on = 1;
    return state_of(device);
}

/* --- clocks, power, heat ---------------------------------------------------------------------- */

static bool is_throttled(void)
{
    int from = number("throttle@", 0);
    return from && samples >= (unsigned)from;
}

EXPORTED int nvmlDeviceGetClockInfo(struct nvml_device *device, int type, unsigned *mhz)
{
    samples++;
    *mhz = (unsigned)gpu_model(device->gpu)->boost_mhz / (is_throttled() ? 2 : 1);
    return type == NVML_CLOCK_SM ? state_of(device) : NVML_NOT_SUPPORTED;
}

EXPORTED int nvmlDeviceGetMaxClockInfo(struct nvml_device *device, int type, unsigned *mhz)
{
    *mhz = (unsigned)gpu_model(device->gpu)->boost_mhz;
    return type == NVML_CLOCK_SM ? state_of(device) : NVML_NOT_SUPPORTED;
}

EXPORTED int nvmlDeviceGetCurrentClocksEventReasons(struct nvml_device *device,
                                                    unsigned long long *reasons)
{
    *reasons = is_throttled() ? 0x40 | 0x8 : 0x4;
    return state_of(device);
}

EXPORTED int nvmlDeviceGetPowerUsage(struct nvml_device *device, unsigned *milliwatts)
{
    *milliwatts = (unsigned)gpu_model(device->gpu)->tdp_watts * 900;
    return state_of(device);
}

EXPORTED int nvmlDeviceGetEnforcedPowerLimit(struct nvml_device *device, unsigned *milliwatts)
{
    *milliwatts = (unsigned)gpu_model(device->gpu)->tdp_watts * 1000;
    return state_of(device);
}

EXPORTED int nvmlDeviceGetTemperatureV(struct nvml_device *device, struct nvml_temperature *out)
{
    if (given("old")) return NVML_FUNCTION_NOT_FOUND;
    if (out->version != (12u | 1u << 24) || out->sensor) return 25;
    out->celsius = is_throttled() ? 91 : 61;
    return state_of(device);
}

EXPORTED int nvmlDeviceGetTemperature(struct nvml_device *device, int sensor, unsigned *celsius)
{
    *celsius = sensor ? 0 : 60;
    return state_of(device);
}

/* The compiler compares the prototypes with what plimsoll expects. */
__attribute__((unused)) static const struct nvml_calls as_expected = {
    .init = nvmlInit_v2,
    .shutdown = nvmlShutdown,
    .driver_version = nvmlSystemGetDriverVersion,
    .cuda_version = nvmlSystemGetCudaDriverVersion_v2,
    .count = nvmlDeviceGetCount_v2,
    .by_index = nvmlDeviceGetHandleByIndex_v2,
    .name = nvmlDeviceGetName,
    .uuid = nvmlDeviceGetUUID,
    .pci = nvmlDeviceGetPciInfo_v3,
    .capability = nvmlDeviceGetCudaComputeCapability,
    .cores = nvmlDeviceGetNumGpuCores,
    .memory_v2 = nvmlDeviceGetMemoryInfo_v2,
    .memory_v1 = nvmlDeviceGetMemoryInfo,
    .processes = nvmlDeviceGetComputeRunningProcesses_v3,
    .mig_mode = nvmlDeviceGetMigMode,
    .mig_count = nvmlDeviceGetMaxMigDeviceCount,
    .mig_by_index = nvmlDeviceGetMigDeviceHandleByIndex,
    .attributes = nvmlDeviceGetAttributes_v2,
    .compute_mode = nvmlDeviceGetComputeMode,
    .display_active = nvmlDeviceGetDisplayActive,
    .persistence = nvmlDeviceGetPersistenceMode,
    .clock = nvmlDeviceGetClockInfo,
    .max_clock = nvmlDeviceGetMaxClockInfo,
    .clock_reasons = nvmlDeviceGetCurrentClocksEventReasons,
    .power = nvmlDeviceGetPowerUsage,
    .power_limit = nvmlDeviceGetEnforcedPowerLimit,
    .temperature_v = nvmlDeviceGetTemperatureV,
    .temperature = nvmlDeviceGetTemperature,
    .utilization = nvmlDeviceGetProcessUtilization,
};
