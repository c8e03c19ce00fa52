/* The steps of a training run: as many micro-steps as determine all others, and the optimizer's update. */
#include "training_run.h"
#include "autotune/base/array.h"
#include "devices/half.h"
#include "forward.h"
#include "label_smoother.h"
#include "passes.h"
#include "retime.h"
#include "reward.h"
#include "sft_loss.h"
#include "swift_sft.h"
#include "workloads/engine/ops_trl.h"
#include "workloads/engine/autograd.h"
#include <math.h>
#include <string.h>

bool training_run_is_sharded(const struct training_run *r)
{
    return r->setting.sharding >= PLIM_SHARDING_DDP;
}

void training_run_enter(struct training_run *r, const char *phase)
{
    if (r->e->halted) return;
    r->phase = phase;
    if (r->e->memory.timeline) r->e->memory.timeline->phase = phase;
}

/* Returns the value of the loss, NaN if it is not computed. This read is not part of the training loop. The loss is in
 * 16 bits if the logits are and nothing casts them. */
static double loss_of(struct engine *e, const struct tensor *loss)
{
    uint16_t half[2] = {0};
    float value;
    if (e->halted || e->device->info.simulated) return NAN;
    enum plim_status st = plim_device_read(e->device, loss->a.data, half, (size_t)plim_dtype_size(loss->a.dtype));
    memcpy(&value, half, sizeof(value));
    if (st == PLIM_OK && loss->a.dtype == PLIM_BF16) return plim_bf16_to_float(half[0]);
    if (st == PLIM_OK && loss->a.dtype == PLIM_F16) return plim_fp16_to_float(half[0]);
    if (st == PLIM_OK) return value;
    engine_fail(e, st);
    return NAN;
}

static void check_stop(struct training_run *r)
{
    if (r->stop && r->stop(r->stop_user)) engine_fail(r->e, PLIM_CANCELLED);
}

/* Ends FSDP2's forward for the outputs of TRL's fused head, in the order of their fields (FusedCausalLMOutput). */
static void end_fsdp(struct training_run *r, struct fused_output *out)
{
    struct tensor **const outputs[FSDP_OUTPUTS] = {&out->loss, &out->log_probs, &out->entropy, &out->mean_logits,
                                                   &out->aux_loss};
    fsdp_after_forward(r->e, &r->fsdp, out->log_probs, outputs, FSDP_OUTPUTS);
}

/* Returns the outputs that TRL's trainers request from the model's head. */
static unsigned scores_of(const struct training_run *r)
{
    if (r->setting.loop == PLIM_LOOP_TRL_GRPO) return TRL_ENTROPY;
    return TRL_ENTROPY | TRL_IS_TOP1 | (r->setting.loop == PLIM_LOOP_TRL_DPO ? TRL_MEAN_LOGITS : 0);
}

/* Runs a forward of a model with TRL's head, other than the one that is trained, not wrapped by DistributedDataParallel
 * or DeepSpeed's engine. `reduces`: the following backward reduces the gradients. */
static struct fused_output run_fused(struct training_run *r, struct decoder *m, const struct batch *batch,
                                     unsigned wanted, bool reduces)
{
    struct engine *e = r->e;
    struct batch given = *batch;
    fsdp_before_forward(e, &r->fsdp, reduces, &given);
    zero_before_forward(e, &r->zero, &given);
    forward_autocast(r, true);
    struct fused_output out = decoder_fused(e, m, &given, wanted);
    forward_autocast(r, false);
    end_fsdp(r, &out);
    zero_leave_model(e, &r->zero, 1);
    return out;
}

/* With smoothed labels SFTTrainer computes its metrics from a second forward, without gradients; `loss` is taken.
 * `reduces`: the backward of the first forward reduces the gradients. */
static struct tensor *measure_again(struct training_run *r, const struct batch *batch, struct tensor *items,
                                    struct tensor *loss, bool reduces)
{
    struct engine *e = r->e;
    struct sft_held held;
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    if (!e->evaluates) ddp_before_measuring(e, &r->ddp);
    struct fused_output fused = run_fused(r, &r->model, batch, scores_of(r), reduces);
    e->grad_enabled = grad;
    loss = sft_loss(e, fused, batch, items, &r->model, loss, &held);
    sft_held_drop(e, &held);
    zero_after_forward(e, &r->zero);
    return loss;
}

/* Returns the reference's outputs for the rows: those of a separate model, or of the trained one without its adapters.
 * `reduces`: the following backward reduces the gradients. */
