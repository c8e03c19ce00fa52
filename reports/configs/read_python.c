/* Python: assignments, dict literals, keyword arguments of calls, and the defaults of parameters, dataclass fields and
 * argparse options. Any other expression is kept as text. */
#include "config_format.h"
#include <ctype.h>
#include <string.h>

enum { MAX_DEPTH = 100, MAX_BRACKETS = 200, MAX_BLOCKS = 64, PARTS = 16 };

struct span {
    size_t begin, end;
};

struct block {
    size_t indent;
    struct plim_config_node *mapping;
};

struct reader {
    struct plim_config_document *document;
    struct plim_error *err;
    const char *text;
    size_t block_count;
    struct block blocks[MAX_BLOCKS]; /* the file, then the classes and functions around the current line */
};

static enum plim_status fail(struct reader *r, size_t at, const char *what)
{
    return plim_config_fail(r->document, at, r->err, "not valid Python: %s", what);
}

/* --- tokens ----------------------------------------------------------------------------------- */

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_quote(char c)
{
    return c == '"' || c == '\'';
}

/* Advances *at past the string that begins there. False if it is not closed. */
static bool skip_string(const char *text, size_t *at)
{
    char quote = text[*at];
    bool block = text[*at + 1] == quote && text[*at + 2] == quote;
    size_t need = block ? 3 : 1;
    for (*at += need; text[*at]; ++*at) {
        if (text[*at] == '\\' && text[*at + 1]) {
            ++*at;
        } else if (text[*at] == '\n' && !block) {
            return false;
        } else if (text[*at] == quote &&
                   (!block || (text[*at + 1] == quote && text[*at + 2] == quote))) {
            *at += need;
            return true;
        }
    }
    return false;
}

/* Skips blanks, line ends, backslashes of continued lines, and comments. */
static size_t skip_space(const char *text, size_t at, size_t end)
{
    while (at < end) {
        if (strchr(" \t\r\n\\", text[at]))
            at++;
        else if (text[at] == '#')
            at += strcspn(text + at, "\n");
        else
            break;
    }
    return at < end ? at : end;
}

static size_t trim(const char *text, size_t begin, size_t end)
{
    while (end > begin && strchr(" \t\r\n\\", text[end - 1])) end--;
    return end;
}

/* Returns the offset of the first of `marks` outside of brackets, strings and comments, or `end`. *last becomes the end
 * of the last token before it. */
static size_t find_outside(const char *text, size_t at, size_t end, const char *marks, size_t *last)
{
    size_t depth = 0;
    *last = at;
    while (at < end) {
        char c = text[at];
        if (c == '#') {
            at += strcspn(text + at, "\n");
            continue;
        }
        if (!depth && strchr(marks, c)) return at;
        if (is_quote(c)) {
            if (!skip_string(text, &at)) return end;
            *last = at;
            continue;
        }
        if (strchr("([{", c)) depth++;
        if (strchr(")]}", c) && depth) depth--;
        at++;
        if (!strchr(" \t\r\n\\", c)) *last = at;
    }
    return end;
}

/* --- expressions ------------------------------------------------------------------------------ */

static enum plim_status read_expression(struct reader *r, struct span span,
                                        struct plim_config_node *parent, int depth,
                                        struct plim_config_node **out);

static enum plim_status name_node(struct reader *r, struct plim_config_node *node, struct span key)
{
    bool quoted = key.end > key.begin + 1 && is_quote(r->text[key.begin]);
    return plim_config_node_name(r->document, node, r->text + key.begin + quoted,
                                 key.end - key.begin - 2 * quoted, key.begin, key.end, r->err);
}

/* Reads name=value of a call, "name": value of a dict, or a value without a name. */
static enum plim_status read_item(struct reader *r, struct span span, char mark,
                                  struct plim_config_node *parent, int depth)
{
    size_t last, at = find_outside(r->text, span.begin, span.end, (char[]){mark, '\0'}, &last);
    struct span key = {span.begin, last}, value = {at + 1, span.end};
    struct plim_config_node *node;
    bool pair =
        at < span.end && r->text[at + 1] != '=' && (at == 0 || !strchr("=!<>", r->text[at - 1]));
    for (size_t i = key.begin; pair && mark == '=' && i < key.end; i++) pair = is_name(r->text[i]);
    if (mark == ':' && pair) pair = is_quote(r->text[key.begin]) || is_name(r->text[key.begin]);
    if (!pair) return read_expression(r, span, parent, depth, &node);
    enum plim_status st = read_expression(r, value, parent, depth, &node);
    if (!st && node) st = name_node(r, node, key);
    return st;
}

