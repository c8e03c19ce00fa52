/* The state of one training process: pools, storages, launches, halting. */
#include "graph.h"
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

/* --- the graph ------------------------------------------------------------------------------ */

enum plim_status graph_create(struct plim_device *device, struct plim_allocator *allocator,
                              struct graph **out, struct plim_error *err)
{
    *out = NULL;
    struct graph *g = calloc(1, sizeof *g);
    struct tensor *poison = calloc(1, sizeof *poison);
    if (!g || !poison) {
        free(g);
        free(poison);
        return plim_fail(err, PLIM_NOMEM, "no memory for the engine");
    }
    g->device = device;
    g->allocator = allocator;
    g->tensors.size = (sizeof(struct tensor) + 15) & ~(size_t)15;
    g->storages.size = (sizeof(struct storage) + 15) & ~(size_t)15;
    g->nodes.size = (sizeof(struct node) + 15) & ~(size_t)15;
    for (int i = 0; i < PLIM_MAX_DIMS; i++) poison->a.shape[i] = poison->a.stride[i] = 1;
    poison->a.ndim = 4;
    poison->storage = &g->poison_storage;
    g->poison = poison;
    *out = g;
    graph_reset(g);
    return PLIM_OK;
}

void graph_reset(struct graph *g)
{
    checkpoint_reset(g);
    pool_reset(&g->tensors);
    pool_reset(&g->storages);
    pool_reset(&g->nodes);
    plim_allocator_reset(g->allocator);
    g->halted = HALT_NONE;
    g->grad_enabled = true;
    g->thread = THREAD_MAIN;
    g->autocast = false;
    g->autocast_depth = 0;
    g->cast_count = 0;
    g->fresh_class = PLIM_MEMORY_TEMPORARIES;
    memset(g->class_bytes, 0, sizeof g->class_bytes);
    memset(g->class_bytes_at_peak, 0, sizeof g->class_bytes_at_peak);
    g->peak_allocated = 0;
    memset(g->blas_workspace, 0, sizeof g->blas_workspace);
    memset(g->blaslt_workspace, 0, sizeof g->blaslt_workspace);
    g->sequence = g->seed = 0;
    g->frame = g->recompute = NULL;
    g->heap_count = 0;
    g->dead = NULL;
    g->poison->refs = 2 * POISON_REFS - 1;
    g->poison_storage = (struct storage){.refs = POISON_REFS};
    g->trace_next_id = 0;
}

void graph_destroy(struct graph **gp)
{
    struct graph *g = *gp;
    if (!g) return;
    checkpoint_finish(g);
    pool_finish(&g->tensors);
    pool_finish(&g->storages);
    pool_finish(&g->nodes);
    free(g->cast_cache);
    free(g->heap);
    free(g->poison);
    free(g);
    *gp = NULL;
}

void graph_halt(struct graph *g, enum halt why)
{
    if (g->halted == HALT_NONE || g->halted == HALT_EARLY_STOP) g->halted = why;
}

void graph_fail(struct graph *g, enum plim_status status)
{
    if (g->halted == HALT_NONE || g->halted == HALT_EARLY_STOP) g->failure = status;
    graph_halt(g, HALT_FAILED);
}

