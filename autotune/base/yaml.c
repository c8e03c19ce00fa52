#include "yaml.h"

#include "arena.h"
#include "array.h"
#include "textfile.h"
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

enum { FILE_BYTES = 4 << 20, TEXT_BYTES = 32 << 20, MAX_DEPTH = 64, MAX_NODES = 1 << 19 };

struct builder {
    yaml_parser_t parser;
    const char *source;
    struct plim_arena *arena;
    struct plim_error *err;
    size_t nodes;
};

struct node_list {
    struct plim_yaml_node **items;
    size_t count, capacity;
};

static enum plim_status fail_at_mark(struct builder *b, const yaml_mark_t *mark, const char *text)
{
    return plim_fail_at(b->err, PLIM_SPEC, b->source, (int)mark->line + 1, (int)mark->column + 1,
                        "%s", text);
}

static enum plim_status no_memory(struct builder *b)
{
    return plim_fail_at(b->err, PLIM_NOMEM, b->source, 0, 0, "no memory for the document");
}

static enum plim_status parser_failure(struct builder *b)
{
    const yaml_parser_t *p = &b->parser;
    if (p->error == YAML_MEMORY_ERROR) return no_memory(b);
    if (p->error == YAML_SCANNER_ERROR && *p->buffer.pointer == '\t')
        return fail_at_mark(b, &p->problem_mark, "a tab in the indentation, expected spaces");
    int line = (int)p->problem_mark.line + 1, column = (int)p->problem_mark.column + 1;
    if (p->context)
        return plim_fail_at(b->err, PLIM_SPEC, b->source, line, column,
                            "not valid YAML: %s (%s, line %d)", p->problem, p->context,
                            (int)p->context_mark.line + 1);
    return plim_fail_at(b->err, PLIM_SPEC, b->source, line, column, "not valid YAML: %s",
                        p->problem ? p->problem : "unreadable");
}

static enum plim_status next_event(struct builder *b, yaml_event_t *event)
{
    return yaml_parser_parse(&b->parser, event) ? PLIM_OK : parser_failure(b);
}

static enum plim_status node_new(struct builder *b, enum plim_yaml_kind kind,
                                 const yaml_mark_t *mark, struct plim_yaml_node **out)
{
    if (++b->nodes > MAX_NODES)
        return fail_at_mark(b, mark, "the document has too many values, expected at most 524288");
    *out = plim_arena_alloc(b->arena, sizeof(**out));
    if (!*out) return no_memory(b);
    (*out)->kind = kind;
    (*out)->line = (int)mark->line + 1;
    (*out)->column = (int)mark->column + 1;
    return PLIM_OK;
}

/* Copies a list to the arena. */
static enum plim_status copy_to_arena(struct builder *b, const struct node_list *list,
                                      struct plim_yaml_node ***items)
{
    *items = plim_arena_array(b->arena, list->count, sizeof(**items));
    if (!*items) return no_memory(b);
    if (list->count) memcpy(*items, list->items, list->count * sizeof(**items));
    return PLIM_OK;
}

/* --- keys ------------------------------------------------------------------------------------- */

struct key_place {
    const char *text;
    size_t index;
};

static int compare_keys(const void *a, const void *b)
{
    const struct key_place *x = a, *y = b;
    int order = strcmp(x->text, y->text);
    return order ? order : (x->index > y->index) - (x->index < y->index);
}

/* Sorts the keys, since comparing all pairs would take hours for a document of 4 MiB. */
static enum plim_status check_duplicates(struct builder *b, const struct plim_yaml_node *mapping)
{
    size_t count = mapping->count;
    if (count < 2) return PLIM_OK;
    struct key_place *places = malloc(count * sizeof(*places));
    if (!places) return no_memory(b);
    for (size_t i = 0; i < count; i++)
        places[i] = (struct key_place){mapping->keys[i]->text, i};
    qsort(places, count, sizeof(*places), compare_keys);

    const struct plim_yaml_node *again = NULL, *first = NULL;
    size_t earliest = count; /* the first repetition in the order of the document */
    for (size_t i = 1; i < count; i++) {
        bool same = strcmp(places[i - 1].text, places[i].text) == 0;
        if (!same || places[i].index >= earliest) continue;
        earliest = places[i].index;
        again = mapping->keys[places[i].index];
        first = mapping->keys[places[i - 1].index];
    }
    free(places);
    if (!again) return PLIM_OK;
    return plim_fail_at(b->err, PLIM_SPEC, b->source, again->line, again->column,
                        "the key '%.80s' is in line %d already, expected it only once",
                        again->text, first->line);
}

