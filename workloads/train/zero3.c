/* ZeRO 3: the partitions of parameters and gradients. */
#include "buffer.h"
#include "trainer_loop.h"
#include "workloads/engine/ops.h"
#include "zero3.h"
#include "zero_internal.h"
#include "zero_offload.h"
#include <stdlib.h>

/* --- gradients -------------------------------------------------------------------------------- */

static int by_index(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

/* Returns the padding of rank `rank`'s partition of a gradient. */
static int64_t padding_of(const struct zero3_parameter *p, int64_t rank)
{
    int64_t left = p->elements - rank * p->partition_size;
    return left >= p->partition_size ? 0 : left > 0 ? p->partition_size - left : p->partition_size;
}

/* reduce_scatter_coalesced(): copies the ranks' partitions into one buffer, each rank's adjacent, and returns it; NULL
 * for a single gradient without padding, which needs none. Paddings are separate tensors until they are copied. */
static struct tensor *scatter(struct engine *e, const struct zero *z)
{
    const struct zero_bucket *b = &z->bucket;
    const struct zero3_parameter *p = z->stage3->parameters;
    int64_t elements = 0;
    size_t paddings = 0;
    for (size_t i = 0; i < b->count; i++) elements += p[b->weights[i]].partition_size;
    bool in_place = b->count == 1 && p[b->weights[0]].elements % z->world == 0;
    double bytes = (double)(elements * z->world * plim_dtype_size(zero_dtype(z)));
    link_wait(z->link, link_send(z->link, link_now(z->link), bytes, 1));
    if (in_place) return NULL;
    struct tensor **padding = calloc(b->count * (size_t)z->world, sizeof(struct tensor *));
    if (!padding) engine_fail(e, PLIM_NOMEM);
    for (int64_t rank = 0; padding && rank < z->world; rank++)
        for (size_t i = 0; i < b->count; i++) {
            int64_t n = padding_of(&p[b->weights[i]], rank);
            if (n) padding[paddings++] = tensor_keep(tensor_empty(e, zero_dtype(z), SHAPE(n)));
        }
    struct tensor *flat =
        tensor_keep(tensor_empty(e, zero_dtype(z), SHAPE(elements * z->world)));
    buffer_copy(e, elements * z->world, flat, zero_dtype(z));
    for (size_t i = 0; i < paddings; i++) tensor_drop(e, padding[i]);
    free(padding);
    return flat;
}

/* reduce_and_partition_ipg_grads() */
static void reduce_bucket(struct engine *e, struct zero *z)
{
    struct zero_bucket *b = &z->bucket;
    if (!b->count || e->halted) return;
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_COMMUNICATION);
    e->stream = z->overlaps ? ZERO3_REDUCE_STREAM : 0;
    qsort(b->weights, b->count, sizeof *b->weights, by_index);
    struct tensor *flat = scatter(e, z);
    for (size_t i = 0; i < b->count && !e->halted; i++) {
        const struct zero3_parameter *p = &z->stage3->parameters[b->weights[i]];
        struct tensor *parameter = p->tensor, *grad = parameter->grad;
        int64_t real = p->partition_size - padding_of(p, z->rank); /* 0 on a rank without any, which does nothing */
        struct tensor *sent = NULL;
        if (!z->offloads) buffer_copy(e, p->partition_size, z->owned, zero_dtype(z));
        else if (real) sent = zero_offload_partition(e, z, &z->weights[b->weights[i] - z->stage3->frozen], real);
        parameter->grad = NULL;
        tensor_drop(e, grad);
        tensor_drop(e, sent);
    }
    tensor_drop(e, flat);
    e->stream = 0;
    engine_set_class(e, before);
    b->count = 0;
    b->elements = 0;
}

