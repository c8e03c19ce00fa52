/* Quantised numbers: everything contiguous, as bitsandbytes requires. */
#include "kernels/args_quantized.h"
#include "plan_rows.h"

enum { VECTOR_BYTES = 16, NESTED_BLOCK = 256 };

static bool is_flat(const struct plim_array *a, bool is_float)
{
    return plim_cuda_plan_is_contiguous(a) && plim_dtype_is_float((enum plim_dtype)a->dtype) == is_float;
}

static int64_t blocks_of(int64_t elements, int64_t block)
{
    return (elements + block - 1) / block;
}

/* Describes the values of codes: those of the type, or the operand's. */
static enum plim_status read_book(const struct plim_op *op, const struct plim_array *operand,
                                  struct plim_cuda_book *out)
{
    if (op->quantized >= PLIM_QUANTIZED_COUNT || op->block < 1) return PLIM_INVALID;
    const double *nibbles = plim_nibble_book((enum plim_quantized)op->quantized);
    *out = (struct plim_cuda_book){.nibbles = nibbles != NULL};
    for (int i = 0; nibbles && i < PLIM_NIBBLES; i++) out->nibble[i] = (float)nibbles[i];
    if (nibbles && op->block % 2) return PLIM_UNSUPPORTED; /* a byte would have two scales */
    if (op->quantized != PLIM_QUANTIZED_BOOK) return PLIM_OK;
    if (!operand || plim_array_elements(operand) != PLIM_BOOK) return PLIM_INVALID;
    out->book = plim_cuda_plan_flat(operand);
    return is_flat(operand, true) ? PLIM_OK : PLIM_UNSUPPORTED;
}

/* `x`: the array that is quantised, or the result. */
static enum plim_status fill_args(const struct plim_op *op, const struct plim_array *x,
                                  const struct plim_array *codes, const struct plim_array *scales,
                                  const struct plim_array *book, struct plim_quantized_args *args)
{
    int64_t elements = plim_array_elements(x);
    *args = (struct plim_quantized_args){.x = plim_cuda_plan_flat(x),
                                         .scales = plim_cuda_plan_flat(scales),
                                         .codes = codes->data,
                                         .elements = (uint64_t)elements};
    enum plim_status st = read_book(op, book, &args->book);
    if (st != PLIM_OK) return st;
    int64_t bytes = args->book.nibbles ? (elements + 1) / 2 : elements;
    int64_t blocks = blocks_of(elements, op->block);
    if (codes->dtype != PLIM_U8 || plim_array_elements(codes) < bytes || plim_array_elements(scales) < blocks)
        return PLIM_INVALID;
    args->blocks = (uint64_t)blocks;
    args->block = plim_divider_of((uint64_t)op->block);
    return is_flat(x, true) && is_flat(codes, false) && is_flat(scales, true) ? PLIM_OK : PLIM_UNSUPPORTED;
}

enum plim_status plim_cuda_plan_quantize(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    struct plim_quantized_args args;
    enum plim_status st = fill_args(op, op->in[0], op->out[0], op->out[1], plim_cuda_plan_input(op, 1), &args);
    if (st != PLIM_OK || args.elements == 0) return st;
    int64_t threads = (int64_t)args.blocks * PLIM_CUDA_PLAN_WARP;
    return plim_cuda_plan_launch(plan, "quantize", plim_cuda_plan_blocks(plan, threads, PLIM_QUANTIZED_THREADS),
                                 PLIM_QUANTIZED_THREADS, &args, sizeof args);
}

enum plim_status plim_cuda_plan_dequantize(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    struct plim_quantized_args args;
    enum plim_status st = fill_args(op, op->out[0], op->in[0], op->in[1], plim_cuda_plan_input(op, 2), &args);
    if (st != PLIM_OK || args.elements == 0) return st;
    int at_once = PLIM_DEQUANTIZED_AT_ONCE;
    args.vectors = op->block % at_once == 0 && args.elements % (uint64_t)at_once == 0 &&
                   args.x.data % VECTOR_BYTES == 0 && args.codes % (uint64_t)at_once == 0;
    int64_t threads = (int64_t)args.elements / (args.vectors ? at_once : 1);
    return plim_cuda_plan_launch(plan, "dequantize", plim_cuda_plan_blocks(plan, threads, PLIM_QUANTIZED_THREADS),
                                 PLIM_QUANTIZED_THREADS, &args, sizeof args);
}

enum { A, CODES, SCALES, BIAS, SCALE_CODES, SCALE_BOOK, OFFSET };

/* Describes scales that are quantised themselves, with NESTED_BLOCK per scale, minus an offset. */
static enum plim_status read_nested(const struct plim_op *op, int64_t blocks, struct plim_matmul_4bit_args *args)
{
    const struct plim_array *codes = plim_cuda_plan_input(op, SCALE_CODES), *offset = plim_cuda_plan_input(op, OFFSET);
    const struct plim_op of_scales = {.quantized = PLIM_QUANTIZED_BOOK, .block = NESTED_BLOCK};
    if (!codes) return PLIM_OK;
    enum plim_status st = read_book(&of_scales, plim_cuda_plan_input(op, SCALE_BOOK), &args->of_scales);
    if (st != PLIM_OK) return st;
    if (!offset || codes->dtype != PLIM_U8 || plim_array_elements(codes) < blocks) return PLIM_INVALID;
    args->scale_codes = codes->data;
    args->offset = plim_cuda_plan_flat(offset);
    return is_flat(codes, false) && is_flat(offset, true) ? PLIM_OK : PLIM_UNSUPPORTED;
}

