#include "measures.h"

struct tensor *measures_count(struct engine *e, struct tensor *x)
{
    return tensor_keep(op_reduce(e, x, 3, false, PLIM_BINARY_ADD, 1, PLIM_I64));
}

struct tensor *measures_gather(struct engine *e, struct tensor *x, int64_t world)
{
    if (e->halted) return NULL;
    int64_t items = tensor_elements(x) * world;
    if (world == 1) return tensor_ref(x);
    struct tensor *own = x->a.ndim ? NULL : tensor_keep(op_clone(e, x)); /* _gpu_gather_one(): of a scalar */
    struct tensor *all = tensor_keep(tensor_empty(e, (enum plim_dtype)x->a.dtype, 1, &items));
    tensor_drop(e, own);
    return all;
}

struct tensor *measures_sum_of_ranks(struct engine *e, struct tensor *x, int64_t world)
{
    if (e->halted) return x;
    enum plim_dtype dtype = (enum plim_dtype)x->a.dtype;
    struct tensor *all = measures_gather(e, x, world);
    struct tensor *sum = tensor_keep(op_full(e, dtype, 0, NULL, 1));
    tensor_drop_all(e, all, x);
    return sum;
}

void measures_read_whether(struct engine *e, struct tensor *x)
{
    struct tensor *is_any = tensor_keep(op_compare_scalar(e, PLIM_BINARY_GT, x, 0));
    engine_item(e, is_any);
    tensor_drop(e, is_any);
}

void measures_read_quotient(struct engine *e, enum plim_dtype dtype)
{
    struct tensor *number = tensor_keep(tensor_empty(e, dtype, 0, NULL));
    engine_item(e, number);
    tensor_drop(e, number);
}

void measures_read_mean(struct engine *e, struct tensor *number, enum plim_dtype dtype)
{
    measures_read_whether(e, number);
    measures_read_quotient(e, dtype);
}
