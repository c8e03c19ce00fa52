/* A plan made on a simulated GPU, proven on another one that is not quite as planned. */
#include "synthetic.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

/* The GPU: what is measured is its own, what is predicted is the plan's. */
struct real {
    struct synthetic truth, *plan;
    struct plim_runner runner;
    size_t runs;
};

static enum plim_status run(void *user, const struct plim_setting *setting, enum plim_run_mode mode,
                            struct plim_trial *out, struct plim_error *err)
{
    struct real *real = user;
    const struct plim_runner *from =
        mode == PLIM_RUN_LIMITED ? &real->truth.runner : &real->plan->runner;
    real->runs += mode == PLIM_RUN_LIMITED;
    return from->run(from->user, setting, mode, out, err);
}

/* A GPU that is as planned until the test changes `truth`. */
static void real_init(struct real *real, struct synthetic *plan)
{
    *real = (struct real){.truth = *plan, .plan = plan};
    real->truth.runner.user = &real->truth;
    real->truth.slack = real->truth.squeeze = 0;
    real->runner = (struct plim_runner){.run = run,
                                        .user = real,
                                        .details_bytes = sizeof(struct synthetic_details),
                                        .budget_bytes = plan->runner.budget_bytes,
                                        .limit_acts_early = true,
                                        .measured = true,
                                        .beyond_doubt = 1.1};
    plan->slack = plan->squeeze = 0;
}

static void validate_for(struct synthetic_run *r, struct real *real, struct plim_question *q,
                         enum plim_objective objective)
{
    struct synthetic_run planned;
    synthetic_tune(&planned, real->plan, q, objective);
    cr_assert(eq(int, planned.status, PLIM_OK));
    *r = (struct synthetic_run){.err = PLIM_ERROR_INIT};
    r->prober = (struct plim_prober){.runner = &real->runner, .cache = &r->cache};
    const struct plim_known known = {.plan = &planned.decision};
    r->status = plim_decide(q, &known, &r->prober, &r->decision, &r->err);
    synthetic_finish(&planned);
}

static void validate(struct synthetic_run *r, struct real *real, struct plim_question *q)
{
    validate_for(r, real, q, PLIM_OBJECTIVE_THROUGHPUT);
}

/* Three sequences, with and without checkpointing. */
static struct plim_question wide_question(void)
{
    static const int64_t sequences[] = {512, 1024, 2048};
    static const int64_t checkpointings[] = {SYNTHETIC_NONE, SYNTHETIC_FULL};
    struct plim_question q = synthetic_question();
    synthetic_axis(&q, SYNTHETIC_SEQ, 3, sequences);
    synthetic_axis(&q, SYNTHETIC_CHECKPOINTING, 2, checkpointings);
    return q;
}

Test(validate, what_was_planned_well_is_run_a_few_times_only)
{
    struct synthetic plan;
    struct real real;
    struct synthetic_run r;
    struct plim_question q = wide_question();
    synthetic_init(&plan, INT64_C(20) << 30);
    real_init(&real, &plan);
    validate(&r, &real, &q);
    cr_assert(r.decision.found);
    cr_expect(r.decision.choice.verified);
    cr_expect(eq(int, r.decision.after_largest.verdict, PLIM_OOM));
    cr_expect(le(sz, real.runs, 16));
    synthetic_finish(&r);
}

Test(validate, the_choice_is_the_one_that_is_fast_on_the_gpu)
{
    struct synthetic plan;
    struct real real;
    struct synthetic_run r;
    struct plim_question q = synthetic_question();
    synthetic_init(&plan, INT64_C(3) << 30); /* 19 fit; the plan predicts that 19 are the fastest */
    real_init(&real, &plan);
    real.truth.tile = 8; /* on the GPU 17 samples take three waves, as 24 would */
    validate(&r, &real, &q);
    cr_assert(r.decision.found);
    cr_expect(eq(i64, r.decision.choice.setting.micro_batch, 16));
    synthetic_finish(&r);
}

/* On the GPU a step takes a quarter longer, and a sample so much of what was planned. */
static void report_prediction(int64_t percent_of_planned, struct plim_result *result)
{
    struct synthetic plan;
    struct real real;
    struct synthetic_run r;
    struct plim_question q = synthetic_question();
    synthetic_init(&plan, INT64_C(2024) << 20); /* 10 fit */
    plan.tile = 10;
    real_init(&real, &plan);
    real.truth.per_sample_bytes = real.truth.per_sample_bytes * percent_of_planned / 100;
    real.truth.step_seconds *= 1.25;
    real.truth.tile_seconds *= 1.25;
    validate(&r, &real, &q);
    cr_assert(r.decision.found);
    *result = (struct plim_result){0};
    synthetic_answer(&r, result);
    synthetic_finish(&r);
}

Test(validate, the_report_says_how_far_the_plan_was_off)
{
    struct plim_result result;
    report_prediction(100, &result);
    cr_expect(epsilon_eq(dbl, result.prediction.step_seconds, 0.03, 1e-9));
    cr_expect(eq(i64, result.prediction.reserved_bytes, INT64_C(2024) << 20));
    cr_expect(eq(i64, result.prediction.largest_micro_batch, 10));
    cr_expect(synthetic_says(
        &result,
        "Predicted: 0.03 s a step (measured: +25 %) and 1.98 GiB reserved (measured: the same)."));
    cr_expect(not(synthetic_says(&result, "was predicted to be")));
    plim_result_finish(&result);
    report_prediction(90, &result);
    cr_expect(synthetic_says(
        &result,
        "Predicted: 0.03 s a step (measured: +25 %) and 1.98 GiB reserved (measured: 1.88 GiB)."));
    cr_expect(
        synthetic_says(&result, "The largest micro-batch was predicted to be 10; measured: 11."));
    plim_result_finish(&result);
}

