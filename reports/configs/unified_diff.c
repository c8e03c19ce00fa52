#include "unified_diff.h"
#include <stdbool.h>
#include <string.h>

enum { CONTEXT = 3, AHEAD = 64 /* lines to search for the next equal pair */ };

struct side {
    const char *at, *end;
    size_t line; /* 0-based, of `at` */
};

static size_t line_length(const struct side *side)
{
    const char *at = side->at;
    while (at < side->end && *at++ != '\n') {}
    return (size_t)(at - side->at);
}

static bool next(struct side *side)
{
    side->at += line_length(side);
    side->line++;
    return side->at < side->end;
}

static bool same_line(const struct side *a, const struct side *b)
{
    size_t length = line_length(a);
    if (a->at == a->end || b->at == b->end) return a->at == a->end && b->at == b->end;
    return length == line_length(b) && !memcmp(a->at, b->at, length);
}

/* Sets x and y to the nearest pair of equal lines after the change at a and b. */
static void skip_change(const struct side *a, const struct side *b, struct side *x, struct side *y)
{
    for (size_t sum = 1; sum < 2 * AHEAD; sum++)
        for (size_t down = 0; down <= sum; down++) {
            *x = *a;
            *y = *b;
            size_t i = 0, k = 0;
            while (i < down && x->at < x->end) next(x), i++;
            while (k < sum - down && y->at < y->end) next(y), k++;
            if (i == down && k == sum - down && same_line(x, y)) return;
        }
    while (x->at < x->end) next(x);
    while (y->at < y->end) next(y);
}

static void print_lines(struct side from, size_t until, char mark, FILE *out)
{
    for (; from.line < until && from.at < from.end; next(&from)) {
        size_t length = line_length(&from);
        fputc(mark, out);
        fwrite(from.at, 1, length, out);
        if (from.at[length - 1] != '\n') fputs("\n\\ No newline at end of file\n", out);
    }
}

/* Measures a hunk, and prints it if `print`. It begins with the context at `start`; `a` and `b` are the first lines
 * that
 * differ. Further changes within 2 * CONTEXT lines belong to the same hunk. */
static void print_hunk(struct side start, struct side *a, struct side *b, FILE *out, bool print,
                       size_t *old_lines, size_t *new_lines)
{
    struct side context = start;
    *old_lines = *new_lines = 0;
    for (;;) {
        struct side x, y;
        size_t before = a->line - context.line;
        if (print) print_lines(context, a->line, ' ', out);
        skip_change(a, b, &x, &y);
        if (print) {
            print_lines(*a, x.line, '-', out);
            print_lines(*b, y.line, '+', out);
        }
        *old_lines += before + x.line - a->line;
        *new_lines += before + y.line - b->line;
        *a = context = x;
        *b = y;
        size_t equal = 0;
        while (a->at < a->end && same_line(a, b) && equal <= 2 * CONTEXT) next(a), next(b), equal++;
        bool near = equal <= 2 * CONTEXT && (a->at < a->end || b->at < b->end);
        if (near) continue;
        size_t tail = equal < CONTEXT ? equal : CONTEXT;
        if (print) print_lines(context, context.line + tail, ' ', out);
        *old_lines += tail;
        *new_lines += tail;
        return;
    }
}

void plim_config_diff(const char *path, const char *before, size_t before_length, const char *after,
                      size_t after_length, FILE *out)
{
    struct side a = {before, before + before_length, 0}, b = {after, after + after_length, 0};
    struct side lead = a; /* at most CONTEXT lines before `a` */
    bool begun = false;
    while (a.at < a.end || b.at < b.end) {
        if (same_line(&a, &b)) {
            next(&a);
            next(&b);
            while (a.line - lead.line > CONTEXT) next(&lead);
            continue;
        }
        if (!begun) fprintf(out, "--- %s\n+++ %s\n", path, path);
        begun = true;
        struct side x = a, y = b;
        size_t old_lines, new_lines, new_start = b.line - (a.line - lead.line);
        print_hunk(lead, &x, &y, out, false, &old_lines, &new_lines);
        fprintf(out, "@@ -%zu,%zu +%zu,%zu @@\n", lead.line + (old_lines > 0), old_lines,
                new_start + (new_lines > 0), new_lines);
        print_hunk(lead, &a, &b, out, true, &old_lines, &new_lines);
        lead = a;
        while (lead.line > 0 && a.line - lead.line < CONTEXT && lead.at > before) {
            lead.at--;
            while (lead.at > before && lead.at[-1] != '\n') lead.at--;
            lead.line--;
        }
    }
}
