/* The report for people: the answer first, then where the bytes are, then why, then what to
 * do. 80 columns. */
#include "autotune/base/text.h"
#include "autotune/base/text_stream.h"
#include "writer.h"
#include <inttypes.h>
#include <stdio.h>

/* Where the text goes, and the escapes of a terminal ("" elsewhere). */
struct page {
    FILE *file;
    const char *bold, *alarm, *plain;
};

enum { BAR_WIDTH = 44, COLUMNS = 80 };

static const char *bytes_text(int64_t bytes, char out[16])
{
    return plim_format_bytes(bytes > 0 ? bytes : 0, out);
}

/* "1,234,567" */
static char *grouped(double value, char out[32])
{
    char digits[32];
    int length = snprintf(digits, sizeof(digits), "%.0f", value < 1e15 ? value : 1e15), used = 0;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0) out[used++] = ',';
        out[used++] = digits[i];
    }
    out[used] = '\0';
    return out;
}

/* Three significant digits: "0.0123 s", "1.23 s", "123 s". */
static const char *seconds_text(double seconds, char out[32])
{
    int digits = seconds >= 100 ? 0 : seconds >= 10 ? 1 : seconds >= 1 ? 2 : seconds >= 0.1 ? 3 : 4;
    snprintf(out, 32, "%.*f s", digits, seconds);
    return out;
}

static void heading(struct page *t, const char *text)
{
    fprintf(t->file, "\n%s%s%s\n", t->bold, text, t->plain);
}

/* Text behind `first`, its lines broken at blanks and indented alike. */
static void wrapped(struct page *t, const char *first, const char *text)
{
    int indent = (int)strlen(first);
    fputs(first, t->file);
    do {
        size_t room = (size_t)(COLUMNS - indent), length = strlen(text);
        if (length > room) {
            for (length = room; length > 0 && text[length] != ' ';) length--;
            if (!length) length = room;
        }
        fprintf(t->file, "%.*s\n", (int)length, text);
        text += length + (text[length] == ' ');
        if (*text) fprintf(t->file, "%*s", indent, "");
    } while (*text);
}

/* --- the answer ------------------------------------------------------------------------------- */

static void title(struct page *t, const struct plim_result *r)
{
    char total[16];
    fprintf(t->file, "%s%s on %s%s, %s%s\n\n", t->bold, r->spec.name, r->device.name, t->plain,
            bytes_text(r->device.total_bytes, total), r->device.simulated ? " (simulated)" : "");
}

static void batch_line(struct page *t, const struct plim_result_choice *c)
{
    if (!c->setting.micro_batch) {
        fprintf(t->file, "  %sfits%s\n", t->bold, t->plain);
        return;
    }
    fprintf(t->file, "  %smicro-batch %" PRId64 "%s", t->bold, c->setting.micro_batch, t->plain);
    fprintf(t->file, " x accumulation %" PRId64, c->setting.accumulation);
    if (c->world > 1) fprintf(t->file, " x %" PRId64 " GPUs", c->world);
    fprintf(t->file, " = %" PRId64 " sample%s a step", c->effective_batch,
            c->effective_batch == 1 ? "" : "s");
    if (c->setting.seq) fprintf(t->file, ", sequence %" PRId64, c->setting.seq);
    fputc('\n', t->file);
    for (size_t i = 0; i < c->phase_count; i++)
        fprintf(t->file,
                "    from epoch %" PRId64 ": accumulation %" PRId64 " = %" PRId64
                " samples a step\n",
                c->phases[i].epoch, c->phases[i].accumulation, c->phases[i].effective_batch);
}

static void rate_line(struct page *t, const struct plim_result_choice *c)
{
    char rate[32], step[32];
    if (c->tokens_per_second <= 0) return;
    fprintf(t->file, "  %s%s tokens/s%s, %s a step", t->bold, grouped(c->tokens_per_second, rate),
            t->plain, seconds_text(c->step_seconds, step));
    if (c->mfu > 0) fprintf(t->file, ", MFU %.1f %%", 100 * c->mfu);
    fputc('\n', t->file);
}

