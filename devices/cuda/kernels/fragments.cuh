/* Operands of tensor cores: tiles of rows in shared memory, and how products are made of a type. A warp's accumulators
 * never leave its registers: those of one product are the operand of the next. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_FRAGMENTS_CUH
#define PLIM_DEVICES_CUDA_KERNELS_FRAGMENTS_CUH

#include "tensor.cuh"

namespace fragments
{

constexpr float LOG2_E = 1.44269504f, LN_2 = 0.69314718f; /* for exp2_normal() */

enum { ROWS = 16, BLOCK = 8 }; /* of a product; a block of accumulators is 16 by 8 */

__device__ inline int lane()
{
    return (int)threadIdx.x % 32;
}

__device__ inline int group() /* of a lane: its first row; the other is 8 below */
{
    return lane() / 4;
}

__device__ inline int pair() /* the first of its two columns */
{
    return lane() % 4 * 2;
}

/* --- tiles ------------------------------------------------------------------------------------ */

/* Rows of COLUMNS elements in shared memory. The 16-byte chunks of a row are permuted by its number,
 * so that the same chunk of eight neighbouring rows lies in eight different groups of banks. */
template <class T, int COLUMNS> struct tile {
    enum { WIDTH = COLUMNS, PER_CHUNK = 16 / sizeof(T), CHUNKS = COLUMNS / PER_CHUNK };
    T *data;

    __device__ T *chunk(int row, int column) const
    {
        int far = column / (8 * PER_CHUNK) * 8, near = column / PER_CHUNK % 8;
        return data + row * COLUMNS + (far + (near ^ row % 8)) * PER_CHUNK;
    }
    __device__ T at(int row, int column) const
    {
        return chunk(row, column)[column % PER_CHUNK];
    }
};

/* --- operands --------------------------------------------------------------------------------- */

/* How products are made of a type: operands of DEPTH columns of a and rows of b; b comes for two
 * blocks. JOINED blocks of accumulators make an operand a. So many steps along the depth are UNROLLED, where places in
 * tiles are constants then, and registers allow it. */
template <class T> struct halves {
    typedef T element;
    enum { DEPTH = 16, JOINED = 2, UNROLLED = 16 };
    struct operand_a {
        uint32_t words[4];
    };
    struct operand_b {
        uint32_t words[2];
    };

    __device__ static uint32_t join(float low, float high)
    {
        return (uint32_t)cast<T>(low).bits | (uint32_t)cast<T>(high).bits << 16;
    }
    template <class Tile> __device__ static operand_a load_a(Tile x, int row, int column)
    {
        operand_a a;
        load_matrices(a.words, x.chunk(row + lane() % 16, column + lane() / 16 * 8));
        return a;
    }
    /* a[m][k] = x[row + k][column + m] */
    template <class Tile> __device__ static operand_a load_a_turned(Tile x, int row, int column)
    {
        operand_a a;
        load_matrices_transposed(a.words, x.chunk(row + lane() / 16 * 8 + lane() % 8, column + lane() / 8 % 2 * 8));
        return a;
    }
    __device__ static operand_a make_a(const float (*x)[4])
    {
        return {{join(x[0][0], x[0][1]), join(x[0][2], x[0][3]), join(x[1][0], x[1][1]),
                 join(x[1][2], x[1][3])}};
    }
    __device__ static void split(operand_b (&b)[2], const uint32_t (&words)[4])
    {
        b[0] = {{words[0], words[1]}};
        b[1] = {{words[2], words[3]}};
    }
    /* b[k][n] = x[row + n][column + k] */
    template <class Tile>
    __device__ static void load_rows(operand_b (&b)[2], Tile x, int row, int column)
    {
        uint32_t words[4];
        load_matrices(words, x.chunk(row + lane() / 16 * 8 + lane() % 8, column + lane() / 8 % 2 * 8));
        split(b, words);
    }
    /* b[k][n] = x[row + k][column + n] */
    template <class Tile>
    __device__ static void load_columns(operand_b (&b)[2], Tile x, int row, int column)
    {
        uint32_t words[4];
        load_matrices_transposed(words, x.chunk(row + lane() % 16, column + lane() / 16 * 8));
        split(b, words);
    }
    __device__ static void multiply(float (&c)[4], const operand_a &a, const operand_b &b)
    {
        mma(c, a.words, b.words, T());
    }
};

