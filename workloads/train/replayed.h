/* The result of a replay (replay.h, recording/play.h): bytes, seconds and the verdict. */
#ifndef PLIM_WORKLOADS_TRAIN_REPLAYED_H
#define PLIM_WORKLOADS_TRAIN_REPLAYED_H

#include "autotune/base/status.h"
#include "devices/device.h"
#include "workloads/engine/timeline.h"
#include <stdbool.h>
#include <stdint.h>

enum { PLIM_REPLAY_STEPS = 4 }; /* steps whose numbers are kept */

struct plim_replay_step {
    int64_t after_forward_bytes;  /* allocated after the last micro-step's forward */
    int64_t peak_allocated_bytes; /* since the start of this step */
    int64_t peak_reserved_bytes;  /* includes the memory of a vLLM engine that is awake for a generation */
    int64_t peak_requested_bytes;
    int64_t end_allocated_bytes;
    int64_t end_reserved_bytes;
    int64_t evaluation_allocated_bytes; /* peaks of the evaluation after this step; 0: there was none */
    int64_t evaluation_reserved_bytes;
    int64_t evaluation_requested_bytes;
    double seconds; /* device time of the whole step */
    double loss;    /* of the last micro-step; NaN if nothing is computed (sim) */
};

struct plim_replay {
    /* PLIM_OK, PLIM_OOM, PLIM_UNSUPPORTED; of a replay in a worker process also PLIM_LOST,
     * PLIM_TIMEOUT, PLIM_CRASHED, PLIM_UNSTABLE (autotune/run/worker/remote.h) */
    enum plim_status verdict;
    char why[160];                            /* for any verdict other than PLIM_OK: one line */
    int64_t parameters, trainable_parameters; /* elements */
    int steps_done;    /* steps that were completed */
    int repeats_after; /* steps after which the state equalled that of an earlier step; 0: it never did */
    bool small_blocks_move; /* the state repeated except for small blocks, which took no more memory for many steps */
    struct plim_replay_step step[PLIM_REPLAY_STEPS]; /* of the first steps */
    int64_t peak_allocated_bytes, peak_reserved_bytes; /* over the whole run */
    int64_t evaluation_batch, evaluation_every; /* train.evaluation; 0: there are no evaluations */
    int evaluations; /* number of evaluations that were run */
    int64_t evaluation_allocated_bytes, evaluation_reserved_bytes; /* their peaks, including the one at the start */
    /* Peaks of an evaluation before the first step (train.evaluation.at_start); 0: there is none. */
    int64_t start_allocated_bytes, start_reserved_bytes, start_requested_bytes;
    int64_t loading_allocated_bytes, loading_reserved_bytes; /* peaks while the model was created */
    /* At the moment of peak_allocated_bytes; all 0 for a recording whose blocks are not classified. */
    int64_t class_bytes[PLIM_MEMORY_CLASS_COUNT];
    int64_t managed_bytes; /* bytes of a paged optimizer's states: managed memory, in addition to the GPU's own */
    int64_t host_bytes; /* bytes of this rank's state that DeepSpeed keeps on the host (ZeRO-Offload) */
    /* For a job whose ranks need different amounts (ranks.h): the rank that these numbers are for, and rank 0's peak of
     * reserved bytes; 0: unknown. */
    int64_t rank, rank0_reserved_bytes;
    int64_t expert_ranks; /* FSDP2: how many ranks have weights of experts, if others have none; 0: all have */
    int64_t next_rank; /* FSDP2: the next rank that has fewer rows of some parameter; 0: there is none */
    /* Played from a recording at a size that was not recorded: the largest block (a library's workspace) whose
     * bytes are known only at recorded sizes; 0: all are known. */
    int64_t guessed_bytes;
    int64_t retries; /* number of times that cached segments had to be freed to continue */
    /* where memory ran out, if verdict is PLIM_OOM */
    int64_t oom_asked_bytes;
    enum plim_memory_class oom_class;
    char oom_where[64];           /* operation, phase: "log_softmax, forward, step 1" */
    /* Time that communication among several GPUs adds to the last step, not included in its seconds: an estimate
     * (link.h); 0 if the links are unknown. */
    double communication_seconds;
    /* The links: bandwidth from a GPU to the next, 0 if unknown; latency of an all-reduce in addition to its bytes'
     * time; the number of GPUs with which both were measured, 0 if they are modelled. */
    double link_bytes_per_second, link_latency_seconds;
    int link_gpus;
    /* Simulated: on the slowest host that was measured, launching the last step takes longer than running it, so its
     * seconds depend on the host. */
    bool host_bound;
    /* Time in which eager PyTorch's host launches the last step's operations (devices/sim/roofline.h). 0 on every
     * device other than `sim`, which models it. */
    double launching_seconds;
    double running_seconds[PLIM_DEVICE_TASKS]; /* of the last step, on the device; 0 if launching_seconds is */
    double model_flops_per_token; /* 6 N + attention, forward and backward, for MFU */
    unsigned sdpa_engines; /* the engines of attention used on a real GPU: bits of enum plim_sdpa_engine */
    bool groups_one_by_one, delta_on_fp32; /* real GPU, experts and linear attention: as in struct plim_device */
    /* of the last step's seconds, if a real device was timed by repeating the step: */
    int repeats; /* 0: it was not repeated */
    bool noisy;  /* not known to within 1 %, or the device was throttled */
};

/* For a proof: true if retries were needed (cached segments freed), and no repetition shows that later ones succeed. */
static inline bool plim_replay_has_unproven_retries(const struct plim_replay *replay)
{
    return replay->verdict == PLIM_OK && replay->retries > 0 && !replay->repeats_after;
}

/* True if the time on a real GPU differs from PyTorch's because other kernels were used instead of PyTorch's. */
static inline bool plim_replay_has_another_time(const struct plim_replay *replay)
{
    return replay->sdpa_engines & PLIM_SDPA_BY_FALLBACK || replay->groups_one_by_one || replay->delta_on_fp32;
}

/* Returns how many entries of `step` are filled. */
static inline int plim_replay_kept_steps(const struct plim_replay *replay)
{
    return replay->steps_done < PLIM_REPLAY_STEPS ? replay->steps_done : PLIM_REPLAY_STEPS;
}

#endif
