/* The protocol between plimsoll and its worker processes.
 *
 *     parent                         worker
 *                                    HELLO    version, build
 *     REDUCE   number of GPUs  ->
 *                              <-    PHASE    timing the all-reduce
 *                              <-    REDUCED  their speed         (or FAILED)
 *     OPEN     device, spec    ->
 *                              <-    PHASE    opening
 *                              <-    OPENED   the device          (or FAILED)
 *     RUN      a setting       ->
 *                              <-    PHASE    building, step 1, ..., timing, clearing
 *                              <-    RESULT   verdict and numbers (or FAILED)
 *     BYE                      ->    exits, as at the end of the stream
 *
 * REDUCE is only sent to a separate worker that opens no device (all_reduce.h).
 *
 * A message is a header of 16 bytes and a payload; all numbers are little-endian:
 *
 *     u32 magic    u16 version    u16 kind    u32 payload bytes    u32 checksum
 *
 * The checksum is FNV-1a over version, kind, length and payload; any single changed byte changes it. Fields are sent
 * one by one, never as structs, and each is checked when it arrives (enumerators, counts, finite times). The spec is
 * sent as YAML (plim_spec_write), with its hash to verify that it was read back correctly; a setting is sent as its
 * values along the spec's axes, which both ends know (run/spec_question.h).
 *
 * Nothing is read after the first invalid message. */
#ifndef PLIM_AUTOTUNE_RUN_WIRE_H
#define PLIM_AUTOTUNE_RUN_WIRE_H

#include "autotune/run/measure.h"
#include "autotune/search/setting.h"
#include "devices/all_reduce.h"
#include "workloads/train/replay.h"

enum { PLIM_WIRE_VERSION = 1, PLIM_WIRE_HEADER_BYTES = 16, PLIM_WIRE_MAX_BYTES = 1 << 18 };

/* The phases of a worker, in order: within a request it never goes back. */
#define PLIM_PHASE_MAP(X)                                                                          \
    X(STARTING, "starting")                                                                        \
    X(REDUCING, "timing the all-reduce")                                                           \
    X(OPENING, "opening the device")                                                               \
    X(BUILDING, "building the model")                                                              \
    X(STEP, "step")                                                                                \
    X(TIMING, "timing")                                                                            \
    X(CLEARING, "giving memory back")

enum plim_worker_phase {
#define PLIM_PHASE_ENUM(name, text) PLIM_PHASE_##name,
    PLIM_PHASE_MAP(PLIM_PHASE_ENUM)
#undef PLIM_PHASE_ENUM
        PLIM_PHASE_COUNT
};

const char *plim_worker_phase_name(enum plim_worker_phase phase);

enum plim_message_kind {
    PLIM_MESSAGE_HELLO = 1,
    PLIM_MESSAGE_OPEN,
    PLIM_MESSAGE_OPENED,
    PLIM_MESSAGE_RUN,
    PLIM_MESSAGE_PHASE,
    PLIM_MESSAGE_RESULT,
    PLIM_MESSAGE_FAILED,
    PLIM_MESSAGE_BYE,
    PLIM_MESSAGE_REDUCE,
    PLIM_MESSAGE_REDUCED
};

struct plim_message_hello {
    const char *build; /* version of the executable, which must be the same at both ends */
};

struct plim_message_reduce {
    int gpus; /* use the first so many GPUs that the worker sees */
};

struct plim_message_open {
    const char *uri;        /* of the device */
    const char *alloc_conf; /* allocator options in PyTorch's syntax; "": its defaults */
    const char *spec;       /* YAML */
    uint64_t spec_hash;
    struct plim_all_reduce all_reduce; /* measured among GPUs of this kind; zeroed: not measured */
    int64_t leak_bytes; /* limit of the memory missing, in total, after runs of settings that had run before */
    int64_t load_bytes; /* same, after first runs of settings, which load kernels and plans (leaks.h) */
};

struct plim_message_opened {
    struct plim_device_info info;
    int64_t free_bytes;
};

struct plim_message_run {
    struct plim_setting setting;
    int64_t capacity_bytes; /* the most memory that may be held; 0: no limit */
    double timing_seconds;  /* the time for repeats; 0: no repeats */
    /* If a step takes longer than this, the setting will not be chosen and is not repeated: its first steps give its
     * time well enough. 0: no limit */
    double slow_seconds;
};

struct plim_message_phase {
    enum plim_worker_phase phase;
    int step; /* for PLIM_PHASE_STEP its number, from 1; otherwise 0 */
};

struct plim_message_result {
    struct plim_replay replay; /* its verdict: PLIM_OK, PLIM_OOM, PLIM_UNSUPPORTED, PLIM_LOST */
    struct plim_timing timing;
    bool finite; /* every loss was finite */
    /* The next run should use a new worker: more memory is missing than OPEN allows, or the device is suspect. */
    bool suspect;
    bool refused; /* for PLIM_OOM: the GPU itself ran out of memory, below the limit */
    int64_t free_before_bytes, free_after_bytes;
};

struct plim_message_failed {
    enum plim_status status;
    char text[PLIM_ERROR_TEXT];
};

struct plim_message {
    enum plim_message_kind kind;
    uint32_t id; /* of the request: set in RUN, repeated in PHASE, RESULT and FAILED; 0 before the first RUN */
    union {
        struct plim_message_hello hello;
        struct plim_message_open open;
        struct plim_message_opened opened;
        struct plim_message_run run;
        struct plim_message_phase phase;
        struct plim_message_result result;
        struct plim_message_failed failed;
        struct plim_message_reduce reduce;
        struct plim_all_reduce reduced;
    };
};

/* Encodes a message. Returns the number of bytes written to `buffer`, 0 if the message does not fit or is invalid. */
size_t plim_wire_encode(const struct plim_message *message, uint8_t *buffer, size_t size);

enum plim_wire_state {
    PLIM_WIRE_MESSAGE, /* a message was decoded from the first `used` bytes */
    PLIM_WIRE_MORE,    /* the message is incomplete */
    PLIM_WIRE_FOREIGN, /* a message of another version of the protocol */
    PLIM_WIRE_BROKEN   /* not a message */
};

/* Decodes a message. Strings of type `const char *` in `out` point into `bytes`. */
enum plim_wire_state plim_wire_decode(const uint8_t *bytes, size_t count, struct plim_message *out,
                                      size_t *used);

/* --- over a socket ---------------------------------------------------------------------------- */

/* One end of a stream socket. Ready when zeroed, with `fd` set, which the caller owns. */
struct plim_wire {
    int fd;
    uint8_t *buffer;
    size_t count, used; /* bytes in the buffer; bytes of the last returned message */
    bool broken;        /* PLIM_IO was due to an invalid message, not to the end of the stream */
};

void plim_wire_finish(struct plim_wire *wire);

/* Send or receive one message, waiting at most `seconds` (0: not at all; negative: without limit). A received message
 * is valid until the next call. PLIM_TIMEOUT: the time is over, or a signal arrived; receiving may be tried again.
 * PLIM_IO: the other end has closed the stream or sent something invalid. PLIM_UNSUPPORTED: it speaks another version.
 * PLIM_INVALID: the message cannot be encoded. PLIM_NOMEM. */
enum plim_status plim_wire_send(struct plim_wire *wire, const struct plim_message *message,
                                double seconds) PLIM_MUST_CHECK;
enum plim_status plim_wire_receive(struct plim_wire *wire, struct plim_message *out,
                                   double seconds) PLIM_MUST_CHECK;

#endif
