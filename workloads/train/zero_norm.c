/* The parts that the norms of all stages are made of. */
#include "workloads/engine/ops.h"
#include "zero_internal.h"
#include <math.h>

struct tensor *zero_norm_of(struct engine *e, struct tensor *grad)
{
    struct tensor *wide = tensor_hold(op_to(e, grad, zero_double));
    struct tensor *norm = tensor_keep(op_reduce(e, wide, ~(~0u << grad->a.ndim), false,
                                                PLIM_BINARY_HYPOT, 1, zero_double));
    tensor_drop(e, wide);
    return norm;
}

void zero_mask_infinite(struct engine *e, struct tensor **masked)
{
    struct tensor *norm = *masked;
    struct tensor *inf = tensor_keep(
        op_compare_scalar(e, PLIM_BINARY_EQ, op_unary(e, norm, PLIM_UNARY_ABS), INFINITY));
    struct tensor *nan = tensor_keep(op_compare(e, PLIM_BINARY_NE, norm, norm));
    struct tensor *either = tensor_keep(op_compare(e, PLIM_BINARY_OR, nan, inf));
    struct tensor *minus_one = tensor_keep(op_full(e, PLIM_F32, 0, NULL, -1)), *to = norm;
    struct tensor *value = tensor_hold(op_to(e, minus_one, (enum plim_dtype)norm->a.dtype));
    if (value != minus_one) /* torch.where() */
        to = tensor_keep(tensor_empty_like(e, norm, (enum plim_dtype)norm->a.dtype));
    struct plim_op fill = {.kind = PLIM_OP_WHERE,
                           .n_out = 1,
                           .n_in = 3,
                           .out = {&to->a},
                           .in = {&either->a, &value->a, &norm->a}};
    if (!e->halted) engine_launch(e, &fill);
    tensor_drop(e, value);
    tensor_drop(e, minus_one);
    tensor_drop(e, either);
    tensor_drop(e, nan);
    tensor_drop(e, inf);
    if (to != norm) tensor_drop(e, norm);
    *masked = to;
}
