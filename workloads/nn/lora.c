/* peft's LoRA layers: result = base(x) + B(A(dropout(x))) * scaling, in the base's type. Also axolotl's functions that
 * replace them. */
#include "nn.h"
#include "workloads/engine/ops_lora.h"

/* B(A(dropout(x))) * scaling; floating */
static struct tensor *delta(struct engine *e, const struct lora_adapter *a, struct tensor *x)
{
    struct tensor *low = nn_adapter_product(e, &a->a, nn_dropout(e, x, a->dropout));
    return op_mul_scalar(e, nn_adapter_product(e, &a->b, low), a->scaling);
}

/* lora_A.weight.dtype, read from outside that module. */
static void access_type(struct engine *e, const struct lora_adapter *a)
{
    nn_access_weight(e, a->a, NN_ADAPTED, a->a);
}

/* lora_A.weight.dtype */
static enum plim_dtype type_of(struct engine *e, struct tensor *weight)
{
    const struct module_hooks *hooks = e->modules;
    return hooks && hooks->type_of ? hooks->type_of(e, hooks->context, weight) : (enum plim_dtype)weight->a.dtype;
}

struct tensor *nn_lora(struct engine *e, const struct linear *l, struct tensor *y,
                       struct tensor *x)
{
    const struct lora_adapter *a = l->lora;
    struct tensor *result = tensor_hold(y);
    enum plim_dtype dtype = (enum plim_dtype)result->a.dtype;
    access_type(e, a);
    struct tensor *input = tensor_hold(e->halted ? x : op_to(e, x, type_of(e, a->a)));
    tensor_set(e, &result,
               a->magnitude ? nn_dora(e, l, result, input) : op_add(e, result, delta(e, a, input)));
    tensor_set(e, &result, e->halted ? result : op_to(e, result, dtype));
    tensor_drop(e, input);
    return tensor_yield(result);
}

/* Casts explicitly only if autocast does not. */
struct tensor *nn_lora_quantized(struct engine *e, const struct linear *l, struct tensor *y,
                                 struct tensor *x)
{
    const struct lora_adapter *a = l->lora;
    if (e->halted) return op_halted(e, 1, &y);
    enum plim_dtype dtype = (enum plim_dtype)y->a.dtype;
    bool converts = !e->autocast.on;
    /* for Linear4bit peft copies the result: backward did not work on "a manipulated view" */
    struct tensor *result = tensor_keep(nn_is_int8(l) ? y : op_clone(e, y));
    if (converts) access_type(e, a);
    struct tensor *input =
        tensor_hold(converts ? op_to(e, x, type_of(e, a->a)) : x);
    if (a->magnitude) {
        tensor_set(e, &result, nn_dora(e, l, result, input));
        if (converts && !e->halted) tensor_set(e, &result, op_to(e, result, dtype));
    } else {
        struct tensor *output = tensor_keep(delta(e, a, input));
        if (converts && !e->halted) tensor_set(e, &output, op_to(e, output, dtype));
        tensor_set(e, &result, op_add(e, result, output));
        tensor_drop(e, output);
    }
    tensor_drop(e, input);
    return tensor_yield(result);
}

/* --- axolotl's functions ---------------------------------------------------------------------- */

/* get_lora_parameters() */
static struct lora_projection projection_of(struct engine *e, const struct linear *l)
{
    struct tensor *const matrices[2] = {l->lora->a, l->lora->b};
    for (int i = 0; i < 2 && e->modules && e->modules->unshard && !e->halted; i++)
        e->modules->unshard(e, e->modules->context, matrices[i]);
    return (struct lora_projection){.weight = l->weight,
                                    .bias = l->bias,
                                    .quantized = l->quantized.codes ? &l->quantized : NULL,
                                    .a = l->lora->a,
                                    .b = l->lora->b,
                                    .scaling = l->lora->scaling};
}

/* _apply_dropout(): the dropout of one adapter, which others share; named, or NULL if there is none. */
static struct tensor *dropped_once(struct engine *e, const struct linear *l, struct tensor *x)
{
    return l->lora->dropout > 0 && !e->evaluates ? tensor_hold(nn_dropout(e, x, l->lora->dropout)) : NULL;
}

void nn_lora_qkv(struct engine *e, const struct linear *const l[3], struct tensor *x, struct tensor *y[3])
{
    const struct lora_projection p[] = {projection_of(e, l[0]), projection_of(e, l[1]), projection_of(e, l[2])};
    struct tensor *dropped = dropped_once(e, l[0], x);
    op_lora_qkv(e, x, dropped, p, y);
    tensor_drop(e, dropped);
}

struct tensor *nn_lora_o(struct engine *e, const struct linear *l, struct tensor *x)
{
    const struct lora_projection p = projection_of(e, l);
    bool was = tensor_enter(x);
    struct tensor *dropped = dropped_once(e, l, x), *y = op_lora_o(e, x, dropped, &p);
    tensor_drop(e, dropped);
    tensor_leave(e, x, was);
    return y;
}

struct tensor *nn_lora_mlp(struct engine *e, enum plim_unary f, const struct linear *const l[3], struct tensor *x)
{
    const struct lora_projection p[] = {projection_of(e, l[0]), projection_of(e, l[1]), projection_of(e, l[2])};
    bool was = tensor_enter(x);
    struct tensor *dropped = dropped_once(e, l[0], x), *y = op_lora_mlp(e, f, x, dropped, p);
    tensor_drop(e, dropped);
    tensor_leave(e, x, was);
    return y;
}
