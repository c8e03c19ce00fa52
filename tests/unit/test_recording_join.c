/* What makes a recording of runs: traces that are joined, the micro-steps in them. */
#include "workloads/recording/join.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

static int64_t at(const struct plim_recorded_size *size, int64_t batch, int64_t seq)
{
    return plim_recorded_size_at(size, (struct plim_recorded_point){batch, seq}, NULL);
}

/* --- traces ----------------------------------------------------------------------------------- */

/* "A100" allocates, "A100/1" for CUDA stream 1, "F2" frees, "E" empties the cache, "K7" launches what moves 7 KiB,
 * "Kb7" 7 KiB for each sample. */
static struct plim_trace trace_of(int64_t batch, const char *text, int times, const char *step)
{
    struct plim_trace trace = {.point = {batch, 1}};
    for (int part = 0; part <= times; part++)
        for (const char *c = part ? step : text; *c; c += *c == ' ') {
            char *end;
            enum plim_traced_kind kind = *c == 'A'   ? PLIM_TRACED_ALLOCATION
                                         : *c == 'F' ? PLIM_TRACED_FREE
                                         : *c == 'E' ? PLIM_TRACED_EMPTY_CACHE
                                                     : PLIM_TRACED_LAUNCH;
            bool scales = c[1] == 'b';
            int64_t value = strtoll(c + 1 + scales, &end, 10) * (scales ? batch : 1);
            struct plim_traced event = {.kind = kind, .value = value, .costs = trace.costs.count};
            if (*end == '/') event.cuda_stream = (int)strtol(end + 1, &end, 10);
            const struct plim_cost cost = {.kind = PLIM_COST_MOVE, .number = {value << 10}};
            if (kind == PLIM_TRACED_LAUNCH)
                cr_assert(eq(int, PLIM_ARRAY_PUSH(&trace.costs, cost), PLIM_OK));
            cr_assert(eq(int, PLIM_ARRAY_PUSH(&trace.events, event), PLIM_OK));
            c = end;
        }
    return trace;
}

static enum plim_status join(const char *const *texts, size_t count, const char *step, int times,
                             struct plim_recorded_stream *out, struct plim_error *err)
{
    struct plim_trace traces[8];
    for (size_t i = 0; i < count; i++)
        traces[i] = trace_of((int64_t)i + 1, texts[i], times, step);
    *out = (struct plim_recorded_stream){0};
    enum plim_status st = plim_trace_join(traces, count, out, err);
    for (size_t i = 0; i < count; i++) plim_trace_finish(&traces[i]);
    return st;
}

Test(recording_join, a_step_begins_where_least_is_held)
{
    static const char *const before[] = {"A1000", "A1000", "A1000"};
    struct plim_recorded_stream stream;
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert(eq(int, join(before, 3, "K1 Ab512 K2 A64 K3 F2 F1", 4, &stream, &err), PLIM_OK), "%s",
              err.text);
    cr_expect(eq(sz, stream.before, 1));
    cr_expect(eq(sz, stream.events.count, 5));
    cr_expect(eq(i64, at(&stream.sizes.items[stream.events.items[1].value], 10, 1), 5120));
    plim_recorded_stream_finish(&stream);
}

/* Blocks of the same bytes for two streams are two sizes, and a run whose streams are others has another
 * sequence of events. */
