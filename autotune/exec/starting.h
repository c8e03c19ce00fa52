/* Finds processes of a trial that are starting up: they have not used a GPU yet but may be about to, such as a second
 * trainer that still imports its framework. A trial whose other processes have reached their final memory waits for
 * them.
 *
 * This is a heuristic: a process counts as starting while it uses the CPU and is not much older than the first process
 * was at its first training step. Launchers, which wait for their children, use no CPU. Descendants of a process that
 * uses a GPU do not count: they are helpers (workers of data loaders, compilers). */
#ifndef PLIM_AUTOTUNE_EXEC_STARTING_H
#define PLIM_AUTOTUNE_EXEC_STARTING_H

#include "autotune/base/status.h"
#include "devices/virtual/machine/machine.h"
#include <sys/types.h>

enum { PLIM_STARTING_MOST = 64 };

/* State between calls; zeroed before the first. */
struct plim_starting {
    double looked; /* clock seconds of the last look; 0: never */
    bool any;      /* result of the last look */
    size_t count;
    struct plim_starting_process {
        pid_t pid;
        uint64_t began, used; /* start and CPU time in ticks (process_stat.h) */
    } seen[PLIM_STARTING_MOST];
};

/* True if a process is starting up. `ancestor`: the ancestor of all processes of the trial; 0: not known.
 * `first_step_seconds`: the time until the first training step was seen. To be called repeatedly; looks at the
 * processes a few times a second and repeats its result in between. */
bool plim_starting_any(struct plim_starting *starting, const struct plim_machine *machine, pid_t ancestor,
                       double first_step_seconds);

#endif
