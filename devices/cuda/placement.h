/* Places parts of working memory in the scratch blocks of an operation. */
#ifndef PLIM_DEVICES_CUDA_PLACEMENT_H
#define PLIM_DEVICES_CUDA_PLACEMENT_H

#include "devices/op.h"

struct plim_piece {
    int64_t bytes;
    int64_t alignment; /* a power of two */
    uint64_t address;  /* the result */
};

enum { PLIM_MAX_PIECES = 4 };

/* Places the largest piece first, each into the block with the least space left over; a block may hold several, those
 * with the largest alignment at its start. Empty pieces take no space (address 0). Returns false if they do not fit. */
bool plim_place(const struct plim_op *op, struct plim_piece *pieces, int count);

#endif