static enum plim_status check_key(struct builder *b, const struct plim_yaml_node *key)
{
    bool usable = key->kind == PLIM_YAML_SCALAR && (key->quoted || key->text[0]);
    if (usable) return PLIM_OK;
    return plim_fail_at(b->err, PLIM_SPEC, b->source, key->line, key->column,
                        "this key is %s, expected a name",
                        key->kind == PLIM_YAML_SCALAR     ? "empty"
                        : key->kind == PLIM_YAML_SEQUENCE ? "a list"
                                                          : "a mapping");
}

/* --- the tree --------------------------------------------------------------------------------- */

static enum plim_status build(struct builder *b, const yaml_event_t *event, int depth,
                              struct plim_yaml_node **out);

static enum plim_status build_scalar(struct builder *b, const yaml_event_t *event,
                                     struct plim_yaml_node **out)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    if (memchr(text, '\0', length))
        return fail_at_mark(b, &event->start_mark, "this text has a NUL character, expected none");
    enum plim_status st = node_new(b, PLIM_YAML_SCALAR, &event->start_mark, out);
    if (st != PLIM_OK) return st;
    (*out)->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    (*out)->text = plim_arena_text(b->arena, text, length);
    return (*out)->text ? PLIM_OK : no_memory(b);
}

/* Builds the children up to the end of the sequence or mapping (keys and values in turn). */
static enum plim_status build_children(struct builder *b, bool is_mapping, int depth,
                                       struct node_list *keys, struct node_list *values)
{
    for (bool is_key = is_mapping;; is_key = is_mapping && !is_key) {
        yaml_event_t event;
        enum plim_status st = next_event(b, &event);
        if (st != PLIM_OK) return st;
        bool at_end = event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT;
        struct plim_yaml_node *child = NULL;
        if (!at_end) st = build(b, &event, depth, &child);
        yaml_event_delete(&event);
        if (st != PLIM_OK || at_end) return st;

        if (is_key && (st = check_key(b, child)) != PLIM_OK) return st;
        struct node_list *list = is_key ? keys : values;
        if (PLIM_ARRAY_PUSH(list, child) != PLIM_OK) return no_memory(b);
    }
}

static enum plim_status build_container(struct builder *b, const yaml_event_t *event, int depth,
                                        struct plim_yaml_node **out)
{
    enum plim_status st = PLIM_OK;
    struct node_list keys = {0}, values = {0};
    bool is_mapping = event->type == YAML_MAPPING_START_EVENT;
    if (depth >= MAX_DEPTH)
        return fail_at_mark(b, &event->start_mark, "nested too deeply, expected at most 64 levels");
    enum plim_yaml_kind kind = is_mapping ? PLIM_YAML_MAPPING : PLIM_YAML_SEQUENCE;
    PLIM_TRY(node_new(b, kind, &event->start_mark, out));
    PLIM_TRY(build_children(b, is_mapping, depth + 1, &keys, &values));
    (*out)->count = values.count;
    PLIM_TRY(copy_to_arena(b, &values, &(*out)->items));
    if (is_mapping) {
        PLIM_TRY(copy_to_arena(b, &keys, &(*out)->keys));
        PLIM_TRY(check_duplicates(b, *out));
    }
out:
    PLIM_ARRAY_FINISH(&keys);
    PLIM_ARRAY_FINISH(&values);
    return st;
}

static const yaml_char_t *tag_of(const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return event->data.scalar.tag;
    case YAML_SEQUENCE_START_EVENT:
        return event->data.sequence_start.tag;
    case YAML_MAPPING_START_EVENT:
        return event->data.mapping_start.tag;
    default:
        return NULL;
    }
}

static enum plim_status build(struct builder *b, const yaml_event_t *event, int depth,
                              struct plim_yaml_node **out)
{
    if (tag_of(event))
        return fail_at_mark(b, &event->start_mark, "a YAML tag ('!'), expected a plain value");
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return build_scalar(b, event, out);
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT:
        return build_container(b, event, depth, out);
    case YAML_ALIAS_EVENT:
        return fail_at_mark(b, &event->start_mark,
                            "a YAML alias ('*'), expected the value written out");
    default:
        return fail_at_mark(b, &event->start_mark, "expected a value");
    }
}

