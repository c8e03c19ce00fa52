#include "target.h"
#include "autotune/base/text.h"
#include "config.h"
#include "devices/cuda/minimum.h"
#include "devices/nvml/nvml_abi.h"
#include "devices/nvml/absence.h"
#include "devices/nvml/visible.h"
#include "devices/uri.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- parsing the URI -------------------------------------------------------------------------- */

struct question {
    bool automatic;
    char choice[128]; /* the text after "cuda:" */
    int64_t memory_cap_bytes;
};

bool plim_target_is_all(const char *uri)
{
    size_t length = strcspn(uri, ",");
    return length == 8 && !strncmp(uri, "cuda:all", length);
}

static enum plim_status read_memory(const char *uri, const char *option, int64_t *bytes,
                                    struct plim_error *err)
{
    struct plim_error inner = PLIM_ERROR_INIT;
    enum plim_status st = plim_uri_read_memory(option, bytes, &inner);
    return st ? plim_fail(err, st, "%.96s: %.256s", uri, inner.text) : PLIM_OK;
}

static enum plim_status read_uri(const char *uri, struct question *out, struct plim_error *err)
{
    size_t length = strcspn(uri, ",");
    *out = (struct question){.automatic = length == 4 && !strncmp(uri, "auto", 4)};
    bool plain = length == 4 && !strncmp(uri, "cuda", 4);
    bool chosen = length > 5 && length - 5 < sizeof(out->choice) && !strncmp(uri, "cuda:", 5);
    if (!out->automatic && !plain && !chosen)
        return plim_fail(err, PLIM_INVALID,
                         "%.96s: expected auto, cuda, cuda:N, cuda:GPU-uuid or cuda:MIG-uuid", uri);
    if (chosen) snprintf(out->choice, sizeof(out->choice), "%.*s", (int)length - 5, uri + 5);
    return read_memory(uri, uri + length, &out->memory_cap_bytes, err);
}

/* --- usability -------------------------------------------------------------------------------- */

static enum plim_status check_driver(const struct plim_nvml *nvml, struct plim_error *err)
{
    int version = plim_nvml_cuda_version(nvml);
    if (version < 0 || version >= plim_cuda_minimum.cuda_version) return PLIM_OK;
    return plim_fail(
        err, PLIM_NODEVICE,
        "the NVIDIA driver %s runs CUDA up to %d.%d, this plimsoll needs %d.%d: driver "
        "%d or newer",
        plim_nvml_driver_version(nvml), version / 1000, version % 1000 / 10,
        plim_cuda_minimum.cuda_version / 1000, plim_cuda_minimum.cuda_version % 1000 / 10,
        plim_cuda_minimum.driver);
}

/* In an exclusive mode CUDA refuses a second process, unless both are clients of an MPS server. Checked here, since a
 * worker that finds it out through CUDA is lost. */
static enum plim_status check_mode(const struct plim_nvml *nvml, const struct plim_nvml_gpu *gpu,
                                   const char *uuid, const struct plim_mps *mps,
                                   struct plim_error *err)
{
    struct plim_nvml_process processes[PLIM_NVML_PROCESSES];
    size_t count = 0;
    if (gpu->compute_mode == PLIM_COMPUTE_PROHIBITED)
        return plim_fail(
            err, PLIM_NODEVICE,
            "GPU %d (%s) is in compute mode \"prohibited\": `nvidia-smi -i %d -c 0` as "
            "root allows it",
            gpu->index, gpu->name, gpu->index);
    if (gpu->compute_mode == PLIM_COMPUTE_DEFAULT || mps->active) return PLIM_OK;
    if (plim_nvml_processes(nvml, uuid, processes, &count, NULL) || !count) return PLIM_OK;
    return plim_fail(
        err, PLIM_NODEVICE,
        "GPU %d (%s) is in an exclusive compute mode and process %lld has it: wait for "
        "that to end, share it through MPS, or take another GPU",
        gpu->index, gpu->name, (long long)processes[0].pid);
}

static enum plim_status check_capability(const struct plim_nvml_gpu *gpu, struct plim_error *err)
{
    if (gpu->compute_capability >= plim_cuda_minimum.compute_capability) return PLIM_OK;
    return plim_fail(
        err, PLIM_UNSUPPORTED,
        "GPU %d (%s) has compute capability %d.%d, this plimsoll has kernels for %d.%d "
        "and newer: --device sim:NAME predicts for it",
        gpu->index, gpu->name, gpu->compute_capability / 10, gpu->compute_capability % 10,
        plim_cuda_minimum.compute_capability / 10, plim_cuda_minimum.compute_capability % 10);
}

