/* The training loop of the golden runs, on the engine. */
#include "replay.h"
#include "autotune/base/array.h"
#include "training_run.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Seeds of random tensors other than the parameters, which use the first numbers. */
enum { TOKEN_SEED = 1 << 30, DROPOUT_SEED };

struct plim_replayer {
    struct plim_device *device;
    struct plim_allocator *allocator;
    struct engine *engine;
    plim_replay_stop *stop;
    const void *stop_user;
    struct plim_timeline *timeline; /* NULL: not recorded */
    struct plim_links links;
    struct state_list states; /* at the ends of this run's steps, from the second on */
    struct state_list micro_states; /* at the ends of this step's micro-steps */
    struct state_list evaluated;    /* at the ends of evaluations */
    struct tape tape;
    struct training_run run;
};

enum plim_status plim_replayer_create(struct plim_device *device,
                                      const struct plim_allocator_config *config,
                                      struct plim_replayer **out, struct plim_error *err)
{
    enum plim_status st = PLIM_OK;
    struct plim_allocator_config defaults = PLIM_ALLOCATOR_CONFIG_DEFAULT;
    struct plim_replayer *r = calloc(1, sizeof *r);
    *out = NULL;
    if (!r) return plim_fail(err, PLIM_NOMEM, "no memory for the engine");
    r->device = device;
    PLIM_TRY(plim_allocator_create(device, config ? config : &defaults, &r->allocator, err));
    PLIM_TRY(engine_create(device, r->allocator, &r->engine, err));
    *out = r;
    return PLIM_OK;
out:
    plim_replayer_destroy(&r);
    return st;
}

void plim_replayer_destroy(struct plim_replayer **rp)
{
    struct plim_replayer *r = *rp;
    if (!r) return;
    engine_destroy(&r->engine);
    plim_allocator_destroy(&r->allocator);
    PLIM_ARRAY_FINISH(&r->states);
    PLIM_ARRAY_FINISH(&r->micro_states);
    PLIM_ARRAY_FINISH(&r->evaluated);
    tape_finish(&r->tape);
    free(r);
    *rp = NULL;
}

void plim_replayer_trace(struct plim_replayer *r, FILE *file)
{
    r->engine->memory.trace = file;
}

void plim_replayer_timeline(struct plim_replayer *r, struct plim_timeline *timeline)
{
    r->timeline = timeline;
    r->engine->memory.timeline = NULL;
}

void plim_replayer_links(struct plim_replayer *r, const struct plim_links *links)
{
    r->links = *links;
}

/* Returns the link of a ring through all GPUs. If the ring spans machines, all of a GPU's data also passes over the
 * network, so the slower link counts, which was not measured. */
static struct plim_replay ring_of(const struct plim_links *links,
                                  const struct plim_train_setting *setting)
{
    bool is_inside = setting->world <= links->gpus_per_node;
    if (setting->world < 2 || setting->sharding == PLIM_SHARDING_NONE)
        return (struct plim_replay){0};
    return (struct plim_replay){
        .link_bytes_per_second = is_inside ? links->gpu_bandwidth
                                           : fmin(links->gpu_bandwidth, links->node_bandwidth),
        .link_latency_seconds = links->gpu_latency,
        .link_gpus = is_inside ? links->measured_gpus : 0};
}

void plim_replayer_stop(struct plim_replayer *r, plim_replay_stop *stop, const void *user)
{
    r->stop = stop;
    r->stop_user = user;
}

/* --- a run ------------------------------------------------------------------------------------- */

