#include "config_format.h"
#include "splice.h"
#include <stdio.h>
#include <string.h>

/* --- style of the new entry, taken from a sibling --------------------------------------------- */

struct added {
    struct plim_config_file *file;
    struct plim_config_document *document;
    struct plim_config_node *mapping, *sibling; /* `sibling` is NULL if the mapping has no entry to copy the style
                                                 * from */
    const char *under, *key;
    const char *value;
    struct plim_error *err;
};

static bool is_blank_between(const char *text, size_t from, size_t to)
{
    return strspn(text + from, " \t") >= to - from;
}

/* True if the sibling is the first thing on its line. */
static bool has_own_line(const struct added *a)
{
    size_t begin = plim_config_line_begin(a->document, a->sibling->key_begin);
    return is_blank_between(a->document->text, begin, a->sibling->key_begin);
}

/* Writes the indentation of the sibling's line. The dash of a YAML list item becomes a space. */
static void write_lead(const struct added *a, FILE *out)
{
    const char *text = a->document->text;
    bool data = a->document->format->language == PLIM_CONFIG_DATA &&
                strcmp(a->document->format->name, "toml") != 0;
    for (size_t at = plim_config_line_begin(a->document, a->sibling->key_begin);
         at < a->sibling->key_begin; at++)
        fputc(data && text[at] != '\t' ? ' ' : text[at], out);
}

/* Returns an option whose dashes to copy: `like`, or a long option of the command if `like` is a short one ("-b"). */
static const char *long_option(const struct added *a, const char *like)
{
    if (like[0] != '-' || !like[1] || like[2] || a->mapping->layout != PLIM_CONFIG_WORDS) return like;
    /* earlier options belong to the launcher */
    for (const struct plim_config_node *node = a->sibling->next; node; node = node->next)
        if (node->key && !strncmp(node->key, "--", 2) && strpbrk(node->key + 2, "-_")) return node->key;
    return "--with-dashes";
}

/* Writes a key with the quotes of the sibling's key, and with its dashes before and within the name. */
static void write_key(const struct added *a, const char *key, FILE *out)
{
    const char *like = long_option(a, a->sibling && a->sibling->key ? a->sibling->key : "");
    char quote = a->sibling ? a->document->text[a->sibling->key_begin] : '\0';
    size_t dashes = strspn(like, "-");
    bool dashed = strchr(like + dashes, '-') && !strchr(like, '_');
    if (!a->sibling && !strncmp(a->document->format->name, "json", 4)) quote = '"';
    bool quoted = quote == '"' || quote == '\'';
    if (quoted) fputc(quote, out);
    if (dashes && key[0] != '-') fprintf(out, "%.*s", (int)dashes, like);
    for (; *key; key++) fputc(dashed && *key == '_' ? '-' : *key, out);
    if (quoted) fputc(quote, out);
}

/* Writes the separator between key and value: the sibling's if it is a usual one, otherwise that of the format. */
static void write_separator(const struct added *a, FILE *out)
{
    static const char *const usual[] = {": ", ":", " : ", " = ", "=", " =", "= ", " "};
    const struct plim_config_node *sibling = a->sibling;
    const char *separator = a->mapping->layout == PLIM_CONFIG_WORDS ? " " : a->document->format->separator;
    size_t between = sibling && sibling->begin > sibling->key_end ? sibling->begin - sibling->key_end : 0;
    bool is_python = a->document->format->language == PLIM_CONFIG_PYTHON;
    if (is_python && between > 3 && a->document->text[sibling->key_end] == ':') {
        fwrite(a->document->text + sibling->key_end, 1, between, out); /* a field of a class with its type annotation */
        return;
    }
    for (size_t i = 0; sibling && i < sizeof(usual) / sizeof(usual[0]); i++) {
        size_t length = strlen(usual[i]), quoted = 0;
        bool same = sibling->begin >= sibling->key_end &&
                    sibling->begin - sibling->key_end == length + quoted &&
                    !strncmp(a->document->text + sibling->key_end, usual[i], length);
        bool shows = sibling->kind == PLIM_CONFIG_SCALAR && sibling->style != PLIM_CONFIG_EMPTY;
        if (same && shows) separator = usual[i];
    }
    fputs(separator, out);
}

