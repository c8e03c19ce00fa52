/* A body with rotary positions, which most families share: embeddings, masks, positions, blocks, the last norm
 * (LlamaModel.forward). */
#include "model.h"
#include <math.h>

static struct tensor *look_up_per_layer(struct engine *e, const void *module, struct tensor *ids)
{
    const struct decoder *m = module;
    struct tensor *x = op_embedding(e, m->per_layer_embedding, ids);
    return op_mul(e, x, op_to(e, m->per_layer_scale, (enum plim_dtype)m->per_layer_embedding->a.dtype));
}

/* gemma4: what each layer has of ids (B, S) alone, (B, S, layers, width), named */
static struct tensor *find_per_layer(struct engine *e, struct decoder *m, struct tensor *ids)
{
    const struct plim_model_config *c = m->config;
    if (e->halted || !m->per_layer_embedding) return NULL;
    struct tensor *const weights[] = {m->per_layer_embedding, NULL};
    struct tensor *y = nn_run(e, weights, NN_EMBEDDING, look_up_per_layer, m, ids);
    int64_t shape[4] = {tensor_size(ids, 0), tensor_size(ids, 1), c->layers, c->per_layer_size};
    return tensor_keep(op_view(e, y, 4, shape));
}

/* Sets m->per_layer, of that (NULL: there is none) and of the embeddings. */
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

/* Which masks a model's forward makes: one for all layers; both whatever the layers are (qwen2_moe for a window of 0
 * where none is used); the others the sliding one where a layer asks for it. */
enum masks { MASKS_BY_LAYERS, MASKS_ONE, MASKS_BOTH };
static const enum masks masks_of[PLIM_FAMILY_COUNT] = {
    [PLIM_FAMILY_MISTRAL] = MASKS_ONE,     [PLIM_FAMILY_PHI3] = MASKS_ONE,
    [PLIM_FAMILY_MIXTRAL] = MASKS_ONE,     [PLIM_FAMILY_QWEN3_MOE] = MASKS_ONE,
    [PLIM_FAMILY_STARCODER2] = MASKS_ONE,  [PLIM_FAMILY_GEMMA2] = MASKS_BOTH,
    [PLIM_FAMILY_GEMMA3_TEXT] = MASKS_BOTH, [PLIM_FAMILY_QWEN2_MOE] = MASKS_BOTH,
    [PLIM_FAMILY_OLMO3] = MASKS_BOTH,      [PLIM_FAMILY_COHERE2] = MASKS_BOTH,
    [PLIM_FAMILY_GPT_OSS] = MASKS_BOTH,    [PLIM_FAMILY_AFMOE] = MASKS_BOTH,
    [PLIM_FAMILY_MINISTRAL3] = MASKS_ONE,  [PLIM_FAMILY_MISTRAL3] = MASKS_ONE,
    [PLIM_FAMILY_GEMMA4_TEXT] = MASKS_BOTH, [PLIM_FAMILY_GEMMA4_UNIFIED_TEXT] = MASKS_BOTH,
    [PLIM_FAMILY_MINISTRAL] = MASKS_BOTH,  [PLIM_FAMILY_GEMMA3] = MASKS_BOTH,
};

/* gpt_oss, afmoe and granitemoehybrid tell their masks no positions, so that a token sees the documents before its own.
 * Of gemma4's layers those that see all see no images' blocks. */
static void make_masks(struct engine *e, const struct decoder *m, struct tensor *embeddings,
                       struct tensor *blocks, struct block_call calls[2])
{
    enum plim_family f = m->config->family;
    enum masks masks = masks_of[f];
    bool sliding = masks == MASKS_BOTH || decoder_has_layers(m, true), full = masks != MASKS_ONE || !sliding;
    bool tells_none = f == PLIM_FAMILY_GPT_OSS || f == PLIM_FAMILY_AFMOE || f == PLIM_FAMILY_GRANITEMOEHYBRID;
    struct tensor *positions = tells_none ? NULL : calls[FULL].positions;
    int64_t window = m->config->sliding_window; /* of 0 a mask is made like any other */
    struct tensor *seen = f == PLIM_FAMILY_GEMMA4 ? NULL : blocks;
    if (full) calls[FULL].mask = decoder_mask_of_blocks(e, m, embeddings, positions, seen, 0);
    if (sliding)
        calls[SLIDING].mask = decoder_mask_of_blocks(e, m, embeddings, positions, blocks, window > 0 ? window : 1);
    if (m->config->linear_kernel || f == PLIM_FAMILY_GRANITEMOEHYBRID)
        calls[SLIDING].mask = nn_recurrent_mask(e, m->attention_mask, decoder_hides_padding(m->setting));
}

