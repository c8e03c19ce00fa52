#include "case_file.h"
#include "workloads/spec/lora_modules.h"
#include "workloads/spec/spec_internal.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct case_line *case_lines(const char *path, size_t *count)
{
    FILE *file = path ? fopen(path, "r") : NULL;
    const char *sample = getenv("PLIM_CASES_EVERY");
    size_t capacity = 512, read = 0, every = sample ? strtoul(sample, NULL, 10) : 1;
    struct case_line *lines = cr_malloc(capacity * sizeof *lines);
    *count = 0;
    while (file && fgets(lines[*count].line, CASE_LINE, file)) {
        if (read++ % every) continue;
        snprintf(lines[*count].folder, sizeof lines[*count].folder, "%s", path);
        *strrchr(lines[(*count)++].folder, '/') = '\0';
        if (*count < capacity) continue;
        struct case_line *more = cr_malloc(2 * capacity * sizeof *lines); /* cr_realloc() keeps nothing */
        memcpy(more, lines, capacity * sizeof *lines);
        cr_free(lines);
        lines = more;
        capacity *= 2;
    }
    if (file) fclose(file);
    return lines;
}

static int index_of(const char *const *names, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) return i;
    cr_assert_fail("unknown name in the case file: %s", name);
    return -1;
}

int64_t case_integer(const json_t *object, const char *key, int64_t absent)
{
    const json_t *value = json_object_get(object, key);
    return value ? json_integer_value(value) : absent;
}

const char *case_text(const json_t *object, const char *key, const char *absent)
{
    const json_t *value = json_object_get(object, key);
    return value ? json_string_value(value) : absent;
}

/* A list of names, or a text: all-linear, or a regular expression */
static void read_modules(const json_t *modules, char out[PLIM_MODULES_TEXT])
{
    for (size_t i = 0; i < json_array_size(modules); i++)
        cr_assert(plim_modules_add(out, json_string_value(json_array_get(modules, i))));
    const char *text = json_string_value(modules);
    if (text) snprintf(out, PLIM_MODULES_TEXT, "%s%s", strcmp(text, "all-linear") ? PLIM_MODULES_REGEX : "", text);
}

/* True if `word` is in the list of the key. */
static bool has_word(const json_t *object, const char *key, const char *word)
{
    const json_t *list = json_object_get(object, key);
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!strcmp(json_string_value(json_array_get(list, i)), word)) return true;
    return false;
}

void case_lora(const json_t *lora, struct plim_lora *out)
{
    if (!lora) return;
    const json_t *targets = json_object_get(lora, "target_modules");
    out->r = case_integer(lora, "r", 0);
    out->dropout = json_number_value(json_object_get(lora, "dropout"));
    out->dora = json_is_true(json_object_get(lora, "dora"));
    out->qkv_kernel = has_word(lora, "kernels", "qkv");
    out->o_kernel = has_word(lora, "kernels", "o");
    out->mlp_kernel = has_word(lora, "kernels", "mlp");
    const json_t *exclude = json_object_get(lora, "exclude_modules"),
                 *layers = json_object_get(lora, "layers_to_transform"), *ranks = json_object_get(lora, "rank_pattern");
    read_modules(targets, out->targets);
    read_modules(json_object_get(lora, "target_parameters"), out->parameters);
    if (json_is_array(targets) && !json_array_size(targets)) snprintf(out->targets, sizeof(out->targets), "none");
    read_modules(exclude, out->exclude);
    read_modules(json_object_get(lora, "modules_to_save"), out->saved);
    const char *task = case_text(lora, "task_type", ""); /* by which peft saves the modules that have these names */
    bool classifies = !strcmp(task, "SEQ_CLS") || !strcmp(task, "TOKEN_CLS");
    if (classifies) cr_assert(plim_modules_add(out->saved, "classifier") && plim_modules_add(out->saved, "score"));
    if (!strcmp(task, "QUESTION_ANS")) cr_assert(plim_modules_add(out->saved, "qa_outputs"));
    out->ties = json_is_true(json_object_get(lora, "ensure_weight_tying"));
    read_modules(json_object_get(lora, "layers_pattern"), out->layers_pattern);
    for (size_t i = 0; i < json_array_size(layers); i++)
        out->layers.values[out->layers.count++] = json_integer_value(json_array_get(layers, i));
    const char *name;
    json_t *rank;
    json_object_foreach((json_t *)ranks, name, rank) {
        struct plim_lora_rank *r = &out->ranks[out->rank_count++];
        snprintf(r->regex, sizeof(r->regex), "%s", name);
        r->r = json_integer_value(rank);
    }
}