void graph_launch(struct graph *g, const struct plim_op *op)
{
    enum plim_status st = plim_device_launch(g->device, op);
    if (st == PLIM_OK) return;
    g->halting_op = plim_op_name(op->kind);
    g->oom_asked_bytes = 0; /* of PLIM_OOM: the kernel's own code found no room */
    if (st == PLIM_UNSUPPORTED) graph_halt(g, HALT_UNSUPPORTED);
    else if (st == PLIM_OOM) graph_halt(g, HALT_OOM);
    else graph_fail(g, st);
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

double graph_item(struct graph *g, const struct tensor *x)
{
    struct plim_op op = {.kind = PLIM_OP_READ_BACK, .n_in = 1, .in = {&x->a}};
    int64_t element = 0; /* aligned for any type */
    if (!g->halted) graph_launch(g, &op);
    if (g->halted) return 0;
    enum plim_dtype dtype = (enum plim_dtype)x->a.dtype;
    enum plim_status st =
        plim_device_read(g->device, x->a.data, &element, (size_t)plim_dtype_size(dtype));
    if (st != PLIM_OK) graph_fail(g, st);
    return number(dtype, &element);
}

void graph_write(struct graph *g, struct tensor *x, const void *from, size_t bytes)
{
    if (g->halted) return;
    enum plim_status st = plim_device_write(g->device, x->a.data, from, bytes);
    if (st != PLIM_OK) graph_fail(g, st);
}

static struct storage *workspace(struct graph *g, struct storage **slot, int64_t bytes)
{
    if (*slot || g->halted) return *slot;
    enum plim_memory_class fresh = g->fresh_class;
    g->fresh_class = PLIM_MEMORY_WORKSPACE;
    *slot = storage_get(g, bytes);
    g->fresh_class = fresh;
    return *slot;
}

struct storage *graph_blas_workspace(struct graph *g)
{
    return workspace(g, &g->blas_workspace[g->thread],
                     plim_cublas_workspace_bytes(&g->device->info));
}

struct storage *graph_blaslt_workspace(struct graph *g)
{
    graph_blas_workspace(g);
    return workspace(g, &g->blaslt_workspace[g->thread],
                     plim_cublaslt_workspace_bytes(&g->device->info));
}

/* --- storages ------------------------------------------------------------------------------- */

static void trace_get(struct graph *g, struct storage *s, int64_t bytes)
{
    s->trace_id = ++g->trace_next_id;
    fprintf(g->trace, "a %lld %lld\n", (long long)s->trace_id, (long long)bytes);
}

struct storage *storage_get(struct graph *g, int64_t bytes)
{
    if (g->halted) return NULL;
    struct storage *s = pool_take(&g->storages);
    if (!s) {
        graph_fail(g, PLIM_NOMEM);
        return NULL;
    }
    enum plim_status st = plim_allocator_malloc(g->allocator, bytes, 0, &s->block);
    if (st != PLIM_OK) {
        pool_give(&g->storages, s);
        g->oom_asked_bytes = bytes;
        /* what forward asks for with gradients on is, nearly always, kept for backward */
        bool forward = g->grad_enabled && g->thread == THREAD_MAIN &&
                       g->fresh_class == PLIM_MEMORY_TEMPORARIES;
        g->oom_class = forward ? PLIM_MEMORY_ACTIVATIONS : g->fresh_class;
        if (st == PLIM_OOM) graph_halt(g, HALT_OOM);
        else graph_fail(g, st);
        return NULL;
    }
    s->address = s->block ? plim_block_address(s->block) : 0;
    s->bytes = s->block ? plim_block_bytes(s->block) : 0;
    s->refs = 1;
    s->saved = 0;
    s->memory_class = (uint8_t)g->fresh_class;
    s->pinned_class = g->fresh_class != PLIM_MEMORY_TEMPORARIES;
    g->class_bytes[s->memory_class] += s->bytes;
    if (graph_allocated(g) > g->peak_allocated) {
        g->peak_allocated = graph_allocated(g);
        memcpy(g->class_bytes_at_peak, g->class_bytes, sizeof g->class_bytes);
    }
    if (g->trace && bytes) trace_get(g, s, bytes);
    return s;
}

void storage_put(struct graph *g, struct storage *s)
{
    if (--s->refs > 0) return;
    enum plim_memory_class c =
        s->saved && !s->pinned_class ? PLIM_MEMORY_ACTIVATIONS : s->memory_class;
    g->class_bytes[c] -= s->bytes;
    if (g->trace && s->block) fprintf(g->trace, "f %lld\n", (long long)s->trace_id);
    plim_allocator_free(g->allocator, s->block);
    pool_give(&g->storages, s);
}

void storage_saved(struct graph *g, struct storage *s, int change)
{
    bool was = s->saved > 0;
    s->saved += change;
    if (s->pinned_class || was == (s->saved > 0)) return;
    int64_t moved = was ? -s->bytes : s->bytes;
    g->class_bytes[PLIM_MEMORY_ACTIVATIONS] += moved;
    g->class_bytes[s->memory_class] -= moved;
}
