#include "recording_question.h"
#include "autotune/search/space.h"
#include <stdio.h>

/* Returns the smallest batch for which every stream is valid. */
static int64_t first_batch(const struct plim_recording *recording)
{
    int64_t first = 1;
    for (size_t i = 0; i < recording->streams.count; i++)
        if (recording->streams.items[i].from.batch > first)
            first = recording->streams.items[i].from.batch;
    return first;
}

/* Restricts the batches to the recorded ones. */
static void only_recorded(const struct plim_recording *recording, struct plim_batch_request *batch)
{
    batch->only_listed = true;
    batch->first = recording->batches.items[0];
    if (batch->listed_count) return;
    batch->listed = recording->batches.items;
    batch->listed_count = recording->batches.count;
}

static struct plim_axis *add_axis(struct plim_spec_question *q, const char *name)
{
    struct plim_axes *axes = &q->question.axes;
    struct plim_axis *axis = &axes->axis[axes->count];
    snprintf(axis->name, sizeof(axis->name), "%s", name);
    axis->unit = "";
    axis->values = q->values[axes->count++];
    return axis;
}

static void add_seq(struct plim_spec_question *q)
{
    const struct plim_recording *recording = q->recording;
    const struct plim_int_axis *given = &q->spec->seq;
    struct plim_axes *axes = &q->question.axes;
    struct plim_axis *axis = add_axis(q, "seq");
    bool is_given = given->count > 0;
    axis->unit = "tokens";
    axis->count = is_given ? given->count : recording->seqs.count;
    memcpy(q->values[axes->count - 1], is_given ? given->values : recording->seqs.items,
           axis->count * sizeof(int64_t));
    axes->seq = (int)axes->count - 1;
    q->question.seq_most = PLIM_SEQ_MAX;
}

/* Returns the recording's combination of the setting's values. */
static size_t combination_of(const struct plim_spec_question *question, const struct plim_setting *setting)
{
    size_t values[PLIM_RECORDED_AXES], first = question->question.axes.seq >= 0;
    for (size_t i = 0; i < question->recording->axis_count; i++)
        values[i] = (size_t)setting->value[first + i];
    return plim_recording_combination(question->recording, values);
}

static bool is_recorded(const void *user, const struct plim_setting *point)
{
    const struct plim_spec_question *question = user;
    return plim_recording_has(question->recording, combination_of(question, point));
}

void plim_recording_question_make(const struct plim_recording *recording,
                                  const struct plim_spec *spec, enum plim_objective objective,
                                  struct plim_spec_question *out)
{
    *out = (struct plim_spec_question){.spec = spec,
                                       .recording = recording,
                                       .doubts = (const char *const *)recording->doubts.items,
                                       .doubt_count = recording->doubts.count};
    struct plim_question *q = &out->question;
    q->objective = plim_recording_is_timed(recording) ? objective
                                                      : plim_objectives[objective].untimed;
    q->axes.seq = -1;
    if (recording->seqs.count) add_seq(out);
    for (size_t i = 0; i < recording->axis_count; i++) {
        const struct plim_recorded_axis *recorded = &recording->axes[i];
        struct plim_axis *axis = add_axis(out, recorded->name);
        axis->names = (const char *const *)recorded->values.items;
        axis->count = recorded->values.count;
        axis->is_users = true;
        for (size_t k = 0; k < axis->count; k++) out->values[q->axes.count - 1][k] = (int64_t)k;
    }
    plim_spec_question_batch(spec, &q->batch);
    if (recording->each_batch) only_recorded(recording, &q->batch);
    else q->batch.first = first_batch(recording);
    if (!recording->accumulates) q->batch.accumulation = 1; /* the recording was made without accumulation */
    if (!recording->combinations.count) return;
    q->axes.has = is_recorded;
    q->axes.has_user = out;
}

