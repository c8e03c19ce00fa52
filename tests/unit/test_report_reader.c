/* Reports read back: what was written is what is read, and what is no report is refused. */
#include "reports/report_reader.h"
#include "reports/writer.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void path_of(const char *name, char path[512])
{
    snprintf(path, 512, "%s/reports/%s", PLIM_UNIT_DATA_FOLDER, name);
}

static void text_of(const char *path, char *out, size_t size)
{
    FILE *file = fopen(path, "r");
    cr_assert(file != NULL, "%s", path);
    out[fread(out, 1, size - 1, file)] = '\0';
    fclose(file);
}

/* Read and written again, a report is the same to the byte: nothing is lost, and nothing is added. */
static void expect_same(const char *name)
{
    static char before[65536];
    char path[512], *after = NULL;
    const struct plim_writer *writer;
    struct plim_yaml yaml;
    struct plim_report report = {0};
    struct plim_error err = PLIM_ERROR_INIT;
    path_of(name, path);
    text_of(path, before, sizeof(before));
    cr_assert(eq(int, plim_yaml_read_file(path, &yaml, &err), PLIM_OK), "%s", err.text);
    cr_assert(eq(int, plim_report_read(&yaml, &report, &err), PLIM_OK), "%s: %s", name, err.text);
    cr_assert(eq(int, plim_writer_for_path(path, &writer, &err), PLIM_OK));
    cr_assert(eq(int, writer->write(&report, NULL, &after, &err), PLIM_OK));
    cr_expect(eq(str, after, before), "%s", name);
    free(after);
    plim_report_finish(&report);
    plim_yaml_finish(&yaml);
}

Test(report_reader, every_report_is_read_as_it_was_written)
{
    static const char *const names[] = {"decision.json",  "decision.yaml",  "explanation.json",
                                        "no_answer.json", "nothing.json",   "program.json",
                                        "table.json",     "too_large.json", "timeline.json"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) expect_same(names[i]);
}

static enum plim_status read_text(const char *text, struct plim_report *report,
                                  struct plim_error *err)
{
    struct plim_yaml yaml;
    enum plim_status st = plim_yaml_read_string("a.json", text, strlen(text), &yaml, err);
    if (st) return st;
    st = plim_report_read(&yaml, report, err);
    report->version = NULL; /* it was the document's */
    plim_yaml_finish(&yaml);
    return st;
}

static void expect_refused(const char *text, const char *why)
{
    struct plim_report report = {0};
    struct plim_error err = PLIM_ERROR_INIT;
    cr_expect(ne(int, read_text(text, &report, &err), PLIM_OK), "%s", text);
    cr_expect(strstr(err.text, why) != NULL, "%s: '%s', expected '%s'", text, err.text, why);
    plim_report_finish(&report);
}

Test(report_reader, what_is_no_report_is_refused_with_the_place)
{
    expect_refused("{}", "no report of plimsoll's");
    expect_refused("[1]", "no report of plimsoll's");
    expect_refused("{\"schema\": \"plimsoll.result/2\"}", "plimsoll.result/2");
    expect_refused("{\"schema\": \"plimsoll.plan/1\", \"results\": 3}", "expected a list");
    expect_refused("{\"schema\": \"plimsoll.plan/1\", \"results\": [{}]}", "schema ''");
    expect_refused("{\"schema\": \"plimsoll.result/1\", \"choice\": 3}", "expected a mapping");
    expect_refused("{\"schema\": \"plimsoll.result/1\", \"seconds\": \"x\"}", "expected a number");
    expect_refused("{\"schema\": \"plimsoll.result/1\", \"samples\": [{\"micro_batch\": 1.5}]}",
                   "expected an integer");
    expect_refused("{\"schema\": \"plimsoll.explain/1\", \"fits\": 7}", "expected");
}

Test(report_reader, a_point_without_a_verdict_was_not_tried)
{
    struct plim_report report = {0};
    struct plim_error err = PLIM_ERROR_INIT;
    const char *text = "{\"schema\": \"plimsoll.result/1\", \"points\": [{\"seq\": 512}]}";
    cr_assert(eq(int, read_text(text, &report, &err), PLIM_OK), "%s", err.text);
    cr_assert(eq(sz, report.results.items[0].points.count, 1));
    cr_expect(eq(str, (char *)report.results.items[0].points.items[0].verdict, "untried"));
    plim_report_finish(&report);
}

/* Lists that are too long for a result are truncated, and unknown words count as unknown. */
Test(report_reader, more_than_there_is_room_for_is_cut)
{
    char text[8192] = "{\"schema\": \"plimsoll.explain/1\", \"later\": {\"x\": [1]}, \"steps\": [";
    struct plim_report report = {0};
    struct plim_error err = PLIM_ERROR_INIT;
    for (int i = 0; i < 20; i++) strcat(text, i ? ", {}" : "{}");
    strcat(
        text,
        "], \"limit\": {\"overhead_source\": \"guessed\"}, \"samples\": [{\"verdict\": \"?\"}]}");
    cr_assert(eq(int, read_text(text, &report, &err), PLIM_OK), "%s", err.text);
    const struct plim_result *result = &report.results.items[0];
    cr_expect(eq(sz, result->step_count, PLIM_RESULT_STEPS));
    cr_expect(zero(ptr, (void *)result->limit.overhead_source));
    cr_expect(eq(str, (char *)result->samples.items[0].verdict, (char *)"unstable"));
    plim_report_finish(&report);
}
