/* Facts: what a kept answer depends on, hashed and compared. */
#include "autotune/store/facts.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

Test(facts, different_facts_have_different_hashes)
{
    static const char *const pairs[][4] = {{"a", "b", "", ""},   {"ab", "", "", ""},
                                           {"a", "", "b", ""},   {"", "ab", "", ""},
                                           {"a", "1:b", "", ""}, {"", "", "a", "b"}};
    char hashes[6][PLIM_SHA256_TEXT];
    for (int i = 0; i < 6; i++) {
        struct plim_facts facts = {0};
        plim_facts_add(&facts, pairs[i][0], pairs[i][1]);
        plim_facts_add(&facts, pairs[i][2], pairs[i][3]);
        plim_facts_hash(&facts, hashes[i]);
        for (int k = 0; k < i; k++) cr_expect(ne(str, hashes[i], hashes[k]), "%d, %d", i, k);
        plim_facts_finish(&facts);
    }
}

Test(facts, a_mismatch_counts_before_what_is_unknown)
{
    struct plim_facts kept = {0}, now = {0};
    const char *culprit;
    plim_facts_add(&kept, "a", "");
    plim_facts_add(&kept, "b", "1");
    plim_facts_add(&now, "a", "1");
    plim_facts_add(&now, "b", "2");
    cr_expect(eq(int, plim_facts_compare(&kept, &now, &culprit), PLIM_FACTS_MISMATCH));
    cr_expect(eq(str, (char *)culprit, (char *)"b"));
    plim_facts_finish(&now);
    plim_facts_add(&now, "b", "1");
    plim_facts_add(&now, "c", "1");
    cr_expect(eq(int, plim_facts_compare(&kept, &now, &culprit), PLIM_FACTS_UNKNOWN));
    cr_expect(eq(str, (char *)culprit, (char *)"a"));
    plim_facts_finish(&kept);
    plim_facts_add(&kept, "b", "1");
    cr_expect(eq(int, plim_facts_compare(&kept, &now, &culprit), PLIM_FACTS_UNKNOWN));
    cr_expect(eq(str, (char *)culprit, (char *)"c"));
    plim_facts_finish(&kept);
    plim_facts_finish(&now);
}
