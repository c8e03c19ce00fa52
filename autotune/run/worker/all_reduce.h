/* Times the all-reduce among GPUs of this machine (devices/all_reduce.h) in a separate worker process, so that NCCL's
 * memory is free again before anything else runs on the GPUs. */
#ifndef PLIM_AUTOTUNE_RUN_WORKER_ALL_REDUCE_H
#define PLIM_AUTOTUNE_RUN_WORKER_ALL_REDUCE_H

#include "autotune/base/log.h"
#include "autotune/base/stop.h"
#include "devices/all_reduce.h"

struct plim_all_reduce_request {
    const char *visible_gpus;     /* CUDA_VISIBLE_DEVICES of the worker: UUIDs with commas */
    int gpus;                     /* their number, at least 2 */
    const char *program;          /* the worker's executable; NULL: this one */
    const struct plim_stop *stop; /* NULL: never stops */
    const struct plim_log *log;   /* NULL: notes are dropped */
    double seconds;               /* the time limit, after which the worker is killed */
    double reap_seconds;          /* how long a killed worker may take to end */
};

/* Times the all-reduce. PLIM_TIMEOUT: it took too long; PLIM_CRASHED: the worker ended; or a status of
 * plim_all_reduce_measure() or plim_stop_check(). On failure `out` is zeroed, and `err` says why in one line. */
enum plim_status plim_worker_all_reduce(const struct plim_all_reduce_request *request,
                                        struct plim_all_reduce *out,
                                        struct plim_error *err) PLIM_MUST_CHECK;

#endif
