/* One setting on one device: optimizer steps of the training loop, run by the engine.
 *
 * The loop is the one that `golden/` was measured with:
 *     build the model, the batch, the optimizer
 *     four times:  accumulation times: forward, loss, backward;   [clip];  step;  zero_grad(None)
 *
 * Step 2 counts, not step 1: optimizer states are made in step 1. That these four steps fit into the
 * device's memory does not prove that all later ones do: fragmentation of cached memory may matter only in
 * step 17. The proof is a step that ends in the same state as an earlier one (plim_replay_prove()):
 *
 *   - the requests and frees of a step, and their order, do not depend on values. From the
 *     second step on they are the same every time: the optimizer's states, its scaler's and the
 *     libraries' workspaces exist by then, gradients are None again when a step ends, and the
 *     cache of autocast is empty;
 *   - all that is still held when a step ends is held for ever, so it does not matter which tensor
 *     is in which block, only which blocks are held;
 *   - so two steps differ in nothing but the state of the allocator that they begin with. Where
 *     that is equal (plim_allocator_fingerprint()) to the state at the end of an earlier step,
 *     everything from there on repeats, and since nothing has failed so far, nothing ever will.
 *
 * The same holds inside a step: gradients that the first micro-step made stay where they are, and the
 * next ones add to them. So when a micro-step ends in the same state as an earlier one,
 * those between the two repeat. On a device that computes nothing the repetitions are left out, and the
 * clock goes on as if they had run (plim_device_repeat()): a step of 512 micro-steps costs as much
 * as one of a few, and has the same numbers (seconds nearly so where a micro-step returns memory to
 * the driver, because its position among the launches is not kept). Micro-steps that are not seen to repeat within
 * PLIM_REPLAY_PROOF_MICRO_STEPS are assumed to repeat where no retry was needed so far; else the setting does not fit.
 * The fourth step is left out in the same way where the third ends as it began.
 *
 * Micro-steps and steps that start from another state of the allocator have to be followed, but need not be run
 * again: from the third on they are played from a tape of their requests and frees
 * (workloads/engine/tape.h). With several GPUs, whose transfers have a clock of their
 * own, they are run. While a trace or a timeline is written everything is run.
 *
 * The tensors that transformers' Trainer keeps from one step to the next, batches and losses, are small and lie
 * elsewhere each time, so that hundreds of steps may pass until the state repeats. Small blocks (up to 1 MiB) have
 * segments of their own, which do not affect large blocks as long as memory does not run out: so it is enough that the
 * large ones repeat, that small ones took no more memory for PLIM_REPLAY_SETTLED_STEPS, and that there is some to
 * spare. This is no proof, and is reported separately (`small_blocks_move`).
 *
 * A replayer keeps its pools between runs; a search makes one per device and thread.
 */
#ifndef PLIM_WORKLOADS_REPLAY_H
#define PLIM_WORKLOADS_REPLAY_H

#include "devices/allocator/allocator.h"
#include "devices/device.h"
#include "replayed.h"
#include "workloads/spec/spec.h"
#include <stdio.h>

enum {
    PLIM_REPLAY_PROOF_STEPS = 256,       /* in which the state has to repeat */
    PLIM_REPLAY_SETTLED_STEPS = 24,      /* or, where that of large blocks does, small ones take no more */
    PLIM_REPLAY_PROOF_MICRO_STEPS = 1024 /* the same inside a step */
};

struct plim_replayer;

/* The device outlives the replayer. `config` NULL: the allocator's defaults. */
enum plim_status plim_replayer_create(struct plim_device *device,
                                      const struct plim_allocator_config *config,
                                      struct plim_replayer **out,
                                      struct plim_error *err) PLIM_MUST_CHECK;
void plim_replayer_destroy(struct plim_replayer **replayer);

/* How the GPUs are connected; bytes a second in one direction. */
struct plim_links {
    double gpu_bandwidth;  /* from a GPU to another of its machine; 0: not known */
    double node_bandwidth; /* from a machine to the others, all its network adapters together */
    int64_t gpus_per_node;
    double gpu_latency; /* seconds of an all-reduce on one machine besides its bytes; 0: not known */
    int measured_gpus;  /* gpu_bandwidth and gpu_latency were measured with so many GPUs; 0: they are modelled */
};
/* Sets the links for the runs that follow; by default none are known, and communication takes no time. */
void plim_replayer_links(struct plim_replayer *replayer, const struct plim_links *links);

/* Runs four steps of `model` with `setting` on an empty device. Out of memory is a verdict in `out`,
 * not a failure of the call; the call fails only where nothing can be run (no host memory, a lost
 * device). */
enum plim_status plim_replay_run(struct plim_replayer *replayer,
                                 const struct plim_model_config *model,
                                 const struct plim_train_setting *setting, struct plim_replay *out,
                                 struct plim_error *err) PLIM_MUST_CHECK;

/* The same, going on until the steps repeat, or for PLIM_REPLAY_PROOF_STEPS. On a device that
 * computes, repetition is never detected. */
enum plim_status plim_replay_prove(struct plim_replayer *replayer,
                                   const struct plim_model_config *model,
                                   const struct plim_train_setting *setting,
                                   struct plim_replay *out, struct plim_error *err) PLIM_MUST_CHECK;
/* The same step by step, for as many steps as the caller likes: begin, then next until it returns false (the
 * setting does not run any further; end says why), then end. plim_replay.step keeps the
 * first four. */
void plim_replay_begin(struct plim_replayer *replayer, const struct plim_model_config *model,
                       const struct plim_train_setting *setting);
bool plim_replay_next(struct plim_replayer *replayer, struct plim_replay_step *step);
enum plim_status plim_replay_end(struct plim_replayer *replayer, struct plim_replay *out,
                                 struct plim_error *err) PLIM_MUST_CHECK;

/* Called before each micro-step: true ends the run, which then fails with PLIM_CANCELLED and no text,
 * as the caller knows why. NULL: the run is never ended. */
typedef bool plim_replay_stop(const void *user);
void plim_replayer_stop(struct plim_replayer *replayer, plim_replay_stop *stop, const void *user);

/* Writes the allocations ("a ID BYTES") and frees ("f ID") of the next runs to `file` (NULL: off), in the
 * format of the golden traces. For finding a difference to PyTorch: scripts/compare-traces. */
void plim_replayer_trace(struct plim_replayer *replayer, FILE *file);

/* Records the allocations of the second optimizer step of the next runs, or of the first one
 * where there is no second (NULL: off). Every micro-step of it is run. */
void plim_replayer_timeline(struct plim_replayer *replayer, struct plim_timeline *timeline);

#endif
