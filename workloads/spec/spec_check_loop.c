/* Checks keys against the training loop (train.loop): what each trainer supports. */
#include "family.h"
#include "key.h"
#include "spec_internal.h"

/* Refuses a key that only Trainer's loops have. */
static enum plim_status expect_trainer(const struct plim_spec *spec, const char *key, struct plim_error *err)
{
    if (plim_loop_is_trainers(spec->loop)) return PLIM_OK;
    return plim_fail(err, PLIM_SPEC,
                     "%s is given and train.loop is %s, expected trainer or one of TRL's", key,
                     plim_loop_names[spec->loop]);
}

/* Evaluations need one of Trainer's loops; logits that they keep grow with their batches. */
static enum plim_status check_evaluation(const struct plim_spec *spec, struct plim_error *err)
{
    const struct plim_evaluation *asked = &spec->evaluation, none = PLIM_NO_EVALUATION;
    bool is_described = asked->keeps != none.keeps || asked->accumulation != none.accumulation ||
                        asked->batches != none.batches || asked->every != none.every ||
                        asked->at_start || asked->batch_metrics;
    if (!asked->batch && is_described)
        return plim_fail(err, PLIM_SPEC,
                         "train.evaluation is given without its batch, expected train.evaluation.batch");
    if (!asked->batch) return PLIM_OK;
    enum plim_status st = expect_trainer(spec, "train.evaluation", err);
    if (st) return st;
    bool keeps = asked->keeps != PLIM_PREDICTIONS_LOSS;
    if (keeps && !asked->batch_metrics && !plim_spec_key_given(spec, "train.evaluation.batches"))
        return plim_fail(err, PLIM_SPEC,
                         "train.evaluation.keeps is %s, which add up, expected train.evaluation.batches",
                         plim_predictions_names[asked->keeps]);
    if (keeps && spec->model.task == PLIM_TASK_QUESTION_ANSWERING)
        return plim_fail(err, PLIM_SPEC,
                         "train.evaluation.keeps is %s and model.task question-answering, whose answers are two, "
                         "which is not supported (plimsoll exec runs the training script as it is)",
                         plim_predictions_names[asked->keeps]);
    bool has_liger = plim_enum_axis_has(&spec->liger, PLIM_LIGER_TRUE);
    if (keeps && (has_liger || spec->cut_cross_entropy))
        return plim_fail(err, PLIM_SPEC,
                         "train.evaluation.keeps is %s and train.%s true, which is not supported (plimsoll exec runs "
                         "the training script as it is)", plim_predictions_names[asked->keeps],
                         has_liger ? "liger" : "cut_cross_entropy");
    return PLIM_OK;
}

static enum plim_status check_emptied(const struct plim_spec *spec, struct plim_error *err)
{
    return spec->empty_cache_steps ? expect_trainer(spec, "train.empty_cache_steps", err) : PLIM_OK;
}

/* Labels are smoothed by Trainer's own loss, which needs logits; evaluations with Liger make none. */
static enum plim_status check_smoothing(const struct plim_spec *spec, struct plim_error *err)
{
    if (!(spec->label_smoothing > 0)) return PLIM_OK;
    if (spec->model.task == PLIM_TASK_QUESTION_ANSWERING)
        return plim_fail(err, PLIM_SPEC,
                         "train.label_smoothing is given and model.task question-answering, whose labels Trainer does "
                         "not smooth, expected none");
    if (spec->evaluation.batch && plim_enum_axis_has(&spec->liger, PLIM_LIGER_TRUE))
        return plim_fail(err, PLIM_SPEC,
                         "train.label_smoothing is given and train.liger true, with which Trainer's evaluations fail "
                         "(skip_logits is True, but labels and shift_labels are None), expected no train.evaluation");
    return expect_trainer(spec, "train.label_smoothing", err);
}

