#include "internal.h"

#include <stdio.h>

/* The devices to query for a UUID: an instance has its own memory and processes, but clocks, power and temperature are
 * the GPU's. */
struct place {
    struct nvml_device *device, *gpu;
};

static enum plim_status find(const struct plim_nvml *nvml, const char *uuid, struct place *out,
                             struct plim_error *err)
{
    for (size_t i = 0; i < nvml->gpus.count; i++) {
        const struct plim_nvml_gpu *gpu = &nvml->gpus.items[i];
        const struct nvml_handles *handles = &nvml->handles.items[i];
        *out = (struct place){handles->gpu, handles->gpu};
        if (gpu->uuid[0] && strcmp(gpu->uuid, uuid) == 0) return PLIM_OK;
        for (size_t j = 0; j < gpu->instance_count; j++) {
            out->device = handles->instances[j];
            if (strcmp(gpu->instances[j].uuid, uuid) == 0) return PLIM_OK;
        }
    }
    return plim_fail(err, PLIM_NODEVICE, "%s: no GPU of this machine", uuid);
}

enum plim_status plim_nvml_memory(const struct plim_nvml *nvml, const char *uuid,
                                  struct plim_nvml_memory *out, struct plim_error *err)
{
    struct place at;
    enum plim_status st = find(nvml, uuid, &at, err);
    if (st) return st;
    int code = plim_nvml_read_memory(nvml, at.device, out);
    return code ? plim_nvml_fail(err, code, uuid) : PLIM_OK;
}

/* The number of processes may grow between the query of their number and that of the list. */
static int list_processes(const struct plim_nvml *nvml, struct nvml_device *device,
                          struct nvml_process **list, unsigned *count)
{
    int code = NVML_INSUFFICIENT_SIZE;
    *list = NULL;
    *count = PLIM_NVML_PROCESSES;
    for (int i = 0; i < 4 && code == NVML_INSUFFICIENT_SIZE; i++) {
        free(*list);
        *count += 8;
        *list = calloc(*count, sizeof(**list));
        if (!*list) return NVML_MEMORY;
        code = NVML(nvml, processes, device, count, *list);
    }
    return code;
}

enum plim_status plim_nvml_processes(const struct plim_nvml *nvml, const char *uuid,
                                     struct plim_nvml_process out[PLIM_NVML_PROCESSES],
                                     size_t *count, struct plim_error *err)
{
    struct nvml_process *list = NULL;
    unsigned found = 0;
    struct place at;
    enum plim_status st = find(nvml, uuid, &at, err);
    *count = 0;
    if (st) return st;
    int code = list_processes(nvml, at.device, &list, &found);
    if (code)
        st = plim_nvml_fail(err, code, uuid);
    else
        *count = found;
    for (unsigned i = 0; i < *count && i < PLIM_NVML_PROCESSES; i++) {
        bool known = list[i].used_bytes != NVML_NOT_KNOWN;
        out[i] = (struct plim_nvml_process){list[i].pid, known ? (int64_t)list[i].used_bytes : -1};
    }
    free(list);
    return st;
}

size_t plim_nvml_computing(const struct plim_nvml *nvml, const char *uuid, uint64_t microseconds)
{
    enum { SHARE_PERCENT = 10 };
    unsigned count = 0;
    size_t computing = 0;
    struct place at;
    if (find(nvml, uuid, &at, NULL)) return 0;
    if (NVML(nvml, utilization, at.device, NULL, &count, microseconds) != NVML_INSUFFICIENT_SIZE)
        return 0;
    struct nvml_utilization *list = calloc(count ? count : 1, sizeof(*list));
    if (list && !NVML(nvml, utilization, at.device, list, &count, microseconds))
        for (unsigned i = 0; i < count; i++)
            computing +=
                list[i].microseconds >= microseconds && list[i].multiprocessors >= SHARE_PERCENT;
    free(list);
    return computing;
}

static int read_celsius(const struct plim_nvml *nvml, struct nvml_device *gpu)
{
    struct nvml_temperature newer = {.version = NVML_TEMPERATURE_V1};
    unsigned older;
    if (!NVML(nvml, temperature_v, gpu, &newer)) return newer.celsius;
    return NVML(nvml, temperature, gpu, 0, &older) ? -1 : (int)older;
}

enum plim_status plim_nvml_sample(const struct plim_nvml *nvml, const char *uuid,
                                  struct plim_nvml_sample *out, struct plim_error *err)
{
    unsigned mhz = 0, value;
    unsigned long long reasons;
    struct place at;
    enum plim_status st = find(nvml, uuid, &at, err);
    if (st) return st;
    int code = NVML(nvml, clock, at.gpu, NVML_CLOCK_SM, &mhz);
    if (plim_nvml_status(code) == PLIM_LOST) return plim_nvml_fail(err, code, uuid);
    *out = (struct plim_nvml_sample){.sm_mhz = code ? -1 : (int)mhz};
    out->max_sm_mhz = NVML(nvml, max_clock, at.gpu, NVML_CLOCK_SM, &mhz) ? -1 : (int)mhz;
    out->celsius = read_celsius(nvml, at.gpu);
    out->power_watts = NVML(nvml, power, at.gpu, &value) ? -1 : value * 1e-3;
    out->power_limit_watts = NVML(nvml, power_limit, at.gpu, &value) ? -1 : value * 1e-3;
    out->clock_reasons = NVML(nvml, clock_reasons, at.gpu, &reasons) ? 0 : reasons;
    return PLIM_OK;
}

/* --- clock reasons ---------------------------------------------------------------------------- */

static const struct {
    uint64_t bit;
    const char *text;
    bool spoils;
} reasons_known[] = {
#define REASON(name, bit, text, spoils) {bit, text, spoils},
    PLIM_CLOCK_REASON_MAP(REASON)
#undef REASON
};

enum { REASON_COUNT = sizeof(reasons_known) / sizeof(reasons_known[0]) };

uint64_t plim_clock_reasons_spoiling(uint64_t reasons)
{
    uint64_t spoiling = 0;
    for (size_t i = 0; i < REASON_COUNT; i++)
        if (reasons_known[i].spoils) spoiling |= reasons & reasons_known[i].bit;
    return spoiling;
}

char *plim_clock_reasons_text(uint64_t reasons, char out[192])
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < REASON_COUNT; i++) {
        if (!(reasons & reasons_known[i].bit)) continue;
        reasons &= ~reasons_known[i].bit;
        used += (size_t)snprintf(out + used, 192 - used, "%s%s", used ? ", " : "",
                                 reasons_known[i].text);
    }
    if (reasons)
        snprintf(out + used, 192 - used, "%s0x%llx", used ? ", " : "", (unsigned long long)reasons);
    else if (!used)
        snprintf(out, 192, "none");
    return out;
}
