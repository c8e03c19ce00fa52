#include "user_program.h"
#include "autotune/base/environment.h"
#include "autotune/base/text.h"
#include "autotune/base/text_stream.h"
#include "autotune/base/textfile.h"
#include "template.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OWN_WORDS = 5, WORDS = OWN_WORDS + PLIM_AXES, TEMPLATE_BYTES = 1 << 20 };

/* --- name and placeholders -------------------------------------------------------------------- */

static enum plim_status read_template(const char *path, char **text, struct plim_error *err)
{
    size_t length;
    return plim_textfile_read(path, TEMPLATE_BYTES, text, &length, err);
}

const char *plim_program_name(const struct plim_program *program)
{
    const char *name = program->command[0];
    for (size_t i = 0; program->command[i]; i++) {
        size_t length = strlen(program->command[i]);
        if (length < 4 || strcmp(program->command[i] + length - 3, ".py")) continue;
        name = program->command[i];
        break;
    }
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

enum plim_status plim_program_uses(const struct plim_program *program, const char *name, bool *uses,
                                   struct plim_error *err)
{
    *uses = false;
    for (size_t i = 0; program->command[i]; i++)
        *uses |= plim_template_has(program->command[i], name);
    for (size_t i = 0; i < program->variable_count; i++)
        *uses |= plim_template_has(program->variables[i], name);
    for (size_t i = 0; i < program->file_count; i++) {
        char *text = NULL;
        enum plim_status st = read_template(program->files[i].template_path, &text, err);
        if (st) return st;
        *uses |= plim_template_has(text, name);
        free(text);
    }
    return PLIM_OK;
}

/* --- filling in ------------------------------------------------------------------------------- */

/* The placeholders' values; `numbers` holds the strings of those that are not strings elsewhere. */
struct word_list {
    struct plim_placeholder words[WORDS];
    size_t count;
    char numbers[WORDS][PLIM_AXIS_TEXT];
};

static void add_word(struct word_list *list, const char *name, const char *value)
{
    list->words[list->count++] = (struct plim_placeholder){name, value};
}

static void add_number(struct word_list *list, const char *name, int64_t value)
{
    char *text = list->numbers[list->count];
    snprintf(text, sizeof(list->numbers[0]), "%" PRId64, value);
    add_word(list, name, text);
}

static void make_words(struct word_list *list, const struct plim_program *program,
                       const struct plim_setting *setting, const char *folder, int64_t trial)
{
    *list = (struct word_list){0};
    add_number(list, "batch", setting->micro_batch);
    add_number(list, "accumulation", setting->accumulation);
    add_number(list, "world", program->world);
    add_number(list, "trial", trial);
    add_word(list, "dir", folder);
    for (size_t i = 0; i < program->axes->count; i++) {
        char *room = list->numbers[list->count];
        add_word(list, program->axes->axis[i].name,
                 plim_axes_text(program->axes, setting, i, room));
    }
}

/* The list ends with NULL even on failure, so that it can be freed. */
static enum plim_status fill_arguments(const struct plim_program *program,
                                       const struct word_list *list, char ***out)
{
    enum plim_status st = PLIM_OK;
    size_t count = 0;
    while (program->command[count]) count++;
    *out = calloc(count + 1, sizeof(**out));
    if (!*out) return PLIM_NOMEM;
    for (size_t i = 0; i < count && !st; i++)
        st = plim_template_expand(program->command[i], list->words, list->count, &(*out)[i]);
    return st;
}

static enum plim_status change(struct plim_environment *environment, const struct plim_program_variable *variable)
{
    switch (variable->change) {
    case PLIM_VARIABLE_SET: return plim_environment_set(environment, variable->name, variable->value);
    case PLIM_VARIABLE_PUT_BEFORE: return plim_environment_prepend(environment, variable->name, variable->value);
    case PLIM_VARIABLE_TAKEN_OUT: plim_environment_unset(environment, variable->name); break;
    }
    return PLIM_OK;
}

static enum plim_status fill_environment(const struct plim_program *program,
                                         const struct word_list *list, const struct plim_program_variable *more,
                                         size_t more_count, char ***out)
{
    struct plim_environment environment = {0};
    enum plim_status st = plim_environment_copy(&environment);
    for (size_t i = 0; i < program->variable_count && !st; i++) {
        char *text;
        st = plim_template_expand(program->variables[i], list->words, list->count, &text);
        if (!st) st = plim_environment_set_entry(&environment, text);
    }
    for (size_t i = 0; i < more_count && !st; i++) st = change(&environment, &more[i]);
    if (st) plim_environment_finish(&environment);
    *out = environment.entries.items;
    return st;
}

static enum plim_status write_file(const struct plim_program_file *file,
                                   const struct word_list *list, struct plim_program_instance *out,
                                   struct plim_error *err)
{
    char *from = NULL, *text = NULL, *path = NULL;
    enum plim_status st = PLIM_OK;
    PLIM_TRY(read_template(file->template_path, &from, err));
    PLIM_TRY(plim_template_expand(from, list->words, list->count, &text));
    PLIM_TRY(plim_template_expand(file->path, list->words, list->count, &path));
    PLIM_TRY(PLIM_ARRAY_RESERVE(&out->written, out->written.count + 1));
    FILE *to = fopen(path, "wx");
    if (!to) {
        st = plim_fail(err, PLIM_IO, "%s: %s%s", path, strerror(errno),
                       errno == EEXIST ? " (--file writes it for each trial and removes it)" : "");
        goto out;
    }
    size_t length = strlen(text);
    bool written = fwrite(text, 1, length, to) == length;
    if (fclose(to) || !written) st = plim_fail(err, PLIM_IO, "%s cannot be written", path);
    out->written.items[out->written.count++] = path;
    path = NULL;
out:
    free(from);
    free(text);
    free(path);
    return st;
}

enum plim_status plim_program_fill(const struct plim_program *program,
                                   const struct plim_setting *setting, const char *folder,
                                   int64_t trial, const struct plim_program_variable *more, size_t more_count,
                                   struct plim_program_instance *out, struct plim_error *err)
{
    struct word_list list;
    make_words(&list, program, setting, folder, trial);
    enum plim_status st = fill_arguments(program, &list, &out->arguments);
    if (!st) st = fill_environment(program, &list, more, more_count, &out->environment);
    for (size_t i = 0; i < program->file_count && !st; i++)
        st = write_file(&program->files[i], &list, out, err);
    return st == PLIM_NOMEM ? plim_no_memory(err) : st;
}

static void free_strings(char **strings)
{
    for (size_t i = 0; strings && strings[i]; i++) free(strings[i]);
    free(strings);
}

void plim_program_instance_finish(struct plim_program_instance *instance)
{
    if (!instance) return;
    free_strings(instance->arguments);
    free_strings(instance->environment);
    for (size_t i = 0; i < instance->written.count; i++) {
        unlink(instance->written.items[i]);
        free(instance->written.items[i]);
    }
    PLIM_ARRAY_FINISH(&instance->written);
    *instance = (struct plim_program_instance){0};
}

/* --- shell quoting ---------------------------------------------------------------------------- */

/* Writes a word with control characters as $'...', which bash and zsh understand. */
static void write_escaped(FILE *file, const char *word)
{
    fputs("$'", file);
    for (; *word; word++) {
        unsigned char c = (unsigned char)*word;
        if (c < 0x20 || c >= 0x7f) fprintf(file, "\\x%02x", c);
        else fprintf(file, c == '\'' || c == '\\' ? "\\%c" : "%c", c);
    }
    fputc('\'', file);
}

static void write_word(FILE *file, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./=:,+@%";
    if (*word && !word[strspn(word, plain)]) {
        fputs(word, file);
        return;
    }
    if (!plim_text_is_plain(word)) {
        write_escaped(file, word);
        return;
    }
    fputc('\'', file);
    for (; *word; word++) *word == '\'' ? fputs("'\\''", file) : fputc(*word, file);
    fputc('\'', file);
}

enum plim_status plim_program_shell_line(const struct plim_program_instance *instance, char **out)
{
    struct plim_text_stream stream;
    FILE *file = plim_text_stream_open(&stream);
    for (size_t i = 0; file && instance->arguments[i]; i++) {
        if (i) fputc(' ', file);
        write_word(file, instance->arguments[i]);
    }
    return plim_text_stream_close(&stream, out);
}
