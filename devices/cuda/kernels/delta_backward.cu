/* The gradients of the gated delta rule's kernels (delta.cu), in fp32 from load to store. */
#include "delta.cuh"

/* The sums of four numbers of each thread over the threads of a row of the tile, or of a column, for thread i below
 * CHUNK that of row i. */
__device__ inline float fold(float (*room)[17], const float (&x)[SIDE], int first, int lane)
{
    __syncthreads(); /* the sums before are done with */
    PLIM_UNROLL
    for (int i = 0; i < SIDE; i++) room[first + i][lane] = x[i];
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < 16 && threadIdx.x < CHUNK; i++) sum += room[threadIdx.x][i];
    return sum;
}

__device__ inline float fold_rows(float (*room)[17], const float (&x)[SIDE])
{
    return fold(room, x, thread_row(), (int)threadIdx.x % 16);
}

__device__ inline float fold_columns(float (*room)[17], const float (&x)[SIDE])
{
    return fold(room, x, thread_column<WIDE>(), (int)threadIdx.x / 16);
}

PLIM_KERNEL(delta_output_backward_fresh, plim_delta_backward_args, PLIM_DELTA_THREADS)
{
    __shared__ delta_tiles<WIDE> tiles;
    __shared__ float pairs[CHUNK][SQUARE_PITCH], g[CHUNK];
    const plim_delta_sizes &s = args.of.sizes;
    int64_t head = blockIdx.x % s.heads;
    delta_chunk chunk = chunk_at(s, blockIdx.x / s.heads);
    delta_view dout = view_of(args.dout, s, chunk, head, s.value),
               dfresh = view_of(args.dfresh, s, chunk, head, s.value);
    int count = chunk.count;
    if (count == 0) return;
    load_column(g, view_of(args.of.g, s, chunk, head, 1), count);
    attend(tiles, pairs, g, count, s.key, view_of(args.of.q, s, chunk, head, s.key),
           view_of(args.of.k, s, chunk, head, s.key));
    for (int first = 0; first < s.value; first += CHUNK) {
        float sum[SIDE][WIDE] = {};
        accumulate<ALONG_ROWS, ALONG_ROWS>(
            tiles, sum, count, s.value - first, count, [&](int t, int behind) { return pairs[behind][t]; },
            [&](int column, int behind) { return dout(behind, first + column); });
        each(sum, [&](int t, int column, float x) {
            if (t < count && first + column < s.value) dfresh.put(t, first + column, args.of.alpha * x);
        });
    }
}

PLIM_KERNEL(delta_states_backward, plim_delta_backward_args, PLIM_DELTA_THREADS)
{
    __shared__ delta_tiles<NARROW> tiles;
    __shared__ float dstate[PLIM_DELTA_MOST_KEYS][PLIM_DELTA_COLUMNS], dfresh[CHUNK][PLIM_DELTA_COLUMNS], g[CHUNK];
    const plim_delta_sizes &s = args.of.sizes;
    int64_t parts = (s.value + PLIM_DELTA_COLUMNS - 1) / PLIM_DELTA_COLUMNS, of_row = blockIdx.x / parts;
    int64_t head = of_row % s.heads;
    int first = (int)(blockIdx.x % parts) * PLIM_DELTA_COLUMNS, columns = s.value - first;
    delta_row row = row_at(s, of_row / s.heads);
    for (int i = (int)threadIdx.x; i < s.key * PLIM_DELTA_COLUMNS; i += PLIM_DELTA_THREADS)
        dstate[i / PLIM_DELTA_COLUMNS][i % PLIM_DELTA_COLUMNS] = 0;
    for (int64_t i = chunks_of(row.length) - 1; i >= 0; i--) {
        delta_chunk chunk = chunk_of_row(row, i);
        int count = chunk.count;
        if (chunk.place >= s.places) continue;
        delta_view q = view_of(args.of.q, s, chunk, head, s.key), k = view_of(args.of.k, s, chunk, head, s.key),
                   w = view_of(args.of.w, s, chunk, head, s.key), dout = view_of(args.dout, s, chunk, head, s.value),
                   local = view_of(args.local, s, chunk, head, s.value),
                   out = view_of(args.dfresh, s, chunk, head, s.value), behind = state_of(args.dstates, s, chunk, head);
        __syncthreads(); /* the gradient is there, and g is done with */
        load_column(g, view_of(args.of.g, s, chunk, head, 1), count);
        for (int j = (int)threadIdx.x; j < s.key * PLIM_DELTA_COLUMNS; j += PLIM_DELTA_THREADS) {
            int key = j / PLIM_DELTA_COLUMNS, column = j % PLIM_DELTA_COLUMNS;
            if (column < columns) behind.put(key, first + column, dstate[key][column]);
        }
        float passed[SIDE][NARROW] = {};
        accumulate<ALONG_DEPTH, ALONG_ROWS>(tiles, passed, count, columns, s.key, k,
                                            [&](int column, int key) { return dstate[key][column]; });
        each(passed, [&](int t, int column, float x) {
            bool is_there = t < count && column < columns;
            dfresh[t][column] = is_there ? local(t, first + column) + exp2f(g[count - 1] - g[t]) * x : 0;
            if (is_there) out.put(t, first + column, dfresh[t][column]);
        });
        for (int key = 0; key < s.key; key += CHUNK) {
            float sum[SIDE][NARROW] = {};
            accumulate<ALONG_ROWS, ALONG_ROWS>(
                tiles, sum, s.key - key, columns, count,
                [&](int d, int t) { return args.of.alpha * q(t, key + d) * exp2f(g[t]); },
                [&](int column, int t) { return dout(t, first + column); });
            accumulate<ALONG_ROWS, ALONG_ROWS>(
                tiles, sum, s.key - key, columns, count, [&](int d, int t) { return -w(t, key + d); },
                [&](int column, int t) { return dfresh[t][column]; });
            each(sum, [&](int d, int column, float x) {
                if (key + d < s.key) dstate[key + d][column] = dstate[key + d][column] * exp2f(g[count - 1]) + x;
            });
        }
    }
}

