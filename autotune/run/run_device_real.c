/* Real devices: a worker process that runs on them, and a simulated twin. */
#include "autotune/base/clock.h"
#include "autotune/search/space.h"
#include "devices/nvml/nvml.h"
#include "run_device_internal.h"
#include "target.h"
#include "worker/remote.h"
#include <stdio.h>
#include <string.h>

/* A setting whose predicted memory exceeds the GPU's by this factor needs no run on the GPU. */
static const double BEYOND_DOUBT = 1.1;

/* --- running ---------------------------------------------------------------------------------- */

/* Records why the GPU is slowed down at present, if that makes its times useless (heat, hardware throttling). Does
 * nothing without NVML. */
static void note_clock(void *user)
{
    struct plim_run_device *d = user;
    struct plim_nvml_sample sample;
    if (!d->nvml || plim_nvml_sample(d->nvml, d->uuid, &sample, NULL) != PLIM_OK) return;
    d->spoiled |= plim_clock_reasons_spoiling(sample.clock_reasons);
}

/* Runs the setting on the twin, without a limit. Returns false on failure. */
static bool run_twin(struct plim_run_device *d, const struct plim_setting *setting,
                     struct plim_replay *out)
{
    return plim_run_simulate(d, setting, PLIM_RUN_UNLIMITED, out, NULL) == PLIM_OK &&
           out->verdict == PLIM_OK;
}

/* Returns the step time on the twin, for the worker's deadlines; 0 on failure. */
static double predict(void *user, const struct plim_setting *setting)
{
    struct plim_replay twin;
    return run_twin(user, setting, &twin) ? twin.step[PLIM_REPLAY_STEPS - 1].seconds : 0;
}

/* Returns the number of tokens, or images, of a step. */
static double step_tokens(const struct plim_run_device *d, const struct plim_setting *setting)
{
    int64_t tokens = plim_axes_tokens(&d->options->question->question.axes, setting);
    return (double)setting->micro_batch * (double)tokens * (double)setting->accumulation;
}

/* Returns the step time above which a setting is not measured further, since no objective would choose it. `balanced`
 * accepts the slowest settings, up to 10 % below the fastest. */
static double slow(void *user, const struct plim_setting *setting)
{
    static const double CLEARLY = 1.125;
    const struct plim_run_device *d = user;
    return d->best_rate > 0 ? CLEARLY * step_tokens(d, setting) / d->best_rate : 0;
}

static void note_rate(struct plim_run_device *d, const struct plim_setting *setting,
                      const struct plim_replay *measured)
{
    double rate = step_tokens(d, setting) / measured->step[PLIM_REPLAY_STEPS - 1].seconds;
    if (rate > d->best_rate) d->best_rate = rate;
}

void plim_run_charge_host(struct plim_replay *measured, double launching_seconds)
{
    double *seconds = &measured->step[PLIM_REPLAY_STEPS - 1].seconds;
    if (launching_seconds <= *seconds) return;
    *seconds = launching_seconds;
    measured->host_bound = true;
}

static void charge_host(struct plim_run_device *d, const struct plim_setting *setting,
                        struct plim_replay *measured)
{
    struct plim_replay twin;
    if (d->is_gpu && run_twin(d, setting, &twin))
        plim_run_charge_host(measured, twin.launching_seconds);
}

/* Replaces the measured time by the twin's, for settings that ran kernels slower than those of PyTorch or a package
 * (replayed.h). */
static void replace_seconds(struct plim_run_device *d, const struct plim_setting *setting,
                            struct plim_replay *out)
{
    out->repeats = 0;
    out->noisy = false;
    out->step[PLIM_REPLAY_STEPS - 1].seconds = predict(d, setting);
    if (d->warned_of_fallback) return;
    plim_log(d->options->log, PLIM_LOG_WARNING,
             "kernels here are slower than the job's own, as the report says: times are simulated, not measured");
    d->warned_of_fallback = true;
}

/* Returns the GPU memory of the worker while it holds no tensors, in bytes; 0 without NVML. */
static int64_t worker_bytes(const struct plim_run_device *d)
{
    struct plim_nvml_memory memory;
    if (!d->nvml || plim_nvml_memory(d->nvml, d->uuid, &memory, NULL) != PLIM_OK) return 0;
    return memory.held_bytes > d->held_bytes ? memory.held_bytes - d->held_bytes : 0;
}

/* Updates the measured overhead, since a setting may load further kernels and plans. The budget does not change: memory
 * beyond its overhead is taken from the margin, and a note says so. */
