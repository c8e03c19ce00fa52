#include "splice.h"
#include "config_format.h"
#include "number_style.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* True for a key without a colon, as in {key, other: 1}: there is no place for its value. */
static bool is_key_alone(const struct plim_config_document *document,
                         const struct plim_config_node *node)
{
    return node->style == PLIM_CONFIG_EMPTY && node->key &&
           !strcmp(document->format->name, "yaml") &&
           (!node->begin || document->text[node->begin - 1] != ':') &&
           (node->begin <= node->key_end ||
            !memchr(document->text + node->key_end, ':', node->begin - node->key_end));
}

/* --- editing one value ------------------------------------------------------------------------ */

/* Returns an edit that replaces bytes by `text`. `new` is the value that is reported to the user. */
static struct plim_config_edit edit_of_bytes(struct plim_config_document *document, size_t begin,
                                             size_t end, const char *text, const char *new)
{
    return (struct plim_config_edit){
        .begin = begin,
        .end = end,
        .text = plim_arena_text(&document->arena, text, strlen(text)),
        .old = plim_arena_text(&document->arena, document->text + begin, end - begin),
        .new = plim_arena_text(&document->arena, new, strlen(new)),
    };
}

static enum plim_status push(struct plim_config_file *file, const struct plim_config_edit *edit,
                             struct plim_error *err)
{
    bool is_whole = edit->text && edit->old && edit->new;
    return is_whole && PLIM_ARRAY_PUSH(&file->edits, *edit) == PLIM_OK ? PLIM_OK
                                                                       : plim_no_memory(err);
}

enum plim_status plim_config_replace(struct plim_config_file *file, const char *path,
                                     struct plim_config_node *node,
                                     const struct plim_config_value *value, int64_t number,
                                     bool plain, struct plim_error *err)
{
    struct plim_config_document *document = &file->document;
    char old[64], text[64], spaced[72];
    bool quoted = node->style == PLIM_CONFIG_QUOTED, empty = node->style == PLIM_CONFIG_EMPTY;
    bool word = value->meaning == PLIM_CONFIG_UNSET; /* "auto" in quotes becomes a number without quotes */
    size_t begin = value->begin, end = value->end;
    if (is_key_alone(document, node))
        return plim_config_fail(document, node->key_begin, err,
                                "'%s' has no value; write '%s: 1' there, and apply again",
                                path, node->key);
    snprintf(old, sizeof(old), "%.*s", (int)(end - begin), document->text + begin);
    plim_config_number_text(old, number, text, sizeof(text));
    if (!strcmp(old, text) && !(quoted && plain)) return PLIM_OK;
    if (quoted && (plain || word) && document->format->language != PLIM_CONFIG_SHELL)
        begin = node->begin, end = node->end;
    snprintf(spaced, sizeof(spaced), "%s%s",
             empty && begin && !strchr(" \t", document->text[begin - 1]) ? " " : "", text);
    struct plim_config_edit edit = edit_of_bytes(document, begin, end, spaced, text);
    edit.path = path;
    edit.node = node;
    edit.line = node->line;
    for (size_t i = 0; i < file->edits.count; i++)
        if (file->edits.items[i].node == node) {
            if (!strcmp(file->edits.items[i].new, text)) return PLIM_OK;
            return plim_config_fail(document, node->begin, err,
                                    "'%s' is the number of two settings, which are to be %s and %s",
                                    path, file->edits.items[i].new, text);
        }
    return push(file, &edit, err);
}

enum plim_status plim_config_replace_word(struct plim_config_file *file, const char *path,
                                          struct plim_config_node *node, const char *word,
                                          struct plim_error *err)
{
    size_t quotes = node->style == PLIM_CONFIG_QUOTED;
    struct plim_config_edit edit =
        edit_of_bytes(&file->document, node->begin + quotes, node->end - quotes, word, word);
    edit.path = path;
    edit.node = node;
    edit.line = node->line;
    return push(file, &edit, err);
}

/* --- applying all edits ----------------------------------------------------------------------- */

/* Orders edits by offset. At the same offset a value comes before an entry added after it. */
static bool stands_before(const struct plim_config_edit *a, const struct plim_config_edit *b)
{
    return a->begin < b->begin || (a->begin == b->begin && a->node && !b->node);
}

static void sort_edits(struct plim_config_file *file)
{
    for (size_t i = 1; i < file->edits.count; i++)
        for (size_t k = i; k && stands_before(&file->edits.items[k], &file->edits.items[k - 1]);
             k--) {
            struct plim_config_edit swap = file->edits.items[k];
            file->edits.items[k] = file->edits.items[k - 1];
            file->edits.items[k - 1] = swap;
        }
}

