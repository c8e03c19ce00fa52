/* Reads a stream of a recording, which is untrusted. */
#include "classes.h"
#include "reader.h"
#include "walk.h"

/* --- sizes ------------------------------------------------------------------------------------ */

static bool skip(const char **at, const char *word)
{
    if (strncmp(*at, word, strlen(word)) != 0) return false;
    *at += strlen(word);
    return true;
}

static bool read_divisor(const char **at, int64_t *out)
{
    if (!skip(at, " over ")) return true;
    return plim_reader_number(at, out) && (*out == 2 || *out == 3 || *out == 6);
}

static bool read_terms(const char **at, int64_t terms[PLIM_RECORDED_NUMBERS])
{
    unsigned seen = 0;
    do {
        bool negative = **at == '-';
        int b = 0, s = 0;
        int64_t value;
        if (**at == '-' || (**at == '+' && seen)) (*at)++;
        if (!plim_reader_number(at, &value)) return false;
        for (; (*at)[0] == '*' && ((*at)[1] == 'b' || (*at)[1] == 's'); *at += 2) {
            if ((*at)[1] == 'b')
                b++;
            else s++;
        }
        int index = b < 2 ? b + 2 * s : b + 4;
        if (b > 3 || s > 2 || (b > 1 && s) || seen >> index & 1) return false;
        seen |= 1u << index;
        terms[index] = negative ? -value : value;
    } while (**at == '+' || **at == '-');
    return read_divisor(at, &terms[PLIM_RECORDED_TERMS]);
}

static bool read_polynomial(const char *at, struct plim_recorded_size *out)
{
    if (!read_terms(&at, out->terms)) return false;
    if (*at == '@') {
        at++;
        if (!plim_reader_number(&at, &out->chunk) || out->chunk < 2 || out->chunk > PLIM_RECORDED_CHUNK)
            return false;
    }
    return !*at;
}

static enum plim_status read_table(const struct plim_reader *r, const char *at,
                                   struct plim_recorded_size *out, bool *good)
{
    out->is_table = true;
    out->entries = calloc(PLIM_RECORDED_POINTS, sizeof(*out->entries));
    if (!out->entries) return plim_reader_no_memory(r);
    *good = true;
    while (*at && *good) {
        struct plim_recorded_entry e;
        *good = out->count < PLIM_RECORDED_POINTS && *at++ == ' ' &&
                plim_reader_number(&at, &e.point.batch) && *at++ == ',' &&
                plim_reader_number(&at, &e.point.seq) && *at++ == '=' && plim_reader_number(&at, &e.bytes) &&
                e.point.batch > 0 && e.point.seq > 0;
        if (*good) out->entries[out->count++] = e;
    }
    *good = *good && out->count;
    return PLIM_OK;
}

/* Reads "4,2 768 of 1*b*s" or "4,1 row 768 of 1*b*s". */
static bool read_rule(const char *at, struct plim_recorded_size *out)
{
    int64_t bytes, vector;
    if (!plim_reader_number(&at, &bytes) || bytes < 1 || bytes > UINT8_MAX || !skip(&at, ",") ||
        !plim_reader_number(&at, &vector) || (vector != 1 && vector != 2 && vector != 4) ||
        !skip(&at, " "))
        return false;
    out->launch = (struct plim_reduce_launch){.partial_bytes = (uint8_t)bytes,
                                              .vector = (uint8_t)vector,
                                              .threads_share = skip(&at, "row ")};
    return read_terms(&at, out->outputs) && skip(&at, " of ") && read_terms(&at, out->terms) &&
           !*at;
}

/* Skips the name of a rule and the blank after it, and returns the rule, or none. */
static enum plim_recorded_scratch skip_rule(const char **at)
{
    enum plim_recorded_scratch rule = PLIM_RECORDED_PARTIALS;
    while (rule < PLIM_RECORDED_SCRATCHES && !skip(at, plim_recorded_scratch_names[rule])) rule++;
    return rule < PLIM_RECORDED_SCRATCHES && skip(at, " ") ? rule : PLIM_RECORDED_NO_SCRATCH;
}

/* Reads an optional "stream N: " before a size. */
static bool read_cuda_stream(const char **at, struct plim_recorded_size *out)
{
    int64_t number;
    if (!skip(at, "stream ")) return true;
    if (!plim_reader_number(at, &number) || number < 1 || number >= PLIM_RECORDED_CUDA_STREAMS ||
        !skip(at, ": "))
        return false;
    out->cuda_stream = (int)number;
    return true;
}

