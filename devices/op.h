/* The vocabulary of kernels: the operations that the engine requests from a device.
 *
 * An operation is data: a kind, the operands (address, shape, strides, element type) and a few parameters. One
 * operation is one kernel launch of PyTorch, at the granularity of ATen's kernels, so that a device can count launches
 * and a clock can compute the cost of each. Its bytes follow from the operands (plim_op_bytes), and its work too
 * (devices/sim/work.h).
 *
 * An operation never allocates: outputs, temporaries and workspaces are operands. The memory that it needs in addition
 * to its outputs is computed by needs.h, the same for every device, so that devices cannot disagree about bytes. The
 * engine allocates it and passes it as `scratch`: raw bytes, of which a device uses as much as it needs, and no other
 * memory.
 *
 * Shapes are row-major; shapes and strides are in elements. Pointers to operands are valid only during the launch call.
 *
 * Arithmetic. Operands are read in their own types, computations are in fp32 (a host device may use more), and results
 * are rounded to the output's type: to nearest, ties to even; a float becomes an integer by truncation, anything
 * becomes a bool by comparison with 0. Operations on integers give integers.
 *
 * Broadcasting. If a comment says so, inputs broadcast to the output's shape as in PyTorch: shapes are aligned at the
 * last dimension, and a missing dimension or an extent of 1 repeats.
 *
 * Randomness is counter-based: element i (counted in row-major order of the output's shape) of an operation with `seed`
 * s depends only on s and i (random.h), whatever device runs it. Attention by cuDNN has its own generator, which also
 * depends only on `seed` (devices/cuda/fused_attention.h). */
#ifndef PLIM_DEVICES_OP_H
#define PLIM_DEVICES_OP_H

#include "dtype.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PLIM_MAX_DIMS = 6,
    PLIM_OP_MAX_OUT = 6,
    PLIM_OP_MAX_IN = 10,
    PLIM_OP_MAX_LISTS = 5,
    PLIM_OP_MAX_SCRATCH = 16
};

/* A strided array on the device. `data` is the address of element 0. */
struct plim_array {
    uint64_t data;
    int64_t shape[PLIM_MAX_DIMS];
    int64_t stride[PLIM_MAX_DIMS];
    uint8_t ndim;
    uint8_t dtype; /* enum plim_dtype */
};

/* Targets with this value have no loss (the default ignore_index of torch.nn.functional.cross_entropy). */
#define PLIM_IGNORED_TARGET (-100)

/* LINEAR_LSE and LINEAR_LSE_BACKWARD: places or classes per thread block, and columns that it sums at a time. */
enum { PLIM_LINEAR_LOSS_TILE = 128, PLIM_LINEAR_LOSS_COLUMNS = 64 };

/* kind, name, and minimum numbers of outputs, inputs and lists. The comment is in the form outputs <- inputs;
 * parameters have the names of struct plim_op. An operand in [brackets] may be NULL or missing; whether one beyond the
 * minimum is needed depends on the parameters. */
