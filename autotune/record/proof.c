#include "proof.h"
#include "autotune/base/compare.h"
#include "autotune/trace/segments.h"
#include <stdio.h>

/* Reads the segments of a run with the program's own allocator, which are its allocations. */
static void read_own(const struct plim_trace *own, struct plim_segments *out)
{
    struct plim_segments allocated = {0};
    for (size_t i = 0; i < own->events.count; i++) {
        const struct plim_traced *event = &own->events.items[i];
        if (!plim_traced_change(event)) continue;
        if (event->kind == PLIM_TRACED_ALLOCATION) plim_segments_add(&allocated, event->value);
        size_t back = (size_t)event->value;
        plim_segments_add(out, event->kind == PLIM_TRACED_ALLOCATION
                      ? event->value
                      : -allocated.bytes.items[allocated.bytes.count - back]);
    }
    out->failed |= allocated.failed;
    plim_segments_finish(&allocated);
}

/* Sorts consecutive returns by size, since a trace does not keep the order of consecutive frees
 * (plim_trace_sort_frees()). */
static void sort_returns(struct plim_segments *list)
{
    int64_t *bytes = list->bytes.items;
    for (size_t i = 0, run; i < list->bytes.count; i += run + 1) {
        for (run = 0; i + run < list->bytes.count && bytes[i + run] < 0; run++) continue;
        if (run > 1) qsort(bytes + i, run, sizeof(*bytes), plim_compare_int64);
    }
}

/* Returns the length of the common prefix. */
static size_t equal_until(const struct plim_segments *a, const struct plim_segments *b)
{
    size_t i = 0;
    while (i < a->bytes.count && i < b->bytes.count && a->bytes.items[i] == b->bytes.items[i]) i++;
    return i;
}

/* Returns the number of steps of the recorded run before its steady ones, without the step that contains the cut. */
static size_t steps_before(const struct plim_trace *recorded,
                           const struct plim_recorded_stream *stream)
{
    size_t at = 0, seen = 0, steps = 0;
    for (; at < recorded->events.count && seen < stream->before; at++)
        seen += recorded->events.items[at].kind != PLIM_TRACED_LAUNCH;
    if (at == recorded->events.count) return recorded->steps;
    while (steps < recorded->timed.count &&
           recorded->timed.items[steps].costs <= recorded->events.items[at].costs)
        steps++;
    return steps;
}

/* Returns the number of segments before a steady step, or before the last step played if it is an earlier one. */
static size_t count_before(const struct plim_segments *list, size_t step)
{
    size_t count = list->before_step.count;
    if (!count) return list->bytes.count;
    return list->before_step.items[step < count ? step : count - 1];
}

/* True if the allocations are the same, up to the end of the shorter trace. */
static bool is_direct(const struct plim_trace *recorded, const struct plim_trace *own)
{
    size_t a = 0, b = 0;
    for (;; a++, b++) {
        while (a < recorded->events.count && recorded->events.items[a].kind == PLIM_TRACED_LAUNCH)
            a++;
        while (b < own->events.count && own->events.items[b].kind == PLIM_TRACED_LAUNCH) b++;
        if (a == recorded->events.count || b == own->events.count) return true;
        const struct plim_traced *x = &recorded->events.items[a], *y = &own->events.items[b];
        if (x->kind != y->kind || x->value != y->value) return false;
    }
}

/* Sets the allocator and the proof. `wanted`: the program must have requested at least so many of our segments. */
static void set_proof(struct plim_recording *recording, struct plim_recorded_point point,
                      const struct plim_segments *ours, size_t wanted, const struct plim_segments *theirs)
{
    size_t equal = equal_until(ours, theirs), size = sizeof(recording->proof);
    bool is_equal = equal == theirs->bytes.count && equal >= wanted;
    recording->allocator = is_equal ? PLIM_RECORDED_PYTORCH : PLIM_RECORDED_UNKNOWN;
    int used = snprintf(recording->proof, size, "at batch %lld, length %lld: ",
                        (long long)point.batch, (long long)point.seq);
    if (is_equal)
        snprintf(recording->proof + used, size - (size_t)used,
                 "the %zu segments that the program asked for are those that PyTorch's allocator "
                 "asks for when it is played the recording",
                 equal);
    else
        snprintf(recording->proof + used, size - (size_t)used,
                 "the program asked for %zu segments, PyTorch's allocator for %zu when it is "
                 "played the recording; the first %zu are equal",
                 theirs->bytes.count, wanted, equal);
}

enum plim_status plim_record_prove(const struct plim_trace *recorded, const struct plim_trace *own,
                                   const struct plim_recorded_stream *stream, const char *device,
                                   struct plim_recording *recording, struct plim_error *err)
{
    struct plim_segments ours = {0}, theirs = {0};
    struct plim_replay replay;
    size_t before = steps_before(recorded, stream) + 1; /* plus the step in which the program was ended */
    size_t steady = own->steps > before ? own->steps - before : 0;
    enum plim_status st = PLIM_OK;
    if (is_direct(recorded, own)) {
        recording->allocator = PLIM_RECORDED_DIRECT;
        snprintf(recording->proof, sizeof(recording->proof),
                 "at batch %lld, length %lld: with its own allocator the program makes the very "
                 "allocations that are recorded",
                 (long long)recorded->point.batch, (long long)recorded->point.seq);
        return PLIM_OK;
    }
    read_own(own, &theirs);
    st = plim_segments_play(stream, recorded->point, own->steps, device, NULL, &ours, &replay, err);
    if (!st && (ours.failed || theirs.failed)) st = plim_no_memory(err);
    if (!st) {
        sort_returns(&ours);
        sort_returns(&theirs);
        set_proof(recording, recorded->point, &ours, count_before(&ours, steady), &theirs);
    }
    plim_segments_finish(&ours);
    plim_segments_finish(&theirs);
    return st;
}

enum plim_status plim_record_peak(const struct plim_recorded_stream *stream,
                                  struct plim_recorded_point point, const char *device,
                                  int64_t *bytes, struct plim_error *err)
{
    struct plim_replay replay = {0};
    enum plim_status st = plim_segments_play(stream, point, 0, device, NULL, NULL, &replay, err);
    *bytes = replay.verdict == PLIM_OK ? replay.peak_reserved_bytes : 0;
    return st;
}
