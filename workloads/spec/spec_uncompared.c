/* What was not compared of a family, and is refused of it: what is known of others is a bit here. */
#include "family.h"
#include "spec_internal.h"

enum {
    SWIFT = 1 << 0, SFT = 1 << 1, LATER_LOOPS = 1 << 2, /* those behind SFTTrainer's */
    PLAIN_SHARDED = 1 << 3, ZERO1_2 = 1 << 4, ZERO3 = 1 << 5, FSDP = 1 << 6, FSDP_OF_AXOLOTL = 1 << 7,
    NF4 = 1 << 8, FP4 = 1 << 9, INT8 = 1 << 10, LIGER = 1 << 11, FLASH2 = 1 << 12, CUT = 1 << 13, PACKING = 1 << 14,
    SMOOTHED = 1 << 15, SAVED = 1 << 16, PARAMETERS = 1 << 17, UPCAST = 1 << 18, EVALUATED = 1 << 19, KEPT = 1 << 20,
    REENTRANT = 1 << 21, REENTRANT_BY_LAYERS = 1 << 22, LOADED = 1 << 23, FP16 = 1 << 24, LONGER_ROPE = 1 << 25,
    NEWER = 1 << 26, /* PyTorch 2.15, transformers 5.24 */
    IMAGES = 1 << 27, SFT_DDP = 1 << 28, FP16_BY_VALUES = 1 << 29, NUMBER = 1 << 30,

    SHARDED = ZERO1_2 | ZERO3 | FSDP,
    /* of all models with a vision tower */
    TOWER = LONGER_ROPE | PACKING | LATER_LOOPS | CUT | NEWER | FSDP_OF_AXOLOTL | PLAIN_SHARDED,
    /* of those of which a plain loop, Trainer and DDP are known alone */
    FEW = TOWER | FLASH2 | INT8 | SMOOTHED | SAVED | SHARDED | SFT | FP4 | LIGER | EVALUATED | UPCAST,
    SEQ2SEQ = FLASH2 | PACKING | SWIFT | SFT | LATER_LOOPS | INT8 | LIGER | NEWER | KEPT | REENTRANT | LOADED | UPCAST |
              SAVED | SHARDED,
    T5S = SEQ2SEQ | FP16 | NF4 | FP4,
    DEBERTA = NUMBER | PACKING | SWIFT | SFT | LATER_LOOPS | NF4 | FP4 | INT8 | LIGER | NEWER | REENTRANT | LOADED |
              UPCAST | SHARDED,
    GEMMA4 = SWIFT | SFT_DDP | LATER_LOOPS | SHARDED | FP4 | INT8 | LIGER | FLASH2 | REENTRANT_BY_LAYERS | PACKING |
             CUT | SMOOTHED | UPCAST | PARAMETERS | SAVED | NEWER,
};
static const unsigned uncompared[PLIM_FAMILY_COUNT] = {
    [PLIM_FAMILY_QWEN2_VL] = TOWER | FLASH2 | INT8,
    [PLIM_FAMILY_QWEN2_5_VL] = TOWER,
    [PLIM_FAMILY_QWEN3_VL] = TOWER,
    [PLIM_FAMILY_GEMMA3] = TOWER | ZERO3,
    [PLIM_FAMILY_QWEN3_5] = TOWER | FLASH2 | SMOOTHED | SAVED | ZERO3 | FSDP,
    [PLIM_FAMILY_MISTRAL3] = FEW,
    [PLIM_FAMILY_QWEN3_VL_MOE] = FEW | NF4,
    [PLIM_FAMILY_QWEN3_5_MOE] = FEW | NF4,
    [PLIM_FAMILY_GEMMA4] = TOWER | GEMMA4 | IMAGES,
    [PLIM_FAMILY_GEMMA4_UNIFIED] = TOWER | GEMMA4 | IMAGES,
    [PLIM_FAMILY_GEMMA4_TEXT] = GEMMA4,
    [PLIM_FAMILY_GEMMA4_UNIFIED_TEXT] = GEMMA4,
    [PLIM_FAMILY_T5] = T5S,
    [PLIM_FAMILY_MT5] = T5S,
    [PLIM_FAMILY_WHISPER] = SEQ2SEQ,
    [PLIM_FAMILY_BART] = SEQ2SEQ | FP16_BY_VALUES,
    [PLIM_FAMILY_MBART] = SEQ2SEQ,
    [PLIM_FAMILY_DEBERTA_V2] = DEBERTA,
};

