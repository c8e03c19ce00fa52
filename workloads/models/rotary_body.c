/* The body with rotary embeddings that most families share: embeddings, masks, positions, blocks, the final norm
 * (LlamaModel.forward). */
#include "model.h"
#include <math.h>

static struct tensor *look_up_per_layer(struct engine *e, const void *module, struct tensor *ids)
{
    const struct decoder *m = module;
    struct tensor *x = op_embedding(e, m->per_layer_embedding, ids);
    return op_mul(e, x, op_to(e, m->per_layer_scale, (enum plim_dtype)m->per_layer_embedding->a.dtype));
}

/* gemma4: returns the embeddings per layer of ids (B, S), (B, S, layers, width), named; NULL if the model has none. */
static struct tensor *find_per_layer(struct engine *e, struct decoder *m, struct tensor *ids)
{
    const struct plim_model_config *c = m->config;
    if (e->halted || !m->per_layer_embedding) return NULL;
    struct tensor *const weights[] = {m->per_layer_embedding, NULL};
    struct tensor *y = nn_run(e, weights, NN_EMBEDDING, look_up_per_layer, m, ids);
    int64_t shape[4] = {tensor_size(ids, 0), tensor_size(ids, 1), c->layers, c->per_layer_size};
    return tensor_keep(op_view(e, y, 4, shape));
}

/* Sets m->per_layer to the combination of `own`, the result of find_per_layer() (NULL: does nothing), and a projection
 * of the usual embeddings. */
static void join_per_layer(struct engine *e, struct decoder *m, struct tensor *own, struct tensor *embeddings)
{
    if (e->halted || !own) return;
    struct tensor *y = nn_linear(e, &m->per_layer_projection, embeddings);
    struct tensor *seen = tensor_keep(op_mul_scalar(e, y, 1 / sqrt((double)m->config->hidden_size)));
    if (!e->halted) tensor_set(e, &seen, op_view(e, seen, 4, own->a.shape));
    tensor_set(e, &seen, nn_norm(e, &m->per_layer_norm, seen));
    m->per_layer = tensor_keep(op_mul_scalar(e, op_add(e, seen, own), sqrt(0.5)));
    tensor_drop(e, seen);
}

enum { FULL, SLIDING }; /* kinds of layers */

/* The masks that a model's forward creates. ONE: a single mask, the sliding one if a layer is sliding. BOTH: a full and
 * a sliding one, regardless of the layers (qwen2_moe's has a window of 0 if none is used). BY_LAYERS: the full one, and
 * the sliding one if a layer is sliding. */
enum masks { MASKS_BY_LAYERS, MASKS_ONE, MASKS_BOTH };
static const enum masks masks_of[PLIM_FAMILY_COUNT] = {
    [PLIM_FAMILY_MISTRAL] = MASKS_ONE,     [PLIM_FAMILY_PHI3] = MASKS_ONE,
    [PLIM_FAMILY_MIXTRAL] = MASKS_ONE,     [PLIM_FAMILY_QWEN3_MOE] = MASKS_ONE,
    [PLIM_FAMILY_STARCODER2] = MASKS_ONE,  [PLIM_FAMILY_GEMMA2] = MASKS_BOTH,
    [PLIM_FAMILY_GEMMA3_TEXT] = MASKS_BOTH, [PLIM_FAMILY_QWEN2_MOE] = MASKS_BOTH,
    [PLIM_FAMILY_OLMO3] = MASKS_BOTH,      [PLIM_FAMILY_COHERE2] = MASKS_BOTH,
    [PLIM_FAMILY_GPT_OSS] = MASKS_BOTH,
    [PLIM_FAMILY_AFMOE] = MASKS_BOTH,
    [PLIM_FAMILY_MINISTRAL3] = MASKS_ONE,  [PLIM_FAMILY_MISTRAL3] = MASKS_ONE,
    [PLIM_FAMILY_GEMMA4_TEXT] = MASKS_BOTH, [PLIM_FAMILY_GEMMA4_UNIFIED_TEXT] = MASKS_BOTH,
    [PLIM_FAMILY_MINISTRAL] = MASKS_BOTH,  [PLIM_FAMILY_GEMMA3] = MASKS_BOTH,
};

/* Creates the masks. gpt_oss, afmoe and granitemoehybrid do not pass positions, so that tokens also attend to earlier
 * documents of the row. gemma4's full mask ignores the blocks of images. */
