#define _DEFAULT_SOURCE /* getloadavg */
#include "host_speed.h"
#include "asked_trials.h"
#include "autotune/decide/black_box.h"
#include "autotune/exec/launch.h"
#include "autotune/record/host_speed.h"
#include "autotune/store/measured.h"
#include "common.h"
#include "devices/catalogue/catalogue.h"
#include "kept.h"
#include "workloads/spec/key.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- kept measurements ------------------------------------------------------------------------ */

/* Reads the name of the CPU, such as "AMD EPYC 9654 96-Core Processor"; "" if the kernel does not report it. */
static void read_processor(char *out, size_t size)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "re");
    out[0] = '\0';
    while (file && !out[0] && fgets(line, sizeof(line), file))
        if (!strncmp(line, "model name", 10) && strchr(line, ':'))
            snprintf(out, size, "%s", strchr(line, ':') + 1);
    if (file) fclose(file);
}

/* Finds the path of the kept speed. Returns false if the user has no store. */
static bool find_place(const struct plim_request *request, const struct plim_log *log,
                       char path[PATH_MAX])
{
    char processor[256];
    char *const command[] = {(char *)request->framework_python, NULL};
    const struct plim_program program = {.command = command};
    const struct plim_allowance allowance = {0};
    const struct plim_store_asked asked = {.version = "", .objective = "", .allowance = &allowance};
    struct plim_store_question question = {0};
    struct plim_facts *facts = &question.key;
    struct plim_kept kept;
    plim_kept_init(&kept, request, "", log);
    if (kept.off) return false;
    read_processor(processor, sizeof(processor));
    plim_store_question_program(&program, &asked, NULL, 0, &question);
    plim_facts_add(facts, "processor", processor);
    for (size_t i = 0; i < question.fits.list.count; i++)
        plim_facts_add(facts, question.fits.list.items[i].name, question.fits.list.items[i].value);
    bool found = plim_measured_path(&kept.store, "host-speed", facts, path);
    plim_store_question_finish(&question);
    return found;
}

/* Reads the kept speed. Returns false if there is none, or if it is invalid. */
static bool read_kept(const char *path, char speed[PLIM_MEASURED_TEXT])
{
    char *end;
    return plim_measured_read(path, speed) && strtod(speed, &end) > 0 && !*end;
}

/* --- measuring -------------------------------------------------------------------------------- */

static void warn_of_load(const struct plim_log *log)
{
    double load;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (getloadavg(&load, 1) == 1 && load > (double)processors)
        plim_log(log, PLIM_LOG_WARNING,
                 "%.0f programs share %ld processors here: launching is slower now than it is alone "
                 "(--fresh measures again)",
                 load, processors);
}

static enum plim_status measure(const struct plim_request *request, const struct plim_log *log,
                                const struct plim_stop *stop, double *speed, struct plim_error *err)
{
    char failed_log[40] = "";
    struct plim_machine_gpu gpu;
    const struct plim_gpu *known;
    struct plim_asked_trials trials;
    const struct plim_limit limit = {.usable_bytes = INT64_C(80) << 30};
    enum plim_status st = PLIM_OK;
    PLIM_TRY(plim_asked_trials_read(&request->program, &trials, err));
    PLIM_TRY(plim_catalogue_find("A100-SXM4-80GB", &known, err));
    PLIM_TRY(plim_asked_trials_create_workspace(&trials, false, err));
    plim_launch_prepare();
    plim_execution_gpus(known, &limit, 1, &gpu);
    trials.options.gpus = &gpu;
    trials.options.gpu_count = 1;
    trials.options.stop = stop;
    trials.options.repetitions = trials.options.steps = 0; /* runs to its end */
    plim_log(log, PLIM_LOG_INFO, "ten steps of a small model tell how fast %s launches operations here",
             request->framework_python);
    warn_of_load(log);
    st = plim_host_speed_measure(request->framework_python, &trials.options, speed, failed_log, err);
    if (failed_log[0]) plim_black_box_show_log(log, trials.workspace.logs, failed_log);
out:
    plim_asked_trials_finish(&trials);
    return st;
}

enum plim_status plim_host_speed_set(const struct plim_request *request, const struct plim_log *log,
                                     const struct plim_stop *stop, struct plim_spec *spec,
                                     struct plim_error *err)
{
    char path[PATH_MAX], text[PLIM_MEASURED_TEXT];
    struct plim_error failure = PLIM_ERROR_INIT;
    double speed = 0;
    if (!request->framework_python) return PLIM_OK;
    if (plim_spec_key_given(spec, "train.host_speed"))
        return plim_fail(err, PLIM_INVALID,
                         "--framework-python measures train.host_speed, which is given as well");
    bool keeps = find_place(request, log, path);
    if (!keeps || request->store.fresh || !read_kept(path, text)) {
        enum plim_status st = measure(request, log, stop, &speed, err);
        if (st) return st;
        snprintf(text, sizeof(text), "%.2g", speed);
        if (keeps && plim_measured_write(path, text, &failure))
            plim_log(log, PLIM_LOG_WARNING, "the host's speed cannot be kept: %s", failure.text);
    }
    const struct plim_request_setting setting = {
        .option = "--framework-python", .key = "train.host_speed", .value = text};
    return plim_common_setting(&setting, spec, err);
}