static enum plim_status read_items(struct reader *r, struct span inside, char mark,
                                   struct plim_config_node *node, int depth)
{
    enum plim_status st = PLIM_OK;
    for (size_t at = inside.begin; at < inside.end && !st;) {
        size_t last, comma = find_outside(r->text, at, inside.end, ",", &last);
        size_t begin = skip_space(r->text, at, comma);
        if (begin < comma) st = read_item(r, (struct span){begin, last}, mark, node, depth + 1);
        at = comma + 1;
    }
    return st;
}

/* Names a default after the option or field that it belongs to. */
static enum plim_status rename_node(struct reader *r, struct plim_config_node *node, const char *name, size_t length)
{
    node->renamed = true;
    return plim_config_node_name(r->document, node, name, length, node->key_begin, node->key_end, r->err);
}

/* Names the default in argparse's add_argument("--name", default=4), and similar calls, after the option. */
static enum plim_status adopt_option(struct reader *r, struct plim_config_node *call,
                                     struct span function)
{
    static const char *const functions[] = {"add_argument", "option", "DEFINE_integer", "add_arg"};
    struct plim_config_node *value = plim_config_get(call, "default"), *name = NULL;
    size_t begin = function.end;
    bool known = false;
    while (begin > function.begin && r->text[begin - 1] != '.') begin--;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
        known |= strlen(functions[i]) == function.end - begin &&
                 !strncmp(r->text + begin, functions[i], function.end - begin);
    for (struct plim_config_node *node = call->first; known && node; node = node->next) {
        if (node->key || node->kind != PLIM_CONFIG_SCALAR) continue;
        bool quoted = node->style == PLIM_CONFIG_QUOTED;
        if (quoted && (!name || strlen(node->text) > strlen(name->text)))
            name = node;
        else if (!value && name && r->text[begin] == 'D')
            value = node;
    }
    if (!known || !value || !name || value->kind != PLIM_CONFIG_SCALAR) return PLIM_OK;
    return rename_node(r, value, name->text, strlen(name->text));
}

/* Reads a call that is the whole expression: name(...). */
static enum plim_status read_call(struct reader *r, struct span span, size_t open,
                                  struct plim_config_node *parent, int depth,
                                  struct plim_config_node **out)
{
    enum plim_status st =
        plim_config_node_add(r->document, parent, PLIM_CONFIG_MAPPING, open, out, r->err);
    if (st) return st;
    (*out)->layout = PLIM_CONFIG_FLOW;
    (*out)->end = span.end;
    size_t begin = open;
    while (begin > span.begin && r->text[begin - 1] != '.') begin--;
    (*out)->function = plim_arena_text(&r->document->arena, r->text + begin, open - begin);
    if (!(*out)->function) return plim_no_memory(r->err);
    st = read_items(r, (struct span){open + 1, span.end - 1}, '=', *out, depth);
    return st ? st : adopt_option(r, *out, (struct span){span.begin, open});
}

static enum plim_status read_list(struct reader *r, struct span span,
                                  struct plim_config_node *parent, int depth,
                                  struct plim_config_node **out)
{
    size_t last, inner = find_outside(r->text, span.begin + 1, span.end - 1, ":", &last);
    bool dict =
        r->text[span.begin] == '{' &&
        (inner < span.end - 1 || skip_space(r->text, span.begin + 1, span.end - 1) == span.end - 1);
    enum plim_status st =
        plim_config_node_add(r->document, parent, dict ? PLIM_CONFIG_MAPPING : PLIM_CONFIG_SEQUENCE,
                             span.begin, out, r->err);
    if (st) return st;
    (*out)->layout = PLIM_CONFIG_FLOW;
    (*out)->end = span.end;
    return read_items(r, (struct span){span.begin + 1, span.end - 1}, dict ? ':' : '\0', *out,
                      depth);
}

/* Returns the offset after the bracket that closes the one at `open`; 0 if it is not closed before `end`. */
static size_t behind_bracket(const char *text, size_t open, size_t end)
{
    size_t depth = 0;
    for (size_t at = open; at < end;) {
        char c = text[at];
        if (c == '#') {
            at += strcspn(text + at, "\n");
            continue;
        }
        if (is_quote(c)) {
            if (!skip_string(text, &at)) return 0;
            continue;
        }
        if (strchr("([{", c)) depth++;
        if (strchr(")]}", c) && !--depth) return at + 1;
        at++;
    }
    return 0;
}

