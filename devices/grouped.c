#include "grouped.h"

/* True if groups are summed over; otherwise they are rows of the result. */
static bool is_summed(const struct plim_op *op)
{
    return op->out[0]->ndim == 3;
}

int64_t plim_grouped_count(const struct plim_op *op)
{
    return is_summed(op) ? op->out[0]->shape[0] : op->in[1]->shape[0];
}

int64_t plim_grouped_rows(const struct plim_op *op)
{
    return op->in[0]->shape[is_summed(op)];
}

enum plim_status plim_grouped_check(const struct plim_op *op)
{
    const struct plim_array *y = op->out[0], *a = op->in[0], *b = op->in[1];
    bool summed = is_summed(op);
    if (a->ndim != 2 || b->ndim != (summed ? 2 : 3) || y->ndim != (summed ? 3 : 2)) return PLIM_INVALID;
    return plim_array_elements(op->in[2]) == plim_grouped_count(op) ? PLIM_OK : PLIM_INVALID;
}

/* Returns elements `from` to `to` of dimension `dim`. */
static struct plim_array part(const struct plim_array *a, int dim, int64_t from, int64_t to)
{
    struct plim_array view = *a;
    view.shape[dim] = to - from;
    view.data += (uint64_t)(from * a->stride[dim] * plim_dtype_size((enum plim_dtype)a->dtype));
    return view;
}

/* Returns matrix `index` of a batch. */
static struct plim_array matrix(const struct plim_array *a, int64_t index)
{
    struct plim_array view = part(a, 0, index, index + 1);
    for (int d = 0; d < 2; d++) {
        view.shape[d] = view.shape[d + 1];
        view.stride[d] = view.stride[d + 1];
    }
    view.ndim = 2;
    return view;
}

struct plim_op plim_grouped_product(const struct plim_op *op, int64_t index, int64_t from, int64_t to,
                                    struct plim_array parts[PLIM_GROUP_PARTS])
{
    const struct plim_array *y = op->out[0], *a = op->in[0], *b = op->in[1];
    bool summed = is_summed(op);
    parts[PLIM_GROUP_OUT] = summed ? matrix(y, index) : part(y, 0, from, to);
    parts[PLIM_GROUP_A] = part(a, summed, from, to);
    parts[PLIM_GROUP_B] = summed ? part(b, 0, from, to) : matrix(b, index);
    return (struct plim_op){.kind = PLIM_OP_MATMUL,
                            .n_out = 1,
                            .n_in = 2,
                            .alpha = 1,
                            .tf32 = op->tf32,
                            .out = {&parts[PLIM_GROUP_OUT]},
                            .in = {&parts[PLIM_GROUP_A], &parts[PLIM_GROUP_B]}};
}