/* What delta_output_backward has of a chunk and head. */
struct delta_gradients {
    delta_view q, k, fresh, state, dout, dstate, dfresh, dq, dk, dw;
    int count, value, first, keys; /* keys from `first` on, of which `keys` are left */
    float alpha;
};

/* sum <- `left` (tokens, values) times `right` (keys, values) turned */
__device__ inline void over_values(delta_tiles<WIDE> &tiles, float (&sum)[SIDE][WIDE], const delta_gradients &x,
                                   const delta_view &left, const delta_view &right)
{
    each(sum, [&](int, int, float &y) { y = 0; });
    accumulate<ALONG_DEPTH, ALONG_DEPTH>(tiles, sum, x.count, x.keys, x.value, left,
                                         [&](int key, int column) { return right(x.first + key, column); });
}

/* Stores the gradient of queries or keys, and adds to `rows` what they and it multiply to along each row. */
__device__ inline void store_gradient(float (&sum)[SIDE][WIDE], const delta_gradients &x, const delta_view &to,
                                      const delta_view &of, float sign, float (&rows)[SIDE])
{
    add_along_rows(rows, sum, [&](int t, int key, float y) {
        if (t >= x.count || key >= x.keys) return 0.0f;
        to.put(t, x.first + key, y);
        return sign * y * of(t, x.first + key);
    });
}

