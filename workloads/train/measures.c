#include "measures.h"

struct tensor *measures_count(struct engine *e, struct tensor *x)
{
    unsigned all = e->halted ? 0 : (1u << x->a.ndim) - 1;
    return tensor_keep(op_reduce(e, x, all, false, PLIM_BINARY_ADD, 1, PLIM_I64));
}

/* Copies x into all (world, items), once for each rank. */
static void spread(struct engine *e, struct tensor *all, struct tensor *x, int64_t world)
{
    int64_t items = tensor_elements(x);
    if (e->halted || e->device->info.simulated) return; /* its clock has no collectives of small tensors */
    struct tensor *rows = tensor_keep(op_view(e, all, SHAPE(world, items)));
    struct tensor *row = tensor_keep(op_reshape(e, x, SHAPE(1, items)));
    op_copy_(e, rows, row);
    tensor_drop_all(e, rows, row);
}

struct tensor *measures_gather(struct engine *e, struct tensor *x, int64_t world)
{
    if (e->halted) return NULL;
    int64_t items = tensor_elements(x) * world;
    if (world == 1) return tensor_ref(x);
    struct tensor *own = x->a.ndim ? NULL : tensor_keep(op_clone(e, x)); /* _gpu_gather_one() of a scalar */
    struct tensor *all = tensor_keep(tensor_empty(e, (enum plim_dtype)x->a.dtype, 1, &items));
    spread(e, all, x, world);
    tensor_drop(e, own);
    return all;
}

struct tensor *measures_fold(struct engine *e, struct tensor *x, enum plim_binary fold)
{
    if (e->halted) return e->poison;
    unsigned dims = (1u << x->a.ndim) - 1;
    return tensor_keep(op_reduce(e, x, dims, false, fold, 1, (enum plim_dtype)x->a.dtype));
}

struct tensor *measures_mean(struct engine *e, struct tensor *x)
{
    if (e->halted) return e->poison;
    unsigned dims = (1u << x->a.ndim) - 1;
    double share = 1 / (double)tensor_elements(x);
    return tensor_keep(op_reduce(e, x, dims, false, PLIM_BINARY_ADD, share, (enum plim_dtype)x->a.dtype));
}

struct tensor *measures_sum_of_ranks(struct engine *e, struct tensor *x, int64_t world)
{
    if (e->halted) return x;
    struct tensor *all = measures_gather(e, x, world);
    if (e->halted) return x;
    struct tensor *total = measures_fold(e, all, PLIM_BINARY_ADD);
    tensor_drop_all(e, all, x);
    return total;
}

void measures_read(struct engine *e, struct tensor *x)
{
    engine_item(e, x);
    tensor_drop(e, x);
}

void measures_read_own_mean(struct engine *e, struct tensor *x)
{
    struct tensor *own = tensor_hold(x);
    measures_read(e, measures_mean(e, own));
    tensor_drop(e, own);
}

void measures_read_gathered_mean(struct engine *e, struct tensor *x, int64_t world)
{
    struct tensor *all = measures_gather(e, x, world);
    measures_read(e, measures_mean(e, all));
    tensor_drop(e, all);
}

void measures_read_nansum(struct engine *e, struct tensor *x, int64_t world)
{
    struct tensor *own = tensor_keep(op_nansum(e, x)), *all = measures_gather(e, own, world);
    tensor_drop(e, own);
    measures_read(e, tensor_keep(op_nansum(e, all)));
    tensor_drop(e, all);
}

void measures_read_sum(struct engine *e, struct tensor *x, int64_t world)
{
    measures_read(e, measures_sum_of_ranks(e, x, world));
}

void measures_read_tokens(struct engine *e, struct tensor *mask, int64_t world)
{
    struct tensor *own = measures_count(e, mask), *all = measures_gather(e, own, world);
    tensor_drop(e, own);
    measures_read(e, measures_fold(e, all, PLIM_BINARY_ADD));
    tensor_drop(e, all);
}

void measures_read_whether(struct engine *e, struct tensor *x)
{
    struct tensor *is_any = tensor_keep(op_compare_scalar(e, PLIM_BINARY_GT, x, 0));
    engine_item(e, is_any);
    tensor_drop(e, is_any);
}

struct tensor *measures_quotient(struct engine *e, struct tensor *total, struct tensor *number)
{
    if (e->halted) return e->poison;
    enum plim_dtype dtype = plim_dtype_is_float(total->a.dtype) ? (enum plim_dtype)total->a.dtype : PLIM_F32;
    struct tensor *mean = tensor_keep(tensor_empty(e, dtype, total->a.ndim, total->a.shape));
    struct plim_op divide = {.kind = PLIM_OP_BINARY,
                             .n_out = 1,
                             .n_in = 2,
                             .binary = PLIM_BINARY_DIV,
                             .alpha = 1,
                             .out = {&mean->a},
                             .in = {&total->a, &number->a}};
    if (!e->halted) engine_launch(e, &divide);
    return mean;
}

void measures_read_quotient(struct engine *e, struct tensor *total, struct tensor *number)
{
    struct tensor *mean = measures_quotient(e, total, number);
    engine_item(e, mean);
    tensor_drop(e, mean);
}

void measures_read_mean(struct engine *e, struct tensor *total, struct tensor *number)
{
    measures_read_whether(e, number);
    measures_read_quotient(e, total, number);
}
