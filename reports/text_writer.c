/* The report for people: the answer first, then where the bytes are, then why, then what to
 * do. As wide as the page. */
#include "autotune/base/text.h"
#include "autotune/base/text_stream.h"
#include "numbers.h"
#include "tables.h"
#include <inttypes.h>

/* Columns that a line with a bar needs for everything else. */
enum { AROUND_BAR = 36, BAR_MOST = 100 };

static int bar_width(const struct plim_page *page)
{
    int width = page->width - AROUND_BAR;
    return width < BAR_MOST ? width : BAR_MOST;
}

/* --- the answer ------------------------------------------------------------------------------- */

static void title(struct plim_page *page, const struct plim_result *r)
{
    char total[PLIM_NUMBER], text[PLIM_RESULT_LINE], name[256], device[256], gpus[PLIM_RESULT_GPUS];
    fprintf(page->file, "%s%s on %s%s, %s%s\n", page->bold,
            plim_text_show(r->spec.name, name, sizeof(name)),
            plim_text_show(plim_result_gpus(&r->device, gpus), device, sizeof(device)), page->plain,
            plim_number_bytes(r->device.total_bytes, total),
            r->device.simulated ? " (simulated)" : "");
    if (r->device.based_on[0]) {
        snprintf(text, sizeof(text), "a generic GPU: apart from its memory, that of the %s",
                 r->device.based_on);
        plim_page_wrapped(page, "", text);
    }
    fputc('\n', page->file);
}

static void phase_lines(struct plim_page *page, const struct plim_result_choice *c)
{
    for (size_t i = 0; i < c->phase_count; i++)
        fprintf(page->file,
                "    from epoch %" PRId64 ": accumulation %" PRId64 " = %" PRId64
                " samples a step\n",
                c->phases[i].epoch, c->phases[i].accumulation, c->phases[i].effective_batch);
}

static void batch_line(struct plim_page *page, const struct plim_result_choice *c)
{
    char micro[64], gpus[64] = "", seq[64] = "", rest[256];
    if (!c->setting.micro_batch) {
        fprintf(page->file, "  %sfits%s\n", page->bold, page->plain);
        return;
    }
    int used = snprintf(micro, sizeof(micro), "micro-batch %" PRId64, c->setting.micro_batch);
    if (c->world > 1) snprintf(gpus, sizeof(gpus), " x %" PRId64 " GPUs", c->world);
    if (c->setting.seq) snprintf(seq, sizeof(seq), ", sequence %" PRId64, c->setting.seq);
    snprintf(rest, sizeof(rest), " x accumulation %" PRId64 "%s = %" PRId64 " sample%s a step%s",
             c->setting.accumulation, gpus, c->effective_batch, c->effective_batch == 1 ? "" : "s",
             seq);
    fprintf(page->file, "  %s%s%s", page->bold, micro, page->plain);
    plim_page_continue(page, 2 + used, 4, rest);
    phase_lines(page, c);
}

static void rate_line(struct plim_page *page, const struct plim_result_choice *c)
{
    char rate[PLIM_NUMBER], step[PLIM_NUMBER];
    if (plim_result_rate(c) <= 0) return;
    fprintf(page->file, "  %s%s %s%s, %s a step", page->bold,
            plim_number_rate(plim_result_rate(c), rate), plim_result_rate_unit(&c->setting),
            page->plain, plim_number_seconds(c->step_seconds, step));
    if (c->mfu > 0) fprintf(page->file, ", MFU %.1f %%", 100 * c->mfu);
    if (c->host_bound) fputs(", host-bound", page->file);
    fputc('\n', page->file);
}

