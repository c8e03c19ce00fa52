#include "charts.h"
#include "numbers.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- over the micro-batch --------------------------------------------------------------------- */

static bool same_point(const struct plim_result_setting *a, const struct plim_result_setting *b)
{
    bool same = a->seq == b->seq;
    for (size_t i = 0; i < a->value_count && same; i++)
        same = !strcmp(a->values[i].text, plim_result_value(b, a->values[i].name));
    return same;
}

static bool differs(const struct plim_result *result, const char *axis)
{
    for (size_t i = 1; i < result->samples.count; i++) {
        const struct plim_result_setting *setting = &result->samples.items[i].setting;
        const struct plim_result_setting *first = &result->samples.items[0].setting;
        if (!axis && setting->seq != first->seq) return true;
        if (axis && strcmp(plim_result_value(setting, axis), plim_result_value(first, axis)) != 0)
            return true;
    }
    return false;
}

static void append(char name[PLIM_CHART_LABEL], const char *text)
{
    size_t used = strlen(name);
    snprintf(name + used, PLIM_CHART_LABEL - used, "%s%.60s", used ? ", " : "", text);
}

/* A combination by what it has not in common with the others. */
static void name_point(const struct plim_result *result, const struct plim_result_setting *setting,
                       char name[PLIM_CHART_LABEL])
{
    char text[128];
    name[0] = '\0';
    if (differs(result, NULL)) {
        snprintf(text, sizeof(text), "sequence %" PRId64, setting->seq);
        append(name, text);
    }
    for (size_t i = 0; i < setting->value_count; i++) {
        const struct plim_result_value *value = &setting->values[i];
        bool is_known = !strcmp(value->name, "precision") || !strcmp(value->name, "optimizer");
        if (!differs(result, value->name)) continue;
        snprintf(text, sizeof(text), "%s%s%s", is_known ? "" : value->name, is_known ? "" : " ",
                 value->text);
        append(name, text);
    }
}

static int compare_points(const void *a, const void *b)
{
    const struct plim_chart_point *p = a, *q = b;
    return (p->x > q->x) - (p->x < q->x);
}

/* What a sample shows; 0: nothing. */
typedef double value_of(const struct plim_result *result, const struct plim_result_sample *sample);

static double memory_of(const struct plim_result *result, const struct plim_result_sample *sample)
{
    (void)result;
    return (double)sample->peak.device_bytes;
}

static double speed_of(const struct plim_result *result, const struct plim_result_sample *sample)
{
    const struct plim_result_setting *s = &sample->setting;
    double world = result->choice.world > 0 ? (double)result->choice.world : 1;
    if (sample->seconds <= 0 || strcmp(sample->verdict, "ok") != 0) return 0;
    return world * (double)s->micro_batch * (double)s->accumulation *
           (s->seq ? (double)s->seq : 1) / sample->seconds;
}

/* One point for a micro-batch: the largest of what was seen there. */
static void add_sample(struct plim_chart *chart, struct plim_chart_series *series,
                       const struct plim_result_sample *sample, double y)
{
    double x = (double)sample->setting.micro_batch;
    for (size_t i = 0; i < series->points.count; i++) {
        struct plim_chart_point *point = &series->points.items[i];
        if (point->x != x) continue;
        if (y > point->y) point->y = y;
        return;
    }
    plim_chart_add_point(chart, series,
                         (struct plim_chart_point){
                             .x = x, .y = y, .beyond = strcmp(sample->verdict, "ok") != 0});
}

static void add_combination(struct plim_chart *chart, const struct plim_result *result,
                            const struct plim_result_setting *setting, value_of *value)
{
    char name[PLIM_CHART_LABEL];
    name_point(result, setting, name);
    struct plim_chart_series *series =
        chart->series_count < PLIM_CHARTS_LINES ? plim_chart_add_series(chart, name) : NULL;
    if (!series) return;
    for (size_t i = 0; i < result->samples.count; i++) {
        const struct plim_result_sample *sample = &result->samples.items[i];
        double y = value(result, sample);
        if (y > 0 && sample->setting.micro_batch && same_point(setting, &sample->setting))
            add_sample(chart, series, sample, y);
    }
    if (!series->points.count) chart->series_count--;
    else
        qsort(series->points.items, series->points.count, sizeof(*series->points.items),
              compare_points);
}

