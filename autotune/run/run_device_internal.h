/* Functions that run_device.c, run_device_sim.c (simulated GPUs) and run_device_real.c (workers and twins) share. */
#ifndef PLIM_AUTOTUNE_RUN_DEVICE_INTERNAL_H
#define PLIM_AUTOTUNE_RUN_DEVICE_INTERNAL_H

#include "run_device.h"

/* Sets the device's properties from `info`, and its peak rates from `d->gpu`, which must be set. */
void plim_run_describe(struct plim_run_device *d, const struct plim_device_info *info);

/* Fills in a trial from a replay, to which `details` points. */
void plim_run_trial(const struct plim_replay *replay, struct plim_trial *out);

/* A launch by plimsoll costs the host about 3 us, one by eager PyTorch 11 to 20. If PyTorch's launches of a step take
 * longer than the measured time, they are its time, and the step is host-bound. */
void plim_run_charge_host(struct plim_replay *measured, double launching_seconds);

/* As plim_allowance_limit(), but also subtracts the memory of NCCL communicators and of a vLLM in the process. */
struct plim_limit plim_run_limit(const struct plim_run_device *d, int64_t usable_bytes,
                                 int64_t estimate_bytes, int64_t measured_bytes);

/* Replays a setting on the simulated `d->gpu`. */
enum plim_status plim_run_simulate(struct plim_run_device *d, const struct plim_setting *setting,
                                   enum plim_run_mode mode, struct plim_replay *out,
                                   struct plim_error *err) PLIM_MUST_CHECK;
/* Returns a runner that does so. */
struct plim_runner plim_run_simulator(struct plim_run_device *d);

/* Open the device that `d->options` names. */
enum plim_status plim_run_open_simulated(struct plim_run_device *d,
                                         struct plim_error *err) PLIM_MUST_CHECK;
void plim_run_close_simulated(struct plim_run_device *d); /* frees what a simulated GPU or a twin holds */
enum plim_status plim_run_open_cuda(struct plim_run_device *d,
                                    struct plim_error *err) PLIM_MUST_CHECK;
enum plim_status plim_run_open_host(struct plim_run_device *d,
                                    struct plim_error *err) PLIM_MUST_CHECK;

#endif