static struct fused_output run_reference(struct training_run *r, const struct batch *batch, bool reduces)
{
    struct engine *e = r->e;
    bool grad = e->grad_enabled, evaluates = e->evaluates, has_own = r->reference.model.family;
    struct fused_output out = {0};
    if (e->halted || batch->known[0]) return out;
    e->grad_enabled = false;
    e->evaluates = true;
    struct decoder *m = forward_model(r, true);
    out = run_fused(r, m, batch, has_own ? 0 : scores_of(r), reduces); /* without its own, the trained model's head */
    zero_after_forward(e, &r->zero);
    e->adapters_off = false;
    e->evaluates = evaluates;
    e->grad_enabled = grad;
    return out;
}

/* Returns the loss of the head's outputs, which are taken. `trains` is false in an evaluation; `reduces` as above. The
 * caller drops *held. */
static struct tensor *trl_loss(struct training_run *r, struct fused_output *fused, struct batch *batch,
                               bool trains, bool reduces, struct sft_held *held)
{
    struct engine *e = r->e;
    if (r->setting.loop == PLIM_LOOP_TRL_GRPO) return grpo_loss(e, &r->grpo, fused, batch);
    if (r->setting.loop == PLIM_LOOP_TRL_SFT)
        return sft_loss(e, *fused, batch, trains ? r->trainer.items : NULL, &r->model, NULL, held);
    struct dpo_compared compared = {.model = *fused, .log_probs = dpo_log_probs(e, fused)};
    compared.reference = run_reference(r, batch, reduces);
    return dpo_loss(e, &compared, batch, &r->model, trains);
}

/* Returns the loss of a model without labels, computed from its logits, lent; named. `trains` is false in an
 * evaluation. */
static struct tensor *loss_of_logits(struct training_run *r, struct tensor *logits, const struct batch *batch,
                                     bool trains)
{
    if (r->setting.loop == PLIM_LOOP_TRL_REWARD) return reward_loss(r->e, logits, batch, &r->model, trains);
    return label_smoother_loss(r->e, &r->model, logits, batch->labels);
}

/* Runs a forward. Returns its loss, named. `reduces`: its backward reduces the gradients. */
static struct tensor *run_forward(struct training_run *r, bool reduces)
{
    struct engine *e = r->e;
    struct batch batch = r->batch;
    if (plim_loop_has_passes(r->setting.loop))
        return passes_loss(r, &batch, reduces, NULL);
    struct fused_output fused = {0};
    struct sft_held held = {0};
    struct tensor *logits = NULL, *loss = NULL;
    bool has_head = plim_loop_has_fused_head(r->setting.loop), is_fused = has_head && !(r->setting.label_smoothing > 0);
    bool is_dpo = batch.completions != NULL;
    if (r->grpo.model) batch = grpo_batch(e, &r->grpo);
    const struct batch prepared = batch = swift_prepare(e, &r->model, &batch);
    ddp_before_forward(e, &r->ddp, reduces);
    if (is_dpo) batch.labels = dpo_labels(e, &batch);
    fsdp_before_forward(e, &r->fsdp, reduces, &batch);
    zero_before_forward(e, &r->zero, &batch);
    forward_autocast(r, true);
    if (is_fused) fused = decoder_fused(e, &r->model, &batch, scores_of(r));
    else loss = decoder_loss(e, &r->model, &batch, &logits);
    if (!r->trainer.model) {
        ddp_copy_outputs(e, &r->ddp, &loss, &logits, &r->model.encoded);
        tensor_drop(e, logits);
        decoder_drop_output(e, &r->model);
    }
    forward_autocast(r, false);
    if (r->trainer.model) {
        trainer_loop_after_forward(e, &r->trainer, logits, forward_is_mixed(r));
        if (is_fused) ddp_copy_scores(e, &r->ddp, &fused);
        else ddp_copy_outputs(e, &r->ddp, &loss, &r->trainer.logits, &r->model.encoded);
    }
    if (is_fused) end_fsdp(r, &fused);
    else forward_end_fsdp(r, loss ? &loss : &r->trainer.logits);
    zero_leave_model(e, &r->zero, fused.aux_loss && fused.aux_loss->requires_grad ? 2 : 1);
    if (is_fused) loss = trl_loss(r, &fused, &batch, true, reduces, &held);
    sft_held_drop(e, &held);
    if (is_dpo) tensor_drop(e, batch.labels);
    bool is_unlabelled = !loss;
    if (is_unlabelled) loss = loss_of_logits(r, r->trainer.logits, &r->batch, true);
    if (is_unlabelled && plim_loop_is_trl(r->setting.loop)) trainer_loop_drop_logits(e, &r->trainer);
    if (has_head && !is_fused) {
        zero_after_forward(e, &r->zero);
        loss = measure_again(r, &r->batch, r->trainer.items, loss, reduces);
    }
    zero_after_forward(e, &r->zero);
    loss = swift_weigh(e, &r->model, &prepared, r->trainer.items, loss, r->trainer.logits);
    swift_prepared_drop(e, &r->model, &prepared);
    return loss;
}

