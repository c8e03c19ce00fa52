#include "record.h"
#include "autotune/base/compare.h"
#include "autotune/exec/program_files.h"
#include "autotune/search/space.h"
#include "host_speed.h"
#include "proof.h"
#include "recorder.h"
#include "workloads/recording/join.h"
#include <math.h>
#include <stdio.h>

enum { MORE_BATCHES = 3 };

/* --- sizes ------------------------------------------------------------------------------------ */

static int compare_points(const void *a, const void *b)
{
    const struct plim_recorded_point *x = a, *y = b;
    if (x->batch != y->batch) return x->batch < y->batch ? -1 : 1;
    return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static const struct plim_axis *seq_axis(const struct plim_program_question *q)
{
    return q->question.axes.seq < 0 ? NULL : &q->question.axes.axis[q->question.axes.seq];
}

static enum plim_status set_numbers(struct plim_recording *out,
                                    const struct plim_program_question *q, struct plim_error *err)
{
    const struct plim_batch_request *batch = &q->question.batch;
    const struct plim_axis *seq = seq_axis(q);
    for (size_t i = 0; i < batch->listed_count; i++)
        if (PLIM_ARRAY_PUSH(&out->batches, batch->listed[i]) != PLIM_OK) return plim_no_memory(err);
    for (size_t i = 0; seq && i < seq->count; i++)
        if (PLIM_ARRAY_PUSH(&out->seqs, seq->values[i]) != PLIM_OK) return plim_no_memory(err);
    bool few_batches = !out->each_batch && out->batches.count < PLIM_RECORD_SIZES;
    if (few_batches || (seq && seq->count < PLIM_RECORD_SIZES))
        return plim_fail(err, PLIM_INVALID,
                         "--%s: expected a list of at least %d values to record: a line goes "
                         "through any two, the third is the proof",
                         few_batches ? "batch" : "seq", PLIM_RECORD_SIZES);
    qsort(out->batches.items, out->batches.count, sizeof(int64_t), plim_compare_int64);
    if (out->seqs.count) qsort(out->seqs.items, out->seqs.count, sizeof(int64_t), plim_compare_int64);
    return PLIM_OK;
}

static enum plim_status choose_points(struct recorder *r, struct plim_error *err)
{
    const struct plim_recording *out = r->out;
    size_t seqs = out->seqs.count ? out->seqs.count : 1, batches = out->batches.count;
    for (size_t s = 0; s < seqs; s++)
        for (size_t b = 0; b < batches; b++) {
            if (!out->each_batch && b > 0 && b + 1 < batches && s + 1 < seqs) continue;
            const struct plim_recorded_point point = {out->batches.items[b],
                                                      out->seqs.count ? out->seqs.items[s] : 1};
            if (PLIM_ARRAY_PUSH(&r->points, point) != PLIM_OK) return plim_no_memory(err);
        }
    if (r->points.count > PLIM_RECORDED_POINTS)
        return plim_fail(err, PLIM_INVALID, "--batch and --seq: %zu sizes, expected at most %d",
                         r->points.count, PLIM_RECORDED_POINTS);
    qsort(r->points.items, r->points.count, sizeof(r->points.items[0]), compare_points);
    return PLIM_OK;
}

/* --- combinations ----------------------------------------------------------------------------- */

static enum plim_status set_axes(struct plim_recording *out,
                                 const struct plim_program_question *q, struct plim_error *err)
{
    const struct plim_axes *axes = &q->question.axes;
    for (size_t i = 0; i < axes->count; i++) {
        if ((int)i == axes->seq) continue;
        if (out->axis_count == PLIM_RECORDED_AXES)
            return plim_fail(err, PLIM_INVALID, "expected at most %d axes to record",
                             PLIM_RECORDED_AXES);
        struct plim_recorded_axis *axis = &out->axes[out->axis_count++];
        snprintf(axis->name, sizeof(axis->name), "%s", axes->axis[i].name);
        for (size_t k = 0; k < axes->axis[i].count; k++)
            if (plim_recorded_texts_add(&axis->values, axes->axis[i].names[k]))
                return plim_no_memory(err);
    }
    if (!plim_recording_combinations(out))
        return plim_fail(err, PLIM_INVALID, "the axes have more than %d combinations",
                         PLIM_RECORDED_COMBINATIONS);
    return PLIM_OK;
}

/* Returns the setting for a size; `values` has the values along the other axes and the accumulation. */
static struct plim_setting setting_at(const struct recorder *r, const struct plim_setting *values,
                                      struct plim_recorded_point size)
{
    struct plim_setting setting = *values;
    int seq = r->record->question->question.axes.seq;
    setting.micro_batch = size.batch;
    if (seq >= 0) setting.value[seq] = size.seq;
    return setting;
}

static void drop_traces(struct recorder *r)
{
    for (size_t i = 0; i < r->traces.count; i++) plim_trace_finish(&r->traces.items[i]);
    r->traces.count = 0;
}

/* The recording is of a first launch. A later one finds code compiled by torch.compile, and lacks the memory that
 * compiling took and left in the allocator's cache. Marks the recording as uncertain if a later launch takes more. */
static enum plim_status compare_later(struct recorder *r, const struct plim_setting *setting, struct plim_error *err)
{
    static const double SHARE = 0.01;
    struct plim_trace later = {.point = r->traces.items[0].point};
    char text[PLIM_DECISION_TEXT];
    int64_t first_bytes = r->peak_bytes;
    if (!r->out->is_compiled) return PLIM_OK;
    enum plim_status st = plim_recorder_run(r, setting, true, &later, err);
    plim_trace_finish(&later);
    if (st || (double)(r->peak_bytes - first_bytes) <= SHARE * (double)first_bytes) return st;
    snprintf(text, sizeof(text),
             "at batch %lld the first launch, which compiles kernels (torch.compile) and is recorded, reserves %.4g "
             "MiB, and a later one, which finds them, %.4g: exec tries both",
             (long long)setting->micro_batch, (double)first_bytes / (1 << 20), (double)r->peak_bytes / (1 << 20));
    return plim_recorder_doubt(r, text) ? plim_no_memory(err) : PLIM_OK;
}

static enum plim_status prove(struct recorder *r, const struct plim_setting *values, struct plim_error *err)
{
    const struct plim_trace *recorded = &r->traces.items[r->traces.count / 2];
    struct plim_trace own = {.point = recorded->point}; /* a trace of segments */
    const struct plim_recorded_stream *stream = &r->out->streams.items[0];
    if (recorded->point.batch < stream->from.batch || recorded->point.seq < stream->from.seq)
        recorded = &r->traces.items[r->traces.count - 1];
    own.point = recorded->point;
    const struct plim_setting setting = setting_at(r, values, own.point);
    int64_t kept;
    enum plim_status st = plim_recorder_run(r, &setting, true, &own, err);
    if (!st) st = plim_trace_drop_retained(&own, &kept, err);
    if (!st) st = plim_record_prove(recorded, &own, stream, r->record->device, r->out, err);
    if (!st) st = plim_host_speed_of(&own, &r->out->host_speed, err); /* this run has the usual allocator */
    if (!st) st = compare_later(r, &setting, err);
    plim_trace_finish(&own);
    return st;
}

/* Omits a size at which the program ends with an error, if enough sizes remain: BatchNorm does not train with batch
 * 1. */
static enum plim_status omit_size(const struct recorder *r, enum plim_status st, size_t left,
                                  const struct plim_error *failure, struct plim_error *err)
{
    if (st != PLIM_CRASHED || left < PLIM_RECORD_SIZES || r->out->each_batch)
        return plim_fail(err, st, "%s", failure->text);
    r->record->failed_log[0] = '\0';
    plim_log(r->record->log, PLIM_LOG_WARNING, "%s: this size is left out", failure->text);
    return PLIM_OK;
}

/* Runs the program until its steps repeat. With several optimizers that step in turn, or one that steps every sixth
 * time, the period has many steps: if too few were seen, the program is run again, and this run and later ones last
 * longer. */
static enum plim_status run_settled(struct recorder *r, const struct plim_setting *setting,
                                    struct plim_trace *trace, size_t *left_out, struct plim_error *err)
{
    enum { MORE = 4 };
    struct plim_recorded_point point = trace->point;
    enum plim_status st = plim_recorder_run(r, setting, false, trace, err);
    if (!st) st = plim_trace_drop_end(trace, left_out, err);
    if (st != PLIM_UNSTABLE || !r->was_ended || r->patience > 1) return st;
    r->patience = MORE;
    plim_trace_finish(trace);
    *trace = (struct plim_trace){.point = point, .gpu = r->record->gpu};
    st = plim_recorder_run(r, setting, false, trace, err);
    return st ? st : plim_trace_drop_end(trace, left_out, err);
}

/* Removes blocks that each step keeps, such as losses for a log, half a megabyte in a thousand steps. More than a few
 * of these matter, and make the recording uncertain. */
static enum plim_status drop_retained(struct recorder *r, struct plim_trace *trace, struct plim_error *err)
{
    enum { LITTLE = 4096 };
    int64_t bytes = 0;
    char text[PLIM_DECISION_TEXT];
    enum plim_status st = plim_trace_drop_retained(trace, &bytes, err);
    if (!st && bytes > LITTLE) {
        snprintf(text, sizeof(text),
                 "each step keeps %lld bytes more on the GPU, which are left out: %lld MiB in 1,000 steps",
                 (long long)bytes, (long long)(bytes * 1000 >> 20));
        return plim_recorder_doubt(r, text) ? plim_no_memory(err) : PLIM_OK;
    }
    if (!st && bytes && !r->traces.count)
        plim_log(r->record->log, PLIM_LOG_WARNING,
                 "each step keeps %lld bytes more on the GPU, which the recording leaves out", (long long)bytes);
    return st;
}

/* Runs the program at one point until its steps repeat. */
static enum plim_status run_point(struct recorder *r, const struct plim_setting *values,
                                  struct plim_trace *trace, struct plim_error *err)
{
    const struct plim_setting setting = setting_at(r, values, trace->point);
    size_t left_out = 0;
    char text[PLIM_DECISION_TEXT];
    enum plim_status st = run_settled(r, &setting, trace, &left_out, err);
    if (!st) st = drop_retained(r, trace, err);
    if (st || !left_out) return st;
    snprintf(text, sizeof(text),
             "at batch %lld the last of %zu steps differed from those before (longer rows, an evaluation), and are "
             "not recorded",
             (long long)trace->point.batch, trace->steps);
    return plim_recorder_doubt(r, text) ? plim_no_memory(err) : PLIM_OK;
}

static bool reuse_trace(struct recorder *r, struct plim_trace *trace)
{
    for (size_t i = 0; i < r->kept.count; i++)
        if (!compare_points(&r->kept.items[i].point, &trace->point)) {
            *trace = r->kept.items[i];
            r->kept.items[i] = r->kept.items[--r->kept.count];
            return true;
        }
    return false;
}

/* Runs the program at the points from index `from` on. */
static enum plim_status run_points(struct recorder *r, const struct plim_setting *values, size_t from,
                                   struct plim_error *err)
{
    enum plim_status st = PLIM_OK;
    for (size_t i = from; i < r->points.count && !st; i++) {
        struct plim_error failure = PLIM_ERROR_INIT;
        struct plim_trace trace = {.point = r->points.items[i], .gpu = r->record->gpu};
        enum plim_status ended = reuse_trace(r, &trace) ? PLIM_OK : run_point(r, values, &trace, &failure);
        if (!ended && PLIM_ARRAY_PUSH(&r->traces, trace) != PLIM_OK)
            ended = st = plim_no_memory(err);
        else if (ended) st = omit_size(r, ended, r->traces.count + r->points.count - i - 1, &failure, err);
        if (ended) plim_trace_finish(&trace);
    }
    return st;
}

/* Adds the next larger batch: after 4, these are 6, 9 and 13. */
static enum plim_status add_batch(struct recorder *r, struct plim_error *err)
{
    const struct plim_recorded_point last = r->points.items[r->points.count - 1];
    const struct plim_recorded_point next = {last.batch + last.batch / 2, last.seq};
    if (PLIM_ARRAY_PUSH(&r->points, next) != PLIM_OK ||
        PLIM_ARRAY_PUSH(&r->out->batches, next.batch) != PLIM_OK)
        return plim_no_memory(err);
    return PLIM_OK;
}

/* Adds the missing sequence lengths of the smallest batch that lacks any. They are needed if smaller batches allocate
 * in another order. Adds nothing if no batch lacks any, or if there are too many points. */
static enum plim_status add_lengths(struct recorder *r, struct plim_error *err)
{
    size_t known = r->points.count;
    for (size_t b = 0; b < r->out->batches.count && r->points.count == known; b++)
        for (size_t s = 0; s < r->out->seqs.count && r->points.count < PLIM_RECORDED_POINTS; s++) {
            const struct plim_recorded_point point = {r->out->batches.items[b], r->out->seqs.items[s]};
            size_t i = 0;
            while (i < known && compare_points(&r->points.items[i], &point)) i++;
            if (i == known && PLIM_ARRAY_PUSH(&r->points, point) != PLIM_OK)
                return plim_no_memory(err);
        }
    return PLIM_OK;
}

static int compare_traces(const void *a, const void *b)
{
    const struct plim_trace *x = a, *y = b;
    return compare_points(&x->point, &y->point);
}

/* Adds points and runs the program at them. Larger batches are only tried if the user listed none. */
static enum plim_status extend(struct recorder *r, const struct plim_setting *values, struct plim_error *err)
{
    size_t known = r->points.count;
    enum plim_status st = r->out->seqs.count     ? add_lengths(r, err)
                          : r->record->may_extend ? add_batch(r, err)
                                                  : PLIM_OK;
    if (!st) st = run_points(r, values, known, err);
    qsort(r->points.items, r->points.count, sizeof(r->points.items[0]), compare_points);
    qsort(r->traces.items, r->traces.count, sizeof(r->traces.items[0]), compare_traces);
    return st;
}

/* Joins the traces into a stream, adding points if necessary. Points are only added for the first combination, as they
 * are the same for all. */
static enum plim_status join_points(struct recorder *r, const struct plim_setting *values,
                                    struct plim_recorded_stream *stream, struct plim_error *err)
{
    bool may_extend = !r->out->streams.count && !r->out->each_batch && !r->out->is_compiled;
    for (int more = 0;; more++) {
        struct plim_error failure = PLIM_ERROR_INIT;
        size_t known = r->points.count;
        enum plim_status st = plim_trace_join(r->traces.items, r->traces.count, stream, &failure);
        if (!st) return PLIM_OK;
        bool extends = st == PLIM_DIFFERS && may_extend && more < MORE_BATCHES;
        enum plim_status extended = extends ? extend(r, values, err) : PLIM_OK;
        if (extended) return extended;
        if (r->points.count == known) return plim_fail(err, st, "%s", failure.text);
        plim_recorded_stream_finish(stream);
        *stream = (struct plim_recorded_stream){0};
    }
}

/* Returns the first recorded point at which the stream is valid. */
static struct plim_recorded_point point_of(const struct recorder *r, const struct plim_recorded_stream *stream)
{
    size_t i = 0;
    while (i + 1 < r->traces.count && (r->traces.items[i].point.batch < stream->from.batch ||
                                       r->traces.items[i].point.seq < stream->from.seq))
        i++;
    return r->traces.items[i].point;
}

static bool has_run(const struct recorder *r, int64_t batch)
{
    for (size_t i = 0; i < r->traces.count; i++)
        if (r->traces.items[i].point.batch == batch) return true;
    return false;
}

/* After the first stream: removes sizes at which the program failed, which are neither tried again nor kept in the
 * file. */
static void drop_failed(struct recorder *r)
{
    size_t points = 0, batches = 0;
    for (size_t i = 0; i < r->points.count; i++)
        if (has_run(r, r->points.items[i].batch)) r->points.items[points++] = r->points.items[i];
    for (size_t i = 0; i < r->out->batches.count; i++)
        if (has_run(r, r->out->batches.items[i]))
            r->out->batches.items[batches++] = r->out->batches.items[i];
    r->points.count = points;
    r->out->batches.count = batches;
}

/* Finds the events of each micro-step, by runs with other numbers of micro-steps at the smallest size and, as a check,
 * at the largest. */
static enum plim_status find_loops(struct recorder *r, const struct plim_setting *values,
                                   struct plim_recorded_stream *stream, struct plim_error *err)
{
    static const int64_t accumulations[] = {PLIM_TRACE_MICRO_STEPS + 1, PLIM_TRACE_MICRO_STEPS + 2,
                                            PLIM_RECORDED_OUTSIDE};
    enum { COUNT = sizeof(accumulations) / sizeof(accumulations[0]) };
    struct plim_trace traces[COUNT] = {0};
    enum plim_status st = PLIM_OK;
    for (size_t i = 0; i < COUNT && !st; i++) {
        traces[i].gpu = r->record->gpu;
        traces[i].point =
            i == 1 ? r->traces.items[r->traces.count - 1].point : point_of(r, stream);
        struct plim_setting setting = setting_at(r, values, traces[i].point);
        setting.accumulation = accumulations[i];
        st = plim_recorder_run(r, &setting, false, &traces[i], err);
        if (!st) st = drop_retained(r, &traces[i], err);
    }
    if (!st) st = plim_trace_loops(stream, traces, accumulations, COUNT, err);
    for (size_t i = 0; i < COUNT; i++) plim_trace_finish(&traces[i]);
    return st;
}

static size_t count_step(const struct plim_recorded_stream *stream)
{
    return stream->events.count - stream->before;
}

/* Marks the recording as uncertain, as it predicts `said_bytes` reserved at another batch, but a run there reserved
 * `bytes`. `differs`: its step has another number of events, too. */
static enum plim_status doubt_other(struct recorder *r, int64_t batch, bool differs, int64_t said_bytes, int64_t bytes,
                                    struct plim_error *err)
{
    const int64_t *batches = r->out->batches.items, last = batches[r->out->batches.count - 1];
    char text[PLIM_DECISION_TEXT], advice[192] = "it may round its batch, and nothing is known about batches in "
                                                 "between";
    if (batch > last)
        snprintf(advice, sizeof(advice), "--batch %lld,%lld,%lld records what it does there%s", (long long)batch,
                 (long long)(batch + batch / 2), (long long)(2 * batch),
                 differs ? ", or --each-batch if it processes chunks of its batch one after the other" : "");
    snprintf(text, sizeof(text),
             "at batch %lld the program reserves %.4g MiB instead of the %.4g that batches %lld to %lld suggest: %s",
             (long long)batch, (double)bytes / (1 << 20), (double)said_bytes / (1 << 20), (long long)batches[0],
             (long long)last, advice);
    return plim_recorder_doubt(r, text) ? plim_no_memory(err) : PLIM_OK;
}

/* Compares the recording's prediction for another size with a run there, and marks it as uncertain if they differ by
 * more than 1 %. */
static enum plim_status compare_other(struct recorder *r, const struct plim_recorded_stream *stream,
                                      const struct plim_trace *further, struct plim_error *err)
{
    static const double SHARE = 0.01;
    struct plim_recorded_stream alone = {0};
    int64_t said = 0, bytes = 0;
    enum plim_status st = plim_trace_join(further, 1, &alone, err);
    if (!st) st = plim_record_peak(&alone, further->point, r->record->device, &bytes, err);
    if (!st) st = plim_record_peak(stream, further->point, r->record->device, &said, err);
    bool differs = count_step(&alone) != count_step(stream);
    plim_recorded_stream_finish(&alone);
    bool is_off = said && bytes && fabs((double)(bytes - said)) > SHARE * (double)bytes;
    return !st && is_off ? doubt_other(r, further->point.batch, differs, said, bytes, err) : st;
}

/* Returns the batch of a further run, for comparison with the recording; 0 if there is none. If the user listed no
 * batches, it is larger than all recorded ones, since larger sizes may behave differently: PyTorch sorts the gradient
 * of an embedding from 3,073 tokens on. Otherwise it lies between the largest two, since a list such as 8,16,24 does
 * not show that a program rounds its batch up to a multiple of 8. */
static int64_t batch_to_compare(const struct recorder *r)
{
    enum { TIMES = 4 };
    const int64_t *batches = r->out->batches.items;
    size_t count = r->out->batches.count;
    int64_t last = batches[count - 1];
    if (r->record->may_extend) return r->out->seqs.count ? 0 : TIMES * last;
    return last - 1 > batches[count - 2] ? last - 1 : 0;
}

/* Runs the program at another batch and compares. The run may fail. */
static enum plim_status compare_elsewhere(struct recorder *r, const struct plim_setting *values,
                                          const struct plim_recorded_stream *stream, int64_t batch,
                                          struct plim_error *err)
{
    const struct plim_recorded_point last = r->traces.items[r->traces.count - 1].point;
    struct plim_trace further = {.point = {batch, last.seq}, .gpu = r->record->gpu};
    struct plim_error failure = PLIM_ERROR_INIT;
    enum plim_status st = run_point(r, values, &further, &failure);
    r->record->failed_log[0] = '\0';
    if (st == PLIM_CANCELLED)
        st = plim_fail(err, st, "%s", failure.text);
    else
        st = st ? PLIM_OK : compare_other(r, stream, &further, err);
    plim_trace_finish(&further);
    return st;
}

/* Fails if no size depends on the batch, so that the program does not seem to use {batch}. */
static enum plim_status check_batch(const struct recorder *r, const struct plim_recorded_stream *stream,
                                    struct plim_error *err)
{
    const struct plim_recording *out = r->out;
    struct plim_recorded_point low = r->traces.items[0].point, high = low;
    low.batch = out->batches.items[0];
    high.batch = out->batches.items[out->batches.count - 1];
    if (low.batch == high.batch || out->each_batch) return PLIM_OK;
    for (size_t i = 0; i < stream->sizes.count; i++) {
        const struct plim_recorded_size *size = &stream->sizes.items[i];
        const struct plim_device_info *gpu = r->traces.items[0].gpu;
        if (plim_recorded_size_at(size, low, gpu) != plim_recorded_size_at(size, high, gpu)) return PLIM_OK;
    }
    return plim_fail(err, PLIM_DIFFERS,
                     "the program allocates the same with batch %lld and with batch %lld: it does not seem to "
                     "use {batch}",
                     (long long)low.batch, (long long)high.batch);
}

/* Records all sizes of one combination, with one number of micro-steps. */
static enum plim_status record_stream(struct recorder *r, const struct plim_setting *values, struct plim_error *err)
{
    struct plim_recorded_stream stream = {0};
    drop_traces(r);
    enum plim_status st = run_points(r, values, 0, err);
    if (!st) st = join_points(r, values, &stream, err);
    if (!st) st = check_batch(r, &stream, err);
    bool compares = !r->out->streams.count && !r->out->each_batch;
    int64_t other = !st && compares ? batch_to_compare(r) : 0;
    if (other) st = compare_elsewhere(r, values, &stream, other, err);
    if (!st && values->accumulation > 1) st = find_loops(r, values, &stream, err);
    if (!st && PLIM_ARRAY_PUSH(&r->out->streams, stream) != PLIM_OK) st = plim_no_memory(err);
    if (st) plim_recorded_stream_finish(&stream);
    if (!st && r->out->streams.count == 1 && !r->out->each_batch) drop_failed(r);
    if (!st && r->out->streams.count == 1) st = prove(r, values, err);
    if (!st)
        plim_trace_host_work(r->traces.items, r->traces.count, values->accumulation,
                             r->out->host_speed,
                             r->out->streams.items[r->out->streams.count - 1].host_work);
    return st;
}

/* Records one combination with one micro-step per step, and with several if {accumulation} is a placeholder. */
static enum plim_status record_points(struct recorder *r, const struct plim_setting *point, struct plim_error *err)
{
    struct plim_setting values = *point;
    values.accumulation = 1;
    enum plim_status st = record_stream(r, &values, err);
    values.accumulation = PLIM_TRACE_MICRO_STEPS;
    return st || !r->out->accumulates ? st : record_stream(r, &values, err);
}

static enum plim_status record_batches(struct recorder *r, const struct plim_setting *values, struct plim_error *err)
{
    struct recorder one = *r; /* for one batch at a time; points are sorted by batch */
    size_t lengths = r->points.count / r->out->batches.count;
    enum plim_status st = PLIM_OK;
    for (size_t i = 0; i < r->points.count && !st; i += lengths) {
        one.points.items = r->points.items + i;
        one.points.count = lengths;
        st = record_points(&one, values, err);
    }
    one.points = r->points;
    *r = one;
    return st;
}

/* Switches to separate streams for each batch, since torch.compile fuses and splits kernels depending on sizes. The
 * traces made so far are kept for that. */
static void split_by_batch(struct recorder *r)
{
    plim_log(r->record->log, PLIM_LOG_WARNING,
             "its batches allocate and free in different orders (torch.compile generates other kernels at other "
             "sizes), so each batch is recorded on its own: --batch names those to be used");
    r->out->each_batch = true;
    r->kept.items = r->traces.items;
    r->kept.count = r->traces.count;
    r->kept.capacity = r->traces.capacity;
    r->traces.items = NULL;
    r->traces.count = r->traces.capacity = 0;
}

static enum plim_status record_combination(struct recorder *r, const struct plim_setting *values,
                                           struct plim_error *err)
{
    struct plim_error failure = PLIM_ERROR_INIT;
    if (r->out->each_batch) return record_batches(r, values, err);
    enum plim_status st = record_points(r, values, &failure);
    bool is_apart = st == PLIM_DIFFERS && r->out->is_compiled && !r->out->streams.count &&
                    r->traces.count == r->points.count && !r->out->seqs.count;
    if (!is_apart) return st ? plim_fail(err, st, "%s", failure.text) : PLIM_OK;
    split_by_batch(r);
    return record_batches(r, values, err);
}

static enum plim_status add_part(void *user, const char *text)
{
    struct plim_recorded_texts *parts = user;
    return parts->count < PLIM_RECORDED_PARTS ? plim_recorded_texts_add(parts, text) : PLIM_OK;
}

static enum plim_status set_head(const struct plim_record *record, struct plim_recording *out, struct plim_error *err)
{
    snprintf(out->name, sizeof(out->name), "%s", record->name);
    snprintf(out->made_by, sizeof(out->made_by), "plimsoll %s", record->version);
    out->compute_capability = record->gpu->compute_capability;
    out->accumulates = record->question->uses_accumulation;
    out->each_batch = record->each_batch;
    for (char *const *word = record->options.program->command; *word; word++)
        if (plim_recorded_texts_add(&out->command, *word)) return plim_no_memory(err);
    return plim_program_made_with(record->options.program->command, add_part, &out->made_with)
               ? plim_no_memory(err)
               : PLIM_OK;
}

/* Records one combination. If that fails, the recording ends, and the message names the combination, which the user can
 * omit. */
static enum plim_status record_or_name(struct recorder *r, const struct plim_setting *values, struct plim_error *err)
{
    struct plim_error failure = PLIM_ERROR_INIT;
    char axes[256];
    enum plim_status st = record_combination(r, values, &failure);
    if (!st) return PLIM_OK;
    plim_recorder_describe_axes(r, values, false, axes, sizeof(axes));
    if (!axes[0] || st == PLIM_CANCELLED) return plim_fail(err, st, "%s", failure.text);
    return plim_fail(err, st, "with%s: %s", axes + 1, failure.text);
}

enum plim_status plim_record_run(const struct plim_record *record, struct plim_recording *out,
                                 struct plim_error *err)
{
    struct recorder r = {.record = record, .out = out, .patience = 1};
    struct plim_space space = {0};
    enum plim_status st = PLIM_OK;
    struct plim_axes axes = record->question->question.axes;
    const int64_t no_seq = 1;
    PLIM_TRY(set_head(record, out, err));
    PLIM_TRY(set_numbers(out, record->question, err));
    PLIM_TRY(set_axes(out, record->question, err));
    PLIM_TRY(choose_points(&r, err));
    PLIM_TRY(plim_space_build(&space, &axes, axes.seq < 0 ? NULL : &no_seq, axes.seq < 0 ? 0 : 1,
                              err));
    for (size_t i = 0; i < space.points.count; i++)
        PLIM_TRY(record_or_name(&r, &space.points.items[i], err));
out:
    drop_traces(&r);
    for (size_t i = 0; i < r.kept.count; i++) plim_trace_finish(&r.kept.items[i]);
    PLIM_ARRAY_FINISH(&r.kept);
    PLIM_ARRAY_FINISH(&r.traces);
    PLIM_ARRAY_FINISH(&r.points);
    plim_space_finish(&space);
    return st;
}
