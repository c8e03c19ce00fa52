#include "autotune/base/clock.h"
#include "autotune/run/measure.h"
#include "on_gpu.h"
#include "config.h"
#if PLIM_WITH_CUDA
#include "devices/cuda/cuda.h"
#endif
#include "support/case_file.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- cases ------------------------------------------------------------------------------------ */

int on_gpu_each(struct on_gpu *gpu,
                 int (*run)(struct on_gpu *gpu, const json_t *c, json_t *line))
{
    static char text[CASE_LINE];
    FILE *file = gpu->cases ? fopen(gpu->cases, "r") : NULL;
    if (!file) on_gpu_give_up("--cases %s: %s", gpu->cases ? gpu->cases : "", strerror(errno));
    int failed = 0;
    while (!on_gpu_is_late(gpu) && fgets(text, sizeof text, file)) {
        json_t *c = json_loads(text, 0, NULL);
        const char *id = c ? case_text(c, "id", "") : "";
        if (c && !strncmp(id, gpu->only, strlen(gpu->only))) {
            json_t *line = json_pack("{s:s}", "id", id);
            double begin = plim_clock_seconds();
            failed += run(gpu, c, line);
            json_object_set_new(line, "seconds", json_real(plim_clock_seconds() - begin));
            on_gpu_say(line);
        }
        json_decref(c);
        if (gpu->device && gpu->device->lost) break;
    }
    fclose(file);
    return failed + (gpu->device && gpu->device->lost);
}

bool on_gpu_read_case(const struct on_gpu *gpu, const json_t *c, struct plim_spec *spec,
                       struct plim_train_setting *setting, struct plim_error *err)
{
    char path[1024];
    enum plim_status st;
    json_t *hf = json_object_get(c, "hf");
    const char *slash = strrchr(gpu->cases, '/');
    int folder = slash ? (int)(slash - gpu->cases) + 1 : 0;
    if (hf) {
        char *config = json_dumps(hf, 0);
        st = plim_spec_load_text("config.json", config, spec, err);
        free(config);
    } else if (json_object_get(c, "spec")) {
        st = plim_spec_load(case_text(c, "spec", ""), spec, err);
    } else {
        const char *config = case_text(c, "config", "");
        snprintf(path, sizeof path, "%.*s%s", config[0] == '/' ? 0 : folder, gpu->cases, config);
        st = plim_spec_load(path, spec, err);
    }
    if (st) return false;
    if (json_object_get(c, "dropout") || hf) plim_spec_set_dropout(spec, 0);
    case_setting(c, setting);
    return true;
}

int on_gpu_refuse(json_t *line, const struct plim_error *err)
{
    json_object_set_new(line, "error", json_string(err->text));
    return 1;
}

enum plim_status on_gpu_replay(struct plim_device *device, const struct plim_spec *spec,
                               const struct plim_train_setting *setting, struct plim_replay *out,
                               struct plim_error *err)
{
    struct plim_replayer *replayer = NULL;
    enum plim_status st = plim_replayer_create(device, NULL, &replayer, err);
    if (!st) st = plim_replay_run(replayer, &spec->model, setting, out, err);
    plim_replayer_destroy(&replayer);
    return st ? st : plim_device_reset(device);
}

/* --- bytes ------------------------------------------------------------------------------------ */

static json_t *step_of(const struct plim_replay_step *s)
{
    json_t *step = json_pack(
        "{s:I s:I s:I s:I s:I s:I s:f}", "after_forward", (json_int_t)s->after_forward_bytes,
        "peak_allocated", (json_int_t)s->peak_allocated_bytes, "peak_reserved",
        (json_int_t)s->peak_reserved_bytes, "peak_requested", (json_int_t)s->peak_requested_bytes,
        "end_allocated", (json_int_t)s->end_allocated_bytes, "end_reserved",
        (json_int_t)s->end_reserved_bytes, "seconds", s->seconds);
    if (isfinite(s->loss)) json_object_set_new(step, "loss", json_real(s->loss));
    return step;
}