/* # in tensors, + cached, o overhead, . free, | the margin. */
static void memory_line(struct plim_page *page, const struct plim_result *r)
{
    const struct plim_result_peak *peak = &r->choice.peak;
    const struct plim_result_limit *limit = &r->limit;
    int64_t usable = limit->usable_bytes;
    char used[PLIM_NUMBER], whole[PLIM_NUMBER];
    int width = bar_width(page), tensors = plim_page_share(peak->allocated_bytes, usable, width);
    int cached = plim_page_share(peak->reserved_bytes, usable, width) - tensors;
    int overhead = plim_page_share(peak->device_bytes, usable, width) - tensors - cached;
    int margin =
        plim_page_share(limit->margin_bytes, usable, width - tensors - cached - overhead);
    fprintf(page->file, "  memory [");
    plim_page_repeat(page, '#', tensors);
    plim_page_repeat(page, '+', cached);
    plim_page_repeat(page, 'o', overhead);
    plim_page_repeat(page, '.', width - tensors - cached - overhead - margin);
    plim_page_repeat(page, '|', margin);
    fprintf(page->file, "] %s of %s\n", plim_number_bytes(peak->device_bytes, used),
            plim_number_bytes(usable, whole));
    plim_page_wrapped(page, "          ",
                      r->is_program ? "+ the program  o its framework's context  . free  | margin"
                                    : "# tensors  + cached  o overhead  . free  | margin");
}

/* "nothing fits" stands out in capitals. */
static void verdict_line(struct plim_page *page, const struct plim_result *r)
{
    char missing[PLIM_NUMBER];
    bool explains = r->kind == PLIM_RESULT_EXPLANATION;
    if (explains ? r->fits : r->choice.present) return;
    fprintf(page->file, "  %s", page->alarm);
    for (const char *c = explains ? "does not fit" : plim_table_failure(r); *c; c++)
        fputc(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c, page->file);
    fputs(page->plain, page->file);
    if (r->short_bytes > 0)
        fprintf(page->file, ": up to %s short", plim_number_bytes(r->short_bytes, missing));
    fputc('\n', page->file);
}

static void lora_line(struct plim_page *page, const struct plim_result *r)
{
    char text[512];
    size_t used = 0;
    if (!r->spec.lora[0]) return;
    used = (size_t)snprintf(text, sizeof(text), "%s", r->spec.lora);
    if (r->spec.trainable_parameters)
        used += (size_t)snprintf(text + used, sizeof(text) - used,
                                 ": %" PRId64 " of %" PRId64 " parameters are trained",
                                 r->spec.trainable_parameters, r->spec.parameters);
    snprintf(text + used, sizeof(text) - used, ", base in %s",
             r->spec.quantization[0] ? r->spec.quantization
                                     : plim_result_value(&r->choice.setting, "weights"));
    plim_page_wrapped(page, "  LoRA ", text);
}

static void answer(struct plim_page *page, const struct plim_result *r)
{
    char values[PLIM_TABLE_LINE];
    if (r->interrupted && r->choice.present)
        fprintf(page->file, "  %sended early: the best so far%s\n", page->alarm, page->plain);
    verdict_line(page, r);
    if (r->choice.present) {
        plim_table_values(&r->choice.setting, values, sizeof(values));
        batch_line(page, &r->choice);
        if (values[0]) plim_page_wrapped(page, "  ", values);
        lora_line(page, r);
        rate_line(page, &r->choice);
        memory_line(page, r);
    }
    if (r->spec.config[0]) plim_page_wrapped(page, "  Read from ", r->spec.config);
    if (r->spec.unplanned[0]) plim_page_wrapped(page, "  Not in the plan: ", r->spec.unplanned);
    if (r->spec.defaults[0]) plim_page_wrapped(page, "  Defaults: ", r->spec.defaults);
    if (r->spec.host_speed > 0)
        fprintf(page->file, "  the host launches %.3g times as fast as assumed\n", r->spec.host_speed);
    if (r->limit.alloc_conf[0]) plim_page_wrapped(page, "  allocator ", r->limit.alloc_conf);
}

/* --- tables ----------------------------------------------------------------------------------- */

static enum plim_status set_grid(struct plim_page *page, struct plim_grid *grid, const char *common)
{
    enum plim_status st = grid->failed ? PLIM_NOMEM : PLIM_OK;
    if (common[0]) plim_page_wrapped(page, "all: ", common);
    if (!st) plim_grid_set(grid, page);
    plim_grid_finish(grid);
    return st;
}

