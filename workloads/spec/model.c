#include "family.h"
#include "spec_seq2seq.h"
#include "spec_vision.h"

#include <stdio.h>
#include <string.h>

/* --- derived dimensions ----------------------------------------------------------------------- */

void plim_model_sliding_layers(const struct plim_model_config *model, bool *is_sliding)
{
    enum plim_sliding_rule rule = plim_family_info(model->family)->sliding;
    memset(is_sliding, 0, PLIM_MAX_LAYERS * sizeof(*is_sliding));
    for (int64_t i = 0; i < model->layers; i++) {
        bool sliding = false;
        switch (rule) {
        case PLIM_SLIDING_NONE: break;
        case PLIM_SLIDING_ALL: sliding = model->sliding_window > 0; break;
        case PLIM_SLIDING_ALTERNATE: sliding = i % 2 == 0; break;
        case PLIM_SLIDING_PATTERN: sliding = (i + 1) % model->sliding_window_pattern != 0; break;
        case PLIM_SLIDING_FOURTH: sliding = (i + 1) % 4 != 0; break;
        case PLIM_SLIDING_SIXTH: sliding = (i + 1) % 6 != 0 && i + 1 < model->layers; break;
        case PLIM_SLIDING_NOPE:
            sliding = model->use_sliding_window && model->sliding_window > 0 && model->layer_is_nope[i];
            break;
        case PLIM_SLIDING_BETWEEN: sliding = i % model->sliding_window_pattern != 0; break;
        case PLIM_SLIDING_HEAD:
            sliding = model->sliding_window > 0 && i < model->max_window_layers && i % 2 == 0;
            break;
        case PLIM_SLIDING_TAIL:
            sliding = model->sliding_window > 0 && i >= model->max_window_layers;
            break;
        }
        is_sliding[i] = sliding;
    }
}

void plim_model_nope_layers(const struct plim_model_config *model, bool *is_nope)
{
    enum plim_nope_rule rule = plim_family_info(model->family)->nope;
    memset(is_nope, 0, PLIM_MAX_LAYERS * sizeof(*is_nope));
    for (int64_t i = 0; i < model->layers; i++)
        is_nope[i] = rule == PLIM_NOPE_INTERVAL ? (i + 1) % model->no_rope_interval == 0
                     : rule == PLIM_NOPE_KEY    ? model->position_use == PLIM_POSITIONS_NOPE
                     : rule == PLIM_NOPE_FULL && model->sliding_window > 0 && !model->layer_is_sliding[i];
}

void plim_model_linear_layers(const struct plim_model_config *model, bool *is_linear)
{
    memset(is_linear, 0, PLIM_MAX_LAYERS * sizeof(*is_linear));
    for (int64_t i = 0; i < model->layers && model->full_interval; i++)
        is_linear[i] = (i + 1) % model->full_interval != 0;
    const struct plim_family_info *info = plim_family_info(model->family);
    for (int64_t i = 0; i < model->layers && info->mamba; i++)
        is_linear[i] = !info->pattern || model->layer_pattern[i] == PLIM_LAYER_MAMBA;
}

bool plim_model_layer_has_experts(const struct plim_model_config *model, int64_t layer)
{
    if (plim_family_info(model->family)->pattern) return model->layer_pattern[layer] == PLIM_LAYER_EXPERTS;
    return model->experts && (layer + 1) % model->sparse_step == 0 && layer >= model->dense_layers &&
           (!plim_family_find(model->family, "moe_layer_end_index", false) || layer <= model->last_sparse);
}

int64_t plim_model_longest(const struct plim_model_config *model)
{
    bool counts = plim_family_info(model->family)->counts_positions;
    return model->positions - (counts ? model->pad_token_id + 1 : 0);
}

int64_t plim_model_farthest(const struct plim_model_config *model)
{
    return model->relative_positions < 1 ? model->positions : model->relative_positions;
}

int64_t plim_model_distances(const struct plim_model_config *model)
{
    return model->position_buckets > 0 ? model->position_buckets : plim_model_farthest(model);
}

void plim_model_disable_dropout(struct plim_model_config *model)
{
    if (plim_family_info(model->family)->functional_dropout) return;
    model->dropout_residual = model->dropout_embedding = model->dropout_mlp = 0;
    if (model->family == PLIM_FAMILY_GPT2 || model->family == PLIM_FAMILY_BLOOM) model->dropout_attention = 0;
}

