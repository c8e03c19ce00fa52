/* Attention on fp32 units, for what flash.cu does not take: tiles of 64 queries and 64 keys, softmax
 * on the way. Everything between loads and stores is fp32, the probabilities too. Backward computes
 * them again, once for the gradient of the queries and once for those of keys and values, so that
 * every sum has one owner and an order.
 *
 * Threads form a grid of 16 x 16; each has 4 rows and 4 columns of a tile of scores, and 4 rows and
 * 4 columns of every panel, which is 64 columns of a head. */
#include "attention.cuh"

enum {
    TILE = PLIM_SDPA_TILE,
    DEPTH = 32,       /* columns of a head that scores are summed over at a time */
    PITCH = TILE + 4, /* of shared rows: keeps 16 bytes aligned, spreads banks */
    SIDE = 4          /* rows and columns of a thread */
};

typedef float tile_row[PITCH];
typedef float fragment[SIDE][SIDE];
using four = pack<float, SIDE>;

__device__ inline int first_row()
{
    return (int)threadIdx.x / 16 * SIDE;
}

__device__ inline int first_column()
{
    return (int)threadIdx.x % 16 * SIDE;
}

__device__ inline four &four_at(float *shared)
{
    return *reinterpret_cast<four *>(shared);
}

/* --- rows of one head ------------------------------------------------------------------------- */

__device__ inline void eight(const head_view &x, int64_t row, int column, float (&v)[VECTOR])
{
    for (float &y : v) y = 0;
    if (row < x.rows && column < x.size) load_floats(x.data, x.dtype, row * x.step + column, v);
}

/* to[c][r] <- x[row + r, column + c], 64 rows by DEPTH columns, zeros beyond its end */
__device__ inline void load_columns(tile_row *to, const head_view &x, int64_t row, int column)
{
    int thread = (int)threadIdx.x;
    if (x.vectors) {
        int r = thread / (DEPTH / VECTOR), c = thread % (DEPTH / VECTOR) * VECTOR;
        float v[VECTOR];
        eight(x, row + r, column + c, v);
        PLIM_UNROLL
        for (int i = 0; i < VECTOR; i++) to[c + i][r] = v[i];
    } else {
        PLIM_UNROLL_BY(1)
        for (int i = thread; i < TILE * DEPTH; i += PLIM_SDPA_THREADS)
            to[i % DEPTH][i / DEPTH] = element(x, row + i / DEPTH, column + i % DEPTH);
    }
}

/* to[r][c] <- x[row + r, column + c], 64 by 64 */
__device__ inline void load_panel(tile_row *to, const head_view &x, int64_t row, int column)
{
    if (x.vectors) {
        PLIM_UNROLL_BY(1)
        for (int i = (int)threadIdx.x; i < TILE * TILE / VECTOR; i += PLIM_SDPA_THREADS) {
            int r = i / (TILE / VECTOR), c = i % (TILE / VECTOR) * VECTOR;
            float v[VECTOR];
            eight(x, row + r, column + c, v);
            PLIM_UNROLL
            for (int k = 0; k < VECTOR; k++) to[r][c + k] = v[k];
        }
    } else {
        PLIM_UNROLL_BY(1)
        for (int i = (int)threadIdx.x; i < TILE * TILE; i += PLIM_SDPA_THREADS)
            to[i / TILE][i % TILE] = element(x, row + i / TILE, column + i % TILE);
    }
}

__device__ inline void store_four(const head_view &x, int64_t row, int column, const float (&v)[4])
{
    if (row >= x.rows) return;
    if (x.vectors && column < x.size) {
        uint64_t at = x.data + (uint64_t)(row * x.step + column) * bytes_of(x.dtype);
        switch (x.dtype) {
        case PLIM_F32:
            return store_as<float>(at, v);
        case PLIM_BF16:
            return store_as<bf16>(at, v);
        default:
            return store_as<fp16>(at, v);
        }
    }
    PLIM_UNROLL
    for (int c = 0; c < 4; c++)
        if (column + c < x.size)
            store_float(x.data, x.dtype, row * x.step + (column + c) * x.column_step, v[c]);
}

