/* Modules outside of the blocks that are trained in full in addition to adapters: peft 0.21.2's modules_to_save
 * (set_additional_trainable_modules() in utils/other.py) deep-copies each, freezes the original and trains the copy,
 * which replaces the original. */
#include "autotune/base/text.h"
#include "model.h"
#include "workloads/spec/lora_modules.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void refuse(struct engine *e, struct decoder *m, const char *name)
{
    decoder_refuse(e, m, "train.lora.modules_to_save has %.80s, which is not supported", name);
}

/* Parameter.__deepcopy__(), a clone; rebinds *x, which may be NULL, to the copy. */
static void copy_parameter(struct engine *e, struct decoder *m, struct saved_module *saved, int i, struct tensor **x)
{
    if (!*x || e->halted) return;
    struct tensor *copy = tensor_keep(op_detached_clone(e, *x));
    nn_adopt(e, &m->parameters, copy);
    if (!e->halted) copy->odd_name = ((*x)->a.ndim > 1) == (*x)->odd_name; /* optimizer_decays() */
    m->replaced_elements += tensor_elements(*x);
    saved->original[i] = *x;
    saved->copy[i] = *x = copy;
}

/* Stores the addresses of the weight and the bias of the module at `place`. Returns false if this kind of module is not
 * supported. */
static bool find_parameters(struct decoder *m, const struct module *module, void *place, struct tensor **found[2])
{
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

/* Saves a module: replaces its parameters by copies. `owner`: the model, or a part of its tower. */
static void save(struct engine *e, struct decoder *m, const struct module *module, void *owner, const char *name)
{
    struct tensor **parameters[2];
    struct saved_module *saved = &m->saved[m->saved_count];
    bool is_head = module->kind == MODULE_HEAD, has_room = m->saved_count < sizeof(m->saved) / sizeof(m->saved[0]);
    if (!has_room || !find_parameters(m, module, (char *)owner + module->offset, parameters)) {
        refuse(e, m, name);
        return;
    }
    *saved = (struct saved_module){.is_tied = is_head && m->head == decoder_base_embedding(m)};
    m->saved_count++;
    copy_parameter(e, m, saved, 0, parameters[0]);
    if (parameters[0] == &m->embedding && m->embedding_scale) m->saved_scale = nn_deep_copy(e, m->embedding_scale);
    if (parameters[1]) copy_parameter(e, m, saved, 1, parameters[1]);
    saved->last = saved->original[1] ? saved->original[1] : saved->original[0];
}

/* True if the module is the first or the last linear of a classification head. If the module that contains both is
 * saved (roberta's classifier), all of it is copied. */
static bool is_of_classifier(const struct decoder *m, const struct module *module)
{
    bool is_linear = module->kind == MODULE_CLASSIFIER || module->offset == offsetof(struct decoder, head_dense);
    return is_linear && m->config->task == PLIM_TASK_CLASSIFICATION;
}

/* True if the module is saved, by its own name or that of the classifier that contains it. */
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

/* Refuses modules that contain `name`, if they are to be saved. Shortens `name`. */
static void refuse_around(struct engine *e, struct decoder *m, char *name)
{
    for (char *dot = strrchr(name, '.'); dot && !e->halted; dot = strrchr(name, '.')) {
        *dot = '\0';
        if (plim_lora_saves(&m->setting->lora, name)) refuse(e, m, name);
    }
}

/* Refuses the modules that contain this one, and, if it is part of a block, the module itself. */
static void refuse_parents(struct engine *e, struct decoder *m, const struct module *module, bool is_of_block)
{
    char name[MODULE_NAME_MAX];
    module_full_name(m, module, 0, name);
    if (is_of_block && plim_lora_saves(&m->setting->lora, name)) refuse(e, m, name);
    if (!is_of_classifier(m, module)) refuse_around(e, m, name);
}

/* Refuses blocks, their parts, and containers of modules outside of them, which are not supported. */
static void refuse_others(struct engine *e, struct decoder *m)
{
    for (const struct module *at = decoder_block_modules(m->config->family); at->path; at++)
        refuse_parents(e, m, at, true);
    for (const struct module *at = decoder_modules(m->config->family); at->path; at++)
        if (module_exists(m, at, m)) refuse_parents(e, m, at, false);
}

/* Saves all modules of a projector, whose copy comes after the whole original in the order of modules. */
static void save_projector(struct engine *e, struct decoder *m, const struct vision_part *part, const char *name)
{
    size_t first = m->saved_count;
    for (const struct module *at = part->parts->modules; at->path && !e->halted; at++)
        save(e, m, at, part->owner, name);
    for (size_t i = first; i < m->saved_count; i++) m->saved[i].last = m->saved[m->saved_count - 1].last;
}

/* Refuses a part of a tower, the modules in it, and those that contain it. */
static void refuse_within(struct engine *e, struct decoder *m, const struct vision_part *part,
                          const char *name)
{
    char inner[2 * MODULE_NAME_MAX];
    for (const struct module *at = part->parts->modules; at->path && !e->halted; at++) {
        snprintf(inner, sizeof(inner), "%s.%s", name, at->path);
        if (plim_lora_saves(&m->setting->lora, inner)) refuse(e, m, inner);
        refuse_around(e, m, inner);
    }
}

/* Saves the projectors of llava and internvl; other parts of towers are not supported. */
static void save_of_tower(struct engine *e, struct decoder *m)
{
    char name[MODULE_NAME_MAX];
    struct vision_part part;
    for (size_t i = 0; vision_part(m, i, &part) && !e->halted; i++) {
        bool is_known = part.parts->of == VISION_MERGER && m->config->vision.has_class;
        vision_part_name(&part, name);
        if (is_known && plim_lora_saves(&m->setting->lora, name)) save_projector(e, m, &part, name);
        else refuse_within(e, m, &part, name);
    }
}

/* For a model with a tower, refuses all other modules, such as the one that embeds patches. */
static void refuse_unknown(struct engine *e, struct decoder *m)
{
    char wanted[PLIM_MODULE_NAME], name[MODULE_NAME_MAX];
    if (!plim_vision_exists(&m->config->vision)) return;
    for (const char *next = m->setting->lora.saved; plim_modules_next(&next, wanted) && !e->halted;) {
        struct vision_part part;
        bool is_known = false;
        for (const struct module *at = decoder_modules(m->config->family); at->path && !is_known; at++) {
            module_full_name(m, at, 0, name);
            is_known = plim_text_ends_with(name, wanted);
        }
        for (size_t i = 0; vision_part(m, i, &part) && !is_known; i++) {
            vision_part_name(&part, name);
            is_known = plim_text_ends_with(name, wanted);
        }
        if (!is_known) refuse(e, m, wanted);
    }
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

/* True if there is a name by which peft recognises tied modules (EMBEDDING_LAYER_NAMES). Then the embedding is saved,
 * and the head has the weight of its copy (_add_modules_to_save_to_tie). */
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
    save_of_tower(e, m);
    refuse_unknown(e, m);
    for (const struct module *at = modules; at->path && !e->halted; at++) {
        if (at->kind == MODULE_BLOCKS || !module_exists(m, at, m) || (ties && at->kind == MODULE_HEAD)) continue;
        module_full_name(m, at, 0, name);
        bool is_embedding = at->kind == MODULE_WEIGHT && at->offset == offsetof(struct decoder, embedding);
        if (is_saved(m, at, name) || (is_embedding && ties)) save(e, m, at, m, name);
    }
    if (ties) m->head = m->embedding;
    if (!e->halted) decoder_sort_trained(e, m);
}
