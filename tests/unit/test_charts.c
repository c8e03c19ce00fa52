/* What is drawn of a result, and where. */
#include "autotune/base/text_stream.h"
#include "reports/charts.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

static const int64_t GIB = INT64_C(1) << 30;

static void add_sample(struct plim_result *result, int64_t micro_batch, int64_t seq,
                       const char *verdict, int64_t bytes, double seconds)
{
    struct plim_result_sample sample = {
        .setting = {.micro_batch = micro_batch, .seq = seq, .accumulation = 2},
        .verdict = verdict,
        .peak = {bytes, bytes, bytes},
        .seconds = seconds};
    cr_assert(eq(int, PLIM_ARRAY_PUSH(&result->samples, sample), PLIM_OK));
}

static struct plim_result result_with_samples(void)
{
    struct plim_result result = {.choice = {.present = true, .world = 4, .setting = {.seq = 512}},
                                 .limit = {.usable_bytes = 20 * GIB, .margin_bytes = GIB}};
    add_sample(&result, 8, 512, "ok", 16 * GIB, 0.5);
    add_sample(&result, 2, 512, "ok", 4 * GIB, 0.25);
    add_sample(&result, 12, 512, "oom", 24 * GIB, 0.75);
    add_sample(&result, 4, 1024, "ok", 16 * GIB, 0.5);
    add_sample(&result, 6, 1024, "oom", 0, 0); /* what it would need is not known */
    return result;
}

static char *drawn(const struct plim_chart *chart, int width)
{
    struct plim_text_stream stream;
    char *text = NULL;
    FILE *file = plim_text_stream_open(&stream);
    cr_assert(file != NULL);
    plim_chart_draw(chart, width, file);
    cr_assert(eq(int, plim_text_stream_close(&stream, &text), PLIM_OK));
    return text;
}

static size_t count(const char *text, const char *part)
{
    size_t found = 0;
    for (; (text = strstr(text, part)); text += strlen(part)) found++;
    return found;
}

static void expect_point(const struct plim_chart_series *series, size_t index, double x, double y,
                         bool beyond)
{
    cr_assert(lt(sz, index, series->points.count));
    cr_expect(eq(dbl, series->points.items[index].x, x));
    cr_expect(eq(dbl, series->points.items[index].y, y));
    cr_expect(eq(int, series->points.items[index].beyond, beyond));
}

Test(charts, memory_is_a_line_for_each_combination_in_the_order_of_the_batch)
{
    struct plim_result result = result_with_samples();
    struct plim_chart chart;
    plim_charts_memory(&result, &chart);
    cr_assert(eq(sz, chart.series_count, 2));
    cr_expect(eq(str, chart.series[0].name, (char *)"sequence 512"));
    cr_expect(eq(str, chart.series[1].name, (char *)"sequence 1024"));
    expect_point(&chart.series[0], 0, 2, 4.0 * (double)GIB, false);
    expect_point(&chart.series[0], 1, 8, 16.0 * (double)GIB, false);
    expect_point(&chart.series[0], 2, 12, 24.0 * (double)GIB, true);
    cr_expect(eq(sz, chart.series[1].points.count, 1));
    cr_assert(eq(sz, chart.limits.count, 2));
    cr_expect(eq(dbl, chart.limits.items[0].y, 20.0 * (double)GIB));
    cr_expect(eq(dbl, chart.limits.items[1].y, 19.0 * (double)GIB));
    plim_chart_finish(&chart);
    plim_result_finish(&result);
}

Test(charts, speed_is_that_of_a_whole_step_on_all_gpus)
{
    struct plim_result result = result_with_samples();
    struct plim_chart chart;
    plim_charts_speed(&result, &chart);
    cr_assert(eq(sz, chart.series_count, 2));
    cr_assert(eq(sz, chart.series[0].points.count, 2)); /* what does not fit has no speed */
    expect_point(&chart.series[0], 1, 8, 4.0 * 8 * 2 * 512 / 0.5, false);
    result.choice.setting.seq = 0;
    plim_chart_finish(&chart);
    plim_charts_speed(&result, &chart);
    cr_expect(eq(str, (char *)chart.y_title, (char *)"samples per second"));
    plim_chart_finish(&chart);
    plim_result_finish(&result);
}

