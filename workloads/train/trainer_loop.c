#include "trainer_loop.h"
#include "autotune/base/hash.h"
#include "measures.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_BATCHES = 1 << 16 }; /* a step has all of them at once */

const char *trainer_loop_refuses(const struct plim_train_setting *setting)
{
    if (!plim_loop_is_trainers(setting->loop)) return NULL;
    if (setting->accumulation > MOST_BATCHES)
        return "transformers' Trainer (train.loop) is simulated with at most 65,536 micro-steps, whose batches it "
               "keeps";
    if (setting->prompt >= setting->seq) return "a row (data.seq) is not longer than its prompt (data.prompt)";
    if (setting->micro_batch < plim_loop_first_batch(setting->loop))
        return "TRL's KTOTrainer (train.loop) refuses a micro-batch of one row, whose KL divergence would be its "
               "reward";
    if (setting->loop != PLIM_LOOP_TRL_GRPO) return NULL;
    if (setting->sharding == PLIM_SHARDING_FSDP || setting->sharding == PLIM_SHARDING_ZERO3)
        return "TRL's GRPOTrainer (train.loop) is not supported with fsdp and zero3, in which it gathers what it "
               "sends to vLLM's server";
    bool has_vllm = setting->grpo.vllm != PLIM_VLLM_NONE;
    if (has_vllm && (setting->quantization.type || setting->lora.dora))
        return "TRL's GRPOTrainer (train.loop) is not supported with a quantised base and train.lora.dora, of which "
               "it makes the weights anew to send them";
    return NULL;
}

void trainer_loop_barrier(struct engine *e, const struct plim_train_setting *setting, struct link *link)
{
    bool has_data = plim_loop_is_trl(setting->loop) && setting->loop != PLIM_LOOP_TRL_GRPO && !setting->images.count;
    if (!has_data || setting->sharding < PLIM_SHARDING_DDP) return;
    for (int i = 0; i < 2; i++) {
        link_barrier(e, link);
        tensor_drop(e, tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(1))));
    }
}

enum plim_status trainer_loop_create(struct engine *e, struct decoder *model, uint64_t seed,
                                     struct trainer_loop *loop)
{
    int64_t count = model->setting->accumulation;
    *loop = (struct trainer_loop){.model = model, .seed = seed, .count = count};
    loop->batches = calloc((size_t)count, sizeof(*loop->batches));
    if (!loop->batches) return PLIM_NOMEM;
    bool is_zero = plim_sharding_is_zero(model->setting->sharding); /* with DeepSpeed's engine rates stay on the host */
    if (plim_optimizer_is_torchao(model->setting->optimizer) && !is_zero) rates_create(e, &loop->rates);
    loop->sum = tensor_keep(op_full(e, PLIM_F32, 0, NULL, 0));
    return PLIM_OK;
}

void trainer_loop_finish(struct trainer_loop *loop)
{
    free(loop->batches);
    *loop = (struct trainer_loop){0};
}

/* --- batches ---------------------------------------------------------------------------------- */

/* True for TRL's and LLaMA-Factory's trainers, which override compute_loss(), and, except RewardTrainer,
 * prediction_step(). */
static bool has_own_loss(const struct trainer_loop *loop)
{
    return plim_loop_has_own_loss(loop->model->setting->loop);
}

/* True if the loss is a mean, which is divided by the number of accumulation steps. It is if labels are not counted:
 * for pairs of rows and for kto (loss_is_scaled_for_ga of DPOTrainer, KTOTrainer and RewardTrainer; LLaMA-Factory's
 * trainers have model_accepts_loss_kwargs False), and for a model that takes no number of labels. */
static bool has_mean_loss(const struct trainer_loop *loop)
{
    enum plim_loop kind = loop->model->setting->loop;
    bool is_unlabelled = kind == PLIM_LOOP_SWIFT_KTO || kind == PLIM_LOOP_SWIFT_RM; /* its batches have no `labels` */
    if (plim_loop_is_swift(kind)) return is_unlabelled; /* model_accepts_loss_kwargs is True */
    return plim_loop_rows(kind) > 1 || plim_loop_has_kl(kind) || !decoder_accepts_num_items(loop->model);
}

/* GRPOTrainer's batches are prompts, which stay on the host; it creates its own tensors from them (grpo.h). */
static bool is_grpo(const struct trainer_loop *loop)
{
    return loop->model->setting->loop == PLIM_LOOP_TRL_GRPO;
}

enum { BATCH_PARTS = 24 };

