/* Parts of a recording that were made one after the other become one. */
#include "workloads/recording/merge.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A recording of one stream that allocates so many bytes and frees them, with these values. */
static struct plim_recording part(const char *precision, const char *width, int64_t bytes)
{
    struct plim_recording r = {.name = "t", .made_by = "plimsoll", .compute_capability = 80, .axis_count = 2,
                               .axes = {{.name = "precision"}, {.name = "width"}}};
    struct plim_recorded_stream stream = {.from = {1, 1}};
    const struct plim_recorded_size size = {.terms = {bytes}};
    const struct plim_recorded_event events[] = {{.value = 0}, {.frees = true, .value = 1}};
    cr_assert(eq(int, plim_recorded_texts_add(&r.command, "{batch}"), PLIM_OK));
    cr_assert(eq(int, plim_recorded_texts_add(&r.axes[0].values, precision), PLIM_OK));
    cr_assert(eq(int, plim_recorded_texts_add(&r.axes[1].values, width), PLIM_OK));
    cr_assert(eq(int, PLIM_ARRAY_PUSH(&r.batches, 1), PLIM_OK));
    cr_assert(eq(int, PLIM_ARRAY_PUSH(&stream.sizes, size), PLIM_OK));
    for (size_t i = 0; i < 2; i++) cr_assert(eq(int, PLIM_ARRAY_PUSH(&stream.events, events[i]), PLIM_OK));
    cr_assert(eq(int, PLIM_ARRAY_PUSH(&r.streams, stream), PLIM_OK));
    return r;
}

/* Of a combination; 0: it is not recorded. */
static int64_t bytes_of(const struct plim_recording *r, size_t combination)
{
    const struct plim_recorded_stream *stream = plim_recording_stream(r, combination, 1, 1);
    const struct plim_recorded_point point = {1, 1};
    return stream ? plim_recorded_size_at(&stream->sizes.items[0], point, NULL) : 0;
}

static struct plim_recording merged(struct plim_recording *parts, size_t count)
{
    struct plim_recording all = parts[0];
    for (size_t i = 1; i < count; i++) {
        struct plim_error err = PLIM_ERROR_INIT;
        cr_assert(eq(int, plim_recording_merge(&all, &parts[i], &err), PLIM_OK), "%s", err.text);
        plim_recording_finish(&parts[i]);
    }
    return all;
}

Test(recording_merge, each_combination_keeps_its_stream)
{
    struct plim_recording parts[] = {part("fp32", "256", 1), part("bf16", "192", 4), part("bf16", "256", 3)};
    struct plim_recording all = merged(parts, 3);
    cr_expect(eq(sz, all.axes[0].values.count, 2));
    cr_expect(eq(str, all.axes[1].values.items[1], (char *)"192"));
    cr_expect(eq(sz, plim_recording_combinations(&all), 4));
    cr_expect(eq(sz, plim_recording_recorded(&all), 3));
    const int64_t expected[] = {1, 0, 3, 4}; /* fp32 256, fp32 192, bf16 256, bf16 192 */
    for (size_t i = 0; i < 4; i++) cr_expect(eq(i64, bytes_of(&all, i), expected[i]), "%zu", i);
    cr_expect(eq(i64, bytes_of(&all, 4), 0));
    plim_recording_finish(&all);
}

Test(recording_merge, what_made_a_part_uncertain_makes_the_whole)
{
    struct plim_recording parts[] = {part("fp32", "256", 1), part("bf16", "192", 4)};
    const char *const doubts[] = {"a.py:6 decides", "a.py:9 decides"};
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k <= i; k++)
            cr_assert(eq(int, plim_recorded_texts_add(&parts[i].doubts, doubts[k]), PLIM_OK));
    struct plim_recording all = merged(parts, 2);
    cr_expect(eq(sz, all.doubts.count, 2));
    cr_expect(eq(str, all.doubts.items[1], (char *)"a.py:9 decides"));
    plim_recording_finish(&all);
}

Test(recording_merge, a_file_without_some_of_the_combinations_is_read_as_it_was)
{
    struct plim_recording parts[] = {part("fp32", "256", 1), part("bf16", "192", 4)}, again = {0};
    struct plim_recording all = merged(parts, 2);
    struct plim_error err = PLIM_ERROR_INIT;
    char path[] = "/tmp/test_merge_XXXXXX";
    size_t bytes;
    close(mkstemp(path));
    cr_assert(eq(int, plim_recording_save(&all, path, &bytes, &err), PLIM_OK), "%s", err.text);
    cr_assert(eq(int, plim_recording_read(path, &again, &err), PLIM_OK), "%s", err.text);
    const int64_t expected[] = {1, 0, 0, 4};
    for (size_t i = 0; i < 4; i++) cr_expect(eq(i64, bytes_of(&again, i), expected[i]), "%zu", i);
    unlink(path);
    plim_recording_finish(&again);
    plim_recording_finish(&all);
}

Test(recording_merge, where_all_are_there_it_is_as_if_it_had_been_made_at_once)
{
    struct plim_recording parts[] = {part("bf16", "192", 4), part("fp32", "192", 2), part("fp32", "256", 1),
                                     part("bf16", "256", 3)};
    struct plim_recording all = merged(parts, 4);
    const int64_t expected[] = {4, 3, 2, 1}; /* bf16 192, bf16 256, fp32 192, fp32 256 */
    cr_expect(eq(sz, all.combinations.count, 0));
    for (size_t i = 0; i < 4; i++) cr_expect(eq(i64, bytes_of(&all, i), expected[i]), "%zu", i);
    plim_recording_finish(&all);
}

static void expect_refusal(struct plim_recording *other, const char *why)
{
    struct plim_recording all = part("fp32", "256", 1);
    struct plim_error err = PLIM_ERROR_INIT;
    cr_expect(eq(int, plim_recording_merge(&all, other, &err), PLIM_INVALID), "%s", why);
    cr_expect(strstr(err.text, why) != NULL, "%s", err.text);
    cr_expect(eq(i64, bytes_of(&all, 0), 1)); /* as it was */
    plim_recording_finish(&all);
    plim_recording_finish(other);
}

Test(recording_merge, what_is_not_of_one_program_or_is_there_twice_is_refused)
{
    struct plim_recording other = part("fp32", "256", 1);
    expect_refusal(&other, "twice");
    other = part("bf16", "256", 1);
    cr_assert(eq(int, plim_recorded_texts_add(&other.command, "--more"), PLIM_OK));
    expect_refusal(&other, "their commands differ");
    other = part("bf16", "256", 1);
    other.compute_capability = 90;
    expect_refusal(&other, "their compute capabilities differ");
    other = part("bf16", "256", 1);
    cr_assert(eq(int, PLIM_ARRAY_PUSH(&other.batches, 2), PLIM_OK));
    expect_refusal(&other, "their batches differ");
    other = part("bf16", "256", 1);
    other.axis_count = 1;
    free(other.axes[1].values.items[0]);
    free(other.axes[1].values.items);
    expect_refusal(&other, "the names of their axes differ");
}
