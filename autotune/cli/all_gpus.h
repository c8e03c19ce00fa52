/* --device cuda:all: every GPU of this machine, with one answer for all GPUs of one kind. */
#ifndef PLIM_AUTOTUNE_CLI_ALL_GPUS_H
#define PLIM_AUTOTUNE_CLI_ALL_GPUS_H

#include "autotune/run/target.h"
#include "spec_decision.h"

/* GPUs that the store treats as equal. */
struct plim_gpu_kind {
    struct plim_target target; /* the GPU that is tuned: the one with the least memory held by other processes */
    int gpus;                  /* number of GPUs of this kind, at least 1 */
};

struct plim_all_gpus {
    struct plim_gpu_kind *kinds; /* in the order of their first GPUs in CUDA's numbering */
    size_t count;
};

/* Finds the GPUs that CUDA shows to this process, each with the options of `uri` (",memory=24GiB"), which
 * plim_target_is_all() must accept. A GPU that cannot be used is omitted, with a warning. PLIM_NODEVICE or
 * PLIM_UNSUPPORTED: none can be used. The caller finishes `out` in any case. */
enum plim_status plim_all_gpus_find(const char *uri, const struct plim_log *log,
                                    struct plim_all_gpus *out,
                                    struct plim_error *err) PLIM_MUST_CHECK;
void plim_all_gpus_finish(struct plim_all_gpus *gpus);

/* As plim_decide_report() for one GPU of each kind, all at the same time, each with the whole time budget. Results are
 * in the order of the kinds. Kinds without an answer are logged as warnings; then the results of the others are added
 * to the report, `err` has the number of such kinds, and the status of the first is returned. */
enum plim_status plim_all_gpus_decide(const struct plim_decide *decide,
                                      const struct plim_all_gpus *gpus, struct plim_report *report,
                                      struct plim_error *err) PLIM_MUST_CHECK;

#endif
