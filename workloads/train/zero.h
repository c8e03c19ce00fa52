/* DeepSpeed's ZeRO, stages 1 and 2 (and 3: zero3.h), on one rank of several, driven as accelerate drives
 * it: the memory of the flat weights, of this rank's part of them in fp32, and of the buckets of
 * gradients. The other ranks are assumed to behave like this one; nothing is exchanged, so only a
 * device that computes nothing can run it.
 *
 * What is held, and from when to when (deepspeed 0.18: runtime/zero/stage_1_and_2.py,
 * runtime/engine.py):
 *
 * - The model comes from the host in the type of the computation, buffers too. All weights that train
 *   are copied into one flat tensor, padded to a multiple of 2 * world, and become views of it.
 *   Rank r owns the r-th of `world` equal parts of it, which it also has in fp32, and the
 *   optimizer's states have the shape of that part.
 * - With a backward's first gradient a bucket of reduce_bucket_size elements is allocated (overlap_comm: a
 *   second one), whatever the size of the model. A gradient is copied into it and freed. A full
 *   bucket is all-reduced through a copy, if it has parts of several ranks. The whole gradients of
 *   parameters that this rank owns, even in part, are copied into a tensor that has room for all of
 *   them (contiguous_gradients). So ranks differ: the one whose part cuts the largest weights holds
 *   the most.
 * - Stage 2 does so in every micro-step and adds to the tensor of the first; stage 1 accumulates whole
 *   gradients and reduces after the last (overlap_comm: in it), but keeps the bucket from the first on.
 * - The step takes the norm of each owned gradient in fp64, makes one fp32 gradient of them, and runs
 *   the optimizer on this rank's part.
 * - Gradients of the loss and of the logits are divided by the accumulation, which copies them; not with transformers'
 *   Trainer, which turns that off.
 *
 * Each of the optimizer's groups has a flat tensor, a part and padding of its own, and is stepped
 * after the one before; buckets and the tensor of owned gradients are common. Trainer makes two groups: weights, and
 * biases and norms. Adafactor does not factor the states of these tensors, which are vectors.
 *
 * Mixed precision is that of DeepSpeed ("bf16" or "fp16" enabled): no autocast. */
#ifndef PLIM_TRAIN_ZERO_H
#define PLIM_TRAIN_ZERO_H

#include "zero_state.h"

/* Why ZeRO cannot train this setting, in one line; NULL: it can. */
const char *zero_refuses(const struct plim_device_info *info, const struct plim_model_config *config,
                         const struct plim_train_setting *setting);
/* DeepSpeed's mixed precision is that of the model itself, whatever the type in which it was made: no autocast. */
void zero_settle_precision(struct plim_train_setting *setting);
/* deepspeed.initialize(model), which was made on the meta device (engine.meta). It and `link` outlive
 * it. */
enum plim_status zero_create(struct engine *e, struct decoder *model, struct link *link,
                             struct zero *z) PLIM_MUST_CHECK;
/* The same for a model that is not trained, by a DeepSpeed engine without ZeRO: casts and moves it. */
enum plim_status zero_move(struct engine *e, struct decoder *m) PLIM_MUST_CHECK;
/* Why DeepSpeed fails on a model that zero_create() accepted, in one line; NULL: it does not. */
const char *zero_fails(const struct zero *z);
void zero_finish(struct zero *z); /* host memory; tensors go with the engine */

/* Call before a forward of `given`. With Trainer its images are cast to the type of the model: the cast tensor is lent
 * to `given` until zero_after_forward(). */
void zero_before_forward(struct engine *e, struct zero *z, struct batch *given);
/* Call when the model has returned; `outputs`: how many of its outputs backward starts from */
void zero_leave_model(struct engine *e, struct zero *z, int outputs);
/* Call when the loss exists */
void zero_after_forward(struct engine *e, struct zero *z);
/* The loss that backward starts from; `last`: this is the step's last micro-step. Named. */
struct tensor *zero_scale(struct engine *e, struct zero *z, struct tensor *loss, bool last);
/* Call when the backward has run. */
void zero_after_backward(struct engine *e, struct zero *z);
/* engine.step(): norm, clipping, the optimizer's step; then all gradients are freed. */
void zero_step(struct engine *e, struct zero *z, struct optimizer *o);
/* Bytes of this rank that are offloaded to the host; 0: none are. */
int64_t zero_host_bytes(const struct zero *z);

#endif
