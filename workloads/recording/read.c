/* Reads a recording from its file, which is untrusted: the header, and all streams. */
#include "autotune/base/xz.h"
#include "autotune/base/sha256.h"
#include "autotune/base/textfile.h"
#include "reader.h"
#include <stdio.h>

enum { MOST_ARGUMENTS = 4096, MOST_VALUES = 64 };

static enum plim_status get_text(const struct plim_reader *r, const struct plim_yaml_node *mapping,
                                 const char *key, char *out, size_t size)
{
    const struct plim_yaml_node *node;
    enum plim_status st = plim_reader_get(r, mapping, key, PLIM_YAML_SCALAR, &node);
    if (st) return st;
    if (strlen(node->text) >= size)
        return plim_yaml_fail(&r->yaml, node, r->err, "%s: expected less than %zu bytes", key,
                              size);
    snprintf(out, size, "%s", node->text);
    return PLIM_OK;
}

/* --- the header ------------------------------------------------------------------------------- */

static enum plim_status read_texts(const struct plim_reader *r, const struct plim_yaml_node *list,
                                   size_t most, struct plim_recorded_texts *out)
{
    if (list->count > most)
        return plim_yaml_fail(&r->yaml, list, r->err, "expected at most %zu", most);
    for (size_t i = 0; i < list->count; i++) {
        const struct plim_yaml_node *item = list->items[i];
        if (item->kind != PLIM_YAML_SCALAR)
            return plim_yaml_fail(&r->yaml, item, r->err, "expected a text");
        if (plim_recorded_texts_add(out, item->text)) return plim_reader_no_memory(r);
    }
    return PLIM_OK;
}

static enum plim_status read_command(const struct plim_reader *r, const struct plim_yaml_node *root)
{
    const struct plim_yaml_node *list;
    enum plim_status st = plim_reader_get(r, root, "command", PLIM_YAML_SEQUENCE, &list);
    return st ? st : read_texts(r, list, MOST_ARGUMENTS, &r->out->command);
}