/* Trainer's mixed precision enables DeepSpeed's. */
static enum plim_status check_loop(const struct plim_spec *spec, struct plim_error *err)
{
    if (!plim_loop_is_trainers(spec->loop) || !plim_enum_axis_has_zero(&spec->sharding)) return PLIM_OK;
    for (size_t i = 0; i < spec->precision.count; i++) {
        enum plim_precision precision = (enum plim_precision)spec->precision.values[i];
        if (precision == PLIM_PRECISION_BF16 || precision == PLIM_PRECISION_FP16)
            return plim_fail(err, PLIM_SPEC,
                             "train.precision is %s and train.loop trainer with ZeRO, which is not supported, "
                             "expected %s-mixed: Trainer's %s=True, with which DeepSpeed computes in it",
                             plim_precision_names[precision], plim_precision_names[precision],
                             plim_precision_names[precision]);
    }
    return PLIM_OK;
}

/* Returns why such a model is not loaded by a device_map; NULL if it may be. */
static const char *why_not_loaded(const struct plim_spec *spec)
{
    if (plim_enum_axis_has(&spec->sharding, PLIM_SHARDING_ZERO3))
        return "zero3, which partitions it as it is created (transformers refuses a device_map)";
    if (plim_enum_axis_has(&spec->sharding, PLIM_SHARDING_FSDP)) return "fsdp, for which trainers load on the host";
    if (plim_loop_is_trl(spec->loop) && spec->world > 1)
        return "TRL's trainers on several GPUs, which load on the host";
    return NULL;
}

bool plim_spec_is_refused_for_experts(const struct plim_spec *spec)
{
    return plim_is_loaded(spec->made_on) && spec->model.experts && !why_not_loaded(spec);
}

/* axolotl's FSDP2 runs under Trainer. */
static enum plim_status check_fsdp_plan(const struct plim_spec *spec, struct plim_error *err)
{
    if (spec->fsdp_plan == PLIM_FSDP_PLAN_ACCELERATE) return PLIM_OK;
    if (spec->loop != PLIM_LOOP_TRAINER || !plim_enum_axis_has(&spec->sharding, PLIM_SHARDING_FSDP))
        return plim_fail(err, PLIM_SPEC,
                         "train.fsdp_plan is axolotl, expected train.loop trainer and train.sharding fsdp");
    const char *what = NULL;
    if (spec->lora.r && spec->lora.dora) what = "train.lora.dora, whose magnitudes are units there";
    if (spec->lora.r && *spec->lora.parameters) what = "train.lora.parameters";
    if (spec->quantization.type && !spec->quantization.storage)
        what = "codes in uint8 (train.quantization.storage), which it shards, too";
    if (!what) return PLIM_OK;
    return plim_fail(err, PLIM_SPEC,
                     "train.fsdp_plan is axolotl, which is not supported with %s, expected accelerate", what);
}

/* accelerate's plan of a model with a tower has the choice. */
static enum plim_status check_fsdp_wrap(const struct plim_spec *spec, struct plim_error *err)
{
    bool is_trainers = spec->loop == PLIM_LOOP_TRAINER || spec->loop == PLIM_LOOP_TRL_SFT;
    if (spec->fsdp_wrap == PLIM_FSDP_WRAP_ALL) return PLIM_OK;
    if (is_trainers && plim_enum_axis_has(&spec->sharding, PLIM_SHARDING_FSDP) && spec->model.vision.layers)
        return PLIM_OK;
    return plim_fail(err, PLIM_SPEC,
                     "train.fsdp_wrap is text, expected a model with a vision tower, train.sharding fsdp, and "
                     "train.loop trainer or trl-sft");
}

