/* Resolves train.lora: which of the model's modules its names match. */
#include "family.h"
#include "lora_modules.h"
#include "spec_internal.h"

#include <stdio.h>
#include <string.h>

#define ALL_LINEAR "all-linear"
#define LINEAR_NAMES "linear-names"
#define TEXT_LINEARS "text-linears" /* without those of a vision tower */
#define NO_TARGETS "none"

/* True if a module has this name, or a name of several parts (attn.proj) that ends with it */
static bool is_called(const char *name, const char *linear)
{
    size_t whole = strlen(name), part = strlen(linear);
    bool ends = strchr(linear, '.') && whole > part && name[whole - part - 1] == '.';
    return !strcmp(ends ? name + whole - part : name, linear);
}

/* True if `name` is a linear module of this model. A classification's last linear exists only with that task;
 * distilbert's head has another one for each task; OPT has projections only if the embedding has another width. */
static bool has_linear(const struct plim_model_config *model, const char *name)
{
    bool projected = model->word_embed_proj_dim != model->hidden_size;
    if (model->family == PLIM_FAMILY_OPT && !projected && strncmp(name, "project_", 8) == 0)
        return false;
    if (!strcmp(name, "vocab_transform") && model->task != PLIM_TASK_MASKED_LM) return false;
    if (!strcmp(name, "pre_classifier") && model->task != PLIM_TASK_CLASSIFICATION) return false;
    const char *classifier = plim_model_classifier(model);
    if (classifier && !strcmp(name, classifier)) return true;
    const char *const *linears = plim_family_info(model->family)->linears;
    while (*linears && !is_called(name, *linears)) linears++;
    return *linears != NULL;
}

static void take_targets(struct plim_lora *lora, const struct plim_model_config *model,
                         const char *const *names)
{
    for (; *names; names++)
        if (has_linear(model, *names) && !plim_modules_has(lora->targets, *names) &&
            !plim_modules_add(lora->targets, *names))
            return;
}

/* True if every layer has experts and none an MLP, whose linears' names then match nothing */
static bool has_experts_alone(const struct plim_model_config *model)
{
    enum plim_family family = model->family;
    return (family == PLIM_FAMILY_QWEN3_MOE || family == PLIM_FAMILY_QWEN3_VL_MOE) && model->sparse_step == 1;
}

static bool is_of_tower(enum plim_family family, const char *linear)
{
    bool has_out_proj = family == PLIM_FAMILY_GEMMA3 || family == PLIM_FAMILY_LLAVA; /* qwen3_5's belongs to the text */
    if (has_out_proj && !strcmp(linear, "out_proj")) return true;
    static const char *const gemma4s[] = {"linear", "input_proj", "embedding_projection", "input_proj_linear",
                                          "relative_k_proj", "output_proj"};
    for (size_t i = 0; i < sizeof(gemma4s) / sizeof(gemma4s[0]); i++)
        if (family == PLIM_FAMILY_GEMMA4 && !strcmp(linear, gemma4s[i])) return true;
    bool is_unified = family == PLIM_FAMILY_GEMMA4_UNIFIED;
    if (is_unified && (!strcmp(linear, "patch_dense") || !strcmp(linear, "embedding_projection"))) return true;
    bool is_plain = !strncmp(linear, "linear_", 7) || !strncmp(linear, "fc", 2) || !strncmp(linear, "mlp.", 4) ||
                    !strcmp(linear, "merging_layer") || !strcmp(linear, "projection_layer");
    return is_plain || !strcmp(linear, "qkv") || !strcmp(linear, "attn.proj");
}

static bool is_of_mlp(const char *name)
{
    return !strcmp(name, "gate_proj") || !strcmp(name, "up_proj") || !strcmp(name, "down_proj");
}

/* Modules of gemma4's towers with the names of its text's linears; each wraps a linear that clamps */
#define CLIPPED ".*_tower\\..*\\.(q|k|v|o|gate|up|down)_proj"

