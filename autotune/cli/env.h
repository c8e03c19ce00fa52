/* What fails in a hook. */
#ifndef PLIM_AUTOTUNE_CLI_ENV_H
#define PLIM_AUTOTUNE_CLI_ENV_H

#include "cli.h"
#include "request.h"

/* Says why nothing is set, and returns PLIM_OK, unless --strict was given. With --task-prolog it is
 * said in Slurm's protocol, and `err` is empty then. */
enum plim_status plim_env_fail_open(const struct plim_request *request, const struct plim_io *io,
                                    enum plim_status st, struct plim_error *err);

#endif
