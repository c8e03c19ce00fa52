/* A report of plimsoll's own, given back in the place of a spec. */
#include "program.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MADE                                                                                       \
    "plan gpt2-124m --device sim:24GiB,memory=20GiB --seq 512,256 --set train.clip=1.0 "           \
    "--margin 2GiB --overhead 700MiB --effective-batch 64 --quiet "

/* The report of a plan, in a file with this name. */
static char *report_file(const char *name)
{
    char arguments[512], *path = program_file(name, "");
    snprintf(arguments, sizeof(arguments), MADE "--out %s", path);
    struct program p = program_run(arguments);
    cr_assert(eq(int, p.exit_code, 0), "%s", p.err);
    program_finish(&p);
    return path;
}

static struct program run_on(const char *verb, const char *path, const char *options)
{
    char arguments[512];
    snprintf(arguments, sizeof(arguments), "%s %s %s", verb, path, options);
    return program_run(arguments);
}

static void expect_same(json_t *a, const char *path_a, json_t *b, const char *path_b)
{
    json_t *x = json_at(a, path_a), *y = json_at(b, path_b);
    cr_assert(x && y, "%s, %s", path_a, path_b);
    cr_expect(json_equal(x, y), "%s differs", path_a);
}

Test(earlier, a_choice_is_explained_as_it_was_made)
{
    static const char *const names[] = {"result.json", "result.yaml"};
    static const char *const same[] = {"micro_batch", "seq", "accumulation", "precision",
                                       "checkpointing", "effective_batch"};
    for (size_t i = 0; i < 2; i++) {
        char *path = report_file(names[i]), key[2][64];
        struct program first = program_run(MADE "--json"), p = run_on("explain", path, "--json");
        cr_assert(eq(int, p.exit_code, 0), "%s", p.err);
        cr_expect(eq(str, p.err, (char *)""));
        json_t *before = program_json(&first), *after = program_json(&p);
        for (size_t k = 0; k < sizeof(same) / sizeof(same[0]); k++) {
            snprintf(key[0], sizeof(key[0]), "choice.%s", same[k]);
            snprintf(key[1], sizeof(key[1]), "setting.%s", same[k]);
            expect_same(before, key[0], after, key[1]);
        }
        expect_same(before, "choice.peak", after, "peak");
        expect_same(before, "limit", after, "limit");
        expect_same(before, "device", after, "device");
        json_decref(before);
        json_decref(after);
        program_finish(&first);
        program_finish(&p);
        program_file_remove(path);
    }
}

Test(earlier, options_count_before_the_report)
{
    char *path = report_file("result.json");
    struct program p = run_on("explain", path, "--batch 8 --device sim:T4 --json");
    json_t *root = program_json(&p);
    cr_expect(eq(i64, json_int_at(root, "setting.micro_batch"), 8));
    cr_expect(eq(i64, json_int_at(root, "setting.accumulation"), 8));
    cr_expect(eq(str, (char *)json_text_at(root, "device.name"), (char *)"T4"));
    cr_expect(ne(i64, json_int_at(root, "limit.margin_bytes"), INT64_C(2) << 30));
    json_decref(root);
    program_finish(&p);
    program_file_remove(path);
}

/* Weights belong to the precision: another one does not keep the report's. */
Test(earlier, weights_come_back_with_their_precision)
{
    struct program p = program_run("explain llama-3.2-1b --device sim:A100-SXM4-80GB --batch 1 "
                                   "--precision bf16-mixed --weights fp32 --json");
    char *path = program_file("report.json", p.out);
    program_finish(&p);
    p = run_on("explain", path, "--json");
    json_t *root = program_json(&p);
    cr_expect(eq(str, (char *)json_text_at(root, "setting.precision"), "bf16-mixed"));
    cr_expect(eq(str, (char *)json_text_at(root, "setting.weights"), "fp32"));
    json_decref(root);
    program_finish(&p);
    p = run_on("explain", path, "--precision bf16 --json");
    root = program_json(&p);
    cr_expect(eq(str, (char *)json_text_at(root, "setting.weights"), "bf16"), "%s", p.err);
    json_decref(root);
    program_finish(&p);
    program_file_remove(path);
}