static void note_overhead(struct plim_run_device *d)
{
    int64_t bytes = worker_bytes(d);
    if (bytes > d->limit.overhead_measured_bytes) d->limit.overhead_measured_bytes = bytes;
}

/* Marks a time as noisy if other processes computed on the GPU meanwhile, since processes take turns. */
static void note_others(struct plim_run_device *d, uint64_t begin, struct plim_replay *out)
{
    if (!d->nvml || plim_nvml_computing(d->nvml, d->uuid, begin) < 2) return;
    out->noisy = true;
    if (d->warned_of_sharing) return;
    plim_log(d->options->log, PLIM_LOG_WARNING,
             "another process computes on this GPU: steps take longer than they would alone");
    d->warned_of_sharing = true;
}

/* Runs a setting on the GPU. If the GPU was slowed down meanwhile, runs it once more, and marks the time as noisy if it
 * was again. */
static enum plim_status run_measured(struct plim_run_device *d, const struct plim_setting *setting,
                                     struct plim_replay *out, struct plim_error *err)
{
    for (int attempt = 0; attempt < 2; attempt++) {
        char reasons[192];
        uint64_t begin = plim_clock_wall_microseconds();
        d->spoiled = 0;
        enum plim_status st = plim_remote_run(d->remote, setting, PLIM_RUN_LIMITED, out, err);
        if (st || out->verdict != PLIM_OK) return st;
        note_overhead(d);
        if (plim_replay_has_another_time(out)) {
            replace_seconds(d, setting, out);
            return PLIM_OK;
        }
        out->repeats = plim_remote_timing(d->remote)->repeats;
        out->noisy = plim_remote_timing(d->remote)->noisy;
        note_clock(d); /* the timing may have been shorter than the interval of while_timing */
        note_others(d, begin, out);
        note_rate(d, setting, out);
        charge_host(d, setting, out);
        if (!d->spoiled) return PLIM_OK;
        out->noisy = true;
        plim_log(d->options->log, PLIM_LOG_WARNING, "the GPU is slowed down: %s",
                 plim_clock_reasons_text(d->spoiled, reasons));
    }
    return PLIM_OK;
}

static enum plim_status run(void *user, const struct plim_setting *setting, enum plim_run_mode mode,
                            struct plim_trial *out, struct plim_error *err)
{
    struct plim_run_device *d = user;
    enum plim_status st = mode == PLIM_RUN_LIMITED
                              ? run_measured(d, setting, &d->last, err)
                              : plim_run_simulate(d, setting, mode, &d->last, err);
    if (!st) plim_run_trial(&d->last, out);
    return st;
}

/* True if the GPU's used memory is back to what it was when it was opened, up to a tolerance for small programs. */
static bool memory_is_back(void *user)
{
    enum { TOLERANCE_BYTES = 64 << 20 };
    const struct plim_run_device *d = user;
    struct plim_nvml_memory memory;
    if (!d->nvml || plim_nvml_memory(d->nvml, d->uuid, &memory, NULL) != PLIM_OK) return true;
    return memory.held_bytes <= d->held_bytes + TOLERANCE_BYTES;
}

/* --- opening ---------------------------------------------------------------------------------- */

static enum plim_status start_worker(struct plim_run_device *d, const char *uri, const char *gpu,
                                     const struct plim_message_opened **opened,
                                     struct plim_error *err)
{
    struct plim_remote_config config = PLIM_REMOTE_CONFIG_INIT;
    config.uri = uri;
    config.alloc_conf = d->options->allowance->alloc_conf;
    config.spec = d->options->question->spec;
    config.visible_gpu = gpu;
    config.all_reduce = d->options->ring ? &d->options->ring->measured : NULL;
    config.stop = d->options->stop;
    config.log = d->options->log;
    config.timing_seconds = d->options->timing_seconds;
    config.predict = predict;
    config.slow = slow;
    config.memory_is_back = memory_is_back;
    config.while_timing = note_clock;
    config.user = d;
    enum plim_status st = plim_remote_create(&config, &d->remote, err);
    return st ? st : plim_remote_open(d->remote, opened, err);
}

/* Sets the properties of the twin that the worker knows. The others are from the catalogue, or from a GPU of the same
 * generation. */
static void make_twin(struct plim_run_device *d, const struct plim_device_info *info)
{
    d->gpu.compute_capability = info->compute_capability;
    d->gpu.multiprocessors = info->multiprocessors;
    d->gpu.total_bytes = info->total_bytes;
}

