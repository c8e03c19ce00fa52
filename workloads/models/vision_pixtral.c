/* PixtralVisionModel, whose images have any size and are joined to one row of patches, and mistral3's projector between
 * it and the text (Mistral3Model.forward()). */
#include "model.h"
#include "workloads/spec/spec_vision.h"

/* --- the modules ------------------------------------------------------------------------------ */

static void norm_create(struct engine *e, struct decoder *m, struct norm *n)
{
    nn_norm_create(e, &m->parameters, n, NORM_RMS, m->config->vision.hidden_size, false);
    n->epsilon = 1e-5;
}

static void build_block(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct plim_vision *v = &m->config->vision;
    struct parameters *p = &m->parameters;
    int64_t w = v->hidden_size, f = v->intermediate_size;
    norm_create(e, m, &l->norm[0]);
    nn_linear_create(e, p, &l->gate, w, f, false);
    nn_linear_create(e, p, &l->up, w, f, false);
    nn_linear_create(e, p, &l->down, f, w, false);
    nn_linear_create(e, p, &l->k, w, w, false);
    nn_linear_create(e, p, &l->v, w, w, false);
    nn_linear_create(e, p, &l->q, w, w, false);
    nn_linear_create(e, p, &l->o, w, w, false);
    norm_create(e, m, &l->norm[1]);
}

/* Builds Mistral3MultiModalProjector, whose norm has the epsilon of the text's norms. */
static void build_projector(struct engine *e, struct decoder *m, struct vision_merger *merger)
{
    const struct plim_vision *v = &m->config->vision;
    struct parameters *p = &m->parameters;
    int64_t w = v->hidden_size, h = v->out_hidden_size;
    nn_norm_create(e, p, &merger->norm, NORM_RMS, w, false);
    nn_linear_create(e, p, &merger->merging, w * v->merge_size * v->merge_size, w, false);
    nn_linear_create(e, p, &merger->fc1, w, h, false);
    nn_linear_create(e, p, &merger->fc2, h, h, false);
}

static void build(struct engine *e, struct decoder *m)
{
    const struct plim_vision *v = &m->config->vision;
    int64_t w = v->hidden_size, size = v->patch_size;
    struct rotary rotary = {.rope = &nn_rope_axial, .dim = w / v->heads};
    m->vision.patch_weight = nn_parameter(e, &m->parameters, INIT_WEIGHT, SHAPE(w, v->channels, size, size));
    norm_create(e, m, &m->vision.norm);
    if (!e->halted) m->vision.norm.weight->odd_name = true; /* ln_pre: not a norm by its name */
    vision_build_blocks(e, m, build_block);
    nn_rotary_create(e, &rotary);
    m->vision.inv_freq = rotary.inv_freq;
    m->vision.original_inv_freq = rotary.original_inv_freq;
    nn_rotary_initialise(e, &rotary);
    build_projector(e, m, &m->vision.mergers[0]);
}

/* --- a block ---------------------------------------------------------------------------------- */

/* PixtralAttention: x (1, T, W) -> the same shape, floating. The caller drops *weights. */
static struct tensor *attention(struct engine *e, const struct block_call *b, struct tensor *x,
                                struct tensor **weights)
{
    struct attention_call call = vision_attention(b->m);
    struct tensor *qkv[3], *rotated[2];
    call.mask = b->mask;
    vision_project_first(e, b, x, qkv);
    struct tensor *cos = tensor_keep(op_unsqueeze(e, b->cos, 0)), *sin = tensor_keep(op_unsqueeze(e, b->sin, 0));
    for (int i = 0; i < 2; i++) rotated[i] = tensor_keep(nn_rotate(e, qkv[i], cos, sin));
    for (int i = 0; i < 2; i++) tensor_set(e, &qkv[i], rotated[i]);
    tensor_drop_all(e, cos, sin, rotated[0], rotated[1]);
    struct tensor *y = decoder_context(e, &call, qkv, weights);
    tensor_set(e, &y, nn_linear(e, &b->layer->o, y));
    tensor_drop_all(e, qkv[0], qkv[1], qkv[2]);
    return tensor_yield(y);
}

static struct tensor *mlp(struct engine *e, const struct block_call *b, struct tensor *x)
{
    return decoder_gated_mlp(e, b->m->config->vision.activation, b->layer, x);
}

