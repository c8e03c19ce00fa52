/* Simulated GPUs: runs the engine in this process. */
#include "ahead.h"
#include "autotune/base/outfile.h"
#include "devices/open.h"
#include "devices/sim/sim.h"
#include "plays.h"
#include "recording_question.h"
#include "run_device_internal.h"
#include "share.h"
#include "workloads/recording/play.h"
#include "workloads/train/ranks.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the engine, or a recording --------------------------------------------------------------- */

static bool is_stopped(const void *stop)
{
    return plim_stop_check(stop, NULL) != PLIM_OK;
}

static enum plim_status start_engine(struct plim_run_device *d, enum plim_run_mode mode,
                                     struct plim_error *err)
{
    bool unlimited = mode == PLIM_RUN_UNLIMITED;
    struct plim_run_engine *engine = &d->engines[unlimited];
    struct plim_allocator_config config = d->allocator;
    /* Not d->info.total_bytes for unlimited runs: an expandable segment reserves addresses for 9/8 of the total. */
    int64_t total_bytes = unlimited ? PLIM_UNLIMITED_BYTES : d->info.total_bytes;
    enum plim_status st = PLIM_OK;
    if (engine->replayer || engine->player) return PLIM_OK;
    if (!engine->device) st = plim_sim_open_gpu(&d->gpu, total_bytes, &engine->device, err);
    if (st) return st;
    double host_speed = d->options->question->spec->host_speed;
    if (host_speed > 0) plim_sim_host(engine->device, 1 / host_speed, true);
    if (unlimited) config.memory_fraction = 0;
    plim_device_limit(engine->device, unlimited ? PLIM_UNLIMITED_BYTES : d->limit.budget_bytes);
    if (d->options->question->recording) {
        st = plim_player_create(engine->device, &config, &engine->player, err);
        if (!st) plim_player_stop(engine->player, is_stopped, d->options->stop);
        return st;
    }
    st = plim_replayer_create(engine->device, &config, &engine->replayer, err);
    if (st) return st;
    plim_replayer_stop(engine->replayer, is_stopped, d->options->stop);
    const struct plim_ring *ring = d->options->ring;
    const struct plim_links links =
        plim_run_links(d->options->question->spec, &d->gpu, ring ? &ring->measured : NULL);
    plim_replayer_links(engine->replayer, &links);
    return PLIM_OK;
}

static enum plim_status replay_steps(struct plim_replayer *replayer,
                                     const struct plim_model_config *model,
                                     const struct plim_train_setting *training, int64_t steps,
                                     struct plim_replay *out, struct plim_error *err)
{
    struct plim_replay_step step;
    plim_replay_begin(replayer, model, training);
    for (int64_t i = 0; i < steps && plim_replay_next(replayer, &step); i++) {
    }
    return plim_replay_end(replayer, out, err);
}

/* Finds the stream of a setting in the recording. */
static enum plim_status find_stream(const struct plim_run_device *d, const struct plim_setting *setting,
                                    const struct plim_recorded_stream **stream,
                                    struct plim_recorded_point *point, struct plim_error *err)
{
    plim_recording_question_setting(d->options->question, setting, stream, point);
    if (*stream) return PLIM_OK;
    return plim_fail(err, PLIM_INVALID, "batch %lld was not recorded, and the recorded batches differ from each "
                                        "other",
                     (long long)setting->micro_batch);
}

/* Plays a recording until it repeats, or for the requested number of steps. */
static enum plim_status play(struct plim_run_device *d, const struct plim_setting *setting,
                             enum plim_run_mode mode, struct plim_replay *out,
                             struct plim_error *err)
{
    const struct plim_recording *recording = d->options->question->recording;
    const struct plim_recorded_stream *stream;
    struct plim_recorded_point point;
    enum plim_status st = start_engine(d, mode, err);
    if (!st) st = find_stream(d, setting, &stream, &point, err);
    if (st) return st;
    struct plim_player *player = d->engines[mode == PLIM_RUN_UNLIMITED].player;
    plim_player_only(player, d->options->steps);
    return plim_player_run(player, recording->allocator, stream, point, setting->accumulation, out,
                           err);
}

/* Outputs of a run: a trace of all allocations, the timeline of the second step; NULL: none. */
struct shown {
    FILE *trace;
    struct plim_timeline *timeline;
};