/* The scale ends at a round number: 25 GiB at the top of the plot, which is 240 pixels high. */
Test(charts, a_point_is_drawn_where_its_values_are)
{
    struct plim_result result = result_with_samples();
    struct plim_chart chart;
    plim_charts_memory(&result, &chart);
    char *svg = drawn(&chart, 720);
    /* below a title of 22 pixels, a legend of 24 and two lines of 18: 82 to 322; 66 to 706 across */
    cr_expect(strstr(svg, "translate(492.7 168.4)") != NULL, "%s", svg); /* 8, 16 GiB */
    cr_expect(strstr(svg, "translate(706.0 91.6)") != NULL, "%s", svg);  /* 12, 24 GiB */
    cr_expect(eq(sz, count(svg, "class=\"m h\""), 1));
    cr_expect(eq(sz, count(svg, "class=\"limit\""), 2));
    cr_expect(strstr(svg, "<title>sequence 512, micro-batch 12: 24.0 GiB, does not fit</title>") !=
              NULL);
    free(svg);
    plim_chart_finish(&chart);
    plim_result_finish(&result);
}

/* A moment with so many bytes of activations, and as many cached. */
static void add_moment(struct plim_result *result, double seconds, const char *phase, int64_t bytes)
{
    struct plim_result_moment moment = {
        .seconds = seconds, .memory = {.activations_bytes = bytes, .cached_bytes = bytes}};
    snprintf(moment.phase, sizeof(moment.phase), "%s", phase);
    cr_assert(eq(int, PLIM_ARRAY_PUSH(&result->timeline, moment), PLIM_OK));
}

Test(charts, a_step_shows_its_phases_and_where_the_budget_is_exceeded)
{
    struct plim_result result = {.kind = PLIM_RESULT_EXPLANATION,
                                 .fits = true,
                                 .timeline_micro_steps = 2,
                                 .choice = {.present = true, .setting = {.accumulation = 16}},
                                 .limit = {.budget_bytes = 10 * GIB}};
    struct plim_chart chart;
    add_moment(&result, 0, "forward", GIB);
    add_moment(&result, 1, "forward", 9 * GIB);
    add_moment(&result, 2, "backward", 12 * GIB);
    add_moment(&result, 4, "optimizer", 2 * GIB);
    plim_charts_step(&result, &chart);
    cr_assert(eq(sz, chart.bands.count, 3));
    cr_expect(eq(str, chart.bands.items[1].name, (char *)"backward"));
    cr_expect(eq(dbl, chart.bands.items[1].from, 2.0));
    cr_expect(eq(dbl, chart.bands.items[1].to, 4.0));
    cr_expect(
        eq(str, chart.limits.items[0].name, (char *)"budget: exceeded in backward, after 2 s"));
    cr_expect(strstr(chart.title, "2 of its 16 micro-steps") != NULL);
    cr_expect(eq(sz, chart.series_count, 2)); /* activations and cached: the rest is never there */
    plim_chart_finish(&chart);
    result.fits = false; /* without a limit, cached memory is meaningless */
    plim_charts_step(&result, &chart);
    cr_expect(eq(sz, chart.series_count, 1));
    plim_chart_finish(&chart);
    plim_result_finish(&result);
}

static struct plim_result result_with_peak(const char *model, const char *gpu)
{
    struct plim_result result = {
        .choice = {.present = true, .setting = {.micro_batch = 8, .accumulation = 2}},
        .breakdown = {.present = true, .parameters_bytes = GIB},
        .limit = {.usable_bytes = 20 * GIB}};
    result.choice.peak = (struct plim_result_peak){2 * GIB, 3 * GIB, 4 * GIB};
    snprintf(result.spec.name, sizeof(result.spec.name), "%s", model);
    snprintf(result.device.name, sizeof(result.device.name), "%s", gpu);
    return result;
}

static void expect_bars(const struct plim_report *report, const char *first, const char *second)
{
    struct plim_chart chart = {0};
    plim_charts_peak(report, &chart);
    cr_assert(eq(sz, chart.bars.count, 2));
    cr_expect(eq(str, chart.bars.items[0].name, (char *)first));
    cr_expect(eq(str, chart.bars.items[1].name, (char *)second));
    plim_chart_finish(&chart);
}

Test(charts, a_bar_says_the_model_where_there_are_several)
{
    struct plim_result results[] = {result_with_peak("a", "T4"), result_with_peak("a", "L4")};
    struct plim_report report = {.results = {results, 2, 2}};
    expect_bars(&report, "T4, 8 x 2", "L4, 8 x 2");
    strcpy(results[1].spec.name, "b"); /* for which strcmp() may return 1 or more */
    expect_bars(&report, "a on T4, 8 x 2", "b on L4, 8 x 2");
    strcpy(results[0].spec.name, "b");
    strcpy(results[1].spec.name, "a");
    expect_bars(&report, "b on T4, 8 x 2", "a on L4, 8 x 2");
}

