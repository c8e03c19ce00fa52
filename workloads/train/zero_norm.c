/* Operations of all stages on a gradient in a step: its norm, the check for infinity and NaN, and clipping. */
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

struct tensor *zero_inf_or_nan(struct engine *e, struct tensor *grad)
{
    struct tensor *wide = tensor_hold(op_to(e, grad, PLIM_F32));
    struct tensor *nan = tensor_keep(op_compare(e, PLIM_BINARY_NE, wide, wide));
    struct tensor *inf = tensor_keep(
        op_compare_scalar(e, PLIM_BINARY_EQ, op_unary(e, wide, PLIM_UNARY_ABS), INFINITY));
    struct tensor *either = tensor_keep(op_compare(e, PLIM_BINARY_OR, nan, inf));
    struct tensor *number = op_to(e, either, PLIM_F32);
    struct tensor *most = tensor_keep(
        op_reduce(e, number, ~(~0u << grad->a.ndim), false, PLIM_BINARY_MAX, 1, PLIM_F32));
    tensor_drop(e, either);
    tensor_drop(e, inf);
    tensor_drop(e, nan);
    tensor_drop(e, wide);
    return most;
}

struct tensor *zero_grad_partition(struct engine *e, const struct zero *z, const struct zero_weight *w,
                                   struct tensor *grad)
{
    int64_t from, n = zero_owned(z, w, &from);
    if (n == tensor_elements(w->parameter)) return tensor_ref(grad);
    return tensor_keep(tensor_alias(e, grad, 1, &n, (int64_t[]){1}, from));
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

void zero_clip(struct engine *e, struct tensor *grad, struct tensor *norm, double max_norm)
{
    if (!(max_norm > 0)) {
        op_binary_scalar_(e, PLIM_BINARY_MUL, grad, 1);
        return;
    }
    struct tensor *x = tensor_keep(op_div_scalar(e, norm, 1));
    tensor_set(e, &x, op_add_scalar(e, x, 1e-6));
    tensor_set(e, &x, op_div_scalar(e, x, max_norm));
    tensor_set(e, &x, op_clamp(e, x, 1, INFINITY));
    struct tensor *scale = tensor_keep(op_mul_scalar(e, x, 1));
    struct tensor *factor =
        tensor_keep(op_mul_scalar(e, op_unary(e, scale, PLIM_UNARY_RECIPROCAL), 1));
    op_binary_(e, PLIM_BINARY_MUL, grad, factor);
    tensor_drop(e, factor);
    tensor_drop(e, scale);
    tensor_drop(e, x);
}
