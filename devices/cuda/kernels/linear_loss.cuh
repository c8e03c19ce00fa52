/* Tiles of a linear layer's logits on tensor cores. Two by four warps share a tile of places and classes; columns of x
 * and of the weight come in steps while products of the step before run. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_LINEAR_LOSS_CUH
#define PLIM_DEVICES_CUDA_KERNELS_LINEAR_LOSS_CUH

#include "args_linear_loss.h"
#include "fragments.cuh"
#include "turns.cuh"
#include "vector.cuh"

namespace linear_loss
{

using namespace fragments;

enum { TILE = PLIM_LINEAR_LOSS_TILE, COLUMNS = PLIM_LINEAR_LOSS_COLUMNS, THREADS = PLIM_LINEAR_LOSS_THREADS };
enum { WARPS_OF_CLASSES = 4, OF_WARP = 32, /* classes */ PLACES_OF_WARP = 64 };
enum { ROW_BLOCKS = PLACES_OF_WARP / ROWS, CLASS_BLOCKS = OF_WARP / BLOCK };

/* A warp's logits: element 2 r + c of a block stands in the lane's row group() + 8 r and column pair() + c. */
typedef float logits[ROW_BLOCKS][CLASS_BLOCKS][4];

__device__ inline int warp()
{
    return (int)threadIdx.x / 32;
}

__device__ inline int first_row() /* of a warp, in the tile */
{
    return warp() / WARPS_OF_CLASSES * PLACES_OF_WARP;
}

__device__ inline int first_column()
{
    return warp() % WARPS_OF_CLASSES * OF_WARP;
}

/* --- operands --------------------------------------------------------------------------------- */

/* The rows of x of a tile of places, to shared memory; -1: none. */
__device__ inline void find_rows(int32_t (&rows)[TILE], const plim_linear_head_args &head, int64_t first)
{
    for (int i = (int)threadIdx.x; i < TILE; i += THREADS) {
        int64_t row = first + i < head.count ? ((const int64_t *)head.places)[first + i] : -1;
        rows[i] = row < head.rows && row >= 0 ? (int32_t)row : -1;
    }
}

/* to <- COLUMNS columns from `column` on of TILE rows of (.., width), on their way; row_of() below 0: zeros */
template <class T, class RowOf>
__device__ inline void load_tile(tile<T, COLUMNS> to, uint64_t data, const plim_linear_head_args &head, int64_t column,
                                 RowOf row_of)
{
    enum { CHUNKS = tile<T, COLUMNS>::CHUNKS, STEP = THREADS / CHUNKS, PER_CHUNK = tile<T, COLUMNS>::PER_CHUNK };
    int c = (int)threadIdx.x % CHUNKS * PER_CHUNK;
    PLIM_UNROLL
    for (int i = 0; i < TILE / STEP; i++) {
        int r = (int)threadIdx.x / CHUNKS + i * STEP;
        int64_t row = row_of(r);
        bool there = row >= 0 && column + c < head.width;
        uint64_t from = there ? data + (uint64_t)(row * head.width + column + c) * sizeof(T) : data;
        T *chunk = to.chunk(r, c);
        if (head.whole) {
            copy_async(chunk, from, there);
            continue;
        }
        for (int e = 0; e < PER_CHUNK; e++)
            chunk[e] = there && column + c + e < head.width ? ((const T *)from)[e] : T{0};
    }
}

/* --- logits ----------------------------------------------------------------------------------- */

/* z += the warp's rows of x times its classes' of w, over COLUMNS columns */
template <class Math, class Tile> __device__ inline void multiply_tiles(logits &z, Tile x, Tile w)
{
    PLIM_UNROLL_BY(2)
    for (int k = 0; k < COLUMNS; k += Math::DEPTH) {
        typename Math::operand_a a[ROW_BLOCKS];
        PLIM_UNROLL
        for (int m = 0; m < ROW_BLOCKS; m++) a[m] = Math::load_a(x, first_row() + m * ROWS, k);
        PLIM_UNROLL
        for (int n = 0; n < CLASS_BLOCKS; n += 2) {
            typename Math::operand_b b[2];
            Math::load_rows(b, w, first_column() + n * BLOCK, k);
            PLIM_UNROLL
            for (int m = 0; m < ROW_BLOCKS; m++) {
                Math::multiply(z[m][n], a[m], b[0]);
                Math::multiply(z[m][n + 1], a[m], b[1]);
            }
        }
    }
}

/* Products become logits: the bias, and the cap. Minus infinity of what is no class. */
__device__ inline void finish_logits(logits &z, const plim_linear_head_args &head, int64_t first_class)
{
    PLIM_UNROLL
    for (int n = 0; n < CLASS_BLOCKS; n++) {
        PLIM_UNROLL
        for (int c = 0; c < 2; c++) {
            int64_t of = first_class + first_column() + n * BLOCK + pair() + c;
            bool there = of < head.classes;
            float bias = there && head.bias.data ? load_float(head.bias.data, head.bias.dtype, of) : 0;
            PLIM_UNROLL
            for (int e = c; e < 4 * ROW_BLOCKS; e += 2) {
                float &x = z[e / 4][n][e % 4];
                x += bias;
                if (head.cap > 0) x = head.cap * tanhf(x / head.cap);
                if (!there) x = -INFINITY;
            }
        }
    }
}

/* z <- the logits of the tile's rows and the TILE classes from `first_class` on. Shared memory is free before and
 * afterwards. */
template <class Math, class RowOf>
__device__ inline void make_logits(logits &z, typename Math::element *shared, const plim_linear_head_args &head,
                                   RowOf row_of, int64_t first_class)
{
    typedef typename Math::element T;
    enum { OF_STAGE = 2 * TILE * COLUMNS };
    int classes = (int)(head.classes - first_class);
    auto class_of = [&](int r) { return r < classes ? first_class + r : -1; };
    auto load = [&](int64_t column, int stage) {
        T *at = shared + stage * OF_STAGE;
        if (column < head.width) {
            load_tile(tile<T, COLUMNS>{at}, head.x, head, column, row_of);
            load_tile(tile<T, COLUMNS>{at + TILE * COLUMNS}, head.weight, head, column, class_of);
        }
        copy_commit();
    };
    PLIM_UNROLL
    for (int i = 0; i < ROW_BLOCKS * CLASS_BLOCKS * 4; i++) z[i / 4 / CLASS_BLOCKS][i / 4 % CLASS_BLOCKS][i % 4] = 0;
    int stage = 0;
    load(0, stage);
    for (int column = 0; column < (int)head.width; column += COLUMNS, stage ^= 1) {
        load(column + COLUMNS, stage ^ 1);
        copy_wait<1>();
        __syncthreads(); /* this step's columns are here */
        T *at = shared + stage * OF_STAGE;
        multiply_tiles<Math>(z, tile<T, COLUMNS>{at}, tile<T, COLUMNS>{at + TILE * COLUMNS});
        __syncthreads(); /* and done with */
    }
    copy_wait<0>();
    finish_logits(z, head, first_class);
}

} // namespace linear_loss

using linear_loss_bf16 = fragments::halves<bf16>;
using linear_loss_fp16 = fragments::halves<fp16>;

#endif
