/* Shared by the planners that implement kernels.h. A planner turns one operation into launches; planner.c has the table
 * of planners. */
#ifndef PLIM_DEVICES_CUDA_PLANNER_H
#define PLIM_DEVICES_CUDA_PLANNER_H

#include "kernels.h"
#include "kernels/divider.h"

enum { PLIM_CUDA_PLAN_WARP = 32 };

/* The GPU to plan for, and the receiver of the launches. */
struct plim_cuda_plan {
    const struct plim_device_info *info;
    plim_cuda_emit emit;
    void *user;
};

typedef enum plim_status plim_cuda_plan_function(const struct plim_cuda_plan *plan,
                                                 const struct plim_op *op);

/* Emits a one-dimensional launch. */
enum plim_status plim_cuda_plan_launch(const struct plim_cuda_plan *plan, const char *kernel,
                                       int64_t blocks, int threads, const void *args,
                                       size_t args_bytes) PLIM_MUST_CHECK;

/* Returns the number of blocks of `threads` for `work` units, one unit per thread, but at most enough to fill the GPU a
 * few times, because kernels loop over the grid. At least 1. */
int64_t plim_cuda_plan_blocks(const struct plim_cuda_plan *plan, int64_t work, int threads);

/* Returns the number of blocks with one thread per unit, on any GPU: for kernels that only move memory. Multiplying 96
 * MiB of fp32 on an H100 took 122 us if threads looped a second time, and 70 us this way (1.6 and 2.9 TB/s). At least
 * 1. */
int64_t plim_cuda_plan_all_blocks(int64_t work, int threads);

/* Returns the GPU's number of multiprocessors, or an assumption if it is unknown. */
int plim_cuda_plan_multiprocessors(const struct plim_cuda_plan *plan);

/* True for int64, int32, uint8 and bool. */
bool plim_cuda_plan_is_integer(const struct plim_array *a);

/* True for a row-major layout without gaps. */
bool plim_cuda_plan_is_contiguous(const struct plim_array *a);

bool plim_cuda_plan_same_shape(const struct plim_array *a, const struct plim_array *b);

/* Returns input i, or NULL if it is missing. */
const struct plim_array *plim_cuda_plan_input(const struct plim_op *op, int i);

/* Returns the divider for an extent, which may be 0 if nothing will be divided. */
struct plim_divider plim_cuda_plan_divider(int64_t extent);

/* plan_elementwise.c */
plim_cuda_plan_function plim_cuda_plan_nullary, plim_cuda_plan_copy, plim_cuda_plan_unary,
    plim_cuda_plan_unary_backward, plim_cuda_plan_binary, plim_cuda_plan_where, plim_cuda_plan_complex_mul,
    plim_cuda_plan_masked_fill, plim_cuda_plan_triangle, plim_cuda_plan_flip, plim_cuda_plan_dropout,
    plim_cuda_plan_cat;

/* plan_reduce.c, plan_embedding.c */
plim_cuda_plan_function plim_cuda_plan_reduce, plim_cuda_plan_cumsum, plim_cuda_plan_embedding,
    plim_cuda_plan_embedding_backward;

/* plan_norm.c */
plim_cuda_plan_function plim_cuda_plan_layer_norm, plim_cuda_plan_layer_norm_backward,
    plim_cuda_plan_layer_norm_params, plim_cuda_plan_rms_norm, plim_cuda_plan_rms_norm_backward,
    plim_cuda_plan_l2_norm, plim_cuda_plan_l2_norm_backward;

/* plan_softmax.c: SOFTMAX and LOG_SOFTMAX, the losses */
plim_cuda_plan_function plim_cuda_plan_softmax, plim_cuda_plan_softmax_backward,
    plim_cuda_plan_nll_loss, plim_cuda_plan_nll_loss_backward, plim_cuda_plan_cross_entropy;

/* plan_gated.c, plan_rotate.c */
plim_cuda_plan_function plim_cuda_plan_gated, plim_cuda_plan_gated_backward, plim_cuda_plan_rotate;

/* plan_linear_loss.c */
plim_cuda_plan_function plim_cuda_plan_linear_lse, plim_cuda_plan_linear_target, plim_cuda_plan_linear_lse_backward;

/* plan_statistics.c */
plim_cuda_plan_function plim_cuda_plan_row_statistics, plim_cuda_plan_row_statistics_backward;

/* plan_attention.c */
plim_cuda_plan_function plim_cuda_plan_attention, plim_cuda_plan_attention_backward;

/* plan_indexed.c */
plim_cuda_plan_function plim_cuda_plan_gather, plim_cuda_plan_scatter, plim_cuda_plan_add_by_index,
    plim_cuda_plan_take_rows, plim_cuda_plan_put_rows;

/* plan_marked.c */
plim_cuda_plan_function plim_cuda_plan_nonzero, plim_cuda_plan_masked_scatter;

/* plan_ranking.c */
plim_cuda_plan_function plim_cuda_plan_argmax, plim_cuda_plan_top_k, plim_cuda_plan_sort,
    plim_cuda_plan_histogram, plim_cuda_plan_scatter_add;

/* plan_convolution.c, plan_solve.c */
plim_cuda_plan_function plim_cuda_plan_patches, plim_cuda_plan_patches_backward, plim_cuda_plan_depthwise,
    plim_cuda_plan_depthwise_backward, plim_cuda_plan_depthwise_backward_weight, plim_cuda_plan_solve_triangular;

/* plan_causal_conv.c */
plim_cuda_plan_function plim_cuda_plan_causal_conv, plim_cuda_plan_causal_conv_backward;

/* plan_delta.c */
plim_cuda_plan_function plim_cuda_plan_chunk_sums, plim_cuda_plan_delta_inverse, plim_cuda_plan_delta_solve,
    plim_cuda_plan_delta_states, plim_cuda_plan_delta_output, plim_cuda_plan_delta_output_backward_fresh,
    plim_cuda_plan_delta_states_backward, plim_cuda_plan_delta_output_backward, plim_cuda_plan_delta_solve_backward;

/* plan_quantized.c */
plim_cuda_plan_function plim_cuda_plan_quantize, plim_cuda_plan_dequantize, plim_cuda_plan_matmul_4bit,
    plim_cuda_plan_matmul_int8, plim_cuda_plan_scale_int32;

/* plan_foreach.c, plan_optimizer.c */
plim_cuda_plan_function plim_cuda_plan_foreach, plim_cuda_plan_optimizer;

#endif
