/* Processes of a trial that are starting up: they have not launched anything yet but may be about to, such as a
 * second trainer that still imports its framework. A trial whose other processes have settled waits for them.
 *
 * What a process will do is not known, only what it does: it counts as starting while it uses the CPU and is not
 * much older than the first process was at its first training step. A process that launches others or waits for them
 * uses no CPU; and children of a process that uses a GPU are its helpers (workers of data loaders, compilers).
 */
#ifndef PLIM_AUTOTUNE_EXEC_STARTING_H
#define PLIM_AUTOTUNE_EXEC_STARTING_H

#include "autotune/base/status.h"
#include "devices/virtual/machine/machine.h"
#include <sys/types.h>

enum { PLIM_STARTING_MOST = 64 };

/* Zero at first. */
struct plim_starting {
    double looked; /* the time of the last look; 0: never */
    bool any;      /* its result */
    size_t count;
    struct plim_starting_process {
        pid_t pid;
        uint64_t began, used; /* ticks (process_stat.h) */
    } seen[PLIM_STARTING_MOST];
};

/* Is a process starting? `ancestor`: of all processes of the trial; 0: not known. `first_step_seconds`: how long the
 * first step took to appear. Call it repeatedly while it returns true; it looks a few times a second. */
bool plim_starting_any(struct plim_starting *starting, const struct plim_machine *machine, pid_t ancestor,
                       double first_step_seconds);

#endif
