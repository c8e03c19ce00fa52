/* The memory that the handles of cuBLAS and cuBLASLt take at their first use and keep. PyTorch has
 * one handle of each for the main thread and one for the autograd thread, whose memory is of a stream. From 2.15 on
 * each product takes it, and gives it back (engine.h: torch_2_15). */
#ifndef PLIM_ENGINE_BLAS_WORKSPACE_H
#define PLIM_ENGINE_BLAS_WORKSPACE_H

#include "engine.h"

/* Of this thread's handle; of cuBLASLt where `is_lt`, which a product with a bias epilogue uses: it is kept
 * besides cuBLAS's own, which comes first. NULL: the engine is halted and there is none. */
struct storage *blas_workspace_take(struct engine *e, bool is_lt);
/* After the product. */
void blas_workspace_give(struct engine *e, struct storage *workspace);

#endif
