#include "wire.h"
#include "autotune/base/clock.h"
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { MOST_GPUS = 1024 };

const char *plim_worker_phase_name(enum plim_worker_phase phase)
{
    static const char *const names[] = {
#define NAME(name, text) [PLIM_PHASE_##name] = text,
        PLIM_PHASE_MAP(NAME)
#undef NAME
    };
    return (size_t)phase < PLIM_PHASE_COUNT ? names[phase] : "?";
}

/* --- fields ----------------------------------------------------------------------------------- */

/* Encodes or decodes fields, so that one list of fields serves both: reads from `in` if it is set, otherwise writes to
 * `out`. */
struct codec {
    const uint8_t *in;
    uint8_t *out;
    size_t left;
    bool bad;
};

static void check(struct codec *c, bool good)
{
    if (!good) c->bad = true;
}

static void pass_number(struct codec *c, uint64_t *value, size_t bytes)
{
    uint64_t read = 0;
    check(c, c->left >= bytes);
    if (c->bad) {
        if (c->in) *value = 0;
        return;
    }
    for (size_t i = 0; i < bytes; i++) {
        if (c->in)
            read |= (uint64_t)*c->in++ << (8 * i);
        else
            *c->out++ = (uint8_t)(*value >> (8 * i));
    }
    c->left -= bytes;
    if (c->in) *value = read;
}

static void pass_u32(struct codec *c, uint32_t *value)
{
    uint64_t wide = *value;
    pass_number(c, &wide, 4);
    *value = (uint32_t)wide;
}

static void pass_i64(struct codec *c, int64_t *value)
{
    uint64_t bits;
    memcpy(&bits, value, sizeof(bits));
    pass_number(c, &bits, 8);
    memcpy(value, &bits, sizeof(bits));
}

/* A size or a count, never negative. */
static void pass_amount(struct codec *c, int64_t *value)
{
    pass_i64(c, value);
    check(c, *value >= 0);
}

static void pass_int(struct codec *c, int *value, int low, int high)
{
    int64_t wide = *value;
    pass_i64(c, &wide);
    check(c, wide >= low && wide <= high);
    *value = c->bad ? low : (int)wide;
}

/* Any double, including NaN. */
static void pass_bits(struct codec *c, double *value)
{
    uint64_t bits;
    memcpy(&bits, value, sizeof(bits));
    pass_number(c, &bits, 8);
    memcpy(value, &bits, sizeof(bits));
}

static void pass_double(struct codec *c, double *value)
{
    pass_bits(c, value);
    check(c, isfinite(*value));
}

static void pass_seconds(struct codec *c, double *value)
{
    pass_double(c, value);
    check(c, *value >= 0);
}

static void pass_bool(struct codec *c, bool *value)
{
    int number = *value;
    pass_int(c, &number, 0, 1);
    *value = number;
}

/* An enum with the enumerators 0 to count - 1. */
#define PASS_ENUM(c, value, count)                                                                 \
    do {                                                                                           \
        int number_ = (int)(value);                                                                \
        pass_int((c), &number_, 0, (int)(count)-1);                                                \
        (value) = number_;                                                                         \
    } while (0)

/* A string with its terminator. When decoding, *text points into the decoded bytes. */
static void pass_text(struct codec *c, const char **text)
{
    uint32_t length = c->in ? 0 : (uint32_t)strlen(*text);
    pass_u32(c, &length);
    check(c, c->left > length);
    if (c->in && !c->bad) check(c, memchr(c->in, 0, length + 1) == c->in + length);
    if (c->bad) {
        if (c->in) *text = "";
        return;
    }
    if (c->in) {
        *text = (const char *)c->in;
        c->in += length + 1;
    } else {
        memcpy(c->out, *text, length + 1);
        c->out += length + 1;
    }
    c->left -= length + 1;
}

static void pass_array(struct codec *c, char *text, size_t size)
{
    const char *borrowed = text;
    pass_text(c, &borrowed);
    if (!c->in) return;
    check(c, strlen(borrowed) < size);
    if (c->bad) borrowed = "";
    memcpy(text, borrowed, strlen(borrowed) + 1);
}

/* --- messages --------------------------------------------------------------------------------- */

static void pass_info(struct codec *c, struct plim_device_info *info)
{
    pass_array(c, info->name, sizeof(info->name));
    pass_array(c, info->uri, sizeof(info->uri));
    pass_bool(c, &info->simulated);
    pass_int(c, &info->compute_capability, 0, 10000);
    pass_int(c, &info->multiprocessors, 0, 1 << 20);
    pass_int(c, &info->threads_per_multiprocessor, 0, 1 << 20);
    pass_amount(c, &info->total_bytes);
}

