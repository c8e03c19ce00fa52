/* What the planners of kernels.h share. A planner turns one operation into launches; plan.c holds
 * the table of them. */
#ifndef PLIM_DEVICES_CUDA_PLAN_H
#define PLIM_DEVICES_CUDA_PLAN_H

#include "kernels.h"

enum { PLIM_PLAN_WARP = 32 };

/* For whom is planned. */
struct plim_plan {
    const struct plim_device_info *info;
    plim_cuda_emit emit;
    void *user;
};

typedef enum plim_status (*plim_planner)(const struct plim_plan *plan, const struct plim_op *op);

/* A one-dimensional launch. */
enum plim_status plim_plan_launch(const struct plim_plan *plan, const char *kernel, int64_t blocks,
                                  int threads, const void *args, size_t args_bytes) PLIM_MUST_CHECK;

/* Blocks of `threads` for `work` units, a unit a thread: at most so many as fill the card a few
 * times over, because kernels loop over the grid. At least 1. */
int64_t plim_plan_blocks(const struct plim_plan *plan, int64_t work, int threads);

/* Multiprocessors of the card, or a guess where they are unknown. */
int plim_plan_multiprocessors(const struct plim_plan *plan);

/* plan_elementwise.c */
enum plim_status plim_plan_nullary(const struct plim_plan *plan, const struct plim_op *op);

/* plan_norm.c */
enum plim_status plim_plan_layer_norm(const struct plim_plan *plan, const struct plim_op *op);
enum plim_status plim_plan_layer_norm_backward(const struct plim_plan *plan,
                                               const struct plim_op *op);
enum plim_status plim_plan_layer_norm_params(const struct plim_plan *plan,
                                             const struct plim_op *op);

/* plan_softmax.c */
enum plim_status plim_plan_softmax(const struct plim_plan *plan, const struct plim_op *op);
enum plim_status plim_plan_softmax_backward(const struct plim_plan *plan, const struct plim_op *op);
enum plim_status plim_plan_nll_loss(const struct plim_plan *plan, const struct plim_op *op);
enum plim_status plim_plan_nll_loss_backward(const struct plim_plan *plan,
                                             const struct plim_op *op);

/* plan_foreach.c, plan_optimizer.c, plan_attention.c */
enum plim_status plim_plan_foreach(const struct plim_plan *plan, const struct plim_op *op);
enum plim_status plim_plan_optimizer(const struct plim_plan *plan, const struct plim_op *op);
enum plim_status plim_plan_attention(const struct plim_plan *plan, const struct plim_op *op);
enum plim_status plim_plan_attention_backward(const struct plim_plan *plan,
                                              const struct plim_op *op);

#endif
