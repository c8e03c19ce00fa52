/* The vision towers of Qwen's models (Qwen3VLVisionModel, Qwen2_5_VisionTransformerPretrainedModel,
 * Qwen2VisionTransformerPretrainedModel), and how their results are placed in the text (Qwen3VLModel.forward()). */
#include "model.h"
#include "workloads/engine/ops_liger.h"
#include "workloads/spec/spec_vision.h"
#include <stdlib.h>

/* --- the modules ------------------------------------------------------------------------------ */

/* True if the tower's blocks are like the text's (qwen2_5_vl): RMSNorms and a gated MLP, but with biases. */
static bool is_as_text(const struct decoder *m)
{
    return m->config->family == PLIM_FAMILY_QWEN2_5_VL;
}

static void norm_create(struct engine *e, struct decoder *m, struct norm *n, int64_t width)
{
    bool rms = is_as_text(m);
    nn_norm_create(e, &m->parameters, n, rms ? NORM_RMS : NORM_LAYER, width, !rms);
    n->epsilon = 1e-6;
    if (rms && !e->halted) n->weight->odd_name = true; /* norm1, norm2 and ln_q: not norms by their names */
}

static void build_block(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct plim_vision *v = &m->config->vision;
    struct parameters *p = &m->parameters;
    int64_t w = v->hidden_size;
    for (int i = 0; i < 2; i++) {
        norm_create(e, m, &l->norm[i], w);
        decoder_patch_norm(&l->norm[i], decoder_liger(m).tower_norms);
    }
    nn_linear_create(e, p, &l->qkv, w, 3 * w, true);
    nn_linear_create(e, p, &l->o, w, w, true);
    bool gated = is_as_text(m);
    nn_linear_create(e, p, gated ? &l->gate : &l->fc1, w, v->intermediate_size, true);
    if (gated) nn_linear_create(e, p, &l->up, w, v->intermediate_size, true);
    nn_linear_create(e, p, gated ? &l->down : &l->fc2, v->intermediate_size, w, true);
}

/* Builds a merger. is_post: its norm is applied to the merged rows. */
static void build_merger(struct engine *e, struct decoder *m, struct vision_merger *merger, bool is_post)
{
    const struct plim_vision *v = &m->config->vision;
    int64_t merged = v->hidden_size * v->merge_size * v->merge_size;
    norm_create(e, m, &merger->norm, is_post ? merged : v->hidden_size);
    nn_linear_create(e, &m->parameters, &merger->fc1, merged, merged, true);
    nn_linear_create(e, &m->parameters, &merger->fc2, merged, v->out_hidden_size, true);
}

static void build(struct engine *e, struct decoder *m)
{
    const struct plim_vision *v = &m->config->vision;
    struct parameters *p = &m->parameters;
    int64_t w = v->hidden_size, size = v->patch_size;
    m->vision.patch_weight = nn_parameter(e, p, INIT_WEIGHT, SHAPE(w, v->channels, v->frames, size, size));
    if (v->positions) {
        m->vision.patch_bias = nn_parameter(e, p, INIT_ZEROS, SHAPE(w));
        m->vision.positions = nn_parameter(e, p, INIT_WEIGHT, SHAPE(v->positions, w));
    }
    /* compute_axial_rope_parameters(): half of a head is rotated by the row, the other half by the column */
    struct rotary rotary = {.rope = &nn_rope_default, .dim = w / v->heads / 2};
    nn_rotary_create(e, &rotary);
    m->vision.inv_freq = rotary.inv_freq;
    m->vision.original_inv_freq = rotary.original_inv_freq;
    vision_build_blocks(e, m, build_block);
    for (int64_t i = 0; i <= v->deep_count; i++) build_merger(e, m, &m->vision.mergers[i], i > 0);
    nn_rotary_initialise(e, &rotary);
}

/* --- the tower -------------------------------------------------------------------------------- */

/* Qwen3VLVisionRotaryEmbedding.recomposition_frequencies(): joins the rows' and columns' values of x (T, 2, n), and
 * repeats both: (T, 4 n), named. */
static struct tensor *recompose(struct engine *e, struct tensor *x)
{
    struct tensor *parts[2] = {op_select(e, x, 1, 0), op_select(e, x, 1, 1)};
    struct tensor *once = tensor_keep(op_cat(e, 2, parts, -1));
    struct tensor *y = tensor_keep(op_cat(e, 2, (struct tensor *[]){once, once}, -1));
    tensor_drop(e, once);
    return y;
}

