/* Has a trial's memory reached what it will stay at? Its processes say whether their peaks are still and their blocks
 * lie where they lay before (devices/virtual/steps); whether they will is foreseen (forecast.h). A trial whose
 * allocator will ask for more goes on until it has. Where blocks still move, two forecasts have to say that it will
 * not: the second knows the sizes of blocks better. */
#ifndef PLIM_AUTOTUNE_EXEC_REST_H
#define PLIM_AUTOTUNE_EXEC_REST_H

#include "autotune/trace/forecast.h"
#include "devices/virtual/machine/machine.h"

struct plim_rest {
    const char *folder; /* where the processes write down their blocks */
    struct plim_forecast_allocator allocator;
    int repetitions; /* of a steady peak that a trial waits for */
    int64_t next_look, least_steps;
    int foreseen; /* looks in a row that saw no growth to come */
};

/* What the processes of a machine say, at a look at it. */
struct plim_rest_seen {
    int64_t steady, still;         /* processes that are (machine.h) */
    int64_t not_steady, not_still; /* that use a GPU and are not */
    int64_t steps;                 /* that all have done which do steps */
};

void plim_rest_count(struct plim_rest_seen *seen, const struct plim_machine_process *process);

/* Cheap where no step was done since it was asked last. */
bool plim_rest_is_reached(struct plim_rest *rest, const struct plim_machine *machine,
                          const struct plim_rest_seen *seen);

#endif
