/* Linear layers whose weight is stored in 8 bits: LLM.int8() of bitsandbytes 0.50.2 (MatMul8bitLt in
 * autograd/_functions.py, backends/cuda/ops.py). Activations are assumed to have no outliers. */
#include "ops.h"
#include <string.h>

/* The threshold of an outlier (BitsAndBytesConfig's llm_int8_threshold). */
static const double OUTLIER = 6.0;

static void quantize_rows(struct engine *e, struct tensor *codes, struct tensor *scales,
                          struct tensor *x)
{
    struct plim_op op = {.kind = PLIM_OP_QUANTIZE,
                         .quantized = PLIM_QUANTIZED_ROWS,
                         .block = tensor_size(x, -1),
                         .n_out = 2,
                         .n_in = 1,
                         .out = {&codes->a, &scales->a},
                         .in = {&x->a}};
    if (!e->halted) engine_launch(e, &op);
}

static void dequantize_rows(struct engine *e, struct tensor *out, const struct quantized *q,
                            struct tensor *scales)
{
    struct plim_op op = {.kind = PLIM_OP_DEQUANTIZE,
                         .quantized = PLIM_QUANTIZED_ROWS,
                         .block = q->columns,
                         .n_out = 1,
                         .n_in = 2,
                         .out = {&out->a},
                         .in = {&q->codes->a, &scales->a}};
    if (!e->halted) engine_launch(e, &op);
}

void op_quantize_int8(struct engine *e, struct quantized *q, struct tensor *weight)
{
    if (e->halted) return;
    q->dtype = (enum plim_dtype)weight->a.dtype;
    q->rows = weight->a.shape[0];
    q->columns = weight->a.shape[1];
    struct tensor *half = tensor_keep(tensor_empty(e, PLIM_F16, SHAPE(q->rows, q->columns)));
    op_copy_(e, half, weight);
    q->scales = tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(q->rows)));
    q->codes = tensor_keep(tensor_empty(e, PLIM_U8, SHAPE(q->rows, q->columns)));
    quantize_rows(e, q->codes, q->scales, half);
    tensor_drop(e, half);
}

struct tensor *op_dequantize_int8(struct engine *e, const struct quantized *q)
{
    if (e->halted) return e->poison;
    struct tensor *y = tensor_empty(e, PLIM_F32, SHAPE(q->rows, q->columns));
    dequantize_rows(e, y, q, q->scales);
    return op_mul_scalar(e, y, 1.0 / 127);
}

/* --- the product ------------------------------------------------------------------------------ */

/* Quantises the rows of x to 8 bits. The host reads whether a column has an outlier; if none has, an empty list of
 * columns is set to zero. */
static void quantize_input(struct engine *e, struct tensor *x, struct tensor **codes,
                           struct tensor **scales)
{
    int64_t rows = x->a.shape[0];
    struct tensor *half = tensor_hold(op_to(e, x, PLIM_F16));
    *scales = tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(rows)));
    *codes = tensor_keep(tensor_empty(e, PLIM_U8, 2, x->a.shape));
    struct tensor *outliers = tensor_keep(
        op_compare_scalar(e, PLIM_BINARY_GE, op_unary(e, half, PLIM_UNARY_ABS), OUTLIER));
    struct tensor *any =
        tensor_keep(op_reduce(e, outliers, 3, false, PLIM_BINARY_OR, 1, PLIM_BOOL));
    engine_item(e, any);
    tensor_drop(e, any);
    if (!e->halted) quantize_rows(e, *codes, *scales, half);
    if (rows > 1) tensor_drop(e, tensor_keep(op_full(e, PLIM_U8, 0, NULL, 0)));
    tensor_drop(e, outliers);
    tensor_drop(e, half);
}

/* bitsandbytes multiplies in fp32 if the inner dimension is not a multiple of 4. Makes its allocations; the values are
 * those of the product below. */
static void multiply_in_fp32(struct engine *e, struct tensor *codes, const struct quantized *q)
{
    struct tensor *x = tensor_empty(e, PLIM_F32, 2, codes->a.shape);
    struct tensor *w = tensor_empty(e, PLIM_F32, SHAPE(q->rows, q->columns));
    struct tensor *y = op_matmul(e, x, op_transpose(e, w, 0, 1));
    tensor_drop(e, tensor_keep(e->halted ? y : op_to(e, y, PLIM_I32)));
}

