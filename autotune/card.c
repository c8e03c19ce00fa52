#include "card_internal.h"
#include "autotune/base/text.h"
#include "devices/nvml/nvml.h"
#include "devices/sim/sim.h"
#include "remote.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* --- how much may be used --------------------------------------------------------------------- */

/* What a training process takes outside of the caching allocator: CUDA context, modules of the
 * kernels that were used, libraries. Estimates. Known are a bare context with lazy loading of
 * modules: 426 MiB on compute capability 8.9 (torch 2.10, CUDA 13), 0.47 GiB on 8.0 (torch
 * 2.1, CUDA 12.1). Kernels loaded by the first training steps come on top: KERNELS_MIB here. 9.0 and
 * later were not measured by anybody we know of; 0.5 to 0.9 GiB are expected. */
static const int64_t KERNELS_MIB = 128;
static const struct { int up_to_capability; int64_t mib; } overhead_table[] = {
    {79, 512}, {80, 610}, {89, 554}, {INT32_MAX, 768},
};

int64_t plim_card_estimated_overhead(int compute_capability)
{
    size_t i = 0;
    while (compute_capability > overhead_table[i].up_to_capability) i++;
    return overhead_table[i].mib << 20;
}

int64_t plim_card_estimated_context(int compute_capability)
{
    return plim_card_estimated_overhead(compute_capability) - (KERNELS_MIB << 20);
}

void plim_card_set_limit(struct plim_card *card, int64_t usable_bytes, int64_t estimate,
                         int64_t measured_bytes)
{
    const struct plim_allowance *allowance = card->order->allowance;
    struct plim_result_limit *limit = &card->limit;
    bool measured = measured_bytes > estimate;
    limit->usable_bytes = usable_bytes;
    limit->overhead_bytes = allowance->overhead_given ? allowance->overhead_bytes
                            : measured                ? measured_bytes
                                                      : estimate;
    limit->overhead_source = allowance->overhead_given ? "given"
                             : measured                ? "measured"
                                                       : "estimate";
    limit->overhead_measured_bytes = measured_bytes;
    limit->margin_bytes = allowance->margin_bytes >= 0
                              ? allowance->margin_bytes
                              : (int64_t)(allowance->margin_share * (double)limit->usable_bytes);
    limit->budget_bytes = limit->usable_bytes - limit->overhead_bytes - limit->margin_bytes;
    if (allowance->alloc_conf)
        snprintf(limit->alloc_conf, sizeof(limit->alloc_conf), "%s", allowance->alloc_conf);
}

/* --- the engine ------------------------------------------------------------------------------- */

static enum plim_status start_engine(struct plim_card *card, enum plim_run_mode mode,
                                     struct plim_error *err)
{
    struct plim_card_engine *engine = &card->engines[mode];
    struct plim_allocator_config config = card->allocator;
    bool unlimited = mode == PLIM_RUN_UNLIMITED;
    /* of unlimited runs too: an expandable segment has room for 9/8 of it */
    int64_t total_bytes = unlimited ? PLIM_MOST_BYTES : card->device.total_bytes;
    enum plim_status st = PLIM_OK;
    if (engine->replayer) return PLIM_OK;
    if (!engine->device)
        st = plim_sim_open_gpu(&card->gpu, total_bytes, &engine->device, err);
    if (st) return st;
    if (unlimited) config.memory_fraction = 0;
    else plim_device_limit(engine->device, card->limit.budget_bytes);
    return plim_replayer_create(engine->device, &config, &engine->replayer, err);
}

enum plim_status plim_card_simulate(void *user, const struct plim_setting *setting,
                                    enum plim_run_mode mode, struct plim_replay *out,
                                    struct plim_error *err)
{
    struct plim_card *card = user;
    enum plim_status st = start_engine(card, mode, err);
    return st ? st
              : plim_replay_run(card->engines[mode].replayer, &card->order->spec->model, setting,
                                out, err);
}

enum plim_status plim_card_trace(struct plim_card *card, const struct plim_setting *setting,
                                 const char *path, struct plim_error *err)
{
    struct plim_replay replay;
    enum plim_status st = start_engine(card, PLIM_RUN_LIMITED, err);
    FILE *file = st ? NULL : fopen(path, "w");
    if (st) return st;
    if (!file) return plim_fail(err, PLIM_IO, "%s: %s", path, strerror(errno));
    plim_replayer_trace(card->engines[PLIM_RUN_LIMITED].replayer, file);
    st = plim_card_simulate(card, setting, PLIM_RUN_LIMITED, &replay, err);
    plim_replayer_trace(card->engines[PLIM_RUN_LIMITED].replayer, NULL);
    bool written = !ferror(file);
    if (fclose(file) || !written) return plim_fail(err, PLIM_IO, "%s: cannot be written", path);
    return st;
}

