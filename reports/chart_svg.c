/* Charts as SVG. The drawing is made for a width, so that text is as large on a narrow page. */
#include "chart.h"
#include "autotune/base/embed.h"
#include <math.h>
#include <string.h>

enum {
    FONT = 12, /* as web/chart.css has it */
    TITLE = 14,  /* the same of titles */
    LINE = 18,   /* a line of text */
    LEFT = 66,   /* the labels of y */
    RIGHT = 14,
    BOTTOM = 42, /* the labels of x, and its title */
    PLOT = 240,
    BAR = 24,
    MOST_TICKS = 12
};

/* Of a character, on the average: SVG knows no widths before it is drawn. */
static const double CHARACTER = 6.4;

struct scale {
    double from, to; /* values */
    int start, end;  /* pixels */
    size_t tick_count;
    double ticks[MOST_TICKS];
};

struct plot {
    const struct plim_chart *chart;
    FILE *file;
    int width, height, top, bottom; /* of the plot: its upper and lower edge */
    struct scale x, y;
};

/* --- scales ----------------------------------------------------------------------------------- */

static double at(const struct scale *scale, double value)
{
    double share = scale->to > scale->from ? (value - scale->from) / (scale->to - scale->from) : 0;
    return scale->start + share * (scale->end - scale->start);
}

/* The unit that a value is told in: bytes count by 1024. */
static double unit_of(enum plim_chart_unit unit, double value)
{
    double one = 1;
    if (unit == PLIM_CHART_BYTES)
        while (value / one >= 1000) one *= 1024;
    return one;
}

/* 1, 2 or 5 with zeros, so that there are about `count` of them. */
static double nice_step(double range, int count, bool whole)
{
    double rough = range / count, power = pow(10, floor(log10(rough)));
    double step = rough <= power       ? power
                  : rough <= 2 * power ? 2 * power
                  : rough <= 5 * power ? 5 * power
                                       : 10 * power;
    return whole && step < 1 ? 1 : step;
}

/* Ticks at round values; a scale that starts at 0 ends at one. */
static void set_ticks(struct scale *scale, enum plim_chart_unit unit, int count, bool extend)
{
    double one = unit_of(unit, scale->to), range = (scale->to - scale->from) / one;
    if (!(range > 0)) range = 1, scale->to = scale->from + one;
    double step = nice_step(range, count, unit == PLIM_CHART_COUNT && range >= 3) * one;
    if (extend) scale->to = ceil(scale->to / step - 1e-9) * step;
    scale->tick_count = 0;
    for (double tick = ceil(scale->from / step - 1e-9) * step;
         tick <= scale->to * (1 + 1e-9) && scale->tick_count < MOST_TICKS; tick += step)
        scale->ticks[scale->tick_count++] = tick;
}

static const struct plim_chart_point *point_at(const struct plim_chart_series *series, size_t i)
{
    return &series->points.items[i];
}

/* Of areas and bars, what stands on one another at the i-th place. */
static double stacked(const struct plim_chart *chart, size_t series, size_t i)
{
    double sum = 0;
    for (size_t s = 0; s <= series; s++)
        if (i < chart->series[s].points.count) sum += point_at(&chart->series[s], i)->y;
    return sum;
}

static void find_ranges(const struct plim_chart *chart, struct scale *x, struct scale *y)
{
    bool stacks = chart->kind != PLIM_CHART_LINES;
    x->from = INFINITY, x->to = -INFINITY;
    y->from = 0, y->to = 0;
    for (size_t s = 0; s < chart->series_count; s++)
        for (size_t i = 0; i < chart->series[s].points.count; i++) {
            const struct plim_chart_point *p = point_at(&chart->series[s], i);
            x->from = fmin(x->from, p->x);
            x->to = fmax(x->to, p->x);
            y->to = fmax(y->to, stacks ? stacked(chart, s, i) : p->y);
        }
    for (size_t i = 0; i < chart->limits.count; i++)
        y->to = fmax(y->to, chart->limits.items[i].y);
    if (chart->kind == PLIM_CHART_LINES) x->from = 0;
}

/* --- text ------------------------------------------------------------------------------------- */

static int text_width(const char *text) { return (int)ceil(CHARACTER * (double)strlen(text)); }

static void text(FILE *file, double x, double y, const char *anchor, const char *words)
{
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\"%s%s%s>", x, y, *anchor ? " text-anchor=\"" : "",
            anchor, *anchor ? "\"" : "");
    plim_xml_text(words, file);
    fputs("</text>\n", file);
}

