#include "visible.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { WHOLE = -1 };

/* --- CUDA's order ----------------------------------------------------------------------------- */

static bool by_bus(const struct plim_visible_world *world)
{
    return world->device_order && strcmp(world->device_order, "PCI_BUS_ID") == 0;
}

static bool is_faster(const struct plim_nvml_gpu *a, const struct plim_nvml_gpu *b)
{
    if (a->compute_capability != b->compute_capability)
        return a->compute_capability > b->compute_capability;
    return (int64_t)a->cores * a->max_sm_mhz > (int64_t)b->cores * b->max_sm_mhz;
}

/* Lists all GPUs that CUDA can use; NVML has them by bus. Equal GPUs stay in that order. */
static void order_all(const struct plim_visible_world *world, struct plim_visible *out)
{
    *out = (struct plim_visible){0};
    for (size_t i = 0; i < world->count && out->count < PLIM_VISIBLE_MAX; i++) {
        const struct plim_nvml_gpu *gpu = &world->gpus[i];
        if (gpu->status != PLIM_OK) continue;
        size_t at = out->count++;
        for (; at > 0 && !by_bus(world); at--) {
            const struct plim_nvml_gpu *before = &world->gpus[out->devices[at - 1].gpu];
            if (is_faster(gpu, before) || is_faster(before, gpu)) out->guessed = true;
            if (!is_faster(gpu, before)) break;
            out->devices[at] = out->devices[at - 1];
        }
        out->devices[at] = (struct plim_visible_device){(int)i, WHOLE};
    }
}

/* --- CUDA_VISIBLE_DEVICES --------------------------------------------------------------------- */

/* Returns the number at the start; -1 if there is none. */
static long leading_number(const char *text, size_t length)
{
    char digits[24];
    size_t count = 0, i = 0;
    while (i < length && isspace((unsigned char)text[i])) i++;
    if (i < length && text[i] == '+') i++;
    for (; i < length && isdigit((unsigned char)text[i]); i++)
        if (count < sizeof(digits) - 1) digits[count++] = text[i];
    digits[count] = '\0';
    return count ? strtol(digits, NULL, 10) : -1;
}

/* Compares a device's UUID with a prefix. */
typedef int compare_text(const char *, const char *, size_t);

/* Finds the GPU (or instance) whose UUID matches, and returns the number of matches. */
static size_t match_uuid(const struct plim_visible_world *world, const char *text, size_t length,
                         compare_text *compare, struct plim_visible_device *out)
{
    bool instances = length >= 4 && compare(text, "MIG-", 4) == 0;
    size_t fitting = 0;
    for (size_t i = 0; i < world->count; i++) {
        const struct plim_nvml_gpu *gpu = &world->gpus[i];
        if (gpu->status != PLIM_OK) continue;
        for (int j = WHOLE; j < (int)gpu->instance_count; j++) {
            const struct plim_visible_device device = {(int)i, j};
            if (instances != (j != WHOLE)) continue;
            if (compare(plim_visible_uuid(world, &device), text, length)) continue;
            *out = device;
            fitting++;
        }
    }
    return fitting;
}

/* Resolves one entry of the list. Returns false if it is invalid. */
static bool resolve(const struct plim_visible_world *world, const struct plim_visible *all,
                    const char *kind, const char *text, size_t length,
                    struct plim_visible_device *out)
{
    if (!*kind) {
        long ordinal = leading_number(text, length);
        if (ordinal < 0 || (size_t)ordinal >= all->count) return false;
        *out = all->devices[ordinal];
        return true;
    }
    return length >= 4 && strncmp(text, kind, 4) == 0 &&
           match_uuid(world, text, length, strncmp, out) == 1;
}

static bool contains(const struct plim_visible *list, const struct plim_visible_device *device)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->devices[i].gpu == device->gpu && list->devices[i].instance == device->instance)
            return true;
    return false;
}

/* Applies the variable, before MIG is considered. */
static void filter(const struct plim_visible_world *world, struct plim_visible *out)
{
    struct plim_visible all;
    const char *text = world->visible_devices;
    order_all(world, &all);
    *out = all;
    if (!text) return;
    out->count = 0;
    const char *kind = !strncmp(text, "GPU-", 4) ? "GPU-" : !strncmp(text, "MIG-", 4) ? "MIG-" : "";
    if (*kind) out->guessed = false;
    for (;;) {
        struct plim_visible_device device;
        size_t length = strcspn(text, ",");
        if (!resolve(world, &all, kind, text, length, &device)) return;
        if (contains(out, &device)) {
            out->count = 0;
            return;
        }
        out->devices[out->count++] = device; /* at most all devices, as none occurs twice */
        if (out->count == PLIM_VISIBLE_MAX || text[length] == '\0') return;
        text += length + 1;
    }
}

static bool has_instance(const struct plim_visible_world *world,
                         const struct plim_visible_device *device)
{
    return device->instance != WHOLE || world->gpus[device->gpu].instance_count > 0;
}

void plim_visible_list(const struct plim_visible_world *world, struct plim_visible *out)
{
    struct plim_visible shown;
    filter(world, &shown);
    *out = (struct plim_visible){.guessed = shown.guessed};
    for (size_t i = 0; i < shown.count; i++) {
        struct plim_visible_device device = shown.devices[i];
        if (has_instance(world, &device)) {
            if (device.instance == WHOLE) device.instance = 0;
            out->devices[0] = device;
            out->count = 1;
            return;
        }
        if (!world->gpus[device.gpu].mig) out->devices[out->count++] = device;
    }
}

