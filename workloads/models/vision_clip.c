/* CLIPVisionModel, whose images all have the same size and start with a class token, and llava's projector between it
 * and the text (LlavaModel.forward()). */
#include "model.h"
#include "workloads/spec/spec_vision.h"

/* --- the modules ------------------------------------------------------------------------------ */

static void norm_create(struct engine *e, struct decoder *m, struct norm *n)
{
    nn_norm_create(e, &m->parameters, n, NORM_LAYER, m->config->vision.hidden_size, true);
}

static void build_block(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct plim_vision *v = &m->config->vision;
    struct parameters *p = &m->parameters;
    int64_t w = v->hidden_size;
    nn_linear_create(e, p, &l->k, w, w, true);
    nn_linear_create(e, p, &l->v, w, w, true);
    nn_linear_create(e, p, &l->q, w, w, true);
    nn_linear_create(e, p, &l->o, w, w, true);
    norm_create(e, m, &l->norm[0]);
    nn_linear_create(e, p, &l->fc1, w, v->intermediate_size, true);
    nn_linear_create(e, p, &l->fc2, v->intermediate_size, w, true);
    norm_create(e, m, &l->norm[1]);
}

static void build(struct engine *e, struct decoder *m)
{
    const struct plim_vision *v = &m->config->vision;
    struct parameters *p = &m->parameters;
    struct vision_merger *projector = &m->vision.mergers[0];
    int64_t w = v->hidden_size, h = v->out_hidden_size, size = v->patch_size;
    m->vision.class_token = nn_parameter(e, p, INIT_ZEROS, SHAPE(w));
    if (!e->halted) m->vision.class_token->odd_name = true;
    m->vision.patch_weight = nn_parameter(e, p, INIT_WEIGHT, SHAPE(w, v->channels, size, size));
    m->vision.positions = nn_parameter(e, p, INIT_WEIGHT, SHAPE(v->positions + 1, w));
    vision_build_position_ids(e, m, v->positions + 1);
    norm_create(e, m, &m->vision.norm);
    vision_build_blocks(e, m, build_block);
    norm_create(e, m, &m->vision.last_norm);
    vision_initialise_position_ids(e, m);
    nn_linear_create(e, p, &projector->fc1, w, h, true);
    nn_linear_create(e, p, &projector->fc2, h, h, true);
}

/* --- the tower -------------------------------------------------------------------------------- */

/* CLIPVisionEmbeddings, which read the type of the patch weight: images (N, channels, size, size) -> (N, 1 + patches,
 * W), floating. */
static struct tensor *embed(struct engine *e, const void *module, struct tensor *images)
{
    const struct decoder *m = module;
    const struct plim_vision *v = &m->config->vision;
    nn_access_weight(e, m->vision.class_token, NN_EMBEDDING, m->vision.patch_weight);
    struct tensor *grid = vision_patches(e, m, images);
    if (e->halted) return e->poison;
    int64_t count = tensor_size(grid, 0);
    struct tensor *rows = op_view(e, grid, SHAPE(count, v->hidden_size, v->positions));
    struct tensor *patches = tensor_keep(op_transpose(e, rows, 1, 2));
    struct tensor *first = tensor_keep(op_expand(e, m->vision.class_token, SHAPE(count, 1, -1)));
    struct tensor *x = tensor_keep(op_cat(e, 2, (struct tensor *[]){first, patches}, 1));
    tensor_set(e, &x, op_add(e, x, vision_positions(e, m)));
    tensor_drop_all(e, first, patches, grid);
    return tensor_yield(x);
}

/* CLIPVisionModel.forward(): stores the first block's input and each block's result in `states`; returns the last norm
 * of the class token. All named. */
static struct tensor *run(struct engine *e, const struct decoder *m, struct tensor **states)
{
    const struct plim_vision *v = &m->config->vision;
    struct block_call call = {.m = m, .block = vision_plain_block};
    struct tensor *const own[] = {m->vision.class_token, NULL};
    nn_begin(e);
    struct tensor *embedded = tensor_keep(nn_run(e, own, NN_EMBEDDING, embed, m, m->pixels));
    states[0] = tensor_keep(nn_norm(e, &m->vision.norm, embedded));
    tensor_drop(e, embedded);
    nn_begin(e); /* CLIPEncoder, whose result needs no gradient */
    for (int64_t i = 0; i < v->layers; i++) {
        call.layer = &m->vision.layers[i];
        states[i + 1] = tensor_keep(decoder_run_block(e, &call, states[i]));
    }
    if (e->halted) return e->poison;
    struct tensor *first = tensor_keep(op_select(e, states[v->layers], 1, 0));
    tensor_set(e, &first, nn_norm(e, &m->vision.last_norm, first));
    tensor_set(e, &states[v->layers - 1], nn_end(e, states[v->layers - 1])); /* its only result that is used */
    return first;
}

/* --- in the text ------------------------------------------------------------------------------ */

/* Splits images (N, patches, H), taken, into a list and joins them again: (N * patches, H), in `dtype`; named. */
static struct tensor *join(struct engine *e, struct tensor *x, enum plim_dtype dtype)
{
    if (e->halted) return x;
    int64_t count = tensor_size(x, 0), patches = tensor_size(x, 1), width = tensor_size(x, 2);
    struct tensor **parts = vision_split(e, x, count); /* list(x), whose gradient is a stack */
    tensor_drop(e, x);
    for (int64_t i = 0; i < count && !e->halted; i++)
        parts[i] = tensor_keep(op_view(e, parts[i], SHAPE(patches, width)));
    struct tensor *all = e->halted ? e->poison : tensor_keep(op_to(e, op_cat(e, (int)count, parts, 0), dtype));
    for (int64_t i = 0; i < count && !e->halted; i++) tensor_drop(e, parts[i]);
    engine_free_host(e, parts);
    return all;
}

/* get_image_features(), which requests the results of all blocks and uses those of the last but one
 * (vision_feature_layer -2), without the class token; named. */
static struct tensor *features_of(struct engine *e, struct decoder *m)
{
    const struct plim_vision *v = &m->config->vision;
    struct tensor **states = engine_allocate_host(e, ((size_t)v->layers + 1) * sizeof *states), *y = e->poison;
    struct tensor *first = NULL;
    if (!e->halted) first = run(e, m, states);
    if (!e->halted) {
        struct tensor *chosen = tensor_keep(op_slice(e, states[v->layers - 1], 1, 1, v->positions));
        y = tensor_ref(chosen);
        nn_begin(e);
        vision_project(e, &m->vision.mergers[0], &y); /* LlavaMultiModalProjector */
        tensor_set(e, &y, nn_end(e, y));
        tensor_drop(e, chosen);
    }
    tensor_drop(e, first);
    for (int64_t i = 0; i <= v->layers && states; i++) tensor_drop(e, states[i]);
    engine_free_host(e, states);
    return y;
}

static void encode(struct engine *e, struct decoder *m, struct tensor **embeddings, struct encoded_images *encoded)
{
    if (e->halted) return;
    encoded->rows = join(e, features_of(e, m), (enum plim_dtype)(*embeddings)->a.dtype);
    vision_scatter_rows(e, m, encoded, embeddings);
}

static const struct vision_parts parts[] = {
    {"model.vision_tower.encoder.layers.%lld", plim_clip_block, VISION_BLOCKS, MEETS_PATCHES, false},
    {"model.multi_modal_projector", plim_llava_projector, VISION_MERGER, MEETS_ROWS, false},
    {0}};
const struct vision_tower plim_tower_clip = {.build = build, .encode = encode, .parts = parts};
