/* What the kernels of the gated delta rule share: where chunks lie, and products of tiles. Products are of fp32, on
 * fp32 units, whatever the operands' types. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_DELTA_CUH
#define PLIM_DEVICES_CUDA_KERNELS_DELTA_CUH

#include "args_delta.h"
#include "kernel.cuh"
#include "vector.cuh"

enum {
    CHUNK = PLIM_DELTA_CHUNK,
    DEPTH = 16,                        /* of a tile that is on its way through shared memory */
    SIDE = 4,                          /* rows of a thread, of which 16 share a column */
    WIDE = 4,                          /* columns of a thread in tiles of CHUNK columns, */
    NARROW = PLIM_DELTA_COLUMNS / 16,  /* and in tiles of a state's */
    SQUARE_PITCH = CHUNK + 1
};

/* --- chunks ----------------------------------------------------------------------------------- */

/* Tokens of one row or document: the first, counted over the batch, and where its chunks stand among all. */
struct delta_row {
    int64_t first, length, place;
};

__device__ inline int64_t chunks_of(int64_t tokens)
{
    return (tokens + CHUNK - 1) / CHUNK;
}

/* Documents that are nowhere in the row have no tokens. */
__device__ inline int64_t length_of(const plim_delta_sizes &s, int64_t document)
{
    const int32_t *ends = (const int32_t *)s.ends;
    int64_t first = ends[document], end = ends[document + 1];
    return first < 0 || end > s.seq || end < first ? 0 : end - first;
}

__device__ inline delta_row row_at(const plim_delta_sizes &s, int64_t row)
{
    if (!s.ends) return {row * s.seq, s.seq, row * s.chunks};
    int64_t place = 0;
    for (int64_t i = 0; i < row; i++) place += chunks_of(length_of(s, i));
    return {((const int32_t *)s.ends)[row], length_of(s, row), place};
}

struct delta_chunk {
    int64_t first, place;
    int count; /* of tokens; 0: there is no such chunk */
};

__device__ inline delta_chunk chunk_of_row(const delta_row &row, int64_t i)
{
    int64_t left = row.length - i * CHUNK;
    return {row.first + i * CHUNK, row.place + i, (int)(left < 0 ? 0 : left < CHUNK ? left : (int64_t)CHUNK)};
}

/* The chunk that stands at `place` */
__device__ inline delta_chunk chunk_at(const plim_delta_sizes &s, int64_t place)
{
    if (!s.ends) return chunk_of_row(row_at(s, place / s.chunks), place % s.chunks);
    int64_t behind = 0;
    for (int64_t i = 0; i < s.rows; i++) {
        int64_t length = length_of(s, i), chunks = chunks_of(length);
        if (place < behind + chunks)
            return chunk_of_row({((const int32_t *)s.ends)[i], length, behind}, place - behind);
        behind += chunks;
    }
    return {0, place, 0};
}

/* --- operands of a chunk and head ------------------------------------------------------------- */

/* Rows of tokens, (b, s, heads, width), or the rows of a state */
struct delta_view {
    uint64_t data;
    int64_t offset, step;
    uint32_t dtype;

    __device__ float operator()(int64_t row, int64_t column) const
    {
        return load_float(data, dtype, offset + row * step + column);
    }
    __device__ void put(int64_t row, int64_t column, float x) const
    {
        store_float(data, dtype, offset + row * step + column, x);
    }
};

__device__ inline delta_view view_of(const plim_cuda_flat_operand &a, const plim_delta_sizes &s,
                                     const delta_chunk &chunk, int64_t head, int64_t width)
{
    return {a.data, (chunk.first * s.heads + head) * width, s.heads * width, a.dtype};
}

__device__ inline delta_view state_of(const plim_cuda_flat_operand &a, const plim_delta_sizes &s,
                                      const delta_chunk &chunk, int64_t head)
{
    return {a.data, (chunk.place * s.heads + head) * s.key * s.value, s.value, a.dtype};
}

