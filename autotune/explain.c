#include "explain.h"

/* What the card cannot run is a matter of the spec; anything else is one of the device. */
static enum plim_status fail_without_need(const struct plim_prober *prober,
                                          const struct plim_setting *setting,
                                          struct plim_error *err)
{
    const struct plim_sample *sample = plim_probe_known(prober, setting);
    bool unsupported = !sample || sample->verdict == PLIM_UNSUPPORTED;
    return plim_fail(err, unsupported ? PLIM_SPEC : PLIM_LOST, "%s",
                     sample ? sample->replay.why : "it cannot run");
}

static enum plim_status replay_without_limit(struct plim_prober *prober,
                                             struct plim_explanation *explanation,
                                             struct plim_error *err)
{
    const struct plim_memo_entry *entry;
    enum plim_status st = plim_probe_need(prober, &explanation->setting, &entry, err);
    if (!st && !entry)
        st = fail_without_need(prober, &explanation->setting, err);
    if (!st) explanation->replay = entry->replay;
    return st;
}

enum plim_status plim_explain(struct plim_prober *prober, const struct plim_spec *spec,
                              const struct plim_setting *setting,
                              struct plim_explanation *explanation, struct plim_error *err)
{
    explanation->setting = *setting;
    if (prober->runner->budget_bytes > 0) {
        const struct plim_sample *sample;
        enum plim_status st = plim_probe(prober, setting, PLIM_WANT_SECONDS, &sample, err);
        if (st) return st;
        explanation->under_budget = *sample;
        explanation->replay = sample->replay;
        explanation->fits = sample->verdict == PLIM_OK;
        if (explanation->fits) return PLIM_OK;
    }
    enum plim_status st = replay_without_limit(prober, explanation, err);
    return st ? st : plim_advise(prober, spec, setting, &explanation->advices, err);
}

void plim_explanation_finish(struct plim_explanation *explanation)
{
    if (explanation) plim_advices_finish(&explanation->advices);
}
