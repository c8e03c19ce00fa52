/* Has a trial's memory reached its final level? Its processes report whether their peaks have stopped growing and
 * whether their blocks lie where they did before (devices/virtual/steps); a forecast says whether memory will still
 * grow (forecast.h). If it will, the trial continues until it has. While blocks still move, two forecasts in a row
 * have to say that it will not: the second knows the sizes of blocks better. */
#ifndef PLIM_AUTOTUNE_EXEC_REST_H
#define PLIM_AUTOTUNE_EXEC_REST_H

#include "autotune/trace/forecast.h"
#include "devices/virtual/machine/machine.h"

struct plim_rest {
    const char *folder; /* where the processes record their blocks */
    struct plim_forecast_allocator allocator;
    int repetitions; /* how many steps with a steady peak a trial waits for */
    int64_t next_look, least_steps;
    int foreseen; /* how many forecasts in a row saw no growth to come */
};

/* The state of a machine's processes. */
struct plim_rest_seen {
    int64_t steady, still;         /* processes that are steady, still (machine.h) */
    int64_t not_steady, not_still; /* processes that use a GPU and are not */
    int64_t steps;                 /* steps that every process with steps has done */
};

void plim_rest_count(struct plim_rest_seen *seen, const struct plim_machine_process *process);

/* Cheap if no step was done since the last call. */
bool plim_rest_is_reached(struct plim_rest *rest, const struct plim_machine *machine,
                          const struct plim_rest_seen *seen);

#endif
