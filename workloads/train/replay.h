/* One setting on one device: four optimizer steps of the training loop, run by the engine.
 *
 * The loop is the one that `golden/` was measured with:
 *     build the model, the batch, the optimizer
 *     four times:  accumulation times: forward, loss, backward;   [clip];  step;  zero_grad(None)
 *
 * Step 2 counts, not step 1: optimizer states are born in step 1. "Fits" means that all four steps
 * ran under the device's memory.
 *
 * A replayer keeps its pools between runs; a search makes one per device and thread.
 */
#ifndef PLIM_WORKLOADS_REPLAY_H
#define PLIM_WORKLOADS_REPLAY_H

#include "devices/allocator/allocator.h"
#include "devices/device.h"
#include "workloads/engine/memory_class.h"
#include "workloads/spec/spec.h"
#include <stdio.h>

enum { PLIM_REPLAY_STEPS = 4 };

struct plim_replay_step {
    int64_t after_forward_bytes;  /* allocated after the last micro-step's forward */
    int64_t peak_allocated_bytes; /* since the start of this step */
    int64_t peak_reserved_bytes;
    int64_t peak_requested_bytes;
    int64_t end_allocated_bytes;
    int64_t end_reserved_bytes;
    double seconds; /* device time of the whole step */
    double loss;    /* of the last micro-step; NaN where nothing is computed (sim) */
};

struct plim_replay {
    /* PLIM_OK, PLIM_OOM, PLIM_UNSUPPORTED; of a replay in a worker process also PLIM_LOST,
     * PLIM_TIMEOUT, PLIM_CRASHED, PLIM_UNSTABLE (autotune/run/worker/remote.h) */
    enum plim_status verdict;
    char why[160];                            /* for anything but OK: one line */
    int64_t parameters, trainable_parameters; /* elements */
    int steps_done; /* of those in `step` */
    struct plim_replay_step step[PLIM_REPLAY_STEPS];
    int64_t peak_allocated_bytes, peak_reserved_bytes; /* over everything that ran */
    int64_t class_bytes[PLIM_MEMORY_CLASS_COUNT];      /* at the moment of peak_allocated_bytes */
    int64_t retries; /* times cached segments had to be freed to go on */
    /* where it ran out, when verdict is PLIM_OOM */
    int64_t oom_asked_bytes;
    enum plim_memory_class oom_class;
    char oom_where[64];           /* operation, phase: "log_softmax, forward, step 1" */
    /* Of an optimizer step among several GPUs; 0 where there is one: */
    int reductions;            /* times that gradients are reduced */
    double reduction_bytes;    /* what a GPU sends for one, in a ring: 2 (N - 1) / N of the buckets */
    double last_bucket_bytes;  /* of that, for the bucket that is ready last */
    double backward_seconds;   /* which the other buckets are sent in */
    double model_flops_per_token; /* 6 N + attention, forward and backward, for MFU */
    /* of the last step's seconds, where a real device was timed by repeating it: */
    int repeats; /* 0: it was not */
    bool noisy;  /* not known to 1 %, or the device was slowed down */
};

struct plim_replayer;

/* The device outlives the replayer. `config` NULL: the allocator's defaults. */
enum plim_status plim_replayer_create(struct plim_device *device,
                                      const struct plim_allocator_config *config,
                                      struct plim_replayer **out,
                                      struct plim_error *err) PLIM_MUST_CHECK;
void plim_replayer_destroy(struct plim_replayer **replayer);

/* Runs `setting` of `model` from an empty device. An OOM is a verdict in `out`, not a failure of
 * the call; that fails only for what cannot be run at all (host memory, a lost device). */
enum plim_status plim_replay_run(struct plim_replayer *replayer,
                                 const struct plim_model_config *model,
                                 const struct plim_train_setting *setting, struct plim_replay *out,
                                 struct plim_error *err) PLIM_MUST_CHECK;

/* Seconds by which reductions make an optimizer step longer than `step[].seconds`, which leave them
 * out: an estimate. A GPU sends `bandwidth` bytes a second (0: nothing is known, and it is 0). The
 * buckets are sent while backward runs, but for the last. */
double plim_replay_communication_seconds(const struct plim_replay *replay, double bandwidth);

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

#endif
