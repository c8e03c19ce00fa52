/* The all-reduce among GPUs of this machine (devices/all_reduce.h), timed in a worker process of its own,
 * which ends with all that NCCL took before anything else is run on them. */
#ifndef PLIM_AUTOTUNE_RUN_WORKER_ALL_REDUCE_H
#define PLIM_AUTOTUNE_RUN_WORKER_ALL_REDUCE_H

#include "autotune/base/log.h"
#include "autotune/base/stop.h"
#include "devices/all_reduce.h"

struct plim_all_reduce_request {
    const char *visible_gpus;     /* CUDA_VISIBLE_DEVICES of the worker: UUIDs with commas */
    int gpus;                     /* how many these are, at least 2 */
    const char *program;          /* the worker's executable; NULL: this one */
    const struct plim_stop *stop; /* NULL: never */
    const struct plim_log *log;   /* NULL: nothing is told */
    double seconds;               /* that it may take; then the worker is killed */
    double reap_seconds;          /* how long a killed worker may take to go */
};

/* PLIM_TIMEOUT: it took too long; PLIM_CRASHED: the worker ended; what plim_all_reduce_measure() says, or
 * plim_stop_check(). `out` is zeroed then, and `err` says why in one line. */
enum plim_status plim_worker_all_reduce(const struct plim_all_reduce_request *request,
                                        struct plim_all_reduce *out,
                                        struct plim_error *err) PLIM_MUST_CHECK;

#endif
