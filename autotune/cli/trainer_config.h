/* A trainer's own config (transformers' arguments, LLaMA-Factory's YAML, a launch script ...) in the place of a spec:
 * its model, and what it says of the job as settings of that model's spec. */
#ifndef PLIM_AUTOTUNE_CLI_TRAINER_CONFIG_H
#define PLIM_AUTOTUNE_CLI_TRAINER_CONFIG_H

#include "cli.h"
#include "command.h"
#include "reports/configs/job.h"
#include "request.h"

/* What the texts of a completed request belong to. Zeroed is none. */
struct plim_trainer_config {
    struct plim_config_job job;
    char model[4096], config[320], effective_batch[24], micro_batch[24], accumulation[24],
        world[24];
};

/* Where the request's subject is a trainer's config, the request becomes: its model, with the settings that the config
 * makes, and those of the command line behind them, which count before them. Its sizes become the effective batch that
 * is kept; `explain` asks for them as they are. What is in no plan is logged as a warning. Any other subject is left as
 * it is. PLIM_SPEC: a value there has no place in a spec, or there is no plan of its
 * trainer's jobs. */
enum plim_status plim_trainer_config_apply(struct plim_request *request,
                                           enum plim_command_id command, const struct plim_io *io,
                                           struct plim_trainer_config *config,
                                           struct plim_error *err) PLIM_MUST_CHECK;
void plim_trainer_config_finish(struct plim_trainer_config *config); /* NULL and zeroed are fine */

#endif
