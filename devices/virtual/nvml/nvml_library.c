/* NVML: the library, the GPUs and their properties, their memory and the processes that hold it. */
#include "nvml_device.h"
#include "devices/virtual/machine/version.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* --- the library ------------------------------------------------------------------------------ */

static int initialized; /* number of nvmlInit() calls without nvmlShutdown() */

static bool is_ready(void)
{
    return __atomic_load_n(&initialized, __ATOMIC_RELAXED) > 0;
}

ANSWER int nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    if (!plim_self_machine()) return NVML_DRIVER_NOT_LOADED;
    __atomic_add_fetch(&initialized, 1, __ATOMIC_RELAXED);
    return NVML_SUCCESS;
}

ANSWER int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
ANSWER int nvmlInit(void) { return nvmlInitWithFlags(0); }

ANSWER int nvmlShutdown(void)
{
    if (!is_ready()) return NVML_UNINITIALIZED;
    __atomic_sub_fetch(&initialized, 1, __ATOMIC_RELAXED);
    return NVML_SUCCESS;
}

ANSWER const char *nvmlErrorString(int code)
{
    static const struct {
        int code;
        const char *text;
    } texts[] = {
        {NVML_SUCCESS, "Success"},
        {NVML_UNINITIALIZED, "Uninitialized"},
        {NVML_INVALID_ARGUMENT, "Invalid Argument"},
        {NVML_NOT_SUPPORTED, "Not Supported"},
        {NVML_NO_PERMISSION, "Insufficient Permissions"},
        {NVML_NOT_FOUND, "Not Found"},
        {NVML_INSUFFICIENT_SIZE, "Insufficient Size"},
        {NVML_DRIVER_NOT_LOADED, "Driver Not Loaded"},
        {NVML_FUNCTION_NOT_FOUND, "Function Not Found"},
        {NVML_ARGUMENT_VERSION_MISMATCH, "Argument Version Mismatch"},
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (texts[i].code == code) return texts[i].text;
    return "Unknown Error";
}

static int copy_text(const char *text, char *out, unsigned size)
{
    if (!out) return NVML_INVALID_ARGUMENT;
    if (strlen(text) >= size) return NVML_INSUFFICIENT_SIZE;
    strcpy(out, text);
    return NVML_SUCCESS;
}

/* The first driver of CUDA 13.0. */
ANSWER int nvmlSystemGetDriverVersion(char *out, unsigned size)
{
    return is_ready() ? copy_text("580.65.06", out, size) : NVML_UNINITIALIZED;
}

ANSWER int nvmlSystemGetNVMLVersion(char *out, unsigned size)
{
    return is_ready() ? copy_text("13.580.65.06", out, size) : NVML_UNINITIALIZED;
}

ANSWER int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    if (!version) return NVML_INVALID_ARGUMENT;
    *version = PLIM_VERSION_DRIVER;
    return NVML_SUCCESS;
}

ANSWER int nvmlSystemGetCudaDriverVersion(int *version)
{
    return nvmlSystemGetCudaDriverVersion_v2(version);
}

ANSWER int nvmlSystemGetProcessName(unsigned pid, char *out, unsigned size)
{
    char path[32], text[4096];
    if (!is_ready()) return NVML_UNINITIALIZED;
    snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
    FILE *file = fopen(path, "r");
    if (!file) return NVML_NOT_FOUND;
    size_t length = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[length] = '\0';
    return copy_text(text, out, size);
}

ANSWER int nvmlUnitGetCount(unsigned *count)
{
    if (!count) return NVML_INVALID_ARGUMENT;
    *count = 0;
    return is_ready() ? NVML_SUCCESS : NVML_UNINITIALIZED;
}

/* --- devices --------------------------------------------------------------------------------- */

const struct plim_machine_gpu *plim_nvml_gpu(const struct nvml_device *device, int *failed)
{
    const struct plim_machine *machine = is_ready() ? plim_self_machine() : NULL;
    *failed = machine ? NVML_INVALID_ARGUMENT : NVML_UNINITIALIZED;
    for (int i = 0; machine && i < machine->gpu_count; i++)
        if ((const void *)device == &machine->gpus[i]) return &machine->gpus[i];
    return NULL;
}

int plim_nvml_index(const struct plim_machine_gpu *gpu)
{
    return (int)(gpu - plim_self_machine()->gpus);
}

ANSWER int nvmlDeviceGetCount_v2(unsigned *count)
{
    if (!is_ready()) return NVML_UNINITIALIZED;
    if (!count) return NVML_INVALID_ARGUMENT;
    *count = (unsigned)plim_self_machine()->gpu_count;
    return NVML_SUCCESS;
}

ANSWER int nvmlDeviceGetCount(unsigned *count) { return nvmlDeviceGetCount_v2(count); }

ANSWER int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct nvml_device **device)
{
    unsigned count;
    int failed = nvmlDeviceGetCount_v2(&count);
    if (failed) return failed;
    if (index >= count || !device) return NVML_INVALID_ARGUMENT;
    *device = (struct nvml_device *)&plim_self_machine()->gpus[index];
    return NVML_SUCCESS;
}

