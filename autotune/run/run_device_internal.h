/* What run_device_real.c (workers and twins) and run_device.c (which opens either) take from
 * run_device_sim.c (simulated GPUs), and how they open. */
#ifndef PLIM_AUTOTUNE_RUN_DEVICE_INTERNAL_H
#define PLIM_AUTOTUNE_RUN_DEVICE_INTERNAL_H

#include "run_device.h"

/* Takes what is known of the device; `d->gpu` comes first. */
void plim_run_describe(struct plim_run_device *d, const struct plim_device_info *info);

/* What came of a replay, as the search sees it; `replay` becomes its details. */
void plim_run_trial(const struct plim_replay *replay, struct plim_trial *out);

/* Our launches cost the host some 3 us, those of eager PyTorch 11 to 20. Where launching a step as it
 * does takes longer than what was measured, that is the step's time, and it is host-bound. */
void plim_run_charge_host(struct plim_replay *measured, double launching_seconds);

/* What may be used of `usable_bytes`: as plim_allowance_limit(), and among several GPUs less what
 * NCCL takes. */
struct plim_limit plim_run_limit(const struct plim_run_device *d, int64_t usable_bytes,
                                 int64_t estimate_bytes, int64_t measured_bytes);

/* Replays on `d->gpu`, simulated. */
enum plim_status plim_run_simulate(struct plim_run_device *d, const struct plim_setting *setting,
                                   enum plim_run_mode mode, struct plim_replay *out,
                                   struct plim_error *err) PLIM_MUST_CHECK;
/* The same as a runner. */
struct plim_runner plim_run_simulator(struct plim_run_device *d);

/* Open what `d->options` names. */
enum plim_status plim_run_open_simulated(struct plim_run_device *d,
                                         struct plim_error *err) PLIM_MUST_CHECK;
void plim_run_close_simulated(struct plim_run_device *d); /* what a simulated GPU, or a twin, holds */
enum plim_status plim_run_open_cuda(struct plim_run_device *d,
                                    struct plim_error *err) PLIM_MUST_CHECK;
enum plim_status plim_run_open_host(struct plim_run_device *d,
                                    struct plim_error *err) PLIM_MUST_CHECK;

#endif
