/* Processes of a trial that are on the way to their GPU: they have not launched anything and may be about to, as a
 * second trainer that still imports its framework. A trial whose others are at rest waits for them.
 *
 * It is not known what a process will do, only what it does: it is on the way while it uses a processor, and is not
 * much older than the first process was at its first training step. What launches others, or waits for them, uses no
 * processor; and what a process that uses a GPU has started helps it (workers of data loaders, compilers).
 */
#ifndef PLIM_AUTOTUNE_EXEC_STARTING_H
#define PLIM_AUTOTUNE_EXEC_STARTING_H

#include "autotune/base/status.h"
#include "devices/virtual/machine/machine.h"
#include <sys/types.h>

enum { PLIM_STARTING_MOST = 64 };

/* Zero at first. */
struct plim_starting {
    double looked; /* when; 0: never */
    bool any;      /* what was found then */
    size_t count;
    struct plim_starting_process {
        pid_t pid;
        uint64_t began, used; /* ticks (process_stat.h) */
    } seen[PLIM_STARTING_MOST];
};

/* Is there one? `ancestor`: of all processes of the trial; 0: not known. `first_step_seconds`: after so long the first
 * step was seen. To be asked again and again while it says so; it looks a few times a second. */
bool plim_starting_any(struct plim_starting *starting, const struct plim_machine *machine, pid_t ancestor,
                       double first_step_seconds);

#endif
