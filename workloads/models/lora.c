/* get_peft_model(model, LoraConfig(...)): the base is frozen, chosen linears get adapters. */
#include "model.h"
#include <stdio.h>
#include <string.h>

struct target { const char *name; size_t offset; };
#define AT(field) offsetof(struct decoder_layer, field)

/* The linears of a block by their names in transformers, in the order of named_modules(). */
static const struct target llama_like[] = {{"q_proj", AT(q)},       {"k_proj", AT(k)},   {"v_proj", AT(v)}, {"o_proj", AT(o)},
                                           {"gate_proj", AT(gate)}, {"up_proj", AT(up)}, {"down_proj", AT(down)}, {0}};
static const struct target gpt2[] = {{"c_attn", AT(qkv)}, {"c_proj", AT(o)}, {"c_fc", AT(fc1)}, {"c_proj", AT(fc2)}, {0}};
static const struct target phi3[] = {{"o_proj", AT(o)}, {"qkv_proj", AT(qkv)}, {"gate_up_proj", AT(gate_up)}, {"down_proj", AT(down)}, {0}};
static const struct target phi[] = {{"q_proj", AT(q)}, {"k_proj", AT(k)}, {"v_proj", AT(v)}, {"dense", AT(o)}, {"fc1", AT(fc1)}, {"fc2", AT(fc2)}, {0}};
static const struct target opt[] = {{"k_proj", AT(k)}, {"v_proj", AT(v)}, {"q_proj", AT(q)}, {"out_proj", AT(o)}, {"fc1", AT(fc1)}, {"fc2", AT(fc2)}, {0}};
static const struct target neox[] = {{"query_key_value", AT(qkv)}, {"dense", AT(o)}, {"dense_h_to_4h", AT(fc1)}, {"dense_4h_to_h", AT(fc2)}, {0}};

static const struct target *const targets[PLIM_FAMILY_COUNT] = {
    [PLIM_FAMILY_GPT2] = gpt2,         [PLIM_FAMILY_LLAMA] = llama_like,  [PLIM_FAMILY_MISTRAL] = llama_like,
    [PLIM_FAMILY_QWEN2] = llama_like,  [PLIM_FAMILY_QWEN3] = llama_like,  [PLIM_FAMILY_OLMO2] = llama_like,
    [PLIM_FAMILY_GEMMA2] = llama_like, [PLIM_FAMILY_GEMMA3_TEXT] = llama_like, [PLIM_FAMILY_PHI3] = phi3,
    [PLIM_FAMILY_PHI] = phi,           [PLIM_FAMILY_OPT] = opt,           [PLIM_FAMILY_GPT_NEOX] = neox,
    [PLIM_FAMILY_BLOOM] = neox,
};

static bool wanted(const struct plim_lora *lora, const char *name)
{
    for (size_t i = 0; i < lora->target_count; i++)
        if (strcmp(lora->targets[i], name) == 0) return true;
    return false;
}

static bool known(const struct target *t, const char *name)
{
    for (; t->name; t++)
        if (strcmp(t->name, name) == 0) return true;
    return false;
}

/* The base model's parameters need no gradient any more and leave the list of trainable ones. */
static void freeze(struct graph *g, struct parameters *p)
{
    for (size_t i = 0; i < p->count; i++) {
        struct tensor *x = p->list[i];
        struct node *accumulator = x->accumulator;
        x->requires_grad = false;
        x->accumulator = NULL;
        node_drop(g, accumulator);
    }
    p->count = 0;
    p->trainable_elements = 0;
}

static void add_adapter(struct graph *g, struct decoder *m, struct decoder_layer *layer, struct linear *l)
{
    const struct plim_lora *lora = &m->setting->lora;
    if (layer->adapter_count == sizeof layer->adapters / sizeof *layer->adapters) return;
    struct lora_adapter *a = &layer->adapters[layer->adapter_count++];
    *a = (struct lora_adapter){.dropout = lora->dropout, .scaling = 2};
    a->a = nn_parameter(g, &m->parameters, SHAPE(lora->r, l->in));
    a->b = nn_parameter(g, &m->parameters, SHAPE(l->out, lora->r));
    l->lora = a;
}

/* cast_adapter_dtype: adapters in a half type become fp32, one after the other */
static void widen(struct graph *g, struct parameters *p, struct tensor **x, size_t index)
{
    if (g->halted || (*x)->a.dtype == PLIM_F32) return;
    struct tensor *wide = tensor_keep(tensor_empty(g, PLIM_F32, (*x)->a.ndim, (*x)->a.shape));
    if (g->halted) return;
    struct plim_op op = {.kind = PLIM_OP_COPY, .n_out = 1, .n_in = 1, .out = {&wide->a}, .in = {&(*x)->a}};
    graph_launch(g, &op);
    tensor_drop(g, *x);
    tensor_classify(g, wide, PLIM_MEMORY_PARAMETERS);
    wide->is_parameter = true;
    tensor_require_grad(g, wide);
    *x = p->list[index] = wide;
}

enum plim_status decoder_add_lora(struct graph *g, struct decoder *m)
{
    const struct plim_lora *lora = &m->setting->lora;
    const struct target *table = targets[m->config->family];
    for (size_t i = 0; i < lora->target_count; i++) {
        if (known(table, lora->targets[i])) continue;
        snprintf(g->unsupported, sizeof g->unsupported, "LoRA target '%s' is no linear module of %s's blocks",
                 lora->targets[i], plim_family_names[m->config->family]);
        graph_halt(g, HALT_UNSUPPORTED);
        return PLIM_OK;
    }
    if (g->halted) return PLIM_OK;
    freeze(g, &m->parameters);
    for (int64_t i = 0; i < m->config->layers; i++)
        for (const struct target *t = table; t->name && !g->halted; t++)
            if (wanted(lora, t->name))
                add_adapter(g, m, &m->layers[i], (struct linear *)((char *)&m->layers[i] + t->offset));
    size_t index = 0;
    for (int64_t i = 0; i < m->config->layers && !g->halted; i++)
        for (size_t j = 0; j < m->layers[i].adapter_count && !g->halted; j++) {
            widen(g, &m->parameters, &m->layers[i].adapters[j].a, index++);
            widen(g, &m->parameters, &m->layers[i].adapters[j].b, index++);
        }
    return PLIM_OK;
}
