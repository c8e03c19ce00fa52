#include "asked_question.h"
#include "autotune/run/recording_question.h"
#include "host_speed.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Keys that are allowed with any recording; others must be axes of it. */
static const struct key {
    const char *key;
    bool accumulates; /* only allowed if the recorded command has {accumulation} */
} keys[] = {{"train.micro_batch", false},
            {"data.seq", false},
            {"train.world", false},
            {"train.host_speed", false},
            {"train.accumulation", true},
            {"train.effective_batch", true},
            {"train.effective_batch_tolerance", true}};

static const struct key *find_key(const char *name)
{
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (!strcmp(keys[i].key, name)) return &keys[i];
    return NULL;
}

/* Sets the host speed to that of the machine on which the recording was made. */
static enum plim_status use_recorded_speed(const struct plim_request_setting *setting,
                                           const struct plim_recording *recording,
                                           struct plim_spec *spec, struct plim_error *err)
{
    char text[32];
    struct plim_request_setting recorded = *setting;
    if (recording->host_speed <= 0)
        return plim_fail(err, PLIM_INVALID, "%s recorded: the recording does not say it, expected a number",
                         setting->option);
    snprintf(text, sizeof(text), "%.3g", recording->host_speed);
    recorded.value = text;
    return plim_common_setting(&recorded, spec, err);
}

static enum plim_status apply_key(const struct plim_request_setting *setting,
                                  const struct plim_recording *recording, struct plim_spec *spec,
                                  struct plim_error *err)
{
    const struct key *key = find_key(setting->key);
    if (!key) return PLIM_OK;
    if (key->accumulates && !recording->accumulates)
        return plim_fail(err, PLIM_INVALID,
                         "%s: the recording has the micro-steps of its command, expected one that "
                         "was made with {accumulation} in it",
                         setting->option);
    if (!strcmp(key->key, "train.host_speed") && !strcmp(setting->value, "recorded"))
        return use_recorded_speed(setting, recording, spec, err);
    return plim_common_setting(setting, spec, err);
}

static enum plim_status check(const struct plim_request *request,
                              const struct plim_recording *recording, struct plim_error *err)
{
    if (recording->allocator == PLIM_RECORDED_UNKNOWN)
        return plim_fail(err, PLIM_SPEC,
                         "%s: the program takes other memory than PyTorch's allocator does when it is played the "
                         "recording (CUDA graphs have memory of their own, so have other allocators): plimsoll exec "
                         "runs the program itself (%s)",
                         request->subject, recording->proof);
    return PLIM_OK;
}

static enum plim_status choose_axes(const struct plim_request *request,
                                    struct plim_spec_question *question, struct plim_error *err)
{
    enum plim_status st = PLIM_OK;
    for (size_t i = 0; i < request->setting_count && !st; i++) {
        const struct plim_request_setting *setting = &request->settings[i];
        const char *dot = strrchr(setting->key, '.');
        if (find_key(setting->key)) continue;
        st = plim_recording_question_choose(question, setting->option,
                                            dot ? dot + 1 : setting->key, setting->value, err);
    }
    for (size_t i = 0; i < request->program.axes.count && !st; i++) {
        const char *text = request->program.axes.items[i];
        char name[32];
        size_t length = strcspn(text, "=");
        snprintf(name, sizeof(name), "%.*s", (int)length, text);
        st = plim_recording_question_choose(question, "--axis", name, text + length + 1, err);
    }
    return st;
}

/* Returns the framework of a recording, such as "torch 2.11.0"; NULL if not known. */
static const char *framework_of(const struct plim_recording *r)
{
    for (size_t i = 0; i < r->made_with.count; i++)
        if (!strncmp(r->made_with.items[i], "torch ", 6) || !strncmp(r->made_with.items[i], "jax ", 4))
            return r->made_with.items[i];
    return NULL;
}

/* Appends a note to the defaults, after "; "; truncated if there is no room. */
PLIM_PRINTF(2, 3)
static void add_note(struct plim_spec_question *question, const char *format, ...)
{
    size_t used = strlen(question->defaults), size = sizeof(question->defaults);
    va_list arguments;
    if (used) used += (size_t)snprintf(question->defaults + used, size - used, "; ");
    if (used >= size) return;
    va_start(arguments, format);
    vsnprintf(question->defaults + used, size - used, format, arguments);
    va_end(arguments);
}

