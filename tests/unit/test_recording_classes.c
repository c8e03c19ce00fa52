/* What blocks of a recording are for: streams made event by event, one letter for each allocation. */
#include "devices/open.h"
#include "workloads/recording/classes.h"
#include "workloads/recording/play.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

enum { KIB = 1024, SMALL = 0, LARGE, FROZEN, WORKSPACE, BATCH, HALF_LARGE, SIZES };
enum launcher { NOBODY, PROGRAM, AUTOGRAD, BOTH }; /* who launches after an allocation */

static struct plim_recorded_stream stream;
static uint32_t allocated;
static bool in_step;

static void set_up(void)
{
    static const int64_t bytes[SIZES] = {4 * KIB, 64 * KIB, 16 * KIB, 8 * KIB + 512, 0, 32 * KIB};
    stream = (struct plim_recorded_stream){.from = {1, 1}};
    allocated = 0;
    in_step = false;
    for (int i = 0; i < SIZES; i++) {
        struct plim_recorded_size size = {.terms = {bytes[i], i == BATCH ? 256 * KIB : 0}};
        cr_assert(eq(int, PLIM_ARRAY_PUSH(&stream.sizes, size), PLIM_OK));
    }
    const struct plim_recorded_work both = {0, 2};
    for (uint32_t i = 0; i < 2; i++) {
        struct plim_cost cost = {.kind = PLIM_COST_MOVE, .in_autograd = i == 1};
        struct plim_recorded_work work = {i, 1};
        cr_assert(eq(int, PLIM_ARRAY_PUSH(&stream.launches, cost), PLIM_OK));
        cr_assert(eq(int, PLIM_ARRAY_PUSH(&stream.launched, i), PLIM_OK));
        cr_assert(eq(int, PLIM_ARRAY_PUSH(&stream.works, work), PLIM_OK));
    }
    cr_assert(eq(int, PLIM_ARRAY_PUSH(&stream.works, both), PLIM_OK));
}

static void tear_down(void)
{
    plim_recorded_stream_finish(&stream);
}

TestSuite(recording_classes, .init = set_up, .fini = tear_down);

static void push(struct plim_recorded_event event)
{
    cr_assert(eq(int, PLIM_ARRAY_PUSH(&stream.events, event), PLIM_OK));
    if (!in_step) stream.before = stream.events.count;
    if (event.frees && event.value > stream.longest) stream.longest = event.value;
}

/* Returns which allocation it is. */
static uint32_t take(uint32_t size, enum launcher launcher)
{
    push((struct plim_recorded_event){.value = size, .work = in_step ? (uint32_t)launcher : 0});
    return ++allocated;
}

static void give(uint32_t which)
{
    push((struct plim_recorded_event){.frees = true, .value = allocated + 1 - which});
}

/* Weights and, if it has any, AdamW's states, as a first step leaves them. */
static void model_and_states(bool has_states)
{
    take(SMALL, NOBODY);
    take(FROZEN, NOBODY);
    take(LARGE, NOBODY);
    take(WORKSPACE, NOBODY);
    give(take(BATCH, NOBODY));
    for (int i = 0; i < 2 && has_states; i++) {
        take(SMALL, NOBODY);
        take(LARGE, NOBODY);
    }
}

/* Forward saves two, backward makes the gradients, and the optimizer one for its sums. */
static void step(void)
{
    in_step = true;
    uint32_t saved = take(BATCH, PROGRAM);
    give(take(BATCH, PROGRAM));
    uint32_t logits = take(BATCH, BOTH);
    uint32_t large = take(LARGE, AUTOGRAD), inner = take(BATCH, AUTOGRAD);
    give(logits);
    uint32_t small = take(SMALL, AUTOGRAD);
    give(inner);
    give(saved);
    give(take(LARGE, PROGRAM));
    give(large);
    give(small);
}

/* p g o a t x: by the names of the classes, x for other. */
static const char *classes(void)
{
    static char text[64];
    size_t length = 0;
    memset(text, 0, sizeof(text));
    cr_assert(eq(int, plim_recorded_classify(&stream), PLIM_OK));
    for (size_t i = 0; i < stream.events.count && length + 2 < sizeof(text); i++) {
        const struct plim_recorded_event *event = &stream.events.items[i];
        if (i == stream.before) text[length++] = '|';
        bool is_other = event->memory_class == PLIM_MEMORY_OTHER;
        if (!event->frees)
            text[length++] = is_other ? 'x' : *plim_memory_class_name(event->memory_class);
    }
    return text;
}

Test(recording_classes, of_a_training_step_and_of_what_stays)
{
    model_and_states(true);
    step();
    cr_expect(eq(str, (char *)classes(), (char *)"pppxtoooo|atagtgt"));
    cr_expect(stream.is_classified);
}

Test(recording_classes, without_autograd_nothing_is_known)
{
    model_and_states(true);
    step();
    stream.launches.items[1].in_autograd = false;
    (void)classes();
    cr_expect(not(stream.is_classified));
}

Test(recording_classes, a_bucket_as_large_as_a_parameter_is_no_state)
{
    model_and_states(true);
    take(SMALL, NOBODY);
    step();
    cr_expect(eq(str, (char *)classes(), (char *)"pppxtoooox|atagtgt"));
}

