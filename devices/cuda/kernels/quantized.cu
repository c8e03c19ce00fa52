/* Numbers in few bits, as bitsandbytes keeps them. */
#include "args_quantized.h"
#include "kernel.cuh"
#include "vector.cuh"

enum { BYTE_MOST = 127, AT_ONCE = PLIM_DEQUANTIZED_AT_ONCE };

/* The numbers that codes stand for, in shared memory: lanes look up different ones. */
__device__ inline int load_book(float *number, const plim_cuda_book &book)
{
    int count = book.nibbles ? PLIM_NIBBLES : PLIM_BOOK;
    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x)
        number[i] = book.nibbles     ? book.nibble[i]
                    : book.book.data ? load_float(book.book.data, book.book.dtype, i)
                                     : (float)(i > BYTE_MOST ? i - PLIM_BOOK : i);
    __syncthreads();
    return count;
}

__device__ inline unsigned byte_at(uint64_t codes, uint64_t i)
{
    return ((const uint8_t *)codes)[i];
}

__device__ inline unsigned code_at(const plim_cuda_book &book, uint64_t codes, uint64_t i)
{
    if (!book.nibbles) return byte_at(codes, i);
    unsigned pair = byte_at(codes, i / 2);
    return i % 2 ? pair & 15 : pair >> 4;
}

/* The first of those that are nearest. */
__device__ inline unsigned nearest(const float *number, int count, float x)
{
    int best = 0;
    PLIM_UNROLL_BY(1)
    for (int i = 1; i < count; i++)
        if (fabsf(number[i] - x) < fabsf(number[best] - x)) best = i;
    return (unsigned)best;
}

__device__ inline unsigned code_of(const plim_quantized_args &args, const float *number, int count,
                                   uint64_t i, float most)
{
    float x = most > 0 ? load_float(args.x.data, args.x.dtype, (int64_t)i) / most : 0;
    if (args.book.nibbles || args.book.book.data) return nearest(number, count, x);
    return (unsigned)(int)rintf(BYTE_MOST * x) & (PLIM_BOOK - 1);
}

/* Elements `first` to `end`, by a warp. */
__device__ inline void quantize_block(const plim_quantized_args &args, const float *number, int count,
                                      uint64_t block, uint64_t first, uint64_t end)
{
    unsigned lane = threadIdx.x % 32;
    uint8_t *codes = (uint8_t *)args.codes;
    float most = 0;
    for (uint64_t i = first + lane; i < end; i += 32)
        most = fmaxf(most, fabsf(load_float(args.x.data, args.x.dtype, (int64_t)i)));
    most = warp_fold(most, larger());
    if (lane == 0) store_float(args.scales.data, args.scales.dtype, (int64_t)block, most);
    if (!args.book.nibbles) {
        for (uint64_t i = first + lane; i < end; i += 32)
            codes[i] = (uint8_t)code_of(args, number, count, i, most);
        return;
    }
    for (uint64_t i = first + 2 * lane; i < end; i += 64) {
        unsigned upper = code_of(args, number, count, i, most);
        unsigned lower = i + 1 < end ? code_of(args, number, count, i + 1, most) : 0;
        codes[i / 2] = (uint8_t)(upper << 4 | lower);
    }
}

PLIM_KERNEL(quantize, plim_quantized_args, PLIM_QUANTIZED_THREADS)
{
    __shared__ float number[PLIM_BOOK];
    int count = load_book(number, args.book);
    for (uint64_t block = grid_thread() / 32; block < args.blocks; block += grid_threads() / 32) {
        uint64_t first = block * args.block.divisor, end = first + args.block.divisor;
        quantize_block(args, number, count, block, first, end < args.elements ? end : args.elements);
    }
}

__device__ inline float scale_at(const plim_quantized_args &args, uint64_t i)
{
    return load_float(args.scales.data, args.scales.dtype, (int64_t)plim_divide(i, &args.block));
}

__device__ inline void dequantize_vectors(const plim_quantized_args &args, const float *number)
{
    uint64_t step = grid_threads() * AT_ONCE;
    for (uint64_t i = grid_thread() * AT_ONCE; i < args.elements; i += step) {
        float x[AT_ONCE], scale = scale_at(args, i);
        if (args.book.nibbles) {
            pack<uint8_t, AT_ONCE / 2> pairs = load_pack<uint8_t, AT_ONCE / 2>(args.codes + i / 2);
            PLIM_UNROLL
            for (int j = 0; j < AT_ONCE; j++)
                x[j] = scale * number[j % 2 ? pairs.at[j / 2] & 15 : pairs.at[j / 2] >> 4];
        } else {
            pack<uint8_t, AT_ONCE> bytes = load_pack<uint8_t, AT_ONCE>(args.codes + i);
            PLIM_UNROLL
            for (int j = 0; j < AT_ONCE; j++) x[j] = scale * number[bytes.at[j]];
        }
        store_floats(args.x.data, args.x.dtype, (int64_t)i, x);
    }
}