ANSWER int nvmlDeviceGetHandleByIndex(unsigned index, struct nvml_device **device)
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

ANSWER int nvmlDeviceGetHandleByUUID(const char *uuid, struct nvml_device **device)
{
    char text[NVML_TEXT_BYTES];
    if (!is_ready()) return NVML_UNINITIALIZED;
    if (!uuid || !device) return NVML_INVALID_ARGUMENT;
    for (unsigned i = 0; !nvmlDeviceGetHandleByIndex_v2(i, device); i++) {
        plim_self_uuid_text(plim_self_machine()->gpus[i].uuid, text);
        if (!strcasecmp(text, uuid)) return NVML_SUCCESS;
    }
    return NVML_NOT_FOUND;
}

/* nvmlUUID_v1_t: the UUID as text or as 16 bytes */
struct uuid_v1 {
    unsigned version, type; /* 1: text, 2: bytes */
    union {
        char text[41];
        uint8_t bytes[16];
    } value;
};

ANSWER int nvmlDeviceGetHandleByUUIDV(const struct uuid_v1 *uuid, struct nvml_device **device)
{
    if (!is_ready()) return NVML_UNINITIALIZED;
    if (!uuid || !device) return NVML_INVALID_ARGUMENT;
    if (uuid->type == 1) return nvmlDeviceGetHandleByUUID(uuid->value.text, device);
    for (unsigned i = 0; !nvmlDeviceGetHandleByIndex_v2(i, device); i++)
        if (!memcmp(plim_self_machine()->gpus[i].uuid, uuid->value.bytes, 16)) return NVML_SUCCESS;
    return NVML_NOT_FOUND;
}

/* Buses are numbered as in attribute.c. */
static unsigned bus_of(const struct plim_machine_gpu *gpu)
{
    return (unsigned)plim_nvml_index(gpu) + 1;
}

/* Accepts "domain:bus:device.function", "domain:bus:device" or "bus:device.function", in hexadecimal. */
ANSWER int nvmlDeviceGetHandleByPciBusId_v2(const char *id, struct nvml_device **device)
{
    unsigned domain = 0, bus, slot;
    if (!is_ready()) return NVML_UNINITIALIZED;
    if (!id || !device) return NVML_INVALID_ARGUMENT;
    if (sscanf(id, "%x:%x:%x", &domain, &bus, &slot) != 3) {
        domain = 0;
        if (sscanf(id, "%x:%x.", &bus, &slot) != 2) return NVML_INVALID_ARGUMENT;
    }
    if (domain || slot || !bus || nvmlDeviceGetHandleByIndex_v2(bus - 1, device))
        return NVML_NOT_FOUND;
    return NVML_SUCCESS;
}

ANSWER int nvmlDeviceGetHandleByPciBusId(const char *id, struct nvml_device **device)
{
    return nvmlDeviceGetHandleByPciBusId_v2(id, device);
}

ANSWER int nvmlDeviceGetName(const struct nvml_device *device, char *out, unsigned size)
{
    NVML_GPU(gpu, device);
    return copy_text(gpu->name, out, size);
}

ANSWER int nvmlDeviceGetUUID(const struct nvml_device *device, char *out, unsigned size)
{
    NVML_GPU(gpu, device);
    char text[NVML_TEXT_BYTES];
    plim_self_uuid_text(gpu->uuid, text);
    return copy_text(text, out, size);
}

/* NVIDIA's vendor number. The product number is not known: 0. */
enum { VENDOR = 0x10de };

ANSWER int nvmlDeviceGetPciInfo_v3(const struct nvml_device *device, struct nvml_pci *out)
{
    NVML_GPU(gpu, device);
    if (!out) return NVML_INVALID_ARGUMENT;
    *out = (struct nvml_pci){.bus = bus_of(gpu), .device_id = VENDOR};
    snprintf(out->bus_id_legacy, sizeof(out->bus_id_legacy), "0000:%02X:00.0", out->bus);
    snprintf(out->bus_id, sizeof(out->bus_id), "00000000:%02X:00.0", out->bus);
    return NVML_SUCCESS;
}

/* In both older layouts reserved words take the place of the long bus id. */
ANSWER int nvmlDeviceGetPciInfo_v2(const struct nvml_device *device, void *out)
{
    struct nvml_pci pci;
    int failed = nvmlDeviceGetPciInfo_v3(device, &pci);
    if (!failed && !out) failed = NVML_INVALID_ARGUMENT;
    if (!failed) memcpy(out, &pci, offsetof(struct nvml_pci, bus_id));
    return failed;
}

ANSWER int nvmlDeviceGetPciInfo(const struct nvml_device *device, void *out)
{
    return nvmlDeviceGetPciInfo_v2(device, out);
}

/* nvmlPciInfoExt_v1_t */
struct pci_ext {
    unsigned version, domain, bus, device, device_id, subsystem_id, base_class, sub_class;
    char bus_id[32];
};

