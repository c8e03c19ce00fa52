/* YAML, read through the events of libyaml. Its marks count characters without the byte order mark; a table of the
 * whole
 * text translates them to bytes. */
#define _GNU_SOURCE /* memmem() */
#include "autotune/base/array.h"
#include "autotune/base/utf8.h"
#include "config_format.h"
#include <string.h>
#include <yaml.h>

enum { MAX_DEPTH = 200 };

struct reader {
    struct plim_config_document *document;
    struct plim_error *err;
    yaml_parser_t parser;
    size_t *offsets; /* in bytes, of each character and of the end */
    size_t count;
    PLIM_ARRAY(struct plim_config_node *) anchors;
    size_t quote_line, quote_end; /* 1-based lines of the last quoted text of several lines; quote_line 0: none */
};

static enum plim_status no_memory(struct reader *r)
{
    return plim_fail_at(r->err, PLIM_NOMEM, r->document->source, 0, 0,
                        "no memory for the document");
}

static size_t offset_of(const struct reader *r, const yaml_mark_t *mark)
{
    return r->offsets[mark->index < r->count ? mark->index : r->count];
}

static enum plim_status fill_offsets(struct reader *r)
{
    const struct plim_config_document *document = r->document;
    r->offsets = malloc((document->length + 1) * sizeof(*r->offsets));
    if (!r->offsets) return no_memory(r);
    for (size_t at = document->bom; at < document->length;) {
        uint32_t code;
        r->offsets[r->count++] = at;
        at += plim_utf8_decode((const unsigned char *)document->text + at, document->length - at,
                               &code);
    }
    r->offsets[r->count] = document->length;
    return PLIM_OK;
}

/* Returns a hint if the line has the marks of a template, which often is not valid YAML. */
static const char *hint(const struct plim_config_document *document, size_t offset)
{
    size_t begin = plim_config_line_begin(document, offset);
    size_t end = plim_config_line_end(document, offset);
    static const char *const marks[] = {"{{", "{%", "${", "<%"};
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
        if (memmem(document->text + begin, end - begin, marks[i], 2))
            return "; a template has to be filled in first";
    return "";
}

static enum plim_status parser_failure(struct reader *r)
{
    const yaml_parser_t *p = &r->parser;
    if (p->error == YAML_MEMORY_ERROR) return no_memory(r);
    size_t offset = offset_of(r, &p->problem_mark);
    if (r->quote_line && r->quote_end == p->problem_mark.line + 1)
        return plim_config_fail(
            r->document, offset, r->err,
            "not valid YAML: %s; is the quote that opens in line %zu not closed?", p->problem,
            r->quote_line);
    if (p->error == YAML_SCANNER_ERROR && r->document->text[offset] == '\t')
        return plim_config_fail(r->document, offset, r->err,
                                "not valid YAML: a tab in the indentation, expected spaces");
    if (p->context)
        return plim_config_fail(r->document, offset, r->err, "not valid YAML: %s (%s, line %zu)%s",
                                p->problem, p->context, p->context_mark.line + 1,
                                hint(r->document, offset));
    return plim_config_fail(r->document, offset, r->err, "not valid YAML: %s%s",
                            p->problem ? p->problem : "unreadable", hint(r->document, offset));
}

static enum plim_status next_event(struct reader *r, yaml_event_t *event)
{
    return yaml_parser_parse(&r->parser, event) ? PLIM_OK : parser_failure(r);
}

/* --- nodes ------------------------------------------------------------------------------------ */

/* Returns the offset after "&anchor" and "!tag", which libyaml counts as part of the value. */
static size_t skip_properties(const struct plim_config_document *document, size_t at, size_t end)
{
    const char *text = document->text;
    while (at < end && (text[at] == '&' || text[at] == '!')) {
        while (at < end && !strchr(" \t\r\n", text[at])) at++;
        size_t blank = at;
        while (blank < end && strchr(" \t\r\n", text[blank])) blank++;
        if (blank < end) at = blank;
    }
    return at;
}

static enum plim_status copy_properties(struct reader *r, struct plim_config_node *node,
                                        const yaml_char_t *anchor, const yaml_char_t *tag)
{
    struct plim_arena *arena = &r->document->arena;
    if (tag) {
        node->tag = plim_arena_text(arena, (const char *)tag, strlen((const char *)tag));
        if (!node->tag) return no_memory(r);
    }
    if (!anchor) return PLIM_OK;
    node->anchor = plim_arena_text(arena, (const char *)anchor, strlen((const char *)anchor));
    if (!node->anchor || PLIM_ARRAY_PUSH(&r->anchors, node) != PLIM_OK) return no_memory(r);
    return PLIM_OK;
}