static enum plim_status read_size(const struct plim_reader *r, const struct plim_yaml_node *node,
                                  struct plim_recorded_stream *stream)
{
    struct plim_recorded_size size = {0};
    const char *at = node->kind == PLIM_YAML_SCALAR ? node->text : "";
    bool good = read_cuda_stream(&at, &size);
    enum plim_status st = PLIM_OK;
    size.scratch = good ? skip_rule(&at) : PLIM_RECORDED_NO_SCRATCH;
    if (good && size.scratch)
        good = read_rule(at, &size);
    else if (good && skip(&at, "table"))
        st = read_table(r, at, &size, &good);
    else if (good)
        good = read_polynomial(at, &size);
    if (!st && !good)
        st = plim_yaml_fail(&r->yaml, node, r->err,
                            "expected a size such as 24*b*s+8 or table 1,128=8192, of at most 2^60");
    if (!st && PLIM_ARRAY_PUSH(&stream->sizes, size) != PLIM_OK) st = plim_reader_no_memory(r);
    if (st) free(size.entries);
    return st;
}

/* Checks the last size at every recorded point for which the stream holds. */
static enum plim_status check_size(const struct plim_reader *r, const struct plim_yaml_node *node,
                                   const struct plim_recorded_stream *stream)
{
    const struct plim_recorded_size *size = &stream->sizes.items[stream->sizes.count - 1];
    const struct plim_recording *out = r->out;
    size_t seqs = out->seqs.count ? out->seqs.count : 1;
    for (size_t i = 0; i < out->batches.count; i++)
        for (size_t k = 0; k < seqs; k++) {
            const struct plim_recorded_point point = {out->batches.items[i],
                                                      out->seqs.count ? out->seqs.items[k] : 1};
            if (point.batch < stream->from.batch || point.seq < stream->from.seq) continue;
            if (out->each_batch && point.batch != stream->from.batch) continue;
            if (plim_recorded_size_at(size, point, NULL) >= 0) continue;
            return plim_yaml_fail(&r->yaml, node, r->err,
                                  "the size is none at batch %lld, length %lld",
                                  (long long)point.batch, (long long)point.seq);
        }
    return PLIM_OK;
}

/* --- events ----------------------------------------------------------------------------------- */

static enum plim_status too_many(const struct plim_reader *r, const struct plim_yaml_node *node)
{
    return plim_yaml_fail(&r->yaml, node, r->err, "expected at most %d events",
                          PLIM_RECORDED_EVENTS);
}

static enum plim_status bad_event(const struct plim_reader *r, const struct plim_yaml_node *node,
                                  const char *at)
{
    return plim_yaml_fail(&r->yaml, node, r->err,
                          "expected aN, aNwN, fN or N(...) with numbers in range at \"%.12s\"", at);
}

static bool read_event(const struct plim_recorded_stream *stream, const char **at,
                       struct plim_recorded_event *out)
{
    int64_t value;
    char kind = **at;
    if (kind != 'a' && kind != 'f') return false;
    (*at)++;
    if (!plim_reader_number(at, &value) || value > PLIM_RECORDED_EVENTS) return false;
    *out = (struct plim_recorded_event){.frees = kind == 'f', .value = (uint32_t)value};
    if (out->frees) return true;
    if ((size_t)value >= stream->sizes.count) return false;
    if (**at != 'w') return true;
    (*at)++;
    if (!plim_reader_number(at, &value) || (uint64_t)value >= stream->works.count) return false;
    out->work = (uint32_t)value + 1;
    return true;
}

static enum plim_status repeat(const struct plim_reader *r, const struct plim_yaml_node *node,
                               struct plim_recorded_stream *stream, size_t from, int64_t times)
{
    size_t length = stream->events.count - from;
    if (times < 1 || times > (int64_t)((PLIM_RECORDED_EVENTS - r->events - from) / length))
        return too_many(r, node);
    for (int64_t i = 1; i < times; i++)
        for (size_t k = 0; k < length; k++)
            if (PLIM_ARRAY_PUSH(&stream->events, stream->events.items[from + k]) != PLIM_OK)
                return plim_reader_no_memory(r);
    return PLIM_OK;
}

/* Reads a line: events, or a repeated group of them. */
static enum plim_status read_line(const struct plim_reader *r, const struct plim_yaml_node *node,
                                  struct plim_recorded_stream *stream)
{
    const char *at = node->kind == PLIM_YAML_SCALAR ? node->text : "";
    int64_t times = 1;
    bool is_group = *at >= '0' && *at <= '9';
    size_t from = stream->events.count;
    if (is_group && (!plim_reader_number(&at, &times) || *at++ != '(')) return bad_event(r, node, at);
    for (;;) {
        struct plim_recorded_event event;
        if (!read_event(stream, &at, &event)) return bad_event(r, node, at);
        if (r->events + stream->events.count >= PLIM_RECORDED_EVENTS) return too_many(r, node);
        if (PLIM_ARRAY_PUSH(&stream->events, event) != PLIM_OK) return plim_reader_no_memory(r);
        if (*at != ' ') break;
        at++;
    }
    if (is_group && *at++ != ')') return bad_event(r, node, at - 1);
    if (*at) return bad_event(r, node, at);
    return repeat(r, node, stream, from, times);
}

