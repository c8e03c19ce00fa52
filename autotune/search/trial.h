/* The outcome of one setting: the numbers that the search uses, and a pointer to the runner's own details.
 */
#ifndef PLIM_AUTOTUNE_SEARCH_TRIAL_H
#define PLIM_AUTOTUNE_SEARCH_TRIAL_H

#include "autotune/base/status.h"
#include <stdbool.h>
#include <stdbool.h>
#include <stdint.h>

struct plim_trial {
    /* PLIM_OK, PLIM_OOM, PLIM_UNSUPPORTED, PLIM_LOST, PLIM_TIMEOUT, PLIM_CRASHED, PLIM_UNSTABLE */
    enum plim_status verdict;
    char why[256];           /* for anything but PLIM_OK: one line, or "" */
    int64_t reserved_bytes;  /* held at the peak by the framework's allocator, over all steps */
    int64_t requested_bytes; /* requested at the peak, before any rounding; 0: not known */
    int64_t retries;         /* how often cached memory had to be released to continue */
    double seconds;          /* of one optimizer step; 0: not known */
    bool seconds_are_modelled; /* not measured, although the setting ran on a GPU */
    double communication_seconds; /* the part of it for reductions among GPUs: an estimate */
    /* The inputs of that estimate: bytes per second from one GPU to the next (0: not known), the latency of an
     * all-reduce, and among how many GPUs both were measured (0: modelled). */
    double link_bytes_per_second, link_latency_seconds;
    int link_gpus;
    bool host_bound; /* its seconds are an estimate that depends on the speed of the host */
    int steps_done;          /* optimizer steps that were completed; 0: not known */
    int repeats_after;       /* the number of steps after which everything repeats; 0: not observed */
    bool small_blocks_move;  /* everything repeats except small blocks, whose memory has not grown for many steps */
    const void *details;     /* the runner's own record (runner.h); NULL: none */
};

#endif
