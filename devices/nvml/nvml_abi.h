/* The part of libnvidia-ml.so.1 that is used: functions, layouts and constants, as in NVIDIA's nvml.h of API 13. The
 * library is opened at run time, so its header is not needed to build.
 *
 * Every function returns a number, 0 for success. A handle is an opaque pointer, valid until nvmlShutdown(); a MIG
 * instance has a handle like a GPU. */
#ifndef PLIM_DEVICES_NVML_NVML_ABI_H
#define PLIM_DEVICES_NVML_NVML_ABI_H

#include <stdint.h>

enum nvml_code {
    NVML_SUCCESS = 0,
    NVML_NOT_SUPPORTED = 3,
    NVML_NO_PERMISSION = 4,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_DRIVER_NOT_LOADED = 9,
    NVML_LIBRARY_NOT_FOUND = 12,
    NVML_FUNCTION_NOT_FOUND = 13,
    NVML_GPU_IS_LOST = 15,
    NVML_RESET_REQUIRED = 16,
    NVML_OPERATING_SYSTEM = 17,
    NVML_VERSION_MISMATCH = 18,
    NVML_MEMORY = 20, /* of the host */
};

enum { NVML_CLOCK_SM = 1, NVML_TEXT_BYTES = 96, NVML_MIG_ENABLED = 1 };

#define NVML_NOT_KNOWN UINT64_MAX /* in nvml_process.used_bytes */

struct nvml_device;

struct nvml_pci {
    char bus_id_legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32]; /* "00000000:01:00.0": 8 digits of domain where CUDA writes 4 */
};
_Static_assert(sizeof(struct nvml_pci) == 68, "nvmlPciInfo_t");

struct nvml_memory_v1 {
    uint64_t total, free, used; /* used includes what the driver reserves */
};
_Static_assert(sizeof(struct nvml_memory_v1) == 24, "nvmlMemory_t");

struct nvml_memory_v2 {
    unsigned version;
    uint64_t total, reserved, free, used;
};
_Static_assert(sizeof(struct nvml_memory_v2) == 40, "nvmlMemory_v2_t");
#define NVML_MEMORY_V2 ((unsigned)sizeof(struct nvml_memory_v2) | 2u << 24)

struct nvml_process {
    unsigned pid;
    uint64_t used_bytes;
    unsigned gpu_instance, compute_instance;
};
_Static_assert(sizeof(struct nvml_process) == 24, "nvmlProcessInfo_v2_t");

struct nvml_utilization { /* in per cent of the time between two samples of the driver */
    unsigned pid;
    unsigned long long microseconds; /* time of the sample, by the wall clock */
    unsigned multiprocessors, memory, encoder, decoder;
};
_Static_assert(sizeof(struct nvml_utilization) == 32, "nvmlProcessUtilizationSample_t");

struct nvml_attributes {
    unsigned multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
    unsigned gpu_slices, compute_slices;
    uint64_t memory_mib;
};
_Static_assert(sizeof(struct nvml_attributes) == 40, "nvmlDeviceAttributes_t");

struct nvml_temperature {
    unsigned version, sensor;
    int celsius;
};
_Static_assert(sizeof(struct nvml_temperature) == 12, "nvmlTemperature_v1_t");
#define NVML_TEMPERATURE_V1 ((unsigned)sizeof(struct nvml_temperature) | 1u << 24)

/* X(member, newest name, older name of the same layout or NULL, parameters) */
#define NVML_CALL_MAP(X)                                                                           \
    X(init, "nvmlInit_v2", "nvmlInit", (void))                                                     \
    X(shutdown, "nvmlShutdown", NULL, (void))                                                      \
    X(driver_version, "nvmlSystemGetDriverVersion", NULL, (char *, unsigned))                      \
    X(cuda_version, "nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion",         \
      (int *))                                                                                     \
    X(count, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount", (unsigned *))                          \
    X(by_index, "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex",                     \
      (unsigned, struct nvml_device **))                                                           \
    X(name, "nvmlDeviceGetName", NULL, (struct nvml_device *, char *, unsigned))                   \
    X(uuid, "nvmlDeviceGetUUID", NULL, (struct nvml_device *, char *, unsigned))                   \
    X(pci, "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2",                                   \
      (struct nvml_device *, struct nvml_pci *))                                                   \
    X(capability, "nvmlDeviceGetCudaComputeCapability", NULL,                                      \
      (struct nvml_device *, int *, int *))                                                        \
    X(cores, "nvmlDeviceGetNumGpuCores", NULL, (struct nvml_device *, unsigned *))                 \
    X(memory_v2, "nvmlDeviceGetMemoryInfo_v2", NULL,                                               \
      (struct nvml_device *, struct nvml_memory_v2 *))                                             \
    X(memory_v1, "nvmlDeviceGetMemoryInfo", NULL, (struct nvml_device *, struct nvml_memory_v1 *)) \
    X(processes, "nvmlDeviceGetComputeRunningProcesses_v3",                                        \
      "nvmlDeviceGetComputeRunningProcesses_v2",                                                   \
      (struct nvml_device *, unsigned *, struct nvml_process *))                                   \
    X(mig_mode, "nvmlDeviceGetMigMode", NULL, (struct nvml_device *, unsigned *, unsigned *))      \
    X(mig_count, "nvmlDeviceGetMaxMigDeviceCount", NULL, (struct nvml_device *, unsigned *))       \
    X(mig_by_index, "nvmlDeviceGetMigDeviceHandleByIndex", NULL,                                   \
      (struct nvml_device *, unsigned, struct nvml_device **))                                     \
    X(attributes, "nvmlDeviceGetAttributes_v2", NULL,                                              \
      (struct nvml_device *, struct nvml_attributes *))                                            \
    X(compute_mode, "nvmlDeviceGetComputeMode", NULL, (struct nvml_device *, int *))               \
    X(display_active, "nvmlDeviceGetDisplayActive", NULL, (struct nvml_device *, int *))           \
    X(persistence, "nvmlDeviceGetPersistenceMode", NULL, (struct nvml_device *, int *))            \
    X(clock, "nvmlDeviceGetClockInfo", NULL, (struct nvml_device *, int, unsigned *))              \
    X(max_clock, "nvmlDeviceGetMaxClockInfo", NULL, (struct nvml_device *, int, unsigned *))       \
    X(clock_reasons, "nvmlDeviceGetCurrentClocksEventReasons",                                     \
      "nvmlDeviceGetCurrentClocksThrottleReasons", (struct nvml_device *, unsigned long long *))   \
    X(power, "nvmlDeviceGetPowerUsage", NULL, (struct nvml_device *, unsigned *))                  \
    X(power_limit, "nvmlDeviceGetEnforcedPowerLimit", NULL, (struct nvml_device *, unsigned *))    \
    X(temperature_v, "nvmlDeviceGetTemperatureV", NULL,                                            \
      (struct nvml_device *, struct nvml_temperature *))                                           \
    X(temperature, "nvmlDeviceGetTemperature", NULL, (struct nvml_device *, int, unsigned *))      \
    X(utilization, "nvmlDeviceGetProcessUtilization", NULL,                                        \
      (struct nvml_device *, struct nvml_utilization *, unsigned *, unsigned long long))

/* The functions that were found; the others are NULL. */
struct nvml_calls {
#define NVML_CALL_MEMBER(member, newest, older, parameters) int(*member) parameters;
    NVML_CALL_MAP(NVML_CALL_MEMBER)
#undef NVML_CALL_MEMBER
};

#endif
