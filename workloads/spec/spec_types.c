/* Default types of weights and computation: those of transformers' Trainer without options. from_pretrained
 * (transformers 5.17) loads weights in the dtype of the config.json, and TrainingArguments enables no autocast. */
#include "family.h"
#include "key.h"
#include "spec_internal.h"
#include "spec_vision.h"

#include <string.h>

static const enum plim_weights stored[PLIM_PRECISION_COUNT] = {
    [PLIM_PRECISION_FP32] = PLIM_WEIGHTS_FP32, [PLIM_PRECISION_TF32] = PLIM_WEIGHTS_FP32,
    [PLIM_PRECISION_BF16] = PLIM_WEIGHTS_BF16, [PLIM_PRECISION_FP16] = PLIM_WEIGHTS_FP16,
};

static const enum plim_precision plain[PLIM_WEIGHTS_COUNT] = {
    [PLIM_WEIGHTS_FP32] = PLIM_PRECISION_FP32,
    [PLIM_WEIGHTS_BF16] = PLIM_PRECISION_BF16,
    [PLIM_WEIGHTS_FP16] = PLIM_PRECISION_FP16,
};

enum plim_weights plim_precision_weights(enum plim_precision precision)
{
    return stored[precision];
}

static void add(struct plim_enum_axis *axis, int value)
{
    if (!plim_enum_axis_has(axis, value)) axis->values[axis->count++] = value;
}

static bool any_mixed(const struct plim_enum_axis *precision)
{
    for (size_t i = 0; i < precision->count; i++)
        if (!stored[precision->values[i]]) return true;
    return false;
}

/* Without autocast the precision is the type of the weights. */
static struct plim_enum_axis default_weights(const struct plim_spec *spec, bool has_precision)
{
    struct plim_enum_axis weights = {0};
    if (!has_precision || any_mixed(&spec->precision))
        add(&weights, spec->model.dtype ? (int)spec->model.dtype : PLIM_WEIGHTS_FP32);
    else
        for (size_t i = 0; i < spec->precision.count; i++)
            add(&weights, (int)stored[spec->precision.values[i]]);
    return weights;
}

static bool is_only_auto(const struct plim_enum_axis *weights)
{
    return weights->count == 1 && weights->values[0] == PLIM_WEIGHTS_AUTO;
}

/* GradScaler has no kernel for bf16 gradients, and refuses fp16 gradients when it unscales them itself: for clipping,
 * and for optimizers that are not fused. LoRA's gradients are fp32; those of modules_to_save only if peft prepared the
 * base. */
static enum plim_status check_scaler(const struct plim_spec *spec, struct plim_error *err)
{
    bool in_bf16 = plim_enum_axis_has(&spec->weights, PLIM_WEIGHTS_BF16),
         in_fp16 = plim_enum_axis_has(&spec->weights, PLIM_WEIGHTS_FP16),
         scales = plim_enum_axis_has(&spec->precision, PLIM_PRECISION_FP16_MIXED);
    bool fused = spec->optimizer.count == 1 &&
                 plim_enum_axis_has(&spec->optimizer, PLIM_OPTIMIZER_ADAMW_FUSED);
    bool refused = in_bf16 || (in_fp16 && (!fused || spec->clip > 0));
    bool is_wide = spec->quantization.type && spec->quantization.prepared && spec->upcast != PLIM_UPCAST_UNDONE;
    bool has_copies = *spec->lora.saved && !is_wide;
    if (!refused || (spec->lora.r && !has_copies) || !scales) return PLIM_OK;
    return plim_fail(err, PLIM_SPEC,
                     "train.precision is fp16-mixed and the weights are in %s, whose gradients "
                     "PyTorch's GradScaler refuses, expected train.weights fp32",
                     in_bf16 ? "bf16" : "fp16");
}

