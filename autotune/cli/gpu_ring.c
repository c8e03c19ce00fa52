#include "gpu_ring.h"
#include "autotune/base/clock.h"
#include "autotune/run/spec_question.h"
#include "autotune/run/worker/all_reduce.h"
#include "autotune/store/measured.h"
#include "devices/cuda/library.h"
#include "devices/nvml/visible.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const double MOST_SECONDS = 60, SHARE = 0.25; /* limit in seconds, and as a share of the remaining time */
static const double REAP_SECONDS = 20, MEMORY_BACK_SECONDS = 10, NAP_SECONDS = 0.05;

/* A GPU of which other processes hold more than WORK_BYTES is in use. */
static const int64_t WORK_BYTES = INT64_C(1) << 30, SMALL_BYTES = INT64_C(64) << 20;

extern char **environ;

/* GPUs of a kind, the tuned one first. */
struct members {
    struct plim_target tuned;
    int count, alike, busy; /* number of GPUs that take part; of this kind; in use by others */
    char uuids[PLIM_VISIBLE_MAX * PLIM_NVML_TEXT]; /* separated by commas */
};

/* --- the GPUs that take part ------------------------------------------------------------------ */

/* Finds the GPU of a UUID, with all of its memory. Returns false if it cannot be used, or is a MIG instance. */
static bool find_gpu(const char *uuid, struct plim_target *target, struct plim_store_gpu *kind)
{
    char uri[PLIM_NVML_TEXT + 8];
    snprintf(uri, sizeof(uri), "cuda:%s", uuid);
    return plim_target_resolve(uri, target, NULL) == PLIM_OK && !target->mig &&
           plim_store_gpu_of_target(target, false, kind);
}

static void join(struct members *m, const struct plim_target *gpu, int64_t most)
{
    size_t used = strlen(m->uuids);
    m->alike++;
    if (gpu->held_bytes > WORK_BYTES) {
        m->busy++;
        return;
    }
    if (m->count >= most) return;
    snprintf(m->uuids + used, sizeof(m->uuids) - used, "%s%s", used ? "," : "", gpu->uuid);
    m->count++;
}

/* Collects the GPUs of the kind of `uri`. Returns false if there are no others. */
static bool gather(const char *uri, int64_t most, struct members *m)
{
    const struct plim_target_place place = plim_target_local();
    struct plim_target *shown = calloc(PLIM_VISIBLE_MAX, sizeof(*shown)), other;
    struct plim_store_gpu kind, of_other;
    size_t count = 0;
    *m = (struct members){0};
    bool found = shown && plim_target_resolve(uri, &other, NULL) == PLIM_OK && !other.simulate &&
                 other.uuid[0] && find_gpu(other.uuid, &m->tuned, &kind) &&
                 plim_target_list(&place, shown, PLIM_VISIBLE_MAX, &count, NULL) == PLIM_OK;
    if (found) join(m, &m->tuned, most);
    for (size_t i = 0; i < count && found; i++)
        if (strcmp(shown[i].uuid, m->tuned.uuid) != 0 && find_gpu(shown[i].uuid, &other, &of_other) &&
            plim_store_gpu_equal(&kind, &of_other))
            join(m, &other, most);
    free(shown);
    return found && m->alike > 1;
}

/* --- kept measurements ------------------------------------------------------------------------ */

/* Adds the environment variables that change the behaviour of NCCL. */
static void add_variables(struct plim_facts *facts)
{
    for (char **at = environ; *at; at++)
        if (!strncmp(*at, "NCCL_", 5) && strncmp(*at, "NCCL_DEBUG", 10) != 0)
            plim_facts_add(facts, "variable", *at);
}

/* Finds the path of the kept measurement. Returns false if the user has no store. */
static bool find_place(const struct plim_kept *kept, const struct members *m, char path[PATH_MAX])
{
    char library[128];
    struct plim_facts facts = {0};
    plim_facts_add(&facts, "gpus", m->uuids);
    plim_facts_add(&facts, "driver", m->tuned.driver_version);
    plim_facts_add(&facts, "nccl",
                   plim_cuda_library_file(&plim_cuda_library_nccl, library, sizeof(library)));
    add_variables(&facts);
    bool found = !kept->off && plim_measured_path(&kept->store, "all-reduce", &facts, path);
    plim_facts_finish(&facts);
    return found;
}

