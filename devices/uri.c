#include "uri.h"

#include "autotune/base/text.h"
#include <stdio.h>
#include <string.h>

enum plim_status plim_uri_read_memory(const char *options, int64_t *bytes, struct plim_error *err)
{
    static const char option[] = ",memory=";
    *bytes = 0;
    if (*options == '\0') return PLIM_OK;
    if (strncmp(options, option, sizeof(option) - 1) != 0)
        return plim_fail(err, PLIM_INVALID, "'%.64s' is no device option, expected ,memory=24GiB",
                         options);
    enum plim_status st = plim_parse_bytes(options + sizeof(option) - 1, bytes, err);
    if (st == PLIM_OK && *bytes == 0)
        st = plim_fail(err, PLIM_INVALID, "memory=0: a device has more than that");
    return st;
}

void plim_uri_format_bytes(int64_t bytes, char *out, size_t size)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    size_t unit = 0;
    for (; unit < 3 && bytes % 1024 == 0; unit++) bytes /= 1024;
    snprintf(out, size, "%lld%s", (long long)bytes, units[unit]);
}
