#define _GNU_SOURCE /* strcasestr */
#include "config_value.h"
#include "config_format.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --- numbers ---------------------------------------------------------------------------------- */

/* True for numbers as written in YAML, TOML, Python or a shell. */
static bool is_number(const char *text)
{
    size_t digits = 0;
    text += *text == '-' || *text == '+';
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X') && isxdigit((unsigned char)text[2]))
        return text[2 + strspn(text + 2, "0123456789abcdefABCDEF_")] == '\0';
    for (; isdigit((unsigned char)*text) || (*text == '_' && digits); text++)
        digits += *text != '_';
    if (*text == '.')
        for (text++; isdigit((unsigned char)*text); text++) digits++;
    if (digits && (*text == 'e' || *text == 'E')) {
        text++;
        text += *text == '-' || *text == '+';
        if (!isdigit((unsigned char)*text)) return false;
        text += strspn(text, "0123456789");
    }
    return digits && !*text;
}

int64_t plim_config_integer(const char *text)
{
    char digits[40];
    size_t used = 0;
    if (!text || !is_number(text)) return 0;
    for (; *text && used + 1 < sizeof(digits); text++)
        if (*text != '_') digits[used++] = *text;
    digits[used] = '\0';
    double number = strtod(digits, NULL);
    int64_t whole = number >= 1 && number < 1e15 ? (int64_t)number : 0;
    return (double)whole == number ? whole : 0;
}

