/* ZeRO 3: the optimizer's step on the partitions, one sub-group after another. */
#include "buffer.h"
#include "workloads/engine/ops.h"
#include "zero3.h"
#include "zero_internal.h"
#include "zero_offload.h"

static struct tensor *scalar(struct engine *e)
{
    return tensor_keep(tensor_empty(e, zero_double, 0, NULL));
}

/* has_overflow(), with fp16. */
static void check_overflow(struct engine *e, struct zero *z)
{
    int64_t elements = z->stage3->partition_elements;
    e->stream = z->overlaps ? ZERO3_REDUCE_STREAM : 0;
    struct tensor *all = tensor_keep(tensor_empty(e, PLIM_F16, SHAPE(elements)));
    struct tensor *is = tensor_keep(tensor_empty(e, PLIM_BOOL, SHAPE(elements)));
    tensor_drop(e, all);
    buffer_copy(e, elements, is, PLIM_BOOL);
    tensor_drop(e, is);
    is = tensor_keep(tensor_empty(e, PLIM_BOOL, SHAPE(elements)));
    buffer_copy(e, elements, is, PLIM_BOOL);
    tensor_drop(e, is);
    struct tensor *byte = tensor_keep(tensor_empty(e, PLIM_U8, SHAPE(1)));
    e->stream = 0;
    if (!e->halted) engine_item(e, byte);
    tensor_drop(e, byte);
}

/* has_overflow() with offloading: the host has the data, and the result is copied through the GPU. */
static void check_overflow_on_host(struct engine *e)
{
    struct tensor *is = tensor_keep(tensor_empty(e, PLIM_BOOL, SHAPE(1)));
    struct tensor *byte = tensor_keep(op_to(e, is, PLIM_U8));
    tensor_drop(e, is);
    if (!e->halted) engine_item(e, byte);
    tensor_drop(e, byte);
}

/* --- norms ------------------------------------------------------------------------------------ */

/* get_grad_norm_direct(); named */
static struct tensor *norm_of_sub_group(struct engine *e, const struct zero *z,
                                        const struct zero3_sub_group *g)
{
    size_t n = 0;
    int64_t offset = g->offset;
    for (size_t i = g->first; i < g->end && !e->halted; i++) {
        int64_t partition_size = z->stage3->updated[i]->partition_size;
        struct tensor *grad =
            tensor_keep(tensor_alias(e, z->owned, 1, &partition_size, (int64_t[]){1}, offset));
        z->norms[n++] = zero_norm_of(e, grad);
        tensor_drop(e, grad);
        offset += partition_size;
    }
    struct tensor *x = tensor_keep(tensor_empty(e, zero_double, SHAPE((int64_t)n)));
    tensor_set(e, &x, op_mul(e, x, x));
    tensor_set(e, &x, op_reduce(e, x, 1, false, PLIM_BINARY_ADD, 1, zero_double));
    struct tensor *norm = tensor_keep(op_pow_scalar(e, x, 0.5));
    zero_mask_infinite(e, &norm);
    tensor_drop(e, x);
    while (n-- > 0) tensor_drop(e, z->norms[n]);
    return norm;
}

/* Stores the norms of the sub-groups in `z->stage3->norms`. Returns the norm of all, named. */
static struct tensor *norm_of_all(struct engine *e, const struct zero *z)
{
    const struct zero3 *g = z->stage3;
    for (size_t i = 0; i < g->sub_group_count; i++) g->norms[i] = norm_of_sub_group(e, z, &g->sub_groups[i]);
    struct tensor *stacked =
        tensor_keep(tensor_empty(e, zero_double, SHAPE((int64_t)g->sub_group_count)));
    struct tensor *norm =
        tensor_keep(op_reduce(e, stacked, 1, false, PLIM_BINARY_HYPOT, 1, zero_double));
    tensor_drop(e, stacked);
    return norm;
}

/* --- the step --------------------------------------------------------------------------------- */

/* _prepare_fp32_grad_for_sub_group(): the partition of a single parameter is flat already. Named. */
static struct tensor *gradient_of(struct engine *e, const struct zero *z,
                                  const struct zero3_sub_group *g)
{
    struct tensor *flat;
    if (g->end - g->first == 1) {
        flat = tensor_keep(
            tensor_alias(e, z->owned, 1, &g->elements, (int64_t[]){1}, g->offset));
    } else {
        flat = tensor_keep(tensor_empty(e, zero_dtype(z), SHAPE(g->elements)));
        buffer_copy(e, g->elements, flat, zero_dtype(z));
    }
    tensor_set(e, &flat, op_to(e, flat, PLIM_F32));
    return flat;
}

static void step_sub_group(struct engine *e, const struct zero *z, struct optimizer *o, size_t i,
                           struct tensor *norm)
{
    const struct zero3_sub_group *g = &z->stage3->sub_groups[i];
    struct tensor *grad = gradient_of(e, z, g);
    zero_clip(e, grad, norm, z->model->setting->clip);
    if (e->halted) {
        tensor_drop(e, grad);
        return;
    }
    z->masters.list[i]->grad = grad;
    optimizer_step_one(e, o, i);
    if (!e->halted && zero_dtype(z) != PLIM_F32) buffer_copy(e, g->elements, z->stage3->flat, PLIM_F32);
    optimizer_zero_grad(e, o);
}

/* The step with offloading: the host updates its states. */
static void step_on_host(struct engine *e, struct zero *z)
{
    const struct zero3 *g = z->stage3;
    if (zero_dtype(z) == PLIM_F16) check_overflow_on_host(e);
    for (size_t i = 0; i < g->sub_group_count && !e->halted; i++) {
        size_t count = 0;
        for (size_t k = g->sub_groups[i].first; k < g->sub_groups[i].end; k++) {
            struct tensor *norm = z->weights[g->updated[k]->tensor->param_index - (int32_t)g->frozen].norm;
            if (norm) z->norms[count++] = norm;
        }
        zero_offload_norm(e, z->norms, count);
    }
    if (!e->halted && g->flat) buffer_copy(e, g->partition_elements, g->flat, zero_dtype(z));
    zero_offload_drop_norms(e, z);
    zero3_gather_persistent(e, z->stage3);
}

static void step_on_gpu(struct engine *e, struct zero *z, struct optimizer *o)
{
    struct zero3 *g = z->stage3;
    if (zero_dtype(z) == PLIM_F16) check_overflow(e, z);
    struct tensor *norm = norm_of_all(e, z);
    struct tensor *grad_norm = scalar(e); /* of engine.get_global_grad_norm(), while the last one still exists */
    for (size_t i = 0; i < g->sub_group_count && !e->halted; i++) step_sub_group(e, z, o, i, norm);
    zero3_gather_persistent(e, g);
    for (size_t i = 0; i < g->sub_group_count; i++) tensor_drop(e, g->norms[i]);
    tensor_drop(e, norm);
    tensor_drop(e, z->norm);
    z->norm = grad_norm;
}

void zero3_step(struct engine *e, struct zero *z, struct optimizer *o)
{
    bool grad_enabled = e->grad_enabled;
    e->grad_enabled = false;
    zero3_partition_all(e, z->stage3);
    if (z->offloads) step_on_host(e, z);
    else step_on_gpu(e, z, o);
    e->grad_enabled = grad_enabled;
}
