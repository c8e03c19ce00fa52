/* Finds the events of a stream that are repeated for each additional micro-step. */
#include "align.h"
#include "join.h"
#include "walk.h"

/* Special signs. NOTHING: a reduction's scratch of 0 bytes, which is an event of every run. */
#define EMPTY_CACHE INT64_MIN
#define NOTHING INT64_MAX

/* One number per event: the allocated bytes, minus the freed bytes, or EMPTY_CACHE. Other blocks of 0 bytes have none,
 * because they exist only at other sizes (align.h). */
struct signs {
    PLIM_ARRAY(int64_t) list, allocated;
    PLIM_ARRAY(size_t) events; /* of a stream: the event of each sign, followed by the number of events */
    bool failed;
};

static void signs_finish(struct signs *signs)
{
    PLIM_ARRAY_FINISH(&signs->list);
    PLIM_ARRAY_FINISH(&signs->allocated);
    PLIM_ARRAY_FINISH(&signs->events);
}

static void add_sign(struct signs *signs, int64_t sign)
{
    if (sign) signs->failed |= PLIM_ARRAY_PUSH(&signs->list, sign) != PLIM_OK;
}

static void add_allocation(struct signs *signs, int64_t bytes, enum plim_recorded_scratch scratch)
{
    if (!bytes && scratch) bytes = NOTHING;
    signs->failed |= PLIM_ARRAY_PUSH(&signs->allocated, bytes) != PLIM_OK;
    add_sign(signs, bytes);
}

static void add_free(struct signs *signs, size_t back)
{
    if (back <= signs->allocated.count)
        add_sign(signs, -signs->allocated.items[signs->allocated.count - back]);
    else signs->failed = true;
}

static void read_stream(const struct plim_recorded_stream *stream, struct plim_recorded_point point,
                        const struct plim_device_info *gpu, struct signs *out)
{
    for (size_t i = 0; i < stream->events.count && !out->failed; i++) {
        const struct plim_recorded_event *e = &stream->events.items[i];
        if (plim_recorded_empties_cache(e))
            add_sign(out, EMPTY_CACHE);
        else if (e->frees)
            add_free(out, e->value);
        else
            add_allocation(out, plim_recorded_size_at(&stream->sizes.items[e->value], point, gpu),
                           stream->sizes.items[e->value].scratch);
        if (out->events.count < out->list.count)
            out->failed |= PLIM_ARRAY_PUSH(&out->events, i) != PLIM_OK;
    }
    out->failed |= PLIM_ARRAY_PUSH(&out->events, stream->events.count) != PLIM_OK;
}

static void read_trace(const struct plim_traced *events, size_t count, struct signs *out)
{
    for (size_t i = 0; i < count && !out->failed; i++) {
        if (events[i].kind == PLIM_TRACED_EMPTY_CACHE)
            add_sign(out, EMPTY_CACHE);
        else if (events[i].kind == PLIM_TRACED_FREE)
            add_free(out, (size_t)events[i].value);
        else
            add_allocation(out, events[i].value, events[i].scratch);
    }
}

/* --- finding loops ---------------------------------------------------------------------------- */

/* Returns how many events are repeated at event `at` of a run with one additional micro-step, where it differs from
 * event `mine` of the other run, so that both continue alike afterwards; 0: there is no such repetition. */
static size_t repeat_at(const struct signs *base, size_t mine, const struct signs *longer, size_t at)
{
    const int64_t *more = longer->list.items, *less = base->list.items;
    size_t left = longer->list.count - at;
    for (size_t length = 1; length <= at && length <= mine && length < left; length++) {
        size_t alike = base->list.count - mine < length ? base->list.count - mine : length;
        if (more[at + length] != less[mine] || length + alike > left) continue;
        if (memcmp(more + at - length, more + at, length * sizeof(*more)) ||
            memcmp(more + at + length, less + mine, alike * sizeof(*more)))
            continue;
        return length;
    }
    return 0;
}

/* Returns the events of the signs [from, to), which are repeated, including adjacent events without a sign at this
 * size: either those after them or those before them, whichever are more (some may be missing before the first
 * micro-step, or after the last one). */