/* Replays a setting. If the ranks of a job differ, the outputs show the rank that needs the most memory. */
static enum plim_status replay(struct plim_run_device *d, const struct plim_setting *setting,
                               enum plim_run_mode mode, struct shown shown,
                               struct plim_replay *out, struct plim_error *err)
{
    const struct plim_spec_question *question = d->options->question;
    struct plim_train_setting training;
    enum plim_status st = plim_spec_question_setting(question, setting, &training, err);
    if (!st) st = start_engine(d, mode, err);
    if (st) return st;
    plim_run_setting_vllm(&training, d->info.total_bytes);
    const struct plim_model_config *model = &question->spec->model;
    struct plim_replayer *replayer = d->engines[mode == PLIM_RUN_UNLIMITED].replayer;
    int64_t steps = d->options->steps;
    bool ranks_differ = plim_ranks_differ(&training), is_shown = steps || shown.timeline || shown.trace;
    struct plim_replay of_ranks = {0};
    if (ranks_differ && (is_shown || mode == PLIM_RUN_PROOF)) {
        st = plim_ranks_prove(replayer, model, &training, &of_ranks, err);
        *out = of_ranks;
        if (st || !is_shown) return st;
        training.rank = of_ranks.rank;
    }
    plim_replayer_timeline(replayer, shown.timeline);
    plim_replayer_trace(replayer, shown.trace);
    st = steps                    ? replay_steps(replayer, model, &training, steps, out, err)
         : mode == PLIM_RUN_PROOF ? plim_replay_prove(replayer, model, &training, out, err)
                                  : plim_replay_run(replayer, model, &training, out, err);
    plim_replayer_timeline(replayer, NULL);
    plim_replayer_trace(replayer, NULL);
    if (!ranks_differ) return st;
    if (!steps) out->repeats_after = 0; /* that one rank repeats proves nothing about the others */
    out->rank = of_ranks.rank;
    out->rank0_reserved_bytes = of_ranks.rank0_reserved_bytes;
    return st;
}

/* Returns the status of a run; if it was cancelled, the status and message of the stop. */
static enum plim_status with_reason(const struct plim_run_device *d, enum plim_status st,
                                    struct plim_error *err)
{
    if (st != PLIM_CANCELLED) return st;
    enum plim_status why = plim_stop_check(d->options->stop, err);
    return why ? why : st;
}

enum plim_status plim_run_simulate(struct plim_run_device *d, const struct plim_setting *setting,
                                   enum plim_run_mode mode, struct plim_replay *out,
                                   struct plim_error *err)
{
    enum plim_status st = d->options->question->recording ? play(d, setting, mode, out, err)
                                                          : replay(d, setting, mode, (struct shown){0}, out, err);
    return with_reason(d, st, err);
}

static int64_t requested_bytes(const struct plim_replay *replay)
{
    int64_t peak = 0;
    for (int i = 0; i < plim_replay_kept_steps(replay); i++)
        if (replay->step[i].peak_requested_bytes > peak)
            peak = replay->step[i].peak_requested_bytes;
    return peak;
}

void plim_run_trial(const struct plim_replay *replay, struct plim_trial *out)
{
    int kept = plim_replay_kept_steps(replay);
    double communication = replay->communication_seconds;
    *out =
        (struct plim_trial){.verdict = replay->verdict,
                            .reserved_bytes = replay->peak_reserved_bytes,
                            .requested_bytes = requested_bytes(replay),
                            .retries = replay->retries,
                            .seconds = (kept ? replay->step[kept - 1].seconds : 0) + communication,
                            .seconds_are_modelled = plim_replay_has_another_time(replay),
                            .communication_seconds = communication,
                            .link_bytes_per_second = replay->link_bytes_per_second,
                            .link_latency_seconds = replay->link_latency_seconds,
                            .link_gpus = replay->link_gpus,
                            .host_bound = replay->host_bound,
                            .steps_done = replay->steps_done,
                            .repeats_after = replay->repeats_after,
                            .small_blocks_move = replay->small_blocks_move,
                            .details = replay};
    snprintf(out->why, sizeof(out->why), "%s", replay->why);
}