static void repeat(FILE *file, char c, int times)
{
    while (times-- > 0) fputc(c, file);
}

static int bar_share(int64_t bytes, int64_t whole, int width)
{
    double share = whole > 0 ? (double)bytes / (double)whole : 1;
    return share >= 1 ? width : share <= 0 ? 0 : (int)(share * width + 0.5);
}

/* # in tensors, + cached, o overhead, . free, | the margin. */
static void memory_line(struct page *t, const struct plim_result *r)
{
    const struct plim_result_peak *peak = &r->choice.peak;
    const struct plim_result_limit *limit = &r->limit;
    int64_t usable = limit->usable_bytes;
    char used[16], whole[16];
    int tensors = bar_share(peak->allocated_bytes, usable, BAR_WIDTH);
    int cached = bar_share(peak->reserved_bytes, usable, BAR_WIDTH) - tensors;
    int overhead = bar_share(peak->device_bytes, usable, BAR_WIDTH) - tensors - cached;
    int margin = bar_share(limit->margin_bytes, usable, BAR_WIDTH - tensors - cached - overhead);
    fprintf(t->file, "  memory [");
    repeat(t->file, '#', tensors);
    repeat(t->file, '+', cached);
    repeat(t->file, 'o', overhead);
    repeat(t->file, '.', BAR_WIDTH - tensors - cached - overhead - margin);
    repeat(t->file, '|', margin);
    fprintf(t->file, "] %s of %s\n", bytes_text(peak->device_bytes, used),
            bytes_text(usable, whole));
    fprintf(t->file, r->is_program
                         ? "          + the program  o its framework's context  . free  | margin\n"
                         : "          # tensors  + cached  o overhead  . free  | margin\n");
}

/* Precisions and optimizers are known by their names; other values are said with theirs. */
static bool is_known_by_name(const struct plim_result_value *value)
{
    return !strcmp(value->name, "precision") || !strcmp(value->name, "optimizer");
}

/* The values beside batch and sequence, in one line. Nothing where there are none. */
static void values_line(struct page *t, const struct plim_result_setting *s)
{
    const char *between = "  ";
    for (size_t i = 0; i < s->value_count; i++) {
        const struct plim_result_value *value = &s->values[i];
        if (!strcmp(value->name, "sharding") && !strcmp(value->text, "none")) continue;
        fprintf(t->file, "%s%s%s%s", between, is_known_by_name(value) ? "" : value->name,
                is_known_by_name(value) ? "" : " ", value->text);
        between = ", ";
    }
    if (between[0] == ',') fputc('\n', t->file);
}

static void lora_line(struct page *t, const struct plim_result *r)
{
    if (!r->spec.lora[0]) return;
    fprintf(t->file, "  LoRA %s", r->spec.lora);
    if (r->spec.trainable_parameters)
        fprintf(t->file, ": %" PRId64 " of %" PRId64 " parameters are trained",
                r->spec.trainable_parameters, r->spec.parameters);
    fprintf(t->file, ", base in %s\n", plim_result_value(&r->choice.setting, "weights"));
}

static void defaults_line(struct page *t, const struct plim_result_spec *spec)
{
    if (spec->defaults[0]) wrapped(t, "  Defaults: ", spec->defaults);
}

static void verdict_line(struct page *t, const struct plim_result *r)
{
    char missing[16];
    if (r->kind == PLIM_RESULT_EXPLANATION && r->fits) return;
    if (r->kind == PLIM_RESULT_DECISION && r->choice.present) return;
    fprintf(t->file, "  %s%s%s", t->alarm,
            r->kind == PLIM_RESULT_EXPLANATION       ? "DOES NOT FIT"
            : r->is_program && r->ended == PLIM_LOST ? "THE PROGRAM FAILS"
            : r->interrupted                         ? "NO ANSWER YET"
                                                     : "NOTHING FITS",
            t->plain);
    if (r->short_bytes > 0) fprintf(t->file, ": %s too much", bytes_text(r->short_bytes, missing));
    fputc('\n', t->file);
}

