/* Recordings: what is launched, as functions of the sizes, in files, and how long it takes. */
#include "autotune/base/sha256.h"
#include "autotune/record/host_speed.h"
#include "devices/open.h"
#include "devices/sim/roofline.h"
#include "workloads/recording/join.h"
#include "workloads/recording/play.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- traces ----------------------------------------------------------------------------------- */

static void push(struct plim_trace *trace, enum plim_traced_kind kind, int64_t value)
{
    const struct plim_traced event = {.kind = kind, .value = value, .costs = trace->costs.count};
    cr_assert(eq(int, PLIM_ARRAY_PUSH(&trace->events, event), PLIM_OK));
}

static void launch(struct plim_trace *trace, enum plim_cost_kind kind, int64_t number)
{
    const struct plim_cost cost = {.kind = (uint8_t)kind, .number = {number, number, 64, 1, 128, 128}};
    push(trace, PLIM_TRACED_LAUNCH, kind);
    cr_assert(eq(int, PLIM_ARRAY_PUSH(&trace->costs, cost), PLIM_OK));
}

/* Four steps: a product and what moves 100 bytes a sample behind one block, a kernel behind the other.
 * Below batch 3 the first is another kernel. */
static struct plim_trace trace_at(int64_t batch)
{
    struct plim_trace trace = {.point = {batch, 1}};
    push(&trace, PLIM_TRACED_ALLOCATION, 4096);
    for (int step = 0; step < 4; step++) {
        push(&trace, PLIM_TRACED_ALLOCATION, 512 * batch);
        launch(&trace, batch < 3 ? PLIM_COST_STRIDED : PLIM_COST_MATMUL, 32 * batch);
        launch(&trace, PLIM_COST_MOVE, 100 * batch);
        push(&trace, PLIM_TRACED_ALLOCATION, 64);
        launch(&trace, PLIM_COST_MOVE, 0);
        push(&trace, PLIM_TRACED_FREE, 2);
        push(&trace, PLIM_TRACED_FREE, 1);
    }
    return trace;
}

static void join(struct plim_recorded_stream *out)
{
    struct plim_trace traces[4];
    struct plim_error err = PLIM_ERROR_INIT;
    *out = (struct plim_recorded_stream){0};
    for (int i = 0; i < 4; i++) traces[i] = trace_at(i + 1);
    cr_assert(eq(int, plim_trace_join(traces, 4, out, &err), PLIM_OK), "%s", err.text);
    for (int i = 0; i < 4; i++) plim_trace_finish(&traces[i]);
}

/* The N-th launch after an event. */
static const struct plim_cost *launch_at(const struct plim_recorded_stream *stream, size_t event,
                                         size_t n)
{
    uint32_t work = stream->events.items[event].work;
    cr_assert(lt(u32, 0, work));
    cr_assert(lt(sz, n, stream->works.items[work - 1].count));
    return &stream->launches.items[stream->launched.items[stream->works.items[work - 1].first + n]];
}

static int64_t number_at(const struct plim_recorded_stream *stream, const struct plim_cost *launch,
                         int number, int64_t batch)
{
    return plim_recorded_size_at(&stream->sizes.items[launch->number[number]],
                                 (struct plim_recorded_point){batch, 1}, NULL);
}

Test(recording_launches, lie_behind_the_allocation_before_them)
{
    struct plim_recorded_stream stream;
    join(&stream);
    size_t step = stream.before;
    cr_assert(eq(sz, stream.events.count - step, 4));
    cr_expect(eq(int, launch_at(&stream, step, 0)->kind, PLIM_COST_MATMUL));
    cr_expect(eq(int, launch_at(&stream, step, 1)->kind, PLIM_COST_MOVE));
    cr_expect(eq(int, launch_at(&stream, step + 1, 0)->kind, PLIM_COST_MOVE));
    cr_expect(eq(sz, stream.works.items[stream.events.items[step].work - 1].count, 2));
    cr_expect(eq(sz, stream.works.items[stream.events.items[step + 1].work - 1].count, 1));
    cr_expect(eq(u32, stream.events.items[step + 2].work, 0));
    plim_recorded_stream_finish(&stream);
}

