/* Indices of the largest elements, and sorting. */
#include "kernels/args_ranking.h"
#include "plan_rows.h"

enum plim_status plim_cuda_plan_argmax(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    const struct plim_array *x = op->in[0], *places = op->out[0];
    struct plim_argmax_args args = {.places = places->data};
    struct plim_array numbers = *x; /* int32 has fp32's layout, and is read as a number below 2^24 */
    if (x->dtype == PLIM_I32) numbers.dtype = PLIM_F32;
    const struct plim_row_operand_of operands[] = {{&numbers, &args.x}};
    if (x->ndim < 1 || x->shape[x->ndim - 1] < 1) return PLIM_INVALID;
    if (plim_array_elements(x) != plim_array_elements(places) * x->shape[x->ndim - 1]) return PLIM_INVALID;
    if (op->part > 0) return PLIM_OK; /* part 0 has computed everything */
    enum plim_status st = plim_cuda_plan_rows(&args.rows, 1, operands);
    if (st != PLIM_OK) return st;
    args.x.dtype = x->dtype;
    if (places->dtype != PLIM_I64 || !plim_cuda_plan_is_contiguous(places)) return PLIM_UNSUPPORTED;
    return plim_cuda_plan_rows_launch(plan, "argmax", &args.rows, &args, sizeof args);
}

static bool is_flat_integer(const struct plim_array *a)
{
    return plim_cuda_plan_is_contiguous(a) && plim_cuda_plan_is_integer(a);
}

enum plim_status plim_cuda_plan_top_k(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    const struct plim_array *x = op->in[0], *values = op->out[0], *places = op->out[1];
    if (x->ndim < 1 || values->ndim != x->ndim || places->ndim != x->ndim) return PLIM_INVALID;
    int last = x->ndim - 1;
    for (int d = 0; d <= last; d++)
        if (places->shape[d] != values->shape[d] || (d < last && values->shape[d] != x->shape[d])) return PLIM_INVALID;
    if (values->shape[last] > x->shape[last]) return PLIM_INVALID;
    struct plim_top_k_args args = {
        .values = plim_cuda_plan_flat(values), .places = places->data, .taken = values->shape[last]};
    const struct plim_row_operand_of operands[] = {{x, &args.x}};
    enum plim_status st = plim_cuda_plan_rows(&args.rows, 1, operands);
    if (st != PLIM_OK || plim_array_elements(values) == 0) return st;
    if (!plim_cuda_plan_is_contiguous(values) || values->dtype != x->dtype || places->dtype != PLIM_I64 ||
        !plim_cuda_plan_is_contiguous(places))
        return PLIM_UNSUPPORTED;
    int64_t threads = args.rows.count * PLIM_CUDA_PLAN_WARP;
    return plim_cuda_plan_launch(plan, "top_k", plim_cuda_plan_blocks(plan, threads, PLIM_RANKING_THREADS),
                                 PLIM_RANKING_THREADS, &args, sizeof args);
}

static enum plim_status sort_tiles(const struct plim_cuda_plan *plan, struct plim_sort_args args, bool begins)
{
    args.begins = begins;
    int64_t tiles = (int64_t)(args.count + PLIM_SORT_TILE - 1) / PLIM_SORT_TILE;
    return plim_cuda_plan_launch(plan, "sort_tile",
                                 plim_cuda_plan_blocks(plan, tiles * PLIM_RANKING_THREADS, PLIM_RANKING_THREADS),
                                 PLIM_RANKING_THREADS, &args, sizeof args);
}

static enum plim_status sort_step(const struct plim_cuda_plan *plan, struct plim_sort_args args, uint64_t merged,
                                  uint64_t distance)
{
    args.merged = merged;
    args.distance = distance;
    return plim_cuda_plan_launch(plan, "sort_step",
                                 plim_cuda_plan_blocks(plan, (int64_t)args.count, PLIM_RANKING_THREADS),
                                 PLIM_RANKING_THREADS, &args, sizeof args);
}

enum plim_status plim_cuda_plan_sort(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    const struct plim_array *x = op->in[0], *values = op->out[0], *order = op->out[1];
    if (x->ndim != 1 || plim_array_elements(values) != x->shape[0] || plim_array_elements(order) != x->shape[0])
        return PLIM_INVALID;
    bool ranks = plim_cuda_plan_is_integer(x) || x->dtype == PLIM_F32;
    bool flat = ranks && plim_cuda_plan_is_contiguous(x) && plim_cuda_plan_is_contiguous(values) &&
                values->dtype == x->dtype && is_flat_integer(order) && order->dtype == PLIM_I64;
    if (!flat) return PLIM_UNSUPPORTED;
    const struct plim_sort_args args = {.x = plim_cuda_plan_flat(x),
                                        .values = plim_cuda_plan_flat(values),
                                        .order = order->data,
                                        .count = (uint64_t)x->shape[0]};
    if (args.count == 0) return PLIM_OK;
    enum plim_status st = sort_tiles(plan, args, true);
    for (uint64_t merged = 2 * PLIM_SORT_TILE; merged / 2 < args.count && !st; merged *= 2) {
        st = sort_step(plan, args, merged, 0);
        for (uint64_t distance = merged / 4; distance >= PLIM_SORT_TILE && !st; distance /= 2)
            st = sort_step(plan, args, 0, distance);
        if (!st) st = sort_tiles(plan, args, false);
    }
    return st;
}

enum plim_status plim_cuda_plan_histogram(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    const struct plim_array *out = op->out[0], *x = op->in[0];
    if (!is_flat_integer(out) || !is_flat_integer(x)) return PLIM_UNSUPPORTED;
    const struct plim_histogram_args args = {.out = plim_cuda_plan_flat(out),
                                             .x = plim_cuda_plan_flat(x),
                                             .bins = (uint64_t)plim_array_elements(out),
                                             .elements = (uint64_t)plim_array_elements(x)};
    if (args.bins == 0) return PLIM_OK;
    int64_t threads = (int64_t)args.bins * PLIM_RANKING_THREADS;
    return plim_cuda_plan_launch(plan, "histogram", plim_cuda_plan_blocks(plan, threads, PLIM_RANKING_THREADS),
                                 PLIM_RANKING_THREADS, &args, sizeof args);
}

enum plim_status plim_cuda_plan_scatter_add(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    const struct plim_array *out = op->out[0], *x = op->in[0], *indices = op->in[1];
    int64_t elements = plim_array_elements(x);
    if (out->ndim != 1 || plim_array_elements(indices) != elements) return PLIM_INVALID;
    bool flat = plim_cuda_plan_is_contiguous(out) && plim_cuda_plan_is_contiguous(x) && is_flat_integer(indices) &&
                plim_dtype_is_float(out->dtype) && plim_dtype_is_float(x->dtype);
    if (!flat) return PLIM_UNSUPPORTED;
    const struct plim_scatter_add_args args = {.out = plim_cuda_plan_flat(out),
                                               .x = plim_cuda_plan_flat(x),
                                               .indices = plim_cuda_plan_flat(indices),
                                               .bins = (uint64_t)out->shape[0],
                                               .elements = (uint64_t)elements};
    if (args.bins == 0) return PLIM_OK;
    int64_t threads = (int64_t)args.bins * PLIM_RANKING_THREADS;
    return plim_cuda_plan_launch(plan, "scatter_add", plim_cuda_plan_blocks(plan, threads, PLIM_RANKING_THREADS),
                                 PLIM_RANKING_THREADS, &args, sizeof args);
}
