#include "worker.h"
#include "autotune/base/log.h"
#include "autotune/run/spec_question.h"
#include "devices/open.h"
#include "leaks.h"
#include "process.h"
#include "wire.h"
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- state ------------------------------------------------------------------------------------ */

struct worker {
    struct plim_wire wire;
    struct plim_message in, out;
    struct plim_device *device;
    struct plim_replayer *replayer;
    struct plim_allocator_config allocator;
    struct plim_spec spec;
    struct plim_spec_question question; /* of the spec; gives the settings their meaning */
    struct plim_all_reduce all_reduce; /* among GPUs of this kind; zeroed: not measured */
    struct plim_leaks leaks;
    struct plim_warmth warmth; /* of the device */
};

static enum plim_status reply(struct worker *w)
{
    w->out.id = w->in.id;
    return plim_wire_send(&w->wire, &w->out, -1);
}

static enum plim_status send_phase(struct worker *w, enum plim_worker_phase phase, int step)
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

/* --- REDUCE ----------------------------------------------------------------------------------- */

static enum plim_status serve_reduce(struct worker *w)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_all_reduce measured;
    enum plim_status st = send_phase(w, PLIM_PHASE_REDUCING, 0);
    if (st) return st;
    st = plim_all_reduce_measure(w->in.reduce.gpus, &measured, &err);
    if (st) return fail(w, st, &err);
    w->out = (struct plim_message){.kind = PLIM_MESSAGE_REDUCED, .reduced = measured};
    return reply(w);
}

/* --- OPEN ------------------------------------------------------------------------------------- */

static enum plim_status load_spec(struct worker *w, const struct plim_message_open *open,
                                  struct plim_error *err)
{
    enum plim_status st = plim_spec_load_text("spec", open->spec, &w->spec, err);
    if (!st && w->spec.hash != open->spec_hash)
        st = plim_fail(err, PLIM_INTERNAL, "the spec came out different in the worker");
    if (!st) plim_spec_question_make(&w->spec, PLIM_OBJECTIVE_THROUGHPUT, &w->question);
    return st;
}

static enum plim_status serve_open(struct worker *w)
{
    struct plim_error err = PLIM_ERROR_INIT;
    const struct plim_message_open *open = &w->in.open;
    enum plim_status st = send_phase(w, PLIM_PHASE_OPENING, 0);
    if (st) return st;
    w->all_reduce = open->all_reduce;
    w->leaks.may_leak_bytes = open->leak_bytes;
    w->leaks.may_load_bytes = open->load_bytes;
    st = load_spec(w, open, &err);
    if (!st) st = plim_allocator_config_parse(open->alloc_conf, &w->allocator, &err);
    if (!st) st = plim_device_open(open->uri, &w->device, &err);
    if (st) return fail(w, st, &err);
    if (fcntl(PLIM_WORKER_MEMO_FD, F_GETFD) >= 0)
        plim_device_remember(w->device, PLIM_WORKER_MEMO_FD);
    w->out =
        (struct plim_message){.kind = PLIM_MESSAGE_OPENED, .opened = {.info = w->device->info}};
    w->out.opened.free_bytes = plim_device_free_bytes(w->device);
    return reply(w);
}

/* --- RUN -------------------------------------------------------------------------------------- */

/* Replies FAILED, with the device's message, which is more specific than the replay's. */
static enum plim_status fail_with_message(struct worker *w, enum plim_status why,
                                          const struct plim_error *err)
{
    struct plim_error both = PLIM_ERROR_INIT;
    const char *message = plim_device_message(w->device);
    if (!message[0]) return fail(w, why, err);
    plim_fail(&both, why, "%.70s: %.400s", err->text, message);
    return fail(w, why, &both);
}

/* Turns a failure that is due to the setting or the device into a verdict. */
static enum plim_status verdict_of_failure(const struct worker *w, enum plim_status st,
                                           struct plim_replay *replay, struct plim_error *err)
{
    if (st != PLIM_LOST && st != PLIM_UNSUPPORTED) return st;
    const char *message = plim_device_message(w->device);
    *replay = (struct plim_replay){.verdict = st};
    snprintf(replay->why, sizeof(replay->why), "%.70s%s%.80s", err->text, message[0] ? ": " : "",
             message);
    *err = (struct plim_error)PLIM_ERROR_INIT;
    return PLIM_OK;
}

