/* scaled_dot_product_attention if no fused kernel supports the call: _scaled_dot_product_attention_math, the
 * composition of matmuls and softmax in fp32 (native/transformers/attention.cpp). */
#include "ops.h"
#include <math.h>

/* ones(q, k).tril() as an additive mask; named */
static struct tensor *causal_mask(struct engine *e, int64_t rows, int64_t columns)
{
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    struct tensor *ones = tensor_keep(op_full(e, PLIM_BOOL, SHAPE(rows, columns), 1));
    struct tensor *lower = tensor_keep(op_tril(e, ones, 0));
    tensor_drop(e, ones);
    struct tensor *mask = tensor_keep(op_where(e, lower, NULL, NULL, PLIM_F32, 0, -INFINITY));
    tensor_drop(e, lower);
    e->grad_enabled = grad;
    return mask;
}

/* repeat_interleave of the heads */
static struct tensor *repeated(struct engine *e, struct tensor *x, int64_t groups)
{
    if (e->halted) return e->poison;
    int64_t b = x->a.shape[0], h = x->a.shape[1], s = x->a.shape[2], d = x->a.shape[3];
    struct tensor *wide = op_expand(e, op_unsqueeze(e, x, 2), SHAPE(b, h, groups, s, d));
    return op_view(e, op_clone(e, wide), SHAPE(b, h * groups, s, d));
}

static struct tensor *weights(struct engine *e, struct tensor *q, struct tensor *k,
                              struct tensor *mask, const struct attention_params *p)
{
    struct tensor *scores =
        tensor_keep(op_matmul(e, q, op_mul_scalar(e, op_transpose(e, k, 2, 3), sqrt(p->scale))));
    if (mask && mask->requires_grad) tensor_set(e, &scores, op_plus_(e, scores, mask));
    else if (mask) op_add_(e, scores, mask);
    tensor_set(e, &scores, op_safe_softmax(e, scores));
    tensor_set(e, &scores, op_dropout(e, scores, p->dropout));
    return scores;
}

struct tensor *attention_math(struct engine *e, struct tensor *q, struct tensor *k,
                              struct tensor *v, struct tensor *given_mask,
                              const struct attention_params *p)
{
    enum plim_dtype dtype = (enum plim_dtype)q->a.dtype;
    int64_t groups = p->broadcasts ? 1 : q->a.shape[1] / k->a.shape[1];
    struct tensor *q32 = tensor_hold(op_to(e, q, PLIM_F32)),
                  *k32 = tensor_hold(op_to(e, k, PLIM_F32));
    struct tensor *v32 = tensor_hold(op_to(e, v, PLIM_F32));
    struct tensor *scaled = tensor_keep(op_mul_scalar(e, q32, sqrt(p->scale)));
    struct tensor *mask = p->causal ? causal_mask(e, q->a.shape[2], k->a.shape[2]) : NULL;
    struct tensor *keys = groups > 1 ? tensor_keep(repeated(e, k32, groups)) : tensor_ref(k32);
    struct tensor *values = groups > 1 ? tensor_keep(repeated(e, v32, groups)) : tensor_ref(v32);
    struct tensor *w = weights(e, scaled, keys, mask ? mask : given_mask, p);
    struct tensor *returned =
        tensor_hold(e->halted ? w : op_to(e, w, dtype)); /* the call's second result */
    struct tensor *out = tensor_keep(op_matmul(e, w, values));
    if (!e->halted) tensor_set(e, &out, op_to(e, out, dtype));
    tensor_drop_all(e, keys, values, scaled, mask, v32, k32, q32, w, returned);
    return tensor_yield(out);
}