/* True if the result of another GPU of the class may be reused, with its times adjusted. Not with sharding, since the
 * times of links do not scale with the GPU's clock. Not if the size of GPU memory has an effect before it is full:
 * loading a quantized model reads it, an expandable segment reserves addresses for 9/8 of it, a vLLM takes a share of
 * it when it wakes up. Not for a proof of a spec, which takes more steps than a shared run has; plays of recordings
 * always run until they repeat. */
static bool may_share(const struct plim_run_device *d, const struct plim_setting *setting,
                      enum plim_run_mode mode)
{
    const struct plim_spec_question *question = d->options->question;
    struct plim_train_setting training;
    if (d->options->steps || d->allocator.memory_fraction > 0 || d->allocator.expandable_segments)
        return false;
    if (question->recording) return d->options->plays;
    if (!d->options->share || mode == PLIM_RUN_PROOF ||
        plim_spec_question_setting(question, setting, &training, NULL) != PLIM_OK)
        return false;
    return training.quantization.type == PLIM_QUANTIZATION_NONE && training.sharding == PLIM_SHARDING_NONE &&
           !training.grpo.vllm_sleeps;
}

static enum plim_status replay_or_share(struct plim_run_device *d,
                                        const struct plim_setting *setting, enum plim_run_mode mode,
                                        int64_t budget_bytes, struct plim_error *err)
{
    struct plim_run_share *share = d->options->share;
    enum plim_status st = start_engine(d, mode, err);
    if (st) return st;
    struct plim_device *device = d->engines[mode == PLIM_RUN_UNLIMITED].device;
    if (plim_run_share_find(share, setting, device, budget_bytes, &d->last)) return PLIM_OK;
    plim_sim_record(device, &share->recorder);
    st = plim_run_simulate(d, setting, mode, &d->last, err);
    plim_sim_record(device, NULL);
    if (!st && plim_run_share_store(share, setting, &d->last) != PLIM_OK) st = plim_no_memory(err);
    return st;
}

static enum plim_status play_or_share(struct plim_run_device *d, const struct plim_setting *setting,
                                      enum plim_run_mode mode, int64_t budget_bytes,
                                      struct plim_error *err)
{
    struct plim_run_plays *plays = d->options->plays;
    const struct plim_recorded_stream *stream;
    struct plim_recorded_point point;
    uint64_t sizes;
    enum plim_status st = start_engine(d, mode, err);
    struct plim_player *player = d->engines[mode == PLIM_RUN_UNLIMITED].player;
    if (!st) st = find_stream(d, setting, &stream, &point, err);
    if (!st) st = plim_player_sizes(player, stream, point, &sizes, err);
    if (st) return st;
    if (plim_run_plays_find(plays, setting, sizes, budget_bytes, &d->last))
        return plim_player_retime(player, stream, point, setting->accumulation, &d->last, err);
    st = plim_run_simulate(d, setting, mode, &d->last, err);
    if (!st && plim_run_plays_store(plays, setting, sizes, &d->last) != PLIM_OK) st = plim_no_memory(err);
    return st;
}

static enum plim_status run_or_share(struct plim_run_device *d, const struct plim_setting *setting,
                                     enum plim_run_mode mode, struct plim_error *err)
{
    int64_t budget = mode == PLIM_RUN_UNLIMITED ? PLIM_UNLIMITED_BYTES : d->limit.budget_bytes;
    if (!may_share(d, setting, mode)) return plim_run_simulate(d, setting, mode, &d->last, err);
    return d->options->question->recording ? play_or_share(d, setting, mode, budget, err)
                                           : replay_or_share(d, setting, mode, budget, err);
}

static enum plim_status run(void *user, const struct plim_setting *setting, enum plim_run_mode mode,
                            struct plim_trial *out, struct plim_error *err)
{
    struct plim_run_device *d = user;
    bool is_there = mode == PLIM_RUN_UNLIMITED && d->ahead &&
                    plim_ahead_result(d->ahead, setting, &d->last);
    enum plim_status st = is_there ? PLIM_OK : run_or_share(d, setting, mode, err);
    if (!st) plim_run_trial(&d->last, out);
    return st;
}

static bool run_beside(void *user, const struct plim_setting *setting, struct plim_replay *out)
{
    return plim_run_simulate(user, setting, PLIM_RUN_UNLIMITED, out, NULL) == PLIM_OK;
}

