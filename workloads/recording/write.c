/* Writes a recording as the text of its file. */
#include "autotune/base/xz.h"
#include "autotune/base/outfile.h"
#include "autotune/base/sha256.h"
#include "autotune/base/text_stream.h"
#include "recording.h"
#include <inttypes.h>

enum { LINE_EVENTS = 24, PERIODS = 1024 };

/* Writes a double-quoted text, as in JSON. */
static void write_text(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') fprintf(file, "\\%c", c);
        else if (c < 0x20 || c == 0x7f) fprintf(file, "\\x%02x", c);
        else fputc(c, file);
    }
    fputc('"', file);
}

static void write_texts(FILE *file, char *const *texts, size_t count)
{
    fputc('[', file);
    for (size_t i = 0; i < count; i++) {
        if (i) fputs(", ", file);
        write_text(file, texts[i]);
    }
    fputc(']', file);
}

static void write_numbers(FILE *file, const char *key, const int64_t *numbers, size_t count)
{
    fprintf(file, "%s: [", key);
    for (size_t i = 0; i < count; i++) fprintf(file, "%s%" PRId64, i ? ", " : "", numbers[i]);
    fputs("]\n", file);
}

/* --- sizes ------------------------------------------------------------------------------------ */

static void write_polynomial(FILE *file, const int64_t *terms)
{
    static const char *const names[PLIM_RECORDED_TERMS] = {"",     "*b",     "*s",   "*b*s",
                                                           "*s*s", "*b*s*s", "*b*b", "*b*b*b"};
    static const int order[PLIM_RECORDED_TERMS] = {7, 6, 5, 4, 3, 2, 1, 0};
    bool any = false;
    for (int i = 0; i < PLIM_RECORDED_TERMS; i++) {
        int64_t term = terms[order[i]];
        if (!term) continue;
        fprintf(file, "%s%" PRId64 "%s", any && term > 0 ? "+" : "", term, names[order[i]]);
        any = true;
    }
    if (terms[PLIM_RECORDED_TERMS]) fprintf(file, " over %" PRId64, terms[PLIM_RECORDED_TERMS]);
}

/* Writes a rule up to its inputs. */
static void write_rule(FILE *file, const struct plim_recorded_size *size)
{
    fprintf(file, "%s %d,%d %s", plim_recorded_scratch_names[size->scratch],
            size->launch.partial_bytes, size->launch.vector,
            size->launch.threads_share ? "row " : "");
    write_polynomial(file, size->outputs);
    fputs(" of ", file);
}

static void write_size(FILE *file, const struct plim_recorded_size *size)
{
    fputs("  - \"", file);
    if (size->cuda_stream) fprintf(file, "stream %d: ", size->cuda_stream);
    if (size->scratch && !size->is_table) write_rule(file, size);
    if (!size->is_table) write_polynomial(file, size->terms);
    else fputs("table", file);
    if (size->chunk > 1) fprintf(file, "@%" PRId64, size->chunk);
    for (size_t i = 0; i < size->count; i++) {
        const struct plim_recorded_entry *e = &size->entries[i];
        fprintf(file, " %" PRId64 ",%" PRId64 "=%" PRId64, e->point.batch, e->point.seq, e->bytes);
    }
    fputs("\"\n", file);
}

/* --- events ----------------------------------------------------------------------------------- */

static bool same(const struct plim_recorded_event *a, const struct plim_recorded_event *b)
{
    return a->frees == b->frees && a->value == b->value && a->work == b->work;
}

/* Finds the group of events repeated here that saves most: returns its number of events, and stores how often it occurs
 * in *times. */
static size_t repeats_here(const struct plim_recorded_event *events, size_t count, size_t *times)
{
    size_t best = 0, saved = 4; /* the cost of a group, in events */
    for (size_t period = 1; period <= PERIODS && 2 * period <= count; period++) {
        size_t same_events = 0;
        while (same_events + period < count &&
               same(&events[same_events], &events[same_events + period]))
            same_events++;
        size_t more = same_events / period;
        if (more * period <= saved) continue;
        saved = more * period;
        best = period;
        *times = more + 1;
    }
    return best;
}