/* The values are not checked against the spec, which is not known here. */
static void pass_setting(struct codec *c, struct plim_setting *s)
{
    pass_amount(c, &s->micro_batch);
    pass_amount(c, &s->accumulation);
    for (int i = 0; i < PLIM_AXES; i++) pass_i64(c, &s->value[i]);
}

static void pass_step(struct codec *c, struct plim_replay_step *s)
{
    pass_amount(c, &s->after_forward_bytes);
    pass_amount(c, &s->peak_allocated_bytes);
    pass_amount(c, &s->peak_reserved_bytes);
    pass_amount(c, &s->peak_requested_bytes);
    pass_amount(c, &s->end_allocated_bytes);
    pass_amount(c, &s->end_reserved_bytes);
    pass_amount(c, &s->evaluation_allocated_bytes);
    pass_amount(c, &s->evaluation_reserved_bytes);
    pass_amount(c, &s->evaluation_requested_bytes);
    pass_seconds(c, &s->seconds);
    pass_bits(c, &s->loss);
}

static void pass_verdict(struct codec *c, enum plim_status *verdict)
{
    PASS_ENUM(c, *verdict, PLIM_INTERNAL + 1);
    check(c, *verdict == PLIM_OK || *verdict == PLIM_OOM || *verdict == PLIM_UNSUPPORTED ||
                 *verdict == PLIM_LOST);
}

static void pass_replay(struct codec *c, struct plim_replay *r)
{
    pass_verdict(c, &r->verdict);
    pass_array(c, r->why, sizeof(r->why));
    pass_amount(c, &r->parameters);
    pass_amount(c, &r->trainable_parameters);
    pass_int(c, &r->steps_done, 0, PLIM_REPLAY_STEPS);
    for (int i = 0; i < PLIM_REPLAY_STEPS; i++) pass_step(c, &r->step[i]);
    pass_amount(c, &r->peak_allocated_bytes);
    pass_amount(c, &r->peak_reserved_bytes);
    for (int i = 0; i < PLIM_MEMORY_CLASS_COUNT; i++) pass_amount(c, &r->class_bytes[i]);
    pass_amount(c, &r->loading_allocated_bytes);
    pass_amount(c, &r->loading_reserved_bytes);
    pass_amount(c, &r->evaluation_batch);
    pass_amount(c, &r->evaluation_every);
    pass_int(c, &r->evaluations, 0, PLIM_REPLAY_STEPS);
    pass_amount(c, &r->evaluation_allocated_bytes);
    pass_amount(c, &r->evaluation_reserved_bytes);
    pass_amount(c, &r->start_allocated_bytes);
    pass_amount(c, &r->start_reserved_bytes);
    pass_amount(c, &r->start_requested_bytes);
    pass_amount(c, &r->managed_bytes);
    pass_amount(c, &r->host_bytes);
    pass_amount(c, &r->rank);
    pass_amount(c, &r->rank0_reserved_bytes);
    pass_amount(c, &r->retries);
    pass_amount(c, &r->oom_asked_bytes);
    PASS_ENUM(c, r->oom_class, PLIM_MEMORY_CLASS_COUNT);
    pass_array(c, r->oom_where, sizeof(r->oom_where));
    pass_seconds(c, &r->communication_seconds);
    pass_seconds(c, &r->link_bytes_per_second);
    pass_seconds(c, &r->link_latency_seconds);
    pass_int(c, &r->link_gpus, 0, MOST_GPUS);
    pass_seconds(c, &r->model_flops_per_token);
    pass_u32(c, &r->sdpa_engines);
    pass_bool(c, &r->groups_one_by_one);
    pass_bool(c, &r->delta_on_fp32);
    check(c, r->verdict != PLIM_OK || r->steps_done == PLIM_REPLAY_STEPS);
}

static void pass_result(struct codec *c, struct plim_message_result *r)
{
    pass_replay(c, &r->replay);
    pass_int(c, &r->timing.repeats, 0, PLIM_MEASURE_REPEATS);
    pass_seconds(c, &r->timing.median_seconds);
    pass_seconds(c, &r->timing.half_width_seconds);
    pass_double(c, &r->timing.drift);
    pass_bool(c, &r->timing.noisy);
    pass_bool(c, &r->finite);
    pass_bool(c, &r->suspect);
    pass_bool(c, &r->refused);
    pass_amount(c, &r->free_before_bytes);
    pass_amount(c, &r->free_after_bytes);
}

static void pass_all_reduce(struct codec *c, struct plim_all_reduce *a)
{
    pass_int(c, &a->gpus, 0, MOST_GPUS);
    pass_seconds(c, &a->bytes_per_second);
    pass_seconds(c, &a->latency_seconds);
    pass_array(c, a->nccl, sizeof(a->nccl));
    check(c, (a->gpus > 1) == (a->bytes_per_second > 0));
}

