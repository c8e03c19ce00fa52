/* Replays one setting on one device: optimizer steps of the training loop, run by the engine.
 *
 * The loop is the one that the golden runs measure (tests/golden):
 *     create the model, the batch, the optimizer
 *     four times:  accumulation times: forward, loss, backward;   [clip];  step;  zero_grad(None)
 *
 * Step 2 is reported, not step 1, because optimizer states are allocated in step 1. That these four steps fit into the
 * device's memory does not prove that all later ones do: fragmentation of cached memory may matter only in step 17. The
 * proof is a step that ends in the same state as an earlier one (plim_replay_prove()):
 *
 *   - The requests and frees of a step, and their order, do not depend on values. From the second step on they are
 *     always the same: the states of the optimizer and of the gradient scaler and the libraries' workspaces exist by
 *     then, gradients are None again at the end of a step, and the autocast cache is empty.
 *   - Everything still held at the end of a step is held until the end of the run, so it does not matter which tensor
 *     is in which block, only which blocks are held.
 *   - So two steps differ only in the state of the allocator at their start. Where that is equal
 *     (plim_allocator_fingerprint()) to the state at the end of an earlier step, everything from there on repeats, and
 *     since nothing has failed so far, nothing ever will.
 *
 * The same holds within a step: gradients allocated by the first micro-step stay in place, and the next ones add to
 * them. So when a micro-step ends in the same state as an earlier one, those between the two repeat. On a device that
 * computes nothing the repetitions are skipped, and the clock advances as if they had run (plim_device_repeat()): a
 * step of 512 micro-steps costs as much as one of a few, and has the same numbers (seconds only nearly so if a
 * micro-step returns memory to the driver, because the position of that among the launches is not kept). Micro-steps
 * that are not found to repeat within PLIM_REPLAY_PROOF_MICRO_STEPS are assumed to repeat if no retry was needed so
 * far; otherwise the setting does not fit. The fourth step is skipped in the same way if the third ends as it began.
 *
 * Micro-steps and steps that start from another state of the allocator have to be followed, but need not be run again:
 * from the third on they are played from a tape of their requests and frees (workloads/engine/tape.h). With several
 * GPUs, whose transfers have a clock of their own, they are run. While a trace or a timeline is recorded everything is
 * run.
 *
 * The tensors that transformers' Trainer keeps from one step to the next, batches and losses, are small and are placed
 * elsewhere each time, so hundreds of steps may pass until the state repeats. Small blocks (up to 1 MiB) have segments
 * of their own, which do not affect large blocks as long as memory does not run out. It is therefore enough that the
 * large blocks repeat, that small ones took no more memory for PLIM_REPLAY_SETTLED_STEPS, and that some memory is left.
 * This is no proof, and is reported separately (`small_blocks_move`).
 *
 * A replayer keeps its pools between runs; a search creates one per device and thread. */
#ifndef PLIM_WORKLOADS_REPLAY_H
#define PLIM_WORKLOADS_REPLAY_H

#include "devices/allocator/allocator.h"
#include "devices/device.h"
#include "replayed.h"
#include "workloads/spec/spec.h"
#include <stdio.h>

enum {
    PLIM_REPLAY_PROOF_STEPS = 256,       /* within which the state has to repeat */
    PLIM_REPLAY_SETTLED_STEPS = 24,      /* or, if that of large blocks repeats, in which small ones take no more */
    PLIM_REPLAY_PROOF_MICRO_STEPS = 1024 /* the same within a step */
};

struct plim_replayer;

/* The device must outlive the replayer. `config` NULL: the allocator's defaults. */
enum plim_status plim_replayer_create(struct plim_device *device,
                                      const struct plim_allocator_config *config,
                                      struct plim_replayer **out,
                                      struct plim_error *err) PLIM_MUST_CHECK;
void plim_replayer_destroy(struct plim_replayer **replayer);

/* How the GPUs are connected. Bandwidths are in bytes per second in one direction. */
struct plim_links {
    double gpu_bandwidth;  /* from a GPU to another one of its machine; 0: unknown */
    double node_bandwidth; /* from a machine to the others, the sum of its network adapters */
    int64_t gpus_per_node;
    double gpu_latency; /* seconds of an all-reduce on one machine in addition to its bytes' time; 0: unknown */
    int measured_gpus;  /* gpu_bandwidth and gpu_latency were measured with this many GPUs; 0: they are modelled */
};
/* Sets the links for subsequent runs. By default none are known, and communication takes no time. */
void plim_replayer_links(struct plim_replayer *replayer, const struct plim_links *links);

/* Runs four steps of `model` with `setting` on an empty device. Out of memory is a verdict in `out`, not a failure of
 * the call; the call fails only if nothing can be run (no host memory, a lost device). */
enum plim_status plim_replay_run(struct plim_replayer *replayer,
                                 const struct plim_model_config *model,
                                 const struct plim_train_setting *setting, struct plim_replay *out,
                                 struct plim_error *err) PLIM_MUST_CHECK;

/* Runs steps until they repeat, or PLIM_REPLAY_PROOF_STEPS of them. On a device that computes, repetition is never
 * detected. */
enum plim_status plim_replay_prove(struct plim_replayer *replayer,
                                   const struct plim_model_config *model,
                                   const struct plim_train_setting *setting,
                                   struct plim_replay *out, struct plim_error *err) PLIM_MUST_CHECK;
/* Runs the steps one by one, for as many as the caller wants: begin, then next until it returns false (the setting
 * cannot run any further; end tells why), then end. plim_replay.step has the first four. */
void plim_replay_begin(struct plim_replayer *replayer, const struct plim_model_config *model,
                       const struct plim_train_setting *setting);
bool plim_replay_next(struct plim_replayer *replayer, struct plim_replay_step *step);
enum plim_status plim_replay_end(struct plim_replayer *replayer, struct plim_replay *out,
                                 struct plim_error *err) PLIM_MUST_CHECK;

/* Called before each micro-step. If it returns true, the run is ended and fails with PLIM_CANCELLED and no message, as
 * the caller knows the reason. NULL: the run is never ended. */
typedef bool plim_replay_stop(const void *user);
void plim_replayer_stop(struct plim_replayer *replayer, plim_replay_stop *stop, const void *user);

/* Writes the allocations ("a ID BYTES") and frees ("f ID") of subsequent runs to `file` (NULL: off), in the format of
 * the golden traces. For finding differences from PyTorch: scripts/compare-traces. */
void plim_replayer_trace(struct plim_replayer *replayer, FILE *file);

/* Records the allocations of the second optimizer step of subsequent runs, or of the first one if there is no second
 * (NULL: off). Every micro-step of the step is run. */
void plim_replayer_timeline(struct plim_replayer *replayer, struct plim_timeline *timeline);

#endif
