#include "dialogue.h"
#include "autotune/base/clock.h"
#include "autotune/base/exit_status.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const double WATCH_SECONDS = 0.1;        /* between two calls of while_timing */
static const double STOPPED_REAP_SECONDS = 0.5; /* for a killed worker when the search is over */
static const double GOODBYE_SECONDS = 2;        /* for a worker to exit */
static const double SEND_SECONDS = 10;          /* requests are small and never wait in practice */

enum plim_dialogue_outcome plim_worker_die(struct plim_worker_death *death,
                                           enum plim_status verdict, const char *fmt, ...)
{
    va_list args;
    death->verdict = verdict;
    va_start(args, fmt);
    vsnprintf(death->why, sizeof(death->why), fmt, args);
    va_end(args);
    return PLIM_DIALOGUE_DIED;
}

/* --- start of a worker ------------------------------------------------------------------------ */

enum plim_status plim_dialogue_start(struct plim_dialogue *d, const char *program,
                                     const struct plim_variable *variables, size_t count,
                                     struct plim_error *err)
{
    enum plim_status st = plim_process_start(program, variables, count, d->memo_fd, &d->process, err);
    d->wire = (struct plim_wire){.fd = d->process.fd};
    return st;
}

/* --- end of a worker -------------------------------------------------------------------------- */

/* Waits for the worker to end, in slices, since the search may have to end meanwhile. Returns false if it did not. */
static bool wait_for_end(struct plim_dialogue *d, double seconds, int *status)
{
    double start = plim_clock_seconds();
    while (!plim_process_wait(&d->process, PLIM_DIALOGUE_SLICE_SECONDS, status)) {
        double most = plim_stop_check(d->stop, NULL) ? STOPPED_REAP_SECONDS : seconds;
        if (plim_clock_seconds() - start >= most) return false;
    }
    return true;
}

void plim_dialogue_end(struct plim_dialogue *d)
{
    int status;
    long pid = (long)d->process.pid;
    if (pid > 0) {
        plim_process_kill(&d->process);
        if (!wait_for_end(d, d->reap_seconds, &status)) {
            plim_log(d->log, PLIM_LOG_WARNING,
                     "worker %ld does not end: the GPU or its driver hangs (dmesg | grep Xid)",
                     pid);
            (void)PLIM_ARRAY_PUSH(&d->stuck, d->process.pid);
            plim_process_abandon(&d->process);
        }
        d->a_worker_went = true;
    }
    plim_wire_finish(&d->wire);
}

/* The stream ended or is broken: derives the reason from how the process ended. */
static enum plim_dialogue_outcome die_of_stream(struct plim_dialogue *d,
                                                struct plim_worker_death *death)
{
    int status;
    char how[96];
    if (d->wire.broken || !wait_for_end(d, d->reap_seconds, &status))
        return plim_worker_die(death, PLIM_CRASHED, "the worker sent what is no answer");
    plim_exit_status_text(status, how, sizeof(how));
    d->a_worker_went = true;
    return plim_worker_die(death, PLIM_CRASHED, "the worker %s", how);
}

void plim_dialogue_shut_down(struct plim_dialogue *d)
{
    const struct plim_message bye = {.kind = PLIM_MESSAGE_BYE};
    int status;
    if (!plim_wire_send(&d->wire, &bye, PLIM_DIALOGUE_SLICE_SECONDS))
        (void)wait_for_end(d, GOODBYE_SECONDS, &status);
}

void plim_dialogue_finish(struct plim_dialogue *d)
{
    int status;
    plim_dialogue_end(d);
    for (size_t i = 0; i < d->stuck.count; i++) {
        struct plim_process process = {.pid = d->stuck.items[i], .fd = -1};
        (void)plim_process_wait(&process, 0, &status);
    }
    PLIM_ARRAY_FINISH(&d->stuck);
}

/* --- listening -------------------------------------------------------------------------------- */

struct listening {
    uint32_t id;
    struct plim_message_phase now;
    double prediction, timing_seconds;
    double watched; /* when while_timing was called last */
};

static double deadline_seconds(const struct plim_dialogue *d, const struct listening *l)
{
    const struct plim_deadline *deadline = &d->deadlines[l->now.phase];
    double more = l->now.phase == PLIM_PHASE_TIMING ? l->timing_seconds : 0;
    return deadline->seconds + deadline->factor * l->prediction + more;
}

/* Phases may only advance, so that a worker cannot postpone its deadline for ever. */
static bool is_later(const struct plim_message_phase *a, const struct plim_message_phase *b)
{
    return a->phase > b->phase || (a->phase == b->phase && a->step > b->step);
}