static enum plim_status read_axes(const struct plim_reader *r, const struct plim_yaml_node *root)
{
    const struct plim_yaml_node *axes;
    enum plim_status st = plim_reader_get(r, root, "axes", PLIM_YAML_MAPPING, &axes);
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

static enum plim_status read_numbers(const struct plim_reader *r, const struct plim_yaml_node *root,
                                     const char *key, int64_t *out, size_t *count)
{
    const struct plim_yaml_node *list;
    enum plim_status st = plim_reader_get(r, root, key, PLIM_YAML_SEQUENCE, &list);
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

static enum plim_status read_points(const struct plim_reader *r, const struct plim_yaml_node *root)
{
    struct plim_recording *out = r->out;
    if (PLIM_ARRAY_RESERVE(&out->batches, PLIM_RECORDED_POINTS) != PLIM_OK ||
        PLIM_ARRAY_RESERVE(&out->seqs, PLIM_RECORDED_POINTS) != PLIM_OK)
        return plim_reader_no_memory(r);
    enum plim_status st = read_numbers(r, root, "batch", out->batches.items, &out->batches.count);
    if (!st) st = read_numbers(r, root, "seq", out->seqs.items, &out->seqs.count);
    if (!st && !out->batches.count)
        st = plim_yaml_fail(&r->yaml, root, r->err, "batch: expected at least one");
    return st;
}

/* Reads an optional list: up to version 5 there was no made_with. */
static enum plim_status read_list(const struct plim_reader *r, const struct plim_yaml_node *root,
                                  const char *key, struct plim_recorded_texts *out)
{
    const struct plim_yaml_node *list;
    if (!plim_yaml_get(root, key)) return PLIM_OK;
    enum plim_status st = plim_reader_get(r, root, key, PLIM_YAML_SEQUENCE, &list);
    return st ? st : read_texts(r, list, PLIM_RECORDED_PARTS, out);
}

/* Version 1 had no micro_steps: as recorded. */
static enum plim_status read_micro_steps(const struct plim_reader *r, const struct plim_yaml_node *root)
{
    const struct plim_yaml_node *node = plim_yaml_get(root, "micro_steps");
    if (!node) return PLIM_OK;
    r->out->accumulates = plim_reader_is(node, "any");
    return r->out->accumulates || plim_reader_is(node, "one")
               ? PLIM_OK
               : plim_yaml_fail(&r->yaml, node, r->err, "micro_steps: expected any or one");
}

/* Up to version 4 there was no batches: together. */
static enum plim_status read_batches(const struct plim_reader *r, const struct plim_yaml_node *root)
{
    const struct plim_yaml_node *node = plim_yaml_get(root, "batches");
    if (!node) return PLIM_OK;
    r->out->each_batch = plim_reader_is(node, "each");
    return r->out->each_batch || plim_reader_is(node, "together")
               ? PLIM_OK
               : plim_yaml_fail(&r->yaml, node, r->err, "batches: expected each or together");
}

/* Up to version 13 there was no compiled. */
static enum plim_status read_compiled(const struct plim_reader *r, const struct plim_yaml_node *root)
{
    const struct plim_yaml_node *node = plim_yaml_get(root, "compiled");
    r->out->is_compiled = node && plim_reader_is(node, "yes");
    return !node || r->out->is_compiled ? PLIM_OK : plim_yaml_fail(&r->yaml, node, r->err, "compiled: expected yes");
}

/* Up to version 7 there was no combinations: all are recorded. */
static enum plim_status read_combinations(const struct plim_reader *r, const struct plim_yaml_node *root)
{
    const struct plim_yaml_node *list;
    if (!plim_yaml_get(root, "combinations")) return PLIM_OK;
    enum plim_status st = plim_reader_get(r, root, "combinations", PLIM_YAML_SEQUENCE, &list);
    if (st) return st;
    int64_t most = (int64_t)plim_recording_combinations(r->out), last = -1, number;
    if (!list->count)
        return plim_yaml_fail(&r->yaml, list, r->err, "combinations: expected at least one");
    for (size_t i = 0; i < list->count; i++) {
        st = plim_yaml_int(&r->yaml, list->items[i], &number, r->err);
        if (!st && (number <= last || number >= most))
            st = plim_yaml_fail(&r->yaml, list->items[i], r->err,
                                "combinations: expected numbers that ascend, below the %lld of the axes",
                                (long long)most);
        if (st) return st;
        if (PLIM_ARRAY_PUSH(&r->out->combinations, (size_t)number) != PLIM_OK)
            return plim_reader_no_memory(r);
        last = number;
    }
    return PLIM_OK;
}

static enum plim_status read_host_speed(const struct plim_reader *r, const struct plim_yaml_node *root)
{
    static const double least = 1e-6, most = 1e6;
    const struct plim_yaml_node *node = plim_yaml_get(root, "host_speed");
    if (!node) return PLIM_OK;
    enum plim_status st = plim_yaml_number(&r->yaml, node, &r->out->host_speed, r->err);
    if (!st && !(r->out->host_speed >= least && r->out->host_speed <= most))
        st = plim_yaml_fail(&r->yaml, node, r->err, "host_speed: expected %g to %g", least, most);
    return st;
}

static enum plim_status read_head(const struct plim_reader *r, const struct plim_yaml_node *root)
{
    struct plim_recording *out = r->out;
    char allocator[16];
    int64_t capability;
    enum plim_status st = PLIM_OK;
    PLIM_TRY(get_text(r, root, "name", out->name, sizeof(out->name)));
    PLIM_TRY(get_text(r, root, "made_by", out->made_by, sizeof(out->made_by)));
    PLIM_TRY(get_text(r, root, "proof", out->proof, sizeof(out->proof)));
    PLIM_TRY(get_text(r, root, "allocator", allocator, sizeof(allocator)));
    PLIM_TRY(plim_reader_int(r, root, "compute_capability", 0, 999, &capability));
    out->compute_capability = (int)capability;
    while (out->allocator < PLIM_RECORDED_ALLOCATORS &&
           strcmp(plim_recorded_allocator_names[out->allocator], allocator))
        out->allocator++;
    if (out->allocator == PLIM_RECORDED_ALLOCATORS)
        PLIM_TRY(plim_yaml_fail(&r->yaml, plim_yaml_get(root, "allocator"), r->err,
                                "expected pytorch, direct or unknown"));
    PLIM_TRY(read_host_speed(r, root));
    PLIM_TRY(read_command(r, root));
    PLIM_TRY(read_list(r, root, "made_with", &out->made_with));
    PLIM_TRY(read_list(r, root, "doubts", &out->doubts));
    PLIM_TRY(read_points(r, root));
    PLIM_TRY(read_axes(r, root));
    PLIM_TRY(read_micro_steps(r, root));
    PLIM_TRY(read_compiled(r, root));
    PLIM_TRY(read_batches(r, root));
    PLIM_TRY(read_combinations(r, root));
out:
    return st;
}

static enum plim_status read_root(struct plim_reader *r)
{
    static const char *const known[] = {"plimsoll_recording",
                                        "name",
                                        "command",
                                        "made_by",
                                        "made_with",
                                        "doubts",
                                        "compiled",
                                        "compute_capability",
                                        "allocator",
                                        "proof",
                                        "host_speed",
                                        "batch",
                                        "seq",
                                        "axes",
                                        "micro_steps",
                                        "batches",
                                        "combinations",
                                        "streams",
                                        "checksum",
                                        NULL};
    const struct plim_yaml_node *root = r->yaml.root, *streams;
    int64_t version;
    enum plim_status st = PLIM_OK;
    if (!root || root->kind != PLIM_YAML_MAPPING || !plim_yaml_get(root, "plimsoll_recording"))
        return plim_fail(r->err, PLIM_SPEC, "%s: not a recording of plimsoll", r->yaml.source);
    PLIM_TRY(plim_reader_int(r, root, "plimsoll_recording", 0, INT64_MAX, &version));
    if (version < 1 || version > PLIM_RECORDING_VERSION)
        PLIM_TRY(plim_fail(r->err, PLIM_SPEC,
                           "%s: a recording of version %lld, this plimsoll reads up to version %d",
                           r->yaml.source, (long long)version, PLIM_RECORDING_VERSION));
    PLIM_TRY(plim_reader_refuse_others(r, root, known));
    PLIM_TRY(read_head(r, root));
    PLIM_TRY(plim_reader_get(r, root, "streams", PLIM_YAML_SEQUENCE, &streams));
    if (!streams->count ||
        streams->count != plim_recording_recorded(r->out) * plim_recording_streams_each(r->out))
        PLIM_TRY(plim_yaml_fail(&r->yaml, streams, r->err,
                                "expected a stream for each combination of the axes, of which there are "
                                "at most %d (of batches each for each batch; two with micro_steps any)",
                                PLIM_RECORDED_COMBINATIONS));
    for (size_t i = 0; i < streams->count; i++) PLIM_TRY(plim_reader_stream(r, streams->items[i]));
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

/* Reads the text of a file, which may be compressed by xz. */
static enum plim_status read_file(const char *path, char **text, size_t *length,
                                  struct plim_error *err)
{
    enum plim_status st = plim_textfile_read(path, PLIM_RECORDED_BYTES, text, length, err);
    if (st || !plim_xz_is(*text, *length)) return st;
    char *packed = *text;
    st = plim_xz_unpack(path, packed, *length, PLIM_RECORDED_BYTES, text, length, err);
    free(packed);
    return st;
}

enum plim_status plim_recording_read_text(const char *source_name, const char *text, size_t length,
                                          struct plim_recording *out, struct plim_error *err)
{
    struct plim_reader r = {.out = out, .err = err};
    enum plim_status st = plim_yaml_read_string(source_name, text, length, &r.yaml, err);
    if (!st) st = read_root(&r);
    if (!st) st = check_sum(source_name, text, length, out, err);
    plim_yaml_finish(&r.yaml);
    return st;
}

enum plim_status plim_recording_read(const char *path, struct plim_recording *out,
                                     struct plim_error *err)
{
    char *text = NULL;
    size_t length;
    enum plim_status st = read_file(path, &text, &length, err);
    if (!st) st = plim_recording_read_text(path, text, length, out, err);
    free(text);
    return st;
}
