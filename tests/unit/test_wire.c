/* The protocol between plimsoll and its workers: messages arrive unchanged, anything else is refused. */
#include "autotune/run/worker/wire.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { SAMPLES = 11 };

static struct plim_message_result sample_result(void)
{
    struct plim_message_result r = {
        .finite = true, .refused = true, .free_before_bytes = 900, .free_after_bytes = 7};
    r.replay.verdict = PLIM_OOM;
    strcpy(r.replay.why, "out of memory: 7 bytes");
    r.replay.parameters = 1000;
    r.replay.trainable_parameters = 10;
    r.replay.rank = 3;
    r.replay.rank0_reserved_bytes = 1234;
    r.replay.steps_done = 1;
    r.replay.evaluation_batch = 8;
    r.replay.evaluation_every = 500;
    r.replay.evaluations = 2;
    r.replay.evaluation_allocated_bytes = 55;
    r.replay.evaluation_reserved_bytes = 66;
    r.replay.start_allocated_bytes = 44;
    r.replay.start_reserved_bytes = 45;
    r.replay.start_requested_bytes = 43;
    for (int i = 0; i < PLIM_REPLAY_STEPS; i++)
        r.replay.step[i] = (struct plim_replay_step){1, 2, 3, 4, 5, 6 + i, 7, 8 + i, 9, 0.25 * i, 7.5 + i};
    for (int i = 0; i < PLIM_MEMORY_CLASS_COUNT; i++) r.replay.class_bytes[i] = 100 + i;
    r.replay.oom_class = PLIM_MEMORY_WORKSPACE;
    strcpy(r.replay.oom_where, "forward, step 1");
    r.replay.communication_seconds = 0.125;
    r.replay.link_bytes_per_second = 2e11;
    r.replay.link_latency_seconds = 3e-5;
    r.replay.link_gpus = 8;
    r.replay.model_flops_per_token = 6e9;
    r.replay.sdpa_engines = PLIM_SDPA_BY_CUDNN | PLIM_SDPA_BY_FALLBACK;
    r.timing = (struct plim_timing){12, 0.5, 0.001, -0.01, true};
    return r;
}

static struct plim_setting sample_setting(void)
{
    return (struct plim_setting){
        .micro_batch = 8, .accumulation = 3, .value = {2048, 4, 1, 0, INT64_MAX, -1}};
}

/* One of each kind, and a second verdict. */
static struct plim_message sample(int index)
{
    struct plim_message m = {.id = 77};
    switch (index) {
    case 0:
        m.kind = PLIM_MESSAGE_HELLO;
        m.hello.build = "1.2.3";
        break;
    case 1:
        m.kind = PLIM_MESSAGE_OPEN;
        m.open =
            (struct plim_message_open){"cuda:0", "max_split_size_mb:128", "model:\n", 99,
                                       {4, 1e11, 2e-5, "2.27.3"}, 5, 6};
        break;
    case 2:
        m.kind = PLIM_MESSAGE_OPENED;
        m.opened = (struct plim_message_opened){
            {"A100", "sim:A100", true, 80, 108, 2048, INT64_C(80) << 30, NULL}, 1234};
        break;
    case 3:
        m.kind = PLIM_MESSAGE_RUN;
        m.run = (struct plim_message_run){sample_setting(), INT64_C(1) << 40, 2.5, 0.25};
        break;
    case 4:
        m.kind = PLIM_MESSAGE_PHASE;
        m.phase = (struct plim_message_phase){PLIM_PHASE_STEP, 3};
        break;
    case 5:
        m.kind = PLIM_MESSAGE_RESULT;
        m.result = sample_result();
        break;
    case 6:
        m.kind = PLIM_MESSAGE_RESULT;
        m.result = sample_result();
        m.result.replay.verdict = PLIM_OK;
        m.result.replay.steps_done = PLIM_REPLAY_STEPS;
        break;
    case 7:
        m.kind = PLIM_MESSAGE_FAILED;
        m.failed.status = PLIM_NODEVICE;
        strcpy(m.failed.text, "no such device");
        break;
    case 8:
        m.kind = PLIM_MESSAGE_REDUCE;
        m.reduce.gpus = 8;
        break;
    case 9:
        m.kind = PLIM_MESSAGE_REDUCED;
        m.reduced = (struct plim_all_reduce){8, 2e11, 3e-5, "2.28.9"};
        break;
    default:
        m.kind = PLIM_MESSAGE_BYE;
    }
    return m;
}

static uint8_t bytes[PLIM_WIRE_MAX_BYTES], again[PLIM_WIRE_MAX_BYTES];

