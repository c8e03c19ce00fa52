/* Mean negative log likelihood, and its gradient; cross entropy of logits with its gradient. A target out of range
 * counts as a class of no likelihood that can be told: the loss is NaN, and no gradient is written; the gradient of
 * logits is NaN. */
#include "args_loss.h"
#include "devices/op.h"
#include "normalizer.cuh"

PLIM_KERNEL(nll_loss, plim_nll_loss_args, 1024)
{
    sums mine = {0, 0}; /* losses, targets */
    for (int64_t row = threadIdx.x; row < args.rows; row += blockDim.x) {
        int64_t target = ((const int64_t *)args.target)[row * args.target_step];
        if (target == PLIM_IGNORED_TARGET) continue;
        bool known = target >= 0 && target < args.classes;
        int64_t at = row * args.row_step + target * args.class_step;
        mine.a -= known ? load_float(args.log_probs.data, args.log_probs.dtype, at) : NAN;
        mine.b += 1;
    }
    sums all = team_fold(mine);
    if (threadIdx.x == 0) {
        store_float(args.loss.data, args.loss.dtype, 0, all.a / all.b);
        store_float(args.number.data, args.number.dtype, 0, all.b);
    }
}

PLIM_KERNEL(nll_loss_backward, plim_nll_loss_backward_args, 256)
{
    float gradient = -load_float(args.dloss.data, args.dloss.dtype, 0) /
                     load_float(args.number.data, args.number.dtype, 0);
    int64_t stride = (int64_t)gridDim.x * blockDim.x;
    for (int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; row < args.rows;
         row += stride) {
        int64_t target = ((const int64_t *)args.target)[row * args.target_step];
        if (target < 0 || target >= args.classes) continue; /* ignored ones are negative */
        store_float(args.dlog_probs.data, args.dlog_probs.dtype,
                    row * args.row_step + target * args.class_step, gradient);
    }
}

/* --- cross entropy of logits ------------------------------------------------------------------ */

/* Of part of a row: what the softmax takes, and the target's logit, which is in one part. It is kept here, because the
 * gradient may take the logits' place. */
struct entropy {
    normalizer all;
    float own;

    static __device__ entropy merge(entropy x, entropy y)
    {
        return {normalizer::merge(x.all, y.all), x.own + y.own};
    }
    __device__ entropy from(int offset) const
    {
        return {all.from(offset), lane_xor(own, offset)};
    }
};

/* v: logits, become cap tanh(v / cap) */
template <int N> __device__ inline void limit(float (&v)[N], float cap)
{
    if (cap == 0) return;
    PLIM_UNROLL
    for (int k = 0; k < N; k++) v[k] = cap * tanhf(v[k] / cap);
}

__device__ inline entropy entropy_of_row(const plim_cross_entropy_args &args, const team_row &row, const row_view &x,
                                         int64_t target)
{
    entropy mine = {{-INFINITY, 0}, 0};
    row_visit(row.head, row.columns, [&](int64_t i, auto width) {
        constexpr int N = decltype(width)::count;
        float v[N];
        row_load(x, i, v);
        limit(v, args.cap);
        mine.all = normalizer::merge(mine.all, normalizer_of(v));
        PLIM_UNROLL
        for (int k = 0; k < N; k++)
            if (i + k == target) mine.own = v[k];
    });
    return team_fold(mine);
}

/* d/dx scale (log(sum(exp(y))) - y[target]), y = cap tanh(x / cap): scale (softmax(y) - [target]) (1 - y^2 / cap^2) */
__device__ inline void store_gradient(const plim_cross_entropy_args &args, const team_row &row, const row_view &x,
                                      const row_view &dx, int64_t target, const entropy &e, float scale)
{
    float inverse = 1 / e.all.sum, of_cap = args.cap == 0 ? 0 : 1 / args.cap;
    row_visit(row.head, row.columns, [&](int64_t i, auto width) {
        constexpr int N = decltype(width)::count;
        float v[N];
        row_load(x, i, v);
        limit(v, args.cap);
        PLIM_UNROLL
        for (int k = 0; k < N; k++) {
            float t = v[k] * of_cap, p = expf(v[k] - e.all.maximum) * inverse;
            v[k] = scale * (i + k == target ? p - 1 : p) * (1 - t * t);
        }
        row_store(dx, i, v);
    });
}

__device__ inline void store_zeros(const team_row &row, const row_view &dx)
{
    row_visit(row.head, row.columns, [&](int64_t i, auto width) {
        const float v[decltype(width)::count] = {};
        row_store(dx, i, v);
    });
}

PLIM_KERNEL(cross_entropy, plim_cross_entropy_args, 1024)
{
    for_rows(args.rows, args.logits, [&](const team_row &row, const row_view &x) {
        row_view dx = row_of(args.rows, args.dlogits, row);
        int64_t target = row.live ? ((const int64_t *)args.target)[row.index * args.target_step] : 0;
        bool ignored = target == PLIM_IGNORED_TARGET, known = target >= 0 && target < args.rows.columns;
        entropy e = entropy_of_row(args, row, x, target);
        float scale = known ? args.scale : NAN;
        if (row.live && threadIdx.x == 0)
            store_float(args.loss.data, args.loss.dtype, row.index * args.loss_step,
                        ignored ? 0 : scale * (e.all.maximum + logf(e.all.sum) - e.own));
        if (args.dlogits.data == 0) return;
        if (ignored)
            store_zeros(row, dx);
        else
            store_gradient(args, row, x, dx, target, e, scale);
    });
}
