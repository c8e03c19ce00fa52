#include "probe.h"
#include <stdio.h>

enum { EXPECTED_AT_MOST = 8 };

void plim_prober_finish(struct plim_prober *prober)
{
    if (prober) PLIM_ARRAY_FINISH(&prober->samples);
}

static struct plim_sample *find_sample(const struct plim_prober *prober,
                                       const struct plim_setting *setting)
{
    for (size_t i = prober->samples.count; i-- > 0;) /* recent settings are asked for most */
        if (plim_setting_equal(&prober->samples.items[i].setting, setting))
            return &prober->samples.items[i];
    return NULL;
}

const struct plim_sample *plim_probe_known(const struct plim_prober *prober,
                                           const struct plim_setting *setting)
{
    return find_sample(prober, setting);
}

/* Adds a sample, or replaces the earlier sample of its setting. */
static enum plim_status store_sample(struct plim_prober *prober, const struct plim_sample *sample,
                                     struct plim_error *err)
{
    struct plim_sample *old = find_sample(prober, &sample->setting);
    if (old)
        *old = *sample;
    else if (PLIM_ARRAY_PUSH(&prober->samples, *sample) != PLIM_OK)
        return plim_no_memory(err);
    return PLIM_OK;
}

/* Copies the details of a trial, which the runner keeps only until its next run. */
static enum plim_status copy_details(struct plim_prober *prober, struct plim_trial *trial,
                                     struct plim_error *err)
{
    if (!trial->details) return PLIM_OK;
    void *copy = plim_arena_alloc(&prober->cache->details, prober->runner->details_bytes);
    if (!copy) return plim_no_memory(err);
    trial->details = memcpy(copy, trial->details, prober->runner->details_bytes);
    return PLIM_OK;
}

static enum plim_status run(struct plim_prober *prober, const struct plim_setting *setting,
                            enum plim_run_mode mode, struct plim_trial *trial,
                            struct plim_error *err)
{
    enum plim_status st = PLIM_OK;
    bool clean = mode == PLIM_RUN_UNLIMITED || !prober->runner->limit_acts_early;
    PLIM_TRY(plim_stop_check(prober->stop, err));
    if (prober->on_run) prober->on_run(prober->on_run_user);
    prober->runs++;
    PLIM_TRY(prober->runner->run(prober->runner->user, setting, mode, trial, err));
    PLIM_TRY(copy_details(prober, trial, err));
    if (clean && plim_cache_add(prober->cache, setting, trial, prober->runner) != PLIM_OK)
        st = plim_no_memory(err);
out:
    return st;
}

static bool is_enough(const struct plim_sample *sample, enum plim_want want)
{
    switch (want) {
    case PLIM_WANT_VERDICT:
        return true;
    case PLIM_WANT_SECONDS:
        return sample->timed || sample->verdict != PLIM_OK;
    case PLIM_WANT_REASON:
        return sample->tried || sample->verdict != PLIM_OOM;
    }
    return false;
}

/* Derives a sample from the cache of the GPU's class. Returns false if the cache does not determine it. */
static bool derive(const struct plim_prober *prober, const struct plim_setting *setting,
                   struct plim_sample *sample)
{
    const struct plim_cache_entry *entry = plim_cache_find(prober->cache, setting);
    if (!entry) return false;
    enum plim_status verdict = plim_cache_verdict(entry, prober->runner->budget_bytes);
    if (verdict == PLIM_INVALID || (verdict == PLIM_OK && prober->runner->limit_acts_early))
        return false;
    const struct plim_runner *runner = prober->runner;
    if (runner->measured &&
        (double)entry->trial.requested_bytes < runner->beyond_doubt * (double)runner->budget_bytes)
        return false;
    *sample = (struct plim_sample){.setting = *setting,
                                   .verdict = verdict,
                                   .trial = entry->trial,
                                   .timed = verdict == PLIM_OK && entry->runner == prober->runner,
                                   .tried = verdict == PLIM_OK};
    return true;
}

enum plim_status plim_probe(struct plim_prober *prober, const struct plim_setting *setting,
                            enum plim_want want, const struct plim_sample **out,
                            struct plim_error *err)
{
    *out = find_sample(prober, setting);
    if (*out && is_enough(*out, want)) return PLIM_OK;

