#include "ask.h"
#include <stdio.h>

enum { EXPECTED_AT_MOST = 8 };

void plim_asker_finish(struct plim_asker *asker)
{
    if (asker) PLIM_ARRAY_FINISH(&asker->samples);
}

static struct plim_sample *find_sample(const struct plim_asker *asker,
                                       const struct plim_setting *setting)
{
    for (size_t i = asker->samples.count; i-- > 0;) /* recent settings are asked for most */
        if (plim_setting_equal(&asker->samples.items[i].setting, setting))
            return &asker->samples.items[i];
    return NULL;
}

const struct plim_sample *plim_ask_known(const struct plim_asker *asker,
                                         const struct plim_setting *setting)
{
    return find_sample(asker, setting);
}

/* Adds a sample, or replaces the earlier sample of its setting. */
static enum plim_status keep_sample(struct plim_asker *asker, const struct plim_sample *sample,
                                    struct plim_error *err)
{
    struct plim_sample *old = find_sample(asker, &sample->setting);
    if (old)
        *old = *sample;
    else if (PLIM_ARRAY_PUSH(&asker->samples, *sample) != PLIM_OK)
        return plim_no_memory(err);
    return PLIM_OK;
}

/* Copies the details of a trial, which the runner keeps only until its next run. */
static enum plim_status keep_details(struct plim_asker *asker, struct plim_trial *trial,
                                     struct plim_error *err)
{
    if (!trial->details) return PLIM_OK;
    void *copy = plim_arena_alloc(&asker->cache->details, asker->runner->details_bytes);
    if (!copy) return plim_no_memory(err);
    trial->details = memcpy(copy, trial->details, asker->runner->details_bytes);
    return PLIM_OK;
}

static enum plim_status run(struct plim_asker *asker, const struct plim_setting *setting,
                            enum plim_run_mode mode, struct plim_trial *trial,
                            struct plim_error *err)
{
    enum plim_status st = PLIM_OK;
    bool clean = mode == PLIM_RUN_UNLIMITED || !asker->runner->limit_acts_early;
    PLIM_TRY(plim_stop_check(asker->stop, err));
    if (asker->on_run) asker->on_run(asker->on_run_user);
    asker->runs++;
    PLIM_TRY(asker->runner->run(asker->runner->user, setting, mode, trial, err));
    PLIM_TRY(keep_details(asker, trial, err));
    if (clean && plim_cache_add(asker->cache, setting, trial, asker->runner) != PLIM_OK)
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
static bool derive(const struct plim_asker *asker, const struct plim_setting *setting,
                   struct plim_sample *sample)
{
    const struct plim_cache_entry *entry = plim_cache_find(asker->cache, setting);
    if (!entry) return false;
    enum plim_status verdict = plim_cache_verdict(entry, asker->runner->budget_bytes);
    if (verdict == PLIM_INVALID || (verdict == PLIM_OK && asker->runner->limit_acts_early))
        return false;
    const struct plim_runner *runner = asker->runner;
    if (runner->measured &&
        (double)entry->trial.requested_bytes < runner->beyond_doubt * (double)runner->budget_bytes)
        return false;
    *sample = (struct plim_sample){.setting = *setting,
                                   .verdict = verdict,
                                   .trial = entry->trial,
                                   .timed = verdict == PLIM_OK && entry->runner == asker->runner,
                                   .tried = verdict == PLIM_OK};
    return true;
}

enum plim_status plim_ask(struct plim_asker *asker, const struct plim_setting *setting,
                          enum plim_want want, const struct plim_sample **out,
                          struct plim_error *err)
{
    *out = find_sample(asker, setting);
    if (*out && is_enough(*out, want)) return PLIM_OK;

    struct plim_sample sample;
    if (!derive(asker, setting, &sample) || !is_enough(&sample, want)) {
        sample = (struct plim_sample){.setting = *setting, .tried = true};
        enum plim_status st = run(asker, setting, PLIM_RUN_LIMITED, &sample.trial, err);
        if (st) return st;
        sample.verdict = sample.trial.verdict;
        sample.timed = sample.verdict == PLIM_OK;
    }
    enum plim_status st = keep_sample(asker, &sample, err);
    *out = find_sample(asker, setting);
    return st;
}

/* Adds the result of a proof to a sample. It replaces a simulated trial; a trial on a real GPU stays as measured. */
static void take_proof(struct plim_sample *sample, const struct plim_trial *proof, bool measured)
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

enum plim_status plim_ask_proof(struct plim_asker *asker, const struct plim_setting *setting,
                                const struct plim_sample **out, struct plim_error *err)
{
    struct plim_trial proof;
    enum plim_status st = plim_ask(asker, setting, PLIM_WANT_VERDICT, out, err);
    if (st || (*out)->verdict != PLIM_OK || (*out)->proved || (*out)->trial.repeats_after ||
        !asker->runner->proves)
        return st;
    struct plim_sample sample = **out;
    st = run(asker, setting, PLIM_RUN_PROOF, &proof, err);
    if (st) return st;
    take_proof(&sample, &proof, asker->runner->measured);
    st = keep_sample(asker, &sample, err);
    *out = find_sample(asker, setting);
    return st;
}

enum plim_status plim_ask_need(struct plim_asker *asker, const struct plim_setting *setting,
                               const struct plim_cache_entry **out, struct plim_error *err)
{
    *out = plim_cache_find(asker->cache, setting);
    const struct plim_sample *known = find_sample(asker, setting);
    bool hopeless = known && known->verdict != PLIM_OK && known->verdict != PLIM_OOM;
    if (*out || hopeless) return PLIM_OK;

    struct plim_sample sample = {.setting = *setting, .tried = true};
    enum plim_status st = run(asker, setting, PLIM_RUN_UNLIMITED, &sample.trial, err);
    if (st) return st;
    *out = plim_cache_find(asker->cache, setting);
    sample.verdict = sample.trial.verdict;
    if (*out && !derive(asker, setting, &sample))
        return PLIM_OK; /* only a run under the budget can tell */
    return keep_sample(asker, &sample, err);
}

/* Passes the settings to the hook whose samples, or needs, are not known yet. */
static void expect(const struct plim_asker *asker, plim_runner_expect *hook, bool of_needs,
                   const struct plim_setting *settings, size_t count)
{
    struct plim_setting unknown[EXPECTED_AT_MOST];
    size_t kept = 0;
    if (!hook) return;
    for (size_t i = 0; i < count && kept < EXPECTED_AT_MOST; i++)
        if (of_needs ? !plim_cache_find(asker->cache, &settings[i])
                     : !find_sample(asker, &settings[i]))
            unknown[kept++] = settings[i];
    if (kept) hook(asker->runner->user, unknown, kept);
}

void plim_ask_expect(const struct plim_asker *asker, const struct plim_setting *settings,
                     size_t count)
{
    expect(asker, asker->runner->expect, false, settings, count);
}

void plim_ask_expect_needs(const struct plim_asker *asker, const struct plim_setting *settings,
                           size_t count)
{
    expect(asker, asker->runner->expect_needs, true, settings, count);
}