#define PLIM_OP_MAP(X)                                                                                \
    /* out <- (): the number `alpha` */                                                               \
    X(FILL, fill, 1, 0, 0)                                                                            \
    /* out[i] <- (): beta + alpha i */                                                                \
    X(ARANGE, arange, 1, 0, 0)                                                                        \
    /* out <- (): by `seed`; floats alpha (2 u - 1) with u the element's unit number, integers      \
       in [0, alpha) by plim_random_below */ \
    X(RANDOM, random, 1, 0, 0)                                                                        \
    /* out <- a, broadcast: casts, gathers strides */                                                 \
    X(COPY, copy, 1, 1, 0)                                                                            \
    /* out <- a: `unary`, element by element */                                                       \
    X(UNARY, unary, 1, 1, 0)                                                                          \
    /* da <- dout, saved: derivative of `unary`; saved is what PyTorch saves: the result for tanh, \
       relu and sigmoid, otherwise the input */  \
    X(UNARY_BACKWARD, unary_backward, 1, 2, 0)                                                        \
    /* out <- a, b, broadcast: f(a, alpha b) by `binary`; with one input f(a, alpha) */               \
    X(BINARY, binary, 1, 1, 0)                                                                        \
    /* out <- condition, a, b, broadcast */                                                           \
    X(WHERE, where, 1, 3, 0)                                                                          \
    /* out (.., 2) <- a (.., 2), b (.., 2), broadcast, fp32: products of complex numbers (real and imaginary part  \
       adjacent); the imaginary parts of b are multiplied by `beta` (-1: conjugated) */              \
    X(COMPLEX_MUL, complex_mul, 1, 2, 0)                                                                          \
    /* out <- a (rows, columns): zero above the diagonal `dim`; 0: the main one, 1: right of it */ \
    X(TRIL, tril, 1, 1, 0)                                                                            \
    /* the same below it */                                                                           \
    X(TRIU, triu, 1, 1, 0)                                                                            \
    /* out <- a: the last dimension reversed */                                                       \
    X(FLIP, flip, 1, 1, 0)                                                                            \
    /* out <- lists[0]: along dimension `dim`; scalars count as one element */                        \
    X(CAT, cat, 1, 0, 1)                                                                              \
    /* out <- a: reduced by `binary` over the dimensions in the bit mask `dims`, times `alpha`. For \
       an array over 2 GiB PyTorch makes several launches: `part` counts them, and part 0 computes  \
       everything */  \
    X(REDUCE, reduce, 1, 1, 0)                                                                        \
    /* out <- a: running sums along the last dimension */                                             \
    X(CUMSUM, cumsum, 1, 1, 0)                                                                        \
    /* out[.., h] <- weight[V, h], indices[..]: rows; with table[a, b], i, j: out <- table[i, j] */   \
    X(EMBEDDING, embedding, 1, 2, 0)                                                                  \
    /* dweight <- dout, indices: added to dweight, which is zeroed before; scratch: for sorting many \
       tokens */  \
    X(EMBEDDING_BACKWARD, embedding_backward, 1, 2, 0)                                                \
    /* over the last dimension: out, mean, rstd <- x, [weight], [bias]; `alpha` is epsilon */         \
    X(LAYER_NORM, layer_norm, 3, 1, 0)                                                                \
    /* dx <- dout, x, mean, rstd, [weight] */                                                         \
    X(LAYER_NORM_BACKWARD, layer_norm_backward, 1, 4, 0)                                              \
    /* dweight, [dbias] <- dout, x, mean, rstd: of shape (h); or partial sums (parts, h), row p    \
       over any share of the rows, every row in exactly one */  \
    X(LAYER_NORM_BACKWARD_PARAMS, layer_norm_backward_params, 1, 4, 0)                                \
    /* out, mask <- x: dropped if the element's unit number is below `alpha`, by `seed`;           \
       out = x mask / (1 - alpha) */  \
    X(DROPOUT, dropout, 2, 1, 0)                                                                      \
    /* over the last dimension; the result's type may be wider */                                     \
    X(SOFTMAX, softmax, 1, 1, 0)                                                                      \
    /* dx <- dout * out, out */                                                                       \
    X(SOFTMAX_BACKWARD, softmax_backward, 1, 2, 0)                                                    \
    X(LOG_SOFTMAX, log_softmax, 1, 1, 0)                                                              \
    /* dx <- dout, out */                                                                             \
    X(LOG_SOFTMAX_BACKWARD, log_softmax_backward, 1, 2, 0)                                            \
    /* Over a linear layer's logits, which are never stored: z = x[places] weight^T + bias, or          \
       `softcap` tanh(z / `softcap`) of that. lse, [means] <- x (rows, k), weight (classes, k), places  \
       (n; int64), [bias (classes)]: the natural logsumexp of each row of z, fp32 (n), and the mean of  \
       each column, fp32 (classes). lse is minus infinity before, means are zeros; scratch[0]: int32    \
       zeros, one for every PLIM_LINEAR_LOSS_TILE places */                                            \
    X(LINEAR_LSE, linear_lse, 1, 3, 0)                                                                \
    /* out (n; fp32) <- x, weight, targets (rows; int64), places, [bias]: minus the logit, before the   \
       softcap, of row places[i] and class targets[places[i] + dim]; 0 where that is not a class */     \
    X(LINEAR_TARGET, linear_target, 1, 4, 0)                                                          \
    /* [dx], [dweight], [dbias (fp32)] <- dloss (a number), x, weight, lse, targets, places, [bias]:   \
       gradients, added to outputs that are zeroed before, of beta times the sum of lse - z[target],   \
       with the same                                                                                   \
       `softcap` and `dim`. scratch: int32 zeros; [0] for dx: one for every tile of places and every   \
       PLIM_LINEAR_LOSS_COLUMNS of k; [1] for dweight: the same for tiles of classes */                \
    X(LINEAR_LSE_BACKWARD, linear_lse_backward, 0, 6, 0)                                              \
    /* merges a tile of logits (n, classes), whose first class is `start`, in place into running statistics of the \
       rows, fp32 (n): maximum, sum of exp(z - maximum), z of the target, [sum of z exp(z - maximum)], [sum of z], \
       [maximum of the classes before the target] <- tile, targets (n). z is a logit times `alpha`; where `beta` is \
       not 0 it is capped: beta tanh(z / beta) */ \
    X(ROW_STATISTICS, row_statistics, 3, 2, 0)                                                        \
    /* dtile <- tile, targets, log of the sum of exp(z), [gradient of the target's log-probability], [gradient of the \
       entropy, the entropy]; all but the tile have shape (n) */ \
    X(ROW_STATISTICS_BACKWARD, row_statistics_backward, 1, 3, 0)                                      \
    /* mean over the targets that are not ignored: loss, their number <- log_probs (n, classes),   \
       target (n) */  \
    X(NLL_LOSS, nll_loss, 2, 2, 0)                                                                    \
    /* dlog_probs <- dloss, target, number: writes the targets' elements, the rest is zeroed before */ \
    X(NLL_LOSS_BACKWARD, nll_loss_backward, 1, 3, 0)                                                  \
    /* out[.., m, n] = alpha a[.., m, k] b[.., k, n] + beta c, c broadcast; transposition is in    \
       the strides; a, b, [c]; with `epilogue` BIAS c is a row (n); scratch[0]: the workspace */  \
    X(MATMUL, matmul, 1, 2, 0)                                                                        \
    /* out, [logsumexp] <- q, k, v, [mask], [ends]; all (b, heads, s, d), k and v with fewer heads where \
       groups share them; out = dropout(softmax(cap(beta q k^T) + mask)) v, dropping with probability `alpha` \
       by random.h, rows numbered over (b, heads, s_q); cap(x) is x, or `softcap` tanh(x / `softcap`).       \
       `ends` (n + 1) int32: rows ends[i] to ends[i + 1] of q and k are a document and see only one another. \
       The mask is additive and broadcasts to (b, heads, s_q, s_k). logsumexp: natural, fp32       \
       (b, heads, s_q) at the start of its block. `attention` says which kernel PyTorch runs */  \
    X(ATTENTION, attention, 1, 3, 0)                                                                  \
    /* dq, dk, dv, [dmask] <- dout, q, k, v, out, logsumexp, [mask], [ends]; dmask: (b, heads, s_q, s_k),     \
       only where attention is not causal and has neither window, softcap nor ends */                         \
    X(ATTENTION_BACKWARD, attention_backward, 3, 6, 0)                                                \
    /* codes (bytes), scales <- a, [book]: in blocks of `block` elements, counted in row-major     \
       order, by `quantized` */ \
    X(QUANTIZE, quantize, 2, 1, 0)                                                                    \
    /* out <- codes, scales, [book] */                                                                \
    X(DEQUANTIZE, dequantize, 1, 2, 0)                                                                \
    /* out[.., n] <- a[.., k], codes of (n, k), scales, [bias (n)]: a b^T + bias with b in 4 bits; \
       if the scales are quantised themselves, their codes, their book, the offset to add */ \
    X(MATMUL_4BIT, matmul_4bit, 1, 3, 0)                                                              \
    /* out (int32) (m, n) <- a (m, k), b (n, k), signed bytes: a b^T */                                \
    X(MATMUL_INT8, matmul_int8, 1, 2, 0)                                                              \
    /* out <- a (m, n), s (m), t (n), [bias (n)]: a s t / 127^2 + bias */                               \
    X(SCALE_INT32, scale_int32, 1, 3, 0)                                                              \
    /* values, indices <- a: the largest along the last dimension, as many as `values` has, the      \
       largest first; of equal ones the first */ \
    X(TOP_K, top_k, 2, 1, 0)                                                                          \
    /* out (.., int64) <- a (.., n), float or int32: the index of the largest along the last dimension, the \
       first of equal ones; NaN is the largest. `part` as for REDUCE */ \
    X(ARGMAX, argmax, 1, 1, 0)                                                                        \
    /* values, order <- a (n): increasing, NaN last, stable; `order` has the index of each value in a */ \
    X(SORT, sort, 2, 1, 0)                                                                            \
    /* out (bins) <- a: how many of a are 0, 1, 2 .. */                                               \
    X(HISTOGRAM, histogram, 1, 1, 0)                                                                  \
    /* out[.., indices[.., i]] <- a[.., i], indices: along the last dimension; the rest of out stays */ \
    X(SCATTER, scatter, 1, 2, 0)                                                                      \
    /* out[.., i] <- a[.., indices[.., i]], indices: along the last dimension */                       \
    X(GATHER, gather, 1, 2, 0)                                                                        \
    /* out[.., indices[.., i]] += a[.., i]; inputs a, indices, which may repeat: along the last dimension, \
       one after the other */ \
    X(ADD_BY_INDEX, add_by_index, 1, 2, 0)                                                            \
    /* out <- a, mask, broadcast: `alpha` where the mask is 1, otherwise a */                              \
    X(MASKED_FILL, masked_fill, 1, 2, 0)                                                              \
    /* out (n) int64 <- a: the row-major indices where a is not 0; or out (n, dimensions of a): their coordinates. \
       Negative after the last of them */ \
    X(NONZERO, nonzero, 1, 1, 0)                                                                      \
    /* out (n, ..) <- a, indices (n): out[i, ..] = a[indices[i], ..]; an index counts the leading dimensions   \
       of a, one or more, row-major. Out of range: 0 */ \
    X(TAKE_ROWS, take_rows, 1, 2, 0)                                                                  \
    /* out <- a (n, ..), indices (n), all different: out[indices[i], ..] = a[i, ..], indices as in TAKE_ROWS; the \
       rest of out stays */ \
    X(PUT_ROWS, put_rows, 1, 2, 0)                                                                    \
    /* out <- a, mask, source (n); out, a and mask have one shape: a, or where the mask is not 0 the next     \
       element of source */ \
    X(MASKED_SCATTER, masked_scatter, 1, 3, 0)                                                        \
    /* out (bins) <- a, indices of as many elements: a[i] is added to out[indices[i]] */              \
    X(SCATTER_ADD, scatter_add, 1, 2, 0)                                                              \
    /* A product for each group of rows; `ends` (int32) has the row after each group's last. Groups of \
       rows of a: out (s, n) <- a (s, k), b (groups, k, n), ends. Groups of summed rows: out          \
       (groups, m, n) <- a (m, s), b (s, n), ends. scratch: for one kernel over all groups;           \
       without it there is one launch for each group */ \
    X(MATMUL_GROUPED, matmul_grouped, 1, 3, 0)                                                        \
    /* out (b, k, h / rows, w / columns) <- images (b, c, h, w), weight (k, c, rows, columns), [bias (k)]: a  \
       convolution whose stride is its size */ \
    X(PATCHES, patches, 1, 2, 0)                                                                      \
    /* dweight <- dout, images */                                                                     \
    X(PATCHES_BACKWARD, patches_backward, 1, 2, 0)                                                    \
    /* out (b, c, l) <- a (b, c, s), weight (c, 1, k), [bias (c)]: each channel with a kernel of its own; rows are \
       padded with (l - s + k - 1) / 2 zeros on either side */ \
    X(DEPTHWISE, depthwise, 1, 2, 0)                                                                  \
    /* da <- dout, weight */                                                                          \
    X(DEPTHWISE_BACKWARD, depthwise_backward, 1, 2, 0)                                                \
    /* dweight <- dout, a */                                                                          \
    X(DEPTHWISE_BACKWARD_WEIGHT, depthwise_backward_weight, 1, 2, 0)                                  \
    /* out <- a (.., n, n), b (.., n, m): the solution x of a x = b, where a is triangular (`upper` or lower) with a \
       diagonal of ones */ \
    X(SOLVE_TRIANGULAR, solve_triangular, 1, 2, 0)                                                    \
    /* over the last dimension: out, rstd <- x, weight (h): x rstd (beta + weight) with rstd = 1 / sqrt(mean(x^2)  \
       + alpha) */ \
    X(RMS_NORM, rms_norm, 2, 2, 0)                                                                    \
    /* dx, [dweight (parts, h), fp32] <- dout, x, weight, rstd; dx may be dout's memory. dweight: partial sums,   \
       row p over any share of the rows, every row in exactly one */ \
    X(RMS_NORM_BACKWARD, rms_norm_backward, 1, 4, 0)                                                  \
    /* over the last dimension: out, rstd <- x: x rstd with rstd = 1 / sqrt(sum(x^2) + alpha) */      \
    X(L2_NORM, l2_norm, 2, 1, 0)                                                                      \
    /* dx <- out, rstd, dout */                                                                       \
    X(L2_NORM_BACKWARD, l2_norm_backward, 1, 3, 0)                                                    \
    /* q, k <- q, k, cos, sin, in place; q (b, s, heads, size), k the same with heads of its own, cos and sin     \
       (1 or b, s, n), of which the first `pairs` columns count. In each head elements x = [i] and y = [i + pairs] \
       with i < pairs become x cos - y sin and y cos + x sin; sin is multiplied by beta: 1, or -1 for the inverse. \
       The rest stays */ \
    X(ROTATE, rotate, 2, 4, 0)                                                                        \
    /* out <- gate, up: f(gate) up, f by `unary`: SILU, GELU or GELU_TANH */                          \
    X(GATED, gated, 1, 2, 0)                                                                          \
    /* dgate, dup, [out] <- dout, gate, up; any result may share the memory of an input */            \
    X(GATED_BACKWARD, gated_backward, 2, 3, 0)                                                        \
    /* loss (n), [dlogits] <- logits (n, classes), target (n): alpha (log(sum(exp(x))) - x[target]) with x the    \
       logits, or beta tanh(logits / beta) where beta is above 0, and its gradient, which may share the memory    \
       of the logits. Both are 0 for ignored targets */ \
    X(CROSS_ENTROPY, cross_entropy, 1, 2, 0)                                                          \
    /* out (b, channels, s) <- x of the same shape, weight (channels, k), [document (b, s), int32]: silu of the sum \
       over i of x[t + i - k + 1] weight[i], within the row; with `document`, within the document of t */ \
    X(CAUSAL_CONV, causal_conv, 1, 2, 0)                                                              \
    /* dx, dweight (fp32) <- dout, x, weight, [document] */                                           \
    X(CAUSAL_CONV_BACKWARD, causal_conv_backward, 2, 3, 0)                                            \
    /* The gated delta rule (arXiv:2412.06464), divided into kernels as in flash-linear-attention. The tokens of a \
       row, or with `ends` (documents + 1, int32) of each document in a single row, are processed in chunks of 64, \
       the last of which may be shorter. q, k, w: (b, s, heads, d); v, u, fresh, out: (b, s, heads, e); beta, and g \
       (base-2 logarithms, summed along each chunk): (b, s, heads); inverse (b, s, heads, 64): each token's row of \
       its chunk's matrix; states (b, chunks, heads, d, e): the state before each chunk, document by document. \
       out <- x, [ends], out and x (b, s, heads): running sums along each chunk times alpha; from the end where \
       beta is -1 */ \
    X(CHUNK_SUMS, chunk_sums, 1, 1, 0)                                                                \
    /* inverse <- k, g, beta, [ends]: the inverse of 1 + L, L(i, j) = beta(i) 2^(g(i) - g(j)) k(i) k(j) for j < i */ \
    X(DELTA_INVERSE, delta_inverse, 1, 3, 0)                                                          \
    /* w, u <- k, v, beta, inverse, g, [ends]: inverse (beta 2^g k) and inverse (beta v) */           \
    X(DELTA_SOLVE, delta_solve, 2, 5, 0)                                                              \
    /* states, fresh <- k, w, u, g, [ends]: fresh = u - w S, and the state S of the next chunk is 2^l S plus the sum \
       of 2^(l - g(i)) k(i) fresh(i), with l the last g of the chunk; the first S of a row or document is 0 */ \
    X(DELTA_STATES, delta_states, 2, 4, 0)                                                            \
    /* out <- q, k, fresh, states, g, [ends]: alpha (2^g(i) q(i) S + the sum over j up to i of        \
       2^(g(i) - g(j)) q(i) k(j) fresh(j)) */                                                         \
    X(DELTA_OUTPUT, delta_output, 1, 5, 0)                                                            \
    /* dfresh <- q, k, g, dout, [ends]: the gradient of fresh from that sum */                        \
    X(DELTA_OUTPUT_BACKWARD_FRESH, delta_output_backward_fresh, 1, 4, 0)                              \
    /* dstates, dfresh <- q, k, w, g, dout, dfresh of DELTA_OUTPUT_BACKWARD_FRESH, [ends]: the gradient of the state \
       after each chunk, and the complete gradient of fresh */                                        \
    X(DELTA_STATES_BACKWARD, delta_states_backward, 2, 6, 0)                                          \
    /* dq, dk, dw, dg (parts, b, s, heads) <- q, k, g, fresh, states, dout, dstates, dfresh, [ends]: the gradients \
       from DELTA_OUTPUT and DELTA_STATES; dg is for natural logarithms and stored in part 0, other parts are 0 */ \
    X(DELTA_OUTPUT_BACKWARD, delta_output_backward, 4, 8, 0)                                          \
    /* dk, dv, dbeta, dg <- k, v, beta, g, inverse, dw, du, [ends]: the gradients from DELTA_SOLVE and DELTA_INVERSE; \
       dg for natural logarithms as well */                                                           \
    X(DELTA_SOLVE_BACKWARD, delta_solve_backward, 4, 7, 0)                                            \
    /* one launch for many tensors (multi_tensor_apply); `foreach` selects the function */            \
    X(FOREACH, foreach, 0, 0, 1)                                                                      \
    /* one optimizer kernel over one tensor or over lists; `foreach` selects it */                    \
    X(OPTIMIZER, optimizer, 0, 0, 0)                                                                  \
    /* copies in[0], a few bytes, to the host, which waits; plim_device_read() fetches it */          \
    X(READ_BACK, read_back, 0, 1, 0)