static enum plim_status build(struct plim_config_file *file, struct plim_error *err)
{
    struct plim_text_stream stream;
    const struct plim_config_document *document = &file->document;
    FILE *out = plim_text_stream_open(&stream);
    size_t at = 0;
    sort_edits(file);
    for (size_t i = 0; i < file->edits.count && out; i++) {
        const struct plim_config_edit *edit = &file->edits.items[i];
        size_t place = plim_config_in_file(document, edit->begin);
        fwrite(document->file + at, 1, place - at, out);
        if (document->format->write)
            document->format->write(document, place, edit->text, out);
        else
            fputs(edit->text, out);
        at = plim_config_in_file(document, edit->end);
    }
    if (out) fwrite(document->file + at, 1, document->file_length - at, out);
    if (plim_text_stream_close(&stream, &file->after) != PLIM_OK) return plim_no_memory(err);
    file->after_length = strlen(file->after);
    return PLIM_OK;
}

/* --- verifying the result --------------------------------------------------------------------- */

struct proof {
    const struct plim_config_file *file;
    const struct plim_config_document *after;
    size_t seen; /* number of edits found in the result */
};

static const struct plim_config_edit *edit_of(const struct proof *p,
                                              const struct plim_config_node *node)
{
    for (size_t i = 0; i < p->file->edits.count; i++)
        if (p->file->edits.items[i].node == node) return &p->file->edits.items[i];
    return NULL;
}

static const struct plim_config_edit *added_as(const struct proof *p,
                                               const struct plim_config_node *parent,
                                               const struct plim_config_node *node)
{
    const char *key = node->key ? node->key : "";
    key += strspn(key, "-+");
    for (size_t i = 0; i < p->file->edits.count; i++) {
        const struct plim_config_edit *edit = &p->file->edits.items[i];
        if (edit->node || edit->filler || edit->parent != parent) continue;
        const char *wanted = edit->key + strspn(edit->key, "-+");
        size_t n = 0;
        while (wanted[n] && (wanted[n] == key[n] || (wanted[n] == '_' && key[n] == '-'))) n++;
        if (!wanted[n] && !key[n]) return edit;
    }
    return NULL;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

/* Compares the bytes of two scalars. Their `text` may be a copy without quotes. */
static bool same_bytes(const struct proof *p, const struct plim_config_node *a,
                       const struct plim_config_node *b)
{
    return a->end - a->begin == b->end - b->begin &&
           !memcmp(p->file->document.text + a->begin, p->after->text + b->begin, a->end - a->begin);
}

/* True if the new value is the old bytes with the edit applied, or the edit's value alone if the old one was empty. */
static bool is_wanted(const struct proof *p, const struct plim_config_edit *edit,
                      const struct plim_config_node *before, const struct plim_config_node *after)
{
    const char *old = p->file->document.text, *new = p->after->text + after->begin;
    size_t front = edit->begin - before->begin, back = before->end - edit->end;
    size_t added = strlen(edit->text);
    if (before->begin == before->end) return after->text && !strcmp(after->text, edit->new);
    return after->end - after->begin == front + added + back &&
           !memcmp(new, old + before->begin, front) && !memcmp(new + front, edit->text, added) &&
           !memcmp(new + front + added, old + edit->end, back);
}

static bool same(struct proof *p, const struct plim_config_node *a,
                 const struct plim_config_node *b)
{
    const struct plim_config_edit *edit = edit_of(p, a);
    const struct plim_config_node *x = a->first, *y = b->first;
    if (a->kind != b->kind && !(edit && !edit->old)) return false;
    if (!same_text(a->key, b->key) || !same_text(a->anchor, b->anchor)) return false;
    if (!same_text(a->tag, b->tag) || !a->target != !b->target) return false;
    if (a->kind == PLIM_CONFIG_SCALAR) {
        p->seen += edit != NULL;
        return edit ? is_wanted(p, edit, a, b) : same_bytes(p, a, b);
    }
    while (x || y) {
        const struct plim_config_edit *added = y ? added_as(p, a, y) : NULL;
        if (added && !(x && same_text(x->key, y->key))) {
            p->seen++;
            y = y->next;
        } else if (!x || !y || !same(p, x, y)) {
            return false;
        } else {
            x = x->next;
            y = y->next;
        }
    }
    return true;
}

enum plim_status plim_config_splice(struct plim_config_file *file, struct plim_error *err)
{
    struct plim_config_document after = {0};
    struct plim_error why = PLIM_ERROR_INIT;
    size_t real = 0;
    if (!file->edits.count) return PLIM_OK;
    enum plim_status st = build(file, err);
    if (st) return st;
    st = plim_config_read(file->path, file->after, file->after_length, file->document.format,
                          &after, &why);
    if (st == PLIM_NOMEM) return plim_no_memory(err);
    if (!st && file->document.commands) (void)plim_config_read_commands(&after);
    struct proof proof = {file, &after, 0};
    for (size_t i = 0; i < file->edits.count; i++) real += !file->edits.items[i].filler;
    bool right = !st && same(&proof, file->document.root, after.root) && proof.seen == real;
    plim_config_finish(&after);
    if (right) return PLIM_OK;
    return plim_fail_at(err, PLIM_SPEC, file->path, file->edits.items[0].line, 0,
                        "the change cannot be made here, because it would not be read back as intended%s%s; nothing "
                        "was written",
                        why.text[0] ? ": " : "", why.text);
}
