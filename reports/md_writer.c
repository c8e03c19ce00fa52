/* The report as Markdown, for an issue or a wiki: the answer, the tables, why, and what to do. */
#include "autotune/base/text_stream.h"
#include "numbers.h"
#include "tables.h"
#include <inttypes.h>

static void line(FILE *file, const char *before, const char *text)
{
    fputs(before, file);
    plim_markdown_text(text, file);
    fputc('\n', file);
}

static enum plim_status table(FILE *file, struct plim_grid *grid, const char *common)
{
    enum plim_status st = grid->failed ? PLIM_NOMEM : PLIM_OK;
    if (common[0]) {
        line(file, "All: ", common);
        fputc('\n', file);
    }
    if (!st && grid->rows.count) plim_grid_markdown(grid, file);
    plim_grid_finish(grid);
    return st;
}

/* --- one result ------------------------------------------------------------------------------- */

static void head(FILE *file, const struct plim_result *r)
{
    char text[PLIM_RESULT_LINE], total[PLIM_NUMBER], gpus[PLIM_RESULT_GPUS];
    snprintf(text, sizeof(text), "%s on %s, %s%s", r->spec.name, plim_result_gpus(&r->device, gpus),
             plim_number_bytes(r->device.total_bytes, total),
             r->device.simulated ? " (simulated)" : "");
    line(file, "# ", text);
    fputc('\n', file);
}

static void answer(FILE *file, const struct plim_result *r)
{
    const struct plim_result_choice *c = &r->choice;
    char text[PLIM_TABLE_LINE], number[PLIM_NUMBER], whole[PLIM_NUMBER];
    bool fits = r->kind == PLIM_RESULT_EXPLANATION ? r->fits : c->present;
    if (!fits)
        line(file, "- ",
             r->kind == PLIM_RESULT_EXPLANATION ? "does not fit" : plim_table_failure(r));
    if (r->short_bytes > 0)
        fprintf(file, "- up to %s short\n", plim_number_bytes(r->short_bytes, number));
    if (!c->present) return;
    if (c->setting.micro_batch)
        fprintf(file,
                "- micro-batch %" PRId64 " x accumulation %" PRId64 " x %" PRId64
                " GPU%s = %" PRId64 " samples a step\n",
                c->setting.micro_batch, c->setting.accumulation, c->world,
                c->world == 1 ? "" : "s", c->effective_batch);
    if (r->spec.config[0]) line(file, "- read from ", r->spec.config);
    if (r->spec.unplanned[0]) line(file, "- not in the plan: ", r->spec.unplanned);
    if (c->setting.seq) fprintf(file, "- sequence %" PRId64 "\n", c->setting.seq);
    plim_table_values(&c->setting, text, sizeof(text));
    if (text[0]) line(file, "- ", text);
    if (plim_result_rate(c) > 0)
        fprintf(file, "- %s %s\n", plim_number_rate(plim_result_rate(c), number),
                plim_result_rate_unit(&c->setting));
    fprintf(file, "- peak %s of %s\n", plim_number_bytes(c->peak.device_bytes, number),
            plim_number_bytes(r->limit.usable_bytes, whole));
}

static void list_reasons(FILE *file, const struct plim_result *r)
{
    if (r->reason_count) fputs("\n## Why\n\n", file);
    for (size_t i = 0; i < r->reason_count; i++) line(file, "- ", r->reasons[i]);
}

static void list_advice(FILE *file, const struct plim_result *r)
{
    char peak[PLIM_NUMBER];
    if (r->advice.count) fputs("\n## What would help\n\n", file);
    for (size_t i = 0; i < r->advice.count; i++) {
        const struct plim_result_advice *a = &r->advice.items[i];
        fprintf(file, "- %s, %s: ", a->fits ? "fits" : "too large",
                plim_number_bytes(a->peak.device_bytes, peak));
        line(file, "", a->change);
    }
}

static enum plim_status write_result(FILE *file, const struct plim_result *r)
{
    struct plim_grid grid = {0}, tasks = {0};
    char common[PLIM_TABLE_LINE] = "";
    enum plim_status st = PLIM_OK, timed = PLIM_OK;
    head(file, r);
    answer(file, r);
    if (plim_result_time_all(&r->time) > 0) {
        fputs("\n## " PLIM_TABLE_TIME "\n\n", file);
        plim_table_time(r, &tasks);
        timed = table(file, &tasks, "");
    }
    if (r->points.count > 1) {
        fputs("\n## Settings\n\n", file);
        plim_table_points(r, &grid, common);
        st = table(file, &grid, common);
    }
    list_reasons(file, r);
    list_advice(file, r);
    return timed ? timed : st;
}

/* --- several devices -------------------------------------------------------------------------- */

static enum plim_status write_devices(FILE *file, const struct plim_report *report,
                                      const struct plim_style *style)
{
    struct plim_grid devices = {0}, advice = {0};
    char common[PLIM_TABLE_LINE] = "";
    line(file, "# ", plim_table_title(report));
    fputc('\n', file);
    plim_table_devices(report, style, &devices, common);
    enum plim_status st = table(file, &devices, common);
    plim_table_device_advice(report, &advice);
    if (advice.rows.count) fputs("\n## What would help\n\n", file);
    enum plim_status second = table(file, &advice, "");
    return st ? st : second;
}

static enum plim_status write_markdown(const struct plim_report *report,
                                       const struct plim_style *style, char **text,
                                       struct plim_error *err)
{
    struct plim_text_stream stream;
    FILE *file = plim_text_stream_open(&stream);
    enum plim_status st = file ? PLIM_OK : PLIM_NOMEM;
    if (!st && report->results.count)
        st = report->is_table ? write_devices(file, report, style)
                              : write_result(file, &report->results.items[0]);
    if (!st && report->version) {
        fputs("\nplimsoll ", file);
        line(file, "", report->version);
    }
    if (plim_text_stream_close(&stream, text) != PLIM_OK) st = PLIM_NOMEM;
    if (!st) return PLIM_OK;
    free(*text);
    *text = NULL;
    return plim_no_memory(err);
}

const struct plim_writer plim_writer_markdown = {
    .name = "markdown", .extensions = {"md"}, .write = write_markdown};
