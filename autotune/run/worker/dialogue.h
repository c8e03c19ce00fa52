/* The parent's side of the dialogue with a worker: starts it, sends requests, waits for replies with a deadline for
 * each phase, and ends it. One worker at a time.
 *
 * The stop is checked while waiting; once it is set, no function waits longer than a second. */
#ifndef PLIM_AUTOTUNE_RUN_DIALOGUE_H
#define PLIM_AUTOTUNE_RUN_DIALOGUE_H

#include "autotune/base/array.h"
#include "autotune/base/log.h"
#include "autotune/base/stop.h"
#include "process.h"
#include "wire.h"

#define PLIM_DIALOGUE_SLICE_SECONDS 0.05 /* between two checks of the stop */

/* How long a phase may take: seconds + factor * the predicted time of one step. The timing phase may additionally take
 * the time that the request allows for it. */
struct plim_deadline {
    double seconds, factor;
};

struct plim_dialogue {
    const struct plim_stop *stop;          /* owned by the caller; NULL: never stops */
    const struct plim_log *log;            /* owned by the caller; NULL: notes are dropped */
    const struct plim_deadline *deadlines; /* owned by the caller: one for each phase */
    double reap_seconds;                   /* how long a killed worker may take to end */
    void (*while_timing)(void *user);      /* called some 10 times a second during timing; may be NULL */
    void *user;
    int memo_fd; /* passed to each worker, owned by the caller (process.h); -1: none */
    bool
        a_worker_went; /* a worker ended since the caller reset this: its GPU memory may not be free yet */
    struct plim_process process;
    struct plim_wire wire;
    PLIM_ARRAY(pid_t) stuck; /* killed workers that did not end in time */
};

#define PLIM_DIALOGUE_INIT                                                                         \
    {                                                                                              \
        .memo_fd = -1, .process = PLIM_PROCESS_INIT, .wire = {.fd = -1 }                                          \
    }

/* The outcome of a request to the worker. */
enum plim_dialogue_outcome {
    PLIM_DIALOGUE_REPLIED,
    PLIM_DIALOGUE_DIED,   /* the worker is no longer usable; `death` says why */
    PLIM_DIALOGUE_STOPPED /* the search must end; `err` says why */
};

struct plim_worker_death {
    enum plim_status verdict; /* PLIM_CRASHED, PLIM_TIMEOUT, or a status that the caller takes from a reply */
    char why[160];
};

/* Fills in `death`. Returns PLIM_DIALOGUE_DIED. */
enum plim_dialogue_outcome PLIM_PRINTF(3, 4)
    plim_worker_die(struct plim_worker_death *death, enum plim_status verdict, const char *fmt,
                    ...);

/* Starts a worker; there must be none. PLIM_IO if that fails. */
enum plim_status plim_dialogue_start(struct plim_dialogue *dialogue, const char *program,
                                     const struct plim_variable *variables, size_t count,
                                     struct plim_error *err) PLIM_MUST_CHECK;

/* Waits for a worker's first message, and checks that the worker is of this build. */
enum plim_dialogue_outcome plim_dialogue_hello(struct plim_dialogue *dialogue,
                                               struct plim_worker_death *death,
                                               struct plim_error *err);

/* From this the deadlines of a request follow. */
struct plim_expectation {
    enum plim_worker_phase phase; /* the phase in which the worker begins the request */
    double prediction;            /* seconds of one step; 0: not known */
    double timing_seconds;        /* the time that the request allows for repeats */
};

/* Sends a request and waits for its reply, of the kind `wanted` or FAILED. `out` is valid until the next call. */
enum plim_dialogue_outcome
plim_dialogue_request(struct plim_dialogue *dialogue, const struct plim_message *request,
                      enum plim_message_kind wanted, const struct plim_expectation *expectation,
                      struct plim_message *out, struct plim_worker_death *death,
                      struct plim_error *err);

/* Asks the worker to exit, and waits a moment for that. */
void plim_dialogue_shut_down(struct plim_dialogue *dialogue);
/* Kills the worker, if there is one, and waits for its end. */
void plim_dialogue_end(struct plim_dialogue *dialogue);
/* Ends the worker, reaps earlier ones that did not end in time, and frees memory. */
void plim_dialogue_finish(struct plim_dialogue *dialogue);

#endif