static void answer(struct page *t, const struct plim_result *r)
{
    if (r->interrupted && r->choice.present)
        fprintf(t->file, "  %sended early: the best so far%s\n", t->alarm, t->plain);
    verdict_line(t, r);
    if (r->choice.present) {
        batch_line(t, &r->choice);
        values_line(t, &r->choice.setting);
        lora_line(t, r);
        rate_line(t, &r->choice);
        memory_line(t, r);
    }
    defaults_line(t, &r->spec);
    if (r->limit.alloc_conf[0]) fprintf(t->file, "  allocator %s\n", r->limit.alloc_conf);
}

/* --- the rest --------------------------------------------------------------------------------- */

static void byte_table(struct page *t, const struct plim_result *r)
{
    const struct plim_result_breakdown *b = &r->breakdown;
    const struct { const char *name; int64_t bytes; } rows[] = {
        {"parameters", b->parameters_bytes},   {"gradients", b->gradients_bytes},
        {"optimizer", b->optimizer_bytes},     {"activations", b->activations_bytes},
        {"temporaries", b->temporaries_bytes}, {"workspace", b->workspace_bytes},
        {"cached, free", b->cached_bytes},     {"overhead", b->overhead_bytes}};
    char text[16];
    if (!b->present) return;
    heading(t, "Where the bytes are, at the peak");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fprintf(t->file, "  %-14s %10s", rows[i].name, bytes_text(rows[i].bytes, text));
        int width = bar_share(rows[i].bytes, r->choice.peak.device_bytes, BAR_WIDTH);
        if (width) fputs("  ", t->file);
        repeat(t->file, '#', width);
        fputc('\n', t->file);
    }
    fprintf(t->file, "  %-14s %10s\n", "in all", bytes_text(r->choice.peak.device_bytes, text));
}

static void step_table(struct page *t, const struct plim_result *r)
{
    char forward[16], allocated[16], reserved[16], end[16];
    if (!r->step_count) return;
    heading(t, "Steps            after forward  peak allocated   peak reserved     at the end");
    for (size_t i = 0; i < r->step_count; i++) {
        const struct plim_result_step *s = &r->steps[i];
        fprintf(t->file, "  %-14zu %14s  %14s  %14s  %13s\n", i + 1,
                bytes_text(s->after_forward_bytes, forward),
                bytes_text(s->peak_allocated_bytes, allocated),
                bytes_text(s->peak_reserved_bytes, reserved),
                bytes_text(s->end_allocated_bytes, end));
    }
}

static void reasons(struct page *t, const struct plim_result *r)
{
    if (!r->reason_count) return;
    heading(t, "Why");
    for (size_t i = 0; i < r->reason_count; i++) wrapped(t, "  - ", r->reasons[i]);
}

static void advice(struct page *t, const struct plim_result *r)
{
    char bytes[16], first[40];
    if (!r->advice.count) return;
    heading(t, "What would help");
    for (size_t i = 0; i < r->advice.count; i++) {
        const struct plim_result_advice *a = &r->advice.items[i];
        snprintf(first, sizeof(first), "  %-9s %9s  ", a->fits ? "fits" : "too large",
                 bytes_text(a->peak.device_bytes, bytes));
        wrapped(t, first, a->change);
    }
}

/* What a program holds, by the order of size of its allocations. */
static void segment_table(struct page *t, const struct plim_result *r)
{
    char from[16], bytes[16];
    int64_t all = 0;
    if (!r->segment_count) return;
    heading(t, "Allocations at the peak, by size");
    for (size_t i = 0; i < r->segment_count; i++) all += r->segments[i].bytes;
    for (size_t i = 0; i < r->segment_count; i++) {
        const struct plim_result_segments *s = &r->segments[i];
        fprintf(t->file, "  from %9s  %6" PRId64 "  %10s  ", bytes_text(s->from_bytes, from),
                s->count, bytes_text(s->bytes, bytes));
        repeat(t->file, '#', bar_share(s->bytes, all, BAR_WIDTH));
        fputc('\n', t->file);
    }
}

