/* Settings that FSDP2 cannot train, either in PyTorch or in this replay. */
#include "fsdp_internal.h"
#include "workloads/spec/family.h"

static const char *accelerate_refuses(const struct plim_model_config *config)
{
    bool is_encoder = !plim_family_has_task(config->family, PLIM_TASK_CAUSAL_LM);
    if (config->family == PLIM_FAMILY_ELECTRA)
        return "electra, whose class names no blocks to shard, is not supported by accelerate's FSDP2 (plimsoll exec "
               "runs the program)";
    return is_encoder && config->family != PLIM_FAMILY_DISTILBERT
               ? "accelerate 1.15 fails to shard the embedding of bert, roberta, xlm-roberta, modernbert and vit by "
                 "FSDP2: its module is sharded already (--loop plain is known)"
               : NULL;
}

/* torchao's step casts a state of a 16-bit tensor, which torch.compile cannot do for a DTensor. */
static const char *torchao_refuses(const struct plim_train_setting *setting)
{
    if (!plim_loop_is_trainers(setting->loop))
        return "torchao's optimizers under fsdp are supported with --loop trainer (plimsoll exec runs the program)";
    bool widens = fsdp_is_mixed(setting) && setting->fsdp_plan == PLIM_FSDP_PLAN_ACCELERATE;
    bool is_in_fp32 = setting->lora.r || widens || decoder_parameter_dtype(setting) == PLIM_F32;
    if (is_in_fp32) return NULL;
    return "torchao's optimizers fail on sharded parameters in 16 bits (OptimState8bit has no aten.view to another "
           "type): --precision bf16-mixed trains them in fp32";
}

/* Liger's loss and cut cross entropy use the head's weight without calling the head. Its unit is then unsharded only if
 * another of its modules has run: the last norm, which accelerate does not find below adapters, or a tied embedding;
 * with axolotl it always is, because it belongs to the root. */
static const char *fused_loss_refuses(const struct plim_model_config *config, const struct plim_train_setting *setting)
{
    bool is_ligers = plim_family_liger(config, setting).loss == PLIM_LIGER_LOSS_FUSED;
    if (!(is_ligers || setting->cut_cross_entropy) || setting->loop != PLIM_LOOP_TRAINER) return NULL;
    if (setting->fsdp_plan == PLIM_FSDP_PLAN_AXOLOTL) return NULL;
    if (setting->lora.r && !config->tie_word_embeddings)
        return is_ligers ? "Liger's loss fails beside adapters under fsdp, where nothing gathers the weight of an "
                           "untied head (got mixed torch.Tensor and DTensor)"
                         : "cut cross entropy fails beside adapters under fsdp, where nothing gathers the weight of an "
                           "untied head (Received c as a torch.distributed.tensor.DTensor)";
    if (setting->evaluation.batch)
        return "evaluations with Liger's loss or cut cross entropy under fsdp leave the head and the last norm "
               "whole, which is not supported (plimsoll exec runs the program)";
    return NULL;
}

const char *fsdp_refuses(const struct plim_device_info *info,
                         const struct plim_model_config *config,
                         const struct plim_train_setting *setting)
{
    if (!info->simulated)
        return "fsdp is simulated only: one GPU does not have the shards of the others";
    if (setting->world < 2) return "fsdp shards over 2 GPUs or more (world)";
    const char *why = plim_loop_is_trainers(setting->loop) ? accelerate_refuses(config) : NULL;
    if (why) return why;
    if (setting->optimizer == PLIM_OPTIMIZER_ADAFACTOR)
        return plim_loop_is_trainers(setting->loop)
                   ? "transformers' Adafactor fails on sharded parameters (mixed torch.Tensor and DTensor)"
                   : "torch.optim's Adafactor fails on sharded parameters (DTensor has no such aten.pow_)";
    if (setting->optimizer >= PLIM_OPTIMIZER_ADAMW_8BIT) /* and the paged ones */
        return "bitsandbytes' optimizers do not take sharded parameters (DTensor)";
    if (fused_loss_refuses(config, setting)) return fused_loss_refuses(config, setting);
    if (plim_optimizer_is_torchao(setting->optimizer) && torchao_refuses(setting)) return torchao_refuses(setting);
    if (setting->quantization.type == PLIM_QUANTIZATION_INT8)
        return "weights in 8 bits fail under fsdp in PyTorch: its parameters of integers would need gradients";
    if (fsdp_is_mixed(setting) && decoder_cast_loses_codes(setting, fsdp_policy_dtype(setting)))
        return "FSDP's policy casts the codes of quantised weights (train.quantization.storage), which are lost: store "
               "them in the type of train.precision, or as uint8";
    if (setting->quantization.type != PLIM_QUANTIZATION_NONE && !plim_loop_is_trainers(setting->loop))
        return "quantised weights under fsdp are supported with --loop trainer (plimsoll exec runs the program)";
    bool is_reentrant = setting->checkpointing == PLIM_CHECKPOINTING_FULL && setting->use_reentrant;
    if (is_reentrant && !plim_loop_is_trainers(setting->loop))
        return "reentrant checkpointing under fsdp is supported with --loop trainer: else use_reentrant false "
               "(plimsoll exec runs the program)";
    enum plim_family f = config->family;
    bool rotates_in_fp32 = f == PLIM_FAMILY_OLMO || f == PLIM_FAMILY_OLMO2 || f == PLIM_FAMILY_OLMO3 ||
                           f == PLIM_FAMILY_ERNIE4_5;
    if (rotates_in_fp32 && fsdp_is_mixed(setting) && setting->checkpointing == PLIM_CHECKPOINTING_FULL)
        return "checkpointed olmo, olmo2, olmo3 and ernie4_5 fail in mixed precision: a block is recomputed from other "
               "types";
    return NULL;
}
