/* Specs as text: what is written is read back as the same, for random ones too. */
#include "support/spec_files.h"
#include "workloads/spec/family.h"
#include "workloads/spec/key.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

#define GPT2 "model: {family: gpt2}\n"

TestSuite(spec_write, .fini = spec_files_remove);

/* write -> load gives the same spec, and the same text again. */
static void expect_round_trip(const struct plim_spec *spec, const char *what)
{
    struct plim_spec again;
    char *text = NULL, *text_again = NULL;
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert(eq(int, plim_spec_write(spec, &text, &err), PLIM_OK), "%s", err.text);
    spec_load_text("again.yaml", text, &again);
    cr_expect(spec_equal(spec, &again), "%s:\n%s", what, text);
    cr_expect(eq(str, (char *)spec->name, again.name), "%s", what);
    cr_assert(eq(int, plim_spec_write(&again, &text_again, &err), PLIM_OK));
    cr_expect(eq(str, text, text_again), "%s", what);
    free(text);
    free(text_again);
}

static uint64_t next_random(uint64_t *state) /* splitmix64 */
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static int64_t between(uint64_t *state, int64_t low, int64_t high)
{
    return low + (int64_t)(next_random(state) % (uint64_t)(high - low + 1));
}

/* Families of which little was compared */
static bool is_little_known(enum plim_family family)
{
    static const enum plim_family families[] = {PLIM_FAMILY_DEBERTA_V2, PLIM_FAMILY_ESM, PLIM_FAMILY_ALBERT,
                                                PLIM_FAMILY_MPNET, PLIM_FAMILY_GPTJ, PLIM_FAMILY_ERNIE4_5_MOE,
                                                PLIM_FAMILY_APERTUS, PLIM_FAMILY_GRANITEMOEHYBRID,
                                                PLIM_FAMILY_LFM2_MOE, PLIM_FAMILY_MINIMAX_M2, PLIM_FAMILY_AFMOE,
                                                PLIM_FAMILY_FALCON_H1, PLIM_FAMILY_NEMOTRON_H};
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
        if (families[i] == family) return true;
    return false;
}

/* Every key of the family that is a number or a switch gets a random value; heads are kept
 * dividing. */
