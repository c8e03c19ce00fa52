#include "on_gpu.h"
#include "autotune/base/clock.h"
#include "devices/open.h"
#include "devices/sim/sim.h"
#include "kernel_case_device.h"
#include "config.h"
#if PLIM_WITH_CUDA
#include "devices/cuda/cuda.h"
#endif

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>

/* --- shared ----------------------------------------------------------------------------------- */

void on_gpu_say(json_t *line)
{
    char *text = json_dumps(line, JSON_COMPACT);
    puts(text ? text : "{}");
    fflush(stdout);
    free(text);
    json_decref(line);
}

bool on_gpu_is_late(const struct on_gpu *gpu)
{
    return gpu->seconds > 0 && plim_clock_seconds() - gpu->started > gpu->seconds;
}

void on_gpu_give_up(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fputs("on_gpu: ", stderr);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    exit(2);
}

void on_gpu_open(struct on_gpu *gpu)
{
    struct plim_error err = PLIM_ERROR_INIT;
    if (plim_device_open(gpu->uri, &gpu->device, &err) != PLIM_OK)
        on_gpu_give_up("%s", err.text);
    gpu->scheme = plim_uri_scheme(gpu->uri);
}

struct plim_gpu on_gpu_model(const struct on_gpu *gpu)
{
    const struct plim_device_info *info = &gpu->device->info;
    const struct plim_gpu *like = NULL;
    struct plim_gpu model;
    if (plim_catalogue_find(info->name, &like, NULL) != PLIM_OK) like = NULL;
    for (size_t i = 0; !like && i < plim_catalogue_count(); i++)
        if (plim_catalogue_at(i)->compute_capability == info->compute_capability &&
            plim_catalogue_at(i)->multiprocessors == info->multiprocessors)
            like = plim_catalogue_at(i);
    model = like ? *like : *plim_catalogue_at(0);
    model.compute_capability = info->compute_capability;
    model.multiprocessors = info->multiprocessors;
    model.total_bytes = info->total_bytes;
    return model;
}

struct plim_device *on_gpu_twin(const struct on_gpu *gpu)
{
    struct plim_gpu model = on_gpu_model(gpu);
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_device *twin;
    if (plim_sim_open_gpu(&model, 0, &twin, &err) != PLIM_OK) on_gpu_give_up("%s", err.text);
    return twin;
}

/* --- small verbs ------------------------------------------------------------------------------ */

int on_gpu_info(struct on_gpu *gpu)
{
    double opened = plim_clock_seconds();
    on_gpu_open(gpu);
    const struct plim_device_info *info = &gpu->device->info;
    json_t *line =
        json_pack("{s:s s:s s:b s:i s:i s:i s:I s:I s:f}", "name", info->name, "uri", info->uri,
                  "simulated", info->simulated, "compute_capability", info->compute_capability,
                  "multiprocessors", info->multiprocessors, "threads_per_multiprocessor",
                  info->threads_per_multiprocessor, "total_bytes", (json_int_t)info->total_bytes,
                  "free_bytes", (json_int_t)plim_device_free_bytes(gpu->device), "open_seconds",
                  plim_clock_seconds() - opened);
#if PLIM_WITH_CUDA
    char versions[2048];
    json_object_set_new(line, "versions",
                        json_string(plim_cuda_versions_text(versions, sizeof versions)));
#endif
    on_gpu_say(line);
    return 0;
}

int on_gpu_kernels(struct on_gpu *gpu)
{
    int failed = 0, run = 0;
    on_gpu_open(gpu);
    kernel_case_use(gpu->device, gpu->scheme == PLIM_SCHEME_CUDA);
    for (const struct plain_test *t = plain_tests(); t; t = t->next) {
        char first[512], name[160], engines[PLIM_SDPA_ENGINES_TEXT];
        snprintf(name, sizeof name, "%s/%s", t->suite, t->name);
        if (strncmp(name, gpu->only, strlen(gpu->only)) != 0 || on_gpu_is_late(gpu)) continue;
        double begin = plim_clock_seconds();
        gpu->device->sdpa_engines = 0;
        int failures = plain_run(t, first, sizeof first);
        json_t *line = json_pack("{s:s s:b s:f}", "test", name, "ok", failures == 0, "seconds",
                                 plim_clock_seconds() - begin);
        if (failures) json_object_set_new(line, "why", json_string(first));
        if (gpu->device->sdpa_engines)
            json_object_set_new(
                line, "attention_engine",
                json_string(plim_sdpa_engines_text(gpu->device->sdpa_engines, engines)));
        on_gpu_say(line);
        run++;
        failed += failures > 0;
        if (gpu->device->lost) break;
    }
    kernel_case_leave();
    on_gpu_say(json_pack("{s:i s:i s:I s:b}", "tests", run, "failed", failed, "operations",
                          (json_int_t)kernel_case_count(), "lost", gpu->device->lost));
    return failed + gpu->device->lost;
}

/* --- the command line ------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*run)(struct on_gpu *gpu);
} verbs[] = {{"info", on_gpu_info},     {"start", on_gpu_start},   {"kernels", on_gpu_kernels},
             {"golden", on_gpu_golden}, {"losses", on_gpu_losses}, {"time", on_gpu_time},
             {"ops", on_gpu_ops},       {"fill", on_gpu_fill},     {"oom", on_gpu_oom},
             {"break", on_gpu_break}};

static void read_option(struct on_gpu *gpu, const char *name, const char *value)
{
    if (!strcmp(name, "--cases"))
        gpu->cases = value;
    else if (!strcmp(name, "--only"))
        gpu->only = value;
    else if (!strcmp(name, "--seconds"))
        gpu->seconds = strtod(value, NULL);
    else if (!strcmp(name, "--timing"))
        gpu->timing_seconds = strtod(value, NULL);
    else if (!strcmp(name, "--times"))
        gpu->times = strtol(value, NULL, 10);
    else
        on_gpu_give_up("%s: no such option", name);
}

int main(int argc, char **argv)
{
    struct on_gpu gpu = {.only = "", .times = 1, .timing_seconds = 4, .started = plim_clock_seconds()};
    if (argc < 3 || argc % 2 == 0)
        on_gpu_give_up("expected on_gpu VERB URI [--cases FILE] [--only PREFIX] [--seconds S] "
                        "[--timing S] [--times N]");
    gpu.uri = argv[2];
    for (int i = 3; i + 1 < argc; i += 2) read_option(&gpu, argv[i], argv[i + 1]);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(argv[1], verbs[i].name) != 0) continue;
        int failed = verbs[i].run(&gpu);
        plim_device_close(&gpu.device);
        return failed ? 1 : 0;
    }
    on_gpu_give_up("%s: no such verb", argv[1]);
}