/* Two blocks of backward are as large as a small parameter: the second finds its states, which are none. */
Test(recording_classes, parameters_end_where_nearly_all_are_found)
{
    stream.sizes.items[LARGE].terms[0] = 1 << 20;
    model_and_states(true);
    in_step = true;
    uint32_t saved = take(BATCH, BOTH);
    uint32_t large = take(LARGE, AUTOGRAD), small = take(SMALL, AUTOGRAD), other = take(SMALL, AUTOGRAD);
    give(saved);
    give(take(LARGE, PROGRAM));
    give(large);
    give(small);
    give(other);
    cr_expect(eq(str, (char *)classes(), (char *)"pppxaoooo|agggt"));
}

Test(recording_classes, states_may_be_of_another_type)
{
    model_and_states(false);
    take(HALF_LARGE, NOBODY);
    step();
    cr_expect(eq(str, (char *)classes(), (char *)"pppxto|atagtgt"));
}

/* zero_grad(set_to_none=False), or views of buckets: no gradient identifies a parameter. */
Test(recording_classes, where_gradients_stay_so_does_what_they_would_tell)
{
    model_and_states(true);
    in_step = true;
    uint32_t saved = take(BATCH, BOTH), inner = take(BATCH, AUTOGRAD);
    give(saved);
    give(inner);
    give(take(LARGE, PROGRAM));
    cr_expect(eq(str, (char *)classes(), (char *)"xxxxtxxxx|att"));
}

/* Shards: one small gradient alone is as large as something that stays. */
Test(recording_classes, where_most_gradients_find_no_parameter_none_is_known)
{
    model_and_states(true);
    in_step = true;
    uint32_t saved = take(BATCH, BOTH), first = take(HALF_LARGE, AUTOGRAD);
    uint32_t second = take(HALF_LARGE, AUTOGRAD), small = take(SMALL, AUTOGRAD);
    give(saved);
    give(take(LARGE, PROGRAM));
    give(first);
    give(second);
    give(small);
    cr_expect(eq(str, (char *)classes(), (char *)"xxxxaxxxx|agggt"));
}

/* A gradient is freed by the next step, and what has its size before is that of the step before. What is gone
 * before the step is what has its size and as many behind it in the step. */
Test(recording_classes, of_blocks_that_the_next_step_frees)
{
    model_and_states(true);
    uint32_t small = take(SMALL, NOBODY);
    give(take(LARGE, NOBODY));
    in_step = true;
    uint32_t saved = take(BATCH, BOTH);
    give(small);
    uint32_t large = take(LARGE, AUTOGRAD);
    take(SMALL, AUTOGRAD);
    give(saved);
    give(take(LARGE, PROGRAM));
    give(large);
    cr_expect(eq(str, (char *)classes(), (char *)"pppxaoooogt|aggt"));
}

/* The first step is as the others but for what comes once (a buffer), and of one size there is everything. */
Test(recording_classes, of_the_first_step_are_those_of_the_next)
{
    model_and_states(true);
    give(take(SMALL, NOBODY)); /* a buffer that no other step has */
    for (int pass = 0; pass < 2; pass++) {
        in_step = pass > 0;
        give(take(BATCH, PROGRAM));
        uint32_t saved = take(BATCH, PROGRAM);
        give(take(BATCH, AUTOGRAD));
        give(take(BATCH, AUTOGRAD));
        give(saved);
        give(take(BATCH, PROGRAM));
    }
    cr_expect(eq(str, (char *)classes(), (char *)"xxxxtxxxxttattt|tattt"));
}

Test(recording_classes, add_up_to_what_is_allocated_at_the_peak)
{
    struct plim_device *device;
    struct plim_player *player;
    struct plim_replay replay;
    struct plim_error err = PLIM_ERROR_INIT;
    const struct plim_recorded_point point = {3, 1};
    model_and_states(true);
    step();
    (void)classes();
    stream.works.count = 0; /* no seconds */
    for (int direct = 0; direct < 2; direct++) {
        cr_assert(eq(int, plim_device_open("sim:1GiB", &device, &err), PLIM_OK));
        cr_assert(eq(int, plim_player_create(device, NULL, &player, &err), PLIM_OK));
        enum plim_status st =
            plim_player_run(player, direct ? PLIM_RECORDED_DIRECT : PLIM_RECORDED_PYTORCH, &stream,
                            point, 1, &replay, &err);
        cr_assert(eq(int, st, PLIM_OK), "%s", err.text);
        int64_t sum = 0;
        for (int i = 0; i < PLIM_MEMORY_CLASS_COUNT; i++) sum += replay.class_bytes[i];
        cr_expect(eq(i64, sum, replay.peak_allocated_bytes));
        cr_expect(eq(i64, replay.class_bytes[PLIM_MEMORY_PARAMETERS], 84 * KIB));
        cr_expect(eq(i64, replay.class_bytes[PLIM_MEMORY_OPTIMIZER], 136 * KIB));
        cr_expect(eq(i64, replay.class_bytes[PLIM_MEMORY_GRADIENTS], 64 * KIB));
        cr_expect(eq(i64, replay.class_bytes[PLIM_MEMORY_ACTIVATIONS], 2 * 3 * 256 * KIB));
        cr_expect(eq(i64, replay.class_bytes[PLIM_MEMORY_TEMPORARIES], 3 * 256 * KIB));
        plim_player_destroy(&player);
        plim_device_close(&device);
    }
}
