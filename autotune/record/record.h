/* Recording a program: it runs at a few sizes on the virtual GPU, and the traces are joined
 * (workloads/recording).
 *
 * At each size it is one process with PYTORCH_NO_CUDA_MEMORY_CACHING=1, until its peak has not grown
 * for a few steps. A size at which it ends with an error is named and left out, as long as three sizes
 * are left (BatchNorm does not train with batch 1). With sequence lengths too not all pairs are run: each length at
 * the smallest and the largest batch, and the longest at every batch. Where {accumulation} stands, all that is run with
 * one micro-step a step and with three, and one size with two, four and five, which have to be the three
 * with the one in the middle left out or repeated.
 *
 * Where each batch is to have streams of its own, one batch is enough, each is run at every length, and none
 * is left out.
 *
 * Then the recording proves itself: at a size in the middle the program runs once more with the
 * allocator that it has, and the segments that it asks the GPU for, one after the other, have to be those
 * that PyTorch's allocator asks for when it is played the recording. Or they are the recorded allocations
 * themselves, which then are nobody's tensors: the program's own ("direct"). Otherwise the recording
 * says that the program's allocator is unknown, and only trials tell what fits.
 */
#ifndef PLIM_AUTOTUNE_RECORD_RECORD_H
#define PLIM_AUTOTUNE_RECORD_RECORD_H

#include "autotune/base/log.h"
#include "autotune/exec/execution.h"
#include "autotune/exec/program_question.h"
#include "workloads/recording/recording.h"

enum { PLIM_RECORD_SIZES = 3 }; /* batches, and lengths if there are any: at least */

/* Everything outlives the call. */
struct plim_record {
    struct plim_execution_options options; /* of the runs; `program` and `gpus` are filled in */
    const struct plim_program_question *question; /* its batches are listed */
    /* The batches are ours: where too few of them do alike, larger ones are recorded too. Programs
     * change their ways at small sizes: PyTorch's embeddings at 3,072 tokens, convolutions. And one that is four times
     * the largest is run beside: where it does otherwise, the recording says that it is uncertain. */
    bool may_extend;
    bool each_batch;    /* each batch has streams of its own: for programs whose batches do otherwise */
    const char *device; /* the URI of what it is recorded on */
    const struct plim_device_info *gpu; /* and what that is */
    const char *name, *version; /* for the file */
    const struct plim_log *log; /* a line a run */
    char *failed_log; /* room for 40 bytes: the log of the run that failed, or as it was */
};

/* Fills the zeroed recording, which is to be finished in any case. PLIM_INVALID: too few sizes.
 * PLIM_UNSTABLE, PLIM_DIFFERS, PLIM_UNSUPPORTED: the program cannot be recorded, and why. PLIM_CRASHED,
 * PLIM_TIMEOUT, PLIM_OOM: a run failed, its last lines are in its log. PLIM_CANCELLED. */
enum plim_status plim_record_run(const struct plim_record *record, struct plim_recording *out,
                                 struct plim_error *err) PLIM_MUST_CHECK;

#endif
