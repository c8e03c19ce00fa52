/* Runs settings in a worker process (wire.h).
 *
 *     struct plim_remote_config config = PLIM_REMOTE_CONFIG_INIT;
 *     config.uri = "cuda:0", config.spec = spec, config.stop = stop, ...
 *     PLIM_TRY(plim_remote_create(&config, &remote, err));
 *     plim_remote_set_budget(remote, budget_bytes);
 *     PLIM_TRY(plim_remote_run(remote, &setting, PLIM_RUN_LIMITED, &replay, err));
 *     ...
 *     plim_remote_destroy(&remote);
 *
 * The outcome of a setting is the verdict of its replay:
 *
 *     PLIM_OK, PLIM_OOM, PLIM_UNSUPPORTED   as the worker replies
 *     PLIM_LOST       the device failed in a way that ends its context
 *     PLIM_CRASHED    the worker ended without a reply, or sent an invalid reply
 *     PLIM_TIMEOUT    a phase took longer than its deadline
 *     PLIM_UNSTABLE   a loss is not finite, or two runs contradict each other
 *
 * If the GPU runs out of memory before the budget is used up, the setting is run once more in a new worker, whose reply
 * counts: a leak of the old worker ended with it. (If other processes hold the memory, a new worker does not get it
 * either.)
 *
 * If other processes use the device (PLIM_BUSY: exclusive mode, or an MPS server that recovers from the failure of the
 * last worker), new workers try to open it for busy_seconds.
 *
 * LOST, CRASHED and TIMEOUT end the worker: the setting is tried again in a new one, and gets this verdict after
 * PLIM_REMOTE_DEATHS in a row. A worker that leaks memory, or whose device is suspect, is replaced too, but its reply
 * counts. A run itself fails only if the search has to end: PLIM_CANCELLED and PLIM_TIMEOUT from `stop`, PLIM_LOST if
 * the device can no longer be opened, PLIM_NODEVICE if a library is missing that every setting needs, PLIM_NOMEM.
 *
 * The stop is checked while waiting; once it is set, the worker is killed and no function waits longer than a second. A
 * worker dies with the thread that started it.
 *
 * Thread safety: always the same thread. */
#ifndef PLIM_AUTOTUNE_RUN_REMOTE_H
#define PLIM_AUTOTUNE_RUN_REMOTE_H

#include "autotune/search/runner.h"
#include "dialogue.h"

enum { PLIM_REMOTE_DEATHS = 3 };

struct plim_remote_config {
    const char *uri;                /* of the device, as the worker opens it */
    const char *alloc_conf;         /* PyTorch's syntax; NULL: its defaults */
    const struct plim_spec *spec;   /* resolved; only read by plim_remote_create() */
    const char *visible_gpu;        /* CUDA_VISIBLE_DEVICES of the worker; NULL: inherited */
    const char *program;            /* the worker's executable; NULL: this one */
    /* The all-reduce among GPUs of this kind, only read by plim_remote_create(); NULL: not measured */
    const struct plim_all_reduce *all_reduce;
    const struct plim_stop *stop;   /* NULL: never stops */
    const struct plim_log *log;     /* notes about lost workers; NULL: notes are dropped */
    double timing_seconds;          /* time for the repeats of one setting; 0: no repeats */
    int64_t leak_bytes, load_bytes; /* see struct plim_message_open */
    struct plim_deadline deadlines[PLIM_PHASE_COUNT];
    /* How long memory may take to become free after a worker's end. If it is exceeded once, the memory is assumed to
     * belong to another process, and is not waited for again. */
    double memory_back_seconds;
    double reap_seconds; /* how long a killed worker may take to end */
    double busy_seconds; /* how long the device may be in use by others before opening it fails */
    /* Returns the predicted time of one step of the setting in seconds, 0 if not known; may be NULL. */
    double (*predict)(void *user, const struct plim_setting *setting);
    /* Returns the step time above which the setting is not timed by repeats (wire.h); 0 or NULL: no limit. */
    double (*slow)(void *user, const struct plim_setting *setting);
    /* True if the device's used memory is back to what it was before the first worker. Called until it is, or until
     * memory_back_seconds have passed; NULL: not known. */
    bool (*memory_is_back)(void *user);
    /* Called some ten times a second while a setting is timed, to check whether the GPU is slowed down; may be NULL. */
    void (*while_timing)(void *user);
    void *user;
};

#define PLIM_REMOTE_CONFIG_INIT                                                                    \
    {                                                                                              \
        .timing_seconds = 10, .leak_bytes = INT64_C(16) << 20, .load_bytes = INT64_C(1) << 30,     \
        .deadlines = {[PLIM_PHASE_STARTING] = {30, 0},  [PLIM_PHASE_OPENING] = {60, 0},            \
                      [PLIM_PHASE_BUILDING] = {60, 10}, [PLIM_PHASE_STEP] = {30, 10},              \
                      [PLIM_PHASE_TIMING] = {30, 10},   [PLIM_PHASE_CLEARING] = {30, 0}},          \
        .memory_back_seconds = 10, .reap_seconds = 20, .busy_seconds = 10                                             \
    }

struct plim_remote;

/* Creates a remote, without starting a worker. PLIM_NOMEM; PLIM_INVALID: the spec is too large to send. */
enum plim_status plim_remote_create(const struct plim_remote_config *config,
                                    struct plim_remote **out,
                                    struct plim_error *err) PLIM_MUST_CHECK;

/* Ends the worker and frees the remote; NULL is allowed. */
void plim_remote_destroy(struct plim_remote **remote);

/* Starts a worker and opens the device, if that was not done. *out is the device as seen by the worker, valid as long
 * as the remote. Fails like the device's open function, or like a run. */
enum plim_status plim_remote_open(struct plim_remote *remote,
                                  const struct plim_message_opened **out,
                                  struct plim_error *err) PLIM_MUST_CHECK;

/* Sets the most memory that a LIMITED run may hold; an UNLIMITED run may hold all of the GPU's. */
void plim_remote_set_budget(struct plim_remote *remote, int64_t budget_bytes);

/* Runs a setting. That it does not fit or cannot run is a verdict in `out`, not an error. A setting that failed with
 * LOST, CRASHED, TIMEOUT or UNSTABLE is not run again: its result is returned. */
enum plim_status plim_remote_run(struct plim_remote *remote, const struct plim_setting *setting,
                                 enum plim_run_mode mode, struct plim_replay *out,
                                 struct plim_error *err) PLIM_MUST_CHECK;

/* Changes the time that runs spend on the repeats of one setting (config.timing_seconds). */
void plim_remote_set_timing(struct plim_remote *remote, double seconds);

/* Returns the timing of the last run; it has no repeats if the setting did not fit. Valid until the next run. */
const struct plim_timing *plim_remote_timing(const struct plim_remote *remote);

/* Returns the number of workers started so far. */
int plim_remote_workers(const struct plim_remote *remote);

#endif
