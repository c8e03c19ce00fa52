/* The gated delta rule in chunks, forward, as flash-linear-attention divides it into kernels (op.h: DELTA_*). Where
 * Triton's kernels take tensor cores and round on the way, these are fp32 from load to store. Every sum has one owner
 * and an order. */
#include "delta.cuh"

PLIM_KERNEL(chunk_sums, plim_chunk_sums_args, PLIM_DELTA_THREADS)
{
    const plim_delta_sizes &s = args.sizes;
    int64_t total = (s.ends ? s.chunks : s.batch * s.chunks) * s.heads;
    for (int64_t i = (int64_t)grid_thread(); i < total; i += (int64_t)grid_threads()) {
        delta_chunk chunk = chunk_at(s, i / s.heads);
        delta_view x = view_of(args.x, s, chunk, i % s.heads, 1), out = view_of(args.out, s, chunk, i % s.heads, 1);
        float sum = 0;
        for (int t = 0; t < chunk.count; t++) {
            int at = args.backwards ? chunk.count - 1 - t : t;
            sum += x(at, 0);
            out.put(at, 0, args.scale * sum);
        }
    }
}

/* A thread for each column substitutes row after row. */
__device__ inline void invert(const float (*system)[SQUARE_PITCH], float (*inverse)[SQUARE_PITCH])
{
    int j = (int)threadIdx.x;
    for (int i = 0; i < CHUNK && j < CHUNK; i++) {
        float x = i == j;
        for (int m = j; m < i; m++) x -= system[i][m] * inverse[m][j];
        inverse[i][j] = x;
    }
}

PLIM_KERNEL(delta_inverse, plim_delta_args, PLIM_DELTA_THREADS)
{
    __shared__ delta_tiles<WIDE> tiles;
    __shared__ float system[CHUNK][SQUARE_PITCH], inverse[CHUNK][SQUARE_PITCH], g[CHUNK], beta[CHUNK];
    const plim_delta_sizes &s = args.sizes;
    int64_t head = blockIdx.x % s.heads;
    delta_chunk chunk = chunk_at(s, blockIdx.x / s.heads);
    delta_view k = view_of(args.k, s, chunk, head, s.key), out = view_of(args.inverse, s, chunk, head, CHUNK);
    if (chunk.count == 0) return;
    load_column(g, view_of(args.g, s, chunk, head, 1), chunk.count);
    load_column(beta, view_of(args.beta, s, chunk, head, 1), chunk.count);
    attend(tiles, system, g, chunk.count, s.key, k, k);
    __syncthreads();
    for (int i = (int)threadIdx.x; i < CHUNK * CHUNK; i += PLIM_DELTA_THREADS)
        system[i / CHUNK][i % CHUNK] *= beta[i / CHUNK];
    __syncthreads();
    invert(system, inverse);
    __syncthreads();
    for (int i = (int)threadIdx.x; i < chunk.count * CHUNK; i += PLIM_DELTA_THREADS)
        out.put(i / CHUNK, i % CHUNK, i % CHUNK <= i / CHUNK ? inverse[i / CHUNK][i % CHUNK] : 0);
}

/* to <- inverse (factor a), of `width` columns */
__device__ inline void solve(delta_tiles<WIDE> &tiles, const delta_view &to, const delta_view &inverse,
                             const delta_view &a, const float (&factor)[CHUNK], int count, int width)
{
    for (int first = 0; first < width; first += CHUNK) {
        float sum[SIDE][WIDE] = {};
        accumulate<ALONG_DEPTH, ALONG_ROWS>(
            tiles, sum, count, width - first, count, inverse,
            [&](int column, int token) { return factor[token] * a(token, first + column); });
        each(sum, [&](int row, int column, float x) {
            if (row < count && first + column < width) to.put(row, first + column, x);
        });
    }
}

PLIM_KERNEL(delta_solve, plim_delta_args, PLIM_DELTA_THREADS)
{
    __shared__ delta_tiles<WIDE> tiles;
    __shared__ float g[CHUNK], beta[CHUNK], both[CHUNK];
    const plim_delta_sizes &s = args.sizes;
    int64_t head = blockIdx.x % s.heads;
    delta_chunk chunk = chunk_at(s, blockIdx.x / s.heads);
    delta_view inverse = view_of(args.inverse, s, chunk, head, CHUNK);
    if (chunk.count == 0) return;
    load_column(g, view_of(args.g, s, chunk, head, 1), chunk.count);
    load_column(beta, view_of(args.beta, s, chunk, head, 1), chunk.count);
    if (threadIdx.x < CHUNK) both[threadIdx.x] = beta[threadIdx.x] * exp2f(g[threadIdx.x]);
    solve(tiles, view_of(args.w, s, chunk, head, s.key), inverse, view_of(args.k, s, chunk, head, s.key), both,
          chunk.count, s.key);
    solve(tiles, view_of(args.u, s, chunk, head, s.value), inverse, view_of(args.v, s, chunk, head, s.value), beta,
          chunk.count, s.value);
}

