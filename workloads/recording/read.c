/* A recording from its file, which may be anything. */
#include "autotune/base/sha256.h"
#include "autotune/base/textfile.h"
#include "autotune/base/yaml.h"
#include "walk.h"
#include <stdio.h>

enum { FILE_BYTES = 4 << 20, MOST_ARGUMENTS = 4096, MOST_VALUES = 64 };

struct reader {
    struct plim_yaml yaml;
    struct plim_recording *out;
    struct plim_error *err;
    size_t events; /* of the streams that were read */
};

static enum plim_status no_memory(const struct reader *r)
{
    return plim_fail(r->err, PLIM_NOMEM, "out of host memory");
}

/* --- pieces ----------------------------------------------------------------------------------- */

static enum plim_status get(const struct reader *r, const struct plim_yaml_node *mapping,
                            const char *key, enum plim_yaml_kind kind,
                            const struct plim_yaml_node **out)
{
    static const char *const kinds[] = {"a value", "a list", "a mapping"};
    *out = plim_yaml_get(mapping, key);
    if (!*out)
        return plim_yaml_fail(&r->yaml, mapping, r->err, "%s is missing: not a whole recording",
                              key);
    if ((*out)->kind != kind)
        return plim_yaml_fail(&r->yaml, *out, r->err, "%s: expected %s", key, kinds[kind]);
    return PLIM_OK;
}

static enum plim_status get_int(const struct reader *r, const struct plim_yaml_node *mapping,
                                const char *key, int64_t least, int64_t most, int64_t *out)
{
    const struct plim_yaml_node *node;
    enum plim_status st = get(r, mapping, key, PLIM_YAML_SCALAR, &node);
    if (!st) st = plim_yaml_int(&r->yaml, node, out, r->err);
    if (st || (*out >= least && *out <= most)) return st;
    return plim_yaml_fail(&r->yaml, node, r->err, "%s: expected %lld to %lld", key,
                          (long long)least, (long long)most);
}

static enum plim_status get_text(const struct reader *r, const struct plim_yaml_node *mapping,
                                 const char *key, char *out, size_t size)
{
    const struct plim_yaml_node *node;
    enum plim_status st = get(r, mapping, key, PLIM_YAML_SCALAR, &node);
    if (st) return st;
    if (strlen(node->text) >= size)
        return plim_yaml_fail(&r->yaml, node, r->err, "%s: expected less than %zu bytes", key,
                              size);
    snprintf(out, size, "%s", node->text);
    return PLIM_OK;
}

/* Keys that are not known may mean what a reader must not miss. */
static enum plim_status refuse_others(const struct reader *r, const struct plim_yaml_node *mapping,
                                      const char *const *known)
{
    for (size_t i = 0; i < mapping->count; i++) {
        size_t k = 0;
        while (known[k] && strcmp(known[k], mapping->keys[i]->text)) k++;
        if (!known[k])
            return plim_yaml_fail(&r->yaml, mapping->keys[i], r->err,
                                  "%.40s is not known in version %d of recordings",
                                  mapping->keys[i]->text, PLIM_RECORDING_VERSION);
    }
    return PLIM_OK;
}

/* --- sizes ------------------------------------------------------------------------------------ */

/* Digits, to at most 2^60; false: none, or more than that. */
static bool read_number(const char **at, int64_t *out)
{
    int64_t value = 0;
    const char *start = *at;
    for (; **at >= '0' && **at <= '9'; (*at)++) {
        int digit = **at - '0';
        if (value > (PLIM_MOST_BYTES - digit) / 10) return false;
        value = 10 * value + digit;
    }
    *out = value;
    return *at > start;
}

static bool read_polynomial(const char *at, int64_t terms[PLIM_RECORDED_TERMS])
{
    unsigned seen = 0;
    do {
        bool negative = *at == '-';
        int b = 0, s = 0;
        int64_t value;
        if (*at == '-' || (*at == '+' && seen)) at++;
        if (!read_number(&at, &value)) return false;
        for (; at[0] == '*' && (at[1] == 'b' || at[1] == 's'); at += 2) {
            if (at[1] == 'b') b++;
            else s++;
        }
        int index = b + 2 * s;
        if (b > 1 || s > 2 || seen >> index & 1) return false;
        seen |= 1u << index;
        terms[index] = negative ? -value : value;
    } while (*at == '+' || *at == '-');
    return !*at;
}

