/* Linear layers whose weight is stored in 4 bits (bitsandbytes 0.50.2: functional.py, autograd,
 * backends/cuda/ops.py). */
#include "devices/needs/needs.h"
#include "ops.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 64, NESTED_BLOCK = 256, NIBBLES = 16, BOOK = 256 };

static bool is_nested(const struct quantized *q)
{
    return q->scale_codes;
}

static int64_t blocks_of(int64_t elements, int64_t block)
{
    return (elements + block - 1) / block;
}

/* --- code books ------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

void op_dynamic_numbers(float *book, int powers, bool is_signed)
{
    size_t count = 0;
    book[count++] = 0;
    book[count++] = 1;
    for (int power = 0; power < powers; power++) {
        int parts = (is_signed ? 1 : 2) << power;
        for (int i = 0; i < parts; i++) {
            double middle = 0.1 + 0.9 * (i + 0.5) / parts;
            float value = (float)(pow(10, power - (powers - 1)) * middle);
            book[count++] = value;
            if (is_signed) book[count++] = -value;
        }
    }
    qsort(book, count, sizeof *book, by_value);
}

struct tensor *op_dynamic_map(struct engine *e, bool is_signed)
{
    float book[BOOK];
    op_dynamic_numbers(book, 7, is_signed);
    struct tensor *map = tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(BOOK)));
    engine_write(e, map, book, sizeof book);
    return map;
}

/* get_4bit_type(): the 16 numbers, divided by the largest. The kernels have them as constants. */
static struct tensor *nibble_book(struct engine *e)
{
    struct tensor *book = tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(NIBBLES)));
    struct tensor *magnitude = tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(NIBBLES)));
    struct tensor *most = tensor_keep(tensor_empty(e, PLIM_F32, 0, NULL));
    op_fill_(e, book, 0);
    tensor_drop(e, magnitude);
    tensor_drop(e, most);
    return book;
}

/* Returns the codes as bytes, as a kernel sees them, whatever type they are stored in (bnb_4bit_quant_storage). */
static struct plim_array as_bytes(const struct tensor *codes)
{
    return (struct plim_array){.data = codes->a.data,
                               .shape = {tensor_elements(codes) * plim_dtype_size(codes->a.dtype)},
                               .stride = {1},
                               .ndim = 1,
                               .dtype = PLIM_U8};
}

/* --- quantisation ----------------------------------------------------------------------------- */

static void quantize(struct engine *e, enum plim_quantized how, int64_t block, struct tensor *codes,
                     struct tensor *scales, struct tensor *x, struct tensor *book)
{
    struct plim_array bytes = as_bytes(codes);
    struct plim_op op = {.kind = PLIM_OP_QUANTIZE,
                         .quantized = (uint8_t)how,
                         .block = block,
                         .n_out = 2,
                         .n_in = (uint8_t)(book ? 2 : 1),
                         .out = {&bytes, &scales->a},
                         .in = {&x->a, book ? &book->a : NULL}};
    if (!e->halted) engine_launch(e, &op);
}

/* compress_statistics: quantises the scales minus their mean to 8 bits. */
static void nest(struct engine *e, struct quantized *q, struct tensor *scales,
                 struct tensor **map)
{
    int64_t count = tensor_elements(scales);
    q->offset = tensor_keep(
        op_reduce(e, scales, 1, false, PLIM_BINARY_ADD, 1.0 / (double)count, PLIM_F32));
    struct tensor *centred = tensor_keep(op_sub(e, scales, q->offset));
    if (!*map) *map = op_dynamic_map(e, true);
    q->scales = tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(blocks_of(count, NESTED_BLOCK))));
    q->scale_codes = tensor_keep(tensor_empty(e, PLIM_U8, SHAPE(count)));
    quantize(e, PLIM_QUANTIZED_BOOK, NESTED_BLOCK, q->scale_codes, q->scales, centred,
             *map);
    q->scale_book = tensor_keep(op_clone(e, *map));
    tensor_drop(e, centred);
    tensor_drop(e, scales);
}

void op_quantize_4bit(struct engine *e, struct quantized *q, struct tensor *weight, bool nested,
                      struct tensor **map)
{
    if (e->halted) return;
    int64_t elements = tensor_elements(weight);
    struct tensor *x = tensor_hold(op_contiguous(e, weight));
    q->dtype = (enum plim_dtype)weight->a.dtype;
    q->rows = weight->a.shape[0];
    q->columns = weight->a.shape[1];
    struct tensor *scales = tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(blocks_of(elements, BLOCK))));
    int64_t packed = (elements + 1) / (2 * plim_dtype_size(q->storage));
    q->codes = tensor_keep(tensor_empty(e, q->storage, SHAPE(packed)));
    quantize(e, q->type, BLOCK, q->codes, scales, x, NULL);
    q->book = nibble_book(e);
    if (nested && !e->halted)
        nest(e, q, scales, map);
    else
        q->scales = scales;
    tensor_drop(e, x);
}

/* --- dequantisation --------------------------------------------------------------------------- */

static void dequantize(struct engine *e, enum plim_quantized how, int64_t block, struct tensor *out,
                       struct tensor *codes, struct tensor *scales, struct tensor *book)
{
    struct plim_array bytes = as_bytes(codes);
    struct plim_op op = {.kind = PLIM_OP_DEQUANTIZE,
                         .quantized = (uint8_t)how,
                         .block = block,
                         .n_out = 1,
                         .n_in = (uint8_t)(book ? 3 : 2),
                         .out = {&out->a},
                         .in = {&bytes, &scales->a, book ? &book->a : NULL}};
    if (!e->halted) engine_launch(e, &op);
}

