/* Statistics of rows of logits, tile by tile. */
#include "kernels/args_statistics.h"
#include "plan_rows.h"

enum { TILE, TARGETS, LOG_SUM, DLOG_PROB, DENTROPY, ENTROPY };

/* Describes one number per row; NULL: all zero. */
static enum plim_status set_column(const struct plim_array *a, const struct plim_array *tile,
                                   struct plim_cuda_column_operand *to)
{
    *to = (struct plim_cuda_column_operand){0};
    if (!a) return PLIM_OK;
    if (a->ndim != 1 || a->shape[0] != tile->shape[0]) return PLIM_INVALID;
    *to = (struct plim_cuda_column_operand){.data = a->data, .step = a->stride[0], .dtype = a->dtype};
    return PLIM_OK;
}

static const struct plim_array *output(const struct plim_op *op, int i)
{
    return i < op->n_out ? op->out[i] : NULL;
}

enum plim_status plim_cuda_plan_row_statistics(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    const struct plim_array *tile = op->in[TILE];
    struct plim_row_statistics_args args = {
        .start = op->start, .scale = (float)op->alpha, .cap = (float)op->beta};
    struct plim_cuda_column_operand *const kept[] = {&args.maximum,   &args.sum_exp, &args.target_logit,
                                                     &args.z_sum_exp, &args.z_sum,   &args.maximum_before};
    if (tile->ndim != 2) return PLIM_INVALID;
    enum plim_status st = plim_cuda_plan_rows(&args.rows, 1, &(struct plim_row_operand_of){tile, &args.tile});
    if (st == PLIM_OK) st = set_column(op->in[TARGETS], tile, &args.targets);
    for (int i = 0; i < PLIM_OP_MAX_OUT && st == PLIM_OK; i++) {
        st = set_column(output(op, i), tile, kept[i]);
        if (st == PLIM_OK && kept[i]->data && kept[i]->dtype != PLIM_F32) st = PLIM_UNSUPPORTED;
    }
    if (st != PLIM_OK) return st;
    if (!plim_cuda_plan_is_integer(op->in[TARGETS])) return PLIM_UNSUPPORTED;
    return plim_cuda_plan_rows_launch(plan, "row_statistics", &args.rows, &args, sizeof args);
}

enum plim_status plim_cuda_plan_row_statistics_backward(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    const struct plim_array *tile = op->in[TILE];
    struct plim_row_statistics_backward_args args = {
        .start = op->start, .scale = (float)op->alpha, .cap = (float)op->beta};
    const struct plim_row_operand_of operands[] = {{op->out[0], &args.dtile}, {tile, &args.tile}};
    struct plim_cuda_column_operand *const columns[] = {[LOG_SUM] = &args.log_sum,
                                                        [DLOG_PROB] = &args.dlog_prob,
                                                        [DENTROPY] = &args.dentropy,
                                                        [ENTROPY] = &args.entropy};
    if (tile->ndim != 2 || !plim_cuda_plan_input(op, DENTROPY) != !plim_cuda_plan_input(op, ENTROPY))
        return PLIM_INVALID;
    enum plim_status st = plim_cuda_plan_rows(&args.rows, 2, operands);
    if (st == PLIM_OK) st = set_column(op->in[TARGETS], tile, &args.targets);
    for (int i = LOG_SUM; i <= ENTROPY && st == PLIM_OK; i++) {
        st = set_column(plim_cuda_plan_input(op, i), tile, columns[i]);
        if (st == PLIM_OK && columns[i]->data && !plim_dtype_is_float(columns[i]->dtype)) st = PLIM_UNSUPPORTED;
    }
    if (st != PLIM_OK) return st;
    if (!plim_cuda_plan_is_integer(op->in[TARGETS])) return PLIM_UNSUPPORTED;
    return plim_cuda_plan_rows_launch(plan, "row_statistics_backward", &args.rows, &args, sizeof args);
}