/* reduce_independent_p_g_buckets_and_remove_grads() */
static void add_to_bucket(struct engine *e, struct zero *z, struct tensor *variable)
{
    struct zero_bucket *b = &z->bucket;
    int64_t n = tensor_elements(variable), room = z->options->bucket_elements;
    if (b->elements + n > room && b->elements > 0) reduce_bucket(e, z);
    if (e->halted) return;
    if (b->buffer[0] && b->elements + n <= room)
        zero_move_grad(e, variable->grad, b->buffer[0], b->elements);
    b->elements += n;
    b->weights[b->count++] = (size_t)variable->param_index;
}

/* reduce_leaf_module_grads() */
static void reduce_leaf(struct engine *e, void *context)
{
    struct zero3_module *m = context;
    for (size_t i = 0; i < m->count && !e->halted; i++)
        if (m->parameter[i]->tensor->grad) add_to_bucket(e, m->z->zero, m->parameter[i]->tensor);
}

void zero3_accumulated(struct engine *e, struct zero *z, struct tensor *variable)
{
    if (!z->stage3->parameters[variable->param_index].of_leaf) add_to_bucket(e, z, variable);
}

void zero3_after_backward(struct engine *e, struct zero *z)
{
    reduce_bucket(e, z);
}

/* --- creation --------------------------------------------------------------------------------- */

/* Allocates and partitions the head's own weight, which is then replaced by the embedding's. */
static void make_tied(struct engine *e, const struct zero *z)
{
    const struct zero3_parameter *p = &z->stage3->parameters[z->model->embedding->param_index];
    enum plim_dtype dtype = z->model->parameters.dtype;
    struct tensor *full = tensor_keep(tensor_empty(e, dtype, SHAPE(p->elements)));
    struct tensor *partition = tensor_keep(tensor_empty(e, dtype, SHAPE(p->partition_size)));
    tensor_drop(e, full);
    tensor_drop(e, partition);
}

/* Returns the type in which the model is created: with deepspeed.zero.Init, as with Trainer, each parameter is
 * converted after its creation. */
static enum plim_dtype type_when_made(const struct zero *z)
{
    const struct plim_train_setting *setting = z->model->setting;
    bool converts = plim_loop_is_trainers(setting->loop) && setting->weights != PLIM_WEIGHTS_AUTO;
    return converts ? decoder_weights_dtype(setting->weights) : z->model->parameters.dtype;
}

/* Allocates a partition on the GPU; named, or NULL if it is on the host. */
static struct tensor *allocate_partition(struct engine *e, const struct zero *z, const struct zero3_parameter *p)
{
    if (zero_offloads_parameters(z)) return NULL;
    return tensor_keep(tensor_empty(e, zero3_dtype(z, p), SHAPE(p->partition_size)));
}

/* Allocates a full parameter, copies this rank's partition out of it, and frees it. Returns the partition, named (NULL:
 * on the host). */
static struct tensor *make_partition(struct engine *e, struct zero *z, struct tensor *x, enum plim_dtype made_as)
{
    enum plim_dtype dtype = zero_dtype(z);
    int64_t elements = tensor_elements(x);
    struct tensor *made = made_as == dtype ? NULL : tensor_keep(tensor_empty(e, made_as, SHAPE(elements)));
    storage_resize(e, x->storage, elements * plim_dtype_size(dtype));
    x->a.data = x->storage->address;
    tensor_drop(e, made);
    struct tensor *partition = allocate_partition(e, z, &z->stage3->parameters[x->param_index]);
    storage_resize(e, x->storage, 0);
    return partition;
}

/* The model as created by deepspeed.zero.Init: partitions of parameters, and buffers. Adapters are added later. Stores
 * the partitions that are to be moved in `states`, and returns their number. */
static size_t make_model(struct engine *e, struct zero *z, struct tensor **states)
{
    size_t count = decoder_states_by_module(z->model, states), partitions = 0;
    const struct zero3 *g = z->stage3;
    enum plim_dtype dtype = zero_dtype(z), made_as = type_when_made(z);
    for (size_t i = 0; i < count && !e->halted; i++) {
        struct tensor *x = states[i];
        if (x->a.dtype <= PLIM_F16) x->a.dtype = (uint8_t)dtype;
        if (x->accumulator) x->accumulator->output[0].dtype = x->a.dtype;
        if (!x->is_parameter) {
            storage_resize(e, x->storage, tensor_elements(x) * plim_dtype_size(x->a.dtype));
            x->a.data = x->storage->address;
        } else if (!g->frozen || !x->requires_grad) {
            struct tensor *partition = make_partition(e, z, x, made_as);
            if (!g->frozen && partition) states[partitions++] = partition; /* otherwise it stays where it is */
        }
    }
    if (z->model->head == z->model->embedding) make_tied(e, z);
    return partitions;
}

