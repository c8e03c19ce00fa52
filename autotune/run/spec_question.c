#include "spec_question.h"
#include "allowance.h"
#include "workloads/spec/family.h"
#include "workloads/spec/key.h"
#include "workloads/spec/lora_modules.h"
#include "workloads/spec/spec_seq2seq.h"
#include "workloads/spec/spec_vision.h"
#include <stdio.h>
#include <string.h>

/* --- the axes of a spec ----------------------------------------------------------------------- */

enum form {
    NUMBERS, /* struct plim_int_axis in the spec, int64_t in the engine's argument */
    NAMES,   /* struct plim_enum_axis in the spec, an enum in the engine's argument */
    NUMBER,  /* int64_t in both */
    NAME     /* an enum in both */
};

/* An axis. The first row varies slowest: among equally good settings, earlier values of the first axis are
 * preferred. */
struct row {
    const char *name, *unit;
    enum form form;
    size_t from, to; /* offsets in struct plim_spec and struct plim_train_setting */
    const char *const *names;
    size_t name_count;
    bool is_hidden;
    bool is_quiet; /* not reported if its only value is the first name */
};

#define FROM(member) .from = offsetof(struct plim_spec, member)
#define TO(member) .to = offsetof(struct plim_train_setting, member)
#define NAMED(table, count) .names = table, .name_count = count

enum { SEQ, PRECISION, WEIGHTS, OPTIMIZER, CHECKPOINTING, ATTENTION, LIGER, SHARDING, LORA, QUANTIZATION,
       WORLD, ROWS };

static const struct row rows[ROWS] = {
    [SEQ] = {.name = "seq", .unit = "tokens", .form = NUMBERS, FROM(seq), TO(seq)},
    [PRECISION] = {.name = "precision",
                   .form = NAMES,
                   FROM(precision),
                   TO(precision),
                   NAMED(plim_precision_names, PLIM_PRECISION_COUNT)},
    [WEIGHTS] = {.name = "weights",
                 .form = NAMES,
                 FROM(weights),
                 TO(weights),
                 NAMED(plim_weights_names, PLIM_WEIGHTS_COUNT)},
    [OPTIMIZER] = {.name = "optimizer",
                   .form = NAMES,
                   FROM(optimizer),
                   TO(optimizer),
                   NAMED(plim_optimizer_names, PLIM_OPTIMIZER_COUNT)},
    [CHECKPOINTING] = {.name = "checkpointing",
                       .form = NAMES,
                       FROM(checkpointing),
                       TO(checkpointing),
                       NAMED(plim_checkpointing_names, PLIM_CHECKPOINTING_COUNT)},
    [ATTENTION] = {.name = "attention",
                   .form = NAMES,
                   FROM(attention),
                   TO(attention),
                   NAMED(plim_attention_names, PLIM_ATTENTION_COUNT)},
    [LIGER] = {.name = "liger",
               .form = NAMES,
               FROM(liger),
               TO(liger),
               NAMED(plim_liger_names, PLIM_LIGER_COUNT),
               .is_quiet = true},
    [SHARDING] = {.name = "sharding",
                  .form = NAMES,
                  FROM(sharding),
                  TO(sharding),
                  NAMED(plim_sharding_names, PLIM_SHARDING_COUNT)},
    [LORA] = {.name = "lora",
              .unit = "rank",
              .form = NUMBER,
              FROM(lora.r),
              TO(lora.r),
              .is_hidden = true},
    [QUANTIZATION] = {.name = "quantization",
                      .form = NAME,
                      FROM(quantization.type),
                      TO(quantization.type),
                      NAMED(plim_quantization_names, PLIM_QUANTIZATION_COUNT),
                      .is_hidden = true},
    [WORLD] = {.name = "world",
               .unit = "GPUs",
               .form = NUMBER,
               FROM(world),
               TO(world),
               .is_hidden = true},
};

static bool is_named(const struct row *row)
{
    return row->form == NAMES || row->form == NAME;
}

/* Reads the values of a spec along an axis into zeroed `values`; an axis without values has the first name. Returns
 * their number. */
