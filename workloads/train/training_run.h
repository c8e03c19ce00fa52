/* A training run on the engine, step by step, which the replayer (replay.h) drives; and the state of
 * the run that tells whether steps and micro-steps repeat. */
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

/* The cost of requests to the driver for memory. */
struct driver_use {
    int64_t retries; /* how often cached segments had to be freed first */
    double seconds;
};

/* States of the allocator in the order of time. */
struct state_list {
    struct state {
        uint64_t fingerprint;
        struct driver_use use; /* so far */
        uint64_t large;        /* of a step's end: the fingerprint of large blocks alone */
        int64_t peak_reserved_bytes; /* in that step */
    } *items;
    size_t count, capacity;
};

/* One training run. */
struct training_run {
    struct engine *e;
    plim_replay_stop *stop; /* NULL: it is never stopped */
    const void *stop_user;
    struct plim_timeline *timeline; /* of the second step; NULL: none is recorded */
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
    const char *phase, *refusal; /* refusal: why it cannot be trained so; NULL: it can */
    struct state_list *states, *micro_states; /* the replayer's */
    struct state_list *evaluated;             /* the same, after evaluations */
    int64_t since_evaluation; /* steps, including those that were left out */
    int64_t steps_left_out;   /* because they were known to repeat until an evaluation */
    struct tape *tape; /* the replayer's */
    /* On the tape: a micro-step that makes the gradients, one that adds to them, and the
     * optimizer's update from the second step on. */
    struct stretch first, further, update;
    bool records; /* may a stretch be played, once it is known? */
    int64_t retries_left_out;                 /* of micro-steps that were not run */
    bool restless; /* a step's micro-steps need retries, and their states do not repeat */
    enum plim_status st;      /* of building */
    struct plim_replay out; /* so far; class_bytes and verdict are set at the end */
};

/* Sets the phase that an out-of-memory verdict names; it does not change once memory ran out. */
void training_run_enter(struct training_run *r, const char *phase);

/* Do several GPUs share the work? */
bool training_run_is_sharded(const struct training_run *r);

/* One optimizer step. Its numbers go into `s`; the engine is halted where the step does not reach its
 * end. */
void training_run_step(struct training_run *r, struct plim_replay_step *s);

/* The evaluation after a step; its peaks go into `s`. */
void training_run_evaluate(struct training_run *r, struct plim_replay_step *s);

/* How often cached segments had to be freed, including micro-steps that were not run; and the same
 * with the driver's seconds. */
int64_t training_run_retries(const struct training_run *r);
struct driver_use training_run_driver_use(const struct training_run *r);

/* Adds the driver's use between two moments `times` times more, for parts that are not run. */
void training_run_repeat_driver_use(struct training_run *r, struct driver_use from, struct driver_use to,
                                    int64_t times);

/* How many entries ago the allocator was in its present state; 0: it never was. */
size_t training_run_since_this_state(struct training_run *r, struct state_list *states);

/* Do large blocks repeat, and did the small ones, which move about (Trainer's batches and losses), take no more memory
 * in the last `count` of these states, with memory to spare? The last state is that of the step with this peak. */
bool training_run_only_small_blocks_move(struct training_run *r, struct state_list *states, size_t count,
                                         int64_t peak_reserved_bytes);

#endif
