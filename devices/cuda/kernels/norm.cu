/* Layer norm and RMSNorm, forward and backward. */
#include "args_norm.h"
#include "rows.cuh"

/* Count, mean and sum of squared deviations of some elements (Chan, Golub, LeVeque: "Updating
 * formulae and a pairwise algorithm for computing sample variances", 1979): one pass, and no
 * cancellation where the mean is large. */
struct moments {
    float count, mean, squares;

    static __device__ moments merge(moments x, moments y)
    {
        float count = x.count + y.count, inverse = count > 0 ? 1 / count : 0;
        float apart = x.mean - y.mean;
        return {count, (x.count * x.mean + y.count * y.mean) * inverse,
                x.squares + y.squares + apart * apart * (x.count * y.count * inverse)};
    }
    __device__ moments from(int offset) const
    {
        return {lane_xor(count, offset), lane_xor(mean, offset), lane_xor(squares, offset)};
    }
};

template <int N> __device__ inline moments moments_of(const float (&v)[N])
{
    moments m = {N, 0, 0};
    for (int k = 0; k < N; k++) m.mean += v[k];
    m.mean *= 1.0f / N;
    for (int k = 0; k < N; k++) m.squares += (v[k] - m.mean) * (v[k] - m.mean);
    return m;
}

/* What a row is multiplied with or moved by; `absent` where it is not there. */
template <int N>
__device__ inline void load_or(const plim_cuda_flat_operand &a, int64_t i, float absent,
                               float (&v)[N])
{
    if (a.data)
        load_floats(a.data, a.dtype, i, v);
    else
        for (int k = 0; k < N; k++) v[k] = absent;
}

PLIM_KERNEL(layer_norm, plim_layer_norm_args, 1024)
{
    const plim_cuda_rows &rows = args.rows;
    for_rows(rows, args.x, [&](const team_row &row, const row_view &x) {
        row_view out = row_of(rows, args.out, row);

        moments mine = {0, 0, 0};
        row_visit(row.head, row.columns, [&](int64_t i, auto width) {
            float v[decltype(width)::count];
            row_load(x, i, v);
            mine = moments::merge(mine, moments_of(v));
        });
        moments all = team_fold(mine);
        float rstd = rsqrtf(all.squares / all.count + args.epsilon), mean = all.mean;

        row_visit(row.head, row.columns, [&](int64_t i, auto width) {
            constexpr int N = decltype(width)::count;
            float v[N], weight[N], bias[N];
            row_load(x, i, v);
            load_or(args.weight, i, 1, weight);
            load_or(args.bias, i, 0, bias);
            for (int k = 0; k < N; k++) v[k] = (v[k] - mean) * rstd * weight[k] + bias[k];
            row_store(out, i, v);
        });
        if (row.live && threadIdx.x == 0) {
            store_float(args.mean.data, args.mean.dtype, row.index, mean);
            store_float(args.rstd.data, args.rstd.dtype, row.index, rstd);
        }
    });
}

/* With g = dout weight and x^ = (x - mean) rstd: dx = rstd (g - mean(g) - x^ mean(g x^)). */
PLIM_KERNEL(layer_norm_backward, plim_layer_norm_backward_args, 1024)
{
    const plim_cuda_rows &rows = args.rows;
    for_rows(rows, args.x, [&](const team_row &row, const row_view &x) {
        row_view dout = row_of(rows, args.dout, row);
        row_view dx = row_of(rows, args.dx, row);
        float mean = row.live ? load_float(args.mean.data, args.mean.dtype, row.index) : 0;
        float rstd = row.live ? load_float(args.rstd.data, args.rstd.dtype, row.index) : 0;

        sums mine = {0, 0};
        row_visit(row.head, row.columns, [&](int64_t i, auto width) {
            constexpr int N = decltype(width)::count;
            float v[N], g[N], weight[N];
            row_load(x, i, v);
            row_load(dout, i, g);
            load_or(args.weight, i, 1, weight);
            for (int k = 0; k < N; k++) {
                mine.a += g[k] * weight[k];
                mine.b += g[k] * weight[k] * (v[k] - mean);
            }
        });
        sums all = team_fold(mine);
        float mean_g = all.a / rows.columns, mean_gx = all.b * rstd / rows.columns;

        row_visit(row.head, row.columns, [&](int64_t i, auto width) {
            constexpr int N = decltype(width)::count;
            float v[N], g[N], weight[N];
            row_load(x, i, v);
            row_load(dout, i, g);
            load_or(args.weight, i, 1, weight);
            for (int k = 0; k < N; k++)
                v[k] = rstd * (g[k] * weight[k] - mean_g - (v[k] - mean) * rstd * mean_gx);
            row_store(dx, i, v);
        });
    });
}

/* Of one row and column: what is added to the sums. Nothing beyond the end. */
struct param_terms {
    float x[1], dout[1], mean, rstd;