static void randomize_model(struct plim_spec *spec, enum plim_family family, uint64_t *state)
{
    const struct plim_family_info *info = plim_family_info(family);
    struct plim_model_config *m = &spec->model_as_given;
    cr_assert(eq(int, plim_family_defaults(family, m, NULL), PLIM_OK));
    for (size_t i = 0; i < info->key_count; i++) {
        const struct plim_field_info *field = plim_field_info(info->keys[i].field);
        void *at = (char *)m + field->offset;
        if (field->value.type == PLIM_VALUE_BOOL) *(bool *)at = between(state, 0, 1);
        if (field->value.type == PLIM_VALUE_NUMBER &&
            info->keys[i].field != PLIM_FIELD_PARTIAL_ROTARY)
            *(double *)at = (double)between(state, 1, 1 << 30) / (double)(1 << 30);
        if (field->value.type == PLIM_VALUE_INT && info->keys[i].nullable && between(state, 0, 1))
            *(int64_t *)at = field->value.null_value;
    }
    bool bert = plim_family_has_task(family, PLIM_TASK_MASKED_LM) && info->learned_positions;
    if (family == PLIM_FAMILY_GPT_NEOX || family == PLIM_FAMILY_VIT || bert)
        m->dropout_embedding = m->dropout_residual; /* one key */
    if (family == PLIM_FAMILY_MPNET) m->dropout_classifier = m->dropout_residual;
    if (family == PLIM_FAMILY_GPTJ) m->rotary_dim = 4;
    if (family == PLIM_FAMILY_ESM) m->dropout_embedding = 0, m->dropout_classifier = m->dropout_residual;
    if (family == PLIM_FAMILY_STARCODER2 || family == PLIM_FAMILY_ERNIE4_5 || family == PLIM_FAMILY_FALCON ||
        family == PLIM_FAMILY_ERNIE4_5_MOE)
        m->mlp_bias = m->attention_bias; /* one key */
    if (bert) m->positions = 1024;
    if (m->labels && !m->patch_size)
        m->task = between(state, 0, 1)                ? PLIM_TASK_CLASSIFICATION
                  : plim_family_is_decoder(family) ? PLIM_TASK_CAUSAL_LM
                                                       : PLIM_TASK_MASKED_LM;
    /* of a decoder's causal language model they are not written */
    if (m->labels && m->task != PLIM_TASK_CAUSAL_LM) m->labels = between(state, 2, 2000);
    m->heads = between(state, 1, 9);
    m->kv_heads = plim_family_find(family, "num_key_value_heads", false) ? m->heads : 0;
    m->hidden_size = m->heads * 8 * between(state, 1, 40);
    m->layers = between(state, family == PLIM_FAMILY_ERNIE4_5_MOE ? 2 : 1, 60); /* of which the second has experts */
    m->vocab_size = info->images ? 0 : between(state, 152000, 300000);
    bool has_activation = strcmp(plim_family_key_name(family, PLIM_FIELD_ACTIVATION), "hidden_act") ||
                          plim_family_find(family, "hidden_act", false);
    m->activation = has_activation ? (enum plim_activation)between(state, 0, 5) : info->activation;
    if (info->rotary) m->rope = (enum plim_rope)between(state, 0, PLIM_ROPE_COUNT - 1);
    if (family == PLIM_FAMILY_PHI3 && m->rope != PLIM_ROPE_DEFAULT) m->rope = PLIM_ROPE_LONGROPE;
    if (info->nope == PLIM_NOPE_INTERVAL && between(state, 0, 1)) {
        spec->nope_layers_given = (size_t)m->layers;
        for (int64_t i = 0; i < m->layers; i++) m->layer_is_nope[i] = between(state, 0, 1);
    }
    for (int i = 0; i < 2 && info->required[i] != PLIM_FIELD_TASK; i++) {
        int64_t *field = (void *)((char *)m + plim_field_info(info->required[i])->offset);
        if (!*field || *field == PLIM_NO_TOKEN) *field = 16;
    }
    if (m->mask_token_id == PLIM_NO_TOKEN) m->token_dropout = false;
    if (family == PLIM_FAMILY_DEEPSEEK_V2 && m->expert_size % 8) m->expert_size = 1408; /* 1407 by default: no rows */
    bool needs_window = family == PLIM_FAMILY_EXAONE4 || family == PLIM_FAMILY_AFMOE; /* else no pattern */
    if (needs_window && !m->sliding_window) m->sliding_window = 64;
    if (family == PLIM_FAMILY_FALCON && !m->new_architecture) m->norms_in_parallel = 0;
    if (m->new_architecture) m->parallel_residual = true;
    if (m->mamba_chunk) { /* heads as wide as the layer together */
        m->linear_value_heads = 2 * (info->pattern ? 3 : m->mamba_expand), m->mamba_width = 0;
        m->hidden_size *= 2, m->linear_value_dim = m->hidden_size / 2, m->linear_key_heads = 2;
        if (!info->pattern) m->activation = PLIM_ACTIVATION_SILU;
        if (!m->experts_per_token || m->experts_per_token > m->experts) m->experts_per_token = m->experts > 0;
    }
    if (info->linear && m->full_interval > m->layers) m->full_interval = m->layers; /* one attends to all */
    if (info->layer_types && (info->needs_layer_types || info->pattern || between(state, 0, 1))) {
        spec->layer_types_given = (size_t)m->layers;
        m->use_sliding_window = plim_family_find(family, "use_sliding_window", false) != NULL;
        m->sliding_window = plim_family_mixes(info) ? 0 : 100;
        for (int64_t i = 0; i < m->layers; i++) plim_model_layer_types(m)[i] = between(state, 0, 1) && i;
    }
    if (info->pattern) {
        memset(m->layer_pattern, 0, sizeof(m->layer_pattern));
        for (int64_t i = 0; i < m->layers; i++)
            m->layer_pattern[i] = m->layer_is_linear[i] ? 'M' : "*-"[between(state, 0, 1)];
    }
}