/* One number for each token, zeros behind the last. Call __syncthreads() before it is read. */
__device__ inline void load_column(float (&to)[CHUNK], const delta_view &from, int count)
{
    int i = (int)threadIdx.x;
    if (i < CHUNK) to[i] = i < count ? from(i, 0) : 0;
}

/* --- products --------------------------------------------------------------------------------- */

/* How an operand's neighbours in memory lie */
enum delta_along { ALONG_DEPTH, ALONG_ROWS };

template <int N> struct delta_tiles {
    float left[DEPTH][CHUNK + 4], right[DEPTH][16 * N + 4];
};

__device__ inline int thread_row()
{
    return (int)threadIdx.x / 16 * SIDE;
}

template <int N> __device__ inline int thread_column()
{
    return (int)threadIdx.x % 16 * N;
}

template <int ROWS, delta_along A, class F>
__device__ inline void stage(float (*to)[ROWS + 4], int first, int rows, int depth, F f)
{
    for (int i = (int)threadIdx.x; i < ROWS * DEPTH; i += PLIM_DELTA_THREADS) {
        int row = A == ALONG_ROWS ? i % ROWS : i / DEPTH, k = A == ALONG_ROWS ? i / ROWS : i % DEPTH;
        to[k][row] = row < rows && first + k < depth ? f(row, first + k) : 0;
    }
}

/* sum(row, column) += the sum over d < depth of a(row, d) b(column, d), of the thread's rows and columns; beyond `rows`
 * and `columns` they are zeros. What a and b read of shared memory need not be synchronised before, but after. */
template <delta_along A, delta_along B, int N, class Left, class Right>
__device__ inline void accumulate(delta_tiles<N> &tiles, float (&sum)[SIDE][N], int rows, int columns, int depth,
                                  Left a, Right b)
{
    int r = thread_row(), c = thread_column<N>();
    for (int d = 0; d < depth; d += DEPTH) {
        __syncthreads(); /* the tiles before are done with */
        stage<CHUNK, A>(tiles.left, d, rows, depth, a);
        stage<16 * N, B>(tiles.right, d, columns, depth, b);
        __syncthreads();
        PLIM_UNROLL
        for (int k = 0; k < DEPTH; k++) {
            PLIM_UNROLL
            for (int i = 0; i < SIDE; i++) {
                PLIM_UNROLL
                for (int j = 0; j < N; j++) sum[i][j] += tiles.left[k][r + i] * tiles.right[k][c + j];
            }
        }
    }
}

/* f(row, column, element) of all that a thread has. */
template <int N, class F> __device__ inline void each(float (&sum)[SIDE][N], F f)
{
    PLIM_UNROLL
    for (int i = 0; i < SIDE; i++) {
        PLIM_UNROLL
        for (int j = 0; j < N; j++) f(thread_row() + i, thread_column<N>() + j, sum[i][j]);
    }
}

/* rows[i] += f(row, column, element) of the thread's i-th row. */
template <int N, class F> __device__ inline void add_along_rows(float (&rows)[SIDE], float (&sum)[SIDE][N], F f)
{
    PLIM_UNROLL
    for (int i = 0; i < SIDE; i++) {
        PLIM_UNROLL
        for (int j = 0; j < N; j++) rows[i] += f(thread_row() + i, thread_column<N>() + j, sum[i][j]);
    }
}

/* pairs(i, j) <- 2^(g(i) - g(j)) a(i) b(j), over `width` numbers, where j is up to i, else 0. Call __syncthreads()
 * before it is read, but by accumulate(). */
template <class Left, class Right>
__device__ inline void attend(delta_tiles<WIDE> &tiles, float (*pairs)[SQUARE_PITCH], const float (&g)[CHUNK],
                              int count, int width, Left a, Right b)
{
    float sum[SIDE][WIDE] = {};
    accumulate<ALONG_DEPTH, ALONG_DEPTH>(tiles, sum, count, count, width, a, b);
    each(sum, [&](int row, int column, float x) {
        pairs[row][column] = column <= row && row < count ? x * exp2f(g[row] - g[column]) : 0;
    });
}

#endif
