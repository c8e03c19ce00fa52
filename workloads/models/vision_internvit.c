/* InternVLVisionModel, whose tiles all have the same size and start with a class token, and internvl's pixel shuffle
 * and projector between it and the text (InternVLModel.forward()). An image is one tile, or several and one of the
 * whole image. */
#include "model.h"
#include "workloads/spec/spec_vision.h"

/* --- the modules ------------------------------------------------------------------------------ */

static void norm_create(struct engine *e, struct decoder *m, struct norm *n)
{
    nn_norm_create(e, &m->parameters, n, NORM_LAYER, m->config->vision.hidden_size, true);
    n->epsilon = 1e-6;
    decoder_patch_norm(n, decoder_liger(m).tower_norms);
}

/* Creates lambda_1 or lambda_2: a number times a tensor of ones. It has weight decay, although it has one dimension. */
static struct tensor *scale_create(struct engine *e, struct decoder *m, size_t place)
{
    int64_t width = m->config->vision.hidden_size;
    struct tensor *ones = tensor_keep(op_full(e, m->parameters.dtype, 1, &width, 1));
    struct tensor *x = nn_parameter(e, &m->parameters, INIT_ONES, 1, &width);
    tensor_drop(e, ones);
    if (!e->halted) x->odd_name = true;
    nn_move_last(&m->parameters, place);
    return x;
}

static void build_block(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct plim_vision *v = &m->config->vision;
    struct parameters *p = &m->parameters;
    int64_t w = v->hidden_size;
    size_t first = p->count;
    nn_linear_create(e, p, &l->q, w, w, v->attention_bias);
    nn_linear_create(e, p, &l->k, w, w, v->attention_bias);
    nn_linear_create(e, p, &l->v, w, w, v->attention_bias);
    nn_linear_create(e, p, &l->o, w, w, true);
    nn_linear_create(e, p, &l->fc1, w, v->intermediate_size, true);
    nn_linear_create(e, p, &l->fc2, v->intermediate_size, w, true);
    norm_create(e, m, &l->norm[0]);
    norm_create(e, m, &l->norm[1]);
    for (size_t i = 0; i < 2; i++) l->scales[i] = scale_create(e, m, first + i);
}

static void build(struct engine *e, struct decoder *m)
{
    const struct plim_vision *v = &m->config->vision;
    struct parameters *p = &m->parameters;
    struct vision_merger *projector = &m->vision.mergers[0];
    int64_t w = v->hidden_size, h = v->out_hidden_size, size = v->patch_size,
            merged = w * v->merge_size * v->merge_size;
    m->vision.class_token = nn_parameter(e, p, INIT_WEIGHT, SHAPE(1, 1, w));
    m->vision.patch_weight = nn_parameter(e, p, INIT_WEIGHT, SHAPE(w, v->channels, size, size));
    m->vision.patch_bias = nn_parameter(e, p, INIT_ZEROS, SHAPE(w));
    m->vision.positions = nn_parameter(e, p, INIT_WEIGHT, SHAPE(1, v->positions + 1, w));
    nn_move_last(p, 1);
    vision_build_blocks(e, m, build_block);
    nn_norm_create(e, p, &projector->norm, NORM_LAYER, merged, true);
    nn_linear_create(e, p, &projector->fc1, merged, h, true);
    nn_linear_create(e, p, &projector->fc2, h, h, true);
}

/* --- a block ---------------------------------------------------------------------------------- */

/* InternVLVisionAttention: x (N, T, W) -> the same shape, floating. The caller drops *weights. */
static struct tensor *attention(struct engine *e, const struct block_call *b, struct tensor *x,
                                struct tensor **weights)
{
    struct attention_call call = vision_attention(b->m);
    struct tensor *qkv[3];
    call.softmax_fp32 = false;
    call.softmax_stays = true;
    nn_begin(e);
    vision_project_first(e, b, x, qkv);
    struct tensor *attended = decoder_context(e, &call, qkv, weights);
    struct tensor *y = tensor_keep(nn_linear(e, &b->layer->o, attended));
    tensor_set(e, &y, nn_dropout(e, y, 0)); /* an Identity */
    tensor_drop_all(e, qkv[0], qkv[1], qkv[2], attended);
    return nn_end(e, tensor_yield(y));
}

/* InternVLVisionLayer */
static struct tensor *block(struct engine *e, const struct block_call *b, struct tensor *x)
{
    const struct decoder_layer *l = b->layer;
    struct tensor *weights, *h = tensor_keep(nn_norm(e, &l->norm[0], x));
    struct tensor *attended = tensor_keep(attention(e, b, h, &weights));
    tensor_drop(e, h);
    tensor_set(e, &attended, op_mul(e, l->scales[0], attended));
    struct tensor *residual = tensor_keep(op_add(e, attended, x));
    h = tensor_keep(nn_norm(e, &l->norm[1], residual));
    tensor_set(e, &h, vision_plain_mlp(e, b, h));
    tensor_set(e, &h, nn_dropout(e, h, 0));
    tensor_set(e, &h, op_mul(e, l->scales[1], h));
    tensor_set(e, &h, op_add(e, h, residual));
    tensor_drop_all(e, residual, attended, weights);
    return tensor_yield(h);
}

/* --- the tower -------------------------------------------------------------------------------- */

/* InternVLVisionPatchEmbeddings, which read the type of their weight: tiles (N, channels, size, size) -> (N, patches,
 * W), floating. */
