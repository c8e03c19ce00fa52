/* Uses a plimsoll report instead of a spec: its spec, device and choice. */
#ifndef PLIM_AUTOTUNE_CLI_EARLIER_H
#define PLIM_AUTOTUNE_CLI_EARLIER_H

#include "autotune/base/yaml.h"
#include "cli.h"
#include "request.h"

/* Owns strings to which a completed request points. Empty when zeroed. */
struct plim_earlier {
    struct plim_yaml report;
    char source[512]; /* path or name of the spec */
    bool is_other;    /* the spec has changed since the report was made */
};

/* If the request's subject is a report (plimsoll.result/1, plimsoll.explain/1 or a plimsoll.plan/1 with one result, as
 * JSON or YAML), changes the request to: the report's spec, with its options, at its choice, on its device within its
 * limits. The command line overrides all of these; the limits are not used with another device. Other subjects are left
 * unchanged. PLIM_INVALID: the report cannot be used in this way; the message has the reason. */
enum plim_status plim_earlier_apply(struct plim_request *request, const struct plim_io *io,
                                    struct plim_earlier *earlier,
                                    struct plim_error *err) PLIM_MUST_CHECK;

void plim_earlier_finish(struct plim_earlier *earlier); /* NULL or a zeroed one is allowed */

#endif
