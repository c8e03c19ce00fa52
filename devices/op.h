/* The vocabulary of kernels: what the engine asks a device to run.
 *
 * An operation is data: a kind, the operands (place, shape, strides, element type) and a few
 * parameters. One operation is one kernel launch as PyTorch makes it, at the granularity of
 * ATen's kernels, so that a device can count launches and a clock can cost them one by one.
 * Flops and bytes follow from the operands (plim_op_flops, plim_op_bytes).
 *
 * An operation never allocates: outputs, temporaries and workspaces are operands. What an
 * operation needs besides its outputs is answered by plim_op_needs() (needs.h), the same for
 * every device, so that devices cannot disagree about bytes.
 *
 * Shapes are row-major, in elements; strides too. A reference to operands is valid for the
 * duration of the launch call only.
 */
#ifndef PLIM_DEVICES_OP_H
#define PLIM_DEVICES_OP_H

#include "dtype.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PLIM_MAX_DIMS = 6, PLIM_OP_MAX_OUT = 4, PLIM_OP_MAX_IN = 8, PLIM_OP_MAX_LISTS = 5 };

/* A strided array on the device. `data` is the address of element 0. */
struct plim_array {
    uint64_t data;
    int64_t shape[PLIM_MAX_DIMS];
    int64_t stride[PLIM_MAX_DIMS];
    uint8_t ndim;
    uint8_t dtype; /* enum plim_dtype */
};

/* kind, name. The comment gives outputs <- inputs; parameters by the names of struct plim_op. */
#define PLIM_OP_MAP(X)                                                                             \
    /* out <- (): constant `alpha`, or 0 1 2 ... */                                                \
    X(FILL, "fill")                                                                                \
    X(ARANGE, "arange")                                                                            \
    /* out <- a, element by element; casts; strided or not; `unary` says which function */         \
    X(COPY, "copy")                                                                                \
    X(UNARY, "unary")                                                                              \
    /* da <- dout, saved: derivative of `unary` */                                                 \
    X(UNARY_BACKWARD, "unary_backward")                                                            \
    /* out <- a, b (broadcast by stride 0) or a and the scalar `alpha`; `binary` says which */     \
    X(BINARY, "binary")                                                                            \
    /* out <- condition, a, b */                                                                   \
    X(WHERE, "where")                                                                              \
    /* out <- in[0..n): along dimension `dim` */                                                   \
    X(CAT, "cat")                                                                                  \
    /* out <- a: over the dimensions that have extent 1 in out (or are gone); `binary` of the fold,\
       `alpha` a factor on the result (1/n for a mean) */                                          \
    X(REDUCE, "reduce")                                                                            \
    X(CUMSUM, "cumsum")                                                                            \
    /* out[n,h] <- weight[V,h], indices[n];   dweight <- dout, indices, temporaries */             \
    X(EMBEDDING, "embedding")                                                                      \
    X(EMBEDDING_BACKWARD, "embedding_backward")                                                    \
    /* out, mean, rstd <- x, weight, bias;   dx | dweight, dbias <- dout, x, mean, rstd, weight */ \
    X(LAYER_NORM, "layer_norm")                                                                    \
    X(LAYER_NORM_BACKWARD, "layer_norm_backward")                                                  \
    X(LAYER_NORM_BACKWARD_PARAMS, "layer_norm_backward_params")                                    \
    X(RMS_NORM, "rms_norm")                                                                        \
    X(RMS_NORM_BACKWARD, "rms_norm_backward")                                                      \
    /* out, mask <- x; probability `alpha` of being dropped */                                     \
    X(DROPOUT, "dropout")                                                                          \
    /* over the last dimension */                                                                  \
    X(SOFTMAX, "softmax")                                                                          \
    X(SOFTMAX_BACKWARD, "softmax_backward")                                                        \
    X(LOG_SOFTMAX, "log_softmax")                                                                  \
    X(LOG_SOFTMAX_BACKWARD, "log_softmax_backward")                                                \
    /* loss, total_weight <- log_probs, target;   dlog_probs <- dloss, target, total_weight */     \
    X(NLL_LOSS, "nll_loss")                                                                        \
    X(NLL_LOSS_BACKWARD, "nll_loss_backward")                                                      \
    /* out[.., m, n] = alpha * a[.., m, k] b[.., k, n] + beta * c; transposition is in the strides;\
       in: a, b, [c or bias], [workspace]; `epilogue` */                                           \
    X(MATMUL, "matmul")                                                                            \
    /* out, logsumexp <- q, k, v, [mask]; all (b, heads, s, d); `attention` says which kernel */   \
    X(ATTENTION, "attention")                                                                      \
    /* dq, dk, dv <- dout, q, k, v, out, logsumexp, [mask], temporaries */                         \
    X(ATTENTION_BACKWARD, "attention_backward")                                                    \
    /* over lists of tensors, one launch for many (multi_tensor_apply); `foreach` says which */    \
    X(FOREACH, "foreach")                                                                          \
    /* one optimizer kernel over one tensor or lists: `foreach` says which */                      \
    X(OPTIMIZER, "optimizer")                                                                      \
    /* device to host or back, of a few bytes; the host waits */                                   \
    X(READ_BACK, "read_back")