Test(recording_launches, numbers_are_those_of_the_runs_that_launch_alike)
{
    struct plim_recorded_stream stream;
    join(&stream);
    const struct plim_cost *product = launch_at(&stream, stream.before, 0);
    cr_expect(eq(i64, number_at(&stream, product, 0, 3), 96));
    cr_expect(eq(i64, number_at(&stream, product, 0, 4), 128));
    cr_expect(stream.sizes.items[product->number[0]].is_table); /* two sizes prove no function */
    const struct plim_cost *last = launch_at(&stream, stream.before + 1, 0);
    cr_expect(eq(i64, number_at(&stream, last, 0, 9), 1)); /* of nothing, so that it is positive */
    plim_recorded_stream_finish(&stream);
}

/* Batches of 4 allocate a workspace before the product, which is launched after that. */
Test(recording_launches, a_workspace_moves_a_launch_and_not_its_numbers)
{
    struct plim_trace traces[4];
    struct plim_recorded_stream stream = {0};
    struct plim_error err = PLIM_ERROR_INIT;
    for (int64_t batch = 1; batch <= 4; batch++) {
        struct plim_trace *trace = &traces[batch - 1];
        *trace = (struct plim_trace){.point = {batch, 1}};
        push(trace, PLIM_TRACED_ALLOCATION, 4096);
        for (int step = 0; step < 4; step++) {
            push(trace, PLIM_TRACED_ALLOCATION, 512 * batch);
            if (batch == 4) push(trace, PLIM_TRACED_ALLOCATION, 64);
            launch(trace, PLIM_COST_MATMUL, 32 * batch);
            if (batch == 4) push(trace, PLIM_TRACED_FREE, 1);
            push(trace, PLIM_TRACED_FREE, batch == 4 ? 2 : 1);
        }
    }
    cr_assert(eq(int, plim_trace_join(traces, 4, &stream, &err), PLIM_OK), "%s", err.text);
    cr_assert(eq(sz, stream.launches.count, 1));
    cr_expect(eq(i64, number_at(&stream, &stream.launches.items[0], 0, 100), 3200));
    for (int i = 0; i < 4; i++) plim_trace_finish(&traces[i]);
    plim_recorded_stream_finish(&stream);
}

/* At lengths 64 and 128 the program behaves differently: one length does not determine others. */
Test(recording_launches, a_stream_that_holds_at_one_length_alone_is_refused)
{
    static const struct plim_recorded_point points[] = {{1, 64},  {1, 128}, {1, 192}, {2, 192},
                                                        {3, 192}, {3, 64},  {3, 128}};
    enum { COUNT = sizeof(points) / sizeof(points[0]) };
    for (int64_t least = 192; least >= 64; least -= 128) {
        struct plim_trace traces[COUNT];
        struct plim_recorded_stream stream = {0};
        struct plim_error err = PLIM_ERROR_INIT;
        for (int i = 0; i < COUNT; i++) {
            traces[i] = trace_at(points[i].batch);
            traces[i].point = points[i];
            for (int step = 0; step < 4 && points[i].seq < least; step++) {
                push(&traces[i], PLIM_TRACED_ALLOCATION, 8);
                push(&traces[i], PLIM_TRACED_FREE, 1);
            }
        }
        const struct plim_trace largest = traces[4];
        traces[4] = traces[COUNT - 1];
        traces[COUNT - 1] = largest;
        cr_expect(eq(int, plim_trace_join(traces, COUNT, &stream, &err),
                     least > 64 ? PLIM_DIFFERS : PLIM_OK), "%s", err.text);
        for (int i = 0; i < COUNT; i++) plim_trace_finish(&traces[i]);
        plim_recorded_stream_finish(&stream);
    }
}

/* --- files ------------------------------------------------------------------------------------ */

static const char head[] = "plimsoll_recording: 3\nname: \"t\"\ncommand: [\"t\", \"{batch}\"]\n"
                           "made_by: \"plimsoll\"\ncompute_capability: 80\nallocator: pytorch\n"
                           "proof: \"\"\nbatch: [1, 2, 4]\nseq: []\naxes: {}\n";

