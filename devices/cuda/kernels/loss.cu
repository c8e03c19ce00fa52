/* Mean negative log likelihood, and its gradient. A target out of range counts as a class of no
 * likelihood that can be told: the loss is NaN, and no gradient is written. */
#include "args_loss.h"
#include "devices/op.h"
#include "rows.cuh"

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
