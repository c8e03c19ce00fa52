/* Traces of PyTorch's caching allocator: the requests to it, and its calls to the device.
 *
 * Lines, in order; `expected` lines stand before the line that caused them:
 *     a ID BYTES [STREAM]    an allocation               f ID    it is freed
 *     r ID STREAM            record_stream               e       empty_cache
 *     o BYTES [STREAM]       an allocation that failed with out of memory
 *     S s M m BYTES          expected: a segment got or returned, pages mapped or unmapped
 *     step N ALLOCATED RESERVED PEAK_ALLOCATED PEAK_RESERVED
 *                            expected counters; peaks start anew
 *     q REQUESTED PEAK_REQUESTED RETRIES OOMS      expected too, before the step line it belongs to
 *     # KEY VALUE            settings: `conf` as in PYTORCH_CUDA_ALLOC_CONF, `capacity` in bytes
 */
#ifndef PLIM_TESTS_ALLOCATOR_TRACE_H
#define PLIM_TESTS_ALLOCATOR_TRACE_H

#include "autotune/base/array.h"
#include "devices/allocator/allocator.h"

/* The folder of the recorded traces. */
extern const char allocator_traces_folder[];

struct trace_event {
    char kind; /* the first letter of the line */
    int line, stream;
    uint32_t id;
    int64_t bytes;
    int64_t counters[4]; /* of step and q */
};

struct allocator_trace {
    PLIM_ARRAY(struct trace_event) events;
    uint32_t ids;           /* every id is below it */
    int64_t capacity_bytes; /* 1 << 46 when the file does not say */
    char conf[256];
};

/* `err` says what is wrong with the file. */
enum plim_status allocator_trace_read(const char *path, struct allocator_trace *trace,
                                      struct plim_error *err) PLIM_MUST_CHECK;
void allocator_trace_finish(struct allocator_trace *trace);

/* Runs the trace and compares every expected line. PLIM_INTERNAL, with the line, where something
 * differs. `steps` counts the step lines that were compared, `memory` the S s M m lines. */
enum plim_status allocator_trace_check(const struct allocator_trace *trace,
                                       struct plim_allocator *allocator, int *steps, int *memory,
                                       struct plim_error *err) PLIM_MUST_CHECK;

#endif