/* One run under `capacity` (0: all there is) as "verdict" and "steps". */
static enum plim_status replay(struct plim_device *device, const struct plim_spec *spec,
                               const struct plim_train_setting *setting, int64_t capacity,
                               struct plim_replay *out, json_t *into, struct plim_error *err)
{
    plim_device_limit(device, capacity ? capacity : PLIM_UNLIMITED_BYTES);
    enum plim_status st = on_gpu_replay(device, spec, setting, out, err);
    if (st) return st;
    json_t *steps = json_array();
    for (int i = 0; i < out->steps_done; i++) json_array_append_new(steps, step_of(&out->step[i]));
    json_object_set_new(into, "verdict", json_string(plim_status_text(out->verdict)));
    if (out->verdict) json_object_set_new(into, "why", json_string(out->why));
    json_object_set_new(into, "steps", steps);
    return PLIM_OK;
}

static bool same_bytes(const struct plim_replay *a, const struct plim_replay *b)
{
    bool same = a->verdict == b->verdict && a->steps_done == b->steps_done;
    for (int i = 0; same && i < a->steps_done; i++) {
        const struct plim_replay_step *x = &a->step[i], *y = &b->step[i];
        same = x->after_forward_bytes == y->after_forward_bytes &&
               x->peak_allocated_bytes == y->peak_allocated_bytes &&
               x->peak_reserved_bytes == y->peak_reserved_bytes &&
               x->peak_requested_bytes == y->peak_requested_bytes &&
               x->end_allocated_bytes == y->end_allocated_bytes &&
               x->end_reserved_bytes == y->end_reserved_bytes;
    }
    return same;
}

void on_gpu_add_overhead(const struct on_gpu *gpu, json_t *line)
{
#if PLIM_WITH_CUDA
    struct plim_cuda_memory_info numbers;
    if (gpu->scheme != PLIM_SCHEME_CUDA || plim_cuda_read_memory_info(gpu->device, &numbers)) return;
    json_object_set_new(line, "taken_bytes",
                        json_integer((json_int_t)plim_cuda_overhead_bytes(&numbers, 0)));
#else
    (void)gpu;
    (void)line;
#endif
}

static int run_golden(struct on_gpu *gpu, const json_t *c, json_t *line)
{
    static struct plim_spec spec;
    static struct plim_replay here, there;
    struct plim_train_setting setting;
    struct plim_error err = PLIM_ERROR_INIT;
    const json_t *fit = json_object_get(c, "fit");
    int64_t capacity = fit ? case_integer(fit, "capacity_bytes", 0) : 0;
    if (!on_gpu_read_case(gpu, c, &spec, &setting, &err)) return on_gpu_refuse(line, &err);
    struct plim_device *twin = on_gpu_twin(gpu);
    json_t *simulated = json_object();
    enum plim_status st = replay(gpu->device, &spec, &setting, capacity, &here, line, &err);
    if (!st) st = replay(twin, &spec, &setting, capacity, &there, simulated, &err);
    plim_device_close(&twin);
    if (st) {
        json_decref(simulated);
        return on_gpu_refuse(line, &err);
    }
    bool same = same_bytes(&here, &there);
    json_object_set_new(line, "as_simulated", json_boolean(same));
    if (same)
        json_decref(simulated);
    else
        json_object_set_new(line, "simulated", simulated);
    on_gpu_add_overhead(gpu, line);
    return !same;
}

int on_gpu_golden(struct on_gpu *gpu)
{
    on_gpu_open(gpu);
    return on_gpu_each(gpu, run_golden);
}

/* --- losses ----------------------------------------------------------------------------------- */

