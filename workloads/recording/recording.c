#include "recording.h"
#include "autotune/base/xz.h"
#include "autotune/base/text.h"
#include "autotune/base/textfile.h"

const char *const plim_recorded_scratch_names[PLIM_RECORDED_SCRATCHES] = {"", "partials",
                                                                          "semaphores"};
const char *const plim_recorded_allocator_names[PLIM_RECORDED_ALLOCATORS] = {
    [PLIM_RECORDED_PYTORCH] = "pytorch",
    [PLIM_RECORDED_DIRECT] = "direct",
    [PLIM_RECORDED_UNKNOWN] = "unknown",
};

void plim_recorded_stream_finish(struct plim_recorded_stream *stream)
{
    if (!stream) return;
    for (size_t i = 0; i < stream->sizes.count; i++) free(stream->sizes.items[i].entries);
    PLIM_ARRAY_FINISH(&stream->sizes);
    PLIM_ARRAY_FINISH(&stream->loops);
    PLIM_ARRAY_FINISH(&stream->launches);
    PLIM_ARRAY_FINISH(&stream->launched);
    PLIM_ARRAY_FINISH(&stream->works);
    PLIM_ARRAY_FINISH(&stream->events);
}

enum plim_status plim_recorded_texts_add(struct plim_recorded_texts *texts, const char *text)
{
    char *copy = strdup(text);
    if (copy && PLIM_ARRAY_PUSH(texts, copy) == PLIM_OK) return PLIM_OK;
    free(copy);
    return PLIM_NOMEM;
}

size_t plim_recorded_texts_find(const struct plim_recorded_texts *texts, const char *text)
{
    size_t i = 0;
    while (i < texts->count && strcmp(texts->items[i], text)) i++;
    return i;
}

enum plim_status plim_recorded_texts_add_once(struct plim_recorded_texts *texts, const char *text,
                                              size_t most)
{
    bool is_new = plim_recorded_texts_find(texts, text) == texts->count;
    return is_new && texts->count < most ? plim_recorded_texts_add(texts, text) : PLIM_OK;
}

static void finish_texts(struct plim_recorded_texts *texts)
{
    for (size_t i = 0; i < texts->count; i++) free(texts->items[i]);
    PLIM_ARRAY_FINISH(texts);
}

void plim_recording_finish(struct plim_recording *recording)
{
    if (!recording) return;
    finish_texts(&recording->command);
    finish_texts(&recording->made_with);
    finish_texts(&recording->doubts);
    PLIM_ARRAY_FINISH(&recording->batches);
    PLIM_ARRAY_FINISH(&recording->seqs);
    for (size_t i = 0; i < recording->axis_count; i++) finish_texts(&recording->axes[i].values);
    for (size_t i = 0; i < recording->streams.count; i++)
        plim_recorded_stream_finish(&recording->streams.items[i]);
    PLIM_ARRAY_FINISH(&recording->streams);
    PLIM_ARRAY_FINISH(&recording->combinations);
}

/* Returns the index of a combination among those that are recorded, or their number if it is not. */
static size_t place_of_combination(const struct plim_recording *recording, size_t combination)
{
    size_t i = 0, count = plim_recording_recorded(recording);
    if (!recording->combinations.count) return combination < count ? combination : count;
    while (i < count && recording->combinations.items[i] != combination) i++;
    return i;
}

size_t plim_recording_recorded(const struct plim_recording *recording)
{
    return recording->combinations.count ? recording->combinations.count
                                         : plim_recording_combinations(recording);
}

bool plim_recording_has(const struct plim_recording *recording, size_t combination)
{
    return place_of_combination(recording, combination) < plim_recording_recorded(recording);
}

/* Returns the index of a batch among those that have streams of their own, or their number. */
static size_t place_of(const struct plim_recording *recording, int64_t batch)
{
    size_t i = 0;
    while (i < recording->batches.count && recording->batches.items[i] != batch) i++;
    return i;
}

bool plim_recording_has_batch(const struct plim_recording *recording, int64_t batch)
{
    return !recording->each_batch || place_of(recording, batch) < recording->batches.count;
}

size_t plim_recording_streams_each(const struct plim_recording *recording)
{
    return (recording->each_batch ? recording->batches.count : 1) * (recording->accumulates ? 2 : 1);
}

const struct plim_recorded_stream *plim_recording_stream(const struct plim_recording *recording,
                                                         size_t combination, int64_t batch,
                                                         int64_t accumulation)
{
    if (!plim_recording_has(recording, combination) || !plim_recording_has_batch(recording, batch))
        return NULL;
    size_t index = place_of_combination(recording, combination) * plim_recording_streams_each(recording);
    if (recording->each_batch)
        index += place_of(recording, batch) * (recording->accumulates ? 2 : 1);
    return &recording->streams.items[index + (recording->accumulates && accumulation > 1)];
}

size_t plim_recording_combinations(const struct plim_recording *recording)
{
    size_t count = 1;
    for (size_t i = 0; i < recording->axis_count; i++) {
        count *= recording->axes[i].values.count;
        if (!count || count > PLIM_RECORDED_COMBINATIONS) return 0;
    }
    return count;
}

size_t plim_recording_combination(const struct plim_recording *recording,
                                  const size_t values[PLIM_RECORDED_AXES])
{
    size_t number = 0;
    for (size_t i = 0; i < recording->axis_count; i++)
        number = number * recording->axes[i].values.count + values[i];
    return number;
}

void plim_recording_values(const struct plim_recording *recording, size_t combination,
                           size_t values[PLIM_RECORDED_AXES])
{
    for (size_t i = recording->axis_count; i-- > 0;) {
        values[i] = combination % recording->axes[i].values.count;
        combination /= recording->axes[i].values.count;
    }
}

double plim_recorded_host_work(const struct plim_recorded_stream *stream,
                               struct plim_recorded_point point)
{
    double times = (double)point.batch * (double)point.seq;
    return 1e-9 * ((double)stream->host_work[0] + (double)stream->host_work[1] * times);
}

bool plim_recording_is_timed(const struct plim_recording *recording)
{
    for (size_t i = 0; i < recording->streams.count; i++)
        if (!recording->streams.items[i].works.count) return false;
    return recording->streams.count > 0;
}

size_t plim_recorded_stream_launches(const struct plim_recorded_stream *stream)
{
    size_t count = 0;
    for (size_t i = stream->before; i < stream->events.count; i++) {
        uint32_t work = stream->events.items[i].work;
        if (work) count += stream->works.items[work - 1].count;
    }
    return count;
}

size_t plim_recorded_stream_tables(const struct plim_recorded_stream *stream)
{
    size_t count = 0;
    for (size_t i = 0; i < stream->events.count; i++) {
        const struct plim_recorded_event *event = &stream->events.items[i];
        count += !event->frees && stream->sizes.items[event->value].is_table;
    }
    return count;
}

bool plim_recording_is_name(const char *path)
{
    return plim_text_ends_with(path, ".plim") && strcmp(path, ".plim") != 0;
}

bool plim_recording_is(const char *path)
{
    const char key[] = "plimsoll_recording:";
    char begin[sizeof(key) - 1];
    if (plim_recording_is_name(path)) return true;
    size_t count = plim_textfile_begin(path, begin, sizeof(begin));
    return plim_xz_is(begin, count) || (count == sizeof(begin) && !memcmp(begin, key, count));
}
