#include "plan_adam.h"
#include "plan_lists.h"
#include "plan_rows.h"

#include <math.h>

enum { COUNT_THREADS = 256, CODE_THREADS = 256, VECTOR_BYTES = 16 };

struct plim_cuda_adam plim_cuda_plan_adam(const struct plim_adam *adam)
{
    return (struct plim_cuda_adam){.decay = (float)(adam->rate * adam->weight_decay),
                                   .rate = (float)adam->rate,
                                   .epsilon = (float)adam->epsilon,
                                   .beta1 = (float)adam->beta1,
                                   .beta2 = (float)adam->beta2,
                                   .rest1 = (float)(1 - adam->beta1),
                                   .rest2 = (float)(1 - adam->beta2),
                                   .log1 = (float)log(adam->beta1),
                                   .log2 = (float)log(adam->beta2),
                                   .step = (float)adam->step};
}

/* --- AdamW ------------------------------------------------------------------------------------ */

static enum plim_status plan_adamw_lists(const struct plim_cuda_plan *plan,
                                         const struct plim_tensor_lists *lists,
                                         struct plim_adamw_args *args)
{
    bool counts = lists->count > PLIM_ADAMW_STEPS;
    struct plim_list_launch launch = {0};
    while (launch.next < lists->length) {
        enum plim_status st = plim_lists_pack(lists, &launch, &args->lists);
        if (st == PLIM_OK && counts)
            st = plim_cuda_plan_launch(plan, "adamw_count", 1, COUNT_THREADS, args, sizeof *args);
        if (st == PLIM_OK && launch.chunks > 0)
            st = plim_cuda_plan_launch(plan, "adamw", launch.chunks, PLIM_FOREACH_THREADS, args,
                                       sizeof *args);
        if (st != PLIM_OK) return st;
    }
    return PLIM_OK;
}

static enum plim_status plan_fused_adamw(const struct plim_cuda_plan *plan,
                                         const struct plim_op *op)
{
    enum { PARAMETERS, MOMENTS, SECOND_MOMENTS, STEPS, GRADIENTS, LISTS }; /* in op->lists */
    const struct plim_array *found_inf = op->in[0], *grad_scale = op->in[1];
    if (op->n_lists != LISTS || !op->adam) return PLIM_INVALID;
    if (found_inf && !plim_dtype_is_float(found_inf->dtype)) return PLIM_UNSUPPORTED;
    if (grad_scale && !plim_dtype_is_float(grad_scale->dtype)) return PLIM_UNSUPPORTED;
    const struct plim_tensor_lists lists = {
        .list = {[PLIM_ADAMW_PARAMETERS] = op->lists[PARAMETERS],
                 [PLIM_ADAMW_MOMENTS] = op->lists[MOMENTS],
                 [PLIM_ADAMW_SECOND_MOMENTS] = op->lists[SECOND_MOMENTS],
                 [PLIM_ADAMW_GRADIENTS] = op->lists[GRADIENTS],
                 [PLIM_ADAMW_STEPS] = op->lists[STEPS]},
        .count = LISTS,
        .alike = PLIM_ADAMW_STEPS,
        .length = op->list_length};
    struct plim_adamw_args args = {.found_inf = plim_cuda_plan_flat(found_inf),
                                   .grad_scale = plim_cuda_plan_flat(grad_scale),
                                   .adam = plim_cuda_plan_adam(op->adam)};
    return plan_adamw_lists(plan, &lists, &args);
}

static enum plim_status check_bitsandbytes(const struct plim_op *op, int ins)
{
    if (op->n_out != 3 || op->n_in != ins || !op->adam || op->adam->step < 1) return PLIM_INVALID;
    for (int i = 0; i < 3; i++)
        if (!op->out[i]) return PLIM_INVALID;
    for (int i = 0; i < ins; i++)
        if (!op->in[i]) return PLIM_INVALID;
    return PLIM_OK;
}

static enum plim_status plan_adamw_32bit(const struct plim_cuda_plan *plan,
                                         const struct plim_op *op)
{
    enum plim_status st = check_bitsandbytes(op, 1);
    if (st != PLIM_OK) return st;
    const struct plim_tensor_lists lists = {.list = {[PLIM_ADAMW_PARAMETERS] = &op->out[0],
                                                     [PLIM_ADAMW_MOMENTS] = &op->out[1],
                                                     [PLIM_ADAMW_SECOND_MOMENTS] = &op->out[2],
                                                     [PLIM_ADAMW_GRADIENTS] = &op->in[0]},
                                            .count = PLIM_ADAMW_STEPS,
                                            .alike = PLIM_ADAMW_STEPS,
                                            .length = 1};
    struct plim_adamw_args args = {.adam = plim_cuda_plan_adam(op->adam)};
    args.adam.decays_last = op->foreach == PLIM_ADAMW_32BIT;
    return plan_adamw_lists(plan, &lists, &args);
}