/* --- properties ------------------------------------------------------------------------------- */

/* Totals differ by a few percent, by driver, ECC and reserved memory. */
const struct plim_gpu *plim_target_known(const struct plim_nvml_gpu *gpu)
{
    const struct plim_gpu *known;
    if (!gpu->name[0] || plim_catalogue_find(gpu->name, &known, NULL)) return NULL;
    if (gpu->memory.total_bytes < 0) return known;
    double ratio = (double)gpu->memory.total_bytes / (double)known->total_bytes;
    return ratio > 0.9 && ratio < 1.1 ? known : NULL;
}

static void set_memory(const struct plim_nvml_memory *memory, struct plim_target *out)
{
    int64_t known_bytes = out->gpu && !out->mig ? out->gpu->total_bytes : 0;
    int64_t reserved_bytes = memory->reserved_bytes, held_bytes = memory->held_bytes;
    if (memory->total_bytes < 0) {
        out->total_bytes = known_bytes;
        return;
    }
    if (reserved_bytes < 0) { /* an old driver counts the reserve as used */
        bool plausible = known_bytes && known_bytes < memory->total_bytes;
        reserved_bytes = plausible ? memory->total_bytes - known_bytes : 0;
        held_bytes = held_bytes > reserved_bytes ? held_bytes - reserved_bytes : 0;
    }
    out->memory_is_reported = true;
    out->total_bytes = memory->total_bytes - reserved_bytes;
    out->held_bytes = held_bytes;
}

static enum plim_status set_cap(const char *uri, int64_t cap_bytes, struct plim_target *out,
                                struct plim_error *err)
{
    char total[16], cap[32] = "";
    if (out->total_bytes && cap_bytes > out->total_bytes)
        return plim_fail(err, PLIM_INVALID, "%.96s: %s has only %s", uri, out->name,
                         plim_format_bytes(out->total_bytes, total));
    out->memory_cap_bytes = cap_bytes;
    if (cap_bytes) snprintf(cap, sizeof(cap), ",memory=%lld", (long long)cap_bytes);
    snprintf(out->uri, sizeof(out->uri), "cuda:%.80s%s", out->uuid, cap);
    if (!out->uuid[0]) snprintf(out->uri, sizeof(out->uri), "cuda:%d%s", out->ordinal, cap);
    return PLIM_OK;
}

static void describe(const struct plim_nvml *nvml, const struct plim_visible_world *world,
                     const struct plim_visible_device *device, struct plim_target *out)
{
    const struct plim_nvml_gpu *gpu = &world->gpus[device->gpu];
    out->gpu = plim_target_known(gpu);
    out->mig = device->instance >= 0;
    out->multiprocessors = out->mig   ? gpu->instances[device->instance].multiprocessors
                           : out->gpu ? out->gpu->multiprocessors
                                      : 0;
    if (out->multiprocessors < 0) out->multiprocessors = 0;
    if (out->mig)
        snprintf(out->mig_profile, sizeof(out->mig_profile), "%s",
                 gpu->instances[device->instance].profile);
    out->cores = gpu->cores;
    out->max_sm_mhz = gpu->max_sm_mhz;
    out->power_limit_watts = gpu->power_limit_watts;
    out->compute_capability = gpu->compute_capability;
    out->cuda_version = plim_nvml_cuda_version(nvml);
    snprintf(out->uuid, sizeof(out->uuid), "%s", plim_visible_uuid(world, device));
    snprintf(out->name, sizeof(out->name), "%s", gpu->name);
    snprintf(out->driver_version, sizeof(out->driver_version), "%s",
             plim_nvml_driver_version(nvml));
    set_memory(out->mig ? &gpu->instances[device->instance].memory : &gpu->memory, out);
}

/* --- resolving -------------------------------------------------------------------------------- */

static enum plim_status open_nvml(const struct plim_target_place *place, struct plim_nvml **out,
                                  int *code, struct plim_error *err)
{
    struct plim_error inner = PLIM_ERROR_INIT;
    struct plim_absence absence;
    enum plim_status st = plim_nvml_open(place->library, out, code, &inner);
    if (!st) return PLIM_OK;
    plim_absence_read(place->root, &absence);
    return plim_absence_explain(&absence, *code, &inner, err);
}

enum plim_status plim_target_open(const struct plim_target_place *place, struct plim_nvml **out,
                                  struct plim_error *err)
{
    int code;
    return open_nvml(place, out, &code, err);
}

