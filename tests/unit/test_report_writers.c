/* Reports made by hand, with names that mean something to the formats. */
#include "autotune/base/text.h"
#include "reports/grid.h"
#include "reports/writer.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>

#define GIB (INT64_C(1) << 30)

static void set_value(struct plim_result_setting *setting, const char *name, const char *text)
{
    struct plim_result_value *value = &setting->values[setting->value_count++];
    snprintf(value->name, sizeof(value->name), "%s", name);
    snprintf(value->text, sizeof(value->text), "%s", text);
}

static struct plim_result_choice choice_of(int64_t batch, int64_t seq, const char *optimizer)
{
    struct plim_result_choice c = {.present = true,
                                   .setting = {.micro_batch = batch, .seq = seq, .accumulation = 4},
                                   .world = 1,
                                   .effective_batch = 4 * batch,
                                   .peak = {3 * GIB, 4 * GIB, 5 * GIB},
                                   .step_seconds = 0.5,
                                   .tokens_per_second = (double)(8 * batch * seq),
                                   .samples_per_second = (double)(8 * batch)};
    set_value(&c.setting, "precision", "bf16-mixed");
    set_value(&c.setting, "optimizer", optimizer);
    return c;
}

static struct plim_result result_named(const char *spec, const char *device)
{
    struct plim_result r = {.objective = "throughput",
                            .device = {.simulated = true, .total_bytes = 24 * GIB},
                            .limit = {.usable_bytes = 24 * GIB, .budget_bytes = 22 * GIB}};
    snprintf(r.spec.name, sizeof(r.spec.name), "%s", spec);
    snprintf(r.device.name, sizeof(r.device.name), "%s", device);
    snprintf(r.device.uri, sizeof(r.device.uri), "sim:%s", device);
    return r;
}

static void add_point(struct plim_result *r, struct plim_result_choice best, bool chosen)
{
    const struct plim_result_point point = {.best = best, .chosen = chosen, .verdict = "ok"};
    cr_assert(eq(int, PLIM_ARRAY_PUSH(&r->points, point), PLIM_OK));
}

static void add_result(struct plim_report *report, struct plim_result r)
{
    cr_assert(eq(int, PLIM_ARRAY_PUSH(&report->results, r), PLIM_OK));
}

static char *written(const struct plim_writer *writer, const struct plim_report *report, int width)
{
    const struct plim_style style = {.width = width};
    char *text = NULL;
    cr_assert(eq(int, writer->write(report, &style, &text, NULL), PLIM_OK));
    cr_assert(text != NULL);
    return text;
}

static void expect_contains(const char *text, const char *part)
{
    cr_expect(strstr(text, part) != NULL, "'%s' is missing in:\n%s", part, text);
}

static int times(const char *text, const char *part)
{
    int count = 0;
    for (; (text = strstr(text, part)); text++) count++;
    return count;
}

static size_t longest_line(const char *text)
{
    size_t longest = 0;
    for (; *text; text += strcspn(text, "\n") + (strchr(text, '\n') != NULL))
        if (strcspn(text, "\n") > longest) longest = strcspn(text, "\n");
    return longest;
}

/* Two settings of a spec and a device with unkind names. */
static struct plim_report unkind_report(void)
{
    struct plim_report report = {.version = "1.2"};
    struct plim_result r = result_named("a,b \"c\"|d\ne", "GPU|<1>");
    r.choice = choice_of(2, 512, "adamw");
    add_point(&r, choice_of(2, 512, "adamw"), true);
    add_point(&r, choice_of(1, 512, "s,g|d"), false);
    plim_result_reason(&r, "Because | of *this* [and] that.");
    add_result(&report, r);
    return report;
}