static void count_bars(const struct plim_chart *chart, void *user)
{
    size_t *bars = user;
    *bars += chart->bars.count;
}

Test(charts, the_peak_of_a_result_is_of_it_alone)
{
    struct plim_result results[] = {result_with_peak("a", "T4"), result_with_peak("a", "L4")};
    struct plim_report report = {.results = {results, 2, 2}};
    size_t bars = 0;
    cr_expect(eq(int, plim_charts_of_result(&report, &results[0], count_bars, &bars), PLIM_OK));
    cr_expect(eq(sz, bars, 1));
}

/* What does not fit has no bar, and neither has what was not timed. */
Test(charts, devices_are_compared_where_there_is_a_rate)
{
    struct plim_result results[] = {result_with_peak("a", "T4"), result_with_peak("a", "L4"),
                                    result_with_peak("a", "L40S")};
    struct plim_report report = {.results = {results, 3, 3}};
    struct plim_chart chart;
    results[0].choice = (struct plim_result_choice){.present = false, .tokens_per_second = 7};
    results[1].choice.setting.seq = results[2].choice.setting.seq = 512;
    results[1].choice.tokens_per_second = 1000;
    plim_charts_devices(&report, &chart);
    cr_assert(eq(sz, chart.bars.count, 1));
    cr_expect(eq(str, chart.title, (char *)"Tokens per second"));
    expect_point(&chart.series[0], 0, 0, 1000, false);
    plim_chart_finish(&chart);
}

Test(charts, devices_are_compared_by_samples_where_no_length_is_known)
{
    struct plim_result results[] = {result_with_peak("a", "T4"), result_with_peak("a", "L4")};
    struct plim_report report = {.results = {results, 2, 2}};
    struct plim_chart chart;
    results[0].choice.samples_per_second = 40;
    results[1].choice.samples_per_second = 50;
    plim_charts_devices(&report, &chart);
    cr_assert(eq(sz, chart.bars.count, 2));
    cr_expect(eq(str, chart.title, (char *)"Samples per second"));
    expect_point(&chart.series[0], 1, 1, 50, false);
    plim_chart_finish(&chart);
}

Test(charts, nothing_to_draw_is_empty)
{
    struct plim_result result = {0};
    struct plim_report report = {0};
    struct plim_chart chart;
    plim_charts_memory(&result, &chart);
    cr_expect(plim_chart_is_empty(&chart));
    plim_chart_finish(&chart);
    plim_charts_step(&result, &chart);
    cr_expect(plim_chart_is_empty(&chart));
    plim_charts_peak(&report, &chart);
    cr_expect(plim_chart_is_empty(&chart));
}

/* Names come from files: none of it may be taken as markup, or steer what shows it. */
Test(charts, names_are_only_text)
{
    struct plim_chart chart = {.id = "x", .x_title = "<b>", .y_title = "&"};
    struct plim_chart_series *series =
        plim_chart_add_series(&chart, "<script>alert(\"1\")</script>'&\x1b[31m\xff");
    plim_chart_add_series(&chart, "other");
    plim_chart_add_point(&chart, series, (struct plim_chart_point){.x = 1, .y = 2});
    char *svg = drawn(&chart, 300);
    cr_expect(zero(ptr, strstr(svg, "<script")));
    cr_expect(zero(ptr, strchr(svg, '\x1b')));
    cr_expect(zero(ptr, strchr(svg, '\xff')));
    cr_expect(strstr(svg, "&lt;script&gt;") && strstr(svg, "&amp;") && strstr(svg, "\\x1b"));
    free(svg);
    plim_chart_finish(&chart);
}

/* On the average of characters, no line of text leaves a narrow drawing. */
Test(charts, long_names_are_wrapped_in_a_narrow_drawing)
{
    struct plim_chart chart = {.id = "x",
                               .x_title = "x",
                               .y_title = "y",
                               .title = "A title that is much too long for three hundred pixels"};
    struct plim_chart_series *series = plim_chart_add_series(
        &chart, "sequence 1024, bf16-mixed, checkpointing full, optimizer adamw-8bit");
    plim_chart_add_series(&chart, "other");
    plim_chart_add_point(&chart, series, (struct plim_chart_point){.x = 1, .y = 2});
    char *svg = drawn(&chart, 300);
    for (const char *text = svg; (text = strstr(text, "<text")); text++) {
        const char *words = strchr(text, '>') + 1;
        cr_expect(le(int, (int)strcspn(words, "<"), 46), "%.80s", words);
    }
    cr_expect(eq(sz, count(svg, "adamw-8bit"), 2)); /* in the legend, and in the point's title */
    free(svg);
    plim_chart_finish(&chart);
}