static void randomize_training(struct plim_spec *spec, uint64_t *state)
{
    spec->seq.count = (size_t)between(state, 0, 3);
    for (size_t i = 0; i < spec->seq.count; i++)
        spec->seq.values[i] = between(state, 1, 300) * 3 + (int64_t)i;
    if (spec->model_as_given.patch_size) spec->seq = (struct plim_int_axis){0}; /* the model's own */
    spec->micro_batch.count = (size_t)between(state, 0, 2);
    for (size_t i = 0; i < spec->micro_batch.count; i++)
        spec->micro_batch.values[i] = 10 * (int64_t)i + between(state, 1, 9);
    spec->precision = (struct plim_enum_axis){
        .count = 2, .values = {(int)between(state, 0, 2), (int)between(state, 3, 5)}};
    bool mixed = spec->precision.values[0] == PLIM_PRECISION_BF16_MIXED &&
                 spec->precision.values[1] != PLIM_PRECISION_FP16_MIXED;
    spec->weights = (struct plim_enum_axis){
        .count = 1,
        .values = {mixed ? (int)between(state, PLIM_WEIGHTS_FP32, PLIM_WEIGHTS_BF16)
                         : PLIM_WEIGHTS_FP32}};
    bool keeps_fp32 = spec->model_as_given.family == PLIM_FAMILY_GPT_OSS ||
                      spec->model_as_given.family == PLIM_FAMILY_AFMOE;
    if (keeps_fp32 && spec->precision.values[1] == PLIM_PRECISION_FP16)
        spec->precision.values[1] = PLIM_PRECISION_BF16; /* its norms stay in fp32 */
    spec->model_as_given.dtype = (enum plim_weights)between(state, 0, PLIM_WEIGHTS_COUNT - 1);
    memset(spec->given, true, sizeof(spec->given));
    spec->optimizer = (struct plim_enum_axis){
        .count = 1, .values = {(int)between(state, 0, PLIM_OPTIMIZER_COUNT - 1)}};
    bool eager_only = plim_family_info(spec->model_as_given.family)->eager_only;
    spec->attention = (struct plim_enum_axis){
        .count = (size_t)between(state, 0, 1),
        .values = {eager_only ? PLIM_ATTENTION_EAGER : (int)between(state, 0, 1)}};
    bool is_decoder = plim_family_is_decoder(spec->model_as_given.family);
    bool has_positions = is_decoder && spec->model_as_given.family != PLIM_FAMILY_BLOOM;
    bool classifies = is_decoder && spec->model_as_given.task == PLIM_TASK_CLASSIFICATION;
    if (!classifies) /* a label a row */
        spec->packing = (enum plim_packing)between(state, 0, has_positions ? PLIM_PACKING_ONE_ROW : PLIM_PACKING_YES);
    spec->documents = spec->packing == PLIM_PACKING_ONE_ROW ? between(state, 1, 3) : 1;
    if (!spec->model_as_given.patch_size && (!is_decoder || spec->packing == PLIM_PACKING_NO))
        spec->padding = (enum plim_padding)between(state, 0, PLIM_PADDING_COUNT - 1);
    spec->world = between(state, 1, 64);
    bool is_alone = spec->model_as_given.vision.layers || spec->model_as_given.global_head_dim ||
                    is_little_known(spec->model_as_given.family) ||
                    plim_family_has_task(spec->model_as_given.family, PLIM_TASK_SEQ2SEQ_LM);
    spec->sharding = (struct plim_enum_axis){
        .count = 1, .values = {is_alone ? PLIM_SHARDING_NONE : (int)between(state, 0, PLIM_SHARDING_COUNT - 1)}};
    spec->gpus_per_node = between(state, 1, 16);
    spec->node_bandwidth = (double)between(state, 1, 400);
    if (between(state, 0, 1)) spec->host_speed = 0.25 * (double)between(state, 1, 400);
    spec->resharding = (enum plim_resharding)between(state, 0, PLIM_RESHARDING_COUNT - 1);
    spec->reduce_type = (enum plim_reduce_type)between(state, 0, PLIM_REDUCE_TYPE_COUNT - 1);
    spec->reduction = (enum plim_reduction)between(state, 0, PLIM_REDUCTION_COUNT - 1);
    bool is_zero = plim_sharding_is_zero((enum plim_sharding)spec->sharding.values[0]);
    spec->ddp = (struct plim_ddp){between(state, 1, 1 << 20), between(state, 0, 1),
                                  between(state, 0, 1), between(state, 0, 1)};
    spec->rank = is_zero ? between(state, -1, spec->world - 1) : -1;
    spec->zero = (struct plim_zero){
        .bucket_elements = is_zero ? between(state, 1, 1 << 30) : 500000000,
        .overlap = is_zero ? (enum plim_overlap)between(state, 0, PLIM_OVERLAP_COUNT - 1) : 0,
        .contiguous = !is_zero || between(state, 0, 1),
        .sub_group_elements = is_zero ? between(state, 1, 1 << 30) : 1000000000,
        .prefetch_elements = is_zero ? between(state, 0, 1 << 30) : 50000000,
        .live_elements = is_zero ? between(state, 0, 1 << 30) : 1000000000,
        .reuse_elements = is_zero ? between(state, 0, 1 << 30) : 1000000000,
        .persistent_elements = is_zero ? between(state, 0, 1 << 30) : 100000};
    spec->loop = !is_zero && between(state, 0, 1) ? PLIM_LOOP_TRAINER : PLIM_LOOP_PLAIN;
    bool evaluates = spec->loop == PLIM_LOOP_TRAINER && between(state, 0, 1);
    spec->evaluation = (struct plim_evaluation){.batch = evaluates ? between(state, 1, 64) : 0,
                                                .batches = evaluates ? between(state, 1, 64) : 2,
                                                .accumulation = evaluates ? between(state, 0, 9) : 0,
                                                .every = evaluates ? between(state, 1, 999) : 500,
                                                .at_start = evaluates && between(state, 0, 1),
                                                .batch_metrics = evaluates && between(state, 0, 1)};
    spec->accumulation = between(state, 0, 5);
    spec->schedule_count = spec->accumulation ? 0 : (size_t)between(state, 0, 4);
    for (size_t i = 0; i < spec->schedule_count; i++)
        spec->schedule[i] =
            (struct plim_phase){.epoch = 3 * (int64_t)i, .accumulation = between(state, 1, 99)};
    spec->effective_batch_tolerance = (double)between(state, 0, 900) / 1000;
    spec->clip = (double)between(state, 0, 3) / 3;
    spec->lora.r = between(state, 0, 4);
    spec->lora.dropout = (double)between(state, 0, 10) / 10;
    bool may_quantize = spec->lora.r && is_decoder &&
                        !spec->model_as_given.experts;
    spec->quantization = (struct plim_quantization){
        .type = may_quantize ? between(state, 0, PLIM_QUANTIZATION_COUNT - 1) : 0,
        .nested = between(state, 0, 1),
        .compute = (enum plim_weights)between(state, 0, PLIM_WEIGHTS_COUNT - 1),
        .prepared = between(state, 0, 1)};
    const struct plim_liger_patches *liger = &plim_family_info(spec->model_as_given.family)->liger;
    bool is_glu_taken = liger->mlp < PLIM_LIGER_MLP_RELU2 && between(state, 0, 1);
    spec->liger_kernels = (struct plim_liger_kernels){
        .rope = between(state, 0, 1), .rms_norm = between(state, 0, 1),
        .glu = is_glu_taken ? PLIM_LIGER_KERNEL_TAKEN : PLIM_LIGER_KERNEL_LEFT,
        .loss = between(state, 0, 1) ? PLIM_LIGER_CHOICE_NONE : PLIM_LIGER_CHOICE_AUTO};
    if (classifies) spec->liger_kernels.loss = PLIM_LIGER_CHOICE_NONE;
    bool may_liger = spec->model_as_given.activation == PLIM_ACTIVATION_SILU && !spec->model_as_given.key_rank &&
                     (plim_loop_is_trainers(spec->loop) || spec->sharding.values[0] < PLIM_SHARDING_ZERO1);
    spec->liger = (struct plim_enum_axis){
        .count = 1, .values = {may_liger && between(state, 0, 1) ? PLIM_LIGER_TRUE : PLIM_LIGER_FALSE}};
    bool has_liger = spec->liger.values[0] == PLIM_LIGER_TRUE,
         may_cut = is_decoder && !classifies && !has_liger && !plim_family_info(spec->model_as_given.family)->uncut &&
                   (spec->loop == PLIM_LOOP_TRAINER || spec->sharding.values[0] < PLIM_SHARDING_ZERO1);
    bool may_upcast = spec->sharding.values[0] < PLIM_SHARDING_ZERO1;
    spec->upcast = may_upcast && between(state, 0, 1) ? PLIM_UPCAST_UNDONE : PLIM_UPCAST_NONE;
    spec->cut_cross_entropy = may_cut && between(state, 0, 1);
    bool may_smooth = spec->loop == PLIM_LOOP_TRAINER && !has_liger;
    spec->empty_cache_steps = spec->loop == PLIM_LOOP_TRAINER ? between(state, 0, 3) : 0;
    spec->label_smoothing = may_smooth ? (double)between(state, 0, 10) / 10 : 0;
    const char *target = plim_family_info(spec->model_as_given.family)->linears[0];
    bool is_falcon = spec->model_as_given.family == PLIM_FAMILY_FALCON_H1 ||
                     spec->model_as_given.family == PLIM_FAMILY_NEMOTRON_H; /* whose targets are names */
    bool by_regex = !spec->model_as_given.experts && !is_falcon && between(state, 0, 1);
    const char *before = by_regex ? "re:.*\\.(\"|" : between(state, 0, 1) ? "a." : "";
    snprintf(spec->lora.targets, sizeof(spec->lora.targets), "%s%s%s", before, target, by_regex ? ")" : "");
    snprintf(spec->lora.exclude, sizeof(spec->lora.exclude), "%s", between(state, 0, 1) ? "a.b,c" : "");
    snprintf(spec->lora.saved, sizeof(spec->lora.saved), "%s", between(state, 0, 1) ? "embed_tokens,lm_head" : "");
    spec->lora.ties = *spec->lora.saved && between(state, 0, 1);
    spec->lora.layers.count = by_regex ? 0 : (size_t)between(state, 0, 3);
    for (size_t i = 0; i < spec->lora.layers.count; i++) spec->lora.layers.values[i] = 7 * (int64_t)i;
    bool has_pattern = between(state, 0, 1);
    snprintf(spec->lora.layers_pattern, sizeof(spec->lora.layers_pattern), "%s", has_pattern ? "layers,h" : "");
    spec->lora.rank_count = (size_t)between(state, 0, 2);
    for (size_t i = 0; i < spec->lora.rank_count; i++)
        spec->lora.ranks[i] = (struct plim_lora_rank){.regex = "it's (\\d|\"): #", .r = 1 + (int64_t)i};
    if (spec->lora.rank_count == 2) spec->lora.ranks[1].regex[0] = 'I';
    snprintf(spec->name, sizeof(spec->name),
             "n \"%lld\" \\ #:", (long long)between(state, 0, 1000));
    snprintf(spec->device, sizeof(spec->device), "%s", between(state, 0, 1) ? "sim:RTX-4090" : "");
}