/* Lfm2MLP (modeling_lfm2.py:108) */
static void adjust_width(struct plim_model_config *model)
{
    if (!model->adjusts_width) return;
    int64_t width = (int64_t)((double)(2 * model->intermediate_size) / 3), multiple = model->width_multiple;
    width = (int64_t)(model->width_multiplier * (double)width);
    model->intermediate_size = (width + multiple - 1) / multiple * multiple;
    model->adjusts_width = false;
}

/* Gemma4TextConfig.__post_init__() and its modules' constructors */
static void derive_gemma4(struct plim_model_config *model)
{
    model->layer_is_sliding[model->layers - 1] = false;
    if (!model->global_kv_heads || !model->keys_are_values) model->global_kv_heads = model->kv_heads;
}

/* Replaces a vision-language model by its text, if AutoModelForCausalLM builds only that */
static void take_text(struct plim_model_config *model)
{
    enum plim_family text = plim_family_info(model->family)->causal_lm;
    if (!text) return;
    model->family = text;
    model->vision = (struct plim_vision){0};
    if (model->text_ties_otherwise) model->tie_word_embeddings = !model->tie_word_embeddings;
}

static int64_t mamba_width(const struct plim_model_config *model)
{
    int64_t own = model->linear_value_heads * model->linear_value_dim; /* nemotron_h */
    return model->mamba_width    ? model->mamba_width
           : model->mamba_expand ? model->mamba_expand * model->hidden_size
                                 : own;
}

/* NemotronHConfig.__post_init__() */
static void derive_pattern(struct plim_spec *spec)
{
    struct plim_model_config *model = &spec->model;
    if (!spec->layer_types_given) snprintf(model->layer_pattern, sizeof(model->layer_pattern), "ME*-");
    if (!model->layers) model->layers = (int64_t)strlen(model->layer_pattern);
    if (!strchr(model->layer_pattern, PLIM_LAYER_EXPERTS)) model->experts = model->experts_per_token = 0;
}

/* GraniteMoeHybridConfig.__post_init__(), FalconH1Config.__post_init__() */
static void derive_mamba(struct plim_model_config *model)
{
    if (!model->linear_value_dim) model->linear_value_dim = mamba_width(model) / model->linear_value_heads;
    bool has_pattern = plim_family_info(model->family)->pattern;
    if (!model->experts && !has_pattern) model->experts_per_token = model->expert_size = 0;
}

