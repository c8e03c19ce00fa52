/* Manual pages, made from the tables of --help, with the macros of man(7), which both groff and mandoc support. */
#include "command.h"
#include "exit_code.h"
#include "option_kinds.h"
#include "workloads/spec/key_doc.h"
#include <ctype.h>
#include <string.h>

/* Writes a line of text. Escapes backslashes, hyphens, and a dot or quote at the start, which are special in roff. */
static void write_text(FILE *out, const char *text, size_t length)
{
    if (length && (text[0] == '.' || text[0] == '\'')) fputs("\\&", out);
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\\') fputs("\\e", out);
        else if (text[i] == '-') fputs("\\-", out);
        else fputc(text[i], out);
    }
}

static void write_word(FILE *out, const char *text) { write_text(out, text, strlen(text)); }

static void write_upper(FILE *out, const char *text)
{
    for (; *text; text++) fputc(toupper((unsigned char)*text), out);
}

/* Writes the head of a page. `section` and its name are as in man(1): "1", "User commands". */
static void begin(FILE *out, const char *topic, const char *summary, const char *version, const char *section,
                  const char *section_name)
{
    fputs(".TH PLIMSOLL", out);
    if (topic) fputs("\\-", out), write_upper(out, topic);
    fprintf(out, " %s \"\" \"plimsoll %s\" \"%s\"\n.SH NAME\nplimsoll", section, version, section_name);
    if (topic) fputs("\\-", out), write_word(out, topic);
    fputs(" \\- ", out);
    write_word(out, summary);
    fputc('\n', out);
}

static void begin_command(FILE *out, const char *command, const char *summary, const char *version)
{
    begin(out, command, summary, version, "1", "User commands");
    fputs(".SH SYNOPSIS\n", out);
}

/* Writes prose: lines are joined, indented lines are kept, and empty lines separate paragraphs. */
static void write_prose(FILE *out, const char *text)
{
    bool as_it_is = false;
    while (*text) {
        size_t length = strcspn(text, "\n");
        bool is_indented = length && text[0] == ' ';
        if (is_indented && !as_it_is) fputs(".RS 4\n.nf\n", out);
        if (!is_indented && as_it_is) fputs(".fi\n.RE\n", out);
        as_it_is = is_indented;
        const char *next = text + length + (text[length] == '\n');
        if (!length && *next && *next != ' ') fputs(".PP\n", out);
        size_t blanks = is_indented ? strspn(text, " ") : 0;
        if (blanks > 2) fprintf(out, "%*s", (int)(blanks - 2), "");
        if (length) write_text(out, text + blanks, length - blanks), fputc('\n', out);
        text = next;
    }
    if (as_it_is) fputs(".fi\n.RE\n", out);
}

static void write_options(FILE *out, enum plim_command_id command)
{
    char help[512];
    const struct plim_option *option = NULL;
    fputs(".SH OPTIONS\n", out);
    while ((option = plim_options_next(command, option))) {
        fputs(".TP\n\\fB", out);
        write_word(out, option->name);
        fputs("\\fR", out);
        if (option->argument) {
            fputs(" \\fI", out);
            write_word(out, option->argument);
            fputs("\\fR", out);
        }
        fputc('\n', out);
        plim_options_describe(option, help, sizeof(help));
        write_word(out, help);
        fputc('\n', out);
    }
}

static void write_exit_codes(FILE *out)
{
    fputs(".SH EXIT STATUS\n", out);
    for (int code = 0; code < PLIM_EXIT_COUNT; code++) {
        fprintf(out, ".TP\n%d\n", code);
        write_word(out, plim_exit_text((enum plim_exit)code));
        fputc('\n', out);
    }
}

void plim_manual_print(const char *version, FILE *out)
{
    begin_command(out, NULL, "the fastest training settings that fit a GPU", version);
    fputs(".B plimsoll\n.I command\n.RI [ options ]\n.SH DESCRIPTION\n", out);
    write_prose(out, plim_help_about);
    fputs(".SH COMMANDS\n", out);
    for (size_t i = 0; i < PLIM_COMMAND_COUNT; i++) {
        const struct plim_command *command = plim_command_at(i);
        fputs(".TP\n.BR plimsoll\\-", out);
        write_word(out, command->name);
        fputs(" (1)\n", out);
        write_word(out, command->summary);
        fputc('\n', out);
    }
    write_exit_codes(out);
}

void plim_manual_print_command(const struct plim_command *command, const char *version, FILE *out)
{
    begin_command(out, command->name, command->summary, version);
    fputs(".B plimsoll ", out);
    write_word(out, command->name);
    fputs("\n", out);
    bool is_last = command->argument && command->argument[0] == '-'; /* "-- CMD" */
    if (is_last) fputs(".RI [ options ]\n", out);
    if (command->argument) {
        fputs(".I \"", out);
        write_word(out, command->argument);
        fputs("\"\n", out);
    }
    if (!is_last) fputs(".RI [ options ]\n", out);
    fputs(".SH DESCRIPTION\n", out);
    write_prose(out, command->about);
    write_options(out, command->id);
    write_exit_codes(out);
    fputs(".SH SEE ALSO\n.BR plimsoll (1)\n", out);
}

static void write_key(FILE *out, const struct plim_key_doc *doc)
{
    char value[PLIM_KEY_DOC_VALUE];
    plim_key_doc_describe(doc, value, sizeof(value));
    fputs(".TP\n\\fB", out);
    write_word(out, doc->name);
    fputs("\\fR\n", out);
    write_word(out, doc->help);
    fputs("\n.RS\n", out);
    write_word(out, value);
    fputs("\n.RE\n", out);
}

void plim_manual_print_spec(const char *version, FILE *out)
{
    begin(out, "spec", "what is trained, and how", version, "5", "File formats");
    fputs(".SH DESCRIPTION\n", out);
    write_prose(out, plim_help_spec);
    fputs(".SH KEYS\n", out);
    for (size_t i = 0; i < plim_key_doc_count(); i++) {
        struct plim_key_doc doc;
        plim_key_doc_at(i, &doc);
        write_key(out, &doc);
    }
    fputs(".SH SEE ALSO\n.BR plimsoll (1),\n.BR plimsoll\\-help (1)\n", out);
}
