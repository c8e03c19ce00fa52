/* The report as one page that needs nothing else: no network, no other file. */
#include "autotune/base/embed.h"
#include "autotune/base/text_stream.h"
#include "charts.h"
#include "numbers.h"
#include "tables.h"
#include <inttypes.h>
#include <string.h>

enum { WIDE = 720, NARROW = 300, MOST_SECTIONS = 8 };

extern const struct plim_embedded_file plim_web[];
enum { CHART_CSS, PAGE_CSS, PAGE_JS }; /* as meson.build lists them */

/* --- pieces ----------------------------------------------------------------------------------- */

static void element(FILE *file, const char *tag, const char *text)
{
    fprintf(file, "<%s>", tag);
    plim_xml_text(text, file);
    fprintf(file, "</%.*s>\n", (int)strcspn(tag, " "), tag);
}

static enum plim_status table(FILE *file, struct plim_grid *grid, const char *common,
                              const char *label)
{
    enum plim_status st = grid->failed ? PLIM_NOMEM : PLIM_OK;
    if (common[0]) {
        fputs("<p>All: ", file);
        plim_xml_text(common, file);
        fputs("</p>\n", file);
    }
    if (!st && grid->rows.count) {
        fprintf(file, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"%s\">\n",
                label);
        plim_grid_html(grid, file);
        fputs("</div>\n", file);
    }
    plim_grid_finish(grid);
    return st;
}

/* Twice, as the text of a drawing does not flow: for a wide page and for a telephone. */
static void chart(const struct plim_chart *chart, void *user)
{
    FILE *file = user;
    fputs("<figure><div class=\"wide\">\n", file);
    plim_chart_draw(chart, WIDE, file);
    fputs("</div><div class=\"narrow\">\n", file);
    plim_chart_draw(chart, NARROW, file);
    fputs("</div></figure>\n", file);
}

/* --- one result ------------------------------------------------------------------------------- */

static void answer(FILE *file, const struct plim_result *r)
{
    const struct plim_result_choice *c = &r->choice;
    bool fits = r->kind == PLIM_RESULT_EXPLANATION ? r->fits : c->present;
    char text[PLIM_TABLE_LINE], figure[PLIM_NUMBER], whole[PLIM_NUMBER];
    fputs("<div class=\"answer\">\n", file);
    if (!fits) {
        bool explains = r->kind == PLIM_RESULT_EXPLANATION;
        snprintf(text, sizeof(text), "%s%s%s%s", explains ? "does not fit" : plim_table_failure(r),
                 r->short_bytes > 0 ? ": up to " : "",
                 r->short_bytes > 0 ? plim_number_bytes(r->short_bytes, figure) : "",
                 r->short_bytes > 0 ? " short" : "");
        element(file, "p class=\"first\"", text);
    }
    if (c->present && c->setting.micro_batch) {
        snprintf(text, sizeof(text),
                 "micro-batch %" PRId64 " x accumulation %" PRId64 " x %" PRId64 " GPU%s = %" PRId64
                 " samples a step",
                 c->setting.micro_batch, c->setting.accumulation, c->world,
                 c->world == 1 ? "" : "s", c->effective_batch);
        element(file, "p class=\"first\"", text);
    }
    if (c->present) {
        plim_table_values(&c->setting, text, sizeof(text));
        fputs("<p>", file);
        if (c->setting.seq) fprintf(file, "sequence %" PRId64 ", ", c->setting.seq);
        plim_xml_text(text, file);
        fputs("</p>\n", file);
    }
    if (plim_result_rate(c) > 0)
        fprintf(file, "<p>%s %s%s, %s a step</p>\n",
                plim_number_rate(plim_result_rate(c), figure),
                plim_result_rate_unit(&c->setting),
                r->device.simulated ? " (simulated)" : "",
                plim_number_seconds(c->step_seconds, whole));
    if (c->present && c->peak.device_bytes)
        fprintf(file, "<p>peak %s of %s%s</p>\n", plim_number_bytes(c->peak.device_bytes, figure),
                plim_number_bytes(r->limit.usable_bytes, whole),
                fits && c->verified ? ", this very setting was run" : "");
    fputs("</div>\n", file);
}