Test(earlier, an_explanation_can_be_tuned_and_explained_again)
{
    char *path = program_file("explained.json", "");
    struct program p = run_on("explain gpt2-124m --device sim:T4 --batch 2 --seq 128 --accumulation 3 "
                              "--optimizer sgd --out", path, "--quiet");
    program_finish(&p);
    p = run_on("tune", path, "--json");
    cr_expect(eq(int, p.exit_code, 0), "%s", p.err);
    json_t *root = program_json(&p);
    cr_expect(eq(i64, json_int_at(root, "choice.micro_batch"), 2));
    cr_expect(eq(i64, json_int_at(root, "choice.accumulation"), 3));
    cr_expect(eq(str, (char *)json_text_at(root, "choice.optimizer"), (char *)"sgd"));
    json_decref(root);
    program_finish(&p);
    p = run_on("explain", path, "--effective-batch 12 --json"); /* not with the report's 3 */
    root = program_json(&p);
    cr_expect(eq(i64, json_int_at(root, "setting.accumulation"), 6));
    json_decref(root);
    program_finish(&p);
    program_file_remove(path);
}

Test(earlier, a_spec_that_has_changed_is_told)
{
    char arguments[512];
    char *spec = program_file("spec.yaml", "model: {zoo: gpt2-124m}\n");
    char *path = program_file("result.json", "");
    snprintf(arguments, sizeof(arguments), "plan %s --device sim:T4 --seq 64 --quiet --out %s", spec,
             path);
    struct program p = program_run(arguments);
    program_finish(&p);
    p = run_on("explain", path, "");
    cr_expect(eq(str, p.err, (char *)""));
    program_finish(&p);
    FILE *file = fopen(spec, "w");
    fputs("model: {zoo: gpt2-124m}\ntrain: {clip: 1.0}\n", file);
    fclose(file);
    p = run_on("explain", path, "");
    cr_expect(eq(int, p.exit_code, 0));
    cr_expect(strstr(p.err, "another state") != NULL, "%s", p.err);
    program_finish(&p);
    program_file_remove(spec);
    program_file_remove(path);
}

Test(earlier, what_cannot_be_asked_again_is_refused_in_one_line)
{
    static const struct { const char *text, *says; } refused[] = {
        {"{\"schema\": \"plimsoll.plan/1\", \"results\": [{\"device\": {\"name\": \"T4\"}}, "
         "{\"device\": {\"name\": \"L4\"}}]}", "2 devices (T4, L4)"},
        {"{\"schema\": \"plimsoll.plan/1\", \"results\": [1, []]}", "2 devices"},
        {"{\"schema\": \"plimsoll.result/2\", \"choice\": {}}", "schema is plimsoll.result/2"},
        {"{\"schema\": \"plimsoll.devices/1\"}", "schema is plimsoll.devices/1"},
        {"{\"schema\": \"plimsoll.result/1\", \"program\": true, \"choice\": {}}", "exec"},
        {"{\"schema\": \"plimsoll.result/1\", \"spec\": {\"source\": \"\"}}", "exec"},
        {"{\"schema\": \"plimsoll.result/1\", \"spec\": {\"source\": \"gpt2-124m\"}, "
         "\"choice\": null}", "nothing fitted"},
        {"{\"schema\": \"plimsoll.result/1\", \"spec\": {\"source\": \"gone.yaml\"}, "
         "\"choice\": {}}", "gone.yaml: no such file"}};
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        char *path = program_file("result.json", refused[i].text);
        struct program p = run_on("explain", path, "");
        cr_expect(eq(int, p.exit_code, 2), "%s", refused[i].text);
        cr_expect(eq(str, p.out, (char *)""));
        cr_expect(eq(sz, strcspn(p.err, "\n") + 1, strlen(p.err)), "not one line: %s", p.err);
        cr_expect(strstr(p.err, refused[i].says) != NULL, "%s", p.err);
        program_finish(&p);
        program_file_remove(path);
    }
}
