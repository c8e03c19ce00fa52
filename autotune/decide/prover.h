/* Proves a spec's plan with the user's own program.
 *
 * The plan ranks the settings; those that could win are then run by the program, as exec runs it: on a virtual GPU if
 * the device is simulated, otherwise on the GPU. The program's trials decide whether a setting fits, how much memory it
 * takes and, on a real GPU, the time of a step. The rest comes from the plan: what memory is used for, times that the
 * program does not give, and the memory needed without a limit. */
#ifndef PLIM_AUTOTUNE_DECIDE_PROVER_H
#define PLIM_AUTOTUNE_DECIDE_PROVER_H

#include "autotune/base/log.h"
#include "autotune/exec/executor.h"
#include "autotune/run/run_device.h"
#include "reports/result.h"

struct plim_prover;

/* How to run the program. All pointers must outlive the prover. */
struct plim_proving {
    const struct plim_program *program;    /* its axes must be those of the spec's question */
    struct plim_execution_options options; /* GPUs, program and stop are filled in here */
    int64_t gpus, jobs; /* number of GPUs of a trial; of trials at a time */
};

/* Creates a prover. `device` must be open and outlive it: a simulated GPU, or a real one opened for a program. If this
 * fails, *out must still be destroyed. */
enum plim_status plim_prover_create(const struct plim_proving *proving,
                                    const struct plim_run_device *device,
                                    const struct plim_stop *stop, struct plim_prover **out,
                                    struct plim_error *err) PLIM_MUST_CHECK;
void plim_prover_destroy(struct plim_prover **prover); /* ends trials that still run */

/* Return the runner for the plan, and the runner that runs the program, for plim_decide(). Owned by the prover. */
const struct plim_runner *plim_prover_planner(const struct plim_prover *prover);
const struct plim_runner *plim_prover_runner(const struct plim_prover *prover);

/* Adds the reasons from the program's trials to a result; `choice` is the chosen setting (NULL: none). Logs the last
 * lines of the last trial that failed for a reason other than memory. */
void plim_prover_add_reasons(const struct plim_prover *prover, const struct plim_setting *choice,
                             const struct plim_log *log, struct plim_result *result);

#endif