/* True if CUDA's library exists, so that a worker can look for a GPU. */
static bool has_driver(const struct plim_target_place *place)
{
    void *library = dlopen(place->driver ? place->driver : "libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (library) dlclose(library);
    return library != NULL;
}

/* Selects a GPU without NVML. "" and "N" are CUDA's own numbers; a UUID goes to CUDA_VISIBLE_DEVICES. */
static enum plim_status select_without_nvml(const char *uri, const char *choice,
                                            struct plim_target *out, struct plim_error *err)
{
    char *end;
    out->without_nvml = true;
    if (!strncmp(choice, "GPU-", 4) || !strncmp(choice, "MIG-", 4)) {
        snprintf(out->uuid, sizeof(out->uuid), "%.80s", choice);
    } else {
        long ordinal = *choice ? strtol(choice, &end, 10) : 0;
        if (*choice && (end == choice || *end || ordinal < 0 || ordinal > 1023))
            return plim_fail(err, PLIM_INVALID,
                             "%.96s: expected cuda:N, cuda:GPU-uuid or cuda:MIG-uuid", uri);
        out->ordinal = (int)ordinal;
    }
    snprintf(
        out->note, sizeof(out->note),
        "there is no NVML (libnvidia-ml.so.1), so the memory that other processes hold is a guess; in a container "
        "the driver capability `utility` brings it");
    return PLIM_OK;
}

/* Notes that the order in which CUDA numbers different GPUs is a guess: a number may mean another GPU in the user's
 * program. */
static void note_guess(const struct plim_visible_world *world, const char *choice,
                       struct plim_target *out)
{
    struct plim_visible list;
    plim_visible_list(world, &list);
    if (!list.guessed || list.count < 2 || strchr(choice, '-')) return;
    snprintf(out->note, sizeof(out->note),
             "the GPUs here differ, and which one CUDA counts first is a guess: %.40s is taken for "
             "cuda:%s; cuda:GPU-uuid or CUDA_DEVICE_ORDER=PCI_BUS_ID make sure",
             out->name, choice[0] ? choice : "0");
}

/* Appends to the note that the GPU is shared through MPS. */
static void note_mps(struct plim_target *out)
{
    size_t used = strlen(out->note);
    if (!out->mps.active) return;
    snprintf(out->note + used, sizeof(out->note) - used,
             "%sCUDA goes through MPS here%s%s%s: other clients slow steps down, and a fatal error of "
             "one ends all",
             used ? "; " : "", out->mps.limits[0] ? " (" : "", out->mps.limits,
             out->mps.limits[0] ? ")" : "");
}

static enum plim_status examine(const struct plim_nvml *nvml,
                                const struct plim_visible_world *world,
                                const struct plim_visible_device *device, struct plim_target *out,
                                struct plim_error *err)
{
    const struct plim_nvml_gpu *gpu = &world->gpus[device->gpu];
    enum plim_status st = check_capability(gpu, err);
    if (!st) st = check_mode(nvml, gpu, plim_visible_uuid(world, device), &out->mps, err);
    if (!st) describe(nvml, world, device, out);
    return st;
}

/* Finds the first usable GPU; `note` says why the first of those before it is not usable. */
static enum plim_status find_any(const struct plim_nvml *nvml,
                                 const struct plim_visible_world *world, struct plim_target *out,
                                 struct plim_error *err)
{
    struct plim_visible list;
    struct plim_error first = PLIM_ERROR_INIT;
    struct plim_visible_device none;
    enum plim_status st = PLIM_NODEVICE;
    plim_visible_list(world, &list);
    if (!list.count) return plim_visible_choose(world, "", &none, err);
    for (size_t i = 0; i < list.count && st; i++)
        st = examine(nvml, world, &list.devices[i], out, &first);
    if (st) return plim_fail(err, first.status, "%s", first.text);
    snprintf(out->note, sizeof(out->note), "%s", first.text);
    return PLIM_OK;
}

static enum plim_status find_chosen(const struct plim_nvml *nvml,
                                    const struct plim_visible_world *world, const char *choice,
                                    struct plim_target *out, struct plim_error *err)
{
    struct plim_visible_device device;
    enum plim_status st = plim_visible_choose(world, choice, &device, err);
    if (!st) st = examine(nvml, world, &device, out, err);
    if (!st) note_guess(world, choice, out);
    return st;
}

static enum plim_status fail_without_kernels(const char *uri, struct plim_error *err)
{
    return plim_fail(
        err, PLIM_UNSUPPORTED,
        "%.96s: this plimsoll is built without GPU kernels, expected sim:NAME; build it "
        "with nvcc and -Dgpu_archs=native on the machine with the GPU, or -Dgpu_archs=all",
        uri);
}

static enum plim_status find(const struct plim_target_place *place, const char *uri,
                             const struct question *question, struct plim_target *out,
                             struct plim_error *err)
{
    struct plim_nvml *nvml = NULL;
    struct plim_visible_world world = {.visible_devices = place->visible_devices,
                                       .device_order = place->device_order};
    enum plim_status st = PLIM_OK;
    int code;
    if (!place->has_cuda && !question->automatic) return fail_without_kernels(uri, err);
    st = open_nvml(place, &nvml, &code, err);
    if (st && code == NVML_LIBRARY_NOT_FOUND && !question->automatic && has_driver(place)) {
        *err = (struct plim_error)PLIM_ERROR_INIT;
        PLIM_TRY(select_without_nvml(uri, question->choice, out, err));
        return set_cap(uri, question->memory_cap_bytes, out, err);
    }
    PLIM_TRY(st);
    world.gpus = plim_nvml_gpus(nvml, &world.count);
    PLIM_TRY(check_driver(nvml, err));
    PLIM_TRY(question->automatic ? find_any(nvml, &world, out, err)
                                 : find_chosen(nvml, &world, question->choice, out, err));
    if (!place->has_cuda) PLIM_TRY(fail_without_kernels(uri, err));
    PLIM_TRY(set_cap(uri, question->memory_cap_bytes, out, err));
out:
    plim_nvml_close(&nvml);
    return st;
}

enum plim_status plim_target_resolve_at(const struct plim_target_place *place, const char *uri,
                                        struct plim_target *out, struct plim_error *err)
{
    struct plim_error inner = PLIM_ERROR_INIT;
    struct question question;
    *out = (struct plim_target){0};
    plim_mps_read(place->root, &place->mps, &out->mps);
    enum plim_status st = read_uri(uri, &question, err);
    if (st) return st;
    st = find(place, uri, &question, out, &inner);
    /* A GPU that is lost before the search starts counts as unusable. */
    if (st == PLIM_LOST) st = PLIM_NODEVICE;
    if (!st) note_mps(out);
    if (!st) return PLIM_OK;
    *out = (struct plim_target){0};
    if (!question.automatic || (st != PLIM_NODEVICE && st != PLIM_UNSUPPORTED))
        return plim_fail(err, st, "%s", inner.text);
    out->simulate = true;
    out->memory_cap_bytes = question.memory_cap_bytes;
    snprintf(out->note, sizeof(out->note), "%s", inner.text);
    return PLIM_OK;
}

enum plim_status plim_target_list(const struct plim_target_place *place, struct plim_target *out,
                                  size_t room, size_t *count, struct plim_error *err)
{
    struct plim_nvml *nvml;
    struct plim_visible list;
    struct plim_visible_device none;
    struct plim_visible_world world = {.visible_devices = place->visible_devices,
                                       .device_order = place->device_order};
    *count = 0;
    enum plim_status st = plim_target_open(place, &nvml, err);
    if (st) return st;
    world.gpus = plim_nvml_gpus(nvml, &world.count);
    plim_visible_list(&world, &list);
    if (!list.count) st = plim_visible_choose(&world, "", &none, err); /* for its error message */
    for (size_t i = 0; i < list.count && i < room && !st; i++) {
        out[i] = (struct plim_target){0};
        plim_mps_read(place->root, &place->mps, &out[i].mps);
        describe(nvml, &world, &list.devices[i], &out[i]);
        st = set_cap("auto", 0, &out[i], err);
        *count = i + 1;
    }
    plim_nvml_close(&nvml);
    return st;
}

struct plim_target_place plim_target_local(void)
{
    return (struct plim_target_place){.root = "",
                                      .visible_devices = getenv("CUDA_VISIBLE_DEVICES"),
                                      .device_order = getenv("CUDA_DEVICE_ORDER"),
                                      .mps = plim_mps_variables_here(),
                                      .has_cuda = PLIM_WITH_CUDA};
}

enum plim_status plim_target_resolve(const char *uri, struct plim_target *out,
                                     struct plim_error *err)
{
    struct plim_target_place place = plim_target_local();
    return plim_target_resolve_at(&place, uri, out, err);
}
