/* What a search costs and what it misses, over random models. It is a heuristic: whether a change of
 * it is one for the better is seen in these numbers, so they are pinned. A change that moves one of
 * them says in its commit why. */
#include "synthetic.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>

enum { MODELS = 150 };

/* Over all models. */
struct numbers {
    size_t runs, found;
    int64_t samples, largest; /* in all choices; in all edges */
    double missed_percent;    /* of the best rate there is */
};

static const int64_t both[] = {SYNTHETIC_NONE, SYNTHETIC_FULL}, sequences[] = {512, 1024, 2048},
                     listed[] = {3, 8, 24, 32, 100};

static void plain(struct plim_question *q, struct synthetic *s)
{
    (void)q;
    (void)s;
}

static void tiled(struct plim_question *q, struct synthetic *s)
{
    (void)q;
    s->tile = 8;
}

static void bumpy(struct plim_question *q, struct synthetic *s)
{
    (void)q;
    s->bump_every = 5;
    s->bump_bytes = s->per_sample_bytes * 2;
}

static void divided(struct plim_question *q, struct synthetic *s)
{
    (void)s;
    q->batch.effective_batch = 240;
    q->batch.world = 2;
}

static void tolerant(struct plim_question *q, struct synthetic *s)
{
    divided(q, s);
    q->batch.effective_batch_tolerance = 0.03;
}

static void of_a_list(struct plim_question *q, struct synthetic *s)
{
    (void)s;
    q->batch.listed = listed;
    q->batch.listed_count = 5;
}

static void only_a_list(struct plim_question *q, struct synthetic *s)
{
    of_a_list(q, s);
    q->batch.only_listed = true;
}

static void several_points(struct plim_question *q, struct synthetic *s)
{
    (void)s;
    synthetic_axis(q, SYNTHETIC_SEQ, 3, sequences);
    synthetic_axis(q, SYNTHETIC_CHECKPOINTING, 2, both);
}

static void several_tiled(struct plim_question *q, struct synthetic *s)
{
    several_points(q, s);
    s->tile = 6;
}

static void costly(struct plim_question *q, struct synthetic *s)
{
    (void)q;
    s->runner.costly = true;
}

static void early(struct plim_question *q, struct synthetic *s)
{
    (void)q;
    s->runner.limit_acts_early = true;
}

static double best_rate(const struct synthetic *s, const struct plim_decision *d)
{
    double best = 0;
    for (size_t i = 0; i < d->space.points.count; i++)
        for (int64_t b = plim_batch_next(&d->rule, 0); b && b < 20000;
             b = plim_batch_next(&d->rule, b)) {
            struct plim_batch batch;
            plim_batch_allowed(&d->rule, b, &batch);
            struct plim_setting setting = d->space.points.items[i];
            setting.micro_batch = b;
            setting.accumulation = batch.accumulation;
            double tokens = (double)batch.effective * (double)setting.value[SYNTHETIC_SEQ];
            if (synthetic_fits(s, &setting))
                best = fmax(best, tokens / synthetic_seconds(s, &setting));
        }
    return best;
}

static struct numbers numbers_of(void (*vary)(struct plim_question *, struct synthetic *),
                                 enum plim_objective objective)
{
    struct numbers sum = {0};
    uint64_t random = 41;
    for (int i = 0; i < MODELS; i++) {
        struct synthetic s;
        struct synthetic_run run;
        struct plim_question q = synthetic_question();
        synthetic_randomize(&s, &random);
        vary(&q, &s);
        synthetic_tune(&run, &s, &q, objective);
        cr_assert(eq(int, run.status, PLIM_OK), "%s", run.err.text);
        const struct plim_decision *d = &run.decision;
        sum.runs += run.prober.runs;
        sum.found += d->found;
        if (d->found) sum.samples += d->choice.setting.micro_batch;
        if (d->has_largest) sum.largest += d->largest.setting.micro_batch;
        if (d->found)
            sum.missed_percent += 100 * (1 - d->choice.tokens_per_second / best_rate(&s, d));
        synthetic_finish(&run);
    }
    return sum;
}

static void expect(const char *name, struct numbers are, struct numbers were)
{
    cr_expect(are.runs == were.runs && are.found == were.found && are.samples == were.samples &&
                  are.largest == were.largest &&
                  fabs(are.missed_percent - were.missed_percent) < 0.005,
              "%s: {%zu, %zu, %lld, %lld, %.2f}", name, are.runs, are.found, (long long)are.samples,
              (long long)are.largest, are.missed_percent);
}

#define EXPECT(vary, objective, ...)                                                               \
    expect(#vary, numbers_of(vary, PLIM_OBJECTIVE_##objective), (struct numbers){__VA_ARGS__})

Test(numbers, of_one_point)
{
    EXPECT(plain, THROUGHPUT, 1679, 149, 9532, 13113, 28.94);
    EXPECT(tiled, THROUGHPUT, 1609, 149, 11842, 13113, 2.21);
    EXPECT(bumpy, THROUGHPUT, 1763, 149, 9513, 13083, 28.98);
    EXPECT(costly, THROUGHPUT, 1578, 149, 9532, 13113, 28.94);
    EXPECT(early, THROUGHPUT, 2312, 149, 9532, 13113, 28.94);
}

Test(numbers, of_batches_that_are_bound)
{
    EXPECT(divided, THROUGHPUT, 2324, 147, 515, 6025, 0.00);
    EXPECT(tolerant, THROUGHPUT, 2443, 147, 1086, 6084, 13.87);
    EXPECT(of_a_list, THROUGHPUT, 1686, 145, 4291, 13113, 0.00);
    EXPECT(only_a_list, THROUGHPUT, 615, 145, 4291, 4296, 0.00);
}

Test(numbers, of_several_points)
{
    EXPECT(several_points, THROUGHPUT, 8240, 149, 31041, 38107, 58.14);
    EXPECT(several_tiled, THROUGHPUT, 7302, 149, 48730, 53071, 40.81);
}

Test(numbers, of_other_objectives)
{
    EXPECT(several_points, LEAST_MEMORY, 4308, 149, 169, 81618, 13626.24);
    EXPECT(several_points, LARGEST_BATCH, 8744, 149, 105444, 105444, 918.27);
    EXPECT(divided, LEAST_MEMORY, 1603, 147, 148, 6025, 3300.76);
    EXPECT(divided, LARGEST_BATCH, 1403, 147, 5440, 6025, 81.55);
}
