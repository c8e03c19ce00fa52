/* gin: NAME = value (a macro), scope/module.function.parameter = value, or "scope/module.function:" with its parameters
 * indented below it. Values continue within brackets and after a backslash. */
#include "config_format.h"
#include <string.h>

struct reader {
    struct plim_config_document *document;
    struct plim_error *err;
    const char *text;
    size_t at;
    size_t block, block_end; /* name of the function whose block this is; empty: none */
};

static enum plim_status fail(struct reader *r, size_t at, const char *what)
{
    return plim_config_fail(r->document, at, r->err, "not valid gin: %s", what);
}

/* Finds the end of a value: of its line if brackets and quotes are closed, without a comment. */
static enum plim_status skip_value(struct reader *r, size_t *end)
{
    size_t start = r->at, depth = 0;
    *end = r->at;
    for (char c; (c = r->text[r->at]); r->at++) {
        if (c == '\n' && !depth) break;
        if (c == '\\') r->at += strspn(r->text + r->at + 1, "\r");
        if (c == '\\' && r->text[r->at + 1] == '\n') {
            r->at++;
            continue;
        }
        if (c == '#') {
            r->at += strcspn(r->text + r->at, "\n") - 1;
            continue;
        }
        if (c == '"' || c == '\'') {
            size_t quote = r->at++;
            while (r->text[r->at] != c) {
                if (!r->text[r->at] || r->text[r->at] == '\n')
                    return fail(r, quote, "the quote that opens here is not closed on its line");
                r->at += r->text[r->at] == '\\' && r->text[r->at + 1] ? 2 : 1;
            }
        }
        if (strchr("([{", c)) depth++;
        if (strchr(")]}", c)) {
            if (!depth) return fail(r, r->at, "this bracket closes nothing");
            depth--;
        }
        if (!strchr(" \t\r\n", c)) *end = r->at + 1;
    }
    return depth ? fail(r, start, "a bracket of this value is not closed") : PLIM_OK;
}

/* Finds or creates the mapping for the parameters of a function. An empty name gives the root. */
static enum plim_status find_group(struct reader *r, size_t begin, size_t end,
                                   struct plim_config_node **out)
{
    struct plim_config_node *root = r->document->root;
    *out = root;
    if (end == begin) return PLIM_OK;
    for (*out = root->first; *out; *out = (*out)->next)
        if ((*out)->kind == PLIM_CONFIG_MAPPING && strlen((*out)->key) == end - begin &&
            !strncmp((*out)->key, r->text + begin, end - begin))
            return PLIM_OK;
    enum plim_status st =
        plim_config_node_add(r->document, root, PLIM_CONFIG_MAPPING, begin, out, r->err);
    if (!st)
        st = plim_config_node_name(r->document, *out, r->text + begin, end - begin, begin, end,
                                   r->err);
    return st;
}

static enum plim_status read_binding(struct reader *r, size_t begin, size_t key_end)
{
    struct plim_config_node *group, *node;
    bool inside = r->block_end > r->block;
    size_t name = inside ? begin : key_end, end;
    enum plim_status st;
    while (name > begin && r->text[name - 1] != '.') name--;
    size_t owner = inside ? r->block : begin;
    size_t owner_end = inside ? r->block_end : name > begin ? name - 1 : begin;
    r->at++;
    r->at += strspn(r->text + r->at, " \t");
    size_t value = r->at;
    PLIM_TRY(skip_value(r, &end));
    bool quoted = end > value + 1 && (r->text[value] == '"' || r->text[value] == '\'');
    PLIM_TRY(find_group(r, owner, owner_end, &group));
    PLIM_TRY(plim_config_node_add(r->document, group, PLIM_CONFIG_SCALAR, value, &node, r->err));
    PLIM_TRY(plim_config_node_text(r->document, node,
                                   quoted        ? PLIM_CONFIG_QUOTED
                                   : end > value ? PLIM_CONFIG_PLAIN
                                                 : PLIM_CONFIG_EMPTY,
                                   end, r->text + value + quoted, end - value - 2 * quoted,
                                   r->err));
    PLIM_TRY(plim_config_node_name(r->document, node, r->text + name, key_end - name, name, key_end,
                                   r->err));
out:
    return st;
}

/* True for the header of a block, "scope/module.function:". Its parameters follow, indented. */
static bool is_block(const struct reader *r, size_t begin, size_t length)
{
    while (length && strchr(" \t\r", r->text[begin + length - 1])) length--;
    return length > 1 && r->text[begin + length - 1] == ':' &&
           strcspn(r->text + begin, " \t(") >= length;
}

/* Reads one statement. include and import are skipped. */
static enum plim_status read_line(struct reader *r)
{
    size_t indent = strspn(r->text + r->at, " \t");
    r->at += strspn(r->text + r->at, " \t\r");
    size_t begin = r->at, length = strcspn(r->text + begin, "=#\n");
    size_t end = begin + length;
    bool is_blank = strchr("#\n", r->text[begin]) != NULL; /* also at the end of the text */
    if (!indent && !is_blank) r->block = r->block_end = 0;
    if (is_block(r, begin, length)) {
        r->block = begin;
        r->block_end = begin + strcspn(r->text + begin, ":");
        r->at = end + strcspn(r->text + end, "\n");
        return PLIM_OK;
    }
    if (r->text[end] == '=' && length) {
        r->at = end;
        while (end > begin && strchr(" \t", r->text[end - 1])) end--;
        return read_binding(r, begin, end);
    }
    bool known = !length || r->text[begin] == '\r' || !strncmp(r->text + begin, "include", 7) ||
                 !strncmp(r->text + begin, "import", 6) || !strncmp(r->text + begin, "from ", 5);
    if (!known) return fail(r, begin, "expected NAME = value");
    r->at += strcspn(r->text + r->at, "\n");
    return PLIM_OK;
}

enum plim_status plim_config_read_gin(struct plim_config_document *document, struct plim_error *err)
{
    struct reader r = {document, err, document->text, document->bom, 0, 0};
    enum plim_status st = plim_config_node_add(document, NULL, PLIM_CONFIG_MAPPING, document->bom,
                                               &document->root, err);
    while (!st && r.at < document->length) {
        st = read_line(&r);
        r.at += r.text[r.at] == '\n';
    }
    return st;
}
