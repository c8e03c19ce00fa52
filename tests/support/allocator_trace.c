#include "allocator_trace.h"

#include "autotune/base/textfile.h"

#include <stdio.h>

const char allocator_traces_folder[] = PLIM_TRACES_FOLDER; /* given by the build */

static bool read_setting(const char *line, struct allocator_trace *trace)
{
    long long capacity;
    if (sscanf(line, "# conf %255s", trace->conf) == 1) return true;
    if (sscanf(line, "# capacity %lld", &capacity) != 1) return false;
    trace->capacity_bytes = capacity;
    return true;
}

/* `step` starts with the letter of another line, so its kind is written '='. */
static bool read_event(const char *line, struct trace_event *e)
{
    long long n[4] = {0};
    int step, fields = 0;
    e->kind = strncmp(line, "step ", 5) == 0 ? '=' : line[0];
    switch (e->kind) {
    case 'a': fields = sscanf(line, "a %u %lld %d", &e->id, &n[0], &e->stream) - 1; break;
    case 'o': fields = sscanf(line, "o %lld %d", &n[0], &e->stream); break;
    case 'f': fields = sscanf(line, "f %u", &e->id); break;
    case 'r': fields = sscanf(line, "r %u %d", &e->id, &e->stream) - 1; break;
    case 'e': fields = 1; break;
    case 'S': case 's': case 'M': case 'm': fields = sscanf(line + 1, "%lld", &n[0]); break;
    case 'q':
        fields = sscanf(line, "q %lld %lld %lld %lld", &n[0], &n[1], &n[2], &n[3]) - 3;
        break;
    case '=':
        fields = sscanf(line, "step %d %lld %lld %lld %lld", &step, &n[0], &n[1], &n[2], &n[3]) - 4;
        break;
    }
    e->bytes = n[0];
    for (int i = 0; i < 4; i++) e->counters[i] = n[i];
    return fields > 0;
}

enum plim_status allocator_trace_read(const char *path, struct allocator_trace *trace,
                                      struct plim_error *err)
{
    char *text, *rest, *line;
    size_t length;
    int number = 0;
    *trace = (struct allocator_trace){.capacity_bytes = (int64_t)1 << 46};
    enum plim_status st = plim_textfile_read(path, 16u << 20, &text, &length, err);
    if (st != PLIM_OK) return st;
    for (line = strtok_r(text, "\n", &rest); line && st == PLIM_OK;
         line = strtok_r(NULL, "\n", &rest)) {
        struct trace_event e = {.line = ++number};
        if (line[0] == '#') {
            if (!read_setting(line, trace))
                st = plim_fail_at(err, PLIM_SPEC, path, number, 1, "an unknown setting");
        } else if (!read_event(line, &e)) {
            st = plim_fail_at(err, PLIM_SPEC, path, number, 1, "not a line of a trace: %s", line);
        } else {
            if (e.id >= trace->ids) trace->ids = e.id + 1;
            st = PLIM_ARRAY_PUSH(&trace->events, e);
        }
    }
    free(text);
    return st;
}

void allocator_trace_finish(struct allocator_trace *trace)
{
    PLIM_ARRAY_FINISH(&trace->events);
}

struct memory_event {
    char what;
    int64_t bytes;
};

struct check {
    struct plim_allocator *allocator;
    struct plim_block **blocks;
    PLIM_ARRAY(struct memory_event) expected, seen;
    const struct trace_event *requested; /* a `q` line that waits for its step */
    int steps, memory;
    struct plim_error *err;
};

static void observe(void *user, char what, int64_t bytes)
{
    struct check *c = user;
    if (PLIM_ARRAY_PUSH(&c->seen, ((struct memory_event){what, bytes})) != PLIM_OK) abort();
}

static enum plim_status differs(struct check *c, int line, const char *what, int64_t expected,
                                int64_t seen)
{
    return plim_fail(c->err, PLIM_INTERNAL, "line %d: %s: expected %lld, got %lld", line, what,
                     (long long)expected, (long long)seen);
}