/* Heads of an even width, and the parts of them that turn by time, rows and columns */
static void cut_heads(struct plim_model_config *model, uint64_t *state)
{
    int64_t *part = model->mrope_section;
    for (int i = 0; i < PLIM_GRIDS; i++) part[i] = between(state, 1, 9);
    model->heads = model->kv_heads = between(state, 1, 4);
    model->hidden_size = 2 * (part[0] + part[1] + part[2]) * model->heads;
}

/* gemma3's images are all of one size, of which squares become tokens. */
static void pool_images(struct plim_spec *spec, uint64_t *state)
{
    struct plim_vision *vision = &spec->model_as_given.vision;
    int64_t side = between(state, 1, 5);
    vision->image_tokens = side * side;
    vision->image_size = 2 * side * between(state, 1, 4);
    spec->images.height = spec->images.width = 0;
}

/* llava's are too, and internvl's consist of tiles of one size; all patches become tokens, or squares of four. */
static void tile_images(struct plim_spec *spec, uint64_t *state)
{
    struct plim_vision *vision = &spec->model_as_given.vision;
    bool has_tiles = spec->model_as_given.family == PLIM_FAMILY_INTERNVL;
    vision->image_tokens = 0;
    vision->image_size = 4 * between(state, 1, 5);
    if (!has_tiles) return;
    spec->model_as_given.text = between(state, 0, 1) ? PLIM_FAMILY_QWEN2 : PLIM_FAMILY_QWEN3;
    spec->images.height = vision->image_size * between(state, 1, 3);
    spec->images.width = vision->image_size * between(state, 1, 3);
}

