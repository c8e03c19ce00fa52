#include "env_gpus.h"
#include "devices/open.h"
#include "devices/uri.h"
#include "kept.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes the URI of the simulated twin: the GPU in the catalogue with the usable memory, or a generic GPU of that
 * size. */
static void name_twin(const struct plim_target *target, const struct plim_store_gpu *gpu,
                      char out[160])
{
    char bytes[32];
    plim_uri_format_bytes(gpu->usable_bytes, bytes, sizeof(bytes));
    if (!target->gpu)
        snprintf(out, 160, "sim:%s", bytes);
    else if (gpu->usable_bytes < target->gpu->total_bytes)
        snprintf(out, 160, "sim:%s,memory=%s", target->gpu->name, bytes);
    else
        snprintf(out, 160, "sim:%s", target->gpu->name);
}

static enum plim_status add(struct plim_env_gpu *gpus, size_t *count,
                            const struct plim_env_gpu *gpu, struct plim_error *err)
{
    for (size_t i = 0; i < *count; i++)
        if (plim_store_gpu_equal(&gpus[i].gpu, &gpu->gpu)) return PLIM_OK;
    if (*count == PLIM_ENV_GPUS)
        return plim_fail(err, PLIM_NODEVICE, "more than %d different GPUs", PLIM_ENV_GPUS);
    gpus[(*count)++] = *gpu;
    return PLIM_OK;
}

static enum plim_status add_target(const struct plim_target *target,
                                   const struct plim_allowance *allowance,
                                   struct plim_env_gpu *gpus, size_t *count, struct plim_error *err)
{
    struct plim_env_gpu gpu = {0};
    if (!plim_store_gpu_of_target(target, false, &gpu.gpu))
        return plim_fail(err, PLIM_NODEVICE, "%s: %s", target->uri,
                         target->without_nvml ? target->note : "NVML does not report its memory");
    snprintf(gpu.uri, sizeof(gpu.uri), "%s", target->uri);
    name_twin(target, &gpu.gpu, gpu.twin);
    if (plim_kept_gpu_of_uri(gpu.twin, allowance, &gpu.simulated, NULL) != PLIM_OK)
        gpu.twin[0] = '\0';
    return add(gpus, count, &gpu, err);
}

static enum plim_status add_uri(const char *uri, const struct plim_allowance *allowance,
                                struct plim_env_gpu *gpus, size_t *count, struct plim_error *err)
{
    struct plim_env_gpu gpu = {0};
    struct plim_target target;
    struct plim_target_place place = plim_target_local();
    place.has_cuda = true; /* answers of other builds may be used */
    enum plim_device_scheme scheme = plim_uri_scheme(uri);
    if (scheme == PLIM_SCHEME_CUDA) {
        enum plim_status st = plim_target_resolve_at(&place, uri, &target, err);
        return st ? st : add_target(&target, allowance, gpus, count, err);
    }
    if (scheme != PLIM_SCHEME_SIM)
        return plim_fail(err, PLIM_NODEVICE,
                         "--device %s: expected cuda:GPU-uuid or a simulated GPU", uri);
    enum plim_status st = plim_kept_gpu_of_uri(uri, allowance, &gpu.gpu, err);
    if (st) return st;
    gpu.simulated = gpu.gpu;
    snprintf(gpu.uri, sizeof(gpu.uri), "%s", uri);
    snprintf(gpu.twin, sizeof(gpu.twin), "%s", uri);
    return add(gpus, count, &gpu, err);
}

/* Returns the rank within this node; -1 if no launcher has set it. */
static int local_rank(void)
{
    static const char *const variables[] = {"LOCAL_RANK", "SLURM_LOCALID",
                                            "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"};
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *text = getenv(variables[i]);
        if (text && *text) return atoi(text);
    }
    return -1;
}

/* Adds all GPUs that CUDA shows, or that of this rank. */
static enum plim_status add_visible(bool per_rank, const struct plim_allowance *allowance,
                                    struct plim_env_gpu *gpus, size_t *count,
                                    struct plim_error *err)
{
    struct plim_target targets[PLIM_ENV_GPUS];
    struct plim_target_place place = plim_target_local();
    size_t found;
    enum plim_status st = plim_target_list(&place, targets, PLIM_ENV_GPUS, &found, err);
    if (st) return st;
    int rank = per_rank ? local_rank() : -1;
    if (rank >= 0 && found > 1)
        return add_target(&targets[(size_t)rank % found], allowance, gpus, count, err);
    for (size_t i = 0; i < found && !st; i++)
        st = add_target(&targets[i], allowance, gpus, count, err);
    return st;
}

enum plim_status plim_env_gpus(const struct plim_request *request, const char *device,
                               const struct plim_allowance *allowance,
                               struct plim_env_gpu gpus[PLIM_ENV_GPUS], size_t *count,
                               struct plim_error *err)
{
    const struct plim_request_list *devices = &request->devices;
    enum plim_status st = PLIM_OK;
    *count = 0;
    if (!devices->count && device && device[0] && strcmp(device, "auto") != 0)
        return add_uri(device, allowance, gpus, count, err);
    for (size_t i = 0; i < devices->count && !st; i++)
        st = !strcmp(devices->items[i], "auto")
                 ? add_visible(request->store.per_rank, allowance, gpus, count, err)
                 : add_uri(devices->items[i], allowance, gpus, count, err);
    if (!devices->count) st = add_visible(request->store.per_rank, allowance, gpus, count, err);
    return st;
}