static void pass_open(struct codec *c, struct plim_message_open *open)
{
    pass_text(c, &open->uri);
    pass_text(c, &open->alloc_conf);
    pass_text(c, &open->spec);
    pass_number(c, &open->spec_hash, 8);
    pass_all_reduce(c, &open->all_reduce);
    pass_amount(c, &open->leak_bytes);
    pass_amount(c, &open->load_bytes);
}

static void pass_run(struct codec *c, struct plim_message_run *run)
{
    pass_setting(c, &run->setting);
    pass_amount(c, &run->capacity_bytes);
    pass_seconds(c, &run->timing_seconds);
    pass_seconds(c, &run->slow_seconds);
}

static void pass_phase(struct codec *c, struct plim_message_phase *phase)
{
    PASS_ENUM(c, phase->phase, PLIM_PHASE_COUNT);
    pass_int(c, &phase->step, 0, PLIM_REPLAY_STEPS);
}

static void pass_failed(struct codec *c, struct plim_message_failed *failed)
{
    PASS_ENUM(c, failed->status, PLIM_INTERNAL + 1);
    check(c, failed->status != PLIM_OK);
    pass_array(c, failed->text, sizeof(failed->text));
}

static void pass_reduce(struct codec *c, struct plim_message_reduce *reduce)
{
    pass_int(c, &reduce->gpus, 2, MOST_GPUS);
}

static void pass_message(struct codec *c, struct plim_message *m)
{
    pass_u32(c, &m->id);
    switch (m->kind) {
    case PLIM_MESSAGE_HELLO:
        pass_text(c, &m->hello.build);
        return;
    case PLIM_MESSAGE_OPEN:
        pass_open(c, &m->open);
        return;
    case PLIM_MESSAGE_OPENED:
        pass_info(c, &m->opened.info);
        pass_amount(c, &m->opened.free_bytes);
        return;
    case PLIM_MESSAGE_RUN:
        pass_run(c, &m->run);
        return;
    case PLIM_MESSAGE_PHASE:
        pass_phase(c, &m->phase);
        return;
    case PLIM_MESSAGE_RESULT:
        pass_result(c, &m->result);
        return;
    case PLIM_MESSAGE_FAILED:
        pass_failed(c, &m->failed);
        return;
    case PLIM_MESSAGE_BYE:
        return;
    case PLIM_MESSAGE_REDUCE:
        pass_reduce(c, &m->reduce);
        return;
    case PLIM_MESSAGE_REDUCED:
        pass_all_reduce(c, &m->reduced);
        check(c, m->reduced.gpus > 1);
        return;
    }
    c->bad = true;
}

/* --- frames ----------------------------------------------------------------------------------- */

static const uint32_t MAGIC = 0x4d494c50; /* "PLIM" */

/* FNV-1a with 32 bits: offset basis and prime of RFC 9923, section 5. */
static uint32_t fnv1a(uint32_t hash, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) hash = (hash ^ bytes[i]) * UINT32_C(16777619);
    return hash;
}

/* Returns the checksum of the header between magic and checksum, and of the payload. */
static uint32_t checksum(const uint8_t *frame, size_t payload_bytes)
{
    uint32_t hash = fnv1a(UINT32_C(2166136261), frame + 4, PLIM_WIRE_HEADER_BYTES - 8);
    return fnv1a(hash, frame + PLIM_WIRE_HEADER_BYTES, payload_bytes);
}

struct header {
    uint64_t magic, version, kind, payload_bytes, checksum;
};

static void pass_header(struct codec *c, struct header *h)
{
    pass_number(c, &h->magic, 4);
    pass_number(c, &h->version, 2);
    pass_number(c, &h->kind, 2);
    pass_number(c, &h->payload_bytes, 4);
    pass_number(c, &h->checksum, 4);
}

size_t plim_wire_encode(const struct plim_message *message, uint8_t *buffer, size_t size)
{
    if (size < PLIM_WIRE_HEADER_BYTES) return 0;
    if (size > PLIM_WIRE_MAX_BYTES) size = PLIM_WIRE_MAX_BYTES;
    struct plim_message copy = *message;
    struct codec c = {.out = buffer + PLIM_WIRE_HEADER_BYTES,
                      .left = size - PLIM_WIRE_HEADER_BYTES};
    pass_message(&c, &copy);
    if (c.bad) return 0;
    struct header h = {.magic = MAGIC,
                       .version = PLIM_WIRE_VERSION,
                       .kind = (uint64_t)message->kind,
                       .payload_bytes = (uint64_t)(c.out - buffer) - PLIM_WIRE_HEADER_BYTES};
    struct codec head = {.out = buffer, .left = PLIM_WIRE_HEADER_BYTES};
    pass_header(&head, &h);
    h.checksum = checksum(buffer, h.payload_bytes);
    head = (struct codec){.out = buffer, .left = PLIM_WIRE_HEADER_BYTES};
    pass_header(&head, &h);
    return PLIM_WIRE_HEADER_BYTES + h.payload_bytes;
}

