/* explain: shows what memory is used for at one setting. */
#include "inspect.h"

static enum plim_status run_explain(const struct plim_request *request, const struct plim_io *io,
                                    struct plim_error *err)
{
    struct plim_inspected *x = calloc(1, sizeof(*x));
    struct plim_log log = plim_common_log(request, io);
    struct plim_stop stop = {.signalled = io->signalled};
    struct plim_report report = {0};
    struct plim_result result = {0};
    enum plim_status st = x ? PLIM_OK : plim_no_memory(err);
    if (st) goto out;
    PLIM_TRY(plim_common_check_files(request, err));
    PLIM_TRY(plim_inspect_open(request, &log, &stop, x, err));
    PLIM_TRY(plim_fleet_inspect(&x->device, &x->setting, plim_common_draws(request), &result, err));
    PLIM_TRY(plim_common_add_options(request, &result, err));
    if (PLIM_ARRAY_PUSH(&report.results, result) != PLIM_OK) {
        st = plim_no_memory(err);
        goto out;
    }
    PLIM_TRY(plim_common_emit(request, io, &report, err));
    if (request->trace)
        PLIM_TRY(plim_run_device_trace(&x->device, &x->setting, request->trace, err));
    if (!result.fits) st = PLIM_NOFIT;
out:
    if (report.results.count)
        plim_report_finish(&report);
    else
        plim_result_finish(&result);
    plim_inspect_close(x);
    free(x);
    return st;
}

const struct plim_command plim_command_explain = {
    .name = "explain",
    .argument = "SPEC",
    .id = PLIM_COMMAND_EXPLAIN,
    .run = run_explain,
    .summary = "where the bytes go at one setting; what would make it fit",
    .about = "Replays training steps at one setting until they repeat, and tells the numbers\n"
             "of the first four. A setting that does not fit is replayed without a limit, so\n"
             "that all numbers are there, and the exit code is 1. Of a list the first value\n"
             "counts. Example:\n\n"
             "  plimsoll explain gpt2-124m --batch 8 --seq 1024 --device sim:RTX-3090\n"};