enum plim_op_kind {
#define PLIM_OP_ENUM(name, text) PLIM_OP_##name,
    PLIM_OP_MAP(PLIM_OP_ENUM)
#undef PLIM_OP_ENUM
    PLIM_OP_KIND_COUNT
};

enum plim_unary {
    PLIM_UNARY_IDENTITY, PLIM_UNARY_NEG, PLIM_UNARY_COS, PLIM_UNARY_SIN, PLIM_UNARY_RSQRT,
    PLIM_UNARY_TANH, PLIM_UNARY_SILU, PLIM_UNARY_RELU, PLIM_UNARY_GELU,
    PLIM_UNARY_GELU_TANH, PLIM_UNARY_POW, PLIM_UNARY_EXP, PLIM_UNARY_LOG, PLIM_UNARY_RECIPROCAL,
    PLIM_UNARY_NOT, PLIM_UNARY_CLAMP, PLIM_UNARY_ABS
};

enum plim_binary {
    PLIM_BINARY_ADD, PLIM_BINARY_SUB, PLIM_BINARY_MUL, PLIM_BINARY_DIV, PLIM_BINARY_POW,
    PLIM_BINARY_MAX,
    PLIM_BINARY_MIN, PLIM_BINARY_EQ, PLIM_BINARY_NE, PLIM_BINARY_LT, PLIM_BINARY_LE, PLIM_BINARY_GT,
    PLIM_BINARY_GE, PLIM_BINARY_AND, PLIM_BINARY_OR
};

enum plim_attention_kernel {
    PLIM_ATTENTION_FLASH,     /* FlashAttention-2, in PyTorch */
    PLIM_ATTENTION_EFFICIENT, /* CUTLASS memory-efficient, in PyTorch */
    PLIM_ATTENTION_CUDNN
};

enum plim_epilogue { PLIM_EPILOGUE_NONE, PLIM_EPILOGUE_BIAS };

/* Kernels over lists of tensors (FOREACH) and whole optimizer kernels (OPTIMIZER). */
enum plim_foreach {
    PLIM_FOREACH_FILL, PLIM_FOREACH_COPY, PLIM_FOREACH_ADD, PLIM_FOREACH_MUL, PLIM_FOREACH_DIV,
    PLIM_FOREACH_LERP, PLIM_FOREACH_ADDCMUL, PLIM_FOREACH_ADDCDIV, PLIM_FOREACH_SQRT,
    PLIM_FOREACH_NORM, PLIM_FOREACH_UNSCALE, PLIM_FUSED_ADAMW, PLIM_ADAMW_8BIT, PLIM_ADAMW_32BIT,
    PLIM_AMP_UPDATE_SCALE
};

struct plim_op {
    enum plim_op_kind kind;
    uint8_t n_out, n_in, n_lists;
    uint8_t unary, binary, attention, epilogue, foreach; /* of the enums above */
    int8_t dim;
    bool tf32;    /* MATMUL of fp32: may use TF32 */
    bool causal;  /* ATTENTION: the kernel itself masks the future */
    double alpha, beta;
    const struct plim_array *out[PLIM_OP_MAX_OUT];
    const struct plim_array *in[PLIM_OP_MAX_IN];
    /* FOREACH, OPTIMIZER: lists[i][j] is the j-th tensor of the i-th list; out lists first.
     * CAT: lists[0] holds the inputs. */
    const struct plim_array *const *lists[PLIM_OP_MAX_LISTS];
    size_t list_length;
};

/* Lower-case name of the kind. Never NULL. */
const char *plim_op_name(enum plim_op_kind kind);

/* Elements of an array; bytes it spans when every element is touched once (a stride of 0
 * is one element). */
int64_t plim_array_elements(const struct plim_array *a);
int64_t plim_array_bytes(const struct plim_array *a);

/* Floating-point operations: 2mnk for a matmul; attention 4 b h s_q s_k d forward (half when
 * causal) and 2.5 times that backward; a few an element otherwise (they never decide). */
double plim_op_flops(const struct plim_op *op);

/* Bytes that must cross the memory bus: every operand once. */
double plim_op_bytes(const struct plim_op *op);

#endif
