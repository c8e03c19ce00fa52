#include "uri.h"

#include "autotune/base/text.h"
#include <stdio.h>
#include <string.h>

static enum plim_status read_memory(const char *value, struct plim_uri_options *out,
                                    struct plim_error *err)
{
    enum plim_status st = plim_parse_bytes(value, &out->memory_bytes, err);
    if (st == PLIM_OK && out->memory_bytes == 0)
        st = plim_fail(err, PLIM_INVALID, "memory=0: a device has more than that");
    return st;
}

static enum plim_status read_placement(const char *value, struct plim_uri_options *out,
                                       struct plim_error *err)
{
    out->ascending = !strcmp(value, "ascending");
    if (out->ascending || !strcmp(value, "driver")) return PLIM_OK;
    return plim_fail(err, PLIM_INVALID, "placement=%.64s, expected driver or ascending", value);
}

static const struct {
    const char *name;
    enum plim_status (*read)(const char *, struct plim_uri_options *, struct plim_error *);
} options_table[] = {{",memory=", read_memory}, {",placement=", read_placement}};

enum { OPTIONS = sizeof(options_table) / sizeof(options_table[0]) };

/* Returns which option a comma starts; OPTIONS: none. */
static size_t option_at(const char *text)
{
    size_t i = 0;
    while (i < OPTIONS && strncmp(text, options_table[i].name, strlen(options_table[i].name))) i++;
    return i;
}

size_t plim_uri_length(const char *text)
{
    size_t length = strcspn(text, ",");
    while (text[length] && option_at(text + length) < OPTIONS)
        length += 1 + strcspn(text + length + 1, ",");
    return length;
}

enum plim_status plim_uri_read(const char *options, struct plim_uri_options *out,
                               struct plim_error *err)
{
    unsigned seen = 0;
    *out = (struct plim_uri_options){0};
    while (*options) {
        size_t i = option_at(options);
        if (i == OPTIONS)
            return plim_fail(err, PLIM_INVALID,
                             "'%.64s' is no device option, expected one such as ,memory=24GiB", options);
        if (seen & 1u << i) return plim_fail(err, PLIM_INVALID, "'%.64s': given twice", options);
        seen |= 1u << i;
        char value[64];
        options += strlen(options_table[i].name);
        size_t length = strcspn(options, ",");
        snprintf(value, sizeof(value), "%.*s",
                 (int)(length < sizeof(value) ? length : sizeof(value)), options);
        enum plim_status st = options_table[i].read(value, out, err);
        if (st != PLIM_OK) return st;
        options += length;
    }
    return PLIM_OK;
}

enum plim_status plim_uri_read_memory(const char *options, int64_t *bytes, struct plim_error *err)
{
    struct plim_uri_options read;
    enum plim_status st = plim_uri_read(options, &read, err);
    *bytes = read.memory_bytes;
    if (st == PLIM_OK && read.ascending)
        st = plim_fail(err, PLIM_INVALID, "placement=ascending: only of simulated GPUs (sim:NAME)");
    return st;
}

void plim_uri_format_bytes(int64_t bytes, char *out, size_t size)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    size_t unit = 0;
    for (; unit < 3 && bytes % 1024 == 0; unit++) bytes /= 1024;
    snprintf(out, size, "%lld%s", (long long)bytes, units[unit]);
}
