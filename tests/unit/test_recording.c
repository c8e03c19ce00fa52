/* Recordings: files that may be anything, playing. What makes them is in test_recording_join.c. */
#include "autotune/base/sha256.h"
#include "devices/open.h"
#include "workloads/recording/recording.h"
#include "workloads/recording/play.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MIB = 1 << 20 };

/* --- files ------------------------------------------------------------------------------------ */

static const char head[] = "plimsoll_recording: 1\nname: \"t\"\ncommand: [\"t\", \"{batch}\"]\n"
                           "made_by: \"plimsoll\"\ncompute_capability: 80\nallocator: pytorch\n"
                           "proof: \"\"\nbatch: [1, 2, 4]\nseq: []\n";
static const char streams[] =
    "axes: {}\nstreams:\n- from_batch: 1\n  from_seq: 1\n  sizes:\n"
    "  - \"1048576*b\"\n  - \"table 1,1=512 2,1=512 4,1=1024\"\n  - \"stream 255: 8*b\"\n"
    "  before:\n  - \"a0\"\n  - \"3(a1)\"\n  step:\n  - \"a0 a1 f1 f2 a2 f1 f0\"\n";

/* From a file. */
static enum plim_status read_text(const char *text, size_t length, struct plim_recording *out,
                                  struct plim_error *err)
{
    char path[] = "/tmp/test_recording_XXXXXX";
    int fd = mkstemp(path);
    cr_assert(fd >= 0 && write(fd, text, length) == (ssize_t)length);
    close(fd);
    *out = (struct plim_recording){0};
    enum plim_status st = plim_recording_read(path, out, err);
    unlink(path);
    return st;
}

/* Both, followed by the right checksum. */
static char *with_sum(const char *a, const char *b)
{
    size_t size = strlen(a) + strlen(b) + 128;
    char *text = malloc(size), sum[PLIM_SHA256_TEXT];
    snprintf(text, size, "%s%s", a, b);
    plim_sha256_text(text, strlen(text), sum);
    size_t length = strlen(text);
    snprintf(text + length, size - length, "checksum: %s\n", sum);
    return text;
}

Test(recording_file, is_read_and_written_byte_for_byte)
{
    struct plim_recording recording;
    struct plim_error err = PLIM_ERROR_INIT;
    char *text = with_sum(head, streams), *again = NULL;
    cr_assert(eq(int, read_text(text, strlen(text), &recording, &err), PLIM_OK), "%s", err.text);
    cr_expect(eq(sz, recording.streams.items[0].events.count, 11));
    cr_assert(eq(int, plim_recording_write(&recording, &again, &err), PLIM_OK), "%s", err.text);
    struct plim_recording other;
    cr_assert(eq(int, read_text(again, strlen(again), &other, &err), PLIM_OK), "%s", err.text);
    cr_expect(eq(sz, other.streams.items[0].events.count, 11));
    const struct plim_recorded_point three = {3, 1};
    const struct plim_recorded_size *sizes = other.streams.items[0].sizes.items;
    cr_expect(eq(i64, plim_recorded_size_at(&sizes[0], three, NULL), 3 * MIB));
    cr_expect(eq(i64, plim_recorded_size_at(&sizes[2], three, NULL), 24));
    cr_expect(eq(int, sizes[0].cuda_stream, 0));
    cr_expect(eq(int, sizes[2].cuda_stream, 255));
    plim_recording_finish(&recording);
    plim_recording_finish(&other);
    free(text);
    free(again);
}