/* Reads from "micro(" at `*at` to ")". Only the streams of several micro-steps have it. */
static enum plim_status read_loop(const struct plim_reader *r, const struct plim_yaml_node *lines,
                                  size_t *at, struct plim_recorded_stream *stream)
{
    const struct plim_yaml_node *begin = lines->items[*at];
    struct plim_recorded_loop loop = {.first = stream->events.count};
    enum plim_status st = PLIM_OK;
    if (!r->out->accumulates || r->out->streams.count % 2 == 0)
        return plim_yaml_fail(&r->yaml, begin, r->err,
                              "micro(: expected in a stream of several micro-steps alone");
    for (++*at; *at < lines->count && !plim_reader_is(lines->items[*at], ")") && !st; ++*at)
        st = read_line(r, lines->items[*at], stream);
    if (st) return st;
    loop.count = stream->events.count - loop.first;
    if (*at == lines->count || !loop.count)
        return plim_yaml_fail(&r->yaml, begin, r->err, "micro(: expected events and a )");
    return PLIM_ARRAY_PUSH(&stream->loops, loop) == PLIM_OK ? PLIM_OK : plim_reader_no_memory(r);
}

static enum plim_status read_events(const struct plim_reader *r, const struct plim_yaml_node *mapping,
                                    const char *key, struct plim_recorded_stream *stream)
{
    const struct plim_yaml_node *lines;
    enum plim_status st = plim_reader_get(r, mapping, key, PLIM_YAML_SEQUENCE, &lines);
    for (size_t i = 0; !st && i < lines->count; i++)
        st = plim_reader_is(lines->items[i], "micro(") ? read_loop(r, lines, &i, stream)
                                                : read_line(r, lines->items[i], stream);
    return st;
}

static enum plim_status count_allocation(void *user, uint32_t slot, uint32_t size)
{
    int64_t *held = user;
    (void)slot, (void)size;
    ++*held;
    return PLIM_OK;
}

static enum plim_status count_release(void *user, uint32_t slot)
{
    int64_t *held = user;
    (void)slot;
    --*held;
    return PLIM_OK;
}

/* Walks two steps: checks that freed blocks exist, and that a step frees as many blocks as it allocates; then every
 * further step behaves like the second. */
static enum plim_status try_walk(const struct plim_recorded_stream *stream, int64_t accumulation,
                                 const char **wrong)
{
    static const struct plim_recorded_walker walker = {.allocate = count_allocation, .release = count_release};
    struct plim_recorded_walk walk = {0};
    int64_t held = 0, held_before = 0;
    size_t before = stream->before, count = stream->events.count;
    enum plim_status st = plim_recorded_walk_begin(&walk, stream, accumulation, &walker, &held);
    if (!st) st = plim_recorded_walk_events(&walk, 0, before);
    if (!st) st = plim_recorded_walk_events(&walk, before, count);
    held_before = held;
    if (!st) st = plim_recorded_walk_events(&walk, before, count);
    plim_recorded_walk_finish(&walk);
    if (st == PLIM_INVALID) *wrong = "a block is freed that is not there";
    else if (!st && held != held_before)
        *wrong = "a step does not give back as many blocks as it takes";
    return st == PLIM_NOMEM ? st : PLIM_OK;
}

static void measure(struct plim_recorded_stream *stream, const char **wrong)
{
    size_t launched = 0;
    for (size_t i = 0; i < stream->events.count && launched <= PLIM_RECORDED_EVENTS; i++)
        if (stream->events.items[i].work)
            launched += stream->works.items[stream->events.items[i].work - 1].count;
    if (launched > PLIM_RECORDED_EVENTS) *wrong = "more is launched than can be played";
    for (size_t i = 0; i < stream->events.count; i++)
        if (stream->events.items[i].frees && stream->events.items[i].value > stream->longest)
            stream->longest = stream->events.items[i].value;
    for (size_t i = 0; i < stream->loops.count; i++) {
        const struct plim_recorded_loop *loop = &stream->loops.items[i];
        int64_t balance = 0;
        for (size_t k = 0; k < loop->count; k++)
            balance += plim_recorded_change(&stream->events.items[loop->first + k]);
        if (balance) *wrong = "a micro-step does not give back as many blocks as it takes";
        if (loop->count / 2 > stream->longest) stream->longest = loop->count / 2;
    }
}

