/* Resolves and checks what depends on several keys. */
#include "autotune/base/hash.h"
#include "autotune/base/text_stream.h"
#include "family.h"
#include "key.h"
#include "spec_internal.h"
#include "spec_seq2seq.h"
#include "spec_vision.h"

#include <stdlib.h>
#include <string.h>

/* --- quantised weights ------------------------------------------------------------------------ */

static enum plim_status check_quantized(const struct plim_spec *spec, struct plim_error *err)
{
    bool encoder = !plim_family_is_decoder(spec->model.family);
    if (!spec->quantization.type || !encoder) return PLIM_OK;
    return plim_fail(err, PLIM_SPEC,
                     "train.quantization is %s, expected none for the encoder %s (plimsoll exec runs any "
                     "training program)",
                     plim_quantization_names[spec->quantization.type], plim_family_names[spec->model.family]);
}

/* Quantised weights have no gradients. A document may leave adapters to the command line. */
static enum plim_status check_adapters(const struct plim_spec *spec, struct plim_error *err)
{
    const char *type = plim_quantization_names[spec->quantization.type];
    if (!spec->quantization.type || spec->lora.r) return PLIM_OK;
    return plim_fail(err, PLIM_SPEC,
                     "train.quantization is %s and all parameters are to be trained, expected "
                     "train.lora: weights in %s cannot be trained",
                     type, type);
}

/* A decoder with a classification head */
static bool is_scored(const struct plim_model_config *model)
{
    return plim_family_is_decoder(model->family) && model->task == PLIM_TASK_CLASSIFICATION;
}

/* One label means regression: labels in fp32, no smoothing, not supported for images. */
static enum plim_status check_labels(const struct plim_spec *spec, struct plim_error *err)
{
    bool is_of_one = spec->model.task == PLIM_TASK_CLASSIFICATION && spec->model.labels == 1;
    if (!is_of_one || plim_loop_is_reward(spec->loop)) return PLIM_OK;
    if (spec->label_smoothing > 0)
        return plim_fail(err, PLIM_SPEC,
                         "model.num_labels is 1 and train.label_smoothing given, which fails for a number, expected "
                         "none");
    for (size_t i = 0; i < spec->precision.count; i++)
        if (spec->precision.values[i] == PLIM_PRECISION_BF16 || spec->precision.values[i] == PLIM_PRECISION_FP16)
            return plim_fail(err, PLIM_SPEC,
                             "model.num_labels is 1 and train.precision %s, in which the loss of a number fails (Found "
                             "dtype Float), expected bf16-mixed, fp16-mixed, tf32 or fp32",
                             plim_precision_names[spec->precision.values[i]]);
    if (!plim_family_info(spec->model.family)->images) return PLIM_OK;
    return plim_fail(err, PLIM_SPEC,
                     "model.num_labels is 1: regression of images is not supported, expected two labels or more "
                     "(plimsoll exec runs any training program)");
}

/* --- attention -------------------------------------------------------------------------------- */

/* Sets transformers' default attention if none is given. */
static void default_attention(struct plim_spec *spec)
{
    bool eager = plim_family_info(spec->model.family)->eager_only;
    if (spec->attention.count) return;
    spec->attention.count = 1;
    spec->attention.values[0] = eager ? PLIM_ATTENTION_EAGER : spec->model.attention;
}

/* By default, families that transformers does not checkpoint are planned without checkpointing. */
static void default_checkpointing(struct plim_spec *spec)
{
    bool is_given = plim_spec_key_given(spec, "train.checkpointing");
    if (plim_family_info(spec->model.family)->uncheckpointed && !is_given)
        spec->checkpointing = (struct plim_enum_axis){.count = 1, .values = {PLIM_CHECKPOINTING_NONE}};
}

/* Refuses what flash-attn does not support, and what the engine lacks: several rows of several documents, one such row
 * as newer transformers pass it, and vit, which was not compared. */