Test(recording_join, blocks_for_another_cuda_stream_are_told_apart)
{
    static const char *const before[] = {"A1000 A8/2 F1", "A1000", "A1000", "A1000"};
    struct plim_recorded_stream stream;
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert(eq(int, join(before + 1, 3, "Ab512 Ab512/1 F2 F1", 4, &stream, &err), PLIM_OK), "%s",
              err.text);
    cr_assert(eq(sz, stream.events.count, 5));
    const struct plim_recorded_event *step = stream.events.items + 1;
    cr_expect(ne(u32, step[0].value, step[1].value));
    cr_expect(eq(int, stream.sizes.items[step[0].value].cuda_stream, 0));
    cr_expect(eq(int, stream.sizes.items[step[1].value].cuda_stream, 1));
    cr_expect(eq(i64, at(&stream.sizes.items[step[1].value], 10, 1), 5120));
    plim_recorded_stream_finish(&stream);
    static const char *const others[] = {"A1000 A8/1 F1", "A1000 A8/2 F1", "A1000 A8/2 F1",
                                         "A1000 A8/2 F1"};
    cr_assert(eq(int, join(others, 4, "Ab512 F1", 4, &stream, &err), PLIM_OK), "%s", err.text);
    cr_expect(eq(i64, stream.from.batch, 2));
    plim_recorded_stream_finish(&stream);
    cr_assert(eq(int, join(before, 4, "A8/1 F1 A8/2 F1", 4, &stream, &err), PLIM_OK), "%s",
              err.text);
    cr_expect(eq(sz, stream.events.count - stream.before, 4), "the period is of both streams");
    plim_recorded_stream_finish(&stream);
}

/* No free is moved across it. */
Test(recording_join, what_empties_the_cache_stays_between_the_frees)
{
    static const char *const before[] = {"A1000 A8 F1", "A1000 A8 F1 E", "A1000 A8 F1 E",
                                         "A1000 A8 F1 E"};
    struct plim_recorded_stream stream;
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert(eq(int, join(before, 4, "Ab512 A64 A32 F1 E F3 F2", 4, &stream, &err), PLIM_OK), "%s",
              err.text);
    cr_expect(eq(i64, stream.from.batch, 2));
    cr_assert(eq(sz, stream.events.count - stream.before, 7));
    const struct plim_recorded_event *step = stream.events.items + stream.before;
    cr_expect(step[3].frees && step[3].value == 1);
    cr_expect(plim_recorded_empties_cache(&step[4]));
    cr_expect(step[5].frees && step[5].value == 3);
    plim_recorded_stream_finish(&stream);
}

Test(recording_join, smaller_sizes_that_do_otherwise_are_left_out)
{
    static const char *const before[] = {"A1000 A8 A8 F1 F1", "A1000", "A1000", "A1000"};
    struct plim_recorded_stream stream;
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert(eq(int, join(before, 4, "Ab512 F1", 4, &stream, &err), PLIM_OK), "%s", err.text);
    cr_expect(eq(i64, stream.from.batch, 2));
    plim_recorded_stream_finish(&stream);
}

/* A block is held of each sample: larger batches will be other sequences, too. */
Test(recording_join, events_that_follow_the_batch_are_not_promised_to_agree_at_larger_ones)
{
    static const char *const steps[2][4] = {{"A64 F1", "A64 A64 F2 F1", "A64 A64 A64 F3 F2 F1",
                                             "A64 A64 A64 A64 F4 F3 F2 F1"},
                                            {"A64 F1", "A64 A64 F2 F1", "A64 A64 F2 F1", "A64 A64 F1 F1"}};
    for (int is_once = 0; is_once < 2; is_once++) {
        struct plim_trace traces[4];
        struct plim_recorded_stream stream = {0};
        struct plim_error err = PLIM_ERROR_INIT;
        for (int i = 0; i < 4; i++) traces[i] = trace_of(4 + i, "A1000", 4, steps[is_once][i]);
        cr_expect(eq(int, plim_trace_join(traces, 4, &stream, &err), PLIM_DIFFERS));
        cr_expect(eq(int, strstr(err.text, "record larger ones") != NULL, is_once), "%s", err.text);
        cr_expect(eq(int, strstr(err.text, "follows the batch (4 at batch 5, 6 at 6, 8 at 7)") != NULL, !is_once), "%s",
                  err.text);
        cr_expect(strstr(err.text, "--each-batch") != NULL, "%s", err.text);
        plim_recorded_stream_finish(&stream);
        for (int i = 0; i < 4; i++) plim_trace_finish(&traces[i]);
    }
}

/* All lengths at batches 1 and 4, and all batches at the last length. Batch 1 does otherwise, so of batch 2 all
 * lengths are needed: else 8 * batch * length cannot be told from 256 * batch + 32 * length - 1024. */