static void exclude_towers(struct plim_lora *lora, const struct plim_model_config *model)
{
    const char *towers = model->family == PLIM_FAMILY_GEMMA4 ? ".*(vision_tower|audio_tower).*" : ".*vision_tower.*";
    snprintf(lora->exclude, sizeof(lora->exclude), PLIM_MODULES_REGEX "%s", towers);
}

/* Replaces all-linear, linear-names and text-linears, alone or among names, by names. */
static void take_all_linear(struct plim_lora *lora, const struct plim_model_config *model)
{
    char given[PLIM_MODULES_TEXT], name[PLIM_MODULE_NAME];
    bool text_alone = plim_modules_has(lora->targets, TEXT_LINEARS);
    bool all = plim_modules_has(lora->targets, ALL_LINEAR) || plim_modules_has(lora->targets, LINEAR_NAMES);
    if (!all && !text_alone) return;
    bool shares_names = model->family == PLIM_FAMILY_GEMMA3 || /* of the tower's and the text's linears */
                        model->family == PLIM_FAMILY_MISTRAL3 || model->family == PLIM_FAMILY_LLAVA ||
                        model->family == PLIM_FAMILY_INTERNVL || model->family == PLIM_FAMILY_GEMMA4;
    if (text_alone && shares_names && !*lora->exclude) exclude_towers(lora, model);
    if (all && model->family == PLIM_FAMILY_GEMMA4 && !*lora->exclude) /* modules that wrap linears */
        snprintf(lora->exclude, sizeof(lora->exclude), PLIM_MODULES_REGEX CLIPPED);
    bool tower_has_same = model->family == PLIM_FAMILY_QWEN2_5_VL; /* the same names */
    if (!strcmp(lora->targets, TEXT_LINEARS) && tower_has_same) {
        snprintf(lora->targets, sizeof(lora->targets), PLIM_MODULES_REGEX ".*\\.language_model\\..*_proj");
        return;
    }
    snprintf(given, sizeof(given), "%s", lora->targets);
    lora->targets[0] = '\0';
    for (const char *const *linears = plim_family_info(model->family)->linears; *linears; linears++)
        if ((!has_experts_alone(model) || !is_of_mlp(*linears)) && (all || !is_of_tower(model->family, *linears)))
            take_targets(lora, model, (const char *const[]){*linears, NULL});
    take_targets(lora, model, (const char *const[]){plim_model_classifier(model), NULL});
    for (const char *at = given; plim_modules_next(&at, name);) {
        bool is_word = !strcmp(name, ALL_LINEAR) || !strcmp(name, LINEAR_NAMES) || !strcmp(name, TEXT_LINEARS);
        bool is_new = !is_word && !plim_modules_has(lora->targets, name);
        if (is_new && !plim_modules_add(lora->targets, name)) return;
    }
}

/* True if an embedding or a head has this name */
static bool is_beside_blocks(const char *name)
{
    static const char *const beside_blocks[] = {"embed_tokens", "wte",     "embed_in", "word_embeddings",
                                                "tok_embeddings", "lm_head", "embed_out"};
    for (size_t i = 0; i < sizeof(beside_blocks) / sizeof(beside_blocks[0]); i++)
        if (!strcmp(name, beside_blocks[i])) return true;
    return false;
}

static bool is_of_some_family(const char *name)
{
    static const char *const classifiers[] = {"classifier", "score", "qa_outputs"};
    for (size_t i = 0; i < sizeof(classifiers) / sizeof(classifiers[0]); i++)
        if (!strcmp(name, classifiers[i])) return true;
    for (int family = 0; family < PLIM_FAMILY_COUNT; family++)
        for (const char *const *linears = plim_family_info((enum plim_family)family)->linears; *linears; linears++)
            if (!strcmp(*linears, name)) return true;
    return false;
}

