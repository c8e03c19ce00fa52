/* Effective batch arithmetic. */
#include "synthetic.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static struct plim_batch_rule rule_of(const struct plim_spec *spec)
{
    struct plim_batch_rule rule;
    cr_assert(eq(int, plim_batch_rule_init(&rule, spec, NULL), PLIM_OK));
    return rule;
}

Test(accumulate, a_target_is_met_exactly)
{
    struct plim_spec spec = synthetic_spec();
    struct plim_batch batch;
    spec.effective_batch = 256;
    spec.world = 4;
    struct plim_batch_rule rule = rule_of(&spec);
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

Test(accumulate, a_tolerance_lets_others_in)
{
    struct plim_spec spec = synthetic_spec();
    struct plim_batch batch;
    spec.effective_batch = 256;
    spec.world = 4;
    spec.effective_batch_tolerance = 0.02;
    struct plim_batch_rule rule = rule_of(&spec);
    cr_expect(plim_batch_allowed(&rule, 3, &batch)); /* 3 x 21 x 4 = 252 */
    cr_expect(eq(i64, batch.accumulation, 21));
    cr_expect(eq(i64, batch.effective, 252));
    cr_expect(not(plim_batch_allowed(&rule, 36, &batch))); /* 36 x 2 x 4 = 288 */
}

Test(accumulate, without_a_target_it_stays_as_given)
{
    struct plim_spec spec = synthetic_spec();
    struct plim_batch batch;
    struct plim_batch_rule rule = rule_of(&spec);
    cr_expect(plim_batch_allowed(&rule, 17, &batch));
    cr_expect(eq(i64, batch.accumulation, 1));
    spec.accumulation = 5;
    rule = rule_of(&spec);
    cr_expect(plim_batch_allowed(&rule, 17, &batch));
    cr_expect(eq(i64, batch.effective, 85));
}

Test(accumulate, target_and_accumulation_leave_one_micro_batch)
{
    struct plim_spec spec = synthetic_spec();
    spec.effective_batch = 96;
    spec.accumulation = 4;
    struct plim_batch_rule rule = rule_of(&spec);
    cr_expect(eq(i64, plim_batch_next(&rule, 0), 24));
    cr_expect(eq(i64, plim_batch_next(&rule, 24), 0));
}

Test(accumulate, a_schedule_keeps_the_effective_batch_of_each_phase)
{
    struct plim_spec spec = synthetic_spec();
    struct plim_batch batch;
    spec.effective_batch = 256;
    spec.schedule_count = 3;
    spec.schedule[0] = (struct plim_phase){0, 4};
    spec.schedule[1] = (struct plim_phase){4, 2};
    spec.schedule[2] = (struct plim_phase){8, 1};
    struct plim_batch_rule rule = rule_of(&spec);
    cr_expect(plim_batch_allowed(&rule, 16, &batch));
    cr_expect(eq(i64, batch.phase_accumulation[0], 16));
    cr_expect(eq(i64, batch.phase_accumulation[1], 8));
    cr_expect(eq(i64, batch.phase_accumulation[2], 4));
    cr_expect(not(plim_batch_allowed(&rule, 128, &batch))); /* the last phase has 64 samples */
}

Test(accumulate, the_phase_with_most_micro_steps_leads)
{
    struct plim_spec spec = synthetic_spec();
    struct plim_batch batch;
    spec.schedule_count = 2;
    spec.schedule[0] = (struct plim_phase){0, 1};
    spec.schedule[1] = (struct plim_phase){3, 6};
    spec.effective_batch = 8;
    struct plim_batch_rule rule = rule_of(&spec);
    cr_expect(eq(i64, plim_batch_target(&rule), 48));
    cr_expect(plim_batch_allowed(&rule, 4, &batch));
    cr_expect(eq(i64, batch.accumulation, 12));
}

Test(accumulate, a_target_that_the_world_does_not_divide_is_an_error)
{
    struct plim_spec spec = synthetic_spec();
    struct plim_batch_rule rule;
    struct plim_error err = PLIM_ERROR_INIT;
    spec.effective_batch = 10;
    spec.world = 4;
    cr_expect(eq(int, plim_batch_rule_init(&rule, &spec, &err), PLIM_SPEC));
    cr_expect(ne(str, err.text, (char *)""));
}

Test(accumulate, a_list_of_micro_batches_is_respected)
{
    struct plim_spec spec = synthetic_spec();
    struct plim_batch batch;
    spec.micro_batch = (struct plim_int_axis){2, {12, 4}};
    struct plim_batch_rule rule = rule_of(&spec);
    cr_expect(eq(i64, plim_batch_next(&rule, 0), 4));
    cr_expect(eq(i64, plim_batch_next(&rule, 4), 12));
    cr_expect(eq(i64, plim_batch_next(&rule, 12), 0));
    cr_expect(not(plim_batch_allowed(&rule, 5, &batch)));
}