enum plim_op_kind {
#define PLIM_OP_ENUM(kind, name, outs, ins, lists) PLIM_OP_##kind,
    PLIM_OP_MAP(PLIM_OP_ENUM)
#undef PLIM_OP_ENUM
    PLIM_OP_KIND_COUNT
};

enum plim_unary {
    PLIM_UNARY_NEG, PLIM_UNARY_COS, PLIM_UNARY_SIN, PLIM_UNARY_RSQRT, PLIM_UNARY_TANH,
    PLIM_UNARY_SILU, PLIM_UNARY_RELU, PLIM_UNARY_SIGMOID,
    PLIM_UNARY_GELU, PLIM_UNARY_GELU_TANH, /* by erf; by tanh(sqrt(2/pi) (x + 0.044715 x^3)) */
    PLIM_UNARY_POW,                        /* to the power of alpha */
    PLIM_UNARY_RECIPROCAL, PLIM_UNARY_NOT, PLIM_UNARY_ABS,
    PLIM_UNARY_CLAMP,                      /* between alpha and beta */
    PLIM_UNARY_EXP,
    PLIM_UNARY_SOFTPLUS,                   /* log(1 + exp(x)); x where that is above 20 */
    PLIM_UNARY_SOFTCAP,                    /* alpha tanh(x / alpha) */
    PLIM_UNARY_LOG,
    PLIM_UNARY_LOG_SIGMOID,                /* log(1 / (1 + exp(-x))) */
    PLIM_UNARY_FLOOR,
    PLIM_UNARY_ERF,                        /* the error function */
    PLIM_UNARY_COUNT
};

