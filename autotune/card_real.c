/* Real cards: a worker that runs on them, and a simulated twin. */
#include "card_internal.h"
#include "devices/nvml/nvml.h"
#include "devices/sim/sim.h"
#include "remote.h"
#include "space.h"
#include "target.h"
#include <stdio.h>
#include <string.h>

/* --- running ---------------------------------------------------------------------------------- */

/* What slowed the card down just now and makes its times worthless (heat, the hardware's brakes);
 * 0: nothing, or nobody to ask. */
static uint64_t spoiled_by(const struct plim_card *card)
{
    struct plim_nvml_sample sample;
    if (!card->nvml || plim_nvml_sample(card->nvml, card->uuid, &sample, NULL) != PLIM_OK) return 0;
    return plim_clock_reasons_spoiling(sample.clock_reasons);
}

/* A time that was taken while the card was slowed down is taken once more, and flagged if that did
 * not help. */
static enum plim_status run_measured(struct plim_card *card, const struct plim_setting *setting,
                                     struct plim_replay *out, struct plim_error *err)
{
    struct plim_runner runner =
        plim_remote_runner(card->remote, card->limit.budget_bytes, card->runner.limit_acts_early);
    for (int attempt = 0; attempt < 2; attempt++) {
        char reasons[192];
        enum plim_status st = runner.run(runner.user, setting, PLIM_RUN_LIMITED, out, err);
        card->timing = *plim_remote_timing(card->remote);
        if (st || out->verdict != PLIM_OK) return st;
        uint64_t spoiled = spoiled_by(card);
        if (!spoiled) return PLIM_OK;
        card->timing.noisy = true;
        plim_log(card->order->log, PLIM_LOG_WARNING, "the card is slowed down: %s",
                 plim_clock_reasons_text(spoiled, reasons));
    }
    return PLIM_OK;
}

static enum plim_status run(void *user, const struct plim_setting *setting, enum plim_run_mode mode,
                            struct plim_replay *out, struct plim_error *err)
{
    struct plim_card *card = user;
    if (mode == PLIM_RUN_UNLIMITED) return plim_card_simulate(card, setting, mode, out, err);
    return run_measured(card, setting, out, err);
}

static const struct plim_timing *timing(void *user)
{
    return &((const struct plim_card *)user)->timing;
}

/* What the twin says that a step takes: the worker's deadlines follow from it. */
static double predict(void *user, const struct plim_setting *setting)
{
    struct plim_replay replay;
    if (plim_card_simulate(user, setting, PLIM_RUN_UNLIMITED, &replay, NULL) != PLIM_OK) return 0;
    return replay.verdict == PLIM_OK ? replay.step[PLIM_REPLAY_STEPS - 1].seconds : 0;
}

/* Nobody may hold more of the card than when it was opened, but for what small programs take. */
static bool memory_is_back(void *user)
{
    enum { TOLERANCE_BYTES = 64 << 20 };
    const struct plim_card *card = user;
    struct plim_nvml_memory memory;
    if (!card->nvml || plim_nvml_memory(card->nvml, card->uuid, &memory, NULL) != PLIM_OK)
        return true;
    return memory.held_bytes <= card->held_bytes + TOLERANCE_BYTES;
}

/* --- opening ---------------------------------------------------------------------------------- */

static enum plim_status start_worker(struct plim_card *card, const char *uri, const char *gpu,
                                     const struct plim_message_opened **opened,
                                     struct plim_error *err)
{
    struct plim_remote_config config = PLIM_REMOTE_CONFIG_INIT;
    config.uri = uri;
    config.alloc_conf = card->order->allowance->alloc_conf;
    config.spec = card->order->spec;
    config.visible_gpu = gpu;
    config.stop = card->order->stop;
    config.log = card->order->log;
    config.timing_seconds = card->order->timing_seconds;
    config.predict = predict;
    config.memory_is_back = memory_is_back;
    config.user = card;
    enum plim_status st = plim_remote_create(&config, &card->remote, err);
    return st ? st : plim_remote_open(card->remote, opened, err);
}

/* The twin has the card's own figures where the worker knows them, and the catalogue's, or those of
 * the plain card of the same generation, for the rest. */