static void write_member(const struct added *a, FILE *out)
{
    if (!a->under) {
        write_key(a, a->key, out);
        write_separator(a, out);
        fputs(a->value, out);
    } else if (a->document->format->language == PLIM_CONFIG_PYTHON) {
        const char *equal = a->mapping->layout == PLIM_CONFIG_FLOW ? "=" : " = ";
        fprintf(out, "%s%sdict(%s=%s)", a->under, equal, a->key, a->value);
    } else if (a->mapping->layout == PLIM_CONFIG_FLOW) {
        write_key(a, a->under, out);
        fputs(": {", out);
        write_key(a, a->key, out);
        fprintf(out, ": %s}", a->value);
    } else {
        write_key(a, a->under, out);
        fprintf(out, ":%s", a->document->newline);
        if (a->sibling) write_lead(a, out);
        fprintf(out, "  %s: %s", a->key, a->value);
    }
}

/* --- position of the new entry ---------------------------------------------------------------- */

static enum plim_status push(struct added *a, size_t at, char *text, bool filler)
{
    const char *key = a->under ? a->under : a->key; /* copied: the edit outlives the caller's text */
    struct plim_config_edit edit = {
        .begin = at,
        .end = at,
        .text = text ? plim_arena_text(&a->document->arena, text, strlen(text)) : NULL,
        .parent = a->mapping,
        .key = plim_arena_text(&a->document->arena, key, strlen(key)),
        .line = plim_config_line(a->document, at),
        .filler = filler,
    };
    edit.new = plim_arena_text(&a->document->arena, a->value, strlen(a->value));
    edit.path = filler ? "" : plim_config_path(a->document, a->mapping);
    if (!edit.key || !edit.text || !edit.new || !edit.path || PLIM_ARRAY_PUSH(&a->file->edits, edit) != PLIM_OK)
        return plim_no_memory(a->err);
    return PLIM_OK;
}

/* Inserts `before`, a line break and the indentation if `own_line`, the new entry, and `after`. */
static enum plim_status push_member(struct added *a, size_t at, const char *before, bool own_line,
                                    const char *after)
{
    struct plim_text_stream stream;
    char *text = NULL;
    FILE *out = plim_text_stream_open(&stream);
    if (out) {
        fputs(before, out);
        if (own_line) fputs(a->document->newline, out), write_lead(a, out);
        write_member(a, out);
        fputs(after, out);
    }
    enum plim_status st = plim_text_stream_close(&stream, &text);
    st = st ? plim_no_memory(a->err) : push(a, at, text, false);
    free(text);
    return st;
}

/* Inserts the new entry before the first one, which moves to a line of its own. */
static enum plim_status insert_first(struct added *a, struct plim_config_node *first)
{
    struct plim_text_stream stream;
    char *text = NULL;
    a->sibling = first;
    FILE *out = plim_text_stream_open(&stream);
    if (out) {
        write_member(a, out);
        fputs(a->document->newline, out);
        write_lead(a, out);
    }
    enum plim_status st = plim_text_stream_close(&stream, &text);
    st = st ? plim_no_memory(a->err) : push(a, first->key_begin, text, false);
    free(text);
    return st;
}

/* Returns the last top-level statement of a Python file that always runs, or NULL. A new one can follow it. */
static const struct plim_config_node *last_statement(const struct added *a)
{
    const struct plim_config_node *last = NULL;
    if (a->document->format->language != PLIM_CONFIG_PYTHON || a->mapping->parent) return NULL;
    for (const struct plim_config_node *node = a->mapping->first; node; node = node->next)
        if (node->key && !node->conditional &&
            plim_config_line_begin(a->document, node->key_begin) == node->key_begin)
            last = node;
    return last;
}

static enum plim_status insert_line(struct added *a)
{
    const struct plim_config_document *document = a->document;
    const struct plim_config_node *last = a->sibling ? NULL : last_statement(a);
    if (last)
        return push_member(a, plim_config_line_end(document, last->end), document->newline, false,
                           "");
    if (a->sibling)
        return push_member(a, plim_config_line_end(document, a->sibling->end), "", true, "");
    if (a->mapping->first && !strcmp(document->format->name, "yaml"))
        return insert_first(a, a->mapping->first);
    if (a->mapping->end > a->mapping->begin && a->mapping->parent) /* after the header of a table */
        return push_member(a, plim_config_line_end(document, a->mapping->end), document->newline,
                           false, "");
    return plim_config_fail(document, a->mapping->begin, a->err,
                            "'%s' cannot be added here: there is nothing beside it", a->key);
}

