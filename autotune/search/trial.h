/* What came of one setting: all that the search looks at, and behind it whatever its runner knows.
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
    int64_t requested_bytes; /* asked for at the peak, before any rounding; 0: not known */
    int64_t retries;         /* times that cached memory had to be given back to go on */
    double seconds;          /* of one optimizer step; 0: not known */
    bool seconds_are_modelled; /* not measured, though the setting ran on a GPU */
    double communication_seconds; /* of these, for reductions among GPUs: an estimate */
    /* From what that is: bytes a second of a GPU to the next (0: not known), seconds of an all-reduce
     * besides them, and among how many GPUs both were measured (0: they are modelled). */
    double link_bytes_per_second, link_latency_seconds;
    int link_gpus;
    bool host_bound; /* its seconds are an estimate that hangs on how fast the host is */
    int steps_done;          /* optimizer steps that were run to their end; 0: not known */
    int repeats_after;       /* so many of them, then everything repeats; 0: that was not seen */
    bool small_blocks_move;  /* all repeats but small blocks, which took no more for many steps */
    const void *details;     /* the runner's own record (runner.h); NULL: none */
};

#endif
