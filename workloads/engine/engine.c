/* The state of one training process: pools, storages, launches, halting. */
#include "engine.h"
#include "autograd.h"
#include "checkpoint.h"
#include "devices/half.h"
#include "devices/needs.h"
#include <stdlib.h>
#include <string.h>

/* --- pools ---------------------------------------------------------------------------------- */

enum { SLAB_OBJECTS = 512 };

struct pool_slab {
    struct pool_slab *next;
    _Alignas(16) unsigned char objects[];
};

static void slab_to_list(struct pool *p, struct pool_slab *slab)
{
    for (int i = SLAB_OBJECTS - 1; i >= 0; i--) {
        void *object = slab->objects + (size_t)i * p->size;
        memcpy(object, &p->free, sizeof p->free);
        p->free = object;
    }
}

void *pool_take(struct pool *p)
{
    if (!p->free) {
        struct pool_slab *slab = malloc(sizeof *slab + SLAB_OBJECTS * p->size);
        if (!slab) return NULL;
        slab->next = p->slabs;
        p->slabs = slab;
        slab_to_list(p, slab);
    }
    void *object = p->free;
    memcpy(&p->free, object, sizeof p->free);
    p->live++;
    return object;
}

void pool_give(struct pool *p, void *object)
{
    memcpy(object, &p->free, sizeof p->free);
    p->free = object;
    p->live--;
}

void pool_reset(struct pool *p)
{
    p->free = NULL;
    p->live = 0;
    for (struct pool_slab *slab = p->slabs; slab; slab = slab->next) slab_to_list(p, slab);
}

void pool_finish(struct pool *p)
{
    while (p->slabs) {
        struct pool_slab *next = p->slabs->next;
        free(p->slabs);
        p->slabs = next;
    }
}

/* --- the engine ----------------------------------------------------------------------------- */

enum plim_status engine_create(struct plim_device *device, struct plim_allocator *allocator,
                               struct engine **out, struct plim_error *err)
{
    *out = NULL;
    struct engine *e = calloc(1, sizeof *e);
    struct tensor *poison = calloc(1, sizeof *poison);
    if (!e || !poison) {
        free(e);
        free(poison);
        return plim_fail(err, PLIM_NOMEM, "no memory for the engine");
    }
    e->device = device;
    e->allocator = allocator;
    e->tensors.size = (sizeof(struct tensor) + 15) & ~(size_t)15;
    e->storages.size = (sizeof(struct storage) + 15) & ~(size_t)15;
    e->nodes.size = (sizeof(struct node) + 15) & ~(size_t)15;
    for (int i = 0; i < PLIM_MAX_DIMS; i++) poison->a.shape[i] = poison->a.stride[i] = 1;
    poison->a.ndim = 4;
    poison->storage = &e->poison_storage;
    e->poison = poison;
    *out = e;
    engine_reset(e);
    return PLIM_OK;
}

void engine_reset(struct engine *e)
{
    checkpoint_reset(e);
    pool_reset(&e->tensors);
    pool_reset(&e->storages);
    pool_reset(&e->nodes);
    plim_allocator_reset(e->allocator);
    e->halted = HALT_NONE;
    e->grad_enabled = true;
    e->thread = THREAD_MAIN;
    e->autocast = false;
    e->autocast_depth = 0;
    e->cast_count = 0;
    e->fresh_class = PLIM_MEMORY_TEMPORARIES;
    memset(e->class_bytes, 0, sizeof e->class_bytes);
    memset(e->class_bytes_at_peak, 0, sizeof e->class_bytes_at_peak);
    e->peak_allocated = 0;
    memset(e->blas_workspace, 0, sizeof e->blas_workspace);
    memset(e->blaslt_workspace, 0, sizeof e->blaslt_workspace);
    e->sequence = e->seed = 0;
    e->frame = e->recompute = NULL;
    e->heap_count = 0;
    e->dead = NULL;
    e->poison->refs = 2 * POISON_REFS - 1;
    e->poison_storage = (struct storage){.refs = POISON_REFS};
    e->trace_next_id = 0;
}

void engine_destroy(struct engine **ep)
{
    struct engine *e = *ep;
    if (!e) return;
    checkpoint_finish(e);
    pool_finish(&e->tensors);
    pool_finish(&e->storages);
    pool_finish(&e->nodes);
    free(e->cast_cache);
    free(e->heap);
    free(e->poison);
    free(e);
    *ep = NULL;
}

void engine_halt(struct engine *e, enum halt why)
{
    if (e->halted == HALT_NONE || e->halted == HALT_EARLY_STOP) e->halted = why;
}

void engine_fail(struct engine *e, enum plim_status status)
{
    if (e->halted == HALT_NONE || e->halted == HALT_EARLY_STOP) e->failure = status;
    engine_halt(e, HALT_FAILED);
}

void engine_launch(struct engine *e, const struct plim_op *op)
{
    enum plim_status st = plim_device_launch(e->device, op);
    if (st == PLIM_OK) return;
    e->halting_op = plim_op_name(op->kind);
    e->oom_asked_bytes = 0; /* of PLIM_OOM: the kernel's own code found no room */
    if (st == PLIM_UNSUPPORTED) engine_halt(e, HALT_UNSUPPORTED);
    else if (st == PLIM_OOM) engine_halt(e, HALT_OOM);
    else engine_fail(e, st);
}