/* Was a point with full checkpointing run on the GPU, and is it the choice? The plan says that it is so
 * many times slower; on the GPU it is faster. */
static void validate_slower(double planned, bool *was_run, bool *is_chosen)
{
    struct synthetic plan;
    struct real real;
    struct synthetic_run r;
    struct plim_question q = synthetic_question();
    synthetic_axis(&q, SYNTHETIC_CHECKPOINTING, 2,
                   (const int64_t[]){SYNTHETIC_NONE, SYNTHETIC_FULL});
    synthetic_init(&plan, INT64_C(3) << 30);
    plan.step_seconds = 0; /* all micro-batches are equally fast */
    plan.full_slower = planned;
    real_init(&real, &plan);
    real.truth.full_slower = 0.9;
    validate(&r, &real, &q);
    cr_assert(r.decision.found);
    *is_chosen = r.decision.choice.setting.value[SYNTHETIC_CHECKPOINTING] == SYNTHETIC_FULL;
    *was_run = false;
    for (size_t i = 0; i < r.prober.samples.count; i++)
        *was_run |=
            r.prober.samples.items[i].setting.value[SYNTHETIC_CHECKPOINTING] == SYNTHETIC_FULL;
    synthetic_finish(&r);
}

/* By PLIM_POINT_DOUBT. */
Test(validate, a_point_that_is_planned_a_fifth_slower_may_win_and_is_run)
{
    bool was_run, is_chosen;
    validate_slower(1.19, &was_run, &is_chosen);
    cr_expect(was_run && is_chosen);
    validate_slower(1.22, &was_run, &is_chosen);
    cr_expect(not(was_run));
    cr_expect(not(is_chosen));
}

/* The edge is that of the GPU, whatever a sample was planned to need. */
static void expect_edge_of(int64_t percent_of_planned)
{
    struct synthetic plan;
    struct real real;
    struct synthetic_run r;
    struct plim_question q = synthetic_question();
    synthetic_init(&plan, INT64_C(20) << 30);
    real_init(&real, &plan);
    real.truth.per_sample_bytes = real.truth.per_sample_bytes * percent_of_planned / 100;
    validate(&r, &real, &q);
    struct plim_setting edge = r.decision.largest.setting;
    cr_assert(r.decision.has_largest);
    cr_expect(synthetic_fits(&real.truth, &edge));
    edge.micro_batch++;
    cr_expect(not(synthetic_fits(&real.truth, &edge)));
    synthetic_finish(&r);
}

Test(validate, a_gpu_with_less_room_than_planned_gets_its_own_edge)
{
    expect_edge_of(105);
}

Test(validate, a_gpu_with_more_room_than_planned_gets_its_own_edge)
{
    expect_edge_of(95);
}

/* Nothing of the planned sequence fits; a shorter one does. */
Test(validate, a_plan_of_which_nothing_fits_is_searched_anew)
{
    struct synthetic plan;
    struct real real;
    struct synthetic_run r;
    struct plim_question q = synthetic_question();
    synthetic_axis(&q, SYNTHETIC_SEQ, 3, (const int64_t[]){1024, 2048, 4096});
    synthetic_init(&plan, INT64_C(1500) << 20); /* 400 MiB are 4096 tokens */
    real_init(&real, &plan);
    real.truth.per_sample_bytes *= 2;
    validate_for(&r, &real, &q, PLIM_OBJECTIVE_LONGEST_SEQUENCE);
    cr_assert(r.decision.found);
    cr_expect(eq(i64, r.decision.choice.seq, 2048));
    cr_expect(eq(i64, r.decision.choice.batch.micro_batch, 1));
    cr_expect(not(r.decision.was_planned));
    synthetic_finish(&r);
}

Test(validate, nothing_fits_on_the_gpu)
{
    struct synthetic plan;
    struct real real;
    struct synthetic_run r;
    struct plim_question q = synthetic_question();
    synthetic_init(&plan, INT64_C(3) << 30);
    real_init(&real, &plan);
    real.truth.fixed_bytes = INT64_C(4) << 30;
    validate(&r, &real, &q);
    cr_expect(eq(int, r.status, PLIM_OK));
    cr_expect(not(r.decision.found));
    synthetic_finish(&r);
}

/* Whatever the GPU is, what is reported was run on it, fits, and its neighbour does not. */
Test(validate, answers_are_true_of_the_gpu_for_random_plans)
{
    uint64_t state = 7;
    size_t runs = 0;
    for (int i = 0; i < 300; i++) {
        struct synthetic plan;
        struct real real;
        struct synthetic_run r;
        struct plim_question q = i % 2 ? wide_question() : synthetic_question();
        synthetic_randomize(&plan, &state);
        real_init(&real, &plan);
        real.truth.per_sample_bytes =
            real.truth.per_sample_bytes * synthetic_between(&state, 92, 108) / 100;
        real.truth.tile_seconds *= (double)synthetic_between(&state, 50, 200) / 100;
        real.truth.tile = synthetic_between(&state, 1, 4);
        validate(&r, &real, &q);
        cr_assert(eq(int, r.status, PLIM_OK));
        runs += real.runs;
        if (r.decision.found) {
            struct plim_setting edge = r.decision.largest.setting;
            cr_assert(r.decision.choice.verified);
            cr_assert(synthetic_fits(&real.truth, &r.decision.choice.setting));
            cr_assert(synthetic_fits(&real.truth, &edge));
            edge.micro_batch++;
            cr_assert(not(synthetic_fits(&real.truth, &edge)), "plan %d", i);
        }
        synthetic_finish(&r);
    }
    cr_expect(eq(sz, runs, 4268)); /* pinned, as tests/search/test_figures.c has it */
}