/* --- states of 8 bits ------------------------------------------------------------------------- */

static enum plim_status check_8bit(const struct plim_op *op)
{
    enum plim_status st = check_bitsandbytes(op, 5);
    if (st != PLIM_OK) return st;
    int64_t elements = plim_array_elements(op->out[0]);
    int64_t blocks = (elements + PLIM_CODE_BLOCK - 1) / PLIM_CODE_BLOCK;
    const struct {
        const struct plim_array *a;
        int64_t elements;
        bool codes;
    } operands[] = {{op->out[0], elements, false},  {op->out[1], elements, true},
                    {op->out[2], elements, true},   {op->in[0], elements, false},
                    {op->in[1], PLIM_CODES, false}, {op->in[2], PLIM_CODES, false},
                    {op->in[3], blocks, false},     {op->in[4], blocks, false}};
    for (size_t i = 0; i < sizeof operands / sizeof *operands; i++) {
        const struct plim_array *a = operands[i].a;
        if (plim_array_elements(a) != operands[i].elements) return PLIM_INVALID;
        if (operands[i].codes ? a->dtype != PLIM_U8 : !plim_dtype_is_float(a->dtype))
            return PLIM_INVALID;
        if (!plim_cuda_plan_is_contiguous(a)) return PLIM_UNSUPPORTED;
    }
    for (int i = 1; i < 5; i++)
        if (op->in[i]->dtype != PLIM_F32) return PLIM_UNSUPPORTED;
    return PLIM_OK;
}

static enum plim_status plan_adamw_8bit(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    enum plim_status st = check_8bit(op);
    if (st != PLIM_OK) return st;
    struct plim_adamw_8bit_args args = {.parameter = plim_cuda_plan_flat(op->out[0]),
                                        .gradient = plim_cuda_plan_flat(op->in[0]),
                                        .state = {op->out[1]->data, op->out[2]->data},
                                        .book = {op->in[1]->data, op->in[2]->data},
                                        .maximum = {op->in[3]->data, op->in[4]->data},
                                        .elements = plim_array_elements(op->out[0]),
                                        .adam = plim_cuda_plan_adam(op->adam)};
    args.adam.decays_last = 1;
    args.vectors =
        (args.parameter.data | args.gradient.data | args.state[0] | args.state[1]) % VECTOR_BYTES ==
        0;
    if (args.elements == 0) return PLIM_OK;
    int64_t blocks = (args.elements + PLIM_CODE_BLOCK - 1) / PLIM_CODE_BLOCK;
    return plim_cuda_plan_launch(
        plan, "adamw_8bit", plim_cuda_plan_blocks(plan, blocks * PLIM_CUDA_PLAN_WARP, CODE_THREADS),
        CODE_THREADS, &args, sizeof args);
}

/* --- the gradient scaler ---------------------------------------------------------------------- */

static enum plim_status plan_amp_update(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    const struct plim_array *scale = op->out[0], *growth = op->out[1], *found_inf = op->in[0];
    if (op->n_out != 2 || !scale || !growth || !found_inf) return PLIM_INVALID;
    if (!plim_dtype_is_float(scale->dtype) || !plim_dtype_is_float(found_inf->dtype) ||
        !(plim_dtype_is_float(growth->dtype) || growth->dtype == PLIM_I32))
        return PLIM_UNSUPPORTED;
    struct plim_amp_update_scale_args args = {.scale = plim_cuda_plan_flat(scale),
                                              .growth = plim_cuda_plan_flat(growth),
                                              .found_inf = plim_cuda_plan_flat(found_inf)};
    return plim_cuda_plan_launch(plan, "amp_update_scale", 1, PLIM_CUDA_PLAN_WARP, &args,
                                 sizeof args);
}

enum plim_status plim_cuda_plan_optimizer(const struct plim_cuda_plan *plan,
                                          const struct plim_op *op)
{
    static plim_cuda_plan_function *const planners[PLIM_FOREACH_COUNT] = {
        [PLIM_FUSED_ADAMW] = plan_fused_adamw,
        [PLIM_ADAMW_8BIT] = plan_adamw_8bit,
        [PLIM_ADAMW_32BIT] = plan_adamw_32bit,
        [PLIM_AMP_UPDATE_SCALE] = plan_amp_update,
        [PLIM_TORCHAO_ADAMW] = plan_adamw_32bit,
        [PLIM_TORCHAO_SCALES] = plim_cuda_plan_torchao_scales,
        [PLIM_TORCHAO_STEP_8BIT] = plim_cuda_plan_torchao_step,
        [PLIM_TORCHAO_STEP_4BIT] = plim_cuda_plan_torchao_step,
        [PLIM_TORCHAO_CODES] = plim_cuda_plan_torchao_codes,
    };
    plim_cuda_plan_function *planner =
        op->foreach < PLIM_FOREACH_COUNT ? planners[op->foreach] : NULL;
    return planner ? planner(plan, op) : PLIM_INVALID;
}
