/* A plimsoll report given instead of a spec: its spec, device and choice are used again. */
#ifndef PLIM_AUTOTUNE_CLI_EARLIER_H
#define PLIM_AUTOTUNE_CLI_EARLIER_H

#include "autotune/base/yaml.h"
#include "cli.h"
#include "request.h"

/* Owns the texts of a completed request. Zeroed is none. */
struct plim_earlier {
    struct plim_yaml report;
    char source[512]; /* of the spec */
    bool is_other;    /* the spec has changed since the report was made */
};

/* Where the request's subject is a report (plimsoll.result/1, plimsoll.explain/1 or a plimsoll.plan/1
 * with one result, as JSON or YAML), the request becomes: its spec, with the options it was made
 * with, at the setting it chose, on its device within its limits. The command line overrides all of
 * that; with another device the report's limits are not used. Any other subject is left
 * unchanged. PLIM_INVALID, with the reason, for a report that cannot be used this way. */
enum plim_status plim_earlier_apply(struct plim_request *request, const struct plim_io *io,
                                    struct plim_earlier *earlier,
                                    struct plim_error *err) PLIM_MUST_CHECK;

void plim_earlier_finish(struct plim_earlier *earlier); /* NULL and zeroed are fine */

#endif
