#include "prove.h"
#include "autotune/answer/executions.h"
#include "autotune/exec/program_files.h"
#include "exec.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 128 };

/* The request for exec, the strings to which it points, and the trial of its choice. */
struct proof {
    struct plim_request request;
    struct plim_execution trial;
    char **command;
    char batch[64], seq[32];
    char values[PLIM_RESULT_VALUES][TEXT_BYTES];
};

/* True for keys of the spec that exec reads too. */
static bool is_of_batch(const char *key)
{
    return !strcmp(key, "train.accumulation") || !strcmp(key, "train.effective_batch") ||
           !strcmp(key, "train.effective_batch_tolerance");
}

static void take_settings(struct plim_request *request)
{
    size_t kept = 0;
    for (size_t i = 0; i < request->setting_count; i++)
        if (is_of_batch(request->settings[i].key)) request->settings[kept++] = request->settings[i];
    request->setting_count = kept;
}

/* Sets the axes of the request to the values of the choice. */
static void set_axes(struct proof *p, const struct plim_recording *recording,
                     const struct plim_result_setting *setting)
{
    struct plim_request *request = &p->request;
    request->program.axes.count = 0;
    for (size_t i = 0; i < recording->axis_count; i++) {
        const char *name = recording->axes[i].name, *value = plim_result_value(setting, name);
        if (!strcmp(name, "precision") && request->setting_count < PLIM_REQUEST_SETTINGS) {
            request->settings[request->setting_count++] = (struct plim_request_setting){
                .option = "--precision", .key = "train.precision", .value = value};
            continue;
        }
        snprintf(p->values[i], TEXT_BYTES, "%s=%s", name, value);
        request->program.axes.items[request->program.axes.count++] = p->values[i];
    }
}

/* Returns the next micro-batch, which does not fit according to the plan; 0 if there is none. */
static int64_t next_of(const struct plim_result *result)
{
    const struct plim_result_next *next = &result->next;
    bool is_edge = next->micro_batch > result->choice.setting.micro_batch && next->verdict &&
                   !strcmp(next->verdict, "oom");
    return is_edge ? next->micro_batch : 0;
}

static enum plim_status fill(struct proof *p, const struct plim_request *request,
                             const struct plim_recording *recording,
                             const struct plim_result *result, struct plim_error *err)
{
    const struct plim_result_setting *setting = &result->choice.setting;
    int64_t next = next_of(result);
    p->request = *request; /* its strings do not move */
    p->command = calloc(recording->command.count + 1, sizeof(*p->command));
    if (!p->command) return plim_no_memory(err);
    memcpy(p->command, recording->command.items, recording->command.count * sizeof(*p->command));
    int used = snprintf(p->batch, sizeof(p->batch), "%" PRId64, setting->micro_batch);
    if (next) snprintf(p->batch + used, sizeof(p->batch) - (size_t)used, ",%" PRId64, next);
    snprintf(p->seq, sizeof(p->seq), "%" PRId64, setting->seq);
    p->request.program.command = p->command;
    p->request.program.batch = p->batch;
    p->request.program.seq = recording->seqs.count ? p->seq : NULL;
    p->request.store.off = true; /* earlier trials prove nothing about the present program */
    p->request.waterfall = NULL;
    p->request.objective = PLIM_OBJECTIVE_LARGEST_BATCH;
    take_settings(&p->request);
    set_axes(p, recording, setting);
    return PLIM_OK;
}

static void set_verdict(const struct proof *p, const struct plim_result *tried, struct plim_result *result)
{
    int64_t next = next_of(result);
    int64_t batch = result->choice.setting.micro_batch, bytes = result->choice.peak.reserved_bytes;
    int64_t fits = tried->choice.present ? tried->choice.setting.micro_batch : 0;
    if (fits < batch)
        plim_result_reason(result,
                           "The program was run: micro-batch %" PRId64 " does not fit, though its "
                           "recording says that it does.",
                           batch);
    else if (fits > batch)
        plim_result_reason(result,
                           "The program was run: micro-batch %" PRId64 " fits too, though its "
                           "recording says that it does not.",
                           fits);
    else {
        result->choice.verified = true;
        if (next)
            plim_result_reason(result,
                               "The program was run: micro-batch %" PRId64 " fits, %" PRId64
                               " does not.",
                               batch, next);
        else plim_result_reason(result, "The program was run: micro-batch %" PRId64 " fits.", batch);
    }
    int64_t off = fits == batch ? tried->choice.peak.reserved_bytes - bytes : 0;
    if (off)
        plim_result_reason(result, "Its trial reserved %" PRId64 " bytes %s than the recording says.",
                           off > 0 ? off : -off, off > 0 ? "more" : "less");
    if (fits == batch) plim_reasons_execution(&p->trial, result);
}

/* Adds a reason for each script that has changed since it was recorded. */
static void add_changes(const struct plim_recording *recording, struct plim_result *result)
{
    char path[PATH_MAX];
    for (size_t i = 0; i < recording->made_with.count; i++)
        if (plim_program_changed(recording->made_with.items[i], path))
            plim_result_reason(result, "%.200s is not the file that was recorded.", path);
}

enum plim_status plim_prove_recording(const struct plim_request *request, const struct plim_io *io,
                                      const struct plim_log *log,
                                      const struct plim_recording *recording, const char *uri,
                                      struct plim_result *result, struct plim_error *err)
{
    struct plim_report report = {0};
    if (!result->choice.present) return PLIM_OK;
    struct proof *p = calloc(1, sizeof(*p)); /* too large for the stack */
    enum plim_status st = p ? PLIM_OK : plim_no_memory(err);
    if (!st) st = fill(p, request, recording, result, err);
    if (!st) st = plim_exec_report(&p->request, io, log, uri, &report, &p->trial, err);
    if (!st && report.results.count) {
        set_verdict(p, &report.results.items[0], result);
        add_changes(recording, result);
    }
    plim_report_finish(&report);
    if (p) free(p->command);
    free(p);
    return st;
}
