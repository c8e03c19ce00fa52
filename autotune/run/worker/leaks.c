#include "leaks.h"

static bool has_run(const struct plim_leaks *leaks, const struct plim_setting *setting)
{
    for (size_t i = 0; i < leaks->known.count; i++)
        if (plim_setting_equal(&leaks->known.items[i], setting)) return true;
    return false;
}

enum plim_status plim_leaks_add(struct plim_leaks *leaks, const struct plim_setting *setting,
                                int64_t missing_bytes)
{
    if (has_run(leaks, setting)) {
        leaks->leaked_bytes += missing_bytes;
        return PLIM_OK;
    }
    leaks->loaded_bytes += missing_bytes;
    return PLIM_ARRAY_PUSH(&leaks->known, *setting);
}

bool plim_leaks_are_too_many(const struct plim_leaks *leaks)
{
    return leaks->leaked_bytes > leaks->may_leak_bytes ||
           leaks->loaded_bytes > leaks->may_load_bytes;
}

void plim_leaks_finish(struct plim_leaks *leaks)
{
    PLIM_ARRAY_FINISH(&leaks->known);
}
