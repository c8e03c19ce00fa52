/* The activation function xIELU of apertus (XIELUActivation in transformers' activations.py), with the operations that
 * it runs without the package xielu. It has two parameters and two buffers of one number each. */
#include "model.h"
#include <math.h>

enum { ALPHA_P, ALPHA_N, BETA, EPS }; /* indices of decoder_layer.xielu */
static const double beta = 0.5, eps = -1e-6, alpha = 0.8;

/* Creates a parameter (1) with the value log(expm1(value)). */
static struct tensor *build_alpha(struct engine *e, struct parameters *p, double value)
{
    struct tensor *number = tensor_keep(op_full(e, p->dtype, 0, NULL, value));
    struct tensor *grown = tensor_keep(op_expm1(e, number));
    tensor_drop(e, number);
    struct tensor *made = tensor_keep(op_full(e, p->dtype, SHAPE(1), log(expm1(value))));
    tensor_drop(e, grown);
    nn_adopt(e, p, made);
    p->made++;
    if (!e->halted) made->odd_name = true;
    return made;
}

void xielu_build(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    struct parameters *p = &m->parameters;
    l->xielu[ALPHA_P] = build_alpha(e, p, alpha);
    l->xielu[ALPHA_N] = build_alpha(e, p, alpha - beta);
    l->xielu[BETA] = nn_buffer(e, op_full(e, p->dtype, 0, NULL, beta));
    l->xielu[EPS] = nn_buffer(e, op_full(e, p->dtype, 0, NULL, eps));
    for (int i = BETA; i <= EPS && !e->halted; i++) l->xielu[i]->layer = p->layer;
}

/* where(x > 0, alpha_p * x * x + beta * x, (expm1(min(x, eps)) - x) * alpha_n + beta * x). The buffers are scalars,
 * which do not widen the type of a product. */
static struct tensor *forward(struct engine *e, const void *module, struct tensor *x)
{
    struct tensor *const *own = ((const struct decoder_layer *)module)->xielu;
    struct tensor *alpha_p = tensor_keep(op_softplus(e, own[ALPHA_P]));
    struct tensor *alpha_n = tensor_keep(op_add_scalar(e, op_softplus(e, own[ALPHA_N]), beta));
    struct tensor *is_above = tensor_keep(op_compare_scalar(e, PLIM_BINARY_GT, x, 0));
    struct tensor *square = op_mul(e, op_mul(e, alpha_p, x), x);
    struct tensor *above = tensor_keep(op_add(e, square, op_mul_scalar(e, x, beta)));
    struct tensor *grown = op_sub(e, op_expm1(e, op_at_most(e, x, eps)), x);
    struct tensor *scaled = op_mul(e, grown, alpha_n);
    struct tensor *below = tensor_keep(op_add(e, scaled, op_mul_scalar(e, x, beta)));
    enum plim_dtype dtype = e->halted ? PLIM_F32 : (enum plim_dtype)above->a.dtype;
    struct tensor *y = tensor_keep(op_where(e, is_above, above, below, dtype, 0, 0));
    tensor_drop_all(e, is_above, above, below, alpha_p, alpha_n);
    return tensor_yield(y);
}

struct tensor *xielu(struct engine *e, const struct decoder_layer *l, struct tensor *x)
{
    struct tensor *const weights[] = {l->xielu[ALPHA_P], l->xielu[ALPHA_N], NULL};
    if (e->halted) return op_halted(e, 1, &x);
    return nn_run(e, weights, NN_LINEAR, forward, l, x);
}
