/* Casts by trainers after from_pretrained(): peft's prepare_model_for_kbit_training(), and axolotl's
 * _convert_embedding_modules_dtype() (loaders/model.py of axolotl 0.19.0). */
#include "model.h"
#include "devices/allocator/allocator.h"
#include <stdio.h>
#include <string.h>

/* get_linear_embedding_layers(). It does not have the current name of gpt_neox's head, lm_head. */
static const char *const *embedding_names(enum plim_family family)
{
    static const char *const neox[] = {"embed_in", NULL}, *const others[] = {"embed_tokens", "lm_head", NULL};
    return family == PLIM_FAMILY_GPT_NEOX ? neox : others;
}

/* True if a module is cast. Routers are only cast to fp32 (is_up), not back. */
static bool is_cast(enum plim_family family, const char *name, bool is_up)
{
    size_t length = strlen(name);
    if (strstr(name, "norm")) return true;
    if (is_up && length > 5 && !strcmp(name + length - 5, ".gate")) return true;
    for (const char *const *embedding = embedding_names(family); *embedding; embedding++)
        if (strstr(name, *embedding)) return true;
    return false;
}

/* module.to(dtype) of a module in `owner`. */
static void cast_module(struct engine *e, struct decoder *m, const struct module *module, void *owner,
                        enum plim_dtype dtype)
{
    void *place = (char *)owner + module->offset;
    const struct norm *norm = place;
    struct tensor *cast[2] = {NULL, NULL};
    if (!module_exists(m, module, owner)) return;
    if (module->kind == MODULE_NORM) cast[0] = norm->weight, cast[1] = norm->bias;
    if (module->kind == MODULE_WEIGHT) cast[0] = *(struct tensor **)place;
    if (module->kind == MODULE_HEAD) cast[0] = m->head, cast[1] = m->head_bias;
    for (int i = 0; i < 2; i++)
        if (cast[i]) nn_cast(e, cast[i], dtype);
    bool has_scale = module->kind == MODULE_WEIGHT && cast[0] == m->embedding && m->embedding_scale;
    if (has_scale) nn_cast(e, m->embedding_scale, dtype); /* a buffer of the module */
}

static void cast_modules(struct engine *e, struct decoder *m, const struct module *modules, int64_t layer, void *owner,
                         enum plim_dtype dtype, bool is_up)
{
    char name[MODULE_NAME_MAX];
    for (const struct module *at = modules; at->path && !e->halted; at++) {
        int64_t layers[2] = {0, 0};
        if (at->kind == MODULE_BLOCKS) module_blocks(m, at, layers);
        for (int64_t i = layers[0]; i < layers[1]; i++)
            cast_modules(e, m, decoder_block_modules(m->config->family), i, &m->layers[i], dtype, is_up);
        if (at->kind == MODULE_BLOCKS) continue;
        module_full_name(m, at, layer, name);
        if (is_cast(m->config->family, name, is_up)) cast_module(e, m, at, owner, dtype);
    }
}

/* Casts the tower's modules, which come before the text's. */
static void cast_tower(struct engine *e, struct decoder *m, enum plim_dtype dtype, bool is_up)
{
    char part_name[MODULE_NAME_MAX], name[2 * MODULE_NAME_MAX];
    struct vision_part part;
    for (size_t i = 0; vision_part(m, i, &part) && !e->halted; i++) {
        struct norm *last = &m->vision.norm;
        bool is_behind = part.parts->of == VISION_MERGER && last->weight;
        if (is_behind) nn_cast(e, last->weight, dtype);
        if (is_behind) nn_cast(e, last->bias, dtype);
        vision_part_name(&part, part_name);
        for (const struct module *at = part.parts->modules; at->path && !e->halted; at++) {
            snprintf(name, sizeof(name), "%s.%s", part_name, at->path);
            if (is_cast(m->config->family, name, is_up)) cast_module(e, m, at, part.owner, dtype);
        }
    }
}

static void cast_model(struct engine *e, struct decoder *m, enum plim_dtype dtype, bool is_up)
{
    cast_tower(e, m, dtype, is_up);
    cast_modules(e, m, decoder_modules(m->config->family), -1, m, dtype, is_up);
}

void decoder_widen(struct engine *e, struct decoder *m)
{
    struct parameters *p = &m->parameters;
    for (size_t i = 0; i < p->count && !e->halted; i++) {
        const struct decoder_layer *l = decoder_layer_of(m, p->list[i]);
        struct tensor *own = l && p->list[i] == l->router ? l->router_correction : NULL; /* comes before it */
        if (own && own->is_parameter) nn_cast(e, own, PLIM_F32);
        if (!p->list[i]->is_codes) nn_cast(e, p->list[i], PLIM_F32);
    }
    p->dtype = PLIM_F32;
}

/* prepare_model_for_kbit_training(), followed by torch.cuda.empty_cache(). */
static void prepare(struct engine *e, struct decoder *m)
{
    enum plim_dtype before = m->parameters.dtype;
    decoder_widen(e, m);
    m->parameters.dtype = before;
    if (!e->halted) plim_allocator_empty_cache(e->allocator);
}

void decoder_upcast(struct engine *e, struct decoder *m)
{
    const struct plim_train_setting *s = m->setting;
    if (s->upcast != PLIM_UPCAST_NONE) cast_model(e, m, PLIM_F32, true);
    if (s->quantization.type && s->quantization.prepared && !e->halted) prepare(e, m);
    if (s->upcast == PLIM_UPCAST_UNDONE) cast_model(e, m, m->parameters.dtype, false);
}