PLIM_KERNEL(delta_output_backward, plim_delta_backward_args, PLIM_DELTA_THREADS)
{
    __shared__ delta_tiles<WIDE> tiles;
    __shared__ float pairs[CHUNK][SQUARE_PITCH], room[CHUNK][17], g[CHUNK];
    const plim_delta_sizes &s = args.of.sizes;
    int64_t head = blockIdx.x % s.heads;
    delta_chunk chunk = chunk_at(s, blockIdx.x / s.heads);
    if (chunk.count == 0 || chunk.place >= s.places) return;
    delta_gradients x = {view_of(args.of.q, s, chunk, head, s.key), view_of(args.of.k, s, chunk, head, s.key),
                         view_of(args.of.fresh, s, chunk, head, s.value), state_of(args.of.states, s, chunk, head),
                         view_of(args.dout, s, chunk, head, s.value), state_of(args.dstates, s, chunk, head),
                         view_of(args.dfresh, s, chunk, head, s.value), view_of(args.dq, s, chunk, head, s.key),
                         view_of(args.dk, s, chunk, head, s.key), view_of(args.dw, s, chunk, head, s.key),
                         chunk.count, s.value, 0, 0, args.of.alpha};
    float rows[SIDE] = {}, behind = 0, sum[SIDE][WIDE];
    load_column(g, view_of(args.of.g, s, chunk, head, 1), x.count);
    attend(tiles, pairs, g, x.count, s.value, x.dout, x.fresh);
    for (x.first = 0; x.first < s.key; x.first += CHUNK) {
        x.keys = s.key - x.first;
        over_values(tiles, sum, x, x.dout, x.state);
        each(sum, [&](int t, int, float &y) { y *= x.alpha * exp2f(g[t]); });
        accumulate<ALONG_DEPTH, ALONG_ROWS>(
            tiles, sum, x.count, x.keys, x.count, [&](int t, int before) { return x.alpha * pairs[t][before]; },
            [&](int key, int before) { return x.k(before, x.first + key); });
        store_gradient(sum, x, x.dq, x.q, 1, rows);
        over_values(tiles, sum, x, x.fresh, x.dstate);
        each(sum, [&](int t, int key, float &y) {
            y = t < x.count ? y * exp2f(g[x.count - 1] - g[t]) : 0;
            if (t < x.count && key < x.keys) behind += y * x.k(t, x.first + key);
        });
        accumulate<ALONG_ROWS, ALONG_ROWS>(
            tiles, sum, x.count, x.keys, x.count, [&](int t, int later) { return x.alpha * pairs[later][t]; },
            [&](int key, int later) { return x.q(later, x.first + key); });
        store_gradient(sum, x, x.dk, x.k, -1, rows);
        over_values(tiles, sum, x, x.dfresh, x.state);
        each(sum, [&](int t, int key, float y) {
            if (t < x.count && key < x.keys) x.dw.put(t, x.first + key, -y);
        });
    }
    float passed = 0;
    for (int i = (int)threadIdx.x; i < s.key * s.value; i += PLIM_DELTA_THREADS)
        passed += x.state(i / s.value, i % s.value) * x.dstate(i / s.value, i % s.value);
    behind = block_sum(behind + passed * exp2f(g[x.count - 1]));
    float dg = fold_rows(room, rows);
    int t = (int)threadIdx.x;
    if (t >= x.count) return;
    if (t == x.count - 1) dg += behind;
    int64_t part = s.batch * s.seq * s.heads, at = (chunk.first + t) * s.heads + head;
    for (int64_t p = 0; p < (int64_t)args.of.parts; p++)
        store_float(args.dg.data, args.dg.dtype, p * part + at, p ? 0 : dg);
}

/* --- the systems ------------------------------------------------------------------------------ */

struct delta_system {
    delta_tiles<WIDE> tiles;
    float inverse[CHUNK][SQUARE_PITCH], of[CHUNK][SQUARE_PITCH]; /* of: the inverse's gradient, then the system's */
    float room[CHUNK][17], grown[CHUNK], beta[CHUNK], g[CHUNK];  /* grown: 2^g */
};

/* inverse^T dy, of the columns from `first` on */
__device__ inline void turn_back(delta_system &m, float (&sum)[SIDE][WIDE], const delta_view &dy, int first, int width,
                                 int count)
{
    each(sum, [&](int, int, float &y) { y = 0; });
    accumulate<ALONG_ROWS, ALONG_ROWS>(
        m.tiles, sum, count, width - first, count, [&](int t, int later) { return m.inverse[later][t]; },
        [&](int column, int later) { return dy(later, first + column); });
}

/* of <- -inverse^T of inverse^T, and from it the gradient of beta(i) k(i) k(j) where j is below i */
__device__ inline void system_gradient(delta_system &m, int count)
{
    float sum[SIDE][WIDE] = {};
    accumulate<ALONG_DEPTH, ALONG_DEPTH>(
        m.tiles, sum, count, count, count, [&](int i, int k) { return m.of[i][k]; },
        [&](int j, int k) { return m.inverse[j][k]; });
    __syncthreads();
    each(sum, [&](int i, int j, float &x) { m.of[i][j] = x, x = 0; });
    accumulate<ALONG_ROWS, ALONG_ROWS>(
        m.tiles, sum, count, count, count, [&](int i, int k) { return m.inverse[k][i]; },
        [&](int j, int k) { return m.of[k][j]; });
    __syncthreads();
    each(sum, [&](int i, int j, float x) { m.of[i][j] = j < i && i < count ? -x * exp2f(m.g[i] - m.g[j]) : 0; });
}

