/* ZeRO's backward: gradients are copied into buckets, and buckets are reduced to their owners. */
#include "buffer.h"
#include "workloads/engine/autograd.h"
#include "workloads/engine/ops.h"
#include "zero.h"
#include "zero3.h"
#include "zero_internal.h"
#include "zero_offload.h"

enum { REDUCTION_STREAM = 1 }; /* stream of collectives with overlap_comm */

/* --- the model's outputs ---------------------------------------------------------------------- */

struct tensor *zero_hook_logits(struct engine *e, void *context, struct tensor *logits)
{
    const struct zero *z = context;
    return autograd_divided(e, logits, (double)z->model->setting->accumulation);
}

/* _prepare_input() of an input of the model; named, or NULL for NULL. */
static struct tensor *prepare_input(struct engine *e, const struct zero *z, struct tensor *x)
{
    if (!x) return NULL;
    bool casts = plim_loop_is_trainers(z->model->setting->loop) && x->a.dtype <= PLIM_F16;
    return casts ? tensor_hold(op_to(e, x, zero_dtype(z))) : tensor_ref(x);
}

void zero_before_forward(struct engine *e, struct zero *z, struct batch *given)
{
    if (!z->model || e->halted) return;
    zero_after_forward(e, z);
    given->inputs = z->inputs = prepare_input(e, z, given->inputs);
    given->pixels = z->pixels = prepare_input(e, z, given->pixels);
    if (z->stage3 && !e->halted) zero3_begin_forward(e, z->stage3);
}

void zero_leave_model(struct engine *e, struct zero *z, int outputs)
{
    if (z->model && z->stage3) zero3_leave_model(e, z->stage3, outputs);
}

void zero_after_forward(struct engine *e, struct zero *z)
{
    tensor_drop_all(e, z->inputs, z->pixels);
    z->inputs = z->pixels = NULL;
}

struct tensor *zero_scale(struct engine *e, struct zero *z, struct tensor *loss, bool last)
{
    double accumulation = (double)z->model->setting->accumulation;
    struct tensor *divided = zero_divides(z) ? tensor_hold(autograd_divided(e, loss, accumulation)) : tensor_ref(loss);
    z->reduces = last;
    if (zero_divides(z)) z->returned = tensor_keep(op_div_scalar(e, divided, accumulation));
    struct tensor *scaled = tensor_keep(op_mul_scalar(e, divided, 1));
    tensor_drop(e, divided);
    if (z->stage3) zero3_begin_backward(e, z->stage3);
    return scaled;
}

/* --- reducing a full bucket ------------------------------------------------------------------- */

static void drop_grad(struct engine *e, struct tensor *parameter)
{
    struct tensor *grad = parameter->grad;
    parameter->grad = NULL;
    tensor_drop(e, grad);
}

/* allreduce_and_copy_with_multiple_ranks(): runs owned by several ranks are flattened, a single one is sent in
 * place. */
static void all_reduce_runs(struct engine *e, struct zero *z, int runs, int64_t elements)
{
    if (!runs) return;
    struct tensor *flat = NULL;
    if (runs > 1) {
        flat = tensor_keep(tensor_empty(e, zero_dtype(z), SHAPE(elements)));
        buffer_copy(e, elements, flat, zero_dtype(z));
    }
    double bytes = (double)elements * plim_dtype_size(zero_dtype(z));
    double arrival = link_send(z->link, link_now(z->link), bytes, 2);
    if (!z->overlaps) link_wait(z->link, arrival);
    if (flat) buffer_copy(e, elements / z->world, flat, zero_dtype(z));
    tensor_drop(e, flat);
}

/* average_tensor(): divides the bucket into runs of adjacent gradients that belong to one rank. */
static void average(struct engine *e, struct zero *z)
{
    int runs = 0;
    int64_t elements = 0, previous = -1;
    struct zero_bucket *b = &z->bucket;
    for (size_t i = 0; i < b->count; i++) {
        const struct zero_weight *w = &z->weights[b->weights[i]];
        int64_t n = tensor_elements(w->parameter), size = w->group->partition_size, rank = w->offset / size;
        for (int64_t at = 0; at < n; rank++) {
            int64_t end = (rank + 1) * size - w->offset, count = (end < n ? end : n) - at;
            if (rank != previous && elements > z->options->bucket_elements) {
                all_reduce_runs(e, z, runs, elements);
                runs = 0;
                elements = 0;
            }
            runs += rank != previous;
            elements += count;
            previous = rank;
            at += count;
        }
    }
    all_reduce_runs(e, z, runs, elements);
}

/* buffered_reduce_fallback(): without contiguous gradients. */
static void average_copies(struct engine *e, struct zero *z)
{
    const struct zero_bucket *b = &z->bucket;
    if (!b->count) return;
    for (size_t i = 0; i < z->count && z->overlaps; i++) /* of earlier buckets */
        if (z->weights[i].is_reduced && !z->weights[i].is_owned)
            drop_grad(e, z->weights[i].parameter);
    all_reduce_runs(e, z, b->count > 1 ? 2 : 1, b->elements);
}

/* copy_grads_in_partition() */
static void copy_owned_grad(struct engine *e, struct zero *z, struct tensor *parameter)
{
    if (e->halted) return;
    if (!z->owned) {
        enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_GRADIENTS);
        z->owned = tensor_keep(tensor_empty(e, zero_dtype(z), SHAPE(z->owned_elements)));
        z->owned_used = 0;
        engine_set_class(e, before);
    }
    zero_move_grad(e, parameter->grad, z->owned, z->owned_used);
    z->owned_used += tensor_elements(parameter);
}

