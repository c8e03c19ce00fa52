#include "text.h"
#include "utf8.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct unit {
    const char *name;
    int64_t bytes;
} units[] = {
    {"", 1},
    {"b", 1},
    {"byte", 1},
    {"bytes", 1},
    {"k", 1LL << 10},
    {"kib", 1LL << 10},
    {"kb", 1000},
    {"m", 1LL << 20},
    {"mib", 1LL << 20},
    {"mb", 1000000},
    {"g", 1LL << 30},
    {"gib", 1LL << 30},
    {"gb", 1000000000},
    {"t", 1LL << 40},
    {"tib", 1LL << 40},
    {"tb", 1000000000000},
};

static const struct unit *find_unit(const char *name)
{
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strcasecmp(name, units[i].name) == 0) return &units[i];
    return NULL;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads a number such as "12.5" as 12 and 0.5, and advances *at past it. Returns false if there is none or it
 * overflows. */
static bool scan_decimal(const char **at, int64_t *whole, double *fraction)
{
    const char *c = *at;
    size_t digits = 0;
    *whole = 0;
    *fraction = 0.0;
    for (; is_digit(*c); c++, digits++) {
        if (*whole > (INT64_MAX - (*c - '0')) / 10) return false;
        *whole = *whole * 10 + (*c - '0');
    }
    if (*c == '.') {
        double place = 0.1;
        for (c++; is_digit(*c); c++, digits++, place /= 10) *fraction += place * (*c - '0');
    }
    *at = c;
    return digits > 0;
}

enum plim_status plim_parse_bytes(const char *text, int64_t *bytes, struct plim_error *err)
{
    *bytes = 0;
    const char *at = text;
    int64_t whole;
    double fraction;
    if (!scan_decimal(&at, &whole, &fraction)) goto bad;
    while (*at == ' ') at++;
    const struct unit *unit = find_unit(at);
    if (!unit) goto bad;
    if (whole > PLIM_MOST_BYTES / unit->bytes) goto bad;
    int64_t part = (int64_t)(fraction * (double)unit->bytes + 0.5);
    if (whole * unit->bytes > PLIM_MOST_BYTES - part) goto bad;
    *bytes = whole * unit->bytes + part;
    return PLIM_OK;
bad:
    return plim_fail(err, PLIM_INVALID,
                     "'%.80s' is not a size, expected at most 1 EiB, such as 24GiB, 600MiB or 512",
                     text);
}

char *plim_format_bytes(int64_t bytes, char out[16])
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    double size = value < 0 ? -value : value;
    size_t unit = 0;
    /* 999.5 would be rounded to four digits. */
    for (; size >= (unit == 0 ? 1000.0 : 999.5); unit++) size /= 1024;
    int decimals = unit == 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
    snprintf(out, 16, "%s%.*f %s", value < 0 ? "-" : "", decimals, size, names[unit]);
    return out;
}

/* --- text for display ----------------------------------------------------------------------- */

enum { LONGEST_SHOWN = 11 }; /* \UNNNNNNNN and the terminator */

/* True for characters that control a terminal, or that make a text look like another. */
static bool is_hidden(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } hidden[] = {{0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},   {0x200e, 0x200f},
                  {0x2028, 0x202e}, {0x2066, 0x2069}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb},
                  {0xe0000, 0xe007f}};
    for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
        if (code >= hidden[i].first && code <= hidden[i].last) return true;
    return false;
}

/* Writes one character as it is shown. Returns the number of bytes read. */
static size_t show_character(const char *at, size_t left, char out[LONGEST_SHOWN])
{
    uint32_t code = (unsigned char)*at;
    size_t length = plim_utf8_decode((const unsigned char *)at, left, &code);
    if (!length || (length == 1 && is_hidden(code)))
        snprintf(out, LONGEST_SHOWN, "\\x%02x", (unsigned char)*at);
    else if (is_hidden(code))
        snprintf(out, LONGEST_SHOWN, code > 0xffff ? "\\U%08x" : "\\u%04x", (unsigned)code);
    else
        snprintf(out, LONGEST_SHOWN, "%.*s", (int)length, at);
    return length ? length : 1;
}

