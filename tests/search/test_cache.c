/* What GPUs of one class may share. */
#include "synthetic.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static struct plim_cache_entry entry(int64_t requested, int64_t reserved)
{
    return (struct plim_cache_entry){
        .trial = {.requested_bytes = requested, .reserved_bytes = reserved}};
}

Test(cache, tells_only_what_is_certain)
{
    struct plim_cache_entry e = entry(100, 120);
    cr_expect(eq(int, plim_cache_verdict(&e, 120), PLIM_OK));
    cr_expect(eq(int, plim_cache_verdict(&e, 99), PLIM_OOM));
    cr_expect(eq(int, plim_cache_verdict(&e, 100), PLIM_INVALID));
    cr_expect(eq(int, plim_cache_verdict(&e, 119), PLIM_INVALID));
}

Test(cache, forgets_runs_that_hit_the_limit)
{
    struct plim_cache cache = {0};
    struct plim_setting setting = {.micro_batch = 1};
    const struct plim_trial oom = {.verdict = PLIM_OOM}, retried = {.retries = 1}, clean = {0};
    cr_assert(eq(int, plim_cache_add(&cache, &setting, &oom, NULL), PLIM_OK));
    cr_assert(eq(int, plim_cache_add(&cache, &setting, &retried, NULL), PLIM_OK));
    cr_expect(eq(ptr, (void *)plim_cache_find(&cache, &setting), NULL));
    cr_assert(eq(int, plim_cache_add(&cache, &setting, &clean, NULL), PLIM_OK));
    cr_expect(ne(ptr, (void *)plim_cache_find(&cache, &setting), NULL));
    plim_cache_finish(&cache);
}

/* What is the key of all that is remembered: here, and of the worker's verdicts. */
Test(cache, settings_are_equal_in_all_their_values_only)
{
    struct plim_setting a = {.micro_batch = 3, .accumulation = 2}, b;
    for (int i = 0; i < PLIM_AXES; i++) a.value[i] = i;
    b = a;
    cr_expect(plim_setting_equal(&a, &b) && plim_setting_same_point(&a, &b));
    for (int i = 0; i < PLIM_AXES; i++) {
        b = a;
        b.value[i]++;
        cr_expect(not(plim_setting_equal(&a, &b)), "axis %d", i);
        cr_expect(not(plim_setting_same_point(&a, &b)), "axis %d", i);
    }
    b = a;
    b.micro_batch++;
    cr_expect(plim_setting_same_point(&a, &b) && !plim_setting_equal(&a, &b));
    b = a;
    b.accumulation++;
    cr_expect(plim_setting_same_point(&a, &b) && !plim_setting_equal(&a, &b));
}

static struct plim_edge edge_on(struct synthetic *s, struct plim_cache *cache)
{
    const struct plim_question q = synthetic_question();
    return synthetic_edge(s, &q, cache, NULL);
}

Test(cache, a_shared_cache_saves_runs_and_changes_nothing)
{
    uint64_t random = 21;
    size_t alone_runs = 0, shared_runs = 0;
    for (int i = 0; i < 100; i++) {
        struct synthetic small, large, alone;
        struct plim_cache shared = {0}, own = {0};
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
        plim_cache_finish(&shared);
        plim_cache_finish(&own);
    }
    cr_expect(lt(sz, shared_runs, alone_runs));
}

Test(cache, seconds_are_never_shared)
{
    struct synthetic slow, fast;
    struct plim_cache cache = {0};
    const struct plim_sample *sample;
    struct plim_setting setting = synthetic_setting(2);
    synthetic_init(&slow, INT64_C(24) << 30);
    synthetic_init(&fast, INT64_C(40) << 30);
    fast.tile_seconds /= 10;
    struct plim_prober first = {.runner = &slow.runner, .cache = &cache},
                      second = {.runner = &fast.runner, .cache = &cache};
    cr_assert(eq(int, plim_probe(&first, &setting, PLIM_WANT_SECONDS, &sample, NULL), PLIM_OK));
    cr_assert(eq(int, plim_probe(&second, &setting, PLIM_WANT_VERDICT, &sample, NULL), PLIM_OK));
    cr_expect(eq(sz, fast.limited_runs, 0));
    cr_expect(not(sample->timed));
    cr_assert(eq(int, plim_probe(&second, &setting, PLIM_WANT_SECONDS, &sample, NULL), PLIM_OK));
    cr_expect(eq(sz, fast.limited_runs, 1));
    cr_expect(ieee_ulp_eq(dbl, sample->trial.seconds, synthetic_seconds(&fast, &setting), 4));
    plim_prober_finish(&first);
    plim_prober_finish(&second);
    plim_cache_finish(&cache);
}

/* With a cachery fraction the allocator heeds the limit before it is hit. */
Test(cache, a_limit_that_acts_early_is_always_run)
{
    struct synthetic s;
    struct plim_cache cache = {0};
    const struct plim_sample *sample;
    const struct plim_cache_entry *need;
    struct plim_setting setting = synthetic_setting(2);
    synthetic_init(&s, INT64_C(24) << 30);
    s.runner.limit_acts_early = true;
    struct plim_prober prober = {.runner = &s.runner, .cache = &cache};
    cr_assert(eq(int, plim_probe_need(&prober, &setting, &need, NULL), PLIM_OK));
    cr_assert(eq(int, plim_probe(&prober, &setting, PLIM_WANT_VERDICT, &sample, NULL), PLIM_OK));
    cr_expect(eq(sz, s.limited_runs, 1));
    plim_prober_finish(&prober);
    plim_cache_finish(&cache);
}
