#include "walk.h"

void plim_recorded_walk_finish(struct plim_recorded_walk *walk)
{
    if (!walk) return;
    PLIM_ARRAY_FINISH(&walk->made);
    PLIM_ARRAY_FINISH(&walk->outside);
    PLIM_ARRAY_FINISH(&walk->live);
    PLIM_ARRAY_FINISH(&walk->free_slots);
}

enum plim_status plim_recorded_walk_begin(struct plim_recorded_walk *walk,
                                          const struct plim_recorded_stream *stream,
                                          int64_t accumulation,
                                          const struct plim_recorded_walker *walker, void *user)
{
    size_t ring = 16;
    while (ring <= stream->longest) ring *= 2;
    walk->stream = stream;
    walk->walker = walker;
    walk->user = user;
    walk->loops_times = accumulation - PLIM_RECORDED_OUTSIDE;
    walk->allocated = walk->counted = 0;
    walk->live.count = walk->free_slots.count = 0;
    if (PLIM_ARRAY_RESERVE(&walk->made, ring) != PLIM_OK ||
        PLIM_ARRAY_RESERVE(&walk->outside, ring) != PLIM_OK)
        return PLIM_NOMEM;
    walk->made.count = walk->outside.count = ring;
    memset(walk->made.items, 0, ring * sizeof(*walk->made.items));
    memset(walk->outside.items, 0, ring * sizeof(*walk->outside.items));
    return PLIM_OK;
}

/* --- blocks ----------------------------------------------------------------------------------- */

static struct plim_recorded_reference *made_at(const struct plim_recorded_walk *w, uint64_t number)
{
    return &w->made.items[number & (w->made.count - 1)];
}

static struct plim_recorded_reference *outside_at(const struct plim_recorded_walk *w,
                                                  uint64_t number)
{
    return &w->outside.items[number & (w->outside.count - 1)];
}

int64_t plim_recorded_walk_slot(const struct plim_recorded_walk *w, uint32_t back, bool in_loop)
{
    uint64_t last = in_loop ? w->allocated : w->counted;
    if (!back || back > last) return -1;
    const struct plim_recorded_reference *r =
        in_loop ? made_at(w, last + 1 - back) : outside_at(w, last + 1 - back);
    return r->number && w->live.items[r->slot] == r->number ? (int64_t)r->slot : -1;
}

static enum plim_status new_slot(struct plim_recorded_walk *w, uint32_t *slot)
{
    if (w->free_slots.count) {
        *slot = w->free_slots.items[--w->free_slots.count];
        return PLIM_OK;
    }
    *slot = (uint32_t)w->live.count;
    return PLIM_ARRAY_PUSH(&w->live, 0);
}

static enum plim_status allocate(struct plim_recorded_walk *w, uint32_t size)
{
    uint32_t slot;
    enum plim_status st = new_slot(w, &slot);
    if (st) return st;
    const struct plim_recorded_reference reference = {++w->allocated, slot};
    w->live.items[slot] = reference.number;
    *made_at(w, w->allocated) = *outside_at(w, ++w->counted) = reference;
    return w->walker->allocate(w->user, slot, size);
}

static enum plim_status release(struct plim_recorded_walk *w, uint32_t back, bool in_loop)
{
    int64_t slot = plim_recorded_walk_slot(w, back, in_loop);
    if (slot < 0) return PLIM_INVALID;
    w->live.items[slot] = 0;
    if (PLIM_ARRAY_PUSH(&w->free_slots, (uint32_t)slot) != PLIM_OK) return PLIM_NOMEM;
    return w->walker->release(w->user, (uint32_t)slot);
}

static enum plim_status empty_cache(struct plim_recorded_walk *w)
{
    return w->walker->empty_cache ? w->walker->empty_cache(w->user) : PLIM_OK;
}

/* --- events ----------------------------------------------------------------------------------- */

static enum plim_status walk_run(struct plim_recorded_walk *w, size_t from, size_t to, bool in_loop)
{
    const struct plim_recorded_event *events = w->stream->events.items;
    enum plim_status st = PLIM_OK;
    for (size_t i = w->event = from; i < to && !st; w->event = ++i)
        st = !events[i].frees  ? allocate(w, events[i].value)
             : events[i].value ? release(w, events[i].value, in_loop)
                               : empty_cache(w);
    return st;
}

static uint64_t allocations_of(const struct plim_recorded_walk *w,
                               const struct plim_recorded_loop *loop)
{
    uint64_t count = 0;
    for (size_t i = 0; i < loop->count; i++) count += !w->stream->events.items[loop->first + i].frees;
    return count;
}

static enum plim_status walk_loop(struct plim_recorded_walk *w, size_t index)
{
    const struct plim_recorded_loop *loop = &w->stream->loops.items[index];
    uint64_t begin = w->counted, length = allocations_of(w, loop);
    enum plim_status st = PLIM_OK;
    int64_t left = w->loops_times;
    for (uint64_t i = 1; left <= 0 && i <= length; i++)
        *outside_at(w, begin + i) = i + begin > length ? *outside_at(w, begin + i - length)
                                                       : (struct plim_recorded_reference){0};
    while (left > 0 && !st) {
        w->counted = begin;
        st = walk_run(w, loop->first, loop->first + loop->count, true);
        left--;
        if (!st && w->walker->repeated) st = w->walker->repeated(w->user, index, &left);
    }
    w->counted = begin + length;
    return st;
}

enum plim_status plim_recorded_walk_events(struct plim_recorded_walk *walk, size_t from, size_t to)
{
    enum plim_status st = PLIM_OK;
    size_t at = from;
    for (size_t i = 0; i < walk->stream->loops.count && !st; i++) {
        const struct plim_recorded_loop *loop = &walk->stream->loops.items[i];
        if (loop->first < from || loop->first >= to) continue;
        st = walk_run(walk, at, loop->first, false);
        if (!st) st = walk_loop(walk, i);
        at = loop->first + loop->count;
    }
    return st ? st : walk_run(walk, at, to, false);
}