/* codes (m, k) times the weight's codes: int32 (m, n); named. */
static struct tensor *multiply(struct engine *e, struct tensor *codes, const struct quantized *q)
{
    struct tensor *y = tensor_keep(tensor_empty(e, PLIM_I32, SHAPE(codes->a.shape[0], q->rows)));
    if (q->columns % 4 && !e->halted) multiply_in_fp32(e, codes, q);
    struct plim_op op = {.kind = PLIM_OP_MATMUL_INT8,
                         .n_out = 1,
                         .n_in = 2,
                         .out = {&y->a},
                         .in = {&codes->a, &q->codes->a}};
    if (!e->halted) engine_launch(e, &op);
    return y;
}

/* int8_mm_dequant: always through fp16; a bias of another type is added afterwards. */
static struct tensor *scaled(struct engine *e, struct tensor *sums, struct tensor *scales,
                             const struct quantized *q, struct tensor *bias, enum plim_dtype dtype)
{
    bool fused = bias && bias->a.dtype == PLIM_F16;
    struct tensor *y = tensor_empty(e, PLIM_F16, 2, sums->a.shape);
    struct plim_op op = {.kind = PLIM_OP_SCALE_INT32,
                         .n_out = 1,
                         .n_in = (uint8_t)(fused ? 4 : 3),
                         .out = {&y->a},
                         .in = {&sums->a, &scales->a, &q->scales->a, fused ? &bias->a : NULL}};
    if (!e->halted) engine_launch(e, &op);
    if (bias && !fused) op_add_(e, y, bias);
    return e->halted ? y : op_to(e, y, dtype);
}

static void linear_int8_backward(struct engine *e, struct node *n, struct tensor **grads,
                                 struct tensor **out)
{
    if (!node_wants(n, 0)) return;
    const struct quantized *q = n->weight;
    enum plim_dtype dtype = (enum plim_dtype)n->ints[0];
    int64_t rows = tensor_elements(grads[0]) / q->rows;
    struct tensor *flat = tensor_hold(op_contiguous(e, op_reshape(e, grads[0], SHAPE(rows, q->rows))));
    struct tensor *w = tensor_keep(tensor_empty(e, dtype, SHAPE(q->rows, q->columns)));
    struct tensor *scales = tensor_keep(op_mul_scalar(e, q->scales, 1.0 / 127));
    dequantize_rows(e, w, q, scales);
    tensor_drop(e, scales);
    struct tensor *low = tensor_hold(e->halted ? flat : op_to(e, flat, dtype));
    out[0] = tensor_keep(
        op_view(e, op_matmul(e, low, w), (int)n->ints[1], n->ints + 2));
    tensor_drop(e, low);
    tensor_drop(e, w);
    tensor_drop(e, flat);
}
static const struct node_kind linear_int8_kind = {"MatMul8bitLtBackward", linear_int8_backward};

struct tensor *op_linear_int8(struct engine *e, struct tensor *x, const struct quantized *q,
                              struct tensor *bias)
{
    if (e->halted) return op_halted(e, 1, &x);
    bool was = tensor_enter(x), grad = e->grad_enabled;
    enum plim_dtype dtype = (enum plim_dtype)x->a.dtype;
    int ndim = x->a.ndim;
    int64_t rows = tensor_elements(x) / q->columns, shape[PLIM_MAX_DIMS];
    memcpy(shape, x->a.shape, sizeof shape);
    shape[ndim - 1] = q->rows;
    struct node *n = op_node(e, &linear_int8_kind, 1, &x);
    e->grad_enabled = false;
    struct tensor *flat = tensor_hold(op_reshape(e, x, SHAPE(rows, q->columns)));
    if (n) {
        n->weight = q;
        n->ints[0] = dtype;
        n->ints[1] = ndim;
        memcpy(n->ints + 2, x->a.shape, sizeof *shape * (size_t)ndim);
        node_retain(e, n, flat);
    }
    struct tensor *codes, *scales;
    quantize_input(e, flat, &codes, &scales);
    struct tensor *sums = multiply(e, codes, q);
    struct tensor *y = scaled(e, sums, scales, q, bias, dtype);
    tensor_drop(e, sums);
    tensor_drop(e, codes);
    tensor_drop(e, scales);
    tensor_drop(e, flat);
    y = op_view(e, y, ndim, shape);
    e->grad_enabled = grad;
    y = op_done(e, n, y, 0, NULL);
    tensor_leave(e, x, was);
    return y;
}
