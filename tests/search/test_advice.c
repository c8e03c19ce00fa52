/* What would make a setting fit: each change with what it needs, in its order. */
#include "autotune/search/advice.h"
#include "synthetic.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>

static const int64_t MIB = INT64_C(1) << 20;

struct expected {
    const char *change;
    int64_t micro_batch, accumulation, seq, mib;
    bool fits;
};

/* A sample of 1024 tokens takes 128 MiB beside 1024 MiB; the allocator takes no more. The runs that
 * were made are `runs`, unless it is 0. */
static void expect_advice_of_runs(struct plim_question *question, struct plim_setting setting,
                                  int64_t budget_mib, size_t count, const struct expected *expected,
                                  size_t runs)
{
    struct synthetic s;
    struct plim_cache cache = {0};
    struct plim_advices advices = {0};
    synthetic_init(&s, budget_mib * MIB);
    s.slack = s.squeeze = 0;
    s.gradient_bytes = 0;
    s.per_sample_bytes = 128 * MIB;
    s.world = question->spread.world;
    struct plim_prober prober = {.runner = &s.runner, .cache = &cache};
    cr_assert(eq(int, plim_advise(question, &prober, &setting, &advices, NULL), PLIM_OK));
    cr_expect(eq(sz, advices.list.count, count));
    if (runs) cr_expect(eq(sz, s.limited_runs + s.unlimited_runs, runs));
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
    plim_prober_finish(&prober);
    plim_cache_finish(&cache);
}

static void expect_advice(struct plim_question *question, struct plim_setting setting,
                          int64_t budget_mib, size_t count, const struct expected *expected)
{
    expect_advice_of_runs(question, setting, budget_mib, count, expected, 0);
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

/* No single change fits; checkpointing, bf16 and one sample per micro-batch fit together. */
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

/* Two samples are the fewest that may be run. */
Test(advice, no_smaller_batch_than_the_first)
{
    struct plim_question q = synthetic_question();
    q.batch.first = 2;
    const struct expected expected[] = {
        {"micro-batch 2 + checkpointing full + precision bf16", 2, 2, 1024, 1056, true},
        {"micro-batch 2, accumulation 2", 2, 2, 1024, 1280, false},
        {"checkpointing full", 4, 1, 1024, 1152, false},
        {"precision bf16", 4, 1, 1024, 1280, false},
        {"sequence 128", 4, 1, 128, 1088, false}};
    expect_advice(&q, setting_of(4, 1), 1060, 5, expected);
}

/* Not even together: the remaining need is reported all the same. */
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

/* The advice has what was tried: one value of each axis. */
Test(advice, a_later_change_of_an_axis_takes_the_place_of_an_earlier_one)
{
    struct plim_question q = synthetic_question();
    const struct expected expected[] = {
        {"checkpointing full", 1, 1, 1024, 1056, false},
        {"precision bf16", 1, 1, 1024, 1088, false},
        {"sequence 128", 1, 1, 128, 1040, false},
        {"checkpointing none + precision bf16", 1, 1, 1024, 1088, false}};
    q.changes[q.change_count++] = (struct plim_change){.axis = SYNTHETIC_CHECKPOINTING,
                                                       .from = 1 << SYNTHETIC_FULL,
                                                       .to = SYNTHETIC_NONE,
                                                       .combines = true,
                                                       .text = "checkpointing none"};
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
    setting.value[SYNTHETIC_CHECKPOINTING] = 64; /* no bit represents it */
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

/* --- more GPUs ---------------------------------------------------------------------------------- */

enum { SHARDING = SYNTHETIC_AXES, WORLD };

/* Only the GPUs may be changed; they share the 1024 MiB. */
static struct plim_question question_of_gpus(void)
{
    static const char *const shardings[] = {"none", "fsdp", "zero2"};
    static const int64_t none = 0, one = 1;
    struct plim_question q = synthetic_question();
    q.axes.axis[SHARDING] = (struct plim_axis){"sharding", "", shardings, 1, &none, false, false};
    q.axes.axis[WORLD] = (struct plim_axis){"world", "GPUs", NULL, 1, &one, false, false};
    q.axes.count += 2;
    q.axes.seq = -1;
    q.change_count = 0;
    q.spread =
        (struct plim_spread){.sharding = SHARDING, .world = WORLD, .count = 2, .shardings = {1, 2}};
    return q;
}

static struct plim_setting setting_of_gpus(int64_t accumulation, int64_t sharding, int64_t gpus)
{
    struct plim_setting setting = setting_of(1, accumulation);
    setting.value[SHARDING] = sharding;
    setting.value[WORLD] = gpus;
    return setting;
}

Test(advice, of_more_gpus_the_fewest_that_are_enough)
{
    static const struct {
        int64_t budget_mib;
        int gpus;
    } cases[] = {{640, 2},  {639, 4},  {384, 4},  {383, 8},
                 {192, 16}, {160, 32}, {159, 64}, {144, 64}};
    struct plim_question q = question_of_gpus();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[64];
        int gpus = cases[i].gpus;
        snprintf(text, sizeof(text), "sharding fsdp over %d GPUs", gpus);
        const struct expected expected = {text, 1, 64 / gpus, 1024, 128 + 1024 / gpus, true};
        expect_advice(&q, setting_of_gpus(64, 0, 1), cases[i].budget_mib, 1, &expected);
    }
}

/* It is said what the most would need; fewer are not asked about. */
Test(advice, where_the_most_gpus_are_too_few_no_others_are_tried)
{
    struct plim_question q = question_of_gpus();
    const struct expected most = {"sharding fsdp over 64 GPUs", 1, 1, 1024, 144, false};
    expect_advice_of_runs(&q, setting_of_gpus(64, 0, 1), 143, 1, &most, 1);
    q.spread.reserve_bytes = 1 * MIB; /* what they need for one another counts, too */
    expect_advice(&q, setting_of_gpus(64, 0, 1), 144, 1, &most);
}

/* Those that are there already are no advice; with another sharding they may be. */
Test(advice, of_more_gpus_not_those_that_are_there)
{
    struct plim_question q = question_of_gpus();
    const struct expected more = {"sharding fsdp over 8 GPUs", 1, 8, 1024, 256, true},
                          sharded = {"sharding fsdp over 4 GPUs", 1, 16, 1024, 384, true};
    expect_advice(&q, setting_of_gpus(16, 1, 4), 640, 1, &more);
    expect_advice(&q, setting_of_gpus(16, 0, 4), 640, 1, &sharded);
}

/* More GPUs than samples: the effective batch grows, and the report says so. */
Test(advice, of_more_gpus_a_batch_that_cannot_stay_is_said)
{
    struct plim_question q = question_of_gpus();
    const struct expected expected = {
        "sharding fsdp over 8 GPUs, effective batch 8", 1, 1, 1024, 256, true};
    expect_advice(&q, setting_of_gpus(1, 0, 1), 256, 1, &expected);
}

Test(advice, none_is_given_where_it_makes_no_sense)
{
    struct plim_question q = synthetic_question();
    expect_advice(&q, setting_of(2, 1), 0, 0, NULL);
    expect_advice(&q, setting_of(2, 1), -1, 0, NULL);
    q.can_advise = false;
    expect_advice(&q, setting_of(2, 1), 1040, 0, NULL);
}