static enum plim_status refuse_target(const struct plim_model_config *model, const char *target, struct plim_error *err)
{
    char known[256] = "";
    size_t used = 0;
    const char *const *linears = plim_family_info(model->family)->linears, *classifier = plim_model_classifier(model);
    for (; *linears && used < sizeof(known); linears++)
        if (has_linear(model, *linears))
            used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", used ? ", " : "", *linears);
    if (classifier && used < sizeof(known)) snprintf(known + used, sizeof(known) - used, ", %s", classifier);
    return plim_fail(err, PLIM_SPEC, "train.lora.targets has '%s', expected linear modules of %s: %s", target,
                     plim_family_names[model->family], known);
}

/* Checks the names of targets: at least one must be a module of the model; those of other families are dropped, because
 * they match nothing; unknown names are refused. Expressions are matched when the model is built. */
static enum plim_status check_targets(struct plim_spec *spec, struct plim_error *err)
{
    char given[PLIM_MODULES_TEXT], name[PLIM_MODULE_NAME], strange[PLIM_MODULE_NAME] = "";
    struct plim_lora *lora = &spec->lora;
    if (plim_modules_is_regex(lora->targets)) return PLIM_OK;
    if (!strcmp(lora->targets, NO_TARGETS) && *lora->parameters) return PLIM_OK;
    snprintf(given, sizeof(given), "%s", lora->targets);
    lora->targets[0] = '\0';
    for (const char *at = given; plim_modules_next(&at, name);) {
        const char *leaf = plim_module_leaf(name);
        bool is_here = has_linear(&spec->model, name) || has_linear(&spec->model, leaf) || is_beside_blocks(leaf);
        if (!is_here && !is_of_some_family(leaf)) return refuse_target(&spec->model, name, err);
        if (!is_here && !*strange) snprintf(strange, sizeof(strange), "%s", name);
        if (is_here && !plim_modules_add(lora->targets, name)) break;
    }
    return *lora->targets ? PLIM_OK : refuse_target(&spec->model, strange, err);
}

/* --- parameters ------------------------------------------------------------------------------- */

/* peft 0.21's names for the experts' stacked weights and the router, if transformers stacked them while loading
 * (_MOE_TARGET_MODULE_MAPPING in utils/transformers_weight_conversion.py). */
struct stacked {
    const char *name, *parameter;
};

static const struct stacked *stacked_of(enum plim_family family)
{
    static const struct stacked mixtral[] = {{"gate", "gate.weight"},
                                             {"w1", "gate_up_proj"},
                                             {"w3", "gate_up_proj"},
                                             {"w2", "down_proj"},
                                             {NULL, NULL}},
                                qwen[] = {{"gate", "gate.weight"},
                                          {"gate_proj", "gate_up_proj"},
                                          {"up_proj", "gate_up_proj"},
                                          {"down_proj", "down_proj"},
                                          {NULL, NULL}};
    bool is_as_qwen = family == PLIM_FAMILY_QWEN3_MOE || family == PLIM_FAMILY_QWEN3_NEXT ||
                      family == PLIM_FAMILY_OLMOE || family == PLIM_FAMILY_GLM4_MOE ||
                      family == PLIM_FAMILY_DEEPSEEK_V2 || family == PLIM_FAMILY_DEEPSEEK_V3 ||
                      family == PLIM_FAMILY_GLM4_MOE_LITE || family == PLIM_FAMILY_ERNIE4_5_MOE ||
                      family == PLIM_FAMILY_AFMOE;
    return family == PLIM_FAMILY_MIXTRAL || family == PLIM_FAMILY_MINIMAX_M2 ? mixtral : is_as_qwen ? qwen : NULL;
}

static enum plim_status refuse_length(struct plim_error *err)
{
    return plim_fail(err, PLIM_SPEC, "train.lora has more names or ranks than there is room for, expected fewer");
}

