#include "engine.h"
#include "devices/half.h"
#include <stdlib.h>
#include <string.h>

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
    pool_reset(&e->tensors);
    pool_reset(&e->storages);
    pool_reset(&e->nodes);
    block_reset(e->rooms);
    pool_reset(&e->frames);
    pool_reset(&e->holders);
    pool_reset(&e->mappings);
    plim_allocator_reset(e->allocator);
    e->halted = HALT_NONE;
    e->grad_enabled = true;
    e->meta = false;
    e->thread = THREAD_MAIN;
    e->stream = 0;
    e->autocast.on = false;
    e->autocast.depth = 0;
    e->autocast.cache_count = 0;
    e->memory = (struct memory_use){.new_class = PLIM_MEMORY_TEMPORARIES, .trace = e->memory.trace};
    memset(e->blas_workspace, 0, sizeof e->blas_workspace);
    memset(e->blaslt_workspace, 0, sizeof e->blaslt_workspace);
    e->chunks = (struct chunk_memos){0};
    e->seed = 0;
    e->autograd.sequence = 0;
    e->autograd.hooks = NULL;
    e->autograd.accumulated = NULL;
    e->autograd.ended.run = NULL;
    e->autograd.released = NULL;
    e->autograd.ready_count = 0;
    e->frame = NULL;
    e->modules = NULL;
    e->poison->refs = 2 * POISON_REFS - 1;
    e->poison_storage = (struct storage){.refs = POISON_REFS};
}

void engine_destroy(struct engine **ep)
{
    struct engine *e = *ep;
    if (!e) return;
    pool_finish(&e->tensors);
    pool_finish(&e->storages);
    pool_finish(&e->nodes);
    block_finish(&e->rooms);
    pool_finish(&e->frames);
    pool_finish(&e->holders);
    pool_finish(&e->mappings);
    free(e->autocast.cache);
    free(e->autograd.ready);
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

void *engine_allocate_host(struct engine *e, size_t bytes)
{
    void *room = block_allocate(&e->rooms, bytes);
    if (room) memset(room, 0, bytes);
    else engine_fail(e, PLIM_NOMEM);
    return room;
}

void engine_free_host(struct engine *e, void *room)
{
    (void)e;
    if (room) block_free(room);
}

void engine_launch(struct engine *e, const struct plim_op *op)
{
    if (e->meta) return;
    /* Kernels of a recomputed region are launched by Python's code, even on the autograd thread. */
    e->device->in_autograd = e->thread == THREAD_AUTOGRAD && !e->grad_enabled;
    enum plim_status st = plim_device_launch(e->device, op);
    if (st == PLIM_OK) return;
    e->halting_op = plim_op_name(op->kind);
    e->oom_asked_bytes = 0; /* with PLIM_OOM: there was no memory for the kernel's code */
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
    if (e->halted || e->meta) return;
    enum plim_status st = plim_device_write(e->device, x->a.data, from, bytes);
    if (st != PLIM_OK) engine_fail(e, st);
}