/* Text in lines of so many pixels, broken at blanks, below `y`; returns their number. `file` NULL: they
 * are only counted. */
static int wrapped(FILE *file, double x, double y, int width, const char *words)
{
    char line[PLIM_CHART_LABEL];
    size_t most = (size_t)(width / CHARACTER);
    int lines = 0;
    if (most >= sizeof(line)) most = sizeof(line) - 1;
    while (*words || !lines) {
        size_t length = strlen(words);
        if (length > most)
            for (length = most; length > 1 && words[length] != ' ';) length--;
        if (length == 1 && strlen(words) > most) length = most;
        snprintf(line, sizeof(line), "%.*s", (int)length, words);
        if (file) text(file, x, y + lines * LINE, "", line);
        words += length + (words[length] == ' ');
        lines++;
    }
    return lines;
}

/* A series by its class: the colour, and for lines the dash. */
static void open_series(FILE *file, const struct plim_chart *chart, size_t index)
{
    const struct plim_chart_series *series = &chart->series[index];
    fprintf(file, "<g class=\"%s%zu\">\n", series->rest ? "rest s" : "s", series->look);
}

/* Around (0, 0): as many shapes as there are colours. */
static const char *const markers[] = {"M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0z", "M-3.5-3.5h7v7h-7z",
                                      "M0-4.5L4.5 3.5H-4.5z", "M0-5L5 0L0 5L-5 0z",
                                      "M0 4.5L4.5-3.5H-4.5z", "M-4.5-2h9v4h-9z",
                                      "M-2-4.5h4v9h-4z", "M-4-4h8L0 4z"};
enum { MARKERS = sizeof(markers) / sizeof(markers[0]) };

static void marker(FILE *file, size_t series, double x, double y, bool hollow)
{
    fprintf(file, "<path class=\"m%s\" transform=\"translate(%.1f %.1f)\" d=\"%s\"", hollow ? " h" : "",
            x, y, markers[series % MARKERS]);
}

static void swatch(FILE *file, const struct plim_chart *chart, size_t index, int x, int y)
{
    open_series(file, chart, index);
    if (chart->kind == PLIM_CHART_LINES) {
        marker(file, chart->series[index].look, x + 6, y + LINE - 8, false);
        fputs("/>\n", file);
    } else {
        fprintf(file, "<rect class=\"a\" x=\"%d\" y=\"%d\" width=\"12\" height=\"12\"/>\n", x,
                y + LINE - 14);
    }
    fputs("</g>\n", file);
}

/* Names of the series in as many lines as it takes; returns where the next thing may begin. `file`
 * NULL: nothing is drawn. */
static int legend(const struct plim_chart *chart, int width, int top, FILE *file)
{
    int x = 0, y = top, lines = 1;
    if (chart->series_count < 2) return top;
    for (size_t i = 0; i < chart->series_count; i++) {
        int entry = 24 + text_width(chart->series[i].name);
        if (x && x + entry > width) x = 0, y += lines * LINE, lines = 1;
        if (file) swatch(file, chart, i, x, y);
        int own = wrapped(file, x + 18, y + LINE - 4, width - 18, chart->series[i].name);
        if (own > lines) lines = own;
        x += entry + 12;
    }
    return y + lines * LINE + 6;
}

/* --- axes ------------------------------------------------------------------------------------- */

static void x_axis(const struct plot *plot, enum plim_chart_unit unit, const char *title)
{
    char label[32];
    for (size_t i = 0; i < plot->x.tick_count; i++) {
        double x = at(&plot->x, plot->x.ticks[i]);
        fprintf(plot->file, "<path class=\"tick\" d=\"M%.1f %dv4\"/>\n", x, plot->bottom);
        text(plot->file, x, plot->bottom + 16, "middle", plim_chart_text(unit, plot->x.ticks[i], label));
    }
    fprintf(plot->file, "<path class=\"axis\" d=\"M%d %dH%d\"/>\n", plot->x.start, plot->bottom,
            plot->x.end);
    text(plot->file, (plot->x.start + plot->x.end) / 2.0, plot->bottom + 34, "middle", title);
}

