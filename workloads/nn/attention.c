/* The attention functions of transformers: sdpa_attention_forward and eager_attention_forward. */
#include "nn.h"

/* repeat_kv: each key head once for each of its query heads; x itself where there is one */
static struct tensor *repeat_kv(struct engine *e, struct tensor *x, int64_t groups)
{
    if (groups == 1 || e->halted) return x;
    int64_t b = x->a.shape[0], heads = x->a.shape[1], s = x->a.shape[2], d = x->a.shape[3];
    struct tensor *wide =
        tensor_keep(op_expand(e, op_unsqueeze(e, x, 2), SHAPE(b, heads, groups, s, d)));
    struct tensor *y = op_reshape(e, wide, SHAPE(b, heads * groups, s, d));
    tensor_drop(e, wide);
    return y;
}

static struct tensor *sdpa(struct engine *e, const struct attention_call *c, struct tensor *q,
                           struct tensor *k, struct tensor *v)
{
    bool gqa = c->groups > 1 && !c->mask; /* use_gqa_in_sdpa: only without a mask */
    struct tensor *keys = gqa ? tensor_ref(k) : tensor_hold(repeat_kv(e, k, c->groups));
    struct tensor *values = gqa ? tensor_ref(v) : tensor_hold(repeat_kv(e, v, c->groups));
    struct attention_params p = {.mask = c->mask,
                                 .dropout = c->dropout,
                                 .scale = c->scaling,
                                 .gqa = gqa,
                                 .causal = !c->bidirectional && !c->mask && !e->halted &&
                                           tensor_size(q, 2) > 1};
    struct tensor *out = tensor_keep(op_sdpa(e, q, keys, values, &p));
    tensor_set(e, &out, op_contiguous(e, op_transpose(e, out, 1, 2)));
    tensor_drop(e, keys);
    tensor_drop(e, values);
    return tensor_yield(out);
}

static struct tensor *eager(struct engine *e, const struct attention_call *c, struct tensor *q,
                            struct tensor *k, struct tensor *v, struct tensor **weights)
{
    struct tensor *keys = tensor_hold(repeat_kv(e, k, c->groups));
    struct tensor *values = tensor_hold(repeat_kv(e, v, c->groups));
    struct tensor *w =
        tensor_keep(op_mul_scalar(e, op_matmul(e, q, op_transpose(e, keys, 2, 3)), c->scaling));
    if (c->softcap > 0) nn_softcap(e, &w, c->softcap);
    if (c->mask) tensor_set(e, &w, op_add(e, w, c->mask));
    enum plim_dtype dtype = (enum plim_dtype)(c->softmax_fp32 ? q : v)->a.dtype;
    enum plim_dtype inside =
        c->softmax_fp32 || e->autocast.on ? PLIM_F32 : (enum plim_dtype)w->a.dtype;
    if (c->softmax_fp32) {
        tensor_set(e, &w, op_to(e, op_softmax(e, w, inside), dtype));
    } else {
        tensor_set(e, &w, op_softmax(e, w, inside));
        if (!c->softmax_stays) tensor_set(e, &w, op_to(e, w, dtype));
    }
    tensor_set(e, &w, op_dropout(e, w, c->dropout));
    struct tensor *out = tensor_keep(op_matmul(e, w, values));
    tensor_set(e, &out, op_contiguous(e, op_transpose(e, out, 1, 2)));
    tensor_drop(e, keys);
    tensor_drop(e, values);
    *weights = w;
    return tensor_yield(out);
}

struct tensor *nn_attention(struct engine *e, const struct attention_call *c, struct tensor *q,
                            struct tensor *k, struct tensor *v, struct tensor **weights)
{
    *weights = NULL;
    if (e->halted) return e->poison;
    return c->eager ? eager(e, c, q, k, v, weights) : sdpa(e, c, q, k, v);
}
