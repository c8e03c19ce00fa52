#include "classes.h"
#include "autotune/base/compare.h"
#include "walk.h"
#include "workloads/engine/memory_class.h"
#include <stdlib.h>

enum pass { BEFORE, FIRST, SECOND, NEVER }; /* events before the step, the step, and the step once more */

enum { MOST_STATES = 4 }; /* maximum number of a parameter's states that is distinguished */

/* Fractions of the gradients: of the bytes that can be matched; of their number or bytes. */
static const double NEARLY_ALL = 0.99, MOST = 0.9;

/* When the block of an allocation is freed. */
struct life {
    uint32_t freed; /* event that frees it */
    uint8_t freed_in;
};

/* Allocations of one size, counted by their role; kept_class is the class of those that remain at the end of a step. */
struct of_size {
    uint32_t allocations, gradients; /* in a step */
    size_t end;                    /* in classifier.of_size: the end of its allocations in the step */
    uint32_t past;                 /* those before the step that are freed and classified, from the last one */
    uint32_t staying;              /* blocks from before the step that are never freed */
    uint32_t unmatched;            /* gradients without a parameter so far */
    uint32_t later, states;        /* after the parameters: never freed; those of them that are states */
    uint8_t kept_class;
};

struct classifier {
    struct plim_recorded_stream *stream;
    struct plim_recorded_walk walk;
    enum pass pass;
    struct life *lives;               /* by event */
    bool *after_backward;             /* by event: the last launch before it was autograd's */
    bool *for_backward;               /* by event: the next launch is autograd's */
    size_t *backward_at;              /* by event: the next event after which autograd launches */
    struct of_size *sizes;
    size_t *of_size; /* events of the step that allocate, grouped by size, in order */
    int64_t *gradient_bytes;          /* ascending */
    size_t gradient_sizes;
    PLIM_ARRAY(uint32_t) event_of_slot;
};

/* --- lifetimes -------------------------------------------------------------------------------- */

static enum plim_status note_allocation(void *user, uint32_t slot, uint32_t size)
{
    struct classifier *c = user;
    uint32_t event = (uint32_t)c->walk.event;
    (void)size;
    if (c->pass != SECOND) c->lives[event] = (struct life){.freed_in = NEVER};
    if (slot == c->event_of_slot.count) return PLIM_ARRAY_PUSH(&c->event_of_slot, event);
    c->event_of_slot.items[slot] = event;
    return PLIM_OK;
}

/* The second pass frees blocks of the first, and some of its own, which are known from the first. */
static enum plim_status note_release(void *user, uint32_t slot)
{
    struct classifier *c = user;
    struct life *life = &c->lives[c->event_of_slot.items[slot]];
    if (life->freed_in != NEVER) return PLIM_OK;
    *life = (struct life){.freed = (uint32_t)c->walk.event, .freed_in = (uint8_t)c->pass};
    return PLIM_OK;
}

static enum plim_status find_lives(struct classifier *c)
{
    static const struct plim_recorded_walker walker = {.allocate = note_allocation, .release = note_release};
    const struct plim_recorded_stream *stream = c->stream;
    enum plim_status st =
        plim_recorded_walk_begin(&c->walk, stream, PLIM_RECORDED_OUTSIDE + 1, &walker, c);
    for (c->pass = BEFORE; c->pass < NEVER && !st; c->pass++)
        st = plim_recorded_walk_events(&c->walk, c->pass == BEFORE ? 0 : stream->before,
                                       c->pass == BEFORE ? stream->before : stream->events.count);
    return st;
}

/* --- phases ----------------------------------------------------------------------------------- */

/* True if its first or last launch is autograd's. */
static bool is_autograds(const struct plim_recorded_stream *stream, uint32_t work, bool last)
{
    const struct plim_recorded_work *w = &stream->works.items[work - 1];
    size_t at = w->first + (last ? w->count - 1 : 0);
    return w->count && stream->launches.items[stream->launched.items[at]].in_autograd;
}

/* Determines when autograd launches. Returns false if it launches nothing. */
static bool find_phases(struct classifier *c)
{
    const struct plim_recorded_stream *stream = c->stream;
    size_t count = stream->events.count, next = count;
    bool backward = false, any = false;
    for (size_t i = stream->before; i < count; i++) {
        uint32_t work = stream->events.items[i].work;
        c->after_backward[i] = backward;
        if (work) backward = is_autograds(stream, work, true);
        any |= backward;
    }
    backward = false;
    for (size_t i = count; i-- > stream->before;) {
        uint32_t work = stream->events.items[i].work;
        if (work) backward = is_autograds(stream, work, false);
        if (work && (backward || is_autograds(stream, work, true))) next = i;
        c->for_backward[i] = backward;
        c->backward_at[i] = next;
    }
    return any;
}

/* --- blocks allocated by a step --------------------------------------------------------------- */

