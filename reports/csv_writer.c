/* Comma-separated values (RFC 4180, lines end with a newline) in base units, for spreadsheets. One
 * row a device and combination of values where there are several; else one row a setting that was
 * tried; of an explanation its one setting. The columns are always the same but for the axes. An
 * empty field is not known. */
#include "autotune/base/text_stream.h"
#include "writer.h"
#include <inttypes.h>
#include <stdio.h>

enum { AXES = 64 };

/* All axes of all settings, by name. */
struct sheet {
    FILE *file;
    size_t axis_count;
    const char *axes[AXES];
    bool has_tiers; /* of some answers to one question */
};

/* A row before it is written. */
struct row {
    const struct plim_result *result;
    const struct plim_result_setting *setting;
    const struct plim_result_choice *choice; /* NULL: of a sample */
    const struct plim_result_peak *peak;
    const char *verdict, *why;
    bool chosen;
    double step_seconds;
};

/* --- fields ----------------------------------------------------------------------------------- */

static void text_field(FILE *file, const char *text)
{
    bool quoted = text[strcspn(text, ",\"\r\n")] != '\0';
    if (quoted) fputc('"', file);
    for (; *text; text++) {
        if (*text == '"') fputc('"', file);
        fputc(*text, file);
    }
    if (quoted) fputc('"', file);
}

static void field(FILE *file, const char *text)
{
    fputc(',', file);
    text_field(file, text ? text : "");
}

static void int_field(FILE *file, int64_t value)
{
    fputc(',', file);
    if (value) fprintf(file, "%" PRId64, value);
}

static void number_field(FILE *file, double value)
{
    fputc(',', file);
    if (value > 0) fprintf(file, "%.12g", value);
}

/* --- rows ------------------------------------------------------------------------------------- */

static void add_axes(struct sheet *sheet, const struct plim_result_setting *setting)
{
    for (size_t i = 0; i < setting->value_count; i++) {
        size_t k = 0;
        while (k < sheet->axis_count && strcmp(sheet->axes[k], setting->values[i].name)) k++;
        if (k == sheet->axis_count && k < AXES)
            sheet->axes[sheet->axis_count++] = setting->values[i].name;
    }
}

static void write_row(const struct sheet *sheet, const struct row *row)
{
    const struct plim_result_choice *choice = row->choice;
    text_field(sheet->file, row->result->spec.name);
    field(sheet->file, row->result->device.name);
    field(sheet->file, row->result->device.uri);
    if (sheet->has_tiers) field(sheet->file, row->result->tier);
    int_field(sheet->file, row->setting->seq);
    int_field(sheet->file, row->setting->micro_batch);
    int_field(sheet->file, row->setting->accumulation);
    int_field(sheet->file, choice ? choice->world : 0);
    int_field(sheet->file, choice ? choice->effective_batch : 0);
    for (size_t i = 0; i < sheet->axis_count; i++)
        field(sheet->file, plim_result_value(row->setting, sheet->axes[i]));
    field(sheet->file, row->verdict);
    field(sheet->file, row->chosen ? "true" : "false");
    number_field(sheet->file, choice ? choice->tokens_per_second : 0);
    number_field(sheet->file, choice ? choice->samples_per_second : 0);
    number_field(sheet->file, row->step_seconds);
    int_field(sheet->file, row->peak->allocated_bytes);
    int_field(sheet->file, row->peak->reserved_bytes);
    int_field(sheet->file, row->peak->reserved_bytes ? row->peak->device_bytes : 0);
    field(sheet->file, row->why);
    fputc('\n', sheet->file);
}

static void write_head(const struct sheet *sheet)
{
    fprintf(sheet->file, "spec,device,device_uri%s,seq,micro_batch,accumulation,world,effective_batch",
            sheet->has_tiers ? ",tier" : "");
    for (size_t i = 0; i < sheet->axis_count; i++) field(sheet->file, sheet->axes[i]);
    fprintf(sheet->file, ",verdict,chosen,tokens_per_second,samples_per_second,step_seconds,"
                         "allocated_bytes,reserved_bytes,device_bytes,why\n");
}

static void point_rows(const struct sheet *sheet, const struct plim_result *r)
{
    for (size_t i = 0; i < r->points.count; i++) {
        const struct plim_result_point *point = &r->points.items[i];
        const struct row row = {.result = r,
                                .setting = &point->best.setting,
                                .choice = &point->best,
                                .peak = &point->best.peak,
                                .verdict = point->verdict,
                                .why = point->why,
                                .chosen = point->chosen,
                                .step_seconds = point->best.step_seconds};
        write_row(sheet, &row);
    }
}

static void sample_rows(const struct sheet *sheet, const struct plim_result *r)
{
    const struct plim_result_setting *choice = r->choice.present ? &r->choice.setting : NULL;
    for (size_t i = 0; i < r->samples.count; i++) {
        const struct plim_result_sample *sample = &r->samples.items[i];
        const struct plim_result_setting *s = &sample->setting;
        const struct row row = {.result = r,
                                .setting = s,
                                .peak = &sample->peak,
                                .verdict = sample->verdict,
                                .chosen = choice && choice->micro_batch == s->micro_batch &&
                                          choice->accumulation == s->accumulation,
                                .step_seconds = sample->seconds};
        write_row(sheet, &row);
    }
}

static void explanation_row(const struct sheet *sheet, const struct plim_result *r)
{
    const struct row row = {.result = r,
                            .setting = &r->choice.setting,
                            .choice = &r->choice,
                            .peak = &r->choice.peak,
                            .verdict = r->fits ? "ok" : "oom",
                            .chosen = true,
                            .step_seconds = r->choice.step_seconds};
    write_row(sheet, &row);
}

/* --- the writer ------------------------------------------------------------------------------- */

static bool is_by_point(const struct plim_report *report, const struct plim_result *r)
{
    return r->points.count && (report->is_table || r->points.count > 1);
}

static void find_axes(struct sheet *sheet, const struct plim_report *report)
{
    for (size_t i = 0; i < report->results.count; i++) {
        const struct plim_result *r = &report->results.items[i];
        sheet->has_tiers |= r->tier != NULL;
        if (r->choice.present) add_axes(sheet, &r->choice.setting);
        for (size_t k = 0; k < r->points.count; k++) add_axes(sheet, &r->points.items[k].best.setting);
        for (size_t k = 0; k < r->samples.count; k++) add_axes(sheet, &r->samples.items[k].setting);
    }
}

static enum plim_status write_csv(const struct plim_report *report, const struct plim_style *style,
                                  char **text, struct plim_error *err)
{
    struct plim_text_stream stream;
    struct sheet sheet = {.file = plim_text_stream_open(&stream)};
    (void)style;
    if (sheet.file) {
        find_axes(&sheet, report);
        write_head(&sheet);
        for (size_t i = 0; i < report->results.count; i++) {
            const struct plim_result *r = &report->results.items[i];
            if (r->kind == PLIM_RESULT_EXPLANATION) explanation_row(&sheet, r);
            else if (is_by_point(report, r)) point_rows(&sheet, r);
            else sample_rows(&sheet, r);
        }
    }
    if (plim_text_stream_close(&stream, text) == PLIM_OK) return PLIM_OK;
    return plim_no_memory(err);
}

const struct plim_writer plim_writer_csv = {
    .name = "csv", .extensions = {"csv"}, .write = write_csv};