static void y_axis(const struct plot *plot)
{
    char label[32];
    for (size_t i = 0; i < plot->y.tick_count; i++) {
        double y = at(&plot->y, plot->y.ticks[i]);
        fprintf(plot->file, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>\n", plot->x.start, y, plot->x.end);
        text(plot->file, plot->x.start - 6, y + 4, "end",
             plim_chart_text(plot->chart->y_unit, plot->y.ticks[i], label));
    }
}

/* Phases above the plot, parted by lines through it. A name that does not fit in is in the title. */
static void draw_bands(const struct plot *plot)
{
    for (size_t i = 0; i < plot->chart->bands.count; i++) {
        const struct plim_chart_band *band = &plot->chart->bands.items[i];
        double from = at(&plot->x, band->from), to = at(&plot->x, band->to);
        fprintf(plot->file, "<path class=\"band\" d=\"M%.1f %dV%d\"><title>", from, plot->top - LINE,
                plot->bottom);
        plim_xml_text(band->name, plot->file);
        fputs("</title></path>\n", plot->file);
        if (to - from >= text_width(band->name))
            text(plot->file, (from + to) / 2, plot->top - 5, "middle", band->name);
    }
}

/* Names stand at the right end, and not on one another. */
static void draw_limits(const struct plot *plot)
{
    double last = INFINITY;
    for (size_t i = 0; i < plot->chart->limits.count; i++) {
        const struct plim_chart_limit *limit = &plot->chart->limits.items[i];
        double y = at(&plot->y, limit->y), label = y - 4;
        if (fabs(label - last) < LINE - 4) label = y + FONT + 2;
        last = label;
        fprintf(plot->file, "<path class=\"limit\" d=\"M%d %.1fH%d\"/>\n", plot->x.start, y, plot->x.end);
        fputs("<g class=\"mark\">", plot->file);
        text(plot->file, plot->x.end - 2, label, "end", limit->name);
        fputs("</g>\n", plot->file);
    }
}

/* --- lines ------------------------------------------------------------------------------------ */

static void point_title(const struct plot *plot, const struct plim_chart_series *series,
                        const struct plim_chart_point *point)
{
    const struct plim_chart *chart = plot->chart;
    char x[32], y[32];
    fputs("<title>", plot->file);
    plim_xml_text(series->name, plot->file);
    fprintf(plot->file, "%s%s %s: %s%s</title>", series->name[0] ? ", " : "", chart->x_title,
            plim_chart_text(chart->x_unit, point->x, x), plim_chart_text(chart->y_unit, point->y, y),
            point->beyond ? ", does not fit" : "");
}

/* To points beyond the limit the line is dashed. */
static void draw_line(const struct plot *plot, size_t index)
{
    const struct plim_chart_series *series = &plot->chart->series[index];
    open_series(plot->file, plot->chart, index);
    for (size_t i = 1; i < series->points.count; i++) {
        const struct plim_chart_point *a = point_at(series, i - 1), *b = point_at(series, i);
        fprintf(plot->file, "<path class=\"l%s\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", b->beyond ? " h" : "",
                at(&plot->x, a->x), at(&plot->y, a->y), at(&plot->x, b->x), at(&plot->y, b->y));
    }
    for (size_t i = 0; i < series->points.count; i++) {
        const struct plim_chart_point *p = point_at(series, i);
        marker(plot->file, series->look, at(&plot->x, p->x), at(&plot->y, p->y), p->beyond);
        fputc('>', plot->file);
        point_title(plot, series, p);
        fputs("</path>\n", plot->file);
    }
    fputs("</g>\n", plot->file);
}

/* --- areas ------------------------------------------------------------------------------------ */

/* Between what stands below it and its own height. What is allocated stays so until the next moment. */
static void draw_area(const struct plot *plot, size_t index)
{
    const struct plim_chart *chart = plot->chart;
    const struct plim_chart_series *series = &chart->series[index];
    size_t count = series->points.count;
    open_series(plot->file, chart, index);
    fputs("<path class=\"a\" d=\"", plot->file);
    for (size_t i = 0; i < count; i++)
        fprintf(plot->file, i ? "H%.1fV%.1f" : "M%.1f %.1f", at(&plot->x, point_at(series, i)->x),
                at(&plot->y, stacked(chart, index, i)));
    for (size_t i = count; i-- > 0;)
        fprintf(plot->file, "V%.1fH%.1f", at(&plot->y, index ? stacked(chart, index - 1, i) : 0),
                at(&plot->x, point_at(series, i)->x));
    fputs("z\"><title>", plot->file);
    plim_xml_text(series->name, plot->file);
    fputs("</title></path>\n</g>\n", plot->file);
}

/* --- bars ------------------------------------------------------------------------------------- */

static int bar_height(const struct plim_chart *chart) { return chart->series_count > 1 ? BAR : BAR / 2; }

/* A bar with its name above it. */
static int bar_pitch(const struct plim_chart *chart) { return bar_height(chart) + LINE + 8; }

static void draw_bar(const struct plot *plot, size_t bar)
{
    const struct plim_chart *chart = plot->chart;
    int top = plot->top + (int)bar * bar_pitch(chart) + LINE;
    double to = 0;
    char value[32];
    if (chart->bars.items[bar].name[0])
        text(plot->file, plot->x.start, top - 4, "", chart->bars.items[bar].name);
    for (size_t s = 0; s < chart->series_count; s++) {
        if (bar >= chart->series[s].points.count) continue;
        double part = point_at(&chart->series[s], bar)->y, from = to;
        if (part <= 0) continue;
        to += part;
        open_series(plot->file, chart, s);
        fprintf(plot->file,
                "<rect class=\"a\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"><title>",
                at(&plot->x, from), top, at(&plot->x, to) - at(&plot->x, from), bar_height(chart));
        plim_xml_text(chart->series[s].name, plot->file);
        fprintf(plot->file, ": %s</title></rect>\n</g>\n", plim_chart_text(chart->y_unit, part, value));
    }
    if (chart->series_count == 1)
        text(plot->file, at(&plot->x, to) + 6, top + bar_height(chart) - 1, "",
             plim_chart_text(chart->y_unit, to, value));
}

static int draw_bars(struct plot *plot)
{
    const struct plim_chart *chart = plot->chart;
    plot->x = plot->y;
    plot->x.start = RIGHT;
    plot->x.end = plot->width - (chart->series_count > 1 ? 2 * RIGHT : LEFT);
    set_ticks(&plot->x, chart->y_unit, plot->width / 90, true);
    plot->bottom = plot->top + (int)chart->bars.count * bar_pitch(chart) + 4;
    for (size_t i = 0; i < chart->bars.count; i++) draw_bar(plot, i);
    x_axis(plot, chart->y_unit, chart->y_title);
    for (size_t i = 0; i < chart->limits.count; i++) {
        double x = at(&plot->x, chart->limits.items[i].y);
        fprintf(plot->file, "<path class=\"limit\" d=\"M%.1f %dV%d\"><title>", x, plot->top + LINE - 6,
                plot->bottom);
        plim_xml_text(chart->limits.items[i].name, plot->file);
        fputs("</title></path>\n", plot->file);
    }
    return plot->bottom + BOTTOM;
}

/* --- whole ------------------------------------------------------------------------------------ */

static void draw_plane(struct plot *plot)
{
    const struct plim_chart *chart = plot->chart;
    plot->x.start = LEFT;
    plot->x.end = plot->width - RIGHT;
    plot->y.start = plot->bottom;
    plot->y.end = plot->top;
    set_ticks(&plot->x, chart->x_unit, plot->width / 90, chart->kind == PLIM_CHART_LINES);
    set_ticks(&plot->y, chart->y_unit, 5, true);
    y_axis(plot);
    for (size_t i = 0; i < chart->series_count; i++) {
        if (chart->kind == PLIM_CHART_LINES) draw_line(plot, i);
        else draw_area(plot, i);
    }
    draw_bands(plot);
    draw_limits(plot);
    x_axis(plot, chart->x_unit, chart->x_title);
    text(plot->file, 0, plot->top - 22, "", chart->y_title);
}

int plim_chart_draw(const struct plim_chart *chart, int width, FILE *file)
{
    struct plot plot = {.chart = chart, .file = file, .width = width};
    bool is_bars = chart->kind == PLIM_CHART_BARS;
    int title = LINE * wrapped(NULL, 0, 0, width * FONT / TITLE, chart->title) + 4;
    int below = legend(chart, width, title, NULL);
    plot.top = below + (is_bars ? 0 : 2 * LINE);
    plot.bottom = plot.top + PLOT;
    plot.height = is_bars ? plot.top + (int)chart->bars.count * bar_pitch(chart) + 4 + BOTTOM
                          : plot.bottom + BOTTOM;
    find_ranges(chart, &plot.x, &plot.y);
    fprintf(file,
            "<svg class=\"chart\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"%d\" "
            "height=\"%d\" viewBox=\"0 0 %d %d\" aria-label=\"",
            width, plot.height, width, plot.height);
    plim_xml_text(chart->title, file);
    fputs("\">\n<g class=\"title\">", file);
    wrapped(file, 0, LINE - 4, width * FONT / TITLE, chart->title);
    fputs("</g>\n", file);
    legend(chart, width, title, file);
    if (is_bars) draw_bars(&plot);
    else draw_plane(&plot);
    fputs("</svg>\n", file);
    return plot.height;
}

extern const struct plim_embedded_file plim_web[];

void plim_chart_style(FILE *file) { fputs(plim_web[0].text, file); }