static enum plim_status check_types(const struct plim_spec *spec, struct plim_error *err)
{
    for (size_t i = 0; i < spec->weights.count && !any_mixed(&spec->precision); i++) {
        enum plim_weights type = (enum plim_weights)spec->weights.values[i];
        bool found = false;
        for (size_t p = 0; p < spec->precision.count; p++)
            found |= stored[spec->precision.values[p]] == type;
        if (!found)
            return plim_fail(
                err, PLIM_SPEC,
                "train.weights is %s, but train.precision %s has weights in %s and no "
                "autocast, expected precision %s, or bf16-mixed for autocast over weights in "
                "%s",
                plim_weights_names[type], plim_precision_names[spec->precision.values[0]],
                plim_weights_names[stored[spec->precision.values[0]]],
                plim_precision_names[plain[type]], plim_weights_names[type]);
    }
    return check_scaler(spec, err);
}

enum plim_status plim_spec_resolve_types(struct plim_spec *spec, struct plim_error *err)
{
    bool has_precision = plim_spec_key_given(spec, "train.precision");
    if (is_only_auto(&spec->weights) || !plim_spec_key_given(spec, "train.weights")) {
        plim_spec_key_unset(spec, "train.weights");
        spec->weights = default_weights(spec, has_precision);
    } else {
        struct plim_enum_axis weights = {0};
        for (size_t i = 0; i < spec->weights.count; i++)
            add(&weights, spec->weights.values[i] ? spec->weights.values[i]
                          : spec->model.dtype     ? (int)spec->model.dtype
                                                  : PLIM_WEIGHTS_FP32);
        spec->weights = weights;
    }
    if (!has_precision) {
        spec->precision.count = 0;
        for (size_t i = 0; i < spec->weights.count; i++)
            add(&spec->precision, (int)plain[spec->weights.values[i]]);
    }
    return check_types(spec, err);
}

static void append(char *text, size_t size, const char *format, const char *name, const char *why)
{
    size_t used = strlen(text);
    if (used && used < size)
        used += (size_t)snprintf(text + used, size - used, ", ");
    if (used < size) snprintf(text + used, size - used, format, name, why);
}

struct plim_zero plim_spec_zero(const struct plim_spec *spec)
{
    struct plim_zero zero = spec->zero;
    int64_t hidden = spec->model.hidden_size;
    if (zero.bucket_elements == PLIM_ZERO_AUTO) zero.bucket_elements = hidden * hidden;
    if (zero.prefetch_elements == PLIM_ZERO_AUTO)
        zero.prefetch_elements = (int64_t)(0.9 * (double)hidden * (double)hidden);
    if (zero.persistent_elements == PLIM_ZERO_AUTO) zero.persistent_elements = 10 * hidden;
    return zero;
}

/* DeepSpeed's default of half a billion elements, which configs with "auto" do not have */
static void describe_zero(const struct plim_spec *spec, char *text, size_t size)
{
    if (!plim_enum_axis_has_zero(&spec->sharding)) return;
    if (spec->zero.bucket_elements != PLIM_ZERO_AUTO && !plim_spec_key_given(spec, "train.zero.reduce_bucket_size"))
        append(text, size, "DeepSpeed's own reduce_bucket_size, 500,000,000 (train.zero%s)%s", "", "");
    if (!plim_spec_key_given(spec, "train.zero.overlap_comm"))
        append(text, size, "DeepSpeed's own overlap_comm (no, of zero3 yes)%s%s", "", "");
}

static bool checkpoints(const struct plim_spec *spec)
{
    bool found = false;
    for (size_t i = 0; i < spec->checkpointing.count; i++)
        found |= spec->checkpointing.values[i] == PLIM_CHECKPOINTING_FULL;
    return found;
}

const char *plim_spec_reentrant(const struct plim_spec *spec)
{
    return !checkpoints(spec) ? "" : spec->use_reentrant ? "true" : "false";
}