static enum plim_status check_flash2(const struct plim_spec *spec, struct plim_error *err)
{
    enum { MAX_HEAD = 256 };
    const struct plim_model_config *model = &spec->model;
    bool in_fp32 = plim_enum_axis_has(&spec->precision, PLIM_PRECISION_FP32),
         in_tf32 = plim_enum_axis_has(&spec->precision, PLIM_PRECISION_TF32);
    if (model->family == PLIM_FAMILY_VIT)
        return plim_fail(err, PLIM_SPEC,
                         "train.attention is flash_attention_2, which is not supported for vit, expected sdpa or "
                         "eager (plimsoll exec runs the training script as it is)");
    if (model->key_rank)
        return plim_fail(err, PLIM_SPEC,
                         "train.attention is flash_attention_2, which needs values as wide as keys and is not "
                         "supported for latent attention, expected sdpa or eager");
    if (in_fp32 || in_tf32)
        return plim_fail(err, PLIM_SPEC,
                         "train.attention is flash_attention_2, which computes in 16 bits only, and "
                         "train.precision is %s, expected bf16-mixed (autocast over the same weights), "
                         "fp16-mixed, bf16 or fp16",
                         in_fp32 ? "fp32" : "tf32");
    if (spec->packing == PLIM_PACKING_YES)
        return plim_fail(err, PLIM_SPEC,
                         "train.attention is flash_attention_2 and data.packing is yes, whose rows of several "
                         "documents are not supported, expected no or one-row, or sdpa (plimsoll exec runs the "
                         "training script as it is)");
    if (spec->packing == PLIM_PACKING_ONE_ROW && spec->transformers != PLIM_TRANSFORMERS_5_17)
        return plim_fail(err, PLIM_SPEC,
                         "train.attention is flash_attention_2 and data.packing is one-row, which is not supported "
                         "for train.transformers %s, expected 5.17",
                         plim_transformers_names[spec->transformers]);
    if (model->head_dim > MAX_HEAD)
        return plim_fail(err, PLIM_SPEC,
                         "train.attention is flash_attention_2, which takes heads of at most %d, and "
                         "this model's have %lld, expected sdpa",
                         MAX_HEAD, (long long)model->head_dim);
    if (model->attn_logit_softcapping > 0 && model->dropout_attention > 0)
        return plim_fail(err, PLIM_SPEC,
                         "train.attention is flash_attention_2, which refuses softcapping with "
                         "attention dropout, and the model has both, expected sdpa or eager");
    return PLIM_OK;
}

static enum plim_status check_attention(const struct plim_spec *spec, struct plim_error *err)
{
    if (!plim_family_info(spec->model.family)->eager_only)
        return plim_enum_axis_has(&spec->attention, PLIM_ATTENTION_FLASH2) ? check_flash2(spec, err)
                                                                           : PLIM_OK;
    for (size_t i = 0; i < spec->attention.count; i++)
        if (spec->attention.values[i] != PLIM_ATTENTION_EAGER)
            return plim_fail(err, PLIM_SPEC,
                             "train.attention is %s, expected eager, transformers' own for %s",
                             plim_attention_names[spec->attention.values[i]],
                             plim_family_names[spec->model.family]);
    return PLIM_OK;
}

static enum plim_status check_checkpointing(const struct plim_spec *spec, struct plim_error *err)
{
    bool is_full = plim_enum_axis_has(&spec->checkpointing, PLIM_CHECKPOINTING_FULL);
    if (!is_full || !plim_family_info(spec->model.family)->uncheckpointed) return PLIM_OK;
    return plim_fail(err, PLIM_SPEC, "train.checkpointing is full, expected none: transformers does not checkpoint %s "
                     "(gradient_checkpointing_enable() fails)", plim_family_names[spec->model.family]);
}

/* GptOssPreTrainedModel._keep_in_fp32_modules */
static enum plim_status check_kept_norms(const struct plim_spec *spec, struct plim_error *err)
{
    bool all = plim_enum_axis_has(&spec->precision, PLIM_PRECISION_FP16);
    bool is_fp16 = all || plim_enum_axis_has(&spec->weights, PLIM_WEIGHTS_FP16);
    if (spec->model.family != PLIM_FAMILY_GPT_OSS || !is_fp16) return PLIM_OK;
    return plim_fail(err, PLIM_SPEC,
                     "train.%s is fp16, in which transformers keeps the norms of gpt_oss in fp32: that is not "
                     "supported, expected bf16 or fp32 (plimsoll exec runs any training program)",
                     all ? "precision" : "weights");
}

