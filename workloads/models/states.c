/* The parameters and buffers of a model, in the orders in which PyTorch visits them. */
#include "experts.h"
#include "llama_traits.h"
#include <string.h>

/* Stores the buffers outside of the blocks in `out`. Returns their number. */
static size_t buffers_beside(const struct decoder *m, struct tensor **out)
{
    struct tensor *const all[DECODER_BUFFERS_BESIDE] = {
        m->vision.inv_freq, m->vision.original_inv_freq, m->vision.position_ids,
        m->position_ids, m->type_ids, m->embedding_scale, m->rotary.inv_freq, m->rotary.original_inv_freq,
        m->rotary_local.inv_freq, m->rotary_local.original_inv_freq, m->per_layer_scale, m->saved_scale,
        m->causal_bias, m->logits_bias};
    size_t count = 0;
    for (int i = 0; i < DECODER_BUFFERS_BESIDE; i++)
        if (all[i]) out[count++] = all[i];
    return count;
}

size_t decoder_layer_buffers(const struct decoder_layer *l, struct tensor *out[LAYER_BUFFERS])
{
    struct tensor *const all[] = {l->router_correction, l->sinusoids, l->scalar, l->xielu[2], l->xielu[3], l->mup};
    size_t count = 0;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (all[i]) out[count++] = all[i];
    return count;
}

size_t decoder_buffers(const struct decoder *m, struct tensor **out)
{
    size_t count = vision_buffers(m, out);
    for (int64_t i = 0; i < m->config->layers; i++) {
        struct tensor *own[LAYER_BUFFERS];
        size_t n = decoder_layer_buffers(&m->layers[i], own);
        for (size_t k = 0; k < n; k++)
            if (!own[k]->is_parameter) out[count++] = own[k];
    }
    return count + buffers_beside(m, out + count);
}

const struct decoder_layer *decoder_layer_of(const struct decoder *m, const struct tensor *x)
{
    int64_t layer = x->layer - 1 - m->config->vision.layers; /* a tower's blocks come before the text's */
    return layer >= 0 ? &m->layers[layer] : NULL;
}

/* True if the router_correction comes after the router's weight. minimax_m2's comes after the experts, which come after
 * the router. */
static bool is_of_router(const struct decoder *m, const struct decoder_layer *l)
{
    return l->router_correction->is_parameter || experts_traits_of(m)->experts_first;
}

/* A block's buffers come after the last parameter of their module: a router, attention, an activation function, or the
 * block. Stores them in `out` if `x` is that parameter. Returns their number. */
static size_t buffers_behind(const struct decoder *m, const struct tensor *x, struct tensor **out)
{
    const struct decoder_layer *l = decoder_layer_of(m, x);
    struct tensor *own[LAYER_BUFFERS];
    size_t count = l ? decoder_layer_buffers(l, own) : 0;
    if (!count) return 0;
    const struct tensor *last = l->expert_norm[2].weight ? l->expert_norm[2].weight
                                : l->per_layer_norm.weight ? l->per_layer_norm.weight
                                                           : l->norm[3].weight;
    if (l->sinusoids) last = l->o.weight;
    if (l->mup) last = l->skip;
    if (l->xielu[1]) last = l->xielu[1];
    bool is_of_block = l->router_correction && experts_traits_of(m)->has_linear; /* it comes after the norms */
    if (l->router_correction && !is_of_block) last = is_of_router(m, l) ? l->router : l->experts_down;
    if (x != last) return 0;
    memcpy(out, own, count * sizeof(*own));
    return count;
}

const struct tensor *decoder_base_embedding(const struct decoder *m)
{
    for (size_t i = 0; i < m->saved_count; i++)
        if (m->saved[i].copy[0] == m->embedding) return m->saved[i].original[0];
    return m->embedding;
}

/* Returns the frozen parameter after which an adapter comes; NULL: after all, because its linear has the embedding's
 * weight. */