/* How accelerate casts the weights */
static void describe_fsdp(const struct plim_spec *spec, char *text, size_t size)
{
    bool is_quantized = spec->quantization.type != PLIM_QUANTIZATION_NONE;
    if (!is_quantized && any_mixed(&spec->precision) && spec->fsdp_plan == PLIM_FSDP_PLAN_ACCELERATE)
        append(text, size, "weights fp32 under FSDP in mixed precision, as accelerate makes them%s%s", "", "");
    if (is_quantized && !plim_spec_key_given(spec, "train.quantization.storage"))
        append(text, size, "codes in uint8, which FSDP leaves whole on every GPU (train.quantization.storage)%s%s", "",
               "");
    if (is_quantized && !plim_spec_key_given(spec, "train.quantization.loaded_on"))
        append(text, size, "all of the base on every GPU before it is sharded (train.quantization.loaded_on)%s%s", "",
               "");
}

/* Which packages are assumed to be installed */
static void describe_images(const struct plim_spec *spec, char *text, size_t size)
{
    bool has_size = plim_spec_key_given(spec, "data.image_pixels") || plim_spec_key_given(spec, "data.image_height");
    if (!spec->model.vision.layers || (has_size && spec->images.count >= 0)) return;
    const struct plim_images images = plim_spec_images(spec);
    char pixels[64];
    snprintf(pixels, sizeof(pixels), "%lld x %lld", (long long)images.height, (long long)images.width);
    const char *rows = images.count ? "an image in each row" : "rows without images";
    if (spec->images.count < 0) append(text, size, "%s (%s)", rows, "data.images");
    bool has_tiles = spec->model.vision.has_tiles, is_one_size = spec->model.vision.image_size && !has_tiles;
    bool may_differ = images.count && !is_one_size;
    const char *key = has_tiles ? "data.image_height" : "data.image_pixels";
    if (may_differ && !has_size) append(text, size, "images of %s pixels (%s)", pixels, key);
}

static void describe_linear_attention(const struct plim_spec *spec, char *text, size_t size)
{
    bool has_mamba = plim_model_has_parallel_mamba(&spec->model);
    for (int64_t i = 0; i < spec->model.layers && spec->model.mamba_chunk; i++)
        has_mamba |= spec->model.layer_is_linear[i];
    if (has_mamba) append(text, size, "Mamba-2 layers without the packages mamba_ssm and causal-conv1d%s%s", "", "");
    if (!plim_family_info(spec->model.family)->linear) return;
    bool has_rule = plim_spec_key_given(spec, "train.linear_attention"),
         has_conv1d = plim_spec_key_given(spec, "train.causal_conv1d");
    if (!has_rule && !has_conv1d)
        append(text, size, "neither flash-linear-attention nor causal-conv1d (train.linear_attention)%s%s", "", "");
    else if (!has_rule)
        append(text, size, "no flash-linear-attention (train.linear_attention)%s%s", "", "");
    else if (!has_conv1d)
        append(text, size, "no causal-conv1d (train.causal_conv1d)%s%s", "", "");
}

