/* Functions of run_device_sim.c (simulated GPUs) that run_device_real.c (workers and twins) and run_device.c
 * (which opens either) use, and the functions that open devices. */
#ifndef PLIM_AUTOTUNE_RUN_DEVICE_INTERNAL_H
#define PLIM_AUTOTUNE_RUN_DEVICE_INTERNAL_H

#include "run_device.h"

/* Copies the device's properties; `d->gpu` must be set before. */
void plim_run_describe(struct plim_run_device *d, const struct plim_device_info *info);

/* The trial for the search from a replay, which becomes its details. */
void plim_run_trial(const struct plim_replay *replay, struct plim_trial *out);

/* Our launches cost the host some 3 us, those of eager PyTorch 11 to 20. If launching a step as PyTorch
 * does takes longer than the measured time, that is the step's time, and the step is host-bound. */
void plim_run_charge_host(struct plim_replay *measured, double launching_seconds);

/* The limit for `usable_bytes`: as plim_allowance_limit(), and with several GPUs less NCCL's memory. */
struct plim_limit plim_run_limit(const struct plim_run_device *d, int64_t usable_bytes,
                                 int64_t estimate_bytes, int64_t measured_bytes);

/* Replays a setting on the simulated `d->gpu`. */
enum plim_status plim_run_simulate(struct plim_run_device *d, const struct plim_setting *setting,
                                   enum plim_run_mode mode, struct plim_replay *out,
                                   struct plim_error *err) PLIM_MUST_CHECK;
/* The same as a runner. */
struct plim_runner plim_run_simulator(struct plim_run_device *d);

/* Open what `d->options` names. */
enum plim_status plim_run_open_simulated(struct plim_run_device *d,
                                         struct plim_error *err) PLIM_MUST_CHECK;
void plim_run_close_simulated(struct plim_run_device *d); /* frees what a simulated GPU or a twin holds */
enum plim_status plim_run_open_cuda(struct plim_run_device *d,
                                    struct plim_error *err) PLIM_MUST_CHECK;
enum plim_status plim_run_open_host(struct plim_run_device *d,
                                    struct plim_error *err) PLIM_MUST_CHECK;

#endif
