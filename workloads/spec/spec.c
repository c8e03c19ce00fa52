#include "family.h"
#include "lora_modules.h"

#include <stdio.h>
#include <string.h>

#define NAME_OF(suffix, text) text,
const char *const plim_family_names[PLIM_FAMILY_COUNT] = {PLIM_FAMILY_MAP(NAME_OF)};
const char *const plim_task_names[PLIM_TASK_COUNT] = {PLIM_TASK_MAP(NAME_OF)};
const char *const plim_rope_names[PLIM_ROPE_COUNT] = {PLIM_ROPE_MAP(NAME_OF)};
#undef NAME_OF

bool plim_task_classifies(enum plim_task task)
{
    return task == PLIM_TASK_CLASSIFICATION || task == PLIM_TASK_TOKEN_CLASSIFICATION ||
           task == PLIM_TASK_QUESTION_ANSWERING;
}

const char *const plim_precision_names[PLIM_PRECISION_COUNT] = {
    "fp32", "tf32", "bf16-mixed", "fp16-mixed", "bf16", "fp16"};
const char *const plim_weights_names[PLIM_WEIGHTS_COUNT] = {"auto", "fp32", "bf16", "fp16"};
const char *const plim_dtype_names[PLIM_WEIGHTS_COUNT] = {"auto", "float32", "bfloat16",
                                                          "float16"};
const char *const plim_optimizer_names[PLIM_OPTIMIZER_COUNT] = {
    "adamw",      "adamw-fused",       "sgd",             "adafactor", "adamw-torch-8bit", "adamw-torch-4bit",
    "adamw-8bit", "paged-adamw-32bit", "paged-adamw-8bit"};
const char *const plim_checkpointing_names[PLIM_CHECKPOINTING_COUNT] = {"none", "full"};
const char *const plim_attention_names[PLIM_ATTENTION_COUNT] = {"sdpa", "eager",
                                                                 "flash_attention_2"};
const char *const plim_delta_rule_names[PLIM_DELTA_RULE_COUNT] = {"torch", "fla"};
const char *const plim_sharding_names[PLIM_SHARDING_COUNT] = {"auto",  "none",  "ddp",
                                                                "zero1", "zero2", "zero3", "fsdp"};
const char *const plim_resharding_names[PLIM_RESHARDING_COUNT] = {"yes", "no"};
const char *const plim_reduce_type_names[PLIM_REDUCE_TYPE_COUNT] = {"auto", "fp32", "low"};
const char *const plim_reduction_names[PLIM_REDUCTION_COUNT] = {"last", "each"};
const char *const plim_offload_names[PLIM_OFFLOAD_COUNT] = {"none", "cpu"};
const char *const plim_overlap_names[PLIM_OVERLAP_COUNT] = {"auto", "no", "yes"};
const char *const plim_quantization_names[PLIM_QUANTIZATION_COUNT] = {"none", "nf4", "fp4",
                                                                    "int8"};
const char *const plim_storage_names[PLIM_STORAGE_COUNT] = {"uint8", "bf16", "fp16", "fp32"};
const char *const plim_packing_names[PLIM_PACKING_COUNT] = {"no", "yes", "one-row"};
const char *const plim_predictions_names[PLIM_PREDICTIONS_COUNT] = {"loss", "logits", "argmax"};
const char *const plim_loop_names[PLIM_LOOP_COUNT] = {
    "plain", "trainer", "swift-sft", "trl-sft", "trl-dpo", "trl-kto", "trl-grpo", "trl-reward", "axolotl-dpo",
    "trl-orpo", "trl-cpo", "swift-dpo", "swift-kto", "swift-orpo", "swift-cpo", "swift-rm", "llamafactory-dpo",
    "llamafactory-rm", "llamafactory-kto"};
const char *const plim_preference_loss_names[PLIM_PREFERENCE_COUNT] = {"sigmoid", "ipo", "orpo", "simpo"};
const char *const plim_grpo_loss_names[PLIM_GRPO_LOSS_COUNT] = {"dapo", "grpo", "bnpo", "dr_grpo"};
const char *const plim_vllm_names[PLIM_VLLM_COUNT] = {"server", "colocate", "none"};
const char *const plim_grpo_correction_names[PLIM_GRPO_CORRECTION_COUNT] = {
    "none", "sequence_mask", "sequence_truncate", "token_mask", "token_truncate"};
const char *const plim_find_unused_names[PLIM_FIND_UNUSED_COUNT] = {"auto", "false", "true"};
const char *const plim_fsdp_plan_names[PLIM_FSDP_PLAN_COUNT] = {"accelerate", "axolotl"};
const char *const plim_fsdp_wrap_names[PLIM_FSDP_WRAP_COUNT] = {"all", "text"};
const char *const plim_upcast_names[PLIM_UPCAST_COUNT] = {"none", "kept", "undone"};
const char *const plim_auto_class_names[PLIM_AUTO_CLASS_COUNT] = {"published", "causal-lm"};
const char *const plim_made_on_names[PLIM_MADE_ON_COUNT] = {"gpu", "host", "loaded", "cast"};
const char *const plim_padding_names[PLIM_PADDING_COUNT] = {"no", "yes", "longest"};
const char *const plim_torch_names[PLIM_TORCH_COUNT] = {"2.11", "2.15"};
const char *const plim_transformers_names[PLIM_TRANSFORMERS_COUNT] = {"5.17", "5.24"};
const char *const plim_pooling_names[PLIM_POOLING_COUNT] = {"cls", "mean"};