/* PixtralAttentionLayer */
static struct tensor *block(struct engine *e, const struct block_call *b, struct tensor *x)
{
    return vision_block(e, b, x, attention, mlp);
}

/* --- the tower -------------------------------------------------------------------------------- */

/* Returns a number that the GPU computes from an image's size, and the host reads; named. */
static struct tensor *number(struct engine *e)
{
    struct tensor *x = tensor_keep(op_full(e, PLIM_I64, 0, NULL, 0));
    if (!e->halted) engine_item(e, x);
    return x;
}

/* Embeds images (N, channels, height, width): returns their patches in one row, (1, T, W), named. *grids: the
 * convolution's result, which forward() holds until its end; named. */
static struct tensor *embed(struct engine *e, const struct decoder *m, struct tensor *images, struct tensor **grids)
{
    *grids = vision_patches(e, m, images);
    if (e->halted) return e->poison;
    int64_t count = tensor_size(*grids, 0), w = tensor_size(*grids, 1);
    int64_t patches = tensor_size(*grids, 2) * tensor_size(*grids, 3);
    struct tensor **parts = vision_split(e, *grids, count); /* unbind(0), whose gradient is a stack */
    for (int64_t i = 0; i < count && !e->halted; i++) {
        struct tensor *size[2] = {number(e), number(e)};
        tensor_drop_all(e, size[0], size[1]);
        parts[i] = tensor_keep(op_transpose(e, op_view(e, parts[i], SHAPE(w, patches)), 0, 1));
    }
    struct tensor *rows = e->halted ? e->poison : tensor_keep(op_cat(e, (int)count, parts, 0));
    for (int64_t i = 0; i < count && !e->halted; i++) tensor_drop(e, parts[i]);
    engine_free_host(e, parts);
    tensor_set(e, &rows, op_unsqueeze(e, rows, 0));
    tensor_set(e, &rows, nn_norm(e, &m->vision.norm, rows));
    return rows;
}

/* Returns row and column of each patch, image by image, (T, 2) int64, named. ends: the row and column indices of the
 * last image, which Python's variables hold; named. */
static struct tensor *make_position_ids(struct engine *e, int64_t images, int64_t rows, int64_t columns,
                                        struct tensor *ends[2])
{
    struct tensor **parts = engine_allocate_host(e, (size_t)images * sizeof *parts), *position_ids = e->poison;
    ends[0] = ends[1] = NULL;
    for (int64_t i = 0; i < images && !e->halted; i++) {
        struct tensor *row = tensor_keep(op_arange(e, PLIM_I64, rows, 0, 1));
        struct tensor *column = tensor_keep(op_arange(e, PLIM_I64, columns, 0, 1));
        tensor_drop_all(e, ends[0], ends[1]);
        ends[0] = row, ends[1] = column;
        struct tensor *grid[2] = {op_expand(e, op_unsqueeze(e, row, 1), SHAPE(rows, columns)),
                                  op_expand(e, op_unsqueeze(e, column, 0), SHAPE(rows, columns))};
        for (int k = 0; k < 2; k++) grid[k] = tensor_keep(op_reshape(e, grid[k], SHAPE(rows * columns)));
        struct tensor *wide[2] = {op_unsqueeze(e, grid[0], 1), op_unsqueeze(e, grid[1], 1)};
        parts[i] = tensor_keep(op_cat(e, 2, wide, 1));
        tensor_drop_all(e, grid[0], grid[1]);
    }
    if (!e->halted) position_ids = tensor_keep(op_cat(e, (int)images, parts, 0));
    for (int64_t i = 0; i < images && parts; i++) tensor_drop(e, parts[i]);
    engine_free_host(e, parts);
    return position_ids;
}

/* recomposition_frequencies(): of x (T, 2, n) takes the first half of the rows' values and the second half of the
 * columns', and repeats both: (T, 2 n), floating. */
static struct tensor *recompose(struct engine *e, struct tensor *x)
{
    if (e->halted) return op_halted(e, 1, &x);
    int64_t half = tensor_size(x, -1) / 2;
    struct tensor *parts[2];
    for (int i = 0; i < 2; i++) parts[i] = op_select(e, op_slice(e, x, -1, i * half, half), 1, i);
    struct tensor *once = tensor_keep(op_cat(e, 2, parts, -1));
    struct tensor *y = op_cat(e, 2, (struct tensor *[]){once, once}, -1);
    tensor_drop(e, once);
    return y;
}