/* --- products --------------------------------------------------------------------------------- */

/* to[r][c] += sum over k < depth of a[k][row + r] b[k][column + c] */
__device__ inline void multiply(fragment &to, tile_row *a, tile_row *b, int depth)
{
    PLIM_UNROLL_BY(4)
    for (int k = 0; k < depth; k++) {
        four x = four_at(&a[k][first_row()]), y = four_at(&b[k][first_column()]);
        PLIM_UNROLL
        for (int r = 0; r < SIDE; r++) {
            PLIM_UNROLL
            for (int c = 0; c < SIDE; c++) to[r][c] += x.at[r] * y.at[c];
        }
    }
}

/* to = x[x_row.., :] y[y_row.., :]^T; `stage` is 64 rows of shared memory that is free after
 * the next barrier. */
__device__ inline void multiply_rows(fragment &to, tile_row *stage, const head_view &x,
                                     int64_t x_row, const head_view &y, int64_t y_row)
{
    PLIM_UNROLL
    for (int r = 0; r < SIDE; r++) {
        PLIM_UNROLL
        for (int c = 0; c < SIDE; c++) to[r][c] = 0;
    }
    for (int column = 0; column < x.size; column += DEPTH) {
        __syncthreads();
        load_columns(stage, x, x_row, column);
        load_columns(stage + DEPTH, y, y_row, column);
        __syncthreads();
        multiply(to, stage, stage + DEPTH, DEPTH);
    }
}

/* to[panel] += weights^T x[row.., panel]; the weights may have been written just before. */
template <int PANELS>
__device__ inline void multiply_panels(fragment (&to)[PANELS], tile_row *weights, tile_row *stage,
                                       const head_view &x, int64_t row)
{
    PLIM_UNROLL
    for (int panel = 0; panel < PANELS; panel++) {
        if (panel * TILE >= x.size) break;
        __syncthreads();
        load_panel(stage, x, row, panel * TILE);
        __syncthreads();
        multiply(to[panel], weights, stage, TILE);
    }
}

template <int PANELS> __device__ inline void clear(fragment (&x)[PANELS])
{
    PLIM_UNROLL
    for (int i = 0; i < PANELS * SIDE * SIDE; i++)
        x[i / (SIDE * SIDE)][i / SIDE % SIDE][i % SIDE] = 0;
}

/* Row r of the thread's times factor[r], in the tile that begins at `row`. */
template <int PANELS>
__device__ inline void store_panels(const head_view &to, int64_t row, fragment (&x)[PANELS],
                                    const float (&factor)[SIDE])
{
    PLIM_UNROLL
    for (int panel = 0; panel < PANELS; panel++) {
        PLIM_UNROLL
        for (int r = 0; r < SIDE; r++) {
            float v[SIDE];
            PLIM_UNROLL
            for (int c = 0; c < SIDE; c++) v[c] = x[panel][r][c] * factor[r];
            store_four(to, row + first_row() + r, panel * TILE + first_column(), v);
        }
    }
}

__device__ inline void store_tile(const head_view &to, int64_t row, int64_t column, fragment &x)
{
    PLIM_UNROLL
    for (int r = 0; r < SIDE; r++) store_four(to, row + first_row() + r, (int)column + first_column(), x[r]);
}

/* --- scores ----------------------------------------------------------------------------------- */

/* Products of queries from `row` on and keys from `column` on become scores; minus infinity where
 * nothing is seen, and beyond the ends. */
__device__ inline void mask_scores(fragment &s, const plim_attention_args &args,
                                   const score_view &view, int64_t row, int64_t column)
{
    PLIM_UNROLL
    for (int r = 0; r < SIDE; r++) {
        int64_t i = row + first_row() + r;
        span keys = keys_of(args, i);
        PLIM_UNROLL
        for (int c = 0; c < SIDE; c++) {
            int64_t j = column + first_column() + c;
            bool seen = j >= keys.first && j < keys.end;
            float score = s[r][c] * args.scale;
            if (args.softcap > 0) score = args.softcap * tanhf(score / args.softcap);
            if (seen && args.mask.data)
                score += load_float(view.mask.data, view.mask.dtype, i * view.mask.step + j * view.mask.column_step);
            s[r][c] = seen ? score : -INFINITY;
        }
    }
}

