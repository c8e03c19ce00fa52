#include "host_speed.h"
#include "autotune/base/embed.h"
#include "autotune/trace/trace.h"
#include "devices/open.h"
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

extern const struct plim_embedded_file plim_host_speed_script[];

/* Computes the time in which the clock's host launches the costs [from, to). */
static enum plim_status launch(struct plim_device *device, const struct plim_trace *trace,
                               size_t from, size_t to, double *seconds)
{
    struct plim_device_load load;
    enum plim_status st = plim_device_reset(device);
    for (size_t i = from; i < to && !st; i++) st = plim_cost_launch(device, &trace->costs.items[i]);
    plim_device_load(device, &load);
    *seconds = st ? 0 : load.launching_seconds;
    return st == PLIM_INVALID ? PLIM_OK : st; /* implausible sizes: the step does not count */
}

enum plim_status plim_host_speed_of(const struct plim_trace *trace, double *speed,
                                    struct plim_error *err)
{
    struct plim_device *device = NULL;
    *speed = 0;
    enum plim_status st = plim_device_open("sim:80GiB", &device, err); /* any GPU: all have the same host */
    for (size_t i = PLIM_TRACE_STARTING_STEPS; i < trace->timed.count && !st; i++) {
        const struct plim_traced_step *step = &trace->timed.items[i];
        double seconds, took = step->host_seconds - step->work_seconds;
        st = launch(device, trace, step[-1].costs, step->costs, &seconds);
        if (took > 0 && seconds > *speed * took) *speed = seconds / took;
    }
    if (!(*speed >= 1e-6 && *speed <= 1e6)) *speed = 0;
    if (device) plim_device_close(&device);
    return st;
}

static enum plim_status run(const char *python, const struct plim_execution_options *given,
                            const char *folder, char *failed_log, struct plim_error *err)
{
    char variable[512];
    char *const command[] = {(char *)python, "-c", (char *)plim_host_speed_script[0].text, NULL};
    const struct plim_axes axes = {.seq = -1};
    const struct plim_setting setting = {.micro_batch = 1, .accumulation = 1};
    struct plim_program program = {.command = command, .axes = &axes, .world = 1,
                                   .variable_count = 1, .variables = {variable}};
    struct plim_execution_options options = *given;
    struct plim_execution *execution = calloc(1, sizeof(*execution));
    if (!execution) return plim_no_memory(err);
    snprintf(variable, sizeof(variable), "PLIMSOLL_RECORDING=%s", folder);
    options.program = &program;
    enum plim_status st = plim_execution_run(&options, &setting, 1, execution, err);
    if (!st && execution->verdict != PLIM_OK) {
        memcpy(failed_log, execution->log, sizeof(execution->log));
        st = plim_fail(err, execution->verdict == PLIM_CANCELLED ? PLIM_CANCELLED : PLIM_INVALID,
                       "%s: %s", python, execution->why);
    }
    free(execution);
    return st;
}

enum plim_status plim_host_speed_measure(const char *python,
                                         const struct plim_execution_options *options, double *speed,
                                         char *failed_log, struct plim_error *err)
{
    struct plim_trace trace = {0};
    char folder[256];
    snprintf(folder, sizeof(folder), "%s/host-speed", options->folder);
    if (mkdir(folder, 0700)) return plim_fail(err, PLIM_IO, "%s: %s", folder, strerror(errno));
    enum plim_status st = run(python, options, folder, failed_log, err);
    if (!st) st = plim_trace_read(folder, &trace, err);
    if (!st) st = plim_host_speed_of(&trace, speed, err);
    if (!st && *speed <= 0)
        st = plim_fail(err, PLIM_INVALID, "%s: no steps were seen of its PyTorch", python);
    plim_execution_remove_folder(folder);
    plim_trace_finish(&trace);
    return st;
}