static enum plim_status read_node(struct reader *r, const yaml_event_t *event, int depth,
                                  struct plim_config_node *parent, struct plim_config_node **out);

static enum plim_status read_scalar(struct reader *r, const yaml_event_t *event,
                                    struct plim_config_node *parent, struct plim_config_node **out)
{
    size_t begin = offset_of(r, &event->start_mark), end = offset_of(r, &event->end_mark);
    enum plim_config_style style = PLIM_CONFIG_PLAIN;
    if (event->data.scalar.anchor || event->data.scalar.tag)
        begin = skip_properties(r->document, begin, end);
    switch (event->data.scalar.style) {
    case YAML_SINGLE_QUOTED_SCALAR_STYLE:
    case YAML_DOUBLE_QUOTED_SCALAR_STYLE:
        style = PLIM_CONFIG_QUOTED;
        r->quote_line =
            event->start_mark.line < event->end_mark.line ? event->start_mark.line + 1 : 0;
        r->quote_end = event->end_mark.line + 1;
        break;
    case YAML_LITERAL_SCALAR_STYLE:
    case YAML_FOLDED_SCALAR_STYLE:
        style = PLIM_CONFIG_BLOCK;
        break;
    default:
        style = begin == end ? PLIM_CONFIG_EMPTY : PLIM_CONFIG_PLAIN;
    }
    enum plim_status st =
        plim_config_node_add(r->document, parent, PLIM_CONFIG_SCALAR, begin, out, r->err);
    if (!st)
        st = plim_config_node_text(r->document, *out, style, end,
                                   (const char *)event->data.scalar.value,
                                   event->data.scalar.length, r->err);
    if (!st) st = copy_properties(r, *out, event->data.scalar.anchor, event->data.scalar.tag);
    return st;
}

static enum plim_status read_alias(struct reader *r, const yaml_event_t *event,
                                   struct plim_config_node *parent, struct plim_config_node **out)
{
    const char *name = (const char *)event->data.alias.anchor;
    size_t begin = offset_of(r, &event->start_mark), end = offset_of(r, &event->end_mark);
    enum plim_status st =
        plim_config_node_add(r->document, parent, PLIM_CONFIG_SCALAR, begin, out, r->err);
    if (!st)
        st = plim_config_node_text(r->document, *out, PLIM_CONFIG_CODE, end, name, strlen(name),
                                   r->err);
    for (size_t i = r->anchors.count; !st && i-- && !(*out)->target;)
        if (!strcmp(r->anchors.items[i]->anchor, name)) (*out)->target = r->anchors.items[i];
    if (!st && !(*out)->target)
        st = plim_config_fail(r->document, begin, r->err,
                              "not valid YAML: there is no anchor '&%.80s' before this alias", name);
    for (const struct plim_config_node *outer = parent; !st && outer; outer = outer->parent)
        if (outer == (*out)->target)
            st = plim_config_fail(r->document, begin, r->err,
                                  "this alias is part of its own anchor '&%.80s', so it has no end",
                                  name);
    return st;
}

static enum plim_status read_sequence(struct reader *r, int depth, struct plim_config_node *node)
{
    yaml_event_t event;
    enum plim_status st;
    while (!(st = next_event(r, &event)) && event.type != YAML_SEQUENCE_END_EVENT) {
        struct plim_config_node *item;
        st = read_node(r, &event, depth + 1, node, &item);
        yaml_event_delete(&event);
        if (st) return st;
    }
    if (st) return st;
    node->end = offset_of(r, &event.end_mark);
    yaml_event_delete(&event);
    return PLIM_OK;
}

/* Reads a key. If it is not a scalar, such as the "{{ x }}" of a template, its name is "?". */
static enum plim_status read_key(struct reader *r, const yaml_event_t *event, int depth,
                                 struct plim_config_node *key, const char **text)
{
    struct plim_config_node *node, holder = {.kind = PLIM_CONFIG_SEQUENCE};
    enum plim_status st = read_node(r, event, depth, &holder, &node);
    if (st) return st;
    node->parent = NULL;
    *key = *node;
    *text = node->kind == PLIM_CONFIG_SCALAR && node->text ? node->text : "?";
    return PLIM_OK;
}

static enum plim_status read_mapping(struct reader *r, int depth, struct plim_config_node *node)
{
    yaml_event_t event;
    enum plim_status st;
    while (!(st = next_event(r, &event)) && event.type != YAML_MAPPING_END_EVENT) {
        struct plim_config_node key, *value = NULL;
        const char *name = NULL;
        st = read_key(r, &event, depth + 1, &key, &name);
        yaml_event_delete(&event);
        if (!st) st = next_event(r, &event);
        if (st) return st;
        st = read_node(r, &event, depth + 1, node, &value);
        yaml_event_delete(&event);
        if (!st)
            st = plim_config_node_name(r->document, value, name, strlen(name), key.begin, key.end,
                                       r->err);
        if (st) return st;
    }
    if (st) return st;
    node->end = offset_of(r, &event.end_mark);
    yaml_event_delete(&event);
    return PLIM_OK;
}

