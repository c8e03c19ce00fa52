/* NVML: the current state of a GPU, which is idle, and how GPUs are connected.
 *
 * Sensors, power and limits are invented, for programs that print or log them. Features that a real GPU may lack are
 * reported as not supported rather than invented. */
#include "nvml_device.h"
#include <string.h>
#include <unistd.h>

enum { CELSIUS = 30, WATTS_IDLE = 50, WATTS_LIMIT = 300 };

/* --- functions that return one number --------------------------------------------------------- */

#define NUMBER(name, type, value)                                                                  \
    ANSWER int name(const struct nvml_device *device, type *out)                                   \
    {                                                                                              \
        NVML_GPU(gpu, device);                                                                   \
        if (!out) return NVML_INVALID_ARGUMENT;                                                    \
        *out = (type)(value);                                                                      \
        return NVML_SUCCESS;                                                                       \
    }

/* As NUMBER, for functions with an argument before the result that selects which number. */
#define NUMBER_OF(name, type, value)                                                               \
    ANSWER int name(const struct nvml_device *device, int which, type *out)                        \
    {                                                                                              \
        NVML_GPU(gpu, device);                                                                   \
        if (which < 0 || !out) return NVML_INVALID_ARGUMENT;                                       \
        *out = (type)(value);                                                                      \
        return NVML_SUCCESS;                                                                       \
    }

/* nvmlDeviceArchitecture_t; the last row whose compute capability does not exceed the GPU's applies. Cores per
 * multiprocessor: CUDA C Programming Guide, "Compute Capabilities". */
static const struct {
    int compute_capability;
    unsigned architecture, cores;
} architectures[] = {
    {60, 4, 64}, {61, 4, 128}, {70, 5, 64},  {75, 6, 64},    {80, 7, 64},
    {86, 7, 128}, {89, 8, 128}, {90, 9, 128}, {100, 10, 128},
};

static size_t architecture_of(const struct plim_machine_gpu *gpu)
{
    size_t found = 0;
    for (size_t i = 0; i < sizeof(architectures) / sizeof(architectures[0]); i++)
        if (architectures[i].compute_capability <= gpu->compute_capability) found = i;
    return found;
}

static unsigned megahertz(const struct plim_machine_gpu *gpu, int clock)
{
    return (unsigned)(clock == 2 ? gpu->memory_clock_khz : gpu->clock_khz) / 1000;
}

NUMBER(nvmlDeviceGetIndex, unsigned, plim_nvml_index(gpu))
NUMBER(nvmlDeviceGetMinorNumber, unsigned, plim_nvml_index(gpu))
NUMBER(nvmlDeviceGetBoardId, unsigned, (plim_nvml_index(gpu) + 1) << 8)
NUMBER(nvmlDeviceGetMultiGpuBoard, unsigned, 0)
NUMBER(nvmlDeviceGetBrand, int, strstr(gpu->name, "GeForce") ? 5 : 14) /* GeForce, NVIDIA */
NUMBER(nvmlDeviceGetArchitecture, unsigned, architectures[architecture_of(gpu)].architecture)
NUMBER(nvmlDeviceGetNumGpuCores, unsigned,
       architectures[architecture_of(gpu)].cores * (unsigned)gpu->multiprocessors)