/* Every trial of the user's own program. */
static void trial_table(struct page *t, const struct plim_result *r)
{
    char peak[16];
    if (!r->is_program || !r->samples.count) return;
    heading(t, "Trials");
    for (size_t i = 0; i < r->samples.count; i++) {
        const struct plim_result_sample *s = &r->samples.items[i];
        if (s->setting.micro_batch) fprintf(t->file, "  batch %6" PRId64, s->setting.micro_batch);
        if (s->setting.seq) fprintf(t->file, "  sequence %6" PRId64, s->setting.seq);
        fprintf(t->file, "  %-8s %10s", s->verdict,
                s->peak.reserved_bytes ? bytes_text(s->peak.device_bytes, peak) : "");
        if (s->setting.value_count) values_line(t, &s->setting);
        else fputc('\n', t->file);
    }
}

static void write_result(struct page *t, const struct plim_result *r)
{
    title(t, r);
    answer(t, r);
    segment_table(t, r);
    trial_table(t, r);
    byte_table(t, r);
    step_table(t, r);
    reasons(t, r);
    advice(t, r);
}

/* --- several devices -------------------------------------------------------------------------- */

static void table_row(struct page *t, const struct plim_result *r)
{
    const struct plim_result_choice *c = &r->choice;
    char total[16], batch[32], rate[32], peak[16];
    fprintf(t->file, "%-22.22s %8s  ", r->device.name, bytes_text(r->device.total_bytes, total));
    if (!c->present) {
        fprintf(t->file, "%s", r->interrupted ? "no answer yet" : "nothing fits");
        if (r->short_bytes > 0) fprintf(t->file, ": %s too much", bytes_text(r->short_bytes, peak));
        fputc('\n', t->file);
        return;
    }
    snprintf(batch, sizeof(batch), "%" PRId64 "x%" PRId64, c->setting.micro_batch,
             c->setting.accumulation);
    fprintf(t->file, "%7s %6" PRId64 " %-10s %-4s %10s %9s\n", batch, c->setting.seq,
            plim_result_value(&c->setting, "precision"),
            plim_result_value(&c->setting, "checkpointing"), grouped(c->tokens_per_second, rate),
            bytes_text(c->peak.device_bytes, peak));
}

static void write_table(struct page *t, const struct plim_report *report)
{
    if (!report->results.count) return;
    fprintf(t->file, "%s%s%s\n\n", t->bold, report->results.items[0].spec.name, t->plain);
    fprintf(t->file, "%s%-22s %8s  %7s %6s %-10s %-4s %10s %9s%s\n", t->bold, "device", "memory",
            "batch", "seq", "precision", "ckpt", "tokens/s", "peak", t->plain);
    for (size_t i = 0; i < report->results.count; i++) table_row(t, &report->results.items[i]);
}

/* --- the writer ------------------------------------------------------------------------------- */

static enum plim_status write_text(const struct plim_report *report, const struct plim_style *style,
                                   char **text, struct plim_error *err)
{
    struct plim_text_stream stream;
    bool color = style && style->color;
    struct page t = {.file = plim_text_stream_open(&stream), .bold = color ? "\033[1m" : "",
                          .alarm = color ? "\033[1;31m" : "", .plain = color ? "\033[0m" : ""};
    if (t.file && report->is_table) write_table(&t, report);
    else if (t.file && report->results.count) write_result(&t, &report->results.items[0]);
    if (plim_text_stream_close(&stream, text) != PLIM_OK)
        return plim_fail(err, PLIM_NOMEM, "out of host memory");
    return PLIM_OK;
}

const struct plim_writer plim_writer_text = {
    .name = "text", .extensions = {"txt"}, .write = write_text};