/* Builds the tree of a stream, which has one document or none. */
static enum plim_status build_document(struct builder *b, struct plim_yaml_node **root)
{
    int documents = 0;
    for (bool more = true; more;) {
        yaml_event_t event;
        enum plim_status st = next_event(b, &event);
        if (st != PLIM_OK) return st;
        switch (event.type) {
        case YAML_STREAM_END_EVENT:
            more = false;
            break;
        case YAML_DOCUMENT_START_EVENT:
            if (++documents > 1)
                st = fail_at_mark(b, &event.start_mark, "a second document, expected only one");
            break;
        case YAML_STREAM_START_EVENT:
        case YAML_DOCUMENT_END_EVENT:
            break;
        default:
            st = build(b, &event, 0, root);
        }
        yaml_event_delete(&event);
        if (st != PLIM_OK) return st;
    }
    struct plim_yaml_node *node = *root;
    bool empty = node && node->kind == PLIM_YAML_SCALAR && !node->quoted && !node->text[0];
    if (empty) *root = NULL; /* "---" and nothing after it */
    return PLIM_OK;
}

/* --- reading ---------------------------------------------------------------------------------- */

/* Refuses directives: a spec needs none, and libyaml takes quadratic time for %TAG directives. */
static enum plim_status refuse_directives(const char *source, const char *text, size_t length,
                                          struct plim_error *err)
{
    int line = 1;
    for (size_t i = 0; i < length; i++) {
        bool line_start = i == 0 || text[i - 1] == '\n' || text[i - 1] == '\r';
        if (line_start && text[i] == '%')
            return plim_fail_at(err, PLIM_SPEC, source, line, 1,
                                "a YAML directive ('%%'), expected a key or a value");
        bool crlf = text[i] == '\r' && i + 1 < length && text[i + 1] == '\n';
        if (text[i] == '\n' || (text[i] == '\r' && !crlf)) line++;
    }
    return PLIM_OK;
}

static enum plim_status parse(const char *text, size_t length, struct plim_yaml *yaml,
                              struct plim_error *err)
{
    struct builder b = {.source = yaml->source, .arena = yaml->arena, .err = err};
    if (!yaml_parser_initialize(&b.parser)) return no_memory(&b);
    yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&b.parser, (const unsigned char *)text, length);
    enum plim_status st = build_document(&b, &yaml->root);
    yaml_parser_delete(&b.parser);
    return st;
}

enum plim_status plim_yaml_read_string(const char *source_name, const char *text, size_t length,
                                       struct plim_yaml *out, struct plim_error *err)
{
    enum plim_status st = PLIM_OK;
    *out = (struct plim_yaml){0};
    if (length > TEXT_BYTES)
        return plim_fail_at(err, PLIM_SPEC, source_name, 0, 0,
                            "the text has %zu bytes, expected at most %d", length, TEXT_BYTES);
    /* libyaml would count a byte order mark as the first column. */
    if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3;
        length -= 3;
    }
    PLIM_TRY(plim_textfile_check(source_name, text, length, err));
    PLIM_TRY(refuse_directives(source_name, text, length, err));

    struct plim_arena *arena = calloc(1, sizeof(*arena));
    if (!arena) return plim_fail(err, PLIM_NOMEM, "no memory for the document");
    out->arena = arena;
    out->source = plim_arena_text(arena, source_name, strlen(source_name));
    st = out->source ? parse(text, length, out, err)
                     : plim_fail(err, PLIM_NOMEM, "no memory for the document");
out:
    if (st != PLIM_OK) plim_yaml_finish(out);
    return st;
}

enum plim_status plim_yaml_read_file(const char *path, struct plim_yaml *out,
                                     struct plim_error *err)
{
    char *text;
    size_t length;
    *out = (struct plim_yaml){0};
    enum plim_status st = plim_textfile_read(path, FILE_BYTES, &text, &length, err);
    if (st != PLIM_OK) return st;
    st = plim_yaml_read_string(path, text, length, out, err);
    free(text);
    return st;
}

void plim_yaml_finish(struct plim_yaml *yaml)
{
    if (!yaml) return;
    plim_arena_finish(yaml->arena);
    free(yaml->arena);
    *yaml = (struct plim_yaml){0};
}