/* True if the text is only calls of methods that return their object: f(x).to("cuda").train() is f(x). */
static bool are_own_methods(const char *text, size_t at, size_t end)
{
    static const char *const methods[] = {".to(", ".cuda(", ".train(", ".eval("};
    while (at && at < end) {
        size_t length = 0;
        for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]) && !length; i++)
            if (!strncmp(text + at, methods[i], strlen(methods[i]))) length = strlen(methods[i]);
        if (!length) return false;
        at = behind_bracket(text, at + length - 1, end);
    }
    return at == end;
}

static enum plim_status read_scalar(struct reader *r, struct span span,
                                    struct plim_config_node *parent, struct plim_config_node **out)
{
    const char *text = r->text;
    size_t at = span.begin;
    enum plim_config_style style = PLIM_CONFIG_CODE;
    while (at < span.end && at < span.begin + 2 && isalpha((unsigned char)text[at])) at++;
    bool string =
        at < span.end && is_quote(text[at]) && !memchr(text + span.begin, 'f', at - span.begin);
    size_t quote = at;
    if (string && skip_string(text, &at) && at == span.end)
        style = at - quote >= 6 && text[quote + 1] == text[quote] && text[quote + 2] == text[quote]
                    ? PLIM_CONFIG_BLOCK
                    : PLIM_CONFIG_QUOTED;
    size_t skip = style == PLIM_CONFIG_QUOTED ? 1 : 0;
    size_t from = style == PLIM_CONFIG_QUOTED ? quote : span.begin;
    enum plim_status st =
        plim_config_node_add(r->document, parent, PLIM_CONFIG_SCALAR, from, out, r->err);
    if (st) return st;
    return plim_config_node_text(r->document, *out, style, span.end, text + from + skip,
                                 span.end - from - 2 * skip, r->err);
}

static enum plim_status read_expression(struct reader *r, struct span span,
                                        struct plim_config_node *parent, int depth,
                                        struct plim_config_node **out)
{
    *out = NULL;
    span.begin = skip_space(r->text, span.begin, span.end);
    size_t last, name = span.begin;
    (void)find_outside(r->text, span.begin, span.end, "", &last);
    span.end = trim(r->text, span.begin, last);
    if (span.begin >= span.end) return PLIM_OK;
    if (depth > MAX_DEPTH) return fail(r, span.begin, "nested deeper than expected");
    while (name < span.end && (is_name(r->text[name]) || r->text[name] == '.')) name++;
    char open = r->text[name];
    size_t behind = name < span.end && strchr("([{", open) ? behind_bracket(r->text, name, span.end) : 0;
    bool whole = behind == span.end;
    if (behind && name > span.begin && open == '(' && are_own_methods(r->text, behind, span.end))
        return read_call(r, (struct span){span.begin, behind}, name, parent, depth, out);
    if (whole && open == '(' && name > span.begin)
        return read_call(r, span, name, parent, depth, out);
    size_t comma;
    bool tuple = whole && open == '(' &&
                 find_outside(r->text, name + 1, span.end - 1, ",", &comma) < span.end - 1;
    if (whole && name == span.begin && (open != '(' || tuple))
        return read_list(r, span, parent, depth, out);
    return read_scalar(r, span, parent, out);
}

/* --- statements ------------------------------------------------------------------------------- */

/* Splits a target into parts: a.b["c"] is a, b, c. Returns their number; 0 for any other kind of target. */
static size_t target_parts(const char *text, struct span span, struct span *parts)
{
    size_t count = 0, at = span.begin;
    while (at < span.end && count < PARTS) {
        size_t begin = at;
        if (text[at] == '[') {
            begin = ++at;
            if (!is_quote(text[at]) || !skip_string(text, &at) || text[at] != ']') return 0;
            parts[count++] = (struct span){begin, at++};
        } else {
            while (at < span.end && is_name(text[at])) at++;
            if (at == begin) return 0;
            parts[count++] = (struct span){begin, at};
        }
        if (at < span.end && text[at] == '.')
            at++;
        else if (at < span.end && text[at] != '[')
            return 0;
    }
    return at >= span.end ? count : 0;
}

