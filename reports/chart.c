#include "chart.h"
#include "numbers.h"
#include "autotune/base/text.h"
#include <math.h>
#include <string.h>

struct plim_chart_series *plim_chart_add_series(struct plim_chart *chart, const char *name)
{
    if (chart->series_count == PLIM_CHART_SERIES) return NULL;
    struct plim_chart_series *series = &chart->series[chart->series_count++];
    snprintf(series->name, sizeof(series->name), "%s", name);
    series->look = chart->series_count - 1;
    return series;
}

void plim_chart_add_point(struct plim_chart *chart, struct plim_chart_series *series,
                          struct plim_chart_point point)
{
    if (series && PLIM_ARRAY_PUSH(&series->points, point) != PLIM_OK) chart->failed = true;
}

void plim_chart_add_limit(struct plim_chart *chart, const char *name, double y)
{
    struct plim_chart_limit limit = {.y = y};
    snprintf(limit.name, sizeof(limit.name), "%s", name);
    if (PLIM_ARRAY_PUSH(&chart->limits, limit) != PLIM_OK) chart->failed = true;
}

void plim_chart_add_band(struct plim_chart *chart, const char *name, double from, double to)
{
    struct plim_chart_band band = {.from = from, .to = to};
    snprintf(band.name, sizeof(band.name), "%s", name);
    if (PLIM_ARRAY_PUSH(&chart->bands, band) != PLIM_OK) chart->failed = true;
}

void plim_chart_add_bar(struct plim_chart *chart, const char *name)
{
    struct plim_chart_band bar = {0};
    snprintf(bar.name, sizeof(bar.name), "%s", name);
    if (PLIM_ARRAY_PUSH(&chart->bars, bar) != PLIM_OK) chart->failed = true;
}

bool plim_chart_is_empty(const struct plim_chart *chart)
{
    size_t points = 0;
    for (size_t i = 0; i < chart->series_count; i++) points += chart->series[i].points.count;
    return chart->failed || !points;
}

void plim_chart_finish(struct plim_chart *chart)
{
    if (!chart) return;
    for (size_t i = 0; i < chart->series_count; i++) PLIM_ARRAY_FINISH(&chart->series[i].points);
    PLIM_ARRAY_FINISH(&chart->limits);
    PLIM_ARRAY_FINISH(&chart->bands);
    PLIM_ARRAY_FINISH(&chart->bars);
}

/* --- text ------------------------------------------------------------------------------------- */

char *plim_chart_text(enum plim_chart_unit unit, double value, char out[32])
{
    if (unit == PLIM_CHART_BYTES) {
        plim_format_bytes(value > 0 ? (int64_t)value : 0, out);
    } else if (unit == PLIM_CHART_SECONDS) {
        bool small = value < 1;
        snprintf(out, 32, "%.3g %s", small ? value * 1e3 : value, small ? "ms" : "s");
    } else if (value != floor(value) && fabs(value) < 100) {
        snprintf(out, 32, "%.3g", value);
    } else {
        plim_number_grouped(value, out);
    }
    return out;
}

/* What plim_text_write() shows of controls is plain text, so only XML's own characters are left. */
void plim_xml_text(const char *text, FILE *file)
{
    char shown[1024];
    plim_text_show(text, shown, sizeof(shown));
    for (const char *c = shown; *c; c++) {
        switch (*c) {
        case '&': fputs("&amp;", file); break;
        case '<': fputs("&lt;", file); break;
        case '>': fputs("&gt;", file); break;
        case '"': fputs("&quot;", file); break;
        case '\'': fputs("&#39;", file); break;
        default: fputc(*c, file);
        }
    }
}