static enum plim_status point_table(struct plim_page *page, const struct plim_result *r)
{
    struct plim_grid grid = {0};
    char common[PLIM_TABLE_LINE] = "";
    if (r->points.count < 2) return PLIM_OK;
    plim_page_heading(page, "Settings");
    plim_table_points(r, &grid, common);
    return set_grid(page, &grid, common);
}

/* `text`: the part in words. */
static void share_row(struct plim_page *page, const char *name, const char *text, double part, double whole)
{
    fprintf(page->file, "  %-14s %10s", name, text);
    int width = plim_page_share(part, whole, bar_width(page));
    if (width) fputs("  ", page->file);
    plim_page_repeat(page, '#', width);
    fputc('\n', page->file);
}

static void byte_row(struct plim_page *page, const struct plim_result *r, const char *name, int64_t bytes)
{
    char text[PLIM_NUMBER];
    share_row(page, name, plim_number_bytes(bytes, text), (double)bytes, (double)r->choice.peak.device_bytes);
}

/* A class of which nothing is there is left out where not every job has it, or it is not known to be none. */
static void byte_table(struct plim_page *page, const struct plim_result *r)
{
    const struct plim_result_breakdown *b = &r->breakdown;
    char text[PLIM_NUMBER];
    if (!b->present) return;
    plim_page_heading(page, b->inferred ? "Where the bytes are, at the peak, by how long blocks live"
                                        : "Where the bytes are, at the peak");
    for (int i = 0; i < PLIM_RESULT_CLASSES; i++) {
        int64_t bytes = plim_result_class_bytes(b, i);
        if (bytes || (!b->inferred && i < PLIM_RESULT_COMMUNICATION))
            byte_row(page, r, plim_result_class_name(i), bytes);
    }
    byte_row(page, r, "cached, free", b->cached_bytes);
    byte_row(page, r, "overhead", b->overhead_bytes);
    fprintf(page->file, "  %-14s %10s\n", "in all",
            plim_number_bytes(r->choice.peak.device_bytes, text));
}

