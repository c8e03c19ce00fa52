/* How fast a processor launches the operations of a framework, against the host of the simulated clock
 * (devices/sim/roofline.h).
 *
 * What a step launches is seen on a virtual GPU, where launching is all that takes time; the clock says what
 * launching as much takes its host. The virtual driver's own time is in it, and stands for the real
 * driver's: both take a few microseconds a launch.
 */
#ifndef PLIM_AUTOTUNE_RECORD_HOST_SPEED_H
#define PLIM_AUTOTUNE_RECORD_HOST_SPEED_H

#include "autotune/exec/execution.h"
#include "workloads/recording/trace.h"

/* Of a traced program: how many times as fast as the clock's host it launched its fastest step, as what
 * else a machine does only makes steps slower. The first two steps, which load and choose kernels, do not
 * count. 0: too few steps were recognised, or nothing is known of what they launch. */
enum plim_status plim_host_speed_of(const struct plim_trace *trace, double *speed,
                                    struct plim_error *err) PLIM_MUST_CHECK;

/* Runs some ten steps of a small model (host_speed.py) with `python`, a command or a path. `options` are
 * of a trial on a virtual GPU, without a program. PLIM_INVALID: it cannot be run, or has no PyTorch; its
 * last lines are in `failed_log`, of 40 bytes, in options->logs. PLIM_CANCELLED. */
enum plim_status plim_host_speed_measure(const char *python,
                                         const struct plim_execution_options *options, double *speed,
                                         char *failed_log, struct plim_error *err) PLIM_MUST_CHECK;

#endif