static size_t encode(int index, uint8_t *to)
{
    struct plim_message m = sample(index);
    size_t count = plim_wire_encode(&m, to, PLIM_WIRE_MAX_BYTES);
    cr_assert(lt(sz, PLIM_WIRE_HEADER_BYTES, count), "message %d", index);
    return count;
}

/* Decodes from memory of exactly that size, so that a sanitizer sees a byte too many. */
static enum plim_wire_state decode(const uint8_t *from, size_t count, struct plim_message *out,
                                   size_t *used)
{
    uint8_t *exact = malloc(count ? count : 1);
    cr_assert(exact != NULL);
    memcpy(exact, from, count);
    enum plim_wire_state state = plim_wire_decode(exact, count, out, used);
    free(exact);
    return state;
}

Test(wire, every_message_arrives_as_it_was)
{
    for (int i = 0; i < SAMPLES; i++) {
        struct plim_message out;
        size_t used = 0, count = encode(i, bytes);
        cr_assert(eq(int, plim_wire_decode(bytes, count, &out, &used), PLIM_WIRE_MESSAGE));
        cr_assert(eq(sz, used, count));
        cr_assert(eq(int, out.kind, sample(i).kind));
        cr_assert(eq(u32, out.id, 77));
        cr_assert(eq(sz, plim_wire_encode(&out, again, sizeof(again)), count), "message %d", i);
        cr_assert(not(memcmp(bytes, again, count)), "message %d", i);
    }
}

/* The encoder and the decoder share a list of fields; this is the list of the struct. */
Test(wire, no_field_of_a_result_is_forgotten)
{
    struct plim_message out;
    size_t used, count = encode(5, bytes);
    struct plim_message_result want = sample_result();
    cr_assert(eq(int, plim_wire_decode(bytes, count, &out, &used), PLIM_WIRE_MESSAGE));
    cr_expect(not(memcmp(&out.result.replay, &want.replay, sizeof(want.replay))));
    cr_expect(eq(dbl, out.result.timing.median_seconds, 0.5));
    cr_expect(eq(dbl, out.result.timing.half_width_seconds, 0.001));
    cr_expect(eq(dbl, out.result.timing.drift, -0.01));
    cr_expect(eq(int, out.result.timing.repeats, 12));
    cr_expect(out.result.timing.noisy && out.result.finite);
    cr_expect(out.result.refused && !out.result.suspect);
    cr_expect(eq(i64, out.result.free_before_bytes, 900));
    cr_expect(eq(i64, out.result.free_after_bytes, 7));
}

Test(wire, a_loss_may_be_no_number)
{
    struct plim_message out, m = sample(6);
    size_t used;
    m.result.replay.step[1].loss = NAN;
    size_t count = plim_wire_encode(&m, bytes, sizeof(bytes));
    cr_assert(eq(int, plim_wire_decode(bytes, count, &out, &used), PLIM_WIRE_MESSAGE));
    cr_expect(isnan(out.result.replay.step[1].loss) != 0);
}

Test(wire, no_field_of_a_request_is_forgotten)
{
    struct plim_message out;
    size_t used, count = encode(3, bytes);
    struct plim_setting want = sample_setting();
    cr_assert(eq(int, plim_wire_decode(bytes, count, &out, &used), PLIM_WIRE_MESSAGE));
    cr_expect(not(memcmp(&out.run.setting, &want, sizeof(want))));
    cr_expect(eq(i64, out.run.capacity_bytes, INT64_C(1) << 40));
    cr_expect(eq(dbl, out.run.timing_seconds, 2.5));
    cr_expect(eq(dbl, out.run.slow_seconds, 0.25));
}

/* A message is written completely or not at all, and never beyond the buffer. */
Test(wire, a_message_needs_its_room)
{
    for (int i = 0; i < SAMPLES; i++) {
        struct plim_message m = sample(i);
        size_t count = encode(i, bytes);
        for (size_t room = 0; room <= count; room++) {
            memset(again, 0xa5, count + 1);
            size_t written = plim_wire_encode(&m, again, room);
            cr_assert(eq(sz, written, room == count ? count : 0), "%d into %zu bytes", i, room);
            for (size_t n = room; n <= count; n++) cr_assert(eq(u8, again[n], 0xa5), "%d", i);
        }
    }
}

Test(wire, a_message_that_is_cut_short_is_never_a_message)
{
    for (int i = 0; i < SAMPLES; i++) {
        size_t used, count = encode(i, bytes);
        for (size_t n = 0; n < count; n++) {
            struct plim_message out;
            cr_assert(eq(int, decode(bytes, n, &out, &used), PLIM_WIRE_MORE), "%d cut to %zu", i,
                      n);
        }
    }
}

