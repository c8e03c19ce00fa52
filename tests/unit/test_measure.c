/* How long a step takes: when the repeats end, and what is called noisy. */
#include "autotune/run/measure.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <time.h>

/* Steps that take base x (1 + what `shape` adds); after so many one fails. */
struct script {
    double base, noise, drift_per_step, outlier;
    int ramp;    /* so many steps until the clock has risen to twice where it began */
    int fail_at; /* 0: never */
    int calls;
    double nap_seconds; /* host time of a step */
};

static enum plim_status step(void *user, double *seconds)
{
    struct script *s = user;
    int n = s->calls++;
    double wave = n % 2 ? 1 : -1;
    *seconds = s->base * (1 + s->noise * wave + s->drift_per_step * n);
    if (n < s->ramp) *seconds *= 2 - (double)n / s->ramp;
    if (s->outlier > 0 && n % 10 == 9) *seconds = s->outlier;
    if (s->nap_seconds > 0) nanosleep(&(struct timespec){0, (long)(s->nap_seconds * 1e9)}, NULL);
    return s->fail_at && s->calls >= s->fail_at ? PLIM_OOM : PLIM_OK;
}

static enum plim_status measure(struct script *script, double allowed_seconds,
                                struct plim_timing *out)
{
    struct plim_warmth cold = {0};
    struct plim_measured_steps none = {.count = 0};
    return plim_measure(step, script, &cold, &none, allowed_seconds, out);
}

/* Two windows of half a second are alike: that is warm. */
Test(measure, steady_steps_need_few_repeats)
{
    struct script s = {.base = 0.125};
    struct plim_timing t;
    cr_assert(eq(int, measure(&s, 60, &t), PLIM_OK));
    cr_expect(eq(int, t.repeats, 6));
    cr_expect(eq(int, s.calls, 8 + 6));
    cr_expect(ieee_ulp_eq(dbl, t.median_seconds, 0.125, 4));
    cr_expect(eq(dbl, t.half_width_seconds, 0));
    cr_expect(not(t.noisy));
}

Test(measure, the_warm_up_is_a_second_and_steady)
{
    struct script s = {.base = 0.1, .ramp = 20};
    struct plim_timing t;
    cr_assert(eq(int, measure(&s, 60, &t), PLIM_OK));
    cr_expect(ieee_ulp_eq(dbl, t.median_seconds, 0.1, 4)); /* nothing of the ramp is in it */
    cr_expect(lt(int, 20, s.calls - t.repeats));
}

/* After a second of any work just before, the GPU's clock is high. */
Test(measure, a_gpu_that_has_worked_is_warm)
{
    struct plim_warmth warmth = {0};
    struct plim_timing t;
    for (int i = 0; i < 4; i++) plim_warmth_record(&warmth, 0.25);
    struct script s = {.base = 0.125};
    struct plim_measured_steps none = {.count = 0};
    cr_assert(eq(int, plim_measure(step, &s, &warmth, &none, 60, &t), PLIM_OK));
    cr_expect(eq(int, s.calls, 6));
    cr_expect(eq(dbl, warmth.busy_seconds, 1 + 6 * 0.125));
    /* Not one that has paused since. */
    warmth.until -= 2;
    struct script cold = {.base = 0.125};
    none.count = 0;
    cr_assert(eq(int, plim_measure(step, &cold, &warmth, &none, 60, &t), PLIM_OK));
    cr_expect(eq(int, cold.calls, 8 + 6));
}

/* Steps that were run anyway are repeats, but not where they warmed the GPU up. */
Test(measure, steps_before_are_repeats_of_a_warm_gpu)
{
    for (int warm = 0; warm < 2; warm++) {
        struct plim_warmth warmth = {0};
        struct plim_measured_steps steps = {.seconds = {0.5, 0.5, 0.5}, .count = 3};
        struct plim_timing t;
        if (warm) plim_warmth_record(&warmth, 1);
        for (int i = 0; i < 3; i++) plim_warmth_record(&warmth, 0.5);
        struct script s = {.base = 0.5};
        cr_assert(eq(int, plim_measure(step, &s, &warmth, &steps, 60, &t), PLIM_OK));
        cr_expect(eq(int, s.calls, warm ? 3 : 6));
        cr_expect(eq(int, t.repeats, 6));
        cr_expect(eq(dbl, t.median_seconds, 0.5));
    }
}

Test(measure, scatter_takes_repeats_until_the_median_is_known)
{
    struct script s = {.base = 0.1, .noise = 0.008};
    struct plim_timing t;
    cr_assert(eq(int, measure(&s, 60, &t), PLIM_OK));
    cr_expect(le(dbl, t.half_width_seconds, 0.01 * t.median_seconds));
    cr_expect(not(t.noisy));
    struct script wide = {.base = 0.1, .noise = 0.05};
    cr_assert(eq(int, measure(&wide, 60, &t), PLIM_OK));
    cr_expect(eq(int, t.repeats, PLIM_MEASURE_REPEATS));
    cr_expect(t.noisy);
}

Test(measure, single_slow_steps_do_not_count)
{
    struct script s = {.base = 0.1, .outlier = 5};
    struct plim_timing t;
    cr_assert(eq(int, measure(&s, 60, &t), PLIM_OK));
    cr_expect(ieee_ulp_eq(dbl, t.median_seconds, 0.1, 4));
}

Test(measure, a_gpu_that_gets_slower_is_noisy)
{
    struct script s = {.base = 0.2, .drift_per_step = 0.012};
    struct plim_timing t;
    cr_assert(eq(int, measure(&s, 1e-9, &t), PLIM_OK));
    cr_expect(eq(int, t.repeats, 1)); /* no time: one repeat, nothing known of its spread */
    cr_expect(eq(dbl, t.half_width_seconds, 0));
    struct script slow = {.base = 0.2, .drift_per_step = 0.012, .nap_seconds = 0.01};
    cr_assert(eq(int, measure(&slow, 0.3, &t), PLIM_OK));
    cr_expect(lt(dbl, 0.02, t.drift));
    cr_expect(t.noisy);
}

Test(measure, the_time_given_is_kept)
{
    struct script s = {.base = 0.1, .noise = 0.05, .nap_seconds = 0.01};
    struct plim_timing t;
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    cr_assert(eq(int, measure(&s, 0.3, &t), PLIM_OK));
    clock_gettime(CLOCK_MONOTONIC, &b);
    double took = (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
    cr_expect(lt(dbl, took, 3)); /* all repeats are 10 s */
    cr_expect(lt(int, 5, t.repeats));
}

Test(measure, a_step_that_fails_is_the_answer)
{
    struct script s = {.base = 0.1, .fail_at = 14};
    struct plim_timing t;
    cr_assert(eq(int, measure(&s, 60, &t), PLIM_OOM));
    cr_expect(eq(int, t.repeats, 0));
}

Test(measure, a_step_without_a_time_is_refused)
{
    struct plim_timing t;
    static const double times[] = {0, -1, NAN, INFINITY};
    for (int i = 0; i < 4; i++) {
        struct script s = {.base = times[i]};
        cr_expect(eq(int, measure(&s, 1, &t), PLIM_INVALID), "%g", times[i]);
    }
}
