/* What several runs launch between two allocations, as functions of their sizes. */
#include "align.h"
#include "autotune/base/hash.h"

/* A hash table that finds the first of equal things. */
struct index {
    struct {
        uint64_t hash;
        uint32_t number; /* index + 1; 0: a free entry */
    } *rows;
    size_t capacity, count; /* capacity: a power of two */
};

struct costs {
    const struct plim_traced_memory *const *runs;
    size_t count;
    struct plim_recorded_stream *out;
    struct index sizes, launches, works;
    PLIM_ARRAY(uint32_t) work; /* that is being collected */
    /* The launches of each run that are joined: the first, their number, and whether they correspond one to one to
     * those of the last run. */
    size_t firsts[PLIM_RECORDED_POINTS], launched[PLIM_RECORDED_POINTS];
    bool in_order[PLIM_RECORDED_POINTS];
};

static uint64_t hash_of(uint64_t hash, const void *data, size_t bytes)
{
    hash = plim_hash(hash, data, bytes);
    return hash ^ hash >> 29;
}

static bool grow(struct index *index)
{
    struct index larger = {.capacity = index->capacity ? 2 * index->capacity : 256,
                           .count = index->count};
    larger.rows = calloc(larger.capacity, sizeof(*larger.rows));
    if (!larger.rows) return false;
    for (size_t i = 0; i < index->capacity; i++) {
        if (!index->rows[i].number) continue;
        size_t at = index->rows[i].hash & (larger.capacity - 1);
        while (larger.rows[at].number) at = (at + 1) & (larger.capacity - 1);
        larger.rows[at] = index->rows[i];
    }
    free(index->rows);
    *index = larger;
    return true;
}

/* Returns in *number the number of the entry for which `is_same` is true; otherwise adds `next`. Fails only with
 * PLIM_NOMEM. */
static enum plim_status look_up(struct index *index, uint64_t hash,
                                bool (*is_same)(const struct costs *, uint32_t, const void *),
                                const struct costs *c, const void *thing, size_t next,
                                uint32_t *number)
{
    if (2 * index->count >= index->capacity && !grow(index)) return PLIM_NOMEM;
    size_t at = hash & (index->capacity - 1);
    for (; index->rows[at].number; at = (at + 1) & (index->capacity - 1)) {
        *number = index->rows[at].number - 1;
        if (index->rows[at].hash == hash && is_same(c, *number, thing)) return PLIM_OK;
    }
    *number = (uint32_t)next;
    index->rows[at].hash = hash;
    index->rows[at].number = *number + 1;
    index->count++;
    return PLIM_OK;
}

/* --- numbers ---------------------------------------------------------------------------------- */

static bool same_size(const struct costs *c, uint32_t number, const void *thing)
{
    const struct plim_recorded_size *a = &c->out->sizes.items[number], *b = thing;
    if (a->is_table != b->is_table || a->count != b->count || a->chunk != b->chunk || a->scratch ||
        b->scratch)
        return false;
    if (!a->is_table) return !memcmp(a->terms, b->terms, sizeof(a->terms));
    return !memcmp(a->entries, b->entries, a->count * sizeof(*a->entries));
}

/* Takes the size, including its entries. */
static enum plim_status add_size(struct costs *c, struct plim_recorded_size *size, uint32_t *number)
{
    struct plim_recorded_stream *out = c->out;
    uint64_t hash = hash_of(size->is_table, size->terms, sizeof(size->terms));
    hash = hash_of(hash, size->entries, size->count * sizeof(*size->entries));
    size_t next = out->sizes.count;
    enum plim_status st = look_up(&c->sizes, hash, same_size, c, size, next, number);
    if (!st && *number == next) {
        st = PLIM_ARRAY_PUSH(&out->sizes, *size);
        if (!st) return st;
    }
    free(size->entries);
    return st;
}

/* Adds the sizes of allocations, which come first. */
static enum plim_status index_sizes(struct costs *c)
{
    enum plim_status st = PLIM_OK;
    for (size_t i = 0; i < c->out->sizes.count && !st; i++) {
        const struct plim_recorded_size *size = &c->out->sizes.items[i];
        uint32_t number;
        uint64_t hash = hash_of(size->is_table, size->terms, sizeof(size->terms));
        hash = hash_of(hash, size->entries, size->count * sizeof(*size->entries));
        st = look_up(&c->sizes, hash, same_size, c, size, i, &number);
    }
    return st;
}

