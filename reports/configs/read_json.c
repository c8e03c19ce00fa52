/* JSON with comments. A trailing comma is accepted if the format is jsonc, or the file has comments. */
#include "config_format.h"
#include <stdio.h>
#include <string.h>

enum { MAX_DEPTH = 200 };

struct reader {
    struct plim_config_document *document;
    struct plim_error *err;
    const char *text;
    size_t at;
    bool comments; /* a comment was found */
    size_t comma;  /* offset of the first trailing comma; 0: none */
};

static enum plim_status fail(struct reader *r, const char *what)
{
    return plim_config_fail(r->document, r->at, r->err, "not valid JSON: %s", what);
}

/* Skips blanks and comments: // and # to the end of the line, and slash-star. */
static enum plim_status skip(struct reader *r)
{
    for (;;) {
        const char *at = r->text + r->at;
        if (*at && strchr(" \t\r\n", *at)) {
            r->at++;
        } else if (*at == '#' || (at[0] == '/' && at[1] == '/')) {
            r->at += strcspn(at, "\n");
            r->comments = true;
        } else if (at[0] == '/' && at[1] == '*') {
            const char *end = strstr(at + 2, "*/");
            if (!end) return fail(r, "this comment has no end");
            r->at += (size_t)(end + 2 - at);
            r->comments = true;
        } else {
            return PLIM_OK;
        }
    }
}

/* Finds the bytes between the quotes. Escapes are kept: the keys and numbers that matter here have none. */
static enum plim_status read_string(struct reader *r, size_t *begin, size_t *end)
{
    size_t start = r->at;
    char quote = r->text[r->at];
    for (r->at++; r->text[r->at] != quote; r->at++) {
        if (r->text[r->at] == '\\' && r->text[r->at + 1])
            r->at++;
        else if (!r->text[r->at] || r->text[r->at] == '\n') {
            r->at = start;
            return fail(r, "the quote that opens here is not closed on its line");
        }
    }
    *begin = start + 1;
    *end = r->at++;
    return PLIM_OK;
}

static bool is_number(const char *word, size_t length)
{
    size_t i = length && (word[0] == '-' || word[0] == '+'), digits = i;
    while (i < length && word[i] >= '0' && word[i] <= '9') i++;
    digits = i - digits;
    if (i < length && word[i] == '.')
        for (i++; i < length && word[i] >= '0' && word[i] <= '9'; i++) digits++;
    if (digits && i < length && (word[i] == 'e' || word[i] == 'E')) {
        i++;
        if (i < length && (word[i] == '-' || word[i] == '+')) i++;
        size_t exponent = i;
        while (i < length && word[i] >= '0' && word[i] <= '9') i++;
        if (i == exponent) return false;
    }
    return digits && i == length;
}

static enum plim_status read_word(struct reader *r, struct plim_config_node *node)
{
    static const char *const words[] = {"true", "false", "null", "NaN", "Infinity", "-Infinity"};
    const char *word = r->text + r->at;
    size_t length = strcspn(word, " \t\r\n,:[]{}\"'/#");
    bool known = is_number(word, length);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        known |= strlen(words[i]) == length && !strncmp(word, words[i], length);
    if (!known) {
        char text[128];
        if (!length) return fail(r, *word ? "expected a value" : "the file ends too early");
        snprintf(text, sizeof(text), "%.*s is not a value%s", (int)(length < 60 ? length : 60), word,
                 word[0] >= 'A' && word[0] <= 'Z'
                     ? " (a template has to be filled in first)"
                     : ", expected a number, a string in quotes, true, false or null");
        return fail(r, text);
    }
    r->at += length;
    return plim_config_node_text(r->document, node, PLIM_CONFIG_PLAIN, r->at, word, length, r->err);
}

static enum plim_status read_value(struct reader *r, struct plim_config_node *parent, int depth,
                                   struct plim_config_node **out);

