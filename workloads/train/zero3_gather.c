/* Which parameters are gathered, and when: the hooks of modules, and prefetching. */
#include "buffer.h"
#include "workloads/engine/autograd.h"
#include "workloads/engine/checkpoint.h"
#include "zero3.h"
#include <stdlib.h>
#include <string.h>

static int64_t bytes_of(const struct zero3_parameter *p, int64_t elements)
{
    return elements * plim_dtype_size((enum plim_dtype)p->tensor->a.dtype);
}

static bool persists(const struct zero3 *z, const struct zero3_parameter *p)
{
    return p->elements <= z->zero->options->persistent_elements;
}

static void allocate(struct engine *e, struct zero3_parameter *p, int64_t elements)
{
    storage_resize(e, p->tensor->storage, bytes_of(p, elements));
    p->tensor->a.data = p->tensor->storage->address;
}

void zero3_free_param(struct engine *e, struct zero3_parameter *p)
{
    if (!p->tensor->storage->block) return; /* use_own_partition() */
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_PARAMETERS);
    struct storage *none = storage_get(e, 0);
    engine_set_class(e, before);
    if (!none) return;
    plim_allocator_record_stream(e->allocator, p->tensor->storage->block, 0);
    storage_put(e, p->tensor->storage);
    p->tensor->storage = none;
    p->tensor->a.data = 0;
}

enum plim_dtype zero3_dtype(const struct zero *z, const struct zero3_parameter *p)
{
    return p->tensor->is_codes ? (enum plim_dtype)p->tensor->a.dtype : zero_dtype(z);
}

struct tensor *zero3_copy_from_host(struct engine *e, const struct zero *z, const struct zero3_parameter *p)
{
    if (!zero_offloads_parameters(z) || e->halted) return NULL;
    struct tensor *partition = tensor_keep(tensor_empty(e, zero3_dtype(z, p), SHAPE(p->partition_size)));
    buffer_copy(e, p->partition_size, partition, zero3_dtype(z, p));
    return partition;
}

static void drop(struct engine *e, struct tensor **x)
{
    tensor_drop(e, *x);
    *x = NULL;
}

/* --- one all-gather --------------------------------------------------------------------------- */

static struct zero3_all_gather *new_all_gather(struct zero3 *z)
{
    while (z->all_gathers[z->next_all_gather].waiting) z->next_all_gather = (z->next_all_gather + 1) % z->count;
    return &z->all_gathers[z->next_all_gather];
}

/* With one rank a partition is the full parameter; if it is on the GPU it is used directly. */
static void use_own_partition(struct engine *e, const struct zero3 *z, struct zero3_parameter *p)
{
    if (z->flat) p->tensor->a.data = z->flat->a.data;
    else allocate(e, p, p->partition_size);
}

static bool is_integer(const struct zero3_parameter *p)
{
    return p->tensor->a.dtype == PLIM_U8;
}

/* _all_gather_dtype(): gathers floating-point parameters into one buffer and all others into another. */
static void gather_into_buffers(struct engine *e, struct zero3 *z, size_t count, struct zero3_parameter *const *list,
                                struct zero3_all_gather *g)
{
    for (int integers = 0; integers < 2; integers++) {
        enum plim_dtype dtype = PLIM_U8;
        int64_t elements = 0;
        for (size_t i = 0; i < count; i++) {
            if (is_integer(list[i]) != integers) continue;
            dtype = (enum plim_dtype)list[i]->tensor->a.dtype;
            elements += list[i]->partition_size;
        }
        if (!elements) continue;
        g->flat[integers] = tensor_keep(tensor_empty(e, dtype, SHAPE(elements * z->zero->world)));
        for (size_t i = 0; i < count; i++)
            if (is_integer(list[i]) == integers) list[i]->staged = zero3_copy_from_host(e, z->zero, list[i]);
        buffer_copy(e, elements, g->flat[integers], dtype);
        for (size_t i = count; i-- > 0;) drop(e, &list[i]->staged);
    }
}

