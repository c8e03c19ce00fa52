/* What is given up for memory, in an order of the user's: the first level that fits is the answer. */
#include "synthetic.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static const int64_t seqs[] = {4096, 2048, 1024}, precisions[] = {SYNTHETIC_FP32, SYNTHETIC_MIXED},
                     checkpointings[] = {SYNTHETIC_NONE, SYNTHETIC_FULL};

/* fp32 and mixed precision, three sequences, at micro-batch 2. */
static struct plim_question question(const char *waterfall)
{
    static const int64_t batch = 2;
    struct plim_question q = synthetic_question();
    synthetic_axis(&q, SYNTHETIC_SEQ, 3, seqs);
    synthetic_axis(&q, SYNTHETIC_PRECISION, 2, precisions);
    q.batch.listed = &batch;
    q.batch.listed_count = 1;
    cr_assert(eq(int, plim_axes_waterfall(&q.axes, waterfall, NULL), PLIM_OK));
    return q;
}

static void expect_choice(const struct plim_decision *d, int64_t seq, int64_t precision)
{
    cr_assert(d->found);
    cr_expect(eq(i64, d->choice.setting.value[SYNTHETIC_SEQ], seq));
    cr_expect(eq(i64, d->choice.setting.value[SYNTHETIC_PRECISION], precision));
}

static struct plim_decision *tune(struct synthetic_run *run, struct synthetic *s,
                                  struct plim_question *q, int64_t mib)
{
    synthetic_init(s, mib << 20);
    synthetic_tune(run, s, q, PLIM_OBJECTIVE_THROUGHPUT);
    cr_assert(eq(int, run->status, PLIM_OK), "%s", run->err.text);
    return &run->decision;
}

Test(waterfall, an_axis_is_given_up_after_the_one_before_it_has_come_to_its_end)
{
    static const int64_t expected[][2] = {{4096, SYNTHETIC_FP32},
                                          {4096, SYNTHETIC_MIXED},
                                          {2048, SYNTHETIC_MIXED},
                                          {1024, SYNTHETIC_MIXED}};
    struct plim_question q = question("precision,seq");
    struct plim_space space = {0};
    cr_assert(eq(int, plim_space_build(&space, &q.axes, NULL, 0, NULL), PLIM_OK));
    cr_assert(eq(sz, space.points.count, 4));
    cr_assert(eq(sz, space.level_ends.count, 4));
    for (size_t i = 0; i < 4; i++) {
        cr_expect(eq(i64, space.points.items[i].value[SYNTHETIC_SEQ], expected[i][0]), "%zu", i);
        cr_expect(eq(i64, space.points.items[i].value[SYNTHETIC_PRECISION], expected[i][1]));
        cr_expect(eq(sz, space.level_ends.items[i], i + 1));
    }
    plim_space_finish(&space);
}

/* 1 GiB fixed, 400 MiB for one sample of 4096 tokens. */
Test(waterfall, the_first_level_that_fits_is_the_answer)
{
    struct synthetic s;
    struct synthetic_run run;
    struct plim_question q = question("precision,seq");
    struct plim_decision *d = tune(&run, &s, &q, 16 << 10);
    expect_choice(d, 4096, SYNTHETIC_FP32); /* nothing had to be given up: not the fastest */
    cr_expect(eq(sz, d->searched, 1));
    synthetic_finish(&run);
    q = question("precision,seq");
    d = tune(&run, &s, &q, 1600);
    expect_choice(d, 2048, SYNTHETIC_MIXED);
    cr_expect(eq(sz, d->searched, 3));
    synthetic_finish(&run);
}

Test(waterfall, other_axes_are_searched_on_every_level)
{
    struct synthetic s;
    struct synthetic_run run;
    struct plim_question q = question("precision,seq");
    synthetic_axis(&q, SYNTHETIC_CHECKPOINTING, 2, checkpointings);
    struct plim_decision *d = tune(&run, &s, &q, 1600);
    expect_choice(d, 4096, SYNTHETIC_FP32);
    cr_expect(eq(i64, d->choice.setting.value[SYNTHETIC_CHECKPOINTING], SYNTHETIC_FULL));
    cr_expect(eq(sz, d->searched, 2)); /* both points of the first level */
    synthetic_finish(&run);
}

Test(waterfall, what_does_not_fit_for_ever_goes_on_to_the_next_level)
{
    struct synthetic s;
    struct synthetic_run run;
    struct plim_question q = question("seq,precision");
    synthetic_init(&s, INT64_C(1250) << 20);
    s.runner.proves = true;
    s.late_from = s.late_to = 2; /* this micro-batch never does */
    synthetic_tune(&run, &s, &q, PLIM_OBJECTIVE_THROUGHPUT);
    cr_expect(not(run.decision.found));
    cr_expect(eq(sz, run.decision.searched, 4));
    synthetic_finish(&run);
}

