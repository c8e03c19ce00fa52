/* Parts of record: the state while a recording is made, and one run of the program for it. */
#ifndef PLIM_AUTOTUNE_RECORD_RECORDER_H
#define PLIM_AUTOTUNE_RECORD_RECORDER_H

#include "record.h"
#include "workloads/recording/trace.h"

struct recorder {
    const struct plim_record *record;
    struct plim_recording *out;
    PLIM_ARRAY(struct plim_recorded_point) points; /* by batch, then length */
    PLIM_ARRAY(struct plim_trace) traces;          /* of one combination of values, one for each point */
    PLIM_ARRAY(struct plim_trace) kept;            /* for points that are recorded again without another run */
    int64_t runs;
    int64_t peak_bytes; /* of the last run */
    int patience;   /* the factor for the usual number of repetitions that end a run */
    bool was_ended; /* the last run was ended by its repetitions */
    bool has_cached; /* the program ran with its own allocator */
};

/* ", seq 512, precision bf16, k 3": the values along all axes, or all but the sequence length. */
void plim_recorder_describe_axes(const struct recorder *r, const struct plim_setting *setting, bool with_seq,
                                 char *text, size_t size);
/* Logs once why the recording is uncertain, and stores it in the recording. PLIM_NOMEM is the only failure. */
enum plim_status plim_recorder_doubt(struct recorder *r, const char *text) PLIM_MUST_CHECK;
/* Runs the program at one size, into the zeroed trace, with its caching allocator or without: as a first launch, which
 * compiles; with its allocator as a later launch if it ran so before. */
enum plim_status plim_recorder_run(struct recorder *r, const struct plim_setting *setting, bool caches,
                                   struct plim_trace *trace, struct plim_error *err) PLIM_MUST_CHECK;

#endif