/* Returns the used length of the text. */
static size_t describe_modules(const char *modules, char *text, size_t used, size_t size)
{
    char name[PLIM_MODULE_NAME];
    bool is_first = true;
    if (plim_modules_is_regex(modules) && used < size)
        used += (size_t)snprintf(text + used, size - used, " %s", modules);
    for (const char *at = modules; plim_modules_next(&at, name) && used < size; is_first = false)
        used += (size_t)snprintf(text + used, size - used, "%s %s", is_first ? "" : ",", name);
    return used;
}

/* Lists axolotl's functions that replace peft's modules. */
static size_t describe_kernels(const struct plim_lora *lora, char *text, size_t used, size_t size)
{
    const struct {
        bool is_taken;
        const char *name;
    } kernels[] = {{lora->qkv_kernel, "qkv"}, {lora->o_kernel, "o"}, {lora->mlp_kernel, "mlp"}};
    bool is_first = true;
    for (size_t i = 0; i < sizeof(kernels) / sizeof(*kernels) && used < size; i++) {
        if (!kernels[i].is_taken) continue;
        used += (size_t)snprintf(text + used, size - used, "%s%s", is_first ? "; axolotl's functions " : ", ",
                                 kernels[i].name);
        is_first = false;
    }
    return used;
}

void plim_spec_describe_lora(const struct plim_spec *spec, char *text, size_t size)
{
    const struct plim_lora *lora = &spec->lora;
    text[0] = '\0';
    if (!lora->r) return;
    size_t used = (size_t)snprintf(text, size, "r=%lld on", (long long)lora->r);
    used = describe_modules(lora->targets, text, used, size);
    if (*lora->parameters && used < size) {
        used += (size_t)snprintf(text + used, size - used, " and parameters");
        used = describe_modules(lora->parameters, text, used, size);
    }
    for (size_t i = 0; i < lora->rank_count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld on %s", i ? ", " : "; r=",
                                 (long long)lora->ranks[i].r, lora->ranks[i].regex);
    for (size_t i = 0; i < lora->layers.count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s %lld", i ? "," : "; of layers",
                                 (long long)lora->layers.values[i]);
    if (*lora->exclude && used < size) {
        used += (size_t)snprintf(text + used, size - used, "; not on");
        used = describe_modules(lora->exclude, text, used, size);
    }
    if (lora->dora && used < size) used += (size_t)snprintf(text + used, size - used, ", DoRA");
    used = describe_kernels(lora, text, used, size);
    if (!*lora->saved || used >= size) return;
    used += (size_t)snprintf(text + used, size - used, "; and%s copies of", lora->ties ? " tied" : "");
    describe_modules(lora->saved, text, used, size);
}

void plim_spec_describe_quantization(const struct plim_spec *spec, char *text, size_t size)
{
    const struct plim_quantization *q = &spec->quantization;
    text[0] = '\0';
    if (!q->type) return;
    bool keeps = q->prepared && spec->upcast != PLIM_UPCAST_UNDONE;
    const char *rest = keeps ? ", the rest in fp32" : "", *also = keeps ? " and the rest" : "";
    char experts[48] = "";
    if (spec->model.experts && q->prepared) snprintf(experts, sizeof(experts), ", experts%s in fp32", also);
    if (spec->model.experts) rest = q->prepared ? experts : ", experts as they are";
    if (q->type == PLIM_QUANTIZATION_INT8)
        snprintf(text, size, "int8 (activations without outliers%s)", rest);
    else
        snprintf(text, size, "%s (%scomputes in %s%s%s%s)", plim_quantization_names[q->type],
                 q->nested ? "double quantisation, " : "",
                 plim_weights_names[q->compute ? q->compute : PLIM_WEIGHTS_FP32],
                 q->storage ? ", stored as " : "", q->storage ? plim_storage_names[q->storage] : "", rest);
}

void plim_spec_set_dropout(struct plim_spec *spec, double p)
{
    const struct plim_family_info *info = plim_family_info(spec->model_as_given.family);
    for (size_t i = 0; i < info->key_count; i++) {
        enum plim_field field = info->keys[i].field;
        bool always =
            field == PLIM_FIELD_DROPOUT_EMBEDDING || field == PLIM_FIELD_DROPOUT_ATTENTION ||
            field == PLIM_FIELD_DROPOUT_RESIDUAL || field == PLIM_FIELD_DROPOUT_MLP ||
            field == PLIM_FIELD_DROPOUT_CLASSIFIER || field == PLIM_FIELD_DROPOUT_ANSWERS ||
            field == PLIM_FIELD_DROPOUT_POOLER;
        if (!always && !(field == PLIM_FIELD_LAYERDROP && p == 0)) continue;
        size_t offset = plim_field_info(field)->offset;
        memcpy((char *)spec + offsetof(struct plim_spec, model_as_given) + offset, &p, sizeof(p));
        memcpy((char *)spec + offsetof(struct plim_spec, model) + offset, &p, sizeof(p));
    }
}