/* Returns the class of a block that a step allocates. */
static enum plim_memory_class class_of_step(const struct classifier *c, size_t event)
{
    const struct life *life = &c->lives[event];
    bool outlives_step = life->freed_in != FIRST;
    if (c->for_backward[event])
        return outlives_step || !c->after_backward[life->freed] ? PLIM_MEMORY_GRADIENTS
                                                             : PLIM_MEMORY_TEMPORARIES;
    return outlives_step || life->freed > c->backward_at[event] ? PLIM_MEMORY_ACTIVATIONS
                                                                : PLIM_MEMORY_TEMPORARIES;
}

static void classify_step(struct classifier *c)
{
    struct plim_recorded_stream *stream = c->stream;
    for (size_t i = stream->before; i < stream->events.count; i++) {
        struct plim_recorded_event *event = &stream->events.items[i];
        if (event->frees) continue;
        event->memory_class = (uint8_t)class_of_step(c, i);
        struct of_size *size = &c->sizes[event->value];
        size->allocations++;
        if (event->memory_class == PLIM_MEMORY_GRADIENTS) size->gradients++;
        if (c->lives[i].freed_in != FIRST) size->kept_class = event->memory_class;
    }
}

/* Lists the step's allocations by size. */
static void list_by_size(struct classifier *c)
{
    const struct plim_recorded_stream *stream = c->stream;
    size_t end = 0;
    for (size_t i = 0; i < stream->sizes.count; i++) {
        c->sizes[i].end = end;
        end += c->sizes[i].allocations;
    }
    for (size_t i = stream->before; i < stream->events.count; i++)
        if (!stream->events.items[i].frees) c->of_size[c->sizes[stream->events.items[i].value].end++] = i;
}

/* --- blocks allocated before the step --------------------------------------------------------- */

/* Returns the bytes of a size that depends on neither batch nor length; 0 if it does. */
static int64_t constant_bytes(const struct plim_recorded_size *size)
{
    if (size->is_table || size->scratch) return 0;
    for (int i = 1; i < PLIM_RECORDED_TERMS; i++)
        if (size->terms[i]) return 0;
    return size->terms[0];
}

static bool stays(const struct classifier *c, size_t event)
{
    return !c->stream->events.items[event].frees && c->lives[event].freed_in == NEVER;
}

static void list_gradients(struct classifier *c)
{
    const struct plim_recorded_stream *stream = c->stream;
    for (size_t i = 0; i < stream->before; i++)
        if (stays(c, i)) c->sizes[stream->events.items[i].value].staying++;
    for (size_t i = 0; i < stream->sizes.count; i++) {
        int64_t bytes = constant_bytes(&stream->sizes.items[i]);
        struct of_size *size = &c->sizes[i];
        if (!bytes || !size->gradients) continue;
        size->unmatched = size->gradients < size->staying ? size->gradients : size->staying;
        c->gradient_bytes[c->gradient_sizes++] = bytes;
    }
    qsort(c->gradient_bytes, c->gradient_sizes, sizeof(*c->gradient_bytes), plim_compare_int64);
}

/* Returns the end of the parameters; 0 if they are not found. Some block has the size of any small one: once nearly all
 * bytes are matched, the parameters end at the first block that does not match. */
static size_t find_parameters(struct classifier *c)
{
    const struct plim_recorded_stream *stream = c->stream;
    double all = 0, found = 0, bytes = 0, gradients = 0, matched = 0;
    size_t end = 0;
    for (size_t i = 0; i < stream->sizes.count; i++) {
        const struct of_size *size = &c->sizes[i];
        all += (double)constant_bytes(&stream->sizes.items[i]) * size->unmatched;
        bytes += (double)constant_bytes(&stream->sizes.items[i]) * size->gradients;
        gradients += size->gradients;
        matched += size->unmatched;
    }
    if (matched < MOST * gradients && all < MOST * bytes) return 0;
    for (size_t i = 0; i < stream->before; i++) {
        uint32_t size = stream->events.items[i].value;
        if (!stays(c, i)) continue;
        if (c->sizes[size].unmatched) {
            c->sizes[size].unmatched--;
            found += (double)constant_bytes(&stream->sizes.items[size]);
            end = i + 1;
        } else if (found > NEARLY_ALL * all) break;
    }
    return end;
}

/* Returns the number of states of its own size that a parameter has: the number that holds for most bytes. */
static uint32_t states_each(const struct classifier *c, size_t parameters)
{
    double weight[MOST_STATES + 1] = {0};
    uint32_t best = 0;
    for (size_t i = parameters; i < c->stream->before; i++)
        if (stays(c, i)) c->sizes[c->stream->events.items[i].value].later++;
    for (size_t i = 0; i < c->stream->sizes.count; i++) {
        const struct of_size *size = &c->sizes[i];
        if (!size->gradients) continue;
        uint32_t states = size->later / size->gradients;
        weight[states < MOST_STATES ? states : MOST_STATES] +=
            (double)constant_bytes(&c->stream->sizes.items[i]) * size->gradients;
    }
    for (uint32_t i = 1; i <= MOST_STATES; i++)
        if (weight[i] > weight[best]) best = i;
    return best;
}