static size_t read_values(const struct row *row, const struct plim_spec *spec, int64_t *values)
{
    const void *place = (const char *)spec + row->from;
    const struct plim_int_axis *numbers = place;
    const struct plim_enum_axis *names = place;
    size_t count = 1;
    switch (row->form) {
    case NUMBERS:
        count = numbers->count;
        memcpy(values, numbers->values, count * sizeof(*values));
        break;
    case NAMES:
        count = names->count ? names->count : 1;
        for (size_t i = 0; i < names->count; i++) values[i] = names->values[i];
        break;
    case NUMBER:
        values[0] = *(const int64_t *)place;
        break;
    case NAME:
        values[0] = *(const int *)place;
        break;
    }
    for (size_t i = 0; i < count && row == &rows[SHARDING]; i++)
        values[i] = plim_spec_sharding(spec, (int)values[i]);
    return count;
}

static void add_axis(struct plim_spec_question *q, const struct row *row)
{
    struct plim_axes *axes = &q->question.axes;
    struct plim_axis *axis = &axes->axis[axes->count];
    snprintf(axis->name, sizeof(axis->name), "%s", row->name);
    axis->unit = row->unit ? row->unit : "";
    axis->names = row->names;
    axis->values = q->values[axes->count];
    axis->count = read_values(row, q->spec, q->values[axes->count]);
    axis->is_hidden =
        row->is_hidden || (row->is_quiet && axis->count == 1 && axis->values[0] == 0);
    axes->count++;
}

/* Sets the type of the weights if the precision determines it, as those without autocast do. */
static void own_weights(struct plim_setting *setting)
{
    enum plim_weights own = plim_precision_weights((enum plim_precision)setting->value[PRECISION]);
    if (own) setting->value[WEIGHTS] = own;
}

static void set_default_seq(struct plim_spec_question *q)
{
    struct plim_axis *seq = &q->question.axes.axis[SEQ];
    int64_t positions = plim_model_longest(&q->spec->model);
    q->question.seq_most = positions > 0 ? positions : PLIM_SEQ_MAX;
    q->question.seq_by_default = !plim_spec_key_given(q->spec, "data.seq");
    if (seq->count) return;
    q->values[SEQ][0] =
        positions > 0 && positions < PLIM_DEFAULT_SEQ_MAX ? positions : PLIM_DEFAULT_SEQ_MAX;
    seq->count = 1;
}

void plim_spec_question_batch(const struct plim_spec *spec, struct plim_batch_request *batch)
{
    *batch =
        (struct plim_batch_request){.listed = spec->micro_batch.values,
                                    .listed_count = spec->micro_batch.count,
                                    .first = plim_loop_first_batch(spec->loop),
                                    .world = spec->world,
                                    .effective_batch = spec->effective_batch,
                                    .effective_batch_tolerance = spec->effective_batch_tolerance,
                                    .accumulation = spec->accumulation,
                                    .phase_count = spec->schedule_count};
    for (size_t i = 0; i < spec->schedule_count; i++)
        batch->phases[i] =
            (struct plim_phase_request){spec->schedule[i].epoch, spec->schedule[i].accumulation};
}

/* --- changes that may be advised -------------------------------------------------------------- */

#define BIT(value) (UINT64_C(1) << (value))

static void add_change(struct plim_question *q, size_t axis, uint64_t from, int64_t to,
                       bool combines)
{
    struct plim_change *change = &q->changes[q->change_count++];
    *change = (struct plim_change){.axis = axis, .from = from, .to = to, .combines = combines};
    snprintf(change->text, sizeof(change->text), "%s %s", rows[axis].name, rows[axis].names[to]);
}

/* Adds LoRA on the modules of default_targets(). */
static void add_lora(struct plim_question *q, const struct plim_spec *spec)
{
    const char *const *targets = plim_family_info(spec->model.family)->lora_default;
    if (!targets[0]) return;
    struct plim_change *change = &q->changes[q->change_count++];
    *change = (struct plim_change){.axis = LORA, .from = BIT(0), .to = 16, .combines = true};
    size_t size = sizeof(change->text);
    size_t used = (size_t)snprintf(change->text, size, "LoRA r=16 on");
    for (; *targets && used < size; targets++)
        used += (size_t)snprintf(change->text + used, size - used, " %s", *targets);
}

