/* What transformers' Trainer (5.17, with accelerate 1.x) allocates in addition to the forwards and backwards of the
 * plain loop (replay.h), in its order; the function that allocates is in parentheses.
 *
 *     once        the sum of the losses (trainer.py, _inner_training_loop)
 *     a step      the batches of all its micro-steps, ids and labels separately (accelerate's send_to_device); the
 *                 number of labels in them that count (_get_num_items_in_batch); then those of the last step are freed
 *     smoothing   (train.label_smoothing) the model returns only logits, and Trainer computes the loss
 *                 (label_smoother.h)
 *     a forward   a causal loss is a sum, divided by that number (loss_utils.py); under autocast the logits are copied
 *                 to fp32 after the forward (accelerate's convert_outputs_to_fp32), and freed; with
 *                 train.empty_cache_steps cached memory is freed before a backward
 *     a backward  the loss is multiplied in place (compute_loss) and divided (accelerate's backward). It is kept until
 *                 the next backward is over, and tested for NaN and infinity (_run_epoch)
 *     with ZeRO   DeepSpeed's engine does not divide by the accumulation, and its step is within the last backward,
 *                 before the loss is kept (accelerate's DeepSpeedEngineWrapper)
 *     an update   the norm of the gradients is kept until the next update; the optimizer has two groups, parameters
 *                 with weight decay, and biases and norms (create_optimizer)
 *
 *     an evaluation (train.evaluation), after an update: the step's batches are kept; its own batches are allocated one
 *                 by one, the next before the last is freed; a forward without gradients, whose logits are copied to
 *                 fp32 as always; the loss of each batch, once per row, and with a compute_metrics() logits and labels,
 *                 concatenated with the earlier ones each time (evaluation_loop, prediction_step, EvalLoopContainer)
 *
 * Trainer's logs and saves are not modelled. */
#ifndef PLIM_TRAIN_TRAINER_LOOP_H
#define PLIM_TRAIN_TRAINER_LOOP_H

#include "link.h"
#include "optimizer.h"
#include "rates.h"
#include "workloads/models/model.h"

/* Zeroed: the plain loop. */
struct trainer_loop {
    struct decoder *model; /* NULL: the plain loop */
    uint64_t seed;               /* of the random batches */
    struct tensor *sum;          /* of losses */
    struct tensor *items;        /* number of labels of a step that count */
    struct tensor *logits;       /* of a forward, until they are copied */
    struct tensor *loss;         /* of the last micro-step */
    struct tensor *norm;         /* of the last update's gradients */
    struct rates rates;
    struct batch *batches;       /* of a step */
    int64_t count;
    int64_t steps;               /* steps that have begun */
};

/* Returns why Trainer's loop cannot run this setting; NULL if it can. */
const char *trainer_loop_refuses(const struct plim_train_setting *setting);

/* The barriers at which the ranks of TRL's trainers wait for one another around the data set, before the model is moved
 * to the GPU, or with ZeRO 3, where it is already there, before DeepSpeed partitions it. Does nothing in other loops,
 * on one GPU, in GRPOTrainer, which prepares no data set, and in SFTTrainer with images, likewise. */
void trainer_loop_barrier(struct engine *e, const struct plim_train_setting *setting, struct link *link);

/* The model must outlive the loop. */
enum plim_status trainer_loop_create(struct engine *e, struct decoder *model, uint64_t seed,
                                     struct trainer_loop *loop) PLIM_MUST_CHECK;
void trainer_loop_finish(struct trainer_loop *loop); /* frees host memory only */

/* Call at the start of a step: creates its batches, which are all alike. Not for a plain loop. */
void trainer_loop_begin_step(struct engine *e, struct trainer_loop *loop);
/* Call after a forward: takes the logits (NULL: there are none). */
void trainer_loop_after_forward(struct engine *e, struct trainer_loop *loop, struct tensor *logits, bool is_mixed);
/* Drops the logits, which from then on only backward needs. */
void trainer_loop_drop_logits(struct engine *e, struct trainer_loop *loop);
/* accelerate's convert_outputs_to_fp32(): takes the logits, named or NULL, and returns them as fp32; also casts the
 * other outputs of `m`. */
struct tensor *trainer_loop_widen(struct engine *e, struct decoder *m, struct tensor *logits, bool is_mixed);
/* Returns the loss that backward starts from, named; *loss is kept. */
struct tensor *trainer_loop_scale(struct engine *e, struct trainer_loop *loop, struct tensor **loss);
/* Call after a backward; takes the loss. */
void trainer_loop_end_micro_step(struct engine *e, struct trainer_loop *loop, struct tensor *loss);

/* Call at the start of an update, then when the norm of its gradients is known, which is taken (NULL: there is
 * none). */
void trainer_loop_begin_update(struct engine *e, struct trainer_loop *loop);
void trainer_loop_set_norm(struct engine *e, struct trainer_loop *loop, struct tensor *norm);
/* Call after the optimizer's step, while the gradients still exist. */
void trainer_loop_after_update(struct engine *e, struct trainer_loop *loop);

/* Runs a forward of an evaluation's batch. Returns the loss, named, and stores the logits that Trainer receives, named
 * (NULL: none): those of the model, or scores of the chosen and of the rejected rows. */
enum { TRAINER_LOGITS = 2 };
typedef struct tensor *trainer_loop_forward(void *user, const struct batch *batch,
                                            struct tensor *logits[TRAINER_LOGITS]);
/* Runs an evaluation after an update; `model` is the loop's own. */
void trainer_loop_evaluate(struct engine *e, const struct trainer_loop *loop, struct decoder *model,
                           trainer_loop_forward *forward, void *user);

/* For the proof that steps repeat, which requires that the next step frees the same memory. Adds to `hash` the position
 * of x's block in the allocator's last fingerprint (plim_block_position()), or 0 if it has none, and returns it. */
uint64_t trainer_loop_add_position(uint64_t hash, const struct tensor *x);
uint64_t trainer_loop_fingerprint(const struct trainer_loop *loop, uint64_t fingerprint);

#endif