/* After norms in fp32, layers in 16 bits get fp32 activations, which only autocast casts. */
static enum plim_status check_upcast(const struct plim_spec *spec, struct plim_error *err)
{
    bool is_cut = plim_enum_axis_has(&spec->sharding, PLIM_SHARDING_FSDP) ||
                  plim_enum_axis_has(&spec->sharding, PLIM_SHARDING_ZERO3);
    if (spec->upcast != PLIM_UPCAST_NONE && is_cut)
        return plim_fail(err, PLIM_SPEC,
                         "train.upcast is %s beside fsdp or zero3, which is not supported, expected none",
                         plim_upcast_names[spec->upcast]);
    for (size_t i = 0; spec->upcast == PLIM_UPCAST_KEPT && i < spec->precision.count; i++) {
        enum plim_precision precision = (enum plim_precision)spec->precision.values[i];
        if (precision == PLIM_PRECISION_BF16 || precision == PLIM_PRECISION_FP16)
            return plim_fail(err, PLIM_SPEC,
                             "train.upcast is kept and train.precision %s, whose layers fail on what is in fp32 (there "
                             "is no autocast), expected undone or a mixed precision",
                             plim_precision_names[precision]);
    }
    return PLIM_OK;
}

/* Checks train.made_on against the job: which models a device_map loads. */
static enum plim_status check_made_on(const struct plim_spec *spec, struct plim_error *err)
{
    if (!plim_is_loaded(spec->made_on)) return PLIM_OK;
    const char *what = why_not_loaded(spec);
    if (!what && !plim_family_is_decoder(spec->model.family)) what = "an encoder";
    else if (!what && spec->model.experts)
        what = "experts, which from_pretrained joins on the GPU while its threads load others";
    bool is_wide = spec->weights.count == 1 && spec->weights.values[0] == PLIM_WEIGHTS_FP32 && !spec->lora.r;
    if (spec->made_on == PLIM_MADE_ON_CAST && !is_wide)
        return plim_fail(err, PLIM_SPEC,
                         "train.made_on is cast, expected loaded where not all weights are trained in fp32");
    if (!what) return PLIM_OK;
    return plim_fail(err, PLIM_SPEC, "train.made_on is %s, expected gpu or host for %s",
                     plim_made_on_names[spec->made_on], what);
}

/* Refuses keys that only TRL's trainers have. */
static enum plim_status check_prompt(const struct plim_spec *spec, struct plim_error *err)
{
    bool has_prompts = plim_loop_has_fused_head(spec->loop) || plim_loop_skips_prompts(spec->loop);
    if (!has_prompts && !plim_loop_is_trl_orpo(spec->loop) && spec->prompt)
        return plim_fail(err, PLIM_SPEC, "data.prompt is given and train.loop is %s, expected trl-sft, trl-dpo, "
                         "trl-kto, trl-grpo, swift-sft, swift-dpo or swift-kto: elsewhere it changes nothing",
                         plim_loop_names[spec->loop]);
    for (size_t i = 0; i < spec->seq.count; i++)
        if (spec->prompt >= spec->seq.values[i])
            return plim_fail(err, PLIM_SPEC, "data.prompt is %lld and data.seq %lld, expected a longer row",
                             (long long)spec->prompt, (long long)spec->seq.values[i]);
    return PLIM_OK;
}

static enum plim_status check_reference(const struct plim_spec *spec, struct plim_error *err)
{
    bool may_have = spec->loop == PLIM_LOOP_TRL_DPO || spec->loop == PLIM_LOOP_TRL_KTO;
    if (!spec->precomputed_reference || may_have) return PLIM_OK;
    return plim_fail(err, PLIM_SPEC,
                     "train.precomputed_reference is true and train.loop is %s, expected trl-dpo or trl-kto",
                     plim_loop_names[spec->loop]);
}

static enum plim_status check_preference(const struct plim_spec *spec, struct plim_error *err)
{
    bool has_ipo = spec->loop == PLIM_LOOP_AXOLOTL_DPO || spec->loop == PLIM_LOOP_SWIFT_DPO;
    bool is_ipo = has_ipo && spec->preference_loss == PLIM_PREFERENCE_IPO;
    bool is_cpo = spec->loop == PLIM_LOOP_SWIFT_CPO || spec->loop == PLIM_LOOP_TRL_CPO;
    bool is_simpo = is_cpo && spec->preference_loss == PLIM_PREFERENCE_SIMPO;
    bool is_read = spec->loop == PLIM_LOOP_LLAMAFACTORY_DPO || is_ipo || is_simpo;
    if (is_read || spec->preference_loss == PLIM_PREFERENCE_SIGMOID) return PLIM_OK;
    return plim_fail(err, PLIM_SPEC,
                     "train.preference_loss is %s and train.loop is %s, expected llamafactory-dpo, ipo of "
                     "axolotl-dpo or swift-dpo, or simpo of trl-cpo or swift-cpo",
                     plim_preference_loss_names[spec->preference_loss], plim_loop_names[spec->loop]);
}