bool plim_text_is_plain(const char *text)
{
    char shown[LONGEST_SHOWN];
    for (size_t left = strlen(text), length; left > 0; text += length, left -= length) {
        length = show_character(text, left, shown);
        if (strlen(shown) != length) return false;
    }
    return true;
}

char *plim_text_show(const char *text, char *out, size_t size)
{
    char shown[LONGEST_SHOWN];
    size_t left = strlen(text), used = 0;
    while (left > 0) {
        size_t length = show_character(text, left, shown), bytes = strlen(shown);
        if (used + bytes >= size) break;
        memcpy(out + used, shown, bytes);
        used += bytes;
        text += length;
        left -= length;
    }
    out[used] = '\0';
    return out;
}

void plim_text_write(FILE *file, const char *text)
{
    char shown[LONGEST_SHOWN];
    for (size_t left = strlen(text), length; left > 0; text += length, left -= length) {
        length = show_character(text, left, shown);
        fputs(shown, file);
    }
}

/* --- similar names -------------------------------------------------------------------------- */

enum { LONGEST_NAME = 64 };

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static int min3(int a, int b, int c)
{
    int ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Returns the optimal string alignment distance: insertions, deletions, substitutions and transpositions. */
static int edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    int rows[3][LONGEST_NAME + 1];
    int *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b_length; j++) above[j] = (int)j;
    for (size_t i = 1; i <= a_length; i++) {
        row[0] = (int)i;
        for (size_t j = 1; j <= b_length; j++) {
            char x = lower(a[i - 1]), y = lower(b[j - 1]);
            row[j] = min3(row[j - 1] + 1, above[j] + 1, above[j - 1] + (x != y));
            bool swapped = i > 1 && j > 1 && x == lower(b[j - 2]) && lower(a[i - 2]) == y;
            if (swapped && before[j - 2] + 1 < row[j]) row[j] = before[j - 2] + 1;
        }
        int *oldest = before;
        before = above;
        above = row;
        row = oldest;
    }
    return above[b_length];
}

static bool contains(const char *name, const char *word, size_t word_length)
{
    for (; *name; name++)
        if (strncasecmp(name, word, word_length) == 0) return true;
    return false;
}

int plim_nearest(const char *word, const char *const *names, size_t count)
{
    size_t word_length = strnlen(word, LONGEST_NAME + 1);
    if (word_length == 0 || word_length > LONGEST_NAME) return -1;

    int best = -1, best_distance = (int)(word_length + 2) / 3 + 1; /* one more than similar */
    for (size_t i = 0; i < count; i++) {
        size_t length = strnlen(names[i], LONGEST_NAME + 1);
        if (length > LONGEST_NAME) continue;
        int distance = edit_distance(word, word_length, names[i], length);
        bool is_begun = word_length >= 3 && strncasecmp(names[i], word, word_length) == 0;
        if (is_begun && distance > 1) distance = 1;
        /* No letter in common: "ab" is not a misspelling of "xy". */
        bool unlike = distance >= (int)(word_length > length ? word_length : length);
        if (distance < best_distance && !unlike) {
            best = (int)i;
            best_distance = distance;
        }
    }
    for (size_t i = 0; best < 0 && word_length >= 3 && i < count; i++)
        if (contains(names[i], word, word_length)) best = (int)i;
    return best;
}

bool plim_text_ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && !strcmp(text + length - tail, end);
}

void plim_join_names(const char *const *names, size_t count, char *out, size_t size)
{
    size_t used = 0;
    if (size) out[0] = '\0';
    for (size_t i = 0; i < count && used < size; i++) {
        const char *before = i == 0 ? "" : i + 1 == count ? " or " : ", ";
        int wrote = snprintf(out + used, size - used, "%s%s", before, names[i]);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
}
