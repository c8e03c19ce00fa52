/* The cost of a kernel launch in a foreign program: only the numbers that the simulated clock needs.
 *
 * The virtual GPU sees kernels by their names and arguments, and library calls by their sizes. A cost is described by
 * an operation (op.h) that takes as long: plim_cost_launch() launches that operation, so that a recorded program is
 * timed only by the rules of the simulated device's clock (sim/roofline.h).
 *
 * Numbers are sizes, 1 or more (bytes may be 0), at most PLIM_MOST_BYTES. */
#ifndef PLIM_DEVICES_COST_H
#define PLIM_DEVICES_COST_H

#include "autotune/base/status.h"
#include <stdbool.h>
#include <stdint.h>

struct plim_device;

/* kind, name, number of numbers, and whether it has an element type */
#define PLIM_COST_MAP(X)                                                                           \
    /* bytes: a kernel that reads and writes this much in total */                                 \
    X(MOVE, "move", 1, false)                                                                      \
    /* bytes: the same, element by element over differing layouts */                               \
    X(STRIDED, "strided", 1, false)                                                                \
    /* bytes, tensors: one for a list of tensors */                                                \
    X(LISTS, "lists", 2, false)                                                                    \
    /* bytes that the host reads back, and waits for */                                            \
    X(READ_BACK, "read", 1, false)                                                                 \
    /* bytes between the GPU and pinned memory of the host */                                      \
    X(LINK, "link", 1, false)                                                                      \
    /* bytes from pageable host memory to the GPU; the host waits */                               \
    X(LINK_PAGEABLE, "link-pageable", 1, false)                                                    \
    /* m, n, k, batch, bytes from row to row of each factor */                                     \
    X(MATMUL, "matmul", 6, true)                                                                   \
    /* m, n, k, groups, bytes that it reads and writes, bytes moved beforehand by copies of its         \
       operands into another layout (1: none) */                                                   \
    X(CONVOLUTION, "convolution", 6, true)                                                           \
    /* batch, heads, heads of keys, queries, keys, head size; FlashAttention-2 */                  \
    X(FLASH, "flash", 6, true)                                                                     \
    X(FLASH_BACKWARD, "flash-backward", 6, true)                                                   \
    /* the same; CUTLASS's memory-efficient attention */                                           \
    X(EFFICIENT, "efficient", 6, true)                                                             \
    X(EFFICIENT_BACKWARD, "efficient-backward", 6, true)                                        \
    /* the same; a graph of cuDNN's */                                                             \
    X(CUDNN, "cudnn", 6, true)                                                                     \
    X(CUDNN_BACKWARD, "cudnn-backward", 6, true)

enum plim_cost_kind {
#define PLIM_COST_ENUM(kind, name, numbers, is_typed) PLIM_COST_##kind,
    PLIM_COST_MAP(PLIM_COST_ENUM)
#undef PLIM_COST_ENUM
    PLIM_COST_KINDS
};

enum plim_cost_type { PLIM_COST_FP32, PLIM_COST_TF32, PLIM_COST_FP16, PLIM_COST_BF16,
                      PLIM_COST_TYPES };

enum { PLIM_COST_NUMBERS = 6 };

struct plim_cost {
    uint8_t kind, type; /* of the enums above; FP32 if there is none */
    bool causal;        /* attention: computes half of the scores */
    bool in_autograd;   /* launched by a thread other than the program's first */
    bool in_graph;      /* by a CUDA graph, except its first kernel: takes no time on the host */
    int64_t number[PLIM_COST_NUMBERS];
};

extern const struct plim_cost_row {
    const char *name;
    uint8_t numbers;
    bool is_typed;
} plim_cost_rows[PLIM_COST_KINDS];
extern const char *const plim_cost_types[PLIM_COST_TYPES];

/* Launches an operation with this cost. Only for devices that compute nothing: it has no operands in memory.
 * PLIM_INVALID: numbers out of range, or so large that no memory holds the operands. */
enum plim_status plim_cost_launch(struct plim_device *device,
                                  const struct plim_cost *cost) PLIM_MUST_CHECK;

#endif