static void time_table(struct plim_page *page, const struct plim_result *r)
{
    double whole = plim_result_time_all(&r->time);
    char text[PLIM_NUMBER];
    if (whole <= 0) return;
    plim_page_heading(page, PLIM_TABLE_TIME);
#define SHARE(name, words)                                                                         \
    if (plim_table_shows(r->time.name##_seconds, whole))                                           \
        share_row(page, words, plim_number_seconds(r->time.name##_seconds, text), r->time.name##_seconds, whole);
    PLIM_RESULT_TIME_MAP(SHARE)
#undef SHARE
}

static void add_bytes(struct plim_grid *grid, const char *name, const int64_t bytes[4])
{
    char text[PLIM_NUMBER];
    plim_grid_row(grid, false);
    plim_grid_cell(grid, name);
    for (size_t n = 0; n < 4; n++) plim_grid_cell(grid, bytes[n] ? plim_number_bytes(bytes[n], text) : "-");
}

static enum plim_status step_table(struct plim_page *page, const struct plim_result *r)
{
    static const char *const titles[] = {"step", "forward", "peak allocated", "peak reserved",
                                         "at the end"};
    struct plim_grid grid = {0};
    char text[PLIM_NUMBER];
    if (!r->step_count) return PLIM_OK;
    plim_page_heading(page, "Steps");
    for (size_t i = 0; i < 5; i++) plim_grid_column(&grid, titles[i], true);
    for (size_t i = 0; i < r->step_count; i++) {
        const struct plim_result_step *s = &r->steps[i];
        const int64_t bytes[] = {s->after_forward_bytes, s->peak_allocated_bytes,
                                 s->peak_reserved_bytes, s->end_allocated_bytes};
        snprintf(text, sizeof(text), "%zu", i + 1);
        add_bytes(&grid, text, bytes);
    }
    const int64_t evaluation[] = {0, r->evaluation.allocated_bytes, r->evaluation.reserved_bytes, 0};
    if (r->evaluation.reserved_bytes) add_bytes(&grid, "evaluation", evaluation);
    return set_grid(page, &grid, "");
}

/* What a program holds, by the order of size of its allocations. */
static void segment_table(struct plim_page *page, const struct plim_result *r)
{
    char from[PLIM_NUMBER], bytes[PLIM_NUMBER];
    int64_t all = 0;
    if (!r->segment_count) return;
    plim_page_heading(page, "Allocations at the peak, by size");
    for (size_t i = 0; i < r->segment_count; i++) all += r->segments[i].bytes;
    for (size_t i = 0; i < r->segment_count; i++) {
        const struct plim_result_segments *s = &r->segments[i];
        fprintf(page->file, "  from %9s  %6" PRId64 "  %10s  ",
                plim_number_bytes(s->from_bytes, from), s->count,
                plim_number_bytes(s->bytes, bytes));
        plim_page_repeat(page, '#', plim_page_share(s->bytes, all, bar_width(page)));
        fputc('\n', page->file);
    }
}

/* A column of numbers that only some trials have, or none. */
struct number_column {
    const char *title;
    bool used;
};

static void trial_row(struct plim_grid *grid, const struct plim_result_sample *s,
                      const struct number_column columns[2])
{
    const int64_t numbers[] = {s->setting.micro_batch, s->setting.seq};
    char text[PLIM_NUMBER], values[PLIM_TABLE_LINE];
    plim_grid_row(grid, false);
    for (size_t n = 0; n < 2; n++) {
        snprintf(text, sizeof(text), "%" PRId64, numbers[n]);
        if (columns[n].used) plim_grid_cell(grid, numbers[n] ? text : "-");
    }
    plim_grid_cell(grid, s->verdict);
    plim_grid_cell(
        grid, s->peak.reserved_bytes ? plim_number_bytes(s->peak.device_bytes, text) : "-");
    plim_table_values(&s->setting, values, sizeof(values));
    if (values[0]) plim_grid_note(grid, values);
}

/* Every trial of the user's own program. */
static enum plim_status trial_table(struct plim_page *page, const struct plim_result *r)
{
    struct number_column columns[] = {{"batch", false}, {"sequence", false}};
    struct plim_grid grid = {0};
    bool has_values = false;
    if (!r->is_program || !r->samples.count) return PLIM_OK;
    plim_page_heading(page, "Trials");
    for (size_t i = 0; i < r->samples.count; i++) {
        columns[0].used |= r->samples.items[i].setting.micro_batch > 0;
        columns[1].used |= r->samples.items[i].setting.seq > 0;
        has_values |= r->samples.items[i].setting.value_count > 0;
    }
    for (size_t n = 0; n < 2; n++)
        if (columns[n].used) plim_grid_column(&grid, columns[n].title, true);
    plim_grid_column(&grid, "ended", false);
    plim_grid_column(&grid, "peak", true);
    if (has_values) plim_grid_column(&grid, "with", false);
    for (size_t i = 0; i < r->samples.count; i++)
        trial_row(&grid, &r->samples.items[i], columns);
    return set_grid(page, &grid, "");
}

/* --- the rest --------------------------------------------------------------------------------- */

static void reasons(struct plim_page *page, const struct plim_result *r)
{
    if (!r->reason_count) return;
    plim_page_heading(page, "Why");
    for (size_t i = 0; i < r->reason_count; i++) plim_page_wrapped(page, "  - ", r->reasons[i]);
}

static void advice(struct plim_page *page, const struct plim_result *r)
{
    char bytes[PLIM_NUMBER], first[64];
    if (!r->advice.count) return;
    plim_page_heading(page, "What would help");
    for (size_t i = 0; i < r->advice.count; i++) {
        const struct plim_result_advice *a = &r->advice.items[i];
        snprintf(first, sizeof(first), "  %-9s %9s  ", a->fits ? "fits" : "too large",
                 plim_number_bytes(a->peak.device_bytes, bytes));
        plim_page_wrapped(page, first, a->change);
    }
}

static void foot(struct plim_page *page, const struct plim_result *r, const char *version)
{
    if (!r->objective && !version) return;
    fputc('\n', page->file);
    if (r->profile) fprintf(page->file, "profile %s, ", r->profile);
    if (r->objective) fprintf(page->file, "objective %s%s", r->objective, version ? ", " : "");
    if (version) fprintf(page->file, "plimsoll %s", version);
    fputc('\n', page->file);
}

static enum plim_status write_result(struct plim_page *page, const struct plim_result *r,
                                     const char *version)
{
    enum plim_status st;
    title(page, r);
    answer(page, r);
    st = point_table(page, r);
    segment_table(page, r);
    if (!st) st = trial_table(page, r);
    byte_table(page, r);
    time_table(page, r);
    if (!st) st = step_table(page, r);
    reasons(page, r);
    advice(page, r);
    foot(page, r, version);
    return st;
}

/* --- several devices -------------------------------------------------------------------------- */

static enum plim_status device_advice(struct plim_page *page, const struct plim_report *report)
{
    struct plim_grid grid = {0};
    plim_table_device_advice(report, &grid);
    if (!grid.rows.count && !grid.failed) return PLIM_OK;
    plim_page_heading(page, "What would help");
    return set_grid(page, &grid, "");
}

/* The catalogue's names say what they are; a generic GPU's does not. */
static void generic_devices(struct plim_page *page, const struct plim_report *report)
{
    char text[PLIM_RESULT_LINE];
    for (size_t i = 0; i < report->results.count; i++) {
        const struct plim_result_device *device = &report->results.items[i].device;
        if (!device->based_on[0]) continue;
        snprintf(text, sizeof(text), "%s is a generic GPU: apart from its memory, that of the %s",
                 device->name, device->based_on);
        fputc('\n', page->file);
        plim_page_wrapped(page, "", text);
    }
}

/* Why devices have no plan, each reason once. */
static void why_not_planned(struct plim_page *page, const struct plim_report *report)
{
    for (size_t i = 0; i < report->results.count; i++) {
        const struct plim_result *result = &report->results.items[i];
        bool is_repeated = !result->unsupported || !result->reasons[0][0];
        for (size_t k = 0; k < i && !is_repeated; k++)
            is_repeated = report->results.items[k].unsupported &&
                       !strcmp(report->results.items[k].reasons[0], result->reasons[0]);
        if (is_repeated) continue;
        fputc('\n', page->file);
        plim_page_wrapped(page, "", result->reasons[0]);
    }
}

static enum plim_status write_table(struct plim_page *page, const struct plim_report *report,
                                    const struct plim_style *style)
{
    struct plim_grid grid = {0};
    char common[PLIM_TABLE_LINE] = "";
    if (!report->results.count) return PLIM_OK;
    fprintf(page->file, "%s%s%s\n\n", page->bold, plim_table_title(report), page->plain);
    plim_table_devices(report, style, &grid, common);
    enum plim_status st = set_grid(page, &grid, common);
    generic_devices(page, report);
    why_not_planned(page, report);
    if (!st) st = device_advice(page, report);
    foot(page, &report->results.items[0], report->version);
    return st;
}

/* --- the writer ------------------------------------------------------------------------------- */

static enum plim_status write_text(const struct plim_report *report, const struct plim_style *style,
                                   char **text, struct plim_error *err)
{
    struct plim_text_stream stream;
    struct plim_page page = plim_page_on(plim_text_stream_open(&stream), style);
    enum plim_status st = page.file ? PLIM_OK : PLIM_NOMEM;
    if (!st && report->is_table) st = write_table(&page, report, style);
    else if (!st && report->results.count)
        st = write_result(&page, &report->results.items[0], report->version);
    if (plim_text_stream_close(&stream, text) != PLIM_OK) st = PLIM_NOMEM;
    if (!st) return PLIM_OK;
    free(*text);
    *text = NULL;
    return plim_no_memory(err);
}

const struct plim_writer plim_writer_text = {
    .name = "text", .extensions = {"txt"}, .write = write_text};
