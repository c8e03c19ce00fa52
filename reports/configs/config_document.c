#include "config_document.h"
#include "autotune/base/text_stream.h"
#include "autotune/base/textfile.h"
#include "autotune/base/utf8.h"
#include "config_format.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NODES = 1 << 18 };

static enum plim_status no_memory(const struct plim_config_document *document,
                                  struct plim_error *err)
{
    return plim_fail_at(err, PLIM_NOMEM, document->source, 0, 0, "no memory for the document");
}

/* --- offsets and lines ------------------------------------------------------------------------ */

size_t plim_config_in_file(const struct plim_config_document *document, size_t offset)
{
    return document->places ? document->places[offset] : offset;
}

int plim_config_line(const struct plim_config_document *document, size_t offset)
{
    size_t low = 0, high = document->line_count;
    offset = plim_config_in_file(document, offset);
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (document->lines[middle] <= offset)
            low = middle;
        else
            high = middle;
    }
    return (int)low + 1;
}

static enum plim_status index_lines(struct plim_config_document *document, struct plim_error *err)
{
    size_t count = 1;
    const char *end = document->text + document->length;
    for (const char *at = document->text; (at = memchr(at, '\n', (size_t)(end - at))); at++)
        count++;
    document->lines = calloc(count, sizeof(*document->lines));
    if (!document->lines) return no_memory(document, err);
    count = 1;
    for (const char *at = document->text; (at = memchr(at, '\n', (size_t)(end - at))); at++)
        document->lines[count++] = (size_t)(at + 1 - document->text);
    document->line_count = count;
    return PLIM_OK;
}

size_t plim_config_line_begin(const struct plim_config_document *document, size_t offset)
{
    while (offset > document->bom && document->text[offset - 1] != '\n') offset--;
    return offset;
}

size_t plim_config_line_end(const struct plim_config_document *document, size_t offset)
{
    const char *found = memchr(document->text + offset, '\n', document->length - offset);
    size_t end = found ? (size_t)(found - document->text) : document->length;
    return found && end > offset && document->text[end - 1] == '\r' ? end - 1 : end;
}

enum plim_status plim_config_fail(const struct plim_config_document *document, size_t offset,
                                  struct plim_error *err, const char *fmt, ...)
{
    char text[sizeof(err->text)];
    va_list arguments;
    va_start(arguments, fmt);
    vsnprintf(text, sizeof(text), fmt, arguments);
    va_end(arguments);
    if (offset > document->length) offset = document->length;
    int column = 1;
    for (size_t at = plim_config_line_begin(document, offset); at < offset; column++) {
        uint32_t code;
        size_t size = plim_utf8_decode((const unsigned char *)document->text + at,
                                       document->length - at, &code);
        at += size ? size : 1;
    }
    return plim_fail_at(err, PLIM_SPEC, document->source, plim_config_line(document, offset),
                        column, "%s", text);
}

static enum plim_status write_path(FILE *out, const struct plim_config_node *node)
{
    if (!node->parent) return PLIM_OK;
    enum plim_status st = write_path(out, node->parent);
    if (node->key)
        fprintf(out, "%s%s", node->parent->parent ? "." : "", node->key);
    else
        fprintf(out, "[%zu]", node->index);
    return st;
}

const char *plim_config_path(struct plim_config_document *document,
                             const struct plim_config_node *node)
{
    struct plim_text_stream stream;
    char *text = NULL, *copy = NULL;
    FILE *file = plim_text_stream_open(&stream);
    if (file) (void)write_path(file, node);
    if (plim_text_stream_close(&stream, &text) == PLIM_OK)
        copy = plim_arena_text(&document->arena, text, strlen(text));
    free(text);
    return copy;
}

struct plim_config_node *plim_config_get(const struct plim_config_node *mapping, const char *key)
{
    struct plim_config_node *found = NULL;
    if (!mapping || mapping->kind != PLIM_CONFIG_MAPPING) return NULL;
    for (struct plim_config_node *node = mapping->first; node; node = node->next)
        if (node->key && !strcmp(node->key, key)) found = node;
    return found;
}

/* --- building the tree ------------------------------------------------------------------------ */

enum plim_status plim_config_node_add(struct plim_config_document *document,
                                      struct plim_config_node *parent, enum plim_config_kind kind,
                                      size_t begin, struct plim_config_node **out,
                                      struct plim_error *err)
{
    if (++document->nodes > MAX_NODES)
        return plim_config_fail(document, begin, err,
                                "the document has too many values, expected at most 262144");
    struct plim_config_node *node = plim_arena_alloc(&document->arena, sizeof(*node));
    if (!node) return no_memory(document, err);
    node->kind = kind;
    node->parent = parent;
    node->begin = node->end = node->key_begin = node->key_end = begin;
    if (parent) {
        node->index = parent->last ? parent->last->index + 1 : 0;
        if (parent->last)
            parent->last->next = node;
        else
            parent->first = node;
        parent->last = node;
    }
    *out = node;
    return PLIM_OK;
}

