/* Vision towers: their parts, what is counted of them, and how their results join the text's blocks. */
#include "model.h"
#include "workloads/spec/spec_vision.h"
#include <stdio.h>
#include <stdlib.h>

static const struct vision_tower *const towers[PLIM_FAMILY_COUNT] = {
    [PLIM_FAMILY_QWEN2_VL] = &plim_tower_qwen2_vl,
    [PLIM_FAMILY_QWEN2_5_VL] = &plim_tower_qwen2_5_vl,
    [PLIM_FAMILY_QWEN3_VL] = &plim_tower_qwen3_vl,
    [PLIM_FAMILY_QWEN3_VL_MOE] = &plim_tower_qwen3_vl,
    [PLIM_FAMILY_QWEN3_5] = &plim_tower_qwen3_vl, /* without deepstack */
    [PLIM_FAMILY_QWEN3_5_MOE] = &plim_tower_qwen3_vl,
    [PLIM_FAMILY_GEMMA3] = &plim_tower_gemma3,
    [PLIM_FAMILY_MISTRAL3] = &plim_tower_pixtral,
};

static const struct vision_tower *tower_of(const struct decoder *m)
{
    return towers[m->config->family];
}

bool vision_create(struct decoder *m)
{
    const struct plim_vision *v = &m->config->vision;
    if (!v->layers) return true;
    m->vision.layers = calloc((size_t)v->layers, sizeof *m->vision.layers);
    m->vision.mergers = calloc((size_t)v->deep_count + 1, sizeof *m->vision.mergers);
    return m->vision.layers && m->vision.mergers;
}

void vision_finish(struct decoder *m)
{
    free(m->vision.layers);
    free(m->vision.mergers);
}

void vision_build(struct engine *e, struct decoder *m)
{
    tower_of(m)->build(e, m);
}

void vision_freeze(struct engine *e, struct decoder *m)
{
    size_t count = 0;
    while (!e->halted && m->parameters.list[count] != m->embedding) count++;
    nn_freeze(e, &m->parameters, count);
}

/* --- its parts -------------------------------------------------------------------------------- */

bool vision_part(const struct decoder *m, size_t index, struct vision_part *part)
{
    const struct plim_vision *v = &m->config->vision;
    const struct vision_tower *tower = tower_of(m);
    int64_t i = (int64_t)index, merger = i - v->layers;
    if (!v->layers || merger > v->deep_count) return false;
    *part = (struct vision_part){.modules = tower->block, .name = tower->blocks, .number = i};
    if (merger < 0) {
        part->owner = &m->vision.layers[i];
        part->adapters = &m->vision.layers[i].adapters;
        return true;
    }
    *part = (struct vision_part){.modules = tower->merger,
                                 .owner = &m->vision.mergers[merger],
                                 .adapters = &m->vision.mergers[merger].adapters,
                                 .name = merger ? tower->deep : tower->last,
                                 .number = merger - 1,
                                 .is_merger = true};
    return true;
}

void vision_part_name(const struct vision_part *part, char name[MODULE_NAME_MAX])
{
    snprintf(name, MODULE_NAME_MAX, part->name, (long long)part->number);
}

struct adapters *vision_adapters(const struct decoder *m, size_t index)
{
    struct vision_part part;
    return vision_part(m, index, &part) ? part.adapters : NULL;
}

/* --- what is counted ---------------------------------------------------------------------------- */

static int64_t elements_of(const struct vision_part *part)
{
    int64_t sum = 0;
    for (const struct module *at = part->modules; at->path; at++) {
        const void *place = (const char *)part->owner + at->offset;
        const struct linear *l = place;
        const struct norm *n = place;
        if (at->kind == MODULE_LINEAR) sum += l->in * l->out + (l->bias ? l->out : 0);
        else sum += tensor_elements(n->weight) + (n->bias ? tensor_elements(n->bias) : 0);
    }
    return sum;
}

/* Those that each patch meets, and those that each row of merged patches does */
static void count_elements(const struct decoder *m, int64_t *of_patches, int64_t *of_rows)
{
    struct vision_part part;
    *of_patches = tensor_elements(m->vision.patch_weight);
    if (m->vision.patch_bias) *of_patches += tensor_elements(m->vision.patch_bias);
    const struct norm *norm = &m->vision.norm;
    if (norm->weight) *of_patches += tensor_elements(norm->weight) * (norm->bias ? 2 : 1);
    *of_rows = m->vision.projection ? tensor_elements(m->vision.projection) : 0;
    for (size_t i = 0; vision_part(m, i, &part); i++) *(part.is_merger ? of_rows : of_patches) += elements_of(&part);
}

int64_t vision_elements(const struct decoder *m)
{
    int64_t of_patches, of_rows;
    if (!m->config->vision.layers) return 0;
    count_elements(m, &of_patches, &of_rows);
    return of_patches + of_rows + (m->vision.positions ? tensor_elements(m->vision.positions) : 0);
}

double vision_flops_per_row(const struct decoder *m)
{
    const struct plim_vision *v = &m->config->vision;
    const struct plim_images *images = &m->setting->images;
    int64_t of_patches, of_rows;
    if (!v->layers || !images->count) return 0;
    bool has_adapters = false;
    for (size_t i = 0; vision_adapters(m, i); i++) has_adapters |= vision_adapters(m, i)->count > 0;
    double patches = (double)plim_image_patches(v, images), rows = (double)plim_image_tokens(v, images);
    bool is_trained = !m->setting->lora.r && !m->setting->freeze_vision;
    double passes = is_trained ? 3 : has_adapters ? 2 : 1; /* one alone where nothing of it is trained */
    count_elements(m, &of_patches, &of_rows);
    double attention = 4 * (double)v->layers * (double)v->hidden_size * patches * patches;
    double forward = 2 * (patches * (double)of_patches + rows * (double)of_rows) + attention;
    return (double)images->count * passes * forward;
}

/* --- in the text ------------------------------------------------------------------------------ */

void vision_see(struct engine *e, struct decoder *m, struct tensor **embeddings, struct seen_images *seen)
{
    *seen = (struct seen_images){0};
    tower_of(m)->see(e, m, embeddings, seen);
}

void vision_deepen(struct engine *e, struct seen_images *seen, int64_t layer, struct tensor **x)
{
    tensor_drop(e, seen->outputs);
    seen->outputs = NULL;
    struct tensor *features = layer < PLIM_MAX_DEEP ? seen->deep[layer] : NULL;
    if (!features || e->halted) return;
    struct tensor *rows = tensor_hold(op_to(e, features, (enum plim_dtype)(*x)->a.dtype));
    int64_t found = tensor_size(rows, 0);
    seen->outputs = tensor_ref(*x);
    tensor_set(e, x, op_clone(e, *x));
    struct tensor *local = tensor_keep(op_add(e, op_rows_where(e, *x, seen->mask, found), rows));
    tensor_set(e, x, op_put_rows_where_(e, *x, seen->mask, local));
    tensor_drop_all(e, local, rows);
}

void vision_forget(struct engine *e, struct seen_images *seen)
{
    for (int i = 0; i < PLIM_MAX_DEEP; i++) tensor_drop(e, seen->deep[i]);
    tensor_drop_all(e, seen->outputs, seen->last, seen->merged, seen->rows, seen->positions);
    tensor_drop_all(e, seen->mask, seen->other_mask, seen->blocks);
}
