/* What stands where an index says. */
#include "kernels/args_indexed.h"
#include "plan_rows.h"

/* `rows` and `named` along the last dimension; the kernel's name without its type. */
static enum plim_status by_index(const struct plim_cuda_plan *plan, const struct plim_array *rows,
                                 const struct plim_array *named, const struct plim_array *indices,
                                 const char *const kernels[2])
{
    if (rows->ndim < 1 || named->ndim < 1 || indices->ndim != rows->ndim) return PLIM_INVALID;
    for (int d = 0; d < rows->ndim; d++)
        if (rows->shape[d] != indices->shape[d]) return PLIM_INVALID;
    int64_t width = rows->shape[rows->ndim - 1], room = named->shape[named->ndim - 1];
    int64_t elements = plim_array_elements(rows);
    if (elements == 0) return PLIM_OK;
    if (room < 1 || elements / width != plim_array_elements(named) / room) return PLIM_INVALID;
    bool flat = plim_cuda_plan_is_contiguous(rows) && plim_cuda_plan_is_contiguous(named) &&
                plim_cuda_plan_is_contiguous(indices) && plim_cuda_plan_is_integer(indices);
    if (!flat) return PLIM_UNSUPPORTED;
    bool integers = plim_cuda_plan_is_integer(rows) && plim_cuda_plan_is_integer(named);
    const struct plim_by_index_args args = {.rows = plim_cuda_plan_flat(rows),
                                            .named = plim_cuda_plan_flat(named),
                                            .indices = plim_cuda_plan_flat(indices),
                                            .elements = (uint64_t)elements,
                                            .room = (uint64_t)room,
                                            .width = plim_divider_of((uint64_t)width)};
    return plim_cuda_plan_launch(plan, kernels[integers], plim_cuda_plan_all_blocks(elements, PLIM_INDEXED_THREADS),
                                 PLIM_INDEXED_THREADS, &args, sizeof args);
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
