/* Measures how fast a CPU launches the operations of a framework, relative to the host of the simulated clock
 * (devices/sim/roofline.h).
 *
 * The launches of a step are recorded on a virtual GPU, on which only launching takes time; the clock gives the time
 * that its host would need for the same launches. The virtual driver's own time is included, in place of the real
 * driver's: both take a few microseconds per launch. */
#ifndef PLIM_AUTOTUNE_RECORD_HOST_SPEED_H
#define PLIM_AUTOTUNE_RECORD_HOST_SPEED_H

#include "autotune/exec/execution.h"
#include "workloads/recording/trace.h"

/* Computes the speed from the trace of a program: *speed is the time of the clock's host over the time of the program,
 * for its fastest step (other load on the machine only makes steps slower). The first two steps, which load and choose
 * kernels, do not count. 0: too few steps were recognised, or their launches are not known. */
enum plim_status plim_host_speed_of(const struct plim_trace *trace, double *speed,
                                    struct plim_error *err) PLIM_MUST_CHECK;

/* Measures the speed with about ten steps of a small model (host_speed.py), run by `python`, a command or a path.
 * `options` are those of a trial on a virtual GPU, without a program. PLIM_INVALID: it cannot be run, or has no
 * PyTorch; the name of its log in options->logs is then stored in `failed_log`, which has 40 bytes. PLIM_CANCELLED. */
enum plim_status plim_host_speed_measure(const char *python,
                                         const struct plim_execution_options *options, double *speed,
                                         char *failed_log, struct plim_error *err) PLIM_MUST_CHECK;

#endif