/* qwen3_5: positions (1, S) become four times (B, S), of which the first is the text's, and the others are of images'
 * grids, by which queries and keys turn. qwen2_vl has the others alone, and tells its masks no positions. Rebinds both,
 * which are the same and named. */
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

/* cos and sin: one pair for all layers, or one for each kind of layer that there is (gemma3) */
static void make_rotary(struct engine *e, struct decoder *m, enum plim_dtype dtype, struct tensor *positions,
                        struct block_call calls[2])
{
    struct rotary *rotary[2] = {&m->rotary, &m->rotary_local};
    for (int kind = FULL; kind <= SLIDING; kind++) {
        if (!rotary[kind]->dim) continue;
        nn_begin(e); /* its results need no gradient */
        nn_rotary(e, rotary[kind], positions, dtype, &calls[kind].cos, &calls[kind].sin);
    }
    if (m->rotary_local.dim) return;
    calls[SLIDING].cos = tensor_ref(calls[FULL].cos);
    if (calls[FULL].sin) calls[SLIDING].sin = tensor_ref(calls[FULL].sin);
}

/* Of x (taken); named */
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

/* What goes into a body's blocks, and what it holds to its end */
struct body {
    struct placeholders hidden; /* gemma4's */
    struct seen_images seen;
    struct tensor *own;         /* find_per_layer() */
    struct tensor *embeddings, *positions, *turning;
    struct block_call calls[2];
};

/* Embeddings, with images among them, positions and masks. Of gemma3 and gemma4 the text is a model of its own, outside
 * of which masks are made; gemma3's know positions only where the batch has some (rows of several documents). */
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
    if (m->pixels) vision_see(e, m, &b->embeddings, &b->seen);
    if (hides || m->positions) b->positions = decoder_positions(e, m, tensor_size(ids, 1));
    if (m->config->vision.has_no_blocks && m->config->seeing == PLIM_SEEING_VISION && !m->pixels) /* none, in numbers */
        b->seen.blocks = tensor_keep(op_full(e, PLIM_I64, ids->a.ndim, ids->a.shape, -1));
    b->calls[FULL].positions = b->calls[SLIDING].positions = b->positions;
    if (masks_around) make_masks(e, m, b->embeddings, b->seen.blocks, b->calls);
    if (plim_vision_is_there(&m->config->vision)) nn_begin(e); /* the text is a model of its own */
    if (hides) join_per_layer(e, m, b->own, b->embeddings);
    if (!b->positions && !b->seen.positions) b->positions = decoder_positions(e, m, tensor_size(ids, 1));
    b->turning = tensor_ref(e->halted ? e->poison : b->seen.positions ? b->seen.positions : b->positions);
    if (m->rotary.of_grids && b->positions) on_grids(e, m, tensor_size(ids, 0), &b->positions, &b->turning);
    b->calls[FULL].positions = b->calls[SLIDING].positions = b->positions;
    if (!masks_around) make_masks(e, m, b->embeddings, NULL, b->calls);
    if (f == PLIM_FAMILY_GRANITEMOEHYBRID) /* its blocks get none, which checkpointing would keep */
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
    vision_forget(e, &b->seen);
    vision_forget_placeholders(e, &b->hidden);
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
    if (f == PLIM_FAMILY_PHI) tensor_set(e, &b.embeddings, x); /* one variable there */
    make_rotary(e, m, (enum plim_dtype)x->a.dtype, b.turning, b.calls);
    if (m->config->global_head_dim) m->shared_states = checkpoint_mapping_create(e);
    x = decoder_blocks_seeing(e, m, x, &b.calls[FULL], &b.calls[SLIDING], m->pixels ? &b.seen : NULL);
    x = last_norm(e, m, x);
    finish(e, m, &b);
    if (plim_vision_is_there(&m->config->vision)) tensor_set(e, &x, nn_end(e, x));
    return x;
}
