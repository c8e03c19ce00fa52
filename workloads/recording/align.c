#include "align.h"

void plim_traced_pair(struct plim_traced *events, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t frees = 0;
        if (events[i].kind != PLIM_TRACED_ALLOCATION) continue;
        while (i + 1 + frees < count && events[i + 1 + frees].kind == PLIM_TRACED_FREE) frees++;
        if (frees < 2 || events[i + frees].value != 1) continue; /* the youngest stands last */
        const struct plim_traced own = events[i + frees];
        memmove(&events[i + 2], &events[i + 1], (frees - 1) * sizeof(*events));
        events[i + 1] = own;
    }
}

/* One of two runs that are gone through side by side. */
struct side {
    const struct plim_traced *events;
    size_t count, at;
    uint64_t allocated;
    uint64_t *numbers; /* of its allocations: which they are in the run that is made */
};

static bool is_pair(const struct side *s)
{
    return s->at + 1 < s->count && s->events[s->at].kind == PLIM_TRACED_ALLOCATION &&
           s->events[s->at + 1].kind == PLIM_TRACED_FREE && s->events[s->at + 1].value == 1;
}

/* What the free at hand gives back, as the run that is made counts. */
static uint64_t target(const struct side *s)
{
    return s->numbers[s->allocated - (uint64_t)s->events[s->at].value];
}

static bool is_alike(const struct side *a, const struct side *b)
{
    if (a->events[a->at].kind != b->events[b->at].kind) return false;
    if (a->events[a->at].kind == PLIM_TRACED_FREE) return target(a) == target(b);
    return is_pair(a) == is_pair(b);
}

struct completing {
    struct side mine, other;
    struct plim_traced_memory *out;
    uint64_t allocated; /* in `out` */
    bool failed;
};

/* In front of the event of the run that is completed, which is at hand. */
static void push(struct completing *c, enum plim_traced_kind kind, int64_t value)
{
    const struct plim_traced event = {kind, value, c->mine.events[c->mine.at].costs};
    c->failed |= PLIM_ARRAY_PUSH(&c->out->events, event) != PLIM_OK;
}

static void note_allocation(struct side *s, uint64_t number)
{
    s->numbers[s->allocated++] = number;
}

/* The next event of the run that is completed. */
static void take_mine(struct completing *c)
{
    struct side *s = &c->mine;
    const struct plim_traced *event = &s->events[s->at];
    if (event->kind == PLIM_TRACED_FREE)
        push(c, PLIM_TRACED_FREE, (int64_t)(c->allocated - target(s) + 1));
    else {
        note_allocation(s, ++c->allocated);
        push(c, PLIM_TRACED_ALLOCATION, event->value);
    }
    s->at++;
}

/* A pair of the other one that this one lacks. */
static void take_pair(struct completing *c, const struct plim_traced_memory *memory)
{
    push(c, PLIM_TRACED_ALLOCATION, 0);
    push(c, PLIM_TRACED_FREE, 1);
    note_allocation(&c->other, ++c->allocated);
    c->other.at += 2;
    if (c->mine.at <= memory->start) c->out->start += 2;
    else if (c->mine.at <= memory->start + memory->period) c->out->period += 2;
}

static void complete_events(struct completing *c, const struct plim_traced_memory *memory)
{
    struct side *mine = &c->mine, *other = &c->other;
    while (mine->at < mine->count && other->at < other->count && !c->failed) {
        if (is_alike(mine, other)) {
            if (other->events[other->at].kind == PLIM_TRACED_ALLOCATION)
                note_allocation(other, c->allocated + 1);
            take_mine(c);
            other->at++;
        } else if (is_pair(other)) {
            take_pair(c, memory);
        } else if (is_pair(mine)) {
            take_mine(c);
            take_mine(c);
        } else {
            break;
        }
    }
}

/* Completes a run by the pairs of another one. It stays as it is where they part for another reason before
 * the end of its first steady step. */
static enum plim_status complete(struct plim_traced_memory *memory,
                                 const struct plim_traced_memory *by)
{
    struct plim_traced_memory out = *memory;
    memset(&out.events, 0, sizeof(out.events));
    struct completing c = {.mine = {.events = memory->events.items, .count = memory->events.count},
                           .other = {.events = by->events.items, .count = by->events.count},
                           .out = &out};
    c.mine.numbers = calloc(c.mine.count + 1, sizeof(*c.mine.numbers));
    c.other.numbers = calloc(c.other.count + 1, sizeof(*c.other.numbers));
    c.failed = !c.mine.numbers || !c.other.numbers;
    if (!c.failed) complete_events(&c, memory);
    bool is_whole = c.mine.at >= memory->start + memory->period;
    while (c.mine.at < c.mine.count && !c.failed) take_mine(&c);
    free(c.mine.numbers);
    free(c.other.numbers);
    if (!c.failed && is_whole) {
        PLIM_ARRAY_FINISH(&memory->events);
        *memory = out;
    } else {
        PLIM_ARRAY_FINISH(&out.events);
    }
    return c.failed ? PLIM_NOMEM : PLIM_OK;
}

enum plim_status plim_traced_align(struct plim_traced_memory *runs, size_t count)
{
    struct plim_traced_memory *last = &runs[count - 1];
    enum plim_status st = PLIM_OK;
    for (size_t i = 0; i + 1 < count && !st; i++) st = complete(last, &runs[i]);
    for (size_t i = 0; i + 1 < count && !st; i++) st = complete(&runs[i], last);
    return st;
}
