/* Several answers in one report, a row each: combinations of a list, devices, how they are sorted. */
#include "program.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#define A100 "--device sim:A100-SXM4-80GB,memory=24GiB --margin 0 --overhead 0 "

Test(rows, several_devices_give_a_table_in_their_order)
{
    const char *arguments = "plan gpt2-124m --device sim:T4 --device "
                            "sim:A100-SXM4-40GB,memory=2GiB --device sim:L4 --seq 256";
    char with_json[256];
    snprintf(with_json, sizeof(with_json), "%s --json", arguments);
    struct program p = program_run(with_json);
    cr_expect(eq(int, p.exit_code, 0));
    json_t *root = program_json(&p);
    json_expect_text(root, "schema", "plimsoll.plan/1");
    json_expect_text(root, "results.0.device.name", "T4");
    cr_expect(json_null_at(root, "results.1.choice"));
    json_expect_text(root, "results.2.device.name", "L4");
    json_expect_text(root, "results.2.schema", "plimsoll.result/1");
    json_decref(root);
    program_finish(&p);
    p = program_run(arguments);
    cr_expect(strstr(p.out, "nothing fits") != NULL, "%s", p.out);
    program_finish(&p);
}

static double rate_of(json_t *point)
{
    return json_number_value(json_object_get(point, "tokens_per_second"));
}

Test(rows, every_combination_of_a_list_has_its_best_and_the_fastest_is_the_choice)
{
    struct program p = program_run("plan gpt2-124m " A100 "--seq 256,512 --precision "
                                   "fp32,bf16-mixed --effective-batch 64 --json");
    json_t *root = program_json(&p), *points = json_at(root, "points"), *point;
    size_t i, chosen = 0, chosen_unproven = 0;
    cr_assert(eq(sz, json_array_size(points), 8)); /* with and without checkpointing */
    json_array_foreach(points, i, point)
    {
        cr_expect(json_true_at(point, "fits"), "point %zu", i);
        chosen_unproven += json_true_at(point, "chosen") && !json_true_at(point, "verified");
        cr_expect(eq(i64, json_int_at(point, "effective_batch"), 64));
        cr_expect(i == 0 || rate_of(point) <= rate_of(json_array_get(points, i - 1)));
        chosen += json_true_at(point, "chosen");
    }
    cr_expect(eq(sz, chosen, 1));
    cr_expect(eq(sz, chosen_unproven, 0));
    cr_expect(ge(dbl, rate_of(json_at(root, "choice")), 0.99 * rate_of(json_at(points, "0"))));
    json_decref(root);
    program_finish(&p);
}

Test(rows, a_combination_that_does_not_fit_says_what_is_missing)
{
    struct program p = program_run("plan gpt2-124m --device sim:24GiB,memory=6GiB --seq 1024 "
                                   "--batch 4 --checkpointing none,full --json");
    json_t *root = program_json(&p), *last = json_at(root, "points.1");
    json_expect_text(root, "points.0.checkpointing", "full");
    cr_expect(json_true_at(root, "points.0.fits"));
    json_expect_text(last, "checkpointing", "none");
    json_expect_text(last, "verdict", "oom");
    cr_expect(json_false_at(last, "fits"));
    cr_expect(lt(i64, 0, json_int_at(last, "short_bytes")));
    cr_expect(strstr(json_text_at(last, "why"), "out of memory") != NULL);
    json_decref(root);
    program_finish(&p);
}

Test(rows, the_rows_stand_in_the_order_that_was_asked_for)
{
    static const struct {
        const char *sort, *key;
        int sign;
    } orders[] = {{"batch", "micro_batch", -1},
                  {"memory", "peak.device_bytes", 1},
                  {"given", "seq", 0},
                  {"speed", "step_seconds", 0}};
    char arguments[256];
    for (size_t i = 0; i < 4; i++) {
        snprintf(arguments, sizeof(arguments),
                 "plan gpt2-124m " A100 "--seq 256,128,512 --checkpointing none --sort %s --json",
                 orders[i].sort);
        struct program p = program_run(arguments);
        json_t *root = program_json(&p), *points = json_at(root, "points"), *point;
        size_t k;
        json_array_foreach(points, k, point)
        {
            json_t *before = k ? json_array_get(points, k - 1) : NULL;
            if (before && orders[i].sign)
                cr_expect(ge(i64, orders[i].sign * json_int_at(point, orders[i].key),
                             orders[i].sign * json_int_at(before, orders[i].key)),
                          "%s", orders[i].sort);
            if (before && !strcmp(orders[i].sort, "speed"))
                cr_expect(le(dbl, rate_of(point), rate_of(before)));
        }
        if (!strcmp(orders[i].sort, "given")) {
            cr_expect(eq(i64, json_int_at(root, "points.0.seq"), 256));
            cr_expect(eq(i64, json_int_at(root, "points.1.seq"), 128));
        }
        json_decref(root);
        program_finish(&p);
    }
}

Test(rows, devices_are_sorted_only_when_asked)
{
    static const char *const first[] = {"", "T4", "--sort speed", "L4"};
    char arguments[256];
    for (size_t i = 0; i < 4; i += 2) {
        snprintf(arguments, sizeof(arguments),
                 "plan gpt2-124m --device sim:T4 --device sim:L4 --seq 256 --json %s", first[i]);
        struct program p = program_run(arguments);
        json_t *root = program_json(&p);
        json_expect_text(root, "results.0.device.name", first[i + 1]);
        json_decref(root);
        program_finish(&p);
    }
}