/* Computes cos and sin (T, W / heads) in fp32; named. */
static void make_rotary(struct engine *e, const struct decoder *m, struct tensor *position_ids, struct tensor **cos,
                        struct tensor **sin)
{
    bool grad = e->grad_enabled, autocast = e->autocast.on;
    e->grad_enabled = e->autocast.on = false;
    struct tensor *wide = tensor_keep(op_to(e, op_unsqueeze(e, position_ids, -1), PLIM_F32));
    struct tensor *turns = tensor_hold(op_to(e, m->vision.inv_freq, PLIM_F32));
    struct tensor *freqs = tensor_keep(op_mul(e, wide, turns));
    tensor_drop(e, turns);
    struct tensor *c = tensor_keep(op_mul_scalar(e, op_unary(e, freqs, PLIM_UNARY_COS), 1));
    struct tensor *s = tensor_keep(op_mul_scalar(e, op_unary(e, freqs, PLIM_UNARY_SIN), 1));
    *cos = recompose(e, c);
    tensor_drop(e, c);
    *sin = recompose(e, s);
    tensor_drop_all(e, s, wide, freqs);
    e->autocast.on = autocast;
    e->grad_enabled = grad;
}

/* apply_rotary_pos_emb_vision(): rotates queries and keys (T, heads, D) in fp32. Rebinds both, which are named. */
static void rotate(struct engine *e, struct tensor *x[2], struct tensor *cos, struct tensor *sin)
{
    if (e->halted) return;
    enum plim_dtype dtype = (enum plim_dtype)x[0]->a.dtype;
    struct tensor *wide[2], *y[2];
    for (int i = 0; i < 2; i++) wide[i] = tensor_hold(op_to(e, x[i], PLIM_F32));
    struct tensor *c = tensor_hold(op_to(e, op_unsqueeze(e, cos, -2), PLIM_F32));
    struct tensor *s = tensor_hold(op_to(e, op_unsqueeze(e, sin, -2), PLIM_F32));
    for (int i = 0; i < 2; i++) y[i] = tensor_keep(nn_rotate(e, wide[i], c, s));
    for (int i = 0; i < 2; i++) tensor_set(e, &y[i], e->halted ? y[i] : op_to(e, y[i], dtype));
    for (int i = 0; i < 2; i++) tensor_set(e, &x[i], y[i]);
    tensor_drop_all(e, wide[0], wide[1], c, s, y[0], y[1]);
}

/* liger_rotary_pos_emb_vision(): the same, which overwrites the fp32 copies. */
static void rotate_in_place(struct engine *e, struct tensor *x[2], struct tensor *cos, struct tensor *sin)
{
    if (e->halted) return;
    enum plim_dtype dtype = (enum plim_dtype)x[0]->a.dtype;
    struct tensor *angles[2] = {cos, sin}, *wide[2], *rotated[2];
    for (int i = 0; i < 2; i++)
        wide[i] = tensor_keep(op_transpose(e, op_unsqueeze(e, op_to(e, x[i], PLIM_F32), 0), 1, 2));
    for (int i = 0; i < 2; i++) angles[i] = tensor_keep(op_unsqueeze(e, op_to(e, angles[i], PLIM_F32), 0));
    op_liger_rope(e, wide, angles, tensor_size(cos, -1) / 2, rotated);
    for (int i = 0; i < 2 && !e->halted; i++) {
        struct tensor *rows = op_view(e, op_transpose(e, rotated[i], 1, 2), 3, x[i]->a.shape);
        tensor_set(e, &x[i], op_to(e, rows, dtype));
    }
    tensor_drop_all(e, wide[0], wide[1], angles[0], angles[1], rotated[0], rotated[1]);
}

/* Splits qkv (T, 3 W), taken, into queries, keys and values (T, heads, D), which are views; named. */
static void split_heads(struct engine *e, const struct plim_vision *v, struct tensor *qkv, struct tensor *x[3])
{
    static const int order[] = {1, 0, 2, 3};
    int64_t patches = tensor_size(qkv, 0), width = v->hidden_size / v->heads;
    struct tensor *parts[3];
    struct tensor *heads = op_permute(e, op_view(e, qkv, SHAPE(patches, 3, v->heads, width)), 4, order);
    op_split(e, heads, 0, 3, (int64_t[]){1, 1, 1}, parts); /* unbind(0), whose gradient is a stack */
    for (int i = 0; i < 3; i++) x[i] = tensor_keep(op_view(e, parts[i], SHAPE(patches, v->heads, width)));
}

