/* Runs that are made beside the one that is waited for.
 *
 * What will be asked for is told in advance; another thread takes it from the end, while the search asks
 * from the beginning. Nothing is run twice, and what comes of it does not depend on who ran it.
 */
#ifndef PLIM_AUTOTUNE_RUN_AHEAD_H
#define PLIM_AUTOTUNE_RUN_AHEAD_H

#include "autotune/search/setting.h"
#include "workloads/train/replay.h"

struct plim_ahead;

/* Makes one run, on the other thread; false: it cannot. */
typedef bool plim_ahead_run(void *user, const struct plim_setting *setting, struct plim_replay *out);

/* Starts on the runs of these settings. NULL: it cannot, and nothing is lost but time. `user` outlives
 * it. */
struct plim_ahead *plim_ahead_start(plim_ahead_run *run, void *user,
                                    const struct plim_setting *settings, size_t count);

/* The run of a setting, waited for if it goes on; false: it is the caller's now. */
bool plim_ahead_take(struct plim_ahead *ahead, const struct plim_setting *setting,
                     struct plim_replay *out);

void plim_ahead_finish(struct plim_ahead **ahead); /* waits for the run that goes on */

#endif
