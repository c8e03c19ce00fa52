#include "worker.h"
#include "autotune/base/log.h"
#include "devices/sim/sim.h"
#include "process.h"
#include "wire.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- devices ---------------------------------------------------------------------------------- */

/* More than any model needs, and far from overflowing where the allocator computes with it. */
static const int64_t UNLIMITED_BYTES = INT64_C(1) << 60;

static void limit_sim(struct plim_device *device, int64_t bytes)
{
    plim_sim_set_capacity(device, bytes ? bytes : UNLIMITED_BYTES);
}

/* What a worker can open: the text before the first ':' or ',' of a URI. `limit` sets how much may
 * be held (0: no limit); NULL where only the URI can. */
static const struct opener {
    const char *scheme;
    enum plim_status (*open)(const char *uri_tail, struct plim_device **out,
                             struct plim_error *err);
    void (*limit)(struct plim_device *device, int64_t bytes);
} openers[] = {
    {"sim", plim_sim_open, limit_sim},
};

static enum plim_status find_opener(const char *uri, const struct opener **out,
                                    struct plim_error *err)
{
    size_t length = strcspn(uri, ":,");
    for (size_t i = 0; i < sizeof(openers) / sizeof(openers[0]); i++) {
        *out = &openers[i];
        if (strlen(openers[i].scheme) == length && !strncmp(uri, openers[i].scheme, length))
            return PLIM_OK;
    }
    return plim_fail(err, PLIM_UNSUPPORTED, "%s: this plimsoll is built without that device", uri);
}

/* --- state ------------------------------------------------------------------------------------ */

struct worker {
    struct plim_wire wire;
    struct plim_message in, out;
    const struct opener *opener;
    struct plim_device *device;
    struct plim_replayer *replayer;
    struct plim_allocator_config allocator;
    struct plim_spec spec;
    int64_t leak_bytes, load_bytes;
    int64_t missing_bytes; /* by all runs after the first */
    bool has_run;
};

static enum plim_status reply(struct worker *w)
{
    w->out.id = w->in.id;
    return plim_wire_send(&w->wire, &w->out, -1);
}

static enum plim_status tell_phase(struct worker *w, enum plim_worker_phase phase, int step)
{
    struct plim_message message = {
        .kind = PLIM_MESSAGE_PHASE, .id = w->in.id, .phase = {.phase = phase, .step = step}};
    return plim_wire_send(&w->wire, &message, -1);
}

static enum plim_status fail(struct worker *w, enum plim_status why, const struct plim_error *err)
{
    w->out = (struct plim_message){.kind = PLIM_MESSAGE_FAILED, .failed = {.status = why}};
    plim_error_format(err, w->out.failed.text, sizeof(w->out.failed.text));
    return reply(w);
}

/* --- opening ---------------------------------------------------------------------------------- */

static enum plim_status load_spec(struct worker *w, const struct plim_message_open *open,
                                  struct plim_error *err)
{
    enum plim_status st = plim_spec_load_text("spec", open->spec, &w->spec, err);
    if (!st && w->spec.hash != open->spec_hash)
        st = plim_fail(err, PLIM_INTERNAL, "the spec came out different in the worker");
    return st;
}

static enum plim_status serve_open(struct worker *w)
{
    struct plim_error err = PLIM_ERROR_INIT;
    const struct plim_message_open *open = &w->in.open;
    enum plim_status st = tell_phase(w, PLIM_PHASE_OPENING, 0);
    if (st) return st;
    w->leak_bytes = open->leak_bytes;
    w->load_bytes = open->load_bytes;
    st = load_spec(w, open, &err);
    if (!st) st = plim_allocator_config_parse(open->alloc_conf, &w->allocator, &err);
    if (!st) st = find_opener(open->uri, &w->opener, &err);
    const char *tail = open->uri + strcspn(open->uri, ":,");
    if (!st) st = w->opener->open(*tail ? tail + 1 : tail, &w->device, &err);
    if (st) return fail(w, st, &err);
    w->out =
        (struct plim_message){.kind = PLIM_MESSAGE_OPENED, .opened = {.info = w->device->info}};
    w->out.opened.free_bytes = plim_device_free_bytes(w->device);
    return reply(w);
}

/* --- running ---------------------------------------------------------------------------------- */

/* A verdict where the replay failed in a way that is the setting's or the device's. */
static enum plim_status settle(enum plim_status st, struct plim_replay *replay,
                               struct plim_error *err)
{
    if (st != PLIM_LOST && st != PLIM_UNSUPPORTED) return st;
    *replay = (struct plim_replay){.verdict = st};
    snprintf(replay->why, sizeof(replay->why), "%.159s", err->text);
    *err = (struct plim_error)PLIM_ERROR_INIT;
    return PLIM_OK;
}

struct repeat {
    struct worker *worker;
    const struct plim_setting *setting;
    struct plim_replay replay;
    struct plim_error err;
};

static enum plim_status repeat_step(void *user, double *seconds)
{
    struct repeat *r = user;
    struct worker *w = r->worker;
    enum plim_status st =
        plim_replay_run(w->replayer, &w->spec.model, r->setting, &r->replay, &r->err);
    if (!st) st = r->replay.verdict;
    if (!st) *seconds = r->replay.step[PLIM_REPLAY_STEPS - 1].seconds;
    return st;
}