/* `recorded`: the section of the tape in which the micro-step is recorded; NULL: it is not recorded. */
static void run_micro_step(struct training_run *r, struct plim_replay_step *s, bool last,
                           struct stretch *recorded)
{
    struct engine *e = r->e;
    check_stop(r);
    if (e->halted) return;
    training_run_enter(r, "forward");
    struct tensor *loss = run_forward(r, last || r->setting.reduction == PLIM_REDUCTION_EACH);
    s->after_forward_bytes = engine_allocated(e);
    if (recorded) stretch_middle(e, recorded);
    training_run_enter(r, "backward");
    struct tensor *divided = trainer_loop_scale(e, &r->trainer, &loss);
    struct tensor *scaled = r->zero.model ? zero_scale(e, &r->zero, divided, last)
                                          : tensor_hold(scaler_scale(e, &r->scaler, divided));
    if (!e->halted) autograd_backward(e, scaled);
    if (!e->halted && ddp_waits_for_unused(&r->ddp)) {
        r->refusal = "DistributedDataParallel fails where a parameter gets no gradient: set "
                     "train.ddp.find_unused_parameters";
        engine_halt(e, HALT_UNSUPPORTED);
    }
    ddp_after_backward(e, &r->ddp);
    zero_after_backward(e, &r->zero);
    tensor_drop_all(e, scaled, divided);
    if (last) s->loss = loss_of(e, loss);
    if (last && r->zero.model && r->trainer.model) { /* accelerate's backward() steps DeepSpeed's engine */
        training_run_enter(r, "optimizer");
        zero_step(e, &r->zero, &r->optimizer);
    }
    trainer_loop_end_micro_step(e, &r->trainer, loss);
}

static void play_micro_step(struct training_run *r, struct plim_replay_step *s,
                            const struct stretch *recorded)
{
    struct engine *e = r->e;
    check_stop(r);
    training_run_enter(r, "forward");
    stretch_play_first_half(e, r->tape, recorded);
    s->after_forward_bytes = engine_allocated(e);
    training_run_enter(r, "backward");
    stretch_play_second_half(e, r->tape, recorded);
}

/* Runs or plays a micro-step; if GPUs reduce gradients, not the last one. Tensors that only the very first one
 * allocates (workspaces) are not recorded. */
static void micro_step(struct training_run *r, struct plim_replay_step *s, bool is_first, bool is_last)
{
    struct stretch *stretch = is_first ? &r->first : &r->further;
    bool settled = !is_first || r->out.steps_done > 0;
    if (stretch->known) {
        play_micro_step(r, s, stretch);
    } else if (r->records && settled && !r->tape->broken) {
        stretch_begin(r->e, r->tape, stretch);
        run_micro_step(r, s, is_last, stretch);
        stretch_end(r->e, stretch);
        /* A first one is played only when it is known that everything it leaves is freed. */
        stretch->known = !is_first && !r->tape->broken && !r->tape->kept;
    } else {
        run_micro_step(r, s, is_last, NULL);
    }
}

static void run_update(struct training_run *r)
{
    struct engine *e = r->e;
    training_run_enter(r, "optimizer");
    if (r->zero.model) {
        if (!r->trainer.model) zero_step(e, &r->zero, &r->optimizer);
        return;
    }
    trainer_loop_begin_update(e, &r->trainer);
    if (r->setting.clip > 0 || r->trainer.model) { /* without a limit Trainer computes the norm nevertheless */
        scaler_unscale(e, &r->scaler, &r->optimizer);
        double limit = r->setting.clip > 0 ? r->setting.clip : INFINITY;
        trainer_loop_set_norm(e, &r->trainer, clip_grad_norm(e, &r->optimizer, limit));
    }
    scaler_step(e, &r->scaler, &r->optimizer);
    scaler_update(e, &r->scaler);
    trainer_loop_after_update(e, &r->trainer);
    optimizer_zero_grad(e, &r->optimizer);
}

