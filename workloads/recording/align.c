#include "align.h"

/* Returns the number of events of a short-lived block: its allocation, others that are allocated and freed in between,
 * its free. 0: the first event does not start one. */
static size_t moment(const struct plim_traced *events, size_t count)
{
    size_t i = 1, inner = 0;
    if (!count || events[0].kind != PLIM_TRACED_ALLOCATION) return 0;
    for (; i + 1 < count && events[i].kind == PLIM_TRACED_ALLOCATION &&
           events[i + 1].kind == PLIM_TRACED_FREE && events[i + 1].value == 1; i += 2)
        inner++;
    bool ends = i < count && events[i].kind == PLIM_TRACED_FREE &&
                events[i].value == (int64_t)inner + 1;
    return ends ? i + 1 : 0;
}

/* From the last allocation to the first, so that a block within another short-lived block is a pair before that is
 * checked. */
void plim_traced_pair(struct plim_traced *events, size_t count)
{
    for (size_t i = count; i-- > 0;) {
        size_t at = i + 1, frees = 0;
        int64_t own = 1; /* the value of this block's free */
        if (events[i].kind != PLIM_TRACED_ALLOCATION) continue;
        for (; moment(events + at, count - at) == 2; at += 2) own++;
        while (at + frees < count && events[at + frees].kind == PLIM_TRACED_FREE) frees++;
        if (frees < 2 || events[at + frees - 1].value != own) continue; /* the most recent allocation is last */
        const struct plim_traced last = events[at + frees - 1];
        memmove(&events[at + 1], &events[at], (frees - 1) * sizeof(*events));
        events[at] = last;
    }
}

/* One of two runs that are compared side by side. */
struct side {
    const struct plim_traced *events;
    size_t count, at;
    uint64_t allocated;
    uint64_t *numbers; /* of its allocations: their numbers in the resulting run */
};

static size_t moment_at_hand(const struct side *s)
{
    return moment(s->events + s->at, s->count - s->at);
}

/* Returns the number, in the resulting run, of the allocation that the current free refers to. */
static uint64_t target(const struct side *s)
{
    return s->numbers[s->allocated - (uint64_t)s->events[s->at].value];
}

static bool is_alike(const struct side *a, const struct side *b)
{
    if (a->events[a->at].kind != b->events[b->at].kind) return false;
    if (a->events[a->at].kind == PLIM_TRACED_FREE) return target(a) == target(b);
    return !moment_at_hand(a) == !moment_at_hand(b);
}

struct completing {
    struct side mine, other;
    struct plim_traced_memory *out;
    uint64_t allocated; /* number of allocations in `out` */
    bool failed;
};

/* Appends an event to the resulting run, before the current event of the completed run. */
static void push(struct completing *c, const struct plim_traced *like, int64_t value)
{
    struct plim_traced event = *like;
    event.value = value;
    event.costs = c->mine.events[c->mine.at].costs;
    c->failed |= PLIM_ARRAY_PUSH(&c->out->events, event) != PLIM_OK;
}

static void note_allocation(struct side *s, uint64_t number)
{
    s->numbers[s->allocated++] = number;
}

/* Appends the current event of the completed run. */
static void take_mine(struct completing *c)
{
    struct side *s = &c->mine;
    const struct plim_traced *event = &s->events[s->at];
    if (event->kind == PLIM_TRACED_FREE) {
        push(c, event, (int64_t)(c->allocated - target(s) + 1));
    } else {
        if (event->kind == PLIM_TRACED_ALLOCATION) note_allocation(s, ++c->allocated);
        push(c, event, event->value);
    }
    s->at++;
}

/* Appends a short-lived block of the other run, which this one lacks. */
static void take_other(struct completing *c, const struct plim_traced_memory *memory)
{
    struct side *s = &c->other;
    size_t events = moment_at_hand(s);
    for (size_t i = 0; i < events; i++, s->at++) {
        struct plim_traced event = s->events[s->at];
        event.scratch = PLIM_RECORDED_NO_SCRATCH; /* the reduction is in the other trace */
        if (event.kind == PLIM_TRACED_FREE) {
            push(c, &event, (int64_t)(c->allocated - target(s) + 1));
        } else {
            push(c, &event, 0);
            note_allocation(s, ++c->allocated);
        }
    }
    if (c->mine.at <= memory->start) c->out->start += events;
    else if (c->mine.at <= memory->start + memory->period) c->out->period += events;
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
        } else if (moment_at_hand(other)) {
            take_other(c, memory);
        } else if (moment_at_hand(mine)) {
            for (size_t i = moment_at_hand(mine); i > 0; i--) take_mine(c);
        } else {
            break;
        }
    }
}

/* Adds to a run the short-lived blocks of another one that it lacks. The run is not changed if they differ in something
 * else before the end of its first steady step. */
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
