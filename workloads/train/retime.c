#include "retime.h"
#include <string.h>

void plim_replay_record_load(struct plim_replay *replay, const struct plim_device_load *before,
                             const struct plim_device_load *after)
{
    const struct plim_device_load load = plim_device_load_between(before, after);
    replay->host_bound = load.launching_at_most_seconds > plim_device_running_seconds(&load);
    replay->launching_seconds = load.launching_seconds;
    memcpy(replay->running_seconds, load.running_seconds, sizeof(replay->running_seconds));
}

bool plim_replay_retime(struct plim_replay *replay, const struct plim_score_reading *readings,
                        size_t count)
{
    int steps = plim_replay_kept_steps(replay);
    if (count != 2 * (size_t)steps || replay->steps_done != steps) return false;
    for (int i = 0; i < steps; i++)
        replay->step[i].seconds = readings[2 * i + 1].seconds - readings[2 * i].seconds;
    /* If the last step repeats the one before, it was not run. */
    int last = replay->repeats_after && replay->repeats_after < steps ? steps - 2 : steps - 1;
    if (last >= 0)
        plim_replay_record_load(replay, &readings[2 * last].load, &readings[2 * last + 1].load);
    return true;
}