/* False if the loss is not finite. A simulated device computes none. */
static bool is_good(const struct worker *w, const struct plim_replay_step *step)
{
    return w->device->info.simulated || isfinite(step->loss);
}

struct repeats {
    struct worker *worker;
    bool finite;
};

static enum plim_status repeat_step(void *user, double *seconds)
{
    struct repeats *r = user;
    struct plim_replay_step step;
    if (!plim_replay_next(r->worker->replayer, &step)) return PLIM_CANCELLED;
    if (!is_good(r->worker, &step)) r->finite = false;
    *seconds = step.seconds;
    return PLIM_OK;
}

/* True if all steps took longer than `limit` seconds (0: no limit). The shortest counts: other work on the GPU only
 * makes steps longer. */
static bool is_slow(const struct plim_measured_steps *steps, double limit)
{
    double least = INFINITY;
    for (int i = 0; i < steps->count; i++) least = fmin(least, steps->seconds[i]);
    return limit > 0 && least > limit;
}

/* Measures the step time by repeats, unless the setting is too slow. A simulated device always takes the same time. If
 * a step fails, the measurement ends, and the end of the replay reports the reason. `steps` has the times of the first
 * steps, without the very first, during which plans are compiled. */
static enum plim_status worker_measure(struct worker *w, struct plim_measured_steps *steps,
                                       double last_seconds, struct plim_message_result *result,
                                       struct plim_error *err)
{
    double allowed = w->in.run.timing_seconds;
    struct repeats repeats = {.worker = w, .finite = true};
    if (w->device->info.simulated || allowed <= 0) {
        result->timing = (struct plim_timing){.repeats = 1, .median_seconds = last_seconds};
        return PLIM_OK;
    }
    if (is_slow(steps, w->in.run.slow_seconds)) {
        plim_measure_summarise(steps, &result->timing);
        return PLIM_OK;
    }
    enum plim_status st = send_phase(w, PLIM_PHASE_TIMING, 0);
    if (!st) st = plim_measure(repeat_step, &repeats, &w->warmth, steps, allowed, &result->timing);
    result->finite &= repeats.finite;
    if (st == PLIM_INVALID) return plim_fail(err, PLIM_INTERNAL, "a step took no time");
    return st == PLIM_CANCELLED ? PLIM_OK : st;
}

/* Runs the steps that decide whether the setting fits, then those that are timed. The caller ends the replay in any
 * case. */
static enum plim_status run_steps(struct worker *w, struct plim_message_result *result,
                                  struct plim_error *err)
{
    struct plim_replay_step step = {0};
    struct plim_measured_steps steps = {.count = 0};
    for (int i = 1; i <= PLIM_REPLAY_STEPS; i++) {
        enum plim_status st = send_phase(w, PLIM_PHASE_STEP, i);
        if (st) return st;
        if (!plim_replay_next(w->replayer, &step)) return PLIM_OK;
        result->finite &= is_good(w, &step);
        if (i == 1) continue;
        plim_warmth_record(&w->warmth, step.seconds);
        steps.seconds[steps.count++] = step.seconds;
    }
    return worker_measure(w, &steps, step.seconds, result, err);
}

static enum plim_status replay(struct worker *w, struct plim_message_result *result,
                               struct plim_error *err)
{
    struct plim_replay *out = &result->replay;
    struct plim_train_setting setting;
    if (plim_spec_question_setting(&w->question, &w->in.run.setting, &setting, err) != PLIM_OK)
        return PLIM_INVALID;
    plim_run_setting_vllm(&setting, w->device->info.total_bytes);
    plim_replay_begin(w->replayer, &w->spec.model, &setting);
    enum plim_status steps = run_steps(w, result, err), st = plim_replay_end(w->replayer, out, err);
    if (out->steps_done > PLIM_REPLAY_STEPS) out->steps_done = PLIM_REPLAY_STEPS;
    if (out->evaluations > PLIM_REPLAY_STEPS) out->evaluations = PLIM_REPLAY_STEPS;
    if (result->timing.repeats)
        out->step[PLIM_REPLAY_STEPS - 1].seconds = result->timing.median_seconds;
    return st ? st : steps;
}