/* The workspace of scaled_dot_product_attention for values of another width than keys was measured with 2.11 only. */
static enum plim_status check_latents(const struct plim_spec *spec, struct plim_error *err)
{
    if (!spec->model.key_rank || spec->torch == PLIM_TORCH_2_11) return PLIM_OK;
    return plim_fail(err, PLIM_SPEC,
                     "train.torch is %s, whose latent attention is not supported, expected 2.11 (plimsoll exec runs "
                     "any training program)", plim_torch_names[spec->torch]);
}

/* torch's _grouped_mm of the experts: "strides should be multiple of 16 bytes" */
static enum plim_status check_experts(const struct plim_spec *spec, struct plim_error *err)
{
    enum { ROW_BYTES = 16 };
    const struct plim_model_config *model = &spec->model;
    int in_fp32 = plim_enum_axis_has(&spec->precision, PLIM_PRECISION_FP32),
        in_tf32 = plim_enum_axis_has(&spec->precision, PLIM_PRECISION_TF32);
    size_t longs = (size_t)in_fp32 + (size_t)in_tf32;
    int64_t unit = longs == spec->precision.count ? ROW_BYTES / 4 : ROW_BYTES / 2;
    if (!model->experts || (model->hidden_size % unit == 0 && model->expert_size % unit == 0)) return PLIM_OK;
    return plim_fail(err, PLIM_SPEC,
                     "rows of %lld and %lld numbers for experts: PyTorch multiplies experts by rows of whole %d bytes, "
                     "expected hidden_size and the width of an expert to be multiples of %lld",
                     (long long)model->hidden_size, (long long)model->expert_size, ROW_BYTES, (long long)unit);
}

/* Refuses what liger-kernel patches in another way or not at all, and heads whose weight its loss does not find. */
static enum plim_status check_liger(const struct plim_spec *spec, struct plim_error *err)
{
    const struct plim_model_config *model = &spec->model;
    if (!plim_enum_axis_has(&spec->liger, PLIM_LIGER_TRUE)) return PLIM_OK;
    if (model->key_rank)
        return plim_fail(err, PLIM_SPEC,
                         "train.liger is true, and Liger's kernels for %s are not supported, expected false "
                         "(plimsoll exec runs the training script as it is)", plim_family_names[model->family]);
    const struct plim_liger_patches *all = &plim_family_info(model->family)->liger;
    struct plim_liger_patches liger = plim_liger_selected(all, &spec->liger_kernels);
    if (is_scored(model) && liger.loss != PLIM_LIGER_LOSS_NONE) /* apply_liger_kernel_to_llama() sets model.forward */
        return plim_fail(err, PLIM_SPEC,
                         "train.liger is true, whose loss takes the place of a classification's forward and fails (it "
                         "has no lm_head), expected train.liger_kernels.loss none");
    if (spec->liger_kernels.loss == PLIM_LIGER_CHOICE_FUSED && all->loss != PLIM_LIGER_LOSS_FUSED)
        return plim_fail(err, PLIM_SPEC,
                         "train.liger_kernels.loss is fused_linear_cross_entropy, which Liger does not have for %s, "
                         "expected auto",
                         plim_family_names[model->family]);
    if (liger.mlp >= PLIM_LIGER_MLP_RELU2)
        return plim_fail(err, PLIM_SPEC,
                         "train.liger is true, and Liger's kernels for the %s of %s are not supported, expected "
                         "train.liger_kernels.glu false (plimsoll exec runs the training script as it is)",
                         liger.mlp == PLIM_LIGER_MLP_RELU2 ? "activation" : "experts",
                         plim_family_names[model->family]);
    if (liger.mlp == PLIM_LIGER_MLP_SWIGLU && model->activation != PLIM_ACTIVATION_SILU)
        return plim_fail(err, PLIM_SPEC,
                         "train.liger is true, and Liger's SwiGLU wants the activation silu");
    for (size_t i = 0; i < spec->sharding.count && !plim_loop_is_trainers(spec->loop); i++)
        if (spec->sharding.values[i] >= PLIM_SHARDING_ZERO1)
            return plim_fail(err, PLIM_SPEC,
                             "train.liger is true and train.sharding is %s, which is supported with train.loop "
                             "trainer or one of TRL's, expected ddp or none",
                             plim_sharding_names[spec->sharding.values[i]]);
    return PLIM_OK;
}

