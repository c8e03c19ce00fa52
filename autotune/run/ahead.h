/* Runs of settings in advance, on another thread.
 *
 * The search announces the settings that it will ask for; the thread runs them from the end of the list, while the
 * search asks from the beginning. No setting is run twice, and results do not depend on which thread ran it. */
#ifndef PLIM_AUTOTUNE_RUN_AHEAD_H
#define PLIM_AUTOTUNE_RUN_AHEAD_H

#include "autotune/search/setting.h"
#include "workloads/train/replay.h"

struct plim_ahead;

/* Runs a setting, on the other thread. Returns false on failure. */
typedef bool plim_ahead_run(void *user, const struct plim_setting *setting, struct plim_replay *out);

/* Starts the thread that runs these settings, which are copied. `user` must outlive it. Returns NULL on failure, which
 * only costs time. */
struct plim_ahead *plim_ahead_start(plim_ahead_run *run, void *user,
                                    const struct plim_setting *settings, size_t count);

/* Stores the result of a setting, after waiting if it is running. Returns false if the caller has to run it. */
bool plim_ahead_result(struct plim_ahead *ahead, const struct plim_setting *setting,
                       struct plim_replay *out);

void plim_ahead_finish(struct plim_ahead **ahead); /* waits for the current run; NULL is allowed */

#endif