static enum plim_status build(struct training_run *r, const struct plim_model_config *model)
{
    enum plim_status st = PLIM_OK;
    struct engine *e = r->e;
    training_run_enter(r, "building the model");
    e->tf32 = r->setting.precision == PLIM_PRECISION_TF32;
    e->torch_2_15 = r->setting.torch == PLIM_TORCH_2_15;
    engine_set_class(e, PLIM_MEMORY_TEMPORARIES);
    const struct parameters *trained = &r->model.parameters;
    bool is_ddp = r->setting.sharding == PLIM_SHARDING_DDP;
    bool is_fsdp = r->setting.sharding == PLIM_SHARDING_FSDP;
    bool is_zero = plim_sharding_is_zero(r->setting.sharding);
    if (is_ddp) r->refusal = ddp_refuses(&r->setting);
    if (is_fsdp) r->refusal = fsdp_refuses(&e->device->info, model, &r->setting);
    if (is_zero) r->refusal = zero_refuses(&e->device->info, model, &r->setting);
    if (is_zero) zero_settle_precision(&r->setting);
    if (!r->refusal) r->refusal = decoder_refuses(&e->device->info, model, &r->setting);
    if (!r->refusal) r->refusal = trainer_loop_refuses(&r->setting);
    if (r->refusal) {
        engine_halt(e, HALT_UNSUPPORTED);
        return PLIM_OK;
    }
    if (r->setting.sharding != PLIM_SHARDING_ZERO3) trainer_loop_barrier(e, &r->setting, &r->link);
    bool is_first = plim_loop_is_swift_rlhf(r->setting.loop); /* _prepare_model_tokenizer() of ms-swift's SwiftRLHF */
    if (is_first) PLIM_TRY(reference_create(e, model, &r->setting, &r->reference));
    PLIM_TRY(decoder_create(e, model, &r->setting, &r->model));
    if (*r->model.refusal) {
        r->refusal = r->model.refusal;
        return PLIM_OK;
    }
    vllm_connect(e, &r->setting, &r->link);
    if (!is_first) PLIM_TRY(reference_create(e, model, &r->setting, &r->reference));
    bool is_trainers = plim_loop_is_trainers(r->setting.loop);
    if (is_trainers && !e->halted) plim_allocator_empty_cache(e->allocator); /* train(): accelerate's free_memory() */
    if (is_ddp) PLIM_TRY(ddp_create(e, &r->model, r->setting.world, &r->link, &r->ddp));
    if (is_zero) {
        PLIM_TRY(zero_create(e, &r->model, &r->link, &r->zero));
        trained = &r->zero.masters;
        r->refusal = zero_fails(&r->zero);
        if (r->refusal) engine_halt(e, HALT_UNSUPPORTED);
    }
    if (is_fsdp) {
        PLIM_TRY(fsdp_create(e, &r->model, &r->link, &r->fsdp));
        trained = &r->fsdp.sharded;
    }
    const struct plim_allocator_stats *stats = plim_allocator_statistics(e->allocator);
    r->out.peak_allocated_bytes = r->out.loading_allocated_bytes = stats->allocated_peak;
    r->out.peak_reserved_bytes = r->out.loading_reserved_bytes = stats->reserved_peak;
    PLIM_TRY(optimizer_create(&r->optimizer, r->setting.optimizer, trained));
    r->optimizer.sharded = r->fsdp.model != NULL;
    scaler_create(&r->scaler, !is_zero && r->setting.precision == PLIM_PRECISION_FP16_MIXED);
    if (is_trainers) {
        /* vit's positions are not an nn.Embedding */
        struct tensor *positions = model->patch_size ? NULL : r->model.position_embedding;
        optimizer_as_trainer(&r->optimizer, r->setting.lora.r > 0,
                             (struct tensor *[]){r->model.embedding, positions, r->model.type_embedding});
        PLIM_TRY(trainer_loop_create(e, &r->model, TOKEN_SEED, &r->trainer));
        grpo_create(&r->model, &r->grpo);
    } else {
        r->batch = decoder_batch(e, &r->model, TOKEN_SEED);
    }
    e->seed = DROPOUT_SEED;
out:
    return st;
}

static void note_oom(const struct training_run *r, struct plim_replay *out)
{
    const struct engine *e = r->e;
    bool built = r->batch.inputs != NULL || r->trainer.steps > 0;
    out->oom_asked_bytes = e->oom_asked_bytes;
    out->oom_class = e->oom_class;
    if (built)
        snprintf(out->oom_where, sizeof out->oom_where, "%s, step %lld", r->phase,
                 (long long)(out->steps_done + r->steps_left_out + 1));
    else
        snprintf(out->oom_where, sizeof out->oom_where, "%s", r->phase);
    if (r->retries_vary)
        snprintf(out->why, sizeof out->why,
                 "out of memory: it has to free cached memory, and %d micro-steps did not repeat",
                 PLIM_REPLAY_PROOF_MICRO_STEPS);
    else if (e->oom_asked_bytes)
        snprintf(out->why, sizeof out->why, "out of memory: %lld bytes asked for in %s",
                 (long long)e->oom_asked_bytes, out->oom_where);
    else
        snprintf(out->why, sizeof out->why, "out of memory: the code of %s found no room in %s",
                 e->halting_op, out->oom_where);
}