static enum plim_status check_rpo(const struct plim_spec *spec, struct plim_error *err)
{
    if (!(spec->rpo_alpha > 0) || spec->loop == PLIM_LOOP_SWIFT_DPO) return PLIM_OK;
    return plim_fail(err, PLIM_SPEC, "train.rpo_alpha is given and train.loop is %s, expected swift-dpo",
                     plim_loop_names[spec->loop]);
}

static enum plim_status check_center(const struct plim_spec *spec, struct plim_error *err)
{
    if (!(spec->center_rewards > 0) || plim_loop_is_reward(spec->loop)) return PLIM_OK;
    return plim_fail(err, PLIM_SPEC,
                     "train.center_rewards is given and train.loop is %s, expected trl-reward or swift-rm",
                     plim_loop_names[spec->loop]);
}

/* Returns what of the job generate() handles in a way that generation.h does not model; NULL: nothing. */
static const char *why_no_generation(const struct plim_spec *spec)
{
    const struct plim_model_config *c = &spec->model;
    const char *what = NULL;
    if (c->family == PLIM_FAMILY_BLOOM || c->family == PLIM_FAMILY_OPT)
        what = "bloom or opt, whose positions come of masks";
    else if (spec->quantization.type == PLIM_QUANTIZATION_INT8) what = "a base in 8 bits";
    else if (c->key_rank) what = "latent attention, whose cache has latents in the place of keys and values";
    else if (c->expert_groups) what = "experts in groups, of which it was not compared";
    else if (c->linear_kernel) what = "linear attention, whose states are no keys and values";
    else if (c->rope == PLIM_ROPE_DYNAMIC || c->rope == PLIM_ROPE_LONGROPE)
        what = "a rope_type of dynamic or longrope, which changes as answers grow";
    else if (c->reorder_and_upcast_attn) what = "reorder_and_upcast_attn";
    else if (plim_enum_axis_has(&spec->attention, PLIM_ATTENTION_FLASH2)) what = "flash_attention_2";
    else if (spec->torch != PLIM_TORCH_2_11 || spec->transformers != PLIM_TRANSFORMERS_5_17)
        what = "another PyTorch or transformers than 2.11 and 5.17";
    return what;
}

/* Returns what of the job GRPOTrainer handles in a way that is not modelled; NULL: nothing. */
static const char *why_no_grpo(const struct plim_spec *spec)
{
    bool has_vllm = spec->grpo.vllm != PLIM_VLLM_NONE;
    if (spec->model.task != PLIM_TASK_CAUSAL_LM) return "a model that is not a causal language model";
    if (spec->packing) return "data.packing, which it does not have";
    if (spec->evaluation.batch) return "train.evaluation, which generates answers, too";
    if (spec->label_smoothing > 0) return "train.label_smoothing, which it does not have";
    if (spec->model.experts && has_vllm) return "experts, which would be sent to vLLM";
    if (spec->quantization.type && has_vllm) return "a quantised base, whose codes would be sent to vLLM";
    if (spec->lora.dora && has_vllm) return "train.lora.dora, whose merged weights would be sent to vLLM";
    if (plim_spec_sharding_beyond(spec, PLIM_SHARDING_ZERO2))
        return has_vllm ? "fsdp or zero3, whose gathered weights would be sent to vLLM"
                        : "fsdp or zero3, in which it gathers the weights for a generation";
    return has_vllm ? NULL : why_no_generation(spec);
}

