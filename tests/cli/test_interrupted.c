/* A search that is ended early: by its budget, by a signal. */
#include "autotune/base/clock.h"
#include "program.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <signal.h>
#include <string.h>

/* Long enough to be cut short on any machine. */
#define LONG                                                                                       \
    "plan llama-3-8b --device all --seq 256:4096:256 --precision bf16,fp16,bf16-mixed --json"

Test(interrupted, when_the_time_is_up_a_partial_report_is_written)
{
    struct program p = program_run(LONG " --budget 300ms");
    cr_expect(eq(int, p.exit_code, 5));
    json_t *root = program_json(&p), *results = json_at(root, "results");
    cr_expect(json_true_at(json_array_get(results, json_array_size(results) - 1), "interrupted"));
    json_decref(root);
    program_finish(&p);
}

Test(interrupted, a_signal_ends_the_search_with_a_partial_report)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (int i = 0; i < 3; i++) {
        signal(signals[i], SIG_DFL);
        struct program p = program_run_and_signal(LONG, signals[i], 300);
        cr_expect(eq(int, p.exit_code, 5), "signal %d", signals[i]);
        json_t *root = program_json(&p);
        json_expect_text(root, "schema", "plimsoll.plan/1");
        json_decref(root);
        program_finish(&p);
    }
}

Test(interrupted, a_signal_that_is_ignored_stays_ignored)
{
    double start = plim_clock_seconds();
    signal(SIGHUP, SIG_IGN); /* as nohup does */
    struct program p = program_run_and_signal(LONG " --budget 800ms", SIGHUP, 100);
    cr_expect(lt(dbl, 0.8, plim_clock_seconds() - start));
    cr_expect(eq(int, p.exit_code, 5)); /* by the budget */
    program_finish(&p);
}
