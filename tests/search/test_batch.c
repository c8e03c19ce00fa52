/* Effective batch arithmetic. */
#include "synthetic.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static struct plim_batch_rule rule_of(const struct plim_question *q)
{
    struct plim_batch_rule rule;
    cr_assert(eq(int, plim_batch_rule_init(&rule, &q->batch, NULL), PLIM_OK));
    return rule;
}

Test(batch, a_target_is_met_exactly)
{
    struct plim_question q = synthetic_question();
    struct plim_batch batch;
    q.batch.effective_batch = 256;
    q.batch.world = 4;
    struct plim_batch_rule rule = rule_of(&q);
    int allowed = 0;
    for (int64_t b = 1; b <= 256; b++) {
        if (!plim_batch_allowed(&rule, b, &batch)) continue;
        cr_expect(eq(i64, b * batch.accumulation * 4, 256));
        cr_expect(eq(i64, batch.effective, 256));
        allowed++;
    }
    cr_expect(eq(int, allowed, 7)); /* the divisors of 64 */
    cr_expect(eq(i64, plim_batch_limit(&rule), 64));
}

Test(batch, of_a_list_that_is_all_there_is_nothing_larger_is_tried)
{
    const int64_t listed[] = {8, 2};
    struct plim_question q = synthetic_question();
    q.batch.listed = listed;
    q.batch.listed_count = 2;
    q.batch.last = 1000;
    struct plim_batch_rule rule = rule_of(&q);
    cr_expect(eq(i64, plim_batch_limit(&rule), 1000), "to find the edge");
    q.batch.only_listed = true;
    rule = rule_of(&q);
    cr_expect(eq(i64, plim_batch_limit(&rule), 8));
    q.batch.last = 7;
    rule = rule_of(&q);
    cr_expect(eq(i64, plim_batch_limit(&rule), 2));
}

Test(batch, a_tolerance_lets_others_in)
{
    struct plim_question q = synthetic_question();
    struct plim_batch batch;
    q.batch.effective_batch = 256;
    q.batch.world = 4;
    q.batch.effective_batch_tolerance = 0.02;
    struct plim_batch_rule rule = rule_of(&q);
    cr_expect(plim_batch_allowed(&rule, 3, &batch)); /* 3 x 21 x 4 = 252 */
    cr_expect(eq(i64, batch.accumulation, 21));
    cr_expect(eq(i64, batch.effective, 252));
    cr_expect(not(batch.exact));
    cr_expect(eq(i64, plim_batch_exact(&rule, 30), 16));
    cr_expect(plim_batch_allowed(&rule, 16, &batch));
    cr_expect(batch.exact);
    cr_expect(not(plim_batch_allowed(&rule, 36, &batch))); /* 36 x 2 x 4 = 288 */
}

Test(batch, without_a_target_it_stays_as_given)
{
    struct plim_question q = synthetic_question();
    struct plim_batch batch;
    struct plim_batch_rule rule = rule_of(&q);
    cr_expect(plim_batch_allowed(&rule, 17, &batch));
    cr_expect(eq(i64, batch.accumulation, 1));
    q.batch.accumulation = 5;
    rule = rule_of(&q);
    cr_expect(plim_batch_allowed(&rule, 17, &batch));
    cr_expect(eq(i64, batch.effective, 85));
}

Test(batch, target_and_accumulation_leave_one_micro_batch)
{
    struct plim_question q = synthetic_question();
    q.batch.effective_batch = 96;
    q.batch.accumulation = 4;
    struct plim_batch_rule rule = rule_of(&q);
    cr_expect(eq(i64, plim_batch_next(&rule, 0), 24));
    cr_expect(eq(i64, plim_batch_next(&rule, 24), 0));
}

Test(batch, a_schedule_keeps_the_effective_batch_of_each_phase)
{
    struct plim_question q = synthetic_question();
    struct plim_batch batch;
    q.batch.effective_batch = 256;
    q.batch.phase_count = 3;
    q.batch.phases[0] = (struct plim_phase_request){0, 4};
    q.batch.phases[1] = (struct plim_phase_request){4, 2};
    q.batch.phases[2] = (struct plim_phase_request){8, 1};
    struct plim_batch_rule rule = rule_of(&q);
    cr_expect(plim_batch_allowed(&rule, 16, &batch));
    cr_expect(eq(i64, batch.phase_accumulation[0], 16));
    cr_expect(eq(i64, batch.phase_accumulation[1], 8));
    cr_expect(eq(i64, batch.phase_accumulation[2], 4));
    cr_expect(not(plim_batch_allowed(&rule, 128, &batch))); /* the last phase has 64 samples */
}

Test(batch, the_phase_with_most_micro_steps_leads)
{
    struct plim_question q = synthetic_question();
    struct plim_batch batch;
    q.batch.phase_count = 2;
    q.batch.phases[0] = (struct plim_phase_request){0, 1};
    q.batch.phases[1] = (struct plim_phase_request){3, 6};
    q.batch.effective_batch = 8;
    struct plim_batch_rule rule = rule_of(&q);
    cr_expect(eq(i64, plim_batch_target(&rule), 48));
    cr_expect(plim_batch_allowed(&rule, 4, &batch));
    cr_expect(eq(i64, batch.accumulation, 12));
}

Test(batch, a_target_that_the_world_does_not_divide_is_an_error)
{
    struct plim_question q = synthetic_question();
    struct plim_batch_rule rule;
    struct plim_error err = PLIM_ERROR_INIT;
    q.batch.effective_batch = 10;
    q.batch.world = 4;
    cr_expect(eq(int, plim_batch_rule_init(&rule, &q.batch, &err), PLIM_SPEC));
    cr_expect(ne(str, err.text, (char *)""));
}

Test(batch, a_list_of_micro_batches_is_respected)
{
    struct plim_question q = synthetic_question();
    struct plim_batch batch;
    q.batch.listed = (const int64_t[]){12, 4};
    q.batch.listed_count = 2;
    struct plim_batch_rule rule = rule_of(&q);
    cr_expect(eq(i64, plim_batch_next(&rule, 0), 4));
    cr_expect(eq(i64, plim_batch_next(&rule, 4), 12));
    cr_expect(eq(i64, plim_batch_next(&rule, 12), 0));
    cr_expect(not(plim_batch_allowed(&rule, 5, &batch)));
}