void plim_spec_describe_defaults(const struct plim_spec *spec, char *text, size_t size)
{
    const char *type = plim_weights_names[spec->weights.values[0]];
    text[0] = '\0';
    bool has_precision = plim_spec_key_given(spec, "train.precision");
    if (!plim_spec_key_given(spec, "train.weights") &&
        (!has_precision || any_mixed(&spec->precision)))
        append(text, size, "weights %s (%s)", type,
               spec->model.dtype ? "the model's dtype" : "the model names no dtype");
    if (!has_precision && spec->precision.count == 1)
        append(text, size, "precision %s (%s)", plim_precision_names[spec->precision.values[0]],
               "no autocast");
    if (!plim_spec_key_given(spec, "train.optimizer"))
        append(text, size, "optimizer %s%s", plim_optimizer_names[spec->optimizer.values[0]], "");
    if (spec->upcast == PLIM_UPCAST_KEPT)
        append(text, size, "embeddings, norms and the head in fp32 (train.upcast)%s%s", "", "");
    if (!plim_spec_key_given(spec, "train.attention") && spec->model.attention != PLIM_ATTENTION_SDPA)
        append(text, size, "attention %s (%s)", plim_attention_names[spec->attention.values[0]],
               "the model's configuration");
    describe_linear_attention(spec, text, size);
    if (spec->quantization.type && spec->quantization.type != PLIM_QUANTIZATION_INT8 &&
        !spec->quantization.compute)
        append(text, size, "%s computes in fp32 (BitsAndBytesConfig)%s",
               plim_quantization_names[spec->quantization.type], "");
    if (plim_spec_key_given(spec, "train.checkpointing") && checkpoints(spec) &&
        !plim_spec_key_given(spec, "train.use_reentrant"))
        append(text, size, "checkpointing with use_reentrant=False (--use-reentrant)%s%s", "", "");
    describe_images(spec, text, size);
    if (!plim_spec_key_given(spec, "data.packing"))
        append(text, size, "rows of one document%s%s",
               plim_spec_key_given(spec, "data.padding") ? "" : ", all of full length", "");
    if (spec->packing == PLIM_PACKING_ONE_ROW && !plim_spec_key_given(spec, "data.documents"))
        append(text, size, "one document in a sample (data.documents)%s%s", "", "");
    if (!plim_spec_key_given(spec, "train.loop"))
        append(text, size, "a plain loop (--loop %s plays transformers' Trainer)%s",
               plim_loop_names[PLIM_LOOP_TRAINER], "");
    else if (plim_loop_is_trainers(spec->loop) && !spec->evaluation.batch)
        append(text, size, "no evaluations (--evaluation plays them)%s%s", "", "");
    bool may_have_prompts = plim_loop_has_fused_head(spec->loop) && spec->loop != PLIM_LOOP_TRL_GRPO;
    if (may_have_prompts && !plim_spec_key_given(spec, "data.prompt"))
        append(text, size, "every token has a label (data.prompt: those of a prompt have none)%s%s", "", "");
    if (plim_loop_rows(spec->loop) == 2)
        append(text, size, "a sample is a pair of rows%s%s", "", "");
    if (spec->loop == PLIM_LOOP_TRL_GRPO && spec->grpo.vllm == PLIM_VLLM_NONE)
        append(text, size, "a sample is an answer of the model itself, as long as it may be, whose time is in %s%s",
               spec->grpo.updates * spec->grpo.iterations > 1 ? "no speed" : "the speed",
               spec->grpo.updates * spec->grpo.iterations > 1 ? ", nor is that of scoring it" : "");
    else if (spec->loop == PLIM_LOOP_TRL_GRPO)
        append(text, size, "a sample is an answer, as long as it may be, from a vLLM %s, whose time is in no speed%s",
               spec->grpo.vllm == PLIM_VLLM_SERVER ? "server on other GPUs"
               : spec->grpo.vllm_sleeps            ? "in the same process, awake only while it generates"
                                                   : "in the same process",
               spec->grpo.updates * spec->grpo.iterations > 1 ? ", nor is that of scoring it" : "");
    bool has_torch = plim_spec_key_given(spec, "train.torch"),
         has_transformers = plim_spec_key_given(spec, "train.transformers");
    const char *torch = plim_torch_names[spec->torch],
               *transformers = plim_transformers_names[spec->transformers];
    if (!has_torch && !has_transformers) append(text, size, "PyTorch %s with transformers %s", torch, transformers);
    else if (!has_torch) append(text, size, "PyTorch %s%s", torch, "");
    else if (!has_transformers) append(text, size, "transformers %s%s", transformers, "");
    if (plim_loop_is_trainers(spec->loop) && spec->transformers != PLIM_TRANSFORMERS_5_17)
        append(text, size, "Trainer's loop as in transformers %s%s",
               plim_transformers_names[PLIM_TRANSFORMERS_5_17], "");
    if (plim_loop_is_trainers(spec->loop) && plim_enum_axis_has(&spec->sharding, PLIM_SHARDING_FSDP))
        describe_fsdp(spec, text, size);
    describe_zero(spec, text, size);
    if (spec->model.experts)
        append(text, size, "%s%s", "each expert sees as many rows as any other", "");
    if (spec->model.layerdrop > 0)
        append(text, size, "%s%s", "no block is skipped (layerdrop skips some by chance: memory then differs from step "
               "to step)", "");
}