static enum plim_status read_table(const struct reader *r, const char *at,
                                   struct plim_recorded_size *out, bool *good)
{
    out->is_table = true;
    out->entries = calloc(PLIM_RECORDED_POINTS, sizeof(*out->entries));
    if (!out->entries) return no_memory(r);
    *good = true;
    while (*at && *good) {
        struct plim_recorded_entry e;
        *good = out->count < PLIM_RECORDED_POINTS && *at++ == ' ' &&
                read_number(&at, &e.point.batch) && *at++ == ',' &&
                read_number(&at, &e.point.seq) && *at++ == '=' && read_number(&at, &e.bytes) &&
                e.bytes >= 0;
        if (*good) out->entries[out->count++] = e;
    }
    *good = *good && out->count;
    return PLIM_OK;
}

static enum plim_status read_size(const struct reader *r, const struct plim_yaml_node *node,
                                  struct plim_recorded_stream *stream)
{
    struct plim_recorded_size size = {0};
    bool good = false;
    enum plim_status st = PLIM_OK;
    if (node->kind == PLIM_YAML_SCALAR && !strncmp(node->text, "table", 5))
        st = read_table(r, node->text + 5, &size, &good);
    else if (node->kind == PLIM_YAML_SCALAR) good = read_polynomial(node->text, size.terms);
    if (!st && !good)
        st = plim_yaml_fail(&r->yaml, node, r->err,
                            "expected a size such as 24*b*s+8 or table 1,128=8192, of at most 2^60");
    if (!st && PLIM_ARRAY_PUSH(&stream->sizes, size) != PLIM_OK) st = no_memory(r);
    if (st) free(size.entries);
    return st;
}

/* At every recorded point that the stream holds for. */
static enum plim_status check_size(const struct reader *r, const struct plim_yaml_node *node,
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
            if (plim_recorded_size_at(size, point) >= 0) continue;
            return plim_yaml_fail(&r->yaml, node, r->err,
                                  "the size is none at batch %lld, length %lld",
                                  (long long)point.batch, (long long)point.seq);
        }
    return PLIM_OK;
}

/* --- events ----------------------------------------------------------------------------------- */

static enum plim_status too_many(const struct reader *r, const struct plim_yaml_node *node)
{
    return plim_yaml_fail(&r->yaml, node, r->err, "expected at most %d events",
                          PLIM_RECORDED_EVENTS);
}

static enum plim_status bad_event(const struct reader *r, const struct plim_yaml_node *node,
                                  const char *at)
{
    return plim_yaml_fail(&r->yaml, node, r->err,
                          "expected aN, fN or N(...) with numbers in range at \"%.12s\"", at);
}

static bool read_event(const struct plim_recorded_stream *stream, const char **at,
                       struct plim_recorded_event *out)
{
    int64_t value;
    char kind = **at;
    if (kind != 'a' && kind != 'f') return false;
    (*at)++;
    if (!read_number(at, &value) || value > PLIM_RECORDED_EVENTS) return false;
    *out = (struct plim_recorded_event){.frees = kind == 'f', .value = (uint32_t)value};
    return out->frees ? value > 0 : (size_t)value < stream->sizes.count;
}

static enum plim_status repeat(const struct reader *r, const struct plim_yaml_node *node,
                               struct plim_recorded_stream *stream, size_t from, int64_t times)
{
    size_t length = stream->events.count - from;
    if (times < 1 || times > (int64_t)((PLIM_RECORDED_EVENTS - r->events - from) / length))
        return too_many(r, node);
    for (int64_t i = 1; i < times; i++)
        for (size_t k = 0; k < length; k++)
            if (PLIM_ARRAY_PUSH(&stream->events, stream->events.items[from + k]) != PLIM_OK)
                return no_memory(r);
    return PLIM_OK;
}