static enum plim_status make_table(const struct plim_recorded_point *points, const int64_t *values,
                                   size_t count, struct plim_recorded_size *out)
{
    *out = (struct plim_recorded_size){.is_table = true, .count = count};
    out->entries = calloc(count, sizeof(*out->entries));
    for (size_t i = 0; out->entries && i < count; i++)
        out->entries[i] = (struct plim_recorded_entry){points[i], values[i]};
    return out->entries ? PLIM_OK : PLIM_NOMEM;
}

/* --- launches --------------------------------------------------------------------------------- */

/* Returns what a run launches after the allocation that is its event `at`. */
static size_t launches_of(const struct plim_traced_memory *run, size_t at,
                          const struct plim_cost **first)
{
    size_t next = at + 1, from = run->events.items[at].costs, to = run->trace->costs.count;
    while (next < run->events.count && run->events.items[next].kind != PLIM_TRACED_ALLOCATION)
        next++;
    if (next < run->events.count) to = run->events.items[next].costs;
    *first = to > from ? run->trace->costs.items + from : NULL;
    return to > from ? to - from : 0;
}

static bool is_alike(const struct plim_cost *a, const struct plim_cost *b)
{
    return a->kind == b->kind && a->type == b->type && a->causal == b->causal &&
           a->in_autograd == b->in_autograd && a->in_graph == b->in_graph;
}

static bool same_launch(const struct costs *c, uint32_t number, const void *thing)
{
    const struct plim_cost *a = &c->out->launches.items[number], *b = thing;
    return is_alike(a, b) && !memcmp(a->number, b->number, sizeof(a->number));
}

/* Adds a launch, given as one launch of each run; NULL: the run has no corresponding one. */
static enum plim_status add_launch(struct costs *c, const struct plim_cost *const *each)
{
    struct plim_recorded_point points[PLIM_RECORDED_POINTS];
    int64_t values[PLIM_RECORDED_POINTS];
    const struct plim_cost *model = each[c->count - 1];
    struct plim_cost launch = *model;
    uint32_t number = 0;
    enum plim_status st = PLIM_OK;
    for (int k = 0; k < PLIM_COST_NUMBERS && !st; k++) {
        struct plim_recorded_size size;
        size_t alike = 0;
        launch.number[k] = 0;
        if (k >= plim_cost_rows[model->kind].numbers) continue;
        for (size_t i = 0; i < c->count; i++) {
            if (!each[i]) continue;
            points[alike] = c->runs[i]->trace->point;
            values[alike++] = each[i]->number[k] > 0 ? each[i]->number[k] : 1;
        }
        st = alike == c->count ? plim_recorded_size_fit(points, values, alike, &size)
                               : make_table(points, values, alike, &size);
        if (!st) st = add_size(c, &size, &number);
        launch.number[k] = number;
    }
    if (st) return st;
    uint64_t hash = hash_of((uint64_t)(launch.kind | launch.type << 8 | launch.causal << 16 |
                                       launch.in_autograd << 17 | launch.in_graph << 18),
                            launch.number, sizeof(launch.number));
    size_t next = c->out->launches.count;
    st = look_up(&c->launches, hash, same_launch, c, &launch, next, &number);
    if (!st && number == next) st = PLIM_ARRAY_PUSH(&c->out->launches, launch);
    return st ? st : PLIM_ARRAY_PUSH(&c->work, number);
}

/* --- work ------------------------------------------------------------------------------------- */

static bool same_work(const struct costs *c, uint32_t number, const void *thing)
{
    const struct plim_recorded_work *work = &c->out->works.items[number];
    (void)thing;
    return work->count == c->work.count &&
           !memcmp(c->out->launched.items + work->first, c->work.items,
                   work->count * sizeof(*c->work.items));
}

