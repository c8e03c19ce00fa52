/* Softmax and its logarithm over rows, forward and backward. A row is read twice: the second time
 * it comes from a cache unless it is very long. */
#include "args_softmax.h"
#include "normalizer.cuh"

template <bool LOG> __device__ inline void softmax_rows(const plim_softmax_args &args)
{
    const plim_cuda_rows &rows = args.rows;
    for_rows(rows, args.x, [&](const team_row &row, const row_view &x) {
        row_view out = row_of(rows, args.out, row);

        normalizer mine = {-INFINITY, 0};
        row_visit(row.head, row.columns, [&](int64_t i, auto width) {
            float v[decltype(width)::count];
            row_load(x, i, v);
            mine = normalizer::merge(mine, normalizer_of(v));
        });
        normalizer all = team_fold(mine);
        float scale = LOG ? logf(all.sum) : 1 / all.sum;

        row_visit(row.head, row.columns, [&](int64_t i, auto width) {
            constexpr int N = decltype(width)::count;
            float v[N];
            row_load(x, i, v);
            for (int k = 0; k < N; k++)
                v[k] = LOG ? v[k] - all.maximum - scale : expf(v[k] - all.maximum) * scale;
            row_store(out, i, v);
        });
    });
}

/* softmax: dx = g - out sum(g), g the gradient times out; log: dx = dout - exp(out) sum(dout) */
template <bool LOG>
__device__ inline void softmax_backward_rows(const plim_softmax_backward_args &args)
{
    const plim_cuda_rows &rows = args.rows;
    for_rows(rows, args.out, [&](const team_row &row, const row_view &out) {
        row_view dout = row_of(rows, args.dout, row);
        row_view dx = row_of(rows, args.dx, row);

        sums mine = {0, 0};
        row_visit(row.head, row.columns, [&](int64_t i, auto width) {
            float g[decltype(width)::count];
            row_load(dout, i, g);
            for (float x : g) mine.a += x;
        });
        float sum = team_fold(mine).a;

        row_visit(row.head, row.columns, [&](int64_t i, auto width) {
            constexpr int N = decltype(width)::count;
            float g[N], y[N];
            row_load(dout, i, g);
            row_load(out, i, y);
            for (int k = 0; k < N; k++) g[k] -= (LOG ? expf(y[k]) : y[k]) * sum;
            row_store(dx, i, g);
        });
    });
}

PLIM_KERNEL(softmax, plim_softmax_args, 1024)
{
    softmax_rows<false>(args);
}

PLIM_KERNEL(log_softmax, plim_softmax_args, 1024)
{
    softmax_rows<true>(args);
}

PLIM_KERNEL(softmax_backward, plim_softmax_backward_args, 1024)
{
    softmax_backward_rows<false>(args);
}

PLIM_KERNEL(log_softmax_backward, plim_softmax_backward_args, 1024)
{
    softmax_backward_rows<true>(args);
}
