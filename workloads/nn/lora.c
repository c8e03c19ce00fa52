/* peft's lora.Linear: result = base(x) + B(A(dropout(x))) * scaling, in the base's type. */
#include "nn.h"

struct tensor *nn_lora(struct engine *e, const struct lora_adapter *a, struct tensor *y,
                       struct tensor *x)
{
    struct tensor *result = tensor_hold(y);
    enum plim_dtype dtype = (enum plim_dtype)result->a.dtype;
    struct tensor *input = tensor_hold(e->halted ? x : op_to(e, x, (enum plim_dtype)a->a->a.dtype));
    struct tensor *dropped = op_dropout(e, input, a->dropout);
    struct tensor *low = op_linear(e, dropped, a->a, NULL);
    struct tensor *delta = op_mul_scalar(e, op_linear(e, low, a->b, NULL), a->scaling);
    tensor_set(e, &result, op_add(e, result, delta));
    tensor_set(e, &result, e->halted ? result : op_to(e, result, dtype));
    tensor_drop(e, input);
    return tensor_yield(result);
}