/* True for as many blocks of a size as its parameters have states; a later one may be a bucket as large as a
 * parameter. */
static bool is_one_of(struct of_size *size, uint32_t each)
{
    return !each || !size->gradients || size->states++ < each * size->gradients;
}

/* True if it has as many elements as a gradient, in its type or another one. */
static bool is_state(const struct classifier *c, const struct plim_recorded_size *size)
{
    int64_t bytes = constant_bytes(size);
    if (!bytes || bytes > INT64_MAX / 4) return false;
    const int64_t gradients[] = {bytes, 2 * bytes, 4 * bytes, bytes % 2 ? 0 : bytes / 2,
                                 bytes % 4 ? 0 : bytes / 4};
    for (size_t i = 0; i < sizeof(gradients) / sizeof(gradients[0]); i++)
        if (bsearch(&gradients[i], c->gradient_bytes, c->gradient_sizes, sizeof(int64_t), plim_compare_int64))
            return true;
    return false;
}

/* Returns the class of a block that is freed before the step, after steps like it: that of the allocation as many
 * allocations of its size before the end of the step. Call for the last block first. */
static enum plim_memory_class class_of_past(struct classifier *c, struct of_size *size)
{
    if (!size->allocations) return PLIM_MEMORY_TEMPORARIES;
    size_t event = c->of_size[size->end - 1 - size->past++ % size->allocations];
    return (enum plim_memory_class)c->stream->events.items[event].memory_class;
}

static void classify_past(struct classifier *c)
{
    struct plim_recorded_stream *stream = c->stream;
    for (size_t i = stream->before; i-- > 0;) {
        struct plim_recorded_event *event = &stream->events.items[i];
        if (event->frees || c->lives[i].freed_in != BEFORE) continue;
        event->memory_class = (uint8_t)class_of_past(c, &c->sizes[event->value]);
    }
}

static void classify_staying(struct classifier *c)
{
    struct plim_recorded_stream *stream = c->stream;
    size_t parameters = find_parameters(c);
    uint32_t each = states_each(c, parameters);
    for (size_t i = 0; i < stream->before; i++) {
        struct plim_recorded_event *event = &stream->events.items[i];
        struct of_size *size = &c->sizes[event->value];
        enum plim_memory_class memory_class = PLIM_MEMORY_OTHER;
        if (event->frees || c->lives[i].freed_in == BEFORE) continue;
        if (!stays(c, i)) memory_class = size->kept_class;
        else if (i < parameters) memory_class = PLIM_MEMORY_PARAMETERS;
        else if (parameters && is_state(c, &stream->sizes.items[event->value]) && is_one_of(size, each))
            memory_class = PLIM_MEMORY_OPTIMIZER;
        event->memory_class = (uint8_t)memory_class;
    }
}

/* --- the whole stream ------------------------------------------------------------------------- */

static bool make_room(struct classifier *c)
{
    size_t events = c->stream->events.count + 1, sizes = c->stream->sizes.count + 1;
    c->lives = calloc(events, sizeof(*c->lives));
    c->after_backward = calloc(events, sizeof(*c->after_backward));
    c->for_backward = calloc(events, sizeof(*c->for_backward));
    c->backward_at = calloc(events, sizeof(*c->backward_at));
    c->sizes = calloc(sizes, sizeof(*c->sizes));
    c->of_size = calloc(events, sizeof(*c->of_size));
    c->gradient_bytes = calloc(sizes, sizeof(*c->gradient_bytes));
    for (size_t i = 0; c->sizes && i < sizes; i++) c->sizes[i].kept_class = PLIM_MEMORY_OTHER;
    return c->lives && c->after_backward && c->for_backward && c->backward_at && c->sizes && c->of_size &&
           c->gradient_bytes;
}

enum plim_status plim_recorded_classify(struct plim_recorded_stream *stream)
{
    struct classifier c = {.stream = stream};
    enum plim_status st = make_room(&c) ? PLIM_OK : PLIM_NOMEM;
    if (!st && find_phases(&c)) {
        st = find_lives(&c);
        if (!st) {
            classify_step(&c);
            list_by_size(&c);
            list_gradients(&c);
            classify_past(&c);
            classify_staying(&c);
            stream->is_classified = true;
        }
    }
    plim_recorded_walk_finish(&c.walk);
    PLIM_ARRAY_FINISH(&c.event_of_slot);
    free(c.lives);
    free(c.after_backward);
    free(c.for_backward);
    free(c.backward_at);
    free(c.sizes);
    free(c.of_size);
    free(c.gradient_bytes);
    return st == PLIM_INVALID ? PLIM_OK : st;
}
