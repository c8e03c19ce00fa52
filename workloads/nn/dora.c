/* peft's DoRA (tuners/lora/dora.py): the direction of the adapted weight, row by row, times a trainable magnitude. The
 * norm of a row is a constant to autograd, and is computed again in each forward. */
#include "nn.h"

/* Returns the base's weight (out, in), in its own type; named. */
static struct tensor *base_weight(struct engine *e, const struct linear *l)
{
    if (nn_is_int8(l)) return tensor_keep(op_dequantize_int8(e, &l->quantized));
    if (l->quantized.codes) return tensor_keep(op_dequantize_4bit(e, &l->quantized));
    return tensor_ref(l->weight);
}

/* transpose(weight, fan_in_fan_out); named */
static struct tensor *rows_first(struct engine *e, const struct lora_adapter *a, struct tensor *weight)
{
    return a->conv1d ? tensor_keep(op_transpose(e, weight, 0, 1)) : tensor_ref(weight);
}

/* Returns the 2-norms of the rows of weight + scaling * delta; both are lent. Named. The caller drops *sum, which
 * autograd would keep. */
static struct tensor *row_norms(struct engine *e, const struct lora_adapter *a, struct tensor *weight,
                                struct tensor *delta, struct tensor **sum)
{
    struct tensor *plain = rows_first(e, a, weight);
    *sum = tensor_keep(op_add(e, plain, op_mul_scalar(e, delta, a->scaling)));
    tensor_drop(e, plain);
    if (e->halted) return e->poison;
    enum plim_dtype dtype = (enum plim_dtype)(*sum)->a.dtype;
    struct tensor *wide = autocast_fp32(e, *sum);
    struct tensor *norms = op_reduce(e, wide, 1u << 1, false, PLIM_BINARY_HYPOT, 1,
                                     (enum plim_dtype)wide->a.dtype);
    return tensor_keep(e->halted ? norms : op_to(e, norms, dtype));
}

/* copy.deepcopy() of a Linear4bit copies its state twice, because the weight has it, too. */
static int copy_base(struct engine *e, const struct linear *l, struct tensor *copies[16])
{
    const struct quantized *q = &l->quantized;
    struct tensor *const state[] = {q->scale_codes ? q->scale_codes : q->scales,
                                    q->book,
                                    q->offset,
                                    q->scale_codes ? q->scales : NULL,
                                    q->scale_book};
    int count = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < sizeof state / sizeof *state; i++)
            if (state[i]) copies[count++] = nn_deep_copy(e, state[i]);
        if (pass == 0) copies[count++] = nn_deep_copy(e, q->codes);
        if (pass == 0 && l->bias) copies[count++] = tensor_keep(op_clone(e, l->bias));
    }
    return count;
}

void nn_dora_widen(struct engine *e, struct tensor *matrices[2])
{
    for (int i = 0; i < 2 && !e->halted; i++)
        if (matrices[i]->a.dtype == PLIM_F16) tensor_set(e, &matrices[i], op_to(e, matrices[i], PLIM_F32));
}

struct tensor *nn_dora_magnitude(struct engine *e, const struct lora_adapter *a, struct tensor *weight,
                                 struct tensor *const matrices[2], struct tensor **delta, struct tensor **sum)
{
    *delta = tensor_keep(op_matmul(e, matrices[1], matrices[0]));
    if (a->a->a.dtype == PLIM_F16 && !e->halted) tensor_set(e, delta, op_to(e, *delta, PLIM_F16));
    return row_norms(e, a, weight, *delta, sum);
}

void nn_dora_create(struct engine *e, struct parameters *p, struct linear *l)
{
    struct lora_adapter *a = l->lora;
    struct tensor *copies[16], *delta, *sum;
    if (e->halted) return;
    struct tensor *matrices[2] = {tensor_ref(a->a), tensor_ref(a->b)};
    nn_dora_widen(e, matrices);
    int count = l->quantized.codes && !nn_is_int8(l) ? copy_base(e, l, copies) : 0;
    struct tensor *weight = base_weight(e, l);
    a->magnitude = nn_dora_magnitude(e, a, weight, matrices, &delta, &sum);
    nn_adopt(e, p, a->magnitude);
    for (int i = 0; i < count; i++) tensor_drop(e, copies[i]);
    tensor_drop_all(e, matrices[0], matrices[1], weight, delta, sum);
}

