/* Reads values from the tree of yaml.h. */
#include "yaml.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LONGEST_NUMBER = 64 };

const struct plim_yaml_node *plim_yaml_get(const struct plim_yaml_node *mapping, const char *key)
{
    if (!mapping || mapping->kind != PLIM_YAML_MAPPING) return NULL;
    for (size_t i = 0; i < mapping->count; i++)
        if (strcmp(mapping->keys[i]->text, key) == 0) return mapping->items[i];
    return NULL;
}

enum plim_status plim_yaml_fail(const struct plim_yaml *yaml, const struct plim_yaml_node *node,
                                struct plim_error *err, const char *fmt, ...)
{
    char text[sizeof(err->text)];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return plim_fail_at(err, PLIM_SPEC, yaml ? yaml->source : "", node ? node->line : 0,
                        node ? node->column : 0, "%s", text);
}

bool plim_yaml_is_null(const struct plim_yaml_node *node)
{
    if (!node) return true;
    if (node->kind != PLIM_YAML_SCALAR || node->quoted) return false;
    const char *text = node->text;
    return !text[0] || strcmp(text, "~") == 0 || strcasecmp(text, "null") == 0;
}

bool plim_yaml_is_text(const struct plim_yaml_node *node, const char *text)
{
    return node && node->kind == PLIM_YAML_SCALAR && strcmp(node->text, text) == 0;
}

static enum plim_status expected(const struct plim_yaml *yaml, const struct plim_yaml_node *node,
                                 const char *what, struct plim_error *err)
{
    if (plim_yaml_is_null(node))
        return plim_yaml_fail(yaml, node, err, "expected %s, found nothing", what);
    if (node->kind != PLIM_YAML_SCALAR)
        return plim_yaml_fail(yaml, node, err, "expected %s, found a %s", what,
                              node->kind == PLIM_YAML_SEQUENCE ? "list" : "mapping");
    return plim_yaml_fail(yaml, node, err, "expected %s, found %s'%.80s'", what,
                          node->quoted ? "the quoted text " : "", node->text);
}

static bool is_plain_scalar(const struct plim_yaml_node *node)
{
    return node && node->kind == PLIM_YAML_SCALAR && !node->quoted;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Copies digits from `at` to `*to`, without the `_` between them. Returns the end of the digits. */
static const char *copy_digits(const char *at, char **to)
{
    const char *first = at;
    for (; is_digit(*at) || (*at == '_' && at > first && is_digit(at[1])); at++)
        if (*at != '_') *(*to)++ = *at;
    return at;
}

/* Copies `text` to `clean` (LONGEST_NUMBER bytes) in a form that strtod() reads. Returns false if it is not a decimal
 * number or too long; strtod() alone would also accept hexadecimal, infinity and NaN. */
static bool clean_number(const char *text, bool integer, char *clean)
{
    if (strlen(text) >= LONGEST_NUMBER) return false;
    char *to = clean;
    const char *at = text;
    if (*at == '+' || *at == '-') *to++ = *at++;
    if (at[0] == '0' && (is_digit(at[1]) || at[1] == '_')) return false;
    const char *digits = at;
    at = copy_digits(at, &to);
    bool has_digits = at > digits;
    if (!integer && *at == '.') {
        *to++ = *at++;
        digits = at;
        at = copy_digits(at, &to);
        has_digits = has_digits || at > digits;
    }
    if (!integer && has_digits && (*at == 'e' || *at == 'E')) {
        *to++ = *at++;
        if (*at == '+' || *at == '-') *to++ = *at++;
        has_digits = is_digit(*at);
        at = copy_digits(at, &to);
    }
    *to = '\0';
    return has_digits && *at == '\0';
}

enum plim_status plim_yaml_int(const struct plim_yaml *yaml, const struct plim_yaml_node *node,
                               int64_t *out, struct plim_error *err)
{
    char clean[LONGEST_NUMBER];
    *out = 0;
    if (!is_plain_scalar(node) || !clean_number(node->text, true, clean))
        return expected(yaml, node, "an integer", err);
    errno = 0;
    long long value = strtoll(clean, NULL, 10);
    if (errno == ERANGE) return expected(yaml, node, "an integer below 2^63", err);
    *out = value;
    return PLIM_OK;
}

enum plim_status plim_yaml_number(const struct plim_yaml *yaml, const struct plim_yaml_node *node,
                                  double *out, struct plim_error *err)
{
    char clean[LONGEST_NUMBER];
    *out = 0.0;
    if (!is_plain_scalar(node) || !clean_number(node->text, false, clean))
        return expected(yaml, node, "a number", err);
    double value = strtod(clean, NULL);
    if (!isfinite(value)) return expected(yaml, node, "a number below 1e308", err);
    *out = value;
    return PLIM_OK;
}

enum plim_status plim_yaml_bool(const struct plim_yaml *yaml, const struct plim_yaml_node *node,
                                bool *out, struct plim_error *err)
{
    static const struct {
        const char *text;
        bool value;
    } words[] = {{"true", true},   {"yes", true}, {"on", true},
                 {"false", false}, {"no", false}, {"off", false}};
    *out = false;
    for (size_t i = 0; is_plain_scalar(node) && i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasecmp(node->text, words[i].text) != 0) continue;
        *out = words[i].value;
        return PLIM_OK;
    }
    return expected(yaml, node, "true or false", err);
}

enum plim_status plim_yaml_text(const struct plim_yaml *yaml, const struct plim_yaml_node *node,
                                const char **out, struct plim_error *err)
{
    *out = "";
    if (!node || node->kind != PLIM_YAML_SCALAR || plim_yaml_is_null(node))
        return expected(yaml, node, "a text", err);
    *out = node->text;
    return PLIM_OK;
}
