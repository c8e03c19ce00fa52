/* One setting on one device: optimizer steps of the training loop, run by the engine.
 *
 * The loop is the one that `golden/` was measured with:
 *     build the model, the batch, the optimizer
 *     four times:  accumulation times: forward, loss, backward;   [clip];  step;  zero_grad(None)
 *
 * Step 2 counts, not step 1: optimizer states are born in step 1. That these four run under the
 * device's memory is no proof that all do: fragments of cached memory may come to matter in step
 * 17. The proof is a step that ends as an earlier one ended (plim_replay_prove()):
 *
 *   - what a step asks for and gives back, and in which order, does not depend on values. From the
 *     second step on it is the same every time: the optimizer's states, its scaler's and the
 *     libraries' workspaces are born by then, gradients are None again when a step ends, and the
 *     cache of autocast is empty;
 *   - all that is still held when a step ends is held for ever, so it does not matter which block
 *     holds what, only which blocks are held;
 *   - so two steps differ in nothing but the state of the allocator that they begin with. Where
 *     that is equal (plim_allocator_fingerprint()) to the state at the end of an earlier step,
 *     everything from there on repeats, and what has not failed so far never does.
 *
 * The same inside a step: gradients that the first micro-step made stay where they are, and the
 * next ones add to them. So when a micro-step ends in the state in which an earlier one ended,
 * those between the two come again and again. Where nothing is computed these are left out, and the
 * clock goes on as if they had run (plim_device_repeat()): a step of 512 micro-steps costs as much
 * as one of a few, and has the same numbers (seconds nearly so where a micro-step gives memory back to
 * the driver: when it does so within its launches is not kept). Micro-steps that are not seen to repeat within
 * PLIM_REPLAY_PROOF_MICRO_STEPS are taken to where no retry was needed so far; else the setting does not fit. The
 * fourth step is left out in the same way where the third ends as it began.
 *
 * What does have to be gone through again, because the allocator's state is another, need not be run
 * again: micro-steps from the third on, steps from the third on are played from a tape of what they
 * ask of memory (workloads/engine/tape.h). Among several GPUs, whose transfers have a clock of their
 * own, they are run. While a trace or a timeline is written everything is run.
 *
 * What transformers' Trainer keeps from one step to the next, batches and losses, is small and comes to lie elsewhere
 * each time, so that hundreds of steps may pass until all lies as it lay. Small blocks (up to 1 MiB) have segments of
 * their own, which nothing of the large ones hangs on as long as memory does not run out: so it is enough that the
 * large ones repeat, that small ones took no more memory for PLIM_REPLAY_SETTLED_STEPS, and that there is some to
 * spare. This is no proof, and is told as what it is (`small_blocks_move`).
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
    double gpu_bandwidth;  /* a GPU to another of its machine; 0: not known */
    double node_bandwidth; /* a machine to the others, all its network adapters together */
    int64_t gpus_per_node;
    double gpu_latency; /* seconds of an all-reduce on one machine besides its bytes; 0: not known */
    int measured_gpus;  /* among so many the first and the last were measured; 0: they are modelled */
};
/* For the runs that follow; at first nothing is known, and communication takes no time. */
void plim_replayer_links(struct plim_replayer *replayer, const struct plim_links *links);

/* Runs four steps of `setting` of `model` from an empty device. An OOM is a verdict in `out`,
 * not a failure of the call; that fails only for what cannot be run at all (host memory, a lost
 * device). */
enum plim_status plim_replay_run(struct plim_replayer *replayer,
                                 const struct plim_model_config *model,
                                 const struct plim_train_setting *setting, struct plim_replay *out,
                                 struct plim_error *err) PLIM_MUST_CHECK;

/* The same, going on until the steps repeat, or for PLIM_REPLAY_PROOF_STEPS. On a device that
 * computes nothing is seen to repeat. */
enum plim_status plim_replay_prove(struct plim_replayer *replayer,
                                   const struct plim_model_config *model,
                                   const struct plim_train_setting *setting,
                                   struct plim_replay *out, struct plim_error *err) PLIM_MUST_CHECK;
/* The same step by step, for as many as the caller likes: begin, then next until it says false (the
 * setting does not run any further, and the end says why), then end. plim_replay.step keeps the
 * first four. */
void plim_replay_begin(struct plim_replayer *replayer, const struct plim_model_config *model,
                       const struct plim_train_setting *setting);
bool plim_replay_next(struct plim_replayer *replayer, struct plim_replay_step *step);
enum plim_status plim_replay_end(struct plim_replayer *replayer, struct plim_replay *out,
                                 struct plim_error *err) PLIM_MUST_CHECK;

/* Asked before each micro-step: true ends the run, which then fails with PLIM_CANCELLED and no text,
 * as the caller knows why. NULL: never. */
typedef bool plim_replay_stop(const void *user);
void plim_replayer_stop(struct plim_replayer *replayer, plim_replay_stop *stop, const void *user);

/* Writes what the next runs allocate ("a ID BYTES") and free ("f ID") to `file` (NULL: off), in the
 * format of the golden traces. For finding a difference to PyTorch: scripts/compare-traces. */
void plim_replayer_trace(struct plim_replayer *replayer, FILE *file);

/* Records what is allocated during the second optimizer step of the next runs, or during the first
 * where it does not come to a second one (NULL: off). Every micro-step of it is run. */
void plim_replayer_timeline(struct plim_replayer *replayer, struct plim_timeline *timeline);

#endif
