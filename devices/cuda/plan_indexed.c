/* Reading and writing elements and rows by index. */
#include "kernels/args_indexed.h"
#include "plan_rows.h"
#include "walk.h"

/* Returns the number of adjacent indices in memory, which leading dimensions may repeat; 0 for other layouts. */
static int64_t period_of(const struct plim_array *indices)
{
    int64_t period = 1;
    int d = indices->ndim - 1;
    for (; d >= 0 && (indices->shape[d] == 1 || indices->stride[d] == period); d--) period *= indices->shape[d];
    for (; d >= 0; d--)
        if (indices->shape[d] != 1 && indices->stride[d] != 0) return 0;
    return period;
}

/* Describes everything except strides; PLIM_UNSUPPORTED, PLIM_INVALID: the kernels cannot process it. */
static enum plim_status by_index_args(const struct plim_array *rows, const struct plim_array *named,
                                      const struct plim_array *indices, struct plim_by_index_args *args)
{
    if (rows->ndim < 1 || named->ndim < 1 || indices->ndim != rows->ndim) return PLIM_INVALID;
    for (int d = 0; d < rows->ndim; d++)
        if (rows->shape[d] != indices->shape[d]) return PLIM_INVALID;
    int64_t width = rows->shape[rows->ndim - 1], room = named->shape[named->ndim - 1];
    int64_t elements = plim_array_elements(rows);
    *args = (struct plim_by_index_args){.rows = plim_cuda_plan_flat(rows),
                                        .named = plim_cuda_plan_flat(named),
                                        .indices = plim_cuda_plan_flat(indices)};
    if (elements == 0) return PLIM_OK;
    if (room < 1 || elements / width != plim_array_elements(named) / room) return PLIM_INVALID;
    if (!plim_cuda_plan_is_contiguous(named) || !period_of(indices) || !plim_cuda_plan_is_integer(indices))
        return PLIM_UNSUPPORTED;
    args->elements = (uint64_t)elements;
    args->room = (uint64_t)room;
    args->width = plim_divider_of((uint64_t)width);
    args->period = plim_divider_of((uint64_t)period_of(indices));
    return PLIM_OK;
}

/* `rows` and `named` along the last dimension; `kernel` is the kernel's name without its type. */
static enum plim_status by_index(const struct plim_cuda_plan *plan, const struct plim_array *rows,
                                 const struct plim_array *named, const struct plim_array *indices,
                                 const char *const kernels[2])
{
    struct plim_by_index_args args;
    enum plim_status st = by_index_args(rows, named, indices, &args);
    if (st != PLIM_OK || args.elements == 0) return st;
    if (!plim_cuda_plan_is_contiguous(rows)) return PLIM_UNSUPPORTED;
    bool integers = plim_cuda_plan_is_integer(rows) && plim_cuda_plan_is_integer(named);
    int64_t blocks = plim_cuda_plan_all_blocks((int64_t)args.elements, PLIM_INDEXED_THREADS);
    return plim_cuda_plan_launch(plan, kernels[integers], blocks, PLIM_INDEXED_THREADS, &args, sizeof args);
}

enum plim_status plim_cuda_plan_gather(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    static const char *const kernels[] = {"take_float", "take_integer"};
    return by_index(plan, op->out[0], op->in[0], op->in[1], kernels);
}

enum plim_status plim_cuda_plan_scatter(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    static const char *const kernels[] = {"put_float", "put_integer"};
    return by_index(plan, op->in[0], op->out[0], op->in[1], kernels);
}

enum plim_status plim_cuda_plan_add_by_index(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    const struct plim_array *rows = op->in[0], *named = op->out[0];
    struct plim_add_by_index_args args = {.count = plim_divider_of(1)};
    enum plim_status st = by_index_args(rows, named, op->in[1], &args.by);
    if (st != PLIM_OK || args.by.elements == 0) return st;
    bool floats = plim_dtype_is_float(rows->dtype) && plim_dtype_is_float(named->dtype);
    if (!floats || rows->ndim > PLIM_INDEXED_DIMS) return PLIM_UNSUPPORTED;
    for (int d = 0; d < rows->ndim; d++) args.step[PLIM_INDEXED_DIMS - rows->ndim + d] = rows->stride[d];
    if (rows->ndim > 1) args.count = plim_divider_of((uint64_t)rows->shape[rows->ndim - 2]);
    int64_t threads = (int64_t)(args.by.elements / args.by.width.divisor) * PLIM_INDEXED_WARP;
    return plim_cuda_plan_launch(plan, "add_by_index", plim_cuda_plan_all_blocks(threads, PLIM_INDEXED_THREADS),
                                 PLIM_INDEXED_THREADS, &args, sizeof args);
}