static const struct tensor *stands_behind(const struct decoder *m, const struct lora_adapter *a)
{
    bool is_tied = a == m->head_lora && a->weight == decoder_base_embedding(m);
    if (a->experts) return a->last;
    return a->bias ? a->bias : is_tied ? NULL : a->weight;
}

/* Stores the matrices and magnitudes of adapters of `list` that come after `x`. Returns their number. */
static size_t adapters_behind(const struct decoder *m, const struct adapters *list, const struct tensor *x,
                              struct tensor **out)
{
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (x != stands_behind(m, &list->list[i])) continue;
        out[count++] = list->list[i].a;
        out[count++] = list->list[i].b;
        if (list->list[i].magnitude) out[count++] = list->list[i].magnitude;
    }
    return count;
}

static const struct lora_adapter *find_magnitude(const struct adapters *list, const struct tensor *x)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->list[i].magnitude == x) return &list->list[i];
    return NULL;
}

const struct lora_adapter *decoder_adapter_of_magnitude(const struct decoder *m, const struct tensor *x)
{
    const struct lora_adapter *found = find_magnitude(&m->adapters, x);
    for (size_t i = 0; vision_adapters(m, i) && !found; i++) found = find_magnitude(vision_adapters(m, i), x);
    for (int64_t i = 0; i < m->config->layers && !found; i++) found = find_magnitude(&m->layers[i].adapters, x);
    return found ? found : find_magnitude(&m->adapters_behind, x);
}

/* Stores the copies of saved modules that come after `x`, the original's last parameter; if `x` is NULL, those of
 * modules without parameters besides a tied weight, which comes elsewhere. Returns their number. */
static size_t copies_behind(const struct decoder *m, const struct tensor *x, struct tensor **out)
{
    size_t count = 0;
    for (size_t i = 0; i < m->saved_count; i++) {
        const struct saved_module *saved = &m->saved[i];
        bool is_alone = saved->is_tied && !saved->original[1];
        if (is_alone ? x != NULL : x != saved->last) continue;
        for (int k = 0; k < 2; k++)
            if (saved->copy[k]) out[count++] = saved->copy[k];
    }
    return count;
}

/* Moves `own` (NULL: does nothing) towards the end of the list, until `next` follows it. */
static void put_before(struct tensor **states, size_t count, const struct tensor *own, const struct tensor *next)
{
    size_t at = 0;
    while (own && at < count && states[at] != own) at++;
    for (; own && at + 1 < count && states[at + 1] != next; at++) {
        struct tensor *moved = states[at + 1];
        states[at + 1] = states[at];
        states[at] = moved;
    }
}

size_t decoder_states(const struct decoder *m, struct tensor **out)
{
    const struct parameters *p = &m->parameters;
    size_t of_layers = LAYER_BUFFERS * (size_t)m->config->layers;
    if (!out) return p->count + p->frozen_count + of_layers + DECODER_BUFFERS_BESIDE + VISION_BUFFERS;
    size_t count = 0;
    for (size_t i = 0; i < p->frozen_count; i++) {
        out[count++] = p->frozen[i];
        count += buffers_behind(m, p->frozen[i], out + count);
        for (size_t k = 0; vision_adapters(m, k); k++)
            count += adapters_behind(m, vision_adapters(m, k), p->frozen[i], out + count);
        count += adapters_behind(m, &m->adapters, p->frozen[i], out + count);
        count += adapters_behind(m, &m->adapters_behind, p->frozen[i], out + count);
        for (int64_t k = 0; k < m->config->layers; k++)
            count += adapters_behind(m, &m->layers[k].adapters, p->frozen[i], out + count);
        count += copies_behind(m, p->frozen[i], out + count);
        count += vision_buffers_behind(m, p->frozen[i], out + count);
    }
    for (size_t i = 0; i < p->count && !m->setting->lora.r; i++) {
        out[count++] = p->list[i];
        count += buffers_behind(m, p->list[i], out + count);
        count += vision_buffers_behind(m, p->list[i], out + count);
    }
    /* whisper's positions, if they alone are frozen, come after its convolutions */
    bool is_among_trained = m->config->mel_bins && p->frozen_count == 1;
    if (is_among_trained) put_before(out, count, m->source_positions, m->layers[0].k.weight);
    count += adapters_behind(m, &m->adapters_behind, NULL, out + count);
    count += copies_behind(m, NULL, out + count);
    if (p->frozen_count && m->value_head.weight) {
        out[count++] = m->value_head.weight;
        out[count++] = m->value_head.bias;
    }
    return count + buffers_beside(m, out + count);
}

