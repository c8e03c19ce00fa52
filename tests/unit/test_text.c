#include "autotune/base/text.h"
#include "autotune/base/utf8.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

Test(text, sizes_are_parsed)
{
    static const struct {
        const char *text;
        int64_t bytes;
    } cases[] = {
        {"0", 0},
        {"512", 512},
        {"512B", 512},
        {"512 bytes", 512},
        {"1 byte", 1},
        {"24GiB", 24LL << 30},
        {"24 GB", 24000000000},
        {"24gb", 24000000000},
        {"600MiB", 600LL << 20},
        {"600mib", 600LL << 20},
        {"8K", 8192},
        {"8kB", 8000},
        {"2m", 2LL << 20},
        {"3G", 3LL << 30},
        {"1.5TiB", 3LL << 39},
        {"64TiB", 64LL << 40},
        {"1T", 1LL << 40},
        {"2TB", 2000000000000},
        {".5GiB", 1LL << 29},
        {"2.GiB", 2LL << 30},
        {"0.1KiB", 102},
        {"1.5", 2},
        {"1000000000000000000", 1000000000000000000},
        {"1048576TiB", INT64_C(1) << 60},
        {"0.30000000000000000000000000000001GB", 300000000},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t bytes = -1;
        struct plim_error err = PLIM_ERROR_INIT;
        cr_expect(eq(int, plim_parse_bytes(cases[i].text, &bytes, &err), PLIM_OK), "%s",
                  cases[i].text);
        cr_expect(eq(i64, bytes, cases[i].bytes), "%s", cases[i].text);
    }
}

Test(text, what_is_no_size_is_refused_with_the_text_in_the_message)
{
    static const char *const cases[] = {
        "",
        " ",
        "-1",
        "+1",
        "-5GiB",
        "GiB",
        ".",
        ".GiB",
        "12 XB",
        "12GiBs",
        "12 GiB ",
        " 12",
        "1e9",
        "0x10",
        "nan",
        "inf",
        "1,5GiB",
        "1.2.3",
        "1048577TiB",
        "1048576.1TiB",
        "1152921504606846977",
        "9223372036854775808",
        "8388608TiB",
        "99999999999999999999999999",
        "5%",
        "12\n",
        "GiB12",
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t bytes = -1;
        struct plim_error err = PLIM_ERROR_INIT;
        cr_expect(eq(int, plim_parse_bytes(cases[i], &bytes, &err), PLIM_INVALID), "%s", cases[i]);
        cr_expect(eq(i64, bytes, 0));
        cr_expect(ne(ptr, strstr(err.text, "is not a size, expected"), NULL), "%s", err.text);
    }
}