/* --- whole rows ------------------------------------------------------------------------------- */

/* Views `named` as rows that repeat its first one, and describes how its leading dimensions number them. */
static enum plim_status count_rows(const struct plim_array *rows, const struct plim_array *named,
                                   const struct plim_array *indices, struct plim_array *first,
                                   struct plim_rows_by_index_args *args)
{
    int leading = named->ndim - rows->ndim + 1, bytes = plim_dtype_size((enum plim_dtype)named->dtype);
    if (rows->ndim < 1 || leading < 1 || indices->ndim != 1 || indices->shape[0] != rows->shape[0])
        return PLIM_INVALID;
    *first = *rows;
    first->data = named->data;
    first->dtype = named->dtype;
    first->stride[0] = 0;
    for (int d = 1; d < rows->ndim; d++) {
        if (named->shape[leading - 1 + d] != rows->shape[d]) return PLIM_INVALID;
        first->stride[d] = named->stride[leading - 1 + d];
    }
    args->count = 1;
    args->leading = (uint32_t)leading;
    for (int d = 0; d < leading; d++) {
        int from = leading - 1 - d;
        args->count *= (uint64_t)named->shape[from];
        args->extent[d] = plim_cuda_plan_divider(named->shape[from]);
        args->step[d] = named->stride[from] * bytes;
    }
    return PLIM_OK;
}

static bool row_steps_are_vectors(const struct plim_rows_by_index_args *args)
{
    bool are = plim_walk_is_vector(&args->walk);
    int bytes = plim_walk_element_bytes(&args->walk, 1);
    for (uint32_t d = 0; are && d < args->leading; d++)
        are = plim_address_is_aligned((uint64_t)args->step[d], bytes, PLIM_WALK_VECTOR);
    return are;
}

/* `kernels`: for floats by vectors, for floats, for integers. */
static enum plim_status move_rows(const struct plim_cuda_plan *plan, const struct plim_array *rows,
                                  const struct plim_array *named, const struct plim_array *indices,
                                  const char *const kernels[3])
{
    struct plim_rows_by_index_args args = {.count = 0};
    struct plim_array first, wide = *indices;
    enum plim_status st = count_rows(rows, named, indices, &first, &args);
    if (st != PLIM_OK) return st;
    if (!plim_cuda_plan_is_integer(indices)) return PLIM_UNSUPPORTED;
    for (; wide.ndim < rows->ndim; wide.ndim++) {
        wide.shape[wide.ndim] = 1;
        wide.stride[wide.ndim] = 0;
    }
    st = plim_walk_init(&args.walk, (const struct plim_array *const[]){rows, &first, &wide}, 3, PLIM_WALK_KEEP_INNER);
    if (st != PLIM_OK || args.walk.elements == 0) return st;
    bool integers = plim_cuda_plan_is_integer(rows) && plim_cuda_plan_is_integer(named);
    bool vector = !integers && row_steps_are_vectors(&args);
    int64_t work = (int64_t)args.walk.elements / (vector ? PLIM_WALK_VECTOR : 1);
    return plim_cuda_plan_launch(plan, kernels[integers ? 2 : !vector],
                                 plim_cuda_plan_all_blocks(work, PLIM_INDEXED_THREADS), PLIM_INDEXED_THREADS, &args,
                                 sizeof args);
}

enum plim_status plim_cuda_plan_take_rows(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    static const char *const kernels[] = {"take_rows_float_vector", "take_rows_float_scalar",
                                          "take_rows_integer_scalar"};
    return move_rows(plan, op->out[0], op->in[0], op->in[1], kernels);
}

enum plim_status plim_cuda_plan_put_rows(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    static const char *const kernels[] = {"put_rows_float_vector", "put_rows_float_scalar",
                                          "put_rows_integer_scalar"};
    return move_rows(plan, op->in[0], op->out[0], op->in[1], kernels);
}