NUMBER(nvmlDeviceGetMemoryBusWidth, unsigned, gpu->memory_bus_bits)
NUMBER(nvmlDeviceGetPersistenceMode, int, 1)
NUMBER(nvmlDeviceGetComputeMode, int, 0) /* shared by any number of processes */
NUMBER(nvmlDeviceGetDisplayMode, int, 0)
NUMBER(nvmlDeviceGetDisplayActive, int, 0)
NUMBER(nvmlDeviceGetAccountingMode, int, 0)
NUMBER(nvmlDeviceGetVirtualizationMode, int, 0)
NUMBER(nvmlDeviceGetPerformanceState, int, 0) /* the fastest */
NUMBER(nvmlDeviceGetPowerState, int, 0)
NUMBER(nvmlDeviceGetPowerUsage, unsigned, WATTS_IDLE * 1000)
NUMBER(nvmlDeviceGetPowerManagementMode, int, 1)
NUMBER(nvmlDeviceGetPowerManagementLimit, unsigned, WATTS_LIMIT * 1000)
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, unsigned, WATTS_LIMIT * 1000)
NUMBER(nvmlDeviceGetEnforcedPowerLimit, unsigned, WATTS_LIMIT * 1000)
NUMBER(nvmlDeviceGetTotalEnergyConsumption, unsigned long long, 0)
NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, 0)
NUMBER(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, 0)
NUMBER(nvmlDeviceGetSupportedClocksThrottleReasons, unsigned long long, 0x1ff)
NUMBER(nvmlDeviceGetSupportedClocksEventReasons, unsigned long long, 0x1ff)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, 4)
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, 4)
NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned, 4)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, unsigned, 16)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, unsigned, 16)
NUMBER(nvmlDeviceGetPcieReplayCounter, unsigned, 0)
NUMBER_OF(nvmlDeviceGetPcieThroughput, unsigned, 0)
NUMBER_OF(nvmlDeviceGetTemperature, unsigned, CELSIUS)
NUMBER_OF(nvmlDeviceGetTemperatureThreshold, unsigned, 90)
NUMBER_OF(nvmlDeviceGetClockInfo, unsigned, megahertz(gpu, which))
NUMBER_OF(nvmlDeviceGetMaxClockInfo, unsigned, megahertz(gpu, which))
NUMBER_OF(nvmlDeviceGetApplicationsClock, unsigned, megahertz(gpu, which))
NUMBER_OF(nvmlDeviceGetDefaultApplicationsClock, unsigned, megahertz(gpu, which))
NUMBER_OF(nvmlDeviceGetMaxCustomerBoostClock, unsigned, megahertz(gpu, which))

/* No GPU is partitioned (MIG). */
NUMBER(nvmlDeviceGetMaxMigDeviceCount, unsigned, 0)
NUMBER(nvmlDeviceIsMigDeviceHandle, unsigned, 0)

ANSWER int nvmlDeviceGetMigMode(const struct nvml_device *device, unsigned *current,
                                unsigned *pending)
{
    NVML_GPU(gpu, device);
    if (!current || !pending) return NVML_INVALID_ARGUMENT;
    *current = *pending = 0;
    return NVML_SUCCESS;
}

ANSWER int nvmlDeviceGetMigDeviceHandleByIndex(const struct nvml_device *device, unsigned index,
                                               struct nvml_device **out)
{
    NVML_GPU(gpu, device);
    (void)index;
    (void)out;
    return NVML_NOT_FOUND;
}

/* --- functions that return several values ----------------------------------------------------- */

ANSWER int nvmlDeviceGetClock(const struct nvml_device *device, int clock, int which, unsigned *out)
{
    (void)which;
    return nvmlDeviceGetClockInfo(device, clock, out);
}

ANSWER int nvmlDeviceGetCudaComputeCapability(const struct nvml_device *device, int *major,
                                              int *minor)
{
    NVML_GPU(gpu, device);
    if (!major || !minor) return NVML_INVALID_ARGUMENT;
    *major = gpu->compute_capability / 10;
    *minor = gpu->compute_capability % 10;
    return NVML_SUCCESS;
}

ANSWER int nvmlDeviceGetTemperatureV(const struct nvml_device *device, struct nvml_temperature *out)
{
    NVML_GPU(gpu, device);
    if (!out) return NVML_INVALID_ARGUMENT;
    if (out->version != NVML_TEMPERATURE_V1) return NVML_ARGUMENT_VERSION_MISMATCH;
    out->celsius = CELSIUS;
    return NVML_SUCCESS;
}

/* Percentage of time in which multiprocessors and memory were busy. */
struct utilization {
    unsigned gpu, memory;
};

ANSWER int nvmlDeviceGetUtilizationRates(const struct nvml_device *device, struct utilization *out)
{
    NVML_GPU(gpu, device);
    if (!out) return NVML_INVALID_ARGUMENT;
    *out = (struct utilization){0};
    return NVML_SUCCESS;
}

