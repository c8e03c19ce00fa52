#include "transfer.h"
#include "devices/virtual/memory/heap.h"
#include "devices/virtual/memory/round_trip.h"
#include "devices/virtual/memory/shadow.h"
#include "devices/virtual/record/stream.h"
#include "devices/virtual/steps/watch.h"
#include <string.h>

/* Fills of at most this size clear the counters of a kernel that reduces in several blocks, before it is launched; they
 * are part of its cost. */
enum { COUNTERS_BYTES = 1 << 10 };

int (*plim_transfer_synchronize)(void);
void (*plim_transfer_asked)(uintptr_t, void *, size_t, unsigned);

int plim_transfer_wait(void) { return plim_transfer_synchronize ? plim_transfer_synchronize() : GPU_OK; }

/* Gives the host the known values, and 0 for the others unless plim_transfer_asked changes them. */
static void read(uintptr_t from, void *to, size_t bytes)
{
    unsigned known = plim_shadow_load(from, to, NULL, bytes);
    if (plim_transfer_asked) plim_transfer_asked(from, to, bytes, known);
    plim_round_trip_record(from, to, bytes, known);
}

static void write(uintptr_t to, const void *from, size_t bytes)
{
    if (!plim_round_trip_return(to, from, bytes)) plim_shadow_write(to, from, bytes);
}

static void move(void *to, const void *from, size_t bytes)
{
    uintptr_t d = (uintptr_t)to, s = (uintptr_t)from;
    bool to_gpu = plim_heap_is_device(d), from_gpu = plim_heap_is_device(s);
    if (to_gpu) plim_watch_copy(d);
    plim_stream_pause();
    if (to_gpu && from_gpu) plim_shadow_copy(d, s, bytes);
    else if (to_gpu) write(d, from, bytes);
    else if (from_gpu) read(s, to, bytes);
    else memmove(to, from, bytes);
    plim_stream_resume();
}

static struct plim_cost cost_of(enum plim_cost_kind kind, size_t bytes)
{
    return (struct plim_cost){.kind = (uint8_t)kind, .number = {(int64_t)bytes}};
}

static bool is_pinned(const void *host)
{
    struct heap_block block;
    return plim_heap_find((uintptr_t)host, &block) && block.kind == HEAP_HOST;
}

/* Copies within the GPU read and write the data. Small copies to the host are waited for even if the memory is pinned:
 * PyTorch reads single numbers through pinned memory. */
static bool transfer_cost(const struct plim_transfer *t, struct plim_cost *out)
{
    enum { LITTLE = 1 << 20 };
    size_t bytes = t->rows * t->bytes;
    bool from = plim_heap_is_device((uintptr_t)t->from), to = plim_heap_is_device((uintptr_t)t->to);
    if (!plim_stream_is_on() || (!from && !to)) return false;
    if (from && to)
        *out = cost_of(PLIM_COST_MOVE, 2 * bytes);
    else if (from)
        *out = cost_of(bytes > LITTLE && is_pinned(t->to) ? PLIM_COST_LINK : PLIM_COST_READ_BACK, bytes);
    else
        *out = cost_of(is_pinned(t->from) ? PLIM_COST_LINK : PLIM_COST_LINK_PAGEABLE, bytes);
    return true;
}

int plim_transfer(const struct plim_transfer *t, struct plim_stream *stream)
{
    int failed = plim_self_use_current();
    if (failed || !t->bytes || !t->rows) return failed;
    if (!t->to || !t->from) return GPU_INVALID_VALUE;
    struct plim_cost cost;
    bool has_cost = transfer_cost(t, &cost);
    if (plim_capture_add(stream, PLIM_NODE_MEMCPY)) {
        plim_capture_writes(stream, (const uintptr_t *)&t->to, plim_heap_is_device((uintptr_t)t->to));
        if (has_cost) plim_capture_cost(stream, &cost);
        return GPU_OK;
    }
    bool reads = plim_heap_is_device((uintptr_t)t->from) && !plim_heap_is_device((uintptr_t)t->to);
    if (reads) failed = plim_transfer_wait();
    for (size_t row = 0; row < t->rows; row++)
        move((char *)t->to + row * t->to_pitch, (const char *)t->from + row * t->from_pitch,
             t->bytes);
    if (has_cost) plim_watch_cost(&cost);
    return failed;
}

int plim_transfer_plain(void *to, const void *from, size_t bytes, struct plim_stream *stream)
{
    return plim_transfer(&(struct plim_transfer){.to = to, .from = from, .bytes = bytes, .rows = 1},
                         stream);
}

int plim_fill(void *to, uint32_t value, size_t element_bytes, size_t count,
              struct plim_stream *stream)
{
    int failed = plim_self_use_current();
    if (failed || !count) return failed;
    if (!to) return GPU_INVALID_VALUE;
    bool on_gpu = plim_heap_is_device((uintptr_t)to);
    bool has_cost = on_gpu && count * element_bytes > COUNTERS_BYTES && plim_stream_is_on();
    const struct plim_cost cost = cost_of(PLIM_COST_MOVE, count * element_bytes);
    if (plim_capture_add(stream, PLIM_NODE_MEMSET)) {
        plim_capture_writes(stream, (const uintptr_t *)&to, on_gpu);
        if (has_cost) plim_capture_cost(stream, &cost);
        return GPU_OK;
    }
    if (on_gpu) plim_watch_copy((uintptr_t)to);
    if (has_cost) plim_watch_cost(&cost);
    unsigned char *bytes = to, pattern[4];
    memcpy(pattern, &value, sizeof(pattern)); /* little-endian */
    plim_stream_pause();
    if (on_gpu)
        plim_shadow_fill((uintptr_t)to, pattern, element_bytes, PLIM_KNOWN, count * element_bytes);
    else
        for (size_t i = 0; i < count; i++)
            memcpy(bytes + i * element_bytes, pattern, element_bytes);
    plim_stream_resume();
    return GPU_OK;
}
