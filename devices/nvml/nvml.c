#include "internal.h"

#include <dlfcn.h>
#include <stdio.h>

/* --- the library ------------------------------------------------------------------------------ */

static void find_calls(struct plim_nvml *nvml)
{
    static const struct {
        size_t offset;
        const char *names[2]; /* newest first */
    } wanted[] = {
#define WANTED(member, newest, older, parameters)                                                  \
    {offsetof(struct nvml_calls, member), {newest, older}},
        NVML_CALL_MAP(WANTED)
#undef WANTED
    };
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        void *symbol = dlsym(nvml->library, wanted[i].names[0]);
        if (!symbol && wanted[i].names[1]) symbol = dlsym(nvml->library, wanted[i].names[1]);
        memcpy((char *)&nvml->call + wanted[i].offset, &symbol, sizeof(symbol));
    }
}

#define SONAME "libnvidia-ml.so.1"
#define WSL_FOLDER "/usr/lib/wsl/lib"

static enum plim_status load(struct plim_nvml *nvml, const char *library, struct plim_error *err)
{
    char why[256];
    nvml->library = dlopen(library ? library : SONAME, RTLD_LAZY | RTLD_LOCAL);
    if (!nvml->library) {
        snprintf(why, sizeof(why), "%s", dlerror());
        if (!library) nvml->library = dlopen(WSL_FOLDER "/" SONAME, RTLD_LAZY | RTLD_LOCAL);
    }
    if (!nvml->library)
        return plim_fail(err, PLIM_NODEVICE,
                         "%s (the driver's library, looked for by the loader and in " WSL_FOLDER
                         "): install the NVIDIA driver with its libraries, or start the container "
                         "with its GPUs (--gpus all)",
                         why);
    find_calls(nvml);
    return PLIM_OK;
}

static enum plim_status start(struct plim_nvml *nvml, int *code, struct plim_error *err)
{
    *code = NVML(nvml, init);
    if (*code) return plim_nvml_fail(err, *code, "libnvidia-ml.so.1");
    nvml->started = true;
    if (NVML(nvml, driver_version, nvml->driver_version, sizeof(nvml->driver_version)))
        nvml->driver_version[0] = '\0';
    if (NVML(nvml, cuda_version, &nvml->cuda_version)) nvml->cuda_version = -1;
    return PLIM_OK;
}

/* --- one GPU --------------------------------------------------------------------------------- */

/* NVML's header and its answers differ in whether v2's `used` includes the reserved bytes: what is neither reserved nor
 * free is held. */
int plim_nvml_read_memory(const struct plim_nvml *nvml, struct nvml_device *device,
                          struct plim_nvml_memory *out)
{
    struct nvml_memory_v2 v2 = {.version = NVML_MEMORY_V2};
    struct nvml_memory_v1 v1 = {0};
    *out = (struct plim_nvml_memory){-1, -1, -1, -1};
    int code = NVML(nvml, memory_v2, device, &v2);
    if (!code) {
        *out =
            (struct plim_nvml_memory){(int64_t)v2.total, (int64_t)v2.reserved, (int64_t)v2.free, 0};
        out->held_bytes = out->total_bytes - out->reserved_bytes - out->free_bytes;
    } else {
        if (plim_nvml_status(code) == PLIM_LOST) return code;
        code = NVML(nvml, memory_v1, device, &v1);
        if (code) return code;
        *out = (struct plim_nvml_memory){(int64_t)v1.total, -1, (int64_t)v1.free, 0};
        out->held_bytes = out->total_bytes - out->free_bytes;
    }
    if (out->held_bytes < 0) out->held_bytes = 0;
    return NVML_SUCCESS;
}

/* NVIDIA's name: slices of compute, and memory in whole GB, including reserved memory. */
static void name_profile(const struct nvml_attributes *attributes, char out[32])
{
    unsigned gigabytes = (unsigned)((attributes->memory_mib + 1023) / 1024);
    unsigned slices = attributes->gpu_slices, part = attributes->compute_slices;
    if (part && part < slices) snprintf(out, 32, "%uc.%ug.%ugb", part, slices, gigabytes);
    else snprintf(out, 32, "%ug.%ugb", slices, gigabytes);
}

static void read_instances(const struct plim_nvml *nvml, struct nvml_handles *handles,
                           struct plim_nvml_gpu *gpu)
{
    unsigned mode = 0, pending, slots = 0;
    if (NVML(nvml, mig_mode, handles->gpu, &mode, &pending)) return;
    gpu->mig = mode == NVML_MIG_ENABLED;
    if (!gpu->mig || NVML(nvml, mig_count, handles->gpu, &slots)) return;
    for (unsigned i = 0; i < slots && gpu->instance_count < PLIM_NVML_INSTANCES; i++) {
        struct plim_nvml_instance *instance = &gpu->instances[gpu->instance_count];
        struct nvml_attributes attributes;
        struct nvml_device *handle;
        if (NVML(nvml, mig_by_index, handles->gpu, i, &handle)) continue; /* an empty slot */
        if (NVML(nvml, uuid, handle, instance->uuid, sizeof(instance->uuid))) continue;
        int code = NVML(nvml, attributes, handle, &attributes);
        instance->multiprocessors = code ? -1 : (int)attributes.multiprocessors;
        if (!code) name_profile(&attributes, instance->profile);
        plim_nvml_read_memory(nvml, handle, &instance->memory);
        if (instance->memory.total_bytes < 0 && !code)
            instance->memory.total_bytes = (int64_t)(attributes.memory_mib << 20);
        handles->instances[gpu->instance_count++] = handle;
    }
}