static void make_masks(struct engine *e, const struct decoder *m, struct tensor *embeddings,
                       struct tensor *blocks, struct block_call calls[2])
{
    enum plim_family f = m->config->family;
    enum masks masks = masks_of[f];
    bool sliding = masks == MASKS_BOTH || decoder_has_layers(m, true), full = masks != MASKS_ONE || !sliding;
    bool tells_none = f == PLIM_FAMILY_GPT_OSS || f == PLIM_FAMILY_AFMOE || f == PLIM_FAMILY_GRANITEMOEHYBRID;
    struct tensor *positions = tells_none ? NULL : calls[FULL].positions;
    int64_t window = m->config->sliding_window; /* 0: the mask is created like any other */
    struct tensor *seen = f == PLIM_FAMILY_GEMMA4 ? NULL : blocks;
    if (full) calls[FULL].mask = decoder_mask_of_blocks(e, m, embeddings, positions, seen, 0);
    if (sliding)
        calls[SLIDING].mask = decoder_mask_of_blocks(e, m, embeddings, positions, blocks, window > 0 ? window : 1);
    if (m->config->linear_kernel || f == PLIM_FAMILY_GRANITEMOEHYBRID)
        calls[SLIDING].mask = nn_recurrent_mask(e, m->attention_mask, decoder_hides_padding(m->setting));
    if (f == PLIM_FAMILY_FALCON_H1) calls[FULL].linear_mask = calls[SLIDING].mask; /* lent */
}

/* qwen3_5: expands positions (1, S) to (4, B, S): the first part is the text's, and the other three are the positions
 * on images' grids, by which queries and keys are rotated. qwen2_vl has only these three, and passes no positions to
 * its masks (*text becomes NULL). Rebinds *text and *grids, which are the same tensor at first; named. */
static void on_grids(struct engine *e, const struct decoder *m, int64_t batch, struct tensor **text,
                     struct tensor **grids)
{
    if (e->halted) return;
    int64_t others = m->rotary.by_sections ? 0 : 1, seq = tensor_size(*text, 1);
    struct tensor *wide = op_view(e, *text, SHAPE(1, 1, seq));
    struct tensor *all = tensor_keep(op_expand(e, wide, SHAPE(others + 3, batch, seq)));
    tensor_drop(e, *text);
    *text = others ? tensor_keep(op_select(e, all, 0, 0)) : NULL;
    tensor_set(e, grids, op_slice(e, all, 0, others, 3));
    tensor_drop(e, all);
}

/* Sets cos and sin of the calls: one pair for all layers, or one for each kind of layer (gemma3). */
static void make_rotary(struct engine *e, struct decoder *m, enum plim_dtype dtype, struct tensor *positions,
                        struct block_call calls[2])
{
    struct rotary *rotary[2] = {&m->rotary, &m->rotary_local};
    for (int kind = FULL; kind <= SLIDING; kind++) {
        if (!rotary[kind]->dim) continue;
        nn_begin(e); /* its results need no gradient */
        nn_rotary(e, rotary[kind], positions, dtype, &calls[kind].cos, &calls[kind].sin);
    }
    if (m->rotary_local.dim || !m->rotary.dim) return;
    calls[SLIDING].cos = tensor_ref(calls[FULL].cos);
    if (calls[FULL].sin) calls[SLIDING].sin = tensor_ref(calls[FULL].sin);
}

/* Applies the final norm to x (taken), with the hooks for a norm without a weight; named. */
static struct tensor *last_norm(struct engine *e, const struct decoder *m, struct tensor *x)
{
    const struct decoder_hooks *hooks = m->final_norm.weight ? NULL : m->hooks;
    bool is_seen = hooks && hooks->before_bare_norm && !e->halted;
    struct tensor *input = is_seen ? tensor_hold(hooks->before_bare_norm(e, hooks->context, x)) : tensor_ref(x);
    struct tensor *y = tensor_keep(nn_norm(e, &m->final_norm, input));
    if (is_seen && !e->halted) hooks->after_bare_norm(e, hooks->context, y);
    tensor_drop_all(e, input, x);
    return y;
}

/* The inputs of a body's blocks, and the other tensors that it holds until its end. */
struct body {
    struct placeholders hidden; /* gemma4's */
    struct encoded_images encoded;
    struct tensor *own;         /* the result of find_per_layer() */
    struct tensor *embeddings, *positions, *turning; /* turning: the positions of the rotary embedding */
    struct block_call calls[2];
};

/* Sets the embeddings, including those of images, positions and masks. In gemma3 and gemma4 the text is a model of its
 * own, and masks are created outside of it; gemma3's use positions only if the batch has some (rows of several
 * documents). */
