/* INI as Python's configparser reads it: [section], key = value or key: value, indented continuation lines, comments
 * after # and ;. A key without a separator has no value. */
#include "config_format.h"
#include <string.h>

struct reader {
    struct plim_config_document *document;
    struct plim_error *err;
    struct plim_config_node *section, *value; /* value: the one that an indented line continues */
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static size_t trim(const char *text, size_t begin, size_t end)
{
    while (end > begin && is_blank(text[end - 1])) end--;
    return end;
}

static enum plim_status read_section(struct reader *r, size_t begin, size_t end)
{
    const char *text = r->document->text;
    const char *close = memchr(text + begin, ']', end - begin);
    enum plim_status st;
    if (!close) return plim_config_fail(r->document, begin, r->err, "not valid INI: expected ]");
    size_t last = (size_t)(close - text);
    r->value = NULL;
    st = plim_config_node_add(r->document, r->document->root, PLIM_CONFIG_MAPPING, begin,
                              &r->section, r->err);
    if (st) return st;
    r->section->end = last + 1;
    return plim_config_node_name(r->document, r->section, text + begin + 1, last - begin - 1,
                                 begin + 1, last, r->err);
}

/* Returns the end of a value, without the comment after it: # or ; following a blank. */
static size_t value_end(const char *text, size_t begin, size_t end)
{
    for (size_t at = begin; at < end; at++)
        if ((text[at] == '#' || text[at] == ';') && (at == begin || is_blank(text[at - 1])))
            return trim(text, begin, at);
    return trim(text, begin, end);
}

static enum plim_status read_pair(struct reader *r, size_t begin, size_t end)
{
    const char *text = r->document->text;
    size_t mark = begin + strcspn(text + begin, "=:\n");
    if (mark > end) mark = end;
    size_t key_end = trim(text, begin, mark), from = mark < end ? mark + 1 : end;
    while (from < end && is_blank(text[from])) from++;
    size_t to = value_end(text, from, end);
    bool quoted =
        to > from + 1 && (text[from] == '"' || text[from] == '\'') && text[to - 1] == text[from];
    if (key_end == begin)
        return plim_config_fail(r->document, begin, r->err, "not valid INI: expected a key");
    if (mark == end && r->section == r->document->root)
        return plim_config_fail(r->document, begin, r->err,
                                "not valid INI: expected [SECTION] or NAME = value");
    enum plim_status st = plim_config_node_add(r->document, r->section, PLIM_CONFIG_SCALAR,
                                               to > from    ? from
                                               : mark < end ? mark + 1
                                                            : end,
                                               &r->value, r->err);
    if (!st)
        st = plim_config_node_text(r->document, r->value,
                                   to == from ? PLIM_CONFIG_EMPTY
                                   : quoted   ? PLIM_CONFIG_QUOTED
                                              : PLIM_CONFIG_PLAIN,
                                   to > from ? to : r->value->begin, text + from + quoted,
                                   to - from - 2 * quoted, r->err);
    if (!st)
        st = plim_config_node_name(r->document, r->value, text + begin, key_end - begin, begin,
                                   key_end, r->err);
    return st;
}

enum plim_status plim_config_read_ini(struct plim_config_document *document, struct plim_error *err)
{
    struct reader r = {document, err, NULL, NULL};
    const char *text = document->text;
    enum plim_status st = plim_config_node_add(document, NULL, PLIM_CONFIG_MAPPING, document->bom,
                                               &document->root, err);
    r.section = document->root;
    for (size_t at = document->bom; at < document->length && !st;) {
        size_t end = plim_config_line_end(document, at), begin = at;
        while (begin < end && is_blank(text[begin])) begin++;
        bool comment = begin == end || text[begin] == '#' || text[begin] == ';';
        if (comment)
            st = PLIM_OK;
        else if (begin > at && r.value)
            r.value->style = PLIM_CONFIG_BLOCK, r.value->end = trim(text, begin, end);
        else if (text[begin] == '[')
            st = read_section(&r, begin, end);
        else
            st = read_pair(&r, begin, end);
        at = end + strcspn(text + end, "\n");
        at += at < document->length;
    }
    return st;
}