void plim_replay_begin(struct plim_replayer *replayer, const struct plim_model_config *model,
                       const struct plim_train_setting *setting)
{
    struct training_run *r = &replayer->run;
    *r = (struct training_run){.e = replayer->engine,
                      .stop = replayer->stop,
                      .stop_user = replayer->stop_user,
                      .timeline = replayer->timeline,
                      .setting = *setting,
                      .out = ring_of(&replayer->links, setting),
                      .states = &replayer->states,
                      .micro_states = &replayer->micro_states,
                      .evaluated = &replayer->evaluated,
                      .tape = &replayer->tape};
    r->out.evaluation_batch = setting->evaluation.batch;
    r->out.evaluation_every = setting->evaluation.every;
    r->link = (struct link){.e = replayer->engine,
                            .bytes_per_second = r->out.link_bytes_per_second,
                            .latency_seconds = r->out.link_latency_seconds / 2,
                            .world = setting->world};
    replayer->states.count = replayer->evaluated.count = 0;
    tape_rewind(&replayer->tape);
    replayer->tape.carried[0] = &r->trainer.loss;
    replayer->tape.carried[1] = &r->trainer.norm;
    for (int i = 0; i < RATE_GROUPS; i++) replayer->tape.carried[2 + i] = &r->trainer.rates.last[i];
    engine_reset(r->e);
    r->records = plim_device_can_repeat(replayer->device) && !training_run_is_sharded(r) &&
                 !r->e->memory.trace && !replayer->timeline && !setting->empty_cache_steps &&
                 setting->loop != PLIM_LOOP_AXOLOTL_DPO; /* this loop frees cached memory */
    r->st = plim_device_reset(replayer->device);
    if (r->st == PLIM_OK) r->st = build(r, model);
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Returns the period after which everything repeats from this step on, as a number of these states, or 1 if only small
 * blocks move; 0 if the state at the end of this step does not show that. */
static size_t period_of(struct training_run *r, struct state_list *states, size_t settled, int64_t peak_reserved_bytes,
                        bool *small_blocks_move)
{
    size_t period = training_run_since_this_state(r, states);
    *small_blocks_move =
        !period && !r->e->halted && training_run_only_small_blocks_move(r, states, settled, peak_reserved_bytes);
    return *small_blocks_move ? 1 : period;
}

/* Runs the evaluation before the first step. */
static void evaluate_at_start(struct training_run *r)
{
    struct plim_replay *out = &r->out;
    struct plim_replay_step start = {0};
    training_run_evaluate(r, &start);
    out->peak_allocated_bytes = larger(out->peak_allocated_bytes, start.evaluation_allocated_bytes);
    out->peak_reserved_bytes = larger(out->peak_reserved_bytes, start.evaluation_reserved_bytes);
    if (r->e->halted) return;
    out->start_allocated_bytes = out->evaluation_allocated_bytes = start.evaluation_allocated_bytes;
    out->start_reserved_bytes = out->evaluation_reserved_bytes = start.evaluation_reserved_bytes;
    out->start_requested_bytes = start.evaluation_requested_bytes;
}

/* Runs an evaluation if one is due after this step. Skips the steps until then if they are known to repeat, or if
 * MOST_STEPS have run without a repetition. On a device that cannot repeat, the evaluation follows the fourth step. */
static void evaluate(struct plim_replayer *replayer, struct plim_replay_step *step, bool compares)
{
    enum { MOST_STEPS = PLIM_REPLAY_PROOF_STEPS / 4, SETTLED_EVALUATIONS = 3, SETTLED_LATER = 4 };
    struct training_run *r = &replayer->run;
    struct plim_replay *out = &r->out;
    int64_t every = r->setting.evaluation.every, left = every - ++r->since_evaluation;
    bool unused, skips = compares && !r->e->memory.trace;
    if (!plim_device_can_repeat(replayer->device) && out->steps_done == PLIM_REPLAY_STEPS - 1) left = 0;
    if (skips && left > 0) {
        size_t settled = out->evaluations ? SETTLED_LATER : PLIM_REPLAY_SETTLED_STEPS;
        int64_t period = (int64_t)period_of(r, r->states, settled, step->peak_reserved_bytes, &unused);
        int64_t skipped = period ? left / period * period : r->states->count >= MOST_STEPS ? left : 0;
        r->since_evaluation += skipped;
        r->steps_left_out += skipped;
        left -= skipped;
    }
    if (left > 0 || r->e->halted) return;
    training_run_evaluate(r, step);
    out->evaluations++;
    out->evaluation_allocated_bytes = larger(out->evaluation_allocated_bytes, step->evaluation_allocated_bytes);
    out->evaluation_reserved_bytes = larger(out->evaluation_reserved_bytes, step->evaluation_reserved_bytes);
    r->since_evaluation = 0;
    r->states->count = 0;
    if (!compares || r->e->halted) return;
    int64_t peak = step->evaluation_reserved_bytes;
    if (period_of(r, r->evaluated, SETTLED_EVALUATIONS, peak, &out->small_blocks_move) && !out->small_blocks_move)
        out->repeats_after = out->steps_done + 1;
}

bool plim_replay_next(struct plim_replayer *replayer, struct plim_replay_step *step)
{
    struct training_run *r = &replayer->run;
    struct plim_replay *out = &r->out;
    *step = (struct plim_replay_step){.loss = NAN};
    if (r->st != PLIM_OK || r->e->halted) return false;
    if (r->setting.evaluation.at_start && !out->steps_done) evaluate_at_start(r);
    if (r->e->halted) return false;
    training_run_step(r, step);
    bool compares = plim_device_can_repeat(replayer->device) && out->steps_done > 0 && !out->repeats_after;
    if (r->setting.evaluation.batch && !r->e->halted) {
        evaluate(replayer, step, compares);
    } else if (compares && !r->e->halted) {
        size_t period = period_of(r, r->states, PLIM_REPLAY_SETTLED_STEPS, step->peak_reserved_bytes,
                                  &out->small_blocks_move);
        if (period && !out->small_blocks_move) out->repeats_after = out->steps_done + 1;
    }
    out->peak_allocated_bytes = larger(out->peak_allocated_bytes,
                                       larger(step->peak_allocated_bytes, step->evaluation_allocated_bytes));
    out->peak_reserved_bytes = larger(out->peak_reserved_bytes,
                                      larger(step->peak_reserved_bytes, step->evaluation_reserved_bytes));
    if (out->steps_done < PLIM_REPLAY_STEPS) out->step[out->steps_done] = *step;
    if (r->e->halted) return false;
    out->steps_done++;
    return true;
}

enum plim_status plim_replay_end(struct plim_replayer *replayer, struct plim_replay *out,
                                 struct plim_error *err)
{
    struct training_run *r = &replayer->run;
    struct engine *e = r->e;
    *out = r->out;
    out->parameters = r->model.parameters.elements;
    out->trainable_parameters = r->model.parameters.trainable_elements;
    out->managed_bytes = r->optimizer.managed_bytes;
    out->host_bytes = zero_host_bytes(&r->zero);
    out->sdpa_engines = replayer->device->sdpa_engines;
    out->groups_one_by_one = replayer->device->groups_one_by_one;
    out->delta_on_fp32 = replayer->device->delta_on_fp32;
    if (r->fsdp.model && !e->halted) out->next_rank = fsdp_next_rank(&r->fsdp);
    if (r->fsdp.model && !e->halted) out->expert_ranks = fsdp_expert_ranks(&r->fsdp);
    if (r->st == PLIM_OK && r->model.family && !e->halted)
        out->model_flops_per_token = decoder_flops_per_token(&r->model);
    memcpy(out->class_bytes, e->memory.class_bytes_at_peak, sizeof out->class_bytes);
    out->retries = training_run_retries(r);
    if (e->halted == HALT_OOM) {
        out->verdict = PLIM_OOM;
        note_oom(r, out);
    } else if (e->halted == HALT_UNSUPPORTED) {
        out->verdict = PLIM_UNSUPPORTED;
        if (r->refusal) snprintf(out->why, sizeof out->why, "%s", r->refusal);
        else snprintf(out->why, sizeof out->why, "%s cannot run on this device", e->halting_op);
    } else if (e->halted) {
        r->st = e->failure;
    }
    ddp_finish(&r->ddp);
    fsdp_finish(&r->fsdp);
    zero_finish(&r->zero);
    trainer_loop_finish(&r->trainer);
    decoder_finish(&r->model);
    reference_finish(&r->reference);
    optimizer_finish(&r->optimizer);
    if (r->st == PLIM_CANCELLED) return r->st;
    return r->st == PLIM_OK
               ? PLIM_OK
               : plim_fail(err, r->st, "the replay failed (%s): %s",
                           r->phase ? r->phase : "starting", plim_status_text(r->st));
}

/* Skips a step after one that ended as it began: it is the same, except for the device's queue. */
static void repeat_last_step(struct plim_replayer *replayer, const struct plim_device_round *round,
                             struct driver_use before)
{
    struct training_run *r = &replayer->run;
    struct plim_replay_step *step = &r->out.step[r->out.steps_done];
    double start = 0, end = 0;
    enum plim_status st = plim_device_now(replayer->device, &start);
    plim_device_repeat(replayer->device, round, 1);
    training_run_repeat_driver_use(r, before, training_run_driver_use(r), 1);
    if (st == PLIM_OK) st = plim_device_now(replayer->device, &end);
    if (st != PLIM_OK) engine_fail(r->e, st);
    *step = step[-1];
    step->seconds = end - start;
    r->out.steps_done++;
}

/* Runs the steps whose numbers are kept. Nearly always the third ends as it began, and therefore determines the
 * fourth. */
static bool first_steps(struct plim_replayer *replayer)
{
    struct training_run *r = &replayer->run;
    struct plim_replay_step step;
    struct plim_device_round round;
    for (int i = 1; i < PLIM_REPLAY_STEPS - 1; i++)
        if (!plim_replay_next(replayer, &step)) return false;
    if (r->setting.evaluation.batch) {
        bool goes_on = true;
        while (goes_on && (r->out.steps_done < PLIM_REPLAY_STEPS || !r->out.evaluations))
            goes_on = plim_replay_next(replayer, &step);
        return goes_on;
    }
    if (!plim_device_can_repeat(replayer->device) || r->e->memory.trace)
        return plim_replay_next(replayer, &step) && plim_replay_next(replayer, &step);
    struct driver_use before = training_run_driver_use(r);
    plim_device_begin_round(replayer->device);
    bool goes_on = plim_replay_next(replayer, &step);
    plim_device_end_round(replayer->device, &round);
    if (!goes_on || !r->out.repeats_after) return goes_on && plim_replay_next(replayer, &step);
    repeat_last_step(replayer, &round, before);
    return !r->e->halted;
}

enum plim_status plim_replay_run(struct plim_replayer *replayer,
                                 const struct plim_model_config *model,
                                 const struct plim_train_setting *setting, struct plim_replay *out,
                                 struct plim_error *err)
{
    plim_replay_begin(replayer, model, setting);
    first_steps(replayer);
    return plim_replay_end(replayer, out, err);
}

enum plim_status plim_replay_prove(struct plim_replayer *replayer,
                                   const struct plim_model_config *model,
                                   const struct plim_train_setting *setting,
                                   struct plim_replay *out, struct plim_error *err)
{
    struct plim_replay_step step;
    const struct plim_replay *so_far = &replayer->run.out;
    plim_replay_begin(replayer, model, setting);
    bool goes_on = first_steps(replayer);
    while (goes_on && !so_far->repeats_after && !so_far->small_blocks_move &&
           so_far->steps_done < PLIM_REPLAY_PROOF_STEPS)
        goes_on = plim_replay_next(replayer, &step);
    return plim_replay_end(replayer, out, err);
}
