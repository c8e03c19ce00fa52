/* torchao's AdamW, whose moments are kept in 4 or 8 bits: indices into a book of ascending numbers, times the scale of
 * their block. */
#include "adam.cuh"
#include "args_torchao.h"
#include "vector.cuh"

enum { MOMENTS = 2, NIBBLES = PLIM_TORCHAO_NIBBLES };

/* The books of both moments in shared memory: lanes look up different numbers. */
__device__ inline void load_books(float (*book)[PLIM_TORCHAO_CODES_MOST], const plim_torchao_args &args, int moments)
{
    int count = (int)args.book_size;
    for (int i = (int)threadIdx.x; i < moments * count; i += (int)blockDim.x)
        book[i / count][i % count] = ((const float *)args.moment[i / count].book)[i % count];
    __syncthreads();
}

template <bool EIGHT>
__device__ inline float kept_value(const plim_torchao_args &args, const plim_torchao_moment &moment,
                                   const float *book, uint64_t i)
{
    const uint8_t *codes = (const uint8_t *)moment.codes;
    unsigned code = codes[EIGHT ? i : i / 2];
    if (!EIGHT) code = i % 2 ? code & (NIBBLES - 1) : code >> 4;
    return book[code] * ((const float *)moment.scales)[plim_divide(i, &args.block)];
}

/* Both moments of element i after the step, and what becomes of a parameter p. */
template <bool EIGHT>
__device__ inline void step_element(const plim_torchao_args &args, const float (*book)[PLIM_TORCHAO_CODES_MOST],
                                    adam_step at, uint64_t i, float &p, float (&x)[MOMENTS])
{
    float g = load_float(args.gradient.data, args.gradient.dtype, (int64_t)i);
    for (int k = 0; k < MOMENTS; k++) x[k] = kept_value<EIGHT>(args, args.moment[k], book[k], i);
    adam_update(args.adam, at, p, x[0], x[1], g);
}

/* The last number of the book that is not above x, or 0. */
__device__ inline int place_of(const float *book, int count, float x)
{
    int place = 0;
    for (int half = count / 2; half > 0; half /= 2)
        if (book[place + half] <= x) place += half;
    return place;
}

__device__ inline int rounded(const float *book, int count, float x, int place)
{
    int next = place + 1 < count ? place + 1 : place;
    return x - book[place] >= (book[next] - book[place]) * 0.5f ? next : place;
}

/* --- the new scales --------------------------------------------------------------------------- */

template <bool EIGHT>
__device__ inline void find_scales(const plim_torchao_args &args, const float (*book)[PLIM_TORCHAO_CODES_MOST])
{
    const float least = 1e-12f;
    adam_step at = adam_at(args.adam, args.adam.step);
    int64_t parts = args.elements / args.part;
    int lane = (int)threadIdx.x % 32;
    for (int64_t n = (int64_t)(grid_thread() / 32); n < parts; n += (int64_t)(grid_threads() / 32)) {
        int64_t first = n * args.part, end = first + args.part;
        float most[MOMENTS] = {least, least}, x[MOMENTS], unused = 0;
        for (int64_t i = first + lane; i < end; i += 32) {
            step_element<EIGHT>(args, book, at, (uint64_t)i, unused, x);
            for (int k = 0; k < MOMENTS; k++) most[k] = fmaxf(most[k], fabsf(x[k]));
        }
        for (int k = 0; k < MOMENTS; k++) {
            for (int offset = 16; offset > 0; offset /= 2) most[k] = fmaxf(most[k], lane_xor(most[k], offset));
            if (lane == 0) ((float *)args.moment[k].new_scales)[n] = most[k];
        }
        if constexpr (EIGHT)
            for (int64_t i = first + lane; i < end; i += 32) {
                step_element<EIGHT>(args, book, at, (uint64_t)i, unused, x);
                for (int k = 0; k < MOMENTS; k++) ((float *)args.moment[k].scaled)[i] = x[k] / most[k];
            }
    }
}

PLIM_KERNEL(torchao_scales_8bit, plim_torchao_args, PLIM_TORCHAO_THREADS)
{
    __shared__ float book[MOMENTS][PLIM_TORCHAO_CODES_MOST];
    load_books(book, args, MOMENTS);
    find_scales<true>(args, book);
}

PLIM_KERNEL(torchao_scales_4bit, plim_torchao_args, PLIM_TORCHAO_THREADS)
{
    __shared__ float book[MOMENTS][PLIM_TORCHAO_CODES_MOST];
    load_books(book, args, MOMENTS);
    find_scales<false>(args, book);
}

/* --- the step --------------------------------------------------------------------------------- */

template <bool EIGHT>
__device__ inline void step(const plim_torchao_args &args, const float (*book)[PLIM_TORCHAO_CODES_MOST])
{
    adam_step at = adam_at(args.adam, args.adam.step);
    for (uint64_t i = grid_thread(); i < (uint64_t)args.elements; i += grid_threads()) {
        float p = load_float(args.parameter.data, args.parameter.dtype, (int64_t)i), x[MOMENTS];
        step_element<EIGHT>(args, book, at, i, p, x);
        store_float(args.parameter.data, args.parameter.dtype, (int64_t)i, p);
        for (int k = 0; k < MOMENTS; k++) {
            const plim_torchao_moment &moment = args.moment[k];
            float *scaled = (float *)moment.scaled + i;
            if constexpr (EIGHT) {
                int place = place_of(book[k], PLIM_TORCHAO_CODES_MOST, *scaled);
                ((uint8_t *)moment.codes)[i] = (uint8_t)rounded(book[k], PLIM_TORCHAO_CODES_MOST, *scaled, place);
            } else {
                float over = x[k] / ((const float *)moment.new_scales)[plim_divide(i, &args.block)];
                *scaled = over;
                ((int64_t *)moment.places)[i] = place_of(book[k], NIBBLES, over);
            }
        }
    }
}

PLIM_KERNEL(torchao_step_8bit, plim_torchao_args, PLIM_TORCHAO_THREADS)
{
    __shared__ float book[MOMENTS][PLIM_TORCHAO_CODES_MOST];
    load_books(book, args, MOMENTS);
    step<true>(args, book);
}

PLIM_KERNEL(torchao_step_4bit, plim_torchao_args, PLIM_TORCHAO_THREADS)
{
    __shared__ float book[MOMENTS][PLIM_TORCHAO_CODES_MOST];
    load_books(book, args, MOMENTS);
    step<false>(args, book);
}

/* Two elements to a byte, the first in its upper half. */
PLIM_KERNEL(torchao_codes, plim_torchao_args, PLIM_TORCHAO_THREADS)
{
    __shared__ float book[1][PLIM_TORCHAO_CODES_MOST];
    load_books(book, args, 1);
    const plim_torchao_moment &moment = args.moment[0];
    for (uint64_t i = grid_thread(); i < (uint64_t)args.elements / 2; i += grid_threads()) {
        int code[2];
        for (int j = 0; j < 2; j++) {
            int place = (int)((const int64_t *)moment.places)[2 * i + j] & (NIBBLES - 1);
            code[j] = rounded(book[0], NIBBLES, ((const float *)moment.scaled)[2 * i + j], place);
        }
        ((uint8_t *)moment.codes)[i] = (uint8_t)(code[0] << 4 | code[1]);
    }
}