static struct plim_recorded_loop loop_of(const struct signs *signs, size_t from, size_t to)
{
    const size_t *events = signs->events.items;
    size_t first = from ? events[from - 1] + 1 : 0, last = events[to - 1];
    if (events[from] - first > events[to] - (last + 1))
        return (struct plim_recorded_loop){first, last + 1 - first};
    return (struct plim_recorded_loop){events[from], events[to] - events[from]};
}

/* Finds the loop of `length` signs that ends before the sign `end`, moved to earlier events until it starts with an
 * allocation, after all frees of the previous micro-step, and does not cross the start of the step. */
static bool place_loop(const struct plim_recorded_stream *stream, const struct signs *signs,
                       size_t end, size_t length, struct plim_recorded_loop *out)
{
    size_t loops = stream->loops.count, floor = 0;
    if (loops) floor = stream->loops.items[loops - 1].first + stream->loops.items[loops - 1].count;
    for (size_t to = end;; to--) {
        size_t from = to - length;
        *out = loop_of(signs, from, to);
        bool is_cut = out->first < stream->before && stream->before < out->first + out->count;
        if (out->first < floor) return false;
        if (signs->list.items[from] > 0 && !is_cut) return true;
        if (!from || signs->list.items[from - 1] != signs->list.items[to - 1]) return false;
    }
}

static bool is_balanced(const struct plim_recorded_stream *stream, const struct plim_recorded_loop *loop)
{
    int64_t balance = 0;
    for (size_t i = 0; i < loop->count; i++)
        balance += plim_recorded_change(&stream->events.items[loop->first + i]);
    return !balance;
}

static enum plim_status find(struct plim_recorded_stream *stream, const struct signs *base,
                             const struct signs *longer, struct plim_error *err)
{
    size_t at = 0;
    for (size_t i = 0; i < base->list.count; i++, at++) {
        struct plim_recorded_loop loop;
        if (at < longer->list.count && base->list.items[i] == longer->list.items[at]) continue;
        size_t length = at < longer->list.count ? repeat_at(base, i, longer, at) : 0;
        if (!length || !place_loop(stream, base, i, length, &loop) || !is_balanced(stream, &loop))
            return plim_fail(err, PLIM_DIFFERS,
                             "a micro-step more is not one of the others once more: the program "
                             "cannot be recorded with {accumulation}, only without");
        if (PLIM_ARRAY_PUSH(&stream->loops, loop) != PLIM_OK) return plim_no_memory(err);
        if (loop.count / 2 > stream->longest) stream->longest = loop.count / 2;
        at += length;
    }
    return PLIM_OK;
}

/* --- checking loops --------------------------------------------------------------------------- */

/* The events of a walk through the stream, as a trace. */
struct walked {
    const struct plim_recorded_stream *stream;
    struct plim_recorded_point point;
    const struct plim_device_info *gpu;
    PLIM_ARRAY(struct plim_traced) events;
    PLIM_ARRAY(uint64_t) numbers; /* by slot: number of its allocation; 0: none */
    uint64_t allocated;
};

static enum plim_status note_allocation(void *user, uint32_t slot, uint32_t size)
{
    struct walked *w = user;
    const struct plim_recorded_size *of = &w->stream->sizes.items[size];
    const struct plim_traced event = {.kind = PLIM_TRACED_ALLOCATION,
                                      .value = plim_recorded_size_at(of, w->point, w->gpu),
                                      .cuda_stream = of->cuda_stream};
    if (slot == w->numbers.count && PLIM_ARRAY_PUSH(&w->numbers, 0) != PLIM_OK) return PLIM_NOMEM;
    bool is_there = event.value || of->scratch;
    w->numbers.items[slot] = is_there ? ++w->allocated : 0;
    return is_there ? PLIM_ARRAY_PUSH(&w->events, event) : PLIM_OK;
}

static enum plim_status note_release(void *user, uint32_t slot)
{
    struct walked *w = user;
    const struct plim_traced event = {
        .kind = PLIM_TRACED_FREE, .value = (int64_t)(w->allocated - w->numbers.items[slot] + 1)};
    return w->numbers.items[slot] ? PLIM_ARRAY_PUSH(&w->events, event) : PLIM_OK;
}