PLIM_KERNEL(dequantize, plim_quantized_args, PLIM_QUANTIZED_THREADS)
{
    __shared__ float number[PLIM_BOOK];
    load_book(number, args.book);
    if (args.vectors) return dequantize_vectors(args, number);
    for (uint64_t i = grid_thread(); i < args.elements; i += grid_threads())
        store_float(args.x.data, args.x.dtype, (int64_t)i,
                    scale_at(args, i) * number[code_at(args.book, args.codes, i)]);
}

/* --- a product with a 4-bit weight ------------------------------------------------------------ */

__device__ inline float scale_of(const plim_matmul_4bit_args &args, const float *of_scales, uint64_t i)
{
    uint64_t block = plim_divide(i, &args.block);
    if (!args.scale_codes) return load_float(args.scales.data, args.scales.dtype, (int64_t)block);
    float scale = load_float(args.scales.data, args.scales.dtype,
                             (int64_t)plim_divide(block, &args.scale_block));
    return scale * of_scales[byte_at(args.scale_codes, block)] +
           load_float(args.offset.data, args.offset.dtype, 0);
}

PLIM_KERNEL(matmul_4bit, plim_matmul_4bit_args, PLIM_QUANTIZED_THREADS)
{
    __shared__ float number[PLIM_BOOK], of_scales[PLIM_BOOK];
    load_book(number, args.book);
    load_book(of_scales, args.of_scales);
    unsigned lane = threadIdx.x % 32;
    for (uint64_t at = grid_thread() / 32; at < args.elements; at += grid_threads() / 32) {
        uint64_t row = plim_divide(at, &args.columns), column = at - row * args.columns.divisor;
        float sum = 0;
        for (uint64_t l = lane; l < args.k; l += 32) {
            uint64_t i = column * args.k + l;
            sum += load_float(args.a.data, args.a.dtype, (int64_t)(row * args.k + l)) *
                   scale_of(args, of_scales, i) * number[code_at(args.book, args.codes, i)];
        }
        sum = warp_sum(sum);
        if (lane) continue;
        if (args.bias.data) sum += load_float(args.bias.data, args.bias.dtype, (int64_t)column);
        store_float(args.out.data, args.out.dtype, (int64_t)at, sum);
    }
}

/* --- LLM.int8() ------------------------------------------------------------------------------- */

/* For the sizes that cuBLASLt does not take. */
PLIM_KERNEL(matmul_int8, plim_matmul_int8_args, PLIM_QUANTIZED_THREADS)
{
    unsigned lane = threadIdx.x % 32;
    for (uint64_t at = grid_thread() / 32; at < args.elements; at += grid_threads() / 32) {
        uint64_t row = plim_divide(at, &args.columns), column = at - row * args.columns.divisor;
        const int8_t *a = (const int8_t *)args.a + row * args.k, *b = (const int8_t *)args.b + column * args.k;
        int32_t sum = 0;
        for (uint64_t l = lane; l < args.k; l += 32) sum += a[l] * b[l];
        sum = warp_fold(sum, adding<int32_t>());
        if (lane == 0) ((int32_t *)args.out)[at] = sum;
    }
}

PLIM_KERNEL(scale_int32, plim_scale_int32_args, PLIM_QUANTIZED_THREADS)
{
    const float share = 1.0f / (BYTE_MOST * BYTE_MOST);
    for (uint64_t i = grid_thread(); i < args.elements; i += grid_threads()) {
        int64_t row = (int64_t)plim_divide(i, &args.width);
        int64_t column = (int64_t)i - row * (int64_t)args.width.divisor;
        float x = (float)((const int32_t *)args.a.data)[i];
        x *= load_float(args.rows.data, args.rows.dtype, row) *
             load_float(args.columns.data, args.columns.dtype, column) * share;
        if (args.bias.data) x += load_float(args.bias.data, args.bias.dtype, column);
        store_float(args.out.data, args.out.dtype, (int64_t)i, x);
    }
}
