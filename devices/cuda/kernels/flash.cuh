/* Attention on tensor cores: products of a warp's 16 rows with tiles of rows in shared memory
 * (Dao, "FlashAttention-2: faster attention with better parallelism and work partitioning",
 * 2023). A warp's scores never leave its registers: fragments.cuh.
 *
 * Scores are in units of log 2, so that a probability is one exp2_normal(). */
#ifndef PLIM_DEVICES_CUDA_KERNELS_FLASH_CUH
#define PLIM_DEVICES_CUDA_KERNELS_FLASH_CUH

#include "args_flash.h"
#include "attention.cuh"
#include "fragments.cuh"

namespace flash
{

using namespace fragments;

/* --- tiles ------------------------------------------------------------------------------------ */

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

#define FLASH_BODY_bf16 TENSOR_FROM_80
#define FLASH_BODY_fp16 TENSOR_FROM_80
#define FLASH_BODY_tf32 TENSOR_FROM_80
#define FLASH_BODY_turing TENSOR_FOR_75

using flash_bf16 = flash::halves<bf16>;
using flash_fp16 = flash::halves<fp16>;
using flash_tf32 = flash::tf32;
using flash_turing = flash::turing;

#endif