/* "current kernel does not support head dimension larger than 256" */
static enum plim_status check_linear_attention(const struct plim_spec *spec, struct plim_error *err)
{
    const struct plim_model_config *model = &spec->model;
    bool by_fla = spec->linear_attention.rule == PLIM_DELTA_RULE_FLA;
    if (!plim_family_info(model->family)->linear) return PLIM_OK;
    if (by_fla && model->linear_key_dim > PLIM_FLA_KEY_DIM_MAX)
        return plim_fail(err, PLIM_SPEC,
                         "train.linear_attention is fla, which takes keys of at most %d numbers, and the model's have "
                         "%lld, expected torch", PLIM_FLA_KEY_DIM_MAX, (long long)model->linear_key_dim);
    return PLIM_OK;
}

/* causal_conv1d_fwd(): "only supports channel dimension divisible by 8", "width between 2 and 4" */
static enum plim_status check_conv1d(const struct plim_spec *spec, struct plim_error *err)
{
    const struct plim_model_config *model = &spec->model;
    int64_t channels = 2 * model->linear_key_heads * model->linear_key_dim +
                       model->linear_value_heads * model->linear_value_dim;
    bool fits = channels % PLIM_CONV1D_CHANNELS_UNIT == 0 && model->linear_kernel >= PLIM_CONV1D_TOKENS_MIN &&
                model->linear_kernel <= PLIM_CONV1D_TOKENS_MAX;
    const struct plim_family_info *info = plim_family_info(model->family);
    if ((info->convolves || model->mamba_chunk) && spec->linear_attention.causal_conv1d)
        return plim_fail(err, PLIM_SPEC,
                         "train.causal_conv1d is true, and the package's convolution of %s is not supported, "
                         "expected false (plimsoll exec runs any training "
                         "program)", plim_family_names[model->family]);
    if (!info->linear || !spec->linear_attention.causal_conv1d || fits) return PLIM_OK;
    return plim_fail(err, PLIM_SPEC,
                     "train.causal_conv1d is true, and the package takes multiples of %d channels and %d to %d tokens, "
                     "the model's convolution has %lld and %lld, expected false", PLIM_CONV1D_CHANNELS_UNIT,
                     PLIM_CONV1D_TOKENS_MIN, PLIM_CONV1D_TOKENS_MAX, (long long)channels,
                     (long long)model->linear_kernel);
}

/* axolotl's plugin: its own checks, and models for which its forward fails */
static enum plim_status check_cut(const struct plim_spec *spec, struct plim_error *err)
{
    const struct plim_model_config *model = &spec->model;
    if (!spec->cut_cross_entropy) return PLIM_OK;
    if (model->task != PLIM_TASK_CAUSAL_LM || plim_family_info(model->family)->uncut)
        return plim_fail(err, PLIM_SPEC,
                         "train.cut_cross_entropy is true, whose forward fails for %s as a %s, expected false",
                         plim_family_names[model->family], plim_task_names[model->task]);
    if (plim_loop_is_trl(spec->loop))
        return plim_fail(err, PLIM_SPEC,
                         "train.cut_cross_entropy is true and train.loop is %s, which is not supported, expected "
                         "trainer or plain", plim_loop_names[spec->loop]);
    struct plim_liger_patches liger =
        plim_liger_selected(&plim_family_info(model->family)->liger, &spec->liger_kernels);
    if (plim_enum_axis_has(&spec->liger, PLIM_LIGER_TRUE) && liger.loss != PLIM_LIGER_LOSS_NONE)
        return plim_fail(err, PLIM_SPEC,
                         "train.cut_cross_entropy is true beside Liger's loss, of which axolotl refuses one, expected "
                         "train.liger_kernels.loss none");
    for (size_t i = 0; i < spec->sharding.count && spec->loop == PLIM_LOOP_PLAIN; i++)
        if (spec->sharding.values[i] >= PLIM_SHARDING_ZERO1)
            return plim_fail(err, PLIM_SPEC,
                             "train.cut_cross_entropy is true and train.sharding is %s, which is supported with "
                             "train.loop trainer, expected ddp or none",
                             plim_sharding_names[spec->sharding.values[i]]);
    return PLIM_OK;
}

/* --- sequences and batches -------------------------------------------------------------------- */