/* fp16 where tensor cores take half as deep a product at once: the same operands, in two parts. */
struct turing : halves<fp16> {
    enum { UNROLLED = 4 };
    __device__ static void multiply(float (&c)[4], const operand_a &a, const operand_b &b)
    {
        for (int half = 0; half < 2; half++) {
            const uint32_t rows[2] = {a.words[2 * half], a.words[2 * half + 1]};
            mma_half_depth(c, rows, b.words[half]);
        }
    }
};

/* fp32 as the sum of two numbers of TF32: three products for one, which leaves out 2^-22 of it.
 * Columns of `make_a` and rows of `load_columns` are in the order 0, 2, 4, 6, 1, 3, 5, 7, in which
 * accumulators have them; sums do not mind. */
struct tf32 {
    typedef float element;
    enum { DEPTH = 8, JOINED = 1, UNROLLED = 2 };
    struct operand_a {
        uint32_t large[4], small[4];
    };
    struct operand_b {
        uint32_t large[2], small[2];
    };

    __device__ static void split(float x, uint32_t &large, uint32_t &small)
    {
        large = round_to_tf32(x);
        small = round_to_tf32(x - __uint_as_float(large));
    }
    __device__ static operand_a split_a(float x, float y, float z, float w)
    {
        operand_a a;
        split(x, a.large[0], a.small[0]);
        split(y, a.large[1], a.small[1]);
        split(z, a.large[2], a.small[2]);
        split(w, a.large[3], a.small[3]);
        return a;
    }
    template <class Tile> __device__ static operand_a load_a(Tile x, int row, int column)
    {
        int r = row + group(), c = column + lane() % 4;
        return split_a(x.at(r, c), x.at(r + 8, c), x.at(r, c + 4), x.at(r + 8, c + 4));
    }
    __device__ static operand_a make_a(const float (*x)[4])
    {
        return split_a(x[0][0], x[0][2], x[0][1], x[0][3]);
    }
    template <class Tile>
    __device__ static void load_rows(operand_b (&b)[2], Tile x, int row, int column)
    {
        PLIM_UNROLL
        for (int i = 0; i < 2; i++) {
            int r = row + i * BLOCK + group(), c = column + lane() % 4;
            split(x.at(r, c), b[i].large[0], b[i].small[0]);
            split(x.at(r, c + 4), b[i].large[1], b[i].small[1]);
        }
    }
    template <class Tile>
    __device__ static void load_columns(operand_b (&b)[2], Tile x, int row, int column)
    {
        PLIM_UNROLL
        for (int i = 0; i < 2; i++) {
            int r = row + pair(), c = column + i * BLOCK + group();
            split(x.at(r, c), b[i].large[0], b[i].small[0]);
            split(x.at(r + 1, c), b[i].large[1], b[i].small[1]);
        }
    }
    __device__ static void multiply(float (&c)[4], const operand_a &a, const operand_b &b)
    {
        mma_tf32(c, a.small, b.large);
        mma_tf32(c, a.large, b.small);
        mma_tf32(c, a.large, b.large);
    }
};

} // namespace fragments

/* What a GPU has no instructions for, or faster ones, is empty: planners launch it where it is not. The emulator has
 * all. */
#if !defined __CUDA_ARCH__
#define TENSOR_FROM_80(...) __VA_ARGS__
#define TENSOR_FOR_75(...) __VA_ARGS__
#elif __CUDA_ARCH__ >= 800
#define TENSOR_FROM_80(...) __VA_ARGS__
#define TENSOR_FOR_75(...)
#elif __CUDA_ARCH__ >= 750
#define TENSOR_FROM_80(...)
#define TENSOR_FOR_75(...) __VA_ARGS__
#else
#define TENSOR_FROM_80(...)
#define TENSOR_FOR_75(...)
#endif

#endif
