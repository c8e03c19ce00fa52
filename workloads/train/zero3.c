/* ZeRO 3: the partitions of parameters and gradients. */
#include "buffer.h"
#include "trainer_loop.h"
#include "workloads/engine/ops.h"
#include "zero3.h"
#include "zero_internal.h"
#include "zero_offload.h"
#include <stdlib.h>

/* --- gradients -------------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

/* Returns the padding of rank `rank`'s partition of a gradient. */
static int64_t padding_of(const struct zero3_parameter *p, int64_t rank)
{
    int64_t left = p->elements - rank * p->piece;
    return left >= p->piece ? 0 : left > 0 ? p->piece - left : p->piece;
}

/* reduce_scatter_coalesced(): copies the ranks' partitions into one buffer, each rank's adjacent, and returns it; NULL
 * for a single gradient without padding, which needs none. Paddings are separate tensors until they are copied. */
static struct tensor *scatter(struct engine *e, const struct zero *z)
{
    const struct zero_bucket *b = &z->bucket;
    const struct zero3_parameter *p = z->gathered->parameters;
    int64_t pieces = 0;
    size_t paddings = 0;
    for (size_t i = 0; i < b->count; i++) pieces += p[b->weights[i]].piece;
    bool in_place = b->count == 1 && p[b->weights[0]].elements % z->world == 0;
    double bytes = (double)(pieces * z->world * plim_dtype_size(zero_dtype(z)));
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
        tensor_keep(tensor_empty(e, zero_dtype(z), SHAPE(pieces * z->world)));
    buffer_copy(e, pieces * z->world, flat, zero_dtype(z));
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
    e->stream = z->overlaps ? ZERO3_REDUCING : 0;
    qsort(b->weights, b->count, sizeof *b->weights, by_place);
    struct tensor *flat = scatter(e, z);
    for (size_t i = 0; i < b->count && !e->halted; i++) {
        const struct zero3_parameter *p = &z->gathered->parameters[b->weights[i]];
        struct tensor *parameter = p->whole, *grad = parameter->grad;
        int64_t real = p->piece - padding_of(p, z->rank); /* 0 on a rank without elements of it, which does nothing */
        struct tensor *sent = NULL;
        if (!z->offloads) buffer_copy(e, p->piece, z->owned, zero_dtype(z));
        else if (real) sent = zero_offload_piece(e, z, &z->weights[b->weights[i] - z->gathered->frozen], real);
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
    b->weights[b->count++] = (size_t)variable->place;
}

/* reduce_leaf_module_grads() */
static void reduce_leaf(struct engine *e, void *context)
{
    struct zero3_module *m = context;
    for (size_t i = 0; i < m->count && !e->halted; i++)
        if (m->parameter[i]->whole->grad) add_to_bucket(e, m->z->zero, m->parameter[i]->whole);
}

void zero3_accumulated(struct engine *e, struct zero *z, struct tensor *variable)
{
    if (!z->gathered->parameters[variable->place].of_leaf) add_to_bucket(e, z, variable);
}

void zero3_after_backward(struct engine *e, struct zero *z)
{
    reduce_bucket(e, z);
}

/* --- creation --------------------------------------------------------------------------------- */

/* Allocates and partitions the head's own weight, which is then replaced by the embedding's. */
static void make_tied(struct engine *e, const struct zero *z)
{
    const struct zero3_parameter *p =
        &z->gathered->parameters[z->model->embedding->place];
    enum plim_dtype dtype = z->model->parameters.dtype;
    struct tensor *whole = tensor_keep(tensor_empty(e, dtype, SHAPE(p->elements)));
    struct tensor *piece = tensor_keep(tensor_empty(e, dtype, SHAPE(p->piece)));
    tensor_drop(e, whole);
    tensor_drop(e, piece);
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
static struct tensor *room_for(struct engine *e, const struct zero *z, const struct zero3_parameter *p)
{
    if (zero_offloads_parameters(z)) return NULL;
    return tensor_keep(tensor_empty(e, zero3_dtype(z, p), SHAPE(p->piece)));
}

/* Allocates a full parameter, copies this rank's partition out of it, and frees it. Returns the partition, named (NULL:
 * on the host). */
static struct tensor *make_piece(struct engine *e, struct zero *z, struct tensor *x, enum plim_dtype made_as)
{
    enum plim_dtype dtype = zero_dtype(z);
    int64_t elements = tensor_elements(x);
    struct tensor *made = made_as == dtype ? NULL : tensor_keep(tensor_empty(e, made_as, SHAPE(elements)));
    storage_resize(e, x->storage, elements * plim_dtype_size(dtype));
    x->a.data = x->storage->address;
    tensor_drop(e, made);
    struct tensor *piece = room_for(e, z, &z->gathered->parameters[x->place]);
    storage_resize(e, x->storage, 0);
    return piece;
}

/* The model as created by deepspeed.zero.Init: partitions of parameters, and buffers. Adapters are added later. Stores
 * the partitions that are to be moved in `states`, and returns their number. */
static size_t make_model(struct engine *e, struct zero *z, struct tensor **states)
{
    size_t count = decoder_states_by_module(z->model, states), pieces = 0;
    const struct zero3 *g = z->gathered;
    enum plim_dtype dtype = zero_dtype(z), made_as = type_when_made(z);
    for (size_t i = 0; i < count && !e->halted; i++) {
        struct tensor *x = states[i];
        if (x->a.dtype <= PLIM_F16) x->a.dtype = (uint8_t)dtype;
        if (x->accumulator) x->accumulator->output[0].dtype = x->a.dtype;
        if (!x->is_parameter) {
            storage_resize(e, x->storage, tensor_elements(x) * plim_dtype_size(x->a.dtype));
            x->a.data = x->storage->address;
        } else if (!g->frozen || !x->requires_grad) {
            struct tensor *piece = make_piece(e, z, x, made_as);
            if (!g->frozen && piece) states[pieces++] = piece; /* otherwise it stays where it is */
        }
    }
    if (z->model->head == z->model->embedding) make_tied(e, z);
    return pieces;
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
static void gather_alone(struct engine *e, const struct zero *z, const struct zero3_parameter *p)
{
    struct tensor *whole = tensor_keep(tensor_empty(e, zero_dtype(z), SHAPE(p->piece * z->world)));
    tensor_drop(e, zero3_fetch(e, z, p));
    tensor_drop(e, whole);
}

/* Returns a view of a gathered weight in its shape, without padding; named. */
static struct tensor *in_shape(struct engine *e, const struct tensor *weight, struct tensor *whole)
{
    if (e->halted) return e->poison;
    return tensor_keep(tensor_alias(e, whole, weight->a.ndim, weight->a.shape, weight->a.stride, 0));
}

/* DoraLinearLayer.update_layer(): gathers the base's weight and bias, one after the other (GatheredParameters). A and B
 * are lent. Returns the magnitude, named. */
static struct tensor *make_magnitude(struct engine *e, const struct zero *z, const struct lora_adapter *a,
                                     struct tensor *low, struct tensor *high)
{
    struct tensor *const base[2] = {a->weight, a->bias};
    struct tensor *pieces[2] = {NULL}, *whole[2] = {NULL}, *delta, *sum;
    struct tensor *matrices[2] = {in_shape(e, a->a, low), in_shape(e, a->b, high)};
    nn_dora_widen(e, matrices);
    for (int i = 0; i < 2 && a->bias; i++) pieces[i] = zero3_fetch(e, z, &z->gathered->parameters[base[i]->place]);
    for (int i = 0; i < 2 && base[i]; i++)
        whole[i] = tensor_keep(
            tensor_empty(e, zero_dtype(z), SHAPE(z->gathered->parameters[base[i]->place].piece * z->world)));
    if (!a->bias) pieces[0] = zero3_fetch(e, z, &z->gathered->parameters[base[0]->place]);
    tensor_drop_all(e, pieces[0], pieces[1]);
    struct tensor *weight = in_shape(e, a->weight, whole[0]);
    struct tensor *magnitude = nn_dora_magnitude(e, a, weight, matrices, &delta, &sum);
    tensor_drop_all(e, weight, whole[0], whole[1], matrices[0], matrices[1], delta, sum);
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
    const struct zero3 *g = z->gathered;
    size_t count = g->count - g->frozen;
    enum plim_dtype dtype = zero_dtype(z);
    for (size_t i = 0; i < g->frozen && !e->halted; i++) gather_alone(e, z, &g->parameters[i]);
    for (size_t i = 0; i < count && !e->halted; i++) {
        const struct tensor *x = g->parameters[g->frozen + i].whole;
        const struct lora_adapter *a = decoder_adapter_of_magnitude(z->model, x);
        list[i] = a ? make_magnitude(e, z, a, list[i - 2], list[i - 1])
                    : tensor_keep(tensor_empty(e, dtype, SHAPE(tensor_elements(x))));
    }
    if (dtype != PLIM_F32 && !e->halted) convert(e, list, count, PLIM_F32);
    free_memory(e);
    if (dtype != PLIM_F32 && !e->halted) convert(e, list, count, dtype);
    for (size_t i = 0; i < count && !e->halted; i++) {
        struct tensor *piece = room_for(e, z, &g->parameters[g->frozen + i]);
        tensor_drop(e, list[i]);
        list[i] = piece;
    }
    return zero_offloads_parameters(z) ? 0 : count;
}

/* Partitions a model that is on the GPU, parameter by parameter, including adapters. Stores the trainable partitions in
 * `states`, and returns their number. (DeepSpeed also creates strings of what it converts, which take some hundred
 * bytes at a time; that is not modelled.) */
static size_t cut_loaded(struct engine *e, struct zero *z, struct tensor **states)
{
    free_memory(e);
    size_t count = decoder_cast_loaded(e, z->model, states), pieces = 0;
    for (size_t i = 0; i < count && !e->halted; i++) {
        struct tensor *x = states[i];
        if (!x->is_parameter) continue;
        struct zero3_parameter *p = &z->gathered->parameters[x->place];
        struct tensor *piece = room_for(e, z, p);
        if (!e->halted) zero3_let_go(e, p);
        if (x->requires_grad && piece) states[pieces++] = piece; /* otherwise it stays where it is */
    }
    return pieces;
}

/* Creates the partitions. defragment() moves the trainable ones into one tensor, through the host. */
static void make_pieces(struct engine *e, struct zero *z, struct tensor **states)
{
    struct zero3 *g = z->gathered;
    size_t pieces = 0;
    if (zero_is_loaded(z)) {
        trainer_loop_meet(e, z->model->setting, z->link);
        pieces = cut_loaded(e, z, states);
    } else {
        pieces = make_model(e, z, states);
        trainer_loop_meet(e, z->model->setting, z->link);
        if (g->frozen) pieces = make_adapters(e, z, states);
        else if (plim_loop_is_trainers(z->model->setting->loop)) free_memory(e);
    }
    if (!z->offloads) tensor_keep(tensor_empty(e, PLIM_BOOL, SHAPE(1))); /* inf_or_nan_tracker */
    link_meet(e, z->link);
    for (size_t i = g->frozen; i < g->count; i++) g->part += g->parameters[i].piece;
    if (zero_offloads_parameters(z)) return;
    for (size_t i = 0; i < pieces && !e->halted; i++) tensor_drop(e, states[i]);
    plim_allocator_empty_cache(e->allocator);
    g->flat = tensor_keep(tensor_empty(e, zero_dtype(z), SHAPE(g->part)));
}

/* _create_fp16_sub_groups() of one of the optimizer's groups. */
static void make_sub_groups(struct zero *z, size_t first, size_t end)
{
    struct zero3 *g = z->gathered;
    int64_t all = 0, most = z->options->sub_group_elements;
    for (size_t i = first; i < end; i++) all += g->updated[i]->piece;
    const struct zero3_group *last = g->group_count ? &g->groups[g->group_count - 1] : NULL;
    struct zero3_group group = {.first = first, .offset = last ? last->offset + last->elements : 0};
    for (size_t i = first; i < end; i++) {
        group.elements += g->updated[i]->piece;
        group.end = i + 1;
        if (!(all > most && group.elements >= most) && i + 1 < end) continue;
        g->groups[g->group_count++] = group;
        group = (struct zero3_group){.first = i + 1, .offset = group.offset + group.elements};
    }
}

static void make_groups(struct zero *z)
{
    struct zero3 *g = z->gathered;
    const struct parameters *p = &z->model->parameters;
    size_t count = 0;
    int groups = zero_group_count(z);
    for (int group = 0; group < groups; group++) {
        size_t first = count;
        for (size_t i = 0; i < p->count; i++)
            if (groups == 1 || zero_group_of(z, p->list[i]) == group)
                g->updated[count++] = &g->parameters[p->list[i]->place];
        make_sub_groups(z, first, count);
    }
}

/* Creates an fp32 copy of the partitions of each sub-group, through a copy that is freed when the next one exists, and
 * zeros of the size of the largest gradient, which nothing uses. */
static void make_masters(struct engine *e, struct zero *z)
{
    int64_t largest = 0;
    struct tensor *wide = NULL;
    for (size_t i = 0; i < z->gathered->group_count && !e->halted; i++) {
        const struct zero3_group *g = &z->gathered->groups[i];
        if (g->elements > largest) largest = g->elements;
        struct tensor *flat =
            tensor_alias(e, z->gathered->flat, 1, &g->elements, (int64_t[]){1}, g->offset);
        struct tensor *next = tensor_hold(op_to(e, flat, PLIM_F32));
        tensor_drop(e, wide);
        wide = next;
        struct tensor *master = tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(g->elements)));
        if (e->halted) break;
        master->is_parameter = master->requires_grad = true;
        z->sharded.list[z->sharded.count++] = master;
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
    if (!z->offloads) z->owned = tensor_keep(op_full(e, zero_dtype(z), SHAPE(z->gathered->part), 0));
    engine_set_class(e, PLIM_MEMORY_COMMUNICATION);
    for (size_t i = 0; i < z->count; i++) gather_alone(e, z, z->gathered->updated[i]); /* to register their hooks */
}

enum plim_status zero3_create(struct engine *e, struct zero *z, struct tensor **states)
{
    const struct parameters *p = &z->model->parameters;
    z->gathered = calloc(1, sizeof *z->gathered);
    if (!z->gathered) return PLIM_NOMEM;
    enum plim_status st = zero3_trace_create(e, z, z->gathered, states, reduce_leaf);
    if (st != PLIM_OK || e->halted) return st;
    for (size_t i = 0; i < p->count; i++)
        z->weights[z->count++] = (struct zero_weight){.parameter = z->gathered->parameters[p->frozen_count + i].whole};
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_PARAMETERS);
    make_pieces(e, z, states);
    make_rest(e, z);
    engine_set_class(e, before);
    return PLIM_OK;
}

void zero3_finish(struct zero *z)
{
    if (z->gathered) zero3_trace_finish(z->gathered);
    free(z->gathered);
    z->gathered = NULL;
}

bool zero3_mixes_persistent(const struct zero3 *z)
{
    size_t integers = 0;
    for (size_t i = 0; i < z->persistent_count; i++) integers += z->persistent[i]->whole->a.dtype == PLIM_U8;
    return integers > 0 && integers < z->persistent_count;
}
