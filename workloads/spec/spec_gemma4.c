/* What goes with gemma4. */
#include "family.h"
#include "spec_internal.h"

/* What was not compared; NULL: nothing of it */
static const char *unknown(const struct plim_spec *spec)
{
    enum plim_quantization_type type = spec->quantization.type;
    if (spec->loop > PLIM_LOOP_TRAINER) return plim_loop_names[spec->loop];
    const char *sharding = plim_spec_sharding_beyond(spec, PLIM_SHARDING_DDP);
    if (sharding) return sharding;
    if (type && type != PLIM_QUANTIZATION_NF4) return "train.quantization but for nf4";
    if (plim_enum_axis_has(&spec->liger, PLIM_LIGER_TRUE)) return "train.liger";
    if (plim_enum_axis_has(&spec->attention, PLIM_ATTENTION_FLASH2)) return "train.attention flash_attention_2";
    bool is_reentrant = spec->use_reentrant && plim_enum_axis_has(&spec->checkpointing, PLIM_CHECKPOINTING_FULL);
    if (is_reentrant && spec->model.per_layer_size)
        return "train.use_reentrant beside embeddings for each layer (hidden_size_per_layer_input)";
    if (spec->packing) return "data.packing";
    if (spec->cut_cross_entropy) return "train.cut_cross_entropy";
    if (spec->label_smoothing > 0) return "train.label_smoothing";
    if (spec->upcast != PLIM_UPCAST_NONE) return "train.upcast";
    if (*spec->lora.parameters) return "train.lora.parameters";
    if (*spec->lora.saved) return "train.lora.modules_to_save";
    if (spec->torch != PLIM_TORCH_2_11) return "train.torch 2.15";
    if (spec->transformers != PLIM_TRANSFORMERS_5_17) return "train.transformers 5.24";
    return NULL;
}

enum plim_status plim_spec_check_gemma4(const struct plim_spec *spec, struct plim_error *err)
{
    const char *what = spec->model.global_head_dim ? unknown(spec) : NULL;
    return !what ? PLIM_OK
                 : plim_fail(err, PLIM_SPEC, "%s of %s: this is not in this version (plimsoll exec runs any training "
                             "program)", what, plim_family_names[spec->model.family]);
}
