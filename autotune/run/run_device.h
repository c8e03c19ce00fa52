/* One device, ready to be searched: what it is, what of it may be used (search/limit.h), and the
 * engine on it as a runner.
 *
 * The framework overhead (context, kernels' modules, libraries) is outside of what a replay sees. It
 * is an estimate by compute capability (allowance.c has the numbers and where they come from), on a real
 * GPU what was measured there if that is more; `--overhead` overrides both.
 *
 * A simulated GPU is replayed on in this process. A real one is run on in a worker process
 * (worker/remote.h), and has a simulated twin: the same GPU, with the same budget, for plans and for
 * what a setting would need if nothing limited it. Where all that is asked for keeps parts of the model's state on
 * other GPUs, the twin stands for it: `info.simulated` says so, and the limit is what was measured.
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
    const struct plim_spec_question *question; /* what is run on it; NULL: a user's program */
    const struct plim_stop *stop;              /* NULL: never stops */
    const struct plim_log *log;                /* NULL: notes are dropped */
    double timing_seconds; /* a real GPU: for the repeats of one setting; 0: one run */
    int64_t steps;         /* of every simulated run; 0: as many as its purpose takes */
    bool runs_program;     /* a real GPU is left to a user's program: only its twin runs the question */
    const struct plim_ring *ring; /* GPUs of this kind; NULL: the catalogue's links count */
    struct plim_run_share *share; /* of a spec, with other GPUs of its class; NULL: there are none */
    struct plim_run_plays *plays; /* of a recording, with other GPUs; NULL: there are none */
    bool runs_ahead; /* simulated: may what will be asked for be run on another thread (ahead.h)? */
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
    struct plim_runner planner; /* of a real GPU: its twin; `run` is NULL on a simulated one */
    double peak_rate[PLIM_PRECISION_COUNT]; /* FLOP/s for model FLOP utilisation; 0: not known */
    const struct plim_run_options *options;
    struct plim_allocator_config allocator;
    struct plim_gpu gpu; /* what is simulated: this GPU, or the twin */
    struct plim_run_engine {
        struct plim_device *device;
        struct plim_replayer *replayer; /* of a spec */
        struct plim_player *player;     /* of a recording */
    } engines[2];
    struct plim_ahead *ahead; /* NULL: nothing is run in advance */
    struct plim_run_device *beside; /* on which that is run; NULL: not opened */
    struct plim_replay last; /* of the last run: its trial's details */
    /* a real device's: */
    bool is_gpu; /* not the CPU of `host` */
    struct plim_remote *remote;
    struct plim_nvml *nvml; /* NULL: there is none to ask */
    char uuid[96];          /* to NVML */
    int64_t held_bytes;     /* by others, when the device was opened */
    uint64_t spoiled; /* what slowed the GPU down while the last setting was timed */
    bool told_fallback, told_shared;
    double best_rate; /* tokens per second of the fastest setting so far */
};

/* Opens the device that a URI names. `options` outlives it. PLIM_NODEVICE: there is none, or it
 * cannot be used; PLIM_UNSUPPORTED: this build has no such device, or it is a real one and the question
 * a recording. */
enum plim_status plim_run_device_open(struct plim_run_device *d,
                                      const struct plim_run_options *options,
                                      struct plim_error *err) PLIM_MUST_CHECK;
void plim_run_device_close(struct plim_run_device *d); /* NULL and zeroed are fine */

/* Opens a real GPU for a program of the user's: what NVML tells of it, its limit, and nothing to run
 * on (`runner` and `planner` stay empty). `options->uri` is "cuda:...". */
enum plim_status plim_run_device_open_for_program(struct plim_run_device *d,
                                                  const struct plim_run_options *options,
                                                  struct plim_error *err) PLIM_MUST_CHECK;

/* Runs `setting` under the budget once more, simulated, and writes what it allocates and frees to
 * the file. */
enum plim_status plim_run_device_trace(struct plim_run_device *d,
                                       const struct plim_setting *setting, const char *path,
                                       struct plim_error *err) PLIM_MUST_CHECK;

/* Runs two steps of `setting` once more, simulated, of a step at most PLIM_RUN_TIMELINE_MICRO_STEPS,
 * and records what is allocated during the second (the first, where it does not come to it). Without
 * a limit where it does not fit. */
enum { PLIM_RUN_TIMELINE_MICRO_STEPS = 2 };
enum plim_status plim_run_device_timeline(struct plim_run_device *d,
                                          const struct plim_setting *setting, bool fits,
                                          struct plim_timeline *timeline,
                                          struct plim_error *err) PLIM_MUST_CHECK;

/* Do runs on one tell about the other (search/cache.h)? */
bool plim_run_device_same_class(const struct plim_run_device *a, const struct plim_run_device *b);

#endif
