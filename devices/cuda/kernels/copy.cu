/* Copies whose contiguous dimension changes, and concatenation. */
#include "walk.cuh"

/* --- transposition ---------------------------------------------------------------------------- */

/* Reads along dimension 1, writes along dimension 0: both contiguous. */
template <class A> __device__ inline void transpose(const struct plim_transpose_args &args)
{
    __shared__ A tile[PLIM_TILE][PLIM_TILE + 1]; /* a column more: columns lie in different banks */
    const struct plim_walk &w = args.walk;
    unsigned lane = threadIdx.x % PLIM_TILE, first_row = threadIdx.x / PLIM_TILE;
    unsigned rows = blockDim.x / PLIM_TILE;
    for (uint64_t t = blockIdx.x; t < args.all_tiles; t += gridDim.x) {
        uint64_t rest = plim_divide(t, &args.tiles[0]), batch = plim_divide(rest, &args.tiles[1]);
        uint64_t start0 = (t - rest * args.tiles[0].divisor) * PLIM_TILE;
        uint64_t start1 = (rest - batch * args.tiles[1].divisor) * PLIM_TILE;
        uint64_t at[2] = {w.data[0], w.data[1]};
        for (int d = 2; d < w.ndim; d++) {
            uint64_t next = plim_divide(batch, &w.extent[d]);
            at[0] += (batch - next * w.extent[d].divisor) * (uint64_t)w.stride[0][d];
            at[1] += (batch - next * w.extent[d].divisor) * (uint64_t)w.stride[1][d];
            batch = next;
        }
        for (unsigned row = first_row; row < PLIM_TILE; row += rows) {
            uint64_t i0 = start0 + row, i1 = start1 + lane;
            if (i0 >= w.extent[0].divisor || i1 >= w.extent[1].divisor) continue;
            A x[1];
            load(x, w.dtype[1],
                 at[1] + i0 * (uint64_t)w.stride[1][0] + i1 * (uint64_t)w.stride[1][1]);
            tile[row][lane] = x[0];
        }
        __syncthreads();
        for (unsigned row = first_row; row < PLIM_TILE; row += rows) {
            uint64_t i0 = start0 + lane, i1 = start1 + row;
            if (i0 >= w.extent[0].divisor || i1 >= w.extent[1].divisor) continue;
            A x[1] = {tile[lane][row]};
            store(w.dtype[0],
                  at[0] + i0 * (uint64_t)w.stride[0][0] + i1 * (uint64_t)w.stride[0][1], x);
        }
        __syncthreads();
    }
}

PLIM_KERNEL(transpose_float, struct plim_transpose_args, PLIM_ELEMENTWISE_THREADS)
{
    transpose<float>(args);
}

PLIM_KERNEL(transpose_integer, struct plim_transpose_args, PLIM_ELEMENTWISE_THREADS)
{
    transpose<int64_t>(args);
}

/* --- concatenation ---------------------------------------------------------------------------- */

/* blockIdx.y: the input */
template <int BYTES> __device__ inline void cat_units(const struct plim_cat_args &args)
{
    const auto &in = args.in[blockIdx.y];
    uint64_t units = args.rows * in.units.divisor;
    for (uint64_t i = grid_thread(); i < units; i += grid_threads()) {
        uint64_t row = plim_divide(i, &in.units), unit = i - row * in.units.divisor;
        uint64_t to = args.out + row * args.out_stride + in.offset + unit * BYTES;
        store_pack(to, load_pack<uint8_t, BYTES>(in.data + i * BYTES));
    }
}

PLIM_KERNEL(cat, struct plim_cat_args, PLIM_ELEMENTWISE_THREADS)
{
    switch (args.unit_bytes) {
    case 1: return cat_units<1>(args);
    case 2: return cat_units<2>(args);
    case 4: return cat_units<4>(args);
    case 8: return cat_units<8>(args);
    default: return cat_units<16>(args);
    }
}
