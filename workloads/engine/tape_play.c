#include "engine.h"
#include "tape.h"

static struct tape_slot *slot_of(struct tape *tape, const struct tape_event *event)
{
    return &tape->slots.items[event->slot - 1];
}

static void take(struct engine *e, struct tape *tape, const struct tape_event *event)
{
    struct tape_slot *slot = slot_of(tape, event);
    enum plim_status st =
        plim_allocator_malloc(e->allocator, event->bytes, event->stream, &slot->block);
    if (st != PLIM_OK) {
        storage_out_of_memory(e, st, event->bytes, (enum plim_memory_class)event->other_class);
        return;
    }
    slot->bytes = plim_block_bytes(slot->block);
    slot->memory_class = event->memory_class;
    storage_count(e, (enum plim_memory_class)slot->memory_class, slot->bytes);
}

static void classify(struct engine *e, struct tape *tape, const struct tape_event *event)
{
    int64_t *of_class = e->memory.class_bytes, bytes = event->bytes;
    if (event->slot > 0) {
        struct tape_slot *slot = slot_of(tape, event);
        slot->memory_class = event->memory_class;
        bytes = slot->bytes;
    }
    of_class[event->other_class] -= bytes;
    of_class[event->memory_class] += bytes;
}

static void give_back(struct engine *e, struct tape *tape, const struct tape_event *event)
{
    if (event->slot < 0) {
        storage_release_block(e, (*tape->carried[-event->slot - 1])->storage);
        return;
    }
    struct tape_slot *slot = slot_of(tape, event);
    e->memory.class_bytes[slot->memory_class] -= slot->bytes;
    plim_allocator_free(e->allocator, slot->block);
}

void tape_play(struct engine *e, struct tape *tape, size_t begin, size_t end)
{
    static void (*const actions[])(struct engine *, struct tape *, const struct tape_event *) = {
        [TAPE_ALLOCATE] = take, [TAPE_CLASSIFY] = classify, [TAPE_FREE] = give_back};
    if (PLIM_ARRAY_RESERVE(&tape->slots, (size_t)tape->slots_used) != PLIM_OK)
        engine_fail(e, PLIM_NOMEM);
    for (size_t i = begin; i < end && !e->halted; i++) {
        const struct tape_event *event = &tape->events.items[i];
        actions[event->action](e, tape, event);
    }
}

void tape_store_carried(struct engine *e, struct tape *tape, const int32_t left[TAPE_CARRIED])
{
    for (int k = 0; k < TAPE_CARRIED && !e->halted; k++)
        if (left[k]) storage_adopt_block((*tape->carried[k])->storage, tape->slots.items[left[k] - 1].block);
}
