/* Jupyter notebooks: the code of their cells, read as Python. Lines that are not Python (%magics, !commands, cells of
 * another language) are turned into comments while the code is read. */
#include "autotune/base/utf8.h"
#include "config_format.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* The original first character of a line that was turned into a comment. */
struct hidden {
    size_t at;
    char was;
};

struct reader {
    struct plim_config_document *document; /* `file` is the notebook; `text` and `places` are being built */
    struct plim_error *err;
    size_t line;      /* offset of the current line in `text` */
    bool hides_line;  /* the line continues a hidden one that ends with a backslash */
    bool hides_cell;
    bool is_script;   /* the hidden lines are a shell script, the last one in `scripts` */
    bool no_memory;
    PLIM_ARRAY(struct hidden) hidden;
};

static void append_char(struct reader *r, char c, size_t place)
{
    r->document->places[r->document->length] = place;
    r->document->text[r->document->length++] = c;
}

/* True for cell magics that apply to Python code, such as %%capture and %%time; not for %%bash and others. */
static bool is_about_python(const char *name)
{
    static const char *const names[] = {"capture", "time", "timeit", "prun", "skip", "memit"};
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz_");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strlen(names[i]) == length && !strncmp(name, names[i], length)) return true;
    return false;
}

/* Turns the line that ends here into a comment. A shell command and its continuation lines are recorded in
 * `scripts`. */
static void hide(struct reader *r, size_t first, bool goes_on)
{
    struct plim_config_document *document = r->document;
    char *text = document->text;
    bool command = text[first] == '!' && !goes_on;
    bool bash = !strncmp(text + first, "%%bash", 6) || !strncmp(text + first, "%%sh", 4);
    if (!goes_on) r->is_script = command || bash;
    if (command || bash) {
        size_t begin = command ? first + 1 : document->length;
        struct plim_config_script part = {begin, document->length};
        r->no_memory |= PLIM_ARRAY_PUSH(&document->scripts, part) != PLIM_OK;
    } else if (r->is_script && document->scripts.count) {
        document->scripts.items[document->scripts.count - 1].end = document->length;
    }
    struct hidden hidden = {first, text[first]};
    r->no_memory |= PLIM_ARRAY_PUSH(&r->hidden, hidden) != PLIM_OK;
    text[first] = '#';
}

/* Ends a line of the code. */
static void end_line(struct reader *r, size_t place, size_t cell)
{
    char *text = r->document->text;
    size_t end = r->document->length, first = r->line;
    text[end] = '\0';
    first += strspn(text + first, " \t");
    bool magic = (text[first] == '%' && (text[first + 1] == '%' || isalpha((unsigned char)text[first + 1]))) ||
                 text[first] == '!';
    if (first == cell && !strncmp(text + first, "%%", 2)) r->hides_cell = !is_about_python(text + first + 2);
    if ((magic || r->hides_line || r->hides_cell) && first < end) {
        hide(r, first, r->hides_line || (r->hides_cell && first != cell));
        r->hides_line = text[end - 1] == '\\';
    } else {
        r->hides_line = false;
    }
    append_char(r, '\n', place);
    r->line = r->document->length;
}

static uint32_t code_of(const char *digits)
{
    char text[5] = {0};
    memcpy(text, digits, strnlen(digits, 4));
    return (uint32_t)strtoul(text, NULL, 16);
}

static void append_code(struct reader *r, uint32_t code, size_t place)
{
    if (code < 0x80) {
        append_char(r, code ? (char)code : ' ', place);
    } else if (code < 0x800) {
        append_char(r, (char)(0xC0 | code >> 6), place);
        append_char(r, (char)(0x80 | (code & 0x3F)), place);
    } else { /* surrogates one by one: their meaning does not matter here */
        append_char(r, (char)(0xE0 | code >> 12), place);
        append_char(r, (char)(0x80 | (code >> 6 & 0x3F)), place);
        append_char(r, (char)(0x80 | (code & 0x3F)), place);
    }
}

