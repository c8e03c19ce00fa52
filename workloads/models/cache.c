/* transformers' DynamicCache (5.17, cache_utils.py): each update concatenates a layer's cached tokens and the new ones
 * into new tensors. */
#include "model.h"
#include <stdlib.h>

enum { KEYS, VALUES, STATES };

enum plim_status decoder_cache_create(const struct decoder *m, struct decoder_cache *cache)
{
    bool is_pair = m->config->encoder_layers > 0; /* EncoderDecoderCache: the encoder's tokens, too */
    *cache = (struct decoder_cache){.layers = is_pair ? 2 * m->config->layers : m->config->layers};
    cache->layer = calloc((size_t)cache->layers, sizeof(*cache->layer));
    return cache->layer ? PLIM_OK : PLIM_NOMEM;
}

void decoder_cache_drop(struct engine *e, struct decoder_cache *cache)
{
    for (int64_t i = 0; i < cache->layers && cache->layer; i++)
        tensor_drop_all(e, cache->layer[i].states[KEYS], cache->layer[i].states[VALUES],
                        cache->layer[i].window);
    free(cache->layer);
    *cache = (struct decoder_cache){0};
}

/* torch.cat([kept, x], dim=-2); named. The first `kept` (NULL) is an empty tensor of the keys' type
 * (lazy_initialization()), so that values of another type become fp32. */
static struct tensor *joined(struct engine *e, struct tensor *kept, struct tensor *x,
                             const struct tensor *keys)
{
    struct tensor *const both[] = {kept, x};
    if (kept) return tensor_keep(op_cat(e, 2, both, 2));
    enum plim_dtype dtype = x->a.dtype == keys->a.dtype ? (enum plim_dtype)x->a.dtype : PLIM_F32;
    struct tensor *first = tensor_keep(tensor_empty(e, dtype, 4, x->a.shape));
    op_copy_(e, first, x);
    return first;
}

/* DynamicSlidingWindowLayer.update(): the layer keeps a view of the last tokens of `all`, the concatenated states. */
static void slide(struct engine *e, struct decoder_cache_layer *l, int64_t window,
                  struct tensor *const x[STATES], struct tensor *all[STATES])
{
    if (!l->window) l->window = tensor_keep(op_full(e, PLIM_I64, 0, NULL, (double)window));
    for (int i = KEYS; i < STATES; i++) all[i] = joined(e, l->states[i], x[i], x[KEYS]);
    for (int i = KEYS; i < STATES && !e->halted; i++) {
        int64_t tokens = tensor_size(all[i], 2),
                last = window > 1 && window <= tokens ? window - 1 : tokens;
        tensor_set(e, &l->states[i], op_slice_end(e, all[i], 2, last));
    }
}

void decoder_cache_update(struct engine *e, const struct block_call *b, struct tensor *qkv[3])
{
    struct decoder_cache *cache = b->m->cache;
    struct tensor *all[STATES] = {NULL, NULL};
    if (!cache || e->halted) return;
    int64_t layer = b->layer - b->m->layers;
    struct decoder_cache_layer *l = &cache->layer[layer];
    if (b->m->config->layer_is_sliding[layer]) {
        slide(e, l, b->m->config->sliding_window, qkv + 1, all);
    } else {
        for (int i = KEYS; i < STATES; i++) {
            all[i] = joined(e, l->states[i], qkv[1 + i], qkv[1]);
            tensor_set(e, &l->states[i], all[i]);
        }
    }
    for (int i = KEYS; i < STATES; i++) tensor_set(e, &qkv[1 + i], all[i]);
    tensor_drop_all(e, all[KEYS], all[VALUES]);
}

void decoder_cache_update_once(struct engine *e, const struct decoder *m, int64_t layer, struct tensor *qkv[3])
{
    struct decoder_cache *cache = m->cache;
    if (!cache || !cache->layer || e->halted) return;
    struct tensor **states = cache->layer[layer].states;
    for (int i = KEYS; i < STATES; i++) states[i] = tensor_keep(op_cat(e, 1, &qkv[1 + i], 2));
    for (int i = KEYS; i < STATES; i++) tensor_set(e, &qkv[1 + i], states[i]);
}