/* One line: events, or a group of them that is repeated. */
static enum plim_status read_line(const struct reader *r, const struct plim_yaml_node *node,
                                  struct plim_recorded_stream *stream)
{
    const char *at = node->kind == PLIM_YAML_SCALAR ? node->text : "";
    int64_t times = 1;
    bool is_group = *at >= '0' && *at <= '9';
    size_t from = stream->events.count;
    if (is_group && (!read_number(&at, &times) || *at++ != '(')) return bad_event(r, node, at);
    for (;;) {
        struct plim_recorded_event event;
        if (!read_event(stream, &at, &event)) return bad_event(r, node, at);
        if (r->events + stream->events.count >= PLIM_RECORDED_EVENTS) return too_many(r, node);
        if (PLIM_ARRAY_PUSH(&stream->events, event) != PLIM_OK) return no_memory(r);
        if (*at != ' ') break;
        at++;
    }
    if (is_group && *at++ != ')') return bad_event(r, node, at - 1);
    if (*at) return bad_event(r, node, at);
    return repeat(r, node, stream, from, times);
}

static bool is_line(const struct plim_yaml_node *node, const char *text)
{
    return node->kind == PLIM_YAML_SCALAR && !strcmp(node->text, text);
}

/* From "micro(" on, which stands at `*at`, to ")". Only the streams of several micro-steps have it. */
static enum plim_status read_loop(const struct reader *r, const struct plim_yaml_node *lines,
                                  size_t *at, struct plim_recorded_stream *stream)
{
    const struct plim_yaml_node *begin = lines->items[*at];
    struct plim_recorded_loop loop = {.first = stream->events.count};
    enum plim_status st = PLIM_OK;
    if (!r->out->accumulates || r->out->streams.count % 2 == 0)
        return plim_yaml_fail(&r->yaml, begin, r->err,
                              "micro(: expected in a stream of several micro-steps alone");
    for (++*at; *at < lines->count && !is_line(lines->items[*at], ")") && !st; ++*at)
        st = read_line(r, lines->items[*at], stream);
    if (st) return st;
    loop.count = stream->events.count - loop.first;
    if (*at == lines->count || !loop.count)
        return plim_yaml_fail(&r->yaml, begin, r->err, "micro(: expected events and a )");
    return PLIM_ARRAY_PUSH(&stream->loops, loop) == PLIM_OK ? PLIM_OK : no_memory(r);
}

static enum plim_status read_events(const struct reader *r, const struct plim_yaml_node *mapping,
                                    const char *key, struct plim_recorded_stream *stream)
{
    const struct plim_yaml_node *lines;
    enum plim_status st = get(r, mapping, key, PLIM_YAML_SEQUENCE, &lines);
    for (size_t i = 0; !st && i < lines->count; i++)
        st = is_line(lines->items[i], "micro(") ? read_loop(r, lines, &i, stream)
                                                : read_line(r, lines->items[i], stream);
    return st;
}

static enum plim_status count_take(void *user, uint32_t slot, uint32_t size)
{
    int64_t *held = user;
    (void)slot, (void)size;
    ++*held;
    return PLIM_OK;
}

static enum plim_status count_give(void *user, uint32_t slot)
{
    int64_t *held = user;
    (void)slot;
    --*held;
    return PLIM_OK;
}

/* Walks two steps. What is freed is there, and a step gives back as many blocks as it takes; then
 * every further step does as the second. */
static enum plim_status try_walk(const struct plim_recorded_stream *stream, int64_t accumulation,
                                 const char **wrong)
{
    static const struct plim_recorded_walker walker = {.take = count_take, .give = count_give};
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
    for (size_t i = 0; i < stream->events.count; i++)
        if (stream->events.items[i].frees && stream->events.items[i].value > stream->longest)
            stream->longest = stream->events.items[i].value;
    for (size_t i = 0; i < stream->loops.count; i++) {
        const struct plim_recorded_loop *loop = &stream->loops.items[i];
        size_t frees = 0;
        for (size_t k = 0; k < loop->count; k++) frees += stream->events.items[loop->first + k].frees;
        if (2 * frees != loop->count)
            *wrong = "a micro-step does not give back as many blocks as it takes";
        if (loop->count - frees > stream->longest) stream->longest = loop->count - frees;
    }
}