/* Returns what of the job RewardTrainer handles in a way that is not modelled; NULL: nothing. */
static const char *why_no_rewards(const struct plim_spec *spec)
{
    if (!plim_family_is_decoder(spec->model.family)) return "an encoder";
    if (spec->packing) return "data.packing, which it does not have";
    if (spec->evaluation.keeps != PLIM_PREDICTIONS_LOSS) return "train.evaluation.keeps, which are rewards";
    if (spec->label_smoothing > 0) return "train.label_smoothing, for which it has no labels";
    return NULL;
}

/* The samples of a generation must be those of whole prompts. */
static enum plim_status check_grpo(const struct plim_spec *spec, struct plim_error *err)
{
    if (spec->loop != PLIM_LOOP_TRL_GRPO) return PLIM_OK;
    if (!spec->prompt)
        return plim_fail(err, PLIM_SPEC, "data.prompt is 0 and train.loop trl-grpo, expected the tokens of a prompt, "
                         "which are a part of data.seq");
    int64_t samples = spec->effective_batch * spec->grpo.updates;
    if (!samples || samples % spec->grpo.generations == 0) return PLIM_OK;
    return plim_fail(err, PLIM_SPEC, "train.grpo.generations is %lld, which does not divide the %lld samples that are "
                     "generated at once (train.effective_batch x train.grpo.updates): GRPOTrainer refuses that",
                     (long long)spec->grpo.generations, (long long)samples);
}

/* Returns what of the job KTOTrainer handles in a way that is not modelled or that was not compared; NULL: nothing. */
static const char *why_no_kto(const struct plim_spec *spec)
{
    if (spec->model.vision.layers) return "a model of images and text";
    if (spec->evaluation.batch == 1) return "train.evaluation.batch 1: rows of one kind alone";
    if (plim_enum_axis_has(&spec->liger, PLIM_LIGER_TRUE)) return "train.liger";
    if (spec->quantization.type && spec->quantization.type != PLIM_QUANTIZATION_NF4)
        return "another train.quantization.type than nf4";
    return plim_spec_sharding_beyond(spec, PLIM_SHARDING_DDP) ? "fsdp or ZeRO" : NULL;
}

static enum plim_status refuse_loop(const struct plim_spec *spec, const char *what, struct plim_error *err)
{
    return plim_fail(err, PLIM_SPEC,
                     "train.loop is %s, which is not supported with %s (plimsoll exec runs the training script as it "
                     "is)", plim_loop_names[spec->loop], what);
}

/* Refuses what TRL's trainers handle in a way that is not modelled. */
static enum plim_status check_trl(const struct plim_spec *spec, struct plim_error *err)
{
    bool is_dpo = spec->loop == PLIM_LOOP_TRL_DPO || spec->loop == PLIM_LOOP_TRL_KTO;
    bool is_whole = is_dpo && !spec->lora.r;
    if (!plim_loop_is_trl(spec->loop)) return PLIM_OK;
    bool is_balanced = spec->loop == PLIM_LOOP_TRL_SFT && spec->model.aux_loss_coef > 0;
    if (is_balanced && spec->model.family == PLIM_FAMILY_GRANITEMOE)
        return plim_fail(err, PLIM_SPEC,
                         "train.loop is trl-sft and model.router_aux_loss_coef is %g, with which TRL fails for "
                         "granitemoe ('GraniteMoeConfig' object has no attribute 'num_experts'), expected 0",
                         spec->model.aux_loss_coef);
    bool keeps = spec->evaluation.keeps != PLIM_PREDICTIONS_LOSS;
    const char *what = NULL;
    if (spec->loop == PLIM_LOOP_TRL_REWARD) what = why_no_rewards(spec);
    else if (spec->model.task != PLIM_TASK_CAUSAL_LM) what = "a model that is not a causal language model";
    else if (spec->loop == PLIM_LOOP_TRL_GRPO) what = why_no_grpo(spec);
    else if (spec->packing == PLIM_PACKING_YES) what = "data.packing yes, where it has one-row";
    else if (spec->label_smoothing > 0 && spec->model.experts)
        what = "train.label_smoothing and experts, for whose balance it runs the model twice";
    else if (keeps && spec->model.experts)
        what = "train.evaluation.keeps and experts, for whose balance it runs the model twice";
    else if (keeps && spec->label_smoothing > 0)
        what = "train.evaluation.keeps and train.label_smoothing, for which it runs the model three times";
    else if (keeps && is_dpo) what = "train.evaluation.keeps, for which it runs the model once more";
    else if (is_dpo && spec->label_smoothing > 0) what = "train.label_smoothing, which is another thing there";
    else if (spec->packing == PLIM_PACKING_ONE_ROW && spec->model.experts && spec->model.aux_loss_coef > 0)
        what = "data.packing and experts, whose balance is counted in another way without a mask";
    else if (is_dpo && spec->packing == PLIM_PACKING_ONE_ROW) what = "data.packing, which it does not have";
    else if (is_dpo && spec->model.experts) what = "experts, whose balance it adds to the loss";
    else if (is_whole && plim_enum_axis_has(&spec->sharding, PLIM_SHARDING_FSDP))
        what = "fsdp without adapters, in which it cuts the reference as a whole";
    else if (is_whole && plim_enum_axis_has(&spec->sharding, PLIM_SHARDING_ZERO3))
        what = "zero3 without adapters, in which DeepSpeed cuts the reference, too";
    else if (is_whole && spec->precomputed_reference && plim_enum_axis_has_zero(&spec->sharding))
        what = "ZeRO and train.precomputed_reference, for which DeepSpeed takes the model before it is trained";
    if (!what && spec->loop == PLIM_LOOP_TRL_KTO) what = why_no_kto(spec);
    return what ? refuse_loop(spec, what, err) : PLIM_OK;
}