/* The least intrusive changes come first. */
static void add_changes(struct plim_spec_question *out)
{
    struct plim_question *q = &out->question;
    const uint64_t fp32 = BIT(PLIM_PRECISION_FP32) | BIT(PLIM_PRECISION_TF32);
    const uint64_t mixed = BIT(PLIM_PRECISION_BF16_MIXED) | BIT(PLIM_PRECISION_FP16_MIXED);
    const uint64_t adamw = BIT(PLIM_OPTIMIZER_ADAMW) | BIT(PLIM_OPTIMIZER_ADAMW_FUSED);
    q->can_advise = true;
    add_change(q, ATTENTION, BIT(PLIM_ATTENTION_EAGER), PLIM_ATTENTION_SDPA, true);
    add_change(q, OPTIMIZER, BIT(PLIM_OPTIMIZER_ADAMW), PLIM_OPTIMIZER_ADAMW_FUSED, false);
    add_change(q, CHECKPOINTING, ~BIT(PLIM_CHECKPOINTING_FULL), PLIM_CHECKPOINTING_FULL, true);
    add_change(q, PRECISION, fp32, PLIM_PRECISION_BF16_MIXED, true);
    add_change(q, OPTIMIZER, adamw, PLIM_OPTIMIZER_ADAMW_8BIT, true);
    add_change(q, PRECISION, fp32 | mixed, PLIM_PRECISION_BF16, true);
    add_lora(q, out->spec);
    /* FSDP2 shards experts over at most as many GPUs as there are experts. */
    bool has_experts = out->spec->model.experts > 0;
    q->spread = (struct plim_spread){
        .sharding = SHARDING,
        .world = WORLD,
        .count = 3,
        .shardings = {has_experts ? PLIM_SHARDING_ZERO3 : PLIM_SHARDING_FSDP,
                      has_experts ? PLIM_SHARDING_FSDP : PLIM_SHARDING_ZERO3, PLIM_SHARDING_ZERO2},
        .reserve_bytes = out->spec->world > 1 ? 0 : PLIM_COMMUNICATOR_BYTES};
    if (out->spec->lora.r)
        add_change(q, QUANTIZATION, BIT(PLIM_QUANTIZATION_NONE), PLIM_QUANTIZATION_NF4, true);
}

void plim_spec_question_make(const struct plim_spec *spec, enum plim_objective objective,
                             struct plim_spec_question *out)
{
    *out = (struct plim_spec_question){.spec = spec, .question = {.objective = objective}};
    for (size_t i = 0; i < ROWS; i++) add_axis(out, &rows[i]);
    out->question.axes.seq = SEQ;
    out->question.axes.rows = plim_loop_rows(spec->loop);
    out->question.axes.more_tokens = plim_spec_target(spec);
    out->question.axes.normalize = own_weights;
    set_default_seq(out);
    plim_spec_question_batch(spec, &out->question.batch);
    add_changes(out);
    plim_spec_describe_lora(spec, out->lora, sizeof(out->lora));
    plim_spec_describe_quantization(spec, out->quantization, sizeof(out->quantization));
    plim_spec_describe_defaults(spec, out->defaults, sizeof(out->defaults));
}

/* --- the engine's argument -------------------------------------------------------------------- */

static enum plim_status write_value(const struct row *row, int64_t value,
                                    struct plim_train_setting *out, struct plim_error *err)
{
    void *place = (char *)out + row->to;
    int64_t least = row->form == NUMBERS, most = INT64_MAX;
    if (is_named(row)) most = (int64_t)row->name_count - 1;
    if (value < least || value > most)
        return plim_fail(err, PLIM_INVALID, "%s has no value %lld", row->name, (long long)value);
    if (is_named(row))
        *(int *)place = (int)value;
    else
        *(int64_t *)place = value;
    return PLIM_OK;
}

/* Adds the modules that peft adapts by default. */
static void default_targets(enum plim_family family, struct plim_lora *lora)
{
    const char *const *names = plim_family_info(family)->lora_default;
    for (; *names; names++)
        if (!plim_modules_add(lora->targets, *names)) return;
}