Test(wire, a_changed_byte_is_never_a_message)
{
    for (int i = 0; i < SAMPLES; i++) {
        size_t used, count = encode(i, bytes);
        for (size_t n = 0; n < count; n++)
            for (int bit = 0; bit <= 8; bit++) {
                struct plim_message out;
                uint8_t was = bytes[n];
                bytes[n] ^= (uint8_t)(bit < 8 ? 1 << bit : 0xff);
                cr_assert(ne(int, decode(bytes, count, &out, &used), PLIM_WIRE_MESSAGE),
                          "%d with byte %zu changed", i, n);
                bytes[n] = was;
            }
    }
}

static uint32_t checksum_of(const uint8_t *frame, size_t count)
{
    uint32_t hash = UINT32_C(2166136261);
    for (size_t i = 4; i < count; i++)
        if (i < 12 || i >= PLIM_WIRE_HEADER_BYTES) hash = (hash ^ frame[i]) * UINT32_C(16777619);
    return hash;
}

static void seal(uint8_t *frame, size_t count)
{
    uint32_t sum = checksum_of(frame, count);
    for (int i = 0; i < 4; i++) frame[12 + i] = (uint8_t)(sum >> (8 * i));
}

/* What a worker of ours might send with wrong contents: refused, or a message like any other. */
Test(wire, a_changed_byte_under_a_right_checksum_is_refused_or_sendable)
{
    int refused = 0;
    for (int i = 0; i < SAMPLES; i++) {
        size_t count = encode(i, bytes);
        for (size_t n = PLIM_WIRE_HEADER_BYTES; n < count; n++)
            for (int change = 1; change < 256; change += 2) {
                struct plim_message out;
                uint8_t was = bytes[n];
                size_t used;
                bytes[n] ^= (uint8_t)change;
                seal(bytes, count);
                enum plim_wire_state state = plim_wire_decode(bytes, count, &out, &used);
                cr_assert(ne(int, state, PLIM_WIRE_MORE));
                if (state != PLIM_WIRE_MESSAGE)
                    refused++;
                else
                    cr_assert(eq(sz, plim_wire_encode(&out, again, sizeof(again)), count),
                              "%d with byte %zu changed", i, n);
                bytes[n] = was;
            }
    }
    cr_assert(lt(int, 10000, refused));
}

Test(wire, noise_is_refused)
{
    struct plim_message out;
    size_t used;
    srand(5);
    for (int round = 0; round < 20000; round++) {
        size_t count = (size_t)(rand() % 200);
        for (size_t i = 0; i < count; i++) bytes[i] = (uint8_t)rand();
        if (round % 2 && count > 16) { /* a header that is right, but for what it promises */
            memcpy(bytes, "PLIM\1\0", 6);
            bytes[6] = (uint8_t)(1 + rand() % 8);
            bytes[7] = 0;
            uint32_t length = (uint32_t)count - PLIM_WIRE_HEADER_BYTES;
            for (int i = 0; i < 4; i++) bytes[8 + i] = (uint8_t)(length >> (8 * i));
            seal(bytes, count);
        }
        cr_assert(decode(bytes, count, &out, &used) != PLIM_WIRE_MESSAGE ||
                  plim_wire_encode(&out, again, sizeof(again)) == count);
    }
}

Test(wire, another_version_is_told_from_noise)
{
    struct plim_message out;
    size_t used, count = encode(0, bytes);
    bytes[4]++;
    seal(bytes, count);
    cr_assert(eq(int, plim_wire_decode(bytes, count, &out, &used), PLIM_WIRE_FOREIGN));
}

Test(wire, what_is_no_verdict_of_a_worker_is_not_sent)
{
    static const enum plim_status verdicts[] = {PLIM_NOMEM, PLIM_CRASHED, PLIM_TIMEOUT};
    for (size_t i = 0; i < 3; i++) {
        struct plim_message m = sample(5);
        m.result.replay.verdict = verdicts[i];
        cr_expect(eq(sz, plim_wire_encode(&m, bytes, sizeof(bytes)), 0));
    }
}

Test(wire, a_success_without_all_steps_is_not_sent)
{
    struct plim_message m = sample(6);
    m.result.replay.steps_done = PLIM_REPLAY_STEPS - 1;
    cr_expect(eq(sz, plim_wire_encode(&m, bytes, sizeof(bytes)), 0));
}

Test(wire, a_time_that_is_no_number_is_not_sent)
{
    struct plim_message m = sample(6);
    m.result.replay.step[2].seconds = NAN;
    cr_expect(eq(sz, plim_wire_encode(&m, bytes, sizeof(bytes)), 0));
}

/* --- over a socket ---------------------------------------------------------------------------- */