/* u: what dropout multiplies the probabilities of a tile with. */
__device__ inline void dropout_factors(fragment &u, const plim_attention_args &args,
                                       const score_view &view, int64_t row, int64_t column)
{
    PLIM_UNROLL
    for (int r = 0; r < SIDE; r++) {
        int64_t i = view.head * args.q_length + row + first_row() + r, key = column + first_column();
        uint32_t kept = 15;
        if (args.dropout) kept = kept_of_keys(args, i, key) >> key % PLIM_DROPOUT_KEYS;
        PLIM_UNROLL
        for (int c = 0; c < SIDE; c++) u[r][c] = kept >> c & 1 ? args.kept : 0;
    }
}

/* shared[column][row] <- x */
__device__ inline void share_transposed(tile_row *shared, const fragment &x)
{
    PLIM_UNROLL
    for (int c = 0; c < SIDE; c++)
        four_at(&shared[first_column() + c][first_row()]) = {{x[0][c], x[1][c], x[2][c], x[3][c]}};
}

__device__ inline void share(tile_row *shared, const fragment &x)
{
    PLIM_UNROLL
    for (int r = 0; r < SIDE; r++)
        four_at(&shared[first_row() + r][first_column()]) = {{x[r][0], x[r][1], x[r][2], x[r][3]}};
}

/* --- forward ---------------------------------------------------------------------------------- */

/* The running softmax of the thread's rows. `sum` is over the thread's columns only. */
struct softmax_rows {
    float maximum[SIDE], sum[SIDE];
};

/* Scores become exp(score - maximum); factor[r] takes what was summed so far to the new maximum. */
__device__ inline void advance(softmax_rows &rows, fragment &s, float (&factor)[SIDE])
{
    PLIM_UNROLL
    for (int r = 0; r < SIDE; r++) {
        float maximum = rows.maximum[r];
        PLIM_UNROLL
        for (int c = 0; c < SIDE; c++) maximum = larger()(maximum, s[r][c]);
        maximum = warp_fold(maximum, larger(), 16);
        float base = maximum == -INFINITY ? 0 : maximum;
        factor[r] = expf(rows.maximum[r] - base);
        rows.maximum[r] = maximum;
        rows.sum[r] *= factor[r];
        PLIM_UNROLL
        for (int c = 0; c < SIDE; c++) {
            s[r][c] = expf(s[r][c] - base);
            rows.sum[r] += s[r][c];
        }
    }
}

/* logsumexp to memory, and 1 / sum to `factor`: 0 for a row that sees nothing. */
__device__ inline void finish(const plim_attention_args &args, const score_view &view, int64_t row,
                              const softmax_rows &rows, float (&factor)[SIDE])
{
    PLIM_UNROLL
    for (int r = 0; r < SIDE; r++) {
        float sum = warp_fold(rows.sum[r], adding<float>(), 16);
        int64_t i = row + first_row() + r;
        factor[r] = sum == 0 ? 0 : 1 / sum;
        if (args.logsumexp && first_column() == 0 && i < args.q_length)
            ((float *)args.logsumexp)[view.head * args.q_length + i] = rows.maximum[r] + logf(sum);
    }
}

