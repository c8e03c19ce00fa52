/* Whether a recording is proven: what PyTorch's allocator makes of it beside what the program asked for with its own.
 * */
#include "autotune/record/proof.h"
#include "workloads/recording/join.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

enum { MIB = 1 << 20, STEPS = 8, LESS = 1000 /* than what a segment has for it */ };

/* A program that warms up, empties the cache, keeps 30 MiB and takes 12 MiB a sample for each step's while. */
struct program {
    bool empties_in_steps;
    int64_t scratch; /* of a sample */
};

static void push(struct plim_trace *trace, enum plim_traced_kind kind, int64_t value)
{
    const struct plim_traced event = {.kind = kind, .value = value, .costs = trace->costs.count};
    cr_assert(eq(int, PLIM_ARRAY_PUSH(&trace->events, event), PLIM_OK));
}

static void end_step(struct plim_trace *trace)
{
    const struct plim_cost cost = {.kind = PLIM_COST_MOVE, .number = {1024}};
    push(trace, PLIM_TRACED_LAUNCH, 1);
    cr_assert(eq(int, PLIM_ARRAY_PUSH(&trace->costs, cost), PLIM_OK));
    const struct plim_traced_step step = {.costs = trace->costs.count, .events = trace->events.count};
    cr_assert(eq(int, PLIM_ARRAY_PUSH(&trace->timed, step), PLIM_OK));
    trace->steps++;
}

/* `less`: than segments, of each block. */
static struct plim_trace warm_up(int64_t batch, int64_t less)
{
    struct plim_trace trace = {.point = {batch, 1}};
    push(&trace, PLIM_TRACED_ALLOCATION, 12 * MIB * batch - less);
    push(&trace, PLIM_TRACED_FREE, 1);
    push(&trace, PLIM_TRACED_EMPTY_CACHE, 0);
    push(&trace, PLIM_TRACED_ALLOCATION, 30 * MIB - less);
    return trace;
}

static struct plim_trace recorded_at(const struct program *p, int64_t batch)
{
    struct plim_trace trace = warm_up(batch, LESS);
    for (int i = 0; i < STEPS; i++) {
        push(&trace, PLIM_TRACED_ALLOCATION, 12 * MIB * batch - LESS);
        push(&trace, PLIM_TRACED_FREE, 1);
        if (p->empties_in_steps) push(&trace, PLIM_TRACED_EMPTY_CACHE, 0);
        end_step(&trace);
    }
    return trace;
}

/* The segments that the program asks for, and gives back where it empties its cache; `asking`: in so many steps. */
static struct plim_trace own_at(const struct program *p, int64_t batch, int asking)
{
    struct plim_trace trace = warm_up(batch, 0);
    for (int i = 0; i < STEPS; i++) {
        bool asks = i < asking && (i == 0 || p->empties_in_steps);
        if (asks) push(&trace, PLIM_TRACED_ALLOCATION, p->scratch * batch);
        if (asks && p->empties_in_steps) push(&trace, PLIM_TRACED_FREE, 1);
        if (p->empties_in_steps) push(&trace, PLIM_TRACED_EMPTY_CACHE, 0);
        end_step(&trace);
    }
    return trace;
}

/* The allocator of the blocks, as named in the proof. */
static int prove(const struct program *p, int asking)
{
    struct plim_trace traces[3], own = own_at(p, 3, asking);
    struct plim_recorded_stream stream = {0};
    struct plim_recording recording = {0};
    struct plim_error err = PLIM_ERROR_INIT;
    for (int i = 0; i < 3; i++) traces[i] = recorded_at(p, i + 1);
    cr_assert(eq(int, plim_trace_join(traces, 3, &stream, &err), PLIM_OK), "%s", err.text);
    cr_assert(
        eq(int,
           plim_record_prove(&traces[2], &own, &stream, "sim:A100-SXM4-80GB", &recording, &err),
           PLIM_OK),
        "%s", err.text);
    for (int i = 0; i < 3; i++) plim_trace_finish(&traces[i]);
    plim_trace_finish(&own);
    plim_recorded_stream_finish(&stream);
    return (int)recording.allocator;
}

Test(recording_proof, segments_that_are_asked_for_once_are_those_that_are_played)
{
    const struct program good = {.scratch = 12 * MIB}, other = {.scratch = 14 * MIB};
    cr_expect(eq(int, prove(&good, STEPS), PLIM_RECORDED_PYTORCH));
    cr_expect(eq(int, prove(&good, 0), PLIM_RECORDED_UNKNOWN), "one is not asked for");
    cr_expect(eq(int, prove(&other, STEPS), PLIM_RECORDED_UNKNOWN));
}

Test(recording_proof, segments_that_each_step_asks_for_are_asked_for_to_the_end)
{
    const struct program good = {true, 12 * MIB}, other = {true, 14 * MIB};
    cr_expect(eq(int, prove(&good, STEPS), PLIM_RECORDED_PYTORCH));
    cr_expect(eq(int, prove(&good, 1), PLIM_RECORDED_UNKNOWN), "most steps ask for none");
    cr_expect(eq(int, prove(&other, STEPS), PLIM_RECORDED_UNKNOWN));
}