Test(recording_join, how_sizes_grow_with_batch_and_length_is_seen)
{
    static const struct plim_recorded_point points[] = {{1, 8},  {1, 16}, {1, 32}, {2, 32}, {3, 32},
                                                        {4, 8},  {4, 16}, {4, 32}, {2, 8},  {2, 16}};
    enum { COUNT = sizeof(points) / sizeof(points[0]), WITHOUT = COUNT - 2 };
    for (size_t count = WITHOUT; count <= COUNT; count += COUNT - WITHOUT) {
        struct plim_trace traces[COUNT];
        struct plim_recorded_stream stream = {0};
        struct plim_error err = PLIM_ERROR_INIT;
        for (size_t i = 0; i < count; i++) {
            /* the largest is the last */
            const struct plim_recorded_point *p = &points[i < WITHOUT - 1 ? i : i + 1 < count ? i + 1 : WITHOUT - 1];
            traces[i] = trace_of(p->batch * p->seq, p->batch == 1 ? "A1000 A8 A8 F1 F1" : "A1000", 4, "Ab8 F1");
            traces[i].point = *p;
        }
        bool is_enough = count == COUNT;
        cr_assert(eq(int, plim_trace_join(traces, count, &stream, &err), is_enough ? PLIM_OK : PLIM_DIFFERS), "%s",
                  err.text);
        if (is_enough) cr_expect(eq(i64, at(&stream.sizes.items[stream.events.items[1].value], 7, 40), 8 * 7 * 40));
        if (is_enough) cr_expect(eq(i64, stream.from.batch, 2));
        plim_recorded_stream_finish(&stream);
        for (size_t i = 0; i < count; i++) plim_trace_finish(&traces[i]);
    }
}

/* A program that goes through its samples one by one: runs of one batch, of three lengths. */
Test(recording_join, one_batch_is_enough_for_itself)
{
    static const char *const steps[] = {"Ab512 Ab512 F1 F1", "Ab512 Ab512 F1 F1", "Ab512 Ab512 F2 F1"};
    for (size_t others = 0; others < 2; others++) {
        struct plim_trace traces[3];
        struct plim_recorded_stream stream = {0};
        struct plim_error err = PLIM_ERROR_INIT;
        for (size_t i = 0; i < 3; i++) {
            traces[i] = trace_of((int64_t)i + 2, "A1000", 4, i < 2 ? steps[0] : steps[others ? 2 : 1]);
            traces[i].point = (struct plim_recorded_point){4, (int64_t)i + 2};
        }
        cr_expect(eq(int, plim_trace_join(traces, 3, &stream, &err), others ? PLIM_DIFFERS : PLIM_OK), "%s", err.text);
        if (others) cr_expect(strstr(err.text, "--each-batch") != NULL, "%s", err.text);
        else cr_expect(eq(i64, at(&stream.sizes.items[stream.events.items[1].value], 4, 9), 9 * 512));
        if (!others) cr_expect(eq(i64, stream.from.batch, 4));
        plim_recorded_stream_finish(&stream);
        for (size_t i = 0; i < 3; i++) plim_trace_finish(&traces[i]);
    }
}