/* all_gather_coalesced() of parameters in the order of the model. */
static void all_gather(struct engine *e, struct zero3 *z, size_t count, struct zero3_parameter *const *list)
{
    int64_t bytes = 0;
    if (!count || e->halted) return;
    struct zero3_all_gather *g = new_all_gather(z);
    *g = (struct zero3_all_gather){.first = list[0], .waiting = count, .region = checkpoint_retain(e)};
    for (size_t i = 0; i < count; i++) {
        struct zero3_parameter *p = list[i];
        bytes += bytes_of(p, p->partition_size * z->zero->world);
        z->live += p->elements;
        p->status = ZERO3_INFLIGHT;
        p->all_gather = g;
        p->next = i + 1 < count ? list[i + 1] : NULL;
        p->pending = true;
    }
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_COMMUNICATION);
    e->stream = z->zero->overlaps ? ZERO3_ALL_GATHER_STREAM : 0;
    if (z->zero->world == 1) {
        for (size_t i = 0; i < count; i++) use_own_partition(e, z, list[i]);
    } else if (count == 1) {
        allocate(e, g->first, g->first->partition_size * z->zero->world);
        g->staged = zero3_copy_from_host(e, z->zero, g->first);
    } else {
        gather_into_buffers(e, z, count, list, g);
    }
    e->stream = 0;
    engine_set_class(e, before);
    g->arrival = link_send(z->zero->link, link_now(z->zero->link), (double)bytes, 1);
}

/* Copies a gathered parameter out of the buffer `flat`; NULL: it is already in its own memory. */
static void copy_out(struct engine *e, struct zero3_parameter *p, struct tensor *flat)
{
    if (flat) allocate(e, p, p->elements);
    if (flat) buffer_copy(e, p->elements, flat, (enum plim_dtype)p->tensor->a.dtype);
    p->status = ZERO3_AVAILABLE;
}

/* Waiting for the first parameter of a list copies all out of the buffer, which is freed after waiting for the last. */
static void wait_for(struct engine *e, struct zero3 *z, struct zero3_parameter *p)
{
    struct zero3_all_gather *g = p->all_gather;
    if (!p->pending || e->halted) return;
    p->pending = false;
    e->stream = z->zero->overlaps ? ZERO3_ALL_GATHER_STREAM : 0;
    link_wait(z->zero->link, g->arrival);
    drop(e, &g->staged);
    struct zero3_parameter *first = p->status == ZERO3_INFLIGHT ? g->first : NULL;
    for (int integers = 0; integers < 2; integers++)
        for (struct zero3_parameter *q = first; q; q = q->next)
            if (is_integer(q) == integers) copy_out(e, q, g->flat[integers]);
    if (--g->waiting == 0) {
        checkpoint_release(e, g->region);
        for (int integers = 0; integers < 2; integers++) drop(e, &g->flat[integers]);
    }
    e->stream = 0;
}

static void release_param(struct engine *e, struct zero3 *z, struct zero3_parameter *p)
{
    if (p->status != ZERO3_AVAILABLE || p->active_modules || e->halted) return;
    zero3_free_param(e, p);
    p->status = ZERO3_NOT_AVAILABLE;
    z->live -= p->elements;
}

/* --- prefetching ------------------------------------------------------------------------------ */

static int by_index(const void *a, const void *b)
{
    const struct zero3_parameter *x = *(struct zero3_parameter *const *)a, *y = *(struct zero3_parameter *const *)b;
    return (x > y) - (x < y);
}

/* Skips the uses by the module itself, which no longer need to be prefetched. */
static void skip_own(struct zero3 *z, const struct zero3_module *m)
{
    size_t own = 0;
    for (size_t i = 0; i < m->count; i++) own += m->parameter[i]->fetched_for < z->step;
    for (; own > 0 && z->next_use < z->use_count; own--) {
        const struct zero3_use *use = &z->uses[z->next_use++];
        use->parameter->fetched_for = use->step;
    }
}

static void prefetch(struct engine *e, struct zero3 *z)
{
    const struct plim_zero *options = z->zero->options;
    int64_t limit = options->live_elements - z->live, elements = 0;
    size_t count = 0;
    if (limit > options->prefetch_elements) limit = options->prefetch_elements;
    while (z->next_use < z->use_count && elements < limit) {
        const struct zero3_use *use = &z->uses[z->next_use++];
        struct zero3_parameter *p = use->parameter;
        if (use->step > p->fetched_for) p->fetched_for = use->step;
        if (p->status != ZERO3_NOT_AVAILABLE) continue;
        p->status = ZERO3_INFLIGHT;
        elements += p->elements;
        z->chosen[count++] = p;
    }
    qsort(z->chosen, count, sizeof(struct zero3_parameter *), by_index);
    all_gather(e, z, count, z->chosen);
}

