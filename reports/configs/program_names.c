#include "program_names.h"
#include "config_format.h"
#include <ctype.h>
#include <string.h>
#include <strings.h>

static bool is_part(char c)
{
    return isalnum((unsigned char)c) != 0;
}

/* Finds `words` between two offsets of a text, as whole words. */
static struct plim_config_program find_words(const char *text, size_t begin, size_t end,
                                             const char *words)
{
    size_t length = strlen(words);
    for (size_t at = begin; at + length <= end; at++) {
        bool begins = at == begin || !is_part(text[at - 1]);
        bool ends =
            !is_part(words[length - 1]) || at + length == end || !is_part(text[at + length]);
        if (begins && ends && !strncasecmp(text + at, words, length))
            return (struct plim_config_program){at, length};
    }
    return (struct plim_config_program){0};
}

/* True if `file` is a Python file called `name`, or whose name contains that word. */
static bool is_named(const char *text, struct plim_config_program file, const char *name)
{
    bool is_program = file.length > 3 && !strncmp(text + file.begin + file.length - 3, ".py", 3);
    size_t length = find_words(text, file.begin, file.begin + file.length, name).length;
    return is_program && length && (!strchr(name, '.') || length == file.length);
}

static struct plim_config_program in_command(const char *text, size_t at, size_t end,
                                             const char *name)
{
    if (strchr(name, ' ')) return find_words(text, at, end, name);
    while (at < end && text[at] != '#') {
        size_t length = strcspn(text + at, " \t\r\n\\\"';="), begin;
        for (begin = at + length; begin > at && text[begin - 1] != '/';) begin--;
        struct plim_config_program file = {begin, at + length - begin};
        if (is_named(text, file, name)) return file;
        at += length + 1;
    }
    return (struct plim_config_program){0};
}

/* Finds a module in "import unsloth" or "from unsloth.chat_templates import ...", or a call such as
 * "model.gradient_checkpointing_enable()". */
static struct plim_config_program in_program(const char *text, size_t at, size_t end,
                                             const char *name)
{
    size_t size = !strncmp(text + at, "import ", 7) ? 7 : !strncmp(text + at, "from ", 5) ? 5 : 0;
    size_t length = strlen(name);
    if (strchr(name, '(')) return find_words(text, at, end, name);
    if (!size || strncmp(text + at + size, name, length) != 0 ||
        !strchr(". ,\r\n", text[at + size + length]))
        return (struct plim_config_program){0};
    return (struct plim_config_program){at + size, length};
}

struct plim_config_program plim_config_program_named(const struct plim_config_document *document,
                                                     const char *name)
{
    struct plim_config_program found = {0};
    enum plim_config_language language = document->format->language;
    const char *text = document->text;
    if (language != PLIM_CONFIG_SHELL && language != PLIM_CONFIG_PYTHON) return found;
    for (size_t at = 0, end; at < document->length && !found.length;
         at = end + (end < document->length)) {
        end = at + strcspn(text + at, "\n");
        at += strspn(text + at, " \t\r");
        if (text[at] == '#') continue;
        found = language == PLIM_CONFIG_SHELL ? in_command(text, at, end, name)
                                              : in_program(text, at, end, name);
    }
    return found;
}
