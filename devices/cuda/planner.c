#include "planner.h"

/* Waves of full blocks that a launch may have before its threads loop. */
enum { WAVES = 4, THREADS_PER_MULTIPROCESSOR = 2048, GUESSED_MULTIPROCESSORS = 64 };

static plim_cuda_plan_function *const planners[PLIM_OP_KIND_COUNT] = {
    [PLIM_OP_FILL] = plim_cuda_plan_nullary,
    [PLIM_OP_ARANGE] = plim_cuda_plan_nullary,
    [PLIM_OP_RANDOM] = plim_cuda_plan_nullary,
    [PLIM_OP_COPY] = plim_cuda_plan_copy,
    [PLIM_OP_UNARY] = plim_cuda_plan_unary,
    [PLIM_OP_UNARY_BACKWARD] = plim_cuda_plan_unary_backward,
    [PLIM_OP_BINARY] = plim_cuda_plan_binary,
    [PLIM_OP_WHERE] = plim_cuda_plan_where,
    [PLIM_OP_COMPLEX_MUL] = plim_cuda_plan_complex_mul,
    [PLIM_OP_TRIL] = plim_cuda_plan_triangle,
    [PLIM_OP_TRIU] = plim_cuda_plan_triangle,
    [PLIM_OP_FLIP] = plim_cuda_plan_flip,
    [PLIM_OP_CAT] = plim_cuda_plan_cat,
    [PLIM_OP_REDUCE] = plim_cuda_plan_reduce,
    [PLIM_OP_CUMSUM] = plim_cuda_plan_cumsum,
    [PLIM_OP_EMBEDDING] = plim_cuda_plan_embedding,
    [PLIM_OP_EMBEDDING_BACKWARD] = plim_cuda_plan_embedding_backward,
    [PLIM_OP_DROPOUT] = plim_cuda_plan_dropout,
    [PLIM_OP_LAYER_NORM] = plim_cuda_plan_layer_norm,
    [PLIM_OP_LAYER_NORM_BACKWARD] = plim_cuda_plan_layer_norm_backward,
    [PLIM_OP_LAYER_NORM_BACKWARD_PARAMS] = plim_cuda_plan_layer_norm_params,
    [PLIM_OP_SOFTMAX] = plim_cuda_plan_softmax,
    [PLIM_OP_SOFTMAX_BACKWARD] = plim_cuda_plan_softmax_backward,
    [PLIM_OP_LOG_SOFTMAX] = plim_cuda_plan_softmax,
    [PLIM_OP_LOG_SOFTMAX_BACKWARD] = plim_cuda_plan_softmax_backward,
    [PLIM_OP_ROW_STATISTICS] = plim_cuda_plan_row_statistics,
    [PLIM_OP_ROW_STATISTICS_BACKWARD] = plim_cuda_plan_row_statistics_backward,
    [PLIM_OP_NLL_LOSS] = plim_cuda_plan_nll_loss,
    [PLIM_OP_NLL_LOSS_BACKWARD] = plim_cuda_plan_nll_loss_backward,
    [PLIM_OP_LINEAR_LSE] = plim_cuda_plan_linear_lse,
    [PLIM_OP_LINEAR_TARGET] = plim_cuda_plan_linear_target,
    [PLIM_OP_LINEAR_LSE_BACKWARD] = plim_cuda_plan_linear_lse_backward,
    [PLIM_OP_ATTENTION] = plim_cuda_plan_attention,
    [PLIM_OP_ATTENTION_BACKWARD] = plim_cuda_plan_attention_backward,
    [PLIM_OP_TOP_K] = plim_cuda_plan_top_k,
    [PLIM_OP_SORT] = plim_cuda_plan_sort,
    [PLIM_OP_HISTOGRAM] = plim_cuda_plan_histogram,
    [PLIM_OP_ARGMAX] = plim_cuda_plan_argmax,
    [PLIM_OP_SCATTER] = plim_cuda_plan_scatter,
    [PLIM_OP_GATHER] = plim_cuda_plan_gather,
    [PLIM_OP_ADD_BY_INDEX] = plim_cuda_plan_add_by_index,
    [PLIM_OP_MASKED_FILL] = plim_cuda_plan_masked_fill,
    [PLIM_OP_NONZERO] = plim_cuda_plan_nonzero,
    [PLIM_OP_TAKE_ROWS] = plim_cuda_plan_take_rows,
    [PLIM_OP_PUT_ROWS] = plim_cuda_plan_put_rows,
    [PLIM_OP_MASKED_SCATTER] = plim_cuda_plan_masked_scatter,
    [PLIM_OP_SCATTER_ADD] = plim_cuda_plan_scatter_add,
    [PLIM_OP_PATCHES] = plim_cuda_plan_patches,
    [PLIM_OP_PATCHES_BACKWARD] = plim_cuda_plan_patches_backward,
    [PLIM_OP_DEPTHWISE] = plim_cuda_plan_depthwise,
    [PLIM_OP_DEPTHWISE_BACKWARD] = plim_cuda_plan_depthwise_backward,
    [PLIM_OP_DEPTHWISE_BACKWARD_WEIGHT] = plim_cuda_plan_depthwise_backward_weight,
    [PLIM_OP_CAUSAL_CONV] = plim_cuda_plan_causal_conv,
    [PLIM_OP_CAUSAL_CONV_BACKWARD] = plim_cuda_plan_causal_conv_backward,
    [PLIM_OP_CHUNK_SUMS] = plim_cuda_plan_chunk_sums,
    [PLIM_OP_DELTA_INVERSE] = plim_cuda_plan_delta_inverse,
    [PLIM_OP_DELTA_SOLVE] = plim_cuda_plan_delta_solve,
    [PLIM_OP_DELTA_STATES] = plim_cuda_plan_delta_states,
    [PLIM_OP_DELTA_OUTPUT] = plim_cuda_plan_delta_output,
    [PLIM_OP_DELTA_OUTPUT_BACKWARD_FRESH] = plim_cuda_plan_delta_output_backward_fresh,
    [PLIM_OP_DELTA_STATES_BACKWARD] = plim_cuda_plan_delta_states_backward,
    [PLIM_OP_DELTA_OUTPUT_BACKWARD] = plim_cuda_plan_delta_output_backward,
    [PLIM_OP_DELTA_SOLVE_BACKWARD] = plim_cuda_plan_delta_solve_backward,
    [PLIM_OP_SOLVE_TRIANGULAR] = plim_cuda_plan_solve_triangular,
    [PLIM_OP_QUANTIZE] = plim_cuda_plan_quantize,
    [PLIM_OP_DEQUANTIZE] = plim_cuda_plan_dequantize,
    [PLIM_OP_MATMUL_4BIT] = plim_cuda_plan_matmul_4bit,
    [PLIM_OP_MATMUL_INT8] = plim_cuda_plan_matmul_int8,
    [PLIM_OP_SCALE_INT32] = plim_cuda_plan_scale_int32,
    [PLIM_OP_RMS_NORM] = plim_cuda_plan_rms_norm,
    [PLIM_OP_RMS_NORM_BACKWARD] = plim_cuda_plan_rms_norm_backward,
    [PLIM_OP_L2_NORM] = plim_cuda_plan_l2_norm,
    [PLIM_OP_L2_NORM_BACKWARD] = plim_cuda_plan_l2_norm_backward,
    [PLIM_OP_ROTATE] = plim_cuda_plan_rotate,
    [PLIM_OP_GATED] = plim_cuda_plan_gated,
    [PLIM_OP_GATED_BACKWARD] = plim_cuda_plan_gated_backward,
    [PLIM_OP_CROSS_ENTROPY] = plim_cuda_plan_cross_entropy,
    [PLIM_OP_FOREACH] = plim_cuda_plan_foreach,
    [PLIM_OP_OPTIMIZER] = plim_cuda_plan_optimizer,
};

