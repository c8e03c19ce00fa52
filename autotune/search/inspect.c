#include "inspect.h"
#include "question.h"

/* Fails for a setting that did not run without limit: PLIM_SPEC if the GPU cannot run it, otherwise PLIM_LOST. */
static enum plim_status fail_without_need(const struct plim_prober *prober,
                                          const struct plim_setting *setting,
                                          struct plim_error *err)
{
    const struct plim_sample *sample = plim_probe_known(prober, setting);
    bool unsupported = !sample || sample->verdict == PLIM_UNSUPPORTED;
    return plim_fail(err, unsupported ? PLIM_SPEC : PLIM_LOST, "%s",
                     sample ? sample->trial.why : "it cannot run");
}

static enum plim_status run_without_limit(struct plim_prober *prober,
                                          struct plim_inspection *inspection,
                                          struct plim_error *err)
{
    const struct plim_cache_entry *entry;
    enum plim_status st = plim_probe_need(prober, &inspection->setting, &entry, err);
    if (!st && !entry) st = fail_without_need(prober, &inspection->setting, err);
    if (!st) inspection->trial = entry->trial;
    return st;
}

enum plim_status plim_inspect(const struct plim_question *question, struct plim_prober *prober,
                              const struct plim_setting *setting,
                              struct plim_inspection *inspection, struct plim_error *err)
{
    inspection->setting = *setting;
    if (prober->runner->budget_bytes > 0) {
        const struct plim_sample *sample;
        enum plim_status st = plim_probe(prober, setting, PLIM_WANT_SECONDS, &sample, err);
        if (!st) st = plim_probe_proof(prober, setting, &sample, err);
        if (st) return st;
        inspection->under_budget = *sample;
        inspection->trial = sample->trial;
        inspection->fits = sample->verdict == PLIM_OK;
        if (inspection->fits) return PLIM_OK;
    }
    enum plim_status st = run_without_limit(prober, inspection, err);
    return st ? st : plim_advise(question, prober, setting, &inspection->advices, err);
}

void plim_inspection_finish(struct plim_inspection *inspection)
{
    if (inspection) plim_advices_finish(&inspection->advices);
}
