/* get_peft_model(model, LoraConfig(...)): freezes the base model and adds adapters to the selected modules. */
#include "model.h"
#include "workloads/spec/lora_modules.h"
#include <stdio.h>
#include <string.h>

/* True if adapters are supported for a module: linears and classifiers; with restrictions also the token embedding and
 * the head of a causal language model. */
static bool has_adapters(const struct decoder *m, const struct module *module, int64_t layer)
{
    const struct plim_train_setting *s = m->setting;
    bool is_embedding = layer < 0 && module->offset == offsetof(struct decoder, embedding),
         is_sharded = s->sharding == PLIM_SHARDING_FSDP || s->sharding == PLIM_SHARDING_ZERO3;
    switch (module->kind) {
    case MODULE_WEIGHT: return is_embedding && !is_sharded && !s->lora.dora && !m->config->encoder_layers;
    case MODULE_HEAD: /* not with TRL's trainers: their loss uses the head's weight alone, without an adapter */
        return m->config->task == PLIM_TASK_CAUSAL_LM && !is_sharded && !s->lora.dora && !plim_loop_is_trl(s->loop);
    default: return module->kind == MODULE_LINEAR || module->kind == MODULE_CLASSIFIER;
    }
}

/* Returns the rank that peft gives a module; 0: none. Refuses modules for which adapters are not supported. layer: -1
 * for a module outside of the blocks; prefix: precedes its name if module_full_name() does not apply; otherwise
 * NULL. */
static int64_t rank_of(struct engine *e, struct decoder *m, const struct module *module, int64_t layer,
                       const char *prefix)
{
    char name[MODULE_NAME_MAX];
    if (prefix) snprintf(name, sizeof(name), "%s.%s", prefix, module->path);
    else module_full_name(m, module, layer, name);
    int64_t rank = plim_lora_rank(&m->setting->lora, name);
    if (rank && !has_adapters(m, module, layer))
        decoder_refuse(e, m, "train.lora.targets matches %.80s, for which there are no adapters here", name);
    if (layer > 0) return rank;
    for (char *dot = strrchr(name, '.'); dot && !e->halted; dot = strrchr(name, '.')) {
        *dot = '\0';
        if (plim_lora_rank(&m->setting->lora, name))
            decoder_refuse(e, m, m->config->vision.layers
                                     ? "train.lora.targets matches %.70s, which consists of modules: peft fails then "
                                       "(text-linears leave towers out)"
                                     : "train.lora.targets matches %.80s, which consists of modules: peft fails then",
                           name);
    }
    return rank;
}

/* _move_adapter_to_device_of_base_layer: returns the type of the base's weight if it is a floating-point type; for
 * codes fp32 (int8) or the type in which they are multiplied. */
static enum plim_dtype adapter_dtype(const struct linear *l)
{
    if (l->weight->a.dtype <= PLIM_F16) return (enum plim_dtype)l->weight->a.dtype;
    return nn_is_int8(l) ? PLIM_F32 : l->quantized.compute;
}

static void add_adapter(struct engine *e, struct decoder *m, struct adapters *adapters, struct linear *l, int64_t rank)
{
    const struct plim_lora *lora = &m->setting->lora;
    enum plim_dtype before = m->parameters.dtype;
    if (adapters->count == sizeof adapters->list / sizeof *adapters->list) return;
    m->parameters.dtype = adapter_dtype(l);
    struct lora_adapter *a = &adapters->list[adapters->count++];
    bool drops = !plim_loop_disables_dropout(m->setting->loop);
    *a = (struct lora_adapter){.dropout = drops ? lora->dropout : 0,
                               .scaling = 2,
                               .weight = l->weight,
                               .bias = l->bias,
                               .conv1d = l->conv1d};
    a->a = nn_parameter(e, &m->parameters, INIT_WEIGHT, SHAPE(rank, l->in));
    a->b = nn_parameter(e, &m->parameters, INIT_ZEROS, SHAPE(l->out, rank));
    l->lora = a;
    if (lora->dora) nn_dora_create(e, &m->parameters, l);
    m->parameters.dtype = before;
}

/* Adds an adapter to the head's linear, whose weight and bias are fields of the model. */
static void adapt_head(struct engine *e, struct decoder *m, struct adapters *adapters, int64_t rank)
{
    if (m->head_lora) return;
    struct linear l = head_linear(m);
    add_adapter(e, m, adapters, &l, rank);
    m->head_lora = l.lora;
}

