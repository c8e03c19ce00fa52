/* The largest micro-batch, on models whose edge is known. */
#include "synthetic.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static struct plim_setting point_1024(void)
{
    return (struct plim_setting){.seq = 1024, .precision = PLIM_PRECISION_BF16_MIXED};
}

static struct plim_edge search(struct synthetic *s, const struct plim_spec *spec)
{
    struct plim_batch_rule rule;
    struct plim_memo memo = {0};
    struct plim_prober prober = {.runner = &s->runner, .memo = &memo};
    struct plim_edge edge = {0};
    struct plim_setting point = point_1024();
    cr_assert(eq(int, plim_batch_rule_init(&rule, spec, NULL), PLIM_OK));
    cr_assert(eq(int, plim_search_edge(&prober, &rule, &point, &edge, NULL), PLIM_OK));
    plim_prober_finish(&prober);
    plim_memo_finish(&memo);
    return edge;
}

/* By trying one after the other: the last before the first failure. */
static int64_t true_edge(const struct synthetic *s)
{
    struct plim_setting setting = point_1024();
    setting.accumulation = 1;
    for (setting.micro_batch = 1; synthetic_fits(s, &setting);) setting.micro_batch++;
    return setting.micro_batch - 1;
}

Test(edge, is_found_where_it_is)
{
    uint64_t random = 1;
    struct plim_spec spec = synthetic_spec();
    for (int i = 0; i < 300; i++) {
        struct synthetic s;
        synthetic_randomize(&s, &random);
        struct plim_edge edge = search(&s, &spec);
        cr_assert(eq(i64, edge.fits, true_edge(&s)), "model %d", i);
        cr_assert(eq(i64, edge.fails, edge.fits + 1), "model %d", i);
    }
}

Test(edge, takes_few_runs)
{
    uint64_t random = 2;
    size_t runs = 0, most = 0;
    struct plim_spec spec = synthetic_spec();
    for (int i = 0; i < 300; i++) {
        struct synthetic s;
        synthetic_randomize(&s, &random);
        search(&s, &spec);
        size_t now = s.limited_runs + s.unlimited_runs;
        runs += now;
        if (now > most) most = now;
    }
    cr_expect(le(sz, runs / 300, 12));
    cr_expect(le(sz, most, 22));
}

Test(edge, a_line_from_a_similar_card_saves_runs)
{
    struct synthetic s;
    synthetic_init(&s, INT64_C(24) << 30);
    struct plim_spec spec = synthetic_spec();
    struct plim_edge known = search(&s, &spec);
    size_t without = s.limited_runs + s.unlimited_runs;

    struct plim_batch_rule rule;
    struct plim_memo memo = {0};
    struct plim_edge edge = {.reserved = known.reserved, .requested = known.requested};
    struct plim_setting point = point_1024();
    synthetic_init(&s, INT64_C(40) << 30);
    struct plim_prober prober = {.runner = &s.runner, .memo = &memo};
    cr_assert(eq(int, plim_batch_rule_init(&rule, &spec, NULL), PLIM_OK));
    cr_assert(eq(int, plim_search_edge(&prober, &rule, &point, &edge, NULL), PLIM_OK));
    cr_expect(eq(i64, edge.fits, true_edge(&s)));
    cr_expect(lt(sz, s.limited_runs + s.unlimited_runs, without));
    plim_prober_finish(&prober);
    plim_memo_finish(&memo);
}

/* 98 would be the edge of the plain model; 90, 95 ... need 2 GiB more. */
Test(edge, is_not_stopped_by_a_bump)
{
    struct synthetic s;
    synthetic_init(&s, INT64_C(11) << 30);
    int64_t plain = true_edge(&s);
    s.bump_bytes = INT64_C(2) << 30;
    s.bump_every = plain; /* exactly the edge fails; the one before it is the answer */
    struct plim_spec spec = synthetic_spec();
    struct plim_edge edge = search(&s, &spec);
    cr_expect(eq(i64, edge.fits, plain - 1));

    s.bump_every = plain - 1; /* the edge itself fits beyond a bump */
    edge = search(&s, &spec);
    cr_expect(eq(i64, edge.fits, plain));
    cr_expect(eq(i64, edge.fails, plain + 1));
}

Test(edge, nothing_fits_without_memory)
{
    struct synthetic s;
    struct plim_spec spec = synthetic_spec();
    synthetic_init(&s, INT64_C(1) << 29);
    cr_expect(eq(i64, search(&s, &spec).fits, 0));
    synthetic_init(&s, -5);
    cr_expect(eq(i64, search(&s, &spec).fits, 0));
    cr_expect(eq(sz, s.limited_runs + s.unlimited_runs, 0));
}

Test(edge, one_sample_may_be_all)
{
    struct synthetic s;
    struct plim_spec spec = synthetic_spec();
    synthetic_init(&s, INT64_C(1200) << 20);
    struct plim_edge edge = search(&s, &spec);
    cr_expect(eq(i64, edge.fits, 1));
    cr_expect(eq(i64, edge.fails, 2));
}

Test(edge, the_effective_batch_bounds_it)
{
    struct synthetic s;
    struct plim_spec spec = synthetic_spec();
    spec.effective_batch = 64;
    spec.world = 4;
    synthetic_init(&s, INT64_C(200) << 30);
    struct plim_edge edge = search(&s, &spec);
    cr_expect(eq(i64, edge.fits, 16));
    cr_expect(eq(i64, edge.fails, 0));
}

/* A step without accumulation needs no resident gradients, and so fits again beyond the edge. */
Test(edge, a_step_without_accumulation_is_tried)
{
    struct synthetic s;
    struct plim_spec spec = synthetic_spec();
    spec.effective_batch = 20;
    synthetic_init(&s, INT64_C(3200) << 20);
    s.gradient_bytes = INT64_C(2) << 30;
    struct plim_edge edge = search(&s, &spec);
    cr_expect(eq(i64, edge.fits, 20));
}

Test(edge, an_endless_card_ends_the_search)
{
    struct synthetic s;
    struct plim_spec spec = synthetic_spec();
    synthetic_init(&s, INT64_C(1) << 60);
    struct plim_edge edge = search(&s, &spec);
    cr_expect(eq(i64, edge.fits, PLIM_MICRO_BATCH_MAX));
    cr_expect(eq(i64, edge.fails, 0));
}
