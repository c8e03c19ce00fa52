/* --framework-python: how fast this machine launches operations, measured with the training framework. */
#ifndef PLIM_AUTOTUNE_CLI_HOST_SPEED_H
#define PLIM_AUTOTUNE_CLI_HOST_SPEED_H

#include "autotune/base/log.h"
#include "autotune/base/stop.h"
#include "request.h"
#include "workloads/spec/spec.h"

/* Sets the spec's train.host_speed to the measured speed; does nothing without the option. Measuring takes about ten
 * seconds; the store keeps the result for this kind of CPU, this Python and its packages. PLIM_INVALID: the speed
 * cannot be measured with that Python, or train.host_speed is given too. */
enum plim_status plim_host_speed_set(const struct plim_request *request, const struct plim_log *log,
                                     const struct plim_stop *stop, struct plim_spec *spec,
                                     struct plim_error *err) PLIM_MUST_CHECK;

#endif