enum plim_binary {
    PLIM_BINARY_ADD, PLIM_BINARY_SUB, PLIM_BINARY_MUL, PLIM_BINARY_DIV, PLIM_BINARY_POW,
    PLIM_BINARY_MAX, PLIM_BINARY_MIN,
    PLIM_BINARY_RSUB,  /* b - a; of a number: alpha - a */
    PLIM_BINARY_LERP,  /* a + alpha (b - a) */
    PLIM_BINARY_HYPOT, /* REDUCE: the 2-norm */
    PLIM_BINARY_EQ, PLIM_BINARY_NE, PLIM_BINARY_LT, PLIM_BINARY_LE, PLIM_BINARY_GT, PLIM_BINARY_GE,
    PLIM_BINARY_AND, PLIM_BINARY_OR, /* from EQ on: results are bool */
    PLIM_BINARY_COUNT
};

/* The kernels for attention; an ATTENTION operation uses any but MATH. scaled_dot_product_attention chooses
 * among all but FLASH2. */
enum plim_sdpa {
    PLIM_SDPA_FLASH,     /* FlashAttention-2, in PyTorch */
    PLIM_SDPA_EFFICIENT, /* CUTLASS memory-efficient, in PyTorch */
    PLIM_SDPA_CUDNN,
    PLIM_SDPA_MATH,      /* composed of matmuls and softmax, by the engine */
    PLIM_SDPA_FLASH2     /* the same kernels as FLASH, from the package flash-attn, which the model calls */
};

