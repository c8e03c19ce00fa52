/* ZeRO's optimizer step, with the same temporaries as DeepSpeed's. */
#include "buffer.h"
#include "workloads/engine/ops.h"
#include "zero.h"
#include "zero3.h"
#include "zero_internal.h"
#include "zero_offload.h"

static void count_overflow(struct engine *e, struct tensor *grad, struct tensor *found)
{
    struct tensor *most = zero_inf_or_nan(e, grad);
    op_add_(e, found, most);
    tensor_drop(e, most);
}

/* has_overflow(), with fp16. */
static void check_overflow(struct engine *e, struct zero *z)
{
    struct tensor *found = tensor_keep(op_full(e, PLIM_F32, SHAPE(1), 0));
    for (int g = 0; g < z->group_count; g++) {
        for (size_t i = z->groups[g].first; i < z->groups[g].end && !e->halted; i++) {
            if (!z->weights[i].is_owned) continue;
            struct tensor *partition = zero_grad_partition(e, z, &z->weights[i], z->weights[i].grad);
            count_overflow(e, partition, found);
            tensor_drop(e, partition);
        }
        if (z->groups[g].padding) count_overflow(e, z->groups[g].padding, found);
    }
    struct tensor *any = tensor_keep(op_to(e, found, PLIM_BOOL));
    tensor_drop(e, found);
    struct tensor *byte = tensor_keep(op_to(e, any, PLIM_U8));
    if (!e->halted) engine_item(e, byte);
    tensor_drop(e, byte);
    tensor_drop(e, any);
}

/* get_grad_norm_direct(); named */
static struct tensor *norm_of_owned(struct engine *e, const struct zero *z, const struct zero_group *g,
                                    struct tensor **norms)
{
    size_t n = 0;
    for (size_t i = g->first; i < g->end && !e->halted; i++) {
        if (!z->weights[i].is_owned) continue;
        struct tensor *partition = zero_grad_partition(e, z, &z->weights[i], z->weights[i].grad);
        norms[n++] = zero_norm_of(e, partition);
        tensor_drop(e, partition);
    }
    struct tensor *total;
    if (n) {
        struct tensor *x = tensor_keep(tensor_empty(e, zero_double, SHAPE((int64_t)n)));
        tensor_set(e, &x, op_mul(e, x, x));
        tensor_set(e, &x, op_reduce(e, x, 1, false, PLIM_BINARY_ADD, 1, zero_double));
        tensor_set(e, &x, op_to(e, x, PLIM_F32));
        total = x;
    } else {
        total = tensor_keep(op_full(e, PLIM_F32, 0, NULL, 0));
    }
    tensor_set(e, &total, op_pow_scalar(e, total, 0.5));
    zero_mask_infinite(e, &total);
    while (n-- > 0) tensor_drop(e, norms[n]);
    return total;
}

/* scaled_global_norm(); named */
static struct tensor *global_norm(struct engine *e, struct zero *z)
{
    struct tensor *totals[ZERO_GROUPS];
    for (int i = 0; i < z->group_count; i++) totals[i] = norm_of_owned(e, z, &z->groups[i], z->norms);
    struct tensor *stacked = tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(z->group_count)));
    struct tensor *norm =
        tensor_keep(op_reduce(e, stacked, 1, false, PLIM_BINARY_HYPOT, 1, PLIM_F32));
    tensor_drop(e, stacked);
    for (int i = 0; i < z->group_count; i++) tensor_drop(e, totals[i]);
    return norm;
}

/* Returns the gradient of this rank's partition in fp32; frees the gradients from which it is built. */
static struct tensor *flat_gradient(struct engine *e, const struct zero *z, struct zero_group *g)
{
    size_t tensors = g->padding != NULL, only = 0;
    for (size_t i = g->first; i < g->end; i++) {
        if (!z->weights[i].is_owned) continue;
        tensors++;
        only = i;
    }
    struct tensor *flat;
    if (tensors == 1 && !g->padding) {
        struct tensor *partition = zero_grad_partition(e, z, &z->weights[only], z->weights[only].grad);
        flat = tensor_keep(tensor_alias(e, partition, 1, &g->partition_size, (int64_t[]){1}, 0));
        tensor_drop(e, partition);
    } else if (tensors == 1) {
        flat = tensor_ref(g->padding);
    } else {
        flat = tensor_keep(tensor_empty(e, zero_dtype(z), SHAPE(g->partition_size)));
        buffer_copy(e, g->partition_size, flat, zero_dtype(z));
    }
    tensor_set(e, &flat, op_to(e, flat, PLIM_F32));
    for (size_t i = g->first; i < g->end; i++) {
        tensor_drop(e, z->weights[i].grad);
        z->weights[i].grad = NULL;
    }
    tensor_drop(e, g->padding);
    g->padding = NULL;
    return flat;
}

static void step_group(struct engine *e, struct zero *z, struct optimizer *o, int i, struct tensor *norm)
{
    struct zero_group *g = &z->groups[i];
    struct tensor *grad = flat_gradient(e, z, g);
    zero_clip(e, grad, norm, z->model->setting->clip);
    g->master->grad = grad;
    optimizer_step_one(e, o, (size_t)i);
    optimizer_zero_grad(e, o);
    if (zero_dtype(z) != PLIM_F32) buffer_copy(e, g->partition_size, g->flat, PLIM_F32);
}

void zero_step(struct engine *e, struct zero *z, struct optimizer *o)
{
    bool grad_enabled = e->grad_enabled;
    int64_t elements = 0;
    if (e->halted) return;
    z->micro_step = 0;
    if (z->stage3 || z->offloads) {
        if (z->stage3) zero3_step(e, z, o);
        else zero_offload_step(e, z);
        return;
    }
    e->grad_enabled = false;
    if (zero_dtype(z) == PLIM_F16) check_overflow(e, z);
    struct tensor *norm = global_norm(e, z);
    struct tensor *grad_norm = tensor_keep(op_div_scalar(e, norm, 1)); /* the value of engine.get_global_grad_norm() */
    for (int i = 0; i < z->group_count; i++) {
        step_group(e, z, o, i, norm);
        elements += z->groups[i].partition_size;
    }
    tensor_drop(e, norm);
    tensor_drop(e, z->norm);
    z->norm = grad_norm;
    double bytes = (double)(elements * z->world) * plim_dtype_size(zero_dtype(z));
    link_wait(z->link, link_send(z->link, link_now(z->link), bytes, 1));
    e->grad_enabled = grad_enabled;
}
