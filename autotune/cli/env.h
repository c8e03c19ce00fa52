/* Failures of env, which runs in hooks of job schedulers. */
#ifndef PLIM_AUTOTUNE_CLI_ENV_H
#define PLIM_AUTOTUNE_CLI_ENV_H

#include "cli.h"
#include "request.h"

/* Reports why nothing is set, and returns PLIM_OK, unless --strict was given. With --task-prolog it is
 * reported in Slurm's protocol, and `err` is empty afterwards. */
enum plim_status plim_env_fail_open(const struct plim_request *request, const struct plim_io *io,
                                    enum plim_status st, struct plim_error *err);

#endif