enum plim_status plim_config_node_name(struct plim_config_document *document,
                                       struct plim_config_node *node, const char *key,
                                       size_t length, size_t key_begin, size_t key_end,
                                       struct plim_error *err)
{
    char *copy = plim_arena_text(&document->arena, key, length);
    if (!copy) return no_memory(document, err);
    node->key = copy;
    node->key_begin = key_begin;
    node->key_end = key_end;
    return PLIM_OK;
}

enum plim_status plim_config_node_text(struct plim_config_document *document,
                                       struct plim_config_node *node, enum plim_config_style style,
                                       size_t end, const char *text, size_t length,
                                       struct plim_error *err)
{
    char *copy = plim_arena_text(&document->arena, text, length);
    if (!copy) return no_memory(document, err);
    node->style = style;
    node->end = end;
    node->text = copy;
    return PLIM_OK;
}

struct named {
    struct plim_config_node *node;
};

static int compare_named(const void *a, const void *b)
{
    const struct plim_config_node *x = ((const struct named *)a)->node,
                                  *y = ((const struct named *)b)->node;
    int order = strcmp(x->key, y->key);
    return order ? order : (x->index > y->index) - (x->index < y->index);
}

/* Marks keys that occur twice. Sorts the keys, since comparing all pairs of a long mapping takes too long. */
static enum plim_status mark_repetitions(struct plim_config_document *document,
                                         struct plim_config_node *node, struct plim_error *err)
{
    enum plim_status st = PLIM_OK;
    size_t count = 0;
    for (struct plim_config_node *member = node->first; member && !st; member = member->next) {
        if (member->key) count++;
        st = mark_repetitions(document, member, err);
    }
    if (st || count < 2) return st;
    struct named *all = malloc(count * sizeof(*all));
    if (!all) return no_memory(document, err);
    count = 0;
    for (struct plim_config_node *member = node->first; member; member = member->next)
        if (member->key) all[count++].node = member;
    qsort(all, count, sizeof(*all), compare_named);
    for (size_t i = 1; i < count; i++)
        all[i].node->again = !strcmp(all[i - 1].node->key, all[i].node->key);
    free(all);
    return PLIM_OK;
}

static void number_lines(const struct plim_config_document *document, struct plim_config_node *node)
{
    node->line = plim_config_line(document, node->begin);
    node->key_line = plim_config_line(document, node->key_begin);
    for (struct plim_config_node *member = node->first; member; member = member->next)
        number_lines(document, member);
}

enum plim_status plim_config_finish_nodes(struct plim_config_document *document, struct plim_config_node *node,
                                          struct plim_error *err)
{
    number_lines(document, node);
    return mark_repetitions(document, node, err);
}

static const char *usual_newline(const char *text, size_t length)
{
    size_t lines = 0, returns = 0;
    for (const char *at = text; (at = memchr(at, '\n', length - (size_t)(at - text))); at++) {
        lines++;
        returns += at > text && at[-1] == '\r';
    }
    return 2 * returns > lines ? "\r\n" : "\n";
}

enum plim_status plim_config_read(const char *source, const char *text, size_t length,
                                  const struct plim_config_format *format,
                                  struct plim_config_document *out, struct plim_error *err)
{
    enum plim_status st = PLIM_OK;
    *out = (struct plim_config_document){
        .source = source,
        .length = length,
        .file_length = length,
        .bom = length >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3) ? 3 : 0,
        .newline = usual_newline(text, length),
    };
    out->file = out->text = malloc(length + 1);
    if (!out->file) return no_memory(out, err);
    memcpy(out->file, text, length);
    out->file[length] = '\0';
    PLIM_TRY(plim_textfile_check(source, text, length, err));
    PLIM_TRY(index_lines(out, err));
    out->format =
        format ? format : plim_config_format_of(source, text + out->bom, length - out->bom);
    PLIM_TRY(out->format->read(out, err));
    PLIM_TRY(plim_config_finish_nodes(out, out->root, err));
out:
    if (st) plim_config_finish(out);
    return st;
}

void plim_config_finish(struct plim_config_document *document)
{
    if (!document) return;
    if (document->text != document->file) free(document->text);
    free(document->file);
    free(document->places);
    PLIM_ARRAY_FINISH(&document->scripts);
    free(document->lines);
    plim_arena_finish(&document->arena);
    *document = (struct plim_config_document){0};
}