/* What was not compared with each family's tower */
static void be_plain(struct plim_spec *spec)
{
    spec->quantization = (struct plim_quantization){.prepared = true};
    spec->label_smoothing = 0;
    *spec->lora.saved = '\0';
    spec->attention.count = spec->sharding.count = 1;
    if (spec->attention.values[0] == PLIM_ATTENTION_FLASH2) spec->attention.values[0] = PLIM_ATTENTION_SDPA;
    spec->sharding.values[0] = PLIM_SHARDING_NONE;
}

/* And with those of the newest */
static void be_plainer(struct plim_spec *spec)
{
    spec->liger = (struct plim_enum_axis){.count = 1, .values = {PLIM_LIGER_FALSE}};
    spec->evaluation = PLIM_NO_EVALUATION;
    spec->upcast = PLIM_UPCAST_NONE;
}

/* Takes back what is not known beside a vision tower, and gives its rows images. */
static void show_images(struct plim_spec *spec, uint64_t *state)
{
    if (!spec->model_as_given.vision.layers) return;
    struct plim_vision *vision = &spec->model_as_given.vision;
    const struct plim_family_info *info = plim_family_info(spec->model_as_given.family);
    vision->deep_count = info->deep[0] ? between(state, 0, 2) : 0;
    vision->full_count = info->full[0] ? between(state, 0, 2) : 0;
    memset(vision->deep, 0, sizeof(vision->deep));
    memset(vision->full, 0, sizeof(vision->full));
    for (int64_t i = 0; i < vision->deep_count; i++) vision->deep[i] = between(state, 0, 1);
    for (int64_t i = 0; i < vision->full_count; i++) vision->full[i] = between(state, 0, 9);
    if (vision->window_size) vision->window_size = between(state, 4, 99);
    if (info->flat) cut_heads(&spec->model_as_given, state);
    vision->layers = between(state, 2, 9);
    vision->heads = between(state, 1, 9);
    vision->hidden_size = 4 * vision->heads * between(state, 1, 9);
    vision->out_hidden_size = spec->model_as_given.hidden_size;
    vision->patch_size = vision->merge_size = 2;
    spec->model_as_given.rope = PLIM_ROPE_DEFAULT;
    spec->model_as_given.rope_original_positions = 0;
    spec->packing = PLIM_PACKING_NO;
    spec->documents = 1;
    bool is_square = between(state, 0, 1);
    spec->images = (struct plim_images){.count = between(state, -1, 3),
                                        .pixels = between(state, 16, 9999),
                                        .height = is_square ? 0 : 4 * between(state, 1, 9),
                                        .width = is_square ? 0 : 4 * between(state, 1, 9)};
    for (size_t i = 0; i < spec->seq.count; i++) spec->seq.values[i] += 2000;
    if (vision->image_size) pool_images(spec, state);
    if (info->texts[0] && vision->image_size) tile_images(spec, state);
    spec->cut_cross_entropy = false;
    spec->fsdp_plan = PLIM_FSDP_PLAN_ACCELERATE;
    spec->fsdp_wrap = PLIM_FSDP_WRAP_ALL;
    spec->torch = PLIM_TORCH_2_11;
    spec->transformers = PLIM_TRANSFORMERS_5_17;
    enum plim_family family = spec->model_as_given.family;
    if (family != PLIM_FAMILY_QWEN3_VL) be_plain(spec);
    if (family == PLIM_FAMILY_MISTRAL3 || family == PLIM_FAMILY_QWEN3_VL_MOE || family == PLIM_FAMILY_QWEN3_5_MOE ||
        family == PLIM_FAMILY_LLAVA || family == PLIM_FAMILY_INTERNVL)
        be_plainer(spec);
}