static enum plim_status read_text(const char *body, struct plim_recording *out,
                                  struct plim_error *err)
{
    char path[] = "/tmp/test_recording_time_XXXXXX", text[4096], sum[PLIM_SHA256_TEXT];
    int length = snprintf(text, sizeof(text), "%s%s", head, body);
    plim_sha256_text(text, (size_t)length, sum);
    length += snprintf(text + length, sizeof(text) - (size_t)length, "checksum: %s\n", sum);
    int fd = mkstemp(path);
    cr_assert(fd >= 0 && write(fd, text, (size_t)length) == length);
    close(fd);
    *out = (struct plim_recording){0};
    enum plim_status st = plim_recording_read(path, out, err);
    unlink(path);
    return st;
}

#define BODY(launches, work, step)                                                                 \
    "micro_steps: one\nstreams:\n- from_batch: 1\n  from_seq: 1\n  sizes:\n  - \"1048576*b\"\n"       \
    "  - \"256\"\n  - \"1\"\n  launches:\n  - " launches "\n  work:\n  - " work "\n  before:\n  - \"a1\"\n"  \
    "  step:\n  - " step "\n"

static const char body[] = BODY("\"matmul.bf16:1,1,1,2,1,1\"\n  - \"move:0 autograd\"", "\"0 1 1\"",
                                "\"a0w0 f1\"");

Test(recording_launches, are_written_as_they_were_read)
{
    struct plim_recording recording;
    struct plim_error err = PLIM_ERROR_INIT;
    char *text;
    cr_assert(eq(int, read_text(body, &recording, &err), PLIM_OK), "%s", err.text);
    cr_expect(plim_recording_is_timed(&recording));
    cr_assert(eq(int, plim_recording_write(&recording, &text, &err), PLIM_OK), "%s", err.text);
    cr_expect(strstr(text, body + strlen("micro_steps: one\n")) != NULL, "%s", text);
    free(text);
    plim_recording_finish(&recording);
}

#define WITH_HOST_WORK(numbers)                                                                    \
    "micro_steps: one\nstreams:\n- from_batch: 1\n  from_seq: 1\n  host_work: " numbers            \
    "\n  sizes:\n"                                                                                 \
    "  - \"1048576*b\"\n  launches:\n  - \"move:0\"\n  work:\n  - \"0\"\n  before: []\n"           \
    "  step:\n  - \"a0w0 f1\"\n"

Test(recording_launches, have_the_hosts_work_beside_them)
{
    static const char text[] = WITH_HOST_WORK("[5000, 2000000]");
    static const char *const wrong[] = {
        WITH_HOST_WORK("[1]"),      WITH_HOST_WORK("[1, 2, 3]"),
        WITH_HOST_WORK("7"),        WITH_HOST_WORK("[0, -1]"),
        WITH_HOST_WORK("[0, 0.5]"), WITH_HOST_WORK("[0, 99999999999999999999]"),
        WITH_HOST_WORK("[[], 1]")};
    struct plim_recording recording;
    struct plim_error err = PLIM_ERROR_INIT;
    char *written;
    cr_assert(eq(int, read_text(text, &recording, &err), PLIM_OK), "%s", err.text);
    const struct plim_recorded_point point = {3, 7};
    cr_expect(epsilon_eq(dbl, plim_recorded_host_work(&recording.streams.items[0], point),
                         5e-6 + 21 * 2e-3, 1e-12));
    cr_assert(eq(int, plim_recording_write(&recording, &written, &err), PLIM_OK), "%s", err.text);
    cr_expect(strstr(written, text + strlen("micro_steps: one\n")) != NULL, "%s", written);
    free(written);
    plim_recording_finish(&recording);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        cr_expect(eq(int, read_text(wrong[i], &recording, &err), PLIM_SPEC), "%zu", i);
        plim_recording_finish(&recording);
    }
}

