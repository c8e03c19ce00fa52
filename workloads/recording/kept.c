/* Blocks that each step allocates and never frees, such as a loss that is kept for a log. */
#include "trace.h"
#include <stdlib.h>

enum { MOST_BYTES = 64 << 10 }; /* per step; more of them is memory that keeps growing */

struct keeping {
    struct plim_trace *trace;
    size_t start, period;
    bool *is_freed;    /* of each allocation of the trace */
    bool *is_kept;     /* of each event of a step */
    size_t *remaining; /* number of allocations before the N-th that are kept in the trace */
};

static void find_freed(struct keeping *k)
{
    size_t allocated = 0;
    for (size_t i = 0; i < k->trace->events.count; i++) {
        const struct plim_traced *event = &k->trace->events.items[i];
        size_t freed = plim_traced_freed(event, allocated);
        if (freed != SIZE_MAX) k->is_freed[freed] = true;
        allocated += event->kind == PLIM_TRACED_ALLOCATION;
    }
}

/* Marks what the first of the repeating steps allocates and no later one frees. Returns these bytes per step, or 0 if a
 * step's balance of blocks differs or they are too many. */
static int64_t find_kept(struct keeping *k)
{
    int64_t bytes = 0, balance = 0, count = 0;
    size_t allocated = 0;
    for (size_t i = 0; i < k->start + k->period; i++) {
        const struct plim_traced *event = &k->trace->events.items[i];
        bool takes = event->kind == PLIM_TRACED_ALLOCATION;
        if (i >= k->start) balance += plim_traced_change(event);
        if (i >= k->start && takes && !k->is_freed[allocated]) {
            k->is_kept[i - k->start] = true;
            bytes += event->value;
            count++;
        }
        allocated += takes;
    }
    return balance == count && bytes <= MOST_BYTES ? bytes : 0;
}

static void leave_out(struct keeping *k)
{
    struct plim_trace *trace = k->trace;
    size_t events = 0, allocated = 0, step = 0;
    for (size_t i = 0; i < trace->events.count; i++) {
        struct plim_traced event = trace->events.items[i];
        for (; step < trace->timed.count && trace->timed.items[step].events <= i; step++)
            trace->timed.items[step].events = events;
        bool takes = event.kind == PLIM_TRACED_ALLOCATION;
        bool goes = takes && i >= k->start && k->is_kept[(i - k->start) % k->period];
        size_t freed = plim_traced_freed(&event, allocated);
        if (freed != SIZE_MAX) event.value = (int64_t)(k->remaining[allocated] - k->remaining[freed]);
        if (takes) k->remaining[allocated + 1] = k->remaining[allocated] + !goes;
        allocated += takes;
        if (!goes) trace->events.items[events++] = event;
    }
    for (; step < trace->timed.count; step++) trace->timed.items[step].events = events;
    trace->events.count = events;
}

enum plim_status plim_trace_drop_retained(struct plim_trace *trace, int64_t *bytes, struct plim_error *err)
{
    struct plim_error none = PLIM_ERROR_INIT;
    struct keeping k = {.trace = trace};
    size_t count = trace->events.count + 1;
    *bytes = 0;
    enum plim_status st = plim_trace_steady(trace, &k.start, &k.period, &none);
    if (st) return st == PLIM_NOMEM ? plim_no_memory(err) : PLIM_OK; /* it does not repeat */
    k.is_freed = calloc(count, sizeof(*k.is_freed));
    k.is_kept = calloc(count, sizeof(*k.is_kept));
    k.remaining = calloc(count + 1, sizeof(*k.remaining));
    if (!k.is_freed || !k.is_kept || !k.remaining) {
        st = plim_no_memory(err);
    } else {
        find_freed(&k);
        *bytes = find_kept(&k);
        if (*bytes) leave_out(&k);
    }
    free(k.is_freed);
    free(k.is_kept);
    free(k.remaining);
    return st;
}
