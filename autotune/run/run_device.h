/* A device for a search: its properties, its memory limit (search/limit.h), and runners for it.
 *
 * The framework overhead (CUDA context, kernel modules, libraries) is not part of a replay. It is estimated by compute
 * capability (allowance.c has the numbers and their sources); on a real GPU the measured value is used if it is larger;
 * `--overhead` overrides both.
 *
 * Replays for a simulated GPU run in this process. A real GPU runs settings in a worker process (worker/remote.h), and
 * has a simulated twin: the same GPU with the same budget, for plans and for the memory that a setting needs without a
 * limit. If all settings keep parts of the model's state on other GPUs, the twin replaces the GPU: `info.simulated` is
 * set, and the limit is the measured one.
 *
 * The `details` of the runners' trials are a `struct plim_replay`. */
#ifndef PLIM_AUTOTUNE_RUN_DEVICE_H
#define PLIM_AUTOTUNE_RUN_DEVICE_H

#include "allowance.h"
#include "autotune/base/log.h"
#include "autotune/base/stop.h"
#include "autotune/search/runner.h"
#include "devices/catalogue/catalogue.h"
#include "devices/device.h"
#include "spec_question.h"
#include "workloads/train/replay.h"

/* How to open a device. All pointers must outlive it. */
struct plim_run_options {
    const char *uri; /* "sim:A100-SXM4-80GB,memory=24GiB", "cuda:0", "host" */
    const struct plim_allowance *allowance;
    const struct plim_spec_question *question; /* the job to run; NULL: a user's program */
    const struct plim_stop *stop;              /* NULL: never stops */
    const struct plim_log *log;                /* NULL: notes are dropped */
    double timing_seconds; /* on a real GPU: time for the repeats of a setting; 0: one run */
    int64_t steps;         /* steps of every simulated run; 0: as many as its purpose needs */
    bool runs_program;     /* the real GPU is for a user's program: open only its twin */
    const struct plim_ring *ring; /* the measured all-reduce among GPUs of this kind; NULL: use the catalogue */
    struct plim_run_share *share; /* of a spec: runs shared with other GPUs of its class; NULL: none */
    struct plim_run_plays *plays; /* of a recording: plays shared with other GPUs; NULL: none */
    bool runs_ahead; /* simulated GPU: announced settings may run on another thread (ahead.h) */
};

struct plim_run_plays;
struct plim_run_share;
struct plim_remote;
struct plim_nvml;
struct plim_player;
struct plim_ahead;

/* Simulated devices are opened and engines created when they are first needed. */
struct plim_run_device {
    struct plim_device_info info;
    struct plim_limit limit;
    struct plim_runner runner;  /* points to this struct, which must not move while it is open */
    struct plim_runner planner; /* runs the twin of a real GPU; `run` is NULL for a simulated GPU */
    double peak_rate[PLIM_PRECISION_COUNT]; /* FLOP/s for model FLOP utilisation; 0: not known */
    const struct plim_run_options *options;
    struct plim_allocator_config allocator;
    struct plim_gpu gpu; /* the GPU that is simulated: this one, or the twin */
    struct plim_run_engine {
        struct plim_device *device;
        struct plim_replayer *replayer; /* for a spec */
        struct plim_player *player;     /* for a recording */
    } engines[2]; /* with the limit, without */
    struct plim_ahead *ahead; /* NULL: nothing is run in advance */
    struct plim_run_device *beside; /* the device for runs in advance; NULL: not opened */
    struct plim_replay last; /* result of the last run, the details of its trial */
    /* for a real device: */
    bool is_gpu; /* false for the CPU of `host` */
    struct plim_remote *remote;
    struct plim_nvml *nvml; /* NULL: not available */
    char uuid[96];          /* of the GPU, for NVML */
    int64_t held_bytes;     /* held by other processes when the device was opened */
    uint64_t spoiled; /* bits: why the GPU was slowed down while the last setting was timed (nvml.h) */
    bool warned_of_fallback, warned_of_sharing; /* these warnings were logged */
    double best_rate; /* tokens per second of the fastest setting so far */
};

/* Opens the device that options->uri names. `options` must outlive it. PLIM_NODEVICE: it does not exist or cannot be
 * used; PLIM_UNSUPPORTED: this build has no such device, or it is a real one and the question is a recording. */
enum plim_status plim_run_device_open(struct plim_run_device *d,
                                      const struct plim_run_options *options,
                                      struct plim_error *err) PLIM_MUST_CHECK;
void plim_run_device_close(struct plim_run_device *d); /* NULL or a zeroed one is allowed */

/* Opens a real GPU ("cuda:...") for a user's program: reads its properties from NVML and sets its limit; `runner` and
 * `planner` stay empty. */
enum plim_status plim_run_device_open_for_program(struct plim_run_device *d,
                                                  const struct plim_run_options *options,
                                                  struct plim_error *err) PLIM_MUST_CHECK;

/* Simulates `setting` once more under the budget and writes its allocations and frees to the file `path`. */
enum plim_status plim_run_device_trace(struct plim_run_device *d,
                                       const struct plim_setting *setting, const char *path,
                                       struct plim_error *err) PLIM_MUST_CHECK;

/* Simulates two steps of `setting` once more, with at most PLIM_RUN_TIMELINE_MICRO_STEPS micro-steps each, and records
 * the allocations of the second (of the first, if the second is not reached). There is no memory limit if `fits` is
 * false. */
enum { PLIM_RUN_TIMELINE_MICRO_STEPS = 2 };
enum plim_status plim_run_device_timeline(struct plim_run_device *d,
                                          const struct plim_setting *setting, bool fits,
                                          struct plim_timeline *timeline,
                                          struct plim_error *err) PLIM_MUST_CHECK;

/* True if both are simulated GPUs of one class, which share runs (search/cache.h). */
bool plim_run_device_same_class(const struct plim_run_device *a, const struct plim_run_device *b);

#endif
