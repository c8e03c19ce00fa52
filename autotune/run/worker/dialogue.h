/* The parent's end of what is said with a worker: it is started, asked, listened to with a deadline
 * for each phase, and ended. One worker at a time.
 *
 * The stop is looked at all the time, and once it says so nothing here waits longer than a second.
 */
#ifndef PLIM_AUTOTUNE_RUN_DIALOGUE_H
#define PLIM_AUTOTUNE_RUN_DIALOGUE_H

#include "autotune/base/array.h"
#include "autotune/base/log.h"
#include "autotune/base/stop.h"
#include "process.h"
#include "wire.h"

#define PLIM_DIALOGUE_SLICE_SECONDS 0.05 /* between two looks at the stop */

/* How long a phase may take: seconds + factor x what one step is expected to take (prediction).
 * Timing may also take what it was given. */
struct plim_deadline {
    double seconds, factor;
};

struct plim_dialogue {
    const struct plim_stop *stop;          /* lent; NULL: never */
    const struct plim_log *log;            /* lent; NULL: nothing is told */
    const struct plim_deadline *deadlines; /* lent: one for each phase */
    double reap_seconds;                   /* how long a killed worker may take to go */
    void (*while_timing)(void *user);      /* called some 10 times a second meanwhile; NULL: not */
    void *user;
    int memo_fd; /* lent to each worker (process.h); -1: none */
    bool
        a_worker_went; /* since the caller cleared this: memory of the GPU may be on its way back */
    struct plim_process process;
    struct plim_wire wire;
    PLIM_ARRAY(pid_t) stuck; /* killed, and not gone in time */
};

#define PLIM_DIALOGUE_INIT                                                                         \
    {                                                                                              \
        .memo_fd = -1, .process = PLIM_PROCESS_INIT, .wire = {.fd = -1 }                                          \
    }

/* How talking to the worker ended. */
enum plim_dialogue_outcome {
    PLIM_DIALOGUE_REPLIED,
    PLIM_DIALOGUE_DIED,   /* the worker is of no more use; `death` says why */
    PLIM_DIALOGUE_STOPPED /* the search has to end; `err` says why */
};

struct plim_worker_death {
    enum plim_status verdict; /* PLIM_CRASHED, PLIM_TIMEOUT, or what the caller made of a reply */
    char why[160];
};

/* Says why. Returns PLIM_DIALOGUE_DIED. */
enum plim_dialogue_outcome PLIM_PRINTF(3, 4)
    plim_worker_die(struct plim_worker_death *death, enum plim_status verdict, const char *fmt,
                    ...);

/* Starts a worker where there is none; PLIM_IO. */
enum plim_status plim_dialogue_start(struct plim_dialogue *dialogue, const char *program,
                                     const struct plim_variable *variables, size_t count,
                                     struct plim_error *err) PLIM_MUST_CHECK;

/* The first that a worker says: that it is of our build. */
enum plim_dialogue_outcome plim_dialogue_hello(struct plim_dialogue *dialogue,
                                               struct plim_worker_death *death,
                                               struct plim_error *err);

/* What the deadlines of a request go by. */
struct plim_expectation {
    enum plim_worker_phase phase; /* in which the worker takes the request up */
    double prediction;            /* seconds of one step; 0: not known */
    double timing_seconds;        /* that the request gives for repeats */
};

/* Sends a request and waits for its answer: one of the kind wanted, or FAILED. `out` is valid until
 * the next call. */
enum plim_dialogue_outcome
plim_dialogue_ask(struct plim_dialogue *dialogue, const struct plim_message *request,
                  enum plim_message_kind wanted, const struct plim_expectation *expectation,
                  struct plim_message *out, struct plim_worker_death *death,
                  struct plim_error *err);

/* Asks the worker to end by itself, and gives it a moment. */
void plim_dialogue_say_bye(struct plim_dialogue *dialogue);
/* Ends the worker, with all that it holds; there may be none. */
void plim_dialogue_end(struct plim_dialogue *dialogue);
/* The end of all: looks once more for workers that did not go in time. */
void plim_dialogue_finish(struct plim_dialogue *dialogue);

#endif
