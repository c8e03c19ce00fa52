#include "autotune/base/outfile.h"
#include "devices/nvml/nvml.h"
#include "devices/open.h"
#include "devices/sim/sim.h"
#include "run_device_internal.h"
#include "worker/remote.h"
#include <stdio.h>
#include <string.h>

/* --- the engine ------------------------------------------------------------------------------- */

static bool is_stopped(const void *stop)
{
    return plim_stop_check(stop, NULL) != PLIM_OK;
}

static enum plim_status start_engine(struct plim_run_device *d, enum plim_run_mode mode,
                                     struct plim_error *err)
{
    struct plim_run_engine *engine = &d->engines[mode];
    struct plim_allocator_config config = d->allocator;
    bool unlimited = mode == PLIM_RUN_UNLIMITED;
    /* Of unlimited runs too: an expandable segment has room for 9/8 of it. */
    int64_t total_bytes = unlimited ? PLIM_UNLIMITED_BYTES : d->info.total_bytes;
    enum plim_status st = PLIM_OK;
    if (engine->replayer) return PLIM_OK;
    if (!engine->device) st = plim_sim_open_gpu(&d->gpu, total_bytes, &engine->device, err);
    if (st) return st;
    if (unlimited) config.memory_fraction = 0;
    plim_device_limit(engine->device, unlimited ? PLIM_UNLIMITED_BYTES : d->limit.budget_bytes);
    st = plim_replayer_create(engine->device, &config, &engine->replayer, err);
    if (!st) plim_replayer_stop(engine->replayer, is_stopped, d->options->stop);
    return st;
}

enum plim_status plim_run_simulate(struct plim_run_device *d, const struct plim_setting *setting,
                                   enum plim_run_mode mode, struct plim_replay *out,
                                   struct plim_error *err)
{
    const struct plim_spec_question *question = d->options->question;
    struct plim_train_setting training;
    enum plim_status st = plim_spec_question_setting(question, setting, &training, err);
    if (!st) st = start_engine(d, mode, err);
    if (st) return st;
    st = plim_replay_run(d->engines[mode].replayer, &question->spec->model, &training, out, err);
    if (st != PLIM_CANCELLED) return st;
    enum plim_status why = plim_stop_check(d->options->stop, err);
    return why ? why : st;
}

static int64_t requested_bytes(const struct plim_replay *replay)
{
    int64_t peak = 0;
    for (int i = 0; i < replay->steps_done; i++)
        if (replay->step[i].peak_requested_bytes > peak)
            peak = replay->step[i].peak_requested_bytes;
    return peak;
}

void plim_run_trial(const struct plim_replay *replay, struct plim_trial *out)
{
    *out = (struct plim_trial){.verdict = replay->verdict,
                               .reserved_bytes = replay->peak_reserved_bytes,
                               .requested_bytes = requested_bytes(replay),
                               .retries = replay->retries,
                               .seconds = replay->step[PLIM_REPLAY_STEPS - 1].seconds,
                               .steps_done = replay->steps_done,
                               .details = replay};
    snprintf(out->why, sizeof(out->why), "%s", replay->why);
}

static enum plim_status run(void *user, const struct plim_setting *setting, enum plim_run_mode mode,
                            struct plim_trial *out, struct plim_error *err)
{
    struct plim_run_device *d = user;
    enum plim_status st = plim_run_simulate(d, setting, mode, &d->last, err);
    if (!st) plim_run_trial(&d->last, out);
    return st;
}

struct plim_runner plim_run_simulator(struct plim_run_device *d)
{
    return (struct plim_runner){.run = run,
                                .user = d,
                                .details_bytes = sizeof(d->last),
                                .budget_bytes = d->limit.budget_bytes,
                                .limit_acts_early = d->allocator.memory_fraction > 0};
}

enum plim_status plim_run_device_trace(struct plim_run_device *d,
                                       const struct plim_setting *setting, const char *path,
                                       struct plim_error *err)
{
    struct plim_replay replay;
    struct plim_outfile file;
    enum plim_status st = start_engine(d, PLIM_RUN_LIMITED, err);
    if (!st) st = plim_outfile_open(path, &file, err);
    if (st) return st;
    plim_replayer_trace(d->engines[PLIM_RUN_LIMITED].replayer, file.stream);
    st = plim_run_simulate(d, setting, PLIM_RUN_LIMITED, &replay, err);
    plim_replayer_trace(d->engines[PLIM_RUN_LIMITED].replayer, NULL);
    if (!st) return plim_outfile_commit(&file, err);
    plim_outfile_discard(&file);
    return st;
}

/* --- opening ---------------------------------------------------------------------------------- */

void plim_run_describe(struct plim_run_device *d, const struct plim_device_info *info)
{
    const struct plim_gpu *gpu = &d->gpu;
    d->info = *info;
    d->peak_rate[PLIM_PRECISION_FP32] = gpu->fp32;
    d->peak_rate[PLIM_PRECISION_TF32] = gpu->tf32;
    d->peak_rate[PLIM_PRECISION_BF16] = d->peak_rate[PLIM_PRECISION_BF16_MIXED] = gpu->bf16;
    d->peak_rate[PLIM_PRECISION_FP16] = d->peak_rate[PLIM_PRECISION_FP16_MIXED] = gpu->fp16;
}

static enum plim_status open_simulated(struct plim_run_device *d, struct plim_error *err)
{
    struct plim_run_engine *engine = &d->engines[PLIM_RUN_LIMITED];
    enum plim_status st = plim_device_open(d->options->uri, &engine->device, err);
    if (st) return st;
    d->gpu = *plim_sim_gpu(engine->device);
    plim_run_describe(d, &engine->device->info);
    /* No other process is on it. */
    d->limit = plim_allowance_limit(d->options->allowance, d->info.total_bytes,
                                    plim_overhead_estimate(d->info.compute_capability), 0);
    d->runner = plim_run_simulator(d);
    return PLIM_OK;
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

enum plim_status plim_run_device_open(struct plim_run_device *d,
                                      const struct plim_run_options *options,
                                      struct plim_error *err)
{
    *d = (struct plim_run_device){.options = options};
    enum plim_status st =
        plim_allocator_config_parse(options->allowance->alloc_conf, &d->allocator, err);
    if (st) return st;
    switch (plim_uri_scheme(options->uri)) {
    case PLIM_SCHEME_SIM: return open_simulated(d, err);
    case PLIM_SCHEME_CUDA: return plim_run_open_cuda(d, err);
    case PLIM_SCHEME_HOST: return plim_run_open_host(d, err);
    case PLIM_SCHEME_NONE: break;
    }
    return no_such_device(options->uri, err);
}

void plim_run_device_close(struct plim_run_device *d)
{
    if (!d) return;
    plim_remote_destroy(&d->remote);
    plim_nvml_close(&d->nvml);
    for (int i = 0; i < 2; i++) {
        plim_replayer_destroy(&d->engines[i].replayer);
        plim_device_close(&d->engines[i].device);
    }
}

bool plim_run_device_same_class(const struct plim_run_device *a, const struct plim_run_device *b)
{
    return a->info.simulated && b->info.simulated &&
           a->info.compute_capability == b->info.compute_capability &&
           a->info.multiprocessors == b->info.multiprocessors &&
           a->info.threads_per_multiprocessor == b->info.threads_per_multiprocessor;
}