/* all-linear includes them, by their names before stacking. */
static bool add_stacked(struct plim_lora *lora, const struct stacked *stacked)
{
    for (; stacked->name; stacked++)
        if (!plim_modules_has(lora->targets, stacked->name) && !plim_modules_add(lora->targets, stacked->name))
            return false;
    return true;
}

/* gate_up_proj replaces two linears, whose ranks add up (_MOE_FUSED_TARGETS). `halves`: which of them are targets */
static enum plim_status join_ranks(struct plim_lora *lora, const char *const halves[2], struct plim_error *err)
{
    if (!halves[0] && !halves[1]) return PLIM_OK;
    if (!halves[0] || !halves[1])
        return plim_fail(err, PLIM_SPEC,
                         "train.lora.targets has '%s' alone, which peft refuses, as it is one half of the experts' "
                         "gate_up_proj, expected both halves", halves[0] ? halves[0] : halves[1]);
    if (lora->rank_count == PLIM_LORA_RANKS) return refuse_length(err);
    struct plim_lora_rank *rank = &lora->ranks[lora->rank_count++];
    *rank = (struct plim_lora_rank){.r = 2 * lora->r};
    snprintf(rank->regex, sizeof(rank->regex), ".*\\.gate_up_proj");
    return PLIM_OK;
}

/* Turns targets that name the experts' stacked weights or the router into parameters (_convert_peft_config_moe()). */
static enum plim_status take_stacked(struct plim_lora *lora, const struct stacked *stacked, struct plim_error *err)
{
    char given[PLIM_MODULES_TEXT], name[PLIM_MODULE_NAME];
    const char *halves[2] = {NULL, NULL};
    snprintf(given, sizeof(given), "%s", lora->targets);
    lora->targets[0] = '\0';
    for (const char *at = given; plim_modules_next(&at, name);) {
        const struct stacked *of = stacked;
        while (of->name && strcmp(plim_module_leaf(name), of->name) != 0) of++;
        char *list = of->name ? lora->parameters : lora->targets;
        const char *added = of->name ? of->parameter : name;
        if (of->name && !strcmp(added, "gate_up_proj")) halves[of - stacked - 1] = of->name;
        if (!plim_modules_has(list, added) && !plim_modules_add(list, added)) return refuse_length(err);
    }
    if (!*lora->targets && *given) snprintf(lora->targets, sizeof(lora->targets), "%s", NO_TARGETS);
    return join_ranks(lora, halves, err);
}

/* True for a name of experts' stacked weights or of a router's matrix */
static bool is_stacked(const char *name)
{
    static const char *const matrices[] = {"gate.weight", "router.weight"};
    const char *leaf = plim_module_leaf(name);
    if (!strcmp(leaf, "gate_up_proj") || !strcmp(leaf, "down_proj")) return true;
    for (size_t i = 0; i < sizeof(matrices) / sizeof(matrices[0]); i++) {
        size_t length = strlen(name), n = strlen(matrices[i]);
        bool is_end = length == n || (length > n && name[length - n - 1] == '.');
        if (is_end && !strcmp(name + length - n, matrices[i])) return true;
    }
    return false;
}

static enum plim_status check_parameters(const struct plim_spec *spec, struct plim_error *err)
{
    const struct plim_lora *lora = &spec->lora;
    const char *family = plim_family_names[spec->model.family], *what = NULL;
    char name[PLIM_MODULE_NAME];
    if (!*lora->parameters) return PLIM_OK;
    if (plim_modules_is_regex(lora->parameters))
        return plim_fail(err, PLIM_SPEC, "train.lora.parameters is a regular expression, expected names such as "
                         "mlp.experts.down_proj");
    for (const char *at = lora->parameters; plim_modules_next(&at, name);)
        if (!is_stacked(name))
            return plim_fail(err, PLIM_SPEC, "train.lora.parameters has '%s', which is not supported, expected "
                                             "gate_up_proj or down_proj of experts, or a router's gate.weight "
                                             "(plimsoll exec runs any training program)", name);
    if (lora->dropout > 0) what = "dropout";
    if (lora->dora) what = "dora";
    if (!what || !spec->model.experts) return PLIM_OK; /* otherwise they match nothing, and cause a warning */
    return plim_fail(err, PLIM_SPEC,
                     "train.lora adapts parameters of %s (%s), which peft refuses beside train.lora.%s, expected none, "
                     "or modules of attention alone as targets", family, lora->parameters, what);
}

