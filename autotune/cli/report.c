/* report: shows earlier results as a page with charts, or side by side. */
#include "autotune/answer/replays.h"
#include "earlier.h"
#include "inspect.h"
#include "reports/report_reader.h"
#include <strings.h>

struct documents {
    PLIM_ARRAY(struct plim_yaml) read; /* the first owns the version of the report */
    struct plim_report report;
};

/* Returns file number `index` of the request. */
static const char *path_at(const struct plim_request *request, size_t index)
{
    return index ? request->arguments.items[index - 1] : request->subject;
}

/* Adds the timeline to the only result of a file. The spec is loaded again, and must not have changed. */
static enum plim_status replay(const char *path, const struct plim_io *io,
                               struct plim_result *result, struct plim_error *err)
{
    struct plim_request request = {.subject = path, .allowance = PLIM_ALLOWANCE_DEFAULT};
    struct plim_log quiet = {0};
    struct plim_stop stop = {.signalled = io->signalled};
    struct plim_earlier earlier = {0};
    struct plim_inspected *x = calloc(1, sizeof(*x));
    enum plim_status st = x ? PLIM_OK : plim_no_memory(err);
    if (st) goto out;
    PLIM_TRY(plim_earlier_apply(&request, io, &earlier, err));
    if (earlier.is_other) {
        st = plim_fail(err, PLIM_INVALID, "the spec has changed since");
        goto out;
    }
    PLIM_TRY(plim_inspect_open(&request, &quiet, &stop, x, err));
    bool fits = result->kind == PLIM_RESULT_DECISION || result->fits;
    PLIM_TRY(plim_fleet_timeline(&x->device, &x->setting, fits, result, err));
out:
    plim_inspect_close(x);
    free(x);
    plim_earlier_finish(&earlier);
    return st;
}

static bool can_replay(const struct plim_result *result)
{
    return !result->timeline.count && !result->is_program && result->device.simulated &&
           result->choice.present;
}

static enum plim_status read_file(const struct plim_request *request, const struct plim_io *io,
                                  const char *path, struct documents *all, struct plim_error *err)
{
    struct plim_log log = plim_common_log(request, io);
    struct plim_error why = PLIM_ERROR_INIT;
    struct plim_yaml yaml = {0};
    struct plim_report report = {0};
    enum plim_status st = plim_yaml_read_file(path, &yaml, err);
    if (st) return st;
    if (PLIM_ARRAY_PUSH(&all->read, yaml) != PLIM_OK) {
        plim_yaml_finish(&yaml);
        return plim_no_memory(err);
    }
    PLIM_TRY(plim_report_read(&all->read.items[all->read.count - 1], &report, err));
    bool draws = plim_common_draws(request) && report.results.count == 1;
    if (draws && can_replay(&report.results.items[0]))
        st = replay(path, io, &report.results.items[0], &why);
    if (st == PLIM_NOMEM) {
        *err = why;
        goto out;
    }
    if (st) plim_log(&log, PLIM_LOG_WARNING, "%s: its step is not drawn: %s", path, why.text);
    st = plim_report_append(&all->report, &report, err);
out:
    plim_report_finish(&report);
    return st;
}

/* Warns of prices for GPUs that no result has. */
static void check_prices(const struct plim_request *request, const struct plim_io *io,
                         const struct plim_report *report)
{
    struct plim_log log = plim_common_log(request, io);
    for (size_t i = 0; i < request->price_count; i++) {
        const char *device = request->prices[i].device;
        size_t k = 0;
        while (k < report->results.count && strcasecmp(device, report->results.items[k].device.name)) k++;
        if (k == report->results.count)
            plim_log(&log, PLIM_LOG_WARNING, "--price %s: no result is for a GPU of that name; the first is for %s",
                     device, report->results.items[0].device.name);
    }
}

static enum plim_status run_report(const struct plim_request *request, const struct plim_io *io,
                                   struct plim_error *err)
{
    struct documents all = {0};
    size_t count = request->arguments.count + 1;
    enum plim_status st = PLIM_OK;
    if (!request->subject)
        return plim_fail(err, PLIM_INVALID, "report needs a RESULT: a file that --out wrote as "
                                            ".json or .yaml");
    PLIM_TRY(plim_common_check_files(request, err));
    for (size_t i = 0; i < count; i++)
        PLIM_TRY(read_file(request, io, path_at(request, i), &all, err));
    if (!all.report.results.count) {
        st = plim_fail(err, PLIM_INVALID, "%s contains no result", request->subject);
        goto out;
    }
    check_prices(request, io, &all.report);
    all.report.is_table |= all.report.results.count > 1;
    PLIM_TRY(plim_common_emit(request, io, &all.report, err));
out:
    plim_report_finish(&all.report);
    for (size_t i = 0; i < all.read.count; i++) plim_yaml_finish(&all.read.items[i]);
    PLIM_ARRAY_FINISH(&all.read);
    return st;
}

const struct plim_command plim_command_report = {
    .name = "report",
    .argument = "RESULT...",
    .id = PLIM_COMMAND_REPORT,
    .run = run_report,
    .summary = "results of earlier runs as a page with charts",
    .about = "Shows results that --out wrote (.json or .yaml), as a page that needs no network,\n"
             "as charts alone, or as any other report. Of several it makes a table. Example:\n\n"
             "  plimsoll plan gpt2-124m --device sim:RTX-4090,sim:L4 --out plan.json\n"
             "  plimsoll report plan.json --price RTX-4090=0.69 --price L4=0.71 -o page.html\n"};
