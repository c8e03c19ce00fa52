/* peft's lora.Linear: result = base(x) + B(A(dropout(x))) * scaling, in the base's type. */
#include "nn.h"

struct tensor *nn_lora(struct graph *g, const struct lora_adapter *a, struct tensor *y,
                       struct tensor *x)
{
    struct tensor *result = tensor_hold(y);
    enum plim_dtype dtype = (enum plim_dtype)result->a.dtype;
    struct tensor *input = tensor_hold(g->halted ? x : op_to(g, x, (enum plim_dtype)a->a->a.dtype));
    struct tensor *dropped = op_dropout(g, input, a->dropout);
    struct tensor *low = op_linear(g, dropped, a->a, NULL);
    struct tensor *delta = op_mul_scalar(g, op_linear(g, low, a->b, NULL), a->scaling);
    tensor_set(g, &result, op_add(g, result, delta));
    tensor_set(g, &result, g->halted ? result : op_to(g, result, dtype));
    tensor_drop(g, input);
    return tensor_yield(result);
}