static void read_quantization(const json_t *q, struct plim_quantization *out)
{
    if (!q) return;
    const json_t *prepare = json_object_get(q, "prepare");
    out->type = (enum plim_quantization_type)index_of(
        plim_quantization_names, PLIM_QUANTIZATION_COUNT, case_text(q, "type", ""));
    out->nested = json_is_true(json_object_get(q, "double"));
    out->compute = (enum plim_weights)index_of(plim_weights_names, PLIM_WEIGHTS_COUNT,
                                               case_text(q, "compute", "fp32"));
    out->storage = (enum plim_storage)index_of(plim_storage_names, PLIM_STORAGE_COUNT,
                                               case_text(q, "storage", "uint8"));
    out->loaded_on = strcmp(case_text(q, "loaded_on", "gpu"), "host") ? PLIM_MADE_ON_GPU : PLIM_MADE_ON_HOST;
    out->prepared = !prepare || json_is_true(prepare);
}

static void read_ddp(const json_t *ddp, struct plim_ddp *out)
{
    out->bucket_mib = case_integer(ddp, "bucket_cap_mb", 0);
    const json_t *unused = json_object_get(ddp, "find_unused_parameters");
    if (unused) out->finds_unused = json_is_true(unused) ? PLIM_FIND_UNUSED_YES : PLIM_FIND_UNUSED_NO;
    out->is_static = json_is_true(json_object_get(ddp, "static_graph"));
    out->as_view = json_is_true(json_object_get(ddp, "gradient_as_bucket_view"));
}

static void read_zero(const json_t *zero, struct plim_zero *out)
{
    const json_t *overlap = json_object_get(zero, "overlap_comm"),
                 *contiguous = json_object_get(zero, "contiguous_gradients");
    out->bucket_elements = case_integer(zero, "reduce_bucket_size", 500000000);
    if (overlap) out->overlap = json_is_true(overlap) ? PLIM_OVERLAP_YES : PLIM_OVERLAP_NO;
    out->contiguous = !contiguous || json_is_true(contiguous);
    out->optimizer = json_object_get(zero, "offload_optimizer") ? PLIM_OFFLOAD_CPU : PLIM_OFFLOAD_NONE;
    out->parameters = json_object_get(zero, "offload_param") ? PLIM_OFFLOAD_CPU : PLIM_OFFLOAD_NONE;
    out->sub_group_elements = case_integer(zero, "sub_group_size", 1000000000);
    out->prefetch_elements = case_integer(zero, "stage3_prefetch_bucket_size", 50000000);
    out->live_elements = case_integer(zero, "stage3_max_live_parameters", 1000000000);
    out->reuse_elements = case_integer(zero, "stage3_max_reuse_distance", 1000000000);
    out->persistent_elements = case_integer(zero, "stage3_param_persistence_threshold", 100000);
}

static enum plim_liger_kernel liger_kernel(const json_t *asked, const char *name)
{
    return json_is_false(json_object_get(asked, name)) ? PLIM_LIGER_KERNEL_LEFT : PLIM_LIGER_KERNEL_TAKEN;
}

/* Trainer's liger_kernel_config: arguments of apply_liger_kernel_to_*() */
static struct plim_liger_kernels liger_kernels(const json_t *asked)
{
    bool is_fused = !json_is_false(json_object_get(asked, "fused_linear_cross_entropy"));
    bool is_of_logits = json_is_true(json_object_get(asked, "cross_entropy"));
    const char *glu = json_object_get(asked, "geglu") ? "geglu" : "swiglu";
    struct plim_liger_kernels kernels = {.rope = liger_kernel(asked, "rope"),
                                         .rms_norm = liger_kernel(asked, "rms_norm"),
                                         .glu = liger_kernel(asked, glu)};
    if (!is_fused) kernels.loss = is_of_logits ? PLIM_LIGER_CHOICE_OF_LOGITS : PLIM_LIGER_CHOICE_NONE;
    return kernels;
}

