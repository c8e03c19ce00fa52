/* Decides whether a trial's memory has reached its final level. Its processes report whether their peaks have stopped
 * growing (steady) and whether their blocks lie where they did in earlier steps (still; devices/virtual/steps). A
 * forecast says whether memory will still grow (forecast.h). If it will, the trial continues until it has. If the peaks
 * are not steady, two forecasts in a row must say that it will not: the second knows the sizes of blocks better. */
#ifndef PLIM_AUTOTUNE_EXEC_REST_H
#define PLIM_AUTOTUNE_EXEC_REST_H

#include "autotune/trace/forecast.h"
#include "devices/virtual/machine/machine.h"

struct plim_rest {
    const char *folder; /* the folder in which the processes record their blocks */
    struct plim_forecast_allocator allocator;
    int repetitions; /* steps with a steady peak that a trial waits for */
    int64_t next_look, least_steps; /* numbers of steps: of the next forecast; before which the trial does not end */
    int foreseen; /* number of forecasts in a row that predicted no growth */
};

/* The state of a trial's processes. */
struct plim_rest_seen {
    int64_t steady, still;         /* number of processes that are steady, still (machine.h) */
    int64_t not_steady, not_still; /* number of processes that use a GPU and are not */
    int64_t steps;                 /* the fewest steps of a process that has done any */
};

/* Adds the state of a process to `seen`, except `steps`. */
void plim_rest_count(struct plim_rest_seen *seen, const struct plim_machine_process *process);

/* True if memory has reached its final level. Cheap if no step was done since the last call. */
bool plim_rest_is_reached(struct plim_rest *rest, const struct plim_machine *machine,
                          const struct plim_rest_seen *seen);

#endif
