#include "plays.h"

void plim_run_plays_init(struct plim_run_plays *plays)
{
    *plays = (struct plim_run_plays){0};
    pthread_mutex_init(&plays->lock, NULL);
}

void plim_run_plays_finish(struct plim_run_plays *plays)
{
    pthread_mutex_destroy(&plays->lock);
    PLIM_ARRAY_FINISH(&plays->list);
}

static const struct plim_run_play *find(const struct plim_run_plays *plays, const struct plim_setting *setting,
                                        uint64_t sizes)
{
    for (size_t i = 0; i < plays->list.count; i++) {
        const struct plim_run_play *play = &plays->list.items[i];
        if (play->sizes == sizes && plim_setting_equal(&play->setting, setting)) return play;
    }
    return NULL;
}

enum plim_status plim_run_plays_store(struct plim_run_plays *plays, const struct plim_setting *setting,
                                      uint64_t sizes, const struct plim_replay *replay)
{
    const struct plim_run_play play = {.setting = *setting, .sizes = sizes, .replay = *replay};
    if (replay->verdict != PLIM_OK || replay->retries) return PLIM_OK;
    pthread_mutex_lock(&plays->lock);
    enum plim_status st = find(plays, setting, sizes) ? PLIM_OK : PLIM_ARRAY_PUSH(&plays->list, play);
    pthread_mutex_unlock(&plays->lock);
    return st;
}

bool plim_run_plays_find(struct plim_run_plays *plays, const struct plim_setting *setting, uint64_t sizes,
                         int64_t budget_bytes, struct plim_replay *out)
{
    pthread_mutex_lock(&plays->lock);
    const struct plim_run_play *play = find(plays, setting, sizes);
    bool is_same = play && play->replay.peak_reserved_bytes <= budget_bytes;
    if (is_same) *out = play->replay;
    pthread_mutex_unlock(&plays->lock);
    return is_same;
}