static void expect_size(const char *size, bool is_good)
{
    struct plim_recording recording;
    struct plim_error err = PLIM_ERROR_INIT;
    char more[256], *again = NULL;
    snprintf(more, sizeof(more),
             "axes: {}\nstreams:\n- from_batch: 1\n  from_seq: 1\n  sizes:\n  - \"%s\"\n  before:\n  - \"a0\"\n  "
             "step:\n  - \"a0 f1\"\n",
             size);
    char *text = with_sum(head, more);
    enum plim_status st = read_text(text, strlen(text), &recording, &err);
    cr_expect(eq(int, st, is_good ? PLIM_OK : PLIM_SPEC), "%s: %s", size, err.text);
    if (!st && plim_recording_write(&recording, &again, &err) == PLIM_OK)
        cr_expect(strstr(again, size) != NULL, "%s is written as\n%s", size, again);
    plim_recording_finish(&recording);
    free(text);
    free(again);
}

Test(recording_file, has_sizes_by_rule)
{
    static const char *const good[] = {"partials 4,4 768 of 1*b*s", "semaphores 8,1 row 16*b of 4096",
                                       "stream 3: partials 32,2 1*s of 1*b+7",
                                       "partials 255,1 1152921504606846976 of 1152921504606846976"},
                      *const bad[] = {"partials 4,3 768 of 1*b", "partials 0,1 768 of 1*b", "partials 256,1 768 of 1*b",
                                      "partials 4,1 768", "partials 4,1 768 of 1*b@256", "partials 4,1 of 1*b",
                                      "partials 4,1 0 of 1*b", "partials 4,1 768 of 0*b", "partial 4,1 768 of 1*b",
                                      "partials 4,1 768 of 1*b-100", "partials4,1 768 of 1*b"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) expect_size(good[i], true);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) expect_size(bad[i], false);
}

static void expect_combinations(const char *list, const char *why)
{
    struct plim_recording recording;
    struct plim_error err = PLIM_ERROR_INIT;
    char more[1024];
    snprintf(more, sizeof(more), "axes: {a: [x, y, z]}\ncombinations: %s\n%s", list,
             strchr(streams, '\n') + 1);
    char *text = with_sum(head, more);
    enum plim_status st = read_text(text, strlen(text), &recording, &err);
    cr_expect(eq(int, st, why ? PLIM_SPEC : PLIM_OK), "%s", list);
    if (why) cr_expect(strstr(err.text, why) != NULL, "%s: %s", list, err.text);
    plim_recording_finish(&recording);
    free(text);
}

Test(recording_file, may_have_some_combinations_of_its_axes_alone)
{
    expect_combinations("[0]", NULL);
    expect_combinations("[2]", NULL);
    expect_combinations("[3]", "below the 3 of the axes");
    expect_combinations("[-1]", "ascend");
    expect_combinations("[1, 1]", "ascend");
    expect_combinations("[]", "at least one");
    expect_combinations("[0, 1]", "expected a stream for each combination");
    expect_combinations("2", "combinations");
}

/* A recording with this line more, which it is written with again. */
static struct plim_recording read_kept(const char *line)
{
    struct plim_recording recording;
    struct plim_error err = PLIM_ERROR_INIT;
    char more[1024], kept[256], *again = NULL;
    snprintf(more, sizeof(more), "%s\n%s", line, streams);
    snprintf(kept, sizeof(kept), "\n%s\n", line);
    char *text = with_sum(head, more);
    cr_assert(eq(int, read_text(text, strlen(text), &recording, &err), PLIM_OK), "%s", err.text);
    cr_assert(eq(int, plim_recording_write(&recording, &again, &err), PLIM_OK), "%s", err.text);
    cr_expect(strstr(again, kept) != NULL, "%s", again);
    free(text);
    free(again);
    return recording;
}

Test(recording_file, says_what_it_was_made_with)
{
    struct plim_recording recording =
        read_kept("made_with: [\"torch 2.11.0\", \"a b.py sha256 01\"]");
    struct plim_error err = PLIM_ERROR_INIT;
    char more[1024];
    cr_expect(eq(sz, recording.made_with.count, 2));
    cr_expect(eq(str, recording.made_with.items[1], (char *)"a b.py sha256 01"));
    plim_recording_finish(&recording);
    snprintf(more, sizeof(more), "made_with: torch\n%s", streams);
    char *text = with_sum(head, more);
    cr_expect(eq(int, read_text(text, strlen(text), &recording, &err), PLIM_SPEC));
    plim_recording_finish(&recording);
    free(text);
}