/* Rows of several documents, as _check_padding_free() of ms-swift's SftArguments requires them */
static enum plim_status check_swift_packing(const struct plim_spec *spec, struct plim_error *err)
{
    if (spec->packing == PLIM_PACKING_YES)
        return plim_fail(err, PLIM_SPEC, "data.packing is yes and train.loop is swift-sft, expected one-row, which its "
                         "packing and padding_free are");
    for (size_t i = 0; spec->packing && i < spec->attention.count; i++)
        if (spec->attention.values[i] != PLIM_ATTENTION_FLASH2)
            return plim_fail(err, PLIM_SPEC, "train.attention is %s, and train.loop swift-sft with data.packing "
                             "one-row, expected flash_attention_2 (attn_impl): ms-swift stops without it",
                             plim_attention_names[spec->attention.values[i]]);
    return PLIM_OK;
}

/* Refuses what ms-swift's Seq2SeqTrainer handles in a way that is not modelled. */
static enum plim_status check_swift(const struct plim_spec *spec, struct plim_error *err)
{
    const char *what = NULL;
    if (spec->loop != PLIM_LOOP_SWIFT_SFT) return PLIM_OK;
    if (spec->model.task != PLIM_TASK_CAUSAL_LM) what = "a model that is not a causal language model";
    else if (spec->model.vision.layers) what = "a model of images and text, whose embeddings it makes itself";
    else if (plim_enum_axis_has(&spec->liger, PLIM_LIGER_TRUE)) what = "train.liger";
    else if (spec->label_smoothing > 0) what = "train.label_smoothing";
    else if (spec->evaluation.keeps != PLIM_PREDICTIONS_LOSS) what = "train.evaluation.keeps";
    else if (plim_spec_sharding_beyond(spec, PLIM_SHARDING_ZERO3)) what = "fsdp";
    return what ? refuse_loop(spec, what, err) : check_swift_packing(spec, err);
}

/* Returns what of the job ms-swift's trainers of `swift rlhf` handle in a way that is not modelled or that was not
 * compared; NULL: nothing. */
static const char *why_no_swift_rlhf(const struct plim_spec *spec)
{
    if (!plim_loop_is_swift_rlhf(spec->loop)) return NULL;
    if (spec->model.vision.layers) return "a model of images and text, whose embeddings it makes itself";
    if (spec->packing) return "data.packing";
    if (plim_enum_axis_has(&spec->liger, PLIM_LIGER_TRUE)) return "train.liger";
    if (spec->quantization.type == PLIM_QUANTIZATION_INT8) return "a base in 8 bits";
    for (size_t i = 0; i < spec->precision.count; i++) {
        int precision = spec->precision.values[i];
        if (precision != PLIM_PRECISION_FP32 && precision != PLIM_PRECISION_BF16_MIXED)
            return "another train.precision than fp32 and bf16-mixed";
    }
    return NULL;
}