/* Moves the first two parameters, which vit's embeddings have themselves, after the two of their child. For towers see
 * put_own_last(). */
static void put_children_first(const struct decoder *m, struct tensor **states)
{
    if (!m->patch_weight) return;
    struct tensor *own[2] = {states[0], states[1]};
    memmove(states, states + 2, 2 * sizeof(*states));
    memcpy(states + 2, own, sizeof(own));
}

/* Moves the parameters that the embeddings and blocks of internvl's tower have themselves after those of their
 * children. */
static void put_tower_last(const struct decoder *m, struct tensor **states, size_t count)
{
    const struct decoder_layer *layers = m->vision.layers;
    put_before(states, count, m->vision.class_token, layers[0].scales[0]);
    put_before(states, count, m->vision.positions, layers[0].scales[0]);
    for (int64_t i = 0; i < m->config->vision.layers; i++) {
        bool is_last = i == m->config->vision.layers - 1;
        const struct tensor *next = is_last ? m->vision.mergers[0].norm.weight : layers[i + 1].scales[0];
        for (int k = 0; k < 2; k++) put_before(states, count, layers[i].scales[k], next);
    }
}

/* Moves the parameters that modules have themselves after those of their children: of gpt_oss's attention, which the
 * router follows; of linear attention, which the MLP or the router follows; of a Mamba-2 layer, the last of its block;
 * of gemma3's projector, which the text follows; the positions of gemma4's tower after its patch embedding; the scale
 * of attention in the audio tower before its buffer; a router's correction. */
static void put_own_last(const struct decoder *m, struct tensor **states, size_t count)
{
    const struct tensor *behind = m->head != m->embedding ? m->head : NULL; /* follows gemma4_unified's positions */
    if (m->audio.embedding.weight) behind = m->audio.embedding.weight;
    if (m->vision.patch.weight)
        put_before(states, count, m->vision.positions, m->vision.inv_freq ? m->vision.inv_freq : behind);
    for (int64_t i = 0; i < m->config->audio.layers; i++)
        put_before(states, count, m->audio.layers[i].scale, m->audio.layers[i].softcap);
    put_before(states, count, m->vision.projection, decoder_base_embedding(m));
    if (m->vision.position_ids) put_before(states, count, m->vision.class_token, m->vision.position_ids);
    if (m->config->vision.has_tiles) put_tower_last(m, states, count);
    for (int64_t i = 0; i < m->config->layers; i++) {
        const struct decoder_layer *l = &m->layers[i];
        const struct tensor *next = i + 1 < m->config->layers ? l[1].q.weight : m->final_norm.weight;
        bool is_of_block = l->router_correction && experts_traits_of(m)->has_linear;
        if (is_of_block) put_before(states, count, l->router_correction, next);
        bool is_of_child = l->router_correction && l->router_correction->is_parameter && !is_of_block;
        if (is_of_child) put_before(states, count, l->router, l->experts_gate_up);
        put_before(states, count, l->sinks, l->router);
        const struct tensor *behind_block = i + 1 < m->config->layers ? l[1].norm[0].weight : m->final_norm.weight;
        const struct tensor *of_mlp = l->router ? l->router : l->gate.weight;
        struct tensor *const own[] = {l->dt_bias, l->a_log, l->skip, l->mup};
        if (l->mup) behind_block = l->q.weight; /* attention follows */
        for (int k = 0; k < 4; k++) put_before(states, count, own[k], l->skip ? behind_block : of_mlp);
    }
}

