#include "engine.h"
#include "tape.h"

void tape_finish(struct tape *tape)
{
    PLIM_ARRAY_FINISH(&tape->events);
    PLIM_ARRAY_FINISH(&tape->slots);
}

void tape_rewind(struct tape *tape)
{
    tape->events.count = 0;
    tape->slots_used = 0;
    tape->kept = 0;
    tape->broken = false;
}

void tape_begin_carrying(struct tape *tape)
{
    for (int k = 0; k < TAPE_CARRIED; k++) {
        struct tensor *x = tape->carried[k] ? *tape->carried[k] : NULL;
        tape->has[k] = x != NULL;
        if (x) x->storage->slot = -(k + 1);
    }
}

void tape_end_carrying(struct tape *tape, int32_t left[TAPE_CARRIED])
{
    for (int k = 0; k < TAPE_CARRIED; k++) {
        struct tensor *x = tape->carried[k] ? *tape->carried[k] : NULL;
        left[k] = x && x->storage->slot > 0 ? x->storage->slot : 0;
        if (tape->has[k] != (x != NULL)) tape->broken = true;
        if (!left[k]) continue;
        x->storage->slot = -(k + 1);
        tape->kept--;
    }
}

static void note(struct tape *tape, struct tape_event event)
{
    if (PLIM_ARRAY_PUSH(&tape->events, event) != PLIM_OK) tape->broken = true;
}

int32_t tape_record_allocation(struct tape *tape, int64_t bytes, int stream,
                               enum plim_memory_class memory_class, enum plim_memory_class lacking)
{
    tape->kept++;
    note(tape, (struct tape_event){.bytes = bytes,
                                   .slot = ++tape->slots_used,
                                   .stream = (int16_t)stream,
                                   .action = TAPE_ALLOCATE,
                                   .memory_class = (uint8_t)memory_class,
                                   .other_class = (uint8_t)lacking});
    return tape->slots_used;
}

void tape_record_class(struct tape *tape, int32_t slot, int64_t bytes,
                       enum plim_memory_class before, enum plim_memory_class now)
{
    note(tape, (struct tape_event){.bytes = bytes,
                                   .slot = slot,
                                   .action = TAPE_CLASSIFY,
                                   .memory_class = (uint8_t)now,
                                   .other_class = (uint8_t)before});
}

void tape_record_free(struct tape *tape, int32_t slot)
{
    if (!slot) tape->broken = true;
    if (slot >= 0) tape->kept--;
    note(tape, (struct tape_event){.slot = slot, .action = TAPE_FREE});
}