static void make_twin(struct plim_card *card, const struct plim_device_info *info)
{
    card->gpu.compute_capability = info->compute_capability;
    card->gpu.multiprocessors = info->multiprocessors;
    card->gpu.total_bytes = info->total_bytes;
}

static void make_runners(struct plim_card *card)
{
    card->planner = plim_card_simulator(card);
    card->runner = (struct plim_runner){.run = run,
                                        .user = card,
                                        .budget_bytes = card->limit.budget_bytes,
                                        .limit_acts_early = true,
                                        .measured = true,
                                        .timing = timing};
}

enum plim_status plim_card_open_host(struct plim_card *card, struct plim_error *err)
{
    const struct plim_message_opened *opened;
    const struct plim_gpu *like;
    enum plim_status st = plim_catalogue_find("A100-SXM4-40GB", &like, err);
    if (st) return st;
    card->gpu = *like;
    st = start_worker(card, card->order->uri, NULL, &opened, err);
    if (st) return st;
    make_twin(card, &opened->info);
    plim_card_describe(card, &opened->info);
    memset(card->peak_rate, 0, sizeof(card->peak_rate)); /* a CPU's is not known */
    plim_card_set_limit(card, card->device.total_bytes, 0, 0);
    make_runners(card);
    return PLIM_OK;
}

/* --- a GPU ------------------------------------------------------------------------------------ */

/* The card itself, or one that is not in the catalogue: the first of its generation, or any. */
static enum plim_status find_twin(const struct plim_target *target,
                                  const struct plim_device_info *info, struct plim_gpu *out,
                                  struct plim_error *err)
{
    struct plim_nvml_gpu seen = {.memory.total_bytes = -1};
    if (!target->memory_cap_bytes) seen.memory.total_bytes = info->total_bytes;
    snprintf(seen.name, sizeof(seen.name), "%s", info->name);
    const struct plim_gpu *like = target->blind ? plim_target_known(&seen) : target->gpu;
    for (size_t i = 0; !like && i < plim_catalogue_count(); i++)
        if (plim_catalogue_at(i)->compute_capability == info->compute_capability)
            like = plim_catalogue_at(i);
    enum plim_status st = like ? PLIM_OK : plim_catalogue_find("A100-SXM4-40GB", &like, err);
    if (!st) *out = *like;
    return st;
}

static void watch(struct plim_card *card, const struct plim_target *target)
{
    int code;
    struct plim_error ignored = PLIM_ERROR_INIT;
    snprintf(card->uuid, sizeof(card->uuid), "%s", target->uuid);
    card->held_bytes = target->held_bytes;
    if (target->blind || plim_nvml_open(NULL, &card->nvml, &code, &ignored) != PLIM_OK)
        card->nvml = NULL;
}

/* What the worker takes while it holds no tensors; 0: nobody to ask. */
static int64_t worker_bytes(const struct plim_card *card)
{
    struct plim_nvml_memory memory;
    if (!card->nvml || plim_nvml_memory(card->nvml, card->uuid, &memory, NULL) != PLIM_OK) return 0;
    return memory.held_bytes > card->held_bytes ? memory.held_bytes - card->held_bytes : 0;
}

/* Runs the smallest setting, so that kernels and libraries are loaded and their memory is seen. */
static enum plim_status warm_up(struct plim_card *card, struct plim_error *err)
{
    struct plim_space space = {0};
    struct plim_int_axis seqs;
    struct plim_replay replay;
    plim_space_seqs(card->order->spec, &seqs);
    enum plim_status st = plim_space_build(&space, card->order->spec, &seqs, err);
    if (!st) {
        struct plim_setting setting = space.points.items[0];
        setting.micro_batch = setting.accumulation = 1;
        plim_remote_set_timing(card->remote, 0);
        st = run(card, &setting, PLIM_RUN_LIMITED, &replay, err);
        plim_remote_set_timing(card->remote, card->order->timing_seconds);
    }
    plim_space_finish(&space);
    return st;
}

/* NVML and CUDA agree on the total, but for what the driver and ECC take; of a smaller card that
 * this one stands for CUDA's is not known. */
static bool is_plausible(const struct plim_card *card, const struct plim_target *target)
{
    double ratio = (double)target->total_bytes / (double)card->device.total_bytes;
    return target->memory_is_told && (target->memory_cap_bytes > 0 || (ratio > 0.9 && ratio < 1.1));
}