static void list_reasons(FILE *file, const struct plim_result *r)
{
    if (!r->reason_count) return;
    fputs("<h2>Why</h2>\n<ul>\n", file);
    for (size_t i = 0; i < r->reason_count; i++) element(file, "li", r->reasons[i]);
    fputs("</ul>\n", file);
}

static void list_advice(FILE *file, const struct plim_result *r)
{
    char peak[PLIM_NUMBER];
    if (!r->advice.count) return;
    fputs("<h2>What would help</h2>\n<ul>\n", file);
    for (size_t i = 0; i < r->advice.count; i++) {
        const struct plim_result_advice *a = &r->advice.items[i];
        fputs("<li>", file);
        plim_xml_text(a->change, file);
        fprintf(file, ": %s, %s</li>\n", a->fits ? "fits" : "too large",
                plim_number_bytes(a->peak.device_bytes, peak));
    }
    fputs("</ul>\n", file);
}

static void fact(FILE *file, const char *name, const char *text)
{
    if (!text || !*text) return;
    element(file, "dt", name);
    element(file, "dd", text);
}

static void bytes_fact(FILE *file, const char *name, int64_t bytes)
{
    char figure[PLIM_NUMBER];
    if (bytes) fact(file, name, plim_number_bytes(bytes, figure));
}

/* What the answer holds for. */
static void environment(FILE *file, const struct plim_result *r)
{
    char text[PLIM_RESULT_LINE];
    fputs("<h2>It holds for</h2>\n<dl>\n", file);
    fact(file, "model", r->spec.name);
    fact(file, "from", r->spec.source);
    if (r->spec.hash) {
        snprintf(text, sizeof(text), "%016" PRIx64, r->spec.hash);
        fact(file, "hash of the spec", text);
    }
    if (r->spec.parameters) {
        char figure[PLIM_NUMBER];
        fact(file, "parameters", plim_number_grouped((double)r->spec.parameters, figure));
    }
    fact(file, "LoRA", r->spec.lora);
    fact(file, "quantization", r->spec.quantization);
    fact(file, "defaults", r->spec.defaults);
    fact(file, "read from", r->spec.config);
    fact(file, "not in the plan", r->spec.unplanned);
    if (r->spec.host_speed > 0) {
        snprintf(text, sizeof(text), "%.3g times that assumed", r->spec.host_speed);
        fact(file, "host's speed of launching", text);
    }
    fact(file, "device", r->device.uri);
    snprintf(text, sizeof(text), "%d.%d", r->device.compute_capability / 10,
             r->device.compute_capability % 10);
    if (r->device.compute_capability) fact(file, "compute capability", text);
    bytes_fact(file, "memory of the GPU", r->device.total_bytes);
    bytes_fact(file, "usable", r->limit.usable_bytes);
    bytes_fact(file, "for the framework", r->limit.overhead_bytes);
    fact(file, "that figure is", r->limit.overhead_source);
    bytes_fact(file, "margin", r->limit.margin_bytes);
    fact(file, "allocator options", r->limit.alloc_conf);
    fact(file, "objective", r->objective);
    for (size_t i = 0; i < r->spec.options.count; i++)
        fact(file, r->spec.options.items[i].key, r->spec.options.items[i].value);
    fputs("</dl>\n", file);
}