static void parts_of(const struct batch *batch, struct tensor *out[BATCH_PARTS])
{
    struct tensor *const parts[BATCH_PARTS] = {
        batch->inputs,  batch->labels,  batch->mask,     batch->positions,   batch->ends[0],
        batch->ends[1], batch->document, batch->completions, batch->known[0], batch->known[1],
        batch->kl[0],   batch->kl[1],   batch->kl[2],    batch->tags,       batch->token_types,
        batch->pixels,  batch->grids,   batch->decoder_inputs, batch->answer_ends,
        batch->rejected[0], batch->rejected[1], batch->rejected[2], batch->prompts[0], batch->prompts[1]};
    memcpy(out, parts, sizeof(parts));
}

static void drop_batch(struct engine *e, const struct batch *batch)
{
    struct tensor *parts[BATCH_PARTS];
    parts_of(batch, parts);
    tensor_drop_list(e, parts, BATCH_PARTS);
}

/* Returns the labels that the loss uses, named: ForCausalLMLoss shifts them. Trainer recognises that by the class names
 * (ForCausalLM, ForConditionalGeneration), which GPT2LMHeadModel lacks. */
static struct tensor *labels_to_count(struct engine *e, const struct decoder *m, struct tensor *labels)
{
    bool is_causal = m->config->task == PLIM_TASK_CAUSAL_LM && !m->config->encoder_layers;
    bool shifts = is_causal && m->config->family != PLIM_FAMILY_GPT2;
    if (!shifts || e->halted) return tensor_ref(labels);
    const int64_t shape[] = {labels->a.shape[0], labels->a.shape[1] - 1};
    return tensor_keep(tensor_alias(e, labels, 2, shape, labels->a.stride, 1));
}

/* sum(labels.ne(-100).sum() for each batch): a Python sum, which starts at 0. Named. */
static struct tensor *count_items(struct engine *e, const struct decoder *m, const struct batch *batches,
                                  int64_t count)
{
    struct tensor *total = NULL;
    for (int64_t i = 0; i < count; i++) {
        struct tensor *labels = labels_to_count(e, m, batches[i].labels);
        struct tensor *counts = tensor_keep(op_compare_scalar(e, PLIM_BINARY_NE, labels, -100));
        tensor_drop(e, labels);
        struct tensor *sum = measures_count(e, counts);
        tensor_drop(e, counts);
        struct tensor *more = tensor_keep(total ? op_add(e, total, sum) : op_add_scalar(e, sum, 0));
        tensor_drop_all(e, total, sum);
        total = more;
    }
    return total;
}

static int64_t world_of(const struct trainer_loop *loop)
{
    return plim_setting_ranks(loop->model->setting);
}

/* _get_num_items_in_batch(): the number of labels that count, over all ranks; named. */
static struct tensor *items_of(struct engine *e, const struct trainer_loop *loop, const struct batch *batches,
                               int64_t count)
{
    struct tensor *items = count_items(e, loop->model, batches, count);
    return world_of(loop) > 1 ? measures_sum_of_ranks(e, items, world_of(loop)) : items;
}

void trainer_loop_begin_step(struct engine *e, struct trainer_loop *loop)
{
    bool grad = e->grad_enabled;
    int64_t last = loop->count - 1;
    struct batch *batches = calloc((size_t)loop->count, sizeof(*batches));
    if (!batches) {
        engine_fail(e, PLIM_NOMEM);
        return;
    }
    e->grad_enabled = false;
    for (int64_t i = 0; i < loop->count && !is_grpo(loop); i++)
        batches[i] = decoder_trainers_batch(e, loop->model, loop->seed);
    bool is_uncounted = has_mean_loss(loop) || is_grpo(loop);
    struct tensor *items = is_uncounted ? NULL : items_of(e, loop, batches, loop->count);
    for (int64_t i = 0; i < last; i++) drop_batch(e, &loop->batches[i]);
    tensor_drop(e, loop->items);
    drop_batch(e, &loop->batches[last]); /* the loop's variable held it until now */
    free(loop->batches);
    loop->batches = batches;
    loop->items = items;
    loop->steps++;
    e->grad_enabled = grad;
}

/* --- a micro-step ----------------------------------------------------------------------------- */

void trainer_loop_after_forward(struct engine *e, struct trainer_loop *loop, struct tensor *logits, bool is_mixed)
{
    loop->logits = trainer_loop_widen(e, loop->model, logits, is_mixed);
}

void trainer_loop_drop_logits(struct engine *e, struct trainer_loop *loop)
{
    tensor_drop(e, loop->logits);
    loop->logits = NULL;
    if (loop->model) decoder_drop_output(e, loop->model);
}