PLIM_KERNEL(delta_states, plim_delta_args, PLIM_DELTA_THREADS)
{
    __shared__ delta_tiles<NARROW> tiles;
    __shared__ float state[PLIM_DELTA_MOST_KEYS][PLIM_DELTA_COLUMNS], fresh[CHUNK][PLIM_DELTA_COLUMNS], g[CHUNK];
    const plim_delta_sizes &s = args.sizes;
    int64_t parts = (s.value + PLIM_DELTA_COLUMNS - 1) / PLIM_DELTA_COLUMNS, of_row = blockIdx.x / parts;
    int64_t head = of_row % s.heads;
    int first = (int)(blockIdx.x % parts) * PLIM_DELTA_COLUMNS, columns = s.value - first;
    delta_row row = row_at(s, of_row / s.heads);
    for (int i = (int)threadIdx.x; i < s.key * PLIM_DELTA_COLUMNS; i += PLIM_DELTA_THREADS)
        state[i / PLIM_DELTA_COLUMNS][i % PLIM_DELTA_COLUMNS] = 0;
    for (int64_t i = 0; i < chunks_of(row.length) && row.place + i < s.places; i++) {
        delta_chunk chunk = chunk_of_row(row, i);
        int count = chunk.count;
        delta_view k = view_of(args.k, s, chunk, head, s.key), w = view_of(args.w, s, chunk, head, s.key),
                   u = view_of(args.u, s, chunk, head, s.value), out = view_of(args.fresh, s, chunk, head, s.value),
                   before = state_of(args.states, s, chunk, head);
        __syncthreads(); /* the state is there, and g is done with */
        load_column(g, view_of(args.g, s, chunk, head, 1), count);
        for (int j = (int)threadIdx.x; j < s.key * PLIM_DELTA_COLUMNS; j += PLIM_DELTA_THREADS) {
            int key = j / PLIM_DELTA_COLUMNS, column = j % PLIM_DELTA_COLUMNS;
            if (column < columns) before.put(key, first + column, state[key][column]);
        }
        float seen[SIDE][NARROW] = {};
        accumulate<ALONG_DEPTH, ALONG_ROWS>(tiles, seen, count, columns, s.key, w,
                                            [&](int column, int key) { return state[key][column]; });
        each(seen, [&](int t, int column, float x) {
            bool is_there = t < count && column < columns;
            fresh[t][column] = is_there ? u(t, first + column) - x : 0;
            if (is_there) out.put(t, first + column, fresh[t][column]);
        });
        for (int key = 0; key < s.key; key += CHUNK) {
            float sum[SIDE][NARROW] = {};
            accumulate<ALONG_ROWS, ALONG_ROWS>(
                tiles, sum, s.key - key, columns, count,
                [&](int d, int t) { return k(t, key + d) * exp2f(g[count - 1] - g[t]); },
                [&](int column, int t) { return fresh[t][column]; });
            each(sum, [&](int d, int column, float x) {
                if (key + d < s.key) state[key + d][column] = state[key + d][column] * exp2f(g[count - 1]) + x;
            });
        }
    }
}

PLIM_KERNEL(delta_output, plim_delta_args, PLIM_DELTA_THREADS)
{
    __shared__ delta_tiles<WIDE> tiles;
    __shared__ float pairs[CHUNK][SQUARE_PITCH], g[CHUNK];
    const plim_delta_sizes &s = args.sizes;
    int64_t head = blockIdx.x % s.heads;
    delta_chunk chunk = chunk_at(s, blockIdx.x / s.heads);
    delta_view q = view_of(args.q, s, chunk, head, s.key), k = view_of(args.k, s, chunk, head, s.key),
               fresh = view_of(args.fresh, s, chunk, head, s.value), out = view_of(args.out, s, chunk, head, s.value),
               state = state_of(args.states, s, chunk, head);
    int count = chunk.count;
    if (count == 0 || chunk.place >= s.places) return;
    load_column(g, view_of(args.g, s, chunk, head, 1), count);
    attend(tiles, pairs, g, count, s.key, q, k);
    for (int first = 0; first < s.value; first += CHUNK) {
        float sum[SIDE][WIDE] = {};
        accumulate<ALONG_DEPTH, ALONG_ROWS>(
            tiles, sum, count, s.value - first, s.key, [&](int t, int key) { return q(t, key) * exp2f(g[t]); },
            [&](int column, int key) { return state(key, first + column); });
        accumulate<ALONG_DEPTH, ALONG_ROWS>(
            tiles, sum, count, s.value - first, count, [&](int t, int before) { return pairs[t][before]; },
            [&](int column, int before) { return fresh(before, first + column); });
        each(sum, [&](int t, int column, float x) {
            if (t < count && first + column < s.value) out.put(t, first + column, args.alpha * x);
        });
    }
}
