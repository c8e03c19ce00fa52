/* explain: where the bytes go at one setting. */
#include "autotune/fleet.h"
#include "autotune/search/space.h"
#include "common.h"

/* Everything of one run of explain; too large for comfort on a stack. */
struct explain {
    struct plim_spec spec;
    struct plim_spec_question question;
    struct plim_target target;
    struct plim_run_options options;
    struct plim_run_device device;
    struct plim_allowance allowance;
};

/* The first value of every axis. */
static enum plim_status first_setting(const struct plim_question *question,
                                      struct plim_setting *setting, struct plim_error *err)
{
    struct plim_batch_rule rule;
    struct plim_batch batch;
    if (!question->batch.listed_count)
        return plim_fail(err, PLIM_INVALID, "explain needs a micro-batch, expected --batch N");
    enum plim_status st = plim_batch_rule_init(&rule, &question->batch, err);
    if (st) return st;
    plim_batch_allowed(&rule, question->batch.listed[0], &batch);
    *setting = plim_space_first(&question->axes);
    setting->micro_batch = batch.micro_batch;
    setting->accumulation = batch.accumulation;
    return PLIM_OK;
}

static enum plim_status run_explain(const struct plim_request *request, const struct plim_io *io,
                                    struct plim_error *err)
{
    struct explain *x = calloc(1, sizeof(*x));
    struct plim_log log = plim_common_log(request, io);
    struct plim_stop stop = {.signalled = io->signalled};
    struct plim_report report = {0};
    struct plim_result result = {0};
    struct plim_setting setting;
    const char *uri;
    enum plim_status st = x ? PLIM_OK : plim_fail(err, PLIM_NOMEM, "out of host memory");
    if (st) goto out;
    PLIM_TRY(plim_common_check_files(request, err));
    PLIM_TRY(plim_common_spec(request, &log, &x->spec, err));
    plim_spec_question_make(&x->spec, request->objective, &x->question);
    PLIM_TRY(first_setting(&x->question.question, &setting, err));
    PLIM_TRY(plim_common_device(request, &x->spec, &log, &x->target, &uri, err));
    x->allowance = plim_common_allowance(request, &log);
    x->options = (struct plim_run_options){.uri = uri,
                                           .allowance = &x->allowance,
                                           .question = &x->question,
                                           .stop = &stop,
                                           .log = &log,
                                           .steps = request->steps};
    PLIM_TRY(plim_run_device_open(&x->device, &x->options, err));
    PLIM_TRY(plim_fleet_inspect(&x->device, &setting, &result, err));
    if (PLIM_ARRAY_PUSH(&report.results, result) != PLIM_OK) {
        st = plim_fail(err, PLIM_NOMEM, "out of host memory");
        goto out;
    }
    PLIM_TRY(plim_common_emit(request, io, &report, err));
    if (request->trace) PLIM_TRY(plim_run_device_trace(&x->device, &setting, request->trace, err));
    if (!result.fits) st = PLIM_NOFIT;
out:
    if (report.results.count)
        plim_report_finish(&report);
    else
        plim_result_finish(&result);
    if (x) plim_run_device_close(&x->device);
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