/* reduce_ipg_grads() */
static void reduce_bucket(struct engine *e, struct zero *z)
{
    struct zero_bucket *b = &z->bucket;
    bool contiguous = z->contiguous;
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_COMMUNICATION);
    e->stream = z->overlaps ? REDUCTION_STREAM : 0;
    if (contiguous) average(e, z);
    else average_copies(e, z);
    for (size_t i = 0; i < b->count && !e->halted; i++) {
        struct zero_weight *w = &z->weights[b->weights[i]];
        if (w->is_owned && z->offloads) zero_offload_gradient(e, z, w);
        else if (w->is_owned && contiguous) copy_owned_grad(e, z, w->parameter);
        else if (!w->is_owned && z->stage == 2 && !(z->overlaps && !contiguous))
            drop_grad(e, w->parameter);
        w->is_reduced = true;
    }
    e->stream = 0;
    engine_set_class(e, before);
    b->count = 0;
    b->elements = 0;
}

/* --- gradients, one by one -------------------------------------------------------------------- */

/* setup_buckets() */
static void allocate_buckets(struct engine *e, struct zero *z)
{
    struct zero_bucket *b = &z->bucket;
    if (b->buffer[0] || !z->contiguous) return;
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_COMMUNICATION);
    for (int i = 0; i < 1 + z->overlaps; i++)
        b->buffer[i] =
            tensor_keep(tensor_empty(e, zero_dtype(z), SHAPE(z->options->bucket_elements)));
    b->current = 0;
    engine_set_class(e, before);
}

/* reduce_independent_p_g_buckets_and_remove_grads() */
static void add_to_bucket(struct engine *e, struct zero *z, size_t index)
{
    struct zero_bucket *b = &z->bucket;
    struct tensor *parameter = z->weights[index].parameter;
    int64_t n = tensor_elements(parameter), room = z->options->bucket_elements;
    if (b->elements + n > room) {
        reduce_bucket(e, z);
        if (z->contiguous && z->overlaps) b->current = !b->current;
    }
    if (e->halted) return;
    if (z->contiguous && n <= room)
        zero_move_grad(e, parameter->grad, b->buffer[b->current], b->elements);
    b->elements += n;
    b->weights[b->count++] = index;
}

void zero_accumulated(struct engine *e, void *context, struct tensor *variable)
{
    struct zero *z = context;
    if (!variable->is_parameter || e->halted) return;
    if (z->stage3) {
        zero3_accumulated(e, z, variable);
        return;
    }
    allocate_buckets(e, z);
    if (z->stage == 2 || (z->overlaps && z->reduces))
        add_to_bucket(e, z, (size_t)variable->param_index);
}

/* --- the end of backward ---------------------------------------------------------------------- */

/* Stores this micro-step's owned gradients, or adds them to those of the earlier micro-steps. */
static void accumulate(struct engine *e, struct zero *z, const struct zero_group *g)
{
    for (size_t i = g->first; i < g->end; i++) {
        struct zero_weight *w = &z->weights[i];
        if (!w->is_owned || e->halted) continue;
        struct tensor *grad = w->parameter->grad;
        if (!grad) grad = tensor_keep(op_full_like(e, w->parameter, 0));
        else tensor_ref(grad);
        if (!w->grad) {
            w->grad = grad;
            continue;
        }
        op_add_(e, w->grad, grad);
        tensor_drop(e, grad);
    }
}

/* get_flat_partition(): allocates padding if the last rank's partition is longer than its weights. */
static void pad(struct engine *e, const struct zero *z, struct zero_group *g)
{
    int64_t have = 0, from;
    for (size_t i = g->first; i < g->end; i++)
        if (z->weights[i].is_owned) have += zero_owned(z, &z->weights[i], &from);
    int64_t missing = g->partition_size - have;
    if (missing > 0) g->padding = tensor_keep(op_full(e, zero_dtype(z), SHAPE(missing), 0));
}

static void drop(struct engine *e, struct tensor **x)
{
    tensor_drop(e, *x);
    *x = NULL;
}

void zero_after_backward(struct engine *e, struct zero *z)
{
    if (!z->model) return;
    if (z->stage3) {
        zero3_after_backward(e, z);
    } else if (z->stage == 2 || z->reduces) {
        for (size_t i = 0; i < z->count && z->stage == 1 && !z->overlaps; i++)
            if (z->weights[i].parameter->grad) add_to_bucket(e, z, i);
        reduce_bucket(e, z);
        if (z->overlaps) link_wait(z->link, z->link->free_at);
        for (size_t i = 0; i < z->count; i++) {
            struct zero_weight *w = &z->weights[i];
            if (z->overlaps && !z->contiguous && !w->is_owned) drop_grad(e, w->parameter);
            w->is_reduced = false;
        }
        for (int i = 0; i < z->group_count && !z->offloads; i++) {
            accumulate(e, z, &z->groups[i]);
            if (z->reduces) pad(e, z, &z->groups[i]);
        }
        drop(e, &z->bucket.buffer[0]);
        drop(e, &z->bucket.buffer[1]);
        drop(e, &z->owned);
        for (size_t i = 0; i < z->count; i++) drop_grad(e, z->weights[i].parameter);
    }
    drop(e, &z->returned);
    z->micro_step++;
}