enum plim_wire_state plim_wire_decode(const uint8_t *bytes, size_t count, struct plim_message *out,
                                      size_t *used)
{
    struct header h;
    if (count < PLIM_WIRE_HEADER_BYTES) return PLIM_WIRE_MORE;
    struct codec c = {.in = bytes, .left = PLIM_WIRE_HEADER_BYTES};
    pass_header(&c, &h);
    if (h.magic != MAGIC) return PLIM_WIRE_BROKEN;
    if (h.version != PLIM_WIRE_VERSION) return PLIM_WIRE_FOREIGN;
    if (h.payload_bytes > PLIM_WIRE_MAX_BYTES - PLIM_WIRE_HEADER_BYTES) return PLIM_WIRE_BROKEN;
    if (count - PLIM_WIRE_HEADER_BYTES < h.payload_bytes) return PLIM_WIRE_MORE;
    if (h.checksum != checksum(bytes, h.payload_bytes)) return PLIM_WIRE_BROKEN;
    *out = (struct plim_message){.kind = (enum plim_message_kind)h.kind};
    c.left = h.payload_bytes;
    pass_message(&c, out);
    if (c.bad || c.left) return PLIM_WIRE_BROKEN;
    *used = PLIM_WIRE_HEADER_BYTES + h.payload_bytes;
    return PLIM_WIRE_MESSAGE;
}

/* --- over a socket ---------------------------------------------------------------------------- */

void plim_wire_finish(struct plim_wire *wire)
{
    free(wire->buffer);
    *wire = (struct plim_wire){.fd = -1};
}

/* Waits until the socket is ready for `events`, but not beyond the clock time `end` (negative: without limit). */
static enum plim_status await(int fd, short events, double end)
{
    struct pollfd poll_fd = {.fd = fd, .events = events};
    double left = end < 0 ? -1 : end - plim_clock_seconds();
    int milliseconds = end < 0 ? -1 : left <= 0 ? 0 : left > 3600 ? 3600000 : (int)ceil(left * 1e3);
    int ready = poll(&poll_fd, 1, milliseconds);
    if (ready > 0) return PLIM_OK;
    return ready == 0 || errno == EINTR ? PLIM_TIMEOUT : PLIM_IO;
}

static double end_of(double seconds)
{
    return seconds < 0 ? -1 : plim_clock_seconds() + seconds;
}

enum plim_status plim_wire_send(struct plim_wire *wire, const struct plim_message *message,
                                double seconds)
{
    double end = end_of(seconds);
    uint8_t *frame = malloc(PLIM_WIRE_MAX_BYTES);
    if (!frame) return PLIM_NOMEM;
    size_t count = plim_wire_encode(message, frame, PLIM_WIRE_MAX_BYTES), sent = 0;
    enum plim_status st = count ? PLIM_OK : PLIM_INVALID;
    while (!st && sent < count) {
        ssize_t n = send(wire->fd, frame + sent, count - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0)
            sent += (size_t)n;
        else if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
            st = PLIM_IO;
        else
            st = await(wire->fd, POLLOUT, end);
    }
    free(frame);
    return st;
}

/* Decodes the message at the start of the buffer. PLIM_TIMEOUT: it is incomplete. */
static enum plim_status decode_message(struct plim_wire *wire, struct plim_message *out)
{
    switch (plim_wire_decode(wire->buffer, wire->count, out, &wire->used)) {
    case PLIM_WIRE_MESSAGE:
        return PLIM_OK;
    case PLIM_WIRE_MORE:
        return PLIM_TIMEOUT;
    case PLIM_WIRE_FOREIGN:
        return PLIM_UNSUPPORTED;
    case PLIM_WIRE_BROKEN:
        break;
    }
    wire->broken = true;
    return PLIM_IO;
}

enum plim_status plim_wire_receive(struct plim_wire *wire, struct plim_message *out, double seconds)
{
    double end = end_of(seconds);
    if (!wire->buffer && !(wire->buffer = malloc(PLIM_WIRE_MAX_BYTES))) return PLIM_NOMEM;
    memmove(wire->buffer, wire->buffer + wire->used, wire->count - wire->used);
    wire->count -= wire->used;
    wire->used = 0;
    for (;;) {
        enum plim_status st = decode_message(wire, out);
        if (st != PLIM_TIMEOUT) return st;
        ssize_t n = recv(wire->fd, wire->buffer + wire->count, PLIM_WIRE_MAX_BYTES - wire->count,
                         MSG_DONTWAIT);
        if (n > 0) {
            wire->count += (size_t)n;
            continue;
        }
        if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) return PLIM_IO;
        st = await(wire->fd, POLLIN, end);
        if (st) return st;
    }
}
