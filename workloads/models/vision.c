/* Vision towers: their parts, buffers, element and operation counts, and how their results are added in the text's
 * blocks. */
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
    [PLIM_FAMILY_LLAVA] = &plim_tower_clip,
    [PLIM_FAMILY_INTERNVL] = &plim_tower_internvit,
    [PLIM_FAMILY_GEMMA4] = &plim_tower_gemma4,
    [PLIM_FAMILY_GEMMA4_UNIFIED] = &plim_tower_gemma4_unified,
};

static const struct vision_tower *tower_of(const struct decoder *m)
{
    return towers[m->config->family];
}

bool vision_create(struct decoder *m)
{
    const struct plim_vision *v = &m->config->vision;
    if (!plim_vision_exists(v)) return true;
    m->vision.layers = calloc((size_t)v->layers + 1, sizeof *m->vision.layers);
    m->vision.mergers = calloc((size_t)v->deep_count + 1, sizeof *m->vision.mergers);
    m->audio.layers = calloc((size_t)m->config->audio.layers + 1, sizeof *m->audio.layers);
    return m->vision.layers && m->vision.mergers && m->audio.layers;
}

void vision_finish(struct decoder *m)
{
    free(m->vision.layers);
    free(m->vision.mergers);
    free(m->audio.layers);
}

void vision_build(struct engine *e, struct decoder *m)
{
    tower_of(m)->build(e, m);
}

void vision_build_behind(struct engine *e, struct decoder *m)
{
    if (plim_vision_exists(&m->config->vision) && tower_of(m)->build_behind) tower_of(m)->build_behind(e, m);
}

void vision_freeze(struct engine *e, struct decoder *m)
{
    size_t count = 0;
    while (!e->halted && m->parameters.list[count] != m->embedding) count++;
    nn_freeze(e, &m->parameters, count);
}

/* --- its parts -------------------------------------------------------------------------------- */

static int64_t count_of(const struct decoder *m, enum vision_owner of)
{
    const struct plim_vision *v = &m->config->vision;
    const struct plim_audio *a = &m->config->audio;
    switch (of) {
    case VISION_BLOCKS: return v->layers;
    case VISION_DEEP: return v->deep_count;
    case VISION_AUDIO_BLOCKS: return a->layers;
    case VISION_TOWER:
    case VISION_MERGER: return 1;
    case VISION_AUDIO_EMBEDDING: return a->out_size && (a->layers || m->config->vision.has_no_blocks);
    default: return a->layers > 0;
    }
}

static void find_owner(const struct decoder *m, struct vision_part *part)
{
    struct vision *v = (struct vision *)&m->vision;
    struct audio *a = (struct audio *)&m->audio;
    int64_t i = part->number;
    struct vision_merger *merger = &v->mergers[part->parts->of == VISION_DEEP ? i + 1 : 0];
    switch (part->parts->of) {
    case VISION_TOWER: part->owner = v, part->adapters = &v->adapters; break;
    case VISION_BLOCKS: part->owner = &v->layers[i], part->adapters = &v->layers[i].adapters; break;
    case VISION_MERGER:
    case VISION_DEEP: part->owner = merger, part->adapters = &merger->adapters; break;
    case VISION_AUDIO_BLOCKS: part->owner = &a->layers[i], part->adapters = &a->layers[i].adapters; break;
    case VISION_AUDIO_FRONT: part->owner = a, part->adapters = &a->adapters[AUDIO_FRONT]; break;
    case VISION_AUDIO_BACK: part->owner = a, part->adapters = &a->adapters[AUDIO_BACK]; break;
    case VISION_AUDIO_EMBEDDING: part->owner = a, part->adapters = &a->adapters[AUDIO_EMBEDDING]; break;
    }
}