Test(text, sizes_are_written_with_three_digits)
{
    static const struct {
        int64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 B"},
        {1, "1 B"},
        {999, "999 B"},
        {1000, "0.977 KiB"},
        {1023, "0.999 KiB"},
        {1024, "1.00 KiB"},
        {1536, "1.50 KiB"},
        {10234, "9.99 KiB"},
        {10240, "10.0 KiB"},
        {102400, "100 KiB"},
        {1023487, "999 KiB"},
        {1023488, "0.976 MiB"},
        {1LL << 20, "1.00 MiB"},
        {25126000000, "23.4 GiB"},
        {1LL << 46, "64.0 TiB"},
        {INT64_MAX, "8.00 EiB"},
        {INT64_MIN, "-8.00 EiB"},
        {-1536, "-1.50 KiB"},
        {-5, "-5 B"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char out[16];
        cr_expect(eq(str, plim_format_bytes(cases[i].bytes, out), (char *)cases[i].text));
    }
}

Test(text, the_nearest_name_is_found)
{
    static const char *const names[] = {"precision",      "optimizer", "RTX-4090",
                                        "A100-SXM4-80GB", "RTX-3090",  "seq"};
    static const struct {
        const char *word;
        int index;
    } cases[] = {
        {"precison", 0}, {"PRECISION", 0}, {"rpecision", 0}, {"optimiser", 1}, {"rtx4090", 2},
        {"rtx 3090", 4}, {"a100", 3},      {"4090", 2},      {"sequence", -1}, {"seqq", 5},
        {"qes", -1},     {"", -1},         {"xy", -1},       {"zzzzzzzz", -1},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        cr_expect(eq(int, plim_nearest(cases[i].word, names, COUNT(names)), cases[i].index), "%s",
                  cases[i].word);
}

/* "--dev" is two letters away from "--seq", and three from what it begins. */
Test(text, a_name_that_begins_so_is_near)
{
    static const char *const names[] = {"--seq", "--device", "--devices-of-others"};
    cr_expect(eq(int, plim_nearest("--dev", names, COUNT(names)), 1));
    cr_expect(eq(int, plim_nearest("--seg", names, COUNT(names)), 0));
}

Test(text, the_nearest_of_equals_is_the_first)
{
    static const char *const names[] = {"aac", "aab"};
    cr_expect(eq(int, plim_nearest("aad", names, 2), 0));
    cr_expect(eq(int, plim_nearest("aab", names, 2), 1));
}

Test(text, endless_words_and_names_are_not_looked_at)
{
    static char word[100000];
    memset(word, 'a', sizeof(word) - 1);
    const char *const names[] = {word, "aaaa"};
    cr_expect(eq(int, plim_nearest(word, names, 2), -1));
    cr_expect(eq(int, plim_nearest("aaab", names, 2), 1));
}

Test(text, names_are_joined_as_a_sentence_has_them)
{
    static const char *const names[] = {"fp32", "tf32", "bf16"};
    char out[32];
    plim_join_names(names, 3, out, sizeof(out));
    cr_expect(eq(str, out, "fp32, tf32 or bf16"));
    plim_join_names(names, 1, out, sizeof(out));
    cr_expect(eq(str, out, "fp32"));
    plim_join_names(names, 0, out, sizeof(out));
    cr_expect(eq(str, out, ""));
    plim_join_names(names, 3, out, 8);
    cr_expect(eq(str, out, "fp32, t"));
}

/* --- showing ---------------------------------------------------------------------------------- */

Test(text, what_a_terminal_would_obey_is_shown_as_a_number)
{
    static const struct {
        const char *text, *shown;
    } cases[] = {
        {"plain, d\xc3\xa9j\xc3\xa0, \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x9a\xa2",
         "plain, d\xc3\xa9j\xc3\xa0, \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x9a\xa2"},
        {"a\nb\rc\td", "a\\x0ab\\x0dc\\x09d"},
        {"\033]0;title\007\x7f", "\\x1b]0;title\\x07\\x7f"},
        {"\xc2\x9b" "31m\xc2\x85", "\\u009b31m\\u0085"},
        {"\xe2\x80\xae" "abc\xe2\x81\xa6\xd8\x9c", "\\u202eabc\\u2066\\u061c"},
        {"\xe2\x80\xa8\xef\xbb\xbf", "\\u2028\\ufeff"},
        {"\xf3\xa0\x81\x81", "\\U000e0041"},
        {"\x9b" "31m\xff\xc3", "\\x9b31m\\xff\\xc3"},
        {"\xc0\x9b\xed\xa0\x80", "\\xc0\\x9b\\xed\\xa0\\x80"},
        {"", ""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char shown[128], written[128] = "";
        FILE *file = fmemopen(written, sizeof(written), "w");
        plim_text_write(file, cases[i].text);
        fclose(file);
        cr_expect(
            eq(str, plim_text_show(cases[i].text, shown, sizeof(shown)), (char *)cases[i].shown));
        cr_expect(eq(str, written, (char *)cases[i].shown));
    }
}

Test(text, what_is_shown_is_cut_between_characters)
{
    char shown[8];
    cr_expect(eq(str, plim_text_show("abcde\x1b", shown, sizeof(shown)), "abcde"));
    cr_expect(eq(str, plim_text_show("abcdef\xc3\xa9", shown, sizeof(shown)), "abcdef"));
    cr_expect(eq(str, plim_text_show("abc\x1b" "d", shown, sizeof(shown)), "abc\\x1b"));
}

Test(text, half_a_character_is_trimmed_and_nothing_else)
{
    static const struct {
        const char *text, *trimmed;
    } cases[] = {{"", ""}, {"a", "a"}, {"a\xc3", "a"}, {"a\xc3\xa9", "a\xc3\xa9"},
                 {"\xe6\x97", ""}, {"b\xf0\x9f\x9a", "b"}, {"\xa9", "\xa9"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[16];
        strcpy(text, cases[i].text);
        plim_utf8_trim(text);
        cr_expect(eq(str, text, (char *)cases[i].trimmed));
    }
}

Test(text, an_end_is_whole_and_no_longer_than_the_text)
{
    cr_expect(plim_text_ends_with("a.plim", ".plim"));
    cr_expect(plim_text_ends_with(".plim", ".plim"));
    cr_expect(plim_text_ends_with("", ""));
    cr_expect(not(plim_text_ends_with("plim", ".plim")));
    cr_expect(not(plim_text_ends_with("a.plim.gz", ".plim")));
}