static int no_codec(const struct nvml_device *device, unsigned *percent, unsigned *period)
{
    NVML_GPU(gpu, device);
    if (!percent || !period) return NVML_INVALID_ARGUMENT;
    *percent = 0;
    *period = 1000000; /* microseconds */
    return NVML_SUCCESS;
}

#define CODEC(name)                                                                                \
    ANSWER int name(const struct nvml_device *device, unsigned *percent, unsigned *period)         \
    {                                                                                              \
        return no_codec(device, percent, period);                                                  \
    }

CODEC(nvmlDeviceGetEncoderUtilization)
CODEC(nvmlDeviceGetDecoderUtilization)
CODEC(nvmlDeviceGetJpgUtilization)
CODEC(nvmlDeviceGetOfaUtilization)

ANSWER int nvmlDeviceGetPowerManagementLimitConstraints(const struct nvml_device *device,
                                                        unsigned *least, unsigned *most)
{
    NVML_GPU(gpu, device);
    if (!least || !most) return NVML_INVALID_ARGUMENT;
    *least = *most = WATTS_LIMIT * 1000;
    return NVML_SUCCESS;
}

ANSWER int nvmlDeviceGetRemappedRows(const struct nvml_device *device, unsigned *corrected,
                                     unsigned *uncorrected, unsigned *pending, unsigned *failure)
{
    NVML_GPU(gpu, device);
    if (!corrected || !uncorrected || !pending || !failure) return NVML_INVALID_ARGUMENT;
    *corrected = *uncorrected = *pending = *failure = 0;
    return NVML_SUCCESS;
}

/* nvmlFieldValue_t */
struct field_value {
    unsigned field, scope;
    long long at_microseconds, took_microseconds;
    int type, code;
    uint64_t value;
};
_Static_assert(sizeof(struct field_value) == 40, "nvmlFieldValue_t");

/* None of the fields is supported. */
ANSWER int nvmlDeviceGetFieldValues(const struct nvml_device *device, int count,
                                    struct field_value *values)
{
    NVML_GPU(gpu, device);
    if (count < 1 || !values) return NVML_INVALID_ARGUMENT;
    for (int i = 0; i < count; i++) {
        values[i].code = NVML_NOT_SUPPORTED;
        values[i].value = 0;
    }
    return NVML_SUCCESS;
}

/* --- topology -------------------------------------------------------------------------------- */

/* nvmlGpuP2PStatus_t 0: possible, 5: not. Capabilities: 0 read, 1 write, 2 NVLink, 3 atomics, 4 over PCI Express. As in
 * cudaDeviceCanAccessPeer(), any two GPUs can access each other. */
ANSWER int nvmlDeviceGetP2PStatus(const struct nvml_device *device, const struct nvml_device *peer,
                                  int capability, int *status)
{
    NVML_GPU(gpu, device);
    NVML_GPU(other, peer);
    if (!status || capability < 0 || capability > 4) return NVML_INVALID_ARGUMENT;
    *status = capability == 2 || capability == 3 ? 5 : 0;
    return NVML_SUCCESS;
}

/* nvmlGpuTopologyLevel_t: 0 the same board, 30 the same host bridge */
ANSWER int nvmlDeviceGetTopologyCommonAncestor(const struct nvml_device *device,
                                               const struct nvml_device *peer, int *level)
{
    NVML_GPU(gpu, device);
    NVML_GPU(other, peer);
    if (!level) return NVML_INVALID_ARGUMENT;
    *level = gpu == other ? 0 : 30;
    return NVML_SUCCESS;
}

ANSWER int nvmlDeviceOnSameBoard(const struct nvml_device *device, const struct nvml_device *peer,
                                 int *same)
{
    NVML_GPU(gpu, device);
    NVML_GPU(other, peer);
    if (!same) return NVML_INVALID_ARGUMENT;
    *same = gpu == other;
    return NVML_SUCCESS;
}