struct pair {
    int fds[2];
    struct plim_wire wire;
};

static struct pair open_pair(void)
{
    struct pair p = {.wire = {.fd = -1}};
    cr_assert(not(socketpair(AF_UNIX, SOCK_STREAM, 0, p.fds)));
    p.wire.fd = p.fds[0];
    return p;
}

static void close_pair(struct pair *p)
{
    plim_wire_finish(&p->wire);
    for (int i = 0; i < 2; i++)
        if (p->fds[i] >= 0) close(p->fds[i]);
}

Test(wire, messages_are_told_apart_however_they_arrive)
{
    struct pair p = open_pair();
    struct plim_message out;
    for (int i = 0; i < SAMPLES; i++) {
        size_t count = encode(i, bytes);
        size_t half = count / 2;
        cr_assert(eq(sz, (size_t)write(p.fds[1], bytes, half), half));
        cr_assert(eq(int, plim_wire_receive(&p.wire, &out, 0), PLIM_TIMEOUT));
        cr_assert(eq(sz, (size_t)write(p.fds[1], bytes + half, count - half), count - half));
        cr_assert(eq(sz, (size_t)write(p.fds[1], bytes, count), count));
        for (int twice = 0; twice < 2; twice++) {
            cr_assert(eq(int, plim_wire_receive(&p.wire, &out, 1), PLIM_OK));
            cr_assert(eq(int, out.kind, sample(i).kind));
        }
    }
    close_pair(&p);
}

Test(wire, the_end_of_the_stream_is_not_noise)
{
    struct pair p = open_pair();
    struct plim_message out;
    size_t count = encode(5, bytes);
    cr_assert(eq(sz, (size_t)write(p.fds[1], bytes, count - 1), count - 1));
    close(p.fds[1]);
    p.fds[1] = -1;
    cr_assert(eq(int, plim_wire_receive(&p.wire, &out, 1), PLIM_IO));
    cr_expect(not(p.wire.broken));
    close_pair(&p);
}

Test(wire, noise_ends_the_stream)
{
    struct pair p = open_pair();
    struct plim_message out;
    cr_assert(eq(sz, (size_t)write(p.fds[1], "Segmentation fault (core dumped)\n", 33), 33));
    cr_assert(eq(int, plim_wire_receive(&p.wire, &out, 1), PLIM_IO));
    cr_expect(p.wire.broken);
    close_pair(&p);
}

Test(wire, sending_to_a_closed_end_is_an_error_and_no_signal)
{
    struct pair p = open_pair();
    struct plim_message m = sample(5);
    close(p.fds[1]);
    p.fds[1] = -1;
    cr_assert(eq(int, plim_wire_send(&p.wire, &m, 1), PLIM_IO));
    close_pair(&p);
}

struct slow_reader {
    int fd;
    size_t count;
};

/* Reads in pieces, so that the sender finds the socket full again and again. */
static void *read_slowly(void *user)
{
    struct slow_reader *reader = user;
    for (ssize_t n; (n = read(reader->fd, again + reader->count, 4096)) > 0;) {
        reader->count += (size_t)n;
        nanosleep(&(struct timespec){0, 100000}, NULL);
    }
    return NULL;
}

Test(wire, a_message_larger_than_the_socket_s_buffer_arrives_whole)
{
    static char spec[200000];
    struct pair p = open_pair();
    struct slow_reader reader = {p.fds[1], 0};
    struct plim_message m = sample(1);
    pthread_t thread;
    int small = 4096;
    for (size_t i = 0; i < sizeof(spec) - 1; i++) spec[i] = (char)('a' + i % 23);
    m.open.spec = spec;
    cr_assert(not(setsockopt(p.fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small))));
    cr_assert(not(pthread_create(&thread, NULL, read_slowly, &reader)));
    cr_assert(eq(int, plim_wire_send(&p.wire, &m, 30), PLIM_OK));
    shutdown(p.fds[0], SHUT_WR);
    pthread_join(thread, NULL);
    size_t count = plim_wire_encode(&m, bytes, sizeof(bytes));
    cr_assert(lt(sz, sizeof(spec), count));
    cr_expect(eq(sz, reader.count, count));
    cr_expect(not(memcmp(bytes, again, count)));
    close_pair(&p);
}

Test(wire, sending_to_one_that_does_not_read_ends)
{
    struct pair p = open_pair();
    struct plim_message m = sample(5);
    enum plim_status st = PLIM_OK;
    for (int i = 0; i < 10000 && !st; i++) st = plim_wire_send(&p.wire, &m, 0.02);
    cr_assert(eq(int, st, PLIM_TIMEOUT));
    close_pair(&p);
}
