#include "reference.h"
#include "zero.h"

static bool is_wanted(const struct plim_train_setting *setting)
{
    if (setting->loop == PLIM_LOOP_TRL_GRPO) return setting->grpo.reference;
    return plim_loop_has_reference(setting->loop, setting->preference_loss) && !setting->precomputed_reference;
}

enum plim_status reference_create(struct engine *e, const struct plim_model_config *config,
                                  const struct plim_train_setting *setting,
                                  struct reference *reference)
{
    *reference = (struct reference){.setting = *setting};
    if (!is_wanted(setting) || setting->lora.r) return PLIM_OK;
    /* create_model_from_path(): with a device_map on one GPU, otherwise on the host, from which accelerate moves it. */
    bool loads_itself = plim_loop_computes_logits(setting->loop);
    bool is_alone = setting->sharding < PLIM_SHARDING_DDP || loads_itself;
    if (setting->made_on == PLIM_MADE_ON_CAST) reference->setting.weights = PLIM_WEIGHTS_BF16; /* which it keeps */
    reference->setting.made_on = is_alone ? PLIM_MADE_ON_LOADED : PLIM_MADE_ON_HOST;
    /* get_max_memory() allocates on the GPU */
    if (is_alone && !loads_itself) tensor_drop(e, tensor_keep(tensor_empty(e, PLIM_I64, SHAPE(1))));
    enum plim_status st = decoder_create(e, config, &reference->setting, &reference->model);
    if (st || !plim_sharding_is_zero(setting->sharding)) return st;
    return zero_move(e, &reference->model); /* prepare_deepspeed(): an engine of stage 0 */
}

void reference_finish(struct reference *reference)
{
    if (reference->model.family) decoder_finish(&reference->model);
    *reference = (struct reference){0};
}
