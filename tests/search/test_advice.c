/* What would make a setting fit: each change with what it needs, in its order. */
#include "autotune/search/advice.h"
#include "synthetic.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static const int64_t MIB = INT64_C(1) << 20;

struct expected {
    const char *change;
    int64_t micro_batch, accumulation, seq, mib;
    bool fits;
};

/* A sample of 1024 tokens takes 128 MiB beside 1024 MiB; the allocator takes no more. */
static void expect_advice(struct plim_question *question, struct plim_setting setting,
                          int64_t budget_mib, size_t count, const struct expected *expected)
{
    struct synthetic s;
    struct plim_cache cache = {0};
    struct plim_advices advices = {0};
    synthetic_init(&s, budget_mib * MIB);
    s.slack = s.squeeze = 0;
    s.gradient_bytes = 0;
    s.per_sample_bytes = 128 * MIB;
    struct plim_asker asker = {.runner = &s.runner, .cache = &cache};
    cr_assert(eq(int, plim_advise(question, &asker, &setting, &advices, NULL), PLIM_OK));
    cr_expect(eq(sz, advices.list.count, count));
    for (size_t i = 0; i < count && i < advices.list.count; i++) {
        const struct plim_advice *a = &advices.list.items[i];
        cr_expect(eq(str, (char *)a->change, (char *)expected[i].change));
        cr_expect(eq(i64, a->setting.micro_batch, expected[i].micro_batch), "%s", a->change);
        cr_expect(eq(i64, a->setting.accumulation, expected[i].accumulation), "%s", a->change);
        cr_expect(eq(i64, a->setting.value[SYNTHETIC_SEQ], expected[i].seq), "%s", a->change);
        cr_expect(eq(i64, a->trial.reserved_bytes, expected[i].mib * MIB), "%s", a->change);
        cr_expect(eq(int, a->fits, expected[i].fits), "%s", a->change);
    }
    plim_advices_finish(&advices);
    plim_asker_finish(&asker);
    plim_cache_finish(&cache);
}

static struct plim_setting setting_of(int64_t micro_batch, int64_t accumulation)
{
    struct plim_setting setting = synthetic_setting(micro_batch);
    setting.accumulation = accumulation;
    return setting;
}

/* 24 samples a step; 8 at once fit. What fits comes first. */
Test(advice, what_fits_comes_first)
{
    struct plim_question q = synthetic_question();
    const struct expected expected[] = {{"micro-batch 8, accumulation 3", 8, 3, 1024, 2048, true},
                                        {"checkpointing full", 12, 2, 1024, 1408, true},
                                        {"precision bf16", 12, 2, 1024, 1792, true},
                                        {"sequence 512", 12, 2, 512, 1792, true}};
    expect_advice(&q, setting_of(12, 2), 2100, 4, expected);
    const struct expected less[] = {{"micro-batch 4, accumulation 6", 4, 6, 1024, 1536, true},
                                    {"checkpointing full", 12, 2, 1024, 1408, true},
                                    {"sequence 256", 12, 2, 256, 1408, true},
                                    {"precision bf16", 12, 2, 1024, 1792, false}};
    expect_advice(&q, setting_of(12, 2), 1536, 4, less);
}

/* Nothing fits by itself; checkpointing, bf16 and one sample at a time together do. */
Test(advice, changes_are_added_up_until_they_fit)
{
    struct plim_question q = synthetic_question();
    const struct expected expected[] = {
        {"micro-batch 1 + checkpointing full + precision bf16", 1, 2, 1024, 1040, true},
        {"micro-batch 1, accumulation 2", 1, 2, 1024, 1152, false},
        {"checkpointing full", 2, 1, 1024, 1088, false},
        {"precision bf16", 2, 1, 1024, 1152, false},
        {"sequence 128", 2, 1, 128, 1056, false}};
    expect_advice(&q, setting_of(2, 1), 1050, 5, expected);
}

/* Not even together: what is left is said all the same. */
Test(advice, a_sum_that_does_not_fit_comes_last)
{
    struct plim_question q = synthetic_question();
    const struct expected expected[] = {
        {"checkpointing full", 1, 1, 1024, 1056, false},
        {"precision bf16", 1, 1, 1024, 1088, false},
        {"sequence 128", 1, 1, 128, 1040, false},
        {"checkpointing full + precision bf16", 1, 1, 1024, 1040, false}};
    expect_advice(&q, setting_of(1, 1), 1030, 4, expected);
}

/* A change is made from its values only, and one that does not combine is not added. */
Test(advice, a_change_applies_where_it_applies)
{
    static const int64_t full = SYNTHETIC_FULL;
    struct plim_question q = synthetic_question();
    const struct expected expected[] = {{"precision bf16", 1, 1, 1024, 1040, false},
                                        {"sequence 128", 1, 1, 128, 1028, false}};
    synthetic_axis(&q, SYNTHETIC_CHECKPOINTING, 1, &full);
    struct plim_setting setting = setting_of(1, 1);
    setting.value[SYNTHETIC_CHECKPOINTING] = SYNTHETIC_FULL;
    expect_advice(&q, setting, 1025, 2, expected);
    q.changes[1].combines = false;
    q.changes[0].from = 1 << SYNTHETIC_FULL | 1 << SYNTHETIC_NONE;
    q.changes[0].to = SYNTHETIC_NONE;
    const struct expected none[] = {{"checkpointing full", 1, 1, 1024, 1152, false},
                                    {"precision bf16", 1, 1, 1024, 1040, false},
                                    {"sequence 128", 1, 1, 128, 1028, false}};
    expect_advice(&q, setting, 1025, 3, none);   /* one change is no sum */
    setting.value[SYNTHETIC_CHECKPOINTING] = 64; /* no bit stands for it */
    const struct expected unknown[] = {{"precision bf16", 1, 1, 1024, 1088, false},
                                       {"sequence 128", 1, 1, 128, 1040, false}};
    expect_advice(&q, setting, 1025, 2, unknown);
}

/* Down to an eighth, and to 64 tokens. */
Test(advice, a_sequence_is_halved_so_far)
{
    struct plim_question q = synthetic_question();
    struct plim_setting setting = setting_of(1, 1);
    q.change_count = 0;
    setting.value[SYNTHETIC_SEQ] = 128;
    expect_advice(&q, setting, 1025, 1,
                  (const struct expected[]){{"sequence 64", 1, 1, 64, 1032, false}});
    setting.value[SYNTHETIC_SEQ] = 127;
    expect_advice(&q, setting, 1025, 0, NULL);
    q.axes.seq = -1;
    setting.value[SYNTHETIC_SEQ] = 1024;
    expect_advice(&q, setting, 1025, 0, NULL);
}

Test(advice, none_is_given_where_it_makes_no_sense)
{
    struct plim_question q = synthetic_question();
    expect_advice(&q, setting_of(2, 1), 0, 0, NULL);
    expect_advice(&q, setting_of(2, 1), -1, 0, NULL);
    q.can_advise = false;
    expect_advice(&q, setting_of(2, 1), 1040, 0, NULL);
}