/* True if a block attends within windows of images; false if within whole images. */
static bool is_windowed(const struct decoder *m, const struct decoder_layer *layer)
{
    const struct plim_vision *v = &m->config->vision;
    for (int64_t i = 0; i < v->full_count; i++)
        if (v->full[i] == layer - m->vision.layers) return false;
    return v->window_size > 0;
}

/* The queries, keys and values of each image, or window, and attention's results, which Python holds until the end of
 * the module. */
enum { Q, K, V, OUT, LISTS };
struct chunks {
    struct tensor **room, **part[LISTS];
    int64_t count;
};

static void drop_chunks(struct engine *e, struct chunks *chunks)
{
    for (int64_t i = 0; i < LISTS * chunks->count && chunks->room; i++) tensor_drop(e, chunks->room[i]);
    free(chunks->room);
}

/* Computes attention within each image, or window: q, k, v (1, heads, T, D) -> (1, T, heads, D); named. The caller
 * drops *chunks. */
static struct tensor *attend(struct engine *e, const struct block_call *b, struct tensor *const qkv[3],
                             struct chunks *chunks)
{
    int64_t count = tensor_size(b->ends, 0) - 1;
    int64_t patches = plim_image_patches(&b->m->config->vision, &b->m->setting->images);
    const struct attention_call call = vision_attention(b->m);
    *chunks = (struct chunks){.room = calloc((size_t)count * LISTS, sizeof(struct tensor *)), .count = count};
    int64_t *lengths = malloc((size_t)count * sizeof *lengths);
    if (!chunks->room || !lengths) engine_fail(e, PLIM_NOMEM);
    struct tensor ***part = chunks->part, *weights;
    for (int k = Q; k < LISTS && chunks->room; k++) part[k] = chunks->room + k * count;
    for (int64_t i = 0; i < count && lengths; i++) lengths[i] = patches;
    if (lengths && is_windowed(b->m, b->layer)) vision_windows(b->m, lengths, NULL);
    for (int k = Q; k <= V && !e->halted; k++) {
        op_split(e, qkv[k], 2, (int)count, lengths, part[k]);
        for (int64_t i = 0; i < count; i++) tensor_keep(part[k][i]);
    }
    for (int64_t i = 0; i < count && !e->halted; i++) {
        part[OUT][i] = tensor_keep(nn_attention(e, &call, part[Q][i], part[K][i], part[V][i], &weights));
        tensor_drop(e, weights);
    }
    free(lengths);
    return e->halted ? e->poison : tensor_keep(op_cat(e, (int)count, part[OUT], 1));
}

/* The same by flash-attention-2's package, which takes the boundaries of images or windows; named. */
static struct tensor *attend_by_ends(struct engine *e, const struct block_call *b, struct tensor *const qkv[3])
{
    struct attention_call call = vision_attention(b->m);
    struct tensor *weights;
    call.ends = b->ends;
    return tensor_keep(nn_attention(e, &call, qkv[0], qkv[1], qkv[2], &weights));
}

/* lengths.tolist() of the images or windows; named. */
static struct tensor *read_lengths(struct engine *e, struct tensor *ends)
{
    int64_t images = e->halted ? 0 : tensor_size(ends, 0) - 1;
    struct tensor *behind = op_slice(e, ends, 0, 1, images);
    struct tensor *lengths = tensor_keep(op_sub(e, behind, op_slice(e, ends, 0, 0, images)));
    if (!e->halted) engine_item(e, lengths);
    return lengths;
}

