/* Tensors filled with values that depend on no other tensor; no autograd. */
#include "ops.h"

void op_fill_(struct engine *e, struct tensor *a, double value)
{
    struct plim_op op = {.kind = PLIM_OP_FILL, .n_out = 1, .alpha = value, .out = {&a->a}};
    if (!e->halted) engine_launch(e, &op);
}

struct tensor *op_full(struct engine *e, enum plim_dtype dtype, int ndim, const int64_t *shape,
                       double value)
{
    struct tensor *y = tensor_empty(e, dtype, ndim, shape);
    op_fill_(e, y, value);
    return y;
}

struct tensor *op_eye(struct engine *e, enum plim_dtype dtype, int64_t n)
{
    struct tensor *y = op_full(e, dtype, 2, (const int64_t[]){n, n}, 0);
    if (e->halted) return y;
    struct tensor *diagonal = tensor_keep(tensor_alias(e, y, 1, &n, (const int64_t[]){n + 1}, 0));
    op_fill_(e, diagonal, 1);
    tensor_drop(e, diagonal);
    return y;
}

struct tensor *op_full_like(struct engine *e, const struct tensor *x, double value)
{
    struct tensor *y = tensor_empty_like(e, x, (enum plim_dtype)x->a.dtype);
    op_fill_(e, y, value);
    return y;
}

void op_random_(struct engine *e, struct tensor *a, double limit, uint64_t seed)
{
    struct plim_op op = {
        .kind = PLIM_OP_RANDOM, .n_out = 1, .alpha = limit, .seed = seed, .out = {&a->a}};
    if (!e->halted) engine_launch(e, &op);
}

struct tensor *op_arange(struct engine *e, enum plim_dtype dtype, int64_t count, double start,
                         double step)
{
    struct tensor *y = tensor_empty(e, dtype, 1, &count);
    struct plim_op op = {
        .kind = PLIM_OP_ARANGE, .n_out = 1, .alpha = step, .beta = start, .out = {&y->a}};
    if (!e->halted) engine_launch(e, &op);
    return y;
}