enum plim_status plim_spec_question_setting(const struct plim_spec_question *question,
                                            const struct plim_setting *setting,
                                            struct plim_train_setting *out, struct plim_error *err)
{
    const struct plim_spec *spec = question->spec;
    enum plim_status st = PLIM_OK;
    *out = (struct plim_train_setting){.micro_batch = setting->micro_batch,
                                       .accumulation = setting->accumulation,
                                       .reduction = spec->reduction,
                                       .resharding = spec->resharding,
                                       .efficient_loading = spec->efficient_loading,
                                       .reduce_type = spec->reduce_type,
                                       .ddp = spec->ddp,
                                       .zero = plim_spec_zero(spec),
                                       .rank = spec->rank,
                                       .packing = spec->packing,
                                       .documents = spec->documents,
                                       .made_on = spec->made_on,
                                       .upcast = spec->upcast,
                                       .fsdp_plan = spec->fsdp_plan,
                                       .fsdp_wrap = spec->fsdp_wrap,
                                       .loop = spec->loop,
                                       .evaluation = spec->evaluation,
                                       .label_smoothing = spec->label_smoothing,
                                       .empty_cache_steps = spec->empty_cache_steps,
                                       .prompt = spec->prompt,
                                       .images = plim_spec_images(spec),
                                       .target_seq = plim_spec_target(spec),
                                       .precomputed_reference = spec->precomputed_reference,
                                       .preference_loss = spec->preference_loss,
                                       .center_rewards = spec->center_rewards,
                                       .rpo_alpha = spec->rpo_alpha,
                                       .grpo = spec->grpo,
                                       .padding = spec->padding,
                                       .torch = spec->torch,
                                       .transformers = spec->transformers,
                                       .use_reentrant = spec->use_reentrant,
                                       .linear_attention = spec->linear_attention,
                                       .liger_kernels = spec->liger_kernels,
                                       .cut_cross_entropy = spec->cut_cross_entropy,
                                       .freeze_vision = spec->freeze_vision,
                                       .freeze_encoder = spec->freeze_encoder,
                                       .clip = spec->clip,
                                       .lora = spec->lora,
                                       .quantization = spec->quantization};
    if (setting->micro_batch < 1 || setting->accumulation < 1)
        return plim_fail(err, PLIM_INVALID, "a micro-batch or an accumulation below 1");
    for (size_t i = 0; i < ROWS && !st; i++)
        st = write_value(&rows[i], setting->value[i], out, err);
    if (!st && out->lora.r && !spec->lora.r) default_targets(spec->model.family, &out->lora);
    return st;
}

int64_t plim_run_communicators(const struct plim_spec *spec)
{
    bool has_server = spec->loop == PLIM_LOOP_TRL_GRPO && spec->grpo.vllm == PLIM_VLLM_SERVER;
    return plim_run_communicates(spec) + has_server;
}

/* Returns the memory of a vLLM that sleeps outside of generation (`sleeps`), or of one that does not, in bytes; 0 if
 * the job has no such vLLM. */
static int64_t vllm_bytes(const struct plim_grpo *grpo, enum plim_loop loop, bool sleeps, int64_t total_bytes)
{
    bool has_share = loop == PLIM_LOOP_TRL_GRPO && grpo->vllm == PLIM_VLLM_COLOCATE && grpo->vllm_sleeps == sleeps;
    return has_share ? (int64_t)(grpo->vllm_memory * (double)total_bytes) / PLIM_PAGE_BYTES * PLIM_PAGE_BYTES : 0;
}

void plim_run_limit_vllm(const struct plim_spec *spec, int64_t total_bytes, struct plim_limit *limit)
{
    int64_t bytes = vllm_bytes(&spec->grpo, spec->loop, false, total_bytes);
    limit->vllm_bytes = bytes;
    limit->overhead_bytes += bytes;
    limit->budget_bytes -= bytes;
    limit->vllm_awake_bytes = vllm_bytes(&spec->grpo, spec->loop, true, total_bytes);
}

void plim_run_setting_vllm(struct plim_train_setting *setting, int64_t total_bytes)
{
    setting->vllm_awake_bytes = vllm_bytes(&setting->grpo, setting->loop, true, total_bytes);
}

bool plim_run_communicates(const struct plim_spec *spec)
{
    const struct plim_enum_axis *sharding = &spec->sharding;
    if (spec->world < 2) return false;
    for (size_t i = 0; i < sharding->count; i++)
        if (plim_spec_sharding(spec, sharding->values[i]) != PLIM_SHARDING_NONE) return true;
    return false;
}

bool plim_run_is_sharded(const struct plim_spec *spec)
{
    const struct plim_enum_axis *sharding = &spec->sharding;
    for (size_t i = 0; i < sharding->count; i++)
        if (plim_spec_sharding(spec, sharding->values[i]) < PLIM_SHARDING_ZERO1) return false;
    return sharding->count > 0;
}

struct plim_links plim_run_links(const struct plim_spec *spec, const struct plim_gpu *gpu,
                                 const struct plim_all_reduce *measured)
{
    struct plim_links links = {.gpu_bandwidth = gpu ? plim_gpu_link_bandwidth(gpu) : 0,
                               .node_bandwidth = spec->node_bandwidth * 1e9,
                               .gpus_per_node = spec->gpus_per_node};
    if (!measured || !measured->gpus) return links;
    links.gpu_bandwidth = measured->bytes_per_second;
    links.gpu_latency = measured->latency_seconds;
    links.measured_gpus = measured->gpus;
    return links;
}