ANSWER int nvmlDeviceGetPciInfoExt(const struct nvml_device *device, struct pci_ext *out)
{
    NVML_GPU(gpu, device);
    if (!out) return NVML_INVALID_ARGUMENT;
    *out = (struct pci_ext){.version = out->version, .bus = bus_of(gpu), .device_id = VENDOR,
                            .base_class = 3, .sub_class = 2}; /* a 3D controller */
    snprintf(out->bus_id, sizeof(out->bus_id), "00000000:%02X:00.0", out->bus);
    return NVML_SUCCESS;
}

/* --- memory ----------------------------------------------------------------------------------- */

/* Memory that is withheld from all processes counts as used, so that `free` is what a program can allocate. */
static struct nvml_memory_v1 memory_of(const struct plim_machine_gpu *gpu)
{
    int64_t free_bytes = plim_machine_free_bytes(plim_self_machine(), plim_nvml_index(gpu));
    return (struct nvml_memory_v1){.total = (uint64_t)gpu->total_bytes,
                                   .free = (uint64_t)free_bytes,
                                   .used = (uint64_t)(gpu->total_bytes - free_bytes)};
}

ANSWER int nvmlDeviceGetMemoryInfo(const struct nvml_device *device, struct nvml_memory_v1 *out)
{
    NVML_GPU(gpu, device);
    if (!out) return NVML_INVALID_ARGUMENT;
    *out = memory_of(gpu);
    return NVML_SUCCESS;
}

ANSWER int nvmlDeviceGetMemoryInfo_v2(const struct nvml_device *device, struct nvml_memory_v2 *out)
{
    NVML_GPU(gpu, device);
    if (!out) return NVML_INVALID_ARGUMENT;
    if (out->version != NVML_MEMORY_V2) return NVML_ARGUMENT_VERSION_MISMATCH;
    struct nvml_memory_v1 memory = memory_of(gpu);
    out->total = memory.total;
    out->free = memory.free;
    out->used = memory.used;
    out->reserved = 0;
    return NVML_SUCCESS;
}

/* The window through which the host accesses GPU memory: as large as that memory, and unused. */
ANSWER int nvmlDeviceGetBAR1MemoryInfo(const struct nvml_device *device, struct nvml_memory_v1 *out)
{
    NVML_GPU(gpu, device);
    if (!out) return NVML_INVALID_ARGUMENT;
    *out = (struct nvml_memory_v1){.total = (uint64_t)gpu->total_bytes,
                                   .free = (uint64_t)gpu->total_bytes};
    return NVML_SUCCESS;
}

/* --- processes -------------------------------------------------------------------------------- */

struct process_v1 {
    unsigned pid;
    uint64_t used_bytes;
};
_Static_assert(sizeof(struct process_v1) == 16, "nvmlProcessInfo_v1_t");

static bool lives(const struct plim_machine_process *process)
{
    return process->pid && !process->ended && (!kill(process->pid, 0) || errno == EPERM);
}

/* Fills entries of `bytes` bytes, whose first two members are the process id and the memory. */
static int list_processes(const struct nvml_device *device, unsigned *count, void *out,
                          size_t bytes)
{
    NVML_GPU(gpu, device);
    int index = plim_nvml_index(gpu);
    struct plim_machine *machine = plim_self_machine();
    unsigned found = 0, room = count ? *count : 0;
    if (!count || (room && !out)) return NVML_INVALID_ARGUMENT;
    for (int i = 0; i < PLIM_MACHINE_PROCESSES; i++) {
        const struct plim_machine_process *process = &machine->processes[i];
        if (!process->held_bytes[index] || !lives(process)) continue;
        struct nvml_process entry = {(unsigned)process->pid, (uint64_t)process->held_bytes[index],
                                     UINT32_MAX, UINT32_MAX};
        if (found < room) memcpy((char *)out + found * bytes, &entry, bytes);
        found++;
    }
    *count = found;
    return found > room ? NVML_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

ANSWER int nvmlDeviceGetComputeRunningProcesses_v3(const struct nvml_device *device,
                                                   unsigned *count, struct nvml_process *out)
{
    return list_processes(device, count, out, sizeof(*out));
}

ANSWER int nvmlDeviceGetComputeRunningProcesses_v2(const struct nvml_device *device,
                                                   unsigned *count, struct nvml_process *out)
{
    return list_processes(device, count, out, sizeof(*out));
}

ANSWER int nvmlDeviceGetComputeRunningProcesses(const struct nvml_device *device, unsigned *count,
                                                struct process_v1 *out)
{
    return list_processes(device, count, out, sizeof(*out));
}

/* No display is attached, and there is no multi-process service. */
static int no_processes(const struct nvml_device *device, unsigned *count)
{
    NVML_GPU(gpu, device);
    if (!count) return NVML_INVALID_ARGUMENT;
    *count = 0;
    return NVML_SUCCESS;
}

#define NO_PROCESSES(name)                                                                         \
    ANSWER int name(const struct nvml_device *device, unsigned *count, void *out)                  \
    {                                                                                              \
        (void)out;                                                                                 \
        return no_processes(device, count);                                                        \
    }

NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3)
