/* Uses a trainer's config (transformers' arguments, LLaMA-Factory's YAML, a launch script and so on) instead of a spec:
 * its model, and its options as settings of that model's spec. */
#ifndef PLIM_AUTOTUNE_CLI_TRAINER_CONFIG_H
#define PLIM_AUTOTUNE_CLI_TRAINER_CONFIG_H

#include "cli.h"
#include "command.h"
#include "reports/configs/job.h"
#include "request.h"

/* Owns strings to which a completed request points. Empty when zeroed. */
struct plim_trainer_config {
    struct plim_config_job job;
    char model[4096], config[320], effective_batch[24], micro_batch[24], accumulation[24],
        world[24];
};

/* If the request's subject is a trainer's config, changes the request to its model with the settings of the config,
 * followed by those of the command line, which override them. The effective batch follows from the config's sizes and
 * is kept; `explain` uses the sizes themselves. Options that are not planned are logged as a warning. Other subjects
 * are left unchanged. PLIM_SPEC: a value cannot be expressed in a spec, or jobs of this trainer cannot be planned. */
enum plim_status plim_trainer_config_apply(struct plim_request *request,
                                           enum plim_command_id command, const struct plim_io *io,
                                           struct plim_trainer_config *config,
                                           struct plim_error *err) PLIM_MUST_CHECK;
void plim_trainer_config_finish(struct plim_trainer_config *config); /* NULL or a zeroed one is allowed */

#endif