Test(recording_launches, that_cannot_be_are_refused_in_one_line)
{
#define LAUNCH(text) BODY(text, "\"0\"", "\"a0w0 f1\"")
#define WORK(text) BODY("\"move:0\"", text, "\"a0w0 f1\"")
    static const char *const bodies[] = {
        LAUNCH("\"walk:0\""), LAUNCH("\"move:3\""), LAUNCH("\"move:0,1\""), LAUNCH("\"move\""),
        LAUNCH("\"move.bf16:0\""), LAUNCH("\"matmul:1,1,1,1,1,1\""),
        LAUNCH("\"matmul.int3:1,1,1,1,1,1\""), LAUNCH("\"matmul.bf16:1,1,1,1,1\""),
        LAUNCH("\"move:0 slowly\""), LAUNCH("\"move:99999999999999999999\""), LAUNCH("[]"),
        WORK("\"1\""), WORK("\"\""), WORK("\"0 \""), WORK("\"0,0\""), WORK("[0]"),
        BODY("\"move:0\"", "\"0\"", "\"a0w1 f1\""), BODY("\"move:0\"", "\"0\"", "\"a0 f1w0\""),
        BODY("\"move:0\"", "\"0\"", "\"a0w f1\"")};
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        struct plim_recording recording;
        struct plim_error err = PLIM_ERROR_INIT;
        cr_expect(eq(int, read_text(bodies[i], &recording, &err), PLIM_SPEC), "%zu", i);
        cr_expect(err.text[0] && !strchr(err.text, '\n'));
        plim_recording_finish(&recording);
    }
}

/* --- time ------------------------------------------------------------------------------------- */

static enum plim_status play_steps(const char *text, int64_t batch, int64_t accumulation,
                                   struct plim_replay *out)
{
    struct plim_recording recording;
    struct plim_device *device;
    struct plim_player *player;
    struct plim_error err = PLIM_ERROR_INIT;
    const struct plim_recorded_point point = {batch, 1};
    cr_assert(eq(int, read_text(text, &recording, &err), PLIM_OK), "%s", err.text);
    cr_assert(eq(int, plim_device_open("sim:A100-SXM4-80GB", &device, &err), PLIM_OK));
    cr_assert(eq(int, plim_player_create(device, NULL, &player, &err), PLIM_OK));
    const struct plim_recorded_stream *stream = plim_recording_stream(&recording, 0, batch, accumulation);
    enum plim_status st = plim_player_run(player, recording.allocator, stream, point, accumulation,
                                          out, &err);
    plim_player_destroy(&player);
    plim_device_close(&device);
    plim_recording_finish(&recording);
    return st;
}

static enum plim_status play(const char *text, int64_t batch, struct plim_replay *out)
{
    return play_steps(text, batch, 1, out);
}

/* By the clock itself, many times in a row. */
static double seconds_of(const struct plim_cost *costs, size_t count)
{
    enum { TIMES = 20 };
    struct plim_device *device;
    struct plim_error err = PLIM_ERROR_INIT;
    double start = 0, end = 0;
    cr_assert(eq(int, plim_device_open("sim:A100-SXM4-80GB", &device, &err), PLIM_OK));
    for (int i = 0; i <= TIMES; i++) {
        start = end;
        for (size_t k = 0; k < count; k++)
            cr_assert(eq(int, plim_cost_launch(device, &costs[k]), PLIM_OK));
        cr_assert(eq(int, plim_device_now(device, &end), PLIM_OK));
    }
    plim_device_close(&device);
    return end - start;
}

static double running_seconds(struct plim_device *device)
{
    struct plim_device_load load;
    plim_device_load(device, &load);
    return plim_device_running_seconds(&load);
}

/* Of (m, k) by (k, n), all three contiguous. */
static void expect_the_engines_product(const char *uri, int64_t m, int64_t n, int64_t k)
{
    struct plim_device *device;
    struct plim_error err = PLIM_ERROR_INIT;
#define BF16(rows, columns)                                                                        \
    {                                                                                              \
        .shape = {rows, columns}, .stride = {columns, 1}, .ndim = 2, .dtype = PLIM_BF16            \
    }
    struct plim_array a = BF16(m, k), b = BF16(k, n), out = BF16(m, n);
    const struct plim_op op = {
        .kind = PLIM_OP_MATMUL, .n_out = 1, .n_in = 2, .out = {&out}, .in = {&a, &b}};
    const struct plim_cost cost = {
        .kind = PLIM_COST_MATMUL, .type = PLIM_COST_BF16, .number = {m, n, k, 1, 2 * k, 2 * n}};
    cr_assert(eq(int, plim_device_open(uri, &device, &err), PLIM_OK));
    cr_assert(eq(int, plim_device_launch(device, &op), PLIM_OK));
    double engine = running_seconds(device);
    cr_assert(eq(int, plim_cost_launch(device, &cost), PLIM_OK));
    cr_expect(epsilon_eq(dbl, running_seconds(device) - engine, engine, 1e-9 * engine),
              "%s, %d x %d x %d", uri, (int)m, (int)n, (int)k);
    plim_device_close(&device);
}