/* Converts the tensors of `list` to another type, one after another. */
static void convert(struct engine *e, struct tensor **list, size_t count, enum plim_dtype dtype)
{
    for (size_t i = 0; i < count && !e->halted; i++) {
        struct tensor *to = tensor_keep(tensor_empty(e, dtype, SHAPE(tensor_elements(list[i]))));
        tensor_drop(e, list[i]);
        list[i] = to;
    }
}

/* _allgather_params_sequential() of one parameter, which is then freed. */
static void all_gather_alone(struct engine *e, const struct zero *z, const struct zero3_parameter *p)
{
    struct tensor *full = tensor_keep(tensor_empty(e, zero_dtype(z), SHAPE(p->partition_size * z->world)));
    tensor_drop(e, zero3_copy_from_host(e, z, p));
    tensor_drop(e, full);
}

/* Returns a view of a gathered weight in its shape, without padding; named. */
static struct tensor *in_shape(struct engine *e, const struct tensor *weight, struct tensor *full)
{
    if (e->halted) return e->poison;
    return tensor_keep(tensor_alias(e, full, weight->a.ndim, weight->a.shape, weight->a.stride, 0));
}

/* DoraLinearLayer.update_layer(): gathers the base's weight and bias, one after the other (GatheredParameters). A and B
 * are lent. Returns the magnitude, named. */
static struct tensor *make_magnitude(struct engine *e, const struct zero *z, const struct lora_adapter *a,
                                     struct tensor *low, struct tensor *high)
{
    const struct zero3_parameter *all = z->stage3->parameters;
    const struct zero3_parameter *base[2] = {&all[a->weight->param_index],
                                             a->bias ? &all[a->bias->param_index] : NULL};
    struct tensor *partitions[2] = {NULL}, *full[2] = {NULL}, *delta, *sum;
    struct tensor *matrices[2] = {in_shape(e, a->a, low), in_shape(e, a->b, high)};
    nn_dora_widen(e, matrices);
    for (int i = 0; i < 2 && a->bias; i++) partitions[i] = zero3_copy_from_host(e, z, base[i]);
    for (int i = 0; i < 2 && base[i]; i++)
        full[i] = tensor_keep(tensor_empty(e, zero_dtype(z), SHAPE(base[i]->partition_size * z->world)));
    if (!a->bias) partitions[0] = zero3_copy_from_host(e, z, base[0]);
    tensor_drop_all(e, partitions[0], partitions[1]);
    struct tensor *weight = in_shape(e, a->weight, full[0]);
    struct tensor *magnitude = nn_dora_magnitude(e, a, weight, matrices, &delta, &sum);
    tensor_drop_all(e, weight, full[0], full[1], matrices[0], matrices[1], delta, sum);
    return magnitude;
}

/* accelerator.free_memory(), which Trainer calls at the start of training, before deepspeed.initialize(). */
static void free_memory(struct engine *e)
{
    if (!e->halted) plim_allocator_empty_cache(e->allocator);
}

/* get_peft_model() creates adapters in the type of their base, then casts them to fp32; deepspeed.initialize() casts
 * them back, and partitions them; the partitions are stored in `list`, and their number is returned. Before that, each
 * weight of the base is gathered to be initialised. */
