/* The modules of Gemma4VisionModel and of gemma4_unified's embedders, and the placeholders of images and audio in their
 * text (Gemma4Model.forward()). Images themselves are not supported: the towers do not run. */
#include "model.h"
#include <math.h>

/* --- the modules ------------------------------------------------------------------------------ */

static void norm(struct engine *e, struct decoder *m, struct norm *n, int64_t size)
{
    nn_norm_create(e, &m->parameters, n, NORM_RMS_GEMMA4, size, false);
}

static void linear(struct engine *e, struct decoder *m, struct linear *l, int64_t in, int64_t out)
{
    nn_linear_create(e, &m->parameters, l, in, out, false);
    if (m->config->vision.clips) nn_linear_clip(e, &m->parameters, l);
}

static void build_block(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct plim_vision *v = &m->config->vision;
    int64_t w = v->hidden_size, f = v->intermediate_size, heads = v->heads * v->head_dim,
            keys = v->kv_heads * v->head_dim;
    linear(e, m, &l->q, w, heads);
    linear(e, m, &l->k, w, keys);
    linear(e, m, &l->v, w, keys);
    linear(e, m, &l->o, heads, w);
    norm(e, m, &l->q_norm, v->head_dim);
    norm(e, m, &l->k_norm, v->head_dim);
    linear(e, m, &l->gate, w, f);
    linear(e, m, &l->up, w, f);
    linear(e, m, &l->down, f, w);
    for (int i = 0; i < 4; i++) norm(e, m, &l->norm[i], w);
}

/* Builds Gemma4VisionPatchEmbedder, which has a table of positions itself; this parameter comes before its linear's. */
static void build_patches(struct engine *e, struct decoder *m)
{
    const struct plim_vision *v = &m->config->vision;
    struct parameters *p = &m->parameters;
    size_t first = p->count;
    nn_linear_create(e, p, &m->vision.patch, v->channels * v->patch_size * v->patch_size, v->hidden_size, false);
    m->vision.positions = nn_parameter(e, p, INIT_WEIGHT, SHAPE(2, v->positions, v->hidden_size));
    nn_move_last(p, first);
}

static void build(struct engine *e, struct decoder *m)
{
    const struct plim_vision *v = &m->config->vision;
    struct rotary rotary = {.rope = &nn_rope_default, .dim = v->head_dim / 2};
    build_patches(e, m);
    nn_rotary_create(e, &rotary);
    m->vision.inv_freq = rotary.inv_freq;
    m->vision.original_inv_freq = rotary.original_inv_freq;
    vision_build_blocks(e, m, build_block);
    for (int i = 0; i < 2 && v->standardizes; i++) {
        m->vision.standard[i] = nn_buffer(e, tensor_empty(e, m->parameters.dtype, SHAPE(v->hidden_size)));
        if (!e->halted) m->vision.standard[i]->layer = 1; /* a checkpoint has it */
    }
}

/* Builds the modules after the text's: the audio tower, and the linears to the text's width, whose norms have no
 * weights. */
static void build_behind(struct engine *e, struct decoder *m)
{
    const struct plim_vision *v = &m->config->vision;
    audio_build(e, m);
    nn_linear_create(e, &m->parameters, &m->vision.mergers[0].merging, v->hidden_size, v->out_hidden_size, false);
    audio_build_embedding(e, m);
}

/* --- gemma4_unified, which has no blocks --------------------------------------------------------- */

/* Builds Gemma4UnifiedVisionEmbedder, which has the positions itself, and both Gemma4UnifiedMultimodalEmbedders. */
static void build_embedders(struct engine *e, struct decoder *m)
{
    const struct plim_vision *v = &m->config->vision;
    struct parameters *p = &m->parameters;
    int64_t side = v->patch_size * v->merge_size, w = v->hidden_size, in = v->channels * side * side;
    size_t first = p->count;
    nn_norm_create(e, p, &m->vision.patch_norm[0], NORM_LAYER, in, true);
    nn_linear_create(e, p, &m->vision.patch, in, w, true);
    nn_norm_create(e, p, &m->vision.patch_norm[1], NORM_LAYER, w, true);
    m->vision.positions = nn_parameter(e, p, INIT_WEIGHT, SHAPE(v->positions, 2, w));
    nn_move_last(p, first);
    nn_norm_create(e, p, &m->vision.patch_norm[2], NORM_LAYER, w, true);
    nn_linear_create(e, p, &m->vision.mergers[0].merging, v->intermediate_size, v->out_hidden_size, false);
    audio_build_embedding(e, m);
}