static int all_processors(const struct nvml_device *device, unsigned words, unsigned long *set)
{
    NVML_GPU(gpu, device);
    long count = sysconf(_SC_NPROCESSORS_CONF);
    unsigned bits = 8 * sizeof(*set);
    if (!words || !set) return NVML_INVALID_ARGUMENT;
    memset(set, 0, words * sizeof(*set));
    for (long i = 0; i < count && i < (long)words * bits; i++) set[i / bits] |= 1ul << i % bits;
    return NVML_SUCCESS;
}

ANSWER int nvmlDeviceGetCpuAffinity(const struct nvml_device *device, unsigned words,
                                    unsigned long *set)
{
    return all_processors(device, words, set);
}

ANSWER int nvmlDeviceGetCpuAffinityWithinScope(const struct nvml_device *device, unsigned words,
                                               unsigned long *set, int scope)
{
    (void)scope;
    return all_processors(device, words, set);
}

/* The first NUMA node. */
ANSWER int nvmlDeviceGetMemoryAffinity(const struct nvml_device *device, unsigned words,
                                       unsigned long *set, int scope)
{
    NVML_GPU(gpu, device);
    (void)scope;
    if (!words || !set) return NVML_INVALID_ARGUMENT;
    memset(set, 0, words * sizeof(*set));
    set[0] = 1;
    return NVML_SUCCESS;
}

/* All processors are near already. */
NUMBER(nvmlDeviceGetNumaNodeId, unsigned, 0)
ANSWER int nvmlDeviceSetCpuAffinity(const struct nvml_device *device)
{
    NVML_GPU(gpu, device);
    return NVML_SUCCESS;
}
ANSWER int nvmlDeviceClearCpuAffinity(const struct nvml_device *device)
{
    NVML_GPU(gpu, device);
    return NVML_SUCCESS;
}

/* nvmlGpuFabricInfo_t; state 0: the GPU is on no NVLink switch fabric. Later versions start with a version number,
 * whose low bits are the size, and have more members after `state`. */
struct fabric_info {
    uint8_t cluster[16];
    int status;
    unsigned clique;
    uint8_t state;
};

ANSWER int nvmlDeviceGetGpuFabricInfo(const struct nvml_device *device, struct fabric_info *out)
{
    NVML_GPU(gpu, device);
    if (!out) return NVML_INVALID_ARGUMENT;
    *out = (struct fabric_info){0};
    return NVML_SUCCESS;
}

ANSWER int nvmlDeviceGetGpuFabricInfoV(const struct nvml_device *device, unsigned *out)
{
    NVML_GPU(gpu, device);
    if (!out) return NVML_INVALID_ARGUMENT;
    size_t bytes = *out & 0xffffff;
    if (bytes < sizeof(*out) + sizeof(struct fabric_info) || bytes > 256)
        return NVML_ARGUMENT_VERSION_MISMATCH;
    memset(out + 1, 0, bytes - sizeof(*out));
    return NVML_SUCCESS;
}

/* --- features that these GPUs lack, as many real ones do ------------------------------------- */

/* Returns NVML_NOT_SUPPORTED without a note: programs query these and handle the error. */
#define NOT_HERE(name)                                                                             \
    ANSWER int name(const struct nvml_device *device)                                              \
    {                                                                                              \
        NVML_GPU(gpu, device);                                                                   \
        return NVML_NOT_SUPPORTED;                                                                 \
    }

