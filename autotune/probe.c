#include "probe.h"

/* A prediction of so much more than there is needs no run on the card. */
static const double BEYOND_DOUBT = 1.1;

void plim_prober_finish(struct plim_prober *prober)
{
    if (prober) PLIM_ARRAY_FINISH(&prober->samples);
}

static struct plim_sample *find_sample(const struct plim_prober *prober,
                                       const struct plim_setting *setting)
{
    for (size_t i = prober->samples.count; i-- > 0;) /* the last ones are asked for again */
        if (plim_setting_equal(&prober->samples.items[i].setting, setting))
            return &prober->samples.items[i];
    return NULL;
}

const struct plim_sample *plim_probe_known(const struct plim_prober *prober,
                                           const struct plim_setting *setting)
{
    return find_sample(prober, setting);
}

/* Replaces what was known of the setting. */
static enum plim_status keep_sample(struct plim_prober *prober, const struct plim_sample *sample,
                                    struct plim_error *err)
{
    struct plim_sample *old = find_sample(prober, &sample->setting);
    if (old) *old = *sample;
    else if (PLIM_ARRAY_PUSH(&prober->samples, *sample) != PLIM_OK)
        return plim_fail(err, PLIM_NOMEM, "out of host memory");
    return PLIM_OK;
}

static enum plim_status run(struct plim_prober *prober, const struct plim_setting *setting,
                            enum plim_run_mode mode, struct plim_replay *replay,
                            struct plim_error *err)
{
    enum plim_status st = plim_stop_check(prober->stop, err);
    if (st) return st;
    if (prober->on_run) prober->on_run(prober->on_run_user);
    prober->runs++;
    st = prober->runner->run(prober->runner->user, setting, mode, replay, err);
    bool clean = mode == PLIM_RUN_UNLIMITED || !prober->runner->limit_acts_early;
    if (!st && clean && plim_memo_add(prober->memo, setting, replay, prober->runner) != PLIM_OK)
        st = plim_fail(err, PLIM_NOMEM, "out of host memory");
    return st;
}

static bool is_enough(const struct plim_sample *sample, enum plim_probe_want want)
{
    switch (want) {
    case PLIM_WANT_VERDICT: return true;
    case PLIM_WANT_SECONDS: return sample->timed || sample->verdict != PLIM_OK;
    case PLIM_WANT_REASON: return sample->tried || sample->verdict != PLIM_OOM;
    }
    return false;
}

/* A sample from what the class knows; false when that does not tell. */
static bool derive(const struct plim_prober *prober, const struct plim_setting *setting,
                   struct plim_sample *sample)
{
    const struct plim_memo_entry *entry = plim_memo_find(prober->memo, setting);
    if (!entry) return false;
    enum plim_status verdict = plim_memo_verdict(entry, prober->runner->budget_bytes);
    if (verdict == PLIM_INVALID || (verdict == PLIM_OK && prober->runner->limit_acts_early))
        return false;
    if (prober->runner->measured && (double)entry->peak_requested_bytes <
                                        BEYOND_DOUBT * (double)prober->runner->budget_bytes)
        return false;
    *sample = (struct plim_sample){.setting = *setting, .verdict = verdict, .replay = entry->replay,
                                   .timed = verdict == PLIM_OK && entry->card == prober->runner,
                                   .tried = verdict == PLIM_OK};
    return true;
}

enum plim_status plim_probe(struct plim_prober *prober, const struct plim_setting *setting,
                            enum plim_probe_want want, const struct plim_sample **out,
                            struct plim_error *err)
{
    *out = find_sample(prober, setting);
    if (*out && is_enough(*out, want)) return PLIM_OK;

    struct plim_sample sample;
    if (!derive(prober, setting, &sample) || !is_enough(&sample, want)) {
        sample = (struct plim_sample){.setting = *setting, .tried = true};
        enum plim_status st = run(prober, setting, PLIM_RUN_LIMITED, &sample.replay, err);
        if (st) return st;
        sample.verdict = sample.replay.verdict;
        sample.timed = sample.verdict == PLIM_OK;
        if (sample.timed && prober->runner->timing)
            sample.timing = *prober->runner->timing(prober->runner->user);
    }
    enum plim_status st = keep_sample(prober, &sample, err);
    *out = find_sample(prober, setting);
    return st;
}

enum plim_status plim_probe_need(struct plim_prober *prober, const struct plim_setting *setting,
                                 const struct plim_memo_entry **out, struct plim_error *err)
{
    *out = plim_memo_find(prober->memo, setting);
    const struct plim_sample *known = find_sample(prober, setting);
    bool hopeless = known && known->verdict != PLIM_OK && known->verdict != PLIM_OOM;
    if (*out || hopeless) return PLIM_OK;

    struct plim_sample sample = {.setting = *setting, .tried = true};
    enum plim_status st = run(prober, setting, PLIM_RUN_UNLIMITED, &sample.replay, err);
    if (st) return st;
    *out = plim_memo_find(prober->memo, setting);
    sample.verdict = sample.replay.verdict;
    if (*out && !derive(prober, setting, &sample))
        return PLIM_OK; /* a run under the budget has to tell */
    return keep_sample(prober, &sample, err);
}
