/* The largest micro-batch, on models whose edge is known. */
#include "synthetic.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static struct plim_edge search(struct synthetic *s, const struct plim_question *question)
{
    return synthetic_edge(s, question, NULL, NULL);
}

/* By trying one after the other: the last before the first failure. */
static int64_t true_edge(const struct synthetic *s)
{
    struct plim_setting setting = synthetic_setting(1);
    for (; synthetic_fits(s, &setting);) setting.micro_batch++;
    return setting.micro_batch - 1;
}

Test(edge, is_found_where_it_is)
{
    uint64_t random = 1;
    struct plim_question q = synthetic_question();
    for (int i = 0; i < 300; i++) {
        struct synthetic s;
        synthetic_randomize(&s, &random);
        struct plim_edge edge = search(&s, &q);
        cr_assert(eq(i64, edge.fits, true_edge(&s)), "model %d", i);
        cr_assert(eq(i64, edge.fails, edge.fits + 1), "model %d", i);
    }
}

Test(edge, takes_few_runs)
{
    uint64_t random = 2;
    size_t runs = 0, most = 0;
    struct plim_question q = synthetic_question();
    for (int i = 0; i < 300; i++) {
        struct synthetic s;
        synthetic_randomize(&s, &random);
        search(&s, &q);
        size_t now = s.limited_runs + s.unlimited_runs;
        runs += now;
        if (now > most) most = now;
    }
    cr_expect(le(sz, runs / 300, 12));
    cr_expect(le(sz, most, 22));
}

Test(edge, a_line_from_a_similar_gpu_saves_runs)
{
    struct synthetic s;
    synthetic_init(&s, INT64_C(24) << 30);
    struct plim_question q = synthetic_question();
    struct plim_edge known = search(&s, &q);
    size_t without = s.limited_runs + s.unlimited_runs;

    synthetic_init(&s, INT64_C(40) << 30);
    struct plim_edge edge = synthetic_edge(&s, &q, NULL, &known);
    cr_expect(eq(i64, edge.fits, true_edge(&s)));
    cr_expect(lt(sz, s.limited_runs + s.unlimited_runs, without));
}

/* 98 would be the edge of the plain model; 90, 95 ... need 2 GiB more. */
Test(edge, is_not_stopped_by_a_bump)
{
    struct synthetic s;
    synthetic_init(&s, INT64_C(11) << 30);
    int64_t plain = true_edge(&s);
    s.bump_bytes = INT64_C(2) << 30;
    s.bump_every = plain; /* exactly the edge fails; the one before it is the answer */
    struct plim_question q = synthetic_question();
    struct plim_edge edge = search(&s, &q);
    cr_expect(eq(i64, edge.fits, plain - 1));

    s.bump_every = plain - 1; /* the edge itself fits beyond a bump */
    edge = search(&s, &q);
    cr_expect(eq(i64, edge.fits, plain));
    cr_expect(eq(i64, edge.fails, plain + 1));
}

Test(edge, nothing_fits_without_memory)
{
    struct synthetic s;
    struct plim_question q = synthetic_question();
    synthetic_init(&s, INT64_C(1) << 29);
    cr_expect(eq(i64, search(&s, &q).fits, 0));
    synthetic_init(&s, -5);
    cr_expect(eq(i64, search(&s, &q).fits, 0));
    cr_expect(eq(sz, s.limited_runs + s.unlimited_runs, 0));
}

Test(edge, one_sample_may_be_all)
{
    struct synthetic s;
    struct plim_question q = synthetic_question();
    synthetic_init(&s, INT64_C(1200) << 20);
    struct plim_edge edge = search(&s, &q);
    cr_expect(eq(i64, edge.fits, 1));
    cr_expect(eq(i64, edge.fails, 2));
}

Test(edge, the_effective_batch_bounds_it)
{
    struct synthetic s;
    struct plim_question q = synthetic_question();
    q.batch.effective_batch = 64;
    q.batch.world = 4;
    synthetic_init(&s, INT64_C(200) << 30);
    struct plim_edge edge = search(&s, &q);
    cr_expect(eq(i64, edge.fits, 16));
    cr_expect(eq(i64, edge.fails, 0));
}

/* A step without accumulation needs no resident gradients, and so fits again beyond the edge. */
Test(edge, a_step_without_accumulation_is_tried)
{
    struct synthetic s;
    struct plim_question q = synthetic_question();
    q.batch.effective_batch = 20;
    synthetic_init(&s, INT64_C(3200) << 20);
    s.gradient_bytes = INT64_C(2) << 30;
    struct plim_edge edge = search(&s, &q);
    cr_expect(eq(i64, edge.fits, 20));
}

Test(edge, an_endless_gpu_ends_the_search)
{
    struct synthetic s;
    struct plim_question q = synthetic_question();
    synthetic_init(&s, INT64_C(1) << 60);
    struct plim_edge edge = search(&s, &q);
    cr_expect(eq(i64, edge.fits, PLIM_MICRO_BATCH_MAX));
    cr_expect(eq(i64, edge.fails, 0));
}
