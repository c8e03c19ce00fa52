/* Attention on tensor cores: tiles of rows in shared memory, and products of a warp's 16 rows with
 * them (Dao, "FlashAttention-2: faster attention with better parallelism and work partitioning",
 * 2023). A warp's scores never leave its registers: accumulators of one product are the operand of
 * the next.
 *
 * Scores are in units of log 2, so that a probability is one exp2_normal(). */
#ifndef PLIM_DEVICES_CUDA_KERNELS_FLASH_CUH
#define PLIM_DEVICES_CUDA_KERNELS_FLASH_CUH

#include "args_flash.h"
#include "attention.cuh"
#include "tensor.cuh"

namespace flash
{

constexpr float LOG2_E = 1.44269504f, LN_2 = 0.69314718f;

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

/* to <- rows of x from `row` on, on their way; zeros beyond its end. A thread has one chunk of every STEP-th row, so
 * that its next one is a fixed distance away. */
template <int COUNT, int THREADS, class Tile>
__device__ inline void load_tile(Tile to, const head_view &x, int64_t row)
{
    enum { STEP = THREADS / Tile::CHUNKS };
    static_assert(THREADS % Tile::CHUNKS == 0, "a thread has whole columns of chunks");
    int r = (int)threadIdx.x / Tile::CHUNKS, c = (int)threadIdx.x % Tile::CHUNKS * Tile::PER_CHUNK;
    int rows = c < x.size && row < x.rows ? (int)(x.rows - row < COUNT ? x.rows - row : COUNT) : 0;
    uint64_t from = x.data + (uint64_t)((row + r) * x.step + c) * sizeof(*to.data);
    uint64_t distance = (uint64_t)x.step * STEP * sizeof(*to.data);
    PLIM_UNROLL
    for (int i = 0; i < (COUNT + STEP - 1) / STEP; i++, r += STEP, from += distance)
        if (COUNT % STEP == 0 || r < COUNT) copy_async(to.chunk(r, c), r < rows ? from : x.data, r < rows);
}

/* The columns of x from `first` on. */
template <class T> __device__ inline head_view columns_of(head_view x, int first)
{
    x.data += (uint64_t)first * sizeof(T);
    x.size -= first;
    return x;
}

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

/* --- products --------------------------------------------------------------------------------- */

/* to += x[row.. row + 16] y[..8 N]^T over `depth` columns */
template <class Math, int N, class Tile>
__device__ inline void multiply_rows(float (&to)[N][4], Tile x, int row, Tile y, int depth)
{
    PLIM_UNROLL_BY(Math::UNROLLED)
    for (int k = 0; k < Tile::WIDTH; k += Math::DEPTH) {
        if (k >= depth) break;
        typename Math::operand_a a = Math::load_a(x, row, k);
        PLIM_UNROLL
        for (int n = 0; n < N; n += 2) {
            typename Math::operand_b b[2];
            Math::load_rows(b, y, n * BLOCK, k);
            Math::multiply(to[n], a, b[0]);
            Math::multiply(to[n + 1], a, b[1]);
        }
    }
}

/* to += x y[..8 K], the columns of y from `first` on, which has `width` of them */
template <class Math, int N, int K, class Tile>
__device__ inline void multiply_columns(float (&to)[N][4], const float (&x)[K][4], Tile y, int first,
                                        int width)
{
    PLIM_UNROLL
    for (int k = 0; k < K; k += Math::JOINED) {
        typename Math::operand_a a = Math::make_a(&x[k]);
        PLIM_UNROLL
        for (int n = 0; n < N; n += 2) {
            if (first + n * BLOCK >= width) break;
            typename Math::operand_b b[2];
            Math::load_columns(b, y, k * BLOCK, first + n * BLOCK);
            Math::multiply(to[n], a, b[0]);
            Math::multiply(to[n + 1], a, b[1]);
        }
    }
}

/* Accumulators times `factor` of their row, to rows of `to` from `row` on, columns from `first` on. */
template <class T, int N>
__device__ inline void store_rows(const head_view &to, int64_t row, int first, float (&x)[N][4],
                                  const float (&factor)[2])
{
    PLIM_UNROLL
    for (int n = 0; n < N; n++) {
        int column = first + n * BLOCK + pair();
        PLIM_UNROLL
        for (int r = 0; r < 2; r++) {
            int64_t i = row + group() + 8 * r;
            const float v[2] = {x[n][2 * r] * factor[r], x[n][2 * r + 1] * factor[r]};
            if (i < to.rows && column < to.size)
                store_as<T>(to.data + (uint64_t)(i * to.step + column) * sizeof(T), v);
        }
    }
}

/* --- scores ----------------------------------------------------------------------------------- */

/* Where a warp's accumulators stand among the scores of a head: their first query and key. TURNED:
 * rows are keys and columns queries. */
struct score_place {
    int64_t query, key;
};

/* The query and key of accumulator e of block n. */
template <bool TURNED>
__device__ inline score_place place_of(const score_place &first, int n, int e)
{
    int row = group() + e / 2 * 8, column = n * BLOCK + pair() + e % 2;
    return {first.query + (TURNED ? column : row), first.key + (TURNED ? row : column)};
}

__device__ inline float masked_score(const plim_attention_args &args, const score_view &view,
                                     const score_place &at, float scaled)
{
    if (!args.mask.data) return scaled;
    return scaled + LOG2_E * load_float(view.mask.data, view.mask.dtype,
                                        at.query * view.mask.step + at.key * view.mask.column_step);
}

/* cap tanh(x / cap), as 1 - 2 / (1 + exp(2 x / cap)) */
__device__ inline float draw_in(float x, float cap)
{
    return cap - 2 * cap / (1 + exp2_normal(2 * LOG2_E / cap * x));
}

/* Products become scores; minus infinity where nothing is seen, and beyond the ends. `seen`: the queries or keys, as
 * the columns are, that the warp's rows see. */
template <bool TURNED, int N>
__device__ inline void make_scores(float (&s)[N][4], const plim_attention_args &args, const score_view &view,
                                   const score_place &first, const span *seen)
{
    int column = (int)(TURNED ? first.query : first.key);
    bool all_seen = seen[ROWS - 1].first <= column && seen[0].end >= column + N * BLOCK;
    PLIM_UNROLL
    for (int n = 0; n < N; n++) {
        PLIM_UNROLL
        for (int e = 0; e < 4; e++) {
            s[n][e] *= args.scale * LOG2_E;
            if (args.softcap > 0) s[n][e] = draw_in(s[n][e], args.softcap * LOG2_E);
        }
    }
    if (all_seen && !args.mask.data) return;
    PLIM_UNROLL
    for (int r = 0; r < 2; r++) {
        span of_row = seen[group() + 8 * r];
        PLIM_UNROLL
        for (int n = 0; n < N; n++) {
            PLIM_UNROLL
            for (int e = 2 * r; e < 2 * r + 2; e++) {
                int at = column + n * BLOCK + pair() + e % 2;
                bool is_seen = at >= of_row.first && at < of_row.end;
                s[n][e] = is_seen ? masked_score(args, view, place_of<TURNED>(first, n, e), s[n][e]) : -INFINITY;
            }
        }
    }
}

/* Which accumulators of BLOCKS blocks from `n` on dropout keeps: 4 bits of a block, beginning with the lowest. Lanes
 * that meet in the same draws make one each, and exchange what came of them. Tiles begin at multiples of
 * PLIM_DROPOUT_KEYS. */
enum { DRAWN_BLOCKS = 4 };

template <int BLOCKS>
__device__ inline uint32_t kept_of_rows(const plim_attention_args &args, int64_t head_row,
                                        const score_place &first, int n)
{
    int turn = lane() % 4,
        half = BLOCKS == DRAWN_BLOCKS ? turn / 2 : 0; /* row of the lane's two, and half of the blocks */
    uint32_t mine = kept_of_keys(args, head_row + first.query + group() + turn % 2 * 8,
                                 first.key + n * BLOCK + half * PLIM_DROPOUT_KEYS);
    uint32_t other = __shfl_xor_sync(0xffffffffu, mine, 1), kept = 0;
    uint32_t here = turn % 2 ? other | mine << 16 : mine | other << 16; /* of both rows */
    uint32_t far = __shfl_xor_sync(0xffffffffu, here, 2);
    PLIM_UNROLL
    for (int i = 0; i < BLOCKS; i++) {
        uint32_t drawn = (i / 2 == turn / 2 ? here : far) >> (i % 2 * BLOCK + pair());
        kept |= ((drawn & 3) | (drawn >> 14 & 12)) << 4 * i;
    }
    return kept;
}

/* Of turned blocks: each of their queries has one draw of the warp's 16 keys. */
template <int BLOCKS>
__device__ inline uint32_t kept_of_columns(const plim_attention_args &args, int64_t head_row,
                                           const score_place &first, int n)
{
    int turn = group() % (2 * BLOCKS);
    uint32_t kept = 0, mine = kept_of_keys(args, head_row + first.query + (n + turn / 2) * BLOCK + pair() + turn % 2,
                                           first.key);
    PLIM_UNROLL
    for (int i = 0; i < 2 * BLOCKS; i++) {
        uint32_t drawn = __shfl_sync(0xffffffffu, mine, lane() % 4 + 4 * i) >> group();
        kept |= ((drawn & 1) | (drawn >> 6 & 4)) << (i / 2 * 4 + i % 2);
    }
    return kept;
}

/* Of N blocks, each with its 4 bits. */
template <bool TURNED, int N>
__device__ inline void draw(uint32_t (&kept)[N], const plim_attention_args &args, const score_view &view,
                            const score_place &first)
{
    enum { BLOCKS = N < DRAWN_BLOCKS ? N : DRAWN_BLOCKS };
    PLIM_UNROLL
    for (int n = 0; n < N; n += BLOCKS) {
        int64_t head_row = view.head * args.q_length;
        uint32_t drawn = TURNED ? kept_of_columns<BLOCKS>(args, head_row, first, n)
                                : kept_of_rows<BLOCKS>(args, head_row, first, n);
        PLIM_UNROLL
        for (int i = 0; i < BLOCKS; i++) kept[n + i] = drawn >> 4 * i & 15;
    }
}

/* Of a query: what its probabilities are exp2_normal(score - base) with. */
__device__ inline float base_of(const plim_flash_args &args, int64_t head, int64_t query)
{
    if (query >= args.attention.q_length) return INFINITY;
    int64_t row = head * args.attention.q_length + query;
    float logsumexp = ((const float *)args.attention.logsumexp)[row];
    return logsumexp == -INFINITY ? INFINITY : logsumexp * LOG2_E;
}

/* Of a query: the sum of dout out, which is that of p dp. */
__device__ inline float sum_of(const plim_flash_args &args, int64_t head, int64_t query)
{
    if (query >= args.attention.q_length) return 0;
    return ((const float *)args.sums)[head * args.attention.q_length + query];
}

} // namespace flash

/* What a GPU has no instructions for, or faster ones, is empty: nothing launches it there
 * (PLIM_FLASH_CAPABILITY_...). The emulator has all. */
#if !defined __CUDA_ARCH__
#define FLASH_FROM_80(...) __VA_ARGS__
#define FLASH_FOR_75(...) __VA_ARGS__
#elif __CUDA_ARCH__ >= 800
#define FLASH_FROM_80(...) __VA_ARGS__
#define FLASH_FOR_75(...)
#elif __CUDA_ARCH__ >= 750
#define FLASH_FROM_80(...)
#define FLASH_FOR_75(...) __VA_ARGS__
#else
#define FLASH_FROM_80(...)
#define FLASH_FOR_75(...)
#endif
#define FLASH_BODY_bf16 FLASH_FROM_80
#define FLASH_BODY_fp16 FLASH_FROM_80
#define FLASH_BODY_tf32 FLASH_FROM_80
#define FLASH_BODY_turing FLASH_FOR_75

using flash_bf16 = flash::halves<bf16>;
using flash_fp16 = flash::halves<fp16>;
using flash_tf32 = flash::tf32;
using flash_turing = flash::turing;

#endif
