/* peft's LoRA layers: result = base(x) + B(A(dropout(x))) * scaling, in the base's type. */
#include "nn.h"

/* B(A(dropout(x))) * scaling; floating */
static struct tensor *adapter(struct engine *e, const struct lora_adapter *a, struct tensor *x)
{
    struct tensor *dropped = op_dropout(e, x, a->dropout);
    struct tensor *low = op_linear(e, dropped, a->a, NULL);
    return op_mul_scalar(e, op_linear(e, low, a->b, NULL), a->scaling);
}

struct tensor *nn_lora(struct engine *e, const struct lora_adapter *a, struct tensor *y,
                       struct tensor *x)
{
    struct tensor *result = tensor_hold(y);
    enum plim_dtype dtype = (enum plim_dtype)result->a.dtype;
    struct tensor *input = tensor_hold(e->halted ? x : op_to(e, x, (enum plim_dtype)a->a->a.dtype));
    tensor_set(e, &result, op_add(e, result, adapter(e, a, input)));
    tensor_set(e, &result, e->halted ? result : op_to(e, result, dtype));
    tensor_drop(e, input);
    return tensor_yield(result);
}

/* Types are only converted where autocast does not do so. */
struct tensor *nn_lora_4bit(struct engine *e, const struct lora_adapter *a, struct tensor *y,
                            struct tensor *x)
{
    if (e->halted) return op_halted(e, 1, &y);
    enum plim_dtype dtype = (enum plim_dtype)y->a.dtype;
    bool converts = !e->autocast.on;
    struct tensor *result = tensor_keep(op_clone(e, y)); /* "a manipulated view" may not be changed */
    struct tensor *input =
        tensor_hold(converts ? op_to(e, x, (enum plim_dtype)a->a->a.dtype) : x);
    struct tensor *output = tensor_keep(adapter(e, a, input));
    if (converts) tensor_set(e, &output, e->halted ? output : op_to(e, output, dtype));
    tensor_set(e, &result, op_add(e, result, output));
    tensor_drop(e, input);
    tensor_drop(e, output);
    return tensor_yield(result);
}
