/* One setting on one open device, for explain and report. */
#ifndef PLIM_AUTOTUNE_CLI_INSPECT_H
#define PLIM_AUTOTUNE_CLI_INSPECT_H

#include "autotune/decide/fleet.h"
#include "asked_question.h"
#include "common.h"

/* Too large for the stack. */
struct plim_inspected {
    struct plim_asked_question asked;
    struct plim_target target;
    struct plim_allowance allowance;
    struct plim_ring ring;
    struct plim_run_options options;
    struct plim_run_device device;
    struct plim_setting setting; /* the first value of every axis */
};

/* Opens the device for the request's spec, at its first setting. All arguments must outlive `out`, which the caller
 * closes in any case. */
enum plim_status plim_inspect_open(const struct plim_request *request, const struct plim_log *log,
                                   const struct plim_stop *stop, struct plim_inspected *out,
                                   struct plim_error *err) PLIM_MUST_CHECK;
void plim_inspect_close(struct plim_inspected *inspected); /* NULL is allowed */

#endif
