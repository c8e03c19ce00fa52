/* Every operation of op.h in plain C on host memory, with which the other devices are compared.
 *
 * Written to be readable rather than fast. Numbers are doubles (element.h) except the products of a matmul, which are
 * summed in fp32 in short partial sums. PyTorch's semantics apply where op.h does not specify:
 *   - MAX, MIN and CLAMP keep NaN; the mean over no targets is NaN, and so is the softmax of a row of minus infinities;
 *   - an attention row without visible keys gives zeros, and a logsumexp of minus infinity; in backward a row whose
 *     logsumexp is infinite has no visible keys;
 *   - causal: row i attends to the columns up to i, also if there are more columns than rows;
 *   - gradients that FUSED_ADAMW divides by the scale are not written back;
 *   - ADAMW_8BIT follows bitsandbytes' kOptimizerStatic8bit2StateBlockwise, and ADAMW_32BIT its kOptimizer32bit2State:
 *     weight decay comes after the update, and in ADAMW_8BIT an element whose gradient is not finite keeps its value
 *     and its states become 0. Blocks of 256 elements are counted in row-major order; between two equally near codes
 *     the lower one is used, in torchao's optimizers the upper one.
 *
 * Unit numbers are compared with a probability in fp32, so that all devices drop the same elements. */
#ifndef PLIM_DEVICES_HOST_REFERENCE_H
#define PLIM_DEVICES_HOST_REFERENCE_H

#include "autotune/base/status.h"
#include "devices/op.h"

/* Computes one operation; plim_array.data is a host address, aligned to the element type. PLIM_INVALID for operands
 * that contradict op.h (counts, shapes, indices that are out of range), PLIM_NOMEM. Scratch is not used. */
enum plim_status plim_reference_run(const struct plim_op *op) PLIM_MUST_CHECK;

#endif
