/* Arguments of the kernels for quantised numbers (quantized.cu). Arrays are contiguous. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_ARGS_QUANTIZED_H
#define PLIM_DEVICES_CUDA_KERNELS_ARGS_QUANTIZED_H

#include "args_rows.h"
#include "devices/quantized.h"
#include "divider.h"

enum { PLIM_QUANTIZED_THREADS = 256, PLIM_DEQUANTIZED_AT_ONCE = 8 };

/* The values of codes: with `nibbles`, codes of 4 bits with the values in `nibble`; otherwise bytes with the values in
 * `book`; if `book` is absent, the signed byte itself. */
struct plim_cuda_book {
    float nibble[PLIM_NIBBLES];
    struct plim_cuda_flat_operand book; /* PLIM_BOOK values */
    bool nibbles;
};

/* quantize (one warp for each block of elements) and dequantize */
struct plim_quantized_args {
    struct plim_cuda_book book;
    struct plim_cuda_flat_operand x, scales;
    uint64_t codes, elements, blocks;
    struct plim_divider block; /* elements that share a scale; with nibbles an even number */
    bool vectors; /* dequantize: PLIM_DEQUANTIZED_AT_ONCE neighbours share a scale and are aligned */
};

/* matmul_4bit: one warp per element of the result */
struct plim_matmul_4bit_args {
    struct plim_cuda_book book, of_scales;
    struct plim_cuda_flat_operand out, a, scales, bias, offset; /* bias.data 0: no bias */
    uint64_t codes, scale_codes; /* scale_codes 0: the scales are not quantised */
    uint64_t elements, k;        /* elements of the result; of a row of the weight */
    struct plim_divider columns, block, scale_block;
};

/* matmul_int8: one warp per element of the result */
struct plim_matmul_int8_args {
    uint64_t out, a, b;
    uint64_t elements, k;
    struct plim_divider columns;
};

/* scale_int32 */
struct plim_scale_int32_args {
    struct plim_cuda_flat_operand out, a, rows, columns, bias;
    uint64_t elements;
    struct plim_divider width;
};

#endif