void plim_model_derive(struct plim_spec *spec)
{
    struct plim_model_config *model = &spec->model;
    *model = spec->model_as_given;
    if (spec->auto_class == PLIM_AUTO_CLASS_CAUSAL_LM) take_text(model);
    if (plim_family_info(model->family)->pattern) derive_pattern(spec);
    if (model->global_head_dim && !model->has_experts)
        model->experts = model->experts_per_token = model->expert_size = 0;
    if (!model->intermediate_size)
        model->intermediate_size = 4 * model->hidden_size; /* gpt2, bloom */
    if (model->vision.mlp_ratio) model->vision.intermediate_size = model->vision.mlp_ratio * model->vision.hidden_size;
    adjust_width(model);
    if (model->groups) model->passes = model->layers, model->layers = model->groups;
    plim_seq2seq_derive(model);
    if (model->local_attention) model->sliding_window = model->local_attention / 2;
    if (model->dropout_classifier < 0) model->dropout_classifier = model->dropout_residual;
    if (plim_loop_disables_dropout(spec->loop)) plim_model_disable_dropout(model);
    if (plim_loop_is_reward(spec->loop)) { /* AutoModelForSequenceClassification with num_labels=1 */
        model->task = PLIM_TASK_CLASSIFICATION;
        model->labels = 1;
    }
    if (!model->kv_heads) model->kv_heads = model->heads;
    if (model->multi_query && !model->new_architecture) model->kv_heads = 1; /* FalconAttention, GPTBigCodeAttention */
    if (!model->norms_in_parallel && model->new_architecture) model->norms_in_parallel = 2;
    if (!model->head_dim) model->head_dim = model->hidden_size / model->heads;
    if (!model->word_embed_proj_dim && model->family == PLIM_FAMILY_OPT)
        model->word_embed_proj_dim = model->hidden_size;
    int64_t side = model->patch_size ? model->image_size / model->patch_size : 0;
    if (model->patch_size) model->positions = side * side + 1;
    plim_vision_derive(model);
    if (model->mamba_chunk) derive_mamba(model);
    if (model->experts && !model->expert_size) model->expert_size = model->intermediate_size;
    if (model->experts && !model->sparse_step) model->sparse_step = 1; /* mixtral */
    if (model->family == PLIM_FAMILY_GLM4_MOE_LITE) model->dense_layers = 1; /* mlp_layer_types by default */
    if (model->family == PLIM_FAMILY_DEEPSEEK_V2 && model->top_k == PLIM_TOP_K_GREEDY)
        model->expert_groups = model->groups_per_token = 0;
    if (model->last_sparse < 0) model->last_sparse = model->layers - 1;
    if (model->shared_experts) model->shared_expert_size = model->shared_experts * model->expert_size;
    bool may_slide = plim_family_find(model->family, "use_sliding_window", false);
    bool keeps_window = plim_family_info(model->family)->sliding == PLIM_SLIDING_NOPE;
    if (may_slide && !model->use_sliding_window && !keeps_window)
        model->sliding_window = 0;

    if (model->family == PLIM_FAMILY_MINISTRAL3) model->scales_queries = true;
    bool scaled = model->rope == PLIM_ROPE_LONGROPE || model->rope == PLIM_ROPE_YARN ||
                  model->rope == PLIM_ROPE_LLAMA3 ||
                  model->scales_queries; /* the scale depends on it, whatever the rotary type */
    if (!scaled)
        model->rope_original_positions = 0;
    else if (!model->rope_original_positions)
        model->rope_original_positions = model->positions;

    if (model->family == PLIM_FAMILY_MPNET) model->pad_token_id = 1; /* whatever its config says */
    bool is_t5 = model->relative_buckets && model->encoder_layers;
    model->has_padding_idx = model->pad_token_id != PLIM_NO_TOKEN && !is_t5;
    bool by_interval = plim_family_info(model->family)->nope == PLIM_NOPE_INTERVAL;
    if (spec->nope_layers_given) /* there may be more entries than layers */
        memset(model->layer_is_nope + model->layers, 0, (size_t)(PLIM_MAX_LAYERS - model->layers));
    if (by_interval && !spec->nope_layers_given) plim_model_nope_layers(model, model->layer_is_nope);
    if (!spec->layer_types_given) {
        plim_model_sliding_layers(model, model->layer_is_sliding);
        plim_model_linear_layers(model, model->layer_is_linear);
    }
    if (!by_interval) plim_model_nope_layers(model, model->layer_is_nope);
    if (model->global_head_dim) derive_gemma4(model);
}

/* --- checks ----------------------------------------------------------------------------------- */