/* Sets cos and sin of the call, (T, W / heads) each, in `dtype`. */
static void make_rotary(struct engine *e, struct block_call *call, struct tensor *position_ids, enum plim_dtype dtype)
{
    bool grad = e->grad_enabled, autocast = e->autocast.on;
    e->grad_enabled = e->autocast.on = false;
    struct tensor *wide = tensor_keep(op_to(e, op_unsqueeze(e, position_ids, -1), PLIM_F32));
    struct tensor *turns = op_unsqueeze(e, call->m->vision.inv_freq, 0);
    struct tensor *freqs = tensor_keep(op_matmul(e, wide, turns));
    struct tensor *cos = tensor_keep(op_mul_scalar(e, op_unary(e, freqs, PLIM_UNARY_COS), 1));
    struct tensor *sin = tensor_keep(op_mul_scalar(e, op_unary(e, freqs, PLIM_UNARY_SIN), 1));
    tensor_set(e, &cos, recompose(e, cos));
    tensor_set(e, &sin, recompose(e, sin));
    call->cos = e->halted ? tensor_ref(e->poison) : tensor_hold(op_to(e, cos, dtype));
    call->sin = e->halted ? tensor_ref(e->poison) : tensor_hold(op_to(e, sin, dtype));
    tensor_drop_all(e, cos, sin, wide, freqs);
    e->autocast.on = autocast;
    e->grad_enabled = grad;
}

/* generate_block_attention_mask(): (1, 1, T, T), by which each image attends only to itself; named. */
static struct tensor *make_mask(struct engine *e, struct tensor *x, int64_t images)
{
    if (e->halted) return e->poison;
    enum plim_dtype dtype = (enum plim_dtype)x->a.dtype;
    int64_t all = tensor_size(x, 1), patches = all / images;
    struct tensor *mask = tensor_keep(op_full(e, dtype, SHAPE(all, all), nn_lowest(dtype)));
    for (int64_t i = 0; i < images && !e->halted; i++) {
        struct tensor *own = op_slice(e, op_slice(e, mask, 0, i * patches, patches), 1, i * patches, patches);
        own = tensor_keep(own);
        op_fill_(e, own, 0);
        tensor_drop(e, own);
    }
    tensor_set(e, &mask, op_view(e, mask, SHAPE(1, 1, all, all)));
    return mask;
}

/* PixtralVisionModel.forward(): stores each block's input and the last block's result in `states`; named. */
static void run(struct engine *e, const struct decoder *m, struct tensor **states)
{
    const struct plim_vision *v = &m->config->vision;
    const struct plim_images *images = &m->setting->images;
    int64_t count = m->setting->micro_batch * images->count;
    struct tensor *grids, *ends[2];
    struct block_call call = {.m = m, .block = block};
    states[0] = embed(e, m, m->pixels, &grids);
    int64_t rows = images->height / v->patch_size, columns = images->width / v->patch_size;
    struct tensor *position_ids = make_position_ids(e, count, rows, columns, ends);
    call.positions = position_ids; /* the blocks receive them, but do not use them */
    if (!e->halted) make_rotary(e, &call, position_ids, (enum plim_dtype)states[0]->a.dtype);
    call.mask = make_mask(e, states[0], count);
    for (int64_t i = 0; i < v->layers; i++) {
        call.layer = &m->vision.layers[i];
        states[i + 1] = tensor_keep(decoder_run_block(e, &call, states[i]));
    }
    tensor_drop_all(e, grids, position_ids, ends[0], ends[1], call.cos, call.sin, call.mask);
}

/* --- the projector ---------------------------------------------------------------------------- */

/* x (1, W, rows, columns) of one image -> (tokens, merge^2 * W), a view of the unfolded patches; named. */
static struct tensor *squares(struct engine *e, const struct plim_vision *v, struct tensor *x)
{
    int64_t merged = v->hidden_size * v->merge_size * v->merge_size;
    struct tensor *columns = op_unfold(e, x, v->merge_size);
    if (e->halted) return e->poison;
    int64_t tokens = tensor_size(columns, 2);
    return tensor_keep(op_transpose(e, op_view(e, columns, SHAPE(merged, tokens)), 0, 1));
}