/* Runs or plays the optimizer's part of a step. */
static void update(struct training_run *r)
{
    struct engine *e = r->e;
    bool first_is_recorded = r->first.end > r->first.begin;
    if (r->update.known) {
        training_run_enter(r, "optimizer");
        stretch_play_first_half(e, r->tape, &r->update);
        stretch_play_second_half(e, r->tape, &r->update);
    } else if (first_is_recorded && !r->tape->broken) {
        stretch_begin(e, r->tape, &r->update);
        run_update(r);
        stretch_end(e, &r->update);
        r->first.known = r->update.known = !r->tape->broken && !r->tape->kept;
        r->tape->broken = !r->first.known; /* nothing more is recorded on it */
    } else {
        run_update(r);
    }
}

int64_t training_run_retries(const struct training_run *r)
{
    return plim_allocator_statistics(r->e->allocator)->retries + r->retries_left_out;
}

struct driver_use training_run_driver_use(const struct training_run *r)
{
    struct plim_device_load load;
    plim_device_load(r->e->device, &load);
    return (struct driver_use){training_run_retries(r), load.driver_seconds};
}

void training_run_repeat_driver_use(struct training_run *r, struct driver_use from, struct driver_use to,
                              int64_t times)
{
    r->retries_left_out += (to.retries - from.retries) * times;
    plim_device_spend(r->e->device, (to.seconds - from.seconds) * (double)times);
}

size_t training_run_since_this_state(struct training_run *r, struct state_list *states)
{
    size_t since = 0;
    struct state now = {
        .fingerprint = grpo_fingerprint(
            &r->grpo, trainer_loop_fingerprint(&r->trainer, plim_allocator_fingerprint(r->e->allocator))),
        .use = training_run_driver_use(r)};
    for (size_t i = states->count; i-- > 0 && !since && now.fingerprint;)
        if (states->items[i].fingerprint == now.fingerprint) since = states->count - i;
    if (PLIM_ARRAY_PUSH(states, now) != PLIM_OK) engine_fail(r->e, PLIM_NOMEM);
    return since;
}

bool training_run_only_small_blocks_move(struct training_run *r, struct state_list *states, size_t count,
                                         int64_t peak_reserved_bytes)
{
    static const int64_t ROOM = 32 << 20; /* 16 segments of small blocks; up to 10 MiB were allocated in 400 steps */
    struct state *last = &states->items[states->count - 1];
    last->large = plim_allocator_fingerprint_large(r->e->allocator);
    last->peak_reserved_bytes = peak_reserved_bytes;
    if (training_run_retries(r) > 0) return false; /* memory ran out before: none is left */
    if (states->count < count || plim_device_free_bytes(r->e->device) < ROOM) return false;
    size_t period = 1;
    while (period <= count / 2 && last[-(ptrdiff_t)period].large != last->large) period++;
    if (period > count / 2) return false;
    for (size_t i = states->count - count; i < states->count; i++) {
        const struct state *state = &states->items[i];
        bool repeats = i < states->count - count + period || state->large == state[-(ptrdiff_t)period].large;
        if (!repeats || state->peak_reserved_bytes != peak_reserved_bytes || state->use.retries != last->use.retries)
            return false;
    }
    return true;
}

/* Returns the period after which micro-steps repeat from now on, or 0 if it is unknown. */
static int64_t period_of_micro_steps(struct training_run *r)
{
    int64_t period = (int64_t)training_run_since_this_state(r, r->micro_states);
    if (period || r->micro_states->count < PLIM_REPLAY_PROOF_MICRO_STEPS) return period;
    r->retries_vary = training_run_retries(r) > 0;
    if (r->retries_vary) { /* memory did not run out, but may do so later */
        r->e->oom_asked_bytes = 0;
        engine_halt(r->e, HALT_OOM);
    }
    return 1;
}

/* Repeats the micro-steps since the allocator was last in its present state `times` times, without running them. */
static void repeat_recorded(struct training_run *r, int64_t period, int64_t times)
{
    const struct state *now = &r->micro_states->items[r->micro_states->count - 1];
    plim_device_repeat(r->e->device, &r->further.round, period * times);
    training_run_repeat_driver_use(r, now[-period].use, now->use, times);
}