static enum plim_status compare_memory(struct check *c, int line)
{
    size_t n = c->expected.count > c->seen.count ? c->expected.count : c->seen.count;
    for (size_t i = 0; i < n; i++) {
        struct memory_event e = {'-', 0}, s = {'-', 0};
        if (i < c->expected.count) e = c->expected.items[i];
        if (i < c->seen.count) s = c->seen.items[i];
        if (e.what != s.what || e.bytes != s.bytes)
            return plim_fail(c->err, PLIM_INTERNAL, "line %d: expected %c %lld, got %c %lld", line,
                             e.what, (long long)e.bytes, s.what, (long long)s.bytes);
        c->memory++;
    }
    c->expected.count = c->seen.count = 0;
    return PLIM_OK;
}

static enum plim_status compare_counters(struct check *c, const struct trace_event *e)
{
    const struct plim_allocator_stats *s = plim_allocator_statistics(c->allocator);
    const struct {
        const char *name;
        const struct trace_event *from;
        int64_t seen;
        int counter;
    } rows[] = {
        {"allocated", e, s->allocated, 0},
        {"reserved", e, s->reserved, 1},
        {"peak allocated", e, s->allocated_peak, 2},
        {"peak reserved", e, s->reserved_peak, 3},
        {"requested", c->requested, s->requested, 0},
        {"peak requested", c->requested, s->requested_peak, 1},
        {"retries", c->requested, s->retries, 2},
        {"ooms", c->requested, s->ooms, 3},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].from && rows[i].from->counters[rows[i].counter] != rows[i].seen)
            return differs(c, e->line, rows[i].name, rows[i].from->counters[rows[i].counter],
                           rows[i].seen);
    }
    plim_allocator_reset_peaks(c->allocator);
    c->requested = NULL;
    c->steps++;
    return PLIM_OK;
}

static enum plim_status check_event(struct check *c, const struct trace_event *e)
{
    struct plim_allocator *a = c->allocator;
    enum plim_status st = PLIM_OK, expected = e->kind == 'o' ? PLIM_OOM : PLIM_OK;
    struct plim_block *block = NULL;
    switch (e->kind) {
    case 'S': case 's': case 'M': case 'm':
        return PLIM_ARRAY_PUSH(&c->expected, ((struct memory_event){e->kind, e->bytes}));
    case 'q': c->requested = e; return PLIM_OK;
    case '=': return compare_counters(c, e);
    case 'a': case 'o':
        st = plim_allocator_malloc(a, e->bytes, e->stream, &block);
        if (st != expected) return differs(c, e->line, "status", expected, st);
        if (block) c->blocks[e->id] = block;
        break;
    case 'f': plim_allocator_free(a, c->blocks[e->id]); break;
    case 'r': plim_allocator_record_stream(a, c->blocks[e->id], e->stream); break;
    case 'e': plim_allocator_empty_cache(a); break;
    }
    return compare_memory(c, e->line);
}

enum plim_status allocator_trace_check(const struct allocator_trace *trace,
                                       struct plim_allocator *allocator, int *steps, int *memory,
                                       struct plim_error *err)
{
    enum plim_status st = PLIM_NOMEM;
    struct check c = {.allocator = allocator, .err = err};
    c.blocks = calloc(trace->ids + 1, sizeof(*c.blocks));
    if (!c.blocks) goto out;
    plim_allocator_observe(allocator, observe, &c);
    for (size_t i = 0; i < trace->events.count; i++)
        PLIM_TRY(check_event(&c, &trace->events.items[i]));
    st = compare_memory(&c, -1);
out:
    plim_allocator_observe(allocator, NULL, NULL);
    *steps = c.steps;
    *memory = c.memory;
    PLIM_ARRAY_FINISH(&c.expected);
    PLIM_ARRAY_FINISH(&c.seen);
    free(c.blocks);
    return st;
}