enum plim_epilogue { PLIM_EPILOGUE_NONE, PLIM_EPILOGUE_BIAS };

/* Kernels over lists of tensors (FOREACH) and whole optimizer kernels (OPTIMIZER). a, b, c:
 * lists[0] (written), lists[1], lists[2]. */
enum plim_foreach {
    PLIM_FOREACH_ADD,     /* a += alpha b; with one list a += alpha */
    PLIM_FOREACH_MUL,     /* a *= alpha, and also *= the scalar in[0] if present */
    PLIM_FOREACH_DIV,     /* a /= alpha */
    PLIM_FOREACH_LERP,    /* a += alpha (b - a) */
    PLIM_FOREACH_ADDCMUL, /* a += alpha b c */
    PLIM_FOREACH_ADDCDIV, /* a += alpha b / c */
    PLIM_FOREACH_SQRT,    /* a = sqrt(b) */
    PLIM_FOREACH_NORM, /* a (scalars) = 2-norm of b; scratch[0]: fp32, at least one for every 65536
                          elements of each tensor of b */
    PLIM_FOREACH_UNSCALE, /* a *= in[0]; out[0] = 1 where an element of a is not finite */
    /* lists: parameters, moments, second moments, step counters, gradients; in: [found_inf: do
       nothing when 1], [grad_scale: gradients are divided by it]; increments the step counters; `adam` */
    PLIM_FUSED_ADAMW,
    /* out: parameter, two states; in: gradient; `adam` with its step. 8 bits: in: gradient, two
       code books (256), two maxima (one for 256 elements); a state is book[code] * maximum, and a
       new state is stored as the nearest code */
    PLIM_ADAMW_8BIT,
    PLIM_ADAMW_32BIT,
    /* out: scale, growth tracker; in: found_inf. GradScaler's update with its defaults: the scale is halved
       when an infinity was found, doubled after 2000 steps without */
    PLIM_AMP_UPDATE_SCALE,
    /* torchao's AdamW (optim/adam.py); `adam` with its step. out: p, m, v; in: gradient */
    PLIM_TORCHAO_ADAMW,
    /* torchao's AdamW with quantized moments: a moment is book[code] times the scale of its `block` elements; a book
       has 16 or 256 numbers in increasing order. Below, "two" means one for each moment. out: two lists of the largest
       magnitudes (at least 1e-12) of the new moments in each block, which are the new scales, or in each of equal parts
       of the blocks; 8 bits: also the new moments divided by them; in: gradient, two each of codes, scales, books */
    PLIM_TORCHAO_SCALES,
    /* 8 bits, out: p, two codes; in: p, gradient, two each of codes, scales, new moments / new scales, books */
    PLIM_TORCHAO_STEP_8BIT,
    /* 4 bits, out: p, two each of new moments / new scales, and places (int64): the index of the last number in the
       book that is not above it, or 0; in: p, gradient, two each of codes, scales, new scales, books */
    PLIM_TORCHAO_STEP_4BIT,
    /* 4 bits, out: codes; in: a moment divided by its scales, the places, the book. The code is the place, or the next
       one where that is as near or nearer */
    PLIM_TORCHAO_CODES,
    PLIM_FOREACH_COUNT
};

