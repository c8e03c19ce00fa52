#include "kernels/args_loss.h"
#include "kernels/args_softmax.h"
#include "plan_rows.h"

enum { LOSS_THREADS = 1024, LOSS_BACKWARD_THREADS = 256 };

enum plim_status plim_cuda_plan_softmax(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    struct plim_softmax_args args;
    const struct plim_row_operand_of operands[] = {{op->in[0], &args.x}, {op->out[0], &args.out}};
    enum plim_status st = plim_cuda_plan_rows(&args.rows, 2, operands);
    if (st != PLIM_OK) return st;
    const char *kernel = op->kind == PLIM_OP_LOG_SOFTMAX ? "log_softmax" : "softmax";
    return plim_cuda_plan_rows_launch(plan, kernel, &args.rows, &args, sizeof args);
}

enum plim_status plim_cuda_plan_softmax_backward(const struct plim_cuda_plan *plan,
                                                 const struct plim_op *op)
{
    struct plim_softmax_backward_args args;
    const struct plim_row_operand_of operands[] = {
        {op->in[1], &args.out}, {op->in[0], &args.dout}, {op->out[0], &args.dx}};
    enum plim_status st = plim_cuda_plan_rows(&args.rows, 3, operands);
    if (st != PLIM_OK) return st;
    bool log = op->kind == PLIM_OP_LOG_SOFTMAX_BACKWARD;
    return plim_cuda_plan_rows_launch(plan, log ? "log_softmax_backward" : "softmax_backward",
                                      &args.rows, &args, sizeof args);
}

/* Checks for shape (n, classes) with targets (n). */
static enum plim_status check_loss(const struct plim_array *log_probs,
                                   const struct plim_array *target)
{
    if (log_probs->ndim != 2 || target->ndim != 1 || log_probs->shape[0] != target->shape[0])
        return PLIM_INVALID;
    return plim_dtype_is_float(log_probs->dtype) && target->dtype == PLIM_I64 ? PLIM_OK
                                                                           : PLIM_UNSUPPORTED;
}

enum plim_status plim_cuda_plan_nll_loss(const struct plim_cuda_plan *plan,
                                         const struct plim_op *op)
{
    const struct plim_array *log_probs = op->in[0], *target = op->in[1];
    enum plim_status st = check_loss(log_probs, target);
    if (st != PLIM_OK) return st;
    if (!plim_dtype_is_float(op->out[0]->dtype) || !plim_dtype_is_float(op->out[1]->dtype))
        return PLIM_UNSUPPORTED;
    struct plim_nll_loss_args args = {.loss = plim_cuda_plan_flat(op->out[0]),
                                      .number = plim_cuda_plan_flat(op->out[1]),
                                      .log_probs = plim_cuda_plan_flat(log_probs),
                                      .target = target->data,
                                      .rows = log_probs->shape[0],
                                      .classes = log_probs->shape[1],
                                      .row_step = log_probs->stride[0],
                                      .class_step = log_probs->stride[1],
                                      .target_step = target->stride[0]};
    return plim_cuda_plan_launch(plan, "nll_loss", 1, LOSS_THREADS, &args, sizeof args);
}

enum plim_status plim_cuda_plan_nll_loss_backward(const struct plim_cuda_plan *plan,
                                                  const struct plim_op *op)
{
    const struct plim_array *dlog_probs = op->out[0], *target = op->in[1];
    enum plim_status st = check_loss(dlog_probs, target);
    if (st != PLIM_OK) return st;
    if (!plim_dtype_is_float(op->in[0]->dtype) || !plim_dtype_is_float(op->in[2]->dtype))
        return PLIM_UNSUPPORTED;
    struct plim_nll_loss_backward_args args = {.dlog_probs = plim_cuda_plan_flat(dlog_probs),
                                               .dloss = plim_cuda_plan_flat(op->in[0]),
                                               .number = plim_cuda_plan_flat(op->in[2]),
                                               .target = target->data,
                                               .rows = dlog_probs->shape[0],
                                               .classes = dlog_probs->shape[1],
                                               .row_step = dlog_probs->stride[0],
                                               .class_step = dlog_probs->stride[1],
                                               .target_step = target->stride[0]};
    if (args.rows == 0) return PLIM_OK;
    return plim_cuda_plan_launch(plan, "nll_loss_backward",
                                 plim_cuda_plan_blocks(plan, args.rows, LOSS_BACKWARD_THREADS),
                                 LOSS_BACKWARD_THREADS, &args, sizeof args);
}

/* Targets and losses of rows may have any step. */
enum plim_status plim_cuda_plan_cross_entropy(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    const struct plim_array *logits = op->in[0], *target = op->in[1], *loss = op->out[0];
    const struct plim_array *dlogits = op->n_out > 1 ? op->out[1] : NULL;
    enum plim_status st = check_loss(logits, target);
    if (st != PLIM_OK) return st;
    if (loss->ndim != 1 || loss->shape[0] != target->shape[0]) return PLIM_INVALID;
    if (!plim_dtype_is_float(loss->dtype)) return PLIM_UNSUPPORTED;
    struct plim_cross_entropy_args args = {.loss = plim_cuda_plan_flat(loss),
                                           .target = target->data,
                                           .loss_step = loss->stride[0],
                                           .target_step = target->stride[0],
                                           .scale = (float)op->alpha,
                                           .cap = op->beta > 0 ? (float)op->beta : 0};
    const struct plim_row_operand_of operands[] = {{logits, &args.logits}, {dlogits, &args.dlogits}};
    st = plim_cuda_plan_rows(&args.rows, dlogits ? 2 : 1, operands);
    if (st != PLIM_OK) return st;
    return plim_cuda_plan_rows_launch(plan, "cross_entropy", &args.rows, &args, sizeof args);
}