/* GRPOConfig's fields; `c`: the case, with the fields of `updates` and of `generations` */
static struct plim_grpo grpo(const json_t *c, const json_t *asked)
{
    bool corrects = !json_is_false(json_object_get(asked, "vllm_importance_sampling_correction"));
    const char *how = case_text(asked, "vllm_importance_sampling_mode", "sequence_mask");
    return (struct plim_grpo){
        .generations = case_integer(c, "generations", 2),
        .updates = case_integer(c, "updates", 1),
        .iterations = case_integer(c, "iterations", 1),
        .vllm = (enum plim_vllm)index_of(plim_vllm_names, PLIM_VLLM_COUNT, case_text(c, "vllm", "server")),
        .temperature = json_is_number(json_object_get(asked, "temperature"))
                           ? json_number_value(json_object_get(asked, "temperature")) : 1,
        .vllm_sleeps = json_is_true(json_object_get(c, "vllm_sleeps")),
        .reference = json_number_value(json_object_get(asked, "beta")) != 0,
        .loss = (enum plim_grpo_loss)index_of(plim_grpo_loss_names, PLIM_GRPO_LOSS_COUNT,
                                              case_text(asked, "loss_type", "dapo")),
        .correction = (enum plim_grpo_correction)index_of(plim_grpo_correction_names, PLIM_GRPO_CORRECTION_COUNT,
                                                          corrects ? how : "none")};
}

/* Does fsdp_transformer_layer_cls_to_wrap name one class, the text's? */
static bool wraps_text(const json_t *c)
{
    const json_t *classes = json_object_get(json_object_get(c, "fsdp_config"), "transformer_layer_cls_to_wrap");
    return json_array_size(classes) == 1;
}