Test(recording_file, says_what_decided_it)
{
    struct plim_recording recording = read_kept("doubts: [\"a.py:6 decides\", \"a.py:9 decides\"]");
    cr_expect(eq(sz, recording.doubts.count, 2));
    plim_recording_finish(&recording);
}

Test(recording_file, says_how_fast_its_host_launched)
{
    static const char *const wrong[] = {"0", "-1", "1e7", "fast", "nan"};
    struct plim_recording recording;
    struct plim_error err = PLIM_ERROR_INIT;
    char more[1024], *again = NULL;
    snprintf(more, sizeof(more), "host_speed: 1.44\n%s", streams);
    char *text = with_sum(head, more);
    cr_assert(eq(int, read_text(text, strlen(text), &recording, &err), PLIM_OK), "%s", err.text);
    cr_expect(eq(dbl, recording.host_speed, 1.44));
    cr_assert(eq(int, plim_recording_write(&recording, &again, &err), PLIM_OK), "%s", err.text);
    cr_expect(strstr(again, "\nhost_speed: 1.44\n") != NULL);
    plim_recording_finish(&recording);
    free(text);
    free(again);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        snprintf(more, sizeof(more), "host_speed: %s\n%s", wrong[i], streams);
        text = with_sum(head, more);
        cr_expect(eq(int, read_text(text, strlen(text), &recording, &err), PLIM_SPEC), "%s", wrong[i]);
        plim_recording_finish(&recording);
        free(text);
    }
}

Test(recording_file, one_that_was_cut_or_changed_anywhere_is_refused)
{
    struct plim_recording recording;
    char *text = with_sum(head, streams);
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i += 7) {
        struct plim_error err = PLIM_ERROR_INIT;
        cr_expect(eq(int, read_text(text, i, &recording, &err), PLIM_SPEC), "%zu", i);
        cr_expect(err.text[0] && !strchr(err.text, '\n'));
        plim_recording_finish(&recording);
        char byte = text[i];
        text[i] = byte == '7' ? '8' : '7';
        struct plim_error changed = PLIM_ERROR_INIT;
        cr_expect(eq(int, read_text(text, length, &recording, &changed), PLIM_SPEC), "%zu", i);
        plim_recording_finish(&recording);
        text[i] = byte;
    }
    free(text);
}

#define STREAM(sizes, before, step)                                                                \
    "axes: {}\nstreams:\n- from_batch: 1\n  from_seq: 1\n  sizes: [" sizes "]\n  before: [" before \
    "]\n  step: [" step "]\n"

/* Files with a good checksum, each refused in one line about something else. */
static void expect_refused(const char *const *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct plim_recording recording;
        struct plim_error err = PLIM_ERROR_INIT;
        char *text = with_sum(head, cases[i]);
        cr_expect(eq(int, read_text(text, strlen(text), &recording, &err), PLIM_SPEC), "%zu", i);
        cr_expect(err.text[0] && !strchr(err.text, '\n') && !strstr(err.text, "checksum"), "%zu: %s",
                  i, err.text);
        plim_recording_finish(&recording);
        free(text);
    }
}