static void begin(struct engine *e, struct decoder *m, struct tensor *ids, struct body *b)
{
    enum plim_family f = m->config->family;
    bool hides = f == PLIM_FAMILY_GEMMA4 || f == PLIM_FAMILY_GEMMA4_UNIFIED,
         masks_around = hides || f == PLIM_FAMILY_GEMMA3;
    double multiplier = m->config->embedding_multiplier;
    if (hides) ids = vision_hide_placeholders(e, m, ids, &b->hidden);
    b->embeddings = decoder_embed(e, m, ids);
    if (multiplier > 0 && f != PLIM_FAMILY_GRANITEMOE)
        tensor_set(e, &b->embeddings, op_mul_scalar(e, b->embeddings, multiplier));
    if (hides && m->per_layer_embedding) vision_pad_placeholders(e, m, b->embeddings, &b->hidden);
    b->own = find_per_layer(e, m, ids);
    if (!hides) {
        join_per_layer(e, m, b->own, b->embeddings);
        tensor_drop(e, b->own);
        b->own = NULL;
    }
    if (m->pixels) vision_encode(e, m, &b->embeddings, &b->encoded);
    if (hides || m->positions) b->positions = decoder_positions(e, m, tensor_size(ids, 1));
    if (m->config->vision.has_no_blocks && m->config->seeing == PLIM_SEEING_VISION && !m->pixels) /* no images: -1 */
        b->encoded.blocks = tensor_keep(op_full(e, PLIM_I64, ids->a.ndim, ids->a.shape, -1));
    b->calls[FULL].positions = b->calls[SLIDING].positions = b->positions;
    if (masks_around) make_masks(e, m, b->embeddings, b->encoded.blocks, b->calls);
    if (plim_vision_exists(&m->config->vision)) nn_begin(e); /* the text is a model of its own */
    if (hides) join_per_layer(e, m, b->own, b->embeddings);
    if (!b->positions && !b->encoded.positions) b->positions = decoder_positions(e, m, tensor_size(ids, 1));
    b->turning = tensor_ref(e->halted ? e->poison : b->encoded.positions ? b->encoded.positions : b->positions);
    if (m->rotary.of_grids && b->positions) on_grids(e, m, tensor_size(ids, 0), &b->positions, &b->turning);
    b->calls[FULL].positions = b->calls[SLIDING].positions = b->positions;
    if (!masks_around) make_masks(e, m, b->embeddings, NULL, b->calls);
    if (f == PLIM_FAMILY_GRANITEMOEHYBRID) /* its blocks receive none; checkpointing would keep them */
        b->calls[FULL].positions = b->calls[SLIDING].positions = NULL;
    if (multiplier > 0 && f == PLIM_FAMILY_GRANITEMOE)
        tensor_set(e, &b->embeddings, op_mul_scalar(e, b->embeddings, multiplier));
}

static void finish(struct engine *e, struct decoder *m, struct body *b)
{
    for (int kind = FULL; kind <= SLIDING; kind++) {
        tensor_drop(e, b->calls[kind].mask);
        tensor_drop(e, b->calls[kind].cos);
        tensor_drop(e, b->calls[kind].sin);
    }
    tensor_drop_all(e, b->positions, b->turning, b->embeddings, m->per_layer, b->own);
    m->per_layer = NULL;
    checkpoint_mapping_drop(e, m->shared_states);
    m->shared_states = NULL;
    vision_drop(e, &b->encoded);
    vision_drop_placeholders(e, &b->hidden);
}

struct tensor *decoder_rotary_body(struct engine *e, struct decoder *m, struct tensor *ids)
{
    struct body b = {0};
    enum plim_family f = m->config->family;
    begin(e, m, ids, &b);
    bool drops = f == PLIM_FAMILY_PHI || f == PLIM_FAMILY_GPT_NEOX; /* as a module */
    struct tensor *x = tensor_hold(
        (drops ? nn_dropout : op_dropout)(e, b.embeddings, m->config->dropout_embedding));
    if (f == PLIM_FAMILY_AFMOE && m->config->scales_embeddings) /* mup_enabled */
        tensor_set(e, &x, op_mul_scalar(e, x, sqrt((double)m->config->hidden_size)));
    if (f == PLIM_FAMILY_PHI) tensor_set(e, &b.embeddings, x); /* both are the same variable in phi */
    make_rotary(e, m, (enum plim_dtype)x->a.dtype, b.turning, b.calls);
    if (m->config->global_head_dim) m->shared_states = checkpoint_mapping_create(e);
    x = decoder_blocks_with_images(e, m, x, &b.calls[FULL], &b.calls[SLIDING], m->pixels ? &b.encoded : NULL);
    x = last_norm(e, m, x);
    finish(e, m, &b);
    if (plim_vision_exists(&m->config->vision)) tensor_set(e, &x, nn_end(e, x));
    return x;
}