static void write_run(FILE *file, const struct plim_recorded_event *events, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        fprintf(file, "%s%c%" PRIu32, i ? " " : "", events[i].frees ? 'f' : 'a', events[i].value);
        if (events[i].work) fprintf(file, "w%" PRIu32, events[i].work - 1);
    }
}

static void write_lines(FILE *file, const struct plim_recorded_event *events, size_t count)
{
    for (size_t at = 0; at < count;) {
        size_t times = 1, period = repeats_here(events + at, count - at, &times), run = 0;
        if (period) {
            fprintf(file, "  - \"%zu(", times);
            write_run(file, events + at, period);
            fputs(")\"\n", file);
            at += period * times;
            continue;
        }
        do run++;
        while (at + run < count && run < LINE_EVENTS &&
               !repeats_here(events + at + run, count - at - run, &times));
        fputs("  - \"", file);
        write_run(file, events + at, run);
        fputs("\"\n", file);
        at += run;
    }
}

static void write_events(FILE *file, const char *key, const struct plim_recorded_stream *stream,
                         size_t from, size_t to)
{
    const struct plim_recorded_event *events = stream->events.items;
    fprintf(file, "  %s:%s\n", key, to > from ? "" : " []");
    for (size_t i = 0; i < stream->loops.count; i++) {
        const struct plim_recorded_loop *loop = &stream->loops.items[i];
        if (loop->first < from || loop->first >= to) continue;
        write_lines(file, events + from, loop->first - from);
        fputs("  - \"micro(\"\n", file);
        write_lines(file, events + loop->first, loop->count);
        fputs("  - \")\"\n", file);
        from = loop->first + loop->count;
    }
    write_lines(file, events + from, to - from);
}

/* --- launches --------------------------------------------------------------------------------- */

static void write_launches(FILE *file, const struct plim_recorded_stream *stream)
{
    fprintf(file, "  launches:%s\n", stream->launches.count ? "" : " []");
    for (size_t i = 0; i < stream->launches.count; i++) {
        const struct plim_cost *cost = &stream->launches.items[i];
        const struct plim_cost_row *row = &plim_cost_rows[cost->kind];
        fprintf(file, "  - \"%s", row->name);
        if (row->is_typed) fprintf(file, ".%s", plim_cost_types[cost->type]);
        for (int k = 0; k < row->numbers; k++)
            fprintf(file, "%c%" PRId64, k ? ',' : ':', cost->number[k]);
        fprintf(file, "%s%s%s\"\n", cost->causal ? " causal" : "", cost->in_autograd ? " autograd" : "",
                cost->in_graph ? " graph" : "");
    }
}

static void write_works(FILE *file, const struct plim_recorded_stream *stream)
{
    fprintf(file, "  work:%s\n", stream->works.count ? "" : " []");
    for (size_t i = 0; i < stream->works.count; i++) {
        const struct plim_recorded_work *work = &stream->works.items[i];
        fputs("  - \"", file);
        for (size_t k = 0; k < work->count; k++)
            fprintf(file, "%s%" PRIu32, k ? " " : "", stream->launched.items[work->first + k]);
        fputs("\"\n", file);
    }
}

/* --- the whole file --------------------------------------------------------------------------- */

static void write_stream(FILE *file, const struct plim_recorded_stream *stream)
{
    fprintf(file, "- from_batch: %" PRId64 "\n  from_seq: %" PRId64 "\n", stream->from.batch,
            stream->from.seq);
    if (stream->host_work[0] || stream->host_work[1])
        fprintf(file, "  host_work: [%" PRId64 ", %" PRId64 "]\n", stream->host_work[0],
                stream->host_work[1]);
    fprintf(file, "  sizes:%s\n", stream->sizes.count ? "" : " []");
    for (size_t i = 0; i < stream->sizes.count; i++) write_size(file, &stream->sizes.items[i]);
    write_launches(file, stream);
    write_works(file, stream);
    write_events(file, "before", stream, 0, stream->before);
    write_events(file, "step", stream, stream->before, stream->events.count);
}

static void write_combinations(FILE *file, const struct plim_recording *r)
{
    if (!r->combinations.count) return;
    fputs("combinations: [", file);
    for (size_t i = 0; i < r->combinations.count; i++)
        fprintf(file, "%s%zu", i ? ", " : "", r->combinations.items[i]);
    fputs("]\n", file);
}

