#include "spec_seq2seq.h"
#include "family.h"
#include "spec_internal.h"

/* --- the model -------------------------------------------------------------------------------- */

void plim_seq2seq_derive(struct plim_model_config *model)
{
    if (!plim_family_has_task(model->family, PLIM_TASK_SEQ2SEQ_LM)) return;
    model->encoder_layers = model->layers;
    if (!model->decoder_layers) model->decoder_layers = model->layers;
    int64_t both = model->encoder_layers + model->decoder_layers;
    model->layers = both < PLIM_MAX_LAYERS ? both : PLIM_MAX_LAYERS; /* more are refused */
    if (!model->relative_buckets) return;
    bool is_gelu = model->feed_forward == PLIM_FEED_GATED + PLIM_ACTIVATION_GELU;
    model->gated_mlp = model->feed_forward >= PLIM_FEED_GATED;
    model->activation = (enum plim_activation)(model->feed_forward % PLIM_FEED_GATED);
    if (is_gelu) model->activation = PLIM_ACTIVATION_GELU_NEW;
    model->scales_outputs = model->family == PLIM_FAMILY_T5 && model->tie_word_embeddings;
}

/* Fails with a message, and sets the culprit to the key in question. */
#define REFUSE(field, ...)                                                                         \
    return (*culprit = plim_family_key_name(model->family, PLIM_FIELD_##field),                    \
            plim_fail(err, PLIM_SPEC, __VA_ARGS__))

enum plim_status plim_seq2seq_check(const struct plim_spec *spec, const char **culprit, struct plim_error *err)
{
    const struct plim_model_config *model = &spec->model;
    if (!model->encoder_layers) return PLIM_OK;
    if (model->encoder_layers + model->decoder_layers > PLIM_MAX_LAYERS)
        REFUSE(DECODER_LAYERS, "%lld layers of the encoder and %lld of the decoder, expected %d at most together",
               (long long)model->encoder_layers, (long long)model->decoder_layers, PLIM_MAX_LAYERS);
    if (model->decoder_heads && model->hidden_size % model->decoder_heads)
        REFUSE(DECODER_HEADS, "d_model is %lld and decoder_attention_heads is %lld, expected heads that divide it",
               (long long)model->hidden_size, (long long)model->decoder_heads);
    if (model->mel_bins && (model->hidden_size % 2 || model->hidden_size < 4))
        REFUSE(HIDDEN_SIZE, "d_model is %lld, expected an even number from 4 on: half of a position are sines",
               (long long)model->hidden_size);
    if (!model->relative_buckets) return PLIM_OK;
    if (model->relative_buckets % 2)
        REFUSE(RELATIVE_BUCKETS, "relative_attention_num_buckets is %lld, expected an even number: half of them are "
                                 "for tokens that lie behind", (long long)model->relative_buckets);
    if (model->relative_distance <= model->relative_buckets / 2)
        REFUSE(RELATIVE_DISTANCE, "relative_attention_max_distance is %lld, expected more than half of "
                                  "relative_attention_num_buckets = %lld",
               (long long)model->relative_distance, (long long)model->relative_buckets);
    return PLIM_OK;
}

/* --- checks of the whole spec ----------------------------------------------------------------- */

/* Returns the setting with which transformers fails for a speech model, with the reason; NULL if there is none. */
static const char *fails_beside(const struct plim_spec *spec)
{
    if (!spec->model.mel_bins || !plim_loop_is_trainers(spec->loop)) return NULL;
    if (spec->label_smoothing > 0)
        return "train.label_smoothing: Trainer takes the labels away, from which the model derives its decoder's "
               "input";
    bool is_pure = plim_enum_axis_has(&spec->precision, PLIM_PRECISION_BF16) ||
                   plim_enum_axis_has(&spec->precision, PLIM_PRECISION_FP16);
    return is_pure ? "weights in 16 bits without autocast: features are fp32 (Input type (float) and bias type should "
                     "be the same)"
                   : NULL;
}

enum plim_status plim_spec_check_freezing(const struct plim_spec *spec, struct plim_error *err)
{
    if (!spec->freeze_encoder || spec->model.mel_bins) return PLIM_OK;
    return plim_fail(err, PLIM_SPEC, "train.freeze_encoder is true, expected false for %s, whose encoder cannot be "
                                     "frozen", plim_family_names[spec->model.family]);
}

enum plim_status plim_spec_check_target(const struct plim_spec *spec, struct plim_error *err)
{
    const char *family = plim_family_names[spec->model.family];
    if (!spec->model.encoder_layers)
        return !spec->target_seq ? PLIM_OK
                                 : plim_fail(err, PLIM_SPEC, "data.target_seq is %lld, expected none for %s, which has "
                                             "no encoder and no target", (long long)spec->target_seq, family);
    if (spec->target_seq && spec->model.source_positions)
        return plim_fail(err, PLIM_SPEC, "data.target_seq is %lld, expected none for %s, whose targets are of data.seq "
                         "tokens: all sounds are as long as its encoder", (long long)spec->target_seq, family);
    int64_t target = plim_spec_target(spec), longest = spec->model.positions;
    if (longest && target > longest)
        return plim_fail(err, PLIM_SPEC, "data.target_seq is %lld, expected at most max_position_embeddings = %lld: "
                                         "%s has learned positions", (long long)target, (long long)longest, family);
    const char *failing = fails_beside(spec);
    if (failing)
        return plim_fail(err, PLIM_SPEC, "%s: Trainer fails with %s so, expected another", failing, family);
    return PLIM_OK;
}