/* Qwen3VLVisionAttention: x (T, W) -> (T, W), floating. */
static struct tensor *attention(struct engine *e, const struct block_call *b, struct tensor *x)
{
    const struct plim_vision *v = &b->m->config->vision;
    if (e->halted) return op_halted(e, 1, &x);
    bool by_ends = b->m->setting->attention == PLIM_ATTENTION_FLASH2;
    struct tensor *qkv[3], *shaped[3];
    nn_begin(e);
    split_heads(e, v, nn_linear(e, &b->layer->qkv, x), qkv);
    (decoder_liger(b->m).rope ? rotate_in_place : rotate)(e, qkv, b->cos, b->sin);
    for (int i = 0; i < 3; i++) shaped[i] = tensor_keep(op_unsqueeze(e, op_transpose(e, qkv[i], 0, 1), 0));
    for (int i = 0; i < 3; i++) tensor_drop(e, qkv[i]);
    struct tensor *lengths = by_ends ? NULL : read_lengths(e, b->ends);
    struct chunks chunks = {0};
    struct tensor *y = by_ends ? attend_by_ends(e, b, shaped) : attend(e, b, shaped, &chunks);
    if (!e->halted) tensor_set(e, &y, op_reshape(e, y, SHAPE(tensor_size(y, 1), v->hidden_size)));
    tensor_set(e, &y, nn_linear(e, &b->layer->o, y));
    tensor_drop_all(e, shaped[0], shaped[1], shaped[2], lengths);
    drop_chunks(e, &chunks);
    return nn_end(e, tensor_yield(y));
}

/* Qwen3VLVisionMLP, or qwen2_5_vl's gated MLP; floating. */
static struct tensor *mlp(struct engine *e, const struct block_call *b, struct tensor *x)
{
    enum plim_activation f = b->m->config->vision.activation;
    nn_begin(e);
    if (is_as_text(b->m)) return nn_end(e, decoder_gated_mlp(e, f, b->layer, x));
    struct tensor *inner = decoder_activation(e, f, nn_linear(e, &b->layer->fc1, x));
    return nn_end(e, nn_linear(e, &b->layer->fc2, inner));
}

/* Qwen3VLVisionBlock */
static struct tensor *block(struct engine *e, const struct block_call *b, struct tensor *x)
{
    const struct decoder_layer *l = b->layer;
    struct tensor *normed = tensor_keep(nn_norm(e, &l->norm[0], x));
    struct tensor *attended = attention(e, b, normed);
    tensor_drop(e, normed);
    struct tensor *h = tensor_keep(op_add(e, x, attended));
    normed = tensor_keep(nn_norm(e, &l->norm[1], h));
    struct tensor *fed = mlp(e, b, normed);
    tensor_drop(e, normed);
    struct tensor *y = op_add(e, h, fed);
    tensor_drop(e, h);
    return y;
}

/* Qwen3VLVisionPatchMerger: x (T, W) lent -> (T / merge^2, H), named. */
static struct tensor *merge(struct engine *e, const struct vision_merger *merger, struct tensor *x, bool is_post)
{
    int64_t width = merger->fc1.in;
    if (e->halted) return e->poison;
    int64_t rows = tensor_elements(x) / width;
    nn_begin(e);
    struct tensor *y = tensor_keep(nn_norm(e, &merger->norm, is_post ? op_view(e, x, SHAPE(rows, width)) : x));
    if (!is_post) tensor_set(e, &y, op_view(e, y, SHAPE(rows, width)));
    struct tensor *inner = decoder_activation(e, PLIM_ACTIVATION_GELU, nn_linear(e, &merger->fc1, y));
    tensor_set(e, &y, nn_end(e, nn_linear(e, &merger->fc2, inner)));
    return y;
}

static struct tensor *project(struct engine *e, const void *module, struct tensor *images)
{
    const struct decoder *m = module;
    return op_patches(e, images, m->vision.patch_weight, m->vision.patch_bias);
}

/* Qwen3VLVisionPatchEmbed, which reads the type of its weight; floating. */
static struct tensor *patches_of(struct engine *e, const void *module, struct tensor *pixels)
{
    const struct decoder *m = module;
    const struct plim_vision *v = &m->config->vision;
    struct tensor *weight = m->vision.patch_weight;
    int64_t patches = tensor_size(pixels, 0), size = v->patch_size;
    nn_access_weight(e, weight, NN_ACCESSES, weight);
    struct tensor *images = op_view(e, pixels, SHAPE(patches, v->channels, v->frames, size, size));
    struct tensor *const own[] = {weight, m->vision.patch_bias, NULL};
    return op_view(e, nn_run(e, own, NN_LINEAR, project, m, images), SHAPE(patches, v->hidden_size));
}

/* Embeds patches: returns rows (T, W), by a convolution whose kernel is a patch, plus the learned positions, if there
 * are any; named. The caller drops *learned, which Python holds until the tower's end. */