static void make_runners(struct plim_run_device *d)
{
    d->planner = plim_run_simulator(d);
    d->runner = (struct plim_runner){.run = run,
                                     .user = d,
                                     .details_bytes = sizeof(d->last),
                                     .budget_bytes = d->limit.budget_bytes,
                                     .proves = true,
                                     .probed_micro_steps = PLIM_PROBED_MICRO_STEPS,
                                     .limit_acts_early = true,
                                     .measured = true,
                                     .beyond_doubt = BEYOND_DOUBT};
    plim_remote_set_budget(d->remote, d->limit.budget_bytes);
}

enum plim_status plim_run_open_host(struct plim_run_device *d, struct plim_error *err)
{
    const struct plim_message_opened *opened;
    const struct plim_gpu *like;
    enum plim_status st = plim_catalogue_find("A100-SXM4-40GB", &like, err);
    if (st) return st;
    d->gpu = *like;
    st = start_worker(d, d->options->uri, NULL, &opened, err);
    if (st) return st;
    make_twin(d, &opened->info);
    plim_run_describe(d, &opened->info);
    memset(d->peak_rate, 0, sizeof(d->peak_rate)); /* not known for a CPU */
    d->limit = plim_allowance_limit(d->options->allowance, d->info.total_bytes, 0, 0);
    make_runners(d);
    return PLIM_OK;
}

/* --- a GPU ------------------------------------------------------------------------------------ */

/* Finds the GPU in the catalogue; if it is missing, the first GPU of its compute capability, otherwise an A100. */
static enum plim_status find_twin(const struct plim_target *target,
                                  const struct plim_device_info *info, struct plim_gpu *out,
                                  struct plim_error *err)
{
    struct plim_nvml_gpu seen = {.memory.total_bytes = -1};
    if (!target->memory_cap_bytes) seen.memory.total_bytes = info->total_bytes;
    snprintf(seen.name, sizeof(seen.name), "%s", info->name);
    const struct plim_gpu *like = target->without_nvml ? plim_target_known(&seen) : target->gpu;
    for (size_t i = 0; !like && i < plim_catalogue_count(); i++)
        if (plim_catalogue_at(i)->compute_capability == info->compute_capability)
            like = plim_catalogue_at(i);
    enum plim_status st = like ? PLIM_OK : plim_catalogue_find("A100-SXM4-40GB", &like, err);
    if (!st) *out = *like;
    return st;
}

static void watch(struct plim_run_device *d, const struct plim_target *target)
{
    int code;
    struct plim_error ignored = PLIM_ERROR_INIT;
    snprintf(d->uuid, sizeof(d->uuid), "%s", target->uuid);
    d->held_bytes = target->held_bytes;
    if (target->without_nvml || plim_nvml_open(NULL, &d->nvml, &code, &ignored) != PLIM_OK)
        d->nvml = NULL;
}

/* Runs the smallest setting, so that kernels and libraries are loaded and their memory is measured. */
static enum plim_status warm_up(struct plim_run_device *d, struct plim_error *err)
{
    struct plim_setting setting = plim_space_first(&d->options->question->question.axes);
    struct plim_trial trial;
    setting.micro_batch = setting.accumulation = 1;
    plim_remote_set_timing(d->remote, 0);
    enum plim_status st = run(d, &setting, PLIM_RUN_LIMITED, &trial, err);
    plim_remote_set_timing(d->remote, d->options->timing_seconds);
    return st;
}

/* True if NVML's total agrees with CUDA's up to 10 %, for memory of the driver and ECC. Not compared if the user capped
 * the memory, since CUDA's total is not known then. */
static bool is_plausible(const struct plim_run_device *d, const struct plim_target *target)
{
    double ratio = (double)target->total_bytes / (double)d->info.total_bytes;
    return target->memory_is_reported && (target->memory_cap_bytes > 0 || (ratio > 0.9 && ratio < 1.1));
}

/* Returns the memory that other processes leave. Without NVML: the free memory plus an estimate of the worker's
 * context. With MPS at most that, since it is the only sign of a client's limit. */
static int64_t usable_bytes(const struct plim_run_device *d, const struct plim_target *target,
                            int64_t free_at_open)
{
    int64_t total = d->info.total_bytes, left = target->total_bytes - target->held_bytes;
    int64_t own = free_at_open + plim_context_estimate(d->info.compute_capability);
    if (target->mps.active && own < left) left = own;
    if (!is_plausible(d, target)) {
        left = own;
        if (!target->without_nvml)
            plim_log(
                d->options->log, PLIM_LOG_WARNING,
                "NVML does not report this GPU's memory, or reports it wrongly: the memory of other processes is a "
                "guess");
    }
    return left < total ? left : total;
}