/* Reads what follows a member: a comma, or the closing bracket, which sets *done. */
static enum plim_status read_comma(struct reader *r, char close, bool *done)
{
    enum plim_status st = skip(r);
    if (st) return st;
    size_t comma = r->at;
    *done = r->text[r->at] != ',';
    if (!*done) {
        r->at++;
        if ((st = skip(r))) return st;
        *done = r->text[r->at] == close;
        if (*done && !r->comma) r->comma = comma;
    }
    if (!*done) return PLIM_OK;
    if (r->text[r->at] != close)
        return fail(r, r->text[r->at] ? close == '}' ? "expected , or }" : "expected , or ]"
                                      : "the file ends too early");
    r->at++;
    return PLIM_OK;
}

static enum plim_status read_member(struct reader *r, struct plim_config_node *object, int depth)
{
    size_t start = r->at, begin, end;
    struct plim_config_node *value;
    enum plim_status st;
    if (r->text[r->at] != '"') return fail(r, "expected a key in double quotes");
    PLIM_TRY(read_string(r, &begin, &end));
    size_t key_end = r->at;
    PLIM_TRY(skip(r));
    if (r->text[r->at] != ':') return fail(r, "expected a colon");
    r->at++;
    PLIM_TRY(skip(r));
    PLIM_TRY(read_value(r, object, depth + 1, &value));
    PLIM_TRY(plim_config_node_name(r->document, value, r->text + begin, end - begin, start, key_end,
                                   r->err));
out:
    return st;
}

static enum plim_status read_list(struct reader *r, struct plim_config_node *node, int depth)
{
    bool object = node->kind == PLIM_CONFIG_MAPPING, done;
    char close = object ? '}' : ']';
    enum plim_status st;
    r->at++;
    PLIM_TRY(skip(r));
    done = r->text[r->at] == close;
    if (done) r->at++;
    while (!done) {
        struct plim_config_node *item;
        PLIM_TRY(object ? read_member(r, node, depth) : read_value(r, node, depth + 1, &item));
        PLIM_TRY(read_comma(r, close, &done));
    }
    node->end = r->at;
out:
    return st;
}

static enum plim_status read_value(struct reader *r, struct plim_config_node *parent, int depth,
                                   struct plim_config_node **out)
{
    char first = r->text[r->at];
    enum plim_config_kind kind = first == '{'   ? PLIM_CONFIG_MAPPING
                                 : first == '[' ? PLIM_CONFIG_SEQUENCE
                                                : PLIM_CONFIG_SCALAR;
    size_t begin, end;
    if (depth > MAX_DEPTH) return fail(r, "nested deeper than expected (200 levels)");
    enum plim_status st = plim_config_node_add(r->document, parent, kind, r->at, out, r->err);
    if (st) return st;
    (*out)->layout = PLIM_CONFIG_FLOW;
    if (kind != PLIM_CONFIG_SCALAR) return read_list(r, *out, depth);
    if (first != '"') return read_word(r, *out);
    if ((st = read_string(r, &begin, &end))) return st;
    return plim_config_node_text(r->document, *out, PLIM_CONFIG_QUOTED, r->at, r->text + begin,
                                 end - begin, r->err);
}

static enum plim_status read_json(struct plim_config_document *document, bool strict,
                                  struct plim_error *err)
{
    struct reader r = {document, err, document->text, document->bom, false, 0};
    enum plim_status st;
    PLIM_TRY(skip(&r));
    PLIM_TRY(read_value(&r, NULL, 1, &document->root));
    PLIM_TRY(skip(&r));
    if (r.at < document->length) return fail(&r, "expected nothing after the last bracket");
    if (strict && r.comma && !r.comments) {
        r.at = r.comma;
        return fail(&r, "a comma after the last member (where your program takes that: --format jsonc)");
    }
out:
    return st;
}

enum plim_status plim_config_read_json(struct plim_config_document *document,
                                       struct plim_error *err)
{
    return read_json(document, true, err);
}

enum plim_status plim_config_read_jsonc(struct plim_config_document *document,
                                        struct plim_error *err)
{
    return read_json(document, false, err);
}