/* Makes the collected work that of an event; equal works are shared. */
static enum plim_status add_work(struct costs *c, struct plim_recorded_event *event)
{
    struct plim_recorded_stream *out = c->out;
    const struct plim_recorded_work work = {out->launched.count, c->work.count};
    uint32_t number = 0;
    if (!work.count) return PLIM_OK;
    uint64_t hash = hash_of(0, c->work.items, work.count * sizeof(*c->work.items));
    size_t next = out->works.count;
    enum plim_status st = look_up(&c->works, hash, same_work, c, NULL, next, &number);
    if (!st && number == next) {
        st = PLIM_ARRAY_PUSH(&out->works, work);
        for (size_t i = 0; i < work.count && !st; i++)
            st = PLIM_ARRAY_PUSH(&out->launched, c->work.items[i]);
    }
    event->work = number + 1;
    return st;
}

/* True if a run's launches in the step correspond one to one to those of the last run: then they are in the same order,
 * even if events between two launches differ, because a convolution's workspace that is allocated at some sizes moves
 * the launch after another event. */
static bool is_in_order(const struct costs *c, size_t i)
{
    const struct plim_traced_memory *run = c->runs[i], *last = c->runs[c->count - 1];
    if (c->launched[i] != c->launched[c->count - 1]) return false;
    if (!c->launched[i]) return true;
    const struct plim_cost *a = run->trace->costs.items + c->firsts[i],
                           *b = last->trace->costs.items + c->firsts[c->count - 1];
    for (size_t n = 0; n < c->launched[i]; n++)
        if (a[n].kind != b[n].kind) return false;
    return true;
}

/* Finds the launches of the events [from, to) in each run. */
static void find_launches(struct costs *c, size_t from, size_t to)
{
    for (size_t i = 0; i < c->count; i++) {
        const struct plim_cost *first;
        c->firsts[i] = c->launched[i] = 0;
        for (size_t at = from; at < to; at++) {
            if (c->out->events.items[at].frees) continue;
            size_t count = launches_of(c->runs[i], at, &first);
            if (count && !c->launched[i]) c->firsts[i] = (size_t)(first - c->runs[i]->trace->costs.items);
            c->launched[i] += count;
        }
    }
    for (size_t i = 0; i < c->count; i++) c->in_order[i] = is_in_order(c, i);
}

static enum plim_status join_event(struct costs *c, size_t at)
{
    const struct plim_cost *firsts[PLIM_RECORDED_POINTS], *each[PLIM_RECORDED_POINTS], *first;
    const struct plim_traced_memory *last = c->runs[c->count - 1];
    size_t count = launches_of(last, at, &first);
    enum plim_status st = PLIM_OK;
    for (size_t i = 0; i < c->count; i++) {
        bool alike = launches_of(c->runs[i], at, &firsts[i]) == count;
        for (size_t n = 0; n < count && alike; n++) alike = is_alike(&firsts[i][n], &first[n]);
        if (!alike) firsts[i] = NULL;
    }
    c->work.count = 0;
    for (size_t n = 0; n < count && !st; n++) {
        size_t place = (size_t)(first - last->trace->costs.items) + n - c->firsts[c->count - 1];
        for (size_t i = 0; i < c->count; i++) {
            each[i] = c->in_order[i] ? c->runs[i]->trace->costs.items + c->firsts[i] + place
                      : firsts[i]    ? &firsts[i][n]
                                     : NULL;
            if (each[i] && !is_alike(each[i], &first[n])) each[i] = NULL;
        }
        st = add_launch(c, each);
    }
    return st ? st : add_work(c, &c->out->events.items[at]);
}

enum plim_status plim_traced_join_costs(const struct plim_traced_memory *const *runs, size_t count,
                                        size_t from, size_t to, struct plim_recorded_stream *out,
                                        struct plim_error *err)
{
    struct costs c = {.runs = runs, .count = count, .out = out};
    enum plim_status st = index_sizes(&c);
    find_launches(&c, from, to);
    for (size_t i = from; i < to && !st; i++)
        if (!out->events.items[i].frees) st = join_event(&c, i);
    free(c.sizes.rows);
    free(c.launches.rows);
    free(c.works.rows);
    PLIM_ARRAY_FINISH(&c.work);
    if (st) return plim_no_memory(err);
    if (out->sizes.count <= PLIM_RECORDED_SIZES) return PLIM_OK;
    return plim_fail(err, PLIM_UNSUPPORTED, "more than %d sizes of blocks and launches",
                     PLIM_RECORDED_SIZES);
}
