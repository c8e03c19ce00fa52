#include "share.h"
#include "devices/sim/sim.h"
#include "workloads/train/retime.h"

void plim_run_share_finish(struct plim_run_share *share)
{
    if (!share) return;
    PLIM_ARRAY_FINISH(&share->runs);
    plim_score_finish(&share->recorder);
    plim_arena_finish(&share->scores);
}

static const struct plim_shared_run *find(const struct plim_run_share *share,
                                          const struct plim_setting *setting)
{
    for (size_t i = 0; i < share->runs.count; i++)
        if (plim_setting_equal(&share->runs.items[i].setting, setting)) return &share->runs.items[i];
    return NULL;
}

/* Keeps a copy of a score without spare capacity. */
static bool copy_score(struct plim_run_share *share, struct plim_score *out)
{
    const struct plim_score_recorder *r = &share->recorder;
    struct plim_work *works = plim_arena_array(&share->scores, r->works.count, sizeof(*works));
    struct plim_score_event *events =
        plim_arena_array(&share->scores, r->events.count, sizeof(*events));
    if (!works || !events) return false;
    if (r->works.count) memcpy(works, r->works.items, r->works.count * sizeof(*works));
    if (r->events.count) memcpy(events, r->events.items, r->events.count * sizeof(*events));
    *out = (struct plim_score){works, events, r->works.count, r->events.count};
    return true;
}

enum plim_status plim_run_share_store(struct plim_run_share *share,
                                      const struct plim_setting *setting,
                                      const struct plim_replay *replay)
{
    bool clean = replay->verdict == PLIM_OK && !replay->retries && !share->recorder.broken;
    struct plim_shared_run run = {.setting = *setting, .replay = *replay};
    if (!clean || find(share, setting)) return PLIM_OK;
    if (!copy_score(share, &run.score)) return PLIM_NOMEM;
    return PLIM_ARRAY_PUSH(&share->runs, run);
}

bool plim_run_share_find(const struct plim_run_share *share, const struct plim_setting *setting,
                         struct plim_device *device, int64_t budget_bytes,
                         struct plim_replay *out)
{
    struct plim_score_reading readings[PLIM_SCORE_READINGS];
    const struct plim_shared_run *run = find(share, setting);
    if (!run || run->replay.peak_reserved_bytes > budget_bytes) return false;
    *out = run->replay;
    return plim_replay_retime(out, readings, plim_sim_play(device, &run->score, readings));
}