    struct plim_sample sample;
    if (!derive(prober, setting, &sample) || !is_enough(&sample, want)) {
        sample = (struct plim_sample){.setting = *setting, .tried = true};
        enum plim_status st = run(prober, setting, PLIM_RUN_LIMITED, &sample.trial, err);
        if (st) return st;
        sample.verdict = sample.trial.verdict;
        sample.timed = sample.verdict == PLIM_OK;
    }
    enum plim_status st = store_sample(prober, &sample, err);
    *out = find_sample(prober, setting);
    return st;
}

/* Adds the result of a proof to a sample. It replaces a simulated trial; a trial on a real GPU stays as measured. */
static void apply_proof(struct plim_sample *sample, const struct plim_trial *proof, bool measured)
{
    struct plim_trial *trial = &sample->trial;
    if (!measured) *trial = *proof;
    if (proof->verdict == PLIM_OK && proof->repeats_after) {
        trial->repeats_after = proof->repeats_after;
    } else if (trial->verdict == PLIM_OK && trial->retries) {
        trial->verdict = PLIM_OOM;
        snprintf(trial->why, sizeof(trial->why),
                 "out of memory: it has to free cached memory, and %d steps did not repeat",
                 proof->steps_done);
    }
    sample->verdict = trial->verdict;
    sample->proved = true;
}

enum plim_status plim_probe_proof(struct plim_prober *prober, const struct plim_setting *setting,
                                  const struct plim_sample **out, struct plim_error *err)
{
    struct plim_trial proof;
    enum plim_status st = plim_probe(prober, setting, PLIM_WANT_VERDICT, out, err);
    if (st || (*out)->verdict != PLIM_OK || (*out)->proved || (*out)->trial.repeats_after ||
        !prober->runner->proves)
        return st;
    struct plim_sample sample = **out;
    st = run(prober, setting, PLIM_RUN_PROOF, &proof, err);
    if (st) return st;
    apply_proof(&sample, &proof, prober->runner->measured);
    st = store_sample(prober, &sample, err);
    *out = find_sample(prober, setting);
    return st;
}

enum plim_status plim_probe_need(struct plim_prober *prober, const struct plim_setting *setting,
                                 const struct plim_cache_entry **out, struct plim_error *err)
{
    *out = plim_cache_find(prober->cache, setting);
    const struct plim_sample *known = find_sample(prober, setting);
    bool hopeless = known && known->verdict != PLIM_OK && known->verdict != PLIM_OOM;
    if (*out || hopeless) return PLIM_OK;

    struct plim_sample sample = {.setting = *setting, .tried = true};
    enum plim_status st = run(prober, setting, PLIM_RUN_UNLIMITED, &sample.trial, err);
    if (st) return st;
    *out = plim_cache_find(prober->cache, setting);
    sample.verdict = sample.trial.verdict;
    if (*out && !derive(prober, setting, &sample))
        return PLIM_OK; /* only a run under the budget can tell */
    return store_sample(prober, &sample, err);
}

/* Passes the settings to the hook whose samples, or needs, are not known yet. */
static void expect(const struct plim_prober *prober, plim_runner_expect *hook, bool of_needs,
                   const struct plim_setting *settings, size_t count)
{
    struct plim_setting unknown[EXPECTED_AT_MOST];
    size_t kept = 0;
    if (!hook) return;
    for (size_t i = 0; i < count && kept < EXPECTED_AT_MOST; i++)
        if (of_needs ? !plim_cache_find(prober->cache, &settings[i])
                     : !find_sample(prober, &settings[i]))
            unknown[kept++] = settings[i];
    if (kept) hook(prober->runner->user, unknown, kept);
}

void plim_probe_expect(const struct plim_prober *prober, const struct plim_setting *settings,
                       size_t count)
{
    expect(prober, prober->runner->expect, false, settings, count);
}

void plim_probe_expect_needs(const struct plim_prober *prober, const struct plim_setting *settings,
                             size_t count)
{
    expect(prober, prober->runner->expect_needs, true, settings, count);
}