/* Runs a round of `period` micro-steps, which counts as `times` rounds in total. */
static void run_round(struct training_run *r, struct plim_replay_step *s, int64_t period, int64_t times)
{
    struct engine *e = r->e;
    struct plim_device_round round;
    struct driver_use before = training_run_driver_use(r);
    double waited = r->link.waited;
    plim_device_begin_round(e->device);
    for (int64_t i = 0; i < period; i++) micro_step(r, s, false, false);
    plim_device_end_round(e->device, &round);
    if (e->halted) return;
    plim_device_repeat(e->device, &round, times - 1);
    training_run_repeat_driver_use(r, before, training_run_driver_use(r), times - 1);
    r->link.waited += (r->link.waited - waited) * (double)(times - 1);
}

/* Runs micro-steps until the effect of the remaining ones is known, which are then skipped. If GPUs reduce gradients,
 * the last one is always run. */
static void micro_steps(struct training_run *r, struct plim_replay_step *s)
{
    struct engine *e = r->e;
    bool may_repeat =
        plim_device_can_repeat(e->device) && !e->memory.trace && !e->memory.timeline;
    bool last_differs = training_run_is_sharded(r);
    int64_t left = r->setting.accumulation - last_differs;
    r->micro_states->count = 0;
    for (bool is_first = true; left > 0 && !e->halted; is_first = false) {
        micro_step(r, s, is_first, left == 1 && !last_differs);
        left--;
        if (!may_repeat || left < 2 || e->halted) continue;
        int64_t period = period_of_micro_steps(r), times = period ? left / period : 0;
        if (!times) continue;
        may_repeat = false;
        left -= times * period;
        if (r->further.known) repeat_recorded(r, period, times);
        else run_round(r, s, period, times);
    }
    if (last_differs && !e->halted) run_micro_step(r, s, true, NULL);
}

/* Computes the scores of samples in a generation of GRPOTrainer: with the model in training mode, without
 * checkpointing, wrapped by accelerate only in autocast. */
static struct fused_output score_samples(void *user, const struct batch *batch, bool by_reference)
{
    struct training_run *r = user;
    struct engine *e = r->e;
    bool has_own = by_reference && r->reference.model.family;
    e->checkpointing_off = true;
    e->evaluates = has_own; /* from_pretrained() returns a model in evaluation mode */
    e->adapters_off = by_reference && !has_own;
    struct fused_output out =
        run_fused(r, has_own ? &r->reference.model : &r->model, batch, has_own ? 0 : scores_of(r), false);
    zero_after_forward(e, &r->zero);
    e->checkpointing_off = e->evaluates = e->adapters_off = false;
    return out;
}

/* A forward of generate(). accelerate wrapped the model in autocast; peft's generate() calls the base model inside it,
 * not DeepSpeed's engine. */
static struct tensor *next_logits(void *user, const struct batch *batch, struct decoder_cache *cache)
{
    struct training_run *r = user;
    struct engine *e = r->e;
    bool is_wrapped = forward_is_mixed(r) && !r->setting.lora.r && !r->zero.model;
    e->checkpointing_off = true;
    if (is_wrapped) forward_autocast(r, true);
    struct tensor *logits = decoder_next_logits(e, &r->model, batch, cache);
    if (is_wrapped) forward_autocast(r, false);
    e->checkpointing_off = false;
    return trainer_loop_widen(e, &r->model, logits, is_wrapped);
}

static void begin_timeline(struct training_run *r, double start)
{
    struct plim_timeline *timeline = r->timeline;
    if (!timeline || r->out.steps_done > 1) return;
    plim_timeline_begin(timeline, start);
    r->e->memory.timeline = timeline;
}

