/* Gated MLPs: arrays of one shape without gaps, like the results of matrix products. */
#include "kernels/args_gated.h"
#include "plan_rows.h"

enum { VECTOR_BYTES = 16 };

static bool is_a_gate(const struct plim_op *op)
{
    return op->unary == PLIM_UNARY_SILU || op->unary == PLIM_UNARY_GELU || op->unary == PLIM_UNARY_GELU_TANH;
}

static bool have_one_shape(const struct plim_array *a, const struct plim_array *b)
{
    for (int d = 0; a->ndim == b->ndim && d < a->ndim; d++)
        if (a->shape[d] != b->shape[d]) return false;
    return a->ndim == b->ndim;
}

static enum plim_status check(const struct plim_array *a, const struct plim_array *like, struct plim_gated_args *args)
{
    if (!have_one_shape(a, like)) return PLIM_INVALID;
    if (!plim_dtype_is_float(a->dtype) || !plim_cuda_plan_is_contiguous(a)) return PLIM_UNSUPPORTED;
    if (a->data % VECTOR_BYTES) args->vectors = 0;
    return PLIM_OK;
}

/* All operands of `op` have the layout of its first input. */
static enum plim_status launch(const struct plim_cuda_plan *plan, const char *kernel, const struct plim_op *op,
                               struct plim_gated_args *args)
{
    enum plim_status st = PLIM_OK;
    if (!is_a_gate(op)) return PLIM_INVALID;
    args->elements = plim_array_elements(op->in[0]);
    args->function = op->unary;
    args->vectors = 1;
    for (int i = 0; i < op->n_out; i++)
        if (op->out[i]) PLIM_TRY(check(op->out[i], op->in[0], args));
    for (int i = 0; i < op->n_in; i++) PLIM_TRY(check(op->in[i], op->in[0], args));
    if (args->elements == 0) return PLIM_OK;
    int64_t units = args->vectors ? (args->elements + PLIM_GATED_VECTOR - 1) / PLIM_GATED_VECTOR : args->elements;
    st = plim_cuda_plan_launch(plan, kernel, plim_cuda_plan_all_blocks(units, PLIM_GATED_THREADS),
                               PLIM_GATED_THREADS, args, sizeof *args);
out:
    return st;
}

enum plim_status plim_cuda_plan_gated(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    struct plim_gated_args args = {.out = plim_cuda_plan_flat(op->out[0]),
                                   .gate = plim_cuda_plan_flat(op->in[0]),
                                   .up = plim_cuda_plan_flat(op->in[1])};
    return launch(plan, "gated", op, &args);
}

enum plim_status plim_cuda_plan_gated_backward(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    struct plim_gated_args args = {.out = plim_cuda_plan_flat(op->n_out > 2 ? op->out[2] : NULL),
                                   .dout = plim_cuda_plan_flat(op->in[0]),
                                   .gate = plim_cuda_plan_flat(op->in[1]),
                                   .up = plim_cuda_plan_flat(op->in[2]),
                                   .dgate = plim_cuda_plan_flat(op->out[0]),
                                   .dup = plim_cuda_plan_flat(op->out[1])};
    return launch(plan, "gated_backward", op, &args);
}