/* Adds the characters of a JSON string that holds one line, or all lines, of a cell. */
static void add_string(struct reader *r, const struct plim_config_node *string, size_t cell)
{
    const char *file = r->document->file;
    for (size_t at = string->begin + 1; at + 1 < string->end;) {
        size_t place = at;
        char c = file[at++], escape = file[at];
        if (c != '\\') {
            append_char(r, c, place);
            continue;
        }
        at++;
        if (escape == 'n')
            end_line(r, place, cell);
        else if (escape == 'u') {
            append_code(r, code_of(file + at), place);
            at += strspn(file + at, "0123456789abcdefABCDEF") < 4 ? 0 : 4;
        } else
            append_char(r, strchr("tbrf", escape) ? ' ' : escape, place);
    }
}

static void add_cell(struct reader *r, const struct plim_config_node *cell)
{
    const struct plim_config_node *type = plim_config_get(cell, "cell_type"),
                                  *source = plim_config_get(cell, "source");
    if (!type || !type->text || strcmp(type->text, "code") != 0 || !source) return;
    bool one = source->kind == PLIM_CONFIG_SCALAR;
    const struct plim_config_node *last = NULL;
    size_t begin = r->document->length;
    r->hides_cell = r->hides_line = false;
    for (const struct plim_config_node *string = one ? source : source->first; string; string = string->next) {
        if (string->style == PLIM_CONFIG_QUOTED) add_string(r, last = string, begin);
        if (one) break;
    }
    if (last) end_line(r, last->end - 1, begin);
}

enum plim_status plim_config_read_notebook(struct plim_config_document *document, struct plim_error *err)
{
    struct plim_config_document json;
    const struct plim_config_format *format;
    struct reader r = {.document = document, .err = err};
    enum plim_status st = plim_config_format_find("json", &format, err);
    if (!st) st = plim_config_read(document->source, document->file, document->file_length, format, &json, err);
    if (st) return st;
    /* The text of a cell is shorter than its JSON, even with a line end added. */
    char *text = malloc(document->file_length + 1);
    document->places = malloc((document->file_length + 1) * sizeof(*document->places));
    if (text && document->places) {
        document->text = text;
        document->length = document->bom = 0;
        document->newline = "\n";
        const struct plim_config_node *cells = plim_config_get(json.root, "cells");
        for (const struct plim_config_node *cell = cells ? cells->first : NULL; cell; cell = cell->next)
            add_cell(&r, cell);
        text[document->length] = '\0';
        document->places[document->length] = document->file_length;
        st = plim_config_read_python(document, err);
        for (size_t i = 0; i < r.hidden.count; i++) text[r.hidden.items[i].at] = r.hidden.items[i].was;
    } else {
        free(text);
        r.no_memory = true;
    }
    if (r.no_memory)
        st = plim_fail_at(err, PLIM_NOMEM, document->source, 0, 0, "no memory for the cells");
    PLIM_ARRAY_FINISH(&r.hidden);
    plim_config_finish(&json);
    return st;
}

/* --- writing edits into the notebook ---------------------------------------------------------- */

/* Returns the offset of the quote that opens the string around an offset. */
static size_t opening_quote(const char *file, size_t at)
{
    while (at) {
        size_t slashes = 0;
        at--;
        while (file[at] == '"' && slashes < at && file[at - 1 - slashes] == '\\') slashes++;
        if (file[at] == '"' && slashes % 2 == 0) break;
    }
    return at;
}

/* Writes a line end. If the cell is a list with a string per line, begins a new string, separated as the others are. */
static void write_line_end(const struct plim_config_document *document, size_t place, FILE *out)
{
    const char *file = document->file;
    size_t quote = opening_quote(file, place), before = quote;
    fputs("\\n", out);
    while (before && strchr(" \t\r\n", file[before - 1])) before--;
    if (!before || file[before - 1] == ':') return;
    fputs("\",", out);
    fwrite(file + before, 1, quote - before, out);
    fputc('"', out);
}

void plim_config_write_notebook(const struct plim_config_document *document, size_t place, const char *text, FILE *out)
{
    for (; *text; text++) {
        if (*text == '\n')
            write_line_end(document, place, out);
        else if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if (*text == '\t')
            fputs("\\t", out);
        else
            fputc(*text, out);
    }
}