/* Adds a lora.Embedding, whose matrices are parameters of the module itself; the first one is initialised to zeros. */
static void adapt_embedding(struct engine *e, struct decoder *m, struct adapters *adapters, int64_t rank)
{
    struct parameters *p = &m->parameters;
    int64_t rows = tensor_size(m->embedding, 0), width = tensor_size(m->embedding, 1);
    enum plim_dtype before = p->dtype;
    p->dtype = (enum plim_dtype)m->embedding->a.dtype;
    struct lora_adapter *a = &adapters->list[adapters->count++];
    *a = (struct lora_adapter){.scaling = 2, .weight = m->embedding};
    a->a = nn_parameter(e, p, INIT_ZEROS, SHAPE(rank, rows));
    a->b = nn_parameter(e, p, INIT_WEIGHT, SHAPE(width, rank));
    p->dtype = before;
    m->embedding_lora = a;
}

/* Adds adapters to the selected ones of `modules`, up to the blocks; the modules' offsets are relative to `owner`. */
static void add_adapters(struct engine *e, struct decoder *m, const struct module *modules, int64_t layer,
                         const char *prefix, void *owner, struct adapters *adapters)
{
    for (const struct module *at = modules; at->path && !e->halted; at++) {
        struct linear *l = (struct linear *)((char *)owner + at->offset);
        if (at->kind == MODULE_BLOCKS) return;
        int64_t rank = module_exists(m, at, owner) ? rank_of(e, m, at, layer, prefix) : 0;
        if (!rank || e->halted) continue;
        if (at->kind == MODULE_HEAD || at->kind == MODULE_CLASSIFIER) adapt_head(e, m, adapters, rank);
        if (at->kind == MODULE_WEIGHT) adapt_embedding(e, m, adapters, rank);
        if (at->kind == MODULE_LINEAR && !l->lora) add_adapter(e, m, adapters, l, rank);
    }
}

static void adapt_layer(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    add_adapters(e, m, decoder_block_modules(m->config->family), l - m->layers, NULL, l, &l->adapters);
}

/* Adds adapters to the towers' parts that come before the text's modules, or to those that come after them. */
static void adapt_vision(struct engine *e, struct decoder *m, bool is_behind)
{
    struct vision_part part;
    char name[MODULE_NAME_MAX];
    for (size_t i = 0; vision_part(m, i, &part) && !e->halted; i++) {
        if (part.parts->is_behind != is_behind) continue;
        vision_part_name(&part, name);
        m->parameters.layer = part.parts->of == VISION_BLOCKS ? (int32_t)(part.number + 1) : 0;
        add_adapters(e, m, part.parts->modules, part.number, name, part.owner, part.adapters);
    }
    m->parameters.layer = 0;
}

/* Adds a lora.ParamWrapper for a parameter of the experts or for a router's matrix. `last`: the last parameter of the
 * module. Returns NULL if none is requested. */
static struct lora_adapter *adapt_parameter(struct engine *e, struct decoder *m, struct decoder_layer *l,
                                            const struct module *module, const struct tensor *last)
{
    char name[MODULE_NAME_MAX];
    struct tensor *weight = *(struct tensor **)((char *)l + module->offset);
    module_full_name(m, module, l - m->layers, name);
    if (module->kind == MODULE_WEIGHT) strncat(name, ".weight", sizeof(name) - strlen(name) - 1);
    int64_t rank = weight ? plim_lora_parameter_rank(&m->setting->lora, name) : 0;
    if (!rank || e->halted) return NULL;
    bool is_stack = weight->a.ndim == 3, transposed = is_stack && m->config->family == PLIM_FAMILY_GPT_OSS;
    int64_t experts = is_stack ? weight->a.shape[0] : 1, out = tensor_size(weight, transposed ? -1 : -2),
            in = tensor_size(weight, transposed ? -2 : -1);
    enum plim_dtype before = m->parameters.dtype;
    m->parameters.dtype = (enum plim_dtype)weight->a.dtype;
    struct lora_adapter *a = &l->adapters.list[l->adapters.count++];
    *a = (struct lora_adapter){
        .scaling = 2, .weight = weight, .experts = experts, .transposed = transposed, .last = last};
    a->a = nn_parameter(e, &m->parameters, INIT_WEIGHT, SHAPE(rank * experts, in));
    a->b = nn_parameter(e, &m->parameters, INIT_ZEROS, SHAPE(out, rank * experts));
    m->parameters.dtype = before;
    return a;
}