Test(report_writers, csv_quotes_what_it_has_to)
{
    struct plim_report report = unkind_report();
    char *text = written(&plim_writer_csv, &report, 0);
    const char *head = "spec,device,device_uri,seq,micro_batch,accumulation,world,effective_batch,"
                       "precision,optimizer,verdict,chosen,tokens_per_second,samples_per_second,"
                       "step_seconds,allocated_bytes,reserved_bytes,device_bytes,why\n";
    const char *first =
        "\"a,b \"\"c\"\"|d\ne\",GPU|<1>,sim:GPU|<1>,512,2,4,1,8,bf16-mixed,adamw,ok,"
        "true,8192,16,0.5,3221225472,4294967296,5368709120,\n";
    cr_expect(eq(int, strncmp(text, head, strlen(head)), 0), "%s", text);
    cr_expect(eq(int, strncmp(text + strlen(head), first, strlen(first)), 0), "%s", text);
    expect_contains(text, ",bf16-mixed,\"s,g|d\",ok,false,");
    free(text);
    plim_report_finish(&report);
}

/* Every row of a table has the cells of its head, and no name starts a line or a column. */
Test(report_writers, markdown_escapes_what_it_has_to)
{
    struct plim_report report = unkind_report();
    char *text = written(&plim_writer_markdown, &report, 0);
    expect_contains(text, "# a,b \"c\"\\|d e on GPU\\|\\<1\\>, 24.0 GiB (simulated)\n");
    expect_contains(text, "| s,g\\|d |");
    expect_contains(text, "- Because \\| of \\*this\\* \\[and\\] that.\n");
    expect_contains(text, "All: sequence 512, bf16-mixed\n");
    expect_contains(text, "\nplimsoll 1.2\n");
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        int bars = 0;
        if (*line != '|') continue;
        for (const char *c = line; *c && *c != '\n'; c++)
            bars += *c == '|' && (c == line || c[-1] != '\\');
        cr_expect(eq(int, bars, 6), "%s", line);
    }
    free(text);
    plim_report_finish(&report);
}

Test(report_writers, text_keeps_to_its_width)
{
    static const int widths[] = {60, 80, 120, 200};
    for (size_t i = 0; i < 4; i++) {
        struct plim_report report = unkind_report();
        struct plim_result *r = &report.results.items[0];
        snprintf(r->spec.name, sizeof(r->spec.name), "model");
        r->breakdown = (struct plim_result_breakdown){
            .present = true, .parameters_bytes = GIB, .logits_bytes = 4 * GIB};
        r->step_count = 4;
        plim_result_reason(r, "An incomprehensible incomprehensible incomprehensible "
                              "incomprehensible incomprehensible incomprehensible word.");
        r->choice.world = 8;
        r->choice.effective_batch = 65536;
        snprintf(r->limit.alloc_conf, sizeof(r->limit.alloc_conf), "%s",
                 "expandable_segments:True,max_split_size_mb:128,garbage_collection_threshold:0.8");
        char *text = written(&plim_writer_text, &report, widths[i]);
        cr_expect(le(sz, longest_line(text), (size_t)widths[i]), "%d:\n%s", widths[i], text);
        cr_expect(lt(sz, (size_t)(widths[i] < 130 ? widths[i] - 20 : 100), longest_line(text)));
        cr_expect(strchr(text, '\033') == NULL);
        cr_expect(eq(int, times(text, "incomprehensible"), 6), "words are broken:\n%s", text);
        expect_contains(text, "garbage_collection_threshold:0.8");
        expect_contains(text, "  logits           4.00 GiB  #");
        free(text);
        plim_report_finish(&report);
    }
}

Test(report_writers, a_width_out_of_bounds_is_brought_within)
{
    struct plim_report report = unkind_report();
    static const int widths[] = {1, 60, 5000, 200, 0, 80};
    for (size_t i = 0; i < 6; i += 2) {
        char *odd = written(&plim_writer_text, &report, widths[i]),
             *even = written(&plim_writer_text, &report, widths[i + 1]);
        cr_expect(eq(str, odd, even));
        free(odd);
        free(even);
    }
    plim_report_finish(&report);
}