static enum plim_status check_seq(const struct plim_spec *spec, struct plim_error *err)
{
    const struct plim_model_config *model = &spec->model;
    for (size_t i = 0; i < spec->seq.count && plim_family_info(model->family)->images; i++)
        if (spec->seq.values[i] != model->positions)
            return plim_fail(err, PLIM_SPEC,
                             "data.seq is %lld, expected none or %lld: an image's patches and one",
                             (long long)spec->seq.values[i], (long long)model->positions);
    bool learns = plim_family_info(model->family)->learned_positions && model->position_kind != PLIM_POSITIONS_ROTARY;
    if (!learns && !model->absolute_positions) return PLIM_OK;
    int64_t longest = plim_model_longest(model);
    for (size_t i = 0; i < spec->seq.count; i++)
        if (spec->seq.values[i] > longest)
            return plim_fail(
                err, PLIM_SPEC,
                "data.seq is %lld, expected at most %s%s = %lld: %s has learned positions",
                (long long)spec->seq.values[i],
                plim_family_key_name(model->family, PLIM_FIELD_POSITIONS),
                longest < model->positions ? " - pad_token_id - 1" : "", (long long)longest,
                plim_family_names[model->family]);
    return PLIM_OK;
}

/* Documents of one row are separated by position ids, which encoders and bloom do not take. */
static enum plim_status check_packing(const struct plim_spec *spec, struct plim_error *err)
{
    bool in_one = spec->packing == PLIM_PACKING_ONE_ROW;
    if (is_scored(&spec->model) && spec->packing)
        return plim_fail(err, PLIM_SPEC,
                         "data.packing is %s, expected no for a classification, which has one label a row",
                         plim_packing_names[spec->packing]);
    if (!in_one && spec->documents > 1)
        return plim_fail(err, PLIM_SPEC, "data.documents is %lld and data.packing is %s, expected one-row",
                         (long long)spec->documents, plim_packing_names[spec->packing]);
    if (!in_one) return PLIM_OK;
    if (spec->model.task != PLIM_TASK_CAUSAL_LM || spec->model.family == PLIM_FAMILY_BLOOM)
        return plim_fail(err, PLIM_SPEC,
                         "data.packing is one-row, expected no for %s, which is given no position ids",
                         plim_family_names[spec->model.family]);
    if (spec->padding == PLIM_PADDING_YES)
        return plim_fail(err, PLIM_SPEC,
                         "data.packing is one-row, in which nothing is padded, and data.padding is yes, expected one "
                         "of them");
    for (size_t i = 0; i < spec->seq.count; i++)
        if (spec->documents > spec->seq.values[i])
            return plim_fail(err, PLIM_SPEC,
                             "data.documents is %lld, expected at most one for each of %lld tokens",
                             (long long)spec->documents, (long long)spec->seq.values[i]);
    return PLIM_OK;
}

static enum plim_status check_padding(const struct plim_spec *spec, struct plim_error *err)
{
    if (spec->padding == PLIM_PADDING_NO) return PLIM_OK;
    if (plim_family_info(spec->model.family)->images)
        return plim_fail(err, PLIM_SPEC, "data.padding is %s, expected no for the images of %s",
                         plim_padding_names[spec->padding], plim_family_names[spec->model.family]);
    if (spec->packing == PLIM_PACKING_YES && spec->model.task == PLIM_TASK_CAUSAL_LM)
        return plim_fail(err, PLIM_SPEC,
                         "data.padding is %s and data.packing yes, expected one of them: transformers does not look "
                         "for documents in rows that come with an attention mask", plim_padding_names[spec->padding]);
    return PLIM_OK;
}

static int64_t largest(const struct plim_int_axis *axis)
{
    int64_t most = 1;
    for (size_t i = 0; i < axis->count; i++)
        if (axis->values[i] > most) most = axis->values[i];
    return most;
}

/* Bounds the largest tensors of a step, so that byte counts stay within int64_t: logits in fp32 and eager attention's
 * scores, with a factor of 64 for everything else that may be live. */
