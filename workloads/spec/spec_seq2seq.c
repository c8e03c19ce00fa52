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
    bool is_gelu = model->feed_forward == PLIM_FEED_GATED + PLIM_ACTIVATION_GELU;
    model->gated_mlp = model->feed_forward >= PLIM_FEED_GATED;
    model->activation = (enum plim_activation)(model->feed_forward % PLIM_FEED_GATED);
    if (is_gelu) model->activation = PLIM_ACTIVATION_GELU_NEW;
    model->scales_outputs = model->family == PLIM_FAMILY_T5 && model->tie_word_embeddings;
}

/* Fails and names the key at fault. */
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
    if (model->relative_buckets % 2)
        REFUSE(RELATIVE_BUCKETS, "relative_attention_num_buckets is %lld, expected an even number: half of them are "
                                 "for tokens that lie behind", (long long)model->relative_buckets);
    if (model->relative_distance <= model->relative_buckets / 2)
        REFUSE(RELATIVE_DISTANCE, "relative_attention_max_distance is %lld, expected more than half of "
                                  "relative_attention_num_buckets = %lld",
               (long long)model->relative_distance, (long long)model->relative_buckets);
    return PLIM_OK;
}

/* --- the rest --------------------------------------------------------------------------------- */

enum plim_status plim_spec_check_target(const struct plim_spec *spec, struct plim_error *err)
{
    if (spec->model.encoder_layers || !spec->target_seq) return PLIM_OK;
    return plim_fail(err, PLIM_SPEC, "data.target_seq is %lld, expected none for %s, which has no encoder and no "
                     "target", (long long)spec->target_seq, plim_family_names[spec->model.family]);
}