/* --- opening ---------------------------------------------------------------------------------- */

void plim_card_describe(struct plim_card *card, const struct plim_device_info *info)
{
    const struct plim_gpu *gpu = &card->gpu;
    snprintf(card->device.name, sizeof(card->device.name), "%s", info->name);
    snprintf(card->device.uri, sizeof(card->device.uri), "%s", info->uri);
    card->device.simulated = info->simulated;
    card->device.total_bytes = info->total_bytes;
    card->device.compute_capability = info->compute_capability;
    card->device.multiprocessors = info->multiprocessors;
    card->multiprocessors = info->multiprocessors;
    card->threads_per_multiprocessor = info->threads_per_multiprocessor;
    card->peak_rate[PLIM_PRECISION_FP32] = gpu->fp32;
    card->peak_rate[PLIM_PRECISION_TF32] = gpu->tf32;
    card->peak_rate[PLIM_PRECISION_BF16] = card->peak_rate[PLIM_PRECISION_BF16_MIXED] = gpu->bf16;
    card->peak_rate[PLIM_PRECISION_FP16] = card->peak_rate[PLIM_PRECISION_FP16_MIXED] = gpu->fp16;
}

static enum plim_status open_simulated(struct plim_card *card, struct plim_error *err)
{
    struct plim_card_engine *engine = &card->engines[PLIM_RUN_LIMITED];
    enum plim_status st = plim_sim_open(card->order->uri + strlen("sim:"), &engine->device, err);
    if (st) return st;
    card->gpu = *plim_sim_gpu(engine->device);
    plim_card_describe(card, &engine->device->info);
    int64_t estimate = plim_card_estimated_overhead(card->device.compute_capability);
    plim_card_set_limit(card, card->device.total_bytes, estimate, 0); /* nobody else is on it */
    card->runner = plim_card_simulator(card);
    return PLIM_OK;
}

struct plim_runner plim_card_simulator(struct plim_card *card)
{
    return (struct plim_runner){.run = plim_card_simulate,
                                .user = card,
                                .budget_bytes = card->limit.budget_bytes,
                                .limit_acts_early = card->allocator.memory_fraction > 0};
}

static enum plim_status no_such_device(const char *uri, struct plim_error *err)
{
    const struct plim_gpu *gpu;
    if (plim_catalogue_find(uri, &gpu, NULL) == PLIM_OK)
        return plim_fail(err, PLIM_NODEVICE, "%s: no such device, did you mean sim:%s?", uri,
                         gpu->name);
    return plim_fail(err, PLIM_NODEVICE,
                     "%s: no such device, expected cuda:N, host or sim:NAME (see plimsoll devices)",
                     uri);
}

static bool is_scheme(const char *uri, const char *scheme)
{
    size_t length = strlen(scheme);
    return !strncmp(uri, scheme, length) && strchr(":,", uri[length]);
}

enum plim_status plim_card_open(struct plim_card *card, const struct plim_card_order *order,
                                struct plim_error *err)
{
    *card = (struct plim_card){.order = order};
    enum plim_status st =
        plim_allocator_config_parse(order->allowance->alloc_conf, &card->allocator, err);
    if (st) return st;
    if (!strncmp(order->uri, "sim:", 4)) return open_simulated(card, err);
    if (is_scheme(order->uri, "cuda")) return plim_card_open_cuda(card, err);
    if (is_scheme(order->uri, "host")) return plim_card_open_host(card, err);
    return no_such_device(order->uri, err);
}

void plim_card_close(struct plim_card *card)
{
    if (!card) return;
    plim_remote_destroy(&card->remote);
    plim_nvml_close(&card->nvml);
    for (int i = 0; i < 2; i++) {
        plim_replayer_destroy(&card->engines[i].replayer);
        plim_device_close(&card->engines[i].device);
    }
}

bool plim_card_same_class(const struct plim_card *a, const struct plim_card *b)
{
    return a->device.simulated && b->device.simulated
           && a->device.compute_capability == b->device.compute_capability
           && a->multiprocessors == b->multiprocessors
           && a->threads_per_multiprocessor == b->threads_per_multiprocessor;
}
