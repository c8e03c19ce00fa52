/* A spec's plan, proven with the user's own program.
 *
 * The plan ranks the settings; each one that could win is then run by the program itself, as
 * exec runs it: on a virtual GPU where the device is simulated, else on the GPU. The program's trial decides
 * whether a setting fits and how much memory it takes and, on a real GPU, how long a step takes. Everything
 * else comes from the plan: what memory is used for, seconds where the program's are not known, and what
 * would be needed without a limit.
 */
#ifndef PLIM_AUTOTUNE_DECIDE_PROVER_H
#define PLIM_AUTOTUNE_DECIDE_PROVER_H

#include "autotune/base/log.h"
#include "autotune/exec/executor.h"
#include "autotune/run/run_device.h"
#include "reports/result.h"

struct plim_prover;

/* How the program is run. Everything outlives the prover. */
struct plim_proving {
    const struct plim_program *program;    /* its axes are those of the spec's question */
    struct plim_execution_options options; /* GPUs, program and stop are filled in here */
    int64_t gpus, jobs;
};

/* Creates a prover on this device, which is open and outlives it: a simulated GPU, or a real one that was opened
 * for a program. */
enum plim_status plim_prover_create(const struct plim_proving *proving,
                                    const struct plim_run_device *device,
                                    const struct plim_stop *stop, struct plim_prover **out,
                                    struct plim_error *err) PLIM_MUST_CHECK;
void plim_prover_destroy(struct plim_prover **prover); /* ends trials that still run */

/* The runner that plans, and the runner that runs what was planned: for plim_decide(). They live as long as the
 * prover. */
const struct plim_runner *plim_prover_planner(const struct plim_prover *prover);
const struct plim_runner *plim_prover_runner(const struct plim_prover *prover);

/* Adds the outcome of the program's trials to a result; `choice` is the one that was chosen (NULL: none). Logs
 * the last lines of a trial that failed for another reason than memory. */
void plim_prover_tell(const struct plim_prover *prover, const struct plim_setting *choice,
                      const struct plim_log *log, struct plim_result *result);

#endif
