/* A chart as data, and its drawing as SVG.
 *
 * Lines with markers over one axis (memory over the micro-batch), stacked areas (allocated bytes
 * during a step), or stacked bars (bytes at the peak, one bar per result). The colours are
 * those of Okabe and Ito, which colour-blind people can tell apart; series differ by marker and dash, too, and
 * every mark has a title with its values. The drawing is light or dark, as the viewer's system
 * prefers.
 *
 * Errors: running out of host memory is remembered in `failed`; every call is safe then.
 */
#ifndef PLIM_REPORTS_CHART_H
#define PLIM_REPORTS_CHART_H

#include "autotune/base/array.h"
#include <stdbool.h>
#include <stdio.h>

enum { PLIM_CHART_SERIES = 12, PLIM_CHART_LABEL = 128 };

enum plim_chart_kind { PLIM_CHART_LINES, PLIM_CHART_AREAS, PLIM_CHART_BARS };

enum plim_chart_unit {
    PLIM_CHART_COUNT,   /* "1,234" */
    PLIM_CHART_BYTES,   /* "12 GiB" */
    PLIM_CHART_SECONDS, /* "120 ms" */
};

struct plim_chart_point {
    double x, y; /* bars: x is the number of the bar */
    bool beyond; /* drawn hollow: it does not fit */
};

struct plim_chart_series {
    char name[PLIM_CHART_LABEL];
    size_t look; /* colour, marker and dash, by number; adding a series sets its own */
    bool rest;   /* memory outside of tensors (cached, free): drawn pale */
    PLIM_ARRAY(struct plim_chart_point) points;
};

/* A line across the whole chart at a value of y. */
struct plim_chart_limit {
    char name[PLIM_CHART_LABEL];
    double y;
};

/* A stretch of x with a name: a phase of a step. */
struct plim_chart_band {
    char name[PLIM_CHART_LABEL];
    double from, to;
};

struct plim_chart {
    enum plim_chart_kind kind;
    const char *id;             /* of the element: "memory" */
    char title[PLIM_CHART_LABEL];
    const char *x_title, *y_title;
    enum plim_chart_unit x_unit, y_unit;
    size_t series_count;
    struct plim_chart_series series[PLIM_CHART_SERIES];
    PLIM_ARRAY(struct plim_chart_limit) limits;
    PLIM_ARRAY(struct plim_chart_band) bands;
    PLIM_ARRAY(struct plim_chart_band) bars; /* BARS: the name of each, from top to bottom */
    bool failed;
};

/* NULL where there is no more room, or memory. */
struct plim_chart_series *plim_chart_add_series(struct plim_chart *chart, const char *name);
void plim_chart_add_point(struct plim_chart *chart, struct plim_chart_series *series,
                          struct plim_chart_point point);
void plim_chart_add_limit(struct plim_chart *chart, const char *name, double y);
void plim_chart_add_band(struct plim_chart *chart, const char *name, double from, double to);
void plim_chart_add_bar(struct plim_chart *chart, const char *name);

bool plim_chart_is_empty(const struct plim_chart *chart); /* without a point, or failed */
void plim_chart_finish(struct plim_chart *chart);         /* NULL and zeroed are fine */

/* Draws the chart, `width` pixels wide with text of 12 pixels, as an <svg> element. Its styles are those of
 * plim_chart_style(), which a document contains once. Returns the height. */
int plim_chart_draw(const struct plim_chart *chart, int width, FILE *file);
void plim_chart_style(FILE *file);

/* "12.5 GiB", "1,234", "35.1 ms" */
char *plim_chart_text(enum plim_chart_unit unit, double value, char out[32]);

/* Writes text with XML's special characters escaped, and control characters made visible. */
void plim_xml_text(const char *text, FILE *file);

#endif