/* Frees all memory and counts what is missing. */
static enum plim_status clear(struct worker *w, struct plim_message_result *result)
{
    enum plim_status st = send_phase(w, PLIM_PHASE_CLEARING, 0);
    plim_replayer_destroy(&w->replayer);
    if (!st) st = plim_device_reset(w->device);
    if (st) return st;
    result->free_after_bytes = plim_device_free_bytes(w->device);
    int64_t missing = result->free_before_bytes - result->free_after_bytes;
    st = plim_leaks_add(&w->leaks, &w->in.run.setting, missing);
    result->suspect = plim_leaks_are_too_many(&w->leaks) || plim_device_is_suspect(w->device);
    return st;
}

/* Sets the links of the GPU, from the measurement or the catalogue. */
static void connect(struct worker *w)
{
    struct plim_error unknown = PLIM_ERROR_INIT;
    const struct plim_gpu *gpu;
    if (plim_catalogue_find(w->device->info.name, &gpu, &unknown) != PLIM_OK) gpu = NULL;
    const struct plim_links links = plim_run_links(&w->spec, gpu, &w->all_reduce);
    plim_replayer_links(w->replayer, &links);
}

static enum plim_status run_setting(struct worker *w, struct plim_message_result *result,
                                    struct plim_error *err)
{
    int64_t capacity = w->in.run.capacity_bytes;
    struct plim_allocator_config allocator = w->allocator;
    enum plim_status st = PLIM_OK;
    if (!capacity) allocator.memory_fraction = 0;
    PLIM_TRY(send_phase(w, PLIM_PHASE_BUILDING, 0));
    plim_device_limit(w->device, capacity ? capacity : PLIM_UNLIMITED_BYTES);
    result->free_before_bytes = plim_device_free_bytes(w->device);
    PLIM_TRY(plim_replayer_create(w->device, &allocator, &w->replayer, err));
    connect(w);
    PLIM_TRY(replay(w, result, err));
    if (result->replay.verdict == PLIM_OOM) result->refused = plim_device_has_refused(w->device);
    PLIM_TRY(clear(w, result));
out:
    plim_replayer_destroy(&w->replayer);
    return verdict_of_failure(w, w->device->lost ? PLIM_LOST : st, &result->replay, err);
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
    if (st) return fail_with_message(w, st, &err);
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
            st = PLIM_OK; /* interrupted by a signal */
        else if (st)
            break;
        else if (w->in.kind == PLIM_MESSAGE_OPEN && !w->device)
            st = serve_open(w);
        else if (w->in.kind == PLIM_MESSAGE_REDUCE && !w->device)
            st = serve_reduce(w);
        else if (w->in.kind == PLIM_MESSAGE_RUN)
            st = serve_run(w);
        else if (w->in.kind == PLIM_MESSAGE_BYE)
            return PLIM_OK;
        else
            st = PLIM_INVALID;
    }
    return st;
}

static int serve_parent(int fd)
{
    struct worker *w = calloc(1, sizeof(*w)); /* a spec is too large for the stack */
    if (!w) return 1;
    w->wire.fd = fd;
    enum plim_status st = serve(w);
    plim_device_close(&w->device);
    plim_leaks_finish(&w->leaks);
    plim_wire_finish(&w->wire);
    free(w);
    return st == PLIM_OK ? 0 : 1;
}

int plim_worker_command(int argc, char **argv)
{
    char *end = NULL;
    long parent = argc == 1 ? strtol(argv[0], &end, 10) : 0;
    if (parent <= 0 || *end || !plim_process_become_worker((pid_t)parent)) return 1;
    return serve_parent(PLIM_WORKER_FD);
}
