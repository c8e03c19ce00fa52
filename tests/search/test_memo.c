/* What cards of one class may share. */
#include "synthetic.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static struct plim_memo_entry entry(int64_t requested, int64_t reserved)
{
    struct plim_memo_entry e = {.peak_requested_bytes = requested};
    e.replay.peak_reserved_bytes = reserved;
    return e;
}

Test(memo, tells_only_what_is_certain)
{
    struct plim_memo_entry e = entry(100, 120);
    cr_expect(eq(int, plim_memo_verdict(&e, 120), PLIM_OK));
    cr_expect(eq(int, plim_memo_verdict(&e, 99), PLIM_OOM));
    cr_expect(eq(int, plim_memo_verdict(&e, 100), PLIM_INVALID));
    cr_expect(eq(int, plim_memo_verdict(&e, 119), PLIM_INVALID));
}

Test(memo, forgets_runs_that_hit_the_limit)
{
    struct plim_memo memo = {0};
    struct plim_setting setting = {.micro_batch = 1};
    const struct plim_replay oom = {.verdict = PLIM_OOM}, retried = {.retries = 1}, clean = {0};
    cr_assert(eq(int, plim_memo_add(&memo, &setting, &oom, NULL), PLIM_OK));
    cr_assert(eq(int, plim_memo_add(&memo, &setting, &retried, NULL), PLIM_OK));
    cr_expect(eq(ptr, (void *)plim_memo_find(&memo, &setting), NULL));
    cr_assert(eq(int, plim_memo_add(&memo, &setting, &clean, NULL), PLIM_OK));
    cr_expect(ne(ptr, (void *)plim_memo_find(&memo, &setting), NULL));
    plim_memo_finish(&memo);
}

static struct plim_edge edge_on(struct synthetic *s, struct plim_memo *memo)
{
    struct plim_batch_rule rule;
    struct plim_spec spec = synthetic_spec();
    struct plim_prober prober = {.runner = &s->runner, .memo = memo};
    struct plim_setting point = {.seq = 1024, .precision = PLIM_PRECISION_BF16_MIXED};
    struct plim_edge edge = {0};
    cr_assert(eq(int, plim_batch_rule_init(&rule, &spec, NULL), PLIM_OK));
    cr_assert(eq(int, plim_search_edge(&prober, &rule, &point, &edge, NULL), PLIM_OK));
    plim_prober_finish(&prober);
    return edge;
}

Test(memo, a_shared_memo_saves_runs_and_changes_nothing)
{
    uint64_t random = 21;
    size_t alone_runs = 0, shared_runs = 0;
    for (int i = 0; i < 100; i++) {
        struct synthetic small, large, alone;
        struct plim_memo shared = {0}, own = {0};
        synthetic_randomize(&small, &random);
        large = small;
        large.runner.user = &large;
        large.runner.budget_bytes += large.runner.budget_bytes / 10;
        alone = large;
        alone.runner.user = &alone;
        edge_on(&small, &shared);
        cr_assert(eq(i64, edge_on(&large, &shared).fits, edge_on(&alone, &own).fits), "model %d",
                  i);
        shared_runs += large.limited_runs + large.unlimited_runs;
        alone_runs += alone.limited_runs + alone.unlimited_runs;
        plim_memo_finish(&shared);
        plim_memo_finish(&own);
    }
    cr_expect(lt(sz, shared_runs, alone_runs));
}

Test(memo, seconds_are_never_shared)
{
    struct synthetic slow, fast;
    struct plim_memo memo = {0};
    const struct plim_sample *sample;
    struct plim_setting setting = {.micro_batch = 2, .seq = 1024, .accumulation = 1};
    synthetic_init(&slow, INT64_C(24) << 30);
    synthetic_init(&fast, INT64_C(40) << 30);
    fast.tile_seconds /= 10;
    struct plim_prober first = {.runner = &slow.runner, .memo = &memo},
                       second = {.runner = &fast.runner, .memo = &memo};
    cr_assert(eq(int, plim_probe(&first, &setting, PLIM_WANT_SECONDS, &sample, NULL), PLIM_OK));
    cr_assert(eq(int, plim_probe(&second, &setting, PLIM_WANT_VERDICT, &sample, NULL), PLIM_OK));
    cr_expect(eq(sz, fast.limited_runs, 0));
    cr_expect(not(sample->timed));
    cr_assert(eq(int, plim_probe(&second, &setting, PLIM_WANT_SECONDS, &sample, NULL), PLIM_OK));
    cr_expect(eq(sz, fast.limited_runs, 1));
    cr_expect(
        ieee_ulp_eq(dbl, sample->replay.step[3].seconds, synthetic_seconds(&fast, &setting), 4));
    plim_prober_finish(&first);
    plim_prober_finish(&second);
    plim_memo_finish(&memo);
}

/* With a memory fraction the allocator heeds the limit before it is hit. */
Test(memo, a_limit_that_acts_early_is_always_run)
{
    struct synthetic s;
    struct plim_memo memo = {0};
    const struct plim_sample *sample;
    const struct plim_memo_entry *need;
    struct plim_setting setting = {.micro_batch = 2, .seq = 1024, .accumulation = 1};
    synthetic_init(&s, INT64_C(24) << 30);
    s.runner.limit_acts_early = true;
    struct plim_prober prober = {.runner = &s.runner, .memo = &memo};
    cr_assert(eq(int, plim_probe_need(&prober, &setting, &need, NULL), PLIM_OK));
    cr_assert(eq(int, plim_probe(&prober, &setting, PLIM_WANT_VERDICT, &sample, NULL), PLIM_OK));
    cr_expect(eq(sz, s.limited_runs, 1));
    plim_prober_finish(&prober);
    plim_memo_finish(&memo);
}