/* Frees parameters that were prefetched and not used. */
static void release_pending(struct engine *e, struct zero3 *z)
{
    for (size_t i = 0; i < z->count; i++) {
        struct zero3_parameter *p = &z->parameters[i];
        if (!p->pending) continue;
        wait_for(e, z, p);
        release_param(e, z, p);
    }
}

/* _invalidate_trace(): there is no trace, and none is recorded, until the next forward begins. */
static void invalidate_trace(struct engine *e, struct zero3 *z)
{
    z->is_complete = z->records = false;
    z->order_count = z->use_count = z->next_use = 0;
    for (size_t i = 0; i < z->count; i++) z->parameters[i].fetched_for = -1;
    release_pending(e, z);
}

/* trace_prologue(): true if the module is the next one of the trace. It is not if an evaluation before the first step
 * recorded the trace and a backward begins; nor if an evaluation skips a dropout. */
static bool is_of_trace(const struct zero3 *z, const struct zero3_module *m)
{
    return (size_t)z->step < z->order_count && z->order[z->step] == m;
}

/* --- start and end of a module ---------------------------------------------------------------- */

/* PartitionedParameterCoordinator.fetch_sub_module() */
static void fetch_sub_module(struct engine *e, struct zero3 *z, struct zero3_module *m)
{
    struct zero3_parameter *missing[EXPERTS_WEIGHTS];
    size_t count = 0;
    if (e->halted) return;
    if (z->is_complete && !is_of_trace(z, m)) invalidate_trace(e, z);
    if (z->records && z->order_count == z->order_capacity) {
        engine_fail(e, PLIM_INTERNAL);
        return;
    }
    if (z->records) z->order[z->order_count++] = m;
    for (size_t i = 0; i < m->count; i++)
        if (m->parameter[i]->status == ZERO3_NOT_AVAILABLE) missing[count++] = m->parameter[i];
    all_gather(e, z, count, missing);
    for (size_t i = 0; i < m->count; i++) {
        if (!m->active[i]) m->parameter[i]->active_modules++;
        m->active[i] = true;
        wait_for(e, z, m->parameter[i]);
    }
    if (z->is_complete) skip_own(z, m);
    if (z->is_complete) prefetch(e, z);
    z->step++;
}

/* True if the parameter is used again within max_reuse_distance elements. */
static bool is_used_soon(const struct zero3 *z, const struct zero3_parameter *p)
{
    int64_t passed = 0, reuse = z->zero->options->reuse_elements;
    for (size_t i = (size_t)z->step; i < z->order_count && passed < reuse; i++)
        for (size_t k = 0; k < z->order[i]->count; k++) {
            if (z->order[i]->parameter[k] == p) return true;
            passed += z->order[i]->parameter[k]->elements;
        }
    return false;
}

/* __params_to_release(): returns the module's parameters to release, one bit each. */
static uint32_t find_released(const struct zero3 *z, const struct zero3_module *m)
{
    uint32_t released = 0;
    for (size_t i = 0; i < m->count; i++) {
        const struct zero3_parameter *p = m->parameter[i];
        bool stays = persists(z, p) || p->fetched_for > z->step || is_used_soon(z, p);
        if (!stays) released |= 1u << i;
    }
    return released;
}

/* The result of the module's first end at this step is reused, even in another trace (functools.lru_cache). */
static uint32_t released_by(struct engine *e, struct zero3 *z, struct zero3_module *m)
{
    for (size_t i = m->last_release; i > 0; i = z->releases[i - 1].before)
        if (z->releases[i - 1].step == z->step) return z->releases[i - 1].released;
    if (z->release_count == z->release_capacity) {
        size_t capacity = z->release_capacity ? 2 * z->release_capacity : 256;
        struct zero3_release *list = realloc(z->releases, capacity * sizeof *list);
        if (!list) {
            engine_fail(e, PLIM_NOMEM);
            return 0;
        }
        z->releases = list;
        z->release_capacity = capacity;
    }
    z->releases[z->release_count++] = (struct zero3_release){z->step, find_released(z, m), m->last_release};
    m->last_release = z->release_count;
    return z->releases[z->release_count - 1].released;
}

/* PartitionedParameterCoordinator.release_sub_module() */
static void release_sub_module(struct engine *e, struct zero3 *z, struct zero3_module *m)
{
    uint32_t released = !m->count ? 0 : z->is_complete ? released_by(e, z, m) : UINT32_MAX;
    for (size_t i = 0; i < m->count; i++) {
        struct zero3_parameter *p = m->parameter[i];
        if (m->active[i]) p->active_modules--;
        m->active[i] = false;
        if ((released >> i) & 1) release_param(e, z, p);
    }
}

