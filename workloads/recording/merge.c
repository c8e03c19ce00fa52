#include "merge.h"
#include <stdlib.h>
#include <string.h>

static bool same_texts(const struct plim_recorded_texts *a, const struct plim_recorded_texts *b)
{
    if (a->count != b->count) return false;
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->items[i], b->items[i])) return false;
    return true;
}

static bool same_numbers(const int64_t *a, size_t a_count, const int64_t *b, size_t b_count)
{
    return a_count == b_count && (!a_count || !memcmp(a, b, a_count * sizeof(*a)));
}

static bool same_axes(const struct plim_recording *a, const struct plim_recording *b)
{
    if (a->axis_count != b->axis_count) return false;
    for (size_t i = 0; i < a->axis_count; i++)
        if (strcmp(a->axes[i].name, b->axes[i].name)) return false;
    return true;
}

/* Returns what prevents a merge; NULL: nothing. */
static const char *difference(const struct plim_recording *a, const struct plim_recording *b)
{
    return !same_texts(&a->command, &b->command)       ? "their commands"
           : !same_texts(&a->made_with, &b->made_with) ? "the packages or scripts they were made with"
           : a->compute_capability != b->compute_capability ? "their compute capabilities"
           : a->allocator != b->allocator                   ? "their allocators"
           : !same_numbers(a->batches.items, a->batches.count, b->batches.items, b->batches.count)
               ? "their batches"
           : !same_numbers(a->seqs.items, a->seqs.count, b->seqs.items, b->seqs.count) ? "their lengths"
           : a->is_compiled != b->is_compiled ? "that one of them is compiled"
           : a->each_batch != b->each_batch || a->accumulates != b->accumulates
               ? "how batches or micro-steps were recorded"
           : !same_axes(a, b) ? "the names of their axes"
                              : NULL;
}

/* --- values ----------------------------------------------------------------------------------- */

/* Returns the number that a recording's combination has with the axes of `all`. */
static size_t number_in(const struct plim_recording *all, const struct plim_recording *r, size_t combination)
{
    size_t values[PLIM_RECORDED_AXES];
    plim_recording_values(r, combination, values);
    for (size_t i = 0; i < r->axis_count; i++)
        values[i] =
            plim_recorded_texts_find(&all->axes[i].values, r->axes[i].values.items[values[i]]);
    return plim_recording_combination(all, values);
}

static size_t combination_at(const struct plim_recording *r, size_t place)
{
    return r->combinations.count ? r->combinations.items[place] : place;
}

/* Stores the axes of both in `all`. */
static enum plim_status unite_axes(struct plim_recording *all, const struct plim_recording *a,
                                   const struct plim_recording *b)
{
    const struct plim_recording *const both[] = {a, b};
    all->axis_count = a->axis_count;
    for (size_t i = 0; i < a->axis_count; i++) {
        struct plim_recorded_axis *axis = &all->axes[i];
        memcpy(axis->name, a->axes[i].name, sizeof(axis->name));
        for (size_t k = 0; k < 2; k++)
            for (size_t v = 0; v < both[k]->axes[i].values.count; v++) {
                const char *value = both[k]->axes[i].values.items[v];
                if (plim_recorded_texts_add_once(&axis->values, value, SIZE_MAX)) return PLIM_NOMEM;
            }
    }
    return PLIM_OK;
}

/* --- streams ---------------------------------------------------------------------------------- */

/* A combination of one of the two recordings: its number, and the index of its streams. */
struct part {
    size_t number, place;
    struct plim_recording *of;
};

static int compare_parts(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Lists all parts in order. */
static void list_parts(const struct plim_recording *all, struct plim_recording *a, struct plim_recording *b,
                       struct part *parts, size_t count)
{
    size_t first = plim_recording_recorded(a);
    for (size_t i = 0; i < count; i++) {
        struct plim_recording *of = i < first ? a : b;
        size_t place = i < first ? i : i - first;
        parts[i] = (struct part){number_in(all, of, combination_at(of, place)), place, of};
    }
    qsort(parts, count, sizeof(*parts), compare_parts);
}

static enum plim_status take(struct plim_recording *all, const struct part *part, size_t each)
{
    if (PLIM_ARRAY_PUSH(&all->combinations, part->number) != PLIM_OK) return PLIM_NOMEM;
    for (size_t i = 0; i < each; i++) {
        struct plim_recorded_stream *stream = &part->of->streams.items[part->place * each + i];
        if (PLIM_ARRAY_PUSH(&all->streams, *stream) != PLIM_OK) return PLIM_NOMEM;
        *stream = (struct plim_recorded_stream){0};
    }
    return PLIM_OK;
}

/* Exchanges axes and streams of the two. */
static void exchange(struct plim_recording *a, struct plim_recording *b)
{
    const struct plim_recording old = *a;
    memcpy(a->axes, b->axes, sizeof(a->axes));
    a->streams = b->streams;
    a->combinations = b->combinations;
    memcpy(b->axes, old.axes, sizeof(b->axes));
    b->streams = old.streams;
    b->combinations = old.combinations;
}

/* Adds the doubts of `from`, as far as there is room. */
static enum plim_status unite_doubts(struct plim_recording *into, const struct plim_recording *from)
{
    enum plim_status st = PLIM_OK;
    for (size_t i = 0; i < from->doubts.count && !st; i++)
        st =
            plim_recorded_texts_add_once(&into->doubts, from->doubts.items[i], PLIM_RECORDED_PARTS);
    return st;
}

enum plim_status plim_recording_merge(struct plim_recording *into, struct plim_recording *from,
                                      struct plim_error *err)
{
    const char *differs = difference(into, from);
    if (differs)
        return plim_fail(err, PLIM_INVALID, "the recordings are not parts of one: %s differ", differs);
    struct plim_recording all = {0};
    size_t each = plim_recording_streams_each(into);
    size_t count = plim_recording_recorded(into) + plim_recording_recorded(from);
    struct part *parts = calloc(count, sizeof(*parts));
    enum plim_status st = parts ? unite_axes(&all, into, from) : PLIM_NOMEM;
    if (!st && !plim_recording_combinations(&all))
        st = plim_fail(err, PLIM_INVALID, "the axes of all recordings have more than %d combinations",
                       PLIM_RECORDED_COMBINATIONS);
    if (!st) list_parts(&all, into, from, parts, count);
    for (size_t i = 1; i < count && !st; i++)
        if (parts[i].number == parts[i - 1].number)
            st = plim_fail(err, PLIM_INVALID, "the recordings have a combination of values twice");
    for (size_t i = 0; i < count && !st; i++) st = take(&all, &parts[i], each);
    if (!st) st = unite_doubts(into, from);
    if (!st) exchange(into, &all);
    if (!st && count == plim_recording_combinations(into)) into->combinations.count = 0; /* all are recorded */
    if (st == PLIM_NOMEM) st = plim_no_memory(err);
    free(parts);
    plim_recording_finish(&all);
    return st;
}