/* Returns the scales of a weight in fp32, without their mean if they are nested; named. */
static struct tensor *centred_scales(struct engine *e, const struct quantized *q)
{
    if (!is_nested(q)) return tensor_ref(q->scales);
    struct tensor *y =
        tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(tensor_elements(q->scale_codes))));
    dequantize(e, PLIM_QUANTIZED_BOOK, NESTED_BLOCK, y, q->scale_codes, q->scales, q->scale_book);
    return y;
}

/* Returns the weight as a matrix of type `dtype`, named. */
static struct tensor *matrix(struct engine *e, const struct quantized *q, enum plim_dtype dtype,
                             struct tensor *scales)
{
    struct tensor *w = tensor_keep(tensor_empty(e, dtype, SHAPE(q->rows, q->columns)));
    dequantize(e, q->type, BLOCK, w, q->codes, scales, NULL);
    return w;
}

/* dequantize_4bit() */
struct tensor *op_dequantize_4bit(struct engine *e, const struct quantized *q)
{
    if (e->halted) return e->poison;
    struct tensor *scales = centred_scales(e, q);
    if (is_nested(q)) op_add_(e, scales, q->offset);
    struct tensor *w = matrix(e, q, q->dtype, scales);
    tensor_drop(e, scales);
    return tensor_yield(w);
}

struct tensor *op_dequantize_4bit_late(struct engine *e, const struct quantized *q)
{
    if (e->halted || !is_nested(q)) return op_dequantize_4bit(e, q);
    struct tensor *w = tensor_keep(tensor_empty(e, q->dtype, SHAPE(q->rows, q->columns)));
    struct tensor *scales = centred_scales(e, q);
    op_add_(e, scales, q->offset);
    dequantize(e, q->type, BLOCK, w, q->codes, scales, NULL);
    tensor_drop(e, scales);
    return tensor_yield(w);
}

/* --- the product ------------------------------------------------------------------------------ */

/* _dequant_linear_fallback() */
static struct tensor *by_matrix(struct engine *e, struct tensor *x, const struct quantized *q,
                                struct tensor *bias)
{
    struct tensor *centred = centred_scales(e, q);
    struct tensor *scales =
        is_nested(q) ? tensor_keep(op_add(e, centred, q->offset)) : tensor_ref(centred);
    struct tensor *w = matrix(e, q, (enum plim_dtype)x->a.dtype, scales);
    struct tensor *y = op_linear(e, x, w, bias);
    tensor_drop(e, scales);
    tensor_drop(e, centred);
    tensor_drop(e, w);
    return y;
}

/* _gemm_4bit_kernel_impl() */
static struct tensor *fused(struct engine *e, struct tensor *x, const struct quantized *q,
                            struct tensor *bias)
{
    int64_t shape[PLIM_MAX_DIMS];
    struct tensor *dense = tensor_hold(op_contiguous(e, x));
    memcpy(shape, x->a.shape, sizeof shape);
    shape[x->a.ndim - 1] = q->rows;
    struct tensor *y = tensor_empty(e, (enum plim_dtype)x->a.dtype, x->a.ndim, shape);
    struct plim_array bytes = as_bytes(q->codes);
    struct plim_op op = {.kind = PLIM_OP_MATMUL_4BIT,
                         .quantized = (uint8_t)q->type,
                         .block = BLOCK,
                         .n_out = 1,
                         .n_in = (uint8_t)(is_nested(q) ? 7 : 4),
                         .out = {&y->a},
                         .in = {&dense->a, &bytes, &q->scales->a, bias ? &bias->a : NULL}};
    if (is_nested(q)) {
        op.in[4] = &q->scale_codes->a;
        op.in[5] = &q->scale_book->a;
        op.in[6] = &q->offset->a;
    }
    if (!e->halted) engine_launch(e, &op);
    tensor_drop(e, dense);
    return y;
}

static void linear_4bit_backward(struct engine *e, struct node *n, struct tensor **grads,
                                 struct tensor **out)
{
    if (!node_wants(n, 0)) return;
    enum plim_dtype dtype = (enum plim_dtype)grads[0]->a.dtype;
    struct tensor *w = tensor_hold(op_to(e, op_dequantize_4bit(e, n->weight), dtype));
    out[0] = tensor_keep(op_matmul(e, grads[0], w));
    tensor_drop(e, w);
}
static const struct node_kind linear_4bit_kind = {"MatMul4BitBackward", linear_4bit_backward};

struct tensor *op_linear_4bit(struct engine *e, struct tensor *x, const struct quantized *q,
                              struct tensor *bias)
{
    if (e->halted) return op_halted(e, 1, &x);
    bool was = tensor_enter(x), grad = e->grad_enabled;
    int64_t rows = tensor_elements(x) / q->columns;
    struct node *n = op_node(e, &linear_4bit_kind, 1, &x);
    if (n) n->weight = q;
    if (n) { /* ctx.tensors: a view of the codes at their present address, even if they are gathered elsewhere later */
        struct tensor *view = tensor_keep(tensor_detach(e, q->codes));
        node_retain(e, n, view);
        tensor_drop(e, view);
    }
    e->grad_enabled = false;
    bool in_one = plim_matmul_4bit_is_fused(&e->device->info, (enum plim_dtype)x->a.dtype, rows,
                                            q->rows, q->columns, BLOCK);
    struct tensor *y = in_one ? fused(e, x, q, bias) : by_matrix(e, x, q, bias);
    e->grad_enabled = grad;
    y = op_done(e, n, y, 0, NULL);
    tensor_leave(e, x, was);
    return y;
}