/* Three devices: equal values are written once, values that differ are a column. */
static struct plim_report device_report(void)
{
    struct plim_report report = {.is_table = true};
    struct plim_result one = result_named("model", "A100-SXM4-80GB"),
                       two = result_named("model", "T4"), three = result_named("model", "tiny");
    const struct plim_result_advice worse = {.change = "worse", .peak = {.device_bytes = 9 * GIB}},
                                    better = {.change = "better", .peak = {.device_bytes = GIB}};
    one.choice = choice_of(8, 512, "adamw");
    two.choice = choice_of(4, 512, "adamw-8bit");
    three.short_bytes = 2 * GIB;
    cr_assert(eq(int, PLIM_ARRAY_PUSH(&three.advice, worse), PLIM_OK));
    cr_assert(eq(int, PLIM_ARRAY_PUSH(&three.advice, better), PLIM_OK));
    add_result(&report, one);
    add_result(&report, two);
    add_result(&report, three);
    return report;
}

Test(report_writers, a_table_of_devices_has_columns_for_what_differs)
{
    struct plim_report report = device_report();
    char *text = written(&plim_writer_text, &report, 80);
    expect_contains(text, "all: sequence 512, bf16-mixed\n");
    expect_contains(text, "optimizer");
    expect_contains(text, "adamw-8bit");
    expect_contains(text, "nothing fits: up to 2.00 GiB short\n");
    expect_contains(text, "tiny    too large  1.00 GiB  better\n");
    cr_expect(strstr(text, "precision") == NULL && strstr(text, "worse") == NULL, "%s", text);
    free(text);
    plim_report_finish(&report);
}

Test(report_writers, what_is_wider_than_the_page_goes_on_in_a_second_line)
{
    struct plim_report report = device_report();
    set_value(&report.results.items[0].choice.setting, "checkpointing", "full");
    set_value(&report.results.items[1].choice.setting, "checkpointing", "none");
    set_value(&report.results.items[0].choice.setting, "attention", "sdpa");
    set_value(&report.results.items[1].choice.setting, "attention", "eager");
    char *text = written(&plim_writer_text, &report, 60);
    cr_expect(le(sz, longest_line(text), 60), "%s", text);
    expect_contains(text, "tokens/s");
    expect_contains(text, "5.00 GiB");
    free(text);
    plim_report_finish(&report);
}

Test(report_writers, what_was_not_searched_says_why)
{
    struct plim_report report = unkind_report();
    struct plim_result_point point = {.best.setting = {.seq = 512, .accumulation = 1},
                                      .verdict = "untried",
                                      .rate_limit = 1234,
                                      .why = "it cannot be faster than 1234 tokens/s"};
    cr_assert(eq(int, PLIM_ARRAY_PUSH(&report.results.items[0].points, point), PLIM_OK));
    char *text = written(&plim_writer_text, &report, 120),
         *json = written(&plim_writer_json, &report, 0);
    expect_contains(text, "not searched: it cannot be faster than 1234 tokens/s\n");
    expect_contains(json, "\"tokens_per_second_at_most\": 1234");
    free(text);
    free(json);
    plim_report_finish(&report);
}

/* At any width: a note follows its row if it fits before the last column. */
Test(report_writers, a_note_keeps_to_the_width)
{
    struct plim_report report = unkind_report();
    struct plim_result *r = &report.results.items[0];
    struct plim_result_point point = {.best.setting = {.seq = 512, .accumulation = 1},
                                      .verdict = "untried",
                                      .why = "the search ended before it"};
    snprintf(r->spec.name, sizeof(r->spec.name), "model");
    cr_assert(eq(int, PLIM_ARRAY_PUSH(&r->points, point), PLIM_OK));
    for (int width = 60; width <= 120; width++) {
        char *text = written(&plim_writer_text, &report, width);
        cr_expect(le(sz, longest_line(text), (size_t)width), "%d:\n%s", width, text);
        free(text);
    }
    plim_report_finish(&report);
}

Test(report_writers, csv_has_a_column_for_what_only_the_first_point_has)
{
    struct plim_report report = unkind_report();
    struct plim_result *r = &report.results.items[0];
    set_value(&r->points.items[0].best.setting, "sharding", "fsdp");
    char *text = written(&plim_writer_csv, &report, 0);
    cr_expect(eq(int, times(text, "sharding"), 1), "%s", text);
    cr_expect(eq(int, times(text, "fsdp"), 1), "%s", text);
    free(text);
    plim_report_finish(&report);
}

