/* TOML 1.0: tables, arrays of tables, dotted keys, inline tables. A repeated key is an error. */
#include "config_format.h"
#include <stdio.h>
#include <string.h>

enum { MAX_DEPTH = 100, KEY_PARTS = 32 };

struct reader {
    struct plim_config_document *document;
    struct plim_error *err;
    const char *text;
    size_t at;
    struct plim_config_node *table; /* the table that keys are added to */
};

struct key {
    size_t count, begins[KEY_PARTS], ends[KEY_PARTS]; /* with their quotes */
};

static enum plim_status fail(struct reader *r, size_t at, const char *what)
{
    return plim_config_fail(r->document, at, r->err, "not valid TOML: %s", what);
}

static void skip_blanks(struct reader *r)
{
    r->at += strspn(r->text + r->at, " \t");
}

/* Skips blanks, line ends and comments. */
static void skip_lines(struct reader *r)
{
    for (;;) {
        r->at += strspn(r->text + r->at, " \t\r\n");
        if (r->text[r->at] != '#') return;
        r->at += strcspn(r->text + r->at, "\n");
    }
}

static enum plim_status end_line(struct reader *r)
{
    skip_blanks(r);
    if (r->text[r->at] == '#') r->at += strcspn(r->text + r->at, "\n");
    if (r->text[r->at] == '\r' && r->text[r->at + 1] == '\n') r->at++;
    if (!r->text[r->at]) return PLIM_OK;
    if (r->text[r->at] != '\n') return fail(r, r->at, "expected nothing else on this line");
    r->at++;
    return PLIM_OK;
}

/* --- keys ------------------------------------------------------------------------------------- */