PLIM_KERNEL(delta_solve_backward, plim_delta_backward_args, PLIM_DELTA_THREADS, 2)
{
    __shared__ delta_system m;
    const plim_delta_sizes &s = args.of.sizes;
    int64_t head = blockIdx.x % s.heads;
    delta_chunk chunk = chunk_at(s, blockIdx.x / s.heads);
    int count = chunk.count, t = (int)threadIdx.x;
    if (count == 0) return;
    delta_view k = view_of(args.of.k, s, chunk, head, s.key), v = view_of(args.of.v, s, chunk, head, s.value),
               dw = view_of(args.dw, s, chunk, head, s.key), du = view_of(args.dfresh, s, chunk, head, s.value),
               dk = view_of(args.dk, s, chunk, head, s.key), dv = view_of(args.dv, s, chunk, head, s.value),
               inverse = view_of(args.of.inverse, s, chunk, head, CHUNK);
    load_column(m.g, view_of(args.of.g, s, chunk, head, 1), count);
    load_column(m.beta, view_of(args.of.beta, s, chunk, head, 1), count);
    if (t < CHUNK) m.grown[t] = exp2f(m.g[t]);
    for (int i = t; i < CHUNK * CHUNK; i += PLIM_DELTA_THREADS)
        m.inverse[i / CHUNK][i % CHUNK] = i / CHUNK < count ? inverse(i / CHUNK, i % CHUNK) : 0;
    float sum[SIDE][WIDE] = {}, of_k[SIDE] = {}, of_v[SIDE] = {}, columns[WIDE] = {};
    accumulate<ALONG_DEPTH, ALONG_DEPTH>(m.tiles, sum, count, count, s.key, dw, [&](int j, int d) {
        return k(j, d) * m.beta[j] * m.grown[j];
    });
    accumulate<ALONG_DEPTH, ALONG_DEPTH>(m.tiles, sum, count, count, s.value, du,
                                         [&](int j, int d) { return v(j, d) * m.beta[j]; });
    each(sum, [&](int i, int j, float &x) { m.of[i][j] = j < i ? x : 0, x = 0; });
    system_gradient(m, count);
    accumulate<ALONG_DEPTH, ALONG_DEPTH>(m.tiles, sum, count, count, s.key, k, k);
    each(sum, [&](int i, int j, float &x) { x *= m.of[i][j]; });
    add_along_rows(of_k, sum, [&](int, int, float x) { return x; });
    PLIM_UNROLL
    for (int j = 0; j < WIDE; j++) {
        PLIM_UNROLL
        for (int i = 0; i < SIDE; i++) columns[j] += m.beta[thread_row() + i] * sum[i][j];
    }
    for (int first = 0; first < s.key; first += CHUNK) {
        turn_back(m, sum, dw, first, s.key, count);
        add_along_rows(of_k, sum, [&](int i, int d, float &x) {
            float grown = x * m.grown[i];
            x = grown * m.beta[i];
            return i < count && first + d < s.key ? grown * k(i, first + d) : 0;
        });
        accumulate<ALONG_DEPTH, ALONG_ROWS>(
            m.tiles, sum, count, s.key - first, count,
            [&](int i, int j) { return m.of[i][j] * m.beta[i] + m.of[j][i] * m.beta[j]; },
            [&](int d, int j) { return k(j, first + d); });
        each(sum, [&](int i, int d, float x) {
            if (i < count && first + d < s.key) dk.put(i, first + d, x);
        });
    }
    for (int first = 0; first < s.value; first += CHUNK) {
        turn_back(m, sum, du, first, s.value, count);
        add_along_rows(of_v, sum, [&](int i, int d, float x) {
            if (i >= count || first + d >= s.value) return 0.0f;
            dv.put(i, first + d, x * m.beta[i]);
            return x * v(i, first + d);
        });
    }
    float along_k = fold_rows(m.room, of_k), along_v = fold_rows(m.room, of_v), down = fold_columns(m.room, columns);
    if (t >= count) return;
    view_of(args.dbeta, s, chunk, head, 1).put(t, 0, along_k + along_v);
    view_of(args.dg, s, chunk, head, 1).put(t, 0, m.beta[t] * along_k - down);
}
