/* Refuses settings of a family that were not compared with PyTorch, though they are supported for others. */
#include "family.h"
#include "lora_modules.h"
#include "spec_internal.h"
#include "spec_vision.h"

/* Settings that a row of the table below may list */
#define BIT(n) (UINT64_C(1) << (n))
#define SWIFT BIT(0)
#define SFT BIT(1)
#define SFT_DDP BIT(2)
#define DPO_GRPO BIT(3)
#define OTHER_LOOPS BIT(4) /* other than those four */
#define PLAIN_SHARDED BIT(5)
#define ZERO1_2 BIT(6)
#define ZERO3 BIT(7)
#define FSDP BIT(8)
#define FSDP_OF_AXOLOTL BIT(9)
#define NF4 BIT(10)
#define FP4 BIT(11)
#define INT8 BIT(12)
#define LIGER BIT(13)
#define FLASH2 BIT(14)
#define CUT BIT(15)
#define PACKING BIT(16)
#define SMOOTHED BIT(17)
#define SAVED BIT(18)
#define PARAMETERS BIT(19)
#define UPCAST BIT(20)
#define EVALUATED BIT(21)
#define KEPT BIT(22)
#define REENTRANT BIT(23)
#define REENTRANT_BY_LAYERS BIT(24)
#define LOADED BIT(25)
#define FP16 BIT(26)
#define FP16_BY_VALUES BIT(27)
#define LONGER_ROPE BIT(28)
#define NEWER BIT(29) /* PyTorch 2.15, transformers 5.24 */
#define IMAGES BIT(30)
#define NUMBER BIT(31)
#define ZERO1_2_OF_PARTS BIT(32) /* of experts, or with an audio tower */
#define ROUTERS BIT(33) /* adapters of routers */

#define LATER_LOOPS (DPO_GRPO | OTHER_LOOPS)
#define SHARDED (ZERO1_2 | ZERO3 | FSDP)
/* Of all models with a vision tower; and of those compared only by a plain loop, Trainer and DDP */
#define OF_TOWERS (LONGER_ROPE | OTHER_LOOPS | CUT | NEWER | FSDP_OF_AXOLOTL | PLAIN_SHARDED)
#define TOWER (OF_TOWERS | PACKING | DPO_GRPO)
#define FEW (TOWER | FLASH2 | INT8 | SMOOTHED | SAVED | SHARDED | SFT | FP4 | LIGER | EVALUATED | UPCAST)
/* Of the families of tests/golden/recent.jsonl */
#define RECENT (SWIFT | OTHER_LOOPS | PLAIN_SHARDED | FSDP_OF_AXOLOTL | FP4 | INT8 | LIGER | UPCAST | SAVED | \
                CUT | NEWER)
#define OF_WHOLE_IMAGES (DPO_GRPO | UPCAST)
#define SEQ2SEQ (FLASH2 | PACKING | SWIFT | SFT | LATER_LOOPS | INT8 | LIGER | NEWER | KEPT | REENTRANT | LOADED | \
                 UPCAST | SAVED | SHARDED)
#define T5S (SEQ2SEQ | FP16 | NF4 | FP4)
#define ENCODER (PACKING | SWIFT | SFT | LATER_LOOPS | NF4 | FP4 | INT8 | LIGER | FLASH2 | NEWER | REENTRANT | \
                 LOADED | UPCAST | SHARDED)
#define GEMMA4 (SWIFT | OTHER_LOOPS | FSDP | FP4 | INT8 | LIGER | FLASH2 | REENTRANT_BY_LAYERS | CUT | UPCAST | \
                PARAMETERS | NEWER)

