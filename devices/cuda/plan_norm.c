#include "kernels/args_norm.h"
#include "plan_rows.h"

enum { MAX_GRID_Y = 65535 };

/* Arrays that are read as they lie: of a floating type, contiguous, of `elements`; or not there. */
static enum plim_status check_flat(const struct plim_array *a, int64_t elements)
{
    if (!a) return PLIM_OK;
    if (plim_array_elements(a) != elements) return PLIM_INVALID;
    return plim_dtype_is_float(a->dtype) && plim_cuda_plan_is_contiguous(a) ? PLIM_OK
                                                                         : PLIM_UNSUPPORTED;
}

static enum plim_status check_statistics(const struct plim_cuda_rows *rows,
                                         const struct plim_array *mean,
                                         const struct plim_array *rstd)
{
    enum plim_status st = check_flat(mean, rows->count);
    return st == PLIM_OK ? check_flat(rstd, rows->count) : st;
}

enum plim_status plim_cuda_plan_layer_norm(const struct plim_cuda_plan *plan,
                                           const struct plim_op *op)
{
    const struct plim_array *weight = op->in[1], *bias = op->in[2];
    struct plim_layer_norm_args args = {.mean = plim_cuda_plan_flat(op->out[1]),
                                        .rstd = plim_cuda_plan_flat(op->out[2]),
                                        .weight = plim_cuda_plan_flat(weight),
                                        .bias = plim_cuda_plan_flat(bias),
                                        .epsilon = (float)op->alpha};
    const struct plim_row_operand_of operands[] = {{op->in[0], &args.x}, {op->out[0], &args.out}};
    enum plim_status st;
    PLIM_TRY(plim_cuda_plan_rows(&args.rows, 2, operands));
    PLIM_TRY(check_statistics(&args.rows, op->out[1], op->out[2]));
    PLIM_TRY(check_flat(weight, args.rows.columns));
    PLIM_TRY(check_flat(bias, args.rows.columns));
    plim_cuda_plan_rows_beside(&args.rows, &args.x, weight);
    plim_cuda_plan_rows_beside(&args.rows, &args.x, bias);
    st = plim_cuda_plan_rows_launch(plan, "layer_norm", &args.rows, &args, sizeof args);
out:
    return st;
}

enum plim_status plim_cuda_plan_layer_norm_backward(const struct plim_cuda_plan *plan,
                                                    const struct plim_op *op)
{
    const struct plim_array *weight = op->in[4];
    struct plim_layer_norm_backward_args args = {.mean = plim_cuda_plan_flat(op->in[2]),
                                                 .rstd = plim_cuda_plan_flat(op->in[3]),
                                                 .weight = plim_cuda_plan_flat(weight)};
    const struct plim_row_operand_of operands[] = {
        {op->in[1], &args.x}, {op->in[0], &args.dout}, {op->out[0], &args.dx}};
    enum plim_status st;
    PLIM_TRY(plim_cuda_plan_rows(&args.rows, 3, operands));
    PLIM_TRY(check_statistics(&args.rows, op->in[2], op->in[3]));
    PLIM_TRY(check_flat(weight, args.rows.columns));
    plim_cuda_plan_rows_beside(&args.rows, &args.x, weight);
    st = plim_cuda_plan_rows_launch(plan, "layer_norm_backward", &args.rows, &args, sizeof args);
out:
    return st;
}

static enum plim_status launch_params(const struct plim_cuda_plan *plan,
                                      const struct plim_layer_norm_params_args *args)
{
    int64_t columns = (args->rows.columns + PLIM_PARAMS_COLUMNS - 1) / PLIM_PARAMS_COLUMNS;
    int64_t rows = args->rows.count / args->parts + 1;
    uint32_t sharing = 1;
    while (sharing < PLIM_PARAMS_ROW_THREADS && sharing < rows) sharing *= 2;
    struct plim_cuda_launch launch = {
        .kernel = "layer_norm_backward_params",
        .grid = {(uint32_t)columns, (uint32_t)(args->parts < MAX_GRID_Y ? args->parts : MAX_GRID_Y),
                 1},
        .block = {PLIM_PARAMS_COLUMNS, sharing, 1},
        .args = args,
        .args_bytes = sizeof *args};
    return plan->emit(plan->user, &launch);
}

enum plim_status plim_cuda_plan_layer_norm_params(const struct plim_cuda_plan *plan,
                                                  const struct plim_op *op)
{
    const struct plim_array *dweight = op->out[0], *dbias = op->n_out > 1 ? op->out[1] : NULL;
    struct plim_layer_norm_params_args args = {.mean = plim_cuda_plan_flat(op->in[2]),
                                               .rstd = plim_cuda_plan_flat(op->in[3]),
                                               .dweight = plim_cuda_plan_flat(dweight),
                                               .dbias = plim_cuda_plan_flat(dbias),
                                               .parts = dweight->ndim > 1 ? dweight->shape[0] : 1};
    const struct plim_row_operand_of operands[] = {{op->in[1], &args.x}, {op->in[0], &args.dout}};
    enum plim_status st;
    PLIM_TRY(plim_cuda_plan_rows(&args.rows, 2, operands));
    PLIM_TRY(check_statistics(&args.rows, op->in[2], op->in[3]));
    PLIM_TRY(check_flat(dweight, args.parts * args.rows.columns));
    PLIM_TRY(check_flat(dbias, args.parts * args.rows.columns));
    if (args.parts > 0 && args.rows.columns > 0) st = launch_params(plan, &args);
out:
    return st;
}