/* Was its combination drawn with an earlier sample? */
static bool is_first(const struct plim_result *result, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (same_point(&result->samples.items[i].setting, &result->samples.items[index].setting))
            return false;
    return true;
}

/* In the order of the points, which is that of their worth; without points in that of the samples. */
static void add_combinations(struct plim_chart *chart, const struct plim_result *result,
                             value_of *value)
{
    for (size_t i = 0; i < result->points.count; i++)
        add_combination(chart, result, &result->points.items[i].best.setting, value);
    for (size_t i = 0; i < result->samples.count && !result->points.count; i++)
        if (is_first(result, i))
            add_combination(chart, result, &result->samples.items[i].setting, value);
}

void plim_charts_memory(const struct plim_result *result, struct plim_chart *chart)
{
    *chart = (struct plim_chart){.kind = PLIM_CHART_LINES,
                                 .id = "memory",
                                 .title = "Memory over the micro-batch",
                                 .x_title = "micro-batch",
                                 .y_title = "on the GPU",
                                 .y_unit = PLIM_CHART_BYTES};
    add_combinations(chart, result, memory_of);
    const struct plim_result_limit *limit = &result->limit;
    plim_chart_add_limit(chart, "usable", (double)limit->usable_bytes);
    if (limit->margin_bytes > 0)
        plim_chart_add_limit(chart, "usable, less the margin",
                             (double)(limit->usable_bytes - limit->margin_bytes));
}

void plim_charts_speed(const struct plim_result *result, struct plim_chart *chart)
{
    bool of_tokens = result->choice.setting.seq > 0;
    *chart = (struct plim_chart){.kind = PLIM_CHART_LINES,
                                 .id = "speed",
                                 .title = "Speed over the micro-batch",
                                 .x_title = "micro-batch",
                                 .y_title = of_tokens ? "tokens per second" : "samples per second"};
    add_combinations(chart, result, speed_of);
}

/* --- a step ----------------------------------------------------------------------------------- */

static void add_phases(const struct plim_result *result, struct plim_chart *chart)
{
    size_t count = result->timeline.count;
    const struct plim_result_moment *moments = result->timeline.items;
    for (size_t i = 0, first = 0; i < count; i++) {
        bool ends = i + 1 == count || strcmp(moments[i + 1].phase, moments[first].phase) != 0;
        if (!ends) continue;
        size_t next = i + 1 == count ? i : i + 1;
        plim_chart_add_band(chart, moments[first].phase, moments[first].seconds,
                            moments[next].seconds);
        first = i + 1;
    }
}

static bool is_beyond(const struct plim_result *result)
{
    return result->kind == PLIM_RESULT_EXPLANATION ? !result->fits : !result->choice.present;
}

static double allocated_at(const struct plim_result_moment *moment)
{
    double bytes = 0;
    for (int c = 0; c < PLIM_RESULT_CLASSES; c++)
        bytes += (double)plim_result_class_bytes(&moment->memory, c);
    return bytes;
}

/* The line, and where tensors alone cross it. */
static void add_budget(const struct plim_result *result, struct plim_chart *chart)
{
    char name[PLIM_CHART_LABEL] = "budget", when[32];
    double budget = (double)result->limit.budget_bytes;
    if (budget <= 0) return;
    for (size_t i = 0; i < result->timeline.count; i++) {
        const struct plim_result_moment *moment = &result->timeline.items[i];
        if (allocated_at(moment) <= budget) continue;
        snprintf(name, sizeof(name), "budget: exceeded in %s, after %s", moment->phase,
                 plim_chart_text(PLIM_CHART_SECONDS, moment->seconds, when));
        break;
    }
    plim_chart_add_limit(chart, name, budget);
}

/* A class, or what the allocator holds and no tensor has. */
static int64_t part_of_moment(const struct plim_result_moment *moment, int part)
{
    return part == PLIM_RESULT_CLASSES ? moment->memory.cached_bytes
                                       : plim_result_class_bytes(&moment->memory, part);
}

