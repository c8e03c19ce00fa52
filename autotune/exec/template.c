#include "template.h"
#include "autotune/base/text_stream.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool plim_template_is_name(const char *text, size_t length)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    return length > 0 && strspn(text, allowed) >= length;
}

/* Returns the length of "{name}" if the text starts with it, otherwise 0. */
static size_t match(const char *text, const char *name)
{
    size_t length = strlen(name);
    bool found = text[0] == '{' && !strncmp(text + 1, name, length) && text[length + 1] == '}';
    return found ? length + 2 : 0;
}

bool plim_template_has(const char *text, const char *name)
{
    for (; (text = strchr(text, '{')); text++)
        if (match(text, name)) return true;
    return false;
}

enum plim_status plim_template_expand(const char *text, const struct plim_placeholder *words,
                                      size_t count, char **out)
{
    struct plim_text_stream stream;
    FILE *file = plim_text_stream_open(&stream);
    while (file && *text) {
        size_t length = 0, plain = strcspn(text, "{");
        fwrite(text, 1, plain, file);
        text += plain;
        for (size_t i = 0; i < count && !length; i++) {
            length = match(text, words[i].name);
            if (length) fputs(words[i].value, file);
        }
        if (!length && *text) fputc(*text, file), length = 1;
        text += length;
    }
    return plim_text_stream_close(&stream, out);
}
