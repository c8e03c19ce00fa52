#include "proof.h"
#include "autotune/base/compare.h"
#include "devices/open.h"
#include "workloads/recording/play.h"
#include <stdio.h>

/* What is asked of the GPU and given back, one after the other: bytes, negative where given back. */
struct segments {
    PLIM_ARRAY(int64_t) bytes;
    PLIM_ARRAY(size_t) before_step; /* how many there were before each steady step that is played */
    bool failed;
};

static void push(struct segments *list, int64_t bytes)
{
    list->failed |= PLIM_ARRAY_PUSH(&list->bytes, bytes) != PLIM_OK;
}

/* The allocator's observer. */
static void note(void *user, char what, int64_t bytes)
{
    push(user, what == 'S' || what == 'M' ? bytes : -bytes);
}

/* Of a run with the program's own allocator: what it allocated are segments. */
static void read_own(const struct plim_trace *own, struct segments *out)
{
    struct segments allocated = {0};
    for (size_t i = 0; i < own->events.count; i++) {
        const struct plim_traced *event = &own->events.items[i];
        if (!plim_traced_change(event)) continue;
        if (event->kind == PLIM_TRACED_ALLOCATION) push(&allocated, event->value);
        size_t back = (size_t)event->value;
        push(out, event->kind == PLIM_TRACED_ALLOCATION
                      ? event->value
                      : -allocated.bytes.items[allocated.bytes.count - back]);
    }
    out->failed |= allocated.failed;
    PLIM_ARRAY_FINISH(&allocated.bytes);
}

/* What is given back in a row stands in a trace in another order than it was (plim_trace_sort_frees()): by its
 * bytes, on both sides. */
static void sort_returns(struct segments *list)
{
    int64_t *bytes = list->bytes.items;
    for (size_t i = 0, run; i < list->bytes.count; i += run + 1) {
        for (run = 0; i + run < list->bytes.count && bytes[i + run] < 0; run++) continue;
        if (run > 1) qsort(bytes + i, run, sizeof(*bytes), plim_compare_int64);
    }
}

/* How many are equal from the first on. */
static size_t equal_until(const struct segments *a, const struct segments *b)
{
    size_t i = 0;
    while (i < a->bytes.count && i < b->bytes.count && a->bytes.items[i] == b->bytes.items[i]) i++;
    return i;
}

/* The player's stop, which is asked before each step. */
static bool note_step(const void *user)
{
    struct segments *list = *(struct segments *const *)user;
    list->failed |= PLIM_ARRAY_PUSH(&list->before_step, list->bytes.count) != PLIM_OK;
    return false;
}

/* `out`: notes the segments, and plays so many steps at least; NULL: as many as it takes. */
static enum plim_status play(const struct plim_recorded_stream *stream,
                             struct plim_recorded_point point, size_t steps, const char *uri,
                             struct segments *out, struct plim_replay *replay,
                             struct plim_error *err)
{
    struct plim_device *device = NULL;
    struct plim_player *player = NULL;
    enum plim_status st = plim_device_open(uri, &device, err);
    if (!st) st = plim_player_create(device, NULL, &player, err);
    if (!st && out) {
        plim_player_observe(player, note, out);
        plim_player_stop(player, note_step, &out);
        plim_player_go_on(player, (int)steps);
    }
    if (!st) st = plim_player_run(player, PLIM_RECORDED_PYTORCH, stream, point, 1, replay, err);
    plim_player_destroy(&player);
    if (device) plim_device_close(&device);
    return st;
}

/* How many steps of the recorded run came before its steady ones, but for the one that the cut is in. */
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

/* How many there were before a steady step, or before the last one that was played. */
static size_t count_before(const struct segments *list, size_t step)
{
    size_t count = list->before_step.count;
    if (!count) return list->bytes.count;
    return list->before_step.items[step < count ? step : count - 1];
}

/* Are they the same allocations, as far as both go? */
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

/* `wanted`: so many of ours the program has asked for as well, at least. */
static void tell(struct plim_recording *recording, struct plim_recorded_point point,
                 const struct segments *ours, size_t wanted, const struct segments *theirs)
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
    struct segments ours = {0}, theirs = {0};
    struct plim_replay replay;
    size_t before = steps_before(recorded, stream) + 1; /* and where the program was cut off */
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
    st = play(stream, recorded->point, own->steps, device, &ours, &replay, err);
    if (!st && (ours.failed || theirs.failed)) st = plim_no_memory(err);
    if (!st) {
        sort_returns(&ours);
        sort_returns(&theirs);
        tell(recording, recorded->point, &ours, count_before(&ours, steady), &theirs);
    }
    PLIM_ARRAY_FINISH(&ours.bytes);
    PLIM_ARRAY_FINISH(&ours.before_step);
    PLIM_ARRAY_FINISH(&theirs.bytes);
    return st;
}

enum plim_status plim_record_peak(const struct plim_recorded_stream *stream,
                                  struct plim_recorded_point point, const char *device,
                                  int64_t *bytes, struct plim_error *err)
{
    struct plim_replay replay = {0};
    enum plim_status st = play(stream, point, 0, device, NULL, &replay, err);
    *bytes = replay.verdict == PLIM_OK ? replay.peak_reserved_bytes : 0;
    return st;
}
