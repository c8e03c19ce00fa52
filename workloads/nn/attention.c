/* The attention functions of transformers: sdpa_attention_forward and eager_attention_forward. */
#include "nn.h"

/* repeat_kv: each key head once for each of its query heads; x itself where there is one */
static struct tensor *repeat_kv(struct graph *g, struct tensor *x, int64_t groups)
{
    if (groups == 1 || g->halted) return x;
    int64_t b = x->a.shape[0], heads = x->a.shape[1], s = x->a.shape[2], d = x->a.shape[3];
    struct tensor *wide =
        tensor_keep(op_expand(g, op_unsqueeze(g, x, 2), SHAPE(b, heads, groups, s, d)));
    struct tensor *y = op_reshape(g, wide, SHAPE(b, heads * groups, s, d));
    tensor_drop(g, wide);
    return y;
}

static struct tensor *sdpa(struct graph *g, const struct attention_call *c, struct tensor *q,
                           struct tensor *k, struct tensor *v)
{
    bool gqa = c->groups > 1 && !c->mask; /* use_gqa_in_sdpa: only without a mask */
    struct tensor *keys = gqa ? tensor_ref(k) : tensor_hold(repeat_kv(g, k, c->groups));
    struct tensor *values = gqa ? tensor_ref(v) : tensor_hold(repeat_kv(g, v, c->groups));
    struct attention_params p = {.mask = c->mask,
                                 .mask_is_causal = c->mask_is_causal,
                                 .dropout = c->dropout,
                                 .scale = c->scaling,
                                 .gqa = gqa,
                                 .causal = !c->mask && !g->halted && tensor_size(q, 2) > 1};
    struct tensor *out = tensor_keep(op_sdpa(g, q, keys, values, &p));
    tensor_set(g, &out, op_contiguous(g, op_transpose(g, out, 1, 2)));
    tensor_drop(g, keys);
    tensor_drop(g, values);
    return tensor_yield(out);
}

static struct tensor *eager(struct graph *g, const struct attention_call *c, struct tensor *q,
                            struct tensor *k, struct tensor *v, struct tensor **weights)
{
    struct tensor *keys = tensor_hold(repeat_kv(g, k, c->groups));
    struct tensor *values = tensor_hold(repeat_kv(g, v, c->groups));
    struct tensor *w =
        tensor_keep(op_mul_scalar(g, op_matmul(g, q, op_transpose(g, keys, 2, 3)), c->scaling));
    if (c->softcap > 0) nn_softcap(g, &w, c->softcap);
    if (c->mask) tensor_set(g, &w, op_add(g, w, c->mask));
    enum plim_dtype dtype = (enum plim_dtype)(c->softmax_fp32 ? q : v)->a.dtype;
    enum plim_dtype inside =
        c->softmax_fp32 || g->autocast ? PLIM_F32 : (enum plim_dtype)w->a.dtype;
    if (c->softmax_fp32) {
        tensor_set(g, &w, op_to(g, op_softmax(g, w, inside), dtype));
    } else {
        tensor_set(g, &w, op_softmax(g, w, inside));
        tensor_set(g, &w, op_to(g, w, dtype));
    }
    tensor_set(g, &w, op_dropout(g, w, c->dropout));
    struct tensor *out = tensor_keep(op_matmul(g, w, values));
    tensor_set(g, &out, op_contiguous(g, op_transpose(g, out, 1, 2)));
    tensor_drop(g, keys);
    tensor_drop(g, values);
    *weights = w;
    return tensor_yield(out);
}

struct tensor *nn_attention(struct graph *g, const struct attention_call *c, struct tensor *q,
                            struct tensor *k, struct tensor *v, struct tensor **weights)
{
    *weights = NULL;
    if (g->halted) return g->poison;
    return c->eager ? eager(g, c, q, k, v, weights) : sdpa(g, c, q, k, v);
}