/* With no micro-step in the loops, with one, and with more: further ones do as the last. */
static enum plim_status check_events(const struct reader *r, const struct plim_yaml_node *node,
                                     struct plim_recorded_stream *stream)
{
    const char *wrong = NULL;
    int64_t most = stream->loops.count ? PLIM_RECORDED_OUTSIDE + 3 : PLIM_RECORDED_OUTSIDE;
    enum plim_status st = PLIM_OK;
    measure(stream, &wrong);
    for (int64_t n = PLIM_RECORDED_OUTSIDE; n <= most && !wrong && !st; n++)
        st = try_walk(stream, n, &wrong);
    if (st) return no_memory(r);
    return wrong ? plim_yaml_fail(&r->yaml, node, r->err, "%s", wrong) : PLIM_OK;
}

static enum plim_status read_stream(struct reader *r, const struct plim_yaml_node *node)
{
    static const char *const known[] = {"from_batch", "from_seq", "sizes", "before", "step", NULL};
    const struct plim_yaml_node *sizes;
    struct plim_recorded_stream stream = {0};
    enum plim_status st = PLIM_OK;
    if (node->kind != PLIM_YAML_MAPPING)
        return plim_yaml_fail(&r->yaml, node, r->err, "expected a mapping");
    PLIM_TRY(refuse_others(r, node, known));
    PLIM_TRY(get_int(r, node, "from_batch", 1, PLIM_MOST_BYTES, &stream.from.batch));
    PLIM_TRY(get_int(r, node, "from_seq", 1, PLIM_MOST_BYTES, &stream.from.seq));
    PLIM_TRY(get(r, node, "sizes", PLIM_YAML_SEQUENCE, &sizes));
    if (sizes->count > PLIM_RECORDED_SIZES)
        PLIM_TRY(plim_yaml_fail(&r->yaml, sizes, r->err, "expected at most %d sizes",
                                PLIM_RECORDED_SIZES));
    for (size_t i = 0; i < sizes->count; i++) {
        PLIM_TRY(read_size(r, sizes->items[i], &stream));
        PLIM_TRY(check_size(r, sizes->items[i], &stream));
    }
    PLIM_TRY(read_events(r, node, "before", &stream));
    stream.before = stream.events.count;
    PLIM_TRY(read_events(r, node, "step", &stream));
    PLIM_TRY(check_events(r, node, &stream));
    r->events += stream.events.count;
    if (PLIM_ARRAY_PUSH(&r->out->streams, stream) != PLIM_OK) {
        st = no_memory(r);
        goto out;
    }
    return PLIM_OK;
out:
    plim_recorded_stream_finish(&stream);
    return st;
}

/* --- the head --------------------------------------------------------------------------------- */

static enum plim_status read_texts(const struct reader *r, const struct plim_yaml_node *list,
                                   size_t most, struct plim_recorded_texts *out)
{
    if (list->count > most)
        return plim_yaml_fail(&r->yaml, list, r->err, "expected at most %zu", most);
    for (size_t i = 0; i < list->count; i++) {
        const struct plim_yaml_node *item = list->items[i];
        if (item->kind != PLIM_YAML_SCALAR)
            return plim_yaml_fail(&r->yaml, item, r->err, "expected a text");
        if (plim_recorded_texts_add(out, item->text)) return no_memory(r);
    }
    return PLIM_OK;
}

static enum plim_status read_command(const struct reader *r, const struct plim_yaml_node *root)
{
    const struct plim_yaml_node *list;
    enum plim_status st = get(r, root, "command", PLIM_YAML_SEQUENCE, &list);
    return st ? st : read_texts(r, list, MOST_ARGUMENTS, &r->out->command);
}

