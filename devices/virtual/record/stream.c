#define _GNU_SOURCE /* posix_fallocate, gettid */
#include "stream.h"
#include "autotune/base/clock.h"
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The part of the file that is mapped: a whole number of events and of pages. */
enum { WINDOW_EVENTS = 32768 };
#define WINDOW_BYTES ((off_t)WINDOW_EVENTS * (off_t)sizeof(struct plim_stream_event))

static struct {
    pid_t owner; /* 0: not opened yet. A forked child opens its own file */
    int fd;      /* -1: nothing is written */
    struct plim_stream_head *head;
    struct plim_stream_event *window;
    int64_t reserved_bytes; /* in a file of blocks: largest total size of the segments */
    int gpu;                /* index + 1 of the GPU of the blocks; 0: none yet */
} stream = {.fd = -1};

/* What the environment asks to write; checked at every launch, so it is cached. */
enum content { NOTHING, EVERYTHING, BLOCKS };

static bool is_set(const char *variable)
{
    const char *folder = getenv(variable);
    return folder && *folder;
}

static enum content content(void)
{
    enum { NOT_LOOKED_AT = -1 };
    static atomic_int known = NOT_LOOKED_AT;
    if (known == NOT_LOOKED_AT)
        known = is_set(PLIM_STREAM_VARIABLE)          ? EVERYTHING
                : is_set(PLIM_STREAM_BLOCKS_VARIABLE) ? BLOCKS
                                                      : NOTHING;
    return (enum content)known;
}

/* CPU time of this thread at its last event (plus paused time), and when it paused. */
static _Thread_local uint64_t last_microseconds, paused_microseconds;

static void *map(off_t at, size_t bytes)
{
    if (posix_fallocate(stream.fd, at, (off_t)bytes)) return NULL;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, stream.fd, at);
    return memory == MAP_FAILED ? NULL : memory;
}

static void begin(void)
{
    char path[4096];
    const char *folder =
        getenv(plim_stream_is_on() ? PLIM_STREAM_VARIABLE : PLIM_STREAM_BLOCKS_VARIABLE);
    stream.owner = getpid();
    stream.fd = -1;
    stream.window = NULL;
    if (content() == NOTHING || !folder) return;
    int length = snprintf(path, sizeof(path), "%s/%ld", folder, (long)stream.owner);
    if (length < 0 || (size_t)length >= sizeof(path)) return;
    stream.fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (stream.fd < 0) return;
    stream.head = map(0, PLIM_STREAM_HEAD_BYTES);
    if (!stream.head) {
        close(stream.fd);
        stream.fd = -1;
        return;
    }
    stream.head->version = PLIM_STREAM_VERSION;
    stream.head->event_bytes = sizeof(struct plim_stream_event);
    memcpy(stream.head->magic, "plimstrm", sizeof(stream.head->magic));
}

/* Returns the place of the next event, or NULL if there is no room for it or any later one. */
static struct plim_stream_event *next_place(void)
{
    uint64_t count = stream.head->count;
    if (stream.head->lost ||
        count >= (plim_stream_is_on() ? PLIM_STREAM_MOST : PLIM_STREAM_MOST_BLOCKS))
        return NULL;
    if (count % WINDOW_EVENTS == 0) {
        if (stream.window) munmap(stream.window, (size_t)WINDOW_BYTES);
        stream.window = map(PLIM_STREAM_HEAD_BYTES + (off_t)(count / WINDOW_EVENTS) * WINDOW_BYTES,
                            (size_t)WINDOW_BYTES);
    }
    return stream.window ? &stream.window[count % WINDOW_EVENTS] : NULL;
}

static uint64_t thread_microseconds(void)
{
    return (uint64_t)(plim_clock_thread_seconds() * 1e6);
}

static uint32_t microseconds_passed(void)
{
    uint64_t now = thread_microseconds(), before = last_microseconds;
    last_microseconds = now;
    return now < before ? 0 : now - before < UINT32_MAX ? (uint32_t)(now - before) : UINT32_MAX;
}

static void write_event(enum plim_stream_kind kind, int cuda_stream, uint64_t what, int64_t bytes)
{
    if (stream.owner != getpid()) begin();
    if (stream.fd < 0) return;
    struct plim_stream_event *event = next_place();
    if (!event) {
        stream.head->lost++;
        return;
    }
    bool is_of_launch = kind == PLIM_STREAM_COST || kind == PLIM_STREAM_NUMBER ||
                   kind == PLIM_STREAM_REDUCE; /* they belong to their launch */
    bool is_timed = plim_stream_is_on() && !is_of_launch;
    *event = (struct plim_stream_event){.kind = (uint16_t)kind,
                                        .cuda_stream = (uint16_t)cuda_stream,
                                        .microseconds = is_timed ? microseconds_passed() : 0,
                                        .what = what,
                                        .bytes = bytes};
    stream.head->count++;
}

void plim_stream_write(enum plim_stream_kind kind, uint64_t what, int64_t bytes)
{
    if (plim_stream_is_on() || kind == PLIM_STREAM_EMPTY_CACHE) write_event(kind, 0, what, bytes);
}

void plim_stream_allocation(uint64_t at, int64_t bytes, int cuda_stream)
{
    if (plim_stream_is_on()) write_event(PLIM_STREAM_ALLOCATION, cuda_stream, at, bytes);
}

void plim_stream_step(void)
{
    write_event(PLIM_STREAM_STEP, 0, 0, stream.reserved_bytes);
}

/* Blocks of one GPU only: when a second GPU appears, the file ends. */
void plim_stream_block(uint64_t at, int64_t bytes, int64_t reserved_bytes, int gpu, int cuda_stream)
{
    if (!plim_stream_has_blocks()) return;
    write_event(bytes > 0 ? PLIM_STREAM_ALLOCATION : PLIM_STREAM_FREE, cuda_stream, at, bytes);
    if (stream.fd < 0) return;
    if (stream.gpu && stream.gpu != gpu + 1) stream.head->lost++;
    stream.gpu = gpu + 1;
    if (reserved_bytes > stream.reserved_bytes) stream.reserved_bytes = reserved_bytes;
}

bool plim_stream_is_on(void)
{
    return content() == EVERYTHING;
}
bool plim_stream_has_blocks(void)
{
    return content() == BLOCKS;
}

void plim_stream_pause(void)
{
    if (plim_stream_is_on()) paused_microseconds = thread_microseconds();
}

void plim_stream_resume(void)
{
    if (plim_stream_is_on()) last_microseconds += thread_microseconds() - paused_microseconds;
}

/* PyTorch's autograd runs the backward pass in threads of its own. */
void plim_stream_cost(const struct plim_cost *cost)
{
    struct plim_cost here = *cost;
    int last = PLIM_COST_NUMBERS - 1;
    here.in_autograd = gettid() != getpid();
    while (last > 0 && !cost->number[last]) last--;
    plim_stream_write(PLIM_STREAM_COST, plim_stream_head_of(&here), cost->number[0]);
    for (int i = 1; i <= last; i++) plim_stream_write(PLIM_STREAM_NUMBER, 0, cost->number[i]);
}

void plim_stream_reduce(const struct plim_reduce_launch *launch, bool shares, int cuda_stream)
{
    uint64_t what = launch->partial_bytes | (uint64_t)launch->vector << 8 |
                    (uint64_t)launch->threads_share << 16 | (uint64_t)shares << 17;
    write_event(PLIM_STREAM_REDUCE, cuda_stream, what, launch->outputs << 32 | launch->inputs);
}