/* Walks with no micro-step in the loops, with one, and with more; further ones behave like the last. */
static enum plim_status check_events(const struct plim_reader *r, const struct plim_yaml_node *node,
                                     struct plim_recorded_stream *stream)
{
    const char *wrong = NULL;
    int64_t most = stream->loops.count ? PLIM_RECORDED_OUTSIDE + 3 : PLIM_RECORDED_OUTSIDE;
    enum plim_status st = PLIM_OK;
    measure(stream, &wrong);
    for (int64_t n = PLIM_RECORDED_OUTSIDE; n <= most && !wrong && !st; n++)
        st = try_walk(stream, n, &wrong);
    if (st) return plim_reader_no_memory(r);
    return wrong ? plim_yaml_fail(&r->yaml, node, r->err, "%s", wrong) : PLIM_OK;
}

/* Returns the batch of this stream, if each batch has streams of its own. */
static int64_t batch_at(const struct plim_recording *recording, size_t stream)
{
    size_t place = stream % plim_recording_streams_each(recording);
    return recording->batches.items[place / (recording->accumulates ? 2 : 1)];
}

static enum plim_status read_host_work(const struct plim_reader *r,
                                       const struct plim_yaml_node *stream, int64_t host_work[2])
{
    const struct plim_yaml_node *list = plim_yaml_get(stream, "host_work");
    if (!list) return PLIM_OK;
    bool is_pair = list->kind == PLIM_YAML_SEQUENCE && list->count == 2;
    for (size_t i = 0; is_pair && i < 2; i++) {
        enum plim_status st = plim_yaml_int(&r->yaml, list->items[i], &host_work[i], r->err);
        if (st) return st;
        is_pair = host_work[i] >= 0 && host_work[i] <= PLIM_MOST_BYTES;
    }
    if (is_pair) return PLIM_OK;
    return plim_yaml_fail(&r->yaml, list, r->err, "host_work: expected two numbers of nanoseconds");
}

enum plim_status plim_reader_stream(struct plim_reader *r, const struct plim_yaml_node *node)
{
    static const char *const known[] = {"from_batch", "from_seq", "host_work", "sizes", "launches",
                                        "work",       "before",   "step",      NULL};
    const struct plim_yaml_node *sizes;
    struct plim_recorded_stream stream = {0};
    enum plim_status st = PLIM_OK;
    if (node->kind != PLIM_YAML_MAPPING)
        return plim_yaml_fail(&r->yaml, node, r->err, "expected a mapping");
    PLIM_TRY(plim_reader_refuse_others(r, node, known));
    PLIM_TRY(plim_reader_int(r, node, "from_batch", 1, PLIM_MOST_BYTES, &stream.from.batch));
    PLIM_TRY(plim_reader_int(r, node, "from_seq", 1, PLIM_MOST_BYTES, &stream.from.seq));
    if (r->out->each_batch && stream.from.batch != batch_at(r->out, r->out->streams.count))
        PLIM_TRY(plim_yaml_fail(&r->yaml, node, r->err, "from_batch: expected %lld, this stream's batch",
                                (long long)batch_at(r->out, r->out->streams.count)));
    PLIM_TRY(read_host_work(r, node, stream.host_work));
    PLIM_TRY(plim_reader_get(r, node, "sizes", PLIM_YAML_SEQUENCE, &sizes));
    if (sizes->count > PLIM_RECORDED_SIZES)
        PLIM_TRY(plim_yaml_fail(&r->yaml, sizes, r->err, "expected at most %d sizes",
                                PLIM_RECORDED_SIZES));
    for (size_t i = 0; i < sizes->count; i++) {
        PLIM_TRY(read_size(r, sizes->items[i], &stream));
        PLIM_TRY(check_size(r, sizes->items[i], &stream));
    }
    PLIM_TRY(plim_reader_launches(r, node, &stream));
    PLIM_TRY(read_events(r, node, "before", &stream));
    stream.before = stream.events.count;
    PLIM_TRY(read_events(r, node, "step", &stream));
    PLIM_TRY(check_events(r, node, &stream));
    if (plim_recorded_classify(&stream) != PLIM_OK) {
        st = plim_reader_no_memory(r);
        goto out;
    }
    r->events += stream.events.count;
    if (PLIM_ARRAY_PUSH(&r->out->streams, stream) != PLIM_OK) {
        st = plim_reader_no_memory(r);
        goto out;
    }
    return PLIM_OK;
out:
    plim_recorded_stream_finish(&stream);
    return st;
}