/* At batches 2 and 4 a workspace is taken for a moment, at 3 another one in another place. */
Test(recording_join, a_workspace_of_some_sizes_has_no_bytes_at_the_others)
{
    static const char *const steps[] = {"K1 Ab512 Ab64 K2 F2 K3 A32 F2 F1",
                                        "K1 Ab512 A700 K9 F1 Ab64 K2 F3 K3 A32 F2 F1",
                                        "A900 K8 F1 K1 Ab512 Ab64 K2 F2 K3 A32 F2 F1",
                                        "K1 Ab512 A800 K9 F1 Ab64 K2 F3 K3 A32 F2 F1"};
    static const int64_t workspaces[] = {0, 700, 0, 800}, others[] = {0, 0, 900, 0};
    struct plim_trace traces[4];
    struct plim_recorded_stream stream = {0};
    struct plim_error err = PLIM_ERROR_INIT;
    for (int i = 0; i < 4; i++) traces[i] = trace_of(i + 1, "A1000", 4, steps[i]);
    cr_assert(eq(int, plim_trace_join(traces, 4, &stream, &err), PLIM_OK), "%s", err.text);
    cr_expect(eq(i64, stream.from.batch, 1));
    cr_expect(eq(sz, stream.events.count - stream.before, 10));
    size_t tables = 0;
    for (size_t i = stream.before; i < stream.events.count; i++) {
        const struct plim_recorded_event *event = &stream.events.items[i];
        const struct plim_recorded_size *size = &stream.sizes.items[event->value];
        if (event->frees || !size->is_table) continue;
        const int64_t *expected = at(size, 3, 1) ? others : workspaces;
        tables++;
        for (int64_t b = 1; b <= 4; b++) cr_expect(eq(i64, at(size, b, 1), expected[b - 1]), "%zu", i);
    }
    cr_expect(eq(sz, tables, 2));
    for (int i = 0; i < 4; i++) plim_trace_finish(&traces[i]);
    plim_recorded_stream_finish(&stream);
}

/* At batches 2 and 4 a sum allocates a buffer and semaphores, and frees them together with another block. */
Test(recording_join, a_workspace_within_another_has_no_bytes_at_the_others)
{
    static const char *const steps[] = {"K1 Ab16 Ab512 K2 A32 F3 K3 A40 F1 F2 F3",
                                        "K1 Ab16 Ab512 K2 A32 A700 A8 K9 F1 F2 F5 K3 A40 F1 F4 F5"};
    struct plim_trace traces[4];
    struct plim_recorded_stream stream = {0};
    struct plim_error err = PLIM_ERROR_INIT;
    for (int i = 0; i < 4; i++) traces[i] = trace_of(i + 1, "A1000", 4, steps[i % 2]);
    cr_assert(eq(int, plim_trace_join(traces, 4, &stream, &err), PLIM_OK), "%s", err.text);
    cr_expect(eq(sz, stream.events.count - stream.before, 12));
    int64_t tables[5] = {0};
    for (size_t i = stream.before; i < stream.events.count; i++) {
        const struct plim_recorded_event *event = &stream.events.items[i];
        const struct plim_recorded_size *size = &stream.sizes.items[event->value];
        if (event->frees || !size->is_table) continue;
        for (int64_t b = 1; b <= 4; b++) tables[b] += at(size, b, 1);
    }
    for (int64_t b = 1; b <= 4; b++) cr_expect(eq(i64, tables[b], b % 2 ? 0 : 708), "%d", (int)b);
    for (int i = 0; i < 4; i++) plim_trace_finish(&traces[i]);
    plim_recorded_stream_finish(&stream);
}

/* --- reductions ------------------------------------------------------------------------------- */

static const struct plim_device_info gpu = {.multiprocessors = 108, .threads_per_multiprocessor = 2048};

/* A sum of 512 b rows, as a reader of a program's stream has it: its scratch is there at every size, of 0 bytes
 * where no blocks share a column. */
static struct plim_trace trace_of_sum(int64_t batch, int64_t columns, int vector)
{
    const struct plim_reduce_launch launch = {.outputs = columns, .inputs = 512 * batch, .partial_bytes = 4,
                                              .vector = (uint8_t)vector};
    const struct plim_reduce_scratch needs = plim_reduce_launch_needs(&gpu, &launch);
    struct plim_trace trace = trace_of(batch, "A1000", 4, "Ab4096 A700 A64 A32 K1 F1 F2 Ab24 A9 F2 A5 F1 F2 F6 F7");
    int block = 0;
    trace.gpu = &gpu;
    cr_assert(eq(int, PLIM_ARRAY_PUSH(&trace.reductions, launch), PLIM_OK));
    for (size_t i = 0; i < trace.events.count; i++) {
        struct plim_traced *event = &trace.events.items[i];
        if (event->kind != PLIM_TRACED_ALLOCATION || (event->value != 64 && event->value != 32)) continue;
        event->scratch = block++ % 2 ? PLIM_RECORDED_SEMAPHORES : PLIM_RECORDED_PARTIALS;
        event->value = event->scratch == PLIM_RECORDED_PARTIALS ? needs.partials_bytes : needs.semaphores_bytes;
    }
    return trace;
}