static enum plim_status read_collection(struct reader *r, const yaml_event_t *event, int depth,
                                        struct plim_config_node *parent,
                                        struct plim_config_node **out)
{
    bool mapping = event->type == YAML_MAPPING_START_EVENT;
    const yaml_char_t *anchor =
        mapping ? event->data.mapping_start.anchor : event->data.sequence_start.anchor;
    const yaml_char_t *tag =
        mapping ? event->data.mapping_start.tag : event->data.sequence_start.tag;
    bool flow = mapping ? event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE
                        : event->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
    size_t begin = offset_of(r, &event->start_mark);
    if (anchor || tag) begin = skip_properties(r->document, begin, r->document->length);
    if (depth > MAX_DEPTH)
        return plim_config_fail(r->document, begin, r->err,
                                "the document is nested deeper than expected (200 levels)");
    enum plim_status st = plim_config_node_add(r->document, parent,
                                               mapping ? PLIM_CONFIG_MAPPING : PLIM_CONFIG_SEQUENCE,
                                               begin, out, r->err);
    if (st) return st;
    (*out)->layout = flow ? PLIM_CONFIG_FLOW : PLIM_CONFIG_LINES;
    st = copy_properties(r, *out, anchor, tag);
    if (!st) st = mapping ? read_mapping(r, depth, *out) : read_sequence(r, depth, *out);
    return st;
}

static enum plim_status read_node(struct reader *r, const yaml_event_t *event, int depth,
                                  struct plim_config_node *parent, struct plim_config_node **out)
{
    if (event->type == YAML_SCALAR_EVENT) return read_scalar(r, event, parent, out);
    if (event->type == YAML_ALIAS_EVENT) return read_alias(r, event, parent, out);
    return read_collection(r, event, depth, parent, out);
}

/* --- documents -------------------------------------------------------------------------------- */

/* Reads all documents. Anchors are valid within one document only; all nodes are in the arena. */
static enum plim_status read_documents(struct reader *r, struct plim_config_node *all)
{
    yaml_event_t event;
    for (;;) {
        struct plim_config_node *root;
        enum plim_status st = next_event(r, &event);
        if (st) return st;
        yaml_event_type_t type = event.type;
        if (type == YAML_STREAM_END_EVENT) {
            yaml_event_delete(&event);
            return PLIM_OK;
        }
        if (type == YAML_DOCUMENT_START_EVENT) r->anchors.count = 0;
        if (type != YAML_STREAM_START_EVENT && type != YAML_DOCUMENT_START_EVENT &&
            type != YAML_DOCUMENT_END_EVENT)
            st = read_node(r, &event, 1, all, &root);
        yaml_event_delete(&event);
        if (st) return st;
    }
}

/* Reads "# @package trainer" in the comments at the top. */
static enum plim_status find_package(struct plim_config_document *document)
{
    const char *at = document->text + document->bom, *end;
    for (; *at == '#' || *at == '\n' || *at == '\r'; at = *end ? end + 1 : end) {
        end = at + strcspn(at, "\n");
        if (*at != '#') continue;
        at += strspn(at, "# \t");
        if (strncmp(at, "@package", 8) != 0) continue;
        at += 8;
        at += strspn(at, " \t:");
        document->package = plim_arena_text(&document->arena, at, strcspn(at, " \t\r\n"));
        return document->package ? PLIM_OK : PLIM_NOMEM;
    }
    return PLIM_OK;
}

enum plim_status plim_config_read_yaml(struct plim_config_document *document,
                                       struct plim_error *err)
{
    struct reader r = {.document = document, .err = err};
    struct plim_config_node *all = NULL;
    enum plim_status st = PLIM_OK;
    if (!yaml_parser_initialize(&r.parser)) return no_memory(&r);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)document->text,
                                 document->length);
    PLIM_TRY(fill_offsets(&r));
    PLIM_TRY(find_package(document));
    PLIM_TRY(plim_config_node_add(document, NULL, PLIM_CONFIG_SEQUENCE, document->bom, &all, err));
    PLIM_TRY(read_documents(&r, all));
    all->end = document->length;
    document->root = all->first && all->first == all->last ? all->first : all;
    if (document->root != all) all->first->parent = NULL;
    if (!all->first) all->kind = PLIM_CONFIG_MAPPING;
out:
    yaml_parser_delete(&r.parser);
    free(r.offsets);
    PLIM_ARRAY_FINISH(&r.anchors);
    return st;
}