static void read_modes(const struct plim_nvml *nvml, struct nvml_device *device,
                       struct plim_nvml_gpu *gpu)
{
    int mode = 0, active = 0, persistence = 0;
    unsigned mhz, cores, milliwatts;
    if (!NVML(nvml, compute_mode, device, &mode)) gpu->compute_mode = (enum plim_compute_mode)mode;
    gpu->display_active = !NVML(nvml, display_active, device, &active) && active;
    gpu->persistence = !NVML(nvml, persistence, device, &persistence) && persistence;
    gpu->max_sm_mhz = NVML(nvml, max_clock, device, NVML_CLOCK_SM, &mhz) ? -1 : (int)mhz;
    gpu->power_limit_watts =
        NVML(nvml, power_limit, device, &milliwatts) ? -1 : milliwatts * 1e-3;
    gpu->cores = NVML(nvml, cores, device, &cores) ? -1 : (int)cores;
}

/* Reads what a GPU has to report before it can be used; anything else may be unknown. */
static int read_identity(const struct plim_nvml *nvml, struct nvml_device *device,
                         struct plim_nvml_gpu *gpu)
{
    struct nvml_pci pci;
    int major, minor;
    int code = NVML(nvml, name, device, gpu->name, sizeof(gpu->name));
    if (!code) code = NVML(nvml, uuid, device, gpu->uuid, sizeof(gpu->uuid));
    if (!code && !NVML(nvml, pci, device, &pci))
        snprintf(gpu->bus_id, sizeof(gpu->bus_id), "%04x:%02x:%02x.0", pci.domain, pci.bus,
                 pci.device);
    if (!code) code = NVML(nvml, capability, device, &major, &minor);
    if (!code) gpu->compute_capability = 10 * major + minor;
    if (code) return code;
    /* in MIG mode only privileged users can read it; if the GPU shares the host's memory, no user can */
    code = plim_nvml_read_memory(nvml, device, &gpu->memory);
    return plim_nvml_status(code) == PLIM_LOST ? code : NVML_SUCCESS;
}

static void read_gpu(const struct plim_nvml *nvml, unsigned index, struct plim_nvml_gpu *gpu,
                     struct nvml_handles *handles)
{
    *gpu = (struct plim_nvml_gpu){.index = (int)index, .compute_capability = -1};
    *handles = (struct nvml_handles){0};
    int code = NVML(nvml, by_index, index, &handles->gpu);
    if (!code) code = read_identity(nvml, handles->gpu, gpu);
    if (!code) {
        read_modes(nvml, handles->gpu, gpu);
        read_instances(nvml, handles, gpu);
        return;
    }
    gpu->status = plim_nvml_status(code);
    snprintf(gpu->problem, sizeof(gpu->problem), "%s (NVML error %d)", plim_nvml_status_text(code),
             code);
}

static enum plim_status list_gpus(struct plim_nvml *nvml, int *code, struct plim_error *err)
{
    unsigned count = 0;
    *code = NVML(nvml, count, &count);
    if (*code) return plim_nvml_fail(err, *code, "the number of GPUs");
    for (unsigned i = 0; i < count; i++) {
        struct plim_nvml_gpu gpu;
        struct nvml_handles handles;
        read_gpu(nvml, i, &gpu, &handles);
        if (PLIM_ARRAY_PUSH(&nvml->gpus, gpu) || PLIM_ARRAY_PUSH(&nvml->handles, handles))
            return plim_fail(err, PLIM_NOMEM, "no memory for the list of GPUs");
    }
    return PLIM_OK;
}

/* --- opening ---------------------------------------------------------------------------------- */

enum plim_status plim_nvml_open(const char *library, struct plim_nvml **out, int *code,
                                struct plim_error *err)
{
    enum plim_status st = PLIM_OK;
    struct plim_nvml *nvml = calloc(1, sizeof(*nvml));
    *out = NULL;
    *code = NVML_LIBRARY_NOT_FOUND;
    if (!nvml) return plim_fail(err, PLIM_NOMEM, "no memory for the list of GPUs");
    PLIM_TRY(load(nvml, library, err));
    PLIM_TRY(start(nvml, code, err));
    PLIM_TRY(list_gpus(nvml, code, err));
    *out = nvml;
    nvml = NULL;
out:
    plim_nvml_close(&nvml);
    return st;
}

void plim_nvml_close(struct plim_nvml **nvml)
{
    struct plim_nvml *n = nvml ? *nvml : NULL;
    if (!n) return;
    if (n->started) NVML(n, shutdown);
    if (n->library) dlclose(n->library);
    PLIM_ARRAY_FINISH(&n->gpus);
    PLIM_ARRAY_FINISH(&n->handles);
    free(n);
    *nvml = NULL;
}

const char *plim_nvml_driver_version(const struct plim_nvml *nvml)
{
    return nvml->driver_version;
}

int plim_nvml_cuda_version(const struct plim_nvml *nvml)
{
    return nvml->cuda_version;
}

const struct plim_nvml_gpu *plim_nvml_gpus(const struct plim_nvml *nvml, size_t *count)
{
    *count = nvml->gpus.count;
    return nvml->gpus.items;
}