static const struct plim_recorded_size *find_scratch(const struct plim_recorded_stream *stream,
                                                     enum plim_recorded_scratch scratch)
{
    for (size_t i = 0; i < stream->sizes.count; i++)
        if (stream->sizes.items[i].scratch == scratch) return &stream->sizes.items[i];
    return NULL;
}

Test(recording_join, what_blocks_share_of_a_sum_follows_from_how_much_is_summed)
{
    static const struct plim_device_info other = {.multiprocessors = 16, .threads_per_multiprocessor = 1536};
    static const int64_t batches[] = {1, 2, 3, 8};
    struct plim_trace traces[4];
    struct plim_recorded_stream stream = {0};
    struct plim_error err = PLIM_ERROR_INIT;
    for (int i = 0; i < 4; i++) traces[i] = trace_of_sum(batches[i], 64, 4);
    cr_assert(eq(int, plim_trace_join(traces, 4, &stream, &err), PLIM_OK), "%s", err.text);
    cr_expect(eq(sz, plim_recorded_stream_tables(&stream), 0));
    const struct plim_recorded_size *partials = find_scratch(&stream, PLIM_RECORDED_PARTIALS),
                                    *semaphores = find_scratch(&stream, PLIM_RECORDED_SEMAPHORES);
    cr_assert(partials && semaphores);
    size_t used = 0;
    for (int64_t b = 1; b <= 4096; b *= 2) {
        const struct plim_recorded_point point = {b, 1};
        const struct plim_reduce_launch launch = {.outputs = 64, .inputs = 512 * b, .partial_bytes = 4, .vector = 4};
        for (int k = 0; k < 2; k++) {
            const struct plim_device_info *asked = k ? &other : &gpu;
            const struct plim_reduce_scratch needs = plim_reduce_launch_needs(asked, &launch);
            cr_expect(eq(i64, plim_recorded_size_at(partials, point, asked), needs.partials_bytes), "%d", (int)b);
            cr_expect(eq(i64, plim_recorded_size_at(semaphores, point, asked), needs.semaphores_bytes));
            used += needs.partials_bytes > 0;
        }
        cr_expect(eq(i64, plim_recorded_size_guessed(partials, point), 0));
    }
    cr_expect(used > 8 && used < 26, "%zu", used);
    for (int i = 0; i < 4; i++) plim_trace_finish(&traces[i]);
    plim_recorded_stream_finish(&stream);
}

/* Where each thread takes as many outputs as divide the batch, no one rule holds. */
Test(recording_join, launches_that_are_laid_out_differently_are_a_table)
{
    static const int vectors[] = {1, 2, 1, 4};
    struct plim_trace traces[4];
    struct plim_recorded_stream stream = {0};
    struct plim_error err = PLIM_ERROR_INIT;
    for (int i = 0; i < 4; i++) traces[i] = trace_of_sum(8 * (i + 1), 8 * (i + 1), vectors[i]);
    cr_assert(eq(int, plim_trace_join(traces, 4, &stream, &err), PLIM_OK), "%s", err.text);
    const struct plim_recorded_size *partials = find_scratch(&stream, PLIM_RECORDED_PARTIALS);
    cr_assert(partials && partials->is_table);
    for (int i = 0; i < 4; i++) {
        struct plim_reduce_scratch needs = plim_reduce_launch_needs(&gpu, &traces[i].reductions.items[0]);
        cr_expect(eq(i64, at(partials, 8 * (i + 1), 1), needs.partials_bytes));
    }
    for (int i = 0; i < 4; i++) plim_trace_finish(&traces[i]);
    plim_recorded_stream_finish(&stream);
}

