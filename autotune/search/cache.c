#include "cache.h"

void plim_cache_finish(struct plim_cache *cache)
{
    if (!cache) return;
    PLIM_ARRAY_FINISH(&cache->entries);
    plim_arena_finish(&cache->details);
}

const struct plim_cache_entry *plim_cache_find(const struct plim_cache *cache,
                                               const struct plim_setting *setting)
{
    for (size_t i = 0; i < cache->entries.count; i++)
        if (plim_setting_equal(&cache->entries.items[i].setting, setting))
            return &cache->entries.items[i];
    return NULL;
}

enum plim_status plim_cache_add(struct plim_cache *cache, const struct plim_setting *setting,
                                const struct plim_trial *trial, const void *runner)
{
    const struct plim_cache_entry entry = {.setting = *setting, .trial = *trial, .runner = runner};
    bool clean = trial->verdict == PLIM_OK && !trial->retries;
    if (!clean || plim_cache_find(cache, setting)) return PLIM_OK;
    return PLIM_ARRAY_PUSH(&cache->entries, entry);
}

enum plim_status plim_cache_verdict(const struct plim_cache_entry *entry, int64_t budget_bytes)
{
    if (entry->trial.reserved_bytes <= budget_bytes) return PLIM_OK;
    return entry->trial.requested_bytes > budget_bytes ? PLIM_OOM : PLIM_INVALID;
}