static size_t make_adapters(struct engine *e, struct zero *z, struct tensor **list)
{
    const struct zero3 *g = z->stage3;
    size_t count = g->count - g->frozen;
    enum plim_dtype dtype = zero_dtype(z);
    for (size_t i = 0; i < g->frozen && !e->halted; i++) all_gather_alone(e, z, &g->parameters[i]);
    for (size_t i = 0; i < count && !e->halted; i++) {
        const struct tensor *x = g->parameters[g->frozen + i].tensor;
        const struct lora_adapter *a = decoder_adapter_of_magnitude(z->model, x);
        list[i] = a ? make_magnitude(e, z, a, list[i - 2], list[i - 1])
                    : tensor_keep(tensor_empty(e, dtype, SHAPE(tensor_elements(x))));
    }
    if (dtype != PLIM_F32 && !e->halted) convert(e, list, count, PLIM_F32);
    free_memory(e);
    if (dtype != PLIM_F32 && !e->halted) convert(e, list, count, dtype);
    for (size_t i = 0; i < count && !e->halted; i++) {
        struct tensor *partition = allocate_partition(e, z, &g->parameters[g->frozen + i]);
        tensor_drop(e, list[i]);
        list[i] = partition;
    }
    return zero_offloads_parameters(z) ? 0 : count;
}

/* Partitions a model that is on the GPU, parameter by parameter, including adapters. Stores the trainable partitions in
 * `states`, and returns their number. (DeepSpeed also creates strings of what it converts, which take some hundred
 * bytes at a time; that is not modelled.) */
static size_t partition_loaded(struct engine *e, struct zero *z, struct tensor **states)
{
    free_memory(e);
    size_t count = decoder_cast_loaded(e, z->model, states), partitions = 0;
    for (size_t i = 0; i < count && !e->halted; i++) {
        struct tensor *x = states[i];
        if (!x->is_parameter) continue;
        struct zero3_parameter *p = &z->stage3->parameters[x->param_index];
        struct tensor *partition = allocate_partition(e, z, p);
        if (!e->halted) zero3_free_param(e, p);
        if (x->requires_grad && partition) states[partitions++] = partition; /* otherwise it stays where it is */
    }
    return partitions;
}

/* Creates the partitions. defragment() moves the trainable ones into one tensor, through the host. */
static void make_partitions(struct engine *e, struct zero *z, struct tensor **states)
{
    struct zero3 *g = z->stage3;
    size_t partitions = 0;
    if (zero_is_loaded(z)) {
        trainer_loop_barrier(e, z->model->setting, z->link);
        partitions = partition_loaded(e, z, states);
    } else {
        partitions = make_model(e, z, states);
        trainer_loop_barrier(e, z->model->setting, z->link);
        if (g->frozen) partitions = make_adapters(e, z, states);
        else if (plim_loop_is_trainers(z->model->setting->loop)) free_memory(e);
    }
    if (!z->offloads) tensor_keep(tensor_empty(e, PLIM_BOOL, SHAPE(1))); /* inf_or_nan_tracker */
    link_barrier(e, z->link);
    for (size_t i = g->frozen; i < g->count; i++) g->partition_elements += g->parameters[i].partition_size;
    if (zero_offloads_parameters(z)) return;
    for (size_t i = 0; i < partitions && !e->halted; i++) tensor_drop(e, states[i]);
    plim_allocator_empty_cache(e->allocator);
    g->flat = tensor_keep(tensor_empty(e, zero_dtype(z), SHAPE(g->partition_elements)));
}

/* _create_fp16_sub_groups() of one of the optimizer's groups. */
static void make_sub_groups(struct zero *z, size_t first, size_t end)
{
    struct zero3 *g = z->stage3;
    int64_t all = 0, most = z->options->sub_group_elements;
    for (size_t i = first; i < end; i++) all += g->updated[i]->partition_size;
    const struct zero3_sub_group *last = g->sub_group_count ? &g->sub_groups[g->sub_group_count - 1] : NULL;
    struct zero3_sub_group group = {.first = first, .offset = last ? last->offset + last->elements : 0};
    for (size_t i = first; i < end; i++) {
        group.elements += g->updated[i]->partition_size;
        group.end = i + 1;
        if (!(all > most && group.elements >= most) && i + 1 < end) continue;
        g->sub_groups[g->sub_group_count++] = group;
        group = (struct zero3_sub_group){.first = i + 1, .offset = group.offset + group.elements};
    }
}

