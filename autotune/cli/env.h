/* How env, which runs in hooks of job schedulers, reports failures. */
#ifndef PLIM_AUTOTUNE_CLI_ENV_H
#define PLIM_AUTOTUNE_CLI_ENV_H

#include "cli.h"
#include "request.h"

/* Reports why no variables are set. Returns PLIM_OK, or `st` with --strict. With --task-prolog it is reported in
 * Slurm's protocol, and `err` is empty afterwards. */
enum plim_status plim_env_fail_open(const struct plim_request *request, const struct plim_io *io,
                                    enum plim_status st, struct plim_error *err);

#endif