static const char *of_model(const struct plim_spec *spec, unsigned what)
{
    static const unsigned quantized[] = {
        [PLIM_QUANTIZATION_NF4] = NF4, [PLIM_QUANTIZATION_FP4] = FP4, [PLIM_QUANTIZATION_INT8] = INT8};
    bool has_longer = spec->model.rope == PLIM_ROPE_DYNAMIC || spec->model.rope == PLIM_ROPE_LONGROPE;
    bool is_fp16 = plim_enum_axis_has(&spec->precision, PLIM_PRECISION_FP16) ||
                   plim_enum_axis_has(&spec->weights, PLIM_WEIGHTS_FP16);
    if (what & LONGER_ROPE && has_longer) return "model.rope_parameters that follow the sequence";
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
    if (what & SAVED && *spec->lora.saved) return "train.lora.modules_to_save";
    if (what & NEWER && spec->torch != PLIM_TORCH_2_11) return "train.torch 2.15";
    if (what & NEWER && spec->transformers != PLIM_TRANSFORMERS_5_17) return "train.transformers 5.24";
    return NULL;
}

static const char *of_kernels(const struct plim_spec *spec, unsigned what)
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

static const char *of_loop(const struct plim_spec *spec, unsigned what)
{
    enum plim_loop loop = spec->loop;
    unsigned is = loop == PLIM_LOOP_SWIFT_SFT ? SWIFT : loop == PLIM_LOOP_TRL_SFT ? SFT : 0;
    if (loop > PLIM_LOOP_TRL_SFT) is = LATER_LOOPS;
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

static const char *of_sharding(const struct plim_spec *spec, unsigned what)
{
    if (what & FSDP_OF_AXOLOTL && spec->fsdp_plan != PLIM_FSDP_PLAN_ACCELERATE) return "train.fsdp_plan axolotl";
    if (what & PLAIN_SHARDED && spec->loop == PLIM_LOOP_PLAIN && plim_spec_sharding_beyond(spec, PLIM_SHARDING_DDP))
        return "a plain loop with ZeRO or FSDP2";
    for (size_t i = 0; i < spec->sharding.count; i++) {
        enum plim_sharding sharding = plim_spec_sharding(spec, spec->sharding.values[i]);
        unsigned asked = sharding == PLIM_SHARDING_ZERO3  ? ZERO3
                         : sharding == PLIM_SHARDING_FSDP ? FSDP
                         : sharding > PLIM_SHARDING_DDP   ? ZERO1_2
                                                          : 0;
        if (what & asked) return plim_sharding_names[sharding];
    }
    return NULL;
}

enum plim_status plim_spec_check_uncompared(const struct plim_spec *spec, struct plim_error *err)
{
    static const char *(*const asked[])(const struct plim_spec *, unsigned) = {of_model, of_kernels, of_loop,
                                                                               of_sharding};
    const char *found = NULL, *beside = spec->model.vision.layers    ? "the vision tower of "
                                        : spec->model.encoder_layers ? "the encoder and the decoder of "
                                                                     : "";
    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]) && !found; i++)
        found = asked[i](spec, uncompared[spec->model.family]);
    return !found ? PLIM_OK
                  : plim_fail(err, PLIM_SPEC, "%s beside %s%s: this is not in this version (plimsoll exec runs any "
                              "training program)", found, beside, plim_family_names[spec->model.family]);
}
