#include "trace.h"
#include "devices/virtual/record/stream.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CHUNK_EVENTS = 1024,
    FEWEST_STEPS = 2,
    /* A longer time between two events is not due to launching, or to going from one module to the next. */
    WORK_MICROSECONDS = 2000,
};

/* The blocks by address: a hash table from which rows are only removed when it grows, as addresses are rarely
 * reused. */
struct place {
    uint64_t address, number; /* number of its allocation, from 1; 0: it is free */
    bool is_used;
};

struct places {
    struct place *rows;
    size_t capacity, count;
};

struct reading {
    struct plim_trace *trace;
    struct places places;
    uint64_t allocated;        /* number of allocations so far */
    uint64_t launched, listed; /* the last launch; that of the last cost, if it is of tensor lists, otherwise 0 */
    int numbers;               /* of the last cost so far; 0: it is ignored */
    bool reduces;              /* the scratch blocks of the last reduction are not freed yet */
    double seconds;            /* host time since the last recognised step */
    double work_seconds;       /* the part of it without launches */
};

static struct place *find_place(const struct places *places, uint64_t address)
{
    size_t at = (address * 0x9e3779b97f4a7c15u >> 20) & (places->capacity - 1);
    while (places->rows[at].is_used && places->rows[at].address != address)
        at = (at + 1) & (places->capacity - 1);
    return &places->rows[at];
}

static bool grow(struct places *places)
{
    struct places larger = {.capacity = places->capacity ? 2 * places->capacity : 1024};
    larger.rows = calloc(larger.capacity, sizeof(*larger.rows));
    if (!larger.rows) return false;
    for (size_t i = 0; i < places->capacity; i++) {
        const struct place *row = &places->rows[i];
        if (!row->is_used || !row->number) continue;
        *find_place(&larger, row->address) = *row;
        larger.count++;
    }
    free(places->rows);
    *places = larger;
    return true;
}

static enum plim_status push(struct reading *r, enum plim_traced_kind kind, int64_t value,
                             int cuda_stream)
{
    const struct plim_traced event = {
        .kind = kind, .value = value, .costs = r->trace->costs.count, .cuda_stream = cuda_stream};
    if (kind == PLIM_TRACED_LAUNCH) r->launched = (uint64_t)value;
    else r->listed = 0;
    return PLIM_ARRAY_PUSH(&r->trace->events, event);
}

static bool is_number(int64_t number)
{
    return number >= 0 && number <= PLIM_MOST_BYTES;
}

/* Adds a cost, unless its number is out of range: then the launch has no cost. */
static enum plim_status add_cost(struct reading *r, const struct plim_stream_event *event)
{
    struct plim_cost cost;
    r->numbers = 0;
    if (!plim_stream_cost_of(event->what, &cost) || !is_number(event->bytes)) return PLIM_OK;
    cost.number[0] = event->bytes;
    if (cost.kind != PLIM_COST_LISTS) r->listed = 0;
    r->numbers = 1;
    return PLIM_ARRAY_PUSH(&r->trace->costs, cost);
}

/* Merges the last cost with the one before, if both are of launches of the same kernel for tensor lists. PyTorch
 * repeats the launch until all tensors are done, which is one operation for the host. */
static void merge_lists(struct reading *r)
{
    struct plim_cost *last = &r->trace->costs.items[r->trace->costs.count - 1];
    bool goes_on = r->listed && r->listed == r->launched;
    r->listed = r->launched;
    if (!goes_on) return;
    for (int i = 0; i < 2; i++) last[-1].number[i] += last->number[i];
    r->trace->costs.count--;
}

static enum plim_status add_number(struct reading *r, const struct plim_stream_event *event)
{
    if (!is_number(event->bytes)) r->numbers = 0;
    if (!r->numbers || r->numbers == PLIM_COST_NUMBERS) return PLIM_OK;
    struct plim_cost *cost = &r->trace->costs.items[r->trace->costs.count - 1];
    cost->number[r->numbers++] = event->bytes;
    if (cost->kind == PLIM_COST_LISTS && r->numbers == 2) merge_lists(r);
    return PLIM_OK;
}