static enum plim_status check_tensors(const struct plim_spec *spec, struct plim_error *err)
{
    const struct plim_model_config *model = &spec->model;
    double samples = (double)largest(&spec->micro_batch) * (double)plim_loop_rows(spec->loop),
           rows = samples * (double)largest(&spec->seq),
           width = (double)model->vocab_size;
    double keys = spec->packing == PLIM_PACKING_ONE_ROW ? rows : (double)largest(&spec->seq);
    const double widths[] = {(double)model->intermediate_size, (double)model->hidden_size,
                             (double)model->heads * (double)model->head_dim,
                             (double)model->heads * keys};
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
        if (widths[i] > width) width = widths[i];
    if (rows * width * 4 * 64 < 0x1p62) return PLIM_OK;
    return plim_fail(err, PLIM_SPEC,
                     "data.seq %lld with train.micro_batch %lld makes a tensor of %.1e bytes, "
                     "expected less than %.0e",
                     (long long)largest(&spec->seq), (long long)largest(&spec->micro_batch),
                     rows * width * 4, 0x1p54);
}

/* Finds the samples per step just below and just above the target (0: none) that micro_batch x accumulation x world
 * can reach with one micro-batch of the list. Keys that are not given can have any value. */
static void nearest_batches(const struct plim_spec *spec, size_t index, double *below,
                            double *above)
{
    double target = (double)spec->effective_batch;
    double unit = (double)spec->world *
                  (spec->micro_batch.count ? (double)spec->micro_batch.values[index] : 1) *
                  (spec->accumulation ? (double)spec->accumulation : 1);
    bool fixed = spec->micro_batch.count && spec->accumulation;
    double times = fixed ? 1 : (double)(int64_t)(target / unit);
    if (fixed && unit > target) times = 0;
    *below = unit * times;
    *above = fixed && unit <= target ? 0 : unit * (times + 1);
}

/* Checks that the effective batch can be reached within its tolerance. */
static bool reaches_effective_batch(const struct plim_spec *spec)
{
    double target = (double)spec->effective_batch,
           slack = target * spec->effective_batch_tolerance * (1 + 1e-12);
    size_t count = spec->micro_batch.count ? spec->micro_batch.count : 1;
    for (size_t i = 0; i < count; i++) {
        double below, above;
        nearest_batches(spec, i, &below, &above);
        if ((below > 0 && target - below <= slack) || (above > 0 && above - target <= slack))
            return true;
    }
    return false;
}

/* Writes the alternatives: "248 or 256". */
static void describe_nearest(const struct plim_spec *spec, char *out, size_t size)
{
    size_t count = spec->micro_batch.count ? spec->micro_batch.count : 1;
    double most = 0, least = 0;
    for (size_t i = 0; i < count; i++) {
        double below, above;
        nearest_batches(spec, i, &below, &above);
        if (below > most) most = below;
        if (above > 0 && (least == 0 || above < least)) least = above;
    }
    if (most > 0 && least > 0) snprintf(out, size, "%.0f or %.0f", most, least);
    else snprintf(out, size, "%.0f", most > 0 ? most : least);
}

/* With ZeRO 3 all ranks are planned alike. */
static enum plim_status check_rank(const struct plim_spec *spec, struct plim_error *err)
{
    bool parts = plim_enum_axis_has_zero(&spec->sharding) || plim_enum_axis_has(&spec->sharding, PLIM_SHARDING_FSDP);
    if (!parts || spec->rank < spec->world) return PLIM_OK;
    return plim_fail(err, PLIM_SPEC, "train.zero.rank is %lld, expected one of %lld: 0 to %lld", (long long)spec->rank,
                     (long long)spec->world, (long long)spec->world - 1);
}

static enum plim_status check_batches(const struct plim_spec *spec, struct plim_error *err)
{
    if (spec->accumulation && spec->schedule_count)
        return plim_fail(
            err, PLIM_SPEC,
            "train.accumulation is given with train.accumulation_schedule, expected one of them");
    if (!spec->effective_batch || reaches_effective_batch(spec)) return PLIM_OK;
    char given[128] = "";
    if (spec->micro_batch.count == 1)
        snprintf(given, sizeof(given), "micro_batch %lld x ",
                 (long long)spec->micro_batch.values[0]);
    else if (spec->micro_batch.count)
        snprintf(given, sizeof(given), "any micro_batch of the list x ");
    if (spec->accumulation)
        snprintf(given + strlen(given), sizeof(given) - strlen(given), "accumulation %lld x ",
                 (long long)spec->accumulation);
    char within[48] = "", expected[80];
    if (spec->effective_batch_tolerance > 0)
        snprintf(within, sizeof(within), " within %g %%", 100 * spec->effective_batch_tolerance);
    describe_nearest(spec, expected, sizeof(expected));
    return plim_fail(err, PLIM_SPEC,
                     "train.effective_batch is %lld, which %sworld %lld cannot make%s, expected %s",
                     (long long)spec->effective_batch, given, (long long)spec->world, within,
                     expected);
}