enum plim_status plim_recording_question_choose(struct plim_spec_question *question,
                                                const char *option, const char *name,
                                                const char *list, struct plim_error *err)
{
    int index = plim_axes_find(&question->question.axes, name);
    if (index < 0 || index == question->question.axes.seq)
        return plim_fail(err, PLIM_INVALID,
                         "%s: the recording has no such axis: it is as it was recorded", option);
    struct plim_axis *axis = &question->question.axes.axis[index];
    size_t all = question->recording->axes[index - (question->question.axes.seq >= 0)].values.count;
    axis->count = 0;
    for (const char *at = list; *at || at == list;) {
        size_t length = strcspn(at, ","), k = 0;
        while (k < all && (strncmp(axis->names[k], at, length) || axis->names[k][length])) k++;
        if (k == all || axis->count == all)
            return plim_fail(err, PLIM_INVALID, "%s: the recording has no %s %.*s%s", option, name,
                             (int)length, at, k < all ? " twice" : "");
        question->values[index][axis->count++] = (int64_t)k;
        at += length;
        if (*at == ',') at++;
        else break;
    }
    return PLIM_OK;
}

static enum plim_status check_batches(const struct plim_spec_question *question, struct plim_error *err)
{
    const struct plim_recording *recording = question->recording;
    const struct plim_batch_request *batch = &question->question.batch;
    char known[128];
    size_t used = 0;
    for (size_t i = 0; i < recording->batches.count && used < sizeof(known); i++)
        used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%lld", i ? ", " : "",
                                 (long long)recording->batches.items[i]);
    for (size_t i = 0; i < batch->listed_count; i++) {
        if (!recording->each_batch && batch->listed[i] < batch->first)
            return plim_fail(err, PLIM_INVALID,
                             "--batch %lld: the recording holds from batch %lld on; exec runs the program below it",
                             (long long)batch->listed[i], (long long)batch->first);
        if (!plim_recording_has_batch(recording, batch->listed[i]))
            return plim_fail(err, PLIM_INVALID,
                             "--batch %lld: each batch of this recording does otherwise, and these alone "
                             "were recorded: %s; exec runs the program at others",
                             (long long)batch->listed[i], known);
    }
    return PLIM_OK;
}

/* Writes the values of a combination, such as "fp32 256". Returns their length. */
static size_t write_combination(const struct plim_recording *recording, size_t combination, char *text,
                                size_t size)
{
    size_t used = 0, values[PLIM_RECORDED_AXES];
    plim_recording_values(recording, combination, values);
    for (size_t i = 0; i < recording->axis_count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? " " : "",
                                 recording->axes[i].values.items[values[i]]);
    return used;
}

static enum plim_status check_axes(const struct plim_spec_question *question, struct plim_error *err)
{
    const struct plim_recording *recording = question->recording;
    const struct plim_axes *axes = &question->question.axes;
    const struct plim_setting first = plim_space_first(axes);
    char there[512] = "";
    size_t used = 0;
    if (!axes->has || axes->has(axes->has_user, &first)) return PLIM_OK;
    for (size_t i = 0; i < recording->combinations.count && used < sizeof(there); i++) {
        used += (size_t)snprintf(there + used, sizeof(there) - used, "%s", i ? "; " : "");
        if (used < sizeof(there))
            used += write_combination(recording, recording->combinations.items[i], there + used,
                                      sizeof(there) - used);
    }
    return plim_fail(err, PLIM_INVALID, "none of these combinations of values is recorded, but these are: %s",
                     there);
}

enum plim_status plim_recording_question_check(const struct plim_spec_question *question,
                                               struct plim_error *err)
{
    enum plim_status st = check_batches(question, err);
    return st ? st : check_axes(question, err);
}

void plim_recording_question_setting(const struct plim_spec_question *question,
                                     const struct plim_setting *setting,
                                     const struct plim_recorded_stream **stream,
                                     struct plim_recorded_point *point)
{
    const struct plim_recording *recording = question->recording;
    const struct plim_axes *axes = &question->question.axes;
    *stream = plim_recording_stream(recording, combination_of(question, setting), setting->micro_batch,
                                    setting->accumulation);
    *point = (struct plim_recorded_point){setting->micro_batch,
                                          axes->seq >= 0 ? setting->value[axes->seq] : 1};
}
