/* How fast a processor launches the operations of a framework, relative to the host of the simulated clock
 * (devices/sim/roofline.h).
 *
 * A step's launches are recorded on a virtual GPU, where launching is all that takes time; the clock gives the
 * time that its host would need for the same launches. The virtual driver's own time is included, and stands for
 * the real driver's: both take a few microseconds per launch.
 */
#ifndef PLIM_AUTOTUNE_RECORD_HOST_SPEED_H
#define PLIM_AUTOTUNE_RECORD_HOST_SPEED_H

#include "autotune/exec/execution.h"
#include "workloads/recording/trace.h"

/* From the trace of a program: how many times as fast as the clock's host it launched its fastest step (other load on
 * the machine only makes steps slower). The first two steps, which load and choose kernels, do not
 * count. 0: too few steps were recognised, or their launches are not known. */
enum plim_status plim_host_speed_of(const struct plim_trace *trace, double *speed,
                                    struct plim_error *err) PLIM_MUST_CHECK;

/* Runs some ten steps of a small model (host_speed.py) with `python`, a command or a path. `options` are
 * those of a trial on a virtual GPU, without a program. PLIM_INVALID: it cannot be run, or has no PyTorch;
 * `failed_log`, of 40 bytes, then names the log in options->logs with its last lines. PLIM_CANCELLED. */
enum plim_status plim_host_speed_measure(const char *python,
                                         const struct plim_execution_options *options, double *speed,
                                         char *failed_log, struct plim_error *err) PLIM_MUST_CHECK;

#endif
