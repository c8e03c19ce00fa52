#include "align.h"
#include "join.h"

static enum plim_status take_memory(const struct plim_trace *trace, struct plim_traced_memory *out,
                                    struct plim_error *err)
{
    size_t start, period;
    out->trace = trace;
    enum plim_status st = plim_trace_steady(trace, &start, &period, err);
    for (size_t i = 0; i < trace->events.count && !st; i++) {
        const struct plim_traced *event = &trace->events.items[i];
        if (i == start) out->start = out->events.count;
        if (i == start + period) out->period = out->events.count - out->start;
        if (event->kind == PLIM_TRACED_LAUNCH) continue;
        if (PLIM_ARRAY_PUSH(&out->events, *event) != PLIM_OK) st = plim_no_memory(err);
    }
    if (st) return st;
    plim_trace_sort_frees(out->events.items, out->events.count);
    plim_traced_pair(out->events.items, out->events.count);
    /* The step starts with an allocation: frees before it may have been sorted among earlier ones. */
    while (out->period && out->start < out->events.count &&
           out->events.items[out->start].kind == PLIM_TRACED_FREE)
        out->start++;
    return PLIM_OK;
}

/* True if both are equal except for bytes, until the end of the first step that both repeat. */
static bool agree(const struct plim_traced_memory *a, const struct plim_traced_memory *b)
{
    size_t start = a->start > b->start ? a->start : b->start, end = start + a->period;
    if (a->period != b->period || end > a->events.count || end > b->events.count) return false;
    for (size_t i = 0; i < end; i++) {
        const struct plim_traced *x = &a->events.items[i], *y = &b->events.items[i];
        if (x->kind != y->kind || x->cuda_stream != y->cuda_stream) return false;
        if (x->kind == PLIM_TRACED_FREE && x->value != y->value) return false;
    }
    return true;
}

static bool is_within(const struct plim_traced_memory *m, struct plim_recorded_point from)
{
    return m->trace->point.batch >= from.batch && m->trace->point.seq >= from.seq;
}

enum { LEAST_LENGTHS = 3 }; /* functions of the length have degree 2 */

/* Returns for how many lengths the runs from this point on have at least two batches: without them it is unknown how a
 * size grows with the product of both. */
static size_t count_lengths(const struct plim_traced_memory *all, size_t count,
                            struct plim_recorded_point from)
{
    size_t lengths = 0;
    for (size_t i = 0; i < count; i++) {
        size_t smaller = 0;
        for (size_t k = 0; k < i && is_within(&all[i], from); k++)
            smaller += is_within(&all[k], from) && all[k].trace->point.seq == all[i].trace->point.seq;
        lengths += smaller == 1; /* count it at its second batch */
    }
    return lengths;
}

/* True if enough lengths are recorded to determine how sizes depend on them; a single length needs none. */
static bool has_lengths(const struct plim_traced_memory *all, size_t count,
                        struct plim_recorded_point from)
{
    size_t recorded = count_lengths(all, count, (struct plim_recorded_point){1, 1});
    return count_lengths(all, count, from) >=
           (recorded < LEAST_LENGTHS ? recorded : LEAST_LENGTHS);
}

/* True if all runs from this point on agree, and there are enough of them to fit and to check. If there is only one
 * batch, which no other can confirm, all lengths have to agree. */
static bool holds_from(const struct plim_traced_memory *all, size_t count, struct plim_recorded_point from)
{
    size_t runs = 0;
    int64_t least_batch = INT64_MAX, most_batch = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_within(&all[i], from)) continue;
        if (!all[i].agrees) return false;
        int64_t batch = all[i].trace->point.batch;
        if (batch < least_batch) least_batch = batch;
        if (batch > most_batch) most_batch = batch;
        runs++;
    }
    if (all[0].trace->point.batch == all[count - 1].trace->point.batch) return runs == count;
    return runs >= 3 && most_batch > least_batch && has_lengths(all, count, from);
}

/* True if a step of the largest batch has more events than that of the next smaller one, and so on once more: then the
 * events follow the batch, because samples, or chunks of them, are processed one after another. `three`: these runs,
 * the smallest first, all of the same length. */
static bool follows_batch(const struct plim_traced_memory *all, size_t count,
                          const struct plim_traced_memory *three[3])
{
    size_t found = 0;
    for (size_t i = count; i-- > 0 && found < 3;) {
        const struct plim_traced_memory *above = found ? three[3 - found] : NULL;
        bool is_new = !above || above->trace->point.batch != all[i].trace->point.batch;
        if (!is_new || all[i].trace->point.seq != all[count - 1].trace->point.seq) continue;
        if (above && all[i].period >= above->period) return false;
        three[3 - ++found] = &all[i];
    }
    return found == 3;
}