/* Finds or creates the mapping of all parts but the last. */
static enum plim_status descend(struct reader *r, const struct span *parts, size_t count,
                                struct plim_config_node **mapping)
{
    enum plim_status st = PLIM_OK;
    for (size_t i = 0; i + 1 < count && !st; i++) {
        bool quoted = is_quote(r->text[parts[i].begin]);
        size_t begin = parts[i].begin + quoted, length = parts[i].end - parts[i].begin - 2 * quoted;
        struct plim_config_node *node = (*mapping)->first;
        while (node &&
               !(node->key && node->kind == PLIM_CONFIG_MAPPING && strlen(node->key) == length &&
                 !strncmp(node->key, r->text + begin, length)))
            node = node->next;
        if (!node) {
            st = plim_config_node_add(r->document, *mapping, PLIM_CONFIG_MAPPING, parts[i].begin,
                                      &node, r->err);
            if (!st) st = name_node(r, node, parts[i]);
        }
        *mapping = node;
    }
    return st;
}

/* True for x *= 1, and x *= n where n is 1: the value does not change. */
static bool is_factor_one(const struct reader *r, struct span value)
{
    size_t begin = skip_space(r->text, value.begin, value.end),
           end = trim(r->text, begin, value.end);
    if (end == begin + 1 && r->text[begin] == '1') return true;
    for (const struct plim_config_node *node = r->document->root->first; node; node = node->next)
        if (node->key && strlen(node->key) == end - begin && node->text &&
            !strcmp(node->text, "1") && !strncmp(node->key, r->text + begin, end - begin))
            return true;
    return false;
}

/* Returns the default of a field, as in x: int = field(default=4); NULL if the value is not such a call. */
static struct plim_config_node *field_default(const struct reader *r, struct plim_config_node *node, struct span value)
{
    static const char *const functions[] = {"field(", "dataclasses.field(", "Field(", "pydantic.Field("};
    const char *text = r->text + skip_space(r->text, value.begin, value.end);
    struct plim_config_node *given = plim_config_get(node, "default");
    if (!given || given->kind != PLIM_CONFIG_SCALAR) return NULL;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
        if (!strncmp(text, functions[i], strlen(functions[i]))) return given;
    return NULL;
}

static enum plim_status read_assignment(struct reader *r, struct span target, struct span value,
                                        char op)
{
    struct span parts[PARTS];
    size_t last, colon = find_outside(r->text, target.begin, target.end, ":", &last);
    target.end = trim(r->text, target.begin, colon < target.end ? last : target.end);
    size_t count = target_parts(r->text, target, parts);
    struct plim_config_node *mapping = r->blocks[r->block_count - 1].mapping, *node = NULL;
    enum plim_status st;
    if (op == '*' && is_factor_one(r, value)) return PLIM_OK;
    if (!count) return read_expression(r, value, mapping, 0, &node);
    if ((st = descend(r, parts, count, &mapping))) return st;
    if (op) {
        value.begin = target.begin;
        st = read_scalar(r, (struct span){value.begin, trim(r->text, value.begin, value.end)},
                         mapping, &node);
    } else {
        st = read_expression(r, value, mapping, 0, &node);
    }
    struct plim_config_node *given = !st && node && !op ? field_default(r, node, value) : NULL;
    const struct span name = parts[count - 1];
    if (given)
        return rename_node(r, given, r->text + name.begin, name.end - name.begin);
    if (!st && node) st = name_node(r, node, name);
    return st;
}

static bool begins_with(const struct reader *r, struct span line, const char *word)
{
    size_t length = strlen(word);
    return line.end - line.begin > length && !strncmp(r->text + line.begin, word, length) &&
           !is_name(r->text[line.begin + length]);
}

/* Opens the mapping of a class or function. The parameters of a function that have defaults become its members. */
static enum plim_status open_block(struct reader *r, struct span line, size_t indent)
{
    size_t at = line.begin + strcspn(r->text + line.begin, " \t");
    at = skip_space(r->text, at, line.end);
    struct span name = {at, at};
    struct plim_config_node *mapping;
    while (is_name(r->text[name.end])) name.end++;
    enum plim_status st = plim_config_node_add(r->document, r->blocks[r->block_count - 1].mapping,
                                               PLIM_CONFIG_MAPPING, line.begin, &mapping, r->err);
    if (!st) st = name_node(r, mapping, name);
    if (st || r->block_count == MAX_BLOCKS) return st;
    r->blocks[r->block_count++] = (struct block){indent, mapping};
    if (r->text[name.end] != '(' || !begins_with(r, line, "def")) return PLIM_OK;
    size_t last, close = find_outside(r->text, name.end + 1, line.end, ")", &last);
    for (size_t from = name.end + 1; from < close && !st;) {
        size_t comma = find_outside(r->text, from, close, ",", &last);
        size_t begin = skip_space(r->text, from, comma), equal;
        size_t behind;
        equal = find_outside(r->text, begin, comma, "=", &behind);
        if (begin < comma && equal < comma)
            st = read_assignment(r, (struct span){begin, behind}, (struct span){equal + 1, last},
                                 '\0');
        from = comma + 1;
    }
    return st;
}