/* The same for an encoder and a decoder, whose rows get a target. */
static void give_target(struct plim_spec *spec, uint64_t *state)
{
    struct plim_model_config *m = &spec->model_as_given;
    if (!plim_family_has_task(m->family, PLIM_TASK_SEQ2SEQ_LM)) return;
    bool hears = m->family == PLIM_FAMILY_WHISPER, is_t5 = m->relative_buckets > 0;
    m->dropout_embedding = m->dropout_residual; /* one key */
    if (is_t5) m->dropout_attention = m->dropout_mlp = m->dropout_residual;
    if (is_t5) m->relative_buckets = 2 * between(state, 2, 20);
    if (is_t5) m->relative_distance = m->relative_buckets + between(state, 0, 99);
    m->decoder_layers = between(state, !is_t5, 60);
    if (!is_t5) m->decoder_heads = m->heads;
    if (!is_t5) m->hidden_size *= 2, m->positions = 1 << 24;
    m->decoder_start = between(state, 0, 9);
    m->pad_token_id = between(state, 0, 9);
    spec->target_seq = hears ? 0 : between(state, 0, 300);
    spec->freeze_encoder = hears && between(state, 0, 1);
    spec->precision = (struct plim_enum_axis){.count = 2, .values = {(int)between(state, 0, 2), 4}};
    if (hears) spec->precision.values[1] = PLIM_PRECISION_FP16_MIXED;
    if (hears) spec->label_smoothing = 0;
    if (hears) spec->weights = (struct plim_enum_axis){.count = 1, .values = {PLIM_WEIGHTS_FP32}};
    spec->liger = (struct plim_enum_axis){.count = 1};
    spec->packing = PLIM_PACKING_NO;
    spec->documents = 1;
    spec->upcast = PLIM_UPCAST_NONE;
    spec->use_reentrant = false;
    spec->torch = PLIM_TORCH_2_11;
    spec->transformers = PLIM_TRANSFORMERS_5_17;
    *spec->lora.saved = '\0';
    spec->lora.ties = false;
}

