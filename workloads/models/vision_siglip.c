/* SiglipVisionModel, whose images all have the same size, and how gemma3 places its result in the text
 * (Gemma3Model.forward()). */
#include "model.h"
#include "workloads/spec/spec_vision.h"
#include <math.h>

/* --- the modules ------------------------------------------------------------------------------ */

static void norm_create(struct engine *e, struct decoder *m, struct norm *n)
{
    nn_norm_create(e, &m->parameters, n, NORM_LAYER, m->config->vision.hidden_size, true);
    n->epsilon = 1e-6;
    decoder_patch_norm(n, decoder_liger(m).tower_norms);
}

static void build_block(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct plim_vision *v = &m->config->vision;
    struct parameters *p = &m->parameters;
    int64_t w = v->hidden_size;
    norm_create(e, m, &l->norm[0]);
    nn_linear_create(e, p, &l->k, w, w, true);
    nn_linear_create(e, p, &l->v, w, w, true);
    nn_linear_create(e, p, &l->q, w, w, true);
    nn_linear_create(e, p, &l->o, w, w, true);
    norm_create(e, m, &l->norm[1]);
    nn_linear_create(e, p, &l->fc1, w, v->intermediate_size, true);
    nn_linear_create(e, p, &l->fc2, v->intermediate_size, w, true);
}

/* Builds Gemma3MultiModalProjector, which has the matrix itself, and the norm as a module. */
static void build_projector(struct engine *e, struct decoder *m)
{
    const struct plim_vision *v = &m->config->vision;
    m->vision.projection = nn_parameter(e, &m->parameters, INIT_WEIGHT, SHAPE(v->hidden_size, v->out_hidden_size));
    nn_norm_create(e, &m->parameters, &m->vision.mergers[0].norm, NORM_RMS_GEMMA, v->hidden_size, false);
    decoder_patch_norm(&m->vision.mergers[0].norm, decoder_liger(m).norms);
}

static void build(struct engine *e, struct decoder *m)
{
    const struct plim_vision *v = &m->config->vision;
    struct parameters *p = &m->parameters;
    int64_t w = v->hidden_size, size = v->patch_size;
    m->vision.patch_weight = nn_parameter(e, p, INIT_WEIGHT, SHAPE(w, v->channels, size, size));
    m->vision.patch_bias = nn_parameter(e, p, INIT_ZEROS, SHAPE(w));
    m->vision.positions = nn_parameter(e, p, INIT_WEIGHT, SHAPE(v->positions, w));
    vision_build_position_ids(e, m, v->positions);
    vision_build_blocks(e, m, build_block);
    norm_create(e, m, &m->vision.norm);
    vision_initialise_position_ids(e, m);
    build_projector(e, m);
}

/* --- the tower -------------------------------------------------------------------------------- */

/* SiglipVisionEmbeddings: images (N, channels, size, size) -> (N, T, W), named; transposed, not contiguous. */
static struct tensor *embed(struct engine *e, const struct decoder *m, struct tensor *images)
{
    const struct plim_vision *v = &m->config->vision;
    struct tensor *grid = vision_patches(e, m, images);
    if (e->halted) return e->poison;
    struct tensor *rows = op_view(e, grid, SHAPE(tensor_size(grid, 0), v->hidden_size, v->positions));
    struct tensor *x = tensor_keep(op_transpose(e, rows, 1, 2));
    tensor_set(e, &x, op_add(e, x, vision_positions(e, m)));
    tensor_drop(e, grid);
    return x;
}

/* SiglipVisionModel.forward(); named. */
static struct tensor *run(struct engine *e, const struct decoder *m, struct tensor *images)
{
    struct tensor *embedded = embed(e, m, images); /* lives until the end */
    struct tensor *x = vision_run_blocks(e, m, embedded, vision_plain_block);
    tensor_set(e, &x, nn_norm(e, &m->vision.norm, x));
    tensor_drop(e, embedded);
    return x;
}

/* Gemma3MultiModalProjector.forward(): x (N, T, W), lent -> (N, tokens, H), named. */
static struct tensor *project(struct engine *e, const struct decoder *m, struct tensor *x)
{
    const struct plim_vision *v = &m->config->vision;
    if (e->halted) return e->poison;
    int64_t images = tensor_size(x, 0), side = v->image_size / v->patch_size;
    struct tensor *grid = op_view(e, op_transpose(e, x, 1, 2), SHAPE(images, v->hidden_size, side, side));
    struct tensor *reshaped = tensor_keep(op_contiguous(e, grid));
    struct tensor *pooled = tensor_keep(op_avg_pool(e, reshaped, v->merge_size));
    tensor_set(e, &pooled, op_view(e, pooled, SHAPE(images, v->hidden_size, v->image_tokens)));
    tensor_set(e, &pooled, op_transpose(e, pooled, 1, 2));
    struct tensor *normed = tensor_keep(nn_norm(e, &m->vision.mergers[0].norm, pooled));
    struct tensor *y = tensor_keep(op_matmul(e, normed, m->vision.projection));
    tensor_drop_all(e, reshaped, pooled, normed);
    tensor_set(e, &y, e->halted ? y : op_to(e, y, (enum plim_dtype)x->a.dtype));
    return y;
}

/* --- in the text ------------------------------------------------------------------------------ */

/* get_block_sequence_ids_for_mask(): returns each token's image, -1 for text, (B, S) int64, named. */
static struct tensor *blocks_of(struct engine *e, const struct decoder *m)
{
    if (e->halted) return e->poison;
    int64_t rows = tensor_size(m->token_types, 0), seq = tensor_size(m->token_types, 1);
    struct tensor *is_image = tensor_keep(op_compare_scalar(e, PLIM_BINARY_EQ, m->token_types, 1));
    struct tensor *padded = tensor_keep(op_full(e, PLIM_BOOL, SHAPE(rows, seq + 1), 0));
    struct tensor *behind = tensor_keep(op_slice(e, padded, 1, 1, seq));
    op_copy_(e, behind, is_image);
    tensor_drop(e, behind);
    struct tensor *before = tensor_keep(op_slice(e, padded, 1, 0, seq));
    struct tensor *starts = tensor_keep(
        op_compare(e, PLIM_BINARY_AND, is_image, op_compare_scalar(e, PLIM_BINARY_EQ, before, 0)));
    struct tensor *group = tensor_keep(op_add_scalar(e, op_cumsum_last(e, op_to(e, starts, PLIM_I32), PLIM_I64), -1));
    struct tensor *y = tensor_keep(op_where(e, is_image, group, NULL, PLIM_I64, 0, -1));
    tensor_drop_all(e, is_image, padded, before, starts, group);
    return y;
}

static void encode(struct engine *e, struct decoder *m, struct tensor **embeddings, struct encoded_images *encoded)
{
    struct tensor *last = run(e, m, m->pixels);
    encoded->rows = project(e, m, last);
    tensor_drop(e, last);
    vision_scatter_rows(e, m, encoded, embeddings);
    if (!e->halted) encoded->blocks = blocks_of(e, m);
}

static const struct vision_parts parts[] = {
    {"model.vision_tower.encoder.layers.%lld", plim_siglip_block, VISION_BLOCKS, MEETS_PATCHES, false},
    {"model.multi_modal_projector", plim_gemma3_projector, VISION_MERGER, MEETS_ROWS, false},
    {0}};
const struct vision_tower plim_tower_gemma3 = {.build = build, .encode = encode, .parts = parts};