/* lora_B(lora_A(eye)).T, which works with FSDP; named. */
static struct tensor *adapter_weight(struct engine *e, const struct linear *l)
{
    const struct lora_adapter *a = l->lora;
    struct tensor *eye = tensor_keep(op_eye(e, (enum plim_dtype)a->a->a.dtype, l->in));
    struct tensor *wide = nn_adapter_product(e, &a->b, nn_adapter_product(e, &a->a, eye));
    tensor_drop(e, eye);
    return tensor_keep(op_transpose(e, wide, 0, 1));
}

/* peft transposes a frozen parameter into a new torch.nn.Parameter, which requires a gradient by default, and receives
 * one. */
static void make_leaf(struct engine *e, struct tensor *x)
{
    if (e->halted) return;
    x->is_view = false;
    tensor_require_input_grad(e, x);
}

/* DoraLinearLayer's module: has its magnitude, and reads weights of its linear. */
struct dora {
    const struct linear *l;
    struct tensor *result; /* of the base; NULL if dropout changed the input */
};

static void access_weight(struct engine *e, const struct linear *l, struct tensor *weight)
{
    nn_access_weight(e, l->lora->magnitude, NN_LINEAR, weight);
}

/* Returns the base's result without its bias; if dropout changed x, computes its product again. Named. */
static struct tensor *base_result(struct engine *e, const struct dora *d, struct tensor *x, struct tensor *weight)
{
    const struct linear *l = d->l;
    if (!d->result) {
        struct tensor *w = rows_first(e, l->lora, weight);
        if (l->conv1d && weight == l->weight) make_leaf(e, w);
        struct tensor *y = tensor_keep(nn_product(e, x, w, NULL));
        tensor_drop(e, w);
        return y;
    }
    if (!l->bias) return tensor_ref(d->result);
    access_weight(e, l, l->bias);
    return tensor_keep(op_sub(e, d->result, l->bias));
}

/* DoraLinearLayer.forward() */
static struct tensor *forward(struct engine *e, const void *module, struct tensor *x)
{
    const struct dora *d = module;
    const struct linear *l = d->l;
    const struct lora_adapter *a = l->lora;
    if (e->halted) return e->poison;
    enum plim_dtype dtype = (enum plim_dtype)x->a.dtype;
    bool was = tensor_enter(x);
    struct tensor *delta = adapter_weight(e, l), *sum;
    tensor_set(e, &delta, e->halted ? delta : op_to(e, delta, dtype));
    access_weight(e, l, l->weight);
    struct tensor *weight = base_weight(e, l);
    tensor_set(e, &weight, e->halted ? weight : op_to(e, weight, dtype));
    struct tensor *constant = tensor_keep(e->halted ? e->poison : tensor_detach(e, delta));
    struct tensor *norms = row_norms(e, a, weight, constant, &sum);
    tensor_drop(e, sum);
    tensor_drop(e, constant);
    struct tensor *scale =
        tensor_keep(op_view(e, op_div(e, a->magnitude, norms), SHAPE(1, l->out)));
    struct tensor *low = tensor_keep(nn_adapter_product(e, &a->b, nn_adapter_product(e, &a->a, x)));
    struct tensor *base = base_result(e, d, x, weight);
    struct tensor *left = op_mul(e, op_add_scalar(e, scale, -1), base);
    struct tensor *right = op_mul_scalar(e, op_mul(e, scale, low), a->scaling);
    struct tensor *extra = tensor_keep(op_add(e, left, right));
    tensor_drop_all(e, delta, weight, norms, scale, low, base);
    tensor_leave(e, x, was);
    return tensor_yield(extra);
}

struct tensor *nn_dora(struct engine *e, const struct linear *l, struct tensor *result,
                       struct tensor *x)
{
    const struct lora_adapter *a = l->lora;
    if (e->halted) return e->poison;
    bool drops = a->dropout > 0 && !e->evaluates;
    const struct dora d = {l, drops ? NULL : result};
    struct tensor *input = drops ? tensor_keep(nn_dropout(e, x, a->dropout)) : tensor_hold(x);
    struct tensor *const own[] = {a->magnitude, NULL};
    struct tensor *extra =
        tensor_keep(nn_in_parts(e) ? nn_run(e, own, NN_LINEAR, forward, &d, input) : forward(e, &d, input));
    struct tensor *y = tensor_keep(op_add(e, result, extra));
    tensor_drop(e, extra);
    tensor_drop(e, input);
    return tensor_yield(y);
}