/* Takes back what is not known of gemma4. */
static void be_gemma4(struct plim_spec *spec, uint64_t *state)
{
    struct plim_model_config *m = &spec->model_as_given;
    if (!m->global_head_dim) return;
    if (plim_family_info(m->family)->vision) m->pad_token_id = 0;
    if (m->vision.layers) {
        spec->images.count = 0;
        m->vision.head_dim = 4 * between(state, 1, 9);
        m->vision.kv_heads = m->vision.heads;
        m->audio.layers = between(state, 0, 9);
        m->audio.heads = between(state, 1, 9);
        m->audio.hidden_size = m->audio.heads * between(state, 4, 9);
    }
    m->head_dim = 2 * between(state, 1, 99);
    m->global_head_dim = 2 * between(state, 1, 99);
    m->global_kv_heads = between(state, 0, 1);
    m->shared_kv_layers = 0;
    m->rope = between(state, 0, 1) ? PLIM_ROPE_PROPORTIONAL : PLIM_ROPE_DEFAULT;
    m->rope_original_positions = 0;
    if (m->has_experts) {
        m->hidden_size = 8 * between(state, 1, 99);
        m->experts = 9;
        m->experts_per_token = between(state, 1, 9);
        m->expert_size = 8 * between(state, 1, 9);
    }
    be_plain(spec);
    be_plainer(spec);
    spec->packing = PLIM_PACKING_NO;
    spec->documents = 1;
    spec->cut_cross_entropy = spec->use_reentrant = spec->lora.ties = false;
    spec->torch = PLIM_TORCH_2_11;
    spec->transformers = PLIM_TRANSFORMERS_5_17;
}

/* deberta-v2: embeddings of distances that are numbers */
static void be_deberta(struct plim_spec *spec, uint64_t *state)
{
    struct plim_model_config *m = &spec->model_as_given;
    if (m->family != PLIM_FAMILY_DEBERTA_V2) return;
    m->dropout_embedding = m->dropout_residual; /* one key */
    m->positions = m->relative_positions = 1024;
    m->position_buckets = between(state, 0, 1) ? -1 : between(state, 4, 99);
    m->position_scores = (enum plim_position_scores)between(state, 1, PLIM_SCORES_COUNT - 1);
    m->distance_norm = (enum plim_distance_norm)between(state, 0, 1);
}

static void be_little_known(struct plim_spec *spec)
{
    if (!is_little_known(spec->model_as_given.family)) return;
    if (plim_family_info(spec->model_as_given.family)->uncheckpointed)
        spec->checkpointing = (struct plim_enum_axis){.count = 1, .values = {PLIM_CHECKPOINTING_NONE}};
    be_plain(spec);
    be_plainer(spec);
    spec->packing = PLIM_PACKING_NO;
    spec->documents = 1;
    spec->use_reentrant = spec->cut_cross_entropy = false;
    spec->torch = PLIM_TORCH_2_11;
    spec->transformers = PLIM_TRANSFORMERS_5_17;
}

Test(spec_write, random_specs_come_back)
{
    uint64_t state = 3;
    for (int n = 0; n < 12 * PLIM_FAMILY_COUNT; n++) {
        struct plim_spec spec;
        spec_load_text("base.yaml", GPT2, &spec);
        randomize_model(&spec, (enum plim_family)(n % PLIM_FAMILY_COUNT), &state);
        randomize_training(&spec, &state);
        show_images(&spec, &state);
        give_target(&spec, &state);
        be_gemma4(&spec, &state);
        be_deberta(&spec, &state);
        be_little_known(&spec);
        struct plim_error err = PLIM_ERROR_INIT;
        cr_assert(eq(int, plim_spec_resolve(&spec, &err), PLIM_OK), "%d: %s", n, err.text);
        expect_round_trip(&spec, plim_family_names[n % PLIM_FAMILY_COUNT]);
    }
}

