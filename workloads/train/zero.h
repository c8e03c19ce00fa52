/* DeepSpeed's ZeRO, stages 1 and 2 (stage 3: zero3.h), on one rank of several, driven as accelerate drives it: the
 * memory of the flat weights, of this rank's partition of them in fp32, and of the gradient buckets. The other ranks
 * are assumed to behave like this one; nothing is exchanged, so this runs only on a device that computes nothing.
 *
 * Which memory is held, and when (deepspeed 0.18: runtime/zero/stage_1_and_2.py, runtime/engine.py):
 *
 * - The model is loaded on the host in the compute type, including buffers. All trainable weights are copied into one
 *   flat tensor, padded to a multiple of 2 * world, and become views of it. Rank r owns the r-th of `world` equal
 *   partitions of it, of which it also has an fp32 copy; the optimizer's states have the shape of that partition.
 * - With the first gradient of a backward a bucket of reduce_bucket_size elements is allocated (overlap_comm: a second
 *   one), regardless of the size of the model. A gradient is copied into it and freed. A full bucket is all-reduced
 *   through a copy if it has gradients owned by several ranks. The full gradients of parameters that this rank owns,
 *   even in part, are copied into a tensor with room for all of them (contiguous_gradients). So ranks differ: the rank
 *   whose partition's boundaries cut the largest weights holds the most.
 * - Stage 2 does so in every micro-step and adds to the tensor of the first; stage 1 accumulates full gradients and
 *   reduces after the last micro-step (overlap_comm: during it), but keeps the bucket from the first on.
 * - The step computes the norm of each owned gradient in fp64, creates one fp32 gradient from them, and runs the
 *   optimizer on this rank's partition.
 * - Gradients of the loss and of the logits are divided by the number of accumulation steps, which copies them; not
 *   with transformers' Trainer, which disables that.
 *
 * Each of the optimizer's groups has a flat tensor, a partition and padding of its own, and the groups are stepped one
 * after another; buckets and the tensor of owned gradients are shared. Trainer creates two groups: weights, and biases
 * and norms. Adafactor does not factor the states of these tensors, which are vectors.
 *
 * Mixed precision is DeepSpeed's ("bf16" or "fp16" enabled), without autocast. */
#ifndef PLIM_TRAIN_ZERO_H
#define PLIM_TRAIN_ZERO_H

#include "zero_state.h"

/* Returns why ZeRO cannot train with this setting, in one line; NULL if it can. */
const char *zero_refuses(const struct plim_device_info *info, const struct plim_model_config *config,
                         const struct plim_train_setting *setting);
/* Sets the precision to that of DeepSpeed's mixed precision: the model itself is in the low type, whatever the type in
 * which it was created, and there is no autocast. */
void zero_settle_precision(struct plim_train_setting *setting);
/* deepspeed.initialize(model) of a model that was created on the meta device (engine.meta). `model` and `link` must
 * outlive `z`. */
enum plim_status zero_create(struct engine *e, struct decoder *model, struct link *link,
                             struct zero *z) PLIM_MUST_CHECK;
/* The same for a model that is not trained, with a DeepSpeed engine without ZeRO: casts and moves it. */
enum plim_status zero_move(struct engine *e, struct decoder *m) PLIM_MUST_CHECK;
/* Returns why DeepSpeed fails on a model that zero_create() accepted, in one line; NULL if it does not. */
const char *zero_fails(const struct zero *z);
void zero_finish(struct zero *z); /* frees host memory; the engine frees the tensors */

/* Call before a forward of `given`. With Trainer its images are cast to the model's type: the cast tensor is in `given`
 * until zero_after_forward(), which frees it. */
void zero_before_forward(struct engine *e, struct zero *z, struct batch *given);
/* Call when the model has returned. `outputs`: the number of its outputs that backward starts from. */
void zero_leave_model(struct engine *e, struct zero *z, int outputs);
/* Call when the loss has been computed. */
void zero_after_forward(struct engine *e, struct zero *z);
/* Returns the loss that backward starts from, named. `last`: this is the step's last micro-step. */
struct tensor *zero_scale(struct engine *e, struct zero *z, struct tensor *loss, bool last);
/* Call after the backward. */
void zero_after_backward(struct engine *e, struct zero *z);
/* engine.step(): norm, clipping and the optimizer's step; then frees all gradients. */
void zero_step(struct engine *e, struct zero *z, struct optimizer *o);
/* Returns the bytes of this rank that are offloaded to the host; 0 if none are. */
int64_t zero_host_bytes(const struct zero *z);

#endif