struct tensor *trainer_loop_widen(struct engine *e, struct decoder *m, struct tensor *logits, bool is_mixed)
{
    if (!is_mixed || e->halted) return logits;
    struct tensor *wide = logits ? tensor_hold(op_to(e, logits, PLIM_F32)) : NULL; /* freed when all are cast */
    if (m->encoded) tensor_set(e, &m->encoded, op_to(e, m->encoded, PLIM_F32));
    tensor_drop(e, logits);
    return wide;
}

struct tensor *trainer_loop_scale(struct engine *e, struct trainer_loop *loop, struct tensor **loss)
{
    if (!loop->model) return tensor_ref(*loss);
    /* a sum is multiplied by the number of processes; a mean is divided by the number of accumulation steps */
    if (!has_own_loss(loop) && !has_mean_loss(loop)) tensor_set(e, loss, op_mul_scalar_(e, *loss, 1));
    if (has_mean_loss(loop)) {
        trainer_loop_drop_logits(e, loop); /* after compute_loss() */
        tensor_set(e, loss, op_div_scalar(e, *loss, (double)loop->count));
    }
    trainer_loop_drop_logits(e, loop);
    int64_t every = loop->model->setting->empty_cache_steps;
    if (every && (loop->steps - 1) % every == 0 && !e->halted) plim_allocator_empty_cache(e->allocator);
    if (plim_sharding_is_zero(loop->model->setting->sharding)) return tensor_ref(*loss);
    return tensor_keep(op_div_scalar(e, *loss, 1)); /* accelerate's own accumulation, which is 1 with Trainer */
}

/* torch.isnan(loss) or torch.isinf(loss) */
static void check_finite(struct engine *e, struct tensor *loss)
{
    tensor_drop(e, tensor_keep(op_compare(e, PLIM_BINARY_NE, loss, loss)));
    struct tensor *size = tensor_keep(op_unary(e, loss, PLIM_UNARY_ABS));
    struct tensor *is_infinite = tensor_keep(op_compare_scalar(e, PLIM_BINARY_EQ, size, 0));
    tensor_drop_all(e, size, is_infinite);
}

void trainer_loop_end_micro_step(struct engine *e, struct trainer_loop *loop, struct tensor *loss)
{
    bool grad = e->grad_enabled, keeps = loop->model && !e->halted;
    struct tensor *collected = keeps ? tensor_keep(tensor_detach(e, loss)) : NULL;
    tensor_drop(e, loss);
    if (!keeps) return;
    /* AxolotlDPOTrainer.training_step() */
    if (loop->model->setting->loop == PLIM_LOOP_AXOLOTL_DPO) plim_allocator_empty_cache(e->allocator);
    e->grad_enabled = false;
    tensor_drop(e, loop->loss);
    loop->loss = collected;
    check_finite(e, collected);
    e->grad_enabled = grad;
}

/* --- an update -------------------------------------------------------------------------------- */

void trainer_loop_begin_update(struct engine *e, struct trainer_loop *loop)
{
    tensor_drop(e, loop->norm);
    loop->norm = NULL;
}

void trainer_loop_set_norm(struct engine *e, struct trainer_loop *loop, struct tensor *norm)
{
    if (loop->model) loop->norm = norm;
    else tensor_drop(e, norm);
}

void trainer_loop_after_update(struct engine *e, struct trainer_loop *loop)
{
    rates_step(e, &loop->rates);
}

/* --- an evaluation ---------------------------------------------------------------------------- */

/* Tensors kept from an evaluation's batches (EvalLoopContainer); named or NULL. */
struct collected {
    struct tensor *losses, *logits[TRAINER_LOGITS], *labels;
};

/* nested_concat(): copies everything kept so far each time. */
static void append(struct engine *e, struct tensor **all, struct tensor *more)
{
    if (*all) tensor_set(e, all, op_cat(e, 2, (struct tensor *[]){*all, more}, 0));
    else *all = tensor_ref(more);
}

/* accelerator.gather() of each rank's tensor; the same tensor on one rank. */
static void gather(struct engine *e, const struct trainer_loop *loop, struct tensor **x)
{
    int64_t world = world_of(loop), shape[PLIM_MAX_DIMS];
    if (world < 2 || e->halted) return;
    memcpy(shape, (*x)->a.shape, sizeof(shape));
    shape[0] *= world;
    tensor_set(e, x, tensor_empty(e, (enum plim_dtype)(*x)->a.dtype, (*x)->a.ndim, shape));
}

