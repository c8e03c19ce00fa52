#include "rest.h"
#include <stdio.h>

void plim_rest_count(struct plim_rest_seen *seen, const struct plim_machine_process *process)
{
    bool works = !process->ended && process->launches > 0;
    seen->steady += process->steady;
    seen->still += process->still;
    seen->not_steady += works && !process->steady;
    seen->not_still += works && !process->still;
}

/* Forecasts the growth of all still processes. *steps is the number of steps until the last growth of any; 0: none
 * grows. Returns false if there is no forecast for one of them. */
static bool forecast_growth(const struct plim_rest *rest, const struct plim_machine *machine,
                            int64_t *steps)
{
    *steps = 0;
    for (int i = 0; i < PLIM_MACHINE_PROCESSES; i++) {
        struct plim_machine_process process;
        struct plim_forecast forecast;
        struct plim_error ignored;
        char name[16];
        if (!machine->processes[i].pid) continue;
        plim_machine_read_process(machine, i, &process);
        if (!process.still) continue;
        snprintf(name, sizeof(name), "%d", process.pid);
        if (plim_forecast_make(rest->folder, name, &rest->allocator, &forecast, &ignored) ||
            !forecast.is_known)
            return false;
        if (forecast.steps > *steps) *steps = forecast.steps;
    }
    return true;
}

bool plim_rest_is_reached(struct plim_rest *rest, const struct plim_machine *machine,
                          const struct plim_rest_seen *seen)
{
    bool is_still = seen->still > 0 && !seen->not_still;
    bool is_steady = seen->steady > 0 && !seen->not_steady;
    int64_t steps;
    if (!is_still || seen->steps < rest->least_steps) return false;
    if (seen->steps >= rest->next_look && seen->steps < PLIM_FORECAST_STEPS) {
        rest->next_look = seen->steps + rest->repetitions;
        bool is_known = forecast_growth(rest, machine, &steps);
        rest->foreseen = is_known && !steps ? rest->foreseen + 1 : 0;
        if (is_known && steps) {
            rest->least_steps = rest->next_look = seen->steps + steps + rest->repetitions;
            return false;
        }
    }
    return is_steady || rest->foreseen > 1;
}