static struct tensor *embed(struct engine *e, const struct decoder *m, struct tensor *pixels,
                            const struct vision_index *index, struct tensor **learned)
{
    const struct plim_vision *v = &m->config->vision;
    struct tensor *const weight[] = {m->vision.patch_weight, NULL};
    *learned = NULL;
    if (e->halted) return e->poison;
    struct tensor *x = tensor_keep(nn_run(e, weight, NN_ACCESSES, patches_of, m, pixels));
    bool is_checkpointed = m->setting->checkpointing == PLIM_CHECKPOINTING_FULL;
    /* Checkpointing calls enable_input_require_grads(), for which these classes define an input embedding. */
    if (!v->positions && is_checkpointed) tensor_require_input_grad(e, x);
    if (!v->positions) return x;
    struct tensor *shares = tensor_keep(op_unsqueeze(e, index->weights, -1));
    *learned = tensor_keep(op_sum_dim(e, op_mul(e, nn_embedding(e, m->vision.positions, index->taps), shares), 1));
    tensor_drop(e, shares);
    tensor_set(e, &x, e->halted ? x : op_add(e, x, op_to(e, *learned, (enum plim_dtype)x->a.dtype)));
    return x;
}

/* The order of merged rows by windows, and its inverse. NULL if there are no windows, or values are not computed. */
struct orders {
    int64_t *in, *back;
};

static struct orders find_orders(struct engine *e, const struct decoder *m, int64_t rows)
{
    struct orders o = {NULL, NULL};
    if (!m->config->vision.window_size || e->device->info.simulated || e->halted) return o;
    o = (struct orders){malloc((size_t)rows * sizeof *o.in), malloc((size_t)rows * sizeof *o.back)};
    if (!o.in || !o.back) {
        engine_fail(e, PLIM_NOMEM);
        return o;
    }
    vision_windows(m, NULL, o.in);
    for (int64_t i = 0; i < rows; i++) o.back[o.in[i]] = i;
    return o;
}

/* Rebinds x (T, ..), which is named, to its rows in another order; groups of `unit` rows stay together. */
static void arrange(struct engine *e, struct tensor **x, int64_t unit, const int64_t *order)
{
    if (e->halted) return;
    int64_t rows = tensor_size(*x, 0), width = tensor_size(*x, 1);
    struct tensor *wide = op_view(e, *x, SHAPE(rows / unit, unit * width));
    tensor_set(e, x, op_view(e, op_rows_in_order(e, wide, order), SHAPE(rows, width)));
}

/* permute_input_for_window_attn() of cos and sin; the old tensors live until both new ones exist. */
static void arrange_rotary(struct engine *e, struct block_call *b, int64_t unit, const int64_t *order)
{
    struct tensor *cos = tensor_ref(b->cos), *sin = tensor_ref(b->sin);
    arrange(e, &b->cos, unit, order);
    arrange(e, &b->sin, unit, order);
    tensor_drop_all(e, cos, sin);
}

/* Qwen3VLVisionModel.forward(): pixels (T, elements of a patch) in the type of its weights. Returns the merged rows of
 * all images, named; sets encoded->last and encoded->deep. */
static struct tensor *run(struct engine *e, const struct decoder *m, struct tensor *pixels,
                          struct encoded_images *encoded)
{
    const struct plim_vision *v = &m->config->vision;
    struct vision_index index;
    struct tensor *learned;
    nn_begin(e);
    vision_index_make(e, m, &index);
    struct tensor *x = embed(e, m, pixels, &index, &learned);
    struct block_call call = {.m = m, .block = block};
    int64_t unit = v->merge_size * v->merge_size;
    const struct orders orders = find_orders(e, m, e->halted ? 0 : tensor_size(x, 0) / unit);
    if (v->window_size) arrange(e, &x, unit, orders.in);
    nn_begin(e); /* its results need no gradient */
    if (!e->halted) make_rotary(e, m, index.position_ids, &call.cos, &call.sin);
    if (v->window_size && !e->halted) arrange_rotary(e, &call, unit, orders.in);
    for (int64_t i = 0, count = 0; i < v->layers; i++) {
        call.layer = &m->vision.layers[i];
        call.ends = is_windowed(m, call.layer) ? index.window_ends : index.ends;
        tensor_set(e, &x, decoder_run_block(e, &call, x));
        int64_t k = 0; /* the block's first index in deepstack's list; results are in the order of blocks */
        while (k < v->deep_count && v->deep[k] != i) k++;
        if (k < v->deep_count) encoded->deep[count++] = merge(e, &m->vision.mergers[1 + k], x, true);
    }
    struct tensor *merged = merge(e, &m->vision.mergers[0], x, false);
    if (v->window_size) arrange(e, &merged, 1, orders.back);
    free(orders.in);
    free(orders.back);
    tensor_set(e, &merged, nn_end(e, merged));
    for (int64_t i = 0; i < v->deep_count && encoded->deep[i]; i++)
        tensor_set(e, &encoded->deep[i], nn_end(e, encoded->deep[i]));
    encoded->last = x;
    vision_index_drop(e, &index);
    tensor_drop_all(e, learned, call.cos, call.sin);
    return merged;
}