static bool is_unset(const char *text)
{
    static const char *const words[] = {"", "null", "~", "none", "auto", "???"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (!strcasecmp(text, words[i])) return true;
    return false;
}

/* --- delimited names -------------------------------------------------------------------------- */

static size_t name_length(const char *text, const char *more)
{
    size_t length = 0;
    while (isalnum((unsigned char)text[length]) || text[length] == '_' ||
           (text[length] && strchr(more, text[length])))
        length++;
    return length;
}

/* True if `text` is `open`, a name, `close`, with optional blanks around the name. */
static bool is_between(const char *text, const char *open, const char *close, const char *more,
                       struct plim_config_value *value)
{
    if (strncmp(text, open, strlen(open)) != 0) return false;
    text += strlen(open);
    text += strspn(text, " \t");
    size_t length = name_length(text, more);
    const char *rest = text + length;
    rest += strspn(rest, " \t");
    if (!length || length >= sizeof(value->name) || strcmp(rest, close) != 0) return false;
    snprintf(value->name, sizeof(value->name), "%.*s", (int)length, text);
    return true;
}

static bool is_upper_name(const char *text)
{
    size_t length = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    return length > 2 && !text[length] && strchr(text, '_') && !isdigit((unsigned char)*text);
}

/* ${NAME:-8}, ${NAME-8}, ${NAME:=8}: true if the default is a number. `at` is the offset of the text. */
static bool is_default(const char *text, size_t at, struct plim_config_value *value)
{
    char number[32];
    if (strncmp(text, "${", 2) != 0) return false;
    size_t length = name_length(text + 2, "");
    const char *rest = text + 2 + length, *close = strchr(rest, '}');
    size_t mark = strspn(rest, ":-=");
    if (!length || !mark || !close || close[1] || length >= sizeof(value->fallback)) return false;
    size_t size = (size_t)(close - rest) - mark;
    if (size >= sizeof(number)) return false;
    snprintf(number, sizeof(number), "%.*s", (int)size, rest + mark);
    if (!is_number(number)) return false;
    snprintf(value->fallback, sizeof(value->fallback), "%.*s", (int)length, text + 2);
    value->meaning = PLIM_CONFIG_NUMBER;
    value->begin = at + (size_t)(rest + mark - text);
    value->end = value->begin + size;
    return true;
}

/* --- meaning by language ---------------------------------------------------------------------- */

/* ${oc.env:NAME}, ${oc.env:NAME,8}, ${env:NAME}, ${NAME:-x}. */
static bool is_environment(const char *text, struct plim_config_value *value)
{
    static const char *const opens[] = {"${oc.env:", "${env:", "${env."};
    for (size_t i = 0; i < sizeof(opens) / sizeof(opens[0]); i++) {
        size_t skip = strlen(opens[i]);
        if (strncmp(text, opens[i], skip) != 0) continue;
        size_t length = name_length(text + skip, "");
        snprintf(value->name, sizeof(value->name), "%.*s", (int)length, text + skip);
        return length > 0;
    }
    size_t length = strncmp(text, "${", 2) ? 0 : name_length(text + 2, "");
    if (!length || strncmp(text + 2 + length, ":-", 2) != 0 || strchr(text + 2, '$')) return false;
    snprintf(value->name, sizeof(value->name), "%.*s", (int)length, text + 2);
    return true;
}

static enum plim_config_meaning meaning_of_data(const struct plim_config_node *node,
                                                struct plim_config_value *value)
{
    static const struct {
        const char *open, *close;
    } marks[] = {{"{{", "}}"}, {"<<", ">>"}, {"<", ">"}, {"@", "@"}, {"%", "%"}, {"__", "__"}};
    const char *text = node->text, *tag = node->tag;
    if (tag && tag[0] == '!') {
        bool pure = !strcmp(tag, "!ref") && is_between(text, "<", ">", ".[]", value);
        return pure ? PLIM_CONFIG_REFERENCE : PLIM_CONFIG_COMPUTED;
    }
    if (is_number(text)) return PLIM_CONFIG_NUMBER;
    if (is_unset(text)) return PLIM_CONFIG_UNSET;
    if (is_between(text, "${", "}", ".[]-:", value) && !strchr(value->name, ':'))
        return PLIM_CONFIG_REFERENCE;
    if (is_between(text, "{{_base_.", "}}", ".", value) ||
        is_between(text, "{{$", "}}", ".", value))
        return PLIM_CONFIG_TEMPLATE;
    if (is_environment(text, value) || is_between(text, "$", "", "", value))
        return PLIM_CONFIG_ENVIRONMENT;
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
        if (is_between(text, marks[i].open, marks[i].close, ".-", value))
            return PLIM_CONFIG_TEMPLATE;
    if (is_upper_name(text)) {
        snprintf(value->name, sizeof(value->name), "%s", text);
        return PLIM_CONFIG_TEMPLATE;
    }
    return strstr(text, "${") || strstr(text, "{{") || strstr(text, "$(") ? PLIM_CONFIG_COMPUTED
                                                                          : PLIM_CONFIG_WORD;
}

static enum plim_config_meaning meaning_of_ini(const struct plim_config_node *node,
                                               struct plim_config_value *value)
{
    const char *text = node->text;
    if (is_between(text, "%(", ")s", "-", value)) return PLIM_CONFIG_REFERENCE;
    if (is_between(text, "${", "}", ":.-", value)) {
        char *colon = strchr(value->name, ':');
        if (colon) *colon = '.';
        return PLIM_CONFIG_REFERENCE;
    }
    return meaning_of_data(node, value);
}

/* "[8]": a list with one number on a command line. */
static bool is_list_of_one(const char *text, struct plim_config_value *value)
{
    char number[32];
    size_t length = strlen(text);
    if (length < 3 || length > sizeof(number) || text[0] != '[' || text[length - 1] != ']')
        return false;
    snprintf(number, sizeof(number), "%.*s", (int)length - 2, text + 1);
    if (!is_number(number)) return false;
    value->begin++;
    value->end--;
    return true;
}

static enum plim_config_meaning meaning_of_shell(const struct plim_config_node *node,
                                                 struct plim_config_value *value)
{
    const char *text = node->text;
    if (is_number(text) || is_list_of_one(text, value)) return PLIM_CONFIG_NUMBER;
    if (is_default(text, value->begin, value)) return PLIM_CONFIG_NUMBER;
    if (!*text) return PLIM_CONFIG_UNSET;
    if (is_between(text, "${", "}", "", value) || is_between(text, "$", "", "", value))
        return isdigit((unsigned char)value->name[0]) ? PLIM_CONFIG_COMPUTED
                                                      : PLIM_CONFIG_REFERENCE;
    if (is_environment(text, value)) return PLIM_CONFIG_ENVIRONMENT;
    if (strchr(text, '$') || strchr(text, '`')) return PLIM_CONFIG_COMPUTED;
    return meaning_of_data(node, value);
}

/* os.environ["NAME"], os.getenv("NAME", 8), int(os.environ.get("NAME", 8)). */
static bool is_python_environment(const char *text, struct plim_config_value *value)
{
    static const char *const calls[] = {"os.environ.get(", "os.environ[", "os.getenv(", "getenv("};
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        const char *found = strstr(text, calls[i]);
        if (!found) continue;
        found += strlen(calls[i]);
        if (*found != '"' && *found != '\'') return false;
        size_t length = name_length(found + 1, "");
        snprintf(value->name, sizeof(value->name), "%.*s", (int)length, found + 1);
        return length > 0;
    }
    return false;
}

static enum plim_config_meaning meaning_of_python(const struct plim_config_node *node,
                                                  struct plim_config_value *value)
{
    const char *text = node->text;
    if (node->style != PLIM_CONFIG_CODE) return meaning_of_data(node, value);
    if (is_number(text)) return PLIM_CONFIG_NUMBER;
    if (!strcmp(text, "None")) return PLIM_CONFIG_UNSET;
    if (is_python_environment(text, value)) return PLIM_CONFIG_ENVIRONMENT;
    if (is_between(text, "", "", ".", value) && !isdigit((unsigned char)*text))
        return strcmp(text, "True") && strcmp(text, "False") ? PLIM_CONFIG_REFERENCE
                                                             : PLIM_CONFIG_WORD;
    return PLIM_CONFIG_COMPUTED;
}