static enum plim_status read_axes(const struct reader *r, const struct plim_yaml_node *root)
{
    const struct plim_yaml_node *axes;
    enum plim_status st = get(r, root, "axes", PLIM_YAML_MAPPING, &axes);
    if (st) return st;
    if (axes->count > PLIM_RECORDED_AXES)
        return plim_yaml_fail(&r->yaml, axes, r->err, "expected at most %d axes",
                              PLIM_RECORDED_AXES);
    for (size_t a = 0; a < axes->count && !st; a++) {
        struct plim_recorded_axis *axis = &r->out->axes[r->out->axis_count++];
        const struct plim_yaml_node *values = axes->items[a];
        if (strlen(axes->keys[a]->text) >= sizeof(axis->name) || !*axes->keys[a]->text ||
            values->kind != PLIM_YAML_SEQUENCE || !values->count)
            return plim_yaml_fail(&r->yaml, values, r->err, "expected NAME: [VALUE, ...]");
        snprintf(axis->name, sizeof(axis->name), "%s", axes->keys[a]->text);
        st = read_texts(r, values, MOST_VALUES, &axis->values);
    }
    return st;
}

static enum plim_status read_numbers(const struct reader *r, const struct plim_yaml_node *root,
                                     const char *key, int64_t *out, size_t *count)
{
    const struct plim_yaml_node *list;
    enum plim_status st = get(r, root, key, PLIM_YAML_SEQUENCE, &list);
    for (size_t i = 0; !st && i < list->count; i++) {
        const struct plim_yaml_node *item = list->items[i];
        if (i >= PLIM_RECORDED_POINTS)
            return plim_yaml_fail(&r->yaml, item, r->err, "expected at most %d",
                                  PLIM_RECORDED_POINTS);
        st = plim_yaml_int(&r->yaml, item, &out[i], r->err);
        if (!st && (out[i] < 1 || out[i] > PLIM_MOST_BYTES || (i && out[i] <= out[i - 1])))
            st = plim_yaml_fail(&r->yaml, item, r->err, "%s: expected positive numbers that ascend",
                                key);
        if (!st) *count = i + 1;
    }
    return st;
}

static enum plim_status read_points(const struct reader *r, const struct plim_yaml_node *root)
{
    struct plim_recording *out = r->out;
    if (PLIM_ARRAY_RESERVE(&out->batches, PLIM_RECORDED_POINTS) != PLIM_OK ||
        PLIM_ARRAY_RESERVE(&out->seqs, PLIM_RECORDED_POINTS) != PLIM_OK)
        return no_memory(r);
    enum plim_status st = read_numbers(r, root, "batch", out->batches.items, &out->batches.count);
    if (!st) st = read_numbers(r, root, "seq", out->seqs.items, &out->seqs.count);
    if (!st && !out->batches.count)
        st = plim_yaml_fail(&r->yaml, root, r->err, "batch: expected at least one");
    return st;
}

/* Version 1 had none: as it was recorded. */
static enum plim_status read_micro_steps(const struct reader *r, const struct plim_yaml_node *root)
{
    const struct plim_yaml_node *node = plim_yaml_get(root, "micro_steps");
    if (!node) return PLIM_OK;
    r->out->accumulates = is_line(node, "any");
    return r->out->accumulates || is_line(node, "one")
               ? PLIM_OK
               : plim_yaml_fail(&r->yaml, node, r->err, "micro_steps: expected any or one");
}

static enum plim_status read_head(const struct reader *r, const struct plim_yaml_node *root)
{
    struct plim_recording *out = r->out;
    char allocator[16];
    int64_t capability;
    enum plim_status st = PLIM_OK;
    PLIM_TRY(get_text(r, root, "name", out->name, sizeof(out->name)));
    PLIM_TRY(get_text(r, root, "made_by", out->made_by, sizeof(out->made_by)));
    PLIM_TRY(get_text(r, root, "proof", out->proof, sizeof(out->proof)));
    PLIM_TRY(get_text(r, root, "allocator", allocator, sizeof(allocator)));
    PLIM_TRY(get_int(r, root, "compute_capability", 0, 999, &capability));
    out->compute_capability = (int)capability;
    while (out->allocator < PLIM_RECORDED_ALLOCATORS &&
           strcmp(plim_recorded_allocator_names[out->allocator], allocator))
        out->allocator++;
    if (out->allocator == PLIM_RECORDED_ALLOCATORS)
        PLIM_TRY(plim_yaml_fail(&r->yaml, plim_yaml_get(root, "allocator"), r->err,
                                "expected pytorch, direct or unknown"));
    PLIM_TRY(read_command(r, root));
    PLIM_TRY(read_points(r, root));
    PLIM_TRY(read_axes(r, root));
    PLIM_TRY(read_micro_steps(r, root));
out:
    return st;
}