/* Aligned and unaligned results, for which Hopper has different kernels. */
Test(recording_time, of_a_product_is_the_engines_on_every_architecture)
{
    static const char *const uris[] = {
        "sim:V100-SXM2-32GB", "sim:T4",      "sim:A100-SXM4-80GB", "sim:L4", "sim:H100-SXM5-80GB",
        "sim:B200-SXM-180GB", "sim:RTX-5090"};
    for (size_t i = 0; i < sizeof(uris) / sizeof(uris[0]); i++) {
        expect_the_engines_product(uris[i], 8192, 3072, 768);
        expect_the_engines_product(uris[i], 8192, 50257, 768);
        expect_the_engines_product(uris[i], 768, 50304, 8192);
    }
}

/* 8 ms a sample, and nothing of the device's that would take as long. */
Test(recording_time, has_the_hosts_work)
{
    struct plim_replay with, without;
    for (int64_t batch = 1; batch <= 3; batch++) {
        cr_assert(eq(int, play(WITH_HOST_WORK("[1000000, 8000000]"), batch, &with), PLIM_OK));
        cr_assert(eq(int, play(WITH_HOST_WORK("[0, 0]"), batch, &without), PLIM_OK));
        double work = 1e-3 + (double)batch * 8e-3;
        cr_expect(epsilon_eq(dbl, with.step[3].seconds, work, 1e-4), "%g", with.step[3].seconds);
        cr_expect(epsilon_eq(dbl, with.launching_seconds - without.launching_seconds, work, 1e-9));
        cr_expect(with.host_bound);
    }
}

/* 1,000 MiB over the slot of an A100, 64 GB/s in both directions. Pageable memory the host waits for. */
Test(recording_time, has_copies_from_the_host)
{
    static const char *const texts[] = {BODY("\"link:0\"", "\"0\"", "\"a0w0 f1\""),
                                        BODY("\"link-pageable:0\"", "\"0\"", "\"a0w0 f1\"")};
    const double seconds = 1000 * 1048576.0 / (64e9 / 2 * 0.8);
    for (int i = 0; i < 2; i++) {
        struct plim_replay replay;
        double expected = seconds * (i ? PLIM_PAGEABLE_SLOWDOWN : 1);
        cr_assert(eq(int, play(texts[i], 1000, &replay), PLIM_OK));
        cr_expect(
            epsilon_eq(dbl, replay.step[3].seconds, expected + (i ? PLIM_HOST_SECONDS : 0), 1e-5));
    }
}

/* One launch for the host, as many kernels for the GPU. */
Test(recording_time, of_a_graph_is_launched_at_once)
{
    static const char graph[] = BODY("\"move:0\"\n  - \"move:0 autograd graph\"", "\"0 1 1\"", "\"a0w0 f1\"");
    struct plim_replay replay;
    struct plim_recording recording;
    struct plim_error err = PLIM_ERROR_INIT;
    char *text;
    cr_assert(eq(int, play(graph, 100, &replay), PLIM_OK));
    cr_expect(ieee_ulp_eq(dbl, replay.launching_seconds, PLIM_HOST_SECONDS, 1 << 20));
    const struct plim_cost move = {.kind = PLIM_COST_MOVE, .number = {100 << 20}};
    cr_expect(epsilon_eq(dbl, replay.step[3].seconds, 3 * seconds_of(&move, 1), 1e-5));
    cr_assert(eq(int, read_text(graph, &recording, &err), PLIM_OK), "%s", err.text);
    cr_assert(eq(int, plim_recording_write(&recording, &text, &err), PLIM_OK), "%s", err.text);
    cr_expect(strstr(text, "move:0 autograd graph\"") != NULL, "%s", text);
    free(text);
    plim_recording_finish(&recording);
}