/* Returns the last tensor before the head. */
static const struct tensor *before_head(const struct decoder *m, struct tensor *const *states, size_t count)
{
    size_t end = count;
    for (size_t i = 0; i < count; i++)
        if (states[i] == m->head && m->head != m->embedding) end = i;
    return end ? states[end - 1] : NULL;
}

/* True if the buffer has a place of its own, apart from the other buffers outside of the blocks. */
static bool has_own_place(const struct decoder *m, const struct tensor *buffer)
{
    return buffer == m->embedding_scale || buffer == m->saved_scale || buffer == m->vision.inv_freq ||
           buffer == m->vision.original_inv_freq || buffer == m->vision.position_ids;
}

/* Returns the last tensor before a tower's buffers: the positions or the patch embedding; for pixtral, whose buffers
 * come last, the last norm of its blocks. */
static const struct tensor *last_of_patches(const struct decoder *m)
{
    const struct plim_vision *v = &m->config->vision;
    const struct adapters *adapters = &m->vision.adapters;
    if (v->row_ends) return m->vision.layers[v->layers - 1].norm[1].weight;
    if (adapters->count)
        return adapters->list[0].magnitude ? adapters->list[0].magnitude : adapters->list[0].b;
    if (m->vision.patch.weight) return m->vision.patch.weight;
    return m->vision.positions ? m->vision.positions : m->vision.patch_weight;
}

/* Returns the later one of two tensors in the list; either may be NULL. */
static const struct tensor *later_of(struct tensor *const *states, size_t count, const struct tensor *a,
                                     const struct tensor *b)
{
    while (count && states[count - 1] != a && states[count - 1] != b) count--;
    return count ? states[count - 1] : NULL;
}

size_t decoder_states_by_module(const struct decoder *m, struct tensor **out)
{
    struct tensor *buffers[DECODER_BUFFERS_BESIDE];
    size_t count = decoder_states(m, out), n = buffers_beside(m, buffers);
    const struct tensor *embedded = decoder_base_embedding(m);
    const struct tensor *behind_patches = m->config->vision.layers ? last_of_patches(m) : NULL;
    bool norm_first = m->config->family != PLIM_FAMILY_PHI && !plim_llama_traits[m->config->family].norm_last;
    /* the norm next to the buffers: bert's, or otherwise those of rotary embeddings */
    const struct norm *beside = m->position_ids ? &m->embedding_norm : &m->final_norm;
    const struct tensor *last = norm_first && beside->bias ? beside->bias : beside->weight;
    /* The position embedding may come after the norm. */
    if (m->position_ids) last = later_of(out, count - n, last, m->position_embedding);
    if (!last && m->position_ids) last = embedded;                     /* there is no norm (esm) */
    if (!last) last = before_head(m, out, count - n); /* a norm without a weight */
    /* starts at the end, so that no tensor is overwritten before it is moved */
    size_t to = count;
    for (size_t from = count - n; from-- > 0;) {
        bool is_last = out[from] == last, embedding = out[from] == embedded;
        struct tensor *x = out[from];
        for (size_t k = n; k-- > 0 && is_last && norm_first;)
            if (!has_own_place(m, buffers[k])) out[--to] = buffers[k];
        if (m->saved_scale && out[from] == m->embedding) out[--to] = m->saved_scale;
        if (embedding && m->embedding_scale) out[--to] = m->embedding_scale;
        bool is_of_tower = m->vision.layers && x == behind_patches;
        if (is_of_tower && m->vision.position_ids) out[--to] = m->vision.position_ids;
        if (is_of_tower && m->vision.inv_freq) out[--to] = m->vision.original_inv_freq;
        if (is_of_tower && m->vision.inv_freq) out[--to] = m->vision.inv_freq;
        out[--to] = x;
        for (size_t k = n; k-- > 0 && is_last && !norm_first;) out[--to] = buffers[k];
    }
    put_children_first(m, out);
    put_own_last(m, out, count);
    return count;
}