template <int PANELS> __device__ inline void forward(const plim_attention_args &args)
{
    alignas(16) __shared__ tile_row stage[TILE], weights[TILE];
    block_place at = place_of_block(args.q_length, args.heads, TILE);
    int group = at.head / args.sharing;
    head_view q = view_of(args.q, at.batch, at.head, args.q_length, args.size);
    head_view k = view_of(args.k, at.batch, group, args.k_length, args.size);
    head_view v = view_of(args.v, at.batch, group, args.k_length, args.v_size);
    score_view view = scores_of(args, at.batch, at.head);

    fragment out[PANELS];
    clear(out);
    softmax_rows rows;
    float factor[SIDE];
    PLIM_UNROLL
    for (int r = 0; r < SIDE; r++) rows.maximum[r] = -INFINITY, rows.sum[r] = 0;
    span range = keys_of_tile(args, at.row, TILE, TILE);
    for (int64_t key = range.first; key < range.end; key += TILE) {
        fragment p, u;
        multiply_rows(p, stage, q, at.row, k, key);
        mask_scores(p, args, view, at.row, key);
        advance(rows, p, factor);
        dropout_factors(u, args, view, at.row, key);
        PLIM_UNROLL
        for (int i = 0; i < SIDE * SIDE; i++) p[i / SIDE][i % SIDE] *= u[i / SIDE][i % SIDE];
        PLIM_UNROLL
        for (int i = 0; i < PANELS * SIDE * SIDE; i++)
            out[i / (SIDE * SIDE)][i / SIDE % SIDE][i % SIDE] *= factor[i / SIDE % SIDE];
        share_transposed(weights, p);
        multiply_panels(out, weights, stage, v, key);
    }
    finish(args, view, at.row, rows, factor);
    store_panels(view_of(args.out, at.batch, at.head, args.q_length, args.v_size), at.row, out,
                 factor);
}

/* --- backward --------------------------------------------------------------------------------- */

/* Of the queries of a tile: logsumexp, infinite for those that see nothing, so that their
 * probabilities are 0; and the sums of dout out, which are those of p dp. */
struct query_tile {
    float logsumexp[TILE], mean[TILE];
};

__device__ inline void load_queries(query_tile &to, const plim_attention_args &args,
                                    const score_view &view, const head_view &dout,
                                    const head_view &out, int64_t row)
{
    int lane = (int)threadIdx.x % 32;
    for (int r = (int)threadIdx.x / 32; r < TILE; r += PLIM_SDPA_THREADS / 32) {
        float sum = 0;
        for (int c = lane; c < out.size; c += 32)
            sum += element(dout, row + r, c) * element(out, row + r, c);
        sum = warp_sum(sum);
        if (lane != 0) continue;
        float logsumexp = INFINITY;
        if (row + r < args.q_length)
            logsumexp = ((const float *)args.logsumexp)[view.head * args.q_length + row + r];
        to.logsumexp[r] = logsumexp == -INFINITY ? INFINITY : logsumexp;
        to.mean[r] = sum;
    }
}

/* From scores and dout v^T (`ds`): p u, the weights of dout in dv, into `s`, and the gradient of the
 * products, p (u dp - mean), times softcapping's slope, 1 - tanh^2, into `ds`. */
__device__ inline void differentiate(fragment &s, fragment &ds, const fragment &u,
                                     const query_tile &queries, float softcap)
{
    PLIM_UNROLL
    for (int r = 0; r < SIDE; r++) {
        float logsumexp = queries.logsumexp[first_row() + r];
        float mean = queries.mean[first_row() + r];
        PLIM_UNROLL
        for (int c = 0; c < SIDE; c++) {
            float p = expf(s[r][c] - logsumexp), tanh = fmaxf(s[r][c] / softcap, -1.0f);
            ds[r][c] = p * (u[r][c] * ds[r][c] - mean);
            if (softcap > 0) ds[r][c] *= 1 - tanh * tanh;
            s[r][c] = p * u[r][c];
        }
    }
}