Test(waterfall, when_nothing_fits_the_last_level_says_what_is_missing)
{
    struct synthetic s;
    struct synthetic_run run;
    struct plim_question q = question("precision,seq");
    struct plim_decision *d = tune(&run, &s, &q, 900);
    cr_expect(not(d->found));
    cr_assert(d->has_smallest);
    cr_expect(eq(i64, d->smallest.value[SYNTHETIC_SEQ], 1024));
    synthetic_finish(&run);
}

/* --- combinations that come to the same --------------------------------------------------------- */

static void bf16_has_no_checkpointing(struct plim_setting *setting)
{
    if (setting->value[SYNTHETIC_PRECISION] == SYNTHETIC_BF16)
        setting->value[SYNTHETIC_CHECKPOINTING] = SYNTHETIC_NONE;
}

/* Precision and checkpointing of each point, two numbers after each other. */
static void expect_points(const struct plim_question *q, size_t count, const int64_t (*expected)[2])
{
    struct plim_space space = {0};
    cr_assert(eq(int, plim_space_build(&space, &q->axes, NULL, 0, NULL), PLIM_OK));
    cr_assert(eq(sz, space.points.count, count));
    for (size_t i = 0; i < count; i++) {
        const int64_t *value = space.points.items[i].value;
        cr_expect(eq(i64, value[SYNTHETIC_PRECISION], expected[i][0]), "%zu", i);
        cr_expect(eq(i64, value[SYNTHETIC_CHECKPOINTING], expected[i][1]), "%zu", i);
    }
    plim_space_finish(&space);
}

Test(space, what_comes_to_the_same_counts_once)
{
    static const int64_t kinds[] = {SYNTHETIC_FP32, SYNTHETIC_BF16}, full = SYNTHETIC_FULL;
    static const int64_t offered[][2] = {{SYNTHETIC_FP32, SYNTHETIC_NONE},
                                         {SYNTHETIC_FP32, SYNTHETIC_FULL},
                                         {SYNTHETIC_BF16, SYNTHETIC_NONE}},
                         not_offered[][2] = {{SYNTHETIC_FP32, SYNTHETIC_FULL},
                                             {SYNTHETIC_BF16, SYNTHETIC_NONE}};
    struct plim_question q = synthetic_question();
    q.axes.normalize = bf16_has_no_checkpointing;
    synthetic_axis(&q, SYNTHETIC_PRECISION, 2, kinds);
    synthetic_axis(&q, SYNTHETIC_CHECKPOINTING, 2, checkpointings);
    expect_points(&q, 3, offered);
    synthetic_axis(&q, SYNTHETIC_CHECKPOINTING, 1, &full);
    expect_points(&q, 2, not_offered);
}

static void expect_refused(const char *waterfall, const char *why)
{
    struct plim_question q = synthetic_question();
    struct plim_error err = PLIM_ERROR_INIT;
    synthetic_axis(&q, SYNTHETIC_SEQ, 3, seqs);
    synthetic_axis(&q, SYNTHETIC_CHECKPOINTING, 2, checkpointings);
    cr_expect(eq(int, plim_axes_waterfall(&q.axes, waterfall, &err), PLIM_INVALID));
    cr_expect(strstr(err.text, why) != NULL, "'%s', expected '%s'", err.text, why);
}

Test(waterfall, only_axes_with_something_to_give_up_are_taken_and_each_once)
{
    expect_refused("lr", "lr cannot be varied, expected seq or checkpointing, which have several");
    expect_refused("precision", "precision has one value only");
    expect_refused("seq,seq", "seq is there twice");
    expect_refused("", "cannot be varied");
    expect_refused("seq,", "cannot be varied");
}

/* --- nearly as fast with less ------------------------------------------------------------------ */

Test(balanced, a_tenth_of_the_speed_is_given_for_memory)
{
    struct synthetic s;
    struct synthetic_run fast, balanced;
    struct plim_question q = synthetic_question();
    synthetic_init(&s, INT64_C(16) << 30);
    synthetic_tune(&fast, &s, &q, PLIM_OBJECTIVE_THROUGHPUT);
    synthetic_tune(&balanced, &s, &q, PLIM_OBJECTIVE_BALANCED);
    cr_assert(fast.decision.found);
    cr_assert(balanced.decision.found);
    const struct plim_candidate *a = &fast.decision.choice, *b = &balanced.decision.choice;
    cr_expect(lt(i64, b->trial.reserved_bytes, a->trial.reserved_bytes));
    cr_expect(ge(dbl, b->tokens_per_second, 0.9 * a->tokens_per_second));
    synthetic_finish(&fast);
    synthetic_finish(&balanced);
}