static int run_losses(struct on_gpu *gpu, const json_t *c, json_t *line)
{
    static struct plim_spec spec;
    static struct plim_replay out;
    struct plim_train_setting setting;
    struct plim_replay_step step;
    struct plim_replayer *replayer;
    struct plim_error err = PLIM_ERROR_INIT;
    const json_t *theirs = json_object_get(c, "losses");
    double largest = 0;
    if (!on_gpu_read_case(gpu, c, &spec, &setting, &err)) return on_gpu_refuse(line, &err);
    if (plim_replayer_create(gpu->device, NULL, &replayer, &err) != PLIM_OK)
        return on_gpu_refuse(line, &err);
    json_t *ours = json_array();
    plim_replay_begin(replayer, &spec.model, &setting);
    for (size_t i = 0; i < json_array_size(theirs) && plim_replay_next(replayer, &step); i++) {
        double off = fabs(step.loss - json_real_value(json_array_get(theirs, i)));
        if (!(off <= largest)) largest = off;
        json_array_append_new(ours, isfinite(step.loss) ? json_real(step.loss) : json_null());
    }
    size_t done = json_array_size(ours);
    enum plim_status st = plim_replay_end(replayer, &out, &err);
    plim_replayer_destroy(&replayer);
    if (!st) st = plim_device_reset(gpu->device);
    json_object_set_new(line, "losses", ours);
    json_object_set_new(line, "largest_difference",
                        isfinite(largest) ? json_real(largest) : json_null());
    if (st) return on_gpu_refuse(line, &err);
    json_object_set_new(line, "verdict", json_string(plim_status_text(out.verdict)));
    return out.verdict || done < json_array_size(theirs) || !isfinite(largest);
}

int on_gpu_losses(struct on_gpu *gpu)
{
    on_gpu_open(gpu);
    return on_gpu_each(gpu, run_losses);
}

/* --- times ------------------------------------------------------------------------------------ */

static enum plim_status repeat(void *user, double *seconds)
{
    struct plim_replay_step step;
    if (!plim_replay_next(user, &step)) return PLIM_CANCELLED;
    *seconds = step.seconds;
    return PLIM_OK;
}

/* By the clock: the last step of a replay on the twin. */
static double predict(const struct on_gpu *gpu, const struct plim_spec *spec,
                      const struct plim_train_setting *setting)
{
    static struct plim_replay replay_there;
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_device *twin = on_gpu_twin(gpu);
    json_t *ignored = json_object();
    enum plim_status st = replay(twin, spec, setting, 0, &replay_there, ignored, &err);
    json_decref(ignored);
    plim_device_close(&twin);
    return st || replay_there.verdict ? 0 : replay_there.step[PLIM_REPLAY_STEPS - 1].seconds;
}

static int run_time(struct on_gpu *gpu, const json_t *c, json_t *line)
{
    static struct plim_spec spec;
    static struct plim_replay out;
    struct plim_train_setting setting;
    struct plim_replay_step step;
    struct plim_replayer *replayer;
    struct plim_timing timing = {0};
    struct plim_error err = PLIM_ERROR_INIT;
    char engines[PLIM_SDPA_ENGINES_TEXT];
    if (!on_gpu_read_case(gpu, c, &spec, &setting, &err)) return on_gpu_refuse(line, &err);
    if (plim_replayer_create(gpu->device, NULL, &replayer, &err) != PLIM_OK)
        return on_gpu_refuse(line, &err);
    plim_replay_begin(replayer, &spec.model, &setting);
    bool runs = true;
    for (int i = 0; runs && i < PLIM_REPLAY_STEPS; i++) runs = plim_replay_next(replayer, &step);
    if (runs && gpu->scheme != PLIM_SCHEME_SIM &&
        plim_measure(repeat, replayer, &(struct plim_warmth){0},
                     &(struct plim_measured_steps){.count = 0}, gpu->timing_seconds,
                     &timing) != PLIM_OK)
        runs = false;
    enum plim_status st = plim_replay_end(replayer, &out, &err);
    plim_replayer_destroy(&replayer);
    if (!st) st = plim_device_reset(gpu->device);
    if (st) return on_gpu_refuse(line, &err);
    json_object_set_new(line, "verdict", json_string(plim_status_text(out.verdict)));
    json_object_set_new(line, "attention_engine",
                        json_string(plim_sdpa_engines_text(out.sdpa_engines, engines)));
    json_object_set_new(line, "step_seconds", json_real(timing.median_seconds));
    json_object_set_new(line, "half_width_seconds", json_real(timing.half_width_seconds));
    json_object_set_new(line, "repeats", json_integer(timing.repeats));
    json_object_set_new(line, "noisy", json_boolean(timing.noisy));
    json_object_set_new(line, "clock_seconds", json_real(predict(gpu, &spec, &setting)));
    return !runs;
}

int on_gpu_time(struct on_gpu *gpu)
{
    on_gpu_open(gpu);
    return on_gpu_each(gpu, run_time);
}