static void note_host_work(const struct plim_recording *r, struct plim_spec_question *question)
{
    const struct plim_recorded_stream *stream = &r->streams.items[0];
    const struct plim_recorded_point point = {
        r->each_batch ? stream->from.batch : r->batches.items[r->batches.count - 1],
        r->seqs.count ? r->seqs.items[r->seqs.count - 1] : 1};
    double seconds = plim_recorded_host_work(stream, point);
    if (seconds <= 0) return;
    add_note(question,
             "at batch %lld the program keeps the host busy for %.2g ms of a micro-step besides "
             "launching (it makes its data, say)",
             (long long)point.batch, 1e3 * seconds);
}

/* True if all batches are powers of two, so that the recording does not show whether the program rounds its batch up to
 * one. */
static bool has_powers_of_two_alone(const struct plim_recording *r)
{
    bool is_all = r->batches.count > 1 && !r->each_batch;
    for (size_t i = 0; i < r->batches.count; i++) is_all &= !(r->batches.items[i] & (r->batches.items[i] - 1));
    return is_all;
}

static void note(const struct plim_recording *r, struct plim_spec_question *question)
{
    size_t tables = 0, events = 0;
    const char *framework = framework_of(r);
    for (size_t i = 0; i < r->streams.count; i++) {
        tables += plim_recorded_stream_tables(&r->streams.items[i]);
        events += r->streams.items[i].events.count;
    }
    question->defaults[0] = '\0';
    add_note(question,
             "a recording of compute capability %d.%d%s%.40s: other GPUs may get other kernels",
             r->compute_capability / 10, r->compute_capability % 10, framework ? ", " : "",
             framework ? framework : "");
    if (r->is_compiled)
        add_note(question, "torch.compile made its kernels, and makes others, which take other memory, at other sizes");
    if (r->each_batch) add_note(question, "it holds at the recorded batches alone");
    if (has_powers_of_two_alone(r))
        add_note(question, "only batches that are powers of two were recorded: a program that rounds its batch up to "
                           "one needs more between them");
    if (r->combinations.count)
        add_note(question, "of %zu combinations of its axes %zu are recorded, others are left out",
                 plim_recording_combinations(r), r->combinations.count);
    if (tables)
        add_note(question, "%zu of %zu events have sizes that are known at recorded batches alone",
                 tables, events);
    note_host_work(r, question);
    if (question->question.batch.world > 1)
        add_note(question, "each GPU does and holds what the recorded one did, and no more for NCCL or buckets of DDP");
}

static enum plim_status read_recording(const struct plim_request *request,
                                       const struct plim_log *log, const struct plim_stop *stop,
                                       struct plim_asked_question *out, struct plim_error *err)
{
    struct plim_recording *recording = &out->recording;
    enum plim_status st = plim_recording_read(request->subject, recording, err);
    if (!st) st = check(request, recording, err);
    if (st) return st;
    snprintf(out->spec.name, sizeof(out->spec.name), "%s", recording->name);
    snprintf(out->spec.source, sizeof(out->spec.source), "%s", request->subject);
    out->spec.hash = recording->hash;
    out->spec.world = 1;
    for (size_t i = 0; i < request->setting_count && !st; i++)
        st = apply_key(&request->settings[i], recording, &out->spec, err);
    if (!st) st = plim_host_speed_set(request, log, stop, &out->spec, err);
    if (!st && out->spec.seq.count && !recording->seqs.count)
        st = plim_fail(err, PLIM_INVALID, "--seq: %s was recorded without a sequence length",
                       request->subject);
    if (st) return st;
    plim_recording_question_make(recording, &out->spec, request->objective, &out->question);
    st = choose_axes(request, &out->question, err);
    if (!st) st = plim_recording_question_check(&out->question, err);
    note(recording, &out->question);
    return st;
}

enum plim_status plim_asked_question_read(const struct plim_request *request,
                                          const struct plim_log *log, const struct plim_stop *stop,
                                          struct plim_asked_question *out, struct plim_error *err)
{
    enum plim_status st;
    if (request->subject && plim_recording_is(request->subject)) {
        st = read_recording(request, log, stop, out, err);
        return st ? st : plim_common_waterfall(request, &out->question.question, err);
    }
    if (request->program.axes.count)
        return plim_fail(err, PLIM_INVALID, "--axis is for recordings and programs");
    st = plim_common_spec(request, log, &out->spec, err);
    if (!st) st = plim_host_speed_set(request, log, stop, &out->spec, err);
    if (st) return st;
    plim_spec_question_make(&out->spec, request->objective, &out->question);
    return plim_common_waterfall(request, &out->question.question, err);
}

void plim_asked_question_finish(struct plim_asked_question *asked)
{
    plim_recording_finish(&asked->recording);
}