/* pad_across_processes(): the shape of a tensor with more than one dimension is copied to the GPU and compared between
 * the ranks. */
static void compare_shapes(struct engine *e, const struct trainer_loop *loop, const struct tensor *x)
{
    if (e->halted || x->a.ndim < 2) return;
    struct tensor *shape = tensor_keep(tensor_empty(e, PLIM_I64, SHAPE(1, x->a.ndim)));
    gather(e, loop, &shape);
    tensor_drop(e, shape);
}

static void drop_collected(struct engine *e, struct collected *collected)
{
    tensor_drop_all(e, collected->losses, collected->labels);
    tensor_drop_list(e, collected->logits, TRAINER_LOGITS);
    *collected = (struct collected){0};
}

/* LLaMA-Factory's rm stage keeps the scores, and the labels if it sets their names (get_train_args() of
 * hparams/parser.py: with adapters). */
static struct collected predict_scores(struct engine *e, const struct trainer_loop *loop, const struct batch *batch,
                                       trainer_loop_forward *forward, void *user)
{
    struct collected collected = {.labels = loop->model->setting->lora.r ? tensor_ref(batch->labels) : NULL};
    struct tensor *loss = forward(user, batch, collected.logits);
    if (!loss) return collected; /* the engine halted */
    collected.losses = tensor_keep(op_full_like(e, loss, 0)); /* its mean */
    tensor_drop(e, loss);
    return collected;
}

/* Returns an output other than the logits that is not an ignored key: rope_deltas, or gemma3's image_hidden_states;
 * named or NULL. */
static struct tensor *take_output(struct decoder *m, const struct batch *batch)
{
    if (batch->grids) return m->vision.deltas ? tensor_ref(m->vision.deltas) : NULL;
    struct tensor *states = m->encoded;
    m->encoded = NULL;
    return states;
}

/* prediction_step(); its results are named. */
static struct collected predict(struct engine *e, const struct trainer_loop *loop, const struct batch *batch,
                                trainer_loop_forward *forward, void *user)
{
    struct tensor *logits[TRAINER_LOGITS] = {NULL};
    const struct plim_train_setting *setting = loop->model->setting;
    bool keeps = setting->evaluation.keeps != PLIM_PREDICTIONS_LOSS;
    if (setting->loop == PLIM_LOOP_LLAMAFACTORY_RM) return predict_scores(e, loop, batch, forward, user);
    if (plim_loop_has_fused_head(setting->loop) || plim_loop_computes_logits(setting->loop)) {
        struct tensor *own = forward(user, batch, logits);
        decoder_drop_output(e, loop->model);
        return (struct collected){own, {logits[0]}, keeps ? tensor_ref(batch->labels) : NULL};
    }
    bool is_uncounted = has_own_loss(loop) || !decoder_accepts_num_items(loop->model);
    struct tensor *items = is_uncounted ? NULL : items_of(e, loop, batch, 1);
    struct tensor *loss = forward(user, batch, logits);
    if (items) tensor_set(e, &loss, op_mul_scalar_(e, loss, 1));
    struct tensor *mean = tensor_keep(op_full_like(e, loss, 0));
    tensor_drop_all(e, items, loss);
    if (keeps) return (struct collected){mean, {logits[0], take_output(loop->model, batch)}, tensor_ref(batch->labels)};
    tensor_drop(e, logits[0]);
    decoder_drop_output(e, loop->model);
    return (struct collected){.losses = mean};
}

/* This rank's logits are kept until all are gathered. */
static void gather_logits(struct engine *e, const struct trainer_loop *loop, struct tensor *logits[TRAINER_LOGITS])
{
    struct tensor *own[TRAINER_LOGITS] = {NULL};
    for (int i = 0; i < TRAINER_LOGITS && logits[i]; i++) {
        own[i] = tensor_ref(logits[i]);
        gather(e, loop, &logits[i]);
    }
    tensor_drop_list(e, own, TRAINER_LOGITS);
}

/* The earlier logits are kept until all are concatenated. */
static void collect_logits(struct engine *e, struct tensor *all[TRAINER_LOGITS], struct tensor *more[TRAINER_LOGITS])
{
    struct tensor *before[TRAINER_LOGITS] = {NULL};
    for (int i = 0; i < TRAINER_LOGITS && more[i]; i++) {
        before[i] = all[i] ? tensor_ref(all[i]) : NULL;
        append(e, &all[i], more[i]);
    }
    tensor_drop_list(e, before, TRAINER_LOGITS);
}

