/* Records a program: runs it at a few sizes on the virtual GPU and joins the traces (workloads/recording).
 *
 * At each size one process runs with PYTORCH_NO_CUDA_MEMORY_CACHING=1, until its peak has not grown for a few steps. A
 * size at which it ends with an error is reported and omitted, as long as three sizes remain (BatchNorm does not train
 * with batch 1). With sequence lengths, not all pairs are run: each length at the smallest and the largest batch, and
 * the longest at every batch. If {accumulation} is a placeholder, all of them are run with one micro-step per step and
 * with three, and one size also with two, four and five: these runs must equal the one with three, with its middle
 * micro-step omitted or repeated.
 *
 * If each batch has streams of its own (each_batch), one batch is enough, each is run at every length, and none is
 * omitted.
 *
 * Then the recording is verified: at a size in the middle the program runs once more with its own allocator. The
 * segments that it requests from the GPU must equal, one by one, those that PyTorch's allocator requests when the
 * recording is played to it. If they are the recorded allocations themselves, the program allocates directly from the
 * GPU ("direct"). Otherwise the recording says that the program's allocator is unknown, and only trials show what
 * fits. */
#ifndef PLIM_AUTOTUNE_RECORD_RECORD_H
#define PLIM_AUTOTUNE_RECORD_RECORD_H

#include "autotune/base/log.h"
#include "autotune/exec/execution.h"
#include "autotune/exec/program_question.h"
#include "workloads/recording/recording.h"

enum { PLIM_RECORD_SIZES = 3 }; /* the smallest number of batches, and of sequence lengths if there are any */

/* What to record, and how. */
struct plim_record {
    struct plim_execution_options options; /* of the runs, with `program` and `gpus` set */
    const struct plim_program_question *question; /* its batches are listed */
    /* The user listed no batches: if too few of the default ones behave alike, larger ones are recorded too, since
     * programs behave differently at small sizes (PyTorch's embeddings up to 3,072 tokens, convolutions). A batch of
     * four times the largest is run for comparison: if it behaves differently, the recording is marked as uncertain. */
    bool may_extend;
    bool each_batch;    /* each batch has streams of its own, for programs whose batches behave differently */
    const char *device; /* the URI of the device */
    const struct plim_device_info *gpu; /* its properties */
    const char *name, *version; /* of the recording; of plimsoll */
    const struct plim_log *log; /* one line for each run */
    char *failed_log; /* 40 bytes: receives the name of the log of a failed run, otherwise unchanged */
};

/* Fills in the zeroed recording, which the caller finishes in any case. PLIM_INVALID: too few sizes. PLIM_UNSTABLE,
 * PLIM_DIFFERS, PLIM_UNSUPPORTED: the program cannot be recorded; `err` says why. PLIM_CRASHED, PLIM_TIMEOUT, PLIM_OOM:
 * a run failed; its log is `failed_log`. PLIM_CANCELLED. */
enum plim_status plim_record_run(const struct plim_record *record, struct plim_recording *out,
                                 struct plim_error *err) PLIM_MUST_CHECK;

#endif