Test(recording_file, what_is_hostile_is_refused_in_one_line)
{
    static const char *const cases[] = {
        STREAM("\"9223372036854775808\"", "a0", "a0 f1"),          /* 2^63 */
        STREAM("\"1152921504606846976*b\"", "a0", "a0 f1"),        /* too large at batch 2 */
        STREAM("\"-8*b\"", "a0", "a0 f1"),
        STREAM("\"8*b*b*s\"", "a0", "a0 f1"),
        STREAM("\"8*s@\"", "a0", "a0 f1"),
        STREAM("\"8*s@0\"", "a0", "a0 f1"),
        STREAM("\"8*s@8192\"", "a0", "a0 f1"),
        STREAM("\"8*s@256@256\"", "a0", "a0 f1"),
        STREAM("\"table\"", "a0", "a0 f1"),
        STREAM("\"stream 0: 8\"", "a0", "a0 f1"),
        STREAM("\"stream 256: 8\"", "a0", "a0 f1"),
        STREAM("\"stream 1:8\"", "a0", "a0 f1"),
        STREAM("\"stream 1: \"", "a0", "a0 f1"),
        STREAM("\"stream 1: stream 2: 8\"", "a0", "a0 f1"),
        STREAM("\"8\"", "1000000000(a0)", "a0 f1"),                /* 10^9 events */
        STREAM("\"8\"", "4000000(a0), 4000000(f1)", "a0 f1"),
        STREAM("\"8\"", "\"3(3(a0))\"", "a0 f1"),                  /* nested */
        STREAM("\"8\"", "a1", "a0 f1"),                            /* no such size */
        STREAM("\"8\"", "a0", "f3 a0"),                            /* before the first */
        STREAM("\"8\"", "a0", "a0 f1 f1 a0"),                      /* twice */
        STREAM("\"8\"", "a0", "f1 a0 a0 f2 f1 a0 f4"),
        STREAM("\"8\"", "a0", "a0"),                               /* grows for ever */
        STREAM("\"8\"", "a0", "f-1"),
        STREAM("\"8\"", "a-1", "a0 f1"),
        STREAM("\"8\"", "a99999999999999999999", "a0 f1"),
        "axes: {x: [a, b]}\nstreams: []\n",                        /* streams are missing */
        "axes: &a {x: *a}\nstreams: []\n",                         /* a cycle */
        STREAM("\"8\"", "a0", "a0 f1") "more: 1\n",
        "axes: {}\n",
    };
    expect_refused(cases, sizeof(cases) / sizeof(cases[0]));
}

Test(recording_file, a_newer_one_is_told_from_a_damaged_one)
{
    struct plim_recording recording;
    struct plim_error err = PLIM_ERROR_INIT;
    char *text = with_sum("plimsoll_recording: 99\nunheard: of\n", "");
    cr_expect(eq(int, read_text(text, strlen(text), &recording, &err), PLIM_SPEC));
    cr_expect(strstr(err.text, "version 99") != NULL, "%s", err.text);
    plim_recording_finish(&recording);
    free(text);
}

/* Two batches, each with streams of its own: of one micro-step and of several. */
#define OF_BATCH(batch, sizes, step)                                                               \
    "- from_batch: " #batch "\n  from_seq: 1\n  sizes: [" sizes "]\n  before: [a0]\n  step: [" step "]\n"
#define EACH "axes: {}\nmicro_steps: any\nbatches: each\nstreams:\n"
#define OF_ONE OF_BATCH(1, "8, 16", "a1 f1") OF_BATCH(1, "8, 17", "a1 f1")
#define OF_TWO OF_BATCH(2, "8, 18", "a1 a1 f1 f2") OF_BATCH(2, "8, 19", "a1 a1 f1 f2")
#define OF_FOUR OF_BATCH(4, "8, 20*s@256", "a1 a1 a1 a1 f4 f3 f2 f1") OF_BATCH(4, "8, 21", "a1 a1 a1 a1 f4 f3 f2 f1")