/* Returns the offset of the first character that is neither blank nor part of a comment. `lines`: crosses line ends. */
static size_t skip_comments(const struct plim_config_document *document, size_t at, bool lines)
{
    const char *text = document->text;
    const char *blanks = lines ? " \t\r\n" : " \t";
    bool slashes = !strncmp(document->format->name, "json", 4);
    for (;;) {
        at += strspn(text + at, blanks);
        bool line = text[at] == '#' || (slashes && text[at] == '/' && text[at + 1] == '/');
        const char *close =
            slashes && text[at] == '/' && text[at + 1] == '*' ? strstr(text + at + 2, "*/") : NULL;
        if (line)
            at = plim_config_line_end(document, at);
        else if (close)
            at = (size_t)(close + 2 - text);
        else
            return at;
        if (line && !lines) return at;
    }
}

static enum plim_status insert_flow(struct added *a)
{
    const struct plim_config_document *document = a->document;
    if (!a->sibling) {
        const char *open = strpbrk(document->text + a->mapping->begin, "{(");
        size_t at = open ? (size_t)(open + 1 - document->text) : a->mapping->begin;
        return push_member(a, at, "", false, a->mapping->first ? ", " : "");
    }
    size_t end = a->sibling->end, comma = skip_comments(document, end, true);
    bool followed = document->text[comma] == ',', own_line = has_own_line(a);
    size_t behind = followed ? comma + 1 : end;
    size_t line_end = plim_config_line_end(document, behind);
    own_line = own_line && skip_comments(document, behind, false) >= line_end;
    if (followed)
        return push_member(a, own_line ? line_end : behind, own_line ? "" : " ", own_line, ",");
    if (!own_line) return push_member(a, end, ", ", false, "");
    if (line_end == end) return push_member(a, end, ",", true, "");
    enum plim_status st = push(a, end, (char[]){","}, true);
    return st ? st : push_member(a, line_end, "", true, "");
}

static bool goes_on(const struct plim_config_document *document, size_t at)
{
    size_t end = plim_config_line_end(document, at);
    while (end > at && strchr(" \t", document->text[end - 1])) end--;
    return end > 0 && document->text[end - 1] == '\\';
}

static enum plim_status insert_word(struct added *a)
{
    const struct plim_config_document *document = a->document;
    size_t end = a->sibling ? a->sibling->end : 0;
    if (!a->sibling)
        return plim_config_fail(document, a->mapping->begin, a->err,
                                "'%s' cannot be added here: there is nothing beside it", a->key);
    char before = a->sibling->key_begin ? document->text[a->sibling->key_begin - 1] : '\0';
    /* the whole word is quoted: 'data.batch_size=64' */
    if ((before == '\'' || before == '"') && document->text[end] == before)
        return push_member(a, end + 1, " ", false, "");
    size_t begin = plim_config_line_begin(document, a->sibling->key_begin);
    bool continued = goes_on(document, end) || (begin > 1 && goes_on(document, begin - 2));
    if (!has_own_line(a)) return push_member(a, end, " ", false, "");
    if (continued) return push_member(a, end, " \\", true, "");
    return push_member(a, plim_config_line_end(document, end), "", true, "");
}

/* True if an entry can be added beside `node`. Beside a statement of a branch it would become part of the branch. */
static bool can_be_beside(const struct plim_config_node *node)
{
    return (!node->conditional || node->parent->parent) && node->kind == PLIM_CONFIG_SCALAR &&
           node->style != PLIM_CONFIG_BLOCK && node->key && strcmp(node->key, "<<") != 0;
}

enum plim_status plim_config_insert(struct plim_config_file *file, struct plim_config_node *mapping,
                                    struct plim_config_node *sibling, const char *under,
                                    const char *key, const char *value, struct plim_error *err)
{
    struct added a = {file, &file->document, mapping, NULL, under, key, value, err};
    if (sibling && sibling->parent == mapping && can_be_beside(sibling)) a.sibling = sibling;
    for (struct plim_config_node *node = mapping->first; node && !a.sibling; node = node->next)
        if (can_be_beside(node) && node->key[0] != '_') a.sibling = node;
    for (struct plim_config_node *node = mapping->first; node && !a.sibling; node = node->next)
        if (can_be_beside(node)) a.sibling = node;
    /* the sibling lies outside the mapping's text: args = f(x=1), then args.y = 2 */
    bool is_apart = a.sibling && (a.sibling->begin < mapping->begin || a.sibling->begin > mapping->end);
    if (mapping->layout == PLIM_CONFIG_FLOW && !is_apart) return insert_flow(&a);
    return mapping->layout == PLIM_CONFIG_WORDS ? insert_word(&a) : insert_line(&a);
}
