/* Runs that are made in advance, on another thread.
 *
 * The search announces the settings that it will ask for; another thread runs them from the end of the list, while the
 * search asks from the beginning. Nothing is run twice, and results do not depend on which thread ran them.
 */
#ifndef PLIM_AUTOTUNE_RUN_AHEAD_H
#define PLIM_AUTOTUNE_RUN_AHEAD_H

#include "autotune/search/setting.h"
#include "workloads/train/replay.h"

struct plim_ahead;

/* Makes one run, on the other thread; false: not possible. */
typedef bool plim_ahead_run(void *user, const struct plim_setting *setting, struct plim_replay *out);

/* Starts the runs of these settings. NULL: not possible, which only costs time. `user` outlives
 * it. */
struct plim_ahead *plim_ahead_start(plim_ahead_run *run, void *user,
                                    const struct plim_setting *settings, size_t count);

/* The run of a setting, after waiting for it if it is still running; false: the caller has to run it. */
bool plim_ahead_take(struct plim_ahead *ahead, const struct plim_setting *setting,
                     struct plim_replay *out);

void plim_ahead_finish(struct plim_ahead **ahead); /* waits for the current run */

#endif
