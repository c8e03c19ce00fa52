/* Which modules axolotl's fused LoRA functions replace (axolotl 0.19.0: kernels/lora.py,
 * monkeypatch/lora_kernels.py). */
#include "family.h"
#include "spec_internal.h"

/* Families in whose attention forward() patch_self_attn_lora() finds the lines that it rewrites. qwen3_5's linear
 * attention has such functions, too, but only axolotl's own forward of packed rows calls them. */
static const bool attention_is_known[PLIM_FAMILY_COUNT] = {
    [PLIM_FAMILY_LLAMA] = true,     [PLIM_FAMILY_MISTRAL] = true,    [PLIM_FAMILY_QWEN2] = true,
    [PLIM_FAMILY_QWEN3] = true,     [PLIM_FAMILY_GEMMA] = true,      [PLIM_FAMILY_GEMMA2] = true,
    [PLIM_FAMILY_GEMMA3_TEXT] = true, [PLIM_FAMILY_STARCODER2] = true, [PLIM_FAMILY_SMOLLM3] = true,
    [PLIM_FAMILY_GRANITE] = true,   [PLIM_FAMILY_COHERE2] = true,    [PLIM_FAMILY_GLM] = true,
    [PLIM_FAMILY_GLM4] = true,      [PLIM_FAMILY_MIXTRAL] = true,    [PLIM_FAMILY_QWEN2_MOE] = true,
    [PLIM_FAMILY_QWEN3_MOE] = true, [PLIM_FAMILY_GPT_OSS] = true,    [PLIM_FAMILY_QWEN3_5_TEXT] = true,
    [PLIM_FAMILY_QWEN3_5_MOE_TEXT] = true, [PLIM_FAMILY_QWEN3_NEXT] = true, [PLIM_FAMILY_GEMMA3] = true,
    [PLIM_FAMILY_QWEN3_VL] = true,  [PLIM_FAMILY_QWEN3_5] = true,
};

/* Other families whose layers get_layers() finds, because they are called model.layers */
static const bool layers_are_known[PLIM_FAMILY_COUNT] = {
    [PLIM_FAMILY_OLMO] = true,   [PLIM_FAMILY_OLMO2] = true, [PLIM_FAMILY_OLMO3] = true,
    [PLIM_FAMILY_COHERE] = true, [PLIM_FAMILY_PHI] = true,   [PLIM_FAMILY_PHI3] = true,
    [PLIM_FAMILY_STABLELM] = true, [PLIM_FAMILY_OLMOE] = true,
};

/* Families that were not compared */
static const bool is_untried[PLIM_FAMILY_COUNT] = {
    [PLIM_FAMILY_MINISTRAL3] = true,
    [PLIM_FAMILY_MINISTRAL] = true,
    [PLIM_FAMILY_ARCEE] = true,
    [PLIM_FAMILY_APERTUS] = true,
    [PLIM_FAMILY_NEMOTRON] = true,
    [PLIM_FAMILY_EXAONE4] = true,
    [PLIM_FAMILY_SEED_OSS] = true,
    [PLIM_FAMILY_ERNIE4_5] = true,
    [PLIM_FAMILY_HUNYUAN_V1_DENSE] = true,
    [PLIM_FAMILY_LFM2] = true,
    [PLIM_FAMILY_LFM2_MOE] = true,
    [PLIM_FAMILY_GRANITEMOE] = true,
    [PLIM_FAMILY_GRANITEMOEHYBRID] = true,
    [PLIM_FAMILY_FALCON_H1] = true,
    [PLIM_FAMILY_NEMOTRON_H] = true,
    [PLIM_FAMILY_GLM4_MOE] = true,
    [PLIM_FAMILY_AFMOE] = true,
    [PLIM_FAMILY_MINIMAX_M2] = true,
    [PLIM_FAMILY_ERNIE4_5_MOE] = true,
    [PLIM_FAMILY_DEEPSEEK_V2] = true,
    [PLIM_FAMILY_DEEPSEEK_V3] = true,
    [PLIM_FAMILY_GLM4_MOE_LITE] = true,
};