static enum plim_status differ(const struct plim_traced_memory *all, size_t count, struct plim_error *err)
{
    const struct plim_traced_memory *three[3] = {0};
    const struct plim_recorded_point *last = &all[count - 1].trace->point;
    long long batch = last->batch < 4 ? 4 : last->batch;
    size_t alike = 0;
    for (size_t i = 0; i < count; i++) alike += all[i].agrees;
    if (alike == 1 && follows_batch(all, count, three))
        return plim_fail(err, PLIM_DIFFERS,
                         "the number of allocations and frees of a step follows the batch (%zu at batch %lld, %zu at "
                         "%lld, %zu at %lld), as where samples or chunks of them are gone through one after the other, "
                         "and larger batches will differ too: record with --each-batch the batches that are to be "
                         "used, or ask exec",
                         three[0]->period, (long long)three[0]->trace->point.batch, three[1]->period,
                         (long long)three[1]->trace->point.batch, three[2]->period, (long long)last->batch);
    return plim_fail(err, PLIM_DIFFERS,
                     "%zu of %zu sizes allocate and free in the order of the largest (batch %lld, "
                     "length %lld), and three in a row have to, of lengths too: record larger ones, "
                     "such as --batch %lld,%lld,%lld,%lld, or with --each-batch the batches that are to be used",
                     alike, count, (long long)last->batch, (long long)last->seq, batch, batch + (batch + 3) / 4,
                     batch + (batch + 1) / 2, 2 * batch);
}

/* Finds the smallest recorded point from which on all agree. */
static enum plim_status find_from(const struct plim_traced_memory *all, size_t count,
                                  struct plim_recorded_point *from, struct plim_error *err)
{
    for (size_t b = 0; b < count; b++)
        for (size_t s = 0; s < count; s++) {
            *from = (struct plim_recorded_point){all[b].trace->point.batch,
                                                 all[s].trace->point.seq};
            if (holds_from(all, count, *from)) return PLIM_OK;
        }
    return differ(all, count, err);
}

/* Returns the event of the steady step at which the fewest blocks are held, where the step is cut. */
static size_t find_cut(const struct plim_traced_memory *m, size_t start)
{
    size_t cut = start;
    int64_t held = 0, least = INT64_MAX;
    for (size_t i = 0; i < start + m->period; i++) {
        if (i >= start && held < least) {
            least = held;
            cut = i;
        }
        held += plim_traced_change(&m->events.items[i]);
    }
    return cut;
}

static enum plim_status check_balance(const struct plim_traced_memory *m, struct plim_error *err)
{
    int64_t balance = 0;
    for (size_t i = m->start; i < m->start + m->period; i++)
        balance += plim_traced_change(&m->events.items[i]);
    if (!balance) return PLIM_OK;
    return plim_fail(err, PLIM_UNSTABLE,
                     "memory goes on growing: each step takes %lld more blocks than it gives back",
                     (long long)balance);
}

/* --- sizes ------------------------------------------------------------------------------------ */

/* An allocation that represents all that have the same bytes in every run, for the same CUDA stream; an entry of a hash
 * table. */
struct key {
    size_t event; /* its index + 1; 0: a free entry */
    uint32_t size;
};

struct joiner {
    struct plim_recorded_point points[PLIM_RECORDED_POINTS];
    const struct plim_traced_memory *runs[PLIM_RECORDED_POINTS];
    size_t count;
    struct key *keys;
    size_t capacity; /* a power of two, more than twice the number of events */
    struct plim_recorded_stream *out;
};

static int64_t bytes_of(const struct joiner *j, size_t run, size_t event)
{
    return j->runs[run]->events.items[event].value;
}

static int cuda_stream_of(const struct joiner *j, size_t event)
{
    return j->runs[0]->events.items[event].cuda_stream; /* the same in all runs */
}

/* Returns the kind of a reduction's scratch that it is in every run; otherwise none. */
static enum plim_recorded_scratch scratch_of(const struct joiner *j, size_t event)
{
    enum plim_recorded_scratch scratch = j->runs[0]->events.items[event].scratch;
    for (size_t i = 1; i < j->count; i++)
        if (j->runs[i]->events.items[event].scratch != scratch) return PLIM_RECORDED_NO_SCRATCH;
    return scratch;
}

static const struct plim_reduce_launch *launch_of(const struct joiner *j, size_t run, size_t event)
{
    return &j->runs[run]->trace->reductions.items[j->runs[run]->events.items[event].reduction];
}

static bool same_launch(const struct plim_reduce_launch *a, const struct plim_reduce_launch *b)
{
    return a->outputs == b->outputs && a->inputs == b->inputs && plim_reduce_launch_is_alike(a, b);
}

static bool same_size(const struct joiner *j, size_t a, size_t b)
{
    enum plim_recorded_scratch scratch = scratch_of(j, a);
    if (scratch != scratch_of(j, b) || cuda_stream_of(j, a) != cuda_stream_of(j, b)) return false;
    for (size_t i = 0; i < j->count; i++)
        if (bytes_of(j, i, a) != bytes_of(j, i, b) ||
            (scratch && !same_launch(launch_of(j, i, a), launch_of(j, i, b))))
            return false;
    return true;
}