/* A launch that one run's reader did not understand. */
Test(recording_join, scratch_that_one_run_does_not_tell_of_is_a_table)
{
    struct plim_trace traces[4];
    struct plim_recorded_stream stream = {0};
    struct plim_error err = PLIM_ERROR_INIT;
    for (int i = 0; i < 4; i++) traces[i] = trace_of_sum(8 * (i + 1), 64, 4);
    plim_trace_finish(&traces[1]);
    traces[1] = trace_of(16, "A1000", 4, "Ab4096 A700 K1 Ab24 A9 F2 A5 F1 F2 F4 F5");
    traces[1].gpu = &gpu;
    cr_assert(eq(int, plim_trace_join(traces, 4, &stream, &err), PLIM_OK), "%s", err.text);
    cr_expect(find_scratch(&stream, PLIM_RECORDED_PARTIALS) == NULL);
    cr_expect(eq(sz, plim_recorded_stream_tables(&stream), 2));
    for (int i = 0; i < 4; i++) plim_trace_finish(&traces[i]);
    plim_recorded_stream_finish(&stream);
}

/* A step for each of these texts. */
static struct plim_trace trace_of_steps(const char *const *steps, size_t count)
{
    struct plim_trace trace = {.point = {4, 1}};
    for (size_t i = 0; i < count; i++) {
        struct plim_trace step = trace_of(4, steps[i], 0, "");
        for (size_t k = 0; k < step.events.count; k++)
            cr_assert(eq(int, PLIM_ARRAY_PUSH(&trace.events, step.events.items[k]), PLIM_OK));
        const struct plim_traced_step end = {.events = trace.events.count};
        cr_assert(eq(int, PLIM_ARRAY_PUSH(&trace.timed, end), PLIM_OK));
        trace.steps++;
        plim_trace_finish(&step);
    }
    return trace;
}

/* Eight alike, an evaluation and one more; rows that grow with each step. */
Test(recording_join, steps_at_the_end_that_do_otherwise_are_left_out)
{
    static const char train[] = "A8 A16 F1 F2", evaluates[] = "A8 A16 F1 F2 A900 F1";
    const char *const steps[] = {"A1 A8 A16 F1 F2", train, train, train, train, train, train, evaluates, train},
                      *const grow[] = {"A1", "A2", "A3", "A4", "A5", "A6", "A7"};
    struct plim_error err = PLIM_ERROR_INIT;
    size_t left_out, start, period;
    struct plim_trace trace = trace_of_steps(steps, 9), growing = trace_of_steps(grow, 7);
    cr_expect(eq(int, plim_trace_steady(&trace, &start, &period, &err), PLIM_UNSTABLE));
    err = (struct plim_error)PLIM_ERROR_INIT;
    cr_assert(eq(int, plim_trace_drop_end(&trace, &left_out, &err), PLIM_OK), "%s", err.text);
    cr_expect(eq(sz, left_out, 2));
    cr_assert(eq(int, plim_trace_steady(&trace, &start, &period, &err), PLIM_OK));
    cr_expect(eq(sz, period, 4));
    cr_expect(eq(int, plim_trace_drop_end(&growing, &left_out, &err), PLIM_UNSTABLE));
    plim_trace_finish(&trace);
    plim_trace_finish(&growing);
}

/* A log needs no more memory than a step had allocated, although in other blocks: nothing is reported. */
Test(recording_join, steps_at_the_end_that_need_no_more_are_not_told)
{
    static const char train[] = "A8 A16 F1 F2", logs[] = "A8 A16 F1 F2 A23 F1";
    const char *const steps[] = {"A1 A8 A16 F1 F2", train, train, train, train, train, train, logs, train};
    struct plim_error err = PLIM_ERROR_INIT;
    size_t left_out, start, period;
    struct plim_trace trace = trace_of_steps(steps, 9);
    cr_assert(eq(int, plim_trace_drop_end(&trace, &left_out, &err), PLIM_OK), "%s", err.text);
    cr_expect(eq(sz, left_out, 0));
    cr_assert(eq(int, plim_trace_steady(&trace, &start, &period, &err), PLIM_OK));
    cr_expect(eq(sz, period, 4));
    plim_trace_finish(&trace);
}

