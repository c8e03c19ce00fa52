/* Linear and Conv1D, plain, quantised and with LoRA. */
#include "nn.h"
#include <math.h>

void nn_linear_create(struct engine *e, struct parameters *p, struct linear *l, int64_t in,
                      int64_t out, bool bias)
{
    *l = (struct linear){.in = in, .out = out};
    l->weight = nn_parameter(e, p, INIT_WEIGHT, SHAPE(out, in));
    p->linear_elements += in * out;
    if (bias) l->bias = nn_parameter(e, p, INIT_ZEROS, SHAPE(out));
}

void nn_linear_clip(struct engine *e, const struct parameters *p, struct linear *l)
{
    for (int i = 0; i < 4; i++) {
        l->bounds[i] = nn_buffer(e, op_full(e, p->dtype, 0, NULL, i % 2 ? INFINITY : -INFINITY));
        if (!e->halted) l->bounds[i]->layer = 1; /* a checkpoint has it, like parameters of blocks */
    }
}

void nn_conv1d_create(struct engine *e, struct parameters *p, struct linear *l, int64_t in,
                      int64_t out)
{
    *l = (struct linear){.in = in, .out = out, .conv1d = true};
    l->weight = nn_parameter(e, p, INIT_WEIGHT, SHAPE(in, out));
    p->linear_elements += in * out;
    l->bias = nn_parameter(e, p, INIT_ZEROS, SHAPE(out));
}

/* bitsandbytes' Linear4bit: computes in its own type; x and the result are cast. The bias is cast permanently. */
static struct tensor *linear_4bit(struct engine *e, const struct linear *l, struct tensor *x)
{
    bool was = tensor_enter(x);
    enum plim_dtype dtype = (enum plim_dtype)x->a.dtype, compute = l->quantized.compute;
    struct tensor *input = tensor_hold(op_to(e, x, compute));
    if (l->bias) nn_cast(e, l->bias, compute);
    struct tensor *y = op_linear_4bit(e, input, &l->quantized, l->bias);
    if (!e->halted) y = op_to(e, y, dtype);
    tensor_drop(e, input);
    tensor_leave(e, x, was);
    return y;
}

/* Linear8bitLt, in the type of x. */
static struct tensor *linear_int8(struct engine *e, const struct linear *l, struct tensor *x)
{
    if (l->bias) nn_cast(e, l->bias, (enum plim_dtype)x->a.dtype);
    struct tensor *y = op_linear_int8(e, x, &l->quantized, l->bias);
    bool is_gathered = !e->halted && l->weight->storage != l->quantized.codes->storage;
    if (is_gathered) tensor_set_data(e, l->weight, tensor_detach(e, l->quantized.codes)); /* weight.data = state.CB */
    return y;
}

static struct tensor *base_output(struct engine *e, const struct linear *l, struct tensor *x)
{
    if (l->quantized.codes)
        return nn_is_int8(l) ? linear_int8(e, l, x) : linear_4bit(e, l, x);
    if (l->in_steps) {
        struct tensor *y = op_matmul(e, x, op_transpose(e, l->weight, 0, 1));
        return l->bias ? op_add(e, y, l->bias) : y;
    }
    if (!l->conv1d) return nn_product(e, x, l->weight, l->bias);
    int64_t shape[PLIM_MAX_DIMS];
    int ndim = x->a.ndim;
    for (int i = 0; i < ndim - 1; i++) shape[i] = x->a.shape[i];
    shape[ndim - 1] = l->out;
    int64_t rows = tensor_elements(x) / l->in;
    struct tensor *flat = op_view(e, x, SHAPE(rows, l->in));
    return op_view(e, op_addmm(e, l->bias, flat, l->weight), ndim, shape);
}

static struct tensor *base(struct engine *e, const void *module, struct tensor *x)
{
    return base_output(e, module, x);
}

static struct tensor *forward(struct engine *e, const void *module, struct tensor *x)
{
    const struct linear *l = module;
    if (!l->lora || e->adapters_off) return base_output(e, l, x);
    bool was = tensor_enter(x);
    struct tensor *const weights[] = {l->weight, l->bias, NULL};
    struct tensor *y = nn_in_parts(e) ? nn_run(e, weights, NN_LINEAR, base, l, x) : base_output(e, l, x);
    y = l->quantized.codes ? nn_lora_quantized(e, l, y, x) : nn_lora(e, l, y, x);
    tensor_leave(e, x, was);
    return y;
}

struct tensor *nn_linear(struct engine *e, const struct linear *l, struct tensor *x)
{
    if (e->halted) return op_halted(e, 1, &x);
    bool in_parts = l->lora && nn_in_parts(e);
    if (in_parts) return nn_run(e, (struct tensor *const[2]){l->lora->a, NULL}, NN_ADAPTED, forward, l, x);
    return nn_run(e, (struct tensor *const[]){l->weight, l->bias, NULL}, NN_LINEAR, forward, l, x);
}
