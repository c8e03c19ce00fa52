/* The result of running one setting: the numbers that the search uses, and a pointer to the runner's own details. */
#ifndef PLIM_AUTOTUNE_SEARCH_TRIAL_H
#define PLIM_AUTOTUNE_SEARCH_TRIAL_H

#include "autotune/base/status.h"
#include <stdbool.h>
#include <stdint.h>

struct plim_trial {
    /* PLIM_OK, PLIM_OOM, PLIM_UNSUPPORTED, PLIM_LOST, PLIM_TIMEOUT, PLIM_CRASHED, PLIM_UNSTABLE */
    enum plim_status verdict;
    char why[256];           /* the reason for a verdict other than PLIM_OK: one line, or "" */
    int64_t reserved_bytes;  /* peak over all steps of the memory held by the framework's allocator */
    int64_t requested_bytes; /* peak of the requested memory, before any rounding; 0: not known */
    int64_t retries;         /* number of times that cached memory had to be released to continue */
    double seconds;          /* of one optimizer step; 0: not known */
    bool seconds_are_modelled; /* the time was not measured, although the setting ran on a GPU */
    double communication_seconds; /* the part of it for reductions among GPUs, an estimate */
    /* The inputs of that estimate: bytes per second from one GPU to the next (0: not known), the latency of an
     * all-reduce, and among how many GPUs both were measured (0: modelled). */
    double link_bytes_per_second, link_latency_seconds;
    int link_gpus;
    bool host_bound; /* the time is an estimate that depends on the speed of the host */
    int steps_done;          /* optimizer steps that were completed; 0: not known */
    int repeats_after;       /* number of steps after which allocations repeat; 0: not observed */
    bool small_blocks_move;  /* they repeat except for small blocks, whose memory has not grown for many steps */
    const void *details;     /* of the runner (runner.h); NULL: none */
};

#endif