/* Fails with a message, and sets the culprit to the key in question. */
#define REFUSE(field, ...)                                                                         \
    return (*culprit = plim_family_key_name(model->family, PLIM_FIELD_##field),                    \
            plim_fail(err, PLIM_SPEC, __VA_ARGS__))

static enum plim_status check_heads(const struct plim_spec *spec, const char **culprit,
                                    struct plim_error *err)
{
    const struct plim_model_config *model = &spec->model;
    const struct plim_family_info *info = plim_family_info(model->family);
    const char *heads = plim_family_key_name(model->family, PLIM_FIELD_HEADS);
    const char *hidden = plim_family_key_name(model->family, PLIM_FIELD_HIDDEN_SIZE);
    bool must_divide = info->heads_must_divide || (!spec->model_as_given.head_dim && !info->head_dim_floors);
    if (model->key_rank && model->kv_heads != model->heads)
        REFUSE(KV_HEADS, "%s is %lld and num_key_value_heads is %lld, expected as many: transformers fails", heads,
               (long long)model->heads, (long long)model->kv_heads);
    if (model->hidden_size % model->heads != 0 && must_divide)
        REFUSE(HEADS, "%s is %lld and %s is %lld, expected heads that divide it", hidden,
               (long long)model->hidden_size, heads, (long long)model->heads);
    if (model->heads % model->kv_heads != 0)
        REFUSE(
            KV_HEADS,
            "%s is %lld and num_key_value_heads is %lld, expected key-value heads that divide it",
            heads, (long long)model->heads, (long long)model->kv_heads);
    for (size_t i = 0; i < sizeof(info->required) / sizeof(info->required[0]); i++) {
        const enum plim_field field = info->required[i];
        const int64_t *given = (const void *)((const char *)&spec->model_as_given + plim_field_info(field)->offset);
        if (field == PLIM_FIELD_TASK || *given != (int64_t)plim_field_info(field)->value.null_value) continue;
        *culprit = plim_family_key_name(model->family, field);
        return plim_fail(err, PLIM_SPEC, "%s is null, with which transformers fails to build or to run %s, expected a "
                         "number", *culprit, plim_family_names[model->family]);
    }
    if (info->head_dim_derives && model->head_dim * model->heads != model->hidden_size)
        REFUSE(HEAD_DIM, "head_dim is %lld, expected %s / %s = %lld", (long long)model->head_dim, hidden, heads,
               (long long)(model->hidden_size / model->heads));
    if (model->head_dim < 1)
        REFUSE(HEADS, "%s is %lld for %s %lld, expected heads of at least one element", heads,
               (long long)model->heads, hidden, (long long)model->hidden_size);
    return PLIM_OK;
}

/* FalconDecoderLayer.forward() and FalconAttention.forward() fail with other combinations. */
static enum plim_status check_falcon(const struct plim_spec *spec, const char **culprit, struct plim_error *err)
{
    const struct plim_model_config *model = &spec->model;
    bool is_whole = !model->new_architecture && !model->multi_query;
    if (model->family != PLIM_FAMILY_FALCON) return PLIM_OK;
    if (model->new_architecture && !model->parallel_residual)
        REFUSE(PARALLEL_RESIDUAL, "parallel_attn is false beside new_decoder_architecture, expected true: transformers "
                                  "fails without");
    if (!model->new_architecture && model->parallel_residual && model->norms_in_parallel == 2)
        REFUSE(NORMS_IN_PARALLEL, "num_ln_in_parallel_attn is 2 without new_decoder_architecture, expected 1 or null: "
                                  "transformers fails");
    if (is_whole && model->kv_heads != model->heads)
        REFUSE(KV_HEADS, "num_kv_heads is %lld and num_attention_heads is %lld without multi_query, expected as many: "
               "transformers fails", (long long)model->kv_heads, (long long)model->heads);
    return PLIM_OK;
}

static enum plim_status check_gemma4(const struct plim_spec *spec, const char **culprit, struct plim_error *err)
{
    const struct plim_model_config *model = &spec->model;
    int64_t first = model->layers - model->shared_kv_layers, kinds[2] = {0, 0};
    if (!model->global_head_dim) return PLIM_OK;
    if (model->head_dim % 2)
        REFUSE(HEAD_DIM, "head_dim is %lld, expected an even number: halves of heads turn",
               (long long)model->head_dim);
    if (model->global_head_dim % 2)
        REFUSE(GLOBAL_HEAD_DIM, "global_head_dim is %lld, expected an even number: halves of heads turn",
               (long long)model->global_head_dim);
    if (model->rope != PLIM_ROPE_DEFAULT && model->rope != PLIM_ROPE_PROPORTIONAL) {
        *culprit = "rope_parameters";
        return plim_fail(err, PLIM_SPEC, "the rope_type of full_attention is %s, expected default or proportional: "
                                         "others are not supported for %s", plim_rope_names[model->rope],
                         plim_family_names[model->family]);
    }
    if (model->heads % model->global_kv_heads)
        REFUSE(GLOBAL_KV_HEADS, "num_attention_heads is %lld and num_global_key_value_heads is %lld, expected "
               "key-value heads that divide it", (long long)model->heads, (long long)model->global_kv_heads);
    bool is_said = model->experts && model->experts_per_token && spec->model_as_given.expert_size;
    if (model->has_experts && !is_said)
        REFUSE(HAS_EXPERTS, "enable_moe_block is true without num_experts, top_k_experts or moe_intermediate_size, "
               "expected all of them: transformers fails without");
    for (int64_t i = 0; i < model->layers; i++) {
        kinds[model->layer_is_sliding[i]] += i < first;
        if (i >= first && !kinds[model->layer_is_sliding[i]])
            REFUSE(SHARED_KV_LAYERS, "layer %lld has the keys and values of an earlier layer of its kind "
                   "(num_kv_shared_layers), expected one: transformers fails without", (long long)i);
    }
    return PLIM_OK;
}

/* cos and sin have an even width. gpt_neox, phi3 and others rotate that many elements of a head, the rest just
 * int(head_dim * factor), which must then be even. */
static enum plim_status check_rotary(const struct plim_spec *spec, const char **culprit,
                                     struct plim_error *err)
{
    const struct plim_model_config *model = &spec->model;
    const struct plim_family_info *info = plim_family_info(model->family);
    int64_t rotary = (int64_t)((double)model->head_dim * model->partial_rotary_factor);
    bool fits = info->rotary_rounds_up ? (rotary + 1) / 2 * 2 <= model->head_dim : rotary % 2 == 0;
    bool turns = info->rotary && (info->nope != PLIM_NOPE_KEY || model->position_use == PLIM_POSITIONS_ROPE);
    if (turns && (rotary < 1 || !fits) && !model->global_head_dim)
        REFUSE(HEAD_DIM,
               "%lld elements of a head rotate (head_dim %lld), expected an even number from 2 on",
               (long long)rotary, (long long)model->head_dim);
    const int64_t *part = model->mrope_section;
    if (info->flat && 2 * (part[0] + part[1] + part[2]) != model->head_dim) {
        *culprit = "rope_parameters";
        return plim_fail(err, PLIM_SPEC, "mrope_section is [%lld, %lld, %lld], expected parts of %lld, half of a head",
                         (long long)part[0], (long long)part[1], (long long)part[2], (long long)(model->head_dim / 2));
    }
    return PLIM_OK;
}

/* GraniteMoeHybridConfig.validate_architecture(), and what its layers need of it. */
static enum plim_status check_mamba(const struct plim_spec *spec, const char **culprit, struct plim_error *err)
{
    const struct plim_model_config *model = &spec->model;
    int64_t width = mamba_width(model), heads = model->linear_value_heads;
    bool is_parallel = plim_model_has_parallel_mamba(model);
    if (!model->mamba_chunk) return PLIM_OK;
    if (heads * model->linear_value_dim != width)
        REFUSE(MAMBA_HEADS, "mamba_n_heads is %lld and mamba_d_head %lld, expected heads as wide as %s = %lld together",
               (long long)heads, (long long)model->linear_value_dim,
               model->mamba_width ? "mamba_d_ssm" : "mamba_expand * hidden_size", (long long)width);
    if (model->experts && !model->experts_per_token)
        REFUSE(ANY_EXPERTS_PER_TOKEN, "num_experts_per_tok is 0 for %lld experts, expected 1 or more",
               (long long)model->experts);
    if (heads % model->linear_key_heads)
        REFUSE(MAMBA_GROUPS, "%s is %lld and %s is %lld, expected groups that divide it",
               plim_family_key_name(model->family, PLIM_FIELD_MAMBA_HEADS), (long long)heads,
               plim_family_key_name(model->family, PLIM_FIELD_MAMBA_GROUPS), (long long)model->linear_key_heads);
    if (model->activation != PLIM_ACTIVATION_SILU && !plim_family_info(model->family)->pattern) /* of MLPs alone */
        for (int64_t i = 0; i < model->layers; i++)
            if (model->layer_is_linear[i] || is_parallel)
                REFUSE(ACTIVATION, "hidden_act is another function than silu, which is not supported beside Mamba-2 "
                       "layers, expected silu");
    return PLIM_OK;
}

static enum plim_status check_pattern(const struct plim_model_config *model, const char **culprit,
                                      struct plim_error *err)
{
    int64_t count = (int64_t)strlen(model->layer_pattern);
    if (!plim_family_info(model->family)->pattern) return PLIM_OK;
    *culprit = "hybrid_override_pattern";
    if (count != model->layers)
        return plim_fail(err, PLIM_SPEC, "the pattern of layers is %.64s, expected num_hidden_layers = %lld letters",
                         model->layer_pattern, (long long)model->layers);
    if (strchr(model->layer_pattern, PLIM_LAYER_EXPERTS) && !model->experts)
        REFUSE(ANY_EXPERTS, "n_routed_experts is 0, and a letter E of the pattern of layers %.64s is experts, expected "
               "1 or more", model->layer_pattern);
    return PLIM_OK;
}

static enum plim_status check_layers(const struct plim_spec *spec, const char **culprit,
                                     struct plim_error *err)
{
    const struct plim_model_config *model = &spec->model;
    if (spec->layer_types_given && (int64_t)spec->layer_types_given != model->layers) {
        *culprit = "layer_types";
        return plim_fail(err, PLIM_SPEC, "layer_types has %zu entries, expected %s = %lld",
                         spec->layer_types_given,
                         plim_family_key_name(model->family, PLIM_FIELD_LAYERS),
                         (long long)model->layers);
    }
    if (spec->nope_layers_given && (int64_t)spec->nope_layers_given < model->layers) {
        *culprit = "no_rope_layers";
        return plim_fail(err, PLIM_SPEC, "no_rope_layers has %zu entries, expected %s = %lld or more",
                         spec->nope_layers_given,
                         plim_family_key_name(model->family, PLIM_FIELD_LAYERS),
                         (long long)model->layers);
    }
    if (plim_family_info(model->family)->needs_layer_types && !spec->layer_types_given) {
        *culprit = "layer_types";
        return plim_fail(err, PLIM_SPEC,
                         "layer_types is missing, without which transformers fails to build %s, expected %s or "
                         "full_attention for each layer", plim_family_names[model->family],
                         plim_family_other_layers(model->family));
    }
    if (!model->mamba_chunk && model->linear_key_heads && model->linear_value_heads % model->linear_key_heads != 0)
        REFUSE(LINEAR_KEY_HEADS,
               "linear_num_value_heads is %lld and linear_num_key_heads is %lld, expected key heads that divide it",
               (long long)model->linear_value_heads, (long long)model->linear_key_heads);
    int64_t linear_layers = 0;
    for (int64_t i = 0; i < model->layers; i++) linear_layers += model->layer_is_linear[i];
    if (linear_layers == model->layers && !model->mamba_chunk)
        REFUSE(FULL_INTERVAL, "all layers %s, expected one of full_attention: transformers fails without",
               plim_family_info(model->family)->convolves ? "are convolutions" : "attend linearly");
    for (int64_t i = 0; i < model->layers; i++)
        if (model->layer_is_sliding[i] && model->sliding_window == 0)
            REFUSE(SLIDING_WINDOW,
                   "layer %lld is sliding without a sliding_window, expected a window%s",
                   (long long)i,
                   plim_family_find(model->family, "use_sliding_window", false)
                       ? " and use_sliding_window: true"
                       : "");
    return PLIM_OK;
}

/* Checks the task and its head. */
static enum plim_status check_task(const struct plim_spec *spec, const char **culprit, struct plim_error *err)
{
    const struct plim_model_config *model = &spec->model;
    bool is_alone = !plim_family_has_task(model->family, PLIM_TASK_CLASSIFICATION);
    if (is_alone && plim_loop_is_reward(spec->loop))
        REFUSE(TASK, "train.loop is %s, and transformers has no classification of %s", plim_loop_names[spec->loop],
               plim_family_names[model->family]);
    char known[128] = "";
    for (int task = 0, used = 0; task < PLIM_TASK_COUNT; task++)
        if (plim_family_has_task(model->family, (enum plim_task)task))
            used += snprintf(known + used, sizeof(known) - (size_t)used, "%s%s", used ? ", " : "",
                             plim_task_names[task]);
    if (!plim_family_has_task(model->family, model->task))
        REFUSE(TASK, "task is %s, expected of %s: %s", plim_task_names[model->task],
               plim_family_names[model->family], known);
    if (model->task == PLIM_TASK_QUESTION_ANSWERING && model->labels != 2)
        REFUSE(LABELS, "num_labels is %lld, expected 2 of question answering: where an answer begins and ends",
               (long long)model->labels);
    return PLIM_OK;
}

/* An upper bound is enough to keep all later arithmetic on bytes inside int64_t. */
static double parameters_bound(const struct plim_model_config *model)
{
    double h = (double)model->hidden_size,
           attention = (double)model->heads * (double)model->head_dim;
    double mlp = 3 * (double)(model->intermediate_size + model->shared_expert_size) +
                 (double)model->experts * (3 * (double)model->expert_size + 1);
    double keys = (double)model->linear_key_heads * (double)model->linear_key_dim,
           values = (double)model->linear_value_heads * (double)model->linear_value_dim;
    double linear = h * (2 * keys + 3 * values + 2 * (double)model->linear_value_heads) +
                    (double)model->linear_kernel * (2 * keys + values + h);
    if (model->linear_kernel) attention *= 5.0 / 4; /* the queries' gate */
    attention += (double)model->heads * (double)(model->plain_dim + model->value_dim);
    double widest = (double)model->heads * (double)model->global_head_dim, pairs = (double)model->per_layer_size;
    double latents = (double)(model->query_rank + model->key_rank) * (h + attention + 1);
    double layer = h * (4 * attention + mlp + 16) + 8 * attention + linear + latents +
                   4 * h * widest + (double)model->double_wide * 3 * h * (double)model->intermediate_size +
                   pairs * (3 * h + (double)model->per_layer_vocab + 2);
    const struct plim_vision *v = &model->vision;
    double tower = (double)v->hidden_size, merged = tower * (double)(v->merge_size * v->merge_size);
    double mergers = (double)(v->deep_count + 1) * merged * (merged + h + 4);
    double patches = tower * (double)(v->channels * v->frames) * (double)(v->patch_size * v->patch_size);
    const struct plim_audio *a = &model->audio;
    double wide = (double)a->hidden_size, filters = (double)(a->channels[0] * a->channels[1]);
    double audio = (double)a->layers * wide * (27 * wide + (double)a->kernel_size + 16) + filters * (9 + wide) +
                   (wide + h) * (double)a->out_size;
    double own_heads = (double)v->layers * 2 * tower * (double)(v->head_dim * (v->heads + v->kv_heads));
    double vision = audio + own_heads +
                    (double)v->layers * tower * (4 * tower + 3 * (double)v->intermediate_size + 16) +
                    2 * tower * (double)v->positions + patches * (v->has_no_blocks ? merged / tower + 2 : 1) + mergers;
    double embed = h + (double)model->word_embed_proj_dim;
    return vision + (double)model->layers * layer +
           embed * (2 * (double)model->vocab_size + (double)model->positions + h);
}

/* DeepseekV2TopkRouter and apply_rotary_emb() fail with other values. */
static enum plim_status check_deepseek_v2(const struct plim_model_config *model, const char **culprit,
                                          struct plim_error *err)
{
    if (model->family != PLIM_FAMILY_DEEPSEEK_V2) return PLIM_OK;
    if (model->key_rank % 2)
        REFUSE(KEY_RANK, "kv_lora_rank is %lld, expected an even number: neighbours behind it turn as complex numbers",
               (long long)model->key_rank);
    if (model->plain_dim % 2)
        REFUSE(PLAIN_DIM, "qk_nope_head_dim is %lld, expected an even number: neighbours behind it turn as complex "
               "numbers", (long long)model->plain_dim);
    if (model->top_k == PLIM_TOP_K_GREEDY) return PLIM_OK;
    if (!model->expert_groups || model->experts % model->expert_groups)
        REFUSE(EXPERT_GROUPS, "n_group is %lld for %lld experts and a topk_method of group_limited_greedy, expected "
               "equal groups", (long long)model->expert_groups, (long long)model->experts);
    if (!model->groups_per_token)
        REFUSE(GROUPS_PER_TOKEN, "topk_group is null, expected how many of n_group = %lld a token is routed to",
               (long long)model->expert_groups);
    return PLIM_OK;
}

/* Without score terms transformers adds a number, which was not compared; make_log_bucket_position() fails for other
 * distances. */
static enum plim_status check_distances(const struct plim_model_config *model, const char **culprit,
                                        struct plim_error *err)
{
    int64_t half = model->position_buckets / 2, farthest = plim_model_farthest(model);
    if (model->relative_attention && model->position_scores == PLIM_SCORES_NONE)
        REFUSE(POSITION_SCORES, "pos_att_type is none beside relative_attention, expected c2p, p2c or both");
    if (!model->relative_attention || model->position_buckets < 1) return PLIM_OK;
    if (half < 2 || half >= farthest - 1)
        REFUSE(POSITION_BUCKETS,
               "position_buckets is %lld, expected 4 or more, and half of them less than the farthest distance = %lld",
               (long long)model->position_buckets, (long long)farthest - 1);
    return PLIM_OK;
}

/* EsmEmbeddings would compare tokens with None. */
static enum plim_status check_esm(const struct plim_model_config *model, const char **culprit, struct plim_error *err)
{
    if (model->token_dropout && model->mask_token_id == PLIM_NO_TOKEN)
        REFUSE(MASK_TOKEN, "mask_token_id is null beside token_dropout, with which transformers fails to run esm, "
               "expected a token");
    if (model->position_kind == PLIM_POSITIONS_ROTARY && model->head_dim % 2)
        REFUSE(HEADS, "a head has %lld elements, expected an even number: halves of heads turn",
               (long long)model->head_dim);
    return PLIM_OK;
}

enum plim_status plim_model_check(const struct plim_spec *spec, const char **culprit,
                                  struct plim_error *err)
{
    const struct plim_model_config *model = &spec->model;
    const double most = 1e14; /* parameters: with all that training adds, 2e15 bytes */
    enum plim_status st = check_heads(spec, culprit, err);
    if (st == PLIM_OK) st = check_falcon(spec, culprit, err);
    if (st == PLIM_OK) st = check_rotary(spec, culprit, err);
    if (st == PLIM_OK) st = check_gemma4(spec, culprit, err);
    if (st == PLIM_OK) st = check_mamba(spec, culprit, err);
    if (st == PLIM_OK) st = check_pattern(model, culprit, err);
    if (st == PLIM_OK) st = check_layers(spec, culprit, err);
    if (st != PLIM_OK) return st;
    if ((st = check_task(spec, culprit, err)) != PLIM_OK) return st;
    if ((st = plim_vision_check(model, culprit, err)) != PLIM_OK) return st;
    if ((st = plim_seq2seq_check(spec, culprit, err)) != PLIM_OK) return st;
    if (model->patch_size > model->image_size)
        REFUSE(PATCH_SIZE, "patch_size is %lld, expected at most image_size = %lld",
               (long long)model->patch_size, (long long)model->image_size);
    if (model->has_padding_idx &&
        (model->pad_token_id >= model->vocab_size || model->pad_token_id < -model->vocab_size))
        REFUSE(PAD_TOKEN,
               "pad_token_id is %lld, expected a token of the vocabulary of %lld, or null",
               (long long)model->pad_token_id, (long long)model->vocab_size);
    if (model->experts_per_token > model->experts)
        REFUSE(EXPERTS_PER_TOKEN, "num_experts_per_tok is %lld, expected at most %s = %lld",
               (long long)model->experts_per_token,
               plim_family_key_name(model->family, PLIM_FIELD_EXPERTS), (long long)model->experts);
    bool has_sparse = !model->experts;
    for (int64_t i = 0; i < model->layers && !has_sparse; i++) has_sparse = plim_model_layer_has_experts(model, i);
    if (!has_sparse && model->family == PLIM_FAMILY_ERNIE4_5_MOE)
        REFUSE(LAST_SPARSE, "no layer has experts by moe_layer_start_index, moe_layer_end_index and "
               "moe_layer_interval, expected one");
    if (model->activation == PLIM_ACTIVATION_XIELU && model->family != PLIM_FAMILY_APERTUS)
        REFUSE(ACTIVATION, "the activation function is xielu, which has parameters and is supported for apertus "
                           "alone, expected another one");
    if ((st = check_deepseek_v2(model, culprit, err)) != PLIM_OK) return st;
    if ((st = check_distances(model, culprit, err)) != PLIM_OK) return st;
    if ((st = check_esm(model, culprit, err)) != PLIM_OK) return st;
    if (model->family == PLIM_FAMILY_MPNET && model->relative_buckets < 32)
        REFUSE(RELATIVE_BUCKETS, "relative_attention_num_buckets is %lld, expected 32 or more: transformers looks up "
               "so many whatever is said", (long long)model->relative_buckets);
    if (model->rotary_dim && (model->rotary_dim > model->head_dim || model->rotary_dim % 2))
        REFUSE(ROTARY_DIM, "rotary_dim is %lld, expected an even number up to %lld, the elements of a head",
               (long long)model->rotary_dim, (long long)model->head_dim);
    if (model->groups > model->passes)
        REFUSE(LAYER_GROUPS, "num_hidden_groups is %lld, expected at most num_hidden_layers = %lld",
               (long long)model->groups, (long long)model->passes);
    bool adds_two = model->family != PLIM_FAMILY_DEEPSEEK_V2;
    bool has_pairs = model->expert_groups && model->experts >= 2 * model->expert_groups;
    if (model->experts && model->expert_groups && adds_two && (model->experts % model->expert_groups || !has_pairs))
        REFUSE(EXPERT_GROUPS, "n_group is %lld for %lld experts, expected equal groups of two or more: transformers "
               "adds up the two largest scores of each", (long long)model->expert_groups, (long long)model->experts);
    if (model->groups_per_token > model->expert_groups)
        REFUSE(GROUPS_PER_TOKEN, "topk_group is %lld, expected at most n_group = %lld",
               (long long)model->groups_per_token, (long long)model->expert_groups);
    if (parameters_bound(model) > most)
        REFUSE(HIDDEN_SIZE, "the model has about %.1e parameters, expected at most %.0e",
               parameters_bound(model), most);
    return PLIM_OK;
}
