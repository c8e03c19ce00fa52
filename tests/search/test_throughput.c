/* How fast a point is: what is timed, what is extrapolated from it, and what a tie goes to. */
#include "autotune/search/throughput.h"
#include "synthetic.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

/* Where only a few micro-steps are run, each further one takes as long as the last that was. */
Test(throughput, the_time_of_a_long_accumulation_is_extrapolated)
{
    struct synthetic s;
    struct plim_question q = synthetic_question();
    struct plim_cache cache = {0};
    struct plim_decision decision = {0};
    struct plim_search search;
    struct plim_candidate *c;
    q.batch.accumulation = 300;
    synthetic_init(&s, INT64_C(3) << 30);
    s.runner.probed_micro_steps = 4;
    struct plim_prober prober = {.runner = &s.runner, .cache = &cache};
    cr_assert(eq(int, plim_search_init(&search, &q, &prober, &decision, NULL), PLIM_OK));
    cr_assert(eq(int, plim_search_points(&search, NULL, 0, NULL), PLIM_OK));
    cr_assert(eq(int, plim_throughput_time(&search, 0, 5, &c), PLIM_OK));
    double seconds = synthetic_seconds(&s, &c->setting);
    cr_expect(eq(i64, c->setting.accumulation, 300));
    cr_expect(epsilon_eq(dbl, c->step_seconds, seconds, 1e-9 * seconds));
    double rate = 1024.0 * (double)c->batch.effective / seconds;
    cr_expect(epsilon_eq(dbl, c->tokens_per_second, rate, 1e-9 * rate));
    for (size_t i = 0; i < prober.samples.count; i++)
        cr_expect(le(i64, prober.samples.items[i].setting.accumulation, 4));
    plim_decision_finish(&decision);
    plim_prober_finish(&prober);
    plim_cache_finish(&cache);
}

/* The smallest micro-batch of the point whose rate is in a tie with the best. */
static int64_t thriftiest(const struct synthetic *s)
{
    double best = 0;
    int64_t smallest = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t b = 1; !smallest; b++) {
            struct plim_setting setting = synthetic_setting(b);
            if (!synthetic_fits(s, &setting)) break;
            double rate = (double)b / synthetic_seconds(s, &setting);
            if (pass && rate >= best * (1 - PLIM_TIE_SHARE)) smallest = b;
            if (!pass && rate > best) best = rate;
        }
    return smallest;
}

/* A tie goes to more free memory: the trend is followed down, step by step. */
Test(throughput, a_tie_goes_to_the_smallest_micro_batch_of_it)
{
    static const double fixed_seconds[] = {0.003, 0.01, 0.03, 0.1, 0.3};
    for (size_t i = 0; i < 5; i++) {
        struct synthetic s;
        struct synthetic_run run;
        struct plim_question q = synthetic_question();
        synthetic_init(&s, INT64_C(60) << 30);
        s.step_seconds = fixed_seconds[i];
        synthetic_tune(&run, &s, &q, PLIM_OBJECTIVE_THROUGHPUT);
        cr_expect(eq(i64, run.decision.choice.batch.micro_batch, thriftiest(&s)), "%g s",
                  fixed_seconds[i]);
        synthetic_finish(&run);
    }
}

/* Odd micro-batches leave the last wave of tiles half empty, and the trend through them misleads:
 * after a few steps the choice is near the smallest all the same. */
Test(throughput, a_tie_is_followed_down_over_uneven_rates)
{
    struct synthetic s;
    struct synthetic_run run;
    struct plim_question q = synthetic_question();
    synthetic_init(&s, INT64_C(60) << 30);
    s.tile = 2;
    s.step_seconds = 0.001;
    synthetic_tune(&run, &s, &q, PLIM_OBJECTIVE_THROUGHPUT);
    cr_expect(eq(i64, thriftiest(&s), 10));
    cr_expect(le(i64, run.decision.choice.batch.micro_batch, 40)); /* with one step less: 48 */
    synthetic_finish(&run);
}