Test(recording_time, is_that_of_the_launches)
{
    struct plim_cost costs[] = {
        {.kind = PLIM_COST_MATMUL, .type = PLIM_COST_BF16, .number = {256, 256, 256, 1, 256, 256}},
        {.kind = PLIM_COST_MOVE, .in_autograd = true, .number = {1 << 20}},
        {.kind = PLIM_COST_MOVE, .in_autograd = true, .number = {1 << 20}}};
    struct plim_replay replay;
    for (int64_t batch = 1; batch <= 1000; batch *= 1000) {
        costs[1].number[0] = costs[2].number[0] = batch << 20;
        cr_assert(eq(int, play(body, batch, &replay), PLIM_OK));
        cr_expect(ieee_ulp_eq(dbl, replay.step[3].seconds, seconds_of(costs, 3), 1 << 20));
        cr_expect(eq(int, replay.host_bound, batch == 1));
        cr_expect(ieee_ulp_eq(dbl, replay.launching_seconds,
                              PLIM_HOST_SECONDS + 2 * PLIM_HOST_BACKWARD_SECONDS, 1 << 20));
    }
}

/* The same product without an im2col matrix in memory, after the copies that it needs. */
Test(recording_time, a_convolution_takes_as_long_as_its_product_and_its_copies)
{
    enum { PIXELS = 1 << 20, BYTES = 2 * PIXELS * 128 };
    const struct plim_cost plain = {.kind = PLIM_COST_CONVOLUTION, .type = PLIM_COST_FP16,
                                    .number = {PIXELS, 128, 1152, 1, BYTES, 1}};
    struct plim_cost copying = plain, product = plain, moving[2];
    copying.number[5] = BYTES;
    product.kind = PLIM_COST_MATMUL;
    product.number[4] = product.number[5] = 2304;
    moving[0] = (struct plim_cost){.kind = PLIM_COST_MOVE, .number = {BYTES}};
    moving[1] = plain;
    cr_expect(ieee_ulp_eq(dbl, seconds_of(&copying, 1), seconds_of(moving, 2), 1 << 20));
    cr_expect(ge(dbl, seconds_of(&product, 1), seconds_of(&plain, 1)));
    struct plim_cost large = plain;
    large.number[4] = (int64_t)BYTES << 6;
    cr_expect(lt(dbl, 4 * seconds_of(&plain, 1), seconds_of(&large, 1))); /* what memory takes */
}

static double seconds_of_attention(enum plim_cost_kind kind, bool causal, int64_t length)
{
    const struct plim_cost cost = {.kind = (uint8_t)kind, .type = PLIM_COST_BF16, .causal = causal,
                                   .number = {8, 32, 8, length, length, 128}};
    return seconds_of(&cost, 1);
}

/* As the clock has them (roofline.h): backward is 2.5 products of forward's, and slower; CUTLASS's kernels
 * take twice as long; a causal mask leaves half, and half of the diagonal. */
Test(recording_time, of_attention_depends_on_kernel_mask_and_length)
{
    double flash = seconds_of_attention(PLIM_COST_FLASH, false, 4096);
    double efficient = seconds_of_attention(PLIM_COST_EFFICIENT, false, 4096);
    double backward = seconds_of_attention(PLIM_COST_FLASH_BACKWARD, false, 4096);
    double slow_backward = seconds_of_attention(PLIM_COST_EFFICIENT_BACKWARD, false, 4096);
    cr_expect(epsilon_eq(dbl, efficient / flash, PLIM_EFFICIENT_SLOWDOWN, 0.01));
    cr_expect(epsilon_eq(dbl, slow_backward / backward, PLIM_EFFICIENT_SLOWDOWN, 0.01));
    cr_expect(lt(dbl, 2 * flash, backward));
    cr_expect(le(dbl, seconds_of_attention(PLIM_COST_CUDNN, false, 4096), flash));
    cr_expect(lt(dbl, 2 * seconds_of_attention(PLIM_COST_CUDNN, false, 4096),
                 seconds_of_attention(PLIM_COST_CUDNN_BACKWARD, false, 4096)));
    cr_expect(epsilon_eq(dbl, seconds_of_attention(PLIM_COST_FLASH, false, 8192) / flash, 4, 0.05));
    cr_expect(epsilon_eq(dbl, seconds_of_attention(PLIM_COST_FLASH, true, 4096) / flash, 0.5156, 0.01));
}