/* --- the whole -------------------------------------------------------------------------------- */

/* Hashes the spec as it would be written: layout, comments and omitted defaults do not matter. */
static enum plim_status hash_spec(struct plim_spec *spec, struct plim_error *err)
{
    char *text;
    enum plim_status st = plim_spec_content(spec, &text, err);
    if (st) return st;
    spec->hash = plim_hash(PLIM_HASH_START, text, strlen(text));
    free(text);
    return PLIM_OK;
}

#define COUNT_OF(list) (sizeof(list) / sizeof((list)[0]))

static enum plim_status run_checks(const struct plim_spec *spec, const struct spec_check *checks, size_t count,
                                   char *culprit, size_t size, struct plim_error *err)
{
    enum plim_status st = PLIM_OK;
    for (size_t i = 0; i < count && !st; i++) {
        snprintf(culprit, size, "%s", checks[i].culprit);
        st = checks[i].check(spec, err);
    }
    return st;
}

enum plim_status plim_spec_resolve_at(struct plim_spec *spec, char *culprit, size_t size,
                                      struct plim_error *err)
{
    static const struct spec_check checks[] = {
        {check_attention, "train.attention"},
        {check_checkpointing, "train.checkpointing"},
        {check_experts, "train.precision"},
        {check_latents, "train.torch"},
        {check_kept_norms, "train.weights"},
        {check_liger, "train.liger"},
        {check_linear_attention, "train.linear_attention"},
        {check_conv1d, "train.causal_conv1d"},
        {check_cut, "train.cut_cross_entropy"},
        {check_quantized, "train.quantization"},
        {plim_spec_check_lora_kernels, "train.lora.qkv_kernel"},
    }, later_checks[] = {
        {check_seq, "data.seq"},
        {check_packing, "data.packing"},
        {check_padding, "data.padding"},
        {plim_spec_check_uncompared, "model.family"},
        {plim_spec_check_images, "data.images"},
        {plim_spec_check_target, "data.target_seq"},
        {plim_spec_check_freezing, "train.freeze_encoder"},
        {check_tensors, "data.seq"},
        {check_rank, "train.zero.rank"},
        {check_batches, "train.effective_batch"},
    };
    const char *key = "";
    plim_model_derive(spec);
    if (!spec->quantization.type) spec->quantization = (struct plim_quantization){.prepared = true};
    default_attention(spec);
    default_checkpointing(spec);
    enum plim_status st = plim_model_check(spec, &key, err);
    if (st != PLIM_OK) {
        snprintf(culprit, size, "model.%s", key);
        return st;
    }
    snprintf(culprit, size, "train.lora.targets");
    st = plim_spec_resolve_lora(spec, err);
    if (st == PLIM_OK) {
        snprintf(culprit, size, "train.weights");
        st = plim_spec_resolve_types(spec, err);
    }
    if (!st) st = run_checks(spec, checks, COUNT_OF(checks), culprit, size, err);
    if (!st) st = run_checks(spec, plim_spec_loop_checks, PLIM_SPEC_LOOP_CHECKS, culprit, size, err);
    if (!st) st = run_checks(spec, later_checks, COUNT_OF(later_checks), culprit, size, err);
    if (!st && spec->liger_kernels.loss == PLIM_LIGER_CHOICE_FUSED) spec->liger_kernels.loss = PLIM_LIGER_CHOICE_AUTO;
    return st == PLIM_OK ? hash_spec(spec, err) : st;
}

enum plim_status plim_spec_resolve(struct plim_spec *spec, struct plim_error *err)
{
    char culprit[96];
    enum plim_status st = plim_spec_resolve_at(spec, culprit, sizeof(culprit), err);
    if (st == PLIM_OK) st = check_labels(spec, err);
    return st == PLIM_OK ? check_adapters(spec, err) : st;
}
