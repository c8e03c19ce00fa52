/* The state of a recording that is being made, and single runs of the program. */
#ifndef PLIM_AUTOTUNE_RECORD_RECORDER_H
#define PLIM_AUTOTUNE_RECORD_RECORDER_H

#include "record.h"
#include "workloads/recording/trace.h"

struct recorder {
    const struct plim_record *record;
    struct plim_recording *out;
    PLIM_ARRAY(struct plim_recorded_point) points; /* sorted by batch, then sequence length */
    PLIM_ARRAY(struct plim_trace) traces;          /* of the current combination of values, one for each point */
    PLIM_ARRAY(struct plim_trace) kept;            /* traces to use again instead of running a point */
    int64_t runs;       /* number of runs so far */
    int64_t peak_bytes; /* of the last run */
    int patience;   /* factor for the number of repetitions after which a run is ended */
    bool was_ended; /* the last run was ended after its repetitions */
    bool has_cached; /* the program has run with its own allocator */
};

/* Writes the values along all axes, or all but the sequence length: ", seq 512, precision bf16, k 3". */
void plim_recorder_describe_axes(const struct recorder *r, const struct plim_setting *setting, bool with_seq,
                                 char *text, size_t size);
/* Adds a reason why the recording is uncertain, and logs it, once. PLIM_NOMEM is the only error. */
enum plim_status plim_recorder_doubt(struct recorder *r, const char *text) PLIM_MUST_CHECK;
/* Runs the program at one size and reads its trace, whose `point` and `gpu` the caller sets. `caches`: with its caching
 * allocator; the first such run is a first launch of a program that compiles, further ones are later launches. Runs
 * without it are always first launches. */
enum plim_status plim_recorder_run(struct recorder *r, const struct plim_setting *setting, bool caches,
                                   struct plim_trace *trace, struct plim_error *err) PLIM_MUST_CHECK;

#endif
