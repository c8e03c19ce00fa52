/* Triangular systems. */
#include "kernels/args_solve.h"
#include "planner.h"

enum { MAX_GRID_Y = 65535, MAX_BLOCKS = 0x7fffffff };

static struct plim_cuda_matrices matrices_of(const struct plim_array *m)
{
    int row = m->ndim - 2;
    struct plim_cuda_matrices x = {
        .data = m->data, .row_step = m->stride[row], .column_step = m->stride[row + 1]};
    for (int d = 0; d < row; d++) x.step[d] = m->stride[row - 1 - d];
    return x;
}

static bool are_systems(const struct plim_array *x, const struct plim_array *a, const struct plim_array *b)
{
    if (x->ndim < 2 || a->ndim != x->ndim || b->ndim != x->ndim) return false;
    int last = x->ndim - 1;
    for (int d = 0; d <= last; d++)
        if (b->shape[d] != x->shape[d] || a->shape[d] != x->shape[d < last ? d : last - 1]) return false;
    return true;
}

enum plim_status plim_cuda_plan_solve_triangular(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    const struct plim_array *x = op->out[0], *a = op->in[0], *b = op->in[1];
    if (!are_systems(x, a, b)) return PLIM_INVALID;
    int row = x->ndim - 2;
    int64_t rows = x->shape[row], columns = x->shape[row + 1], matrices = 1;
    if (x->dtype != PLIM_F32 || a->dtype != PLIM_F32 || b->dtype != PLIM_F32 || rows > PLIM_SOLVE_MOST ||
        row > PLIM_SOLVE_BATCH_DIMS)
        return PLIM_UNSUPPORTED;
    struct plim_solve_args args = {.x = matrices_of(x),
                                   .a = matrices_of(a),
                                   .b = matrices_of(b),
                                   .columns = columns,
                                   .rows = (int32_t)rows,
                                   .upper = op->upper};
    for (int d = 0; d < PLIM_SOLVE_BATCH_DIMS; d++) {
        int64_t extent = d < row ? x->shape[row - 1 - d] : 1;
        args.extent[d] = plim_cuda_plan_divider(extent);
        matrices *= extent;
    }
    int64_t tiles = (columns + PLIM_SOLVE_THREADS - 1) / PLIM_SOLVE_THREADS;
    if (!matrices || !tiles || !rows) return PLIM_OK;
    if (matrices > MAX_BLOCKS || tiles > MAX_GRID_Y) return PLIM_UNSUPPORTED;
    const struct plim_cuda_launch launch = {.kernel = "solve_triangular",
                                            .grid = {(uint32_t)matrices, (uint32_t)tiles, 1},
                                            .block = {PLIM_SOLVE_THREADS, 1, 1},
                                            .args = &args,
                                            .args_bytes = sizeof args};
    return plan->emit(plan->user, &launch);
}