static enum plim_status note_empty_cache(void *user)
{
    struct walked *w = user;
    const struct plim_traced event = {.kind = PLIM_TRACED_EMPTY_CACHE};
    return PLIM_ARRAY_PUSH(&w->events, event);
}

static bool same(const struct walked *walked, const struct plim_trace *memory)
{
    if (walked->events.count > memory->events.count) return false;
    for (size_t i = 0; i < walked->events.count; i++) {
        const struct plim_traced *a = &walked->events.items[i], *b = &memory->events.items[i];
        if (a->kind != b->kind || a->value != b->value || a->cuda_stream != b->cuda_stream)
            return false;
    }
    return true;
}

/* Checks that a walk with this many micro-steps equals what the program did. */
static enum plim_status check(const struct plim_recorded_stream *stream,
                              const struct plim_trace *memory, int64_t accumulation,
                              struct plim_error *err)
{
    static const struct plim_recorded_walker walker = {
        .allocate = note_allocation, .release = note_release, .empty_cache = note_empty_cache};
    struct plim_recorded_walk walk = {0};
    struct walked walked = {.stream = stream, .point = memory->point, .gpu = memory->gpu};
    enum plim_status st = plim_recorded_walk_begin(&walk, stream, accumulation, &walker, &walked);
    if (!st) st = plim_recorded_walk_events(&walk, 0, stream->events.count);
    plim_trace_sort_frees(walked.events.items, walked.events.count);
    plim_traced_pair(walked.events.items, walked.events.count);
    bool is_same = !st && same(&walked, memory);
    plim_recorded_walk_finish(&walk);
    PLIM_ARRAY_FINISH(&walked.events);
    PLIM_ARRAY_FINISH(&walked.numbers);
    if (st == PLIM_NOMEM) return plim_no_memory(err);
    if (is_same) return PLIM_OK;
    return plim_fail(err, PLIM_DIFFERS,
                     "with {accumulation} %lld the program allocates otherwise than with as many of "
                     "the micro-steps that were recorded, expected it without {accumulation}",
                     (long long)accumulation);
}

/* --- a stream's loops ------------------------------------------------------------------------- */

/* Copies only the allocations and frees. */
static enum plim_status memory_of(const struct plim_trace *trace, struct plim_trace *out)
{
    *out = (struct plim_trace){.point = trace->point, .gpu = trace->gpu};
    for (size_t i = 0; i < trace->events.count; i++) {
        if (trace->events.items[i].kind == PLIM_TRACED_LAUNCH) continue;
        if (PLIM_ARRAY_PUSH(&out->events, trace->events.items[i]) != PLIM_OK) return PLIM_NOMEM;
    }
    plim_trace_sort_frees(out->events.items, out->events.count);
    plim_traced_pair(out->events.items, out->events.count);
    return PLIM_OK;
}

static enum plim_status find_in(struct plim_recorded_stream *stream, const struct plim_trace *memory,
                                struct plim_error *err)
{
    struct signs base = {0}, longer = {0};
    read_stream(stream, memory->point, memory->gpu, &base);
    read_trace(memory->events.items, memory->events.count, &longer);
    enum plim_status st =
        base.failed || longer.failed ? plim_no_memory(err) : find(stream, &base, &longer, err);
    signs_finish(&base);
    signs_finish(&longer);
    return st;
}

enum plim_status plim_trace_loops(struct plim_recorded_stream *stream,
                                  const struct plim_trace *traces, const int64_t *accumulations,
                                  size_t count, struct plim_error *err)
{
    enum plim_status st = PLIM_OK;
    for (size_t i = 0; i < count && !st; i++) {
        struct plim_trace memory;
        st = memory_of(&traces[i], &memory);
        if (st) st = plim_no_memory(err);
        if (!st && !i) st = find_in(stream, &memory, err);
        if (!st) st = check(stream, &memory, accumulations[i], err);
        plim_trace_finish(&memory);
    }
    return st;
}
