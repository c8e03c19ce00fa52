/* ZeRO-Offload, with the same temporaries as DeepSpeed's. */
#include "zero_offload.h"
#include "buffer.h"
#include "workloads/engine/ops.h"
#include "zero.h"
#include "zero3.h"
#include "zero_internal.h"

/* Models a copy between the GPU and the host, of which only the GPU's tensor exists here. */
static void copy(struct engine *e, const struct tensor *x)
{
    buffer_copy(e, tensor_elements(x), x, (enum plim_dtype)x->a.dtype);
}

static void set_norm(struct engine *e, struct zero_weight *w, struct tensor *norm)
{
    tensor_drop(e, w->norm);
    w->norm = norm;
}

/* Casts to fp32 and copies to the host. */
static void copy_to_host(struct engine *e, struct tensor *x)
{
    struct tensor *wide = tensor_hold(op_to(e, x, PLIM_F32));
    if (!e->halted) copy(e, wide);
    tensor_drop(e, wide);
}

/* --- stages 1 and 2 --------------------------------------------------------------------------- */

/* async_accumulate_grad_in_cpu_via_gpu() */
static void accumulate(struct engine *e, const struct zero *z, struct tensor *grad)
{
    if (!z->micro_step) {
        copy(e, grad);
        return;
    }
    struct tensor *sum = tensor_keep(tensor_alias(e, z->staging, grad->a.ndim, grad->a.shape, grad->a.stride, 0));
    copy(e, sum);
    op_add_(e, grad, sum);
    tensor_drop(e, sum);
}

/* copy_grads_in_partition() */
void zero_offload_gradient(struct engine *e, struct zero *z, struct zero_weight *w)
{
    struct tensor *grad = w->parameter->grad;
    if (e->halted) return;
    if (z->model->setting->accumulation > 1) accumulate(e, z, grad);
    if (!z->reduces) return;
    struct tensor *partition = zero_grad_partition(e, z, w, grad);
    set_norm(e, w, zero_norm_of(e, partition));
    struct tensor *found = zero_inf_or_nan(e, grad);
    if (!e->halted) engine_item(e, found);
    tensor_drop(e, found);
    copy_to_host(e, partition);
    tensor_drop(e, partition);
    w->parameter->grad = NULL;
    tensor_drop(e, grad);
}

/* Sums a number on the host over all ranks. */
static void all_reduce_number(struct engine *e, enum plim_dtype dtype)
{
    struct tensor *x = tensor_keep(tensor_empty(e, dtype, SHAPE(1)));
    if (!e->halted) engine_item(e, x);
    tensor_drop(e, x);
}

void zero_offload_drop_norms(struct engine *e, struct zero *z)
{
    for (size_t i = 0; i < z->count; i++) set_norm(e, &z->weights[i], NULL);
}

void zero_offload_step(struct engine *e, struct zero *z)
{
    int64_t elements = 0;
    if (zero_dtype(z) == PLIM_F16) all_reduce_number(e, PLIM_U8);
    for (int i = 0; i < z->group_count; i++) {
        const struct zero_group *g = &z->groups[i];
        for (size_t k = g->first; k < g->end && !e->halted; k++)
            if (z->weights[k].norm) engine_item(e, z->weights[k].norm);
        all_reduce_number(e, PLIM_F32);
    }
    for (int i = 0; i < z->group_count && !e->halted; i++) {
        buffer_copy(e, z->groups[i].partition_size, z->groups[i].flat, zero_dtype(z));
        elements += z->groups[i].partition_size;
    }
    zero_offload_drop_norms(e, z);
    double bytes = (double)(elements * z->world) * plim_dtype_size(zero_dtype(z));
    link_wait(z->link, link_send(z->link, link_now(z->link), bytes, 1));
}

/* --- stage 3 ---------------------------------------------------------------------------------- */

/* _constant_buffered_norm2() of one partition; named. */
static struct tensor *norm_of_partition(struct engine *e, struct tensor *partition)
{
    struct tensor *norm = zero_norm_of(e, partition);
    struct tensor *square = tensor_keep(op_pow_scalar(e, norm, 2));
    tensor_drop(e, norm);
    norm = tensor_keep(op_pow_scalar(e, square, 0.5));
    tensor_drop(e, square);
    return norm;
}

/* partition_grads(): the gradient of earlier micro-steps is copied back from the host to be added to. */
struct tensor *zero_offload_partition(struct engine *e, struct zero *z, struct zero_weight *w, int64_t elements)
{
    struct tensor *sum = tensor_keep(tensor_empty(e, zero_dtype(z), SHAPE(elements)));
    copy(e, sum);
    if (z->micro_step) copy(e, sum);
    if (z->reduces) set_norm(e, w, norm_of_partition(e, sum));
    if (z->reduces) copy_to_host(e, sum);
    return sum;
}

/* complete_grad_norm_calculation_for_cpu_offload() */
void zero_offload_norm(struct engine *e, struct tensor *const *norms, size_t count)
{
    struct tensor *total = NULL;
    for (size_t i = 0; i < count && !e->halted; i++) {
        struct tensor *square = tensor_keep(op_pow_scalar(e, norms[i], 2));
        if (total) op_add_(e, total, square);
        else total = tensor_keep(op_add_scalar(e, square, 0));
        tensor_drop(e, square);
    }
    if (total && !e->halted) engine_item(e, total);
    struct tensor *shared = tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(1)));
    struct tensor *norm = tensor_keep(op_pow_scalar(e, op_select(e, shared, 0, 0), 0.5));
    tensor_drop(e, total);
    zero_mask_infinite(e, &norm);
    if (!e->halted) engine_item(e, norm);
    tensor_drop(e, norm);
    tensor_drop(e, shared);
}

/* --- host memory ------------------------------------------------------------------------------ */

/* Weights, gradients and two states in fp32; in the model's type the weights that are copied to the GPU (stages 1 and
 * 2), gradients of earlier micro-steps, and a rank's partitions. */
int64_t zero_host_bytes(const struct zero *z)
{
    if (!z->model || !z->offloads) return 0;
    int64_t trainable = 0, parameters = 0; /* elements of this rank's partitions */
    for (int i = 0; i < z->group_count; i++) trainable += z->groups[i].partition_size;
    bool keeps_gradients = z->stage3 || z->model->setting->accumulation > 1;
    if (z->stage3) trainable = z->stage3->partition_elements;
    for (size_t i = 0; z->stage3 && zero_offloads_parameters(z) && i < z->stage3->count; i++)
        parameters += z->stage3->parameters[i].partition_size;
    int64_t gradients = !keeps_gradients ? 0 : z->stage3 ? trainable : z->owned_elements;
    int64_t in_type = (z->stage3 ? 0 : trainable) + gradients + parameters;
    return 4 * plim_dtype_size(PLIM_F32) * trainable + plim_dtype_size(zero_dtype(z)) * in_type;
}
