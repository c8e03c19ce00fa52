/* Short convolutions instead of attention: Lfm2ShortConv of transformers' lfm2 (modeling_lfm2.py:282), as it runs
 * without the package causal-conv1d. */
#include "model.h"

void short_conv_build(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    l->conv = nn_parameter(e, p, INIT_WEIGHT, SHAPE(c->hidden_size, 1, c->linear_kernel));
    nn_linear_create(e, p, &l->in_qkv, c->hidden_size, 3 * c->hidden_size, false);
    nn_linear_create(e, p, &l->linear_out, c->hidden_size, c->hidden_size, false);
}

void decoder_hide_padding(struct engine *e, struct tensor *mask, struct tensor **x)
{
    if (!mask) return;
    enum plim_dtype dtype = (enum plim_dtype)(*x)->a.dtype;
    tensor_set(e, x, op_to(e, op_mul(e, *x, op_unsqueeze(e, mask, 2)), dtype));
}

/* out_proj(C * conv(B * X)), where B, C and X are parts of one projection (batch, 3 H, S). */
static struct tensor *forward(struct engine *e, const void *module, struct tensor *given)
{
    enum { B, C, X };
    const struct block_call *b = module;
    const struct decoder_layer *l = b->layer;
    int64_t width = b->m->config->hidden_size;
    struct tensor *hidden = tensor_ref(given), *part[3];
    decoder_hide_padding(e, b->mask, &hidden);
    struct tensor *all = tensor_keep(op_transpose(e, nn_linear(e, &l->in_qkv, hidden), 1, 2));
    op_split(e, all, 1, 3, (int64_t[]){width, width, width}, part);
    for (int i = B; i <= X; i++) tensor_keep(part[i]);
    tensor_set(e, &hidden, op_mul(e, part[B], part[X]));
    nn_access_weight(e, l->conv, NN_ACCESSES, l->conv);
    tensor_set(e, &hidden, nn_causal_conv1d(e, l->conv, NULL, hidden, false));
    struct tensor *y = tensor_keep(op_mul(e, part[C], hidden));
    if (!e->halted) tensor_set(e, &y, op_contiguous(e, op_transpose(e, y, 1, 2)));
    tensor_set(e, &y, nn_linear(e, &l->linear_out, y));
    tensor_drop_all(e, hidden, all, part[B], part[C], part[X]);
    return tensor_yield(y);
}

struct tensor *short_conv(struct engine *e, const struct block_call *b, struct tensor *x)
{
    return nn_run(e, (struct tensor *const[]){b->layer->conv, NULL}, NN_ACCESSES, forward, b, x);
}