/* --- hooks ------------------------------------------------------------------------------------ */

static struct zero3_module *module_of(struct zero3 *z, struct tensor *const *weights, int kind)
{
    return &z->modules[(size_t)weights[0]->param_index * NN_KINDS + (size_t)kind];
}

static void set_module_parameters(struct zero3 *z, struct zero3_module *m, struct tensor *const *weights)
{
    if (m->count) return;
    for (; weights[m->count]; m->count++) m->parameter[m->count] = &z->parameters[weights[m->count]->param_index];
    qsort(m->parameter, m->count, sizeof m->parameter[0], by_index);
}

/* Reduces a leaf's gradients when backward has reached its `input` (taken if floating), before its parameters are
 * freed. */
static struct tensor *reduced_together(struct engine *e, struct zero3_module *m, struct tensor *input)
{
    for (size_t i = 0; i < m->count; i++) m->parameter[i]->of_leaf = true;
    bool was = tensor_enter(input);
    struct tensor *marked = autograd_mark(e, input, &m->reduce);
    tensor_leave(e, input, was);
    return marked;
}

static struct tensor *before_forward(struct engine *e, void *context,
                                     struct tensor *const *weights, int kind, struct tensor *x)
{
    struct zero3_module *m = module_of(context, weights, kind);
    if (kind != NN_ADAPTED && kind != NN_MODEL && kind != NN_ACCESSES) set_module_parameters(context, m, weights);
    fetch_sub_module(e, context, m);
    struct tensor *input = kind == NN_OWN || kind == NN_ACCESSES ? x : autograd_mark(e, x, &m->after_backward);
    return kind == NN_LEAF && input != x ? reduced_together(e, m, input) : input;
}

static struct tensor *after_forward(struct engine *e, void *context,
                                    struct tensor *const *weights, int kind, struct tensor *y)
{
    struct zero3_module *m = module_of(context, weights, kind);
    release_sub_module(e, context, m);
    return autograd_mark(e, y, &m->before_backward);
}

/* Adds a parameter to a module. At steps at which the module has already ended once, it does not free this one. */
static void add_external_parameter(struct engine *e, struct zero3_module *m, struct zero3_parameter *p)
{
    size_t at = m->count;
    for (size_t i = 0; i < m->count; i++)
        if (m->parameter[i] == p) return;
    if (m->count == EXPERTS_WEIGHTS) {
        engine_fail(e, PLIM_INTERNAL);
        return;
    }
    for (; at > 0 && m->parameter[at - 1] > p; at--) {
        m->parameter[at] = m->parameter[at - 1];
        m->active[at] = m->active[at - 1];
    }
    m->parameter[at] = p;
    m->active[at] = false;
    m->count++;
    for (size_t i = m->last_release; i > 0; i = m->z->releases[i - 1].before) {
        uint32_t *released = &m->z->releases[i - 1].released, below = (1u << at) - 1;
        *released = (*released & below) | (*released & ~below) << 1;
    }
}

/* param.all_gather(), outside of the trace. */
static void all_gather_now(struct engine *e, const struct zero3 *z, struct zero3_parameter *p)
{
    allocate(e, p, p->partition_size * z->zero->world);
    tensor_drop(e, zero3_copy_from_host(e, z->zero, p));
    p->status = ZERO3_AVAILABLE;
}

/* Hook: a parameter that is read from outside its module while it is not gathered is gathered, and from then on also
 * belongs to the reading module (register_external_parameter()), but not yet to its current run. */
static void access_weight(struct engine *e, void *context, struct tensor *first, int kind, struct tensor *weight)
{
    struct zero3 *z = context;
    struct zero3_parameter *p = &z->parameters[weight->param_index];
    if (p->status != ZERO3_NOT_AVAILABLE || e->halted) return;
    if (!first && e->evaluates) return; /* ZeROOrderedDict: not in the engine's forward() */
    all_gather_now(e, z, p);
    add_external_parameter(e, first ? module_of(z, &first, kind) : z->caller, p);
}

/* GatheredParameters, which TRL uses for a head that is not gathered. */
static struct tensor *full_weight(struct engine *e, void *context, struct tensor *weight)
{
    struct zero3 *z = context;
    struct zero3_parameter *p = &z->parameters[weight->param_index];
    if (p->status == ZERO3_NOT_AVAILABLE) all_gather_now(e, z, p);
    return tensor_ref(weight);
}

