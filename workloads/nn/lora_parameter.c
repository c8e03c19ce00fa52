/* peft 0.21.2's lora.ParamWrapper (tuners/lora/layer.py): adapters of a parameter that is not a linear's weight. While
 * the module that has it runs, torch's parametrizations (nn/utils/parametrize.py) replace it by the adapted weight. */
#include "nn.h"

/* get_delta_factors(): such that the weight's change is scaling * left @ right, in the weight's type; views of the
 * adapter's matrices if they have that type. Both named. */
static void make_factors(struct engine *e, struct lora_wrapper *w)
{
    const struct lora_adapter *a = w->adapter;
    int64_t experts = a->experts, rank = tensor_size(a->a, 0) / experts, in = tensor_size(a->a, 1),
            out = tensor_size(a->b, 0);
    enum plim_dtype dtype = (enum plim_dtype)a->weight->a.dtype;
    struct tensor *first = op_reshape(e, a->a, SHAPE(experts, rank, in));
    struct tensor *second = op_permute(e, op_reshape(e, a->b, SHAPE(out, rank, experts)), 3, (const int[]){2, 0, 1});
    struct tensor *left = tensor_keep(a->transposed ? op_transpose(e, first, -2, -1) : second);
    struct tensor *right = tensor_keep(a->transposed ? op_transpose(e, second, -2, -1) : first);
    w->left = tensor_hold(op_to(e, left, dtype));
    w->right = tensor_hold(op_to(e, right, dtype));
    tensor_drop_all(e, left, right);
}

/* get_delta_weight() of a single matrix, in the weight's type; named. */
static void make_delta(struct engine *e, struct lora_wrapper *w)
{
    const struct lora_adapter *a = w->adapter;
    struct tensor *delta = op_mul_scalar(e, op_matmul(e, a->b, a->a), a->scaling);
    w->left = tensor_hold(op_to(e, delta, (enum plim_dtype)a->weight->a.dtype));
}

/* _LoraFactorsProxy.forward(), without autocast; for a single matrix _LoraParameterProxy.forward(). Named. */
static struct tensor *adapted(struct engine *e, const struct lora_wrapper *w)
{
    const struct lora_adapter *a = w->adapter;
    if (!w->right) return tensor_keep(op_add(e, a->weight, w->left));
    bool autocast = e->autocast.on;
    e->autocast.on = false;
    struct tensor *y = tensor_keep(op_baddbmm(e, a->weight, w->left, w->right, 1, a->scaling));
    e->autocast.on = autocast;
    return y;
}

void nn_wrap(struct engine *e, struct lora_wrapper *w, const struct lora_adapter *a)
{
    *w = (struct lora_wrapper){.adapter = e->adapters_off || e->halted ? NULL : a};
    if (!w->adapter) return;
    if (a->experts > 1) make_factors(e, w);
    else make_delta(e, w);
    if (!e->halted) tensor_drop(e, adapted(e, w)); /* ParametrizationList() runs it once */
}

struct tensor *nn_wrapped(struct engine *e, struct lora_wrapper *w, struct tensor *weight)
{
    if (!w->adapter || e->halted) return weight;
    if (!w->value) w->value = adapted(e, w);
    return w->value;
}

void nn_unwrap(struct engine *e, struct lora_wrapper *w)
{
    tensor_drop_all(e, w->left, w->right);
    w->left = w->right = NULL;
}

void nn_drop_value(struct engine *e, struct lora_wrapper *w)
{
    if (w->value) tensor_drop(e, w->value);
    w->value = NULL;
}