/* --- in the text ------------------------------------------------------------------------------ */

/* get_image_features(): (rows, H), split by torch.split() and joined again by torch.cat(); named. */
static struct tensor *features(struct engine *e, struct decoder *m, struct encoded_images *encoded)
{
    const struct plim_train_setting *s = m->setting;
    int64_t images = s->micro_batch * s->images.count;
    enum plim_dtype dtype = e->halted ? PLIM_F32 : (enum plim_dtype)m->vision.patch_weight->a.dtype;
    struct tensor *pixels = tensor_hold(op_to(e, m->pixels, dtype));
    struct tensor *merged = run(e, m, pixels, encoded);
    struct tensor *sizes = tensor_keep(op_full(e, PLIM_I64, SHAPE(images), 0));
    tensor_drop_all(e, tensor_keep(op_full(e, PLIM_I64, SHAPE(images), 0)), sizes);
    struct tensor **parts = vision_split(e, merged, images);
    tensor_drop(e, pixels);
    bool is_held = m->config->vision.positions; /* Python holds the tower's output; not for qwen2_vl, qwen2_5_vl */
    if (!is_held) {
        tensor_drop(e, encoded->last);
        encoded->last = NULL;
    }
    struct tensor *y = e->halted ? e->poison : tensor_keep(op_cat(e, (int)images, parts, 0));
    if (is_held) encoded->merged = merged;
    else tensor_drop(e, merged);
    engine_free_host(e, parts);
    return y;
}

/* get_placeholder_mask() */
static void make_masks(struct engine *e, struct decoder *m, struct encoded_images *encoded)
{
    enum { IMAGE = 1, VIDEO };
    encoded->mask = tensor_keep(op_compare_scalar(e, PLIM_BINARY_EQ, m->token_types, IMAGE));
    encoded->other_mask = tensor_keep(op_compare_scalar(e, PLIM_BINARY_EQ, m->token_types, VIDEO));
    if (e->halted) return;
    struct tensor *found = vision_count_placeholders(e, encoded->mask);
    struct tensor *others = vision_count(e, encoded->other_mask);
    tensor_drop_all(e, found, others);
}

static void encode(struct engine *e, struct decoder *m, struct tensor **embeddings, struct encoded_images *encoded)
{
    encoded->rows = features(e, m, encoded);
    if (e->halted) return;
    enum plim_dtype dtype = (enum plim_dtype)(*embeddings)->a.dtype;
    tensor_set(e, &encoded->rows, op_to(e, encoded->rows, dtype));
    make_masks(e, m, encoded);
    vision_scatter(e, encoded, embeddings);
    encoded->positions = vision_text_positions(e, m);
}

#define QWEN_PARTS(block_modules, merger_modules) \
    {{"model.visual.blocks.%lld", block_modules, VISION_BLOCKS, MEETS_PATCHES, false}, \
     {"model.visual.merger", merger_modules, VISION_MERGER, MEETS_ROWS, false}, \
     {"model.visual.deepstack_merger_list.%lld", merger_modules, VISION_DEEP, MEETS_ROWS, false}, \
     {0}}
static const struct vision_parts qwen2_parts[] = QWEN_PARTS(plim_qwen2_vl_block, plim_qwen2_vl_merger),
                                 qwen2_5_parts[] = QWEN_PARTS(plim_qwen2_5_vl_block, plim_qwen2_vl_merger),
                                 qwen3_parts[] = QWEN_PARTS(plim_vision_block, plim_vision_merger);
const struct vision_tower plim_tower_qwen2_vl = {.build = build, .encode = encode, .parts = qwen2_parts};
const struct vision_tower plim_tower_qwen2_5_vl = {.build = build, .encode = encode, .parts = qwen2_5_parts};
const struct vision_tower plim_tower_qwen3_vl = {.build = build, .encode = encode, .parts = qwen3_parts};
