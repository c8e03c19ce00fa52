#include "number_style.h"
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Separates groups of three digits by underscores, as in 55_000. */
static void group(const char *digits, char *out, size_t size)
{
    size_t length = strlen(digits), used = 0;
    for (size_t i = 0; i < length && used + 2 < size; i++) {
        if (i && (length - i) % 3 == 0) out[used++] = '_';
        out[used++] = digits[i];
    }
    out[used] = '\0';
}

char *plim_config_number_text(const char *old, int64_t value, char *out, size_t size)
{
    char digits[32], grouped[48];
    const char *sign = *old == '+' ? "+" : "", *dot, *body = old + (*old == '+' || *old == '-');
    if (body[0] == '0' && (body[1] == 'x' || body[1] == 'X')) {
        snprintf(out, size, "%s0%c%" PRIx64, sign, body[1], (uint64_t)value);
        return out;
    }
    snprintf(digits, sizeof(digits), "%" PRId64, value);
    group(digits, grouped, sizeof(grouped));
    size_t whole = strspn(body, "0123456789_"), exponent = strcspn(body, "eE");
    bool is_number = whole || *body == '.';
    dot = is_number && body[whole] == '.' ? body + whole + 1 : NULL;
    const char *text = is_number && memchr(body, '_', whole) ? grouped : digits;
    if (dot || (is_number && body[exponent]))
        snprintf(out, size, "%s%s.%.*s", sign, text, dot ? (int)strspn(dot, "0123456789") : 1,
                 "00000000000000000000");
    else
        snprintf(out, size, "%s%s", is_number ? sign : "", text);
    return out;
}