/* with_images: in addition, if rows have images */
static const struct { uint64_t always, with_images; } uncompared[PLIM_FAMILY_COUNT] = {
    [PLIM_FAMILY_QWEN2_VL] = {TOWER | FLASH2 | INT8, 0},
    [PLIM_FAMILY_QWEN2_5_VL] = {TOWER, 0},
    [PLIM_FAMILY_QWEN3_VL] = {TOWER, 0},
    [PLIM_FAMILY_GEMMA3] = {OF_TOWERS | ZERO3, PACKING | DPO_GRPO},
    [PLIM_FAMILY_QWEN3_5] = {OF_TOWERS, PACKING | DPO_GRPO | FLASH2 | SMOOTHED | SAVED | ZERO3 | FSDP},
    [PLIM_FAMILY_MISTRAL3] = {OF_TOWERS | INT8 | FP4 | LIGER | UPCAST,
                              PACKING | DPO_GRPO | FLASH2 | SMOOTHED | SAVED | SHARDED | SFT | EVALUATED},
    [PLIM_FAMILY_LLAVA] = {OF_TOWERS | OF_WHOLE_IMAGES, PACKING},
    [PLIM_FAMILY_INTERNVL] = {(OF_TOWERS & ~LONGER_ROPE) | OF_WHOLE_IMAGES, PACKING},
    [PLIM_FAMILY_QWEN3_VL_MOE] = {FEW | NF4, 0},
    [PLIM_FAMILY_QWEN3_5_MOE] = {OF_TOWERS | DPO_GRPO | PACKING | INT8 | SMOOTHED | SAVED | FP4 | LIGER | UPCAST |
                                     ZERO1_2,
                                 FLASH2 | ZERO3 | FSDP | SFT | EVALUATED | NF4},
    [PLIM_FAMILY_GEMMA4] = {OF_TOWERS | GEMMA4 | ZERO1_2_OF_PARTS | IMAGES, 0},
    [PLIM_FAMILY_GEMMA4_UNIFIED] = {OF_TOWERS | GEMMA4 | IMAGES, 0},
    [PLIM_FAMILY_GEMMA4_TEXT] = {GEMMA4 | SHARDED | SFT_DDP, 0},
    [PLIM_FAMILY_GEMMA4_UNIFIED_TEXT] = {GEMMA4 | SHARDED | SFT_DDP | DPO_GRPO | PACKING | SMOOTHED | SAVED, 0},
    [PLIM_FAMILY_APERTUS] = {RECENT, 0},
    [PLIM_FAMILY_GRANITEMOEHYBRID] = {RECENT | PACKING | SFT | DPO_GRPO, 0}, /* TRL reads num_experts from its config */
    [PLIM_FAMILY_FALCON_H1] = {RECENT | PACKING | SFT | DPO_GRPO, 0},
    [PLIM_FAMILY_NEMOTRON_H] = {RECENT | PACKING | SFT | DPO_GRPO | PARAMETERS, 0},
    [PLIM_FAMILY_ERNIE4_5_MOE] = {RECENT | DPO_GRPO | ZERO3 | FSDP, 0},
    [PLIM_FAMILY_LFM2_MOE] = {RECENT | DPO_GRPO, 0},
    [PLIM_FAMILY_MINIMAX_M2] = {RECENT | DPO_GRPO, 0},
    [PLIM_FAMILY_AFMOE] = {RECENT | DPO_GRPO | ZERO3 | FSDP | FP16 | PACKING | ROUTERS, 0},
    [PLIM_FAMILY_T5] = {T5S, 0},
    [PLIM_FAMILY_MT5] = {T5S, 0},
    [PLIM_FAMILY_WHISPER] = {SEQ2SEQ, 0},
    [PLIM_FAMILY_BART] = {SEQ2SEQ | FP16_BY_VALUES, 0},
    [PLIM_FAMILY_MBART] = {SEQ2SEQ, 0},
    [PLIM_FAMILY_DEBERTA_V2] = {ENCODER | NUMBER, 0},
    [PLIM_FAMILY_ALBERT] = {ENCODER, 0},
    [PLIM_FAMILY_GPTJ] = {ENCODER | CUT, 0},
    [PLIM_FAMILY_MPNET] = {ENCODER, 0},
    [PLIM_FAMILY_ESM] = {ENCODER, 0},
};

static const char *of_model(const struct plim_spec *spec, uint64_t what)
{
    static const uint64_t quantized[] = {
        [PLIM_QUANTIZATION_NF4] = NF4, [PLIM_QUANTIZATION_FP4] = FP4, [PLIM_QUANTIZATION_INT8] = INT8};
    bool has_longer = spec->model.rope == PLIM_ROPE_DYNAMIC || spec->model.rope == PLIM_ROPE_LONGROPE;
    bool is_fp16 = plim_enum_axis_has(&spec->precision, PLIM_PRECISION_FP16) ||
                   plim_enum_axis_has(&spec->weights, PLIM_WEIGHTS_FP16);
    if (what & LONGER_ROPE && has_longer) return "model.rope_parameters that depend on the sequence length";
    if (what & FP16 && is_fp16) return "weights in fp16, beside which transformers keeps some in fp32 "
                                       "(_keep_in_fp32_modules)";
    if (what & FP16_BY_VALUES && is_fp16)
        return "weights in fp16, of which transformers looks at an encoder's values (isfinite)";
    bool is_number = spec->model.task == PLIM_TASK_CLASSIFICATION && spec->model.labels == 1;
    if (what & NUMBER && is_number) return "model.num_labels 1";
    if (what & quantized[spec->quantization.type]) return "train.quantization of this type";
    if (what & LOADED && plim_is_loaded(spec->made_on)) return "train.made_on loaded";
    if (what & UPCAST && spec->upcast != PLIM_UPCAST_NONE) return "train.upcast";
    if (what & PARAMETERS && *spec->lora.parameters) return "train.lora.parameters";
    if (what & ROUTERS && plim_modules_has(spec->lora.parameters, "gate.weight")) return "train.lora of a router";
    if (what & SAVED && *spec->lora.saved) return "train.lora.modules_to_save";
    if (what & NEWER && spec->torch != PLIM_TORCH_2_11) return "train.torch 2.15";
    if (what & NEWER && spec->transformers != PLIM_TRANSFORMERS_5_17) return "train.transformers 5.24";
    return NULL;
}