/* --- in the text ------------------------------------------------------------------------------ */

struct tensor *vision_hide_placeholders(struct engine *e, const struct decoder *m, struct tensor *ids,
                                        struct placeholders *p)
{
    enum { IMAGE, VIDEO, SOUND };
    int64_t pad = m->config->has_padding_idx ? m->config->pad_token_id : 0;
    for (int i = IMAGE; i <= SOUND; i++) p->of_kind[i] = tensor_keep(op_compare_scalar(e, PLIM_BINARY_EQ, ids, -1 - i));
    struct tensor *two = tensor_keep(op_compare(e, PLIM_BINARY_OR, p->of_kind[IMAGE], p->of_kind[VIDEO]));
    p->any = tensor_keep(op_compare(e, PLIM_BINARY_OR, two, p->of_kind[SOUND]));
    tensor_drop(e, two);
    struct tensor *copy = tensor_keep(op_clone(e, ids));
    p->ids = tensor_keep(op_where(e, p->any, NULL, copy, PLIM_I64, (double)pad, 0));
    tensor_drop(e, copy);
    return e->halted ? e->poison : p->ids;
}

void vision_pad_placeholders(struct engine *e, const struct decoder *m, struct tensor *embeddings,
                             struct placeholders *p)
{
    int64_t pad = m->config->has_padding_idx ? m->config->pad_token_id : 0;
    if (e->halted) return;
    if (pad < 0) pad += m->config->vocab_size;
    struct tensor *row = op_view(e, op_select(e, m->embedding, 0, pad), SHAPE(1, 1, m->config->hidden_size));
    struct tensor *where = tensor_keep(op_unsqueeze(e, p->any, -1));
    p->embeddings = tensor_keep(op_where(e, where, row, embeddings, (enum plim_dtype)embeddings->a.dtype, 0, 0));
    tensor_drop(e, where);
}

void vision_drop_placeholders(struct engine *e, struct placeholders *p)
{
    for (int i = 0; i < 3; i++) tensor_drop(e, p->of_kind[i]);
    tensor_drop_all(e, p->any, p->ids, p->embeddings);
}

static const struct module patches[] = {{"input_proj", offsetof(struct vision, patch), MODULE_LINEAR}, {0}};
static const struct module merger[] = {
    {"embedding_projection", offsetof(struct vision_merger, merging), MODULE_LINEAR}, {0}};

static const struct vision_parts parts[] = {
    {"model.vision_tower.patch_embedder", patches, VISION_TOWER, MEETS_PATCHES, false},
    {"model.vision_tower.encoder.layers.%lld", plim_gemma4_tower_block, VISION_BLOCKS, MEETS_PATCHES, false},
    {"model.audio_tower.subsample_conv_projection", plim_audio_front, VISION_AUDIO_FRONT, MEETS_NOTHING, true},
    {"model.audio_tower.layers.%lld", plim_audio_block, VISION_AUDIO_BLOCKS, MEETS_NOTHING, true},
    {"model.audio_tower", plim_audio_back, VISION_AUDIO_BACK, MEETS_NOTHING, true},
    {"model.embed_vision", merger, VISION_MERGER, MEETS_ROWS, true},
    {"model.embed_audio", plim_audio_embedding, VISION_AUDIO_EMBEDDING, MEETS_NOTHING, true},
    {0}};
const struct vision_tower plim_tower_gemma4 = {
    .build = build, .build_behind = build_behind, .parts = parts};

#define OF_TOWER(path, field, kind) {path, offsetof(struct vision, field), MODULE_##kind}
static const struct module unified[] = {OF_TOWER("patch_ln1", patch_norm[0], NORM),
                                        OF_TOWER("patch_dense", patch, LINEAR),
                                        OF_TOWER("patch_ln2", patch_norm[1], NORM),
                                        OF_TOWER("pos_embedding", positions, PARAMETER),
                                        OF_TOWER("pos_norm", patch_norm[2], NORM),
                                        {0}};
static const struct vision_parts unified_parts[] = {
    {"model.embed_vision", unified, VISION_TOWER, MEETS_ROWS, true},
    {"model.embed_vision.multimodal_embedder", merger, VISION_MERGER, MEETS_ROWS, true},
    {"model.embed_audio", plim_audio_embedding, VISION_AUDIO_EMBEDDING, MEETS_NOTHING, true},
    {0}};
const struct vision_tower plim_tower_gemma4_unified = {
    .build_behind = build_embedders, .parts = unified_parts};