static bool is_bare(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

static enum plim_status skip_quoted(struct reader *r)
{
    size_t start = r->at;
    char quote = r->text[r->at];
    for (r->at++; r->text[r->at] != quote; r->at++) {
        if (!r->text[r->at] || r->text[r->at] == '\n')
            return fail(r, start, "the quote that opens here is not closed on its line");
        if (quote == '"' && r->text[r->at] == '\\' && r->text[r->at + 1]) r->at++;
    }
    r->at++;
    return PLIM_OK;
}

static enum plim_status read_key(struct reader *r, struct key *key)
{
    *key = (struct key){0};
    for (;;) {
        enum plim_status st = PLIM_OK;
        if (key->count == KEY_PARTS) return fail(r, r->at, "a key of too many parts");
        skip_blanks(r);
        key->begins[key->count] = r->at;
        if (r->text[r->at] == '"' || r->text[r->at] == '\'')
            st = skip_quoted(r);
        else
            while (is_bare(r->text[r->at])) r->at++;
        if (st) return st;
        if (r->at == key->begins[key->count]) return fail(r, r->at, "expected a key");
        key->ends[key->count++] = r->at;
        skip_blanks(r);
        if (r->text[r->at] != '.') return PLIM_OK;
        r->at++;
    }
}

static enum plim_status name_part(struct reader *r, struct plim_config_node *node,
                                  const struct key *key, size_t part)
{
    size_t begin = key->begins[part], end = key->ends[part];
    bool quoted = r->text[begin] == '"' || r->text[begin] == '\'';
    return plim_config_node_name(r->document, node, r->text + begin + quoted,
                                 end - begin - 2 * quoted, begin, end, r->err);
}

static struct plim_config_node *find_part(struct reader *r, const struct plim_config_node *table,
                                          const struct key *key, size_t part)
{
    size_t begin = key->begins[part], end = key->ends[part];
    bool quoted = r->text[begin] == '"' || r->text[begin] == '\'';
    size_t length = end - begin - 2 * quoted;
    for (struct plim_config_node *node = table->first; node; node = node->next)
        if (node->key && strlen(node->key) == length &&
            !strncmp(node->key, r->text + begin + quoted, length))
            return node;
    return NULL;
}

/* Finds or creates the table of one part of a key. For an array of tables it is the last table. */
static enum plim_status descend(struct reader *r, const struct key *key, size_t part,
                                struct plim_config_node **table)
{
    struct plim_config_node *found = find_part(r, *table, key, part);
    if (found && found->kind == PLIM_CONFIG_SEQUENCE && found->last) found = found->last;
    if (found && found->kind != PLIM_CONFIG_MAPPING)
        return fail(r, key->begins[part], "this is a value already, expected a table");
    if (!found) {
        enum plim_status st = plim_config_node_add(r->document, *table, PLIM_CONFIG_MAPPING,
                                                   key->begins[part], &found, r->err);
        if (!st) st = name_part(r, found, key, part);
        if (st) return st;
    }
    *table = found;
    return PLIM_OK;
}

/* --- values ----------------------------------------------------------------------------------- */

static enum plim_status read_value(struct reader *r, struct plim_config_node *parent, int depth,
                                   struct plim_config_node **out);

static enum plim_status read_string(struct reader *r, struct plim_config_node *node)
{
    const char *start = r->text + r->at;
    char quotes[4] = {start[0], start[0], start[0], '\0'};
    bool block = !strncmp(start, quotes, 3);
    if (!block) {
        enum plim_status st = skip_quoted(r);
        if (st) return st;
        return plim_config_node_text(r->document, node, PLIM_CONFIG_QUOTED, r->at, start + 1,
                                     (size_t)(r->text + r->at - start) - 2, r->err);
    }
    const char *end = start + 3;
    while ((end = strstr(end, quotes)) && start[0] == '"' && end[-1] == '\\') end++;
    if (!end) return fail(r, r->at, "the quotes that open here are not closed");
    while (end[3] == start[0]) end++;
    r->at = (size_t)(end + 3 - r->text);
    return plim_config_node_text(r->document, node, PLIM_CONFIG_BLOCK, r->at, start + 3,
                                 (size_t)(end - start) - 3, r->err);
}

/* Reads a number, date or boolean. Only its characters are checked. */
static enum plim_status read_word(struct reader *r, struct plim_config_node *node)
{
    const char *word = r->text + r->at;
    size_t length = strcspn(word, " \t\r\n,]}#");
    bool date = length >= 10 && word[4] == '-' && word[7] == '-';
    if (length == 10 && date && word[10] == ' ' && word[11] >= '0' && word[11] <= '9')
        length += 1 + strcspn(word + 11, " \t\r\n,]}#");
    size_t sign = length && (word[0] == '-' || word[0] == '+');
    bool number = length > sign && word[sign] >= '0' && word[sign] <= '9' &&
                  strspn(word + sign, "0123456789abcdefABCDEFoxXT_.+-:Z ") >= length - sign;
    static const char *const words[] = {"true", "false", "inf", "nan"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t skip = i < 2 ? 0 : sign;
        number |=
            length - skip == strlen(words[i]) && !strncmp(word + skip, words[i], length - skip);
    }
    if (!number)
        return fail(r, r->at,
                    length ? "expected a number, a date, true, false or a string in quotes"
                           : "expected a value");
    r->at += length;
    return plim_config_node_text(r->document, node, PLIM_CONFIG_PLAIN, r->at, word, length, r->err);
}

static enum plim_status read_array(struct reader *r, struct plim_config_node *node, int depth)
{
    size_t start = r->at++;
    for (;;) {
        struct plim_config_node *item;
        skip_lines(r);
        if (r->text[r->at] == ']') break;
        if (!r->text[r->at]) return fail(r, start, "the bracket that opens here is not closed");
        enum plim_status st = read_value(r, node, depth + 1, &item);
        if (st) return st;
        skip_lines(r);
        if (r->text[r->at] == ',')
            r->at++;
        else if (r->text[r->at] != ']')
            return fail(r, r->at, "expected , or ]");
    }
    node->end = ++r->at;
    return PLIM_OK;
}

static enum plim_status read_pair(struct reader *r, struct plim_config_node *table, int depth)
{
    struct key key;
    struct plim_config_node *value, *before;
    enum plim_status st;
    PLIM_TRY(read_key(r, &key));
    for (size_t i = 0; i + 1 < key.count; i++) PLIM_TRY(descend(r, &key, i, &table));
    before = find_part(r, table, &key, key.count - 1);
    if (before)
        return plim_config_fail(r->document, key.begins[0], r->err,
                                "not valid TOML: the key '%.80s' is in line %d already",
                                before->key, plim_config_line(r->document, before->key_begin));
    if (r->text[r->at] != '=') return fail(r, r->at, "expected =");
    r->at++;
    skip_blanks(r);
    PLIM_TRY(read_value(r, table, depth, &value));
    PLIM_TRY(name_part(r, value, &key, key.count - 1));
out:
    return st;
}

static enum plim_status read_inline(struct reader *r, struct plim_config_node *node, int depth)
{
    r->at++;
    skip_blanks(r);
    for (bool more = r->text[r->at] != '}'; more;) {
        enum plim_status st = read_pair(r, node, depth + 1);
        if (st) return st;
        skip_blanks(r);
        more = r->text[r->at] == ',';
        if (more)
            r->at++;
        else if (r->text[r->at] != '}')
            return fail(r, r->at, "expected , or }");
        skip_blanks(r);
    }
    node->end = ++r->at;
    return PLIM_OK;
}

static enum plim_status read_value(struct reader *r, struct plim_config_node *parent, int depth,
                                   struct plim_config_node **out)
{
    char first = r->text[r->at];
    enum plim_config_kind kind = first == '{'   ? PLIM_CONFIG_MAPPING
                                 : first == '[' ? PLIM_CONFIG_SEQUENCE
                                                : PLIM_CONFIG_SCALAR;
    if (depth > MAX_DEPTH) return fail(r, r->at, "nested deeper than expected");
    enum plim_status st = plim_config_node_add(r->document, parent, kind, r->at, out, r->err);
    if (st) return st;
    (*out)->layout = PLIM_CONFIG_FLOW;
    if (first == '{') return read_inline(r, *out, depth);
    if (first == '[') return read_array(r, *out, depth);
    if (first == '"' || first == '\'') return read_string(r, *out);
    return read_word(r, *out);
}

/* --- tables ----------------------------------------------------------------------------------- */

/* Adds a table to an array of tables: [[a.b]]. */
static enum plim_status open_item(struct reader *r, const struct key *key, size_t start)
{
    struct plim_config_node *array = find_part(r, r->table, key, key->count - 1);
    enum plim_status st = PLIM_OK;
    if (array && array->kind != PLIM_CONFIG_SEQUENCE)
        return fail(r, start, "this was not an array of tables before");
    if (!array) {
        PLIM_TRY(plim_config_node_add(r->document, r->table, PLIM_CONFIG_SEQUENCE, start, &array,
                                      r->err));
        PLIM_TRY(name_part(r, array, key, key->count - 1));
    }
    PLIM_TRY(
        plim_config_node_add(r->document, array, PLIM_CONFIG_MAPPING, start, &r->table, r->err));
out:
    return st;
}

static enum plim_status open_table(struct reader *r)
{
    size_t start = r->at;
    bool array = r->text[r->at + 1] == '[';
    struct key key;
    enum plim_status st;
    r->at += 1 + array;
    PLIM_TRY(read_key(r, &key));
    if (r->text[r->at] != ']' || (array && r->text[r->at + 1] != ']'))
        return fail(r, r->at, "expected ]");
    r->at += 1 + array;
    r->table = r->document->root;
    for (size_t i = 0; i + 1 < key.count; i++) PLIM_TRY(descend(r, &key, i, &r->table));
    PLIM_TRY(array ? open_item(r, &key, start) : descend(r, &key, key.count - 1, &r->table));
    if (!array && r->table->end > r->table->begin)
        return plim_config_fail(r->document, start, r->err,
                                "not valid TOML: the table is in line %d already",
                                plim_config_line(r->document, r->table->begin));
    r->table->begin = start;
    r->table->end = r->at;
    PLIM_TRY(end_line(r));
out:
    return st;
}

enum plim_status plim_config_read_toml(struct plim_config_document *document,
                                       struct plim_error *err)
{
    struct reader r = {document, err, document->text, document->bom, NULL};
    enum plim_status st = plim_config_node_add(document, NULL, PLIM_CONFIG_MAPPING, document->bom,
                                               &document->root, err);
    r.table = document->root;
    while (!st) {
        skip_lines(&r);
        if (r.at >= document->length) break;
        if (r.text[r.at] == '[') {
            st = open_table(&r);
        } else {
            st = read_pair(&r, r.table, 1);
            if (!st) st = end_line(&r);
        }
    }
    return st;
}