static enum plim_dialogue_outcome die_of_time(const struct plim_dialogue *d,
                                              const struct listening *l,
                                              struct plim_worker_death *death)
{
    char step[16] = "";
    if (l->now.step) snprintf(step, sizeof(step), " %d", l->now.step);
    return plim_worker_die(death, PLIM_TIMEOUT, "the worker hung: %s%s took longer than %.3g s",
                           plim_worker_phase_name(l->now.phase), step, deadline_seconds(d, l));
}

static void watch(const struct plim_dialogue *d, struct listening *l)
{
    double now = plim_clock_seconds();
    if (!d->while_timing || l->now.phase != PLIM_PHASE_TIMING || now - l->watched < WATCH_SECONDS)
        return;
    l->watched = now;
    d->while_timing(d->user);
}

/* Waits for the reply to a request, with a deadline for each phase. */
static enum plim_dialogue_outcome listen_for(struct plim_dialogue *d, struct listening *l,
                                             struct plim_message *out,
                                             struct plim_worker_death *death,
                                             struct plim_error *err)
{
    double end = plim_clock_seconds() + deadline_seconds(d, l);
    for (;;) {
        if (plim_stop_check(d->stop, err)) return PLIM_DIALOGUE_STOPPED;
        double left = end - plim_clock_seconds();
        if (left <= 0) return die_of_time(d, l, death);
        enum plim_status st =
            plim_wire_receive(&d->wire, out, left < PLIM_DIALOGUE_SLICE_SECONDS ? left : PLIM_DIALOGUE_SLICE_SECONDS);
        watch(d, l);
        if (st == PLIM_TIMEOUT) continue;
        if (st == PLIM_UNSUPPORTED)
            return plim_worker_die(death, PLIM_CRASHED,
                                   "the worker speaks another version of the protocol");
        if (st) return die_of_stream(d, death);
        if (out->id != l->id)
            return plim_worker_die(death, PLIM_CRASHED,
                                   "the worker sent a message that was not asked for");
        if (out->kind != PLIM_MESSAGE_PHASE) return PLIM_DIALOGUE_REPLIED;
        if (!is_later(&out->phase, &l->now))
            return plim_worker_die(death, PLIM_CRASHED, "the worker went back to %s",
                                   plim_worker_phase_name(out->phase.phase));
        l->now = out->phase;
        end = plim_clock_seconds() + deadline_seconds(d, l);
    }
}

static enum plim_dialogue_outcome send_request(struct plim_dialogue *d,
                                               const struct plim_message *request,
                                               struct plim_worker_death *death)
{
    enum plim_status st = plim_wire_send(&d->wire, request, SEND_SECONDS);
    if (st == PLIM_IO) return die_of_stream(d, death);
    return st ? plim_worker_die(death, PLIM_CRASHED, "a request could not be sent: %s",
                                plim_status_text(st))
              : PLIM_DIALOGUE_REPLIED;
}

/* --- requests --------------------------------------------------------------------------------- */

enum plim_dialogue_outcome plim_dialogue_hello(struct plim_dialogue *d,
                                               struct plim_worker_death *death,
                                               struct plim_error *err)
{
    struct plim_message hello;
    struct listening l = {.now = {.phase = PLIM_PHASE_STARTING}};
    enum plim_dialogue_outcome outcome = listen_for(d, &l, &hello, death, err);
    if (outcome != PLIM_DIALOGUE_REPLIED) return outcome;
    if (hello.kind != PLIM_MESSAGE_HELLO || strcmp(hello.hello.build, PLIM_VERSION) != 0)
        return plim_worker_die(death, PLIM_CRASHED, "the worker is another build than this one");
    return PLIM_DIALOGUE_REPLIED;
}

enum plim_dialogue_outcome
plim_dialogue_request(struct plim_dialogue *d, const struct plim_message *request,
                      enum plim_message_kind wanted, const struct plim_expectation *expectation,
                      struct plim_message *out, struct plim_worker_death *death, struct plim_error *err)
{
    struct listening l = {.id = request->id,
                          .now = {.phase = expectation->phase},
                          .prediction = expectation->prediction,
                          .timing_seconds = expectation->timing_seconds};
    enum plim_dialogue_outcome outcome = send_request(d, request, death);
    if (outcome != PLIM_DIALOGUE_REPLIED) return outcome;
    outcome = listen_for(d, &l, out, death, err);
    if (outcome != PLIM_DIALOGUE_REPLIED) return outcome;
    if (out->kind != wanted && out->kind != PLIM_MESSAGE_FAILED)
        return plim_worker_die(death, PLIM_CRASHED,
                               "the worker sent a message that was not asked for");
    return PLIM_DIALOGUE_REPLIED;
}