/* What others leave. Without NVML: what is free beside the worker's context, of which only an
 * estimate is known. */
static int64_t usable_bytes(const struct plim_card *card, const struct plim_target *target,
                            int64_t free_at_open)
{
    int64_t total = card->device.total_bytes, left = target->total_bytes - target->held_bytes;
    if (!is_plausible(card, target)) {
        left = free_at_open + plim_card_estimated_context(card->device.compute_capability);
        if (!target->blind)
            plim_log(
                card->order->log, PLIM_LOG_WARNING,
                "NVML does not tell the memory of this GPU, or wrongly: what others hold of it "
                "is a guess");
    }
    return left < total ? left : total;
}

static enum plim_status set_cuda_limit(struct plim_card *card, int64_t usable,
                                       struct plim_error *err)
{
    int64_t estimate = plim_card_estimated_overhead(card->device.compute_capability);
    plim_card_set_limit(card, usable, estimate, worker_bytes(card));
    make_runners(card);
    enum plim_status st = card->limit.budget_bytes > 0 ? warm_up(card, err) : PLIM_OK;
    if (st) return st;
    plim_card_set_limit(card, usable, estimate, worker_bytes(card));
    make_runners(card);
    return PLIM_OK;
}

static void describe_target(struct plim_card *card, const struct plim_target *target)
{
    int64_t total = target->total_bytes;
    if (target->memory_cap_bytes && target->memory_cap_bytes < total)
        total = target->memory_cap_bytes;
    struct plim_device_info info = {.compute_capability = target->compute_capability,
                                    .multiprocessors = target->multiprocessors,
                                    .total_bytes = total};
    plim_card_describe(card, &info);
    snprintf(card->device.name, sizeof(card->device.name), "%.63s", target->name);
    snprintf(card->device.uri, sizeof(card->device.uri), "%s", target->uri);
}

enum plim_status plim_card_open_for_program(struct plim_card *card,
                                            const struct plim_card_order *order,
                                            struct plim_error *err)
{
    struct plim_target target;
    struct plim_target_place place = plim_target_here();
    struct plim_device_info seen = {0};
    *card = (struct plim_card){.order = order};
    place.has_cuda = true; /* the program has its own kernels */
    enum plim_status st = plim_target_resolve_at(&place, order->uri, &target, err);
    if (st) return st;
    if (target.blind || !target.memory_is_told)
        return plim_fail(err, PLIM_NODEVICE,
                         "%s: NVML does not tell its memory, so a program cannot be watched on it",
                         order->uri);
    watch(card, &target);
    seen.compute_capability = target.compute_capability;
    st = find_twin(&target, &seen, &card->gpu, err);
    if (st) return st;
    describe_target(card, &target);
    int64_t left = target.total_bytes - target.held_bytes, total = card->device.total_bytes;
    plim_card_set_limit(card, left < total ? left : total,
                        plim_card_estimated_overhead(target.compute_capability), 0);
    return PLIM_OK;
}

enum plim_status plim_card_open_cuda(struct plim_card *card, struct plim_error *err)
{
    const struct plim_message_opened *opened;
    struct plim_target target;
    char uri[64];
    enum plim_status st = PLIM_OK;
    PLIM_TRY(plim_target_resolve(card->order->uri, &target, err));
    if (target.note[0])
        plim_log(card->order->log, target.blind ? PLIM_LOG_WARNING : PLIM_LOG_INFO, "%s",
                 target.note);
    watch(card, &target);
    snprintf(uri, sizeof(uri), "cuda:%d", target.ordinal); /* 0: the one card that it sees */
    if (target.memory_cap_bytes)
        snprintf(uri, sizeof(uri), "cuda:%d,memory=%lldB", target.ordinal,
                 (long long)target.memory_cap_bytes);
    PLIM_TRY(start_worker(card, uri, target.uuid[0] ? target.uuid : NULL, &opened, err));
    PLIM_TRY(find_twin(&target, &opened->info, &card->gpu, err));
    make_twin(card, &opened->info);
    plim_card_describe(card, &opened->info);
    snprintf(card->device.uri, sizeof(card->device.uri), "%s", target.uri);
    PLIM_TRY(set_cuda_limit(card, usable_bytes(card, &target, opened->free_bytes), err));
out:
    return st;
}