    __device__ void load(const plim_layer_norm_params_args &args, int64_t row, int64_t end,
                         int64_t column)
    {
        x[0] = dout[0] = mean = rstd = 0;
        if (row >= end) return;
        row_load(row_at(args.x, row_offset(args.rows, args.x, row)), column, x);
        row_load(row_at(args.dout, row_offset(args.rows, args.dout, row)), column, dout);
        mean = load_float(args.mean.data, args.mean.dtype, row);
        rstd = load_float(args.rstd.data, args.rstd.dtype, row);
    }
    __device__ void add_to(sums &all) const
    {
        all.a += dout[0] * (x[0] - mean) * rstd;
        all.b += dout[0];
    }
};

enum { AHEAD = 4 }; /* rows that are on their way together: columns alone do not fill a GPU */

/* Sums over the rows of a part: thread y of a column takes every blockDim.y-th of them, then thread
 * 0 adds what the threads have in order. */
PLIM_KERNEL(layer_norm_backward_params, plim_layer_norm_params_args, 1024)
{
    __shared__ sums part_of[PLIM_PARAMS_ROW_THREADS][PLIM_PARAMS_COLUMNS];
    const plim_cuda_rows &rows = args.rows;
    int64_t column = (int64_t)blockIdx.x * PLIM_PARAMS_COLUMNS + threadIdx.x;
    bool live = column < rows.columns;
    for (int64_t part = blockIdx.y; part < args.parts; part += gridDim.y) {
        int64_t end = live ? (part + 1) * rows.count / args.parts : 0;
        sums mine = {0, 0};
        for (int64_t row = part * rows.count / args.parts + threadIdx.y; row < end;
             row += AHEAD * blockDim.y) {
            param_terms terms[AHEAD];
            PLIM_UNROLL
            for (int i = 0; i < AHEAD; i++)
                terms[i].load(args, row + i * (int64_t)blockDim.y, end, column);
            PLIM_UNROLL
            for (int i = 0; i < AHEAD; i++) terms[i].add_to(mine);
        }
        part_of[threadIdx.y][threadIdx.x] = mine;
        __syncthreads();
        if (live && threadIdx.y == 0) {
            for (int y = 1; y < (int)blockDim.y; y++)
                mine = sums::merge(mine, part_of[y][threadIdx.x]);
            int64_t at = part * rows.columns + column;
            store_float(args.dweight.data, args.dweight.dtype, at, mine.a);
            if (args.dbias.data) store_float(args.dbias.data, args.dbias.dtype, at, mine.b);
        }
        __syncthreads();
    }
}

/* --- RMSNorm ---------------------------------------------------------------------------------- */

PLIM_KERNEL(rms_norm, plim_rms_norm_args, 1024)
{
    const plim_cuda_rows &rows = args.rows;
    for_rows(rows, args.x, [&](const team_row &row, const row_view &x) {
        row_view out = row_of(rows, args.out, row);

        sums mine = {0, 0};
        row_visit(row.head, row.columns, [&](int64_t i, auto width) {
            float v[decltype(width)::count];
            row_load(x, i, v);
            for (float a : v) mine.a += a * a;
        });
        float rstd = rsqrtf(team_fold(mine).a / rows.columns + args.epsilon);

        row_visit(row.head, row.columns, [&](int64_t i, auto width) {
            constexpr int N = decltype(width)::count;
            float v[N], weight[N];
            row_load(x, i, v);
            load_floats(args.weight.data, args.weight.dtype, i, weight);
            for (int k = 0; k < N; k++) v[k] = v[k] * rstd * (args.offset + weight[k]);
            row_store(out, i, v);
        });
        if (row.live && threadIdx.x == 0) store_float(args.rstd.data, args.rstd.dtype, row.index, rstd);
    });
}

/* With g = dout (offset + weight) and n = x rstd: dx = rstd (g - n mean(g n)). Adds dout n to `added` where that is not
 * 0: fp32, one for each column, each of one thread. dx may lie where dout does. */
__device__ inline void rms_norm_backward_row(const plim_rms_norm_backward_args &args, const team_row &row,
                                             const row_view &x, uint64_t added)
{
    row_view dout = row_of(args.rows, args.dout, row), dx = row_of(args.rows, args.dx, row);
    float rstd = row.live ? load_float(args.rstd.data, args.rstd.dtype, row.index) : 0;
    sums mine = {0, 0};
    row_visit(row.head, row.columns, [&](int64_t i, auto width) {
        constexpr int N = decltype(width)::count;
        float v[N], g[N], weight[N];
        row_load(x, i, v);
        row_load(dout, i, g);
        load_floats(args.weight.data, args.weight.dtype, i, weight);
        for (int k = 0; k < N; k++) mine.a += g[k] * (args.offset + weight[k]) * v[k];
    });
    float mean_gn = team_fold(mine).a * rstd / args.rows.columns;

    row_visit(row.head, row.columns, [&](int64_t i, auto width) {
        constexpr int N = decltype(width)::count;
        float v[N], g[N], weight[N];
        row_load(x, i, v);
        row_load(dout, i, g);
        if (added) {
            float sum[N];
            load_as<float>(sum, added + (uint64_t)i * sizeof(float));
            for (int k = 0; k < N; k++) sum[k] += g[k] * v[k] * rstd;
            store_as<float>(added + (uint64_t)i * sizeof(float), sum);
        }
        load_floats(args.weight.data, args.weight.dtype, i, weight);
        for (int k = 0; k < N; k++) v[k] = rstd * (g[k] * (args.offset + weight[k]) - v[k] * rstd * mean_gn);
        row_store(dx, i, v);
    });
}