void training_run_step(struct training_run *r, struct plim_replay_step *s)
{
    struct engine *e = r->e;
    double start = 0, end = 0, waited = r->link.waited;
    struct plim_device_load before, after;
    plim_allocator_reset_peaks(e->allocator);
    e->device->segment_bytes_peak = e->device->segment_bytes;
    plim_device_load(e->device, &before);
    enum plim_status st = plim_device_now(e->device, &start);
    if (st != PLIM_OK) engine_fail(e, st);
    begin_timeline(r, start);
    if (r->trainer.model) {
        training_run_enter(r, "batches");
        trainer_loop_begin_step(e, &r->trainer);
        r->batch = r->trainer.batches[0];
        if (r->grpo.model) training_run_enter(r, "generation");
        grpo_begin_step(e, &r->grpo, score_samples, next_logits, r);
    }
    micro_steps(r, s);
    update(r);
    storage_record_moment(e); /* its end */
    e->memory.timeline = NULL;
    st = plim_device_now(e->device, &end);
    if (st != PLIM_OK) engine_fail(e, st);
    const struct plim_allocator_stats *stats = plim_allocator_statistics(e->allocator);
    s->peak_allocated_bytes = stats->allocated_peak;
    s->peak_reserved_bytes = r->setting.vllm_awake_bytes ? e->device->segment_bytes_peak : stats->reserved_peak;
    s->peak_requested_bytes = stats->requested_peak;
    s->end_allocated_bytes = stats->allocated;
    s->end_reserved_bytes = stats->reserved;
    s->seconds = end - start;
    plim_device_load(e->device, &after);
    plim_replay_record_load(&r->out, &before, &after);
    r->out.communication_seconds = r->link.waited - waited;
}

/* Runs a forward of an evaluation, on the model itself, not wrapped by DistributedDataParallel or DeepSpeed's
 * engine. */
static struct tensor *evaluate_logits(struct training_run *r, const struct batch *batch, struct tensor **logits)
{
    return forward_logits(r, &r->model, batch, false, logits);
}

/* For TRL's trainers: metrics that need the logits compute them in another forward. */
static struct tensor *evaluate_fused(struct training_run *r, const struct batch *batch, struct tensor **logits)
{
    struct engine *e = r->e;
    struct sft_held held = {0};
    struct batch labelled = *batch, unlabelled = *batch;
    unlabelled.labels = NULL;
    if (batch->completions) labelled.labels = dpo_labels(e, batch);
    struct fused_output fused = run_fused(r, &r->model, &labelled, scores_of(r), false);
    struct tensor *loss = trl_loss(r, &fused, &labelled, false, false, &held);
    if (batch->completions) tensor_drop(e, labelled.labels);
    zero_after_forward(e, &r->zero);
    struct tensor *states = r->model.encoded; /* held by its output, which lives as long */
    r->model.encoded = NULL;
    if (r->setting.evaluation.keeps != PLIM_PREDICTIONS_LOSS) {
        evaluate_logits(r, &unlabelled, logits);
        zero_after_forward(e, &r->zero);
    }
    tensor_drop(e, states);
    sft_held_drop(e, &held);
    return loss;
}

static struct tensor *evaluation_forward(void *user, const struct batch *batch, struct tensor *logits[TRAINER_LOGITS])
{
    struct training_run *r = user;
    struct engine *e = r->e;
    bool has_head = plim_loop_has_fused_head(r->setting.loop);
    *logits = NULL;
    if (plim_loop_has_passes(r->setting.loop))
        return passes_loss(r, batch, false, logits);
    if (has_head && !(r->setting.label_smoothing > 0)) return evaluate_fused(r, batch, logits);
    const struct batch prepared = swift_prepare(e, &r->model, batch);
    struct tensor *loss = evaluate_logits(r, &prepared, logits);
    loss = swift_weigh(e, &r->model, &prepared, r->trainer.items, loss, *logits);
    swift_prepared_drop(e, &r->model, &prepared);
    if (!loss) loss = loss_of_logits(r, *logits, batch, false);
    if (has_head) {
        tensor_drop(e, *logits);
        *logits = NULL;
        zero_after_forward(e, &r->zero);
        return measure_again(r, batch, NULL, loss, false);
    }
    zero_after_forward(e, &r->zero);
    return loss;
}

void training_run_evaluate(struct training_run *r, struct plim_replay_step *s)
{
    struct engine *e = r->e;
    if (e->halted) return;
    training_run_enter(r, r->batch.inputs ? "evaluation" : "evaluation before the first step");
    plim_allocator_reset_peaks(e->allocator);
    trainer_loop_evaluate(e, &r->trainer, &r->model, evaluation_forward, r);
    const struct plim_allocator_stats *stats = plim_allocator_statistics(e->allocator);
    s->evaluation_allocated_bytes = stats->allocated_peak;
    s->evaluation_reserved_bytes = stats->reserved_peak;
    s->evaluation_requested_bytes = stats->requested_peak;
    /* gc_collect() in ms-swift's Seq2SeqTrainer.evaluate() */
    if (r->setting.loop == PLIM_LOOP_SWIFT_SFT && !e->halted) plim_allocator_empty_cache(e->allocator);
}
