/* --device cuda:all: every GPU of this machine, with one answer for all GPUs of one kind. */
#ifndef PLIM_AUTOTUNE_CLI_ALL_GPUS_H
#define PLIM_AUTOTUNE_CLI_ALL_GPUS_H

#include "autotune/run/target.h"
#include "spec_decision.h"

/* GPUs that the store treats as equal. */
struct plim_gpu_kind {
    struct plim_target target; /* the one that is tuned: the GPU of this kind with least memory held by others */
    int gpus;                  /* how many GPUs of this kind there are, at least 1 */
};

struct plim_all_gpus {
    struct plim_gpu_kind *kinds; /* in CUDA's order of their first GPUs */
    size_t count;
};

/* For a `uri` that plim_target_is_all() accepts: the GPUs that CUDA shows to this process, each with the
 * options of `uri` (",memory=24GiB"). A GPU that cannot be used is left out, with a warning;
 * PLIM_NODEVICE or PLIM_UNSUPPORTED: none can be used. Finish `out` in any case. */
enum plim_status plim_all_gpus_find(const char *uri, const struct plim_log *log,
                                    struct plim_all_gpus *out,
                                    struct plim_error *err) PLIM_MUST_CHECK;
void plim_all_gpus_finish(struct plim_all_gpus *gpus);

/* plim_decide_report() for one GPU of each kind, all at the same time, each with the whole budget; results are
 * in the order of the kinds. A kind without an answer is a warning; `err` then says how many such kinds there
 * are, and the status of the first is returned after the other results were added to the report. */
enum plim_status plim_all_gpus_decide(const struct plim_decide *decide,
                                      const struct plim_all_gpus *gpus, struct plim_report *report,
                                      struct plim_error *err) PLIM_MUST_CHECK;

#endif