/* Returns the entry of events like this one, or a free entry if it is the first. */
static struct key *find_key(struct joiner *j, size_t event)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < j->count; i++) {
        hash = (hash ^ (uint64_t)bytes_of(j, i, event)) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    size_t at = hash & (j->capacity - 1);
    while (j->keys[at].event && !same_size(j, j->keys[at].event - 1, event))
        at = (at + 1) & (j->capacity - 1);
    return &j->keys[at];
}

static enum plim_status add_size(struct joiner *j, size_t event, struct plim_error *err)
{
    int64_t bytes[PLIM_RECORDED_POINTS];
    struct plim_reduce_launch launches[PLIM_RECORDED_POINTS];
    struct plim_recorded_size size;
    enum plim_recorded_scratch scratch = scratch_of(j, event);
    if (j->out->sizes.count >= PLIM_RECORDED_SIZES)
        return plim_fail(err, PLIM_UNSUPPORTED, "more than %d sizes of blocks",
                         PLIM_RECORDED_SIZES);
    for (size_t i = 0; i < j->count; i++) bytes[i] = bytes_of(j, i, event);
    for (size_t i = 0; i < j->count && scratch; i++) launches[i] = *launch_of(j, i, event);
    bool has_rule =
        scratch && plim_recorded_size_fit_scratch(j->points, launches, bytes, j->count, scratch,
                                                  j->runs[0]->trace->gpu, &size);
    if (!has_rule && plim_recorded_size_fit(j->points, bytes, j->count, &size))
        return plim_no_memory(err);
    if (size.is_table) size.scratch = scratch;
    size.cuda_stream = cuda_stream_of(j, event);
    if (PLIM_ARRAY_PUSH(&j->out->sizes, size) == PLIM_OK) return PLIM_OK;
    free(size.entries);
    return plim_no_memory(err);
}

static enum plim_status add_event(struct joiner *j, size_t at, struct plim_error *err)
{
    const struct plim_traced *event = &j->runs[0]->events.items[at];
    struct plim_recorded_event out = {.frees = event->kind != PLIM_TRACED_ALLOCATION,
                                      .value = (uint32_t)event->value};
    enum plim_status st = PLIM_OK;
    if (out.frees && out.value > j->out->longest) j->out->longest = out.value;
    if (!out.frees) {
        struct key *key = find_key(j, at);
        if (!key->event) {
            st = add_size(j, at, err);
            if (st) return st;
            *key = (struct key){at + 1, (uint32_t)(j->out->sizes.count - 1)};
        }
        out.value = key->size;
    }
    return PLIM_ARRAY_PUSH(&j->out->events, out) == PLIM_OK ? PLIM_OK : plim_no_memory(err);
}

static enum plim_status join(const struct plim_traced_memory *all, size_t count,
                             struct plim_recorded_stream *out, struct plim_error *err)
{
    struct joiner j = {.out = out, .capacity = 64};
    size_t start = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_within(&all[i], out->from)) continue;
        j.points[j.count] = all[i].trace->point;
        j.runs[j.count++] = &all[i];
        if (all[i].start > start) start = all[i].start;
    }
    size_t period = j.runs[0]->period, cut = find_cut(j.runs[0], start), end = cut + period;
    for (size_t i = 0; i < j.count; i++)
        if (end > j.runs[i]->events.count)
            return plim_fail(err, PLIM_UNSTABLE, "a run of the program was too short");
    if (end > PLIM_RECORDED_EVENTS)
        return plim_fail(err, PLIM_UNSUPPORTED, "more than %d allocations and frees",
                         PLIM_RECORDED_EVENTS);
    while (j.capacity < 2 * end) j.capacity *= 2;
    j.keys = calloc(j.capacity, sizeof(*j.keys));
    enum plim_status st = j.keys ? PLIM_OK : plim_no_memory(err);
    for (size_t i = 0; i < end && !st; i++) st = add_event(&j, i, err);
    out->before = cut;
    free(j.keys);
    return st ? st : plim_traced_join_costs(j.runs, j.count, cut, end, out, err);
}

enum plim_status plim_trace_join(const struct plim_trace *traces, size_t count,
                                 struct plim_recorded_stream *out, struct plim_error *err)
{
    struct plim_traced_memory *all = calloc(count, sizeof(*all));
    enum plim_status st = all && count ? PLIM_OK : plim_no_memory(err);
    for (size_t i = 0; i < count && !st; i++) st = take_memory(&traces[i], &all[i], err);
    if (!st && plim_traced_align(all, count)) st = plim_no_memory(err);
    for (size_t i = 0; i < count && !st; i++) all[i].agrees = agree(&all[i], &all[count - 1]);
    if (!st) st = check_balance(&all[count - 1], err);
    if (!st) st = find_from(all, count, &out->from, err);
    if (!st) st = join(all, count, out, err);
    for (size_t i = 0; all && i < count; i++) PLIM_ARRAY_FINISH(&all[i].events);
    free(all);
    return st;
}
