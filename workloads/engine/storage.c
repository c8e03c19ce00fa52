#include "storage.h"
#include "engine.h"
#include "tape.h"
#include "timeline.h"
#include <string.h>

/* Returns the class for which a storage's bytes are counted now. */
static enum plim_memory_class class_now(const struct storage *s)
{
    return s->saved && !s->pinned_class ? PLIM_MEMORY_ACTIVATIONS
                                        : (enum plim_memory_class)s->memory_class;
}

static void trace_get(struct memory_use *m, struct storage *s, int64_t bytes)
{
    s->trace_id = ++m->trace_next_id;
    fprintf(m->trace, "a %lld %lld\n", (long long)s->trace_id, (long long)bytes);
}

/* Memory that forward requests with gradients enabled is nearly always kept for backward. */
static enum plim_memory_class class_of_request(const struct engine *e)
{
    enum plim_memory_class new_class = e->memory.new_class;
    bool forward =
        e->grad_enabled && e->thread == THREAD_MAIN && new_class == PLIM_MEMORY_TEMPORARIES;
    return forward ? PLIM_MEMORY_ACTIVATIONS : new_class;
}

void storage_out_of_memory(struct engine *e, enum plim_status st, int64_t bytes,
                           enum plim_memory_class memory_class)
{
    e->oom_asked_bytes = bytes;
    e->oom_class = memory_class;
    if (st == PLIM_OOM)
        engine_halt(e, HALT_OOM);
    else
        engine_fail(e, st);
}

/* The clock of a simulated device cannot fail. */
void storage_record_moment(struct engine *e)
{
    if (!e->memory.timeline) return;
    struct plim_moment now = {.allocated_bytes = engine_allocated(e),
                              .reserved_bytes =
                                  plim_allocator_statistics(e->allocator)->reserved};
    if (plim_device_now(e->device, &now.seconds) != PLIM_OK) return;
    memcpy(now.class_bytes, e->memory.class_bytes, sizeof now.class_bytes);
    plim_timeline_add(e->memory.timeline, &now);
}

void storage_count(struct engine *e, enum plim_memory_class memory_class, int64_t bytes)
{
    struct memory_use *m = &e->memory;
    m->class_bytes[memory_class] += bytes;
    if (engine_allocated(e) <= m->peak_bytes) return;
    m->peak_bytes = engine_allocated(e);
    memcpy(m->class_bytes_at_peak, m->class_bytes, sizeof m->class_bytes);
}

/* Allocates a block for `s`, which has none. Returns false, with the engine halted, if there is no memory. */
static bool allocate_block(struct engine *e, struct storage *s, int64_t bytes)
{
    struct memory_use *m = &e->memory;
    enum plim_status st = plim_allocator_malloc(e->allocator, bytes, e->stream, &s->block);
    if (st != PLIM_OK) {
        storage_out_of_memory(e, st, bytes, class_of_request(e));
        return false;
    }
    s->address = s->block ? plim_block_address(s->block) : 0;
    s->bytes = s->block ? plim_block_bytes(s->block) : 0;
    storage_count(e, class_now(s), s->bytes);
    if (m->tape && s->block)
        s->slot = tape_record_allocation(m->tape, bytes, e->stream, class_now(s), class_of_request(e));
    if (m->trace && bytes) trace_get(m, s, bytes);
    if (bytes) storage_record_moment(e);
    return true;
}

void storage_release_block(struct engine *e, struct storage *s)
{
    e->memory.class_bytes[class_now(s)] -= s->bytes;
    if (e->memory.trace && s->block) fprintf(e->memory.trace, "f %lld\n", (long long)s->trace_id);
    if (e->memory.tape && s->block) tape_record_free(e->memory.tape, s->slot);
    plim_allocator_free(e->allocator, s->block);
    if (s->block) storage_record_moment(e);
    s->block = NULL;
    s->address = 0;
    s->bytes = 0;
}

void storage_adopt_block(struct storage *s, struct plim_block *block)
{
    s->block = block;
    s->address = plim_block_address(block);
    s->bytes = plim_block_bytes(block);
}

struct storage *storage_get(struct engine *e, int64_t bytes)
{
    if (e->halted) return NULL;
    struct storage *s = pool_allocate(&e->storages, sizeof *s);
    if (!s) {
        engine_fail(e, PLIM_NOMEM);
        return NULL;
    }
    enum plim_memory_class new_class = e->memory.new_class;
    *s = (struct storage){.refs = 1,
                          .memory_class = (uint8_t)new_class,
                          .pinned_class = new_class != PLIM_MEMORY_TEMPORARIES};
    if (allocate_block(e, s, bytes)) return s;
    pool_free(&e->storages, s);
    return NULL;
}

void storage_put(struct engine *e, struct storage *s)
{
    if (--s->refs > 0) return;
    storage_release_block(e, s);
    pool_free(&e->storages, s);
}

void storage_resize(struct engine *e, struct storage *s, int64_t bytes)
{
    if (e->halted) return;
    storage_release_block(e, s);
    if (bytes) allocate_block(e, s, bytes);
}

/* Moves the bytes of a storage from the class `before` to its present class. */
static void move_bytes(struct engine *e, struct storage *s, enum plim_memory_class before)
{
    enum plim_memory_class now = class_now(s);
    e->memory.class_bytes[before] -= s->bytes;
    e->memory.class_bytes[now] += s->bytes;
    if (e->memory.tape && s->block && now != before)
        tape_record_class(e->memory.tape, s->slot, s->bytes, before, now);
}

void storage_saved(struct engine *e, struct storage *s, int change)
{
    enum plim_memory_class before = class_now(s);
    s->saved += change;
    move_bytes(e, s, before);
}

void storage_classify(struct engine *e, struct storage *s, enum plim_memory_class memory_class)
{
    enum plim_memory_class before = class_now(s);
    s->memory_class = (uint8_t)memory_class;
    s->pinned_class = true;
    move_bytes(e, s, before);
}