/* _inject_parameters() for one layer */
static void adapt_parameters(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct tensor *last = l->experts_down_bias ? l->experts_down_bias : l->experts_down;
    for (const struct module *at = decoder_block_modules(m->config->family); at->path && !e->halted; at++) {
        if (at->offset == offsetof(struct decoder_layer, router))
            l->router_lora = adapt_parameter(e, m, l, at, l->router_bias ? l->router_bias : l->router);
        if (at->offset == offsetof(struct decoder_layer, experts_gate_up))
            l->experts_lora[0] = adapt_parameter(e, m, l, at, last);
        if (at->offset == offsetof(struct decoder_layer, experts_down))
            l->experts_lora[1] = adapt_parameter(e, m, l, at, last);
    }
}

static void cast(struct engine *e, struct parameters *p, struct tensor **x, enum plim_dtype dtype)
{
    size_t index = 0;
    if (!*x || e->halted || (*x)->a.dtype == dtype) return;
    while (p->list[index] != *x) index++;
    struct tensor *y = tensor_keep(tensor_empty(e, dtype, (*x)->a.ndim, (*x)->a.shape));
    if (e->halted) return;
    op_copy_(e, y, *x);
    y->layer = (*x)->layer;
    tensor_drop(e, *x);
    tensor_classify(e, y, PLIM_MEMORY_PARAMETERS);
    y->is_parameter = true;
    tensor_require_grad(e, y);
    *x = p->list[index] = y;
}

static void cast_list(struct engine *e, struct decoder *m, struct adapters *adapters, enum plim_dtype dtype)
{
    for (size_t i = 0; i < adapters->count && !e->halted; i++) {
        cast(e, &m->parameters, &adapters->list[i].a, dtype);
        cast(e, &m->parameters, &adapters->list[i].b, dtype);
        cast(e, &m->parameters, &adapters->list[i].magnitude, PLIM_F32);
    }
}

/* Casts all adapters to `dtype`, one after the other; magnitudes to fp32. */
static void cast_adapters(struct engine *e, struct decoder *m, enum plim_dtype dtype)
{
    for (size_t i = 0; vision_adapters(m, i); i++) cast_list(e, m, vision_adapters(m, i), dtype);
    cast_list(e, m, &m->adapters, dtype);
    for (int64_t i = 0; i < m->config->layers; i++) cast_list(e, m, &m->layers[i].adapters, dtype);
    cast_list(e, m, &m->adapters_behind, dtype);
}

/* Casts everything that is trained beside a quantised base to bf16, like TRL's trainers (SFTTrainer.__init__ and
 * others). */
static void cast_trained(struct engine *e, struct decoder *m)
{
    cast_adapters(e, m, PLIM_BF16);
    for (size_t i = 0; i < m->saved_count; i++)
        for (int k = 0; k < 2; k++)
            if (m->saved[i].copy[k]) nn_cast(e, m->saved[i].copy[k], PLIM_BF16);
}

static void refuse_unmatched(struct engine *e, struct decoder *m)
{
    const struct module *first = decoder_block_modules(m->config->family);
    char name[MODULE_NAME_MAX];
    while (first->kind != MODULE_LINEAR) first++;
    module_full_name(m, first, 0, name);
    decoder_refuse(e, m, "train.lora.targets matches no module of this model, such as %.80s", name);
}

void decoder_add_lora(struct engine *e, struct decoder *m)
{
    if (e->halted) return;
    nn_freeze(e, &m->parameters, m->parameters.count);
    const struct module *model = decoder_modules(m->config->family), *behind = model;
    for (const struct module *at = model; at->path; at++)
        if (at->kind == MODULE_BLOCKS) behind = at; /* finds the last blocks */
    adapt_vision(e, m, false);
    add_adapters(e, m, model, -1, NULL, m, &m->adapters);
    decoder_build_layers(e, m, adapt_layer);
    add_adapters(e, m, behind + 1, -1, NULL, m, &m->adapters_behind);
    adapt_vision(e, m, true);
    if (*m->setting->lora.parameters) decoder_build_layers(e, m, adapt_parameters);
    if (!e->halted && !m->parameters.count) refuse_unmatched(e, m);
    if (*m->setting->lora.parameters && !e->halted) decoder_sort_trained(e, m);
    decoder_save_modules(e, m);
    cast_adapters(e, m, PLIM_F32); /* cast_adapter_dtype: adapters in a 16-bit type */
    if (plim_loop_is_trl(m->setting->loop) && m->setting->quantization.type) cast_trained(e, m);
}