Test(recording_file, a_batch_may_have_streams_of_its_own)
{
    struct plim_recording recording, other;
    struct plim_error err = PLIM_ERROR_INIT;
    static const int64_t batches[] = {1, 2, 4};
    static const char streams_each[] = EACH OF_ONE OF_TWO OF_FOUR;
    char *text = with_sum(head, streams_each), *again = NULL;
    cr_assert(eq(int, read_text(text, strlen(text), &recording, &err), PLIM_OK), "%s", err.text);
    cr_assert(eq(int, plim_recording_write(&recording, &again, &err), PLIM_OK), "%s", err.text);
    cr_assert(eq(int, read_text(again, strlen(again), &other, &err), PLIM_OK), "%s", err.text);
    for (size_t i = 0; i < 6; i++) {
        const struct plim_recorded_stream *stream = plim_recording_stream(&other, 0, batches[i / 2], 1 + i % 2 * 6);
        cr_assert(stream == &other.streams.items[i], "%zu", i);
        const struct plim_recorded_point chunk = {batches[i / 2], 200};
        cr_expect(eq(i64, plim_recorded_size_at(&stream->sizes.items[1], chunk, NULL), 16 + (int64_t)i), "%zu", i);
        cr_expect(eq(i64, stream->from.batch, batches[i / 2]));
    }
    cr_expect(plim_recording_stream(&other, 0, 3, 1) == NULL);
    cr_expect(plim_recording_stream(&other, 0, 5, 2) == NULL);
    plim_recording_finish(&recording);
    plim_recording_finish(&other);
    free(text);
    free(again);
}

Test(recording_file, of_each_batch_there_are_its_streams_or_it_is_refused)
{
    static const char *const cases[] = {
        EACH OF_ONE OF_FOUR,                                            /* too few */
        EACH OF_ONE OF_FOUR OF_FOUR,                                    /* another batch's */
        EACH OF_FOUR OF_FOUR OF_ONE,
        "axes: {}\nbatches: each\nstreams:\n" OF_BATCH(1, "8", "a0 f1"),
        "axes: {}\nbatches: some\nstreams:\n" OF_BATCH(1, "8", "a0 f1"),
        "axes: {}\nbatches: [1]\nstreams:\n" OF_BATCH(1, "8", "a0 f1"),
    };
    expect_refused(cases, sizeof(cases) / sizeof(cases[0]));
}

/* --- playing ---------------------------------------------------------------------------------- */

struct bench {
    struct plim_device *device;
    struct plim_player *player;
    struct plim_recording recording;
    struct plim_replay replay;
    struct plim_error err;
};

static enum plim_status play_steps(struct bench *b, const char *text, const char *uri,
                                   enum plim_recorded_allocator allocator, int64_t batch,
                                   int64_t accumulation)
{
    char *file = with_sum(head, text);
    *b = (struct bench){.err = PLIM_ERROR_INIT};
    cr_assert(eq(int, read_text(file, strlen(file), &b->recording, &b->err), PLIM_OK), "%s",
              b->err.text);
    cr_assert(eq(int, plim_device_open(uri, &b->device, &b->err), PLIM_OK));
    cr_assert(eq(int, plim_player_create(b->device, NULL, &b->player, &b->err), PLIM_OK));
    free(file);
    const struct plim_recorded_point point = {batch, 1};
    return plim_player_run(b->player, allocator,
                           plim_recording_stream(&b->recording, 0, batch, accumulation), point,
                           accumulation, &b->replay, &b->err);
}

static enum plim_status play(struct bench *b, const char *text, const char *uri,
                             enum plim_recorded_allocator allocator, int64_t batch)
{
    return play_steps(b, text, uri, allocator, batch, 1);
}

static void bench_finish(struct bench *b)
{
    plim_player_destroy(&b->player);
    plim_device_close(&b->device);
    plim_recording_finish(&b->recording);
}

/* 30 MiB that stay, and 12 * b MiB in each step. */
static const char simple[] = STREAM("\"31457280\", \"12582912*b\"", "a0", "a1 f1");