static enum plim_config_meaning meaning_of_gin(const struct plim_config_node *node,
                                               struct plim_config_value *value)
{
    const char *text = node->text;
    if (is_number(text)) return PLIM_CONFIG_NUMBER;
    if (is_between(text, "%", "", "./", value)) return PLIM_CONFIG_REFERENCE;
    if (!strcmp(text, "None")) return PLIM_CONFIG_UNSET;
    return *text == '@' || *text == '(' || *text == '%' ? PLIM_CONFIG_COMPUTED : PLIM_CONFIG_WORD;
}

/* int(os.environ.get("NAME", 8)) */
static enum plim_config_meaning meaning_of_call(const struct plim_config_document *document,
                                                const struct plim_config_node *node,
                                                struct plim_config_value *value)
{
    char text[256];
    size_t begin = plim_config_line_begin(document, node->begin), length = node->end - begin;
    if (length >= sizeof(text)) return PLIM_CONFIG_COMPUTED;
    snprintf(text, sizeof(text), "%.*s", (int)length, document->text + begin);
    return is_python_environment(text, value) ? PLIM_CONFIG_ENVIRONMENT : PLIM_CONFIG_COMPUTED;
}

/* --- schedules by epoch ----------------------------------------------------------------------- */

int64_t plim_config_epoch(const struct plim_config_node *member)
{
    size_t digits = member->key ? strspn(member->key, "0123456789") : 0;
    return digits && digits < 16 && !member->key[digits] ? strtoll(member->key, NULL, 10) : -1;
}

int64_t plim_config_steps(const struct plim_config_node *member)
{
    const struct plim_config_node *node = member->target ? member->target : member;
    return node->kind == PLIM_CONFIG_SCALAR ? plim_config_integer(node->text) : 0;
}

int64_t plim_config_first_steps(const struct plim_config_node *schedule)
{
    for (const struct plim_config_node *member = schedule->first; member; member = member->next)
        if (plim_config_epoch(member) == 0) return plim_config_steps(member);
    return 1;
}

static bool is_schedule(const struct plim_config_node *node)
{
    if (node->kind != PLIM_CONFIG_MAPPING || !node->first) return false;
    for (const struct plim_config_node *member = node->first; member; member = member->next)
        if (plim_config_epoch(member) < 0) return false;
    return true;
}

/* --- meaning of any node ---------------------------------------------------------------------- */

struct plim_config_value plim_config_value_of(const struct plim_config_document *document,
                                              const struct plim_config_node *node)
{
    enum plim_config_meaning (*const of[])(const struct plim_config_node *,
                                           struct plim_config_value *) = {
        [PLIM_CONFIG_DATA] = meaning_of_data,   [PLIM_CONFIG_INI] = meaning_of_ini,
        [PLIM_CONFIG_SHELL] = meaning_of_shell, [PLIM_CONFIG_PYTHON] = meaning_of_python,
        [PLIM_CONFIG_GIN] = meaning_of_gin,
    };
    bool quoted = node->style == PLIM_CONFIG_QUOTED;
    struct plim_config_value value = {
        .meaning = PLIM_CONFIG_WORD, .begin = node->begin + quoted, .end = node->end - quoted};
    if (node->kind == PLIM_CONFIG_MAPPING && !strncmp(document->text + node->begin, "{{", 2)) {
        const char *name = document->text + node->begin + 2;
        name += strspn(name, " ");
        snprintf(value.name, sizeof(value.name), "%.*s", (int)name_length(name, "."), name);
        value.meaning = PLIM_CONFIG_TEMPLATE;
    }
    bool call = document->format->language == PLIM_CONFIG_PYTHON &&
                node->kind == PLIM_CONFIG_MAPPING && document->text[node->begin] == '(';
    if (call) value.meaning = meaning_of_call(document, node, &value);
    if (!call && is_schedule(node)) value.meaning = PLIM_CONFIG_SCHEDULE;
    if (node->kind != PLIM_CONFIG_SCALAR || node->style == PLIM_CONFIG_BLOCK) return value;
    value.meaning = of[document->format->language](node, &value);
    return value;
}

const char *plim_config_names_size(const char *text)
{
    static const char *const names[] = {"batch-size", "batch_size", "batchsize"};
    const char *found = NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !found; i++) found = strcasestr(text, names[i]);
    return found;
}

bool plim_config_mentions(const char *text, const char *path)
{
    const char *dot = strrchr(path, '.'), *last = dot ? dot + 1 : path;
    size_t length = strlen(last);
    if (!length) return false;
    for (const char *at = text; (at = strcasestr(at, last)); at += length) {
        bool starts = at == text || (!isalnum((unsigned char)at[-1]) && at[-1] != '_');
        bool ends = !isalnum((unsigned char)at[length]) && at[length] != '_';
        if (starts && ends) return true;
    }
    return false;
}
