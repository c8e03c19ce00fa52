#include "name.h"
#include <stdlib.h>
#include <string.h>

struct plim_name plim_name_argument(const char *at, int index)
{
    int depth = 0;
    const char *begin = at;
    for (const char *c = at; c && *c; c++) {
        bool ends = depth == 0 && (*c == ',' || *c == '>');
        depth += (strchr("<({[", *c) != NULL) - (strchr(">)}]", *c) != NULL);
        if (!ends) continue;
        while (*begin == ' ') begin++;
        if (!index--) return (struct plim_name){begin, (size_t)(c - begin)};
        if (*c == '>') break;
        begin = c + 1;
    }
    return (struct plim_name){0};
}

const char *plim_name_behind(struct plim_name part, const char *word)
{
    size_t length = strlen(word);
    for (size_t i = 0; part.at && i + length <= part.length; i++)
        if (!strncmp(part.at + i, word, length)) return part.at + i + length;
    return NULL;
}

bool plim_name_begins(struct plim_name part, const char *word)
{
    size_t length = strlen(word);
    return part.at && part.length >= length && !strncmp(part.at, word, length);
}

enum plim_type plim_name_type(struct plim_name part)
{
    const char *at = part.at;
    enum plim_type type = at ? plim_type_read(&at) : PLIM_NO_TYPE;
    return at && at <= part.at + part.length + 1 ? type : PLIM_NO_TYPE;
}

int64_t plim_name_opaque_bytes(struct plim_name part)
{
    const char *bytes = plim_name_behind(part, "OpaqueType<");
    int64_t number = bytes ? strtoll(bytes, NULL, 10) : 0;
    return number > 0 ? number : 0;
}

static enum plim_type read_parameter(const char **at, bool words)
{
    static const char word[] = "unsigned ";
    const char *signed_name = *at;
    while (*signed_name == ' ') signed_name++;
    bool is_word = words && !strncmp(signed_name, word, strlen(word));
    enum plim_type type = plim_type_read(at);
    if (type != PLIM_NO_TYPE || !is_word) return type;
    *at = signed_name + strlen(word);
    return plim_type_read(at);
}

int plim_name_lambda(struct plim_name part, bool words, enum plim_type *types, int most)
{
    static const char word[] = "{lambda(";
    const char *last = NULL, *end = part.at + part.length;
    for (const char *c = part.at;
         c && (c = plim_name_behind((struct plim_name){c, (size_t)(end - c)}, word));)
        if (*c != ')') last = c;
    int count = 0;
    while (last && *last != ')' && count < most) {
        types[count] = read_parameter(&last, words);
        if (types[count] == PLIM_NO_TYPE) return -1;
        count++;
    }
    return last && *last != ')' ? -1 : count;
}