bool vision_part(const struct decoder *m, size_t index, struct vision_part *part)
{
    int64_t number = (int64_t)index;
    if (!plim_vision_exists(&m->config->vision)) return false;
    for (const struct vision_parts *parts = tower_of(m)->parts; parts->name; parts++) {
        int64_t count = count_of(m, parts->of);
        *part = (struct vision_part){.parts = parts, .number = number};
        if (number < count) {
            find_owner(m, part);
            return true;
        }
        number -= count;
    }
    return false;
}

void vision_part_name(const struct vision_part *part, char name[MODULE_NAME_MAX])
{
    snprintf(name, MODULE_NAME_MAX, part->parts->name, (long long)part->number);
}

struct adapters *vision_adapters(const struct decoder *m, size_t index)
{
    struct vision_part part;
    return vision_part(m, index, &part) ? part.adapters : NULL;
}

/* --- its buffers ------------------------------------------------------------------------------ */

static size_t put_bounds(const struct linear *l, struct tensor **out)
{
    for (size_t i = 0; i < 4 && l->bounds[0]; i++) out[i] = l->bounds[i];
    return l->bounds[0] ? 4 : 0;
}

static size_t put(struct tensor *buffer, struct tensor **out)
{
    if (buffer) *out = buffer;
    return buffer != NULL;
}

/* Stores a part's buffers that follow its parameter `x` (NULL: all). Returns their number. */
static size_t put_behind(const struct decoder *m, const struct vision_part *part, const struct tensor *x,
                         struct tensor **out)
{
    const struct vision *v = &m->vision;
    const struct audio_layer *l = part->owner;
    size_t count = 0;
    for (const struct module *at = part->parts->modules; at->path; at++) {
        const struct linear *linear = (const void *)((const char *)part->owner + at->offset);
        if (at->kind == MODULE_LINEAR && (!x || linear->weight == x)) count += put_bounds(linear, out + count);
    }
    bool is_last_block = part->parts->of == VISION_BLOCKS && part->number == m->config->vision.layers - 1;
    if (is_last_block && (!x || x == v->layers[part->number].norm[3].weight))
        for (int i = 0; i < 2; i++) count += put(v->standard[i], out + count);
    if (part->parts->of == VISION_AUDIO_FRONT && (!x || x == m->audio.in.weight))
        count += put(m->audio.timescales, out + count);
    if (part->parts->of == VISION_AUDIO_BLOCKS && (!x || x == l->relative.weight))
        count += put(l->softcap, out + count);
    return count;
}

size_t vision_buffers_behind(const struct decoder *m, const struct tensor *x, struct tensor **out)
{
    struct vision_part part;
    size_t count = 0;
    if (!m->config->vision.head_dim) return 0; /* other towers have none */
    for (size_t i = 0; vision_part(m, i, &part) && !count; i++) count = put_behind(m, &part, x, out);
    return count;
}

size_t vision_buffers(const struct decoder *m, struct tensor **out)
{
    struct vision_part part;
    size_t count = 0;
    if (!m->config->vision.head_dim) return 0;
    for (size_t i = 0; vision_part(m, i, &part); i++) count += put_behind(m, &part, NULL, out + count);
    return count;
}

/* --- elements and operations -------------------------------------------------------------------- */

static int64_t elements_of(const struct vision_part *part)
{
    int64_t sum = 0;
    for (const struct module *at = part->parts->modules; at->path; at++) {
        const void *place = (const char *)part->owner + at->offset;
        const struct linear *l = place;
        const struct norm *n = place;
        if (at->kind == MODULE_LINEAR) sum += l->in * l->out + (l->bias ? l->out : 0);
        else if (at->kind != MODULE_NORM) sum += tensor_elements(*(struct tensor *const *)place);
        else sum += tensor_elements(n->weight) + (n->bias ? tensor_elements(n->bias) : 0);
    }
    return sum;
}