static const char *of_kernels(const struct plim_spec *spec, uint64_t what)
{
    bool is_reentrant = spec->use_reentrant && plim_enum_axis_has(&spec->checkpointing, PLIM_CHECKPOINTING_FULL);
    if (what & LIGER && plim_enum_axis_has(&spec->liger, PLIM_LIGER_TRUE)) return "train.liger";
    if (what & FLASH2 && plim_enum_axis_has(&spec->attention, PLIM_ATTENTION_FLASH2))
        return "train.attention flash_attention_2";
    if (what & CUT && spec->cut_cross_entropy) return "train.cut_cross_entropy";
    if (what & REENTRANT && is_reentrant) return "train.use_reentrant";
    if (what & REENTRANT_BY_LAYERS && is_reentrant && spec->model.per_layer_size)
        return "train.use_reentrant beside embeddings for each layer (hidden_size_per_layer_input)";
    return NULL;
}

static const char *of_loop(const struct plim_spec *spec, uint64_t what)
{
    enum plim_loop loop = spec->loop;
    uint64_t is = loop == PLIM_LOOP_SWIFT_SFT ? SWIFT : loop == PLIM_LOOP_TRL_SFT ? SFT : 0;
    if (loop > PLIM_LOOP_TRL_SFT) is = loop <= PLIM_LOOP_TRL_GRPO ? DPO_GRPO : OTHER_LOOPS;
    if (what & is) return plim_loop_names[loop];
    if (what & SFT_DDP && is == SFT && spec->world > 1) return "trl-sft with ddp";
    if (what & IMAGES && spec->images.count > 0) return "data.images";
    if (what & PACKING && spec->packing) return "data.packing";
    if (what & SMOOTHED && spec->label_smoothing > 0) return "train.label_smoothing";
    if (what & EVALUATED && spec->evaluation.batch) return "train.evaluation";
    if (what & KEPT && spec->evaluation.batch && spec->evaluation.keeps != PLIM_PREDICTIONS_LOSS)
        return "train.evaluation.keeps, which gets the encoder's states, too";
    return NULL;
}

static const char *of_sharding(const struct plim_spec *spec, uint64_t what)
{
    if (what & FSDP_OF_AXOLOTL && spec->fsdp_plan != PLIM_FSDP_PLAN_ACCELERATE) return "train.fsdp_plan axolotl";
    if (what & PLAIN_SHARDED && spec->loop == PLIM_LOOP_PLAIN && plim_spec_sharding_beyond(spec, PLIM_SHARDING_DDP))
        return "a plain loop with ZeRO or FSDP2";
    for (size_t i = 0; i < spec->sharding.count; i++) {
        enum plim_sharding sharding = plim_spec_sharding(spec, spec->sharding.values[i]);
        uint64_t asked = sharding == PLIM_SHARDING_ZERO3  ? ZERO3
                         : sharding == PLIM_SHARDING_FSDP ? FSDP
                         : sharding > PLIM_SHARDING_DDP   ? ZERO1_2
                                                          : 0;
        if (what & asked) return plim_sharding_names[sharding];
        if (what & ZERO1_2_OF_PARTS && asked == ZERO1_2 && (spec->model.audio.layers || spec->model.experts))
            return "ZeRO 1 and 2 of experts or an audio tower";
    }
    return NULL;
}

/* Returns the first of these settings that the spec has; NULL if it has none. */
static const char *asked_for(const struct plim_spec *spec, uint64_t what)
{
    static const char *(*const parts[])(const struct plim_spec *, uint64_t) = {of_model, of_kernels, of_loop,
                                                                               of_sharding};
    const char *found = NULL;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && !found; i++) found = parts[i](spec, what);
    return found;
}

enum plim_status plim_spec_check_uncompared(const struct plim_spec *spec, struct plim_error *err)
{
    const char *family = plim_family_names[spec->model.family];
    const char *beside = spec->model.vision.layers    ? "the vision tower of "
                         : spec->model.encoder_layers ? "the encoder and the decoder of "
                                                      : "";
    const char *found = asked_for(spec, uncompared[spec->model.family].always);
    if (found)
        return plim_fail(err, PLIM_SPEC, "%s with %s%s is not supported (plimsoll exec runs any training "
                                         "program)", found, beside, family);
    bool has_images = plim_spec_images(spec).count > 0;
    found = has_images ? asked_for(spec, uncompared[spec->model.family].with_images) : NULL;
    return !found ? PLIM_OK
                  : plim_fail(err, PLIM_SPEC, "%s with images in rows of %s is not supported, expected data.images 0 "
                                              "(plimsoll exec runs any training program)", found, family);
}
