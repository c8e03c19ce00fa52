/* The questions that a recording can answer: its axes, and the range in which it is valid. */
#include "autotune/run/recording_question.h"
#include "autotune/search/space.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

static char *types[] = {"fp32", "bf16"}, *frozen[] = {"no", "yes", "half"};
static int64_t seqs[] = {512, 1024};
static struct plim_recorded_stream streams[6];
static struct plim_recording recording;
static struct plim_spec spec;
static struct plim_spec_question question;

/* Two axes, of which the last runs fastest, and sequence lengths or none. */
static void set_up(void)
{
    recording = (struct plim_recording){
        .axis_count = 2, .axes = {{"precision", {types, 2, 2}}, {"frozen", {frozen, 3, 3}}}};
    for (int i = 0; i < 6; i++) streams[i].from = (struct plim_recorded_point){1, 1};
    recording.streams.items = streams;
    recording.streams.count = 6;
}

TestSuite(recording_question, .init = set_up);

static void ask(size_t seq_count)
{
    recording.seqs.items = seqs;
    recording.seqs.count = seq_count;
    plim_recording_question_make(&recording, &spec, PLIM_OBJECTIVE_THROUGHPUT, &question);
}

Test(recording_question, the_axes_are_the_recordings)
{
    ask(2);
    const struct plim_axes *axes = &question.question.axes;
    cr_expect(eq(sz, axes->count, 3));
    cr_expect(eq(int, axes->seq, 0));
    cr_expect(eq(i64, axes->axis[0].values[1], 1024));
    cr_expect(eq(str, (char *)axes->axis[0].unit, (char *)"tokens"));
    cr_expect(eq(str, (char *)axes->axis[2].name, (char *)"frozen"));
    cr_expect(eq(sz, axes->axis[2].count, 3));
    cr_expect(axes->axis[2].is_users);
    cr_expect(eq(i64, axes->axis[2].values[2], 2));
    cr_expect(eq(int, question.question.objective, PLIM_OBJECTIVE_LARGEST_BATCH));
    cr_expect(eq(i64, question.question.batch.accumulation, 1));
    ask(0);
    cr_expect(eq(sz, axes->count, 2));
    cr_expect(eq(int, axes->seq, -1));
}

Test(recording_question, without_launches_the_largest_batch_wins)
{
    static struct plim_recorded_work work = {0, 1};
    for (int timed = 0; timed < 2; timed++) {
        for (size_t i = 0; i < recording.streams.count; i++) {
            streams[i].works.items = &work;
            streams[i].works.count = (size_t)timed;
        }
        ask(0);
        cr_expect(eq(int, question.question.objective,
                     timed ? PLIM_OBJECTIVE_THROUGHPUT : PLIM_OBJECTIVE_LARGEST_BATCH));
    }
    streams[0].works.count = 0; /* one that has none is enough */
    ask(0);
    cr_expect(eq(int, question.question.objective, PLIM_OBJECTIVE_LARGEST_BATCH));
}

Test(recording_question, it_begins_where_every_stream_holds)
{
    ask(0);
    cr_expect(eq(i64, question.question.batch.first, 1));
    streams[2].from.batch = 4;
    streams[5].from.batch = 3;
    ask(0);
    cr_expect(eq(i64, question.question.batch.first, 4));
}

/* If each batch has streams of its own, only the recorded batches may be run or requested. */
Test(recording_question, of_batches_of_their_own_only_the_recorded_may_be_asked_for)
{
    static int64_t batches[] = {2, 3, 6};
    static const struct {
        int64_t asked[2];
        const char *wrong;
    } cases[] = {{{3, 6}, ""}, {{6, 2}, ""}, {{3, 4}, "--batch 4: "}, {{1, 2}, "2, 3, 6; exec"}};
    recording.each_batch = true;
    recording.batches.items = batches;
    recording.batches.count = 3;
    recording.axis_count = 1;
    ask(0);
    const struct plim_batch_request *batch = &question.question.batch;
    cr_expect(batch->only_listed);
    cr_expect(eq(i64, batch->first, 2));
    cr_expect(eq(sz, batch->listed_count, 3));
    struct plim_error none = PLIM_ERROR_INIT;
    cr_expect(eq(int, plim_recording_question_check(&question, &none), PLIM_OK), "%s", none.text);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct plim_error err = PLIM_ERROR_INIT;
        memcpy(spec.micro_batch.values, cases[i].asked, sizeof(cases[i].asked));
        spec.micro_batch.count = 2;
        ask(0);
        enum plim_status st = plim_recording_question_check(&question, &err);
        cr_expect(eq(int, st, cases[i].wrong[0] ? PLIM_INVALID : PLIM_OK), "%zu", i);
        cr_expect(strstr(err.text, cases[i].wrong) != NULL, "%zu: %s", i, err.text);
    }
    const struct plim_recorded_stream *stream;
    struct plim_recorded_point point;
    struct plim_setting setting = {.micro_batch = 3, .value = {1}};
    plim_recording_question_setting(&question, &setting, &stream, &point);
    cr_expect(stream == &streams[4], "three of the first value, then the second's");
    setting.micro_batch = 4;
    plim_recording_question_setting(&question, &setting, &stream, &point);
    cr_expect(stream == NULL);
}