template <int PANELS> __device__ inline void backward_queries(const plim_attention_args &args)
{
    alignas(16) __shared__ tile_row stage[TILE], weights[TILE];
    __shared__ query_tile queries;
    block_place at = place_of_block(args.q_length, args.heads, TILE);
    int group = at.head / args.sharing;
    head_view q = view_of(args.q, at.batch, at.head, args.q_length, args.size);
    head_view k = view_of(args.k, at.batch, group, args.k_length, args.size);
    head_view v = view_of(args.v, at.batch, group, args.k_length, args.v_size);
    head_view dout = view_of(args.dout, at.batch, at.head, args.q_length, args.v_size);
    head_view out = view_of(args.out, at.batch, at.head, args.q_length, args.v_size);
    score_view view = scores_of(args, at.batch, at.head);

    fragment dq[PANELS];
    clear(dq);
    load_queries(queries, args, view, dout, out, at.row);
    span range = keys_of_tile(args, at.row, TILE, TILE);
    for (int64_t key = range.first; key < range.end; key += TILE) {
        fragment s, ds, u;
        multiply_rows(s, stage, q, at.row, k, key);
        multiply_rows(ds, stage, dout, at.row, v, key);
        mask_scores(s, args, view, at.row, key);
        dropout_factors(u, args, view, at.row, key);
        differentiate(s, ds, u, queries, args.softcap);
        if (args.dmask.data)
            store_tile(view_of(args.dmask, at.batch, at.head, args.q_length, (int)args.k_length), at.row, key, ds);
        share_transposed(weights, ds);
        multiply_panels(dq, weights, stage, k, key);
    }
    const float factor[SIDE] = {args.scale, args.scale, args.scale, args.scale};
    store_panels(view_of(args.dq, at.batch, at.head, args.q_length, args.size), at.row, dq, factor);
}

template <int PANELS> __device__ inline void backward_keys(const plim_attention_args &args)
{
    alignas(16) __shared__ tile_row stage[TILE], weights[TILE];
    __shared__ query_tile queries;
    int groups = args.heads / args.sharing;
    block_place at = place_of_block(args.k_length, groups, TILE);
    head_view k = view_of(args.k, at.batch, at.head, args.k_length, args.size);
    head_view v = view_of(args.v, at.batch, at.head, args.k_length, args.v_size);

    span range = queries_of_tile(args, at.row, TILE, TILE);

    fragment dk[PANELS], dv[PANELS];
    clear(dk);
    clear(dv);
    for (int head = at.head * args.sharing; head < (at.head + 1) * args.sharing; head++) {
        head_view q = view_of(args.q, at.batch, head, args.q_length, args.size);
        head_view dout = view_of(args.dout, at.batch, head, args.q_length, args.v_size);
        head_view out = view_of(args.out, at.batch, head, args.q_length, args.v_size);
        score_view view = scores_of(args, at.batch, head);
        for (int64_t row = range.first; row < range.end; row += TILE) {
            fragment s, ds, u;
            __syncthreads(); /* the queries before are done with */
            load_queries(queries, args, view, dout, out, row);
            multiply_rows(s, stage, q, row, k, at.row);
            multiply_rows(ds, stage, dout, row, v, at.row);
            mask_scores(s, args, view, row, at.row);
            dropout_factors(u, args, view, row, at.row);
            differentiate(s, ds, u, queries, args.softcap);
            share(weights, s);
            multiply_panels(dv, weights, stage, dout, row);
            __syncthreads();
            share(weights, ds);
            multiply_panels(dk, weights, stage, q, row);
        }
    }
    const float one[SIDE] = {1, 1, 1, 1};
    const float scale[SIDE] = {args.scale, args.scale, args.scale, args.scale};
    store_panels(view_of(args.dk, at.batch, at.head, args.k_length, args.size), at.row, dk, scale);
    store_panels(view_of(args.dv, at.batch, at.head, args.k_length, args.v_size), at.row, dv, one);
}

#define ATTENTION_KERNEL(name, body)                                                               \
    PLIM_KERNEL(name, plim_attention_args, PLIM_SDPA_THREADS, 1)                                   \
    {                                                                                              \
        body(args);                                                                                \
    }

ATTENTION_KERNEL(attention_64, forward<1>)
ATTENTION_KERNEL(attention_128, forward<2>)
ATTENTION_KERNEL(attention_256, forward<4>)
ATTENTION_KERNEL(attention_dq_64, backward_queries<1>)
ATTENTION_KERNEL(attention_dq_128, backward_queries<2>)
ATTENTION_KERNEL(attention_dq_256, backward_queries<4>)
ATTENTION_KERNEL(attention_dkv_64, backward_keys<1>)
ATTENTION_KERNEL(attention_dkv_128, backward_keys<2>)
ATTENTION_KERNEL(attention_dkv_256, backward_keys<4>)