void case_setting(const json_t *c, struct plim_train_setting *s)
{
    const json_t *evaluation = json_object_get(c, "evaluation"), *arguments = json_object_get(c, "arguments");
    *s = (struct plim_train_setting){
        .micro_batch = case_integer(c, "batch", 0),
        .seq = case_integer(c, "seq", 0),
        .target_seq = case_integer(c, "target_seq", 0),
        .accumulation = case_integer(c, "accumulation", 1),
        .precision = (enum plim_precision)index_of(plim_precision_names, PLIM_PRECISION_COUNT,
                                                   case_text(c, "precision", "")),
        .weights = (enum plim_weights)index_of(plim_weights_names, PLIM_WEIGHTS_COUNT,
                                               case_text(c, "weights", "auto")),
        .optimizer = (enum plim_optimizer)index_of(plim_optimizer_names, PLIM_OPTIMIZER_COUNT,
                                                   case_text(c, "optimizer", "")),
        .checkpointing = (enum plim_checkpointing)index_of(
            plim_checkpointing_names, PLIM_CHECKPOINTING_COUNT, case_text(c, "checkpointing", "")),
        .use_reentrant = json_is_true(json_object_get(c, "use_reentrant")),
        .attention = (enum plim_attention)index_of(plim_attention_names, PLIM_ATTENTION_COUNT,
                                                   case_text(c, "attention", "sdpa")),
        .linear_attention = {.rule = (enum plim_delta_rule)index_of(plim_delta_rule_names, PLIM_DELTA_RULE_COUNT,
                                                                    case_text(c, "linear_attention", "torch")),
                             .causal_conv1d = json_is_true(json_object_get(c, "causal_conv1d"))},
        .sharding = (enum plim_sharding)index_of(plim_sharding_names, PLIM_SHARDING_COUNT,
                                                 case_text(c, "sharding", "none")),
        .world = case_integer(c, "world", 1),
        .reduction = (enum plim_reduction)index_of(plim_reduction_names, PLIM_REDUCTION_COUNT,
                                                   case_text(c, "reduction", "last")),
        .resharding = (enum plim_resharding)index_of(plim_resharding_names, PLIM_RESHARDING_COUNT,
                                                     case_text(c, "reshard", "yes")),
        .efficient_loading = json_is_true(
            json_object_get(json_object_get(c, "fsdp_config"), "cpu_ram_efficient_loading")),
        .reduce_type = (enum plim_reduce_type)index_of(
            plim_reduce_type_names, PLIM_REDUCE_TYPE_COUNT, case_text(c, "reduce", "auto")),
        .packing = json_is_true(json_object_get(c, "packed"))
                       ? PLIM_PACKING_YES
                       : (enum plim_packing)index_of(plim_packing_names, PLIM_PACKING_COUNT,
                                                     case_text(c, "packing", "no")),
        .documents = case_integer(c, "documents", 1),
        .loop = (enum plim_loop)index_of(plim_loop_names, PLIM_LOOP_COUNT, case_text(c, "loop", "plain")),
        .evaluation = {.batch = case_integer(evaluation, "batch", 0),
                       .batches = case_integer(evaluation, "batches", 2),
                       .every = case_integer(evaluation, "every", 1),
                       .accumulation = case_integer(evaluation, "accumulation", 0),
                       .at_start = json_is_true(json_object_get(arguments, "eval_on_start")),
                       .batch_metrics = json_is_true(json_object_get(arguments, "batch_eval_metrics")),
                       .keeps = (enum plim_predictions)index_of(plim_predictions_names, PLIM_PREDICTIONS_COUNT,
                                                         case_text(evaluation, "keeps", "loss"))},
        .prompt = case_integer(c, "prompt", 0),
        .freeze_vision = json_is_true(json_object_get(c, "freeze_vision")),
        .freeze_encoder = json_is_true(json_object_get(c, "freeze_encoder")),
        .images = {.count = case_integer(c, "images", 0),
                   .height = case_integer(c, "image_height", 0),
                   .width = case_integer(c, "image_width", 0)},
        .precomputed_reference = !strcmp(case_text(c, "reference", ""), "precomputed"),
        .preference_loss = (enum plim_preference_loss)index_of(
            plim_preference_loss_names, PLIM_PREFERENCE_COUNT, case_text(c, "preference_loss", "sigmoid")),
        .grpo = grpo(c, arguments),
        .empty_cache_steps = case_integer(arguments, "torch_empty_cache_steps", 0),
        .rpo_alpha = json_number_value(json_object_get(arguments, "rpo_alpha")),
        .center_rewards = json_number_value(json_object_get(arguments, "center_rewards_coefficient")),
        .label_smoothing = json_number_value(json_object_get(arguments, "label_smoothing_factor")),
        .made_on = (enum plim_made_on)index_of(plim_made_on_names, PLIM_MADE_ON_COUNT, case_text(c, "made_on", "gpu")),
        .fsdp_plan = (enum plim_fsdp_plan)index_of(plim_fsdp_plan_names, PLIM_FSDP_PLAN_COUNT,
                                                   case_text(c, "fsdp_plan", "accelerate")),
        .fsdp_wrap = wraps_text(c) ? PLIM_FSDP_WRAP_TEXT : PLIM_FSDP_WRAP_ALL,
        .upcast = (enum plim_upcast)index_of(plim_upcast_names, PLIM_UPCAST_COUNT, case_text(c, "upcast", "none")),
        .padding = json_is_true(json_object_get(c, "padded")) ? PLIM_PADDING_YES : PLIM_PADDING_NO,
        .torch = (enum plim_torch)index_of(plim_torch_names, PLIM_TORCH_COUNT, case_text(c, "torch", "2.11")),
        .transformers = (enum plim_transformers)index_of(plim_transformers_names, PLIM_TRANSFORMERS_COUNT,
                                                         case_text(c, "transformers", "5.17")),
        .clip = json_is_true(json_object_get(c, "clip")) ? 1.0 : json_number_value(json_object_get(c, "clip")),
        .liger = json_is_true(json_object_get(c, "liger")),
        .liger_kernels = liger_kernels(json_object_get(arguments, "liger_kernel_config")),
        .cut_cross_entropy = json_is_true(json_object_get(c, "cut_cross_entropy")),
    };
    s->rank = case_integer(c, "rank", 0);
    read_ddp(json_object_get(c, "ddp"), &s->ddp);
    read_zero(json_object_get(c, "zero"), &s->zero);
    case_lora(json_object_get(c, "lora"), &s->lora);
    read_quantization(json_object_get(c, "quantization"), &s->quantization);
}

void case_resolve_lora(struct plim_spec *spec, struct plim_train_setting *setting)
{
    struct plim_error err = PLIM_ERROR_INIT;
    bool is_spelled = !spec->model.experts && strcmp(setting->lora.targets, "all-linear") != 0;
    if (is_spelled || !setting->lora.r) return;
    spec->lora = setting->lora;
    cr_assert(plim_spec_resolve_lora(spec, &err) == PLIM_OK, "%s", err.text);
    setting->lora = spec->lora;
}