/* Replaces the worker by the twin, for settings that a single GPU cannot run because other GPUs own parts of the state.
 * The overhead was measured in the worker. */
static void replace_by_twin(struct plim_run_device *d)
{
    plim_log(d->options->log, PLIM_LOG_WARNING,
             "%s: simulated, not measured: one GPU does not have the other ranks' shards (train.sharding); its free "
             "memory is the limit",
             d->info.name);
    plim_remote_destroy(&d->remote);
    d->info.simulated = true;
    d->planner = (struct plim_runner){0};
    d->runner = plim_run_simulator(d);
}

static enum plim_status set_cuda_limit(struct plim_run_device *d, int64_t usable,
                                       struct plim_error *err)
{
    int64_t estimate = plim_overhead_estimate(d->info.compute_capability);
    d->limit = plim_run_limit(d, usable, estimate, worker_bytes(d));
    if (plim_run_is_sharded(d->options->question->spec)) {
        replace_by_twin(d);
        return PLIM_OK;
    }
    make_runners(d);
    enum plim_status st = d->limit.budget_bytes > 0 ? warm_up(d, err) : PLIM_OK;
    if (st) return st;
    d->limit = plim_run_limit(d, usable, estimate, worker_bytes(d));
    make_runners(d);
    return PLIM_OK;
}

static void describe_target(struct plim_run_device *d, const struct plim_target *target)
{
    int64_t total = target->total_bytes;
    if (target->memory_cap_bytes && target->memory_cap_bytes < total)
        total = target->memory_cap_bytes;
    struct plim_device_info info = {.compute_capability = target->compute_capability,
                                    .multiprocessors = target->multiprocessors,
                                    .total_bytes = total};
    plim_run_describe(d, &info);
    snprintf(d->info.name, sizeof(d->info.name), "%.63s", target->name);
    snprintf(d->info.uri, sizeof(d->info.uri), "%.95s", target->uri);
}

enum plim_status plim_run_device_open_for_program(struct plim_run_device *d,
                                                  const struct plim_run_options *options,
                                                  struct plim_error *err)
{
    struct plim_target target;
    struct plim_target_place place = plim_target_local();
    struct plim_device_info seen = {0};
    *d = (struct plim_run_device){.options = options};
    place.has_cuda = true; /* the program has its own kernels */
    enum plim_status st = plim_target_resolve_at(&place, options->uri, &target, err);
    if (st) return st;
    if (target.without_nvml || !target.memory_is_reported)
        return plim_fail(err, PLIM_NODEVICE,
                         "%s: NVML does not report its memory, so a program cannot be watched on it",
                         options->uri);
    watch(d, &target);
    seen.compute_capability = target.compute_capability;
    st = find_twin(&target, &seen, &d->gpu, err);
    if (st) return st;
    describe_target(d, &target);
    int64_t left = target.total_bytes - target.held_bytes, total = d->info.total_bytes;
    d->limit = plim_allowance_limit(options->allowance, left < total ? left : total,
                                    plim_overhead_estimate(target.compute_capability), 0);
    return PLIM_OK;
}

enum plim_status plim_run_open_cuda(struct plim_run_device *d, struct plim_error *err)
{
    const struct plim_message_opened *opened;
    struct plim_target target;
    char uri[64];
    enum plim_status st = PLIM_OK;
    PLIM_TRY(plim_target_resolve(d->options->uri, &target, err));
    if (target.note[0])
        plim_log(d->options->log, target.without_nvml ? PLIM_LOG_WARNING : PLIM_LOG_INFO, "%s",
                 target.note);
    watch(d, &target);
    snprintf(uri, sizeof(uri), "cuda:%d", target.ordinal); /* 0 if the worker sees only this GPU */
    if (target.memory_cap_bytes)
        snprintf(uri, sizeof(uri), "cuda:%d,memory=%lldB", target.ordinal,
                 (long long)target.memory_cap_bytes);
    PLIM_TRY(start_worker(d, uri, target.uuid[0] ? target.uuid : NULL, &opened, err));
    d->is_gpu = true;
    PLIM_TRY(find_twin(&target, &opened->info, &d->gpu, err));
    make_twin(d, &opened->info);
    plim_run_describe(d, &opened->info);
    snprintf(d->info.uri, sizeof(d->info.uri), "%.95s", target.uri);
    PLIM_TRY(set_cuda_limit(d, usable_bytes(d, &target, opened->free_bytes), err));
out:
    return st;
}