static bool is_ever(const struct plim_result *result, int part)
{
    for (size_t i = 0; i < result->timeline.count; i++)
        if (part_of_moment(&result->timeline.items[i], part) > 0) return true;
    return false;
}

static void add_part(const struct plim_result *result, int part, struct plim_chart *chart)
{
    bool is_cached = part == PLIM_RESULT_CLASSES;
    struct plim_chart_series *series =
        plim_chart_add_series(chart, is_cached ? "cached" : plim_result_class_name(part));
    if (!series) return;
    series->rest = is_cached;
    series->look = (size_t)part;
    for (size_t i = 0; i < result->timeline.count; i++) {
        const struct plim_result_moment *moment = &result->timeline.items[i];
        plim_chart_add_point(chart, series,
                             (struct plim_chart_point){.x = moment->seconds,
                                                       .y = (double)part_of_moment(moment, part)});
    }
}

/* Without a limit the allocator keeps whatever it once had, which says nothing. */
void plim_charts_step(const struct plim_result *result, struct plim_chart *chart)
{
    int parts = is_beyond(result) ? PLIM_RESULT_CLASSES : PLIM_RESULT_CLASSES + 1;
    *chart = (struct plim_chart){.kind = PLIM_CHART_AREAS,
                                 .id = "step",
                                 .title = "Memory during an optimizer step",
                                 .x_title = "time (simulated)",
                                 .y_title = is_beyond(result) ? "in tensors" : "reserved",
                                 .x_unit = PLIM_CHART_SECONDS,
                                 .y_unit = PLIM_CHART_BYTES};
    if (!result->timeline.count) return;
    if (result->choice.setting.accumulation > result->timeline_micro_steps)
        snprintf(chart->title, sizeof(chart->title),
                 "Memory during an optimizer step, with %" PRId64 " of its %" PRId64 " micro-steps",
                 result->timeline_micro_steps, result->choice.setting.accumulation);
    for (int part = 0; part < parts; part++)
        if (is_ever(result, part)) add_part(result, part, chart);
    add_phases(result, chart);
    add_budget(result, chart);
}

/* --- results side by side --------------------------------------------------------------------- */

static void name_result(const struct plim_report *report, const struct plim_result *result,
                        char name[PLIM_CHART_LABEL])
{
    char batch[PLIM_NUMBER];
    bool of_models = false;
    name[0] = '\0';
    for (size_t i = 1; i < report->results.count; i++)
        of_models |=
            strcmp(report->results.items[i].spec.name, report->results.items[0].spec.name) != 0;
    if (report->results.count > 1)
        snprintf(name, PLIM_CHART_LABEL, "%.40s%s%.40s, %s", of_models ? result->spec.name : "",
                 of_models ? " on " : "", result->device.name,
                 plim_number_batch(&result->choice.setting, batch));
}

/* Of the peak: classes, then what the allocator and the framework hold, then what is free. */
enum { CACHED = PLIM_RESULT_CLASSES, OVERHEAD, FREE, PARTS };

static double part_of_peak(const struct plim_result *result, int part)
{
    const struct plim_result_peak *peak = &result->choice.peak;
    const struct plim_result_breakdown *memory = &result->breakdown;
    int64_t bytes = part < PLIM_RESULT_CLASSES && memory->present
                        ? plim_result_class_bytes(memory, part)
                    : part == CACHED   ? peak->reserved_bytes - peak->allocated_bytes
                    : part == OVERHEAD ? peak->device_bytes - peak->reserved_bytes
                    : part == FREE     ? result->limit.usable_bytes - peak->device_bytes
                                       : 0;
    return bytes > 0 ? (double)bytes : 0;
}

static bool has_peak(const struct plim_result *result)
{
    return result->choice.present && result->breakdown.present;
}

