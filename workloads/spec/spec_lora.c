/* train.lora of a whole spec: which of the model's modules its names mean. */
#include "family.h"
#include "lora_modules.h"
#include "spec_internal.h"

#include <stdio.h>
#include <string.h>

#define ALL_LINEAR "all-linear"
#define LINEAR_NAMES "linear-names"

/* Is `name` a linear module of this model? A classification's last one is none where there is no classification;
 * distilbert's head has another one for each task, OPT has its projections only where the embedding has a width of its
 * own. */
static bool has_linear(const struct plim_model_config *model, const char *name)
{
    bool projected = model->word_embed_proj_dim != model->hidden_size;
    if (model->family == PLIM_FAMILY_OPT && !projected && strncmp(name, "project_", 8) == 0)
        return false;
    bool classifies = model->task == PLIM_TASK_CLASSIFICATION;
    if (strcmp(name, classifies ? "vocab_transform" : "pre_classifier") == 0) return false;
    const struct plim_family_info *info = plim_family_info(model->family);
    if (!classifies && info->classifier && strcmp(name, info->classifier) == 0) return false;
    const char *const *linears = info->linears;
    while (*linears && strcmp(*linears, name) != 0) linears++;
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

/* Has no layer an MLP, but experts? Then its linears' names are none. */
static bool has_experts_alone(const struct plim_model_config *model)
{
    return model->family == PLIM_FAMILY_QWEN3_MOE && model->sparse_step == 1;
}

static bool is_of_mlp(const char *name)
{
    return !strcmp(name, "gate_proj") || !strcmp(name, "up_proj") || !strcmp(name, "down_proj");
}

/* Spells out all-linear and linear-names, which may stand among names. */
static void take_all_linear(struct plim_lora *lora, const struct plim_model_config *model)
{
    char given[PLIM_MODULES_TEXT], name[PLIM_MODULE_NAME];
    if (!plim_modules_has(lora->targets, ALL_LINEAR) && !plim_modules_has(lora->targets, LINEAR_NAMES)) return;
    snprintf(given, sizeof(given), "%s", lora->targets);
    lora->targets[0] = '\0';
    for (const char *const *linears = plim_family_info(model->family)->linears; *linears; linears++)
        if (!has_experts_alone(model) || !is_of_mlp(*linears))
            take_targets(lora, model, (const char *const[]){*linears, NULL});
    for (const char *at = given; plim_modules_next(&at, name);) {
        bool is_new = strcmp(name, ALL_LINEAR) && strcmp(name, LINEAR_NAMES) && !plim_modules_has(lora->targets, name);
        if (is_new && !plim_modules_add(lora->targets, name)) return;
    }
}

/* Is an embedding or a head called so? */
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
    for (int family = 0; family < PLIM_FAMILY_COUNT; family++)
        for (const char *const *linears = plim_family_info((enum plim_family)family)->linears; *linears; linears++)
            if (!strcmp(*linears, name)) return true;
    return false;
}

static enum plim_status refuse_target(const struct plim_model_config *model, const char *target, struct plim_error *err)
{
    char known[256] = "";
    size_t used = 0;
    const char *const *linears = plim_family_info(model->family)->linears;
    for (; *linears && used < sizeof(known); linears++)
        if (has_linear(model, *linears))
            used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", used ? ", " : "", *linears);
    return plim_fail(err, PLIM_SPEC, "train.lora.targets has '%s', expected linear modules of %s: %s", target,
                     plim_family_names[model->family], known);
}

/* The names of targets, one of which at least is one of the model's: those of other families are left out, as they
 * match nothing, and others are refused. What an expression matches is seen where the model is. */
static enum plim_status check_targets(struct plim_spec *spec, struct plim_error *err)
{
    char given[PLIM_MODULES_TEXT], name[PLIM_MODULE_NAME], strange[PLIM_MODULE_NAME] = "";
    struct plim_lora *lora = &spec->lora;
    if (plim_modules_is_regex(lora->targets)) return PLIM_OK;
    snprintf(given, sizeof(given), "%s", lora->targets);
    lora->targets[0] = '\0';
    for (const char *at = given; plim_modules_next(&at, name);) {
        const char *leaf = plim_module_leaf(name);
        bool is_here = has_linear(&spec->model, leaf) || is_beside_blocks(leaf);
        if (!is_here && !is_of_some_family(leaf)) return refuse_target(&spec->model, name, err);
        if (!is_here && !*strange) snprintf(strange, sizeof(strange), "%s", name);
        if (is_here && !plim_modules_add(lora->targets, name)) break;
    }
    return *lora->targets ? PLIM_OK : refuse_target(&spec->model, strange, err);
}

/* The names by which peft 0.21 adapts the experts' stacked weights and the router, where transformers stacked them when
 * it loaded (_MOE_TARGET_MODULE_MAPPING in utils/transformers_weight_conversion.py); NULL: not of this family. */
static const char *const *names_of_experts(enum plim_family family)
{
    static const char *const mixtral[] = {ALL_LINEAR, "gate", "w1", "w2", "w3", NULL},
                      *const qwen[] = {ALL_LINEAR, "gate", "gate_proj", "up_proj", "down_proj", NULL};
    return family == PLIM_FAMILY_MIXTRAL ? mixtral : family == PLIM_FAMILY_QWEN3_MOE ? qwen : NULL;
}

static enum plim_status check_expert_targets(const struct plim_spec *spec, struct plim_error *err)
{
    const char *const *names = names_of_experts(spec->model.family);
    const char *family = plim_family_names[spec->model.family];
    char name[PLIM_MODULE_NAME];
    if (names && plim_modules_is_regex(spec->lora.targets))
        return plim_fail(err, PLIM_SPEC,
                         "train.lora.targets has a regular expression, which peft reads otherwise beside the experts "
                         "of %s, expected names of modules, as q_proj",
                         family);
    for (const char *at = spec->lora.targets; names && plim_modules_next(&at, name);)
        for (const char *const *of = names; *of; of++)
            if (strcmp(plim_module_leaf(name), *of) == 0)
                return plim_fail(err, PLIM_SPEC,
                                 "train.lora.targets has '%s', by which peft adapts the experts' stacked weights of "
                                 "%s%s: that is not known here, expected modules of attention, as q_proj (plimsoll "
                                 "exec runs any training program)",
                                 *of, family,
                                 spec->lora.dropout > 0 ? ", which it refuses beside train.lora.dropout" : "");
    return PLIM_OK;
}

/* The family's default targets, all-linear spelled out, unknown ones refused. */
enum plim_status plim_spec_resolve_lora(struct plim_spec *spec, struct plim_error *err)
{
    const struct plim_family_info *info = plim_family_info(spec->model.family);
    struct plim_lora *lora = &spec->lora;
    if (lora->r == 0) {
        *lora = (struct plim_lora){0};
        return PLIM_OK;
    }
    enum plim_status st = check_expert_targets(spec, err);
    if (st) return st;
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
    take_all_linear(lora, &spec->model);
    if (!*lora->targets)
        take_targets(lora, &spec->model, info->lora_default);
    if (!*lora->targets)
        return plim_fail(
            err, PLIM_SPEC,
            "train.lora has no targets and peft no default for %s, expected module names",
            plim_family_names[spec->model.family]);
    return check_targets(spec, err);
}
