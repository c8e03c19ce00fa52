/* Finds where a trace starts to repeat. */
#include "trace.h"
#include <stdlib.h>

void plim_trace_finish(struct plim_trace *trace)
{
    if (!trace) return;
    PLIM_ARRAY_FINISH(&trace->events);
    PLIM_ARRAY_FINISH(&trace->costs);
    PLIM_ARRAY_FINISH(&trace->reductions);
    PLIM_ARRAY_FINISH(&trace->timed);
}

static int compare_frees(const void *a, const void *b)
{
    const struct plim_traced *x = a, *y = b;
    return x->value < y->value ? 1 : x->value > y->value ? -1 : 0;
}

void plim_trace_sort_frees(struct plim_traced *events, size_t count)
{
    for (size_t i = 0; i < count;) {
        size_t run = 0;
        while (i + run < count && events[i + run].kind == PLIM_TRACED_FREE) run++;
        if (run > 1) qsort(events + i, run, sizeof(*events), compare_frees);
        i += run + 1;
    }
}

static bool same(const struct plim_traced *a, const struct plim_traced *b)
{
    return a->kind == b->kind && a->value == b->value && a->cuda_stream == b->cuda_stream;
}

/* The Z-function of the reversed trace: reach[p] events before the end are equal to those p later, so that the last
 * reach[p] + p events have the period p. Linear time. */
static void find_reach(const struct plim_traced *events, size_t count, size_t *reach)
{
    const struct plim_traced *last = events + count - 1;
    size_t left = 0, right = 0;
    for (size_t p = 1; p < count; p++) {
        size_t known = p < right ? reach[p - left] : 0;
        if (known > right - p && p < right) known = right - p;
        while (p + known < count && same(last - known, last - p - known)) known++;
        reach[p] = known;
        if (p + known > right) {
            left = p;
            right = p + known;
        }
    }
}

/* Finds the period whose repetitions go back furthest; of equal ones the shortest; 0: the first `count` events do not
 * end with a repetition. */
static enum plim_status find_period(const struct plim_trace *trace, size_t count, size_t *start, size_t *period,
                                    struct plim_error *err)
{
    size_t longest = 0;
    size_t *reach = calloc(count + 1, sizeof(*reach));
    if (!reach) return plim_no_memory(err);
    *period = 0;
    if (count) find_reach(trace->events.items, count, reach);
    for (size_t p = 1; p < count; p++) {
        if (reach[p] < (PLIM_TRACE_REPEATS - 1) * p || reach[p] + p <= longest) continue;
        longest = reach[p] + p;
        *period = p;
    }
    free(reach);
    *start = count - longest;
    return PLIM_OK;
}

static enum plim_status never_repeats(const struct plim_trace *trace, struct plim_error *err)
{
    char seen[96] = "and no training steps were recognised";
    if (trace->steps)
        snprintf(seen, sizeof(seen), "as where each has data of another size (%zu steps were recognised)",
                 trace->steps);
    return plim_fail(err, PLIM_UNSTABLE,
                     "at batch %lld, length %lld the program never repeats: no %d steps in a row did the same, %s; "
                     "--steps N goes further than its first ones, and exec runs such a program",
                     (long long)trace->point.batch, (long long)trace->point.seq, PLIM_TRACE_REPEATS, seen);
}

enum plim_status plim_trace_steady(const struct plim_trace *trace, size_t *start, size_t *period,
                                   struct plim_error *err)
{
    enum plim_status st = find_period(trace, trace->events.count, start, period, err);
    return st || *period ? st : never_repeats(trace, err);
}

size_t plim_trace_cut(const struct plim_trace *trace, size_t count)
{
    while (count && trace->events.items[count - 1].kind == PLIM_TRACED_FREE) count--;
    return count;
}

/* Stores in *more whether events from `count` on hold more bytes than those from `start` to `count`. */
static enum plim_status needs_more(const struct plim_trace *trace, size_t start, size_t count, bool *more,
                                   struct plim_error *err)
{
    int64_t held = 0, peak[2] = {0};
    size_t allocated = 0;
    int64_t *bytes = calloc(trace->events.count + 1, sizeof(*bytes)); /* of each allocation, while it is held */
    if (!bytes) return plim_no_memory(err);
    for (size_t i = 0; i < trace->events.count; i++) {
        const struct plim_traced *event = &trace->events.items[i];
        if (event->kind == PLIM_TRACED_ALLOCATION) held += bytes[allocated++] = event->value;
        size_t freed = plim_traced_freed(event, allocated);
        if (freed != SIZE_MAX) {
            held -= bytes[freed];
            bytes[freed] = 0;
        }
        if (i >= start && held > peak[i >= count]) peak[i >= count] = held;
    }
    free(bytes);
    *more = peak[1] > peak[0];
    return PLIM_OK;
}

enum plim_status plim_trace_drop_end(struct plim_trace *trace, size_t *left_out, struct plim_error *err)
{
    bool more = true;
    size_t start, period, steps = trace->timed.count, count = trace->events.count;
    enum plim_status st = find_period(trace, count, &start, &period, err);
    *left_out = 0;
    while (!st && !period && *left_out + PLIM_TRACE_REPEATS < steps) {
        count = plim_trace_cut(trace, trace->timed.items[steps - 1 - ++*left_out].events);
        if (count <= trace->events.count) st = find_period(trace, count, &start, &period, err);
    }
    if (st || !period) return st ? st : never_repeats(trace, err);
    if (*left_out) st = needs_more(trace, start, count, &more, err);
    if (!more) *left_out = 0;
    trace->events.count = count;
    return st;
}
