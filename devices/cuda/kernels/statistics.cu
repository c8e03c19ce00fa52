/* Rows of logits that come in tiles: what is kept of a row over all of them, from which follow the target's
 * log-probability, the entropy and more, and the gradient of a tile. A team has a row. */
#include "args_statistics.h"
#include "rows.cuh"

/* Of the classes that a thread or a team has seen; folded as in softmax.cu. */
struct row_fold {
    float maximum, sum_exp, z_sum_exp, z_sum, before;

    static __device__ row_fold merge(row_fold x, row_fold y)
    {
        float maximum = fmaxf(x.maximum, y.maximum);
        float to_x = x.maximum == maximum ? 1 : expf(x.maximum - maximum);
        float to_y = y.maximum == maximum ? 1 : expf(y.maximum - maximum);
        return {maximum, x.sum_exp * to_x + y.sum_exp * to_y, x.z_sum_exp * to_x + y.z_sum_exp * to_y,
                x.z_sum + y.z_sum, fmaxf(x.before, y.before)};
    }
    __device__ row_fold from(int offset) const
    {
        return {lane_xor(maximum, offset), lane_xor(sum_exp, offset), lane_xor(z_sum_exp, offset),
                lane_xor(z_sum, offset), lane_xor(before, offset)};
    }
};

/* A logit as the model means it */
__device__ inline float transformed(float x, float scale, float cap)
{
    float z = x * scale;
    return cap == 0 ? z : cap * tanhf(z / cap);
}

/* Of N classes, of which the first `before` stand before the target. */
template <int N> __device__ inline row_fold fold_of(const float (&z)[N], int64_t before)
{
    row_fold f = {z[0], 0, 0, 0, -INFINITY};
    PLIM_UNROLL
    for (int k = 1; k < N; k++) f.maximum = fmaxf(f.maximum, z[k]);
    PLIM_UNROLL
    for (int k = 0; k < N; k++) {
        float weight = expf(z[k] - (f.maximum == -INFINITY ? 0 : f.maximum));
        f.sum_exp += weight;
        f.z_sum_exp += z[k] * weight;
        f.z_sum += z[k];
        if (k < before) f.before = fmaxf(f.before, z[k]);
    }
    return f;
}

__device__ inline float kept_of(const plim_cuda_column_operand &a, int64_t row)
{
    return a.data ? load_float(a.data, PLIM_F32, row * a.step) : 0;
}

__device__ inline void keep(const plim_cuda_column_operand &a, int64_t row, float x)
{
    if (a.data) store_float(a.data, PLIM_F32, row * a.step, x);
}

/* Columns between the tile's first and the row's target, negative where that stands before it */
__device__ inline int64_t target_of(const plim_cuda_column_operand &targets, int64_t row, int64_t start)
{
    int64_t target[1];
    load(target, targets.dtype, targets.data + (uint64_t)(row * targets.step) * bytes_of(targets.dtype));
    return target[0] - start;
}

PLIM_KERNEL(row_statistics, plim_row_statistics_args, 1024)
{
    const plim_cuda_rows &rows = args.rows;
    for_rows(rows, args.tile, [&](const team_row &row, const row_view &tile) {
        int64_t target = row.live ? target_of(args.targets, row.index, args.start) : 0;

        row_fold mine = {-INFINITY, 0, 0, 0, -INFINITY};
        row_visit(row.head, row.columns, [&](int64_t i, auto width) {
            constexpr int N = decltype(width)::count;
            float z[N];
            row_load(tile, i, z);
            PLIM_UNROLL
            for (int k = 0; k < N; k++) z[k] = transformed(z[k], args.scale, args.cap);
            mine = row_fold::merge(mine, fold_of(z, target - i));
        });
        row_fold all = team_fold(mine);

        if (threadIdx.x != 0 || !row.live) return;
        row_fold kept = {kept_of(args.maximum, row.index), kept_of(args.sum_exp, row.index),
                         kept_of(args.z_sum_exp, row.index), kept_of(args.z_sum, row.index),
                         args.maximum_before.data ? kept_of(args.maximum_before, row.index) : -INFINITY};
        all = row_fold::merge(kept, all);
        keep(args.maximum, row.index, all.maximum);
        keep(args.sum_exp, row.index, all.sum_exp);
        keep(args.z_sum_exp, row.index, all.z_sum_exp);
        keep(args.z_sum, row.index, all.z_sum);
        keep(args.maximum_before, row.index, all.before);
        if (target < 0 || target >= row.columns) return;
        float x[1];
        row_load(tile, target, x);
        keep(args.target_logit, row.index, transformed(x[0], args.scale, args.cap));
    });
}

/* A number of a row; 0 where it is not there. */
__device__ inline float number_of(const plim_cuda_column_operand &a, const team_row &row)
{
    return a.data && row.live ? load_float(a.data, a.dtype, row.index * a.step) : 0;
}

/* d log p(target) / dz = [is target] - p, d entropy / dz = -p (log p + entropy) */
PLIM_KERNEL(row_statistics_backward, plim_row_statistics_backward_args, 1024)
{
    const plim_cuda_rows &rows = args.rows;
    for_rows(rows, args.tile, [&](const team_row &row, const row_view &tile) {
        row_view dtile = row_of(rows, args.dtile, row);
        int64_t target = row.live ? target_of(args.targets, row.index, args.start) : 0;
        float log_sum = number_of(args.log_sum, row), dlog_prob = number_of(args.dlog_prob, row);
        float dentropy = number_of(args.dentropy, row), entropy = number_of(args.entropy, row);

        row_visit(row.head, row.columns, [&](int64_t i, auto width) {
            constexpr int N = decltype(width)::count;
            float x[N];
            row_load(tile, i, x);
            PLIM_UNROLL
            for (int k = 0; k < N; k++) {
                float t = args.cap == 0 ? 0 : tanhf(x[k] * args.scale / args.cap);
                float z = args.cap == 0 ? x[k] * args.scale : args.cap * t;
                float log_p = z - log_sum, p = expf(log_p);
                float is_target = i + k == target ? 1.0f : 0.0f;
                float gradient = dlog_prob * (is_target - p) - dentropy * p * (log_p + entropy);
                x[k] = gradient * (1 - t * t) * args.scale;
            }
            row_store(dtile, i, x);
        });
    });
}