static void expect_choice(size_t seq_count, const char *name, const char *list, const char *wrong)
{
    struct plim_error err = PLIM_ERROR_INIT;
    ask(seq_count);
    enum plim_status st = plim_recording_question_choose(&question, "--axis", name, list, &err);
    cr_expect(eq(int, st, wrong ? PLIM_INVALID : PLIM_OK), "%s", list);
    cr_expect(strstr(err.text, wrong ? wrong : "") != NULL, "%s", err.text);
}

Test(recording_question, of_an_axis_some_may_be_chosen)
{
    expect_choice(0, "precision", "bf16", NULL); /* the first axis of all */
    cr_expect(eq(sz, question.question.axes.axis[0].count, 1));
    cr_expect(eq(i64, question.question.axes.axis[0].values[0], 1));
    expect_choice(2, "frozen", "half,no", NULL);
    cr_expect(eq(sz, question.question.axes.axis[2].count, 2));
    cr_expect(eq(i64, question.question.axes.axis[2].values[0], 2));
    cr_expect(eq(i64, question.question.axes.axis[2].values[1], 0));
    expect_choice(2, "frozen", "no,yes,half", NULL);
}

Test(recording_question, what_is_not_recorded_is_refused)
{
    expect_choice(2, "depth", "3", "no such axis");
    expect_choice(2, "seq", "512", "no such axis");
    expect_choice(2, "precision", "fp16", "the recording has no precision fp16");
    expect_choice(2, "precision", "bf1", "the recording has no precision bf1");
    expect_choice(2, "precision", "", "the recording has no precision");
    expect_choice(2, "precision", "bf16,fp32,bf16", "bf16 twice");
}

Test(recording_question, a_setting_finds_its_stream)
{
    const struct plim_recorded_stream *stream;
    struct plim_recorded_point point;
    struct plim_setting setting = {.micro_batch = 7, .value = {1024, 1, 2}};
    ask(2);
    plim_recording_question_setting(&question, &setting, &stream, &point);
    cr_expect(eq(sz, (size_t)(stream - streams), 5));
    cr_expect(eq(i64, point.batch, 7));
    cr_expect(eq(i64, point.seq, 1024));
    setting = (struct plim_setting){.micro_batch = 2, .value = {1, 0}};
    ask(0);
    plim_recording_question_setting(&question, &setting, &stream, &point);
    cr_expect(eq(sz, (size_t)(stream - streams), 3));
    cr_expect(eq(i64, point.seq, 1));
}

Test(recording_question, what_is_not_recorded_is_no_point_of_the_search)
{
    size_t some[] = {1, 3}; /* fp32 yes, bf16 no */
    struct plim_space space = {0};
    struct plim_error err = PLIM_ERROR_INIT;
    recording.combinations.items = some;
    recording.combinations.count = 2;
    ask(2);
    const struct plim_axes *axes = &question.question.axes;
    cr_assert(eq(int, plim_space_build(&space, axes, NULL, 0, &err), PLIM_OK), "%s", err.text);
    cr_expect(eq(sz, space.points.count, 4)); /* of 12: two lengths each */
    struct plim_setting first = plim_space_first(axes);
    cr_expect(eq(i64, first.value[1], 0));
    cr_expect(eq(i64, first.value[2], 1));
    cr_expect(eq(int, plim_recording_question_check(&question, &err), PLIM_OK), "%s", err.text);
    cr_assert(eq(int, plim_recording_question_choose(&question, "--axis", "frozen", "half", &err), PLIM_OK));
    cr_expect(eq(int, plim_recording_question_check(&question, &err), PLIM_INVALID));
    cr_expect(strstr(err.text, "these are: fp32 yes; bf16 no") != NULL, "%s", err.text);
    plim_space_finish(&space);
}