NOT_HERE(nvmlDeviceGetAPIRestriction)
NOT_HERE(nvmlDeviceGetAttributes)
NOT_HERE(nvmlDeviceGetAttributes_v2)
NOT_HERE(nvmlDeviceGetBoardPartNumber)
NOT_HERE(nvmlDeviceGetBridgeChipInfo)
NOT_HERE(nvmlDeviceGetComputeInstanceId)
NOT_HERE(nvmlDeviceGetDefaultEccMode)
NOT_HERE(nvmlDeviceGetDetailedEccErrors)
NOT_HERE(nvmlDeviceGetDeviceHandleFromMigDeviceHandle)
NOT_HERE(nvmlDeviceGetDriverModel)
NOT_HERE(nvmlDeviceGetDriverModel_v2)
NOT_HERE(nvmlDeviceGetEccMode)
NOT_HERE(nvmlDeviceGetFanSpeed)
NOT_HERE(nvmlDeviceGetFanSpeed_v2)
NOT_HERE(nvmlDeviceGetGpuInstanceId)
NOT_HERE(nvmlDeviceGetGpuOperationMode)
NOT_HERE(nvmlDeviceGetGspFirmwareMode)
NOT_HERE(nvmlDeviceGetGspFirmwareVersion)
NOT_HERE(nvmlDeviceGetInforomImageVersion)
NOT_HERE(nvmlDeviceGetInforomVersion)
NOT_HERE(nvmlDeviceGetMemoryErrorCounter)
NOT_HERE(nvmlDeviceGetNumFans)
NOT_HERE(nvmlDeviceGetNvLinkCapability)
NOT_HERE(nvmlDeviceGetNvLinkErrorCounter)
NOT_HERE(nvmlDeviceGetNvLinkRemoteDeviceType)
NOT_HERE(nvmlDeviceGetNvLinkRemotePciInfo)
NOT_HERE(nvmlDeviceGetNvLinkRemotePciInfo_v2)
NOT_HERE(nvmlDeviceGetNvLinkState)
NOT_HERE(nvmlDeviceGetNvLinkUtilizationCounter)
NOT_HERE(nvmlDeviceGetNvLinkVersion)
NOT_HERE(nvmlDeviceGetPlatformInfo)
NOT_HERE(nvmlDeviceGetProcessUtilization)
NOT_HERE(nvmlDeviceGetRetiredPages)
NOT_HERE(nvmlDeviceGetRetiredPages_v2)
NOT_HERE(nvmlDeviceGetRetiredPagesPendingStatus)
NOT_HERE(nvmlDeviceGetRunningProcessDetailList)
NOT_HERE(nvmlDeviceGetSamples)
NOT_HERE(nvmlDeviceGetSerial)
NOT_HERE(nvmlDeviceGetSupportedGraphicsClocks)
NOT_HERE(nvmlDeviceGetSupportedMemoryClocks)
NOT_HERE(nvmlDeviceGetTotalEccErrors)
NOT_HERE(nvmlDeviceGetVbiosVersion)
NOT_HERE(nvmlDeviceGetViolationStatus)

/* GPU performance monitoring is not supported; no GPU before Hopper has it. `support` is nvmlGpmSupport_t: a version,
 * and the result. */
ANSWER int nvmlGpmQueryDeviceSupport(const struct nvml_device *device, uint32_t support[2])
{
    NVML_GPU(gpu, device);
    if (!support) return NVML_INVALID_ARGUMENT;
    support[1] = 0;
    return NVML_SUCCESS;
}

/* Only root may change settings of a GPU. */
#define NOT_ALLOWED(name)                                                                          \
    ANSWER int name(const struct nvml_device *device)                                              \
    {                                                                                              \
        NVML_GPU(gpu, device);                                                                   \
        return NVML_NO_PERMISSION;                                                                 \
    }

NOT_ALLOWED(nvmlDeviceResetApplicationsClocks)
NOT_ALLOWED(nvmlDeviceResetGpuLockedClocks)
NOT_ALLOWED(nvmlDeviceResetMemoryLockedClocks)
NOT_ALLOWED(nvmlDeviceSetApplicationsClocks)
NOT_ALLOWED(nvmlDeviceSetComputeMode)
NOT_ALLOWED(nvmlDeviceSetEccMode)
NOT_ALLOWED(nvmlDeviceSetGpuLockedClocks)
NOT_ALLOWED(nvmlDeviceSetMemoryLockedClocks)
NOT_ALLOWED(nvmlDeviceSetMigMode)
NOT_ALLOWED(nvmlDeviceSetPersistenceMode)
NOT_ALLOWED(nvmlDeviceSetPowerManagementLimit)

ANSWER int nvmlSystemGetConfComputeState(void) { return NVML_NOT_SUPPORTED; }
ANSWER int nvmlSystemGetConfComputeSettings(void) { return NVML_NOT_SUPPORTED; }
