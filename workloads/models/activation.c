/* ACT2FN: activation functions by their names. */
#include "model.h"
#include <math.h>

/* QuickGELUActivation; x is taken */
static struct tensor *quick_gelu(struct engine *e, struct tensor *x)
{
    if (e->halted) return op_halted(e, 1, &x);
    bool was = tensor_enter(x);
    struct tensor *y = op_mul(e, x, op_sigmoid(e, op_mul_scalar(e, x, 1.702)));
    tensor_leave(e, x, was);
    return y;
}

/* GELUActivation._gelu_python(); x is taken */
static struct tensor *python_gelu(struct engine *e, struct tensor *x)
{
    if (e->halted) return op_halted(e, 1, &x);
    bool was = tensor_enter(x);
    struct tensor *half = op_mul_scalar(e, x, 0.5), *erf = op_erf(e, op_div_scalar(e, x, sqrt(2)));
    struct tensor *y = op_mul(e, half, op_add_scalar(e, erf, 1));
    tensor_leave(e, x, was);
    return y;
}

static struct tensor *activation(struct engine *e, enum plim_activation f, struct tensor *x)
{
    switch (f) {
    case PLIM_ACTIVATION_GELU:
        return op_gelu(e, x, false);
    case PLIM_ACTIVATION_GELU_PYTORCH_TANH:
        return op_gelu(e, x, true);
    case PLIM_ACTIVATION_GELU_NEW:
        return nn_gelu_new(e, x);
    case PLIM_ACTIVATION_SILU:
        return op_silu(e, x);
    case PLIM_ACTIVATION_RELU:
        return op_relu(e, x);
    case PLIM_ACTIVATION_RELU2:
        return op_pow_scalar(e, op_relu(e, x), 2);
    case PLIM_ACTIVATION_QUICK_GELU:
        return quick_gelu(e, x);
    case PLIM_ACTIVATION_XIELU: /* has parameters (xielu.c) */
        return x;
    case PLIM_ACTIVATION_GELU_PYTHON:
        return python_gelu(e, x);
    }
    return x;
}

struct tensor *decoder_activation(struct engine *e, enum plim_activation f, struct tensor *x)
{
    nn_begin(e);
    return nn_end(e, activation(e, f, x));
}
