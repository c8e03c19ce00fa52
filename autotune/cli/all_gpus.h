/* --device cuda:all: every GPU of this machine, those of one kind by one answer. */
#ifndef PLIM_AUTOTUNE_CLI_ALL_GPUS_H
#define PLIM_AUTOTUNE_CLI_ALL_GPUS_H

#include "autotune/run/target.h"
#include "spec_decision.h"

/* GPUs that the store takes for the same. */
struct plim_gpu_kind {
    struct plim_target target; /* the one that is tuned: of its kind the one of which others hold least */
    int gpus;                  /* how many GPUs of it are here, at least 1 */
};

struct plim_all_gpus {
    struct plim_gpu_kind *kinds; /* in CUDA's order of their first GPUs */
    size_t count;
};

/* For a `uri` that plim_target_is_all(): the GPUs that CUDA shows to this process, each with what is
 * behind the comma of `uri` (",memory=24GiB"). One that cannot be used is left out, with a warning;
 * PLIM_NODEVICE or PLIM_UNSUPPORTED: none can. It is to be finished in any case. */
enum plim_status plim_all_gpus_find(const char *uri, const struct plim_log *log,
                                    struct plim_all_gpus *out,
                                    struct plim_error *err) PLIM_MUST_CHECK;
void plim_all_gpus_finish(struct plim_all_gpus *gpus);

/* plim_decide_report() for a GPU of each kind, all at the same time, each with the whole budget: the
 * results in their order. A kind without an answer is a warning; `err` says how many there are, and the
 * first's status is returned once the report has what there is. */
enum plim_status plim_all_gpus_decide(const struct plim_decide *decide,
                                      const struct plim_all_gpus *gpus, struct plim_report *report,
                                      struct plim_error *err) PLIM_MUST_CHECK;

#endif
