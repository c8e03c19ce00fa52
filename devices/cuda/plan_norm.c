#include "kernels/args_norm.h"
#include "plan_rows.h"

enum { MAX_GRID_Y = 65535 };

/* For rms_norm_backward_parts, which has few blocks per GPU. */
enum { PARTS_SHARED_BYTES = 48 << 10, PARTS_WARP_COLUMNS = 1024, VECTOR = 8, VECTOR_BYTES = 16 };

/* Checks arrays that are read in their layout: floating-point, contiguous, with `elements`; or absent. */
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

/* --- RMSNorm ---------------------------------------------------------------------------------- */

enum plim_status plim_cuda_plan_rms_norm(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    const struct plim_array *rstd = op->out[1], *weight = op->in[1];
    struct plim_rms_norm_args args = {.rstd = plim_cuda_plan_flat(rstd),
                                      .weight = plim_cuda_plan_flat(weight),
                                      .epsilon = (float)op->alpha,
                                      .offset = (float)op->beta};
    const struct plim_row_operand_of operands[] = {{op->in[0], &args.x}, {op->out[0], &args.out}};
    enum plim_status st;
    PLIM_TRY(plim_cuda_plan_rows(&args.rows, 2, operands));
    PLIM_TRY(check_flat(rstd, args.rows.count));
    PLIM_TRY(check_flat(weight, args.rows.columns));
    plim_cuda_plan_rows_beside(&args.rows, &args.x, weight);
    st = plim_cuda_plan_rows_launch(plan, "rms_norm", &args.rows, &args, sizeof args);
out:
    return st;
}

/* Rows of up to PARTS_WARP_COLUMNS are processed by at most a warp, as many at a time as there is room for their sums;
 * longer ones by a whole block. */
static enum plim_status launch_parts(const struct plim_cuda_plan *plan, struct plim_rms_norm_backward_args *args)
{
    int64_t columns = args->rows.columns, step = (columns + VECTOR - 1) / VECTOR * VECTOR;
    int64_t row_bytes = step * (int64_t)sizeof(float);
    uint32_t most = columns > PARTS_WARP_COLUMNS ? PLIM_RMS_PARTS_THREADS : PLIM_CUDA_PLAN_WARP, team = 1;
    while (team < most && team * VECTOR < columns) team *= 2;
    uint32_t together = team > PLIM_CUDA_PLAN_WARP ? 1 : PLIM_RMS_PARTS_THREADS / team;
    while (together > 1 && together * row_bytes > PARTS_SHARED_BYTES) together /= 2;
    args->sums_in_shared = together * row_bytes <= PARTS_SHARED_BYTES;
    args->sums_step = step;
    if (!args->sums_in_shared && (step != columns || args->dweight % VECTOR_BYTES)) args->rows.vectors = 0;
    if (columns == 0 || args->parts == 0) return PLIM_OK;
    struct plim_cuda_launch launch = {.kernel = "rms_norm_backward_parts",
                                      .grid = {(uint32_t)args->parts, 1, 1},
                                      .block = {team, together, 1},
                                      .shared_bytes = args->sums_in_shared ? (uint32_t)(together * row_bytes) : 0,
                                      .args = args,
                                      .args_bytes = sizeof *args};
    return plan->emit(plan->user, &launch);
}

static enum plim_status check_parts(const struct plim_array *dweight, int64_t columns)
{
    if (dweight->ndim != 2 || dweight->shape[1] != columns) return PLIM_INVALID;
    bool fits = dweight->dtype == PLIM_F32 && plim_cuda_plan_is_contiguous(dweight) && dweight->shape[0] < INT32_MAX;
    return fits ? PLIM_OK : PLIM_UNSUPPORTED;
}

enum plim_status plim_cuda_plan_rms_norm_backward(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    const struct plim_array *weight = op->in[2], *rstd = op->in[3], *dweight = op->n_out > 1 ? op->out[1] : NULL;
    struct plim_rms_norm_backward_args args = {.rstd = plim_cuda_plan_flat(rstd),
                                               .weight = plim_cuda_plan_flat(weight),
                                               .dweight = dweight ? dweight->data : 0,
                                               .parts = dweight ? dweight->shape[0] : 0,
                                               .offset = (float)op->beta};
    const struct plim_row_operand_of operands[] = {
        {op->in[1], &args.x}, {op->in[0], &args.dout}, {op->out[0], &args.dx}};
    enum plim_status st;
    PLIM_TRY(plim_cuda_plan_rows(&args.rows, 3, operands));
    PLIM_TRY(check_flat(rstd, args.rows.count));
    PLIM_TRY(check_flat(weight, args.rows.columns));
    plim_cuda_plan_rows_beside(&args.rows, &args.x, weight);
    if (dweight) {
        PLIM_TRY(check_parts(dweight, args.rows.columns));
        st = launch_parts(plan, &args);
    } else {
        st = plim_cuda_plan_rows_launch(plan, "rms_norm_backward", &args.rows, &args, sizeof args);
    }
out:
    return st;
}

/* --- L2 norm ---------------------------------------------------------------------------------- */

enum plim_status plim_cuda_plan_l2_norm(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    struct plim_l2_norm_args args = {.rstd = plim_cuda_plan_flat(op->out[1]), .epsilon = (float)op->alpha};
    const struct plim_row_operand_of operands[] = {{op->in[0], &args.x}, {op->out[0], &args.out}};
    enum plim_status st;
    PLIM_TRY(plim_cuda_plan_rows(&args.rows, 2, operands));
    PLIM_TRY(check_flat(op->out[1], args.rows.count));
    st = plim_cuda_plan_rows_launch(plan, "l2_norm", &args.rows, &args, sizeof args);
out:
    return st;
}

enum plim_status plim_cuda_plan_l2_norm_backward(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    struct plim_l2_norm_args args = {.rstd = plim_cuda_plan_flat(op->in[1])};
    const struct plim_row_operand_of operands[] = {
        {op->in[0], &args.x}, {op->in[2], &args.dout}, {op->out[0], &args.out}};
    enum plim_status st;
    PLIM_TRY(plim_cuda_plan_rows(&args.rows, 3, operands));
    PLIM_TRY(check_flat(op->in[1], args.rows.count));
    st = plim_cuda_plan_rows_launch(plan, "l2_norm_backward", &args.rows, &args, sizeof args);
out:
    return st;
}