static double number(enum plim_dtype dtype, const void *at)
{
    switch (dtype) {
    case PLIM_F32: return *(const float *)at;
    case PLIM_BF16: return plim_bf16_to_float(*(const uint16_t *)at);
    case PLIM_F16: return plim_fp16_to_float(*(const uint16_t *)at);
    case PLIM_I64: return (double)*(const int64_t *)at;
    case PLIM_I32: return *(const int32_t *)at;
    default: return *(const uint8_t *)at;
    }
}

double engine_item(struct engine *e, const struct tensor *x)
{
    struct plim_op op = {.kind = PLIM_OP_READ_BACK, .n_in = 1, .in = {&x->a}};
    int64_t element = 0; /* aligned for any type */
    if (!e->halted) engine_launch(e, &op);
    if (e->halted) return 0;
    enum plim_dtype dtype = (enum plim_dtype)x->a.dtype;
    enum plim_status st =
        plim_device_read(e->device, x->a.data, &element, (size_t)plim_dtype_size(dtype));
    if (st != PLIM_OK) engine_fail(e, st);
    return number(dtype, &element);
}

void engine_write(struct engine *e, struct tensor *x, const void *from, size_t bytes)
{
    if (e->halted) return;
    enum plim_status st = plim_device_write(e->device, x->a.data, from, bytes);
    if (st != PLIM_OK) engine_fail(e, st);
}

static struct storage *workspace(struct engine *e, struct storage **slot, int64_t bytes)
{
    if (*slot || e->halted) return *slot;
    enum plim_memory_class fresh = e->fresh_class;
    e->fresh_class = PLIM_MEMORY_WORKSPACE;
    *slot = storage_get(e, bytes);
    e->fresh_class = fresh;
    return *slot;
}

struct storage *engine_blas_workspace(struct engine *e)
{
    return workspace(e, &e->blas_workspace[e->thread],
                     plim_cublas_workspace_bytes(&e->device->info));
}

struct storage *engine_blaslt_workspace(struct engine *e)
{
    engine_blas_workspace(e);
    return workspace(e, &e->blaslt_workspace[e->thread],
                     plim_cublaslt_workspace_bytes(&e->device->info));
}

/* --- storages ------------------------------------------------------------------------------- */

static void trace_get(struct engine *e, struct storage *s, int64_t bytes)
{
    s->trace_id = ++e->trace_next_id;
    fprintf(e->trace, "a %lld %lld\n", (long long)s->trace_id, (long long)bytes);
}

struct storage *storage_get(struct engine *e, int64_t bytes)
{
    if (e->halted) return NULL;
    struct storage *s = pool_take(&e->storages);
    if (!s) {
        engine_fail(e, PLIM_NOMEM);
        return NULL;
    }
    enum plim_status st = plim_allocator_malloc(e->allocator, bytes, 0, &s->block);
    if (st != PLIM_OK) {
        pool_give(&e->storages, s);
        e->oom_asked_bytes = bytes;
        /* what forward asks for with gradients on is, nearly always, kept for backward */
        bool forward = e->grad_enabled && e->thread == THREAD_MAIN &&
                       e->fresh_class == PLIM_MEMORY_TEMPORARIES;
        e->oom_class = forward ? PLIM_MEMORY_ACTIVATIONS : e->fresh_class;
        if (st == PLIM_OOM) engine_halt(e, HALT_OOM);
        else engine_fail(e, st);
        return NULL;
    }
    s->address = s->block ? plim_block_address(s->block) : 0;
    s->bytes = s->block ? plim_block_bytes(s->block) : 0;
    s->refs = 1;
    s->saved = 0;
    s->memory_class = (uint8_t)e->fresh_class;
    s->pinned_class = e->fresh_class != PLIM_MEMORY_TEMPORARIES;
    e->class_bytes[s->memory_class] += s->bytes;
    if (engine_allocated(e) > e->peak_allocated) {
        e->peak_allocated = engine_allocated(e);
        memcpy(e->class_bytes_at_peak, e->class_bytes, sizeof e->class_bytes);
    }
    if (e->trace && bytes) trace_get(e, s, bytes);
    return s;
}

void storage_put(struct engine *e, struct storage *s)
{
    if (--s->refs > 0) return;
    enum plim_memory_class c =
        s->saved && !s->pinned_class ? PLIM_MEMORY_ACTIVATIONS : s->memory_class;
    e->class_bytes[c] -= s->bytes;
    if (e->trace && s->block) fprintf(e->trace, "f %lld\n", (long long)s->trace_id);
    plim_allocator_free(e->allocator, s->block);
    pool_give(&e->storages, s);
}

void storage_saved(struct engine *e, struct storage *s, int change)
{
    bool was = s->saved > 0;
    s->saved += change;
    if (s->pinned_class || was == (s->saved > 0)) return;
    int64_t moved = was ? -s->bytes : s->bytes;
    e->class_bytes[PLIM_MEMORY_ACTIVATIONS] += moved;
    e->class_bytes[s->memory_class] -= moved;
}