enum plim_status plim_cuda_plan_matmul_4bit(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    const struct plim_array *out = op->out[0], *a = op->in[A], *codes = op->in[CODES],
                            *bias = plim_cuda_plan_input(op, BIAS);
    if (out->ndim < 1 || a->ndim < 1) return PLIM_INVALID;
    int64_t n = out->shape[out->ndim - 1], k = a->shape[a->ndim - 1], elements = plim_array_elements(out);
    if (k > 0 && plim_array_elements(a) / k * n != elements) return PLIM_INVALID;
    struct plim_matmul_4bit_args args = {.out = plim_cuda_plan_flat(out),
                                         .a = plim_cuda_plan_flat(a),
                                         .scales = plim_cuda_plan_flat(op->in[SCALES]),
                                         .bias = plim_cuda_plan_flat(bias),
                                         .codes = codes->data,
                                         .elements = (uint64_t)elements,
                                         .k = (uint64_t)k};
    enum plim_status st = read_book(op, NULL, &args.book);
    if (!st && !args.book.nibbles) st = PLIM_INVALID;
    if (!st) st = read_nested(op, blocks_of(n * k, op->block), &args);
    if (st != PLIM_OK || elements == 0) return st;
    bool flat = is_flat(out, true) && is_flat(a, true) && is_flat(codes, false) &&
                is_flat(op->in[SCALES], true) && (!bias || is_flat(bias, true));
    if (!flat) return PLIM_UNSUPPORTED;
    args.columns = plim_divider_of((uint64_t)n);
    args.block = plim_divider_of((uint64_t)op->block);
    args.scale_block = plim_divider_of(NESTED_BLOCK);
    int64_t threads = elements * PLIM_CUDA_PLAN_WARP;
    return plim_cuda_plan_launch(plan, "matmul_4bit", plim_cuda_plan_blocks(plan, threads, PLIM_QUANTIZED_THREADS),
                                 PLIM_QUANTIZED_THREADS, &args, sizeof args);
}

enum plim_status plim_cuda_plan_matmul_int8(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    const struct plim_array *out = op->out[0], *a = op->in[0], *b = op->in[1];
    if (out->ndim != 2 || a->ndim != 2 || b->ndim != 2 || a->shape[0] != out->shape[0] ||
        b->shape[0] != out->shape[1] || a->shape[1] != b->shape[1])
        return PLIM_INVALID;
    bool typed = out->dtype == PLIM_I32 && a->dtype == PLIM_U8 && b->dtype == PLIM_U8;
    if (!typed || !is_flat(out, false) || !is_flat(a, false) || !is_flat(b, false)) return PLIM_UNSUPPORTED;
    int64_t elements = plim_array_elements(out);
    if (elements == 0) return PLIM_OK;
    const struct plim_matmul_int8_args args = {.out = out->data,
                                               .a = a->data,
                                               .b = b->data,
                                               .elements = (uint64_t)elements,
                                               .k = (uint64_t)a->shape[1],
                                               .columns = plim_divider_of((uint64_t)out->shape[1])};
    int64_t threads = elements * PLIM_CUDA_PLAN_WARP;
    return plim_cuda_plan_launch(plan, "matmul_int8", plim_cuda_plan_blocks(plan, threads, PLIM_QUANTIZED_THREADS),
                                 PLIM_QUANTIZED_THREADS, &args, sizeof args);
}

enum plim_status plim_cuda_plan_scale_int32(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    const struct plim_array *out = op->out[0], *a = op->in[0], *rows = op->in[1], *columns = op->in[2];
    const struct plim_array *bias = plim_cuda_plan_input(op, 3);
    if (out->ndim != 2 || a->ndim != 2 || a->shape[0] != out->shape[0] || a->shape[1] != out->shape[1] ||
        plim_array_elements(rows) != a->shape[0] || plim_array_elements(columns) != a->shape[1])
        return PLIM_INVALID;
    bool flat = is_flat(out, true) && is_flat(a, false) && a->dtype == PLIM_I32 && is_flat(rows, true) &&
                is_flat(columns, true) && (!bias || is_flat(bias, true));
    if (!flat) return PLIM_UNSUPPORTED;
    int64_t elements = plim_array_elements(out);
    if (elements == 0) return PLIM_OK;
    struct plim_scale_int32_args args = {.out = plim_cuda_plan_flat(out),
                                         .a = plim_cuda_plan_flat(a),
                                         .rows = plim_cuda_plan_flat(rows),
                                         .columns = plim_cuda_plan_flat(columns),
                                         .bias = plim_cuda_plan_flat(bias),
                                         .elements = (uint64_t)elements,
                                         .width = plim_divider_of((uint64_t)a->shape[1])};
    return plim_cuda_plan_launch(plan, "scale_int32", plim_cuda_plan_all_blocks(elements, PLIM_QUANTIZED_THREADS),
                                 PLIM_QUANTIZED_THREADS, &args, sizeof args);
}