static enum plim_status add_allocation(struct reading *r, const struct plim_stream_event *event)
{
    if (event->bytes <= 0 || event->bytes > PLIM_MOST_BYTES ||
        event->cuda_stream >= PLIM_RECORDED_CUDA_STREAMS)
        return PLIM_OK;
    if (2 * r->places.count >= r->places.capacity && !grow(&r->places)) return PLIM_NOMEM;
    struct place *place = find_place(&r->places, event->what);
    r->places.count += !place->is_used;
    *place = (struct place){event->what, ++r->allocated, true};
    return push(r, PLIM_TRACED_ALLOCATION, event->bytes, event->cuda_stream);
}

/* Adds a free. Blocks that were allocated before the start of the trace are ignored. */
static enum plim_status add_free(struct reading *r, const struct plim_stream_event *event)
{
    struct place *place = r->places.capacity ? find_place(&r->places, event->what) : NULL;
    if (!place || !place->is_used || !place->number) return PLIM_OK;
    uint64_t back = r->allocated - place->number + 1;
    place->number = 0;
    return push(r, PLIM_TRACED_FREE, (int64_t)back, 0);
}

/* Adds a reduction. It allocates two scratch blocks if several thread blocks share an output; otherwise two allocations
 * of 0 bytes are added for them, since they may be needed at other sizes. */
static enum plim_status add_reduction(struct reading *r, const struct plim_stream_event *event)
{
    bool shares;
    const struct plim_reduce_launch launch = plim_stream_reduce_of(event, &shares);
    bool is_good = launch.outputs > 0 && launch.inputs > 0 && launch.partial_bytes &&
                   (launch.vector == 1 || launch.vector == 2 || launch.vector == 4) &&
                   event->cuda_stream < PLIM_RECORDED_CUDA_STREAMS;
    if (!r->trace->gpu || !is_good) return PLIM_OK;
    if (PLIM_ARRAY_PUSH(&r->trace->reductions, launch) != PLIM_OK) return PLIM_NOMEM;
    for (int i = 0; i < 2 && !shares; i++) {
        if (push(r, PLIM_TRACED_ALLOCATION, 0, event->cuda_stream)) return PLIM_NOMEM;
        r->allocated++;
    }
    r->reduces = !shares;
    for (size_t i = 1; i <= 2 && i <= r->trace->events.count; i++) {
        struct plim_traced *block = &r->trace->events.items[r->trace->events.count - i];
        if (block->kind != PLIM_TRACED_ALLOCATION) break;
        block->scratch = i == 1 ? PLIM_RECORDED_SEMAPHORES : PLIM_RECORDED_PARTIALS;
        block->reduction = (uint32_t)(r->trace->reductions.count - 1);
    }
    return PLIM_OK;
}

/* Frees the two allocations of 0 bytes after the launch, as PyTorch does. */
static enum plim_status free_scratch(struct reading *r)
{
    r->reduces = false;
    enum plim_status st = push(r, PLIM_TRACED_FREE, 1, 0);
    return st ? st : push(r, PLIM_TRACED_FREE, 2, 0);
}

static enum plim_status add_step(struct reading *r, int64_t reserved_bytes)
{
    const struct plim_traced_step step = {r->seconds, r->work_seconds, r->trace->costs.count,
                                          r->trace->events.count, reserved_bytes};
    r->seconds = r->work_seconds = 0;
    r->trace->steps++;
    return PLIM_ARRAY_PUSH(&r->trace->timed, step);
}

static enum plim_status add(struct reading *r, const struct plim_stream_event *event)
{
    r->seconds += 1e-6 * event->microseconds;
    if (event->microseconds >= WORK_MICROSECONDS) r->work_seconds += 1e-6 * event->microseconds;
    bool is_of_launch = event->kind == PLIM_STREAM_KERNEL || event->kind == PLIM_STREAM_COST ||
                        event->kind == PLIM_STREAM_NUMBER;
    if (r->reduces && !is_of_launch && free_scratch(r)) return PLIM_NOMEM;
    switch (event->kind) {
    case PLIM_STREAM_REDUCE:
        return add_reduction(r, event);
    case PLIM_STREAM_ALLOCATION: return add_allocation(r, event);
    case PLIM_STREAM_FREE: return add_free(r, event);
    case PLIM_STREAM_KERNEL:
    case PLIM_STREAM_LIBRARY:
    case PLIM_STREAM_GRAPH: return push(r, PLIM_TRACED_LAUNCH, (int64_t)event->what, 0);
    case PLIM_STREAM_COST: return add_cost(r, event);
    case PLIM_STREAM_NUMBER: return add_number(r, event);
    case PLIM_STREAM_STEP:
        return add_step(r, event->bytes);
    case PLIM_STREAM_EMPTY_CACHE: return push(r, PLIM_TRACED_EMPTY_CACHE, 0, 0);
    default: return PLIM_OK;
    }
}

