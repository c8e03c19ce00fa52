/* explain: where the bytes go at one setting. */
#include "autotune/accumulate.h"
#include "autotune/outcome.h"
#include "common.h"

/* The first value of every axis. */
static enum plim_status first_setting(const struct plim_spec *spec, struct plim_setting *setting,
                                      struct plim_error *err)
{
    struct plim_batch_rule rule;
    struct plim_batch batch;
    struct plim_space space = {0};
    struct plim_int_axis seqs;
    enum plim_status st = PLIM_OK;
    if (!spec->micro_batch.count)
        return plim_fail(err, PLIM_INVALID, "explain needs a micro-batch, expected --batch N");
    plim_space_seqs(spec, &seqs);
    PLIM_TRY(plim_batch_rule_init(&rule, spec, err));
    PLIM_TRY(plim_space_build(&space, spec, &seqs, err));
    plim_batch_allowed(&rule, spec->micro_batch.values[0], &batch);
    *setting = space.points.items[0];
    setting->micro_batch = batch.micro_batch;
    setting->accumulation = batch.accumulation;
out:
    plim_space_finish(&space);
    return st;
}

static enum plim_status explain_on(struct plim_card *card, const struct plim_spec *spec,
                                   const struct plim_setting *setting,
                                   struct plim_result *result, struct plim_error *err)
{
    struct plim_memo memo = {0};
    struct plim_prober prober = {
        .runner = &card->runner, .memo = &memo, .stop = card->order->stop};
    struct plim_explanation explanation = {0};
    enum plim_status st = plim_explain(&prober, spec, setting, &explanation, err);
    if (!st) st = plim_outcome_explanation(card, spec, &explanation, result, err);
    plim_explanation_finish(&explanation);
    plim_prober_finish(&prober);
    plim_memo_finish(&memo);
    return st;
}

static enum plim_status run_explain(const struct plim_request *request, const struct plim_io *io,
                                    struct plim_error *err)
{
    struct plim_spec *spec = calloc(1, sizeof(*spec));
    struct plim_log log = plim_common_log(request, io);
    struct plim_stop stop = {.signalled = io->signalled};
    struct plim_target target;
    struct plim_card_order order;
    struct plim_card card = {0};
    struct plim_report report = {0};
    struct plim_result result = {0};
    struct plim_allowance allowance;
    struct plim_setting setting;
    const char *uri;
    enum plim_status st = spec ? PLIM_OK : plim_fail(err, PLIM_NOMEM, "out of host memory");
    if (st) goto out;
    PLIM_TRY(plim_common_check_files(request, err));
    PLIM_TRY(plim_common_spec(request, spec, err));
    PLIM_TRY(first_setting(spec, &setting, err));
    PLIM_TRY(plim_common_device(request, spec, &log, &target, &uri, err));
    allowance = plim_common_allowance(request, &log);
    order = (struct plim_card_order){
        .uri = uri, .allowance = &allowance, .spec = spec, .stop = &stop, .log = &log};
    PLIM_TRY(plim_card_open(&card, &order, err));
    PLIM_TRY(explain_on(&card, spec, &setting, &result, err));
    PLIM_TRY(PLIM_ARRAY_PUSH(&report.results, result));
    PLIM_TRY(plim_common_emit(request, io, &report, err));
    if (request->trace) PLIM_TRY(plim_card_trace(&card, &setting, request->trace, err));
    if (!result.fits) st = PLIM_NOFIT;
out:
    if (report.results.count) plim_report_finish(&report);
    else plim_result_finish(&result);
    plim_card_close(&card);
    free(spec);
    return st;
}

const struct plim_command plim_command_explain = {
    .name = "explain", .argument = "SPEC", .verb = PLIM_VERB_EXPLAIN, .run = run_explain,
    .summary = "where the bytes go at one setting, and what would make it fit",
    .about = "Replays four training steps at one setting. A setting that does not fit is\n"
             "replayed without a limit, so that all figures are there, and the exit code is\n"
             "1. Of a list the first value counts. Example:\n\n"
             "  plimsoll explain gpt2-124m --batch 8 --seq 1024 --device sim:RTX-3090\n"};