/* The same of TRL's ORPOTrainer and CPOTrainer */
static const char *why_no_trl_orpo(const struct plim_spec *spec)
{
    if (!plim_loop_is_trl_orpo(spec->loop)) return NULL;
    if (spec->model.vision.layers) return "a model of images and text";
    if (plim_enum_axis_has(&spec->liger, PLIM_LIGER_TRUE)) return "train.liger";
    if (spec->quantization.type) return "a quantised base, beside which it casts adapters to bf16";
    for (size_t i = 0; i < spec->precision.count; i++) {
        int precision = spec->precision.values[i];
        if (precision != PLIM_PRECISION_FP32 && precision != PLIM_PRECISION_BF16_MIXED)
            return "another train.precision than fp32 and bf16-mixed";
    }
    return NULL;
}

/* The same of all trainers that compute logits in passes of their own, but for how their GPUs share the work */
static const char *why_no_logits(const struct plim_spec *spec)
{
    const char *what = why_no_swift_rlhf(spec);
    if (!what) what = why_no_trl_orpo(spec);
    if (what) return what;
    if (plim_loop_is_reward(spec->loop)) what = why_no_rewards(spec);
    else if (spec->model.task != PLIM_TASK_CAUSAL_LM) what = "a model that is not a causal language model";
    else if (spec->packing) what = "data.packing, which it does not have";
    else if (spec->label_smoothing > 0) what = "train.label_smoothing, of which it takes no notice";
    else if (spec->evaluation.keeps != PLIM_PREDICTIONS_LOSS) what = "train.evaluation.keeps, which it has not";
    return !what && spec->model.experts ? "experts" : what;
}

/* Refuses what LLaMA-Factory's own trainers, axolotl's DPO and ms-swift's `swift rlhf` handle in a way that is not
 * modelled. */
static enum plim_status check_logits(const struct plim_spec *spec, struct plim_error *err)
{
    bool is_axolotls = spec->loop == PLIM_LOOP_AXOLOTL_DPO;
    if (!plim_loop_computes_logits(spec->loop)) return PLIM_OK;
    const char *what = why_no_logits(spec);
    for (size_t i = 0; i < spec->sharding.count && !what; i++) {
        int sharding = plim_spec_sharding(spec, (int)spec->sharding.values[i]);
        if (sharding > PLIM_SHARDING_DDP) what = "fsdp or ZeRO";
        else if (is_axolotls && sharding == PLIM_SHARDING_DDP) what = "ddp";
    }
    if (!what) return PLIM_OK;
    return plim_fail(err, PLIM_SPEC,
                     "train.loop is %s, which is not supported with %s (plimsoll exec runs the training program as "
                     "it is)", plim_loop_names[spec->loop], what);
}

const struct spec_check plim_spec_loop_checks[PLIM_SPEC_LOOP_CHECKS] = {
    {check_loop, "train.precision"},
    {check_trl, "train.loop"},
    {check_logits, "train.loop"},
    {check_swift, "train.loop"},
    {check_grpo, "train.grpo"},
    {check_prompt, "data.prompt"},
    {check_reference, "train.precomputed_reference"},
    {check_preference, "train.preference_loss"},
    {check_center, "train.center_rewards"},
    {check_rpo, "train.rpo_alpha"},
    {check_made_on, "train.made_on"},
    {check_upcast, "train.upcast"},
    {check_fsdp_plan, "train.fsdp_plan"},
    {check_fsdp_wrap, "train.fsdp_wrap"},
    {check_emptied, "train.empty_cache_steps"},
    {check_smoothing, "train.label_smoothing"},
    {check_evaluation, "train.evaluation"},
};
