#include "axis_values.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void plim_axis_values_finish(struct plim_axis_values *list)
{
    if (!list) return;
    for (size_t i = 0; i < list->values.count; i++) free(list->values.items[i]);
    PLIM_ARRAY_FINISH(&list->values);
}

/* Reads a positive integer that is followed by a character of `ends` or the end of the text, and advances *text past
 * it. */
static bool read_integer(const char **text, const char *ends, int64_t *out)
{
    char *end;
    if (**text < '0' || **text > '9') return false;
    errno = 0;
    *out = strtoll(*text, &end, 10);
    if (errno || *out < 1 || !strchr(ends, *end)) return false;
    *text = end;
    return true;
}

static enum plim_status add(struct plim_axis_values *list, const char *text, size_t length,
                            const char *option, struct plim_error *err)
{
    for (size_t i = 0; i < list->values.count; i++)
        if (!strncmp(list->values.items[i], text, length) && !list->values.items[i][length])
            return plim_fail(err, PLIM_INVALID, "%s has '%.*s' twice", option, (int)length, text);
    if (list->values.count == PLIM_LIST_VALUES)
        return plim_fail(err, PLIM_INVALID, "%s has more than %d values", option, PLIM_LIST_VALUES);
    char *value = strndup(text, length);
    if (value && PLIM_ARRAY_PUSH(&list->values, value) == PLIM_OK) return PLIM_OK;
    free(value);
    return plim_no_memory(err);
}

static enum plim_status add_integers(struct plim_axis_values *list, int64_t step, int64_t factor,
                                     const char *option, struct plim_error *err)
{
    char text[24];
    for (int64_t v = list->first;; v = factor ? v * factor : v + step) {
        int length = snprintf(text, sizeof(text), "%" PRId64, v);
        enum plim_status st = add(list, text, (size_t)length, option, err);
        bool is_last = factor ? v > list->last / factor : v > list->last - step;
        if (st || is_last) return st;
    }
}

/* Reads "first:last", "first:last:step" or "first:last:xfactor". Returns false for any other text. */
static bool read_range(const char *text, int64_t *first, int64_t *last, int64_t *step,
                       int64_t *factor)
{
    *step = *factor = 0;
    if (!read_integer(&text, ":", first)) return false;
    text++;
    if (!read_integer(&text, ":", last)) return false;
    if (!*text) return true;
    text++;
    bool multiplies = *text == 'x';
    text += multiplies;
    int64_t *by = multiplies ? factor : step;
    return read_integer(&text, "", by) && !*text && (!multiplies || *by > 1);
}

static enum plim_status read_list(struct plim_axis_values *list, const char *text,
                                  const char *option, struct plim_error *err)
{
    for (;;) {
        size_t length = strcspn(text, ",");
        if (!length) return plim_fail(err, PLIM_INVALID, "%s has an empty value", option);
        enum plim_status st = add(list, text, length, option, err);
        if (st || !text[length]) return st;
        text += length + 1;
    }
}

enum plim_status plim_axis_values_parse(const char *option, const char *text,
                                       struct plim_axis_values *list, struct plim_error *err)
{
    int64_t step, factor;
    if (!strchr(text, ':')) return read_list(list, text, option, err);
    if (!read_range(text, &list->first, &list->last, &step, &factor) || list->last < list->first)
        return plim_fail(err, PLIM_INVALID,
                         "%s is '%s', expected a list (8,16,32) or a range (1:512, 256:1024:256, "
                         "1:512:x2)",
                         option, text);
    list->is_range = !step && !factor;
    return list->is_range ? PLIM_OK : add_integers(list, step, factor, option, err);
}

enum plim_status plim_axis_values_spread(struct plim_axis_values *list, const char *option,
                                        struct plim_error *err)
{
    if (!list->is_range) return PLIM_OK;
    list->is_range = false;
    return add_integers(list, 1, 0, option, err);
}

enum plim_status plim_axis_values_integers(const struct plim_axis_values *list, const char *option,
                                          int64_t *out, size_t size, size_t *count,
                                          struct plim_error *err)
{
    uint64_t wanted =
        list->is_range ? (uint64_t)(list->last - list->first) + 1 : list->values.count;
    *count = 0;
    if (wanted > size)
        return plim_fail(err, PLIM_INVALID, "%s has more than %zu values", option, size);
    for (; *count < wanted; ++*count) {
        const char *text = list->is_range ? "" : list->values.items[*count];
        out[*count] = list->first + (int64_t)*count;
        if (list->is_range || (read_integer(&text, "", &out[*count]) && !*text)) continue;
        return plim_fail(err, PLIM_INVALID, "%s has '%s', expected a whole number from 1 on",
                         option, list->values.items[*count]);
    }
    return PLIM_OK;
}
