/* A text as xz and back. */
#include "autotune/base/xz.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

struct packed {
    char *bytes;
    size_t count;
};

static struct packed pack(const char *text, size_t length)
{
    struct packed out;
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert(eq(int, plim_xz_pack(text, length, &out.bytes, &out.count, &err), PLIM_OK));
    cr_expect(plim_xz_is(out.bytes, out.count));
    return out;
}

static enum plim_status unpack(const char *packed, size_t count, size_t max_bytes, char **text,
                               size_t *length, struct plim_error *err)
{
    *err = (struct plim_error)PLIM_ERROR_INIT;
    return plim_xz_unpack("job", packed, count, max_bytes, text, length, err);
}

Test(xz, what_goes_in_comes_out_up_to_the_most_that_is_wanted)
{
    static const char text[] = "step: [a0, f1, a0, f1, a0, f1, a0, f1, a0, f1, a0, f1]\n";
    struct plim_error err;
    for (size_t length = 0; length < sizeof(text); length++) {
        struct packed p = pack(text, length);
        char *again;
        size_t got;
        cr_assert(eq(int, unpack(p.bytes, p.count, length, &again, &got, &err), PLIM_OK), "%s",
                  err.text);
        cr_expect(eq(sz, got, length));
        cr_expect(memcmp(again, text, length) == 0 && again[length] == '\0');
        free(again);
        if (length) {
            cr_expect(eq(int, unpack(p.bytes, p.count, length - 1, &again, &got, &err), PLIM_SPEC));
            cr_expect(strstr(err.text, "job: it unpacks to more than") != NULL, "%s", err.text);
        }
        free(p.bytes);
    }
}

/* It is unpacked into a block that grows. */
Test(xz, a_long_text_comes_out_whole)
{
    enum { LENGTH = 3000000 };
    struct plim_error err;
    char *text = malloc(LENGTH), *again;
    size_t got;
    cr_assert(text != NULL);
    for (size_t i = 0; i < LENGTH; i++) text[i] = (char)('a' + i * i % 23);
    struct packed p = pack(text, LENGTH);
    cr_assert(lt(sz, p.count, LENGTH / 20));
    cr_assert(eq(int, unpack(p.bytes, p.count, LENGTH, &again, &got, &err), PLIM_OK), "%s",
              err.text);
    cr_expect(eq(sz, got, LENGTH));
    cr_expect(memcmp(again, text, LENGTH) == 0 && again[LENGTH] == '\0');
    free(again);
    cr_expect(eq(int, unpack(p.bytes, p.count, LENGTH - 1, &again, &got, &err), PLIM_SPEC));
    free(p.bytes);
    free(text);
}

Test(xz, what_is_cut_damaged_or_followed_by_more_is_named)
{
    struct plim_error err;
    struct packed p = pack("some text", 9);
    char *text, longer[128];
    size_t length;
    for (size_t i = 0; i < p.count; i++) {
        cr_expect(eq(int, unpack(p.bytes, i, 100, &text, &length, &err), PLIM_SPEC), "%zu", i);
        cr_expect(strstr(err.text, "cut off") != NULL, "%zu: %s", i, err.text);
    }
    cr_assert(lt(sz, p.count, sizeof(longer)));
    memcpy(longer, p.bytes, p.count);
    longer[p.count] = 'x';
    cr_expect(eq(int, unpack(longer, p.count + 1, 100, &text, &length, &err), PLIM_SPEC));
    cr_expect(strstr(err.text, "more follows") != NULL, "%s", err.text);
    longer[p.count - 1] ^= 1; /* of the two bytes that xz ends with */
    cr_expect(eq(int, unpack(longer, p.count, 100, &text, &length, &err), PLIM_SPEC));
    cr_expect(strstr(err.text, "damaged") != NULL, "%s", err.text);
    free(p.bytes);
}

/* A line of text for which its header asks for 512 MiB to look back. */
Test(xz, more_memory_than_xz_itself_takes_is_refused)
{
    static const char packed[] =
        "\xfd\x37\x7a\x58\x5a\x00\x00\x04\xe6\xd6\xb4\x46\x02\x00\x21\x01\x22\x00\x00\x00\x82\x40\xac\xdc"
        "\x01\x00\x16\x70\x6c\x69\x6d\x73\x6f\x6c\x6c\x5f\x72\x65\x63\x6f\x72\x64\x69\x6e\x67\x3a\x20\x31"
        "\x33\x0a\x00\x00\x4e\x63\xbd\x8d\x5e\x2c\x94\x25\x00\x01\x2f\x17\x81\x08\x49\xb1\x1f\xb6\xf3\x7d"
        "\x01\x00\x00\x00\x00\x04\x59\x5a";
    struct plim_error err;
    char *text;
    size_t length;
    cr_expect(eq(int, unpack(packed, sizeof(packed) - 1, 100, &text, &length, &err), PLIM_SPEC));
    cr_expect(strstr(err.text, "needs more memory") != NULL, "%s", err.text);
}

Test(xz, no_text_is_taken_for_it)
{
    cr_expect(not(plim_xz_is("plimsoll_recording: 3", 21)));
    cr_expect(not(plim_xz_is("\x1f\x8b", 1)));
    cr_expect(not(plim_xz_is("", 0)));
}