static void release_weight(struct engine *e, void *context, struct tensor *weight)
{
    struct zero3 *z = context;
    struct zero3_parameter *p = &z->parameters[weight->param_index];
    if (!p->active_modules && !persists(z, p) && e->evaluates) release_param(e, z, p);
}

/* A module without parameters is a step of the trace like any other, at which more may be prefetched. */
static void begin(struct engine *e, void *context)
{
    struct zero3 *z = context;
    fetch_sub_module(e, z, z->model);
}

static struct tensor *end(struct engine *e, void *context, struct tensor *y)
{
    struct zero3 *z = context;
    return autograd_mark(e, y, &z->model->before_backward);
}

static void before_backward(struct engine *e, void *context)
{
    struct zero3_module *m = context;
    fetch_sub_module(e, m->z, m);
}

static void after_backward(struct engine *e, void *context)
{
    struct zero3_module *m = context;
    release_sub_module(e, m->z, m);
}

/* --- a forward and its backward --------------------------------------------------------------- */

/* assert_ints_same_as_other_ranks(): sends the number of integers, then the integers. */
static void compare_ranks(struct engine *e, size_t count)
{
    tensor_drop(e, tensor_keep(tensor_empty(e, PLIM_I64, 0, NULL)));
    tensor_drop(e, tensor_keep(tensor_empty(e, PLIM_I64, SHAPE((int64_t)count))));
}

/* Completes the trace: modules, their parameters, and the steps of these. */
static void complete(struct engine *e, struct zero3 *z)
{
    for (size_t i = 0; i < z->order_count; i++)
        for (size_t k = 0; k < z->order[i]->count; k++)
            z->uses[z->use_count++] = (struct zero3_use){z->order[i]->parameter[k], (int64_t)i};
    z->is_complete = true;
    for (int i = 0; i < 2; i++) compare_ranks(e, z->use_count);
}

/* Enters the model; with adapters PeftModel and LoraModel, which calls the model's forward() without its hooks. */
static void enter_models(struct engine *e, struct zero3 *z, int times)
{
    for (int i = 0; i < times && z->frozen; i++) fetch_sub_module(e, z, z->model);
    for (int i = 0; i < times; i++) fetch_sub_module(e, z, z->caller);
}

void zero3_begin_backward(struct engine *e, struct zero3 *z)
{
    enter_models(e, z, z->outputs);
}

void zero3_begin_forward(struct engine *e, struct zero3 *z)
{
    for (size_t i = 0; i < z->count; i++) drop(e, &z->parameters[i].staged); /* zero3_gather_persistent() */
    release_pending(e, z);
    if (!z->is_complete) compare_ranks(e, z->order_count);
    if (z->records) complete(e, z);
    z->records = !z->is_complete;
    z->next_use = 0;
    z->step = z->live = 0;
    for (size_t i = 0; i < z->count; i++) z->parameters[i].fetched_for = -1;
    enter_models(e, z, 1);
}

void zero3_leave_model(struct engine *e, struct zero3 *z, int outputs)
{
    z->outputs = outputs;
    release_sub_module(e, z, z->caller);
}

void zero3_partition_all(struct engine *e, struct zero3 *z)
{
    for (size_t i = 0; i < z->count; i++) {
        struct zero3_parameter *p = &z->parameters[i];
        wait_for(e, z, p);
        p->active_modules = 0;
        release_param(e, z, p);
    }
    for (size_t i = 0; i < z->count * NN_KINDS; i++) memset(z->modules[i].active, 0, sizeof z->modules[i].active);
    memset(z->caller->active, 0, sizeof z->caller->active);
}

/* Waits only for the last all-gather: the inputs of the others are held until NCCL's watchdog has seen their end, which
 * is before the next step. */
void zero3_gather_persistent(struct engine *e, struct zero3 *z)
{
    bool alone = z->zero->world == 1;
    for (size_t i = 0; i < z->persistent_count && !alone; i++)
        z->persistent[i]->staged = zero3_copy_from_host(e, z->zero, z->persistent[i]);
    for (size_t i = 0; i < z->persistent_count && !e->halted; i++) {
        struct zero3_parameter *p = z->persistent[i];
        if (alone) use_own_partition(e, z, p);
        else allocate(e, p, p->partition_size * z->zero->world);
        p->status = ZERO3_AVAILABLE;
    }
    if (z->persistent_count) drop(e, &z->persistent[z->persistent_count - 1]->staged);
}

