#include "memo.h"

void plim_memo_finish(struct plim_memo *memo)
{
    if (memo) PLIM_ARRAY_FINISH(&memo->entries);
}

bool plim_setting_equal(const struct plim_setting *a, const struct plim_setting *b)
{
    return a->micro_batch == b->micro_batch && a->seq == b->seq &&
           a->accumulation == b->accumulation && a->precision == b->precision &&
           a->optimizer == b->optimizer && a->checkpointing == b->checkpointing &&
           a->attention == b->attention && a->sharding == b->sharding && a->packing == b->packing &&
           a->lora.r == b->lora.r && a->variant == b->variant;
}

const struct plim_memo_entry *plim_memo_find(const struct plim_memo *memo,
                                             const struct plim_setting *setting)
{
    for (size_t i = 0; i < memo->entries.count; i++)
        if (plim_setting_equal(&memo->entries.items[i].setting, setting))
            return &memo->entries.items[i];
    return NULL;
}

enum plim_status plim_memo_add(struct plim_memo *memo, const struct plim_setting *setting,
                               const struct plim_replay *replay, const void *card)
{
    if (replay->verdict != PLIM_OK || replay->retries || plim_memo_find(memo, setting))
        return PLIM_OK;
    struct plim_memo_entry entry = {.setting = *setting, .replay = *replay, .card = card};
    for (int i = 0; i < replay->steps_done; i++)
        if (replay->step[i].peak_requested_bytes > entry.peak_requested_bytes)
            entry.peak_requested_bytes = replay->step[i].peak_requested_bytes;
    return PLIM_ARRAY_PUSH(&memo->entries, entry);
}

enum plim_status plim_memo_verdict(const struct plim_memo_entry *entry, int64_t budget_bytes)
{
    if (entry->replay.peak_reserved_bytes <= budget_bytes) return PLIM_OK;
    return entry->peak_requested_bytes > budget_bytes ? PLIM_OOM : PLIM_INVALID;
}