PLIM_KERNEL(rms_norm_backward, plim_rms_norm_backward_args, 1024)
{
    for_rows(args.rows, args.x,
             [&](const team_row &row, const row_view &x) { rms_norm_backward_row(args, row, x, 0); });
}

/* The rows of a part, of which the block's teams take one each at a time. A column is of the same thread in all rows:
 * the weight has vectors begin at column 0. */
__device__ inline void rms_norm_backward_part(const plim_rms_norm_backward_args &args, int64_t part, uint64_t added)
{
    const plim_cuda_rows &rows = args.rows;
    int64_t end = (part + 1) * rows.count / args.parts;
    row_visit(row_head(rows, 0), rows.columns, [&](int64_t i, auto width) {
        const float zeros[decltype(width)::count] = {};
        store_as<float>(added + (uint64_t)i * sizeof(float), zeros);
    });
    for (int64_t first = part * rows.count / args.parts; first < end; first += blockDim.y) {
        int64_t index = first + threadIdx.y;
        bool live = index < end;
        int64_t offset = live ? row_offset(rows, args.x, index) : 0;
        team_row row = {index, live ? rows.columns : 0, live ? row_head(rows, offset) : 0, live};
        rms_norm_backward_row(args, row, row_at(args.x, offset), added);
    }
}

PLIM_KERNEL(rms_norm_backward_parts, plim_rms_norm_backward_args, PLIM_RMS_PARTS_THREADS, 1)
{
    PLIM_DYNAMIC_SHARED(float, shared);
    int64_t columns = args.rows.columns;
    for (int64_t part = blockIdx.x; part < args.parts; part += gridDim.x) {
        float *dweight = (float *)args.dweight + part * columns;
        float *added = args.sums_in_shared ? shared + threadIdx.y * args.sums_step : dweight;
        rms_norm_backward_part(args, part, (uint64_t)added);
        if (!args.sums_in_shared) continue;
        __syncthreads();
        for (int64_t i = threadIdx.y * blockDim.x + threadIdx.x; i < columns; i += blockDim.x * blockDim.y) {
            float sum = shared[i];
            for (int y = 1; y < (int)blockDim.y; y++) sum += shared[y * args.sums_step + i];
            dweight[i] = sum;
        }
        __syncthreads();
    }
}

/* --- L2 norm ---------------------------------------------------------------------------------- */

PLIM_KERNEL(l2_norm, plim_l2_norm_args, 1024)
{
    for_rows(args.rows, args.x, [&](const team_row &row, const row_view &x) {
        row_view out = row_of(args.rows, args.out, row);
        sums mine = {0, 0};
        row_visit(row.head, row.columns, [&](int64_t i, auto width) {
            float v[decltype(width)::count];
            row_load(x, i, v);
            for (float a : v) mine.a += a * a;
        });
        float rstd = rsqrtf(team_fold(mine).a + args.epsilon);
        row_visit(row.head, row.columns, [&](int64_t i, auto width) {
            float v[decltype(width)::count];
            row_load(x, i, v);
            for (float &a : v) a *= rstd;
            row_store(out, i, v);
        });
        if (row.live && threadIdx.x == 0) store_float(args.rstd.data, args.rstd.dtype, row.index, rstd);
    });
}

/* With n the norm's result: dx = rstd (dout - n sum(dout n)) */
PLIM_KERNEL(l2_norm_backward, plim_l2_norm_args, 1024)
{
    for_rows(args.rows, args.x, [&](const team_row &row, const row_view &x) {
        row_view dout = row_of(args.rows, args.dout, row), dx = row_of(args.rows, args.out, row);
        float rstd = row.live ? load_float(args.rstd.data, args.rstd.dtype, row.index) : 0;
        sums mine = {0, 0};
        row_visit(row.head, row.columns, [&](int64_t i, auto width) {
            float v[decltype(width)::count], g[decltype(width)::count];
            row_load(x, i, v);
            row_load(dout, i, g);
            for (int k = 0; k < decltype(width)::count; k++) mine.a += g[k] * v[k];
        });
        float sum = team_fold(mine).a;
        row_visit(row.head, row.columns, [&](int64_t i, auto width) {
            float v[decltype(width)::count], g[decltype(width)::count];
            row_load(x, i, v);
            row_load(dout, i, g);
            for (int k = 0; k < decltype(width)::count; k++) v[k] = rstd * (g[k] - v[k] * sum);
            row_store(dx, i, v);
        });
    });
}