/* A step of one micro-step, and one of several, each behind its head. */
#define STREAM(more)                                                                               \
    "- from_batch: 1\n  from_seq: 1\n" more "  sizes:\n  - \"1048576*b\"\n"                        \
    "  launches:\n  - \"move:0\"\n  work:\n  - \"0\"\n  before:\n  - \"a0\"\n  step:\n"
#define ACCUMULATED(more)                                                                          \
    "micro_steps: any\nstreams:\n" STREAM(more) "  - \"a0w0 f1\"\n" STREAM(                        \
        more) "  - \"a0w0 f1\"\n  - \"micro(\"\n  - \"a0w0 f1\"\n  - \")\"\n  - \"a0w0 f1\"\n"

Test(recording_time, grows_with_the_micro_steps)
{
    static const char *const texts[] = {ACCUMULATED(""),
                                        ACCUMULATED("  host_work: [50000000, 0]\n")};
    struct plim_replay one, more;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        cr_assert(eq(int, play_steps(texts[i], 100, 1, &one), PLIM_OK));
        cr_expect(lt(dbl, i ? 0.05 : 0, one.step[3].seconds));
        for (int64_t n = 2; n < 2000; n = n * 3 + 1) {
            cr_assert(eq(int, play_steps(texts[i], 100, n, &more), PLIM_OK));
            cr_expect(
                ieee_ulp_eq(dbl, more.step[3].seconds, (double)n * one.step[3].seconds, 1 << 24));
        }
    }
}

Test(recording_time, is_not_known_where_nothing_says_what_is_launched)
{
    static const char silent[] = "streams:\n- from_batch: 1\n  from_seq: 1\n  sizes:\n"
                                 "  - \"1048576*b\"\n  before:\n  - \"a0\"\n  step:\n  - \"a0 f1\"\n";
    struct plim_replay replay;
    cr_assert(eq(int, play(silent, 1, &replay), PLIM_OK));
    cr_expect(eq(dbl, replay.step[3].seconds, 0));
    cr_expect(not(replay.host_bound));
}

Test(recording_time, of_what_no_memory_holds_is_refused)
{
    static const char hostile[] = BODY("\"matmul.fp32:0,0,0,0,0,0\"", "\"0\"", "\"a1w0 f1\"");
    struct plim_replay replay;
    cr_expect(eq(int, play(hostile, INT64_C(1) << 36, &replay), PLIM_INVALID));
}

/* --- the host --------------------------------------------------------------------------------- */

static void end_step(struct plim_trace *trace, double host_seconds)
{
    const struct plim_traced_step step = {host_seconds, 0, trace->costs.count, trace->events.count, 0};
    cr_assert(eq(int, PLIM_ARRAY_PUSH(&trace->timed, step), PLIM_OK));
}

static double speed_of(const struct plim_trace *trace)
{
    struct plim_error err = PLIM_ERROR_INIT;
    double speed = -1;
    cr_assert(eq(int, plim_host_speed_of(trace, &speed, &err), PLIM_OK), "%s", err.text);
    return speed;
}

/* The fastest step after the first two, by what each launched. */
Test(host_speed, is_that_of_the_fastest_step)
{
    struct plim_trace trace = {0};
    const double product = PLIM_HOST_SECONDS;
    cr_expect(eq(dbl, speed_of(&trace), 0));
    for (int step = 0; step < 5; step++) {
        for (int i = 0; i <= step; i++) launch(&trace, PLIM_COST_MATMUL, 32);
        end_step(&trace, product * (step < 2 ? 1e-3 : step == 3 ? 4.0 / 3 : 100));
        if (step < 3) cr_expect(lt(dbl, speed_of(&trace), 0.1), "step %d", step);
    }
    cr_expect(ieee_ulp_eq(dbl, speed_of(&trace), 3, 1 << 20)); /* four launches in 4/3 of one */
    trace.costs.items[trace.costs.count - 1].in_autograd = true;
    trace.timed.items[4].host_seconds = PLIM_HOST_BACKWARD_SECONDS;
    cr_expect(ieee_ulp_eq(dbl, speed_of(&trace),
                          (4 * PLIM_HOST_SECONDS + PLIM_HOST_BACKWARD_SECONDS) / PLIM_HOST_BACKWARD_SECONDS,
                          1 << 20));
    plim_trace_finish(&trace);
}

