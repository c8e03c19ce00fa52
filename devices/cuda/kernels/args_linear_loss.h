/* Arguments of LINEAR_LSE, LINEAR_TARGET and LINEAR_LSE_BACKWARD (linear_lse.cu, linear_lse_backward.cu).
 *
 * A block has a tile of PLIM_LINEAR_LOSS_TILE places and as many classes, whose logits it computes in steps of
 * PLIM_LINEAR_LOSS_COLUMNS columns. A block of linear_lse_TYPE loops over `classes_of_block` classes; blockIdx.x counts
 * tiles of places fastest, then such ranges of classes. A block of linear_lse_backward_TYPE adds the gradients of one
 * tile of logits to dx and dweight; blockIdx.x counts PLIM_LINEAR_LOSS_GROUP tiles of places fastest, then tiles of
 * classes, then such groups.
 *
 * Blocks that add to the same elements take turns (turns.cuh). Each waits only for blocks with lower numbers, which the
 * GPU starts first. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_ARGS_LINEAR_LOSS_H
#define PLIM_DEVICES_CUDA_KERNELS_ARGS_LINEAR_LOSS_H

#include "args_rows.h"
#include "devices/op.h"

enum {
    PLIM_LINEAR_LOSS_THREADS = 256,
    PLIM_LINEAR_LOSS_STAGES = 2, /* tiles of x and of the weight in shared memory or being copied there */
    PLIM_LINEAR_LOSS_SHARED =
        2 * PLIM_LINEAR_LOSS_STAGES * PLIM_LINEAR_LOSS_TILE * PLIM_LINEAR_LOSS_COLUMNS * 2,
    PLIM_LINEAR_LOSS_GROUP = 16,
    PLIM_LINEAR_LOSS_CAPABILITY = 80, /* the lowest compute capability */
    PLIM_LINEAR_TARGET_THREADS = 256  /* one warp per place */
};

/* The mean of a class is summed over tiles of places as an integer in units of 2^-20, so that the order does not
 * matter; a mean beyond 2048 wraps. linear_means converts it to fp32. */
#define PLIM_LINEAR_MEAN_UNITS 1048576.0f

/* x (rows, width), weight (classes, width), contiguous and of one type. */
struct plim_linear_head_args {
    uint64_t x, weight, places, targets; /* places, targets: int64 */
    struct plim_cuda_flat_operand bias;
    int64_t rows, classes, width, count; /* count: of places */
    float cap;                           /* 0: none */
    int32_t shift;                       /* the target of row r is targets[r + shift] */
    uint32_t dtype, whole;               /* whole: all rows are multiples of 16 bytes */
};

struct plim_linear_lse_args {
    struct plim_linear_head_args head;
    uint64_t lse, means, turns; /* means 0: not needed */
    int64_t classes_of_block;
};

struct plim_linear_means_args {
    uint64_t means;
    uint64_t classes;
};

struct plim_linear_target_args {
    struct plim_linear_head_args head;
    uint64_t out;
};

/* dx, dweight, dbias 0: not needed. turns_of_dx, turns_of_dweight: counters of the turns. dbias needs dweight. */
struct plim_linear_lse_backward_args {
    struct plim_linear_head_args head;
    struct plim_cuda_flat_operand dloss;
    uint64_t lse, dx, dweight, dbias, turns_of_dx, turns_of_dweight;
    float scale;
};

#endif