const char *plim_visible_uuid(const struct plim_visible_world *world,
                              const struct plim_visible_device *device)
{
    const struct plim_nvml_gpu *gpu = &world->gpus[device->gpu];
    return device->instance == WHOLE ? gpu->uuid : gpu->instances[device->instance].uuid;
}

/* --- messages --------------------------------------------------------------------------------- */

/* Formats "cuda:0 is NVIDIA L4 (GPU-1b2c3d4e), cuda:1 ..." as far as there is room, or why there is none. */
static void describe(const struct plim_visible_world *world, char *out, size_t size)
{
    struct plim_visible all, list;
    size_t used = 0;
    plim_visible_list(world, &list);
    order_all(world, &all);
    out[0] = '\0';
    for (size_t i = 0; i < list.count && used < size; i++) {
        const struct plim_visible_device *device = &list.devices[i];
        used += (size_t)snprintf(out + used, size - used, "%scuda:%zu is %s (%.12s)",
                                 i ? ", " : "there is: ", i, world->gpus[device->gpu].name,
                                 plim_visible_uuid(world, device));
    }
    for (size_t i = 0; i < world->count && used && used < size; i++)
        if (world->gpus[i].status != PLIM_OK)
            used += (size_t)snprintf(out + used, size - used, "; GPU %d: %s", world->gpus[i].index,
                                     world->gpus[i].problem);
    if (list.count) return;
    if (world->visible_devices && all.count)
        snprintf(out, size, "CUDA_VISIBLE_DEVICES=%.64s hides all %zu GPUs: unset it or mend it",
                 world->visible_devices, all.count);
    else if (all.count)
        snprintf(out, size,
                 "GPU %d (%s) is in MIG mode and has no instance: `nvidia-smi mig -cgi 0 -C` makes "
                 "one, `nvidia-smi -mig 0` ends the mode",
                 world->gpus[all.devices[0].gpu].index, world->gpus[all.devices[0].gpu].name);
    else if (world->count)
        snprintf(out, size, "GPU %d: %s", world->gpus[0].index, world->gpus[0].problem);
    else
        snprintf(out, size, "the driver knows of no GPU");
}

/* --- choosing --------------------------------------------------------------------------------- */

static enum plim_status choose_ordinal(const struct plim_visible_world *world, const char *choice,
                                       struct plim_visible_device *out, struct plim_error *err)
{
    struct plim_visible list;
    char there[320];
    size_t digits = strspn(choice, "0123456789");
    if (choice[digits])
        return plim_fail(err, PLIM_INVALID,
                         "cuda:%.64s: expected cuda:N, cuda:GPU-uuid or cuda:MIG-uuid", choice);
    plim_visible_list(world, &list);
    size_t ordinal = digits > 4 ? PLIM_VISIBLE_MAX : digits ? (size_t)atoi(choice) : 0;
    if (ordinal < list.count) {
        *out = list.devices[ordinal];
        return PLIM_OK;
    }
    describe(world, there, sizeof(there));
    return plim_fail(err, PLIM_NODEVICE, "cuda:%.16s: no such GPU; %s", digits ? choice : "0",
                     there);
}

/* True if the device, or the GPU that it belongs to, is selected by CUDA_VISIBLE_DEVICES. */
static bool is_let_through(const struct plim_visible_world *world,
                           const struct plim_visible_device *device)
{
    struct plim_visible shown;
    const struct plim_visible_device gpu = {device->gpu, WHOLE};
    filter(world, &shown);
    return contains(&shown, device) || contains(&shown, &gpu);
}

static enum plim_status choose_uuid(const struct plim_visible_world *world, const char *choice,
                                    struct plim_visible_device *out, struct plim_error *err)
{
    char there[320];
    size_t fitting = match_uuid(world, choice, strlen(choice), strncasecmp, out);
    if (fitting > 1)
        return plim_fail(err, PLIM_INVALID,
                         "cuda:%.96s fits %zu devices, expected more of the UUID", choice, fitting);
    if (!fitting) {
        describe(world, there, sizeof(there));
        return plim_fail(err, PLIM_NODEVICE, "cuda:%.96s: no such GPU; %s", choice, there);
    }
    if (!is_let_through(world, out))
        return plim_fail(err, PLIM_NODEVICE,
                         "cuda:%.96s: CUDA_VISIBLE_DEVICES=%.64s hides this GPU", choice,
                         world->visible_devices);
    const struct plim_nvml_gpu *gpu = &world->gpus[out->gpu];
    if (out->instance == WHOLE && gpu->instance_count) out->instance = 0;
    if (out->instance == WHOLE && gpu->mig)
        return plim_fail(err, PLIM_NODEVICE,
                         "cuda:%.96s: in MIG mode and has no instance: `nvidia-smi mig -cgi 0 -C` "
                         "makes one, `nvidia-smi -mig 0` ends the mode",
                         choice);
    return PLIM_OK;
}

enum plim_status plim_visible_choose(const struct plim_visible_world *world, const char *choice,
                                     struct plim_visible_device *out, struct plim_error *err)
{
    *out = (struct plim_visible_device){-1, WHOLE};
    if (!strncasecmp(choice, "GPU-", 4) || !strncasecmp(choice, "MIG-", 4))
        return choose_uuid(world, choice, out, err);
    return choose_ordinal(world, choice, out, err);
}
