/* Running settings in a worker process (wire.h).
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
 *     PLIM_CRASHED    the worker ended without a reply, or sent an invalid one
 *     PLIM_TIMEOUT    a phase took longer than its deadline
 *     PLIM_UNSTABLE   a loss that is not finite, or two runs that contradict each other
 *
 * If the GPU runs out of memory although the budget was not used up, the setting is run once more, in
 * a new worker, whose reply counts: a leak of the old worker is gone with it. (If other processes have taken
 * the memory, a new worker does not get it either.)
 *
 * A device that other processes use (PLIM_BUSY: exclusive mode, an MPS server that recovers from what
 * ended the last worker) is opened again, in new workers, for busy_seconds.
 *
 * LOST, CRASHED and TIMEOUT cost the worker: the setting is tried again in a new one, and gets this
 * verdict after PLIM_REMOTE_DEATHS in a row. A worker that leaks memory, or whose device is
 * suspect, is replaced too, but its reply counts. A run itself fails only where the search has to
 * end: PLIM_CANCELLED and PLIM_TIMEOUT from `stop`, PLIM_LOST when the device can no longer be
 * opened, PLIM_NODEVICE when a library is missing that every setting needs, lack of host memory.
 *
 * The stop is checked all the time; once it is set, the worker is killed and nothing here waits
 * longer than a second. A worker dies with the thread that started it.
 *
 * Thread safety: one thread at a time, and always the same.
 */
#ifndef PLIM_AUTOTUNE_RUN_REMOTE_H
#define PLIM_AUTOTUNE_RUN_REMOTE_H

#include "autotune/search/runner.h"
#include "dialogue.h"

enum { PLIM_REMOTE_DEATHS = 3 };

struct plim_remote_config {
    const char *uri;                /* of the device, as the worker is to open it */
    const char *alloc_conf;         /* PyTorch's syntax; NULL: its defaults */
    const struct plim_spec *spec;   /* resolved; only read by plim_remote_create() */
    const char *visible_gpu;        /* CUDA_VISIBLE_DEVICES of the worker; NULL: as it is */
    const char *program;            /* the worker's executable; NULL: this one */
    /* The all-reduce among GPUs of this kind, only read by plim_remote_create(); NULL: not measured */
    const struct plim_all_reduce *all_reduce;
    const struct plim_stop *stop;   /* NULL: never stops */
    const struct plim_log *log;     /* for every worker that was lost; NULL: notes are dropped */
    double timing_seconds;          /* for the repeats of one setting; 0: one run, no repeats */
    int64_t leak_bytes, load_bytes; /* see struct plim_message_open */
    struct plim_deadline deadlines[PLIM_PHASE_COUNT];
    /* How long memory may take to become free after a worker's end. Memory that did not once is assumed to
     * belong to another process. */
    double memory_back_seconds;
    double reap_seconds; /* how long a killed worker may take to end */
    double busy_seconds; /* how long the device may be in use by others before it counts as absent */
    /* The predicted seconds of one step of the setting; NULL: not known. */
    double (*predict)(void *user, const struct plim_setting *setting);
    /* The step time of the setting above which it is not timed by repeats (wire.h); 0 or NULL: no limit. */
    double (*slow)(void *user, const struct plim_setting *setting);
    /* Is the device's used memory back to what it was before the first worker? Called until it is,
     * or memory_back_seconds are over; NULL: not known. */
    bool (*memory_is_back)(void *user);
    /* Called some ten times a second while a setting is timed, to see what slows the GPU down. */
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

/* Starts nothing yet. PLIM_NOMEM, or PLIM_INVALID for a spec that is too large to send. */
enum plim_status plim_remote_create(const struct plim_remote_config *config,
                                    struct plim_remote **out,
                                    struct plim_error *err) PLIM_MUST_CHECK;

/* Ends the worker, with everything that it holds. */
void plim_remote_destroy(struct plim_remote **remote);

/* Starts a worker if there is none. `out` is the device as seen by the worker, valid as long as the
 * remote. Fails as the device's open function does, or as a run does. */
enum plim_status plim_remote_open(struct plim_remote *remote,
                                  const struct plim_message_opened **out,
                                  struct plim_error *err) PLIM_MUST_CHECK;

/* From now on a LIMITED run may hold at most the budget; an UNLIMITED one may hold all the memory there is. */
void plim_remote_set_budget(struct plim_remote *remote, int64_t budget_bytes);

/* Runs a setting. If it does not fit, or cannot run, that is a verdict in `out`, as above. The same
 * setting gives the same answer every time. */
enum plim_status plim_remote_run(struct plim_remote *remote, const struct plim_setting *setting,
                                 enum plim_run_mode mode, struct plim_replay *out,
                                 struct plim_error *err) PLIM_MUST_CHECK;

/* From now on runs spend this time on the repeats of one setting, instead of config.timing_seconds. */
void plim_remote_set_timing(struct plim_remote *remote, double seconds);

/* The timing of the last run; no repeats when it did not fit. */
const struct plim_timing *plim_remote_timing(const struct plim_remote *remote);

/* The number of workers started so far. */
int plim_remote_workers(const struct plim_remote *remote);

#endif
