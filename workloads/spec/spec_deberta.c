/* What goes with deberta-v2. */
#include "family.h"
#include "spec_internal.h"

/* What was not compared; NULL: nothing of it */
static const char *unknown(const struct plim_spec *spec)
{
    if (spec->loop > PLIM_LOOP_TRAINER) return plim_loop_names[spec->loop];
    const char *sharding = plim_spec_sharding_beyond(spec, PLIM_SHARDING_DDP);
    if (sharding) return sharding;
    if (spec->model.task == PLIM_TASK_CLASSIFICATION && spec->model.labels == 1) return "model.num_labels 1";
    if (spec->quantization.type) return "train.quantization";
    if (plim_enum_axis_has(&spec->liger, PLIM_LIGER_TRUE)) return "train.liger";
    if (spec->use_reentrant && plim_enum_axis_has(&spec->checkpointing, PLIM_CHECKPOINTING_FULL))
        return "train.use_reentrant";
    if (spec->packing) return "data.packing";
    if (spec->upcast != PLIM_UPCAST_NONE) return "train.upcast";
    if (plim_is_loaded(spec->made_on)) return "train.made_on loaded";
    if (spec->torch != PLIM_TORCH_2_11) return "train.torch 2.15";
    if (spec->transformers != PLIM_TRANSFORMERS_5_17) return "train.transformers 5.24";
    return NULL;
}

enum plim_status plim_spec_check_deberta(const struct plim_spec *spec, struct plim_error *err)
{
    const char *what = spec->model.family == PLIM_FAMILY_DEBERTA_V2 ? unknown(spec) : NULL;
    return !what ? PLIM_OK
                 : plim_fail(err, PLIM_SPEC, "%s of %s: this is not in this version (plimsoll exec runs any training "
                             "program)", what, plim_family_names[spec->model.family]);
}
