#include "autotune/base/embed.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

/* tests/unit/data/embed_*.txt, by scripts/embed.py */
extern const struct plim_embedded_file test_embedded[];
extern const size_t test_embedded_count;

Test(embed, files_keep_their_order_and_names)
{
    cr_assert(eq(sz, test_embedded_count, 2));
    cr_expect(eq(str, (char *)test_embedded[0].name, "embed_tricky.txt"));
    cr_expect(eq(str, (char *)test_embedded[1].name, "embed_empty.txt"));
}

Test(embed, every_byte_survives)
{
    static const char expected[] = "say \"hi\" \?\?/ \\n\tat 100%\r\n\001"
                                   "2 \xc3\xa9\xff\n\nno newline at the end";
    cr_assert(eq(sz, test_embedded[0].size, sizeof(expected) - 1));
    cr_expect(eq(int, memcmp(test_embedded[0].text, expected, sizeof(expected)), 0));
}

Test(embed, an_empty_file_is_an_empty_text)
{
    cr_expect(eq(sz, test_embedded[1].size, 0));
    cr_expect(eq(str, (char *)test_embedded[1].text, ""));
}