Test(recording_play, is_cut_into_segments_as_pytorch_does)
{
    struct bench b;
    cr_assert(eq(int, play(&b, simple, "sim:A100-SXM4-80GB", PLIM_RECORDED_PYTORCH, 3), PLIM_OK));
    cr_expect(eq(int, (int)b.replay.verdict, PLIM_OK));
    cr_expect(eq(i64, b.replay.peak_allocated_bytes, 66 * MIB));
    cr_expect(eq(i64, b.replay.peak_reserved_bytes, 66 * MIB));
    cr_expect(b.replay.repeats_after > 0);
    cr_expect(eq(i64, b.replay.step[3].end_allocated_bytes, 30 * MIB));
    bench_finish(&b);
}

/* Between two runs of its own a player may time what another GPU played. */
Test(recording_play, goes_on_behind_a_run_of_another_gpu)
{
    struct bench b;
    const struct plim_recorded_point point = {3, 1};
    const struct plim_recorded_stream *stream;
    cr_assert(eq(int, play(&b, simple, "sim:A100-SXM4-80GB", PLIM_RECORDED_PYTORCH, 3), PLIM_OK));
    stream = &b.recording.streams.items[0];
    cr_assert(eq(int, plim_player_retime(b.player, stream, point, 1, &b.replay, &b.err), PLIM_OK));
    cr_expect(eq(i64, b.device->segment_bytes, 0));
    cr_assert(eq(int, plim_player_run(b.player, PLIM_RECORDED_PYTORCH, stream, point, 1, &b.replay, &b.err), PLIM_OK));
    cr_expect(eq(i64, b.replay.peak_reserved_bytes, 66 * MIB));
    bench_finish(&b);
}

/* `explain --steps`. */
Test(recording_play, only_so_many_steps)
{
    struct bench b;
    cr_assert(eq(int, play(&b, simple, "sim:A100-SXM4-80GB", PLIM_RECORDED_PYTORCH, 3), PLIM_OK));
    const struct plim_recorded_point point = {3, 1};
    for (int64_t steps = 1; steps <= 300; steps += 299) {
        plim_player_only(b.player, steps);
        cr_assert(eq(int,
                     plim_player_run(b.player, PLIM_RECORDED_PYTORCH,
                                     plim_recording_stream(&b.recording, 0, 3, 1), point, 1,
                                     &b.replay, &b.err),
                     PLIM_OK));
        cr_expect(eq(i64, b.replay.steps_done, steps));
        cr_expect(eq(int, (int)b.replay.verdict, PLIM_OK));
    }
    bench_finish(&b);
}

/* What one stream gave back is not another's. */
Test(recording_play, blocks_of_cuda_streams_are_kept_apart)
{
    static const char one[] = STREAM("\"12582912\", \"12582912*b\"", "a0", "a1 f1 a0 f1"),
                      two[] = STREAM("\"12582912\", \"stream 3: 12582912*b\"", "a0", "a1 f1 a0 f1");
    struct bench b;
    cr_assert(eq(int, play(&b, one, "sim:A100-SXM4-80GB", PLIM_RECORDED_PYTORCH, 1), PLIM_OK));
    cr_expect(eq(i64, b.replay.peak_reserved_bytes, 24 * MIB));
    bench_finish(&b);
    cr_assert(eq(int, play(&b, two, "sim:A100-SXM4-80GB", PLIM_RECORDED_PYTORCH, 1), PLIM_OK));
    cr_expect(eq(i64, b.replay.peak_reserved_bytes, 36 * MIB));
    cr_expect(eq(i64, b.replay.peak_allocated_bytes, 24 * MIB));
    bench_finish(&b);
}