static enum plim_status write_result(FILE *file, const struct plim_report *report,
                                     const struct plim_result *r)
{
    struct plim_grid points = {0}, samples = {0}, tasks = {0};
    char common[PLIM_TABLE_LINE] = "", title[PLIM_RESULT_LINE], total[PLIM_NUMBER],
         gpus[PLIM_RESULT_GPUS];
    enum plim_status st = PLIM_OK, second = PLIM_OK, timed = PLIM_OK;
    snprintf(title, sizeof(title), "%s on %s, %s%s", r->spec.name, plim_result_gpus(&r->device, gpus),
             plim_number_bytes(r->device.total_bytes, total),
             r->device.simulated ? " (simulated)" : "");
    fputs("<section>\n", file);
    element(file, "h1", title);
    answer(file, r);
    enum plim_status drawn = plim_charts_of_result(report, r, chart, file);
    if (plim_result_time_all(&r->time) > 0) {
        element(file, "h2", PLIM_TABLE_TIME);
        plim_table_time(r, &tasks);
        timed = table(file, &tasks, "", PLIM_TABLE_TIME);
    }
    if (r->points.count > 1) {
        fputs("<h2>Settings</h2>\n", file);
        plim_table_points(r, &points, common);
        st = table(file, &points, common, "Settings");
    }
    list_reasons(file, r);
    list_advice(file, r);
    if (r->samples.count) {
        fprintf(file, "<details><summary>%zu settings were tried</summary>\n", r->samples.count);
        plim_table_samples(r, &samples, common);
        second = table(file, &samples, common, "Settings that were tried");
        fputs("</details>\n", file);
    }
    environment(file, r);
    fputs("</section>\n", file);
    return drawn ? drawn : timed ? timed : st ? st : second;
}

/* --- several ---------------------------------------------------------------------------------- */

static enum plim_status write_table(FILE *file, const struct plim_report *report,
                                    const struct plim_style *style)
{
    struct plim_grid devices = {0}, advice = {0};
    char common[PLIM_TABLE_LINE] = "";
    fputs("<section>\n", file);
    element(file, "h1", plim_table_title(report));
    struct plim_style with_power = style ? *style : (struct plim_style){0};
    with_power.tells_power = true;
    plim_table_devices(report, &with_power, &devices, common);
    enum plim_status st = table(file, &devices, common, "Results");
    enum plim_status drawn = plim_charts_of_table(report, chart, file);
    plim_table_device_advice(report, &advice);
    if (advice.rows.count) fputs("<h2>What would help</h2>\n", file);
    enum plim_status second = table(file, &advice, "", "What would help");
    fputs("</section>\n", file);
    return drawn ? drawn : st ? st : second;
}

static void begin(FILE *file, const struct plim_report *report)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
          "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n"
          "<link rel=\"icon\" href=\"data:,\">\n<title>plimsoll: ",
          file);
    plim_xml_text(report->results.items[0].spec.name, file);
    fprintf(file, "</title>\n<style>\n%s%s</style>\n</head>\n<body>\n<main>\n",
            plim_web[PAGE_CSS].text, plim_web[CHART_CSS].text);
}

static void end(FILE *file, const struct plim_report *report)
{
    fputs("<footer>plimsoll ", file);
    plim_xml_text(report->version ? report->version : "", file);
    fprintf(file, "</footer>\n</main>\n<script>\n%s</script>\n</body>\n</html>\n",
            plim_web[PAGE_JS].text);
}

static enum plim_status write_html(const struct plim_report *report, const struct plim_style *style,
                                   char **text, struct plim_error *err)
{
    struct plim_text_stream stream;
    FILE *file = plim_text_stream_open(&stream);
    enum plim_status st = file ? PLIM_OK : PLIM_NOMEM;
    size_t count = report->results.count;
    if (!st && count) {
        begin(file, report);
        if (count > 1 || report->is_table) st = write_table(file, report, style);
        for (size_t i = 0; i < count && !st && count <= MOST_SECTIONS; i++)
            st = write_result(file, report, &report->results.items[i]);
        end(file, report);
    }
    if (plim_text_stream_close(&stream, text) != PLIM_OK) st = PLIM_NOMEM;
    if (!st) return PLIM_OK;
    free(*text);
    *text = NULL;
    return plim_no_memory(err);
}

const struct plim_writer plim_writer_html = {
    .name = "html", .extensions = {"html", "htm"}, .draws = true, .write = write_html};