Test(report_writers, markdown_says_that_an_explained_setting_does_not_fit)
{
    struct plim_report report = unkind_report();
    struct plim_result *r = &report.results.items[0];
    r->kind = PLIM_RESULT_EXPLANATION;
    r->short_bytes = 2 * GIB;
    char *text = written(&plim_writer_markdown, &report, 0);
    expect_contains(text, "- does not fit\n- up to 2.00 GiB short\n");
    free(text);
    plim_report_finish(&report);
}

Test(report_writers, markdown_has_a_row_for_each_task_that_takes_time)
{
    struct plim_report report = {0};
    struct plim_result r = result_named("model", "GPU");
    r.time = (struct plim_result_time){.matmul_seconds = 0.75, .attention_seconds = 0.25, .idle_seconds = 0.0005};
    add_result(&report, r);
    char *text = written(&plim_writer_markdown, &report, 0);
    cr_expect(strstr(text, "| matmul | 0.750 s | 75.0 % |") != NULL, "%s", text);
    cr_expect(strstr(text, "| attention | 0.250 s | 25.0 % |") != NULL, "%s", text);
    cr_expect(strstr(text, "idle") == NULL, "%s", text);
    free(text);
    PLIM_ARRAY_FINISH(&report.results);
}

Test(report_writers, a_page_says_every_option)
{
    struct plim_report report = unkind_report();
    cr_assert(eq(int, plim_result_option(&report.results.items[0], "train.lr", "0.125"), PLIM_OK));
    cr_assert(eq(int, plim_result_option(&report.results.items[0], "train.beta", "0.75"), PLIM_OK));
    char *text = written(&plim_writer_html, &report, 0);
    expect_contains(text, "<dt>train.lr</dt>\n<dd>0.125</dd>");
    expect_contains(text, "<dt>train.beta</dt>\n<dd>0.75</dd>");
    free(text);
    plim_report_finish(&report);
}

Test(report_writers, a_program_without_a_gpu_is_not_one_that_does_not_fit)
{
    struct plim_report report = {0};
    struct plim_result r = result_named("true", "T4");
    r.is_program = r.unsupported = true;
    add_result(&report, r);
    char *text = written(&plim_writer_text, &report, 80);
    expect_contains(text, "NO GPU WAS USED\n");
    cr_expect(strstr(text, "FITS") == NULL);
    free(text);
    plim_report_finish(&report);
}

Test(report_writers, what_cannot_be_planned_is_not_what_does_not_fit)
{
    struct plim_report report = {0};
    struct plim_result one = result_named("gpt2", "T4");
    one.unsupported = true;
    plim_result_reason(&one, "Nothing can be planned with these settings: muon is not supported.");
    add_result(&report, one);
    char *text = written(&plim_writer_text, &report, 80);
    expect_contains(text, "CANNOT BE PLANNED\n");
    cr_expect(strstr(text, "FITS") == NULL);
    free(text);
    add_result(&report, one);
    report.is_table = true;
    text = written(&plim_writer_text, &report, 80);
    expect_contains(text, "cannot be planned\n");
    const char *why = strstr(text, "muon is not supported.");
    cr_assert(why != NULL);
    cr_expect(eq(ptr, strstr(why + 1, "muon"), NULL), "once for both");
    free(text);
    plim_report_finish(&report);
}

/* More rows than there can be: as when memory runs out. */
Test(grid, a_row_that_is_lost_is_remembered)
{
    struct plim_grid grid = {0};
    plim_grid_column(&grid, "name", false);
    grid.rows.count = grid.rows.capacity = SIZE_MAX / 2;
    plim_grid_row(&grid, false);
    cr_expect(grid.failed);
    grid.rows.count = grid.rows.capacity = 0;
    plim_grid_finish(&grid);
}