/* AdamW: p -= rate weight_decay p; then p -= rate m^ / (sqrt(v^) + epsilon). */
struct plim_adam {
    double rate, beta1, beta2, epsilon, weight_decay;
    int64_t step; /* the number of this update, from 1; FUSED_ADAMW counts on the device instead */
};

/* Quantized formats: bitsandbytes' code books, each block scaled by its largest magnitude. The 4-bit
 * types put two elements into a byte, the first in its upper half. */
enum plim_quantized {
    PLIM_QUANTIZED_NF4, PLIM_QUANTIZED_FP4,
    PLIM_QUANTIZED_BOOK, /* 8 bits: the index of the nearest of 256 numbers in increasing order */
    PLIM_QUANTIZED_ROWS, /* signed 8 bits: 127 is the largest magnitude; out is code * scale */
    PLIM_QUANTIZED_COUNT
};

struct plim_op {
    enum plim_op_kind kind;
    uint8_t n_out, n_in, n_lists, n_scratch;
    uint8_t unary, binary, sdpa, epilogue, foreach, quantized; /* of the enums above */
    uint8_t dims; /* REDUCE: bit mask of dimensions */
    uint8_t part; /* REDUCE: number of the launch */
    int8_t dim;
    bool upper;  /* SOLVE_TRIANGULAR */
    bool tf32;   /* MATMUL of fp32: may use TF32 */
    bool causal; /* ATTENTION: later keys are masked. If there is a mask as well, it masks the same
                    keys, and either may be used */
    int64_t window; /* ATTENTION: how many keys back a query sees, its own included, and as many
                       ahead unless `causal`; 0: all */
    double softcap; /* ATTENTION, LINEAR_LSE and its BACKWARD; 0: none */
    int64_t pairs;  /* ROTATE: the number of pairs in a head that are rotated */
    double flops;   /* DELTA_*: the flops of its products, in the type of in[0]; for the clock */
    int64_t blocks; /* DELTA_*: the number of thread blocks that share these products */
    int64_t block; /* QUANTIZE, DEQUANTIZE, MATMUL_4BIT, torchao's optimizers: elements that share a scale */
    int64_t start; /* ROW_STATISTICS: class of the tile's first column */
    double alpha, beta;
    uint64_t seed;
    const struct plim_adam *adam;
    const struct plim_array *out[PLIM_OP_MAX_OUT];
    const struct plim_array *in[PLIM_OP_MAX_IN];
    const struct plim_array *scratch[PLIM_OP_MAX_SCRATCH];
    /* FOREACH, OPTIMIZER: lists[i][j] is the j-th tensor of the i-th list; written lists first.
     * CAT: lists[0] holds the inputs. */
    const struct plim_array *const *lists[PLIM_OP_MAX_LISTS];
    size_t list_length;
};

/* Returns the lower-case name of the kind. Never NULL. */
const char *plim_op_name(enum plim_op_kind kind);

/* Return the number of elements of an array, and the bytes of its distinct elements (a dimension with stride 0 counts
 * as one element). */
int64_t plim_array_elements(const struct plim_array *a);
int64_t plim_array_bytes(const struct plim_array *a);

/* Returns `ends` of an ATTENTION or its backward; NULL if there is none. */
const struct plim_array *plim_attention_ends(const struct plim_op *op);
/* Returns the gradient of the mask that an ATTENTION_BACKWARD writes; NULL if there is none. */
const struct plim_array *plim_attention_mask_gradient(const struct plim_op *op);

/* True if the operation has exactly this many outputs and inputs, none of them NULL. */
bool plim_op_has(const struct plim_op *op, int outs, int ins);

/* True for the operations of the gated delta rule, DELTA_*. */
bool plim_op_is_delta(enum plim_op_kind kind);

/* True if a FOREACH operation is one of ADD to UNSCALE and has the number of lists that its function needs. */
bool plim_foreach_has_its_lists(const struct plim_op *op);

/* Returns the bytes that must cross the memory bus: every operand once. */
double plim_op_bytes(const struct plim_op *op);

#endif