Test(recording_join, the_order_of_frees_in_a_row_does_not_count)
{
    struct plim_trace a = trace_of(1, "", 4, "A8 A16 A24 F2 F3 F1"),
                      b = trace_of(1, "", 4, "A8 A16 A24 F1 F3 F2");
    plim_trace_sort_frees(a.events.items, a.events.count);
    plim_trace_sort_frees(b.events.items, b.events.count);
    for (size_t i = 0; i < a.events.count; i++)
        cr_expect(eq(i64, a.events.items[i].value, b.events.items[i].value));
    plim_trace_finish(&a);
    plim_trace_finish(&b);
}

Test(recording_join, what_cannot_be_recorded_is_refused_by_name)
{
    static const char *const same[] = {"A8", "A8", "A8"}, *const others[] = {"A8", "A8 A8", "A8 F1"};
    static const char *const irregular[] = {"A8 A9 K1 A10 A11", "A8", "A8"};
    static const struct {
        const char *const *before;
        const char *step, *says;
        int times;
        enum plim_status status;
    } cases[] = {{same, "Ab8", "goes on growing", 5, PLIM_UNSTABLE},
                 {same, "Ab8 F1", "never repeats", 2, PLIM_UNSTABLE},
                 {irregular, "", "never repeats", 1, PLIM_UNSTABLE},
                 {others, "Ab8 F1", "in the order of the largest", 4, PLIM_DIFFERS}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct plim_recorded_stream stream;
        struct plim_error err = PLIM_ERROR_INIT;
        cr_expect(eq(int, join(cases[i].before, 3, cases[i].step, cases[i].times, &stream, &err),
                     cases[i].status), "%zu", i);
        cr_expect(strstr(err.text, cases[i].says) != NULL, "%zu: %s", i, err.text);
        plim_recorded_stream_finish(&stream);
    }
}

/* --- micro-steps ------------------------------------------------------------------------------ */

/* Steps of so many micro-steps: input, activations, gradient. An input is held until the next has its
 * own; the first gradient until the step's end, the others for a moment. `more`: in each further one;
 * with `scratch` each takes a block for a moment first. */
static struct plim_trace accumulated(int64_t batch, int64_t micro_steps, bool scratch, const char *more)
{
    char step[1024];
    const char *moment = scratch ? "A16 F1 " : "";
    int used = snprintf(step, sizeof(step), "K1 %sAb8 F%d Ab512 A64 F2 ", moment, 5 + scratch);
    for (int64_t i = 1; i < micro_steps; i++)
        used += snprintf(step + used, sizeof(step) - (size_t)used, "%sAb8 F%d Ab512 A64 F1 F2 %s", moment,
                         4 + scratch, more);
    snprintf(step + used, sizeof(step) - (size_t)used, "F%d A32 F1", (int)((3 + scratch) * (micro_steps - 1) + 1));
    return trace_of(batch, "A1000 Ab8 A1 A1 A1 F1 F2 F3", 5, step);
}

/* Joins steps of three, and finds what comes again with each further micro-step. `scratch_from`: the least batch
 * with a block for a moment. `more`, `more_in_five`: in each micro-step after the first. */
static enum plim_status find_loops(int64_t scratch_from, const char *more, const char *more_in_five,
                                   struct plim_recorded_stream *out, struct plim_error *err)
{
    static const int64_t accumulations[] = {4, 5, 2}, batches[] = {1, 3, 1};
    struct plim_trace threes[3], others[3];
    *out = (struct plim_recorded_stream){0};
    for (int64_t i = 0; i < 3; i++) {
        threes[i] = accumulated(i + 1, 3, i + 1 >= scratch_from, more);
        others[i] = accumulated(batches[i], accumulations[i], batches[i] >= scratch_from,
                                accumulations[i] == 5 ? more_in_five : more);
    }
    enum plim_status st = plim_trace_join(threes, 3, out, err);
    if (!st) st = plim_trace_loops(out, others, accumulations, 3, err);
    for (int i = 0; i < 3; i++) {
        plim_trace_finish(&threes[i]);
        plim_trace_finish(&others[i]);
    }
    return st;
}

