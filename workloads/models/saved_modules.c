/* Modules beside the blocks that are trained in full beside adapters: peft 0.21.2's modules_to_save
 * (set_additional_trainable_modules() in utils/other.py) deep-copies each, freezes the original and trains the copy,
 * which does what the original did. */
#include "model.h"
#include "workloads/spec/lora_modules.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void refuse(struct engine *e, struct decoder *m, const char *name)
{
    decoder_refuse(e, m, "train.lora.modules_to_save has %.80s, which is not known here", name);
}

/* Parameter.__deepcopy__(), a clone; rebinds *x, which may be NULL. */
static void copy_parameter(struct engine *e, struct decoder *m, struct saved_module *saved, int i, struct tensor **x)
{
    if (!*x || e->halted) return;
    struct tensor *copy = tensor_keep(op_detached_clone(e, *x));
    nn_adopt(e, &m->parameters, copy);
    m->replaced_elements += tensor_elements(*x);
    saved->original[i] = *x;
    saved->copy[i] = *x = copy;
}

/* Where the module's weight and its bias stand; false: a module of a kind that is not known here. */
static bool find_parameters(struct decoder *m, const struct module *module, struct tensor **found[2])
{
    void *place = (char *)m + module->offset;
    struct norm *norm = place;
    struct linear *linear = place;
    found[0] = place;
    found[1] = NULL;
    switch (module->kind) {
    case MODULE_WEIGHT: return found[0] == &m->embedding;
    case MODULE_NORM: found[0] = &norm->weight, found[1] = &norm->bias; return true;
    case MODULE_LINEAR: found[0] = &linear->weight, found[1] = &linear->bias; return !linear->quantized.codes;
    case MODULE_HEAD: found[1] = &m->head_bias; return m->config->task == PLIM_TASK_CAUSAL_LM;
    case MODULE_CLASSIFIER: found[1] = &m->head_bias; return true;
    default: return false;
    }
}

static void save(struct engine *e, struct decoder *m, const struct module *module, const char *name)
{
    struct tensor **parameters[2];
    struct saved_module *saved = &m->saved[m->saved_count];
    bool is_head = module->kind == MODULE_HEAD, has_room = m->saved_count < sizeof(m->saved) / sizeof(m->saved[0]);
    if (!has_room || !find_parameters(m, module, parameters)) {
        refuse(e, m, name);
        return;
    }
    *saved = (struct saved_module){.is_tied = is_head && m->head == decoder_base_embedding(m)};
    m->saved_count++;
    copy_parameter(e, m, saved, 0, parameters[0]);
    if (parameters[0] == &m->embedding && m->embedding_scale) m->saved_scale = nn_deep_copy(e, m->embedding_scale);
    if (parameters[1]) copy_parameter(e, m, saved, 1, parameters[1]);
}

/* Is it the last or the first linear of a classification's head, all of which is copied where a module of both is saved
 * (roberta's classifier)? */
static bool is_of_classifier(const struct decoder *m, const struct module *module)
{
    bool is_linear = module->kind == MODULE_CLASSIFIER || module->offset == offsetof(struct decoder, head_dense);
    return is_linear && m->config->task == PLIM_TASK_CLASSIFICATION;
}

/* By its own name or that of the classifier that it is a part of */
static bool is_saved(const struct decoder *m, const struct module *module, const char *name)
{
    char parent[MODULE_NAME_MAX];
    if (plim_lora_saves(&m->setting->lora, name)) return true;
    snprintf(parent, sizeof(parent), "%s", name);
    char *dot = strrchr(parent, '.');
    if (!dot || !is_of_classifier(m, module)) return false;
    *dot = '\0';
    return plim_lora_saves(&m->setting->lora, parent);
}

/* What a module is a part of, and, where it is one of a block, the module itself */
static void refuse_parents(struct engine *e, struct decoder *m, const struct module *module, bool is_of_block)
{
    char name[MODULE_NAME_MAX];
    module_full_name(m, module, 0, name);
    if (is_of_block && plim_lora_saves(&m->setting->lora, name)) refuse(e, m, name);
    if (is_of_classifier(m, module)) return;
    for (char *dot = strrchr(name, '.'); dot && !e->halted; dot = strrchr(name, '.')) {
        *dot = '\0';
        if (plim_lora_saves(&m->setting->lora, name)) refuse(e, m, name);
    }
}

/* Whole blocks, parts of them, and modules of modules beside them are not known here. */
static void refuse_others(struct engine *e, struct decoder *m)
{
    for (const struct module *at = decoder_block_modules(m->config->family); at->path; at++)
        refuse_parents(e, m, at, true);
    for (const struct module *at = decoder_modules(m->config->family); at->path; at++)
        if (module_is_there(m, at, m)) refuse_parents(e, m, at, false);
}

void decoder_sort_trained(struct engine *e, struct decoder *m)
{
    struct parameters *p = &m->parameters;
    struct tensor **states = calloc(decoder_states(m, NULL), sizeof(*states));
    if (!states) {
        engine_fail(e, PLIM_NOMEM);
        return;
    }
    size_t count = decoder_states(m, states), trained = 0;
    for (size_t i = 0; i < count; i++)
        if (states[i]->is_parameter && states[i]->requires_grad) p->list[trained++] = states[i];
    free(states);
}

/* Is there a name by which peft knows tied modules (EMBEDDING_LAYER_NAMES)? The embedding is saved then, and the head
 * has its copy's weight (_add_modules_to_save_to_tie). */
static bool names_tied(const char *modules)
{
    char name[PLIM_MODULE_NAME];
    while (plim_modules_next(&modules, name))
        if (!strcmp(plim_module_leaf(name), "embed_tokens") || !strcmp(plim_module_leaf(name), "lm_head")) return true;
    return false;
}

void decoder_save_modules(struct engine *e, struct decoder *m)
{
    const struct plim_lora *lora = &m->setting->lora;
    bool ties = lora->ties && m->head == m->embedding && names_tied(lora->saved);
    char name[MODULE_NAME_MAX];
    if (!*lora->saved || e->halted) return;
    refuse_others(e, m);
    const struct module *modules = decoder_modules(m->config->family);
    for (const struct module *at = modules; at->path && !e->halted; at++) {
        if (at->kind == MODULE_BLOCKS || !module_is_there(m, at, m) || (ties && at->kind == MODULE_HEAD)) continue;
        module_full_name(m, at, 0, name);
        bool is_embedding = at->kind == MODULE_WEIGHT && at->offset == offsetof(struct decoder, embedding);
        if (is_saved(m, at, name) || (is_embedding && ties)) save(e, m, at, name);
    }
    if (ties) m->head = m->embedding;
    if (!e->halted) decoder_sort_trained(e, m);
}