static void write_list(FILE *file, const char *key, const struct plim_recorded_texts *texts)
{
    if (!texts->count) return;
    fprintf(file, "\n%s: ", key);
    write_texts(file, texts->items, texts->count);
}

static void write_all(FILE *file, const struct plim_recording *r)
{
    fprintf(file, "plimsoll_recording: %d\nname: ", PLIM_RECORDING_VERSION);
    write_text(file, r->name);
    fputs("\ncommand: ", file);
    write_texts(file, r->command.items, r->command.count);
    fputs("\nmade_by: ", file);
    write_text(file, r->made_by);
    write_list(file, "made_with", &r->made_with);
    write_list(file, "doubts", &r->doubts);
    fprintf(file, "%s\ncompute_capability: %d\nallocator: %s\nproof: ", r->is_compiled ? "\ncompiled: yes" : "",
            r->compute_capability,
            plim_recorded_allocator_names[r->allocator]);
    write_text(file, r->proof);
    fputc('\n', file);
    if (r->host_speed > 0) fprintf(file, "host_speed: %.3g\n", r->host_speed);
    write_numbers(file, "batch", r->batches.items, r->batches.count);
    write_numbers(file, "seq", r->seqs.items, r->seqs.count);
    fprintf(file, "axes:%s\n", r->axis_count ? "" : " {}");
    for (size_t i = 0; i < r->axis_count; i++) {
        fprintf(file, "  ");
        write_text(file, r->axes[i].name);
        fputs(": ", file);
        write_texts(file, r->axes[i].values.items, r->axes[i].values.count);
        fputc('\n', file);
    }
    fprintf(file, "micro_steps: %s\n%s", r->accumulates ? "any" : "one",
            r->each_batch ? "batches: each\n" : "");
    write_combinations(file, r);
    fputs("streams:\n", file);
    for (size_t i = 0; i < r->streams.count; i++) write_stream(file, &r->streams.items[i]);
}

enum plim_status plim_recording_write(const struct plim_recording *recording, char **text,
                                      struct plim_error *err)
{
    struct plim_text_stream stream;
    char hash[PLIM_SHA256_TEXT], *body = NULL;
    size_t events = 0;
    *text = NULL;
    for (size_t i = 0; i < recording->streams.count; i++) events += recording->streams.items[i].events.count;
    if (events > PLIM_RECORDED_EVENTS)
        return plim_fail(err, PLIM_UNSUPPORTED,
                         "the recording would have %zu events, expected at most %d: record fewer values of its axes "
                         "at once",
                         events, PLIM_RECORDED_EVENTS);
    FILE *file = plim_text_stream_open(&stream);
    if (file) write_all(file, recording);
    enum plim_status st = plim_text_stream_close(&stream, &body);
    if (st) return plim_no_memory(err);
    size_t length = strlen(body), size = length + PLIM_SHA256_TEXT + 16;
    if (size > PLIM_RECORDED_BYTES) {
        free(body);
        return plim_fail(err, PLIM_UNSUPPORTED,
                         "the recording would have %zu bytes, expected at most %d: record fewer "
                         "values of its axes at once",
                         size, PLIM_RECORDED_BYTES);
    }
    plim_sha256_text(body, length, hash);
    *text = malloc(size);
    if (*text) snprintf(*text, size, "%schecksum: %s\n", body, hash);
    free(body);
    return *text ? PLIM_OK : plim_no_memory(err);
}

enum plim_status plim_recording_save(const struct plim_recording *recording, const char *path,
                                     size_t *file_bytes, struct plim_error *err)
{
    char *text = NULL, *packed = NULL;
    struct plim_recording again = {0};
    enum plim_status st = plim_recording_write(recording, &text, err);
    if (!st) st = plim_recording_read_text("the recording", text, strlen(text), &again, err);
    plim_recording_finish(&again);
    if (!st) st = plim_xz_pack(text, strlen(text), &packed, file_bytes, err);
    if (!st) st = plim_outfile_save_bytes(path, packed, *file_bytes, err);
    free(packed);
    free(text);
    return st;
}