/* 36 MiB that are free again hold the 30, unless they were given back. */
Test(recording_play, the_cache_is_emptied)
{
    static const char kept[] = STREAM("\"31457280\", \"12582912*b\"", "a1 f1 a0", "a1 f1"),
                      emptied[] = STREAM("\"31457280\", \"12582912*b\"", "a1 f1 f0 a0", "a1 f1 f0");
    struct bench b;
    cr_assert(eq(int, play(&b, kept, "sim:A100-SXM4-80GB", PLIM_RECORDED_PYTORCH, 3), PLIM_OK));
    cr_expect(eq(i64, b.replay.peak_reserved_bytes, 72 * MIB));
    cr_expect(eq(i64, b.replay.step[1].end_reserved_bytes, 72 * MIB));
    bench_finish(&b);
    cr_assert(eq(int, play(&b, emptied, "sim:A100-SXM4-80GB", PLIM_RECORDED_PYTORCH, 3), PLIM_OK));
    cr_expect(eq(i64, b.replay.peak_reserved_bytes, 66 * MIB));
    cr_expect(eq(i64, b.replay.step[1].end_reserved_bytes, 30 * MIB));
    cr_expect(b.replay.repeats_after > 0);
    bench_finish(&b);
}

/* A block that outlives its step has another address after each step, next to the same other blocks. */
Test(recording_play, what_lies_elsewhere_in_each_step_repeats_too)
{
    static const char moved[] = STREAM("\"31457280\", \"12582912*b\"", "a0 a1", "a1 f2 f0");
    static const struct {
        const char *device;
        int repeats_after;
    } placed[] = {{"sim:A100-SXM4-80GB", 3}, {"sim:A100-SXM4-80GB,placement=ascending", 1}};
    for (size_t i = 0; i < 2; i++) {
        struct bench b;
        cr_assert(eq(int, play(&b, moved, placed[i].device, PLIM_RECORDED_PYTORCH, 3), PLIM_OK));
        cr_expect(eq(int, b.replay.repeats_after, placed[i].repeats_after));
        cr_expect(eq(i64, b.replay.peak_reserved_bytes, 102 * MIB));
        bench_finish(&b);
    }
}

Test(recording_play, ends_where_the_memory_does)
{
    struct bench b;
    for (int64_t batch = 1; batch < 12; batch++) {
        cr_assert(eq(int, play(&b, simple, "sim:A100-SXM4-80GB,memory=100MiB",
                               PLIM_RECORDED_PYTORCH, batch), PLIM_OK));
        bool fits = 30 + 12 * batch <= 100;
        cr_expect(eq(int, (int)b.replay.verdict, fits ? PLIM_OK : PLIM_OOM), "%d", (int)batch);
        if (!fits) cr_expect(eq(i64, b.replay.oom_asked_bytes, 12 * batch * MIB));
        bench_finish(&b);
    }
}

Test(recording_play, direct_allocations_share_pages_when_they_are_small)
{
    static const char small[] = STREAM("\"1000\", \"3145728*b\"", "\"5000(a0)\"", "a1 f1");
    struct bench b;
    cr_assert(eq(int, play(&b, small, "sim:A100-SXM4-80GB", PLIM_RECORDED_DIRECT, 1), PLIM_OK));
    /* 5000 blocks of 1024 bytes need 3 pages of 2 MiB; 3 MiB need 2 of them. */
    cr_expect(eq(i64, b.replay.peak_reserved_bytes, 10 * MIB));
    cr_expect(eq(i64, b.replay.step[0].end_reserved_bytes, 6 * MIB));
    bench_finish(&b);
    /* 1 MiB is small too. */
    static const char largest[] = STREAM("\"1048576\", \"3145728*b\"", "\"6(a0)\"", "a1 f1");
    cr_assert(eq(int, play(&b, largest, "sim:A100-SXM4-80GB", PLIM_RECORDED_DIRECT, 1), PLIM_OK));
    cr_expect(eq(i64, b.replay.step[0].end_reserved_bytes, 6 * MIB));
    bench_finish(&b);
}