static enum plim_status read_root(struct reader *r)
{
    static const char *const known[] = {
        "plimsoll_recording", "name", "command", "made_by", "compute_capability", "allocator",
        "proof", "batch", "seq", "axes", "micro_steps", "streams", "checksum", NULL};
    const struct plim_yaml_node *root = r->yaml.root, *streams;
    int64_t version;
    enum plim_status st = PLIM_OK;
    if (!root || root->kind != PLIM_YAML_MAPPING || !plim_yaml_get(root, "plimsoll_recording"))
        return plim_fail(r->err, PLIM_SPEC, "%s: not a recording of plimsoll", r->yaml.source);
    PLIM_TRY(get_int(r, root, "plimsoll_recording", 0, INT64_MAX, &version));
    if (version < 1 || version > PLIM_RECORDING_VERSION)
        PLIM_TRY(plim_fail(r->err, PLIM_SPEC,
                           "%s: a recording of version %lld, this plimsoll reads up to version %d",
                           r->yaml.source, (long long)version, PLIM_RECORDING_VERSION));
    PLIM_TRY(refuse_others(r, root, known));
    PLIM_TRY(read_head(r, root));
    PLIM_TRY(get(r, root, "streams", PLIM_YAML_SEQUENCE, &streams));
    if (!streams->count ||
        streams->count != plim_recording_combinations(r->out) * (r->out->accumulates ? 2 : 1))
        PLIM_TRY(plim_yaml_fail(&r->yaml, streams, r->err,
                                "expected a stream for each combination of the axes (two with "
                                "micro_steps any), of which there are at most %d",
                                PLIM_RECORDED_STREAMS));
    for (size_t i = 0; i < streams->count; i++) PLIM_TRY(read_stream(r, streams->items[i]));
out:
    return st;
}

/* --- the file --------------------------------------------------------------------------------- */

static enum plim_status check_sum(const char *path, const char *text, size_t length,
                                  struct plim_recording *out, struct plim_error *err)
{
    static const char key[] = "checksum: ";
    enum { LINE = sizeof(key) - 1 + PLIM_SHA256_TEXT };
    char hash[PLIM_SHA256_TEXT];
    bool ends = length > LINE && text[length - 1] == '\n' && text[length - LINE - 1] == '\n' &&
                !memcmp(text + length - LINE, key, sizeof(key) - 1);
    if (!ends)
        return plim_fail(err, PLIM_SPEC,
                         "%s: not a whole recording: it does not end with its checksum", path);
    plim_sha256_text(text, length - LINE, hash);
    if (memcmp(hash, text + length - PLIM_SHA256_TEXT, PLIM_SHA256_TEXT - 1))
        return plim_fail(err, PLIM_SPEC, "%s: damaged or changed: its checksum is another", path);
    for (int i = 0; i < 16; i++) {
        const char *digits = "0123456789abcdef";
        out->hash = out->hash << 4 | (uint64_t)(strchr(digits, hash[i]) - digits);
    }
    return PLIM_OK;
}

enum plim_status plim_recording_read(const char *path, struct plim_recording *out,
                                     struct plim_error *err)
{
    struct reader r = {.out = out, .err = err};
    char *text = NULL;
    size_t length;
    enum plim_status st = plim_textfile_read(path, FILE_BYTES, &text, &length, err);
    if (!st) st = plim_textfile_check(path, text, length, err);
    if (!st) st = plim_yaml_read_string(path, text, length, &r.yaml, err);
    if (!st) st = read_root(&r);
    if (!st) st = check_sum(path, text, length, out, err);
    plim_yaml_finish(&r.yaml);
    free(text);
    return st;
}
