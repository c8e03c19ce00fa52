/* get_peft_model(model, LoraConfig(...)): the base is frozen, chosen linears get adapters. */
#include "model.h"
#include <string.h>

struct target {
    const char *name;
    size_t offset;
};
#define AT(field) offsetof(struct decoder_layer, field)

/* The linears of a block by their names in transformers, in the order of named_modules(). */
static const struct target llama_like[] = {
    {"q_proj", AT(q)},       {"k_proj", AT(k)},   {"v_proj", AT(v)},       {"o_proj", AT(o)},
    {"gate_proj", AT(gate)}, {"up_proj", AT(up)}, {"down_proj", AT(down)}, {0}};
static const struct target gpt2[] = {
    {"c_attn", AT(qkv)}, {"c_proj", AT(o)}, {"c_fc", AT(fc1)}, {"c_proj", AT(fc2)}, {0}};
static const struct target phi3[] = {{"o_proj", AT(o)},
                                     {"qkv_proj", AT(qkv)},
                                     {"gate_up_proj", AT(gate_up)},
                                     {"down_proj", AT(down)},
                                     {0}};
static const struct target phi[] = {{"q_proj", AT(q)},
                                    {"k_proj", AT(k)},
                                    {"v_proj", AT(v)},
                                    {"dense", AT(o)},
                                    {"fc1", AT(fc1)},
                                    {"fc2", AT(fc2)},
                                    {0}};
static const struct target opt[] = {{"k_proj", AT(k)},
                                    {"v_proj", AT(v)},
                                    {"q_proj", AT(q)},
                                    {"out_proj", AT(o)},
                                    {"fc1", AT(fc1)},
                                    {"fc2", AT(fc2)},
                                    {0}};
static const struct target neox[] = {{"query_key_value", AT(qkv)},
                                     {"dense", AT(o)},
                                     {"dense_h_to_4h", AT(fc1)},
                                     {"dense_4h_to_h", AT(fc2)},
                                     {0}};

/* Beside the blocks. */
static const struct target opt_projections[] = {
    {"project_out", offsetof(struct decoder, project_out)},
    {"project_in", offsetof(struct decoder, project_in)},
    {0}};

static const struct target *const targets[PLIM_FAMILY_COUNT] = {
    [PLIM_FAMILY_GPT2] = gpt2,
    [PLIM_FAMILY_LLAMA] = llama_like,
    [PLIM_FAMILY_MISTRAL] = llama_like,
    [PLIM_FAMILY_QWEN2] = llama_like,
    [PLIM_FAMILY_QWEN3] = llama_like,
    [PLIM_FAMILY_OLMO2] = llama_like,
    [PLIM_FAMILY_GEMMA2] = llama_like,
    [PLIM_FAMILY_GEMMA3_TEXT] = llama_like,
    [PLIM_FAMILY_PHI3] = phi3,
    [PLIM_FAMILY_PHI] = phi,
    [PLIM_FAMILY_OPT] = opt,
    [PLIM_FAMILY_GPT_NEOX] = neox,
    [PLIM_FAMILY_BLOOM] = neox,
};

static bool wanted(const struct plim_lora *lora, const char *name)
{
    for (size_t i = 0; i < lora->target_count; i++)
        if (strcmp(lora->targets[i], name) == 0) return true;
    return false;
}

/* The base model's parameters need no gradient any more and leave the list of trainable ones. */
static void freeze(struct engine *e, struct parameters *p)
{
    for (size_t i = 0; i < p->count; i++) {
        struct tensor *x = p->list[i];
        struct node *accumulator = x->accumulator;
        x->requires_grad = false;
        x->accumulator = NULL;
        node_drop(e, accumulator);
    }
    p->frozen = p->list;
    p->frozen_count = p->count;
    p->list = NULL;
    p->count = p->capacity = 0;
    p->trainable_elements = 0;
}

static void add_adapter(struct engine *e, struct decoder *m, struct adapters *adapters,
                        struct linear *l)
{
    const struct plim_lora *lora = &m->setting->lora;
    if (adapters->count == sizeof adapters->list / sizeof *adapters->list) return;
    struct lora_adapter *a = &adapters->list[adapters->count++];
    *a = (struct lora_adapter){.dropout = lora->dropout,
                               .scaling = 2,
                               .behind = l->bias ? l->bias : l->weight};
    a->a = nn_parameter(e, &m->parameters, INIT_WEIGHT, SHAPE(lora->r, l->in));
    a->b = nn_parameter(e, &m->parameters, INIT_ZEROS, SHAPE(l->out, lora->r));
    l->lora = a;
}

/* Adapters for the chosen modules of `table`, whose linears stand at offsets from `owner`. */
static void add_adapters(struct engine *e, struct decoder *m, const struct target *table,
                         void *owner, struct adapters *adapters)
{
    for (const struct target *t = table; t->name && !e->halted; t++)
        if (wanted(&m->setting->lora, t->name))
            add_adapter(e, m, adapters, (struct linear *)((char *)owner + t->offset));
}

/* cast_adapter_dtype: adapters in a half type become fp32, one after the other */
static void widen(struct engine *e, struct parameters *p, struct tensor **x, size_t index)
{
    if (e->halted || (*x)->a.dtype == PLIM_F32) return;
    struct tensor *wide = tensor_keep(tensor_empty(e, PLIM_F32, (*x)->a.ndim, (*x)->a.shape));
    if (e->halted) return;
    struct plim_op op = {
        .kind = PLIM_OP_COPY, .n_out = 1, .n_in = 1, .out = {&wide->a}, .in = {&(*x)->a}};
    engine_launch(e, &op);
    tensor_drop(e, *x);
    tensor_classify(e, wide, PLIM_MEMORY_PARAMETERS);
    wide->is_parameter = true;
    tensor_require_grad(e, wide);
    *x = p->list[index] = wide;
}

static void widen_adapters(struct engine *e, struct decoder *m, struct adapters *adapters,
                           size_t *index)
{
    for (size_t i = 0; i < adapters->count && !e->halted; i++) {
        widen(e, &m->parameters, &adapters->list[i].a, (*index)++);
        widen(e, &m->parameters, &adapters->list[i].b, (*index)++);
    }
}

void decoder_add_lora(struct engine *e, struct decoder *m)
{
    if (e->halted) return;
    freeze(e, &m->parameters);
    if (m->project_out.weight) add_adapters(e, m, opt_projections, m, &m->adapters);
    for (int64_t i = 0; i < m->config->layers; i++)
        add_adapters(e, m, targets[m->config->family], &m->layers[i], &m->layers[i].adapters);
    size_t index = 0;
    widen_adapters(e, m, &m->adapters, &index);
    for (int64_t i = 0; i < m->config->layers; i++)
        widen_adapters(e, m, &m->layers[i].adapters, &index);
}
