/* A spec's plan, proven with the user's own program.
 *
 * The plan says which settings promise most; each that could win is then run by the program itself, as
 * exec runs it: on a virtual GPU where the device is simulated, else on the GPU. Whether a setting fits
 * and what the GPU has to hold is what came of the program's trial, and, on a real GPU, so is how long a
 * step takes. All else is the plan's: what memory is for, seconds where the program tells none, and what
 * would be needed without a limit.
 */
#ifndef PLIM_AUTOTUNE_DECIDE_PROVER_H
#define PLIM_AUTOTUNE_DECIDE_PROVER_H

#include "autotune/base/log.h"
#include "autotune/exec/executor.h"
#include "autotune/run/run_device.h"
#include "reports/result.h"

struct plim_prover;

/* What a program is run with. Everything outlives the prover. */
struct plim_proving {
    const struct plim_program *program;    /* its axes are those of the spec's question */
    struct plim_execution_options options; /* GPUs, program and stop are filled in here */
    int64_t gpus, jobs;
};

/* A prover on this device, which is open and outlives it: a simulated GPU, or a real one that was opened
 * for a program. */
enum plim_status plim_prover_create(const struct plim_proving *proving,
                                    const struct plim_run_device *device,
                                    const struct plim_stop *stop, struct plim_prover **out,
                                    struct plim_error *err) PLIM_MUST_CHECK;
void plim_prover_destroy(struct plim_prover **prover); /* ends trials that still run */

/* Who plans, and who runs what was planned: for plim_decide(). They live as long as the prover. */
const struct plim_runner *plim_prover_planner(const struct plim_prover *prover);
const struct plim_runner *plim_prover_runner(const struct plim_prover *prover);

/* Says in a result what the program's trials came to, of which the choice was one (NULL: there is none).
 * Of a trial that failed, and not for want of memory, the last lines are logged. */
void plim_prover_tell(const struct plim_prover *prover, const struct plim_setting *choice,
                      const struct plim_log *log, struct plim_result *result);

#endif