/* Mistral3PatchMerger: x (T, W), lent -> (tokens, W), floating. */
static struct tensor *merge(struct engine *e, const struct decoder *m, struct tensor *x)
{
    enum { SIZES = 3 }; /* numbers per image: its rows, columns and patches */
    const struct plim_vision *v = &m->config->vision;
    const struct plim_images *images = &m->setting->images;
    int64_t count = m->setting->micro_batch * images->count, rows = images->height / v->patch_size,
            columns = images->width / v->patch_size;
    struct tensor **sizes = engine_allocate_host(e, (size_t)count * SIZES * sizeof *sizes);
    for (int64_t i = 0; i < count * SIZES && sizes; i++) sizes[i] = number(e);
    struct tensor **parts = vision_split(e, x, count);
    for (int64_t i = 0; i < count && !e->halted; i++) {
        static const int order[] = {2, 0, 1};
        struct tensor *grid = op_permute(e, op_view(e, parts[i], SHAPE(rows, columns, v->hidden_size)), 3, order);
        parts[i] = squares(e, v, op_unsqueeze(e, grid, 0));
    }
    struct tensor *all = e->halted ? e->poison : tensor_keep(op_cat(e, (int)count, parts, 0));
    struct tensor *y = tensor_keep(nn_linear(e, &m->vision.mergers[0].merging, all));
    tensor_drop(e, all);
    for (int64_t i = 0; i < count && !e->halted; i++) tensor_drop(e, parts[i]);
    for (int64_t i = 0; i < count * SIZES && sizes; i++) tensor_drop(e, sizes[i]);
    engine_free_host(e, parts);
    engine_free_host(e, sizes);
    return tensor_yield(y);
}

/* Mistral3MultiModalProjector.forward(): x (1, T, W), lent -> (tokens, H), named. */
static struct tensor *project(struct engine *e, const struct decoder *m, struct tensor *x)
{
    const struct vision_merger *merger = &m->vision.mergers[0];
    if (e->halted) return e->poison;
    struct tensor *rows = tensor_keep(op_view(e, x, SHAPE(tensor_size(x, 1), tensor_size(x, 2))));
    struct tensor *features = tensor_keep(nn_norm(e, &merger->norm, rows));
    tensor_set(e, &features, merge(e, m, features));
    struct tensor *y = tensor_ref(features);
    vision_project(e, merger, &y);
    tensor_drop_all(e, rows, features);
    return y;
}

/* --- in the text ------------------------------------------------------------------------------ */

/* get_image_features(): (tokens, H), split by torch.split() and joined again by torch.cat(), in `dtype`; named. */
static struct tensor *features_of(struct engine *e, struct decoder *m, enum plim_dtype dtype)
{
    const struct plim_vision *v = &m->config->vision;
    int64_t images = m->setting->micro_batch * m->setting->images.count;
    struct tensor **states = engine_allocate_host(e, ((size_t)v->layers + 1) * sizeof *states);
    struct tensor *all = NULL, *y = e->poison;
    if (!e->halted) run(e, m, states);
    if (!e->halted) all = project(e, m, states[v->layers]);
    if (!e->halted) {
        struct tensor *sizes = tensor_keep(op_full(e, PLIM_I64, SHAPE(images, 2), 0));
        tensor_drop_all(e, tensor_keep(op_full(e, PLIM_I64, SHAPE(images), 0)), sizes);
    }
    struct tensor **parts = vision_split(e, all, images);
    for (int64_t i = 0; i <= v->layers && states; i++) tensor_drop(e, states[i]);
    if (!e->halted) y = tensor_keep(op_to(e, op_cat(e, (int)images, parts, 0), dtype));
    tensor_drop(e, all);
    engine_free_host(e, parts);
    engine_free_host(e, states);
    return y;
}

static void encode(struct engine *e, struct decoder *m, struct tensor **embeddings, struct encoded_images *encoded)
{
    if (e->halted) return;
    encoded->rows = features_of(e, m, (enum plim_dtype)(*embeddings)->a.dtype);
    vision_scatter_rows(e, m, encoded, embeddings);
}

static const struct vision_parts parts[] = {
    {"model.vision_tower.transformer.layers.%lld", plim_pixtral_block, VISION_BLOCKS, MEETS_PATCHES, false},
    {"model.multi_modal_projector", plim_mistral3_projector, VISION_MERGER, MEETS_ROWS, false},
    {0}};
const struct vision_tower plim_tower_pixtral = {.build = build, .encode = encode, .parts = parts};
