/* Finding nonzero elements, and writing elements at their positions. */
#include "kernels/args_marked.h"
#include "planner.h"
#include "walk.h"

/* Each block reads everything before its share; this number of blocks does that for few elements each at once. */
static int64_t blocks_of(uint64_t elements)
{
    enum { MOST = 64, SHARE = 16 * PLIM_MARKED_THREADS };
    int64_t blocks = (int64_t)((elements + SHARE - 1) / SHARE);
    return blocks < 1 ? 1 : blocks < MOST ? blocks : MOST;
}

enum plim_status plim_cuda_plan_nonzero(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    const struct plim_array *places = op->out[0], *a = op->in[0];
    bool has_columns = places->ndim == 2;
    if (places->ndim < 1 || places->ndim > 2 || (has_columns && places->shape[1] != a->ndim)) return PLIM_INVALID;
    if (places->dtype != PLIM_I64) return PLIM_UNSUPPORTED;
    const int64_t bytes = (int64_t)sizeof(int64_t);
    struct plim_nonzero_args args = {.places = places->data,
                                     .step = places->stride[0] * bytes,
                                     .column_step = has_columns ? places->stride[1] * bytes : 0,
                                     .room = (uint64_t)places->shape[0],
                                     .columns = has_columns ? a->ndim : 0};
    for (int d = 0; d < a->ndim; d++) args.extent[d] = plim_cuda_plan_divider(a->shape[a->ndim - 1 - d]);
    enum plim_status st = plim_walk_init(&args.walk, (const struct plim_array *const[]){a}, 1, PLIM_WALK_ORDERED);
    if (st != PLIM_OK || args.room == 0) return st;
    return plim_cuda_plan_launch(plan, "nonzero", blocks_of(args.walk.elements), PLIM_MARKED_THREADS, &args,
                                 sizeof args);
}

enum plim_status plim_cuda_plan_masked_scatter(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    const struct plim_array *out = op->out[0], *a = op->in[0], *mask = op->in[1], *source = op->in[2];
    if (!plim_cuda_plan_same_shape(out, a) || !plim_cuda_plan_same_shape(mask, a)) return PLIM_INVALID;
    if (source->dtype != a->dtype || !plim_cuda_plan_is_contiguous(source)) return PLIM_UNSUPPORTED;
    struct plim_masked_scatter_args args = {.source = source->data, .count = (uint64_t)plim_array_elements(source)};
    enum plim_status st =
        plim_walk_init(&args.walk, (const struct plim_array *const[]){out, a, mask}, 3, PLIM_WALK_ORDERED);
    if (st != PLIM_OK || args.walk.elements == 0) return st;
    bool integers = plim_cuda_plan_is_integer(out) && plim_cuda_plan_is_integer(a);
    return plim_cuda_plan_launch(plan, integers ? "masked_scatter_integer" : "masked_scatter_float",
                                 blocks_of(args.walk.elements), PLIM_MARKED_THREADS, &args, sizeof args);
}