/* Reads the events of a stream. Files of another kind are ignored. */
static enum plim_status read_stream(int fd, struct reading *r, uint64_t *lost)
{
    struct plim_stream_event events[CHUNK_EVENTS];
    struct plim_stream_head head;
    enum plim_status st = PLIM_OK;
    if (pread(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
        memcmp(head.magic, "plimstrm", sizeof(head.magic)) ||
        head.version != PLIM_STREAM_VERSION || head.event_bytes != sizeof(events[0]))
        return PLIM_OK;
    uint64_t count = head.count < PLIM_STREAM_MOST ? head.count : PLIM_STREAM_MOST;
    *lost = head.lost;
    for (uint64_t i = 0; i < count && !st;) {
        ssize_t bytes = pread(fd, events, sizeof(events),
                              PLIM_STREAM_HEAD_BYTES + (off_t)(i * sizeof(events[0])));
        size_t got = bytes > 0 ? (size_t)bytes / sizeof(events[0]) : 0;
        if (!got) break;
        for (size_t k = 0; k < got && i < count && !st; k++, i++) st = add(r, &events[k]);
    }
    return st;
}

/* Returns the number of events that count: those up to the last step. 0 if nothing was allocated. */
static size_t end_of(const struct plim_trace *trace, const struct reading *r)
{
    size_t steps = trace->timed.count;
    size_t count = steps >= FEWEST_STEPS ? trace->timed.items[steps - 1].events : trace->events.count;
    return r->allocated ? plim_trace_cut(trace, count) : 0;
}

enum plim_status plim_trace_read_file(int folder, const char *name, struct plim_trace *trace,
                                      uint64_t *lost)
{
    struct stat info;
    struct reading r = {.trace = trace};
    *lost = 0;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) || !S_ISREG(info.st_mode)) {
        if (fd >= 0) close(fd);
        return PLIM_OK;
    }
    enum plim_status st = read_stream(fd, &r, lost);
    trace->events.count = end_of(trace, &r);
    plim_trace_sort_frees(trace->events.items, trace->events.count);
    free(r.places.rows);
    close(fd);
    return st;
}

static enum plim_status too_long(struct plim_error *err)
{
    return plim_fail(err, PLIM_UNSUPPORTED,
                     "the program did more than %d things before its steps were seen to repeat, or "
                     "the disk is full: too much to record",
                     PLIM_STREAM_MOST);
}

enum plim_status plim_trace_read(const char *folder, struct plim_trace *trace,
                                 struct plim_error *err)
{
    DIR *directory = opendir(folder);
    if (!directory) return plim_fail(err, PLIM_IO, "%s: %s", folder, strerror(errno));
    enum plim_status st = PLIM_OK;
    for (struct dirent *entry; !st && (entry = readdir(directory));) {
        struct plim_trace one = {.point = trace->point, .gpu = trace->gpu};
        uint64_t lost = 0;
        if (entry->d_name[0] == '.') continue;
        st = plim_trace_read_file(dirfd(directory), entry->d_name, &one, &lost);
        if (!st && lost) st = too_long(err);
        if (!st && one.events.count && trace->events.count)
            st = plim_fail(err, PLIM_UNSUPPORTED,
                           "several processes of the program use GPUs: one is recorded so far, "
                           "expected a program of one");
        if (!st && one.events.count) *trace = one;
        else plim_trace_finish(&one);
    }
    closedir(directory);
    if (st == PLIM_NOMEM) return plim_no_memory(err);
    if (!st && !trace->events.count)
        st = plim_fail(err, PLIM_UNSUPPORTED, "the program did not use a GPU");
    return st;
}