static void make_groups(struct zero *z)
{
    struct zero3 *g = z->stage3;
    const struct parameters *p = &z->model->parameters;
    size_t count = 0;
    int groups = zero_group_count(z);
    for (int group = 0; group < groups; group++) {
        size_t first = count;
        for (size_t i = 0; i < p->count; i++)
            if (groups == 1 || zero_group_of(z, p->list[i]) == group)
                g->updated[count++] = &g->parameters[p->list[i]->param_index];
        make_sub_groups(z, first, count);
    }
}

/* Creates an fp32 copy of the partitions of each sub-group, through a copy that is freed when the next one exists, and
 * zeros of the size of the largest gradient, which nothing uses. */
static void make_masters(struct engine *e, struct zero *z)
{
    int64_t largest = 0;
    struct tensor *wide = NULL;
    for (size_t i = 0; i < z->stage3->sub_group_count && !e->halted; i++) {
        const struct zero3_sub_group *g = &z->stage3->sub_groups[i];
        if (g->elements > largest) largest = g->elements;
        struct tensor *flat =
            tensor_alias(e, z->stage3->flat, 1, &g->elements, (int64_t[]){1}, g->offset);
        struct tensor *next = tensor_hold(op_to(e, flat, PLIM_F32));
        tensor_drop(e, wide);
        wide = next;
        struct tensor *master = tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(g->elements)));
        if (e->halted) break;
        master->is_parameter = master->requires_grad = true;
        z->masters.list[z->masters.count++] = master;
    }
    tensor_drop(e, wide);
    tensor_drop(e, tensor_keep(op_full(e, PLIM_F32, SHAPE(largest), 0)));
}

/* Creates the fp32 partitions, and the memory for gradients. */
static void make_rest(struct engine *e, struct zero *z)
{
    if (e->halted) return;
    engine_set_class(e, PLIM_MEMORY_OPTIMIZER);
    make_groups(z);
    if (!z->offloads) make_masters(e, z);
    engine_set_class(e, PLIM_MEMORY_COMMUNICATION);
    if (z->options->contiguous)
        z->bucket.buffer[0] =
            tensor_keep(tensor_empty(e, zero_dtype(z), SHAPE(z->options->bucket_elements)));
    engine_set_class(e, PLIM_MEMORY_GRADIENTS);
    if (!z->offloads) z->owned = tensor_keep(op_full(e, zero_dtype(z), SHAPE(z->stage3->partition_elements), 0));
    engine_set_class(e, PLIM_MEMORY_COMMUNICATION);
    for (size_t i = 0; i < z->count; i++) all_gather_alone(e, z, z->stage3->updated[i]); /* to register their hooks */
}

enum plim_status zero3_create(struct engine *e, struct zero *z, struct tensor **states)
{
    const struct parameters *p = &z->model->parameters;
    z->stage3 = calloc(1, sizeof *z->stage3);
    if (!z->stage3) return PLIM_NOMEM;
    enum plim_status st = zero3_trace_create(e, z, z->stage3, states, reduce_leaf);
    if (st != PLIM_OK || e->halted) return st;
    for (size_t i = 0; i < p->count; i++)
        z->weights[z->count++] = (struct zero_weight){.parameter = z->stage3->parameters[p->frozen_count + i].tensor};
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_PARAMETERS);
    make_partitions(e, z, states);
    make_rest(e, z);
    engine_set_class(e, before);
    return PLIM_OK;
}

void zero3_finish(struct zero *z)
{
    if (z->stage3) zero3_trace_finish(z->stage3);
    free(z->stage3);
    z->stage3 = NULL;
}

bool zero3_mixes_persistent(const struct zero3 *z)
{
    size_t integers = 0;
    for (size_t i = 0; i < z->persistent_count; i++) integers += z->persistent[i]->tensor->a.dtype == PLIM_U8;
    return integers > 0 && integers < z->persistent_count;
}