/* Returns the offset of the = of an assignment, or line.end if there is none. *op becomes the operator of an augmented
 * assignment (* of *=), otherwise '\0'. */
static size_t assignment_mark(const char *text, struct span line, char *op)
{
    size_t at = line.begin, last;
    *op = '\0';
    while ((at = find_outside(text, at, line.end, "=", &last)) < line.end) {
        if (text[at + 1] == '=')
            at += 2;
        else if (at > line.begin && strchr("!<>:", text[at - 1]))
            at++;
        else
            break;
    }
    if (at < line.end && at > line.begin && strchr("+-*/%|&^@", text[at - 1])) *op = text[at - 1];
    return at;
}

static enum plim_status read_statement(struct reader *r, struct span line, size_t indent)
{
    static const char *const others[] = {"if",  "elif",   "else",    "for",    "while",  "with",
                                         "try", "except", "finally", "import", "from",   "assert",
                                         "del", "raise",  "pass",    "lambda", "global", "print"};
    struct plim_config_node *node;
    char op;
    while (r->block_count > 1 && indent <= r->blocks[r->block_count - 1].indent) r->block_count--;
    if (begins_with(r, line, "async")) line.begin = skip_space(r->text, line.begin + 5, line.end);
    if (begins_with(r, line, "class") || begins_with(r, line, "def")) return open_block(r, line, indent);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (begins_with(r, line, others[i])) return PLIM_OK;
    if (begins_with(r, line, "return")) line.begin += 6;
    if (r->text[line.begin] == '@') line.begin++;
    size_t mark = assignment_mark(r->text, line, &op);
    struct span value = {mark + 1, line.end};
    if (mark == line.end)
        return read_expression(r, line, r->blocks[r->block_count - 1].mapping, 0, &node);
    return read_assignment(
        r, (struct span){line.begin, trim(r->text, line.begin, mark - (op != '\0'))}, value, op);
}

/* Finds the end of a logical line: brackets are closed and no backslash continues it. */
static enum plim_status end_of_statement(struct reader *r, size_t at, size_t *end)
{
    char brackets[MAX_BRACKETS];
    size_t places[MAX_BRACKETS], depth = 0;
    for (char c; (c = r->text[at]) && (c != '\n' || depth); at++) {
        if (c == '#') {
            at += strcspn(r->text + at, "\n") - 1;
        } else if (c == '\\' && r->text[at + 1]) {
            at += r->text[at + 1] == '\r' && r->text[at + 2] == '\n' ? 2 : 1;
        } else if (is_quote(c)) {
            size_t start = at;
            if (!skip_string(r->text, &at))
                return fail(r, start, "the quote that opens here is not closed");
            at--;
        } else if (strchr("([{", c)) {
            if (depth == MAX_BRACKETS) return fail(r, at, "nested deeper than expected");
            places[depth] = at;
            brackets[depth++] = c == '(' ? ')' : c == '[' ? ']' : '}';
        } else if (strchr(")]}", c) && (!depth || brackets[--depth] != c)) {
            return fail(r, at, "this bracket closes nothing");
        }
    }
    *end = at;
    return depth ? fail(r, places[depth - 1], "the bracket that opens here is not closed")
                 : PLIM_OK;
}

enum plim_status plim_config_read_python(struct plim_config_document *document,
                                         struct plim_error *err)
{
    struct reader r = {.document = document, .err = err, .text = document->text, .block_count = 1};
    enum plim_status st = plim_config_node_add(document, NULL, PLIM_CONFIG_MAPPING, document->bom,
                                               &document->root, err);
    r.blocks[0].mapping = document->root;
    for (size_t at = document->bom; at < document->length && !st;) {
        size_t begin = at + strspn(r.text + at, " \t\r"), end = begin, last;
        st = end_of_statement(&r, begin, &end);
        if (st) break;
        (void)find_outside(r.text, begin, end, "", &last);
        struct plim_config_node *root = document->root, *before = root->last;
        if (last > begin && r.text[begin] != '#' && r.text[begin] != '\n')
            st = read_statement(&r, (struct span){begin, last}, begin - at);
        if (root->last != before) root->last->conditional = begin > at;
        at = end + (end < document->length);
    }
    return st;
}