Test(recording_loops, what_comes_with_each_micro_step_is_found)
{
    struct plim_recorded_stream stream;
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert(eq(int, find_loops(9, "", "", &stream, &err), PLIM_OK), "%s", err.text);
    cr_assert(ge(sz, stream.loops.count, 1));
    const struct plim_recorded_loop *loop = &stream.loops.items[stream.loops.count - 1];
    cr_expect(eq(sz, loop->count, 6));
    cr_expect(ge(sz, loop->first, stream.before));
    cr_expect(not(stream.events.items[loop->first].frees));
    plim_recorded_stream_finish(&stream);
}

/* Its events are in the stream for all sizes, of 0 bytes where it is not there. */
Test(recording_loops, a_moment_that_some_sizes_lack_is_part_of_each_micro_step)
{
    struct plim_recorded_stream stream;
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert(eq(int, find_loops(2, "", "", &stream, &err), PLIM_OK), "%s", err.text);
    cr_assert(ge(sz, stream.loops.count, 1));
    cr_expect(eq(sz, stream.loops.items[stream.loops.count - 1].count, 8));
    plim_recorded_stream_finish(&stream);
}

Test(recording_loops, each_micro_step_may_empty_the_cache)
{
    struct plim_recorded_stream stream;
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert(eq(int, find_loops(9, "E ", "E ", &stream, &err), PLIM_OK), "%s", err.text);
    cr_assert(ge(sz, stream.loops.count, 1));
    const struct plim_recorded_loop *loop = &stream.loops.items[stream.loops.count - 1];
    cr_expect(eq(sz, loop->count, 7));
    plim_recorded_stream_finish(&stream);
    cr_expect(eq(int, find_loops(9, "E ", "", &stream, &err), PLIM_DIFFERS));
    plim_recorded_stream_finish(&stream);
}

Test(recording_loops, micro_steps_that_are_not_alike_are_refused)
{
    struct plim_recorded_stream stream;
    struct plim_error err = PLIM_ERROR_INIT;
    cr_expect(eq(int, find_loops(9, "", "A7 F1 ", &stream, &err), PLIM_DIFFERS));
    cr_expect(strstr(err.text, "{accumulation} 5") != NULL, "%s", err.text);
    plim_recorded_stream_finish(&stream);
}

/* Each step keeps 4 bytes for a log; a step of 8 allocations and 7 frees, whose frees reach over what was kept. */
Test(recording_join, what_each_step_keeps_for_a_log_is_left_out)
{
    static const char step[] = "A8 A16 A4 F2 A900 F1 F4 ", kept[] = "A8 A16 A70000 F2 A900 F1 F4 ",
                      held[] = "A8 A16 A4 F2 A900 F1 F4 F2 ";
    static const struct {
        const char *step;
        int64_t bytes;
    } cases[] = {{step, 4}, {kept, 0}, {held, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct plim_error err = PLIM_ERROR_INIT;
        struct plim_recorded_stream out = {0};
        struct plim_trace trace = trace_of(4, "A100 ", 5, cases[i].step);
        const struct plim_traced_step end = {.events = trace.events.count};
        cr_assert(eq(int, PLIM_ARRAY_PUSH(&trace.timed, end), PLIM_OK));
        int64_t bytes = -1;
        size_t before = trace.events.count;
        cr_assert(eq(int, plim_trace_drop_retained(&trace, &bytes, &err), PLIM_OK), "%s", err.text);
        cr_expect(eq(i64, bytes, cases[i].bytes), "%s", cases[i].step);
        cr_expect(eq(sz, trace.events.count, before - (bytes ? 5 : 0)), "%s", cases[i].step);
        cr_expect(eq(sz, trace.timed.items[0].events, trace.events.count));
        enum plim_status st = plim_trace_join(&trace, 1, &out, &err);
        cr_expect(eq(int, st, bytes || i == 2 ? PLIM_OK : PLIM_UNSTABLE), "%s: %s", cases[i].step, err.text);
        plim_recorded_stream_finish(&out);
        plim_trace_finish(&trace);
    }
}