Test(spec_write, every_family_comes_back_with_its_defaults)
{
    for (int f = 0; f < PLIM_FAMILY_COUNT; f++) {
        struct plim_spec spec;
        char text[128];
        const enum plim_field *required = plim_family_info((enum plim_family)f)->required;
        size_t used = (size_t)snprintf(text, sizeof(text), "model: {family: %s", plim_family_names[f]);
        for (int i = 0; i < 2 && required[i] != PLIM_FIELD_TASK; i++)
            used += (size_t)snprintf(text + used, sizeof(text) - used, ", %s: %d", plim_field_info(required[i])->name,
                                     required[i] == PLIM_FIELD_KV_HEADS ? 4 : 16 - i);
        bool sees = plim_family_info((enum plim_family)f)->vision; /* by default wider than the text */
        if (f == PLIM_FAMILY_GEMMA3) /* whose classes' defaults do not go together */
            used += (size_t)snprintf(text + used, sizeof(text) - used, ", mm_tokens_per_image: 49");
        if (f == PLIM_FAMILY_DEEPSEEK_V2) /* whose default of 1407 PyTorch multiplies by no rows of 16 bytes */
            used += (size_t)snprintf(text + used, sizeof(text) - used, ", moe_intermediate_size: 1408");
        if (f == PLIM_FAMILY_LFM2_MOE) /* whose class has no default of them */
            used += (size_t)snprintf(text + used, sizeof(text) - used,
                                     ", num_hidden_layers: 1, layer_types: [full_attention]");
        snprintf(text + used, sizeof(text) - used, "}\n%s", sees ? "data: {images: 0}\n" : "");
        spec_load_text("s.yaml", text, &spec);
        expect_round_trip(&spec, plim_family_names[f]);
    }
}

Test(spec_write, is_what_a_person_would_write)
{
    struct plim_spec spec;
    char *text = NULL;
    spec_load_text("tiny.json", "{\"model_type\": \"bloom\", \"hidden_size\": 64}", &spec);
    cr_assert(eq(int, plim_spec_write(&spec, &text, NULL), PLIM_OK));
    cr_expect(eq(str, text,
                 "name: \"tiny\"\n"
                 "model:\n"
                 "  family: bloom\n"
                 "  vocab_size: 250880\n"
                 "  hidden_size: 64\n"
                 "  n_layer: 2\n"
                 "  n_head: 8\n"
                 "  apply_residual_connection_post_layernorm: false\n"
                 "  hidden_dropout: 0\n"
                 "  attention_dropout: 0\n"
                 "  tie_word_embeddings: true\n"
                 "data:\n"
                 "  packing: no\n"
                 "train:\n"
                 "  precision: fp32\n"
                 "  weights: fp32\n"
                 "  optimizer: adamw-fused\n"
                 "  checkpointing: [none, full]\n"
                 "  use_reentrant: false\n"
                 "  torch: 2.11\n"
                 "  transformers: 5.17\n"
                 "  attention: eager\n"
                 "  effective_batch_tolerance: 0\n"
                 "  world: 1\n"
                 "  gpus_per_node: 8\n"
                 "  node_gb_per_second: 100\n"
                 "  sharding: auto\n"
                 "  reduction: last\n"
                 "  reshard_after_forward: yes\n"
                 "  reduce_dtype: auto\n"
                 "  ddp:\n"
                 "    gradient_as_bucket_view: false\n"
                 "    find_unused_parameters: auto\n"
                 "    static_graph: false\n"
                 "  liger: false\n"
                 "  made_on: host\n"
                 "  loop: plain\n"));
    free(text);
}

static size_t section_of(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot ? (size_t)(dot - path + 1) : 0;
}

/* A written spec opens a section where its first key is: one that came again would be there twice. */
Test(spec_write, keys_of_a_section_stand_together)
{
    for (size_t i = 0; i < plim_spec_key_count(); i++) {
        const char *path = plim_spec_key_at(i)->path;
        size_t section = section_of(path), k = i + 1;
        while (k < plim_spec_key_count() && !strncmp(plim_spec_key_at(k)->path, path, section)) k++;
        for (; k < plim_spec_key_count(); k++)
            cr_expect(strncmp(plim_spec_key_at(k)->path, path, section) != 0 || !section, "%s, %s",
                      path, plim_spec_key_at(k)->path);
    }
}