Test(host_speed, of_steps_without_launches_or_time_is_not_known)
{
    struct plim_trace trace = {0};
    for (int step = 0; step < 4; step++) end_step(&trace, step == 3 ? 1 : 0);
    launch(&trace, PLIM_COST_MATMUL, 32);
    end_step(&trace, 0);
    cr_expect(eq(dbl, speed_of(&trace), 0));
    launch(&trace, PLIM_COST_MATMUL, 32);
    end_step(&trace, 1e9); /* such a host is none */
    cr_expect(eq(dbl, speed_of(&trace), 0));
    plim_trace_finish(&trace);
}

/* --- its own work ----------------------------------------------------------------------------- */

static struct plim_trace working(int64_t batch, int64_t seq, const double work[5])
{
    struct plim_trace trace = {.point = {batch, seq}};
    for (int i = 0; i < 5; i++) {
        end_step(&trace, 1);
        trace.timed.items[i].work_seconds = work[i];
    }
    return trace;
}

static void expect_work(struct plim_trace *traces, size_t count, int64_t micro_steps, double speed,
                        int64_t always, int64_t each)
{
    int64_t found[2] = {-1, -1};
    plim_trace_host_work(traces, count, micro_steps, speed, found);
    cr_expect(le(i64, llabs(found[0] - always), 1), "%d", (int)found[0]);
    cr_expect(le(i64, llabs(found[1] - each), 1), "%d", (int)found[1]);
    for (size_t i = 0; i < count; i++) plim_trace_finish(&traces[i]);
}

#define ALWAYS(x) ((const double[5]){9, 9, x, x, x})

Test(host_work, is_a_line_through_what_steps_have_at_least)
{
    const double noisy[5] = {0, 0, 0.5, 0.006, 0.007};
    expect_work((struct plim_trace[]){working(1, 1, ALWAYS(0.004)), working(2, 1, noisy),
                                      working(4, 1, ALWAYS(0.010))},
                3, 1, 0, 2000000, 2000000);
    /* of tokens, on a host half as fast as assumed, in steps of four micro-steps */
    expect_work((struct plim_trace[]){working(1, 64, ALWAYS(0.064)), working(1, 128, ALWAYS(0.128)),
                                      working(2, 128, ALWAYS(0.256))},
                3, 4, 0.5, 0, 125000);
    /* one size */
    expect_work((struct plim_trace[]){working(8, 1, ALWAYS(0.003))}, 1, 1, 1, 3000000, 0);
    /* a decrease at larger sizes is noise; a negative value at the smallest counts as zero */
    expect_work((struct plim_trace[]){working(1, 1, ALWAYS(0.003)), working(2, 1, ALWAYS(0.001))},
                2, 1, 1, 2000000, 0);
    expect_work((struct plim_trace[]){working(1, 1, ALWAYS(0)), working(2, 1, ALWAYS(0.005)),
                                      working(3, 1, ALWAYS(0.010))},
                3, 1, 1, 0, 2857143);
    /* what is within the scatter of the points, or known at two sizes only, counts as noise */
    expect_work((struct plim_trace[]){working(1, 1, ALWAYS(0.050)), working(2, 1, ALWAYS(0.0535)),
                                      working(3, 1, ALWAYS(0.0545)), working(4, 1, ALWAYS(0.0555))},
                4, 1, 1, 53375000, 0);
    expect_work((struct plim_trace[]){working(1, 1, ALWAYS(0.002)), working(2, 1, ALWAYS(0.004))},
                2, 1, 1, 3000000, 0);
    expect_work((struct plim_trace[]){working(1, 1, ALWAYS(0))}, 1, 1, 1, 0, 0);
    expect_work(NULL, 0, 1, 1, 0, 0);
}

Test(host_work, is_no_part_of_how_fast_the_host_launches)
{
    struct plim_trace trace = {0};
    for (int step = 0; step < 4; step++) {
        launch(&trace, PLIM_COST_MATMUL, 32);
        end_step(&trace, PLIM_HOST_SECONDS / 2 + 5);
        trace.timed.items[step].work_seconds = 5;
    }
    cr_expect(epsilon_eq(dbl, speed_of(&trace), 2, 1e-6));
    plim_trace_finish(&trace);
}