/* --- creation --------------------------------------------------------------------------------- */

static void find_persistent(const struct decoder *model, struct zero3 *z, struct tensor **states)
{
    size_t count = decoder_states(model, states);
    for (size_t i = 0; i < count; i++)
        if (states[i]->is_parameter && persists(z, &z->parameters[states[i]->param_index]))
            z->persistent[z->persistent_count++] = &z->parameters[states[i]->param_index];
}

/* Stores all parameters in the order of their ds_id in `list`, which has room for all of the model's states: those of
 * the base in the order in which deepspeed.zero.Init creates modules, if it is used, then the adapters. */
static void in_order_of_ids(const struct zero *zero, struct tensor **list)
{
    const struct parameters *p = &zero->model->parameters;
    size_t count = decoder_states_by_module(zero->model, list), base = 0;
    for (size_t i = 0; i < count; i++)
        if (list[i]->is_parameter && (!p->frozen_count || !list[i]->requires_grad)) list[base++] = list[i];
    for (size_t i = 0; i < p->frozen_count && zero_is_loaded(zero); i++) list[i] = p->frozen[i];
    for (size_t i = 0; i < p->count && p->frozen_count; i++) list[p->frozen_count + i] = p->list[i];
}

enum plim_status zero3_trace_create(struct engine *e, struct zero *zero, struct zero3 *z, struct tensor **states,
                                    void (*reduce_leaf)(struct engine *e, void *context))
{
    const struct parameters *p = &zero->model->parameters;
    size_t count = p->frozen_count + p->count, n = count ? count : 1, modules = n * NN_KINDS + 2;
    *z = (struct zero3){.zero = zero, .count = count, .frozen = p->frozen_count, .order_capacity = 4 * modules};
    bool own_linear = !zero_is_loaded(zero); /* deepspeed.zero.Init replaces it while the model is created */
    z->inside = (struct module_hooks){.own_linear = own_linear};
    z->hooks = (struct module_hooks){
        .begin = begin, .end = end, .before = before_forward, .after = after_forward, .access = access_weight,
        .full_weight = full_weight, .release_weight = release_weight, .context = z, .own_linear = own_linear,
        .inside = &z->inside};
    z->parameters = calloc(n, sizeof *z->parameters);
    z->updated = calloc(n, sizeof(struct zero3_parameter *));
    z->sub_groups = calloc(n, sizeof *z->sub_groups);
    z->norms = calloc(n, sizeof(struct tensor *));
    z->modules = calloc(modules, sizeof *z->modules);
    z->order = calloc(z->order_capacity, sizeof(struct zero3_module *));
    z->uses = calloc(2 * z->order_capacity, sizeof *z->uses);
    z->chosen = calloc(n, sizeof(struct zero3_parameter *));
    z->all_gathers = calloc(n, sizeof *z->all_gathers);
    z->persistent = calloc(n, sizeof(struct zero3_parameter *));
    if (!z->parameters || !z->updated || !z->sub_groups || !z->norms || !z->modules || !z->order || !z->uses ||
        !z->chosen || !z->all_gathers || !z->persistent)
        return PLIM_NOMEM;
    for (size_t i = 0; i < modules; i++) {
        struct zero3_module *m = &z->modules[i];
        m->z = z;
        m->before_backward = (struct node_hook){before_backward, m};
        m->after_backward = (struct node_hook){after_backward, m};
        m->reduce = (struct node_hook){reduce_leaf, m};
    }
    z->model = &z->modules[modules - 1];
    z->caller = &z->modules[modules - 2];
    if (!e->halted) in_order_of_ids(zero, states);
    for (size_t i = 0; i < z->count && !e->halted; i++) {
        struct tensor *x = states[i];
        int64_t elements = tensor_elements(x), size = (elements + zero->world - 1) / zero->world;
        x->param_index = (int32_t)i;
        z->parameters[i] = (struct zero3_parameter){.tensor = x, .elements = elements, .partition_size = size};
    }
    if (!e->halted) find_persistent(zero->model, z, states);
    e->modules = &z->hooks;
    return PLIM_OK;
}

void zero3_trace_finish(struct zero3 *z)
{
    free(z->parameters);
    free(z->updated);
    free(z->sub_groups);
    free(z->norms);
    free(z->modules);
    free(z->order);
    free(z->uses);
    free(z->chosen);
    free(z->all_gathers);
    free(z->persistent);
    free(z->releases);
    *z = (struct zero3){0};
}