Test(recording_play, a_block_is_freed_in_a_later_step_than_it_was_made)
{
    static const char carried[] = STREAM("\"2097152\", \"4194304*b\"", "a0 a1", "a0 a1 f3 f4");
    struct bench b;
    cr_assert(eq(int, play(&b, carried, "sim:A100-SXM4-80GB", PLIM_RECORDED_PYTORCH, 2), PLIM_OK));
    cr_expect(eq(i64, b.replay.step[3].end_allocated_bytes, 10 * MIB));
    cr_expect(eq(i64, b.replay.step[3].peak_allocated_bytes, 20 * MIB));
    bench_finish(&b);
}

Test(recording_play, holds_from_where_it_was_seen_to)
{
    static const char from[] = "axes: {}\nstreams:\n- from_batch: 2\n  from_seq: 1\n  sizes: [8*b]\n"
                               "  before: []\n  step: [a0 f1]\n";
    struct bench b;
    cr_expect(eq(int, play(&b, from, "sim:A100-SXM4-80GB", PLIM_RECORDED_PYTORCH, 1),
                 PLIM_INVALID));
    cr_expect(strstr(b.err.text, "from batch 2") != NULL, "%s", b.err.text);
    bench_finish(&b);
}

/* A step of one micro-step takes 2 MiB; of several, each between leaves another block than it found. */
#define MICRO_STEPS(loop)                                                                          \
    "axes: {}\nmicro_steps: any\nstreams:\n- from_batch: 1\n  from_seq: 1\n  sizes: [\"2097152*b\"]\n"  \
    "  before: []\n  step: [a0 f1]\n- from_batch: 1\n  from_seq: 1\n  sizes: [\"2097152*b\", \"4194304\"]"  \
    "\n  before: []\n  step: [a1 a0, micro(, " loop ", ), f3 f1]\n"

/* 30 MiB stay; of the 16 for a moment there are none at batch 2. */
Test(recording_play, a_block_of_no_bytes_is_none)
{
    static const char text[] = STREAM("\"31457280\", \"table 1,1=16777216 2,1=0 4,1=16777216\"",
                                      "a0", "a1 f1");
    static const enum plim_recorded_allocator allocators[] = {PLIM_RECORDED_PYTORCH, PLIM_RECORDED_DIRECT};
    for (int i = 0; i < 2; i++)
        for (int64_t batch = 1; batch < 5; batch++) {
            struct bench b;
            cr_assert(eq(int, play(&b, text, "sim:A100-SXM4-80GB", allocators[i], batch), PLIM_OK));
            cr_expect(eq(i64, b.replay.peak_reserved_bytes, (batch == 2 ? 30 : 46) * MIB));
            cr_expect(eq(i64, b.replay.guessed_bytes, batch == 3 ? 16 * MIB : 0));
            bench_finish(&b);
        }
}

Test(recording_play, micro_steps_are_played_until_they_repeat)
{
    static const int64_t peaks[] = {2, 6, 8, 8, 8}, accumulations[] = {1, 2, 3, 9, 1000000000};
    for (size_t i = 0; i < 5; i++) {
        struct bench b;
        cr_assert(eq(int, play_steps(&b, MICRO_STEPS("a0 f2"), "sim:A100-SXM4-80GB",
                                     PLIM_RECORDED_PYTORCH, 1, accumulations[i]), PLIM_OK), "%s",
                  b.err.text);
        cr_expect(eq(i64, b.replay.peak_allocated_bytes, peaks[i] * MIB), "%zu", i);
        cr_expect(eq(i64, b.replay.step[1].end_allocated_bytes, 0), "%zu", i);
        bench_finish(&b);
    }
}

Test(recording_file, micro_steps_that_cannot_be_are_refused)
{
    static const char *const cases[] = {MICRO_STEPS("a0"), MICRO_STEPS("a0 f9"), MICRO_STEPS("a0 a1 f1 f1"),
                                        MICRO_STEPS("micro("), STREAM("\"8\"", "a0", "micro(, a0 f1, )")};
    expect_refused(cases, sizeof(cases) / sizeof(cases[0]));
}
