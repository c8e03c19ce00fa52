/* Arguments of element-wise kernels. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_ARGS_ELEMENTWISE_H
#define PLIM_DEVICES_CUDA_KERNELS_ARGS_ELEMENTWISE_H

#include "devices/op.h"
#include "divider.h"

enum {
    PLIM_WALK_OPERANDS = 4,
    PLIM_WALK_VECTOR = 8, /* number of elements that a thread processes at once if it can */
    PLIM_ELEMENTWISE_THREADS = 256
};

/* The elements of several arrays in one common order. Dimensions from fastest to slowest; strides in bytes, 0 if an
 * operand repeats. Operand 0 is written. There is always a dimension 0, possibly of extent 1. */
struct plim_walk {
    uint64_t data[PLIM_WALK_OPERANDS];
    int64_t stride[PLIM_WALK_OPERANDS][PLIM_MAX_DIMS];
    struct plim_divider extent[PLIM_MAX_DIMS];
    uint64_t elements;
    uint8_t dtype[PLIM_WALK_OPERANDS]; /* enum plim_dtype, or PLIM_RAW16 */
    uint8_t ndim, operands;
};

/* Two bytes that are only moved: an element type in addition to those of enum plim_dtype. */
enum { PLIM_RAW16 = PLIM_DTYPE_COUNT };

struct plim_elementwise_args {
    struct plim_walk walk;
    double alpha, beta;
    uint64_t seed;
    struct plim_divider rows, columns; /* TRIL, TRIU: of a matrix */
    int32_t dim;                       /* TRIL, TRIU: the diagonal */
    uint8_t function;                  /* enum plim_op_kind, plim_unary or plim_binary */
};

/* COPY between arrays whose contiguous dimensions differ. The walk's dimension 0 is contiguous in the
 * output, dimension 1 in the input; a tile spans both. */
enum { PLIM_TILE = 32 };

struct plim_transpose_args {
    struct plim_walk walk;
    struct plim_divider tiles[2]; /* along dimension 0 and 1 */
    uint64_t all_tiles;
};

/* CAT of contiguous arrays: each consists of `rows` runs, each copied to a run of the output. */
enum { PLIM_CAT_INPUTS = 96 };

struct plim_cat_args {
    uint64_t out;
    uint64_t out_stride; /* bytes from row to row */
    uint64_t rows;
    uint32_t unit_bytes; /* bytes moved at once: 1, 2, 4, 8 or 16 */
    struct {
        uint64_t data, offset;     /* offset: in a row of the output, bytes */
        struct plim_divider units; /* of a row */
    } in[PLIM_CAT_INPUTS];
};

#endif