static void expect_needs(void *user, const struct plim_setting *settings, size_t count)
{
    struct plim_run_device *d = user;
    plim_ahead_finish(&d->ahead);
    if (!d->beside) d->beside = calloc(1, sizeof(*d->beside));
    if (!d->beside) return;
    d->beside->options = d->options;
    d->beside->allocator = d->allocator;
    d->beside->gpu = d->gpu;
    d->beside->info = d->info;
    d->ahead = plim_ahead_start(run_beside, d->beside, settings, count);
}

struct plim_runner plim_run_simulator(struct plim_run_device *d)
{
    return (struct plim_runner){.run = run,
                                .expect_needs = d->options->runs_ahead && d->info.simulated
                                                    ? expect_needs : NULL,
                                .user = d,
                                .details_bytes = sizeof(d->last),
                                .budget_bytes = d->limit.budget_bytes,
                                .proves = !d->options->steps,
                                .limit_acts_early = d->allocator.memory_fraction > 0};
}

enum plim_status plim_run_device_trace(struct plim_run_device *d,
                                       const struct plim_setting *setting, const char *path,
                                       struct plim_error *err)
{
    struct plim_replay last;
    struct plim_outfile file;
    if (d->options->question->recording)
        return plim_fail(err, PLIM_UNSUPPORTED,
                         "--trace cannot be used with a recording, which is a trace itself");
    enum plim_status st = start_engine(d, PLIM_RUN_LIMITED, err);
    if (!st) st = plim_outfile_open(path, &file, err);
    if (st) return st;
    st = replay(d, setting, PLIM_RUN_LIMITED, (struct shown){.trace = file.stream}, &last, err);
    st = with_reason(d, st, err);
    if (!st) return plim_outfile_commit(&file, err);
    plim_outfile_discard(&file);
    return st;
}

enum plim_status plim_run_device_timeline(struct plim_run_device *d,
                                          const struct plim_setting *setting, bool fits,
                                          struct plim_timeline *timeline, struct plim_error *err)
{
    enum plim_run_mode mode = fits ? PLIM_RUN_LIMITED : PLIM_RUN_UNLIMITED;
    struct plim_setting shown = *setting;
    struct plim_replay last;
    if (d->options->question->recording)
        return PLIM_OK; /* a recording knows only the ends of steps */
    if (shown.accumulation > PLIM_RUN_TIMELINE_MICRO_STEPS)
        shown.accumulation = PLIM_RUN_TIMELINE_MICRO_STEPS;
    return with_reason(d, replay(d, &shown, mode, (struct shown){.timeline = timeline}, &last, err), err);
}

struct plim_limit plim_run_limit(const struct plim_run_device *d, int64_t usable_bytes,
                                 int64_t estimate_bytes, int64_t measured_bytes)
{
    const struct plim_allowance *allowance = d->options->allowance;
    const struct plim_spec_question *question = d->options->question;
    struct plim_limit limit =
        plim_allowance_limit(allowance, usable_bytes, estimate_bytes, measured_bytes);
    for (int64_t i = 0; question && i < plim_run_communicators(question->spec); i++)
        plim_allowance_add_communicator(allowance, &limit);
    if (question) plim_run_limit_vllm(question->spec, d->info.total_bytes, &limit);
    return limit;
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

void plim_run_close_simulated(struct plim_run_device *d)
{
    plim_ahead_finish(&d->ahead);
    if (d->beside) plim_run_close_simulated(d->beside);
    free(d->beside);
    d->beside = NULL;
    for (int i = 0; i < 2; i++) {
        plim_replayer_destroy(&d->engines[i].replayer);
        plim_player_destroy(&d->engines[i].player);
        plim_device_close(&d->engines[i].device);
    }
}

enum plim_status plim_run_open_simulated(struct plim_run_device *d, struct plim_error *err)
{
    struct plim_run_engine *engine = &d->engines[PLIM_RUN_LIMITED];
    enum plim_status st = plim_device_open(d->options->uri, &engine->device, err);
    if (st) return st;
    d->gpu = *plim_sim_gpu(engine->device);
    plim_run_describe(d, &engine->device->info);
    /* No other process uses it. */
    d->limit = plim_run_limit(d, d->info.total_bytes,
                              plim_overhead_estimate(d->info.compute_capability), 0);
    d->runner = plim_run_simulator(d);
    return PLIM_OK;
}
