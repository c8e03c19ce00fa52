#include "inspect.h"
#include "autotune/search/space.h"
#include "gpu_ring.h"

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

enum plim_status plim_inspect_open(const struct plim_request *request, const struct plim_log *log,
                                   const struct plim_stop *stop, struct plim_inspected *out,
                                   struct plim_error *err)
{
    const char *uri;
    enum plim_status st = PLIM_OK;
    PLIM_TRY(plim_asked_question_read(request, log, stop, &out->asked, err));
    PLIM_TRY(first_setting(&out->asked.question.question, &out->setting, err));
    PLIM_TRY(plim_common_device(request, &out->asked.spec, log, out->asked.question.recording ? NULL : &out->target,
                                &uri, err));
    out->allowance = plim_common_allowance(request, log);
    if (!out->asked.question.recording)
        plim_gpu_ring_measure(request, &out->asked.spec, uri, stop, log, &out->ring);
    out->options = (struct plim_run_options){.uri = uri,
                                             .allowance = &out->allowance,
                                             .question = &out->asked.question,
                                             .stop = stop,
                                             .log = log,
                                             .steps = request->steps,
                                             .ring = &out->ring,
                                             .runs_ahead = true};
    PLIM_TRY(plim_run_device_open(&out->device, &out->options, err));
out:
    return st;
}

void plim_inspect_close(struct plim_inspected *inspected)
{
    if (!inspected) return;
    plim_run_device_close(&inspected->device);
    plim_asked_question_finish(&inspected->asked);
}
