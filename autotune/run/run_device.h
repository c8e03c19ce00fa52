/* One device, ready to be searched: its properties, how much of it may be used (search/limit.h), and the
 * engine on it as a runner.
 *
 * The framework overhead (context, kernels' modules, libraries) is not part of a replay. It
 * is an estimate by compute capability (allowance.c has the numbers and their sources); on a real
 * GPU the measured value if that is larger; `--overhead` overrides both.
 *
 * Replays for a simulated GPU run in this process. A real GPU runs settings in a worker process
 * (worker/remote.h), and has a simulated twin: the same GPU, with the same budget, for plans and for
 * what a setting would need without a limit. If all settings keep parts of the model's state on
 * other GPUs, the twin replaces it: `info.simulated` is set, and the limit is the measured one.
 *
 * `details` of the runners' trials are a `struct plim_replay`.
 */
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

/* How a device is to be opened. Everything outlives it. */
struct plim_run_options {
    const char *uri; /* "sim:A100-SXM4-80GB,memory=24GiB", "cuda:0", "host" */
    const struct plim_allowance *allowance;
    const struct plim_spec_question *question; /* what runs on it; NULL: a user's program */
    const struct plim_stop *stop;              /* NULL: never stops */
    const struct plim_log *log;                /* NULL: notes are dropped */
    double timing_seconds; /* a real GPU: for the repeats of one setting; 0: one run */
    int64_t steps;         /* of every simulated run; 0: as many as its purpose needs */
    bool runs_program;     /* a real GPU runs a user's program: the question runs only on its twin */
    const struct plim_ring *ring; /* the all-reduce among GPUs of this kind; NULL: use the catalogue's links */
    struct plim_run_share *share; /* for a spec: runs shared with other GPUs of its class; NULL: none */
    struct plim_run_plays *plays; /* for a recording: plays shared with other GPUs; NULL: none */
    bool runs_ahead; /* simulated: may announced settings be run on another thread (ahead.h)? */
};

struct plim_run_plays;
struct plim_run_share;
struct plim_remote;
struct plim_nvml;
struct plim_player;
struct plim_ahead;

/* Devices are opened and engines made when they are first needed. */
struct plim_run_device {
    struct plim_device_info info;
    struct plim_limit limit;
    struct plim_runner runner;  /* its user is this struct: do not move it while it is open */
    struct plim_runner planner; /* a real GPU's twin; on a simulated GPU `run` is NULL */
    double peak_rate[PLIM_PRECISION_COUNT]; /* FLOP/s for model FLOP utilisation; 0: not known */
    const struct plim_run_options *options;
    struct plim_allocator_config allocator;
    struct plim_gpu gpu; /* the GPU that is simulated: this one, or the twin */
    struct plim_run_engine {
        struct plim_device *device;
        struct plim_replayer *replayer; /* of a spec */
        struct plim_player *player;     /* of a recording */
    } engines[2];
    struct plim_ahead *ahead; /* NULL: nothing is run in advance */
    struct plim_run_device *beside; /* the device for runs in advance; NULL: not opened */
    struct plim_replay last; /* of the last run: its trial's details */
    /* a real device's: */
    bool is_gpu; /* not the CPU of `host` */
    struct plim_remote *remote;
    struct plim_nvml *nvml; /* NULL: not available */
    char uuid[96];          /* for NVML */
    int64_t held_bytes;     /* held by other processes when the device was opened */
    uint64_t spoiled; /* reasons that slowed the GPU down while the last setting was timed (nvml.h) */
    bool told_fallback, told_shared;
    double best_rate; /* tokens per second of the fastest setting so far */
};

/* Opens the device that a URI names. `options` outlives it. PLIM_NODEVICE: there is none, or it
 * cannot be used; PLIM_UNSUPPORTED: this build has no such device, or it is a real one and the question is
 * a recording. */
enum plim_status plim_run_device_open(struct plim_run_device *d,
                                      const struct plim_run_options *options,
                                      struct plim_error *err) PLIM_MUST_CHECK;
void plim_run_device_close(struct plim_run_device *d); /* NULL and zeroed are fine */

/* Opens a real GPU for a user's program: fills in what NVML knows about it and its limit; `runner` and
 * `planner` stay empty. `options->uri` is "cuda:...". */
enum plim_status plim_run_device_open_for_program(struct plim_run_device *d,
                                                  const struct plim_run_options *options,
                                                  struct plim_error *err) PLIM_MUST_CHECK;

/* Runs `setting` once more under the budget, simulated, and writes its allocations and frees to
 * the file. */
enum plim_status plim_run_device_trace(struct plim_run_device *d,
                                       const struct plim_setting *setting, const char *path,
                                       struct plim_error *err) PLIM_MUST_CHECK;

/* Runs two steps of `setting` once more, simulated, with at most PLIM_RUN_TIMELINE_MICRO_STEPS micro-steps
 * each, and records what is allocated during the second (the first, if the second is not reached). Without
 * a limit if the setting does not fit. */
enum { PLIM_RUN_TIMELINE_MICRO_STEPS = 2 };
enum plim_status plim_run_device_timeline(struct plim_run_device *d,
                                          const struct plim_setting *setting, bool fits,
                                          struct plim_timeline *timeline,
                                          struct plim_error *err) PLIM_MUST_CHECK;

/* Are the devices of one class, so that they share runs (search/cache.h)? */
bool plim_run_device_same_class(const struct plim_run_device *a, const struct plim_run_device *b);

#endif