/* losses.repeat(batch_size), concatenated with the earlier ones. */
static void collect(struct engine *e, const struct trainer_loop *loop, struct collected *all, struct collected *one)
{
    const int64_t rows = loop->model->setting->evaluation.batch;
    if (e->halted) return; /* then there may be no loss */
    struct tensor *repeated = tensor_keep(op_full(e, (enum plim_dtype)one->losses->a.dtype, 1, &rows, 0));
    gather(e, loop, &repeated);
    tensor_drop(e, one->losses);
    one->losses = repeated;
    append(e, &all->losses, one->losses);
    if (!one->logits[0]) return;
    bool measures = loop->model->setting->evaluation.batch_metrics;
    if (one->labels) compare_shapes(e, loop, one->labels);
    for (int i = 0; i < TRAINER_LOGITS && one->logits[i]; i++) compare_shapes(e, loop, one->logits[i]);
    if (loop->model->setting->evaluation.keeps == PLIM_PREDICTIONS_ARGMAX) {
        tensor_set(e, &one->logits[0], op_argmax_last(e, one->logits[0]));
        tensor_drop(e, one->logits[1]);
        one->logits[1] = NULL;
    }
    gather_logits(e, loop, one->logits);
    if (!measures) collect_logits(e, all->logits, one->logits);
    if (!one->labels) return;
    gather(e, loop, &one->labels);
    if (!measures) append(e, &all->labels, one->labels);
}

static void run_evaluation(struct engine *e, const struct trainer_loop *loop, trainer_loop_forward *forward, void *user)
{
    const struct plim_evaluation *asked = &loop->model->setting->evaluation;
    struct collected all = {0}, one = {0};
    struct batch batch = {0};
    for (int64_t i = 0; i < asked->batches && !e->halted; i++) {
        struct batch next = decoder_trainers_batch(e, loop->model, loop->seed);
        drop_batch(e, &batch);
        batch = next;
        struct collected more = predict(e, loop, &batch, forward, user);
        drop_collected(e, &one);
        one = more;
        collect(e, loop, &all, &one);
        bool gathers = asked->accumulation && (i + 1) % asked->accumulation == 0;
        if (!asked->batch_metrics && !gathers) continue;
        if (!asked->batch_metrics) drop_collected(e, &all); /* copied to the host */
        drop_collected(e, &one);
        plim_allocator_empty_cache(e->allocator);
    }
    drop_collected(e, &all);
    drop_collected(e, &one);
    drop_batch(e, &batch);
}

void trainer_loop_evaluate(struct engine *e, const struct trainer_loop *loop, struct decoder *model,
                           trainer_loop_forward *forward, void *user)
{
    const struct plim_train_setting *trains = model->setting;
    struct plim_train_setting evaluates = *trains;
    evaluates.micro_batch = trains->evaluation.batch;
    model->setting = &evaluates;
    e->grad_enabled = false;
    e->evaluates = true;
    run_evaluation(e, loop, forward, user);
    e->evaluates = false;
    e->grad_enabled = true;
    model->setting = trains;
}

/* --- fingerprint ------------------------------------------------------------------------------ */

uint64_t trainer_loop_add_position(uint64_t hash, const struct tensor *x)
{
    uint32_t place = x && x->storage && x->storage->block ? plim_block_position(x->storage->block) : 0;
    return plim_hash(hash, &place, sizeof(place));
}

uint64_t trainer_loop_fingerprint(const struct trainer_loop *loop, uint64_t fingerprint)
{
    if (!loop->model || !fingerprint) return fingerprint;
    const struct tensor *const collected[] = {loop->items, loop->loss, loop->norm, loop->rates.last[0],
                                         loop->rates.last[1]};
    for (size_t i = 0; i < sizeof(collected) / sizeof(collected[0]); i++)
        fingerprint = trainer_loop_add_position(fingerprint, collected[i]);
    int64_t every = loop->model->setting->empty_cache_steps;
    if (every > 1) {
        int64_t at = loop->steps % every; /* the next step depends on it */
        fingerprint = plim_hash(fingerprint, &at, sizeof(at));
    }
    /* The batches of a step are freed together, so it does not matter which of them is at which place. */
    uint64_t batches = 0;
    for (int64_t i = 0; i < loop->count; i++) {
        struct tensor *parts[BATCH_PARTS];
        parts_of(&loop->batches[i], parts);
        for (size_t k = 0; k < BATCH_PARTS; k++) batches += trainer_loop_add_position(PLIM_HASH_START, parts[k]);
    }
    return plim_hash(fingerprint, &batches, sizeof(batches)) | 1;
}