enum plim_status plim_cuda_plan(const struct plim_device_info *info, const struct plim_op *op,
                                plim_cuda_emit emit, void *user)
{
    struct plim_cuda_plan plan = {info, emit, user};
    plim_cuda_plan_function *planner =
        (unsigned)op->kind < PLIM_OP_KIND_COUNT ? planners[op->kind] : NULL;
    return planner ? planner(&plan, op) : PLIM_UNSUPPORTED;
}

enum plim_status plim_cuda_plan_launch(const struct plim_cuda_plan *plan, const char *kernel,
                                       int64_t blocks, int threads, const void *args,
                                       size_t args_bytes)
{
    struct plim_cuda_launch launch = {.kernel = kernel,
                                      .grid = {(uint32_t)blocks, 1, 1},
                                      .block = {(uint32_t)threads, 1, 1},
                                      .args = args,
                                      .args_bytes = args_bytes};
    return plan->emit(plan->user, &launch);
}

int plim_cuda_plan_multiprocessors(const struct plim_cuda_plan *plan)
{
    int known = plan->info->multiprocessors;
    return known > 0 ? known : GUESSED_MULTIPROCESSORS;
}

int64_t plim_cuda_plan_blocks(const struct plim_cuda_plan *plan, int64_t work, int threads)
{
    int64_t blocks = plim_cuda_plan_all_blocks(work, threads);
    int64_t most = (int64_t)plim_cuda_plan_multiprocessors(plan) * WAVES *
                   (THREADS_PER_MULTIPROCESSOR / threads);
    return blocks < most ? blocks : most;
}

int64_t plim_cuda_plan_all_blocks(int64_t work, int threads)
{
    int64_t blocks = (work + threads - 1) / threads;
    return blocks < 1 ? 1 : blocks < INT32_MAX ? blocks : INT32_MAX;
}

bool plim_cuda_plan_is_integer(const struct plim_array *a)
{
    return a->dtype == PLIM_I64 || a->dtype == PLIM_I32 || a->dtype == PLIM_U8 ||
           a->dtype == PLIM_BOOL;
}

bool plim_cuda_plan_is_contiguous(const struct plim_array *a)
{
    int64_t stride = 1;
    for (int d = a->ndim - 1; d >= 0; d--) {
        if (a->shape[d] != 1 && a->stride[d] != stride) return false;
        stride *= a->shape[d];
    }
    return true;
}

bool plim_cuda_plan_same_shape(const struct plim_array *a, const struct plim_array *b)
{
    bool same = a->ndim == b->ndim;
    for (int d = 0; same && d < a->ndim; d++) same = a->shape[d] == b->shape[d];
    return same;
}

const struct plim_array *plim_cuda_plan_input(const struct plim_op *op, int i)
{
    return i < op->n_in ? op->in[i] : NULL;
}

struct plim_divider plim_cuda_plan_divider(int64_t extent)
{
    return plim_divider_of(extent > 0 ? (uint64_t)extent : 1);
}