static enum plim_status check_family(const struct plim_spec *spec, const char *key, struct plim_error *err)
{
    enum plim_family family = spec->model.family;
    bool of_attention = spec->lora.qkv_kernel || spec->lora.o_kernel, is_known = attention_is_known[family];
    if (is_known || (layers_are_known[family] && !of_attention)) return PLIM_OK;
    if (is_untried[family])
        return plim_fail(err, PLIM_SPEC,
                         "train.lora.%s is true, and what axolotl makes of %s is not supported, expected false "
                         "(plimsoll exec runs any training program)",
                         key, plim_family_names[family]);
    return plim_fail(err, PLIM_SPEC,
                     "train.lora.%s is true, which axolotl cannot put into %s (it stops there), expected false", key,
                     plim_family_names[family]);
}

/* torch.nn.LayerNorm returns fp32 under autocast. */
static bool norms_widen(enum plim_family family)
{
    return family == PLIM_FAMILY_STARCODER2 || family == PLIM_FAMILY_STABLELM || family == PLIM_FAMILY_PHI;
}

/* Autocast does not cast in-place operations: activations and the adapters' products must have its type. */
static bool mixes_types(const struct plim_spec *spec)
{
    for (size_t i = 0; i < spec->precision.count; i++) {
        enum plim_precision precision = (enum plim_precision)spec->precision.values[i];
        if (plim_precision_weights(precision) != PLIM_WEIGHTS_AUTO) continue;
        int half = precision == PLIM_PRECISION_BF16_MIXED ? PLIM_WEIGHTS_BF16 : PLIM_WEIGHTS_FP16;
        for (size_t j = 0; j < spec->weights.count; j++)
            if (spec->weights.values[j] != half) return true;
        bool is_wide = spec->upcast == PLIM_UPCAST_KEPT || (spec->quantization.type && spec->quantization.prepared);
        if (norms_widen(spec->model.family) || (is_wide && spec->upcast != PLIM_UPCAST_UNDONE)) return true;
    }
    return false;
}

enum plim_status plim_spec_check_lora_kernels(const struct plim_spec *spec, struct plim_error *err)
{
    const struct plim_lora *lora = &spec->lora;
    const char *key = lora->qkv_kernel ? "qkv_kernel" : lora->o_kernel ? "o_kernel" : "mlp_kernel", *beside = NULL;
    if (!lora->r || !(lora->qkv_kernel || lora->o_kernel || lora->mlp_kernel)) return PLIM_OK;
    enum plim_status st = check_family(spec, key, err);
    if (st) return st;
    if (mixes_types(spec))
        return plim_fail(err, PLIM_SPEC,
                         "train.lora.%s is true and autocast is to another type than that of activations, with which "
                         "axolotl's functions fail (addmm_), expected train.weights of that type, and "
                         "train.quantization.prepare false or train.upcast undone",
                         key);
    if (spec->quantization.type == PLIM_QUANTIZATION_INT8) beside = "train.quantization int8, which axolotl refuses";
    if (lora->dora) beside = "train.lora.dora, which is not supported";
    if (plim_loop_is_trl(spec->loop)) beside = "one of TRL's trainers, which axolotl's functions are not of";
    if (plim_enum_axis_has(&spec->sharding, PLIM_SHARDING_FSDP) && spec->fsdp_plan != PLIM_FSDP_PLAN_AXOLOTL)
        beside = "fsdp without train.fsdp_plan axolotl";
    if (plim_enum_axis_has(&spec->sharding, PLIM_SHARDING_ZERO3)) beside = "zero3, which is not supported";
    if (!beside) return PLIM_OK;
    return plim_fail(err, PLIM_SPEC, "train.lora.%s is true beside %s, expected false", key, beside);
}
