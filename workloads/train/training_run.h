/* A training run on the engine, step by step, driven by the replayer (replay.h); and the state of the run by which
 * repeating steps and micro-steps are recognised. */
#ifndef PLIM_WORKLOADS_TRAIN_TRAINING_RUN_H
#define PLIM_WORKLOADS_TRAIN_TRAINING_RUN_H

#include "ddp.h"
#include "dpo.h"
#include "fsdp.h"
#include "grpo.h"
#include "reference.h"
#include "replay.h"
#include "scaler.h"
#include "stretch.h"
#include "trainer_loop.h"
#include "vllm.h"
#include "workloads/models/model.h"
#include "zero.h"

/* The cost of memory requests to the driver. */
struct driver_use {
    int64_t retries; /* number of times that cached segments had to be freed first */
    double seconds;
};

/* States of the allocator, in chronological order. */
struct state_list {
    struct state {
        uint64_t fingerprint;
        struct driver_use use; /* so far */
        uint64_t large;        /* at the end of a step: the fingerprint of large blocks alone */
        int64_t peak_reserved_bytes; /* in that step */
    } *items;
    size_t count, capacity;
};

/* One training run. */
struct training_run {
    struct engine *e;
    plim_replay_stop *stop; /* NULL: never stopped */
    const void *stop_user;
    struct plim_timeline *timeline; /* of the second step; NULL: not recorded */
    struct plim_train_setting setting;
    struct decoder model;
    struct reference reference;
    struct grpo grpo;
    struct link link;
    struct ddp ddp;
    struct fsdp fsdp;
    struct zero zero;
    struct optimizer optimizer;
    struct batch batch;
    struct trainer_loop trainer;
    struct scaler scaler;
    const char *phase, *refusal; /* refusal: why the setting cannot be trained; NULL: it can */
    struct state_list *states, *micro_states; /* owned by the replayer */
    struct state_list *evaluated;             /* the same, after evaluations */
    int64_t since_evaluation; /* steps since the last one, including those that were skipped */
    int64_t steps_left_out;   /* because they were known to repeat until an evaluation */
    struct tape *tape; /* owned by the replayer */
    /* On the tape: a micro-step that allocates the gradients, one that adds to them, and the optimizer's update from
     * the second step on. */
    struct stretch first, further, update;
    bool records; /* sections may be played once they are recorded */
    int64_t retries_left_out;                 /* of micro-steps that were skipped */
    bool retries_vary; /* micro-steps of a step need retries, and their states do not repeat */
    enum plim_status st;      /* of building */
    struct plim_replay out; /* so far; class_bytes and verdict are set at the end */
};

/* Sets the phase that an out-of-memory verdict names; it does not change any more once memory ran out. */
void training_run_enter(struct training_run *r, const char *phase);

/* True if several GPUs share the work. */
bool training_run_is_sharded(const struct training_run *r);

/* Runs one optimizer step and stores its numbers in `s`. The engine is halted if the step cannot be completed. */
void training_run_step(struct training_run *r, struct plim_replay_step *s);

/* Runs the evaluation after a step and stores its peaks in `s`. */
void training_run_evaluate(struct training_run *r, struct plim_replay_step *s);

/* Returns the number of times that cached segments had to be freed, including micro-steps that were skipped; and the
 * same with the driver's seconds. */
int64_t training_run_retries(const struct training_run *r);
struct driver_use training_run_driver_use(const struct training_run *r);

/* Adds `times` times the driver's use between two moments, for parts that are skipped. */
void training_run_repeat_driver_use(struct training_run *r, struct driver_use from, struct driver_use to,
                                    int64_t times);

/* Returns how many entries ago the allocator was in its present state; 0 if it never was. */
size_t training_run_since_this_state(struct training_run *r, struct state_list *states);

/* True if large blocks repeat, and the small ones, which move (Trainer's batches and losses), took no more memory in
 * the last `count` of these states, with memory left. The last state is that of the step with this peak. */
bool training_run_only_small_blocks_move(struct training_run *r, struct state_list *states, size_t count,
                                         int64_t peak_reserved_bytes);

#endif