void plim_charts_peak(const struct plim_report *report, struct plim_chart *chart)
{
    static const char *const others[] = {"cached", "overhead", "free"};
    *chart = (struct plim_chart){.kind = PLIM_CHART_BARS,
                                 .id = "peak",
                                 .title = "Where the bytes are at the peak",
                                 .y_title = "on the GPU",
                                 .y_unit = PLIM_CHART_BYTES};
    for (size_t i = 0; i < report->results.count && chart->bars.count < PLIM_CHARTS_BARS; i++) {
        char name[PLIM_CHART_LABEL];
        if (!has_peak(&report->results.items[i])) continue;
        name_result(report, &report->results.items[i], name);
        plim_chart_add_bar(chart, name);
    }
    for (int part = 0; part < PARTS; part++) {
        bool is_class = part < PLIM_RESULT_CLASSES, is_any = false;
        for (size_t i = 0; i < report->results.count; i++)
            is_any |= part_of_peak(&report->results.items[i], part) > 0;
        struct plim_chart_series *series =
            is_any ? plim_chart_add_series(chart, is_class ? plim_result_class_name(part)
                                                           : others[part - PLIM_RESULT_CLASSES])
                   : NULL;
        if (!series) continue;
        series->rest = part == FREE;
        series->look = (size_t)part;
        for (size_t i = 0, bar = 0; i < report->results.count && bar < chart->bars.count; i++)
            if (has_peak(&report->results.items[i]))
                plim_chart_add_point(
                    chart, series,
                    (struct plim_chart_point){
                        .x = (double)bar++, .y = part_of_peak(&report->results.items[i], part)});
    }
    if (report->results.count == 1)
        plim_chart_add_limit(chart, "usable",
                             (double)report->results.items[0].limit.usable_bytes);
}

void plim_charts_devices(const struct plim_report *report, struct plim_chart *chart)
{
    bool of_tokens = false;
    for (size_t i = 0; i < report->results.count; i++)
        of_tokens |= report->results.items[i].choice.setting.seq != 0;
    const char *unit = of_tokens ? "tokens per second" : "samples per second";
    *chart = (struct plim_chart){.kind = PLIM_CHART_BARS, .id = "devices", .y_title = unit};
    snprintf(chart->title, sizeof(chart->title), "%s",
             of_tokens ? "Tokens per second" : "Samples per second");
    struct plim_chart_series *series = plim_chart_add_series(chart, unit);
    for (size_t i = 0; i < report->results.count; i++) {
        const struct plim_result *result = &report->results.items[i];
        char name[PLIM_CHART_LABEL];
        if (!result->choice.present || plim_result_rate(&result->choice) <= 0) continue;
        name_result(report, result, name);
        plim_chart_add_point(chart, series,
                             (struct plim_chart_point){.x = (double)chart->bars.count,
                                                       .y = plim_result_rate(&result->choice)});
        plim_chart_add_bar(chart, name);
    }
}

/* --- all -------------------------------------------------------------------------------------- */

static enum plim_status show_and_finish(struct plim_chart *chart, plim_charts_show *show, void *user)
{
    enum plim_status st = chart->failed ? PLIM_NOMEM : PLIM_OK;
    if (!plim_chart_is_empty(chart)) show(chart, user);
    plim_chart_finish(chart);
    return st;
}

enum plim_status plim_charts_of_result(const struct plim_report *report,
                                       const struct plim_result *result, plim_charts_show *show,
                                       void *user)
{
    struct plim_chart chart;
    enum plim_status st = PLIM_OK;
    /* The chart of the peak is made of a report: of this result alone. */
    struct plim_report alone = *report;
    alone.results.items = (struct plim_result *)(uintptr_t)result;
    alone.results.count = 1;
    plim_charts_memory(result, &chart);
    PLIM_TRY(show_and_finish(&chart, show, user));
    plim_charts_speed(result, &chart);
    PLIM_TRY(show_and_finish(&chart, show, user));
    plim_charts_peak(&alone, &chart);
    PLIM_TRY(show_and_finish(&chart, show, user));
    plim_charts_step(result, &chart);
    PLIM_TRY(show_and_finish(&chart, show, user));
out:
    return st;
}

enum plim_status plim_charts_of_table(const struct plim_report *report, plim_charts_show *show,
                                      void *user)
{
    struct plim_chart chart;
    plim_charts_devices(report, &chart);
    enum plim_status st = show_and_finish(&chart, show, user);
    if (st) return st;
    plim_charts_peak(report, &chart);
    return show_and_finish(&chart, show, user);
}