/* peft's _check_lora_target_modules_mamba(), of what targets became */
static enum plim_status check_mamba_targets(const struct plim_spec *spec, struct plim_error *err)
{
    const char *targets = spec->lora.targets;
    char name[PLIM_MODULE_NAME];
    enum plim_family family = spec->model.family;
    if (family != PLIM_FAMILY_FALCON_H1 && family != PLIM_FAMILY_NEMOTRON_H) return PLIM_OK;
    bool is_refused = plim_modules_is_regex(targets);
    for (const char *at = targets; !is_refused && plim_modules_next(&at, name);)
        is_refused = !strcmp(plim_module_leaf(name), "out_proj");
    return is_refused ? plim_fail(err, PLIM_SPEC,
                                  "train.lora.targets has out_proj, which peft refuses for %s and which "
                                  "all-linear and regular expressions may mean, too, expected names without it",
                                  plim_family_names[family])
                      : PLIM_OK;
}

/* Resolves the targets: the family's defaults, all-linear by names; refuses unknown names. */
enum plim_status plim_spec_resolve_lora(struct plim_spec *spec, struct plim_error *err)
{
    const struct plim_family_info *info = plim_family_info(spec->model.family);
    struct plim_lora *lora = &spec->lora;
    if (lora->r == 0) {
        *lora = (struct plim_lora){0};
        return PLIM_OK;
    }
    const struct stacked *stacked = stacked_of(spec->model.family);
    if (stacked && plim_modules_is_regex(lora->targets))
        return plim_fail(err, PLIM_SPEC,
                         "train.lora.targets has a regular expression, which peft reads otherwise beside the experts "
                         "of %s, expected names of modules, as q_proj",
                         plim_family_names[spec->model.family]);
    if (plim_modules_is_regex(lora->targets) && lora->layers.count)
        return plim_fail(err, PLIM_SPEC,
                         "train.lora.targets is a regular expression and train.lora.layers is there, too, which peft "
                         "refuses, expected the layers in the expression");
    if (plim_modules_is_regex(lora->saved))
        return plim_fail(err, PLIM_SPEC,
                         "train.lora.modules_to_save is a regular expression, expected names such as embed_tokens");
    if (plim_modules_is_regex(lora->layers_pattern))
        return plim_fail(err, PLIM_SPEC,
                         "train.lora.layers_pattern is a regular expression, expected names such as layers");
    bool takes_all = plim_modules_has(lora->targets, ALL_LINEAR);
    take_all_linear(lora, &spec->model);
    if (stacked && takes_all && !add_stacked(lora, stacked)) return refuse_length(err);
    if (!*lora->targets && info->vision && !*lora->exclude) exclude_towers(lora, &spec->model); /* of gemma4 */
    if (!*lora->targets) take_targets(lora, &spec->model, info->lora_default);
    if (!*lora->targets)
        return plim_fail(
            err, PLIM_SPEC,
            "train.lora has no targets and peft no default for %s, expected module names, or all-linear",
            plim_family_names[spec->model.family]);
    enum plim_status st = stacked ? take_stacked(lora, stacked, err) : PLIM_OK;
    if (st == PLIM_OK) st = check_parameters(spec, err);
    if (st == PLIM_OK) st = check_mamba_targets(spec, err);
    return st ? st : check_targets(spec, err);
}
