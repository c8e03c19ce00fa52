/* Arguments of the kernels for numbers in few bits (quantized.cu). Arrays are contiguous. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_ARGS_QUANTIZED_H
#define PLIM_DEVICES_CUDA_KERNELS_ARGS_QUANTIZED_H

#include "args_rows.h"
#include "devices/quantized.h"
#include "divider.h"

enum { PLIM_QUANTIZED_THREADS = 256, PLIM_DEQUANTIZED_AT_ONCE = 8 };

/* What codes stand for: `nibbles` of 4 bits, else those that `book` has for a byte, else, where that is none, the byte
 * itself with its sign. */
struct plim_cuda_book {
    float nibble[PLIM_NIBBLES];
    struct plim_cuda_flat_operand book; /* PLIM_BOOK of them */
    bool nibbles;
};

/* quantize (a warp for each block of elements) and dequantize */
struct plim_quantized_args {
    struct plim_cuda_book book;
    struct plim_cuda_flat_operand x, scales;
    uint64_t codes, elements, blocks;
    struct plim_divider block; /* elements of a scale; with nibbles an even number */
    bool vectors; /* dequantize: so many at once have one scale, and are aligned */
};

/* matmul_4bit: a warp for each element of the result */
struct plim_matmul_4bit_args {
    struct plim_cuda_book book, of_scales;
    struct plim_cuda_flat_operand out, a, scales, bias, offset; /* without a bias its data are 0 */
    uint64_t codes, scale_codes; /* 0: the scales are no codes themselves */
    uint64_t elements, k;        /* of the result; of a row of the weight */
    struct plim_divider columns, block, scale_block;
};

/* matmul_int8: a warp for each element of the result */
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