static bool read_kept(const char *path, int gpus, struct plim_all_reduce *out)
{
    char text[PLIM_MEASURED_TEXT], rest;
    struct plim_all_reduce kept = {0};
    bool is_good = plim_measured_read(path, text) &&
                   sscanf(text, "%d %lf %lf %31s%c", &kept.gpus, &kept.bytes_per_second,
                          &kept.latency_seconds, kept.nccl, &rest) == 4 &&
                   kept.gpus == gpus && kept.bytes_per_second > 0 && kept.latency_seconds >= 0;
    if (is_good) *out = kept;
    return is_good;
}

static void store_measured(const char *path, const struct plim_all_reduce *measured, const struct plim_log *log)
{
    char text[PLIM_MEASURED_TEXT];
    struct plim_error err = PLIM_ERROR_INIT;
    snprintf(text, sizeof(text), "%d %.9g %.9g %s", measured->gpus, measured->bytes_per_second,
             measured->latency_seconds, measured->nccl);
    if (plim_measured_write(path, text, &err))
        plim_log(log, PLIM_LOG_WARNING, "the speed of the all-reduce cannot be kept: %s", err.text);
}

/* --- measuring -------------------------------------------------------------------------------- */

/* Waits until the memory of the measuring process is free, as it would count as memory of other processes. */
static void await_memory(const struct plim_target *tuned, const struct plim_stop *stop)
{
    int code;
    struct plim_nvml *nvml;
    struct plim_nvml_memory memory;
    double end = plim_clock_seconds() + MEMORY_BACK_SECONDS;
    if (plim_nvml_open(NULL, &nvml, &code, NULL) != PLIM_OK) return;
    while (plim_nvml_memory(nvml, tuned->uuid, &memory, NULL) == PLIM_OK &&
           memory.held_bytes > tuned->held_bytes + SMALL_BYTES && plim_clock_seconds() < end &&
           plim_stop_check(stop, NULL) == PLIM_OK)
        nanosleep(&(struct timespec){0, (long)(NAP_SECONDS * 1e9)}, NULL);
    plim_nvml_close(&nvml);
}

static void measure(const struct members *m, const struct plim_stop *stop, const struct plim_log *log,
                    struct plim_ring *out)
{
    struct plim_all_reduce_request request = {.visible_gpus = m->uuids,
                                              .gpus = m->count,
                                              .stop = stop,
                                              .log = log,
                                              .seconds = MOST_SECONDS,
                                              .reap_seconds = REAP_SECONDS};
    struct plim_error err = PLIM_ERROR_INIT;
    if (stop->deadline_seconds > 0) {
        double share = SHARE * (stop->deadline_seconds - plim_clock_seconds());
        if (share < request.seconds) request.seconds = share;
    }
    plim_log(log, PLIM_LOG_INFO, "measuring the all-reduce among %d GPUs", m->count);
    enum plim_status st = plim_worker_all_reduce(&request, &out->measured, &err);
    await_memory(&m->tuned, stop);
    if (!st) return;
    snprintf(out->why_not, sizeof(out->why_not), "%.199s", err.text[0] ? err.text : plim_status_text(st));
    plim_log(log, PLIM_LOG_WARNING, "the all-reduce is modelled, not measured: %s", out->why_not);
}

void plim_gpu_ring_measure(const struct plim_request *request, const struct plim_spec *spec,
                           const char *uri, const struct plim_stop *stop, const struct plim_log *log,
                           struct plim_ring *out)
{
    char path[PATH_MAX];
    struct plim_kept kept;
    int64_t most = spec->world < spec->gpus_per_node ? spec->world : spec->gpus_per_node;
    *out = (struct plim_ring){0};
    if (!plim_run_communicates(spec) || plim_uri_scheme(uri) != PLIM_SCHEME_CUDA || most < 2) return;
    struct members *m = calloc(1, sizeof(*m)); /* too large for the stack */
    if (!m || !gather(uri, most, m)) goto out;
    if (m->tuned.held_bytes > WORK_BYTES || m->count < 2) {
        snprintf(out->why_not, sizeof(out->why_not), "others work on %d of the %d GPUs of this kind",
                 m->busy, m->alike);
        goto out;
    }
    plim_kept_init(&kept, request, "", log);
    bool keeps = find_place(&kept, m, path);
    if (!keeps || kept.fresh || !read_kept(path, m->count, &out->measured)) {
        measure(m, stop, log, out);
        if (keeps && out->measured.gpus) store_measured(path, &out->measured, log);
    }
out:
    free(m);
}