static struct tensor *patches_of(struct engine *e, const void *module, struct tensor *tiles)
{
    const struct decoder *m = module;
    const struct plim_vision *v = &m->config->vision;
    nn_access_weight(e, m->vision.patch_weight, NN_ACCESSES, m->vision.patch_weight);
    struct tensor *grid = vision_convolve(e, m, tiles);
    if (e->halted) return grid;
    struct tensor *rows = op_view(e, grid, SHAPE(tensor_size(tiles, 0), v->hidden_size, v->positions));
    struct tensor *x = tensor_keep(op_transpose(e, rows, 1, 2));
    vision_require_grads(e, m, x);
    return tensor_yield(x);
}

/* InternVLVisionEmbeddings: tiles -> (N, 1 + patches, W), floating. */
static struct tensor *embed(struct engine *e, const void *module, struct tensor *tiles)
{
    const struct decoder *m = module;
    struct tensor *const weight[] = {m->vision.patch_weight, NULL};
    if (e->halted) return e->poison;
    int64_t count = tensor_size(tiles, 0);
    struct tensor *x = tensor_keep(nn_run(e, weight, NN_ACCESSES, patches_of, m, tiles));
    struct tensor *first = tensor_keep(op_expand(e, m->vision.class_token, SHAPE(count, -1, -1)));
    tensor_set(e, &x, op_cat(e, 2, (struct tensor *[]){first, x}, 1));
    tensor_set(e, &x, op_add(e, x, m->vision.positions));
    tensor_drop(e, first);
    return nn_dropout(e, tensor_yield(x), 0);
}

/* InternVLVisionModel.forward(), which has an Identity instead of a norm after its blocks; named. */
static struct tensor *run(struct engine *e, const struct decoder *m, struct tensor *tiles)
{
    struct tensor *const own[] = {m->vision.class_token, m->vision.positions, NULL};
    nn_begin(e);
    struct tensor *embedded = tensor_keep(nn_run(e, own, NN_EMBEDDING, embed, m, tiles)); /* lives until the end */
    nn_begin(e); /* InternVLVisionEncoder */
    struct tensor *x = vision_run_blocks(e, m, embedded, block);
    tensor_set(e, &x, nn_end(e, x));
    tensor_set(e, &x, nn_dropout(e, x, 0)); /* the Identity */
    tensor_set(e, &x, nn_end(e, x));
    tensor_drop(e, embedded);
    return x;
}

/* --- the projector ---------------------------------------------------------------------------- */

/* Returns a copy of x (N, a, b, c) with a and b transposed, viewed as (N, b, a / merge, c * merge); floating. */
static struct tensor *fold(struct engine *e, struct tensor *x, int64_t merge)
{
    static const int order[] = {0, 2, 1, 3};
    struct tensor *turned = tensor_keep(op_contiguous(e, op_permute(e, x, 4, order)));
    if (e->halted) return turned;
    const int64_t *n = turned->a.shape;
    tensor_set(e, &turned, op_view(e, turned, SHAPE(n[0], n[1], n[2] / merge, n[3] * merge)));
    return tensor_yield(turned);
}

/* pixel_shuffle() of x (N, 1 + patches, W), lent, without the class token: (N, patches / merge^2, merge^2 * W),
 * named. */
static struct tensor *shuffle(struct engine *e, const struct plim_vision *v, struct tensor *x)
{
    if (e->halted) return e->poison;
    int64_t count = tensor_size(x, 0), side = v->image_size / v->patch_size, merge = v->merge_size, w = v->hidden_size;
    struct tensor *rows = op_slice(e, x, 1, 1, v->positions);
    struct tensor *y = tensor_keep(op_view(e, rows, SHAPE(count, side, side / merge, w * merge)));
    tensor_set(e, &y, fold(e, y, merge));
    tensor_set(e, &y, fold(e, y, 1));
    if (!e->halted) tensor_set(e, &y, op_view(e, y, SHAPE(count, v->positions / (merge * merge), w * merge * merge)));
    return y;
}

/* InternVLMultiModalProjector.forward(): x lent -> (N, tokens, H), floating. */
static struct tensor *project(struct engine *e, const struct decoder *m, struct tensor *x)
{
    const struct vision_merger *projector = &m->vision.mergers[0];
    nn_begin(e);
    struct tensor *y = tensor_keep(nn_norm(e, &projector->norm, x));
    vision_project(e, projector, &y);
    return nn_end(e, tensor_yield(y));
}

/* --- in the text ------------------------------------------------------------------------------ */

/* get_image_features(): (N, tokens, H), named. */
static struct tensor *features_of(struct engine *e, const struct decoder *m)
{
    if (e->halted) return e->poison;
    struct tensor *tiles = tensor_hold(op_to(e, m->pixels, (enum plim_dtype)m->vision.class_token->a.dtype));
    struct tensor *last = run(e, m, tiles), *y = shuffle(e, &m->config->vision, last);
    tensor_set(e, &y, project(e, m, y));
    tensor_drop_all(e, last, tiles);
    return y;
}

static void encode(struct engine *e, struct decoder *m, struct tensor **embeddings, struct encoded_images *encoded)
{
    encoded->rows = features_of(e, m);
    vision_scatter_rows(e, m, encoded, embeddings);
}

static const struct vision_parts parts[] = {
    {"model.vision_tower.encoder.layer.%lld", plim_internvit_block, VISION_BLOCKS, MEETS_PATCHES, false},
    {"model.multi_modal_projector", plim_internvl_projector, VISION_MERGER, MEETS_ROWS, false},
    {0}};
const struct vision_tower plim_tower_internvit = {.build = build, .encode = encode, .parts = parts};