/* Counts elements by the input to which they are applied. */
static void count_elements(const struct decoder *m, int64_t of[MEETS_NOTHING + 1])
{
    struct vision_part part;
    const struct norm *norms[] = {&m->vision.norm, &m->vision.last_norm};
    for (int i = MEETS_PATCHES; i <= MEETS_NOTHING; i++) of[i] = 0;
    if (m->vision.patch_weight) of[MEETS_PATCHES] += tensor_elements(m->vision.patch_weight);
    if (m->vision.patch_bias) of[MEETS_PATCHES] += tensor_elements(m->vision.patch_bias);
    if (m->vision.class_token) of[MEETS_NOTHING] += tensor_elements(m->vision.class_token);
    for (int i = 0; i < 2; i++)
        if (norms[i]->weight)
            of[i ? MEETS_NOTHING : MEETS_PATCHES] += tensor_elements(norms[i]->weight) * (norms[i]->bias ? 2 : 1);
    if (m->vision.projection) of[MEETS_ROWS] += tensor_elements(m->vision.projection);
    for (size_t i = 0; vision_part(m, i, &part); i++) of[part.parts->meets] += elements_of(&part);
}

int64_t vision_elements(const struct decoder *m)
{
    int64_t of[MEETS_NOTHING + 1];
    if (!plim_vision_exists(&m->config->vision)) return 0;
    count_elements(m, of);
    return of[MEETS_PATCHES] + of[MEETS_ROWS] + of[MEETS_NOTHING] +
           (m->config->vision.layers && m->vision.positions ? tensor_elements(m->vision.positions) : 0);
}

double vision_flops_per_row(const struct decoder *m)
{
    const struct plim_vision *v = &m->config->vision;
    const struct plim_images *images = &m->setting->images;
    int64_t of[MEETS_NOTHING + 1];
    if (!v->layers || !images->count) return 0;
    bool has_adapters = false;
    for (size_t i = 0; vision_adapters(m, i); i++) has_adapters |= vision_adapters(m, i)->count > 0;
    double patches = (double)plim_image_patches(v, images), rows = (double)plim_image_tokens(v, images);
    bool is_trained = !m->setting->lora.r && !m->setting->freeze_vision;
    double passes = is_trained ? 3 : has_adapters ? 2 : 1; /* 1: forward only, if no part of it is trained */
    count_elements(m, of);
    double seen = patches / (double)plim_image_tiles(v, images); /* number of patches to which a patch attends */
    double attention = 4 * (double)v->layers * (double)v->hidden_size * patches * seen;
    double forward = 2 * (patches * (double)of[MEETS_PATCHES] + rows * (double)of[MEETS_ROWS]) + attention;
    return (double)images->count * passes * forward;
}

/* --- in the text ------------------------------------------------------------------------------ */

void vision_encode(struct engine *e, struct decoder *m, struct tensor **embeddings, struct encoded_images *encoded)
{
    *encoded = (struct encoded_images){0};
    tower_of(m)->encode(e, m, embeddings, encoded);
}

void vision_deepen(struct engine *e, struct encoded_images *encoded, int64_t layer, struct tensor **x)
{
    tensor_drop(e, encoded->outputs);
    encoded->outputs = NULL;
    struct tensor *features = layer < PLIM_MAX_DEEP ? encoded->deep[layer] : NULL;
    if (!features || e->halted) return;
    struct tensor *rows = tensor_hold(op_to(e, features, (enum plim_dtype)(*x)->a.dtype));
    int64_t found = tensor_size(rows, 0);
    encoded->outputs = tensor_ref(*x);
    tensor_set(e, x, op_clone(e, *x));
    struct tensor *local = tensor_keep(op_add(e, op_rows_where(e, *x, encoded->mask, found), rows));
    tensor_set(e, x, op_put_rows_where_(e, *x, encoded->mask, local));
    tensor_drop_all(e, local, rows);
}

void vision_drop(struct engine *e, struct encoded_images *encoded)
{
    for (int i = 0; i < PLIM_MAX_DEEP; i++) tensor_drop(e, encoded->deep[i]);
    tensor_drop_all(e, encoded->outputs, encoded->last, encoded->merged, encoded->rows, encoded->positions);
    tensor_drop_all(e, encoded->mask, encoded->other_mask, encoded->blocks);
}