/* Repeats the step for as long as it is asked for and makes the median the time of the last step.
 * A simulated device has one time. A repetition that ends otherwise than the first run did is the
 * answer. */
static enum plim_status worker_measure(struct worker *w, const struct plim_message_run *run,
                                       struct plim_message_result *result, struct plim_error *err)
{
    struct plim_replay *replay = &result->replay;
    double *last = &replay->step[PLIM_REPLAY_STEPS - 1].seconds;
    if (w->device->info.simulated || run->timing_seconds <= 0) {
        result->timing = (struct plim_timing){.repeats = 1, .median_seconds = *last};
        return PLIM_OK;
    }
    struct repeat repeat = {.worker = w, .setting = &run->setting, .err = PLIM_ERROR_INIT};
    enum plim_status st = tell_phase(w, PLIM_PHASE_TIMING, 0);
    if (!st) st = plim_measure(repeat_step, &repeat, run->timing_seconds, &result->timing);
    if (!st) {
        *last = result->timing.median_seconds;
        return PLIM_OK;
    }
    if (repeat.replay.verdict == st) {
        *replay = repeat.replay;
        return PLIM_OK;
    }
    *err = repeat.err;
    return st;
}

/* Gives everything back and counts what is missing. Libraries keep what they loaded, so the first
 * run of a worker may leave more behind than those after it. */
static enum plim_status clear(struct worker *w, struct plim_message_result *result)
{
    enum plim_status st = tell_phase(w, PLIM_PHASE_CLEARING, 0);
    plim_replayer_destroy(&w->replayer);
    if (!st) st = plim_device_reset(w->device);
    if (st) return st;
    result->free_after_bytes = plim_device_free_bytes(w->device);
    int64_t missing = result->free_before_bytes - result->free_after_bytes;
    if (w->has_run) w->missing_bytes += missing;
    result->leaked = w->has_run ? w->missing_bytes > w->leak_bytes : missing > w->load_bytes;
    w->has_run = true;
    return PLIM_OK;
}

static enum plim_status run_setting(struct worker *w, struct plim_message_result *result,
                                    struct plim_error *err)
{
    const struct plim_message_run *run = &w->in.run;
    struct plim_replay *replay = &result->replay;
    enum plim_status st = PLIM_OK;
    PLIM_TRY(tell_phase(w, PLIM_PHASE_BUILDING, 0));
    if (w->opener->limit) w->opener->limit(w->device, run->capacity_bytes);
    result->free_before_bytes = plim_device_free_bytes(w->device);
    PLIM_TRY(plim_replayer_create(w->device, &w->allocator, &w->replayer, err));
    PLIM_TRY(tell_phase(w, PLIM_PHASE_STEP, 1));
    PLIM_TRY(plim_replay_run(w->replayer, &w->spec.model, &run->setting, replay, err));
    result->finite = true;
    if (replay->verdict == PLIM_OK) PLIM_TRY(worker_measure(w, run, result, err));
    if (!w->device->lost) PLIM_TRY(clear(w, result));
out:
    plim_replayer_destroy(&w->replayer);
    return settle(w->device->lost ? PLIM_LOST : st, replay, err);
}

static enum plim_status serve_run(struct worker *w)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_message_result result = {.finite = true};
    if (!w->device) {
        plim_fail(&err, PLIM_INTERNAL, "no device was opened");
        return fail(w, PLIM_INTERNAL, &err);
    }
    enum plim_status st = run_setting(w, &result, &err);
    if (st == PLIM_IO) return st;
    if (st) return fail(w, st, &err);
    w->out = (struct plim_message){.kind = PLIM_MESSAGE_RESULT, .result = result};
    st = reply(w);
    return st == PLIM_OK && w->device->lost ? PLIM_LOST : st;
}

/* --- serving ---------------------------------------------------------------------------------- */

static enum plim_status serve(struct worker *w)
{
    w->out = (struct plim_message){.kind = PLIM_MESSAGE_HELLO, .hello = {.build = PLIM_VERSION}};
    enum plim_status st = plim_wire_send(&w->wire, &w->out, -1);
    while (!st) {
        st = plim_wire_receive(&w->wire, &w->in, -1);
        if (st == PLIM_TIMEOUT)
            st = PLIM_OK; /* a signal that is ignored */
        else if (st)
            break;
        else if (w->in.kind == PLIM_MESSAGE_OPEN && !w->device)
            st = serve_open(w);
        else if (w->in.kind == PLIM_MESSAGE_RUN)
            st = serve_run(w);
        else if (w->in.kind == PLIM_MESSAGE_BYE)
            return PLIM_OK;
        else
            st = PLIM_INVALID;
    }
    return st;
}

int plim_worker_main(int fd)
{
    struct worker *w = calloc(1, sizeof(*w)); /* a spec is too large for comfort on a stack */
    if (!w) return 1;
    w->wire.fd = fd;
    enum plim_status st = serve(w);
    plim_device_close(&w->device);
    plim_wire_finish(&w->wire);
    free(w);
    return st == PLIM_OK ? 0 : 1;
}

int plim_worker_command(int argc, char **argv)
{
    char *end = NULL;
    long parent = argc == 1 ? strtol(argv[0], &end, 10) : 0;
    if (parent <= 0 || *end || !plim_process_become_worker((pid_t)parent)) return 1;
    return plim_worker_main(PLIM_WORKER_FD);
}
